//! Initial particles: groups from models and files, one after the other.

mod crystal;
mod few;
mod file;
mod galaxy;
mod memory;
mod plane;
mod plummer;
mod softened;
mod sphere;
mod spherical;
mod tables;
mod vortices;

use fmm_core::math::blocked_sums;
use fmm_core::{Particles, Softening};

use crate::failure::Failure;
use crate::messages::number;
use crate::scenario::{Law, Model, Scenario, Velocities};
use fmm_core::random::Stream;
use sphere::Sphere;
use spherical::{Profile, Spherical};

pub use file::{ReadHdf5, no_hdf5};
pub use tables::suspicious;

/// Particles in the scenario's units; N rows everywhere, row i has the id i.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Initial {
    /// Positions.
    pub position: Vec<[f64; 3]>,
    /// Velocities.
    pub velocity: Vec<[f64; 3]>,
    /// Masses.
    pub mass: Vec<f64>,
    /// Charges, or circulations; zero under gravity.
    pub charge: Vec<f64>,
    /// Vorticity times volume of vortex particles in space, whose masses are their volumes; empty for all others.
    pub vorticity: Vec<[f64; 3]>,
}

/// The particles of a group, where its model puts them.
fn model(model: &Model, stream: Stream, scenario: &Scenario, hdf5: ReadHdf5) -> Result<Initial, Failure> {
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
        Model::Crystal { lattice, cells, spacing, charge, masses, surface } => {
            crystal::cube(lattice, cells, spacing, charge, masses, surface)
        }
        Model::UniformDisc { n, mass, charge, radius, velocities } => {
            plane::disc(stream, n, [mass, charge], radius, velocities, constant)
        }
        Model::VortexPatch { n, circulation, radius, axis_ratio } => plane::patch(n, circulation, radius, axis_ratio),
        Model::VortexRing(ref ring) => vortices::ring(ring),
        Model::File { ref path, units } => file::read(path, units, scenario, hdf5)?,
    })
}

/// Refuses more particles than a 32-bit index can number.
fn numbered(n: u64) -> Result<(), Failure> {
    if n < u64::from(u32::MAX) {
        return Ok(());
    }
    let line = format!("the scenario has {n} particles; a run can number at most {}", u32::MAX - 1);
    Err(Failure::new(65, line))
}

/// Refuses a softening in which a sphere in equilibrium drowns: its particles then hardly move, and no draw finds their speeds.
fn not_drowned(index: usize, model: &Model, softening: f64) -> Result<(), Failure> {
    const MOST: f64 = 1000.0;
    let (Model::Plummer { scale_radius, .. } | Model::Hernquist { scale_radius, .. } | Model::Nfw { scale_radius, .. }) =
        *model
    else {
        return Ok(());
    };
    if softening <= MOST * scale_radius {
        return Ok(());
    }
    let line = format!(
        "force.softening.length = {} is {:.0e} times the scale_radius = {} of particles.{index}, whose speeds follow from the \
         softened force; allowed: up to 1000 times; are both in the units that were meant?",
        number(softening),
        softening / scale_radius,
        number(scale_radius),
    );
    Err(Failure::new(65, line))
}

/// Refuses a position at which 64-bit numbers are too coarse: their spacing there exceeds a
/// thousandth of the group's smallest distances, or of the way that its particles go in a step.
/// Among N points in space the smallest distances are about N^(−2/3) of the group's width.
fn not_swallowed(index: usize, by: [f64; 3], before: &Initial, dt: f64) -> Result<(), Failure> {
    const PART: f64 = 1e-3;
    let width = before.extent().into_iter().fold(0.0, f64::max);
    let distance = width * (before.len() as f64).powf(-2.0 / 3.0);
    let square: f64 = before.velocity.as_flattened().iter().map(|v| v * v).sum();
    let step = (square / before.len().max(1) as f64).sqrt() * dt;
    let moves = step > 0.0 && step < distance;
    let (smallest, what) = if moves { (step, "the steps") } else { (distance, "the smallest distances") };
    // The spacing of numbers near x is x times this, or half as much.
    let most = PART * smallest / f64::EPSILON;
    let Some(axis) = (0..3).find(|&k| width > 0.0 && by[k].abs() > most) else { return Ok(()) };
    let line = format!(
        "particles.{index}.position = {} along {}: next to it 64-bit numbers are {:.0e} apart, but {what} of the \
         group are some {smallest:.0e}; allowed: up to {most:.0e}, or choose larger units",
        number(by[axis]),
        ["x", "y", "z"][axis],
        by[axis].abs() * f64::EPSILON,
    );
    Err(Failure::new(65, line))
}

impl Initial {
    /// The particles of all groups of the scenario. `hdf5` reads snapshots in HDF5 files.
    ///
    /// Those of a model depend on the seed, the number of the group and that of the particle, and on nothing else.
    ///
    /// # Errors
    /// Files that cannot be read (66, 65, 74), masses or charges that the law cannot use (65), offsets that swallow the
    /// distances within a group (65), charged boxes in anything but tin foil (65), more particles than a run can number (65) or than the memory holds (71).
    pub fn of(scenario: &Scenario, hdf5: ReadHdf5) -> Result<Initial, Failure> {
        let known: u64 = scenario.groups.iter().filter_map(|g| g.model.count()).sum();
        numbered(known)?;
        memory::check(known, memory::available())?;
        let mut all = Initial::default();
        for (index, group) in scenario.groups.iter().enumerate() {
            let stream = Stream::new(scenario.seed, index);
            not_drowned(index, &group.model, scenario.settings.softening.length())?;
            let mut particles = model(&group.model, stream, scenario, hdf5)?;
            particles.rotate(group.rotation);
            not_swallowed(index, group.position, &particles, scenario.clock.dt)?;
            particles.shift(group.position, group.velocity);
            all.append(particles);
            numbered(all.len() as u64)?;
        }
        if let Some(cell) = scenario.settings.boundary.periodic() {
            let strengths = if scenario.charged() { &all.charge } else { &all.mass };
            let refused = |e| Failure::new(65, format!("boundary.surroundings: {e}"));
            cell.check_charge(strengths).map_err(refused)?;
        }
        if let (Some(_), Some(i)) = (scenario.short_range, all.charge.iter().position(|q| *q == 0.0)) {
            let line = format!(
                "particle {i}: short_range sets kinds of ions by the sign of their charge, and knows no charges of zero"
            );
            return Err(Failure::new(65, line));
        }
        if let Some([_, id]) = scenario.exclusions.iter().find(|[_, j]| *j >= all.len()) {
            let most = all.len().saturating_sub(1);
            let line = format!(
                "force.exclusions: {id} is no number of the {} particles, which are counted from 0 in the order of their ids; allowed: 0 to {most}",
                all.len()
            );
            return Err(Failure::new(65, line));
        }
        Ok(all)
    }

    /// N equal particles as they are, but with momentum zero.
    fn at_rest(states: Vec<([f64; 3], [f64; 3])>, mass: f64) -> Initial {
        let n = states.len();
        let (position, velocity): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let sums = blocked_sums(n, |i| velocity[i]);
        let mut particles =
            Initial { position, velocity, mass: vec![mass / n as f64; n], charge: vec![0.0; n], vorticity: vec![] };
        particles.shift([0.0; 3], sums.map(|s| -s / n as f64));
        particles
    }

    /// Turns positions and velocities by three angles in degrees, about the x, then the y, then the z axis.
    fn rotate(&mut self, angles: [f64; 3]) {
        // The same bits as without, where nothing turns.
        for (axis, angle) in angles.into_iter().enumerate().filter(|(_, angle)| *angle != 0.0) {
            let (sin, cos) = angle.to_radians().sin_cos();
            let (i, j) = ((axis + 1) % 3, (axis + 2) % 3);
            for v in self.position.iter_mut().chain(&mut self.velocity).chain(&mut self.vorticity) {
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

    /// As the solver wants them: strengths and couplings in place of masses and charges. `constant` has the sign that goes with the
    /// kernel ([`Scenario::signed_constant`]).
    pub fn particles(&self, law: Law, constant: f64) -> Particles {
        let (strength, coupling) = match law {
            Law::Gravity => (&self.mass, vec![-constant; self.len()]),
            // The field is the velocity.
            Law::Vortex if !self.vorticity.is_empty() => (&self.mass, vec![]),
            // u = 1/(2π) (e_y, −e_x): the sign is that of the plane.
            Law::Vortex => (&self.charge, vec![-constant; self.len()]),
            Law::Coulomb => (&self.charge, self.charge.iter().zip(&self.mass).map(|(q, m)| constant * q / m).collect()),
        };
        let (position, velocity) = (self.position.clone(), self.velocity.clone());
        Particles { position, velocity, strength: strength.clone(), coupling, vorticity: self.vorticity.clone() }
    }

    /// N equal particles from one (position, velocity) a particle, with center of mass and momentum moved to zero.
    fn equal(states: Vec<([f64; 3], [f64; 3])>, mass: f64, charge: f64) -> Initial {
        let n = states.len();
        let (position, velocity): (Vec<_>, Vec<_>) = states.into_iter().unzip();
        let (mass, charge) = (vec![mass / n as f64; n], vec![charge / n as f64; n]);
        let mut particles = Initial { position, velocity, mass, charge, vorticity: vec![] };
        let sums = blocked_sums(n, |i| {
            let ([x, y, z], [u, v, w]) = (particles.position[i], particles.velocity[i]);
            [x, y, z, u, v, w]
        });
        let [x, y, z, u, v, w] = sums.map(|s| -s / n as f64);
        particles.shift([x, y, z], [u, v, w]);
        particles
    }

    /// Largest minus smallest coordinate along each axis; 0 without particles.
    fn extent(&self) -> [f64; 3] {
        std::array::from_fn(|k| {
            let range = self
                .position
                .iter()
                .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x[k]), high.max(x[k])]);
            (range[1] - range[0]).max(0.0)
        })
    }

    fn shift(&mut self, by: [f64; 3], faster: [f64; 3]) {
        for (x, v) in self.position.iter_mut().zip(&mut self.velocity) {
            for k in 0..3 {
                x[k] += by[k];
                v[k] += faster[k];
            }
        }
    }

    /// Position, velocity, mass and charge of a particle.
    pub(crate) fn row(&self, i: usize) -> [f64; 8] {
        let ([x, y, z], [u, v, w]) = (self.position[i], self.velocity[i]);
        [x, y, z, u, v, w, self.mass[i], self.charge[i]]
    }

    /// Adds a particle.
    pub(crate) fn push(&mut self, [x, y, z, u, v, w, mass, charge]: [f64; 8]) {
        self.position.push([x, y, z]);
        self.velocity.push([u, v, w]);
        self.mass.push(mass);
        self.charge.push(charge);
    }

    /// Keeps the first `n` particles, and the memory that they need.
    pub(crate) fn truncate(&mut self, n: usize) {
        for rows in [&mut self.position, &mut self.velocity, &mut self.vorticity] {
            rows.truncate(n);
            rows.shrink_to_fit();
        }
        for column in [&mut self.mass, &mut self.charge] {
            column.truncate(n);
            column.shrink_to_fit();
        }
    }

    fn append(&mut self, more: Initial) {
        self.position.extend(more.position);
        self.velocity.extend(more.velocity);
        self.mass.extend(more.mass);
        self.charge.extend(more.charge);
        self.vorticity.extend(more.vorticity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_must_leave_the_group_its_size() {
        let with = |key: &str| {
            let text = format!(
                "[[particles]]\nmodel = 'kepler'\n{key}\n[[particles]]\nmodel = 'plummer'\nn = 50\nposition = [0, 1e9, 0]\n\
                 [time]\ndt = 1\nend = 0\n"
            );
            let scenario = Scenario::parse("a.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
            Initial::of(&scenario, no_hdf5)
        };
        // Distances of 0.6 between two bodies, of 0.1 among fifty.
        assert!(
            with("position = [1e12, -1e12, 0]").is_ok() && with("rotation = [0, 0, 90]\nposition = [5, 0, 0]").is_ok()
        );
        for (position, says) in [("[-1e13, 0, 0]", "-10000000000000 along x"), ("[0, 0, 1e30]", "1e30 along z")] {
            let failure = with(&format!("position = {position}")).unwrap_err();
            let text = failure.render(false);
            assert!(failure.code == 65 && text.contains(&format!("particles.0.position = {says}")), "{text}");
        }
    }

    #[test]
    fn groups_turn_about_fixed_axes_and_then_move() {
        let text = "[[particles]]\nmodel = 'kepler'\nrotation = [90, 0, 90]\nposition = [5, 0, 0]\nvelocity = [0, 0, 2]\n\
                    [[particles]]\nmodel = 'kepler'\nrotation = [0, 90, 90]\n[time]\ndt = 1\nend = 0\n";
        let scenario =
            Scenario::parse("a.toml", text.into(), None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        let p = Initial::of(&scenario, no_hdf5).unwrap();
        // Before: x = (1/2, 0, 0), v = (0, √2/2, 0). About x by 90°: v along z. About z by 90°: x along y.
        let close = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-15);
        assert!(close(p.position[0], [5.0, 0.5, 0.0]), "{:?}", p.position);
        assert!(close(p.velocity[0], [0.0, 0.0, 2.0 + 0.5f64.sqrt()]), "{:?}", p.velocity);
        // About y by 90°: x along −z. About z by 90°: v along −x.
        assert!(close(p.position[2], [0.0, 0.0, -0.5]), "{:?}", p.position);
        assert!(close(p.velocity[2], [-(0.5f64.sqrt()), 0.0, 0.0]), "{:?}", p.velocity);
    }
}
