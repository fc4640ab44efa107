//! `[time]` of a grid, and how often it is written.

use std::fmt::{self, Write};
use std::time::Duration;

use fmm_core::grid::Scheme;
use fmm_core::grid::flow::{Conditions, Method, PASSED};
use fmm_core::grid::remesh::Kernel;

use super::super::clock::Clock;
use super::super::document::Value;
use super::super::reader::{Range, Section};
use super::super::resolved::{number, text, write_checkpoint_wall};
use super::super::sections::checkpoint_wall;
use super::Resolution;
use super::bodies::Domain;
use super::intervals::{cadence, steps};
use super::verify::VelocityCheck;
use crate::messages::{number as in_message, short};

/// `[time]` of a grid: a flow by the remeshed vortex method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    /// How a step is made.
    pub method: Method,
    /// Steps and their times.
    pub clock: Clock,
    /// Number of steps.
    pub count: u64,
    /// Steps between files; 0 for none between the first and the last state, where `end = 0` leaves no whole run.
    pub every: u64,
    /// Steps between lines of `diagnostics.csv`, likewise.
    pub diagnostics_every: u64,
    /// Wall time between checkpoints.
    pub checkpoint_wall: Duration,
    /// Checks of the velocities during the run, if any.
    pub verify: Option<VelocityCheck>,
}

/// Refuses sections of flows in a scenario without `[time]`.
pub(super) fn refuse_without_time(top: &Section<'_>) {
    for key in ["flow", "bodies", "verify"] {
        if top.has(key) && !top.has("time") {
            let message = format!("'{key}' is of flows that go on, and the scenario has no [time]");
            top.mistake(key, message, "one solution is all that a grid without [time] asks for", None);
        }
    }
}

/// Names of [`Scheme`].
const SCHEMES: [(&str, Scheme); 2] =
    [(Scheme::RungeKutta2.name(), Scheme::RungeKutta2), (Scheme::RungeKutta3.name(), Scheme::RungeKutta3)];

/// Names of [`Kernel`].
const KERNELS: [(&str, Kernel); 2] = [(Kernel::M4.name(), Kernel::M4), (Kernel::M6.name(), Kernel::M6)];

impl Steps {
    /// Reads `[time]` and, of `[output]`, how often; `None` if a mistake left a hole.
    pub(super) fn read(
        time: Section<'_>,
        output: &mut Section<'_>,
        domain: &Domain<'_>,
        conditions: Option<&Conditions>,
    ) -> Option<Self> {
        let given = ["every", "diagnostics_every"].map(|key| (key, output.number(key, Range::POSITIVE)));
        let shortest = given.iter().filter_map(|g| g.1).reduce(f64::min);
        let time = read(time, (domain, conditions), shortest);
        let checkpoint_wall = checkpoint_wall(output);
        let (method, clock, count) = time?;
        let [every, diagnostics] = given.map(|(key, interval)| cadence(output, key, interval, &clock));
        let every = every?.unwrap_or(count);
        Some(Steps {
            method,
            clock,
            count,
            every,
            diagnostics_every: diagnostics?.unwrap_or(every),
            checkpoint_wall,
            verify: None,
        })
    }

    /// `[time]` with its defaults filled in.
    pub(super) fn write_time(&self, out: &mut String) -> fmt::Result {
        // Thresholds are those of [grid].
        let Method { scheme, kernel, cutoff, viscosity, lagrangian, thresholds: _ } = self.method;
        writeln!(out, "\n[time]\nintegrator = {}\nremeshing = {}", text(scheme.name()), text(kernel.name()))?;
        writeln!(out, "dt = {}\nend = {}", number(self.clock.dt), number(self.clock.time(self.count)))?;
        writeln!(out, "cutoff = {}", number(cutoff))?;
        // Runs without them have the id that older versions gave them.
        let more = [("viscosity", viscosity > 0.0, viscosity)];
        let limited = [("lagrangian_cfl", lagrangian.is_some(), lagrangian.unwrap_or_default())];
        let given = more.into_iter().chain(limited).filter(|(_, given, _)| *given);
        given.into_iter().try_for_each(|(key, _, value)| writeln!(out, "{key} = {}", number(value)))
    }

    /// The keys of `[output]`.
    pub(super) fn write_output(&self, out: &mut String) -> fmt::Result {
        // Without steps in between there is none to write, and a run that goes on takes the default again.
        for (key, steps) in [("every", self.every), ("diagnostics_every", self.diagnostics_every)] {
            if steps > 0 {
                writeln!(out, "{key} = {}", number(self.clock.time(steps)))?;
            }
        }
        write_checkpoint_wall(out, self.checkpoint_wall)
    }
}

/// The largest dt |∇u| of `dt = "auto"`.
const LAGRANGIAN: f64 = 0.25;

/// Method, clock and number of steps; `shortest` is the shortest interval between outputs.
fn read(
    mut s: Section<'_>,
    (domain, conditions): (&Domain<'_>, Option<&Conditions>),
    shortest: Option<f64>,
) -> Option<(Method, Clock, u64)> {
    let usual = Method::default();
    let method = Method {
        scheme: s.choice("integrator", &SCHEMES).unwrap_or(usual.scheme),
        kernel: s.choice("remeshing", &KERNELS).unwrap_or(usual.kernel),
        cutoff: s.number("cutoff", Range::CUTOFF).unwrap_or(usual.cutoff),
        viscosity: s.number("viscosity", Range::NOT_NEGATIVE).unwrap_or(usual.viscosity),
        lagrangian: s.number("lagrangian_cfl", Range::LAGRANGIAN),
        thresholds: match domain.resolution {
            Some(Resolution::Adapted(_, thresholds)) => *thresholds,
            _ => usual.thresholds,
        },
    };
    let end = s.number("end", Range::NOT_NEGATIVE);
    // A step from one output to the next, which the flow divides.
    let automatic = s.item("dt").is_some_and(|i| matches!(&i.value, Value::String(t) if t == "auto"));
    let (dt, method) = match automatic {
        true => {
            if shortest.is_none() && end.is_some_and(|end| end > 0.0) {
                let message =
                    "time.dt = \"auto\" makes whole steps from one output to the next, and there is none".to_string();
                let help = "give output.diagnostics_every: signals and checkpoints wait for the end of a whole step";
                s.mistake("dt", message, "needs output.diagnostics_every or output.every", Some(help.into()));
            }
            let dt = shortest.unwrap_or(1.0);
            (Some(dt), Method { lagrangian: method.lagrangian.or(Some(LAGRANGIAN)), ..method })
        }
        false => (s.number("dt", Range::POSITIVE), method),
    };
    for (key, help) in [
        ("dt", "the length of a step, for example dt = 0.01, or dt = \"auto\""),
        ("end", "the time at which the run ends; end = 0 writes the initial state only"),
    ] {
        if !s.has(key) {
            s.missing(key, help);
        }
    }
    if let (Some(dt), Some(h), None) = (dt, domain.spacing(), method.lagrangian) {
        let diffusion = (method.longest_step(h), "diffusion allows", "from h^2/(8 time.viscosity)".to_string());
        let passed = format!("the time in which the stream passes a body by {PASSED} of the smallest cells");
        let bodies = conditions.map(|c| (c.longest_step(h), "bodies allow", passed));
        let limits = [Some(diffusion), bodies].into_iter().flatten();
        // Rounding of a step that was computed as the longest one counts for nothing.
        for (longest, what, from) in limits.filter(|(longest, ..)| dt > longest * (1.0 + 1e-9)) {
            let message = format!("time.dt = {} is longer than {what}", in_message(dt));
            // Rounded down, so that what it names is allowed.
            let label = format!("allowed: up to {}, {from}", short(0.999 * longest));
            s.mistake("dt", message, label, Some("give a shorter step, or dt = \"auto\"".into()));
        }
    }
    let clock = Clock::new(dt?);
    let count = steps(&s, "end", &clock, end?);
    s.close();
    Some((method, clock, count?))
}
