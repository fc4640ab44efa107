//! Balances the load: the device sums directly while the CPU evaluates expansions, and the split is
//! chosen so that both end together.
//!
//! The split is the fewest sources of a node that acts by its expansion. It only moves work between
//! the two. The choice depends on the measured speed of both, so the result reports the split, and
//! a later run can be given the same one.

use std::time::Instant;

use fmm_core::grid::far::Expansions;
use fmm_core::grid::near::SUMS;
use fmm_core::grid::plan::{Brick, Lists, POINTS, Share};
use fmm_core::grid::sources::{Cells, Sources};
use fmm_core::grid::{CELLS, Grid, Solver};
use fmm_core::math::Real;
use fmm_core::{Error, Precision, StageTimes};
use rayon::prelude::*;

use super::sums::Sums;
use crate::Gpu;

/// What the two do in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Pairs of a point and a source, by the device.
    pub direct: f64,
    /// Pairs of a point and a node, by the cores.
    pub indirect: f64,
}

/// The splits that are tried: two in each doubling.
pub fn splits() -> Vec<usize> {
    (0..36).map(|k| if k % 2 == 0 { 8 << (k / 2) } else { 12 << (k / 2) }).collect()
}

/// The share whose longer part is the shortest; the first of those.
pub fn choose(shares: &[Share], rates: Rates) -> Option<Share> {
    let longer = |s: &Share| (s.direct as f64 / rates.direct).max(s.indirect as f64 / rates.indirect);
    shares.iter().copied().min_by(|a, b| longer(a).total_cmp(&longer(b)))
}

/// Nodes of a row of the measurement.
const NODES: usize = 32;

/// Rows of a thread.
const ROWS: usize = 16;

/// Measures both with the settings of `solver`.
///
/// # Errors
/// [`Error::Device`] if the device fails.
pub fn measure(gpu: &Gpu, solver: &Solver) -> Result<Rates, Error> {
    // Some tens of thousands of sources in eight of 64 blocks.
    let grid = Grid::uniform([0.0; 3], 1.0, 4);
    let filled = |i: usize| if i < 8 * CELLS { [1.0, 0.5, -0.25] } else { [0.0; 3] };
    let field: Vec<[f64; 3]> = (0..grid.cells()).map(filled).collect();
    let cells = Cells::new(&grid, &field, solver.green);
    let sources = Sources::of(&grid, &cells, solver.leaf_size);
    let lists = Lists::new(&grid, &sources, Solver { theta: 0.0, ..*solver }.rule());
    let mut sums = Sums::default();
    sums.send(&grid, &cells)?;
    sums.take(gpu, &sources, &lists, None)?;
    let clock = sums.begin(gpu, solver.green)?;
    clock.read(&mut StageTimes::default())?;
    let took = sums.direct_again(gpu, solver.green)?.as_secs_f64();
    let indirect = match solver.summed_in() {
        Precision::F32 => indirect::<f32>(&sources, solver.order),
        _ => indirect::<f64>(&sources, solver.order),
    };
    Ok(Rates { direct: lists.pairs(&sources) as f64 / took, indirect })
}

/// Expansions of the root at bricks some way off.
fn indirect<T: Real>(sources: &Sources, order: usize) -> f64 {
    let expansions = Expansions::<T>::new(sources, order, &mut StageTimes::default());
    let brick = Brick::new(&Grid::uniform([4.0; 3], 1.0, 1), 0);
    let rows = ROWS * rayon::current_num_threads();
    let once = || {
        let start = Instant::now();
        (0..rows).into_par_iter().for_each_init(
            || (vec![], vec![0.0; SUMS]),
            |(scratch, out), _| expansions.brick(sources, &brick, &[0; NODES], scratch, out),
        );
        start.elapsed().as_secs_f64()
    };
    let least = (0..3).map(|_| once()).fold(f64::INFINITY, f64::min);
    (rows * NODES * POINTS) as f64 / least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_balances_what_there_is() {
        let splits = splits();
        assert!(splits.windows(2).all(|w| w[0] < w[1]) && splits[0] == 8 && splits[35] > 1_000_000);
        // Each split moves a hundred nodes, of as many sources as it says.
        let mut shares = vec![];
        let (mut direct, mut indirect) = (1_000_000, 3_500);
        for split in splits {
            shares.push(Share { split, direct, indirect });
            (direct, indirect) = (direct + 100 * split as u64, indirect - 100u64.min(indirect));
        }
        let with = |direct: f64, indirect: f64| choose(&shares, Rates { direct, indirect }).unwrap();
        assert_eq!(with(1.0, 1e9).split, 8);
        assert_eq!(with(1e30, 1.0).indirect, 0);
        let even = with(1e6, 2e3);
        let spans = [even.direct as f64 / 1e6, even.indirect as f64 / 2e3];
        assert!(even.split > 8 && spans[0] / spans[1] < 1.5 && spans[1] / spans[0] < 1.5, "{even:?} {spans:?}");
        assert_eq!(choose(&[], Rates { direct: 1.0, indirect: 1.0 }), None);
    }
}
