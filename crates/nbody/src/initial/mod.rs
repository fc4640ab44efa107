//! Initial particles: groups from models and files, one after the other.

mod file;
mod plummer;
mod random;
mod sphere;

use fmm_core::Particles;

use crate::diagnostics::blocked_sums;
use crate::fault::Fault;
use crate::scenario::{Law, Model, Scenario};

/// Particles in the scenario's units; N rows everywhere, row i has the id i.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Initial {
    /// Positions.
    pub position: Vec<[f64; 3]>,
    /// Velocities.
    pub velocity: Vec<[f64; 3]>,
    /// Masses.
    pub mass: Vec<f64>,
    /// Charges; zero under gravity.
    pub charge: Vec<f64>,
}

impl Initial {
    /// The particles of all groups of the scenario.
    ///
    /// Those of a model depend on the seed, the number of the group and that of the particle, and on nothing else.
    ///
    /// # Errors
    /// Files that cannot be read (66, 65, 74), and masses or charges that the law cannot use (65).
    pub fn of(scenario: &Scenario) -> Result<Initial, Fault> {
        let mut all = Initial::default();
        for (index, group) in scenario.groups.iter().enumerate() {
            let stream = random::Stream::new(scenario.seed, index);
            let mut particles = match &group.model {
                Model::Plummer { n, mass, scale_radius } => {
                    plummer::sample(stream, *n, *mass, *scale_radius, scenario.constant())
                }
                Model::UniformSphere { n, mass, charge, radius, velocities } => {
                    let sphere = sphere::Sphere { n: *n, mass: *mass, charge: *charge, radius: *radius };
                    sphere.sample(stream, *velocities, scenario.constant())
                }
                Model::File { path } => file::read(path, scenario)?,
            };
            particles.shift(group.position, group.velocity);
            all.append(particles);
            if all.len() >= u32::MAX as usize {
                let line = format!("the scenario has {} particles, more than a run can number", all.len());
                return Err(Fault::new(65, line));
            }
        }
        Ok(all)
    }

    /// Number of particles.
    pub fn len(&self) -> usize {
        self.mass.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.mass.is_empty()
    }

    /// As the solver wants them: strengths and couplings in place of masses and charges.
    pub fn particles(&self, law: Law, constant: f64) -> Particles {
        let (strength, coupling) = match law {
            Law::Gravity => (&self.mass, vec![-constant; self.len()]),
            Law::Coulomb => (&self.charge, self.charge.iter().zip(&self.mass).map(|(q, m)| constant * q / m).collect()),
        };
        let (position, velocity) = (self.position.clone(), self.velocity.clone());
        Particles { position, velocity, strength: strength.clone(), coupling }
    }

    /// N equal particles from one (position, velocity) a particle, with centre of mass and momentum moved to zero.
    fn equal(states: Vec<([f64; 3], [f64; 3])>, mass: f64, charge: f64) -> Initial {
        let n = states.len();
        let (position, velocity): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let (mass, charge) = (vec![mass / n as f64; n], vec![charge / n as f64; n]);
        let mut particles = Initial { position, velocity, mass, charge };
        let sums = blocked_sums(n, |i| {
            let ([x, y, z], [u, v, w]) = (particles.position[i], particles.velocity[i]);
            [x, y, z, u, v, w]
        });
        let [x, y, z, u, v, w] = sums.map(|s| -s / n as f64);
        particles.shift([x, y, z], [u, v, w]);
        particles
    }

    fn shift(&mut self, by: [f64; 3], faster: [f64; 3]) {
        for (x, v) in self.position.iter_mut().zip(&mut self.velocity) {
            for k in 0..3 {
                x[k] += by[k];
                v[k] += faster[k];
            }
        }
    }

    fn append(&mut self, more: Initial) {
        self.position.extend(more.position);
        self.velocity.extend(more.velocity);
        self.mass.extend(more.mass);
        self.charge.extend(more.charge);
    }
}
