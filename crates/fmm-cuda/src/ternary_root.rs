//! A cubic box can be subdivided 3 × 3 × 3 at the root, so that leaves come closer to the best
//! size. Levels then have 3 × 2^k cells along an axis instead of 2^k.
//!
//! The leaves of an even set hold N/8^k bodies in a box that is halved again and again, up to 2.8 times too many or too few. In a cube of 4/3 of its side
//! 3³ of the 4³ cells of level 2 are the box, which is a whole number of those again and again: leaves then hold N/(27 · 8^k), and the better of both is at most
//! 1.8 times off. Lists begin at those cells, with their 27 neighbours as in an endless crystal; all other images of all 27 reach each of them by one
//! operator for each offset, [`fmm_core::expansion::between_cells`].

use fmm_core::accuracy::Problem;
use fmm_core::boundary::PeriodicBox;
use fmm_core::lists::{Rule, image_class};
use fmm_core::tree::Cube;
use fmm_core::{Choice, Family, Method, Settings, Softening};

use crate::geometry::{DeviceTree, view::Image};
use crate::policy;
use crate::view::CELLS_IN_BOX;

/// Cells along an axis, and their level.
pub const ACROSS: usize = 3;
pub const LEVEL: usize = 2;

/// The highest order whose operators, 125 of them, take little memory.
const MOST_ORDER: usize = 16;

/// The part of the largest leaf that leaves of an even set may hold on average, so that few have more.
const ROOM: f64 = 0.85;

/// Sets that are more crowded have leaves of all sizes anyway.
const EVEN: f64 = 3.0;

/// The cube whose cells of level 2 are thirds of the box along each axis. It is slightly wider, so that rounding cannot
/// move a body out of them.
pub fn cube(cell: &PeriodicBox) -> Cube<3> {
    Cube { corner: [0.0; 3], side: cell.longest() * (4.0 / 3.0) * (1.0 + 4e-15) }
}

/// Places of the cells of the box in the order of their tree.
pub fn places() -> [[i32; 3]; CELLS_IN_BOX] {
    let mut places = [[0; 3]; CELLS_IN_BOX];
    let all = (0..64).map(|k: i32| std::array::from_fn(|d| 2 * (k >> (3 + d) & 1) + (k >> d & 1)));
    let within = all.filter(|place: &[i32; 3]| place.iter().all(|c| *c < ACROSS as i32));
    places.iter_mut().zip(within).for_each(|(to, place)| *to = place);
    places
}

/// Whether the tree has all these cells, and cells below them.
pub fn has_all(tree: &DeviceTree) -> bool {
    let levels = tree.level_start();
    levels.len() > LEVEL + 2 && (levels[LEVEL + 1] - levels[LEVEL]) as usize == CELLS_IN_BOX
}

/// The neighbours of each of them, itself included, where the first is cell `first` of its tree. `[cells][27]`
pub fn neighbours(first: u32) -> Vec<Image> {
    let places = places();
    let across = ACROSS as i32;
    let mut all = vec![];
    for place in places {
        for k in 0..27 {
            let offset = [k % 3 - 1, k / 3 % 3 - 1, k / 9 - 1];
            let at: [i32; 3] = std::array::from_fn(|d| place[d] + offset[d]);
            let (image, within) = (at.map(|c| c.div_euclid(across)), at.map(|c| c.rem_euclid(across)));
            let source = places.iter().position(|p| *p == within).unwrap_or(0) as u32;
            all.push(Image { offset, class: image_class(image), source: first + source });
        }
    }
    all
}

/// Whether a ternary root suits a sum of `problem` better than a binary one.
pub fn pay(settings: &Settings, choice: &Choice, rule: &Rule, cell: &PeriodicBox, problem: &Problem) -> bool {
    let serves = choice.method == Method::Fmm
        && choice.expansion == Some(Family::Spherical)
        && settings.softening == Softening::None
        && cell.side == [cell.longest(); 3]
        && rule.separation2.ceil() == 4.0
        && choice.order.is_some_and(|p| p <= MOST_ORDER);
    if !serves || problem.crowding.is_nan() || problem.crowding > EVEN {
        return false;
    }
    let n = problem.sources as f64 * problem.crowding;
    let (best, most) = (policy::best_leaf(choice), ROOM * choice.leaf_size as f64);
    let held = |first: f64| {
        let mut held = first;
        while held > most {
            held /= 8.0;
        }
        held
    };
    let thirds = n / CELLS_IN_BOX as f64;
    // How far from the best, as a ratio: logarithms are a library's.
    let off = |held: f64| (held / best).max(best / held);
    thirds > most && off(held(thirds)) < off(held(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cell is the neighbour of as many as it has, at the opposite offset and in the opposite image.
    #[test]
    fn neighbours_are_mutual() {
        let all = neighbours(9);
        for (k, n) in all.iter().enumerate() {
            let (target, source) = (k as u32 / 27, n.source - 9);
            let opposite = |m: &&Image| m.source == target + 9 && m.offset == n.offset.map(|o| -o);
            let back: Vec<_> = all[27 * source as usize..][..27].iter().filter(opposite).collect();
            assert_eq!(back.len(), 1);
            let image = fmm_core::lists::image_of::<3>(n.class);
            assert_eq!(back[0].class, image_class(image.map(|c| -c)));
            let (to, from) = (places()[target as usize], places()[source as usize]);
            assert_eq!(n.offset, std::array::from_fn(|d| from[d] + 3 * image[d] - to[d]));
        }
    }
}
