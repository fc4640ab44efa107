//! Time a particle against N for sets that lie differently.

use fmm_core::Method;

use super::{COLUMNS, place_of, sums};
use crate::lines::{figure, lines, numbers};
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep};
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "distributions",
    preset: include_str!("../../../../configs/bench-distributions.toml"),
    plane: Some(include_str!("../../../../configs/bench-plane-distributions.toml")),
    cpu_only: false,
    gpu_only: false,
    cases,
    figures,
    summary,
    texts: |_| vec![],
    columns: COLUMNS,
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for n in sweep.preset.sizes() {
        all.extend(sums(sweep, n, Method::Fmm).into_iter().map(Case::sum));
    }
    Ok(all)
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for tolerance in numbers(records, "tolerance") {
        let here: Vec<Record> = records.iter().filter(|r| r.number("tolerance") == tolerance).cloned().collect();
        let content = Content::Lines {
            x: Axis::log("particles N"),
            y: Axis::log("time of one force evaluation (s)"),
            lines: lines(&here, "n", "seconds", |r| format!("{}, {}", r.text("set"), place_of(r))),
            marks: vec![],
        };
        let subtitle = format!("FMM, rms and L2 force errors at most {}", number(tolerance));
        all.push((format!("{tolerance:e}"), figure(&here, "Time by the shape of the set", subtitle, content)));
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let largest = records.iter().map(|r| r.number("n")).fold(0.0, f64::max);
    let mut all = vec![];
    for r in records.iter().filter(|r| r.number("n") == largest && r.text("set") != "uniform") {
        let like = |u: &&Record| {
            let same = ["n", "tolerance", "device", "threads"].iter().all(|k| u.0.get(*k) == r.0.get(*k));
            u.text("set") == "uniform" && same
        };
        if let Some(uniform) = records.iter().find(like) {
            all.push(format!(
                "{}, {}, N = {largest}, {}: {} times the time of the uniform set.",
                r.text("set"),
                place_of(r),
                number(r.number("tolerance")),
                significant(r.number("seconds") / uniform.number("seconds"))
            ));
        }
    }
    all
}
