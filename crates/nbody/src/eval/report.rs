//! What the command tells beside the sums.

use fmm_core::planar::Blob;
use fmm_core::{Softening, Stage};
use serde_json::{Map, Value, json};

use super::kernel::Answer;
use super::output::print_line;
use super::{Errors, Options, Seconds};
use crate::fault::Fault;

/// What is known at the end.
pub struct Facts<'a> {
    pub options: &'a Options,
    pub sources: usize,
    pub targets: usize,
    pub answer: &'a Answer,
    pub coincident_pairs: u64,
    pub threads: usize,
    pub seconds: Seconds,
    pub check: Option<Errors>,
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
            eprintln!("nbody: {}", self.summary());
        }
        if o.json {
            print_line(&self.json().to_string())?;
        }
        let tolerance = o.settings.tolerance;
        match &self.check {
            Some(errors) if !o.kernel.keeps(errors, tolerance) => {
                Err(Fault::new(1, format!("the tolerance {tolerance:e} is missed: {}", line(errors))))
            }
            Some(errors) if !o.json && !o.quiet => {
                eprintln!("nbody: check: {}; tolerance {tolerance:e} kept", line(errors));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn summary(&self) -> String {
        let choice = &self.answer.choice;
        let part = |name: &str, value: Option<String>| value.map_or(String::new(), |v| format!(", {name} {v}"));
        format!(
            "{} sources, {} targets: {} in {}{}{}, {} in a leaf, on {}, {} threads; read {:.3} s, evaluate {:.3} s, write {:.3} s",
            self.sources,
            self.targets,
            choice.method.name(),
            choice.precision.name(),
            part("order", choice.order.map(|p| p.to_string())),
            part("theta", choice.theta.map(|t| format!("{t:.3}"))),
            choice.leaf_size,
            self.answer.device,
            self.threads,
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
            "precision": choice.precision.name(),
            "device": self.answer.device.to_string(),
            "threads": self.threads,
            "coincident_pairs": self.coincident_pairs,
            "seconds": seconds,
            "check": self.check.map(|e| json!({
                "rms": e.rms,
                "median": e.median,
                "p99": e.p99,
                "max": e.max,
                "l2": e.l2,
                "floored": e.floored,
                "sample": e.sample,
            })),
        })
    }
}

/// The errors in one line.
fn line(e: &Errors) -> String {
    format!(
        "rms {:.3e}, L2 {:.3e}, median {:.3e}, p99 {:.3e}, max {:.3e}; {} targets compared, {} of them floored",
        e.rms, e.l2, e.median, e.p99, e.max, e.sample, e.floored
    )
}

/// As on the command line.
fn softening(softening: Softening, blob: Blob) -> String {
    match softening {
        Softening::None => match blob {
            Blob::Point => "none".into(),
            Blob::Algebraic(e) => format!("algebraic:{e}"),
            Blob::Gaussian(s) => format!("gaussian:{s}"),
        },
        Softening::Plummer(e) => format!("plummer:{e}"),
        Softening::Spline(e) => format!("spline:{e}"),
        Softening::P1(e) => format!("p1:{e}"),
    }
}
