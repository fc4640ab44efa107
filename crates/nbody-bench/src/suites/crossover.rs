//! Time against N for direct sum, treecode and FMM on each device, all at one measured accuracy, and where they cross.

use fmm_core::Method;

use super::{place_of, suite, sums};
use crate::lines::{Crossing, crossing, distinct, figure, lines, numbers, overlap, speedups};
use crate::load;
use crate::norm::Norm;
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep, Work};
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(include_str!("../../../../configs/bench-plane-crossover.toml")),
    ..suite("crossover", include_str!("../../../../configs/bench-crossover.toml"), cases, figures, summary)
};

const METHODS: [Method; 3] = [Method::Direct, Method::Treecode, Method::Fmm];

/// Sums that would take longer than so many budgets are extrapolated.
const LONGEST: f64 = 3.0;

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let longest = LONGEST * sweep.preset.budget;
    let mut all = vec![];
    for n in sweep.preset.sizes() {
        // There is no treecode in the plane.
        let plane = sweep.preset.kernel().plane().is_some();
        for method in METHODS.into_iter().filter(|&m| !plane || m != Method::Treecode) {
            for sum in sums(sweep, n, method) {
                let estimate = if method == Method::Direct { 0.3e-9 * (n as f64).powi(2) } else { 4e-6 * n as f64 };
                let weight = (estimate * sweep.preset.samples).min(sweep.preset.budget).min(longest);
                let mut case = Case::sum(sum.clone());
                // The FMM is what the others are compared with.
                if method != Method::Fmm {
                    case.work = Work::SumOrGuess(sum, longest);
                }
                all.push(Case { weight: 0.05 + weight, ..case });
            }
        }
    }
    Ok(all)
}

fn name(record: &Record) -> String {
    format!("{} on {}", record.text("method"), place_of(record))
}

/// The curves of two names in some records, measured and extrapolated, at the N where their error bars do not overlap.
fn curves(records: &[Record], wanted: [String; 2]) -> [Vec<(f64, f64)>; 2] {
    let [mut a, mut b] = wanted.map(|w| records.iter().filter(|r| name(r) == w).collect::<Vec<_>>());
    a.sort_by(|a, b| a.number("n").total_cmp(&b.number("n")));
    a.retain(|a| b.iter().any(|b| a.number("n") == b.number("n") && !overlap(a, b)));
    b.retain(|b| a.iter().any(|a| a.number("n") == b.number("n")));
    [a, b].map(|list| list.iter().map(|r| (r.number("n"), r.number("seconds"))).collect())
}

/// The records of each set and tolerance.
fn groups(records: &[Record]) -> Vec<(String, f64, Vec<Record>)> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        for tolerance in numbers(records, "tolerance") {
            let here = records.iter().filter(|r| r.text("set") == set && r.number("tolerance") == tolerance);
            let here: Vec<Record> = here.cloned().collect();
            if !here.is_empty() {
                all.push((set.clone(), tolerance, here));
            }
        }
    }
    all
}

/// Where the FMM of a place overtakes its direct sum; nothing where other load disturbed the times.
fn crossings(records: &[Record]) -> Vec<(String, Crossing)> {
    if records.iter().any(load::disturbed) {
        return vec![];
    }
    let mut places: Vec<String> = vec![];
    for place in records.iter().map(place_of) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let of = |place: String| {
        let [direct, fmm] = curves(records, ["direct", "fmm"].map(|m| format!("{m} on {place}")));
        Some((place, crossing(&direct, &fmm)?))
    };
    places.into_iter().filter_map(of).collect()
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for (set, tolerance, here) in groups(records) {
        let marks = crossings(&here).into_iter().filter_map(|(place, c)| match c {
            Crossing::At(n) => Some((n, format!("N = {:.0}, {place}", round(n)))),
            _ => None,
        });
        let content = Content::Lines {
            x: Axis::log("particles N"),
            y: Axis::log("time of one force evaluation, tree included (s)"),
            lines: lines(&here, "n", "seconds", name),
            marks: marks.collect(),
        };
        let fast = if here.iter().any(|r| r.text("method") == "treecode") { ", treecode" } else { "" };
        let title = format!("Direct sum{fast} and FMM at the same measured accuracy");
        let subtitle = format!(
            "{set}, {} at most {}; bars: eight tenths of the samples",
            Norm::of(&here[0]).errors(),
            number(tolerance)
        );
        let end = format!("{set}-{tolerance:e}");
        all.push((end.clone(), figure(&here, title, subtitle, content)));
        all.extend(on_both(&here, &end, &format!("{set}, {} threads", here[0].number("threads"))));
    }
    all
}

/// Parts whose speed-up is drawn, in two figures of few lines.
const PARTS: [&str; 4] = ["stage_M2L", "stage_P2P", "stage_tree", "stage_lists"];
const SHIFTS: [&str; 4] = ["stage_M2M", "stage_L2L", "stage_P2M", "stage_L2P"];

/// The speed-up of a GPU over the cores by the method, and that of each part of the FMM.
fn on_both(records: &[Record], end: &str, about: &str) -> Vec<(String, Figure)> {
    let fmm: Vec<Record> = records.iter().filter(|r| r.text("method") == "fmm").cloned().collect();
    let whole = lines(&speedups(records, &["seconds"]), "n", "speedup", |r| r.text("method").into());
    let of = |parts: &[&str]| lines(&speedups(&fmm, parts), "n", "speedup", |r| r.text("part").into());
    let drawn = [
        ("speedup", "Speed-up of a GPU over the cores", "whole sums by method", whole),
        ("parts", "Speed-up of each part of the FMM", "tree: keys, sort and cells", of(&PARTS)),
        ("shifts", "Speed-up of each part of the FMM", "shifts, and expansions of leaves", of(&SHIFTS)),
    ];
    let mut all = vec![];
    for (name, title, what, lines) in drawn.into_iter().filter(|d| !d.3.is_empty()) {
        let (x, y) = (Axis::log("particles N"), Axis::log("time on the cores / time on the GPU"));
        let content = Content::Lines { x, y, lines, marks: vec![] };
        all.push((format!("{end}-{name}"), figure(records, title, format!("{what}; {about}"), content)));
    }
    all
}

/// Rounds a crossing to two significant digits, which is all its accuracy.
fn round(n: f64) -> f64 {
    let unit = 10f64.powf(n.log10().floor() - 1.0);
    (n / unit).round() * unit
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for (set, tolerance, here) in groups(records) {
        let about = format!("{set}, {}", number(tolerance));
        for (place, crossing) in crossings(&here) {
            all.push(match crossing {
                Crossing::At(n) => {
                    format!("{about}: on {place} the FMM overtakes the direct sum at N = {:.0}.", round(n))
                }
                Crossing::Before(n) => {
                    format!("{about}: on {place} the FMM is faster than the direct sum at all N from {n}.")
                }
                Crossing::After(n) => {
                    format!("{about}: on {place} the FMM is not faster than the direct sum up to N = {n}.")
                }
            });
        }
        let largest = here.iter().map(|r| r.number("n")).fold(0.0, f64::max);
        let at_end: Vec<&Record> = here.iter().filter(|r| r.number("n") == largest).collect();
        let ours = at_end.iter().filter(|r| r.text("method") == "fmm");
        let Some(best) = ours.min_by(|a, b| a.number("seconds").total_cmp(&b.number("seconds"))) else { continue };
        for other in at_end.iter().filter(|r| !std::ptr::eq(**r, *best)) {
            all.push(ratio(&about, largest, best, other));
        }
    }
    all
}

/// "fmm on cuda:0 ran 12.3 ± 0.4 times faster than …".
fn ratio(about: &str, n: f64, best: &Record, other: &Record) -> String {
    if overlap(best, other) {
        let names = (name(best), name(other));
        return format!(
            "{about}: at N = {n} the error bars of {} and {} overlap: which is faster is not known.",
            names.0, names.1
        );
    }
    let part = |r: &Record| {
        let half = 0.5 * (r.number("seconds_high") - r.number("seconds_low")) / r.number("seconds");
        if half.is_finite() { half } else { 0.0 }
    };
    let ratio = other.number("seconds") / best.number("seconds");
    let spread = ratio * part(best).hypot(part(other));
    let guessed = if other.is("extrapolated") { ", which was extrapolated" } else { "" };
    format!(
        "{about}: at N = {n} {} ran {} ± {} times faster than {}{guessed}.",
        name(best),
        significant(ratio),
        significant(spread),
        name(other)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_reads_as_sentences() {
        let record = |method: &str, n: u64, seconds: f64, guessed: bool| {
            let mut r = Record::default();
            r.set("set", "uniform").set("tolerance", 1e-3).set("device", "cpu").set("threads", 2).set("method", method);
            r.set("n", n).set("seconds", seconds).set("extrapolated", guessed);
            if !guessed {
                r.set("seconds_low", 0.9 * seconds).set("seconds_high", 1.1 * seconds);
            }
            r
        };
        let records = [
            record("direct", 1000, 1.0, false),
            record("fmm", 1000, 2.0, false),
            record("direct", 10_000, 100.0, true),
            record("fmm", 10_000, 20.0, false),
        ];
        let text = summary(&records);
        // log(1/2) to log(5): the fraction ln 2 / ln 10 of the decade.
        let first = "uniform, 0.001: on cpu, 2 threads the FMM overtakes the direct sum at N = 2000.";
        assert_eq!(text[0], first);
        let second = "fmm on cpu, 2 threads ran 5.00 ± 0.500 times faster than direct on cpu, 2 threads, which was extrapolated.";
        assert!(text.len() == 2 && text[1].ends_with(second), "{text:?}");
        // Bars that overlap, and times that others disturbed, lead to no crossing.
        let mut close = records.clone();
        close[1].set("seconds_low", 1.05);
        assert!(
            !summary(&close)[0].contains("overtakes") && summary(&close)[0].contains("faster"),
            "{:?}",
            summary(&close)
        );
        close[3].set("seconds", 95.0).set("seconds_low", 85.0).set("seconds_high", 105.0);
        let text = summary(&close);
        assert!(text.len() == 1 && text[0].contains("overlap: which is faster is not known"), "{text:?}");
        let mut disturbed = records.clone();
        disturbed[0].set("other_load", 1.0);
        assert!(crossings(&disturbed).is_empty());
        let figures = figures(&records);
        let Content::Lines { lines, marks, .. } = &figures[0].1.content else { panic!("lines") };
        assert_eq!((figures.len(), lines.len(), marks.len()), (1, 3, 1));
        // With a GPU also how much faster it is.
        let mut both = records.to_vec();
        for (k, record) in both.iter_mut().enumerate() {
            record.set("case", format!("cpu/{k}")).set("stage_P2P", 0.5);
        }
        for (k, mut record) in both.clone().into_iter().enumerate() {
            record.set("case", format!("cuda:0/{k}")).set("device", "cuda:0").set("stage_P2P", 0.1);
            both.push(record);
        }
        let figures = super::figures(&both);
        let names: Vec<&str> = figures.iter().map(|f| &f.0[..]).collect();
        assert_eq!(names, ["uniform-1e-3", "uniform-1e-3-speedup", "uniform-1e-3-parts"]);
        let Content::Lines { lines, .. } = &figures[2].1.content else { panic!("lines") };
        assert_eq!(lines[0].points, [(1000.0, 5.0), (10_000.0, 5.0)]);
    }
}
