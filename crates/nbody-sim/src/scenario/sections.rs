//! From sections and keys to a [`Scenario`]: one function for each section, with defaults and
//! ranges next to each key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fmm_core::accuracy::{MIXED_FLOOR, f32_floor};
use fmm_core::mesh::Recipe;
use fmm_core::planar::{self, Blob};
use fmm_core::{Boundary, Method, PeriodicBox, Precision, Settings, Softening};

use super::boundary::boundary;
use super::clock::Clock;
use super::document::{Item, Value};
use super::external::external;
use super::groups::particles;
use super::intervals::{Steps, Written, undivided};
use super::law::{Softened, force};
use super::molecular::{short_range, thermostat};
use super::reader::{Notes, Range, Section};
use super::{Action, FIELDS, FLOATS, Law, Scenario, Verify};
use crate::files::snapshot::{Field, Float, Layout};
use crate::integrator::Integrator;
use crate::messages::number;
use crate::units::{Dimension, System};
use fmm::Device;
use fmm::names::{METHODS, PRECISIONS};

/// Reads all sections; `None` if a mistake left a hole.
pub(super) fn read(notes: &Notes, root: &Item, folder: Option<&Path>, name: &str) -> Option<Scenario> {
    let mut top = Section::new(notes, "", Some(root));
    let title = top.string("title");
    let (seed, plane) = run(top.section("run"));
    let units = units(top.section("units"), plane);
    let (law, softened, exclusions) = force(top.section("force"), units, plane, folder);
    let external = external(top.section("external"), units, law, plane);
    let groups = particles(notes, &mut top, units, law, plane, folder);
    let boundary = boundary(top.section("boundary"), units, law, (softened.space, plane), external.is_some());
    let (mut settings, device) = solver(top.section("solver"), &softened, boundary);
    let shortest = boundary.periodic().map(PeriodicBox::shortest);
    let short_range = short_range(top.section("short_range"), units, law, shortest);
    let time = time(top.section("time"), units, law, &softened, || shortest_interval(root, units));
    let dt = time.as_ref().map(|t| t.clock.dt);
    let bath = thermostat(top.section("thermostat"), units, law, shortest, dt);
    let stem = Path::new(name).file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
    let output = output(top.section("output"), units, (law, plane), time.as_ref(), &stem);
    settings.errors = output.as_ref().is_some_and(|o| o.layout.wants(Field::ForceError));
    let usual = output.as_ref().map(|o| o.diagnostics_every);
    let asked = top.has("verify");
    let verify = verify(top.section("verify"), units, time.as_ref(), usual).filter(|_| asked);
    top.close();
    let (Time { integrator, clock, auto, steps, viscosity, .. }, output, groups) = (time?, output?, groups?);
    Some(Scenario {
        text: String::new(),
        title: title.unwrap_or(stem),
        seed,
        units,
        law,
        external,
        groups,
        plane: softened.plane,
        exclusions,
        short_range,
        bath,
        settings,
        device,
        integrator,
        clock,
        viscosity,
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

/// The seed, and whether the run is in the plane.
fn run(mut s: Section<'_>) -> (u64, bool) {
    let plane = s.integer("dimensions", 2, 3) == Some(2);
    let seed = s.integer("seed", 0, i64::MAX).unwrap_or(0);
    s.close();
    (seed as u64, plane)
}

fn units(mut s: Section<'_>, plane: bool) -> System {
    let system = s.choice("system", &System::NAMES).unwrap_or(System::Nbody);
    if plane && system != System::Nbody {
        let message = format!("units.system = \"{}\" has no constants in the plane", system.name());
        s.mistake("system", message, "allowed with run.dimensions = 2: nbody", None);
        return System::Nbody;
    }
    s.close();
    system
}

fn solver(mut s: Section<'_>, softened: &Softened, boundary: Boundary) -> (Settings, Device) {
    let methods = METHODS.map(|m| (m.name(), m));
    let precisions = PRECISIONS.map(|p| (p.name(), p));
    let usual = Settings::default();
    let plane = softened.plane.is_some();
    let method = s.choice("method", &methods).unwrap_or_default();
    if plane && matches!(method, Method::Treecode | Method::Mesh) {
        let message = format!("solver.method = \"{}\" is not available in the plane", method.name());
        s.mistake("method", message, "allowed with run.dimensions = 2: auto, direct, fmm", None);
    } else if method == Method::Mesh && boundary.periodic().is_none() {
        let message = "solver.method = \"mesh\" sums periodic boxes, and space is open".to_string();
        s.mistake("method", message, "give [boundary] kind = \"periodic\" and side, or another method", None);
    }
    let mesh = Recipe::ORDERS;
    let (least, most) = match method {
        Method::Mesh => (*mesh.start(), *mesh.end()),
        _ if plane => (1, planar::MAX_ORDER),
        _ => (1, Settings::MAX_ORDER),
    };
    let theta = if plane { Range::THETA_PLANE } else { Range::THETA };
    let settings = Settings {
        softening: softened.space,
        boundary,
        method,
        tolerance: s.number("tolerance", Range::TOLERANCE).unwrap_or(usual.tolerance),
        precision: s.choice("precision", &precisions).unwrap_or_default(),
        order: s.integer("order", least as i64, most as i64).map(|p| p as usize),
        theta: s.number("theta", theta),
        leaf_size: s.integer("leaf_size", 1, 1_000_000).map(|n| n as usize),
        uniform: None,
        errors: false,
    };
    let precision = settings.precision;
    if plane && precision == Precision::Mixed {
        let message = "solver.precision = \"mixed\" is not available in the plane".to_string();
        s.mistake("precision", message, "allowed with run.dimensions = 2: auto, f32, f64", None);
    }
    let floors = [(Precision::F32, f32_floor(settings.method)), (Precision::Mixed, MIXED_FLOOR)];
    if let Some((_, floor)) = floors.into_iter().find(|f| f.0 == precision && settings.tolerance < f.1) {
        let (name, floor) = (precision.name(), number(floor));
        let message =
            format!("solver.precision = \"{name}\" does not keep solver.tolerance = {}", number(settings.tolerance));
        let help = format!("give precision = \"auto\" or \"f64\", or a tolerance from {floor} on");
        s.mistake("precision", message, format!("sums in {name} keep {floor} at best"), Some(help));
    }
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
    /// How the scenario writes dt.
    dt: Written,
    /// `None` where the end is no whole number of steps.
    steps: Option<u64>,
    viscosity: f64,
}

impl Time {
    fn steps_of(&self) -> Steps<'_> {
        Steps { clock: &self.clock, dt: Some(&self.dt).filter(|_| self.auto.is_none()) }
    }
}

/// The largest ν dt/ε² of vortices in space. Strengths that alternate from particle to particle decay at the rate 2ν/ε², and more where
/// particles are crowded; the Runge-Kutta scheme is stable to 2.78 of it in a step.
const MOST_EXCHANGE: f64 = 1.0;

/// Intervals that must be whole numbers of steps, in addition to `time.end`.
const INTERVALS: [(&str, &str); 3] = [("output", "every"), ("output", "diagnostics_every"), ("verify", "every")];

/// The shortest interval that the scenario gives. Mistakes are reported where the intervals are read.
fn shortest_interval(root: &Item, units: System) -> Option<f64> {
    let notes = Notes::default();
    let mut top = Section::new(&notes, "", Some(root));
    let mut given = |section, key| top.section(section).quantity(key, Dimension::Time, units, Range::POSITIVE);
    INTERVALS.iter().chain(&[("time", "end")]).filter_map(|(s, k)| given(s, k)).min_by(f64::total_cmp)
}

fn time(
    mut s: Section<'_>,
    units: System,
    law: Law,
    softened: &Softened,
    shortest: impl Fn() -> Option<f64>,
) -> Option<Time> {
    let vortices = law == Law::Vortex;
    let usual = if vortices { Integrator::RungeKutta4 } else { Integrator::default() };
    let integrator = s.choice("integrator", &Integrator::NAMES).unwrap_or(usual);
    if integrator.of_flows() != vortices {
        let names = Integrator::NAMES.iter().filter(|(_, i)| i.of_flows() == vortices).map(|(name, _)| *name);
        let label = format!("allowed with this law: {}", names.collect::<Vec<_>>().join(", "));
        let message =
            format!("time.integrator = \"{}\" does not go with force.law = \"{}\"", integrator.name(), law.name());
        s.mistake("integrator", message, label, None);
    }
    let automatic = s.item("dt").is_some_and(|i| matches!(&i.value, Value::String(t) if t == "auto"));
    let dt = match automatic {
        // All intervals are steps of the shortest one, which the acceleration will divide.
        true => Some(shortest().unwrap_or(1.0)),
        false => s.quantity("dt", Dimension::Time, units, Range::POSITIVE),
    };
    let eta = s.number("eta", Range::ETA);
    if s.has("eta") && !automatic {
        let help = "the number scales dt = \"auto\" only";
        s.mistake("eta", "time.eta has no effect on a given time.dt".into(), "time.dt is given", Some(help.into()));
    }
    if automatic && vortices {
        let message = "time.dt = \"auto\" follows from accelerations".to_string();
        s.mistake("dt", message, "vortices have none", Some("give a number for time.dt".into()));
    } else if automatic && softened.length() == 0.0 {
        let help = "give force.softening, or a number for time.dt";
        let message = "time.dt = \"auto\" needs a softening length".to_string();
        s.mistake("dt", message, "dt = eta sqrt(softening.length/acceleration)", Some(help.into()));
    }
    let viscosity = s.number("viscosity", Range::VISCOSITY).unwrap_or(0.0);
    if s.has("viscosity") && !vortices {
        let message = "time.viscosity is for vortices".to_string();
        s.mistake("viscosity", message, "there are none here", Some("set force.law = \"vortex\"".into()));
    } else if viscosity > 0.0 && softened.plane.is_some_and(|blob| !matches!(blob, Blob::Gaussian(core) if core > 0.0))
    {
        let help = "for example softening = { kernel = \"gaussian\", length = 0.1 }";
        let message = "time.viscosity widens Gaussian blobs, and force.softening gives none".to_string();
        s.mistake("viscosity", message, "allowed in the plane: the kernel gaussian with a length", Some(help.into()));
    }
    if let (Some(dt), Softening::P1(core), None) = (dt, softened.space, softened.plane)
        && vortices
        && viscosity * dt / (core * core) > MOST_EXCHANGE
    {
        let most = number(MOST_EXCHANGE * core * core / dt);
        let message = format!("time.viscosity = {} exchanges too much in a step", number(viscosity));
        let label = format!("allowed with this dt and softening: to {most}, that is length²/dt");
        s.mistake("viscosity", message, label, Some("make time.dt smaller, or the softening length larger".into()));
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
        let time = Time { integrator, clock, auto, dt: Written::of(&mut s, "dt", units), steps: None, viscosity };
        let mut wrong = |end, ratio| undivided(&mut s, "end", units, &time.steps_of(), (end, ratio));
        let steps = end.and_then(|end| clock.steps(end).map_err(|ratio| wrong(end, ratio)).ok());
        Time { steps, ..time }
    });
    s.close();
    time
}

/// What `[output]` asks for, in steps.
struct Output {
    directory: PathBuf,
    every: u64,
    diagnostics_every: u64,
    layout: Layout,
    checkpoint_wall: Duration,
}

fn output(
    mut s: Section<'_>,
    units: System,
    (law, plane): (Law, bool),
    time: Option<&Time>,
    stem: &str,
) -> Option<Output> {
    let directory = s.string("directory").unwrap_or_else(|| format!("out/{stem}"));
    if directory.is_empty() {
        s.mistake("directory", "output.directory is empty".into(), "name a folder", None);
    }
    let every = cadence(&mut s, "every", units, time);
    let diagnostics_every = cadence(&mut s, "diagnostics_every", units, time);
    let fields = s.choices("fields", &FIELDS);
    // What particles under each law do not have.
    let none = (Field::Vorticity, "only vortices in space have vorticity");
    let unestimated = |label| (Field::ForceError, label);
    let mut lacking = match (law, plane) {
        (Law::Gravity, _) => vec![none, (Field::Charge, "no charges under gravity")],
        (Law::Coulomb, _) => vec![none],
        (Law::Vortex, true) => vec![none, (Field::Acceleration, "vortices have no accelerations")],
        (Law::Vortex, false) => vec![
            (Field::Acceleration, "vortices have no accelerations"),
            (Field::Charge, "vortices in space have vorticity, no charges"),
            (Field::Potential, "the potential of vortices in space is a vector"),
            unestimated("errors of moving vortices are not estimated"),
        ],
    };
    if plane {
        lacking.push(unestimated("errors of sums in the plane are not estimated"));
    }
    for (f, label) in &lacking {
        if fields.as_ref().is_some_and(|named| named.contains(f)) {
            s.mistake("fields", format!("output.fields names \"{}\"", f.name()), *label, None);
        }
    }
    let lacks = |f: Field| f == Field::ForceError || lacking.iter().any(|(lacked, _)| *lacked == f);
    let wanted = |f: &Field| fields.as_ref().map_or_else(|| !lacks(*f), |named| named.contains(f));
    let fields = Field::ALL.into_iter().filter(wanted).collect();
    let precision = s.choice("precision", &FLOATS).unwrap_or(Float::F64);
    let checkpoint_wall = checkpoint_wall(&mut s);
    s.close();
    let every = every?.unwrap_or(time?.steps?);
    let diagnostics_every = diagnostics_every?.unwrap_or(every);
    let layout = Layout { fields, precision };
    Some(Output { directory: directory.into(), every, diagnostics_every, layout, checkpoint_wall })
}

/// `output.checkpoint_wall`.
pub(super) fn checkpoint_wall(s: &mut Section<'_>) -> Duration {
    wall(s, "checkpoint_wall").unwrap_or(Duration::from_secs(600))
}

/// A span of wall time, as `"10min"`.
fn wall(s: &mut Section<'_>, key: &'static str) -> Option<Duration> {
    let text = s.string(key)?;
    match humantime::parse_duration(&text) {
        Ok(span) if span >= Duration::from_secs(1) => return Some(span),
        Ok(_) => {
            s.mistake(key, format!("{} = \"{text}\" is outside its range", s.full(key)), "allowed: 1s or more", None)
        }
        Err(e) => {
            let message = format!("{} = \"{text}\" cannot be read as a span of wall time", s.full(key));
            s.mistake(key, message, e.to_string(), Some("for example \"10min\" or \"1h 30m\"".into()));
        }
    }
    None
}

/// `[verify]`; `usual` is the cadence of the diagnostics.
fn verify(mut s: Section<'_>, units: System, time: Option<&Time>, usual: Option<u64>) -> Option<Verify> {
    let (sample, action) = sample_and_action(&mut s);
    let every = cadence(&mut s, "every", units, time);
    s.close();
    Some(Verify { sample, every: every?.or(usual)?, action })
}

/// `verify.sample` and `verify.action`.
pub(super) fn sample_and_action(s: &mut Section<'_>) -> (usize, Action) {
    let sample = s.integer("sample", 1, 1_000_000).unwrap_or(256) as usize;
    (sample, s.choice("action", &Action::NAMES).unwrap_or_default())
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
            undivided(s, key, units, &time.steps_of(), (interval, interval / time.clock.dt));
            None
        }
        Err(ratio) => {
            undivided(s, key, units, &time.steps_of(), (interval, ratio));
            None
        }
    }
}
