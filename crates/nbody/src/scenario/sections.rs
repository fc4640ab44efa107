//! From sections and keys to a [`Scenario`]: one function a section, defaults and ranges beside each key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fmm_core::{Method, Precision, Settings, Softening};

use super::clock::Clock;
use super::document::{Item, Value};
use super::external::external;
use super::groups::particles;
use super::reader::{Notes, Range, Section};
use super::{Action, FIELDS, FLOATS, Law, Scenario, Verify};
use crate::device::Device;
use crate::files::snapshot::{Field, Float, Layout};
use crate::integrator::Integrator;
use crate::told::number;
use crate::units::{Dimension, System};

/// Reads all sections; `None` if a mistake left a hole.
pub(super) fn read(notes: &Notes, root: &Item, folder: Option<&Path>, name: &str) -> Option<Scenario> {
    let mut top = Section::new(notes, "", Some(root));
    let title = top.string("title");
    let seed = run(top.section("run"));
    let units = units(top.section("units"));
    let (law, softening) = force(top.section("force"), units);
    let external = external(top.section("external"), units, law);
    let groups = particles(notes, &mut top, units, law, folder);
    boundary(top.section("boundary"));
    let (settings, device) = solver(top.section("solver"), softening);
    let time = time(top.section("time"), units, softening, || shortest_interval(root, units));
    let stem = Path::new(name).file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let output = output(top.section("output"), units, law, time.as_ref(), &stem);
    let usual = output.as_ref().map(|o| o.diagnostics_every);
    let asked = top.has("verify");
    let verify = verify(top.section("verify"), units, time.as_ref(), usual).filter(|_| asked);
    top.close();
    let (Time { integrator, clock, auto, steps }, output, groups) = (time?, output?, groups?);
    Some(Scenario {
        text: String::new(),
        title: title.unwrap_or(stem),
        seed,
        units,
        law,
        external,
        groups,
        settings,
        device,
        integrator,
        clock,
        auto_step: auto,
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
    let device = s.parsed("device", Device::ALLOWED).unwrap_or_default();
    s.close();
    (settings, device)
}

/// What `[time]` asks for.
struct Time {
    integrator: Integrator,
    clock: Clock,
    /// η of `dt = "auto"`: the clock then has steps of the shortest interval.
    auto: Option<f64>,
    /// `None` where the end is no whole number of steps.
    steps: Option<u64>,
}

/// Intervals beside `time.end` that are to be whole numbers of steps.
const INTERVALS: [(&str, &str); 3] = [("output", "every"), ("output", "diagnostics_every"), ("verify", "every")];

/// The shortest interval that the scenario gives. Mistakes are told where the intervals are read.
fn shortest_interval(root: &Item, units: System) -> Option<f64> {
    let notes = Notes::default();
    let mut top = Section::new(&notes, "", Some(root));
    let mut given = |section, key| top.section(section).quantity(key, Dimension::Time, units, Range::POSITIVE);
    INTERVALS.iter().chain(&[("time", "end")]).filter_map(|(s, k)| given(s, k)).min_by(f64::total_cmp)
}

fn time(mut s: Section<'_>, units: System, softening: Softening, shortest: impl Fn() -> Option<f64>) -> Option<Time> {
    let integrator = s.choice("integrator", &Integrator::NAMES).unwrap_or_default();
    let automatic = s.item("dt").is_some_and(|i| matches!(&i.value, Value::String(t) if t == "auto"));
    let dt = match automatic {
        // All intervals are steps of the shortest one, which the acceleration will divide.
        true => Some(shortest().unwrap_or(1.0)),
        false => s.quantity("dt", Dimension::Time, units, Range::POSITIVE),
    };
    let eta = s.number("eta", Range::ETA);
    if s.has("eta") && !automatic {
        let help = "the number scales dt = \"auto\" only";
        s.fault("eta", "time.eta has no effect on a given time.dt".into(), "time.dt is given", Some(help.into()));
    }
    if automatic && super::softening_length(softening) == 0.0 {
        let help = "give force.softening, or a number for time.dt";
        let message = "time.dt = \"auto\" needs a softening length".to_string();
        s.fault("dt", message, "dt = eta sqrt(softening.length/acceleration)", Some(help.into()));
    }
    let auto = automatic.then(|| eta.unwrap_or(0.1));
    let end = s.quantity("end", Dimension::Time, units, Range::NOT_NEGATIVE);
    for (key, help) in [
        ("dt", "the length of a step, for example dt = 0.001, or dt = \"auto\""),
        ("end", "the time at which the run ends; end = 0 writes the initial snapshot only"),
    ] {
        if !s.has(key) {
            s.missing(key, help);
        }
    }
    let time = dt.map(|dt| {
        let clock = Clock::new(dt);
        let time = Time { integrator, clock, auto, steps: None };
        let steps = end.and_then(|end| clock.steps(end).map_err(|ratio| undivided(&s, "end", &time, end, ratio)).ok());
        Time { steps, ..time }
    });
    s.close();
    time
}

/// Reports that `key` is no whole number of steps, with the nearest values that are.
fn undivided(s: &Section<'_>, key: &str, time: &Time, interval: f64, ratio: f64) {
    let (full, clock) = (s.full(key), &time.clock);
    let (dt, given) = (number(clock.dt), number(interval));
    let message = match time.auto {
        Some(_) => format!("{full} = {given} is no multiple of the shortest interval, {dt}"),
        None => format!("time.dt = {dt} does not divide {full} = {given}"),
    };
    let (below, above) = (ratio.floor(), ratio.ceil());
    let round = |steps: f64| number(clock.time(steps as u64));
    let help = if ratio > 1e15 {
        "a run has at most 2^53 steps; choose a larger dt".to_string()
    } else if time.auto.is_some() {
        let (below, above) = (round(below.max(1.0)), round(above));
        format!("with dt = \"auto\" all intervals are multiples of the shortest: use {full} = {below} or {above}")
    } else if below < 1.0 {
        format!("{full} must be at least one step: use {full} = {dt}, or a smaller dt")
    } else {
        format!(
            "use {full} = {} or {} ({below} or {above} steps), or time.dt = {} or {}",
            round(below),
            round(above),
            number(interval / below),
            number(interval / above)
        )
    };
    let unit = if time.auto.is_some() { "intervals" } else { "steps" };
    let ratio = if ratio > 1e15 { number(ratio) } else { format!("{ratio:.6}") };
    s.fault(key, message, format!("{ratio} {unit}"), Some(help));
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
    let every = every?.unwrap_or(time?.steps?);
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
    let (interval, time) = (interval?, time?);
    match time.clock.steps(interval) {
        Ok(steps) if steps > 0 => Some(Some(steps)),
        Ok(_) => {
            undivided(s, key, time, interval, interval / time.clock.dt);
            None
        }
        Err(ratio) => {
            undivided(s, key, time, interval, ratio);
            None
        }
    }
}
