//! The virial of softened charges in a periodic box. That of 1/r over all images is its energy; pairs that feel another kernel differ.

use std::ops::Range;

use rayon::prelude::*;

use crate::math::blocked::added;
use crate::math::simd::{Task, Vector, dispatch};
use crate::mesh::cells::{Packed, Sources};
use crate::{PeriodicBox, Softening};

/// Σ q q' (−r K' − K) over all pairs. `position` and `strength` are `[n]`, and the softening is one of the box (see [`PeriodicBox::check`]).
pub(super) fn excess(softening: Softening, cell: &PeriodicBox, position: &[[f64; 3]], strength: &[f64]) -> f64 {
    let reach = softening.newtonian_beyond(0.0);
    if reach == 0.0 {
        return 0.0;
    }
    let (sources, scale) = Sources::in_box(cell.side, reach, position, strength);
    let (softening, reach2) = (softening.scaled(scale), (reach * scale).powi(2));
    let some = |cells| dispatch(Meet { softening, reach2, sources: &sources, strength, cells });
    let sums: Vec<[f64; 1]> = sources.parts().into_par_iter().map(some).collect();
    0.5 * scale * added(sums)[0]
}

/// The bodies of some cells meet those around them.
struct Meet<'a> {
    softening: Softening,
    reach2: f64,
    sources: &'a Sources<f64>,
    strength: &'a [f64],
    cells: Range<usize>,
}

impl Task<f64> for Meet<'_> {
    type Out = [f64; 1];

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let Sources { cells, .. } = self.sources;
        let (mut sum, mut packed, at_zero) = (0.0, Packed::default(), self.softening.at_zero());
        for cell in self.cells.filter(|&cell| !cells.places(cell).is_empty()) {
            self.sources.pack::<V>(cell, &mut packed);
            for place in cells.places(cell) {
                let strength = self.strength[cells.order[place] as usize];
                // What lies at the same place, but for the body itself.
                let (mut own, mut here) = (0.0, -strength);
                for j in 0..packed.len {
                    let r2: f64 = (0..3).map(|d| (cells.x[d][place] - packed.x[d][j]).powi(2)).sum();
                    if r2 == 0.0 {
                        here += packed.q[j];
                    } else if r2 < self.reach2 {
                        let (kernel, slope) = self.softening.at(r2.sqrt());
                        own += packed.q[j] * (slope * r2 - kernel);
                    }
                }
                sum += strength * (own - here * at_zero);
            }
        }
        [sum]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surroundings;

    /// Σ q q' K over pairs within half of the box of sides `side`, in which all lengths but that of the kernel are `stretch` times as long.
    fn energy(softening: Softening, side: f64, position: &[[f64; 3]], strength: &[f64], stretch: f64) -> f64 {
        let mut sum = 0.0;
        for i in 0..position.len() {
            for j in 0..i {
                let square = |d: usize| {
                    let x = position[i][d] - position[j][d];
                    (x - (x / side).round() * side).powi(2)
                };
                let r = (square(0) + square(1) + square(2)).sqrt();
                if r < 0.5 * side {
                    sum += strength[i] * strength[j] * softening.at(stretch * r).0;
                }
            }
        }
        sum
    }

    #[test]
    fn the_virial_is_the_slope_of_the_energy_over_lengths() {
        let x = |i: usize, k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0;
        for unit in [1.0, 1e-40] {
            // The last ten lie where the first ten do.
            let position: Vec<[f64; 3]> =
                (0..200).map(|i| [1, 2, 3].map(|k| unit * (4.0 * x(i % 190, k) - 1.0))).collect();
            let strength: Vec<f64> = (0..200).map(|i| x(i, 4) - 0.3).collect();
            let cell = PeriodicBox { side: [2.0 * unit; 3], surroundings: Surroundings::TinFoil };
            for softening in [Softening::Spline(0.1 * unit), Softening::Spline(0.35 * unit)] {
                let of = |stretch: f64| energy(softening, 2.0 * unit, &position, &strength, stretch);
                let expected = (of(1.0 - 1e-5) - of(1.0 + 1e-5)) / 2e-5 - of(1.0);
                let found = excess(softening, &cell, &position, &strength);
                assert!((found / expected - 1.0).abs() < 1e-6, "{softening:?}: {found} {expected}");
            }
            assert_eq!(excess(Softening::None, &cell, &position, &strength), 0.0);
        }
    }
}
