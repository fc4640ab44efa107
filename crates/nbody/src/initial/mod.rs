//! Initial particles: groups from models and files, one after the other.

mod crystal;
mod few;
mod file;
mod galaxy;
mod plummer;
mod random;
mod softened;
mod sphere;
mod spherical;

use fmm_core::{Particles, Softening};

use crate::diagnostics::blocked_sums;
use crate::fault::Fault;
use crate::scenario::{Law, Model, Scenario, Velocities};
use random::Stream;
use sphere::Sphere;
use spherical::{Profile, Spherical};

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

/// The particles of a group, where its model puts them.
fn model(model: &Model, stream: Stream, scenario: &Scenario) -> Result<Initial, Fault> {
    let constant = scenario.constant();
    let softening = scenario.settings.clone().simplified().softening;
    let sphere = |profile, size| Spherical::new(profile, size, constant, softening, |_| 0.0);
    let in_equilibrium = |mut particles: Initial, virial_ratio: Option<f64>| {
        if let Some(ratio) = virial_ratio {
            softened::virialise(&mut particles, ratio, softening, constant);
        }
        particles
    };
    Ok(match *model {
        Model::Plummer { n, mass, scale_radius, virial_ratio } => {
            let particles = match softening {
                Softening::None => plummer::sample(stream, n, mass, scale_radius, constant),
                _ => {
                    let sphere = sphere(Profile::Plummer, (mass, scale_radius));
                    Initial::equal(stream.sample(n, |dice| sphere.particle(dice)), mass, 0.0)
                }
            };
            in_equilibrium(particles, virial_ratio)
        }
        Model::Hernquist { n, mass, scale_radius, virial_ratio } => {
            in_equilibrium(sphere(Profile::Hernquist, (mass, scale_radius)).sample(stream, n), virial_ratio)
        }
        Model::Nfw { n, mass, scale_radius, concentration, virial_ratio } => {
            let halo = sphere(Profile::Nfw { concentration }, (mass, scale_radius));
            in_equilibrium(halo.sample(stream, n), virial_ratio)
        }
        Model::UniformSphere { n, mass, charge, radius, velocities } => {
            Sphere { n, mass, charge, radius, cusp: 0.0 }.sample(stream, velocities, constant)
        }
        Model::UniformCube { n, mass, charge, side, dispersion } => {
            sphere::cube(stream, n, mass, charge, side, dispersion)
        }
        Model::ColdCollapse { n, mass, radius, cusp, virial_ratio } => {
            let velocities = Velocities::VirialRatio(virial_ratio);
            Sphere { n, mass, charge: 0.0, radius, cusp }.sample(stream, velocities, constant)
        }
        Model::Galaxy(ref g) => galaxy::sample(stream, g, constant),
        Model::Kepler { masses, semi_major_axis, eccentricity } => {
            few::kepler(masses, semi_major_axis, eccentricity, constant)
        }
        Model::FigureEight { mass, size } => few::figure_eight(mass, size, constant),
        Model::Crystal { lattice, cells, spacing, charge, masses, evjen } => {
            crystal::cube(lattice, cells, spacing, charge, masses, evjen)
        }
        Model::File { ref path } => file::read(path, scenario)?,
    })
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
            let stream = Stream::new(scenario.seed, index);
            let mut particles = model(&group.model, stream, scenario)?;
            particles.rotate(group.rotation);
            particles.shift(group.position, group.velocity);
            all.append(particles);
            if all.len() >= u32::MAX as usize {
                let line = format!("the scenario has {} particles, more than a run can number", all.len());
                return Err(Fault::new(65, line));
            }
        }
        Ok(all)
    }

    /// N equal particles as they are, but with momentum zero.
    fn at_rest(states: Vec<([f64; 3], [f64; 3])>, mass: f64) -> Initial {
        let n = states.len();
        let (position, velocity): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let sums = blocked_sums(n, |i| velocity[i]);
        let mut particles = Initial { position, velocity, mass: vec![mass / n as f64; n], charge: vec![0.0; n] };
        particles.shift([0.0; 3], sums.map(|s| -s / n as f64));
        particles
    }

    /// Turns positions and velocities by three angles in degrees, about the x, then the y, then the z axis.
    fn rotate(&mut self, angles: [f64; 3]) {
        // The same bits as without, where nothing turns.
        for (axis, angle) in angles.into_iter().enumerate().filter(|(_, angle)| *angle != 0.0) {
            let (sin, cos) = angle.to_radians().sin_cos();
            let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
            for v in self.position.iter_mut().chain(&mut self.velocity) {
                (v[i], v[j]) = (cos * v[i] - sin * v[j], sin * v[i] + cos * v[j]);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_turn_about_fixed_axes_and_then_move() {
        let text = "[[particles]]\nmodel = 'kepler'\nrotation = [90, 0, 90]\nposition = [5, 0, 0]\nvelocity = [0, 0, 2]\n\
                    [[particles]]\nmodel = 'kepler'\nrotation = [0, 90, 90]\n[time]\ndt = 1\nend = 0\n";
        let scenario =
            Scenario::parse("a.toml", text.into(), None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        let p = Initial::of(&scenario).unwrap();
        // Before: x = (1/2, 0, 0), v = (0, √2/2, 0). About x by 90°: v along z. About z by 90°: x along y.
        let close = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15);
        assert!(close(p.position[0], [5.0, 0.5, 0.0]), "{:?}", p.position);
        assert!(close(p.velocity[0], [0.0, 0.0, 2.0 + 0.5f64.sqrt()]), "{:?}", p.velocity);
        // About y by 90°: x along −z. About z by 90°: v along −x.
        assert!(close(p.position[2], [0.0, 0.0, -0.5]), "{:?}", p.position);
        assert!(close(p.velocity[2], [-(0.5f64.sqrt()), 0.0, 0.0]), "{:?}", p.velocity);
    }
}
