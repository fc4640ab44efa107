//! Lennard-Jones forces between ions. The cells of a mesh's pairs find the neighbors.
//!
//! u(r) = 4ε ((σ/r)¹² − (σ/r)⁶) up to a cut-off, where potential and force are shifted to zero
//! (Toxvaerd & Dyre 2011), so that energy is conserved. The sign of its charge gives the kind of an
//! ion. Unlike ions have the mean of σ and the geometric mean of ε (Lorentz & Berthelot).

use std::ops::Range;

use rayon::prelude::*;

use crate::math::simd::{Task, Vector, dispatch};
use crate::math::{Number, blocked_sums};
use crate::mesh::cells::{Packed, Sources};
use crate::store::ForceReport;

/// The parameters of positive and of negative ions, in the units of the particles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LennardJones {
    /// σ.
    pub sigma: [f64; 2],
    /// ε.
    pub epsilon: [f64; 2],
    /// The cut-off, at most half of the shortest side of the box.
    pub cutoff: f64,
}

impl LennardJones {
    /// The same with lengths multiplied by `scale`. Energies stay, forces are divided by it.
    pub fn scaled(&self, scale: f64) -> Self {
        LennardJones { sigma: self.sigma.map(|s| s * scale), cutoff: self.cutoff * scale, ..*self }
    }

    /// σ², ε, and u and −u' of the unshifted potential at the cut-off, of ions of kinds a and b at index
    /// 2 a + b. Kind 1 is negative.
    pub fn kinds(&self) -> [[f64; 4]; 4] {
        std::array::from_fn(|k| {
            let Pair { sigma2, epsilon, end, .. } = Pair::new(self, k / 2, k % 2);
            [sigma2, epsilon, end[0], end[1]]
        })
    }

    /// The force on each particle, and energy and virial of all pairs.
    pub fn sums(&self, side: [f64; 3], position: &[[f64; 3]], charge: &[f64]) -> (Vec<[f64; 3]>, ForceReport) {
        let (sources, scale) = Sources::in_box(side, self.cutoff, position, charge);
        let law = self.scaled(scale);
        let some = |cells| dispatch(Meet { law: &law, sources: &sources, charge, cells });
        let sums: Vec<[f64; 5]> = sources.parts().into_par_iter().flat_map_iter(some).collect();
        let [energy, virial] = blocked_sums(sums.len(), |place| [0.5 * sums[place][3], 0.5 * sums[place][4]]);
        let mut force = vec![[0.0; 3]; position.len()];
        for (sum, &i) in sums.iter().zip(&sources.cells.order) {
            force[i as usize] = [0, 1, 2].map(|k| sum[k] * scale);
        }
        (force, ForceReport { energy, virial })
    }

    /// Energy and −u'/r of two ions at the squared distance `r2`; nothing beyond the cut-off.
    pub fn of_two(&self, charges: [f64; 2], r2: f64) -> (f64, f64) {
        if r2 == 0.0 || r2 >= self.cutoff * self.cutoff {
            return (0.0, 0.0);
        }
        let [a, b] = charges.map(|q| usize::from(q < 0.0));
        Pair::new(self, a, b).at(r2)
    }
}

/// Two kinds of ions.
#[derive(Clone, Copy)]
struct Pair {
    sigma2: f64,
    epsilon: f64,
    cutoff: f64,
    /// u and −u' at the cut-off.
    end: [f64; 2],
}

impl Pair {
    fn new(all: &LennardJones, a: usize, b: usize) -> Self {
        let sigma = 0.5 * (all.sigma[a] + all.sigma[b]);
        let epsilon = (all.epsilon[a] * all.epsilon[b]).sqrt();
        let bare = Pair { sigma2: sigma * sigma, epsilon, cutoff: all.cutoff, end: [0.0; 2] };
        let (energy, slope) = bare.bare(all.cutoff * all.cutoff);
        Pair { end: [energy, slope * all.cutoff], ..bare }
    }

    /// u and −u'/r of r².
    fn bare(&self, r2: f64) -> (f64, f64) {
        // Not by powi, whose last digit is another where the compiler knows its argument.
        let ratio = self.sigma2 / r2;
        let six = ratio * ratio * ratio;
        (4.0 * self.epsilon * six * (six - 1.0), 24.0 * self.epsilon * six * (2.0 * six - 1.0) / r2)
    }

    /// The same, shifted.
    fn at(&self, r2: f64) -> (f64, f64) {
        let (r, (energy, slope)) = (r2.sqrt(), self.bare(r2));
        (energy - self.end[0] + (r - self.cutoff) * self.end[1], slope - self.end[1] / r)
    }
}

/// The ions of some cells meet those around them.
struct Meet<'a> {
    law: &'a LennardJones,
    sources: &'a Sources<f64>,
    charge: &'a [f64],
    cells: Range<usize>,
}

impl Task<f64> for Meet<'_> {
    /// Force, energy and virial at each place.
    type Out = Vec<[f64; 5]>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Self::Out {
        let Meet { law, sources, charge, cells } = self;
        let kinds = law.kinds();
        let (cutoff, least) = (V::constant(law.cutoff), V::constant(f64::MIN_POSITIVE));
        let square = cutoff.mul(cutoff);
        let (mut out, mut packed) = (vec![], Packed::default());
        for cell in cells.filter(|&cell| !sources.cells.places(cell).is_empty()) {
            sources.pack::<V>(cell, &mut packed);
            let Packed { x: [x, y, z], q, len } = &packed;
            for place in sources.cells.places(cell) {
                let at: [V; 3] = std::array::from_fn(|d| V::splat(sources.cells.x[d][place]));
                let own = usize::from(charge[sources.cells.order[place] as usize] < 0.0);
                let (mut plus, mut minus) = ([V::zero(); 4], [V::zero(); 4]);
                for k in 0..4 {
                    (plus[k], minus[k]) = (V::constant(kinds[2 * own][k]), V::constant(kinds[2 * own + 1][k]));
                }
                let mut sum = [V::zero(); 5];
                // No closures in here: they would be compiled without the instructions of the vectors.
                let mut j = 0;
                while j < *len {
                    let d = [at[0].sub(V::load(&x[j..])), at[1].sub(V::load(&y[j..])), at[2].sub(V::load(&z[j..]))];
                    let r2 = d[0].mul_add(d[0], d[1].mul_add(d[1], d[2].mul(d[2])));
                    let q = V::load(&q[j..]);
                    let negative = V::zero().sub(q);
                    let mut kind = [V::zero(); 4];
                    for k in 0..4 {
                        let other = minus[k].keep_where_at_least(negative, least);
                        kind[k] = plus[k].keep_where_at_least(q, V::zero()).add(other);
                    }
                    let [sigma2, epsilon, end, slope_at_end] = kind;
                    let of_r = r2.rsqrt();
                    let inverse = of_r.mul(of_r);
                    let ratio = sigma2.mul(inverse);
                    let six = ratio.mul(ratio).mul(ratio);
                    let bare = V::constant(4.0).mul(epsilon).mul(six).mul(six.sub(V::constant(1.0)));
                    let energy = r2.mul(of_r).sub(cutoff).mul_add(slope_at_end, bare.sub(end));
                    let steep = V::constant(24.0).mul(epsilon).mul(six).mul(six.add(six).sub(V::constant(1.0)));
                    let slope = slope_at_end.neg_mul_add(of_r, steep.mul(inverse));
                    // Within the cut-off, and not the ion itself.
                    let energy = energy.keep_where_at_least(square, r2).keep_where_at_least(r2, least);
                    let slope = slope.keep_where_at_least(square, r2).keep_where_at_least(r2, least);
                    for k in 0..3 {
                        sum[k] = slope.mul_add(d[k], sum[k]);
                    }
                    sum[3] = sum[3].add(energy);
                    sum[4] = slope.mul_add(r2, sum[4]);
                    j += V::Scalar::WIDTH;
                }
                out.push(sum.map(V::sum));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_scaled_without_rounding() {
        let pairs = LennardJones { sigma: [0.3, 0.4], epsilon: [1.0, 2.0], cutoff: 0.9 };
        for scale in [0.25, 2f64.powi(70)] {
            let expected = pairs.kinds().map(|[s2, e, u, slope]| [s2 * scale * scale, e, u, slope / scale]);
            assert_eq!(pairs.scaled(scale).kinds(), expected);
        }
        let (position, charge) = ([[0.1, 0.2, 0.3], [0.5, 0.3, 0.1], [1.9, 0.1, 0.2]], [1.0, -1.0, 1.0]);
        let ((force, report), scale) = (pairs.sums([2.0; 3], &position, &charge), 2f64.powi(-60));
        let far = position.map(|x| x.map(|x| x * scale));
        let (scaled, same) = pairs.scaled(scale).sums([2.0 * scale; 3], &far, &charge);
        assert_eq!((report.energy, report.virial), (same.energy, same.virial));
        assert_eq!(force, scaled.iter().map(|f| f.map(|f| f * scale)).collect::<Vec<_>>());
        assert!(report.energy != 0.0 && force[0][0] != 0.0);
    }

    #[test]
    fn neighbours_are_found_across_the_edges_and_forces_are_slopes() {
        let pairs = LennardJones { sigma: [0.3, 0.4], epsilon: [1.0, 2.0], cutoff: 1.0 };
        for side in [[2.0, 2.5, 3.7], [5.0; 3]] {
            let x = |i: usize, k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0;
            let position: Vec<[f64; 3]> =
                (0..150).map(|i| std::array::from_fn(|k| (x(i, k + 1) * 3.0 - 1.0) * side[k])).collect();
            let charge: Vec<f64> = (0..150).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
            let (forces, report) = pairs.sums(side, &position, &charge);
            // Every image of every pair, as the formulas stand.
            let (mut energy, mut virial) = (0.0, 0.0);
            for i in 0..150 {
                // Neighbours on either side cancel: what rounds is as large as the terms.
                let (mut force, mut size) = ([0.0; 3], 1.0);
                for j in (0..150).filter(|j| *j != i) {
                    let (a, b) = (usize::from(charge[i] < 0.0), usize::from(charge[j] < 0.0));
                    let (s, e) =
                        ((pairs.sigma[a] + pairs.sigma[b]) / 2.0, (pairs.epsilon[a] * pairs.epsilon[b]).sqrt());
                    let u = |r: f64| 4.0 * e * ((s / r).powi(12) - (s / r).powi(6));
                    let slope = |r: f64| 4.0 * e * (-12.0 * (s / r).powi(12) + 6.0 * (s / r).powi(6)) / r;
                    for n in 0..343 {
                        let image = [n % 7 - 3, n / 7 % 7 - 3, n / 49 - 3];
                        let d: [f64; 3] =
                            std::array::from_fn(|k| position[i][k] - position[j][k] + f64::from(image[k]) * side[k]);
                        let r = d.iter().map(|d| d * d).sum::<f64>().sqrt();
                        if r < 1.0 {
                            energy += 0.5 * (u(r) - u(1.0) - (r - 1.0) * slope(1.0));
                            let f = slope(1.0) - slope(r);
                            virial += 0.5 * f * r;
                            size += f64::abs(f);
                            (0..3).for_each(|k| force[k] += f * d[k] / r);
                        }
                    }
                }
                assert!(
                    (0..3).all(|k| (force[k] - forces[i][k]).abs() < 1e-9 * size),
                    "{i}: {force:?} {:?}",
                    forces[i]
                );
            }
            assert!((report.energy / energy - 1.0).abs() < 1e-10 && (report.virial / virial - 1.0).abs() < 1e-10);
        }
    }
}
