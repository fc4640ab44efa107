//! Lennard-Jones forces between ions. A cell list finds the neighbors.
//!
//! u(r) = 4ε ((σ/r)¹² − (σ/r)⁶) up to a cut-off, where potential and force are shifted to zero
//! (Toxvaerd & Dyre 2011), so that energy is conserved. The sign of its charge gives the kind of an
//! ion. Unlike ions have the mean of σ and the geometric mean of ε (Lorentz & Berthelot).

use rayon::prelude::*;

use crate::math::{CollectVec, blocked_sums};
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

/// Most cells along an axis.
const MOST: usize = 128;

/// Particles by cell.
struct Cells {
    count: [usize; 3],
    start: Vec<u32>,
    particles: Vec<u32>,
    /// The cell of each particle.
    of: Vec<[usize; 3]>,
}

impl Cells {
    fn new(side: [f64; 3], cutoff: f64, position: &[[f64; 3]]) -> Self {
        let count = side.map(|s| ((s / cutoff) as usize).clamp(1, MOST));
        let place = |x: &[f64; 3]| {
            std::array::from_fn(|d| {
                let share = x[d] / side[d];
                (((share - share.floor()) * count[d] as f64) as usize).min(count[d] - 1)
            })
        };
        let of: Vec<[usize; 3]> = position.par_iter().map(place).collect_vec();
        let mut start = vec![0u32; count.iter().product::<usize>() + 1];
        let flat = |c: &[usize; 3]| (c[0] * count[1] + c[1]) * count[2] + c[2];
        of.iter().for_each(|c| start[flat(c) + 1] += 1);
        (1..start.len()).for_each(|c| start[c] += start[c - 1]);
        let (mut next, mut particles) = (start.clone(), vec![0u32; position.len()]);
        for (i, c) in of.iter().enumerate() {
            particles[next[flat(c)] as usize] = i as u32;
            next[flat(c)] += 1;
        }
        Cells { count, start, particles, of }
    }

    /// Along each axis the cells that touch one, each once.
    fn around(&self, cell: [usize; 3]) -> [Vec<usize>; 3] {
        std::array::from_fn(|d| {
            let (n, c) = (self.count[d], cell[d]);
            let mut near = vec![(c + n - 1) % n, c, (c + 1) % n];
            near.sort_unstable();
            near.dedup();
            near
        })
    }
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
        let cells = Cells::new(side, self.cutoff, position);
        let pairs: [[Pair; 2]; 2] = std::array::from_fn(|a| std::array::from_fn(|b| Pair::new(self, a, b)));
        let kind = |i: usize| usize::from(charge[i] < 0.0);
        let one = |i: usize| {
            let mut sum = [0.0; 5];
            let [xs, ys, zs] = cells.around(cells.of[i]);
            for (a, b, c) in xs
                .iter()
                .flat_map(|a| ys.iter().flat_map(move |b| [(*a, *b)]))
                .flat_map(|(a, b)| zs.iter().map(move |c| (a, b, *c)))
            {
                let cell = (a * cells.count[1] + b) * cells.count[2] + c;
                for &j in &cells.particles[cells.start[cell] as usize..cells.start[cell + 1] as usize] {
                    let j = j as usize;
                    let mut d: [f64; 3] = std::array::from_fn(|k| position[i][k] - position[j][k]);
                    (0..3).for_each(|k| d[k] -= (d[k] / side[k]).round() * side[k]);
                    let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
                    if j == i || r2 >= self.cutoff * self.cutoff || r2 == 0.0 {
                        continue;
                    }
                    let (energy, slope) = pairs[kind(i)][kind(j)].at(r2);
                    (0..3).for_each(|k| sum[k] += slope * d[k]);
                    sum[3] += 0.5 * energy;
                    sum[4] += 0.5 * slope * r2;
                }
            }
            sum
        };
        let sums: Vec<[f64; 5]> = (0..position.len()).into_par_iter().map(one).collect_vec();
        let [energy, virial] = blocked_sums(sums.len(), |i| [sums[i][3], sums[i][4]]);
        (sums.iter().map(|s| [s[0], s[1], s[2]]).collect(), ForceReport { energy, virial })
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
        let six = (self.sigma2 / r2).powi(3);
        (4.0 * self.epsilon * six * (six - 1.0), 24.0 * self.epsilon * six * (2.0 * six - 1.0) / r2)
    }

    /// The same, shifted.
    fn at(&self, r2: f64) -> (f64, f64) {
        let (r, (energy, slope)) = (r2.sqrt(), self.bare(r2));
        (energy - self.end[0] + (r - self.cutoff) * self.end[1], slope - self.end[1] / r)
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
