//! Figures and sentences of the suite `poisson`.

use fmm_core::grid::Solver;

use super::{sphere, threads};
use crate::lines::{figure, lines};
use crate::record::Record;
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::messages::bytes;

/// The largest value of a column.
fn largest(records: &[Record], column: &str) -> f64 {
    records.iter().map(|r| r.number(column)).fold(0.0, f64::max)
}

/// The records of the treecode on all threads, with the usual θ or with all.
fn trees(records: &[Record], all_thetas: bool) -> Vec<Record> {
    let (usual, most) = (Solver::default().theta, largest(records, "threads"));
    let wanted = |r: &&Record| {
        r.text("method") == "treecode" && r.number("threads") == most && (all_thetas || r.number("theta") == usual)
    };
    records.iter().filter(wanted).cloned().collect()
}

/// The records of the largest grid on the cores, by threads.
fn by_threads(records: &[Record]) -> Vec<Record> {
    let (usual, n) = (Solver::default().theta, largest(&trees(records, true), "n"));
    let wanted = |r: &&Record| {
        r.text("method") == "treecode" && r.text("device") == "cpu" && r.number("n") == n && r.number("theta") == usual
    };
    records.iter().filter(wanted).cloned().collect()
}

fn in_words(record: &Record) -> String {
    format!("p = {}, leaves of {}", record.number("order"), record.number("leaf"))
}

pub fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    const STAGES: [&str; 6] = ["tree", "lists", "P2M", "M2M", "M2P", "P2P"];
    let by_size = trees(records, false);
    if !by_size.is_empty() {
        let part = |r: &Record, s: &str| Some(r.number(&format!("stage_{s}"))).filter(|x| x.is_finite()).unwrap_or(0.0);
        let bars = by_size.iter().map(|r| {
            let mut lengths: Vec<f64> = STAGES.iter().map(|s| part(r, s)).collect();
            lengths.push(part(r, "output"));
            (
                format!("{}, finest {}", r.text("device"), r.number("n")),
                lengths,
                format!("{} s", significant(r.number("seconds"))),
            )
        });
        let content = Content::Stacked {
            x: Axis::linear("time of the stages (s)"),
            bars: bars.collect(),
            parts: STAGES.iter().map(|s| s.to_string()).chain(["others".into()]).collect(),
        };
        let subtitle = "two rings, by cells a side where the grid is finest; θ = 0.5; hybrid: P2P is the GPU's, at the same time as all that follows it";
        all.push(("stages".into(), figure(&by_size, "Where the time of the Poisson solver goes", subtitle, content)));
    }
    let finest = largest(&trees(records, true), "n");
    let by_theta: Vec<Record> = trees(records, true).into_iter().filter(|r| r.number("n") == finest).collect();
    if !by_theta.is_empty() {
        let name =
            |r: &Record| format!("{}, p = {}, {} threads", r.text("device"), r.number("order"), r.number("threads"));
        let content = Content::Lines {
            x: Axis::linear("θ"),
            y: Axis::log("time (s)"),
            lines: lines(&by_theta, "theta", "seconds", name),
            marks: vec![],
        };
        let subtitle = format!("two rings, {finest} cells a side where the grid is finest");
        all.push(("theta".into(), figure(&by_theta, "Time of the Poisson solver against θ", subtitle, content)));
    }
    let (usual, most) = (Solver::default().theta, largest(records, "threads"));
    let compared = |r: &&Record| match r.text("method") {
        "hockney" => true,
        "treecode" => r.number("theta") == usual && r.number("threads") == most,
        _ => false,
    };
    let both: Vec<Record> = records.iter().filter(compared).cloned().collect();
    if !both.is_empty() {
        let name = |r: &Record| match r.text("method") {
            "hockney" => "Hockney's convolution, uniform grid".to_string(),
            _ => {
                let (device, order, leaf) = (r.text("device"), r.number("order"), r.number("leaf"));
                format!("treecode on {device}, adapted grid, p = {order}, leaves of {leaf}")
            }
        };
        let content = Content::Lines {
            x: Axis::log("cells a side where the grid is finest"),
            y: Axis::log("time (s)"),
            lines: lines(&both, "n", "seconds", name),
            marks: vec![],
        };
        let subtitle = "two rings; errors are in the records, and of the same size";
        all.push(("rival".into(), figure(&both, "Ψ and u: treecode and fast convolution", subtitle, content)));
    }
    let counted = by_threads(records);
    if counted.len() > 1 {
        let subtitle = format!("Poisson solver, two rings, {finest} cells a side where the grid is finest");
        all.push(("threads".into(), threads::scaling(&counted, subtitle, in_words)));
    }
    all.extend(sphere::figures(records));
    all
}

pub fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for r in trees(records, false) {
        let share = |name: &str| format!("{:.0} %", 100.0 * r.number(name));
        let threads = r.number("threads");
        let cores = format!("the vector instructions that {threads} threads can issue");
        let units = "what the GPU's double-precision units can issue";
        let (direct, indirect) = (share("fraction_direct"), share("fraction_indirect"));
        let shares = match r.text("device").split(':').next() {
            Some("hybrid") => {
                format!("P2P at {direct} of {units} and M2P at {indirect} of {cores}; split {}", r.number("split"))
            }
            Some("cuda") => format!("P2P at {direct} and M2P at {indirect} of {units}"),
            _ => format!("P2P at {direct} and M2P at {indirect} of {cores}"),
        };
        all.push(format!(
            "{}, finest {}, p = {}, leaves of {}: {} s for {:.2e} cells and {:.2e} sources; {shares}.",
            r.text("device"),
            r.number("n"),
            r.number("order"),
            r.number("leaf"),
            significant(r.number("seconds")),
            r.number("cells"),
            r.number("sources"),
        ));
        let rival = records.iter().find(|o| o.text("method") == "hockney" && o.number("n") == r.number("n"));
        if let Some(o) = rival {
            let text = |r: &Record| {
                let (size, error) = (bytes(r.number("bytes") as u64), significant(r.number("psi_error")));
                format!("{} s, {size}, error of Ψ {error}", significant(r.number("seconds")))
            };
            all.push(format!("finest {}: treecode {}; Hockney's convolution {}.", r.number("n"), text(&r), text(o)));
        }
    }
    all.extend(threads::speedups(&by_threads(records), in_words));
    all
}
