//! What acts between particles beside the sum over all charges: short-range forces, and what pairs do not do that the sum has.

use fmm_core::{Beside, PeriodicBox, Softening};
use rayon::prelude::*;

use super::LennardJones;
use crate::exclusions::between;

/// Short-range forces between ions, and pairs that see neither these nor each other's charge.
pub struct Others {
    /// In a periodic box.
    pub short_range: Option<LennardJones>,
    /// Pairs of particles, each once.
    pub exclusions: Vec<[usize; 2]>,
    /// The box, if there is one: the nearest images of a pair do not see each other.
    pub cell: Option<PeriodicBox>,
    /// Of the sums.
    pub softening: Softening,
    /// Coulomb's constant: fields are per unit of it.
    pub constant: f64,
}

impl Others {
    /// Adds to the field per charge; tells energy and virial of the short-range forces, and by how much the potential at the two of each excluded
    /// pair is too large.
    pub fn add(&self, position: &[[f64; 3]], charge: &[f64], field: &mut [[f64; 3]]) -> (Beside, Vec<[f64; 2]>) {
        let mut beside = Beside::default();
        if let (Some(pairs), Some(cell)) = (self.short_range, self.cell) {
            let forces;
            (forces, beside) = pairs.sums(cell.side, position, charge);
            let factor = 1.0 / self.constant;
            field.par_iter_mut().zip(&forces).zip(charge).for_each(|((e, f), q)| {
                e.iter_mut().zip(f).for_each(|(e, f)| *e += factor * f / q);
            });
        }
        let less = self.exclusions.iter().map(|&[i, j]| {
            let d = between(self.cell.as_ref(), &position[i], &position[j]);
            let (potential, slope) = self.softening.at(d[0].hypot(d[1]).hypot(d[2]));
            let r2 = d.iter().map(|d| d * d).sum::<f64>();
            let pairs = self.short_range.map(|pairs| pairs.of_two([charge[i], charge[j]], r2));
            let (energy, force) = pairs.unwrap_or_default();
            beside.energy -= energy;
            beside.virial -= force * r2;
            for (target, source, sign) in [(i, j, 1.0), (j, i, -1.0)] {
                let own = if force == 0.0 { 0.0 } else { force / (charge[target] * self.constant) };
                (0..3).for_each(|k| field[target][k] -= sign * (charge[source] * slope + own) * d[k]);
            }
            [charge[j] * potential, charge[i] * potential]
        });
        let less = less.collect();
        (beside, less)
    }
}
