//! The measured error against the order of the expansions, for several opening angles.

use fmm_core::{Method, Precision};

use super::{suite, sums};
use crate::lines::{distinct, figure, lines};
use crate::measure::Sum;
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep};
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite =
    suite("accuracy", include_str!("../../../../configs/bench-accuracy.toml"), cases, figures, summary);

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for sum in sums(sweep, sweep.preset.n as usize, Method::Fmm) {
        for &theta in &sweep.preset.thetas {
            for &order in &sweep.preset.orders {
                let (theta, order) = (Some(theta), Some(order as usize));
                all.push(Case::sum(Sum { theta, order, precision: Precision::F64, ..sum.clone() }));
            }
        }
    }
    Ok(all)
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("set") == set).cloned().collect();
        let content = Content::Lines {
            x: Axis::linear("order p of the expansions"),
            y: Axis::log("rms of the relative force error"),
            lines: lines(&here, "order", "rms", |r| format!("θ = {:.3}, {}", r.number("theta"), r.text("device"))),
            marks: vec![],
        };
        let subtitle = format!("{set}, N = {}, double precision", here[0].number("n"));
        all.push((set, figure(&here, "Error by order and opening angle", subtitle, content)));
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let best = records.iter().min_by(|a, b| a.number("rms").total_cmp(&b.number("rms")));
    let text = |r: &Record| {
        let (rms, p, theta) = (r.number("rms"), r.number("order"), r.number("theta"));
        format!("{}: the smallest error is {rms:.1e}, with p = {p} and θ = {theta:.3}.", r.text("set"))
    };
    best.map(text).into_iter().collect()
}
