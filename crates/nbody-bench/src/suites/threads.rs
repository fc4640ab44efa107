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

/// Numbers of threads: those of the preset, or 1, 2, 4, … and all.
pub(super) fn counts(sweep: &Sweep) -> Vec<usize> {
    let given = &sweep.preset.threads;
    if given.is_empty() {
        return (0..).map(|k| 1 << k).take_while(|&t| t < sweep.threads).chain([sweep.threads]).collect();
    }
    given.iter().map(|&t| t as usize).collect()
}

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let (counts, mut all) = (counts(sweep), vec![]);
    for sum in sums(sweep, sweep.preset.n as usize, Method::Fmm).into_iter().filter(|s| s.device == Device::Cpu) {
        all.extend(counts.iter().map(|&threads| Case::sum(Sum { threads, ..sum.clone() })));
    }
    Ok(all)
}

fn name(record: &Record) -> String {
    format!("{}, {}", record.text("set"), number(record.number("tolerance")))
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let Some(n) = records.first().map(|r| r.number("n")) else { return vec![] };
    vec![(String::new(), scaling(records, format!("FMM, N = {n}"), name))]
}

/// Time against threads, with what would be ideal.
pub(super) fn scaling(records: &[Record], subtitle: String, name: impl Fn(&Record) -> String) -> Figure {
    let mut all = lines(records, "threads", "seconds", name);
    let ideal = |l: &Line| {
        let (first, last) = (l.points.first()?, l.points.last()?);
        let end = (last.0, first.1 * first.0 / last.0);
        (last.0 > first.0).then(|| Line::new(format!("{}, ideal", l.name), vec![*first, end]).dashed())
    };
    let ideals: Vec<Line> = all.iter().filter_map(|l| Some(Line { color: l.color, ..ideal(l)? })).collect();
    all.extend(ideals);
    let content = Content::Lines {
        x: Axis::log("threads"),
        y: Axis::log("time of one evaluation (s)"),
        lines: all,
        marks: vec![],
    };
    figure(records, "Strong scaling", subtitle, content)
}

fn summary(records: &[Record]) -> Vec<String> {
    speedups(records, name)
}

/// How much faster the most threads are than the fewest.
pub(super) fn speedups(records: &[Record], name: impl Fn(&Record) -> String) -> Vec<String> {
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
