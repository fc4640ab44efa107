//! Time against the size of leaves: how wide the best choice is, and whether ours lies in it.

use fmm_core::Method;

use super::{COLUMNS, place_of, sums};
use crate::lines::{distinct, figure, lines};
use crate::measure::Sum;
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep};
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "leafsize",
    preset: include_str!("../../../../configs/bench-leafsize.toml"),
    plane: Some(include_str!("../../../../configs/bench-plane-leafsize.toml")),
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
    for sum in sums(sweep, sweep.preset.n as usize, Method::Fmm) {
        // Without a leaf size: the one that the program chooses.
        all.push(Case::sum(sum.clone()));
        let leaves = sweep.preset.leaves.iter().map(|&leaf| Some(leaf as usize));
        all.extend(leaves.map(|leaf_size| Case::sum(Sum { leaf_size, ..sum.clone() })));
    }
    Ok(all)
}

fn name(record: &Record) -> String {
    format!("{}, {}", place_of(record), number(record.number("tolerance")))
}

/// Whether the leaf size was the program's own choice.
fn chosen(record: &Record) -> bool {
    !record.text("case").contains("/leaf")
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("set") == set).cloned().collect();
        let marks = here.iter().filter(|r| chosen(r)).map(|r| (r.number("leaf"), format!("chosen at {}", name(r))));
        let content = Content::Lines {
            x: Axis::log("most particles in a leaf"),
            y: Axis::log("time of one force evaluation (s)"),
            lines: lines(&here, "leaf", "seconds", name),
            marks: marks.collect(),
        };
        let subtitle = format!("{set}, N = {}; bars: eight tenths of the samples", here[0].number("n"));
        all.push((set, figure(&here, "Time by size of leaves", subtitle, content)));
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for ours in records.iter().filter(|r| chosen(r)) {
        let like = |r: &&Record| r.text("set") == ours.text("set") && name(r) == name(ours);
        let best = records.iter().filter(like).min_by(|a, b| a.number("seconds").total_cmp(&b.number("seconds")));
        let Some(best) = best else { continue };
        all.push(format!(
            "{}, {}: leaves of {} are fastest ({} s); the choice, {}, takes {} times as long.",
            ours.text("set"),
            name(ours),
            best.number("leaf"),
            significant(best.number("seconds")),
            ours.number("leaf"),
            significant(ours.number("seconds") / best.number("seconds"))
        ));
    }
    all
}
