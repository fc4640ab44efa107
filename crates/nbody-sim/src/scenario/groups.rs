//! `[[particles]]`: reading the groups, one function a model, and writing them back.

use std::fmt::Write;
use std::path::Path;

use super::document::Value;
use super::models::{FileUnits, Galaxy, Kind, Lattice, NAMES, Surface};
use super::reader::{Notes, Range, Section, TURNED};
use super::resolved::{number, text, vector};
use super::{Group, Law, Model, Scenario, Velocities};
use crate::files::{self, regular};
use crate::units::{Dimension, System};
use crate::vortex_ring::VortexRing;

/// Particles of one run: what a 32-bit index can number.
const MOST: i64 = u32::MAX as i64 - 1;

/// Reads all groups; `None` if a mistake left a hole.
pub(super) fn particles(
    notes: &Notes,
    top: &mut Section<'_>,
    units: System,
    law: Law,
    plane: bool,
    folder: Option<&Path>,
) -> Option<Vec<Group>> {
    let Some(item) = top.item("particles") else {
        let help = "add at least one group, for example:\n[[particles]]\nmodel = \"plummer\"\nn = 10000";
        notes.add(None, "the scenario has no [[particles]]".into(), "", Some(help.into()));
        return None;
    };
    let Value::Array(list) = &item.value else {
        let help = "each group has its own header in double brackets: [[particles]]";
        notes.add(
            Some(&item.span),
            format!("'particles' is {}", item.value.kind()),
            "a list of groups",
            Some(help.into()),
        );
        return None;
    };
    if list.is_empty() {
        notes.add(Some(&item.span), "'particles' is empty".into(), "at least one group is needed", None);
    }
    let read = |(i, item)| {
        Keys { s: Section::new(notes, format!("particles.{i}"), Some(item)), units, law, plane }.group(folder)
    };
    list.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

/// The keys of a group.
pub(super) struct Keys<'a> {
    pub(super) s: Section<'a>,
    pub(super) units: System,
    pub(super) law: Law,
    /// Whether the run is in the plane.
    pub(super) plane: bool,
}

impl Keys<'_> {
    fn group(mut self, folder: Option<&Path>) -> Option<Group> {
        let position = self.s.vector("position", Dimension::Length, self.units).unwrap_or_default();
        let velocity = self.s.vector("velocity", Dimension::Velocity, self.units).unwrap_or_default();
        let rotation = self.s.numbers_up_to("rotation", TURNED).unwrap_or_default();
        let Some(kind) = self.s.choice("model", &NAMES) else {
            if !self.s.has("model") {
                let names = NAMES.map(|(name, _)| name).join(", ");
                self.s.missing("model", &format!("one of {names}"));
            }
            // The other keys cannot be judged without a model.
            return None;
        };
        self.place(kind, [position, velocity, rotation]);
        let model = match kind {
            Kind::Plummer => self.plummer(),
            Kind::Hernquist => self.hernquist(),
            Kind::Nfw => self.nfw(),
            Kind::UniformSphere => self.uniform_sphere(),
            Kind::UniformCube => self.uniform_cube(),
            Kind::ColdCollapse => self.cold_collapse(),
            Kind::Galaxy => self.galaxy(),
            Kind::Kepler => self.kepler(),
            Kind::FigureEight => self.figure_eight(),
            Kind::Crystal => self.crystal(),
            Kind::UniformDisc => self.uniform_disc(),
            Kind::VortexPatch => self.vortex_patch(),
            Kind::VortexRing => self.vortex_ring(),
            Kind::File => self.file(folder),
        };
        self.s.close();
        Some(Group { model: model?, rotation, position, velocity })
    }

    pub(super) fn count(&mut self, low: i64) -> Option<usize> {
        if !self.s.has("n") {
            self.s.missing("n", "the number of particles, for example n = 10000");
        }
        self.s.integer("n", low, MOST).map(|n| n as usize)
    }

    pub(super) fn mass(&mut self, key: &'static str, default: f64) -> f64 {
        self.s.quantity(key, Dimension::Mass, self.units, Range::SIZE).unwrap_or(default)
    }

    pub(super) fn length(&mut self, key: &'static str, default: f64) -> f64 {
        self.s.quantity(key, Dimension::Length, self.units, Range::SIZE).unwrap_or(default)
    }

    fn dispersion(&mut self) -> Option<f64> {
        self.s.quantity("velocity_dispersion", Dimension::Velocity, self.units, Range::NOT_NEGATIVE)
    }

    /// −2T/Σ m x·a that a sample is to have.
    fn sample_ratio(&mut self) -> Option<f64> {
        self.s.number("virial_ratio", Range::VIRIAL)
    }

    /// The charge `key`, which Coulomb needs and gravity refuses.
    pub(super) fn charge(&mut self, help: &str) -> f64 {
        let charge = self.s.quantity("charge", Dimension::Charge, self.units, Range::FINITE);
        match self.law {
            Law::Gravity if self.s.has("charge") => {
                let message = "a charge has no effect under gravity".to_string();
                self.s.mistake("charge", message, "force.law is \"gravity\"", None);
            }
            Law::Coulomb if !self.s.has("charge") => self.s.missing("charge", help),
            _ => {}
        }
        charge.unwrap_or(0.0)
    }

    /// Notes that the model is held together by gravity.
    fn needs_gravity(&self, what: &str) {
        if self.law == Law::Coulomb {
            let help = "use model = \"uniform-sphere\", \"uniform-cube\", \"crystal\" or \"file\" with force.law = \
                        \"coulomb\"";
            self.s.mistake("model", format!("{what} gravity only"), "force.law is \"coulomb\"", Some(help.into()));
        }
    }

    fn plummer(&mut self) -> Option<Model> {
        let n = self.count(1);
        let mass = self.mass("mass", 1.0);
        let scale = self.s.quantity("scale_radius", Dimension::Length, self.units, Range::SIZE);
        let virial = self.s.quantity("virial_radius", Dimension::Length, self.units, Range::SIZE);
        if self.s.has("scale_radius") && self.s.has("virial_radius") {
            let help = "scale_radius = 3π/16 · virial_radius; Hénon units are mass = 1, virial_radius = 1";
            let message = "scale_radius is given as well".to_string();
            self.s.mistake("virial_radius", message, "give one of the two", Some(help.into()));
        }
        self.needs_gravity("a Plummer sphere is in equilibrium under");
        // R_v = G M²/(2|W|) with W = −3π/32 G M²/a.
        let henon = virial.map(|r| r * 3.0 * std::f64::consts::PI / 16.0);
        let virial_ratio = self.sample_ratio();
        Some(Model::Plummer { n: n?, mass, scale_radius: scale.or(henon).unwrap_or(1.0), virial_ratio })
    }

    fn hernquist(&mut self) -> Option<Model> {
        let n = self.count(1);
        let (mass, scale_radius) = (self.mass("mass", 1.0), self.length("scale_radius", 1.0));
        self.needs_gravity("a Hernquist sphere is in equilibrium under");
        let virial_ratio = self.sample_ratio();
        Some(Model::Hernquist { n: n?, mass, scale_radius, virial_ratio })
    }

    fn nfw(&mut self) -> Option<Model> {
        let n = self.count(1);
        let (mass, scale_radius) = (self.mass("mass", 1.0), self.length("scale_radius", 1.0));
        let concentration = self.s.number("concentration", Range::CONCENTRATION).unwrap_or(10.0);
        self.needs_gravity("an NFW halo is in equilibrium under");
        let virial_ratio = self.sample_ratio();
        Some(Model::Nfw { n: n?, mass, scale_radius, concentration, virial_ratio })
    }

    fn uniform_sphere(&mut self) -> Option<Model> {
        let n = self.count(1);
        let (mass, radius) = (self.mass("mass", 1.0), self.length("radius", 1.0));
        let charge = self.charge("the total charge of the group, for example charge = 1");
        let velocities = self.velocities();
        Some(Model::UniformSphere { n: n?, mass, charge, radius, velocities })
    }

    /// Random velocities by one of two keys.
    pub(super) fn velocities(&mut self) -> Velocities {
        let ratio = self.s.number("virial_ratio", Range::VIRIAL);
        let dispersion = self.dispersion();
        if self.law == Law::Coulomb && self.s.has("virial_ratio") {
            let help = "give velocity_dispersion instead";
            let message = "virial_ratio needs an attractive force".to_string();
            self.s.mistake("virial_ratio", message, "force.law is \"coulomb\"", Some(help.into()));
        }
        if self.s.has("virial_ratio") && self.s.has("velocity_dispersion") {
            let message = "virial_ratio is given as well".to_string();
            self.s.mistake("velocity_dispersion", message, "give one of the two", None);
        }
        match dispersion {
            Some(sigma) => Velocities::Dispersion(sigma),
            None => Velocities::VirialRatio(ratio.unwrap_or(0.0)),
        }
    }

    fn uniform_cube(&mut self) -> Option<Model> {
        let n = self.count(1);
        let (mass, side) = (self.mass("mass", 1.0), self.length("side", 1.0));
        let charge = self.charge("the total charge of the group, for example charge = 1");
        let dispersion = self.dispersion().unwrap_or(0.0);
        Some(Model::UniformCube { n: n?, mass, charge, side, dispersion })
    }

    fn cold_collapse(&mut self) -> Option<Model> {
        let n = self.count(1);
        let (mass, radius) = (self.mass("mass", 1.0), self.length("radius", 1.0));
        let cusp = self.s.number("cusp", Range::CUSP).unwrap_or(0.0);
        let virial_ratio = self.s.number("virial_ratio", Range::VIRIAL).unwrap_or(0.05);
        self.needs_gravity("a sphere collapses under");
        Some(Model::ColdCollapse { n: n?, mass, radius, cusp, virial_ratio })
    }

    fn galaxy(&mut self) -> Option<Model> {
        let n = self.count(10);
        let disc_share = self.s.number("disc_share", Range::SHARE).unwrap_or(0.4);
        let bulge_share = self.s.number("bulge_share", Range::SHARE).unwrap_or(0.1);
        if disc_share + bulge_share > 1.0 {
            let message = format!("disc_share + bulge_share = {}", disc_share + bulge_share);
            self.s.mistake("bulge_share", message, "allowed: at most 1; the halo has the rest", None);
        }
        let disc_radius = self.length("disc_radius", 1.0);
        let galaxy = Galaxy {
            mass: [self.mass("disc_mass", 1.0), self.mass("bulge_mass", 1.0 / 3.0), self.mass("halo_mass", 6.0)],
            scale_radius: [
                disc_radius,
                self.length("bulge_radius", 0.2 * disc_radius),
                self.length("halo_radius", 4.0 * disc_radius),
            ],
            disc_height: self.length("disc_height", 0.15 * disc_radius),
            toomre_q: self.s.number("toomre_q", Range::POSITIVE).unwrap_or(1.5),
            n: [0; 3],
        };
        self.needs_gravity("a galaxy is in equilibrium under");
        let n = n?;
        // Whole numbers that add up to n exactly, for any rounding.
        let disc = (disc_share * n as f64).round() as usize;
        let bulge = ((bulge_share * n as f64).round() as usize).min(n.saturating_sub(disc));
        Some(Model::Galaxy(Galaxy { n: [disc, bulge, n.saturating_sub(disc + bulge)], ..galaxy }))
    }

    fn kepler(&mut self) -> Option<Model> {
        let masses = [self.mass("mass", 1.0), self.mass("companion_mass", 1.0)];
        let semi_major_axis = self.length("semi_major_axis", 1.0);
        let eccentricity = self.s.number("eccentricity", Range::ECCENTRICITY).unwrap_or(0.0);
        self.needs_gravity("a Kepler pair is bound by");
        Some(Model::Kepler { masses, semi_major_axis, eccentricity })
    }

    fn figure_eight(&mut self) -> Option<Model> {
        let (mass, size) = (self.mass("mass", 1.0), self.length("size", 1.0));
        self.needs_gravity("the figure-eight orbit exists under");
        Some(Model::FigureEight { mass, size })
    }

    fn crystal(&mut self) -> Option<Model> {
        let lattice = self.s.choice("lattice", &Lattice::NAMES).unwrap_or(Lattice::NaCl);
        let cells = self.s.integer("cells", 1, 700);
        if !self.s.has("cells") {
            self.s.missing("cells", "conventional cells along an edge, for example cells = 8");
        }
        let spacing = self.length("spacing", 1.0);
        let charge = self.charge("the charge of the ion at the origin, for example charge = 1");
        let mass = self.mass("mass", 1.0);
        let masses = [mass, self.mass("partner_mass", mass)];
        let surface = self.s.choice("surface", &Surface::NAMES).unwrap_or(Surface::Evjen);
        if self.law == Law::Gravity {
            let message = "an ionic crystal needs charges".to_string();
            self.s.mistake("model", message, "force.law is \"gravity\"", Some("set force.law = \"coulomb\"".into()));
        }
        Some(Model::Crystal { lattice, cells: cells? as usize, spacing, charge, masses, surface })
    }

    fn file(&mut self, folder: Option<&Path>) -> Option<Model> {
        let units = self.file_units();
        let Some(given) = self.s.string("path") else {
            if !self.s.has("path") {
                self.s.missing("path", "a .csv or .npy table, or a .hdf, .hdf5 or .tipsy snapshot");
            }
            return None;
        };
        let path = folder.unwrap_or(Path::new("")).join(&given);
        if files::Kind::of(&path).is_none() {
            let help = "a table is named .csv or .npy, a snapshot .hdf, one of GADGET's .hdf5 or .h5, one of tipsy's \
                        .tipsy or .std";
            let message = format!("{}: unknown kind of file", path.display());
            self.s.mistake("path", message, format!("not {}", files::Kind::endings(".", |_| true)), Some(help.into()));
        } else if path.is_dir() {
            let help = "snapshots are the files snap_*.hdf in the folder of a run";
            self.s.absent("path", 66, format!("{}: is a folder", path.display()), "not a file", Some(help.into()));
        } else if let Some(kind) = regular::special_at(&path) {
            let help = "write what it holds into a file";
            self.s.mistake("path", format!("{}: is {kind}", path.display()), "not a regular file", Some(help.into()));
        } else if !path.is_file() {
            let help = "the path is relative to the folder of the scenario";
            self.s.absent("path", 66, format!("{}: no such file", path.display()), "no such file", Some(help.into()));
        }
        Some(Model::File { path, units })
    }

    /// `units = { length = "kpc", … }`: the units of the numbers in a file.
    fn file_units(&mut self) -> FileUnits {
        let mut found = FileUnits::default();
        if self.s.has("units") && self.units == System::Nbody {
            let help =
                "choose units.system = \"galactic\", \"astro\", \"solar\", \"md\" or \"si\", or leave the units out";
            let message = "a run in pure numbers cannot convert units".to_string();
            self.s.mistake("units", message, "units.system is \"nbody\"", Some(help.into()));
        }
        let mut s = self.s.section("units");
        found.length = s.choice("length", &Dimension::Length.names());
        found.velocity = s.choice("velocity", &Dimension::Velocity.names());
        found.mass = s.choice("mass", &Dimension::Mass.names());
        found.charge = s.choice("charge", &Dimension::Charge.names());
        s.close();
        found
    }
}

impl Scenario {
    /// Writes a group with every value, for `scenario.resolved.toml`.
    pub(super) fn write_group(&self, out: &mut String, group: &Group) -> std::fmt::Result {
        let numbers = |out: &mut String, pairs: &[(&str, f64)]| {
            pairs.iter().try_for_each(|(key, value)| writeln!(out, "{key} = {}", number(*value)))
        };
        let ratio = |out: &mut String, ratio: Option<f64>| match ratio {
            Some(q) => numbers(out, &[("virial_ratio", q)]),
            None => Ok(()),
        };
        writeln!(out, "\n[[particles]]\nmodel = {}", text(group.model.name()))?;
        match &group.model {
            Model::Plummer { n, mass, scale_radius, virial_ratio }
            | Model::Hernquist { n, mass, scale_radius, virial_ratio } => {
                writeln!(out, "n = {n}")?;
                numbers(out, &[("mass", *mass), ("scale_radius", *scale_radius)])?;
                ratio(out, *virial_ratio)?;
            }
            Model::Nfw { n, mass, scale_radius, concentration, virial_ratio } => {
                writeln!(out, "n = {n}")?;
                let scale = ("scale_radius", *scale_radius);
                numbers(out, &[("mass", *mass), scale, ("concentration", *concentration)])?;
                ratio(out, *virial_ratio)?;
            }
            Model::UniformSphere { n, mass, charge, radius, velocities }
            | Model::UniformDisc { n, mass, charge, radius, velocities } => {
                writeln!(out, "n = {n}")?;
                numbers(out, &[("mass", *mass), ("radius", *radius)])?;
                if self.charged() {
                    numbers(out, &[("charge", *charge)])?;
                }
                match velocities {
                    Velocities::Dispersion(s) => numbers(out, &[("velocity_dispersion", *s)])?,
                    Velocities::VirialRatio(_) if self.charged() => {}
                    Velocities::VirialRatio(q) => numbers(out, &[("virial_ratio", *q)])?,
                }
            }
            Model::UniformCube { n, mass, charge, side, dispersion } => {
                writeln!(out, "n = {n}")?;
                numbers(out, &[("mass", *mass), ("side", *side), ("velocity_dispersion", *dispersion)])?;
                if self.charged() {
                    numbers(out, &[("charge", *charge)])?;
                }
            }
            Model::ColdCollapse { n, mass, radius, cusp, virial_ratio } => {
                writeln!(out, "n = {n}")?;
                let more = [("cusp", *cusp), ("virial_ratio", *virial_ratio)];
                numbers(out, &[[("mass", *mass), ("radius", *radius)], more].concat())?;
            }
            Model::Galaxy(g) => {
                let total: usize = g.n.iter().sum();
                writeln!(out, "n = {total}")?;
                let share = |n: usize| n as f64 / total as f64;
                let ([disc, bulge, halo], [h, b, a]) = (g.mass, g.scale_radius);
                numbers(out, &[("disc_share", share(g.n[0])), ("bulge_share", share(g.n[1]))])?;
                numbers(out, &[("disc_mass", disc), ("disc_radius", h), ("disc_height", g.disc_height)])?;
                numbers(out, &[("toomre_q", g.toomre_q), ("bulge_mass", bulge), ("bulge_radius", b)])?;
                numbers(out, &[("halo_mass", halo), ("halo_radius", a)])?;
            }
            Model::Kepler { masses, semi_major_axis, eccentricity } => {
                numbers(out, &[("mass", masses[0]), ("companion_mass", masses[1])])?;
                numbers(out, &[("semi_major_axis", *semi_major_axis), ("eccentricity", *eccentricity)])?;
            }
            Model::FigureEight { mass, size } => numbers(out, &[("mass", *mass), ("size", *size)])?,
            Model::VortexPatch { n, circulation, radius, axis_ratio } => {
                writeln!(out, "n = {n}")?;
                let shape = [("radius", *radius), ("axis_ratio", *axis_ratio)];
                numbers(out, &[[("circulation", *circulation); 1].as_slice(), &shape].concat())?;
            }
            Model::VortexRing(VortexRing { circulation, radius, core, spacing }) => {
                let shape = [("radius", *radius), ("core", *core), ("spacing", *spacing)];
                numbers(out, &[[("circulation", *circulation); 1].as_slice(), &shape].concat())?;
            }
            Model::Crystal { lattice, cells, spacing, charge, masses, surface } => {
                writeln!(out, "lattice = {}\ncells = {cells}", text(lattice.name()))?;
                numbers(out, &[("spacing", *spacing), ("charge", *charge)])?;
                numbers(out, &[("mass", masses[0]), ("partner_mass", masses[1])])?;
                writeln!(out, "surface = {}", text(surface.name()))?;
            }
            Model::File { path, units } => {
                // Absolute, because this file is in another folder than the scenario.
                let path = std::path::absolute(path).unwrap_or(path.clone());
                writeln!(out, "path = {}", text(&path.to_string_lossy()))?;
                let named =
                    units.named().into_iter().filter_map(|(key, _, unit)| Some(format!("{key} = {}", text(unit?))));
                let named: Vec<String> = named.collect();
                if !named.is_empty() {
                    writeln!(out, "units = {{ {} }}", named.join(", "))?;
                }
            }
        }
        writeln!(out, "position = {}\nvelocity = {}", vector(group.position), vector(group.velocity))?;
        writeln!(out, "rotation = {}", vector(group.rotation))
    }
}

impl Model {
    /// The name in scenarios.
    pub fn name(&self) -> &'static str {
        match self {
            Model::Plummer { .. } => "plummer",
            Model::Hernquist { .. } => "hernquist",
            Model::Nfw { .. } => "nfw",
            Model::UniformSphere { .. } => "uniform-sphere",
            Model::UniformCube { .. } => "uniform-cube",
            Model::ColdCollapse { .. } => "cold-collapse",
            Model::Galaxy(_) => "galaxy",
            Model::Kepler { .. } => "kepler",
            Model::FigureEight { .. } => "figure-eight",
            Model::Crystal { .. } => "crystal",
            Model::UniformDisc { .. } => "uniform-disc",
            Model::VortexPatch { .. } => "vortex-patch",
            Model::VortexRing(_) => "vortex-ring",
            Model::File { .. } => "file",
        }
    }
}
