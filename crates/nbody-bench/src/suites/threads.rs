//! Strong scaling: the same sum on more and more threads.

use fmm_core::Method;

use super::{suite, sums};
use crate::lines::{figure, lines};
use crate::measure::Sum;
use crate::record::Record;
use crate::suite::{Case, Places, Suite, Sweep};
use crate::table::significant;
use fmm::Device;
use nbody_cli::figure::{Axis, Content, Figure, Line};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    places: Places::Cores,
    ..suite("threads", include_str!("../../../../configs/bench-threads.toml"), cases, figures, summary)
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut counts: Vec<usize> = sweep.preset.threads.iter().map(|&t| t as usize).collect();
    if counts.is_empty() {
        counts = (0..).map(|k| 1 << k).take_while(|&t| t < sweep.threads).chain([sweep.threads]).collect();
    }
    let mut all = vec![];
    for sum in sums(sweep, sweep.preset.n as usize, Method::Fmm).into_iter().filter(|s| s.device == Device::Cpu) {
        all.extend(counts.iter().map(|&threads| Case::sum(Sum { threads, ..sum.clone() })));
    }
    Ok(all)
}

fn name(record: &Record) -> String {
    format!("{}, {}", record.text("set"), number(record.number("tolerance")))
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = lines(records, "threads", "seconds", name);
    let ideal = |l: &Line| {
        let (first, last) = (l.points.first()?, l.points.last()?);
        let end = (last.0, first.1 * first.0 / last.0);
        (last.0 > first.0).then(|| Line::new(format!("{}, ideal", l.name), vec![*first, end]).dashed())
    };
    let ideals: Vec<Line> = all.iter().filter_map(|l| Some(Line { color: l.color, ..ideal(l)? })).collect();
    all.extend(ideals);
    let Some(n) = records.first().map(|r| r.number("n")) else { return vec![] };
    let content = Content::Lines {
        x: Axis::log("threads"),
        y: Axis::log("time of one force evaluation (s)"),
        lines: all,
        marks: vec![],
    };
    vec![(String::new(), figure(records, "Strong scaling", format!("FMM, N = {n}"), content))]
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for line in lines(records, "threads", "seconds", name) {
        if let (Some(first), Some(last)) = (line.points.first(), line.points.last())
            && last.0 > first.0
        {
            let speedup = significant(first.1 / last.1);
            all.push(format!("{}: {} threads are {speedup} times as fast as {}.", line.name, last.0, first.0));
        }
    }
    all
}
