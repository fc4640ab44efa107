//! `scenario.resolved.toml`: the scenario with every default, and what followed from it. It is a scenario itself.

use std::fmt::Write;
use std::time::Duration;

use fmm_core::{Choice, Softening};

use super::{FIELDS, FLOATS, Law, Scenario};
use crate::units::Dimension;

pub(super) fn text(s: &str) -> String {
    toml::Value::String(s.into()).to_string()
}

pub(super) fn number(x: f64) -> String {
    toml::Value::Float(x).to_string()
}

pub(super) fn vector(v: [f64; 3]) -> String {
    format!("[{}]", v.map(number).join(", "))
}

/// `output.checkpoint_wall`.
pub(super) fn write_checkpoint_wall(out: &mut String, wall: Duration) -> std::fmt::Result {
    // `m` is the meter.
    let minutes = |part: &str| part.strip_suffix('m').map_or(part.to_string(), |n| format!("{n}min"));
    let wall = humantime::format_duration(wall).to_string();
    writeln!(out, "checkpoint_wall = {}", text(&wall.split(' ').map(minutes).collect::<Vec<_>>().join(" ")))
}

impl Scenario {
    /// The scenario with defaults and derived values; `choice` is what the solver chose, once it has.
    pub fn resolved(&self, choice: Option<&Choice>, particles: usize) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = self.write_resolved(&mut out, choice, particles);
        out
    }

    fn write_resolved(&self, out: &mut String, choice: Option<&Choice>, particles: usize) -> std::fmt::Result {
        let unit = |d| match self.units.unit(d) {
            "" => String::new(),
            u => format!("  # {u}"),
        };
        let (time, length) = (unit(Dimension::Time), unit(Dimension::Length));
        let constant = match self.law {
            Law::Gravity => "G",
            Law::Coulomb => "k_e",
            Law::Vortex if self.plane.is_some() => "1/(2 pi)",
            Law::Vortex => "1/(4 pi)",
        };
        let dimensions = if self.plane.is_some() { 2 } else { 3 };
        writeln!(out, "# Every value of this run, defaults and derived ones included, in its units.")?;
        writeln!(out, "# {particles} particles, {} steps, {constant} = {:?}", self.steps, self.constant())?;
        writeln!(out, "title = {}", text(&self.title))?;
        writeln!(out, "\n[run]\ndimensions = {dimensions}\nseed = {}", self.seed)?;
        writeln!(out, "\n[units]\nsystem = {}", text(self.units.name()))?;
        let softening = self.settings.softening;
        let (kernel, softened) = match self.plane {
            Some(blob) => (blob.name(), blob.length()),
            None if softening.screens() => (Softening::None.name(), 0.0),
            None => (softening.name(), softening.length()),
        };
        writeln!(out, "\n[force]\nlaw = {}", text(self.law.name()))?;
        writeln!(out, "softening = {{ kernel = {}, length = {} }}{length}", text(kernel), number(softened))?;
        if softening.screens() {
            writeln!(out, "screening_length = {}{length}", number(softening.screening_length()))?;
        }
        if !self.exclusions.is_empty() {
            let pairs = self.exclusions.iter().map(|[i, j]| format!("[{i}, {j}]"));
            writeln!(out, "exclusions = [{}]", pairs.collect::<Vec<_>>().join(", "))?;
        }
        self.write_external(out)?;
        self.groups.iter().try_for_each(|g| self.write_group(out, g))?;
        self.write_boundary(out)?;
        self.write_molecular(out)?;
        let s = &self.settings;
        let method = choice.map_or(s.method, |c| c.method);
        let precision = choice.map_or(s.precision, |c| c.precision);
        writeln!(out, "\n[solver]\nmethod = {}\ntolerance = {}", text(method.name()), number(s.tolerance))?;
        writeln!(out, "precision = {}\ndevice = {}", text(precision.name()), text(&self.device.to_string()))?;
        if let Some(order) = choice.map_or(s.order, |c| c.order) {
            writeln!(out, "order = {order}")?;
        }
        if let Some(theta) = choice.map_or(s.theta, |c| c.theta) {
            writeln!(out, "theta = {}", number(theta))?;
        }
        if let Some(leaf_size) = choice.map(|c| c.leaf_size).or(s.leaf_size) {
            writeln!(out, "leaf_size = {leaf_size}")?;
        }
        writeln!(out, "\n[time]\nintegrator = {}", text(self.integrator.name()))?;
        // Before the step is chosen the scenario asks for the choice.
        let dt = self.auto_step.map_or(number(self.clock.dt), |eta| format!("\"auto\"\neta = {}", number(eta)));
        writeln!(out, "dt = {dt}{time}\nend = {}{time}", number(self.end()))?;
        if self.vortices() {
            writeln!(out, "viscosity = {}", number(self.viscosity))?;
        }
        writeln!(out, "\n[output]\ndirectory = {}", text(&self.directory.to_string_lossy()))?;
        // Without steps in between there is none to tell, and a run that goes on takes the default again.
        let interval = |out: &mut String, key: &str, steps: u64| match steps {
            0 => Ok(()),
            _ => writeln!(out, "{key} = {}{time}", number(self.clock.time(steps))),
        };
        interval(out, "every", self.snapshot_every)?;
        let fields = FIELDS.iter().filter(|(_, f)| self.layout.fields.contains(f)).map(|(n, _)| text(n));
        writeln!(out, "fields = [{}]", fields.collect::<Vec<_>>().join(", "))?;
        let float = FLOATS.iter().find(|(_, f)| *f == self.layout.precision).map_or("f64", |(n, _)| *n);
        writeln!(out, "precision = {}", text(float))?;
        interval(out, "diagnostics_every", self.diagnostics_every)?;
        write_checkpoint_wall(out, self.checkpoint_wall)?;
        let Some(verify) = &self.verify else { return Ok(()) };
        writeln!(out, "\n[verify]\nsample = {}", verify.sample)?;
        interval(out, "every", verify.every)?;
        writeln!(out, "action = {}", text(verify.action.name()))
    }
}
