//! Thermostats: friction and noise (Langevin 1908), or velocities rescaled to a kinetic energy of
//! the canonical ensemble (Bussi, Donadio & Parrinello 2007).

use fmm_core::math::blocked_sums;
use rayon::prelude::*;

use crate::random::{Dice, Stream};

/// How it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Every particle by itself.
    Langevin,
    /// All together, by one factor.
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

/// A thermostat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thermostat {
    /// How.
    pub kind: Kind,
    /// As the user gives it.
    pub temperature: f64,
    /// k_B times the temperature.
    pub energy: f64,
    /// In which velocities, or the kinetic energy, forget.
    pub time: f64,
    /// The last step after which it acts.
    pub last: u64,
}

/// The random numbers of step 0: far from those of groups.
const FIRST: usize = 1 << 40;

impl Thermostat {
    /// What a step of length `h` exchanges, the one that has number `step`.
    pub fn exchange(&self, seed: u64, step: u64, h: f64, mass: &[f64], velocity: &mut [[f64; 3]]) {
        let stream = Stream::new(seed, FIRST + step as usize);
        match self.kind {
            Kind::Langevin => {
                // The exact solution of friction and noise over a step.
                let kept = (-h / self.time).exp();
                let noise = (self.energy * (1.0 - kept * kept)).sqrt();
                let kicks = stream.sample(mass.len(), |dice| [dice.normal(), dice.normal(), dice.normal()]);
                velocity.par_iter_mut().zip(kicks).zip(mass).for_each(|((v, kick), m)| {
                    (0..3).for_each(|d| v[d] = kept * v[d] + noise / m.sqrt() * kick[d]);
                });
            }
            Kind::Rescale => {
                let [kinetic] = blocked_sums(mass.len(), |i| {
                    let [u, v, w] = velocity[i];
                    [0.5 * mass[i] * (u * u + v * v + w * w)]
                });
                let freedom = 3.0 * mass.len() as f64 - 3.0;
                if kinetic == 0.0 || freedom < 1.0 {
                    return;
                }
                // Eq. A7 of the paper: what is kept, and as much noise as the canonical ensemble has.
                let kept = (-h / self.time).exp();
                let share = 0.5 * self.energy / kinetic * (1.0 - kept);
                let draw = |dice: &mut Dice| (dice.normal(), 2.0 * gamma(0.5 * (freedom - 1.0), dice));
                let Some((one, others)) = stream.sample(1, draw).pop() else { return };
                let square = kept + share * (one * one + others) + 2.0 * one * (kept * share).sqrt();
                let factor = square.max(0.0).sqrt();
                velocity.par_iter_mut().for_each(|v| v.iter_mut().for_each(|v| *v *= factor));
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

    /// Mean and variance of the kinetic energy of free particles over many steps, in units of the bath's.
    fn ensemble(kind: Kind) -> (f64, f64) {
        let n = 20;
        let mass: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        let mut velocity = vec![[0.1, 0.0, -0.1]; n];
        let bath = Thermostat { kind, temperature: 2.0, energy: 2.0, time: 0.5, last: u64::MAX };
        let mut all = vec![];
        for step in 1..=6000 {
            bath.exchange(7, step, 1.0, &mass, &mut velocity);
            let kinetic = velocity.iter().zip(&mass).map(|(v, m)| 0.5 * m * v.iter().map(|v| v * v).sum::<f64>());
            if step > 100 {
                all.push(kinetic.sum::<f64>() / 2.0);
            }
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (mean, all.iter().map(|k| (k - mean).powi(2)).sum::<f64>() / all.len() as f64)
    }

    #[test]
    fn kinetic_energies_are_those_of_the_canonical_ensemble() {
        // Gamma distributed: mean and variance are half the number of degrees of freedom.
        for (kind, freedom) in [(Kind::Langevin, 60.0), (Kind::Rescale, 57.0)] {
            let (mean, variance) = ensemble(kind);
            assert!((mean / (freedom / 2.0) - 1.0).abs() < 0.02, "{kind:?}: {mean}");
            assert!((variance / (freedom / 2.0) - 1.0).abs() < 0.1, "{kind:?}: {variance}");
        }
    }
}
