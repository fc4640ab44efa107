//! Time against the size of leaves: how wide the best choice is, and whether ours lies in it.

use fmm_core::Method;

use super::{place_of, suite, sums};
use crate::lines::{distinct, figure, lines, numbers, speedups};
use crate::measure::Sum;
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep};
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(include_str!("../../../../configs/bench-plane-leafsize.toml")),
    ..suite("leafsize", include_str!("../../../../configs/bench-leafsize.toml"), cases, figures, summary)
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    if sweep.preset.boxes.is_none() {
        // Without a leaf size: the one that the program chooses.
        all.extend(sums(sweep, sweep.preset.n as usize, Method::Fmm).into_iter().map(Case::sum));
    }
    for (leaf, n) in sweep.preset.leaves() {
        let of_leaf = |sum| Case::sum(Sum { leaf_size: Some(leaf), ..sum });
        all.extend(sums(sweep, n, Method::Fmm).into_iter().map(of_leaf));
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

/// Parts whose time depends on the points in a box: Goude & Engblom, Fig. 2.
const PARTS: [&str; 4] = ["stage_P2M", "stage_L2P", "stage_P2P", "stage_tree"];

/// Full boxes, as many for each size: time of a point over the least of its line, and the speed-up of each part.
fn by_points_in_a_box(set: &str, records: &[Record]) -> Vec<(String, Figure)> {
    let mut relative = records.to_vec();
    let time = |r: &Record| r.number("seconds") / r.number("n");
    for r in &mut relative {
        let least = records.iter().filter(|o| name(o) == name(r)).map(time).fold(f64::INFINITY, f64::min);
        r.set("relative", time(r) / least);
    }
    let boxes = (records[0].number("n") / records[0].number("per_box")).round();
    let x = || Axis::linear("points in a box N_d");
    let drawn = [
        (
            "relative",
            "Time by points in a box",
            "time of a point / least time",
            lines(&relative, "per_box", "relative", name),
        ),
        (
            "parts",
            "Speed-up of each part by points in a box",
            "time on the cores / time on the GPU",
            lines(&speedups(records, &PARTS), "per_box", "speedup", |r| r.text("part").into()),
        ),
    ];
    let mut all = vec![];
    for (end, title, y, lines) in drawn.into_iter().filter(|d| !d.3.is_empty()) {
        let content = Content::Lines { x: x(), y: Axis::linear(y), lines, marks: vec![] };
        let subtitle =
            format!("{set}, {boxes} boxes, N = {boxes} N_d, cores: {} threads", records[0].number("threads"));
        all.push((format!("{set}-{end}"), figure(records, title, subtitle, content)));
    }
    all
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("set") == set).cloned().collect();
        if numbers(&here, "n").len() > 1 {
            all.extend(by_points_in_a_box(&set, &here));
            continue;
        }
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
    if numbers(records, "n").len() > 1 {
        let mut names: Vec<String> = records.iter().map(name).collect();
        names.sort();
        names.dedup();
        let time = |r: &&Record| r.number("seconds") / r.number("n");
        for wanted in names {
            let here = records.iter().filter(|r| name(r) == wanted);
            let Some(best) = here.min_by(|a, b| time(a).total_cmp(&time(b))) else { continue };
            let (points, each) = (best.number("per_box"), significant(1e9 * time(&best)));
            all.push(format!("{wanted}: boxes of {points} points are fastest, {each} ns a point."));
        }
        return all;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_boxes_are_compared_by_the_time_of_a_point() {
        let record = |device: &str, points: f64, each: f64| {
            let (n, mut r) = (16.0 * points, Record::default());
            r.set("case", format!("{device}/{points}")).set("device", device).set("set", "uniform").set("threads", 2);
            r.set("tolerance", 1e-6).set("n", n).set("per_box", points).set("seconds", each * n);
            r.set("stage_P2P", 0.5 * each * n).clone()
        };
        let records = [
            record("cpu", 8.0, 6.0),
            record("cpu", 32.0, 3.0),
            record("cuda:0", 8.0, 1.0),
            record("cuda:0", 32.0, 0.25),
        ];
        let figures = figures(&records);
        let lines = |k: usize| match &figures[k].1.content {
            Content::Lines { lines, .. } => lines,
            _ => panic!("lines"),
        };
        let names: Vec<&str> = figures.iter().map(|f| &f.0[..]).collect();
        assert_eq!(names, ["uniform-relative", "uniform-parts"]);
        assert_eq!(lines(0)[0].points, [(8.0, 2.0), (32.0, 1.0)]);
        assert_eq!(lines(0)[1].points, [(8.0, 4.0), (32.0, 1.0)]);
        assert_eq!(lines(1)[0].points, [(8.0, 6.0), (32.0, 12.0)]);
        assert!(summary(&records)[0].contains("boxes of 32 points are fastest"), "{:?}", summary(&records));
    }
}
