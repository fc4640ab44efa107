//! What particles exchange with a bath after a step: friction and noise (Langevin 1908), or velocities rescaled to a kinetic energy of the
//! canonical ensemble (Bussi, Donadio & Parrinello, J. Chem. Phys. 126 (2007) 014101).
//!
//! An exchange is data. A store applies it where the velocities are: [`HeatExchange::apply`] on the cores, kernels of the same formulas on a GPU.

use rayon::prelude::*;

use crate::math::blocked_sums;
use crate::random::{Dice, Stream};
use crate::totals::{degrees_of_freedom, kinetic_about_center};

/// How a bath acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On every particle by itself.
    Langevin,
    /// On all motion about the center of mass, by one factor.
    Rescale,
}

impl Kind {
    /// Names in scenarios.
    pub const NAMES: [(&'static str, Kind); 2] = [("langevin", Kind::Langevin), ("rescale", Kind::Rescale)];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        Kind::NAMES[self as usize].0
    }
}

/// What a bath does once.
#[derive(Debug, Clone)]
pub struct HeatExchange<'a> {
    /// How.
    pub kind: Kind,
    /// k_B times the temperature.
    pub energy: f64,
    /// The share of a velocity (Langevin) or of the kinetic energy (rescaling) that is not forgotten: exp(−h/time).
    pub kept: f64,
    /// Random numbers of this exchange alone.
    pub numbers: Stream,
    /// `[n]`
    pub mass: &'a [f64],
}

impl HeatExchange<'_> {
    /// The standard deviation of the noise of a particle of mass 1; v becomes kept·v + noise/√m times a normal variate of each component,
    /// in their order. This is the exact solution of friction and noise over a step.
    pub fn noise(&self) -> f64 {
        (self.energy * (1.0 - self.kept * self.kept)).sqrt()
    }

    /// What rescaling makes of the sums Σ m v²/2, Σ m v and Σ m over all particles: the velocity of the center of mass, and by what
    /// velocities about it are multiplied. `None` where nothing moves about it. The factor is eq. A7 of Bussi et al., with what is kept
    /// and as much noise as the canonical ensemble has.
    pub fn rescaling(&self, [kinetic, x, y, z, mass]: [f64; 5]) -> Option<([f64; 3], f64)> {
        let kinetic = kinetic_about_center(kinetic, [x, y, z], mass);
        let freedom = degrees_of_freedom(self.mass.len());
        if kinetic == 0.0 || freedom == 0.0 {
            return None;
        }
        let share = 0.5 * self.energy / kinetic * (1.0 - self.kept);
        let draw = |dice: &mut Dice| [dice.normal(), 2.0 * gamma(0.5 * (freedom - 1.0), dice)];
        let [one, others] = self.numbers.sample(1, draw).pop()?;
        let square = self.kept + share * (one * one + others) + 2.0 * one * (self.kept * share).sqrt();
        Some(([x, y, z].map(|p| p / mass), square.max(0.0).sqrt()))
    }

    /// Changes the velocities. `[n]`
    pub fn apply(&self, velocity: &mut [[f64; 3]]) {
        match self.kind {
            Kind::Langevin => {
                let (kept, noise) = (self.kept, self.noise());
                let kicks = self.numbers.sample(self.mass.len(), |dice| [dice.normal(), dice.normal(), dice.normal()]);
                velocity.par_iter_mut().zip(kicks).zip(self.mass).for_each(|((v, kick), m)| {
                    (0..3).for_each(|d| v[d] = kept * v[d] + noise / m.sqrt() * kick[d]);
                });
            }
            Kind::Rescale => {
                let sums = blocked_sums(self.mass.len(), |i| {
                    let (m, [u, v, w]) = (self.mass[i], velocity[i]);
                    [0.5 * m * (u * u + v * v + w * w), m * u, m * v, m * w, m]
                });
                let Some((center, factor)) = self.rescaling(sums) else { return };
                let about = |v: &mut [f64; 3]| (0..3).for_each(|d| v[d] = center[d] + factor * (v[d] - center[d]));
                velocity.par_iter_mut().for_each(about);
            }
        }
    }
}

/// A gamma variate of this shape and scale 1 (Marsaglia & Tsang 2000; below shape 1 by a power of a uniform one).
fn gamma(shape: f64, dice: &mut Dice) -> f64 {
    if shape <= 0.0 {
        return 0.0;
    }
    if shape < 1.0 {
        let raised = dice.uniform().powf(1.0 / shape);
        return gamma(shape + 1.0, dice) * raised;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = dice.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && dice.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinetic energy about the center of mass, and the momentum.
    fn motion(mass: &[f64], velocity: &[[f64; 3]]) -> (f64, [f64; 3]) {
        let momentum = [0, 1, 2].map(|d| velocity.iter().zip(mass).map(|(v, m)| m * v[d]).sum::<f64>());
        let kinetic = velocity.iter().zip(mass).map(|(v, m)| 0.5 * m * v.iter().map(|v| v * v).sum::<f64>());
        (kinetic_about_center(kinetic.sum(), momentum, mass.iter().sum()), momentum)
    }

    /// Mean and variance of the kinetic energy about the center of mass over many exchanges, in units of the bath's, and the momentum at
    /// the start and the end.
    fn ensemble(kind: Kind) -> ([f64; 2], [[f64; 3]; 2]) {
        let n = 20;
        let mass: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        let mut velocity: Vec<_> = (0..n).map(|i| [3.0 + 0.1 * (i % 2) as f64, 0.0, -0.1 * i as f64]).collect();
        let begun = motion(&mass, &velocity).1;
        let mut all = vec![];
        for step in 1..=6000 {
            let numbers = Stream::new(7, step);
            HeatExchange { kind, energy: 2.0, kept: (-2.0_f64).exp(), numbers, mass: &mass }.apply(&mut velocity);
            if step > 100 {
                all.push(motion(&mass, &velocity).0 / 2.0);
            }
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let variance = all.iter().map(|k| (k - mean).powi(2)).sum::<f64>() / all.len() as f64;
        ([mean, variance], [begun, motion(&mass, &velocity).1])
    }

    #[test]
    fn kinetic_energies_are_those_of_the_canonical_ensemble() {
        // Gamma distributed about the center of mass: mean and variance are half the number of degrees of freedom.
        for kind in [Kind::Langevin, Kind::Rescale] {
            let ([mean, variance], momentum) = ensemble(kind);
            assert!((mean / 28.5 - 1.0).abs() < 0.02, "{kind:?}: {mean}");
            assert!((variance / 28.5 - 1.0).abs() < 0.1, "{kind:?}: {variance}");
            let same = (0..3).all(|d| (momentum[0][d] - momentum[1][d]).abs() < 1e-9);
            assert_eq!(same, kind == Kind::Rescale, "{momentum:?}");
        }
    }

    #[test]
    fn nothing_is_rescaled_where_nothing_moves() {
        for velocity in [vec![[0.0; 3]; 5], vec![[1.0, 2.0, 3.0]]] {
            let mass = vec![1.0; velocity.len()];
            let numbers = Stream::new(7, 1);
            let exchange = HeatExchange { kind: Kind::Rescale, energy: 2.0, kept: 0.5, numbers, mass: &mass };
            let mut changed = velocity.clone();
            exchange.apply(&mut changed);
            assert_eq!(changed, velocity);
        }
    }
}
