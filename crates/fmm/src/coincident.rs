//! Pairs of a source and a target at the same place. They contribute nothing where the kernel is
//! infinite at distance zero.

use fmm_core::math::CollectVec;
use rayon::prelude::*;

use crate::{Kernel, Points, Problem};

/// The pairs of distance zero that contributed nothing and are not a source's own; `own` is their
/// number among the sources.
pub(crate) fn pairs(problem: &Problem, points: &Points, own: u64) -> u64 {
    // Kernels that are finite at distance zero act there. 1/r and screened charges do not.
    let finite = problem.in_space().simplified().softening.at_zero() != 0.0 || problem.blob.length() > 0.0;
    match points.targets {
        _ if finite || matches!(problem.kernel, Kernel::Gauss(_)) => 0,
        None => own,
        Some(targets) => match problem.settings.boundary.periodic() {
            None => between(points.sources, targets),
            Some(cell) => between(&cell.wrap(points.sources), &cell.wrap(targets)),
        },
    }
}

fn between(sources: &[[f64; 3]], targets: &[[f64; 3]]) -> u64 {
    // −0 and 0 are the same place.
    let sorted = |points: &[[f64; 3]]| -> Vec<[u64; 3]> {
        let mut keys: Vec<_> = points.par_iter().map(|x| x.map(|c| (c + 0.0).to_bits())).collect_vec();
        keys.par_sort_unstable();
        keys
    };
    let (sources, targets) = (sorted(sources), sorted(targets));
    let mut rest = &sources[..];
    let mut pairs = 0;
    for place in targets.chunk_by(|a, b| a == b) {
        rest = &rest[rest.partition_point(|s| *s < place[0])..];
        let here = rest.partition_point(|s| *s <= place[0]);
        pairs += here as u64 * place.len() as u64;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_at_the_same_place_are_counted() {
        let (a, b, c) = ([0.0, 1.0, 2.0], [-0.0, 1.0, 2.0], [3.0, -1.0, 0.5]);
        assert_eq!(between(&[a, c, b], &[b, c, a, [9.0; 3]]), 5);
        assert_eq!(between(&[], &[a]), 0);
    }
}
