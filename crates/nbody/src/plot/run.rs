//! The figures of a run, from `diagnostics.csv`, `timings.json`, `run.json` and the scenario.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::snapshots::{Shown, need_folder};
use crate::convert::source::units_of;
use crate::failure::Failure;
use crate::figure::{Axis, Content, Figure, Line};
use crate::files::columns::{Columns, read_columns};
use crate::files::{FileError, regular};
use crate::messages::counted;
use crate::times::TimeUnit;
use crate::units::{Dimension, System};

/// Particles below which a set has no Lagrangian radii.
const FEWEST: u64 = 20;

/// What is known of a run.
pub struct Run {
    path: PathBuf,
    columns: Columns,
    timings: Value,
    run: Value,
    units: Option<System>,
    /// With every value; empty where it cannot be read.
    scenario: toml::Table,
}

impl Run {
    /// Reads what there is; only a file that is damaged is an error.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        need_folder(path)?;
        let columns = match read_columns(&path.join("diagnostics.csv")) {
            Err(FileError::Missing { .. }) => vec![],
            columns => columns?,
        };
        // The resolved one has what --set has changed.
        let text = |name: &str| regular::text(&path.join(name), regular::REPORT).ok();
        let scenario = text("scenario.resolved.toml").or_else(|| text("scenario.toml")).unwrap_or_default();
        Ok(Run {
            path: path.to_owned(),
            columns,
            timings: json(&path.join("timings.json"))?,
            run: json(&path.join("run.json"))?,
            units: units_of(&scenario).or(Some(System::Nbody)).filter(|_| !scenario.is_empty()),
            scenario: scenario.parse().unwrap_or_default(),
        })
    }

    /// The figures for which there are data, with their names.
    ///
    /// # Errors
    /// Snapshots that are damaged.
    pub fn figures(&self) -> Result<Vec<(&'static str, Figure)>, Failure> {
        let units = self.units.unwrap_or(System::Nbody);
        let space = Shown::read(&self.path)?.and_then(|shown| shown.figure(self.groups(), units));
        let space = space.map(|(title, content)| self.figure(&title, content));
        let list = super::NAMES.into_iter().zip([
            space,
            self.energy(),
            self.thermal("temperature"),
            self.thermal("pressure"),
            self.radii(),
            self.forces(),
            self.stages(),
        ]);
        Ok(list.filter_map(|(name, figure)| Some((name, figure?))).collect())
    }

    /// Names and numbers of particles of the groups; empty where the run has not noted them.
    fn groups(&self) -> Vec<(String, usize)> {
        let one = |(i, group): (usize, &Value)| {
            let n = group["particles"].as_u64()?;
            let model = group["model"].as_str()?;
            Some((format!("group {i}: {model}, {} particles", grouped(n)), n as usize))
        };
        let all = self.run["groups"].as_array().map(|a| a.iter().enumerate().map(one).collect());
        all.flatten().unwrap_or_default()
    }

    fn column(&self, name: &str) -> Option<&[f64]> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }

    fn figure(&self, title: &str, content: Content) -> Figure {
        Figure { title: title.into(), subtitle: self.subtitle(), caption: self.caption(), content }
    }

    /// A name with its unit; numbers of N-body units have none.
    fn label(&self, name: &str, dimension: Dimension) -> String {
        match self.units.map(|u| u.unit(dimension)) {
            Some("") => format!("{name} (N-body units)"),
            Some(unit) => format!("{name} ({unit})"),
            None => name.to_string(),
        }
    }

    /// The times of `diagnostics.csv` as they are shown, with their axis.
    fn times(&self) -> Option<(Vec<f64>, Axis)> {
        let times = self.column("time")?;
        let last = times.iter().map(|t| t.abs()).fold(0.0, f64::max);
        let Some(system) = self.units.filter(|u| *u != System::Nbody) else {
            return Some((times.to_vec(), Axis::linear(self.label("time", Dimension::Time))));
        };
        let unit = TimeUnit::of(system, last);
        Some((times.iter().map(|t| t * unit.factor).collect(), Axis::linear(format!("time ({})", unit.name))))
    }

    fn energy(&self) -> Option<Figure> {
        let (time, x) = self.times()?;
        // Vortices have a Hamiltonian in place of an energy.
        let (error, name, symbol) = match self.column("energy_error") {
            Some(error) => (error, "energy", "E"),
            None => (self.column("hamiltonian_error")?, "Hamiltonian", "H"),
        };
        let points: Vec<(f64, f64)> = time.iter().copied().zip(error.iter().map(|e| e.abs())).collect();
        let (mut worst, mut largest) = (0f64, vec![]);
        for &(t, e) in &points {
            // It does not grow between two lines of the file: a staircase.
            if e > worst && worst > 0.0 {
                largest.push((t, worst));
            }
            worst = worst.max(e);
            largest.push((t, worst));
        }
        // Zeros have no logarithm: without any other there is nothing to draw.
        if worst == 0.0 {
            return None;
        }
        let lines =
            vec![Line::new(format!("|Δ{symbol}/{symbol}₀|"), points), Line::new("largest so far", largest).dashed()];
        let y = Axis::log(format!("relative {name} error |Δ{symbol}/{symbol}₀|"));
        let title = if symbol == "E" { "Energy drift" } else { "Drift of the Hamiltonian" };
        Some(self.figure(title, Content::Lines { x, y, lines, marks: vec![] }))
    }

    /// The value of `section.key` of the scenario.
    fn value(&self, section: &str, key: &str) -> Option<&toml::Value> {
        self.scenario.get(section)?.get(key)
    }

    /// A column of ions in a box against time, with the temperature of their thermostat.
    fn thermal(&self, name: &str) -> Option<Figure> {
        let values = self.column(name)?;
        let (time, x) = self.times()?;
        let points: Vec<(f64, f64)> = time.into_iter().zip(values.iter().copied()).collect();
        let (&(first, _), &(last, _)) = (points.first()?, points.last()?);
        let mut lines = vec![Line::new(name, points)];
        if name == "temperature"
            && let Some(bath) = self.value("thermostat", "temperature").and_then(toml::Value::as_float)
        {
            // The thermostat may end before the run; the axis may be in another unit of time than the scenario.
            let unit = last / self.column("time")?.last()?;
            let until = self.value("thermostat", "until").and_then(toml::Value::as_float).map_or(last, |t| t * unit);
            lines.push(Line::new("thermostat", vec![(first, bath), (until.min(last), bath)]).dashed());
        }
        let unit = match (self.units, name) {
            (Some(System::Md | System::Si), "temperature") => " (K)",
            (Some(System::Md), _) => " (kJ/mol/nm³)",
            (Some(System::Si), _) => " (Pa)",
            _ => " (N-body units)",
        };
        let y = Axis::linear(format!("{name}{unit}"));
        let title = if name == "temperature" { "Temperature" } else { "Pressure" };
        Some(self.figure(title, Content::Lines { x, y, lines, marks: vec![] }))
    }

    fn radii(&self) -> Option<Figure> {
        // Charges and boxes have no center that they gather around, nor has a handful of bodies a radius of half its mass.
        let text = |section, key| self.value(section, key).and_then(toml::Value::as_str);
        let gathered = text("force", "law") != Some("coulomb") && text("boundary", "kind") != Some("periodic");
        if !gathered || self.run["particles"].as_u64().is_some_and(|n| n < FEWEST) {
            return None;
        }
        let (time, x) = self.times()?;
        let mut lines: Vec<(f64, Line)> = vec![];
        for (name, values) in &self.columns {
            let Some(share) = name.strip_prefix("lagrangian_").and_then(|s| s.parse::<f64>().ok()) else { continue };
            if values.iter().any(|&r| r > 0.0) {
                let points = time.iter().copied().zip(values.iter().copied()).collect();
                lines.push((share, Line::new(format!("{share} % of the mass"), points)));
            }
        }
        if lines.is_empty() {
            return None;
        }
        // From the outermost inwards, as they lie in the figure.
        lines.sort_by(|a, b| b.0.total_cmp(&a.0));
        let y = Axis::log(self.label("Lagrangian radius", Dimension::Length));
        let lines = lines.into_iter().map(|(_, l)| l).collect();
        let title = "Lagrangian radii about the density center";
        Some(self.figure(title, Content::Lines { x, y, lines, marks: vec![] }))
    }

    /// The forces on all bodies of a flow by both formulas; at the start none is known.
    fn forces(&self) -> Option<Figure> {
        let (time, x) = self.times()?;
        let line = |name: String, values: &[f64]| {
            let points: Vec<(f64, f64)> = time.iter().copied().zip(values.iter().copied()).skip(1).collect();
            (points.len() > 1).then(|| Line::new(name, points))
        };
        let mut lines = vec![];
        for k in ["x", "y", "z"] {
            lines.push(line(format!("{k}, penalisation"), self.column(&format!("force_{k}"))?)?);
            let impulse = self.column(&format!("impulse_force_{k}"))?;
            lines.push(line(format!("{k}, change of impulse"), impulse)?.dashed());
        }
        let content = Content::Lines { x, y: Axis::linear("force on all bodies"), lines, marks: vec![] };
        Some(self.figure("Forces of the fluid", content))
    }

    fn stages(&self) -> Option<Figure> {
        let stages = self.timings["stages"].as_object()?;
        // JSON objects come back sorted by name; the order of the schedule reads better.
        let order = fmm_core::Stage::ALL.map(|s| s.name());
        let place = |name: &str| order.iter().position(|n| *n == name).unwrap_or(order.len());
        let mut bars: Vec<(String, f64)> = stages
            .iter()
            .filter(|(_, v)| v["calls"].as_u64() != Some(0))
            .filter_map(|(name, v)| Some((name.clone(), v["seconds"].as_f64().filter(|s| s.is_finite() && *s >= 0.0)?)))
            .collect();
        bars.sort_by_key(|(name, _)| place(name));
        let total: f64 = bars.iter().map(|(_, s)| s).sum();
        if total <= 0.0 {
            return None;
        }
        let text = |s: f64| format!("{} s, {:.1} %", seconds(s), 100.0 * s / total);
        let bars = bars.into_iter().map(|(name, s)| (name, s, text(s))).collect();
        let title = format!("Where the time went: {} s in all stages", seconds(total));
        Some(self.figure(&title, Content::Bars { x: Axis::linear("wall time (s)"), bars }))
    }

    fn subtitle(&self) -> String {
        let mut parts = vec![];
        if let Some(title) = self.run["title"].as_str() {
            parts.push(title.to_string());
        }
        if let Some(n) = self.run["particles"].as_u64() {
            parts.push(format!("N = {}", grouped(n)));
        }
        if let Some(steps) = self.run["steps"].as_u64() {
            parts.push(format!("{} steps", grouped(steps)));
        }
        let solver = &self.run["solver"];
        if let Some(method) = solver["method"].as_str() {
            parts.push(format!("{method} in {}", solver["precision"].as_str().unwrap_or("f64")));
        }
        if let Some(tolerance) = solver["tolerance"].as_f64() {
            parts.push(format!("tolerance {tolerance:e}"));
        }
        parts.join(" · ")
    }

    /// The machine that the run noted; this may be another one.
    fn caption(&self) -> String {
        let host = &self.run["host"];
        let mut parts = vec![];
        let text = |key: &str| host[key].as_str().map(str::to_string);
        if let Some(cpu) = text("cpu").or_else(|| text("arch")) {
            parts.push(cpu);
        }
        if let Some(threads) = host["threads"].as_u64() {
            parts.push(counted(threads as usize, "thread"));
        }
        parts.extend(text("simd"));
        if let Some(version) = self.run["version"].as_str() {
            let commit = self.run["commit"].as_str().map_or(String::new(), |c| format!(" ({c})"));
            parts.push(format!("nbody {version}{commit}"));
        }
        if parts.is_empty() { "The run left no run.json: its machine is not known.".into() } else { parts.join(", ") }
    }
}

/// Three significant digits.
pub fn seconds(s: f64) -> String {
    match s {
        s if s >= 100.0 => format!("{s:.0}"),
        s if s >= 10.0 => format!("{s:.1}"),
        s if s >= 1.0 => format!("{s:.2}"),
        s => format!("{s:.3}"),
    }
}

/// Digits in groups of three.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_string();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            // A thin space.
            text.push('\u{2009}');
        }
        text.push_str(&String::from_utf8_lossy(group));
    }
    text
}

/// A JSON file; null where there is none.
fn json(path: &Path) -> Result<Value, Failure> {
    match regular::read(path, regular::REPORT) {
        Err(FileError::Missing { .. }) => Ok(Value::Null),
        Err(e) => Err(e.into()),
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|e| Failure::new(65, format!("{}: not JSON ({e})", path.display())))
        }
    }
}
