//! Messages and the JSON object of the command.

use std::path::Path;

use fmm::{Errors, Evaluation, Family, Kernel, Points};
use fmm_core::planar::Blob;
use fmm_core::{Softening, Stage, Surroundings};
use serde_json::{Map, Value, json};

use super::{Options, Seconds};
use crate::console;
use crate::failure::Failure;
use crate::messages::{counted, number};

/// What is known at the end.
pub struct Facts<'a> {
    pub options: &'a Options,
    pub points: &'a Points<'a>,
    pub sum: &'a Evaluation,
    pub totals: Option<Totals>,
    pub threads: usize,
    pub seconds: Seconds,
}

/// Sums over all sources at themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Totals {
    /// ½ Σ q φ.
    energy: f64,
    /// |Σ q e|, which is zero but for errors.
    force: f64,
    /// Σ |q e|.
    magnitude: f64,
}

impl Totals {
    /// Of a kernel with a potential in space whose targets are its sources.
    pub fn of(kernel: Kernel, points: &Points, sum: &Evaluation) -> Option<Self> {
        if kernel.family() != Family::Radial || points.targets.is_some() {
            return None;
        }
        let (mut energy, mut force, mut magnitude) = (0.0, [0.0; 3], 0.0);
        for ((q, potential), field) in points.strengths[0].iter().zip(&sum.potential).zip(&sum.field) {
            let pull: [f64; 3] = std::array::from_fn(|d| q * field[d]);
            energy += 0.5 * q * potential;
            (0..3).for_each(|d| force[d] += pull[d]);
            magnitude += pull[0].hypot(pull[1]).hypot(pull[2]);
        }
        Some(Totals { energy, force: force[0].hypot(force[1]).hypot(force[2]), magnitude })
    }
}

/// The warning of pairs at distance zero.
pub fn coincident(pairs: u64, targets: bool) -> String {
    let of = if targets { "a target and a source" } else { "sources" };
    match pairs {
        1 => format!("1 pair of {of} is at the same place and, unsoftened, contributes 0"),
        _ => format!("{pairs} pairs of {of} are at the same place and, unsoftened, contribute 0"),
    }
}

/// The warning of sources that are in a periodic box, of this side at most, and summed in open space.
pub fn in_a_box(path: &Path, side: f64) -> String {
    let (path, side) = (path.display(), number(side));
    format!("{path}: its particles are in a periodic box (longest side {side}), whose images only --periodic sums")
}

impl Facts<'_> {
    /// Prints what the options ask for; a missed tolerance is a failure, after everything else.
    ///
    /// # Errors
    /// 1 if the check missed the tolerance, 74 if stdout cannot be written.
    pub fn print(&self) -> Result<(), Failure> {
        let (o, problem) = (self.options, &self.options.problem);
        if o.verbose {
            crate::console::tell(format_args!("nbody: {}", self.summary()));
        }
        if o.json {
            console::print(&format!("{}\n", self.json()))?;
        }
        let tolerance = problem.settings.tolerance;
        let Some(errors) = &self.sum.errors else { return Ok(()) };
        if !problem.kernel.keeps(errors, tolerance) {
            return Err(Failure::new(1, format!("the tolerance {tolerance:e} is missed: {}", line(errors))));
        }
        let kept = match problem.kernel.may_miss(errors, tolerance) {
            true => format!(
                "tolerance {tolerance:e} kept by the estimate, but an interval reaches above it; a larger sample, \
                 --check={}, says more",
                10 * problem.sample
            ),
            false => format!("tolerance {tolerance:e} kept"),
        };
        if !o.json && !o.quiet {
            crate::console::tell(format_args!("nbody: check: {}; {kept}", line(errors)));
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let choice = &self.sum.choice;
        let part = |name: &str, value: Option<String>| value.map_or(String::new(), |v| format!(", {name} {v}"));
        format!(
            "{} sources, {} targets: {} in {}{}{}, {} in a leaf, on {}, {}{}; read {:.3} s, evaluate {:.3} s, write {:.3} s",
            self.points.sources.len(),
            self.points.at().len(),
            choice.method.name(),
            choice.precision.name(),
            part("order", choice.order.map(|p| p.to_string())),
            part("theta", choice.theta.map(|t| format!("{t:.3}"))),
            choice.leaf_size,
            self.sum.device,
            counted(self.threads, "thread"),
            self.totals.map_or(String::new(), |t| format!("; |Σ q e| {:.1e} of Σ|q e| {:.1e}", t.force, t.magnitude)),
            self.seconds.read,
            self.sum.seconds.sum,
            self.seconds.write,
        )
    }

    fn json(&self) -> Value {
        let (problem, settings) = (&self.options.problem, &self.options.problem.settings);
        let choice = &self.sum.choice;
        let mut seconds = Map::new();
        seconds.insert("read".into(), json!(self.seconds.read));
        for stage in Stage::ALL.into_iter().filter(|&stage| self.sum.times.calls(stage) > 0) {
            seconds.insert(stage.name().into(), json!(self.sum.times.seconds(stage)));
        }
        seconds.insert("evaluate".into(), json!(self.sum.seconds.sum));
        if self.sum.errors.is_some() {
            seconds.insert("check".into(), json!(self.sum.seconds.errors));
        }
        seconds.insert("write".into(), json!(self.seconds.write));
        json!({
            "kernel": problem.kernel.to_string(),
            "softening": softening(settings.softening, problem.blob),
            "tolerance": settings.tolerance,
            "n_sources": self.points.sources.len(),
            "n_targets": self.points.at().len(),
            "method": choice.method.name(),
            "order": choice.order,
            "theta": choice.theta,
            "leaf_size": choice.leaf_size,
            "depth": settings.uniform.map(|u| u.depth),
            "separation": settings.uniform.map(|u| u.separation),
            "precision": choice.precision.name(),
            "device": self.sum.device.to_string(),
            "threads": self.threads,
            "periodic": settings.boundary.periodic().map(|cell| cell.side),
            "surroundings": settings.boundary.periodic().map(|cell| surroundings(cell.surroundings)),
            "coincident_pairs": self.sum.coincident_pairs,
            "energy": self.totals.map(|t| t.energy),
            "net_force": self.totals.map(|t| t.force),
            "sum_of_forces": self.totals.map(|t| t.magnitude),
            "seconds": seconds,
            "check": self.sum.errors.map(|e| json!({
                "kept": problem.kernel.keeps(&e, settings.tolerance),
                "may_miss": problem.kernel.may_miss(&e, settings.tolerance),
                "rms": e.rms,
                "rms_interval": e.rms_interval,
                "median": e.median,
                "p99": e.p99,
                "max": e.max,
                "l2": e.l2,
                "l2_interval": e.l2_interval,
                "floored": e.floored,
                "sample": e.sample,
                "potential": e.potential,
            })),
        })
    }
}

/// The errors in one line.
fn line(e: &Errors) -> String {
    let potential = e.potential.map_or(String::new(), |p| format!(", potential {p:.3e}"));
    // Where all targets were compared the interval is a point.
    let within = |norm: f64, [low, high]: [f64; 2]| match low < high {
        true if low == 0.0 => format!("{norm:.3e}, 95 % within 0 .. {high:.2e}"),
        true => format!("{norm:.3e}, 95 % within {low:.2e} .. {high:.2e}"),
        false => format!("{norm:.3e}"),
    };
    format!(
        "rms {}, L2 {}{potential}, median {:.3e}, p99 {:.3e}, max {:.3e}; {} targets compared, {} of them floored",
        within(e.rms, e.rms_interval),
        within(e.l2, e.l2_interval),
        e.median,
        e.p99,
        e.max,
        e.sample,
        e.floored
    )
}

/// As on the command line.
fn surroundings(surroundings: Surroundings) -> String {
    match surroundings {
        Surroundings::TinFoil => "tinfoil".into(),
        Surroundings::Dielectric(1.0) => "vacuum".into(),
        Surroundings::Dielectric(medium) => medium.to_string(),
    }
}

/// As on the command line.
fn softening(softening: Softening, blob: Blob) -> String {
    match softening {
        Softening::None => match blob {
            Blob::Point => "none".into(),
            blob => format!("{}:{}", blob.name(), blob.length()),
        },
        kernel => format!("{}:{}", kernel.name(), kernel.length()),
    }
}
