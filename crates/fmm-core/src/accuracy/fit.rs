//! Widens the root cube of an evenly filled set so that its leaves have the best size.
//!
//! Cells halve from level to level. When one more body splits all leaves of a filled cube, each
//! holds eight times fewer bodies. Between two such numbers of bodies a sum takes up to half as
//! long again as it should. In a root cube that is wider than the bodies' own, any number of cells
//! can span the bodies: for example 20 of the 32 cells of level 5.

use super::{LEAF_SHARE, Problem};
use crate::settings::Choice;
use crate::tree::Cube;

/// Sets that are more crowded than this are left to the tree's adaptivity: their leaves differ anyway.
const EVEN: f64 = 3.0;

/// Fewer cells across than this leave the fast method little to do.
const FEWEST: f64 = 3.0;

/// More levels than any tree's.
const MOST_LEVELS: u32 = 21;

/// Cells of so many times the most bodies of a leaf may stay leaves where they hold fewer than others.
const UNSPLIT: f64 = 1.25;

/// How many bodies the leaves of `choice` hold at best.
pub fn best_leaf(choice: &Choice) -> f64 {
    LEAF_SHARE * choice.leaf_size as f64
}

/// The cube for the tree of `problem`, whose bodies lie in `cube`, where leaves hold at best `best`
/// bodies, and `most` at most.
pub fn fit<const D: usize>(cube: Cube<D>, problem: &Problem, best: f64, most: usize) -> Cube<D> {
    // Powers and roots by multiplications alone: the cube must not depend on a machine's library of functions.
    let raised = |x: f64| (0..D).fold(1.0, |power, _| power * x);
    // Cells in the cube whose leaves hold `best` bodies where bodies are.
    let wanted = problem.sources as f64 * problem.crowding / best;
    if problem.crowding.is_nan() || problem.crowding > EVEN || wanted.is_nan() || wanted < raised(FEWEST) {
        return cube;
    }
    let levels = (0..MOST_LEVELS).find(|&l| raised((1u64 << l) as f64) >= wanted).unwrap_or(MOST_LEVELS);
    // Whole cells fill the bodies' cube; so do, of many cells, blocks of eight of them or more, and
    // always where a block that is half empty would not be split: leaves at the faces would hold four
    // times as much as others.
    let unsplit = raised(2.0) / 2.0 * best < UNSPLIT * most as f64;
    let block = 1u64 << levels.saturating_sub(4).max(u32::from(unsplit));
    let nearest = (1..=16).rfind(|&b| raised((b as f64 - 0.5) * block as f64) <= wanted);
    let across = block * nearest.unwrap_or(1);
    // A power of two is the cube itself.
    if across.is_power_of_two() {
        return cube;
    }
    Cube { side: round_up(cube.side * (across.next_power_of_two() as f64 / across as f64)), ..cube }
}

/// The next number of ten significant bits: centers of cells remain exact.
fn round_up(x: f64) -> f64 {
    const LOW: u64 = (1 << 43) - 1;
    f64::from_bits((x.to_bits() + LOW) & !LOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::accuracy::choose;
    use crate::tree::Tree;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Bodies that a body finds in its leaf, over those that are best; and the cubes, tight and fitted.
    fn occupation(points: &[[f64; 3]]) -> (f64, Cube<3>, Cube<3>) {
        let tight = Cube::around(&[points]);
        let problem = Problem::of(points, &[&vec![1.0; points.len()]], points.len(), &tight);
        let choice = choose(&Settings { method: crate::Method::Fmm, ..Settings::default() }, problem).unwrap();
        let fitted = fit(tight, &problem, best_leaf(&choice), choice.leaf_size);
        let tree = Tree::octree(points, fitted, choice.leaf_size);
        let squares = tree.leaves.iter().map(|&l| tree.count(l as usize).pow(2)).sum::<usize>() as f64;
        (squares / points.len() as f64 / (LEAF_SHARE * choice.leaf_size as f64), tight, fitted)
    }

    #[test]
    fn leaves_of_even_sets_of_any_number_hold_what_is_best() {
        let mut rng = StdRng::seed_from_u64(1);
        for n in [17_000, 20_000, 30_000, 45_000, 65_000, 100_000, 160_000] {
            let points: Vec<[f64; 3]> = (0..n).map(|_| rng.random()).collect();
            let (share, tight, fitted) = occupation(&points);
            assert!((0.8..1.3).contains(&share), "{n}: {share}");
            assert!(fitted.side >= tight.side && fitted.side < 1.99 * tight.side && fitted.corner == tight.corner);
        }
    }

    #[test]
    fn no_leaf_at_a_face_holds_four_times_as_much_as_others() {
        let mut rng = StdRng::seed_from_u64(3);
        for n in [40_000, 70_000, 100_000] {
            let points: Vec<[f64; 3]> = (0..n).map(|_| rng.random()).collect();
            let tight = Cube::around(&[&points]);
            let problem = Problem::of(&points, &[&vec![1.0; n]], n, &tight);
            // On a GPU leaves hold at best a quarter of the most.
            let tree = Tree::octree(&points, fit(tight, &problem, 32.0, 128), 128);
            let largest = tree.leaves.iter().map(|&l| tree.count(l as usize)).max().unwrap();
            assert!(largest < 80, "{n}: {largest}");
        }
    }

    #[test]
    fn crowded_and_small_sets_keep_their_cube() {
        let mut rng = StdRng::seed_from_u64(2);
        let crowded: Vec<[f64; 3]> = (0..30_000).map(|_| rng.random::<[f64; 3]>().map(|x| x.powi(4))).collect();
        let few: Vec<[f64; 3]> = (0..300).map(|_| rng.random()).collect();
        for points in [&crowded[..], &few, &few[..1], &[]] {
            let (_, tight, fitted) = occupation(points);
            assert_eq!(tight, fitted);
        }
    }
}
