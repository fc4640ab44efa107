//! The scenario: what a run is asked to do. `docs/scenario.md` is the reference of its keys.

mod boundary;
pub mod clock;
pub mod document;
mod external;
mod forces;
pub mod grid;
mod groups;
mod intervals;
mod law;
pub mod models;
mod molecular;
mod plane;
mod reader;
mod refused;
mod resolved;
mod sections;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fmm_core::Settings;
use fmm_core::forces::{External, LennardJones};
use fmm_core::planar::{self, Blob};
use fmm_core::vortices::Exchange;

use crate::failure::Failure;
use crate::files::snapshot::{Field, Float, Layout};
use crate::files::{FileError, regular};
use crate::flow::Spreading;
use crate::integrator::Integrator;
use crate::mistake::{Mistake, Mistakes, Source};
use crate::thermostat::Thermostat;
use crate::units::System;
use clock::Clock;
pub use document::Override;
use document::{Item, Value};
use fmm::Device;
pub use models::{FileUnits, Group, Model, Velocities};
use reader::Notes;

/// Everything that a run is asked to do, in the scenario's units, with defaults filled in and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Text of the file that it was read from.
    pub text: String,
    /// A line for people.
    pub title: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Units of every number.
    pub units: System,
    /// The interaction.
    pub law: Law,
    /// A field that acts on all particles in addition to their own.
    pub external: Option<External>,
    /// Groups of particles, in their order.
    pub groups: Vec<Group>,
    /// For `dimensions = 2` what softens the kernel log r, be it point or blob; `None` in space.
    pub plane: Option<Blob>,
    /// Particles that do not see each other, by their ids, in ascending order.
    pub exclusions: Vec<[usize; 2]>,
    /// The short-range forces of ions in a periodic box.
    pub short_range: Option<LennardJones>,
    /// A thermostat for them.
    pub bath: Option<Thermostat>,
    /// How forces are summed, softening in space included.
    pub settings: Settings,
    /// Where forces are summed.
    pub device: Device,
    /// Scheme of the steps.
    pub integrator: Integrator,
    /// Steps and their times; with [`auto_step`](Self::auto_step) steps as long as the shortest interval, which are to
    /// be divided.
    pub clock: Clock,
    /// ν of vortices.
    pub viscosity: f64,
    /// η of `dt = "auto"`, until the step has been chosen.
    pub auto_step: Option<f64>,
    /// Number of steps.
    pub steps: u64,
    /// Run directory.
    pub directory: PathBuf,
    /// Steps between snapshots; 0 for none between the first and the last state, where `end = 0` leaves no whole run.
    pub snapshot_every: u64,
    /// Steps between lines of `diagnostics.csv`, likewise.
    pub diagnostics_every: u64,
    /// What a snapshot holds.
    pub layout: Layout,
    /// Wall time between checkpoints.
    pub checkpoint_wall: Duration,
    /// Checks of the forces during the run, if any.
    pub verify: Option<Verify>,
}

/// `[verify]`: forces of a sample of the particles, or velocities in a sample of the cells, against
/// direct sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify {
    /// Number of particles or cells of a sample.
    pub sample: usize,
    /// Steps between samples, likewise.
    pub every: u64,
    /// What a miss does.
    pub action: Action,
}

/// `verify.action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Action {
    /// A miss is reported.
    #[default]
    Warn,
    /// A gross miss ends the run.
    Stop,
}

impl Action {
    const NAMES: [(&'static str, Action); 2] = [("warn", Action::Warn), ("stop", Action::Stop)];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        Action::NAMES[self as usize].0
    }
}

/// `force.law`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Law {
    /// Masses attract: a = −G Σ m d/r³.
    #[default]
    Gravity,
    /// Like charges repel: a = k_e (q/m) Σ q d/r³.
    Coulomb,
    /// Vortices carry each other: points and blobs in the plane, u = Σ Γ (−d_y, d_x)/(2π r²), and particles in space that are
    /// stretched ([`fmm_core::vortices`]).
    Vortex,
}

impl Law {
    const NAMES: [(&'static str, Law); 3] =
        [("gravity", Law::Gravity), ("coulomb", Law::Coulomb), ("vortex", Law::Vortex)];

    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        Law::NAMES[self as usize].0
    }
}

impl Scenario {
    /// Reads a scenario file and lays the `--set` options over it.
    ///
    /// # Errors
    /// 66 if there is no such file or it is a folder, 74 if it cannot be read, 65 with all mistakes underlined.
    pub fn load(path: &Path, sets: &[Override]) -> Result<Scenario, Failure> {
        let text = file_text(path)?;
        Ok(Scenario::parse(&path.display().to_string(), text, path.parent(), sets)?)
    }

    /// Reads a scenario from a text.
    ///
    /// # Errors
    /// All mistakes, each with its place in `name` or in a `--set` option.
    pub fn parse(name: &str, text: String, folder: Option<&Path>, sets: &[Override]) -> Result<Scenario, Mistakes> {
        Scenario::read(name, text, folder, sets, |_| true)
    }

    /// The files that the particles are read from.
    pub fn inputs(&self) -> Vec<&Path> {
        let files = self.groups.iter().filter_map(|group| match &group.model {
            Model::File { path, .. } => Some(path.as_path()),
            _ => None,
        });
        files.collect()
    }

    /// Reads the resolved scenario of a checkpoint, whose particles need no files any more.
    ///
    /// # Errors
    /// As [`parse`](Scenario::parse), but for files that are not there.
    pub fn parse_resumed(name: &str, text: String, sets: &[Override]) -> Result<Scenario, Mistakes> {
        const MISSING_FILE: u8 = 66;
        Scenario::read(name, text, None, sets, |mistake| mistake.code != MISSING_FILE)
    }

    fn read(
        name: &str,
        text: String,
        folder: Option<&Path>,
        sets: &[Override],
        counts: impl Fn(&Mistake) -> bool,
    ) -> Result<Scenario, Mistakes> {
        let read = |notes: &Notes, root: &Item| sections::read(notes, root, folder, name);
        Ok(Scenario { text: text.clone(), ..read_sources(name, &text, sets, counts, read)? })
    }

    /// Every key that the parser knows, as `section.key`.
    pub fn known_keys() -> BTreeSet<String> {
        let groups = models::NAMES.iter().map(|(name, _)| format!("[[particles]]\nmodel = \"{name}\"\n"));
        let notes = Notes::default();
        if let Ok(root) = document::parse(&groups.collect::<String>(), 0) {
            sections::read(&notes, &root, None, "keys.toml");
        }
        let gridded = "[grid]\n[[vorticity]]\nmodel = \"ring\"\n[[vorticity]]\nmodel = \"vortex-ring\"\n\
                       [[vorticity]]\nmodel = \"file\"\n[time]\n[flow]\n[[bodies]]\nshape = \"sphere\"\n\
                       [[bodies]]\nshape = \"ellipsoid\"\n[[bodies]]\nshape = \"box\"\n\
                       [[bodies]]\nshape = \"surface\"\n[verify]\n";
        if let Ok(root) = document::parse(gridded, 0) {
            grid::GridScenario::note_keys(&notes, &root);
        }
        notes.known.into_inner()
    }

    /// Whether particles have strengths in addition to their masses: charges, or circulations.
    pub fn charged(&self) -> bool {
        self.law != Law::Gravity && !self.vortices_in_space()
    }

    /// Particles are vortices, which have no inertia.
    pub fn vortices(&self) -> bool {
        self.law == Law::Vortex
    }

    /// Particles are vortices in space, which are stretched.
    pub fn vortices_in_space(&self) -> bool {
        self.vortices() && self.plane.is_none()
    }

    /// How they exchange strength, if they do: as wide as their cores.
    pub fn exchange(&self) -> Option<Exchange> {
        let viscosity = self.viscosity;
        (viscosity > 0.0).then(|| Exchange { viscosity, width: self.softening_length() })
    }

    /// How blobs in the plane spread, if they do.
    pub fn spreading(&self) -> Option<Spreading> {
        let viscosity = self.viscosity;
        (viscosity > 0.0 && self.plane.is_some()).then(|| Spreading { core: self.softening_length(), viscosity })
    }

    /// What softens the kernel in the plane at a time.
    pub fn blob(&self, time: f64) -> Option<Blob> {
        let spread = |blob: Blob| self.spreading().map_or(blob, |s| blob.with_length(s.length(time)));
        self.plane.map(spread)
    }

    /// Particles are ions in a periodic box.
    pub fn ions(&self) -> bool {
        self.law == Law::Coulomb && self.settings.boundary.periodic().is_some()
    }

    /// What a store in the plane sums.
    pub fn log_kernel(&self) -> Option<(planar::Kernel, Blob)> {
        self.plane.map(|blob| (planar::Kernel::Log, blob))
    }

    /// What softens the interaction reaches as far as this; 0 where nothing does.
    pub fn softening_length(&self) -> f64 {
        self.plane.map_or(self.settings.softening.length(), Blob::length)
    }

    /// G, k_e, or of vortices 1/(2π) in the plane and 1/(4π) in space.
    pub fn constant(&self) -> f64 {
        let constant = match self.law {
            Law::Gravity => self.units.gravity(),
            Law::Coulomb => self.units.electric(),
            Law::Vortex => Some(std::f64::consts::FRAC_1_PI / if self.plane.is_some() { 2.0 } else { 4.0 }),
        };
        // Reading refuses a law that the units have no constant for.
        constant.unwrap_or(f64::NAN)
    }

    /// The constant with the sign that goes with the kernel: e = −∇Σ q/r falls off where −∇Σ q log r rises.
    pub fn signed_constant(&self) -> f64 {
        if self.plane.is_some() { -self.constant() } else { self.constant() }
    }

    /// What Σ q/r, or Σ q log r, is multiplied with to give the potential per unit of strength: that of attraction, of repulsion, or
    /// the stream function of vortices.
    pub fn potential_factor(&self) -> f64 {
        if self.charged() { self.signed_constant() } else { -self.signed_constant() }
    }

    /// The same scenario with steps of 1/`k`, as `dt = "auto"` chooses them.
    pub fn with_steps_divided(&self, k: u64) -> Scenario {
        Scenario {
            clock: Clock::new(self.clock.dt / k as f64),
            auto_step: None,
            steps: self.steps * k,
            snapshot_every: self.snapshot_every * k,
            diagnostics_every: self.diagnostics_every * k,
            verify: self.verify.map(|v| Verify { every: v.every * k, ..v }),
            bath: self.bath.map(|b| Thermostat { last: b.last.saturating_mul(k), ..b }),
            ..self.clone()
        }
    }

    /// Time at the end of the run.
    pub fn end(&self) -> f64 {
        self.clock.time(self.steps)
    }
}

/// The text of a scenario file.
///
/// # Errors
/// 66 if there is no such file or it is a folder, 74 if it cannot be read, 65 for what is no text.
pub fn file_text(path: &Path) -> Result<String, Failure> {
    regular::text(path, regular::SCENARIO).map_err(|e| match &e {
        FileError::Missing { .. } => Failure::new(66, format!("{}: no such scenario file", path.display())),
        FileError::Folder { .. } => {
            let way = "a scenario is a TOML file; with --resume the folder of a run is taken";
            Failure::new(66, format!("{}: is a folder; {way}", path.display()))
        }
        FileError::Data { .. } => Failure::new(65, format!("{e}; a scenario is a TOML file")),
        _ => e.into(),
    })
}

/// Whether a text is a scenario on a grid, and not one of particles.
pub fn has_grid(text: &str) -> bool {
    document::parse(text, 0).is_ok_and(|root| is_gridded(&root))
}

fn is_gridded(root: &Item) -> bool {
    matches!(&root.value, Value::Table(entries) if entries.iter().any(|(key, _)| key.name == "grid"))
}

/// What `read` makes of a text with the `--set` options laid over it.
///
/// # Errors
/// All mistakes that count.
fn read_sources<S>(
    name: &str,
    text: &str,
    sets: &[Override],
    counts: impl Fn(&Mistake) -> bool,
    read: impl FnOnce(&Notes, &Item) -> Option<S>,
) -> Result<S, Mistakes> {
    let mut sources = vec![Source { name: name.into(), text: text.into() }];
    let parsed = document::parse(text, 0);
    let overrides: Vec<_> = (1..).zip(sets).map(|(i, set)| document::parse_override(set, i)).collect();
    let (mut items, mut mistakes): (Vec<Item>, Vec<Mistake>) = (vec![], vec![]);
    let (set_sources, set_items): (Vec<Source>, Vec<_>) = overrides.into_iter().unzip();
    sources.extend(set_sources);
    for result in std::iter::once(parsed).chain(set_items) {
        match result {
            Ok(item) => items.push(item),
            Err(more) => mistakes.extend(more),
        }
    }
    if !mistakes.is_empty() {
        return Err(Mistakes { sources, mistakes });
    }
    let mut items = items.into_iter();
    let notes = Notes::default();
    let scenario = items.next().and_then(|mut root| {
        for over in items {
            if let Err(mistake) = document::merge(&mut root, over) {
                notes.mistakes.borrow_mut().push(mistake);
            }
        }
        read(&notes, &root)
    });
    let mut mistakes = notes.mistakes.into_inner();
    // What leaves a hole in the scenario counts in any case.
    if scenario.is_some() {
        mistakes.retain(counts);
    }
    // In the order of the file, not in the order of the checks.
    mistakes.sort_by_key(|p| p.span.as_ref().map(|s| (s.source, s.range.start)));
    match scenario {
        Some(s) if mistakes.is_empty() => Ok(s),
        _ => Err(Mistakes { sources, mistakes }),
    }
}

/// Names of [`Field`] in scenarios.
const FIELDS: [(&str, Field); 9] = [
    ("position", Field::Position),
    ("velocity", Field::Velocity),
    ("mass", Field::Mass),
    ("id", Field::Id),
    ("potential", Field::Potential),
    ("acceleration", Field::Acceleration),
    ("charge", Field::Charge),
    ("force_error", Field::ForceError),
    ("vorticity", Field::Vorticity),
];

/// Names of [`Float`] in scenarios.
const FLOATS: [(&str, Float); 2] = [("f32", Float::F32), ("f64", Float::F64)];
