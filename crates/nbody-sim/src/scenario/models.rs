//! The models that particles come from: `particles.model` with its parameters, as data.

use std::path::PathBuf;

use crate::units::Dimension;
use crate::vortex_ring::VortexRing;

/// A group of particles: a model, turned, moved and set in motion as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Where its particles come from.
    pub model: Model,
    /// Angles in degrees by which the group is turned about the x, then the y, then the z axis through its center.
    pub rotation: [f64; 3],
    /// Added to every position.
    pub position: [f64; 3],
    /// Added to every velocity.
    pub velocity: [f64; 3],
}

/// `particles.model` with its parameters, in the scenario's units.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// Plummer's sphere in equilibrium under its own gravity.
    Plummer {
        /// Number of particles.
        n: usize,
        /// Total mass M.
        mass: f64,
        /// Scale radius a of ρ ∝ (1 + r²/a²)^(−5/2).
        scale_radius: f64,
        /// −2T/Σ m x·a of the sample, if not as sampled.
        virial_ratio: Option<f64>,
    },
    /// Hernquist's sphere in equilibrium under its own gravity.
    Hernquist {
        /// Number of particles.
        n: usize,
        /// Total mass M.
        mass: f64,
        /// Scale radius a of ρ ∝ 1/(r (r + a)³).
        scale_radius: f64,
        /// −2T/Σ m x·a of the sample, if not as sampled.
        virial_ratio: Option<f64>,
    },
    /// The halo of Navarro, Frenk and White with a smooth edge, in equilibrium under its own gravity.
    Nfw {
        /// Number of particles.
        n: usize,
        /// Total mass M.
        mass: f64,
        /// Scale radius a of ρ ∝ sech(r/(c a))/(r (r + a)²).
        scale_radius: f64,
        /// Edge in scale radii, c.
        concentration: f64,
        /// −2T/Σ m x·a of the sample, if not as sampled.
        virial_ratio: Option<f64>,
    },
    /// A sphere of uniform density.
    UniformSphere {
        /// Number of particles.
        n: usize,
        /// Total mass.
        mass: f64,
        /// Total charge.
        charge: f64,
        /// Its radius.
        radius: f64,
        /// Random velocities.
        velocities: Velocities,
    },
    /// A cube of uniform density.
    UniformCube {
        /// Number of particles.
        n: usize,
        /// Total mass.
        mass: f64,
        /// Total charge.
        charge: f64,
        /// Its side.
        side: f64,
        /// Standard deviation of each component of the velocity.
        dispersion: f64,
    },
    /// A sphere of density ρ ∝ r^(−cusp) that is too cold to stay.
    ColdCollapse {
        /// Number of particles.
        n: usize,
        /// Total mass.
        mass: f64,
        /// Its radius.
        radius: f64,
        /// Exponent of the density.
        cusp: f64,
        /// −2T/W at the start.
        virial_ratio: f64,
    },
    /// An exponential disc with bulge and halo, near equilibrium.
    Galaxy(Galaxy),
    /// Two bodies on an ellipse, at its pericenter on the x axis, counterclockwise in the xy plane.
    Kepler {
        /// Both masses.
        masses: [f64; 2],
        /// Semi-major axis of the relative orbit.
        semi_major_axis: f64,
        /// Eccentricity e < 1.
        eccentricity: f64,
    },
    /// Three equal masses that follow one another on a figure of eight (Chenciner & Montgomery 2000).
    FigureEight {
        /// Mass of each.
        mass: f64,
        /// The unit of length of the orbit, which is 2.16 wide.
        size: f64,
    },
    /// A cube of an ionic crystal.
    Crystal {
        /// Its kind.
        lattice: Lattice,
        /// Conventional cubic cells along an edge.
        cells: usize,
        /// Distance of nearest neighbours.
        spacing: f64,
        /// Charge of the ion at the origin and its like; the others have its opposite.
        charge: f64,
        /// Masses of the two kinds of ion.
        masses: [f64; 2],
        /// What its surface is.
        surface: Surface,
    },
    /// A disc of uniform density in the plane.
    UniformDisc {
        /// Number of particles.
        n: usize,
        /// Total mass.
        mass: f64,
        /// Total charge.
        charge: f64,
        /// Its radius.
        radius: f64,
        /// Random velocities.
        velocities: Velocities,
    },
    /// An elliptic patch of uniform vorticity in the plane, its long axis along x: Kirchhoff's vortex.
    VortexPatch {
        /// Number of vortices, all of one circulation.
        n: usize,
        /// Total circulation.
        circulation: f64,
        /// Geometric mean of the semi-axes.
        radius: f64,
        /// Short axis over long axis.
        axis_ratio: f64,
    },
    /// A vortex ring in space.
    VortexRing(VortexRing),
    /// Particles from a file.
    File {
        /// Relative to the scenario's folder unless absolute.
        path: PathBuf,
        /// Units of its numbers, where the scenario names them.
        units: FileUnits,
    },
}

/// The units of the numbers of a file, by name; those of the scenario where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileUnits {
    /// Of lengths.
    pub length: Option<&'static str>,
    /// Of velocities.
    pub velocity: Option<&'static str>,
    /// Of masses.
    pub mass: Option<&'static str>,
    /// Of charges.
    pub charge: Option<&'static str>,
}

impl FileUnits {
    /// Keys of `[particles.units]`, what they measure, and the unit.
    pub fn named(&self) -> [(&'static str, Dimension, Option<&'static str>); 4] {
        [
            ("length", Dimension::Length, self.length),
            ("velocity", Dimension::Velocity, self.velocity),
            ("mass", Dimension::Mass, self.mass),
            ("charge", Dimension::Charge, self.charge),
        ]
    }
}

/// A disc galaxy in equilibrium approximately (Hernquist 1993; Springel, Di Matteo & Hernquist 2005).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Galaxy {
    /// Number of particles of disc, bulge and halo.
    pub n: [usize; 3],
    /// Mass of each.
    pub mass: [f64; 3],
    /// Scale length of the disc, scale radii of bulge and halo (Hernquist's profiles).
    pub scale_radius: [f64; 3],
    /// z₀ of the disc's ρ ∝ sech²(z/z₀).
    pub disc_height: f64,
    /// Toomre's stability number of the disc at 2.5 scale lengths.
    pub toomre_q: f64,
}

/// Kinds of ionic crystal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lattice {
    /// Rock salt.
    NaCl,
    /// Caesium chloride.
    CsCl,
    /// Zinc blende.
    ZnS,
}

impl Model {
    /// Number of particles, but for those that are in a file.
    pub fn count(&self) -> Option<u64> {
        Some(match self {
            Model::Plummer { n, .. }
            | Model::Hernquist { n, .. }
            | Model::Nfw { n, .. }
            | Model::UniformSphere { n, .. }
            | Model::UniformCube { n, .. }
            | Model::UniformDisc { n, .. }
            | Model::VortexPatch { n, .. }
            | Model::ColdCollapse { n, .. } => *n as u64,
            Model::VortexRing(ring) => ring.count(),
            Model::Galaxy(g) => g.n.iter().map(|&n| n as u64).sum(),
            Model::Kepler { .. } => 2,
            Model::FigureEight { .. } => 3,
            Model::Crystal { lattice, cells, surface, .. } => lattice.ions(*cells as u64, *surface),
            Model::File { .. } => return None,
        })
    }
}

/// What the surface of a crystal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Ions on faces, edges and corners count 1/2, 1/4 and 1/8, as parts of neighbouring cells (Evjen 1932).
    Evjen,
    /// All ions count wholly.
    Whole,
    /// There is none: ions on the upper faces are the images of those on the lower ones.
    Periodic,
}

impl Surface {
    /// Names in scenarios.
    pub const NAMES: [(&'static str, Surface); 3] =
        [("evjen", Surface::Evjen), ("whole", Surface::Whole), ("periodic", Surface::Periodic)];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        Surface::NAMES[self as usize].0
    }
}

impl Lattice {
    /// Ions of a cube with `cells` conventional cells along an edge.
    pub fn ions(self, cells: u64, surface: Surface) -> u64 {
        if surface == Surface::Periodic {
            return cells.pow(3) * if self == Lattice::CsCl { 2 } else { 8 };
        }
        let face_centered = 4 * cells.pow(3) + 6 * cells.pow(2) + 3 * cells + 1;
        match self {
            Lattice::NaCl => (2 * cells + 1).pow(3),
            Lattice::CsCl => (cells + 1).pow(3) + cells.pow(3),
            Lattice::ZnS => face_centered + 4 * cells.pow(3),
        }
    }

    /// Names in scenarios.
    pub const NAMES: [(&'static str, Lattice); 3] =
        [("NaCl", Lattice::NaCl), ("CsCl", Lattice::CsCl), ("ZnS", Lattice::ZnS)];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        Lattice::NAMES[self as usize].0
    }
}

/// Random velocities, each component from the same normal distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Velocities {
    /// −2T/W of the continuous model: 0 is cold, 1 is virial equilibrium.
    VirialRatio(f64),
    /// Standard deviation of a component.
    Dispersion(f64),
}

/// A model without its parameters.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// [`Model::Plummer`].
    Plummer,
    /// [`Model::Hernquist`].
    Hernquist,
    /// [`Model::Nfw`].
    Nfw,
    /// [`Model::UniformSphere`].
    UniformSphere,
    /// [`Model::UniformCube`].
    UniformCube,
    /// [`Model::ColdCollapse`].
    ColdCollapse,
    /// [`Model::Galaxy`].
    Galaxy,
    /// [`Model::Kepler`].
    Kepler,
    /// [`Model::FigureEight`].
    FigureEight,
    /// [`Model::Crystal`].
    Crystal,
    /// [`Model::UniformDisc`].
    UniformDisc,
    /// [`Model::VortexPatch`].
    VortexPatch,
    /// [`Model::VortexRing`].
    VortexRing,
    /// [`Model::File`].
    File,
}

impl Kind {
    /// Whether its particles lie in space, and whether they lie in the plane.
    pub fn lies(self) -> (bool, bool) {
        match self {
            Kind::File => (true, true),
            Kind::UniformDisc | Kind::VortexPatch => (false, true),
            _ => (true, false),
        }
    }
}

/// Names of the models in scenarios.
pub const NAMES: [(&str, Kind); 14] = [
    ("plummer", Kind::Plummer),
    ("hernquist", Kind::Hernquist),
    ("nfw", Kind::Nfw),
    ("uniform-sphere", Kind::UniformSphere),
    ("uniform-cube", Kind::UniformCube),
    ("cold-collapse", Kind::ColdCollapse),
    ("galaxy", Kind::Galaxy),
    ("kepler", Kind::Kepler),
    ("figure-eight", Kind::FigureEight),
    ("crystal", Kind::Crystal),
    ("uniform-disc", Kind::UniformDisc),
    ("vortex-patch", Kind::VortexPatch),
    ("vortex-ring", Kind::VortexRing),
    ("file", Kind::File),
];
