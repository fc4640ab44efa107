//! `[grid]`: a scenario of fields on a grid instead of particles. `docs/scenario.md` is the reference of its keys.

mod bodies;
mod intervals;
mod resolution;
mod steps;
mod verify;

use std::f64::consts::PI;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fmm_core::Precision;
use fmm_core::grid::far::{MAX_ORDER, MAX_SINGLE_ORDER};
use fmm_core::grid::flow::Conditions;
use fmm_core::grid::{GaussianRing, Green, Ring, Solver};

use super::FLOATS;
use super::document::{Item, Override, Value};
use super::reader::{Notes, Range, Section};
use super::resolved::{number, text, vector};
use crate::failure::Failure;
use crate::files::snapshot::Float;
use crate::files::{self, regular};
use crate::messages::{number as in_message, short};
use crate::mistake::{Mistake, Mistakes};
use fmm::GridDevice;
use resolution::MOST;
pub use resolution::Resolution;
pub use steps::Steps;
pub use verify::VelocityCheck;

/// Fields on a grid that a run is asked for, with defaults filled in and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct GridScenario {
    /// Text of the file that it was read from.
    pub text: String,
    /// A line for people.
    pub title: String,
    /// Lower corner of the domain.
    pub corner: [f64; 3],
    /// Its side.
    pub side: f64,
    /// Which cells there are.
    pub resolution: Resolution,
    /// What is solved for; its parts add up.
    pub vorticity: Vec<Origin>,
    /// The component of it that is solved for alone.
    pub component: Option<usize>,
    /// The inflow and the bodies of a flow that goes on.
    pub conditions: Conditions,
    /// How.
    pub solver: Solver,
    /// Where.
    pub device: GridDevice,
    /// Run directory.
    pub directory: PathBuf,
    /// Kinds of files.
    pub formats: Vec<Format>,
    /// What they hold.
    pub fields: Vec<GridField>,
    /// Of VTKHDF.
    pub precision: Float,
    /// Steps, for a flow that goes on.
    pub steps: Option<Steps>,
}

/// A part of the vorticity.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// A ring whose stream function is known.
    Ring(Ring),
    /// A ring that moves by itself.
    Gaussian(GaussianRing),
    /// A table: x, y, z, wx, wy, wz of cells of a uniform grid of so many cells a side.
    File(PathBuf, u32),
}

/// Kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For ParaView and VTK.
    Vtkhdf,
    /// A row a cell.
    Csv,
}

impl Format {
    const NAMES: [(&'static str, Format); 2] = [("vtkhdf", Format::Vtkhdf), ("csv", Format::Csv)];
}

/// What files hold of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridField {
    /// ω.
    Vorticity,
    /// Ψ.
    Stream,
    /// u = ∇ × Ψ.
    Velocity,
}

impl GridField {
    const NAMES: [(&'static str, GridField); 3] =
        [("vorticity", GridField::Vorticity), ("stream", GridField::Stream), ("velocity", GridField::Velocity)];

    /// The name in scenarios and files.
    pub fn name(self) -> &'static str {
        GridField::NAMES[self as usize].0
    }
}

/// Models of `[[vorticity]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ring,
    VortexRing,
    File,
}

const KINDS: [(&str, Kind); 3] = [("ring", Kind::Ring), ("vortex-ring", Kind::VortexRing), ("file", Kind::File)];

/// The exit code of a file that is not there.
const MISSING_FILE: u8 = 66;

/// Names of [`Green`].
const GREENS: [(&str, Green); 2] = [("singular", Green::Singular), ("regularised", Green::Regularised)];

impl GridScenario {
    /// The tables that the vorticity is read from.
    pub fn inputs(&self) -> Vec<&Path> {
        let files = self.vorticity.iter().filter_map(|part| match part {
            Origin::File(path, _) => Some(path.as_path()),
            Origin::Ring(_) | Origin::Gaussian(_) => None,
        });
        files.collect()
    }

    /// Reads a scenario that has a `[grid]`; `None` for one of particles.
    ///
    /// # Errors
    /// Those of [`Scenario::load`](super::Scenario::load).
    pub fn load(path: &Path, sets: &[Override]) -> Result<Option<GridScenario>, Failure> {
        let text = super::file_text(path)?;
        Ok(GridScenario::parse(&path.display().to_string(), text, path.parent(), sets)?)
    }

    /// Reads it from a text.
    ///
    /// # Errors
    /// All mistakes, each with its place in `name` or in a `--set` option.
    pub fn parse(
        name: &str,
        text: String,
        folder: Option<&Path>,
        sets: &[Override],
    ) -> Result<Option<GridScenario>, Mistakes> {
        GridScenario::read(name, text, folder, sets, |_| true)
    }

    /// Reads the resolved scenario of a checkpoint, whose vorticity needs no files any more.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), but for files that are not there.
    pub fn parse_resumed(name: &str, text: String, sets: &[Override]) -> Result<Option<GridScenario>, Mistakes> {
        // Checkpoints that are older than 2026-11-24 have `center` by its other name, which no user can mend in them.
        let text = text.replace("centre =", "center =").replace("centre=", "center=");
        GridScenario::read(name, text, None, sets, |mistake| mistake.code != MISSING_FILE)
    }

    fn read(
        name: &str,
        text: String,
        folder: Option<&Path>,
        sets: &[Override],
        counts: impl Fn(&Mistake) -> bool,
    ) -> Result<Option<GridScenario>, Mistakes> {
        let mut gridded = true;
        let scenario = super::read_sources(name, &text, sets, counts, |notes, root| {
            gridded = super::is_gridded(root);
            gridded.then(|| read(notes, root, folder, name))?
        });
        match scenario {
            // What is wrong with it is reported where it is read as one of particles.
            _ if !gridded => Ok(None),
            Ok(s) => Ok(Some(GridScenario { text, ..s })),
            Err(problems) => Err(problems),
        }
    }

    /// Notes every key that is known.
    pub(super) fn note_keys(notes: &Notes, root: &Item) {
        read(notes, root, None, "keys.toml");
    }

    /// The rings, where there is nothing else: then Ψ and u are known.
    pub fn rings(&self) -> Option<Vec<Ring>> {
        let ring = |o: &Origin| if let Origin::Ring(r) = o { Some(*r) } else { None };
        self.vorticity.iter().map(ring).collect()
    }

    /// The scenario with defaults and derived values.
    pub fn resolved(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write_resolved(&mut out);
        out
    }

    fn write_resolved(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "# Every value of this run, defaults and derived ones included.")?;
        writeln!(out, "title = {}", text(&self.title))?;
        writeln!(out, "\n[grid]\ncorner = {}\nside = {}", vector(self.corner), number(self.side))?;
        match self.resolution {
            Resolution::Uniform(n) => writeln!(out, "n = {n}")?,
            Resolution::Adapted(coarsest, t) => {
                writeln!(out, "coarsest = {coarsest}\nfinest = {}", coarsest << t.finest)?;
                writeln!(out, "refinement = {}\ncompression = {}", number(t.refinement), number(t.compression))?;
            }
        }
        if let Some(component) = self.component {
            writeln!(out, "component = {}", text(resolution::COMPONENTS[component].0))?;
        }
        for origin in &self.vorticity {
            match origin {
                Origin::Ring(r) => {
                    writeln!(out, "\n[[vorticity]]\nmodel = \"ring\"\ncenter = {}", vector(r.center))?;
                    writeln!(out, "axis = {}\nradius = {}", vector(r.axis), number(r.radius))?;
                    writeln!(out, "core = {}\npeak = {}", number(r.core), number(r.peak))?;
                    writeln!(out, "steepness = {}", number(r.steepness))?;
                }
                Origin::Gaussian(r) => {
                    writeln!(out, "\n[[vorticity]]\nmodel = \"vortex-ring\"\ncenter = {}", vector(r.center))?;
                    writeln!(out, "axis = {}\nradius = {}", vector(r.axis), number(r.radius))?;
                    writeln!(out, "core = {}\ncirculation = {}", number(r.core), number(r.circulation))?;
                }
                Origin::File(path, n) => {
                    let path = text(&path.to_string_lossy());
                    writeln!(out, "\n[[vorticity]]\nmodel = \"file\"\npath = {path}\nn = {n}")?;
                }
            }
        }
        bodies::write(&self.conditions, out)?;
        let s = &self.solver;
        let green = GREENS[s.green as usize].0;
        writeln!(out, "\n[solver]\ngreen = {}\ntheta = {}", text(green), number(s.theta))?;
        writeln!(out, "order = {}\nleaf_size = {}\nguard = {}", s.order, s.leaf_size, number(s.guard))?;
        writeln!(out, "correction = {}\nprecision = {}", s.correction, text(s.summed_in().name()))?;
        writeln!(out, "device = {}", text(&self.device.to_string()))?;
        if let Some(split) = s.split {
            writeln!(out, "split = {split}")?;
        }
        if let Some(steps) = &self.steps {
            steps.write_time(out)?;
        }
        writeln!(out, "\n[output]\ndirectory = {}", text(&self.directory.to_string_lossy()))?;
        let names = |all: Vec<&str>| all.into_iter().map(text).collect::<Vec<_>>().join(", ");
        let formats = self.formats.iter().map(|f| Format::NAMES[*f as usize].0).collect();
        writeln!(out, "formats = [{}]", names(formats))?;
        writeln!(out, "fields = [{}]", names(self.fields.iter().map(|f| f.name()).collect()))?;
        let float = FLOATS.iter().find(|(_, f)| *f == self.precision).map_or("f64", |(n, _)| *n);
        writeln!(out, "precision = {}", text(float))?;
        let Some(steps) = &self.steps else { return Ok(()) };
        steps.write_output(out)?;
        steps.verify.map_or(Ok(()), |check| check.write(&steps.clock, out))
    }
}

/// Reads all sections; `None` if a mistake left a hole.
fn read(notes: &Notes, root: &Item, folder: Option<&Path>, name: &str) -> Option<GridScenario> {
    let mut top = Section::new(notes, "", Some(root));
    let stem = Path::new(name).file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let title = top.string("title").unwrap_or_else(|| stem.clone());
    if top.has("particles") {
        let message = "a scenario has particles or a grid".to_string();
        top.mistake("particles", message, "the scenario has a [grid]", None);
        top.item("particles");
    }
    let flows = top.has("time");
    let resolution::Cells { corner, side, resolution, component } = resolution::read(top.section("grid"), flows);
    steps::refuse_without_time(&top);
    let domain = bodies::Domain { corner, side, resolution: &resolution };
    let conditions = bodies::read(notes, &mut top, folder, &domain);
    let vorticity = vorticity(notes, &mut top, folder);
    let (solver, device) = solver(top.section("solver"));
    let time = flows.then(|| top.section("time"));
    let (directory, formats, fields, precision, steps) =
        output(top.section("output"), &stem, time, (&domain, conditions.as_ref()));
    let check =
        verify::read(&mut top, steps.as_ref().and_then(|s| s.as_ref()).map(|s| (&s.clock, s.diagnostics_every)));
    top.close();
    Some(GridScenario {
        text: String::new(),
        title,
        corner,
        side,
        resolution: resolution?,
        vorticity: vorticity?,
        component,
        conditions: conditions?,
        solver,
        device,
        directory,
        formats,
        fields,
        precision,
        steps: steps?.map(|steps| Steps { verify: check, ..steps }),
    })
}

fn vorticity(notes: &Notes, top: &mut Section<'_>, folder: Option<&Path>) -> Option<Vec<Origin>> {
    let Some(item) = top.item("vorticity") else {
        if top.has("bodies") {
            // They make their own.
            return Some(vec![]);
        }
        let help = "add at least one part, for example:\n[[vorticity]]\nmodel = \"ring\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.125";
        notes.add(None, "the scenario has a [grid] and no [[vorticity]]".into(), "", Some(help.into()));
        return None;
    };
    let Value::Array(list) = &item.value else {
        let help = "each part has its own header in double brackets: [[vorticity]]";
        let message = format!("'vorticity' is {}", item.value.kind());
        notes.add(Some(&item.span), message, "a list of parts", Some(help.into()));
        return None;
    };
    if list.is_empty() {
        notes.add(Some(&item.span), "'vorticity' is empty".into(), "at least one part is needed", None);
    }
    let read = |(i, item)| origin(Section::new(notes, format!("vorticity.{i}"), Some(item)), folder);
    list.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn origin(mut s: Section<'_>, folder: Option<&Path>) -> Option<Origin> {
    let Some(kind) = s.choice("model", &KINDS) else {
        if !s.has("model") {
            s.missing("model", "one of ring, vortex-ring, file");
        }
        return None;
    };
    let origin = match kind {
        Kind::Ring => ring(&mut s).map(Origin::Ring),
        Kind::VortexRing => vortex_ring(&mut s).map(Origin::Gaussian),
        Kind::File => file(&mut s, folder),
    };
    s.close();
    origin
}

/// Center, direction of the axis, radius and core of a ring.
fn circle(s: &mut Section<'_>, core: f64) -> Option<([f64; 3], [f64; 3], f64, f64)> {
    let center = s.numbers("center");
    let axis = s.numbers("axis").unwrap_or([0.0, 0.0, 1.0]);
    let radius = s.number("radius", Range::SIDE);
    let given = s.number("core", Range::SIDE);
    for (key, help) in [
        ("center", "where the ring is, for example center = [0.5, 0.5, 0.5]"),
        ("radius", "for example radius = 0.125"),
    ] {
        if !s.has(key) {
            s.missing(key, help);
        }
    }
    let length = axis.iter().fold(0.0f64, |l, a| l.hypot(*a));
    if length == 0.0 || !length.is_finite() {
        s.mistake("axis", format!("{} has no direction", s.full("axis")), "three numbers that are not all 0", None);
        return None;
    }
    let core = if s.has("core") { given? } else { core * radius? };
    if core > radius? {
        let message = format!("{} = {core} is above the radius", s.full("core"));
        s.mistake("core", message, format!("allowed: to {}, the radius", in_message(radius?)), None);
        return None;
    }
    Some((center?, axis.map(|a| a / length), radius?, core))
}

/// Sees that the vorticity, `each` times the value of a key, has squares that are numbers.
fn sized(s: &Section<'_>, key: &str, value: f64, each: f64) {
    let [least, most] = [1e-100, 1e100].map(|vorticity| vorticity / each);
    if value == 0.0 || (least..=most).contains(&value.abs()) {
        return;
    }
    let message = format!("{} = {} is outside its range", s.full(key), in_message(value));
    let sizes = format!("allowed with this core: sizes from {} to {}, and 0", short(least), short(most));
    s.mistake(key, message, sizes, None);
}

fn ring(s: &mut Section<'_>) -> Option<Ring> {
    let circle = circle(s, 1.0);
    let peak = s.number("peak", Range::FINITE).unwrap_or(1.0);
    let steepness = s.number("steepness", Range::STEEPNESS).unwrap_or(20.0);
    let (center, axis, radius, core) = circle?;
    // In the middle of the core.
    sized(s, "peak", peak, 4.0 * steepness / (core * core));
    Some(Ring { center, axis, radius, core, peak, steepness })
}

fn vortex_ring(s: &mut Section<'_>) -> Option<GaussianRing> {
    let circle = circle(s, 0.2);
    let circulation = s.number("circulation", Range::FINITE).unwrap_or(1.0);
    let (center, axis, radius, core) = circle?;
    sized(s, "circulation", circulation, 1.0 / (PI * core * core));
    Some(GaussianRing { center, axis, radius, core, circulation })
}

fn file(s: &mut Section<'_>, folder: Option<&Path>) -> Option<Origin> {
    let path = s.string("path");
    let n = s.integer("n", 1, MOST);
    for (key, help) in [
        ("path", "a CSV or NumPy table with the columns x, y, z, wx, wy, wz"),
        ("n", "the cells a side of the uniform grid whose centers the rows are, for example n = 64"),
    ] {
        if !s.has(key) {
            s.missing(key, help);
        }
    }
    let given = path?;
    let path = folder.map_or_else(|| PathBuf::from(&given), |f| f.join(&given));
    if !files::Kind::of(&path).is_some_and(files::Kind::is_table) {
        let message = format!("{} = \"{given}\" is no table", s.full("path"));
        let label = format!("allowed: files that end in {}", files::Kind::endings("", files::Kind::is_table));
        s.mistake("path", message, label, None);
    } else if let Some(kind) = regular::special_at(&path) {
        s.mistake("path", format!("{}: is {kind}", path.display()), "not a regular file", None);
    } else if !path.is_file() {
        s.absent("path", MISSING_FILE, format!("{}: no such file", path.display()), "not found", None);
    }
    Some(Origin::File(path, n? as u32))
}

fn solver(mut s: Section<'_>) -> (Solver, GridDevice) {
    let usual = Solver::default();
    let precisions = [Precision::Auto, Precision::F32, Precision::F64].map(|p| (p.name(), p));
    let solver = Solver {
        green: s.choice("green", &GREENS).unwrap_or_default(),
        theta: s.number("theta", Range::THETA_GRID).unwrap_or(usual.theta),
        order: s.integer("order", 1, MAX_ORDER as i64).map_or(usual.order, |p| p as usize),
        leaf_size: s.integer("leaf_size", 1, 1_000_000).map_or(usual.leaf_size, |n| n as usize),
        split: s.integer("split", 0, 1_000_000).map(|n| n as usize),
        guard: s.number("guard", Range::GUARD).unwrap_or(usual.guard),
        correction: s.boolean("correction").unwrap_or(false),
        precision: s.choice("precision", &precisions).unwrap_or_default(),
    };
    if solver.precision == Precision::F32 && solver.order > MAX_SINGLE_ORDER {
        let message = format!("solver.order = {} does not go with solver.precision = \"f32\"", solver.order);
        s.mistake("order", message, format!("allowed in single precision: 1 to {MAX_SINGLE_ORDER}"), None);
    }
    let device = s.parsed("device", GridDevice::ALLOWED).unwrap_or_default();
    s.close();
    (solver, device)
}

/// What `[output]` says; steps, if there is a `[time]`.
fn output(
    mut s: Section<'_>,
    stem: &str,
    time: Option<Section<'_>>,
    (domain, conditions): (&bodies::Domain<'_>, Option<&Conditions>),
) -> (PathBuf, Vec<Format>, Vec<GridField>, Float, Option<Option<Steps>>) {
    let directory = s.string("directory").unwrap_or_else(|| format!("out/{stem}"));
    if directory.is_empty() {
        s.mistake("directory", "output.directory is empty".into(), "name a folder", None);
    }
    let formats = s.choices("formats", &Format::NAMES).unwrap_or_else(|| vec![Format::Vtkhdf]);
    let fields = s.choices("fields", &GridField::NAMES);
    let fields = fields.unwrap_or_else(|| GridField::NAMES.map(|(_, f)| f).to_vec());
    let precision = s.choice("precision", &FLOATS).unwrap_or(Float::F32);
    let steps = time.map_or(Some(None), |time| Steps::read(time, &mut s, domain, conditions).map(Some));
    s.close();
    (directory.into(), formats, fields, precision, steps)
}
