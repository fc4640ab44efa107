//! A fixed field beside that of the particles: its force joins every kick, its energy the diagnostics.
//!
//! Potentials φ per unit of mass (gravity) or of charge (Coulomb), r from `position`:
//! - point: φ = ∓C s/√(r² + ε²) with the constant C = G or k_e, attracting masses and repelling like charges;
//! - logarithmic halo: φ = v²/2 ln((x² + y² + z²/q² + r_c²)/r_c²), whose circular velocity is v far outside (Binney &
//!   Tremaine 2008, eq. 2.71);
//! - uniform field g: φ = −g·x, an acceleration for masses, an electric field for charges.

use std::borrow::Cow;

use fmm_core::{Choice, Error, Executor, Particles, Stage, StageTimes};
use rayon::prelude::*;

use crate::scenario::{Law, Scenario};

/// `[external]` of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct External {
    /// Its potential.
    pub shape: Shape,
    /// Its centre.
    pub position: [f64; 3],
}

/// A potential with its parameters, in the scenario's units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A point of mass or charge.
    Point {
        /// Mass (gravity) or charge (Coulomb).
        source: f64,
        /// ε of its softening.
        core_radius: f64,
    },
    /// A halo with a flat rotation curve.
    Logarithmic {
        /// Circular velocity far outside.
        velocity: f64,
        /// r_c, within which the rotation curve rises.
        core_radius: f64,
        /// q, axis ratio z : x of the potential.
        flattening: f64,
    },
    /// The same force everywhere.
    Uniform {
        /// Force per unit of mass or charge.
        field: [f64; 3],
    },
}

impl External {
    /// Potential and force at `x` per unit of mass (gravity) or charge (Coulomb); `constant` is G or k_e.
    pub fn at(&self, x: [f64; 3], law: Law, constant: f64) -> (f64, [f64; 3]) {
        let d: [f64; 3] = std::array::from_fn(|k| x[k] - self.position[k]);
        match self.shape {
            Shape::Point { source, core_radius } => {
                let r2 = d.iter().map(|d| d * d).sum::<f64>() + core_radius * core_radius;
                // As between particles: nothing acts at the place of an unsoftened point.
                let inverse = if r2 > 0.0 { 1.0 / r2.sqrt() } else { 0.0 };
                let strength = constant * source * if law == Law::Gravity { -1.0 } else { 1.0 };
                (strength * inverse, d.map(|d| strength * d * inverse.powi(3)))
            }
            Shape::Logarithmic { velocity, core_radius, flattening } => {
                let (v2, c2, q2) = (velocity * velocity, core_radius * core_radius, flattening * flattening);
                let s = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] / q2;
                let pull = -v2 / (s + c2);
                (0.5 * v2 * (s / c2).ln_1p(), [pull * d[0], pull * d[1], pull * d[2] / q2])
            }
            Shape::Uniform { field } => (-(0..3).map(|k| field[k] * x[k]).sum::<f64>(), field),
        }
    }
}

impl Scenario {
    /// What the particles themselves contribute to `field`, the forces of an executor made by [`Scenario::with_external`].
    pub fn without_external<'a>(&self, position: &[[f64; 3]], field: &'a [[f64; 3]]) -> Cow<'a, [[f64; 3]]> {
        let Some(external) = self.external else { return Cow::Borrowed(field) };
        let own = |(e, x): (&[f64; 3], &[f64; 3])| {
            let force = external.at(*x, self.law, self.constant()).1;
            std::array::from_fn(|k| e[k] - self.external_per_field() * force[k])
        };
        Cow::Owned(field.par_iter().zip(position).map(own).collect())
    }

    /// Accelerations are coupling · field: −G e for masses, k_e q/m e for charges.
    fn external_per_field(&self) -> f64 {
        if self.law == Law::Gravity { -1.0 / self.constant() } else { 1.0 / self.constant() }
    }

    /// Adds the external field to the forces of an executor; returns it as it is where there is none.
    pub fn with_external(&self, executor: Box<dyn Executor>) -> Box<dyn Executor> {
        let Some(external) = self.external else { return executor };
        let (law, constant) = (self.law, self.constant());
        let per_field = self.external_per_field();
        Box::new(WithExternal {
            external,
            law,
            constant,
            per_field,
            inner: executor,
            particles: Particles::default(),
            field: vec![],
        })
    }
}

/// An executor with an external field. The particles live here and visit the inner executor for their own forces.
struct WithExternal {
    external: External,
    law: Law,
    constant: f64,
    per_field: f64,
    inner: Box<dyn Executor>,
    particles: Particles,
    field: Vec<[f64; 3]>,
}

impl Executor for WithExternal {
    fn upload(&mut self, particles: &Particles) -> Result<(), Error> {
        self.inner.upload(particles)?;
        self.particles = particles.clone();
        Ok(())
    }

    fn forces(&mut self, times: &mut StageTimes) -> Result<(), Error> {
        self.inner.upload(&self.particles)?;
        self.inner.forces(times)?;
        self.field = self.inner.field().1;
        let (external, law, constant, per_field) = (self.external, self.law, self.constant, self.per_field);
        times.time(Stage::P2P, || {
            self.field.par_iter_mut().zip(&self.particles.position).for_each(|(e, x)| {
                let force = external.at(*x, law, constant).1;
                e.iter_mut().zip(force).for_each(|(e, f)| *e += per_field * f);
            });
        });
        Ok(())
    }

    fn kick(&mut self, h: f64, times: &mut StageTimes) {
        times.time(Stage::Kick, || self.particles.kick(h, &self.field));
    }

    fn drift(&mut self, h: f64, times: &mut StageTimes) {
        times.time(Stage::Drift, || self.particles.drift(h));
    }

    fn check(&mut self) -> Result<(), Error> {
        self.particles.check()
    }

    fn particles(&mut self) -> Particles {
        self.particles.clone()
    }

    /// The potential of the particles alone (the energy counts their pairs once, and the external field besides), and
    /// the field of both.
    fn field(&mut self) -> (Vec<f64>, Vec<[f64; 3]>) {
        (self.inner.field().0, self.field.clone())
    }

    fn choice(&self) -> Option<Choice> {
        self.inner.choice()
    }

    fn coincident_pairs(&self) -> u64 {
        self.inner.coincident_pairs()
    }
}
