//! Forces in addition to the sum: a fixed field, short-range forces between ions, and excluded pairs.
//!
//! They are data. A store adds them where the particles are: [`Forces::add`] on the cores,
//! kernels of the same formulas on a GPU.

pub mod exclusions;
pub mod external;
pub mod lennard_jones;
mod softened;

use rayon::prelude::*;

pub use exclusions::PairInteraction;
pub use external::{External, Shape};
pub use lennard_jones::LennardJones;

use crate::store::ForceReport;
use crate::{PeriodicBox, Softening};

/// What acts on particles in addition to their sum, in the units of the particles.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Forces {
    /// A fixed field.
    pub external: Option<External>,
    /// Forces between the ions of a periodic box.
    pub short_range: Option<LennardJones>,
    /// Pairs of particles that see neither each other's charge nor their short-range forces, each once.
    pub exclusions: Vec<[usize; 2]>,
    /// What fields are multiplied by to be a force per mass or charge: −G or k_e.
    pub constant: f64,
    /// The kernel of the sum.
    pub softening: Softening,
    /// Its periodic box: the nearest images of a pair do not see each other.
    pub cell: Option<PeriodicBox>,
}

impl Forces {
    /// Whether nothing acts.
    pub fn is_none(&self) -> bool {
        self.external.is_none() && self.short_range.is_none() && self.exclusions.is_empty()
    }

    /// Adds to the field, and subtracts excluded pairs from the potential. `[n]` each; the potential
    /// may be empty.
    pub fn add(
        &self,
        position: &[[f64; 3]],
        strength: &[f64],
        potential: &mut [f64],
        field: &mut [[f64; 3]],
    ) -> ForceReport {
        let per_field = 1.0 / self.constant;
        if let Some(external) = self.external {
            field.par_iter_mut().zip(position).for_each(|(e, x)| {
                let force = external.at(*x, self.constant).1;
                e.iter_mut().zip(force).for_each(|(e, f)| *e += per_field * f);
            });
        }
        let mut report = ForceReport::default();
        if let (Some(pairs), Some(cell)) = (self.short_range, self.cell) {
            let forces;
            (forces, report) = pairs.sums(cell.side, position, strength);
            field.par_iter_mut().zip(&forces).zip(strength).for_each(|((e, f), q)| {
                e.iter_mut().zip(f).for_each(|(e, f)| *e += per_field * f / q);
            });
        }
        for &[i, j] in &self.exclusions {
            let PairInteraction { from: d, potential: k, slope } =
                PairInteraction::of(self.softening, self.cell.as_ref(), &position[i], &position[j]);
            let r2 = d.iter().map(|d| d * d).sum::<f64>();
            let pairs = self.short_range.map(|pairs| pairs.of_two([strength[i], strength[j]], r2));
            let (energy, force) = pairs.unwrap_or_default();
            report.energy -= energy;
            report.virial -= force * r2;
            for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
                let own = if force == 0.0 { 0.0 } else { force / (strength[target] * self.constant) };
                (0..3).for_each(|k| field[target][k] -= sign * (strength[source] * slope + own) * d[k]);
                if let Some(potential) = potential.get_mut(target) {
                    *potential -= strength[source] * k;
                }
            }
        }
        report
    }

    /// What the virial of the sum exceeds its energy by, before the constant of the force, in a periodic box: Σ q q' (−r K' − K) over
    /// pairs that are not excluded. 0 for 1/r, whose virial over all images is its energy, and in open space.
    pub fn excess_virial(&self, position: &[[f64; 3]], strength: &[f64]) -> f64 {
        let Some(cell) = self.cell else { return 0.0 };
        let reach = self.softening.newtonian_beyond(0.0);
        let excluded = self.exclusions.iter().map(|&[i, j]| {
            let PairInteraction { from, potential, slope } =
                PairInteraction::of(self.softening, Some(&cell), &position[i], &position[j]);
            let r2 = from.iter().map(|d| d * d).sum::<f64>();
            let felt = r2 > 0.0 && r2 < reach * reach;
            if felt { strength[i] * strength[j] * (slope * r2 - potential) } else { 0.0 }
        });
        softened::excess(self.softening, &cell, position, strength) - excluded.sum::<f64>()
    }

    /// What the sum alone contributes to a field that has these forces.
    pub fn without(&self, position: &[[f64; 3]], strength: &[f64], field: &[[f64; 3]]) -> Vec<[f64; 3]> {
        let mut added = vec![[0.0; 3]; field.len()];
        self.add(position, strength, &mut [], &mut added);
        field.iter().zip(&added).map(|(e, b)| std::array::from_fn(|k| e[k] - b[k])).collect()
    }
}
