//! What pairs that do not see each other do, taken out of the sums.

use fmm_core::forces::Met;

use super::kernel::{Answer, Problem};

/// Takes what the two of each pair do to each other out of the sums; in a periodic box what the nearest image does.
pub fn leave_out(problem: &Problem, pairs: &[[usize; 2]], answer: &mut Answer) {
    let softening = problem.settings.clone().simplified().softening;
    for &[i, j] in pairs {
        let cell = problem.settings.boundary.periodic();
        let Met { from: d, potential, slope } = Met::of(softening, cell, &problem.sources[i], &problem.sources[j]);
        for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
            let q = problem.strengths[0][source];
            answer.columns[0].1[target] -= q * potential;
            (0..3).for_each(|k| answer.columns[k + 1].1[target] -= sign * q * slope * d[k]);
        }
    }
}
