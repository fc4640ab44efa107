//! From sections and keys to a [`Scenario`]: one function a section, defaults and ranges beside each key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fmm_core::{Method, Precision, Settings, Softening};

use super::clock::Clock;
use super::document::{Item, Value};
use super::reader::{Notes, Range, Section};
use super::{Action, Device, FIELDS, FLOATS, Group, Law, Model, Scenario, Velocities, Verify};
use crate::files::snapshot::{Field, Float, Layout};
use crate::integrator::Integrator;
use crate::units::{Dimension, System};

/// Names of the models.
pub(super) const MODELS: [(&str, Kind); 3] =
    [("plummer", Kind::Plummer), ("uniform-sphere", Kind::UniformSphere), ("file", Kind::File)];

/// A model without its parameters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Plummer,
    UniformSphere,
    File,
}

/// Particles of one run: what a 32-bit index can number.
const MOST: i64 = u32::MAX as i64 - 1;

/// Reads all sections; `None` if a mistake left a hole.
pub(super) fn read(notes: &Notes, root: &Item, folder: Option<&Path>, name: &str) -> Option<Scenario> {
    let mut top = Section::new(notes, "", Some(root));
    let title = top.string("title");
    let seed = run(top.section("run"));
    let units = units(top.section("units"));
    let (law, softening) = force(top.section("force"), units);
    let groups = particles(notes, &mut top, units, law, folder);
    boundary(top.section("boundary"));
    let (settings, device) = solver(top.section("solver"), softening);
    let time = time(top.section("time"), units);
    let stem = Path::new(name).file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let output = output(top.section("output"), units, law, time.as_ref(), &stem);
    let usual = output.as_ref().map(|o| o.diagnostics_every);
    let asked = top.has("verify");
    let verify = verify(top.section("verify"), units, time.as_ref(), usual).filter(|_| asked);
    top.close();
    let (Time { integrator, clock, steps }, output, groups) = (time?, output?, groups?);
    Some(Scenario {
        text: String::new(),
        title: title.unwrap_or(stem),
        seed,
        units,
        law,
        groups,
        settings,
        device,
        integrator,
        clock,
        steps: steps?,
        directory: output.directory,
        snapshot_every: output.every,
        diagnostics_every: output.diagnostics_every,
        layout: output.layout,
        checkpoint_wall: output.checkpoint_wall,
        verify,
    })
}

fn run(mut s: Section<'_>) -> u64 {
    if let Some(d) = s.integer("dimensions", 2, 3).filter(|&d| d != 3) {
        let label = "only 3 dimensions are available in this version";
        s.fault("dimensions", format!("run.dimensions = {d} is not available"), label, None);
    }
    let seed = s.integer("seed", 0, i64::MAX).unwrap_or(0);
    s.close();
    seed as u64
}

fn units(mut s: Section<'_>) -> System {
    let system = s.choice("system", &System::NAMES).unwrap_or(System::Nbody);
    s.close();
    system
}

fn force(mut s: Section<'_>, units: System) -> (Law, Softening) {
    let law = s.choice("law", &Law::NAMES).unwrap_or_default();
    let (constant, others) = match law {
        Law::Gravity => (units.gravity(), "nbody, si, astro or solar"),
        Law::Coulomb => (units.electric(), "nbody, si or md"),
    };
    if constant.is_none() {
        let message = format!("force.law = \"{}\" does not go with units.system = \"{}\"", law.name(), units.name());
        s.fault("law", message, "no constant in these units", Some(format!("choose units.system = {others}")));
    }
    let mut k = s.section("softening");
    type Kernel = fn(f64) -> Softening;
    let kernels: [(&str, Kernel); 4] = [
        ("none", |_| Softening::None),
        ("plummer", Softening::Plummer),
        ("spline", Softening::Spline),
        ("p1", Softening::P1),
    ];
    let kernel = k.choice("kernel", &kernels);
    let length = k.quantity("length", Dimension::Length, units, Range::NOT_NEGATIVE);
    let softening = match (kernel, length) {
        (Some(kernel), Some(length)) => kernel(length),
        (Some(kernel), None) => {
            if kernel(1.0) != Softening::None && !k.has("length") {
                k.missing("length", "for example softening = { kernel = \"plummer\", length = 0.01 }");
            }
            Softening::None
        }
        (None, Some(_)) if !k.has("kernel") => {
            k.missing("kernel", "one of none, plummer, spline, p1");
            Softening::None
        }
        _ => Softening::None,
    };
    k.close();
    s.close();
    (law, softening)
}

fn particles(
    notes: &Notes,
    top: &mut Section<'_>,
    units: System,
    law: Law,
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
    let read = |(i, item)| group(Section::new(notes, format!("particles.{i}"), Some(item)), units, law, folder);
    list.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn group(mut s: Section<'_>, units: System, law: Law, folder: Option<&Path>) -> Option<Group> {
    let position = s.vector("position", Dimension::Length, units).unwrap_or_default();
    let velocity = s.vector("velocity", Dimension::Velocity, units).unwrap_or_default();
    let Some(kind) = s.choice("model", &MODELS) else {
        if !s.has("model") {
            s.missing("model", "one of plummer, uniform-sphere, file");
        }
        // The other keys cannot be judged without a model.
        return None;
    };
    let model = match kind {
        Kind::Plummer => plummer(&mut s, units, law),
        Kind::UniformSphere => uniform_sphere(&mut s, units, law),
        Kind::File => file(&mut s, folder),
    };
    s.close();
    Some(Group { model: model?, position, velocity })
}

fn count(s: &mut Section<'_>) -> Option<usize> {
    if !s.has("n") {
        s.missing("n", "the number of particles, for example n = 10000");
    }
    s.integer("n", 1, MOST).map(|n| n as usize)
}

fn plummer(s: &mut Section<'_>, units: System, law: Law) -> Option<Model> {
    let n = count(s);
    let mass = s.quantity("mass", Dimension::Mass, units, Range::POSITIVE).unwrap_or(1.0);
    let scale = s.quantity("scale_radius", Dimension::Length, units, Range::POSITIVE);
    let virial = s.quantity("virial_radius", Dimension::Length, units, Range::POSITIVE);
    if s.has("scale_radius") && s.has("virial_radius") {
        let help = "scale_radius = 3π/16 · virial_radius; Hénon units are mass = 1, virial_radius = 1";
        s.fault("virial_radius", "scale_radius is given as well".into(), "give one of the two", Some(help.into()));
    }
    if law == Law::Coulomb {
        let help = "use model = \"uniform-sphere\" or \"file\" with force.law = \"coulomb\"";
        let message = "a Plummer sphere is in equilibrium under gravity only".to_string();
        s.fault("model", message, "force.law is \"coulomb\"", Some(help.into()));
    }
    // R_v = G M²/(2|W|) with W = −3π/32 G M²/a.
    let henon = virial.map(|r| r * 3.0 * std::f64::consts::PI / 16.0);
    Some(Model::Plummer { n: n?, mass, scale_radius: scale.or(henon).unwrap_or(1.0) })
}

fn uniform_sphere(s: &mut Section<'_>, units: System, law: Law) -> Option<Model> {
    let n = count(s);
    let mass = s.quantity("mass", Dimension::Mass, units, Range::POSITIVE).unwrap_or(1.0);
    let radius = s.quantity("radius", Dimension::Length, units, Range::POSITIVE).unwrap_or(1.0);
    let charge = s.quantity("charge", Dimension::Charge, units, Range::FINITE);
    let ratio = s.number("virial_ratio", Range::VIRIAL);
    let dispersion = s.quantity("velocity_dispersion", Dimension::Velocity, units, Range::NOT_NEGATIVE);
    match law {
        Law::Gravity if s.has("charge") => {
            s.fault("charge", "a charge has no effect under gravity".into(), "force.law is \"gravity\"", None);
        }
        Law::Coulomb if !s.has("charge") => {
            s.missing("charge", "the total charge of the group, for example charge = 1")
        }
        Law::Coulomb if s.has("virial_ratio") => {
            let help = "give velocity_dispersion instead";
            let message = "virial_ratio needs an attractive force".to_string();
            s.fault("virial_ratio", message, "force.law is \"coulomb\"", Some(help.into()));
        }
        _ => {}
    }
    if s.has("virial_ratio") && s.has("velocity_dispersion") {
        let message = "virial_ratio is given as well".to_string();
        s.fault("velocity_dispersion", message, "give one of the two", None);
    }
    let velocities = match dispersion {
        Some(sigma) => Velocities::Dispersion(sigma),
        None => Velocities::VirialRatio(ratio.unwrap_or(0.0)),
    };
    Some(Model::UniformSphere { n: n?, mass, charge: charge.unwrap_or(0.0), radius, velocities })
}

fn file(s: &mut Section<'_>, folder: Option<&Path>) -> Option<Model> {
    let Some(given) = s.string("path") else {
        if !s.has("path") {
            s.missing("path", "a .csv table or a .hdf snapshot");
        }
        return None;
    };
    let path = folder.unwrap_or(Path::new("")).join(&given);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    if !matches!(extension, "csv" | "hdf") {
        let help = "a table is named .csv, a snapshot .hdf";
        s.fault("path", format!("{}: unknown kind of file", path.display()), "not .csv or .hdf", Some(help.into()));
    } else if !path.is_file() {
        let help = "the path is relative to the folder of the scenario";
        s.absent("path", 66, format!("{}: no such file", path.display()), "no such file", Some(help.into()));
    }
    Some(Model::File { path })
}

fn boundary(mut s: Section<'_>) {
    if s.choice("kind", &[("open", false), ("periodic", true)]) == Some(true) {
        let label = "periodic boxes are not available in this version";
        s.fault(
            "kind",
            "boundary.kind = \"periodic\" is not available".into(),
            label,
            Some("use kind = \"open\"".into()),
        );
    }
    s.close();
}

fn solver(mut s: Section<'_>, softening: Softening) -> (Settings, Device) {
    let methods = [Method::Auto, Method::Direct, Method::Treecode, Method::Fmm].map(|m| (m.name(), m));
    let precisions = [Precision::Auto, Precision::F32, Precision::F64].map(|p| (p.name(), p));
    let usual = Settings::default();
    let settings = Settings {
        softening,
        method: s.choice("method", &methods).unwrap_or_default(),
        tolerance: s.number("tolerance", Range::TOLERANCE).unwrap_or(usual.tolerance),
        precision: s.choice("precision", &precisions).unwrap_or_default(),
        order: s.integer("order", 1, Settings::MAX_ORDER as i64).map(|p| p as usize),
        theta: s.number("theta", Range::THETA),
        leaf_size: s.integer("leaf_size", 1, 1_000_000).map(|n| n as usize),
    };
    let cuda = |v: &Value| matches!(v, Value::String(d) if d == "cuda" || d.starts_with("cuda:"));
    let device = if s.item("device").is_some_and(|i| cuda(&i.value)) {
        let help = "device = \"auto\" or \"cpu\" runs on the cores of this machine";
        let message = "solver.device: no GPU can be used".to_string();
        s.absent("device", 69, message, "this version has no GPU kernels", Some(help.into()));
        Device::Auto
    } else {
        s.choice("device", &Device::NAMES).unwrap_or_default()
    };
    s.close();
    (settings, device)
}

/// What `[time]` asks for.
struct Time {
    integrator: Integrator,
    clock: Clock,
    /// `None` where the end is no whole number of steps.
    steps: Option<u64>,
}

fn time(mut s: Section<'_>, units: System) -> Option<Time> {
    let integrator = s.choice("integrator", &Integrator::NAMES).unwrap_or_default();
    let dt = s.quantity("dt", Dimension::Time, units, Range::POSITIVE);
    let end = s.quantity("end", Dimension::Time, units, Range::NOT_NEGATIVE);
    for (key, help) in [
        ("dt", "the length of a step, for example dt = 0.001"),
        ("end", "the time at which the run ends; end = 0 writes the initial snapshot only"),
    ] {
        if !s.has(key) {
            s.missing(key, help);
        }
    }
    let time = dt.map(|dt| {
        let clock = Clock::new(dt);
        let steps = end.and_then(|end| clock.steps(end).map_err(|ratio| undivided(&s, "end", &clock, end, ratio)).ok());
        Time { integrator, clock, steps }
    });
    s.close();
    time
}

/// Reports that `key` is no whole number of steps, with the nearest values that are.
fn undivided(s: &Section<'_>, key: &str, clock: &Clock, interval: f64, ratio: f64) {
    let full = s.full(key);
    let message = format!("time.dt = {} does not divide {full} = {interval}", clock.dt);
    let (below, above) = (ratio.floor(), ratio.ceil());
    let help = if ratio > 1e15 {
        "a run has at most 2^53 steps; choose a larger dt".to_string()
    } else if below < 1.0 {
        format!("{full} must be at least one step: use {full} = {}, or a smaller dt", clock.dt)
    } else {
        let round = |steps: f64| clock.time(steps as u64);
        format!(
            "use {full} = {} or {} ({below} or {above} steps), or time.dt = {} or {}",
            round(below),
            round(above),
            interval / below,
            interval / above
        )
    };
    s.fault(key, message, format!("{ratio:.6} steps"), Some(help));
}

/// What `[output]` asks for, in steps.
struct Output {
    directory: PathBuf,
    every: u64,
    diagnostics_every: u64,
    layout: Layout,
    checkpoint_wall: Duration,
}

fn output(mut s: Section<'_>, units: System, law: Law, time: Option<&Time>, stem: &str) -> Option<Output> {
    let directory = s.string("directory").unwrap_or_else(|| format!("out/{stem}"));
    if directory.is_empty() {
        s.fault("directory", "output.directory is empty".into(), "name a folder", None);
    }
    let every = cadence(&mut s, "every", units, time);
    let diagnostics_every = cadence(&mut s, "diagnostics_every", units, time);
    let fields = s.choices("fields", &FIELDS);
    if law == Law::Gravity && fields.as_ref().is_some_and(|f| f.contains(&Field::Charge)) {
        s.fault("fields", "output.fields names \"charge\"".into(), "no charges under gravity", None);
    }
    let wanted = |f: &Field| match &fields {
        Some(named) => named.contains(f),
        None => law == Law::Coulomb || *f != Field::Charge,
    };
    let fields = Field::ALL.into_iter().filter(wanted).collect();
    let precision = s.choice("precision", &FLOATS).unwrap_or(Float::F64);
    let checkpoint_wall = wall(&mut s, "checkpoint_wall").unwrap_or(Duration::from_secs(600));
    s.close();
    let every = every?.unwrap_or(time?.steps?.max(1));
    let diagnostics_every = diagnostics_every?.unwrap_or(every);
    let layout = Layout { fields, precision };
    Some(Output { directory: directory.into(), every, diagnostics_every, layout, checkpoint_wall })
}

/// A span of wall time, as `"10min"`.
fn wall(s: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    let text = s.string(key)?;
    match humantime::parse_duration(&text) {
        Ok(span) if span >= Duration::from_secs(1) => return Some(span),
        Ok(_) => {
            s.fault(key, format!("{} = \"{text}\" is outside its range", s.full(key)), "allowed: 1s or more", None)
        }
        Err(e) => {
            let message = format!("{} = \"{text}\" cannot be read as a span of wall time", s.full(key));
            s.fault(key, message, e.to_string(), Some("for example \"10min\" or \"1h 30m\"".into()));
        }
    }
    None
}

/// `[verify]`; `usual` is the cadence of the diagnostics.
fn verify(mut s: Section<'_>, units: System, time: Option<&Time>, usual: Option<u64>) -> Option<Verify> {
    let sample = s.integer("sample", 1, 1_000_000).unwrap_or(256) as usize;
    let every = cadence(&mut s, "every", units, time);
    let action = s.choice("action", &Action::NAMES).unwrap_or_default();
    s.close();
    Some(Verify { sample, every: every?.or(usual)?, action })
}

/// Steps between outputs: `Some(None)` where the key is absent, `None` where it is wrong.
fn cadence(s: &mut Section<'_>, key: &'static str, units: System, time: Option<&Time>) -> Option<Option<u64>> {
    let interval = s.quantity(key, Dimension::Time, units, Range::POSITIVE);
    if !s.has(key) {
        return Some(None);
    }
    let (interval, clock) = (interval?, &time?.clock);
    match clock.steps(interval) {
        Ok(steps) if steps > 0 => Some(Some(steps)),
        Ok(_) => {
            undivided(s, key, clock, interval, interval / clock.dt);
            None
        }
        Err(ratio) => {
            undivided(s, key, clock, interval, ratio);
            None
        }
    }
}
