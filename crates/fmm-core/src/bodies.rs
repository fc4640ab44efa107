//! Particles: the state that the integrator advances.

use rayon::prelude::*;

use crate::Error;

/// Positions, velocities and strengths of N particles, all `f64`, in the order of the caller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Particles {
    /// Positions, `[N]` of (x, y, z).
    pub position: Vec<[f64; 3]>,
    /// Velocities, `[N]`; may be empty where nothing moves.
    pub velocity: Vec<[f64; 3]>,
    /// Source strengths q: masses for gravity, charges for Coulomb.
    pub strength: Vec<f64>,
    /// `a_i = coupling_i · e_i` with e = −∇Σ q/r: −G for gravity, k_e q_i/m_i for Coulomb. `[N]`, or empty.
    pub coupling: Vec<f64>,
}

impl Particles {
    /// Number of particles.
    pub fn len(&self) -> usize {
        self.position.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// Checks that every position, velocity and strength is finite and that N fits an index.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the first bad index and the count; [`Error::TooMany`].
    pub fn check(&self) -> Result<(), Error> {
        check(&self.position, &self.velocity, &self.strength)
    }

    /// v += h · coupling · e, with a field e at each particle.
    pub fn kick(&mut self, h: f64, field: &[[f64; 3]]) {
        self.velocity.par_iter_mut().zip(field).zip(&self.coupling).for_each(|((v, e), c)| {
            for d in 0..3 {
                v[d] += h * (*c * e[d]);
            }
        });
    }

    /// x += h v.
    pub fn drift(&mut self, h: f64) {
        self.position.par_iter_mut().zip(&self.velocity).for_each(|(x, v)| {
            for d in 0..3 {
                x[d] += h * v[d];
            }
        });
    }
}

/// Checks that all values are finite and that the number of bodies fits an index.
///
/// # Errors
/// Those of [`Particles::check`].
pub fn check<const D: usize>(position: &[[f64; D]], velocity: &[[f64; D]], strength: &[f64]) -> Result<(), Error> {
    if position.len() >= u32::MAX as usize {
        return Err(Error::TooMany(position.len()));
    }
    check_finite("position", position.as_flattened(), D)?;
    check_finite("velocity", velocity.as_flattened(), D)?;
    check_finite("strength", strength, 1)
}

fn check_finite(what: &'static str, values: &[f64], per: usize) -> Result<(), Error> {
    let mut bad = values.iter().enumerate().filter(|(_, v)| !v.is_finite());
    match bad.next() {
        None => Ok(()),
        Some((i, &value)) => Err(Error::NotFinite { what, index: i / per, value, count: 1 + bad.count() }),
    }
}
