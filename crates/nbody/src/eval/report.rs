//! What the command tells beside the sums.

use fmm_core::planar::Blob;
use fmm_core::{Softening, Stage, Surroundings};
use serde_json::{Map, Value, json};

use super::kernel::{Answer, Problem};
use super::{Errors, Kernel, Options, Seconds};
use crate::console;
use crate::fault::Fault;

/// What is known at the end.
pub struct Facts<'a> {
    pub options: &'a Options,
    pub sources: usize,
    pub targets: usize,
    pub answer: &'a Answer,
    pub coincident_pairs: u64,
    pub totals: Option<Totals>,
    pub threads: usize,
    pub seconds: Seconds,
    pub check: Option<Errors>,
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
    pub fn of(problem: &Problem, answer: &Answer) -> Option<Self> {
        if !matches!(problem.kernel, Kernel::Laplace | Kernel::Yukawa(_)) || problem.targets.is_some() {
            return None;
        }
        let column = |k: usize| &answer.columns[k].1;
        let (mut energy, mut force, mut magnitude) = (0.0, [0.0; 3], 0.0);
        for (i, q) in problem.strengths[0].iter().enumerate() {
            let pull: [f64; 3] = std::array::from_fn(|d| q * column(d + 1)[i]);
            energy += 0.5 * q * column(0)[i];
            (0..3).for_each(|d| force[d] += pull[d]);
            magnitude += pull[0].hypot(pull[1]).hypot(pull[2]);
        }
        Some(Totals { energy, force: force[0].hypot(force[1]).hypot(force[2]), magnitude })
    }
}

/// The warning of pairs at distance zero.
pub fn coincident(pairs: u64, targets: bool) -> String {
    let what = match (pairs, targets) {
        (1, false) => "1 pair of sources is".to_string(),
        (1, true) => "1 pair of a target and a source is".to_string(),
        (_, false) => format!("{pairs} pairs of sources are"),
        (_, true) => format!("{pairs} pairs of a target and a source are"),
    };
    format!("{what} at the same place and, unsoftened, contribute 0")
}

impl Facts<'_> {
    /// Prints what was asked for; a missed tolerance is a fault, after everything else.
    ///
    /// # Errors
    /// 1 if the check missed the tolerance, 74 if stdout cannot be written.
    pub fn tell(&self) -> Result<(), Fault> {
        let o = self.options;
        if o.verbose {
            crate::console::tell(format_args!("nbody: {}", self.summary()));
        }
        if o.json {
            console::print(&format!("{}\n", self.json()))?;
        }
        let tolerance = o.settings.tolerance;
        match &self.check {
            Some(errors) if !o.kernel.keeps(errors, tolerance) => {
                Err(Fault::new(1, format!("the tolerance {tolerance:e} is missed: {}", line(errors))))
            }
            Some(errors) if !o.json && !o.quiet => {
                crate::console::tell(format_args!("nbody: check: {}; tolerance {tolerance:e} kept", line(errors)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn summary(&self) -> String {
        let choice = &self.answer.choice;
        let part = |name: &str, value: Option<String>| value.map_or(String::new(), |v| format!(", {name} {v}"));
        format!(
            "{} sources, {} targets: {} in {}{}{}, {} in a leaf, on {}, {} threads{}; read {:.3} s, evaluate {:.3} s, write {:.3} s",
            self.sources,
            self.targets,
            choice.method.name(),
            choice.precision.name(),
            part("order", choice.order.map(|p| p.to_string())),
            part("theta", choice.theta.map(|t| format!("{t:.3}"))),
            choice.leaf_size,
            self.answer.device,
            self.threads,
            self.totals.map_or(String::new(), |t| format!("; |Σ q e| {:.1e} of Σ|q e| {:.1e}", t.force, t.magnitude)),
            self.seconds.read,
            self.seconds.evaluate,
            self.seconds.write,
        )
    }

    fn json(&self) -> Value {
        let (o, s) = (self.options, &self.seconds);
        let choice = &self.answer.choice;
        let mut seconds = Map::new();
        seconds.insert("read".into(), json!(s.read));
        for stage in Stage::ALL.into_iter().filter(|&stage| self.answer.times.calls(stage) > 0) {
            seconds.insert(stage.name().into(), json!(self.answer.times.seconds(stage)));
        }
        seconds.insert("evaluate".into(), json!(s.evaluate));
        if self.check.is_some() {
            seconds.insert("check".into(), json!(s.check));
        }
        seconds.insert("write".into(), json!(s.write));
        json!({
            "kernel": o.kernel.to_string(),
            "softening": softening(o.settings.softening, o.blob),
            "tolerance": o.settings.tolerance,
            "n_sources": self.sources,
            "n_targets": self.targets,
            "method": choice.method.name(),
            "order": choice.order,
            "theta": choice.theta,
            "leaf_size": choice.leaf_size,
            "depth": o.settings.uniform.map(|u| u.depth),
            "separation": o.settings.uniform.map(|u| u.separation),
            "precision": choice.precision.name(),
            "device": self.answer.device.to_string(),
            "threads": self.threads,
            "periodic": o.settings.boundary.periodic().map(|cell| cell.side),
            "surroundings": o.settings.boundary.periodic().map(|cell| surroundings(cell.surroundings)),
            "coincident_pairs": self.coincident_pairs,
            "energy": self.totals.map(|t| t.energy),
            "net_force": self.totals.map(|t| t.force),
            "sum_of_forces": self.totals.map(|t| t.magnitude),
            "seconds": seconds,
            "check": self.check.map(|e| json!({
                "rms": e.rms,
                "median": e.median,
                "p99": e.p99,
                "max": e.max,
                "l2": e.l2,
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
    format!(
        "rms {:.3e}, L2 {:.3e}{potential}, median {:.3e}, p99 {:.3e}, max {:.3e}; {} targets compared, {} of them floored",
        e.rms, e.l2, e.median, e.p99, e.max, e.sample, e.floored
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
        Softening::None | Softening::Yukawa(_) => match blob {
            Blob::Point => "none".into(),
            blob => format!("{}:{}", blob.name(), blob.length()),
        },
        kernel => format!("{}:{}", kernel.name(), kernel.length()),
    }
}
