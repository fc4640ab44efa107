//! The figures of `nbody bench m2l`, as those of Kohnke et al.: the order p along the axis, and no figure for more
//! than one precision.

use crate::lines::{distinct, figure, lines, numbers};
use crate::record::Record;
use nbody_cli::figure::{Axis, Content, Figure, Line};

/// The versions that are compared, the cores last.
const VERSIONS: [&str; 6] = ["loops", "groups", "rotations", "tensor cores", "products of the groups", CORES];
/// The paper's approaches: (1), (1) in unified memory, (2), (3) in one kernel and in one for each size of the groups,
/// and the bound.
const APPROACHES: [&str; 6] =
    ["loops", "loops in unified memory", "launches", "groups", "groups by size", "products of the groups"];
/// Members of a group, and how many translations of a cell are of these groups.
const SIZES: [(usize, f64); 4] = [(1, 7.0), (2, 42.0), (4, 84.0), (8, 56.0)];
/// What the groups take for their loads alone and for their products alone.
const BOUNDS: [&str; 2] = ["loads of the groups", "products of the groups"];
/// Translations of a cell.
pub const EACH: usize = 189;
/// The reference.
pub const CORES: &str = "cores";

/// All figures.
pub fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    let mut sizes = numbers(records, "n");
    sizes.sort_by(f64::total_cmp);
    for precision in distinct(records, "precision") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("precision") == precision).cloned().collect();
        let about = |depth: &str| format!("{depth}{precision}, the last level of a full octree in a periodic box");
        let mut add = |end: String, title: &str, depth: &str, y: Axis, lines: Vec<Line>| {
            if !lines.is_empty() {
                let content = Content::Lines { x: Axis::log("order p"), y, lines, marks: vec![] };
                all.push((end, figure(&here, title, about(depth), content)));
            }
        };
        for &n in &sizes {
            let level = format!("level {}, {n} translations, ", level(n));
            let of_level = at(&here, n);
            let y = Axis::log("time of all translations (s)");
            let end = format!("{precision}-level{}", self::level(n));
            add(format!("time-{end}"), "Time of M2L by the order", &level, y, of(&VERSIONS, &of_level, "seconds"));
            let y = Axis::log("time of all translations (s)");
            let lines = of(&APPROACHES, &of_level, "seconds");
            add(format!("approaches-{end}"), "Time of M2L by the order, approaches of the paper", &level, y, lines);
            let y = Axis::log("Gflop/s by the formulas of each version");
            add(format!("gflops-{end}"), "Rate of M2L by the order", &level, y, of(&VERSIONS, &of_level, "gflops"));
        }
        if let Some(&n) = sizes.first() {
            let y = Axis::linear("time of a translation in groups of one / in larger groups");
            let level = format!("level {}, a kernel for the groups of each size, ", level(n));
            add(format!("sizes-{precision}"), "Speed-up by the size of the groups", &level, y, by_size(&at(&here, n)));
            let y = Axis::log("operations of one translation");
            add(
                format!("operations-{precision}"),
                "Operations of M2L by the order",
                "",
                y,
                of(&VERSIONS, &at(&here, n), "operations"),
            );
        }
        let y = Axis::log("time of all translations (s)");
        let bounds: Vec<Record> = here.iter().filter(|r| BOUNDS.contains(&version(r))).cloned().collect();
        let name = |r: &Record| format!("{}, level {}", version(r).replace(" of the groups", ""), level(r.number("n")));
        add(
            format!("bounds-{precision}"),
            "Loads alone and products alone of the groups",
            "",
            y,
            lines(&bounds, "order", "seconds", name),
        );
        let y = Axis::linear("time of the loops / time of the groups");
        add(
            format!("groups-{precision}"),
            "Speed-up of the groups over the loops",
            "",
            y,
            ratios(&here, &sizes, "loops", "groups"),
        );
        let y = Axis::linear("time of the products alone / time of the groups");
        let share = ratios(&here, &sizes, "products of the groups", "groups");
        add(format!("share-{precision}"), "Share of the products in the groups", "", y, share);
    }
    all
}

/// The version of a record: its operator without the precision.
fn version(record: &Record) -> &str {
    record.text("operator").split(',').next().unwrap_or_default()
}

/// The level whose translations these are.
fn level(n: f64) -> f64 {
    ((n / EACH as f64).log2() / 3.0).round()
}

/// The records of this number of translations. The cores translate pairs in their caches: their time is that of as
/// many at the same rate.
fn at(records: &[Record], n: f64) -> Vec<Record> {
    let mut here: Vec<Record> = records.iter().filter(|r| r.number("n") == n && version(r) != CORES).cloned().collect();
    for cores in records.iter().filter(|r| version(r) == CORES) {
        let mut record = cores.clone();
        let seconds = n / cores.number("rate");
        record.set("n", n).set("seconds", seconds).set("seconds_low", seconds).set("seconds_high", seconds);
        here.push(record);
    }
    here
}

/// How many times less a translation takes in groups of two, four and eight than in groups of one.
fn by_size(records: &[Record]) -> Vec<Line> {
    let all: Vec<&Record> = records.iter().filter(|r| version(r) == "groups by size").collect();
    let each =
        |r: &Record, (size, translations): (usize, f64)| r.number(&format!("part_groups of {size}")) / translations;
    let line = |&size: &(usize, f64)| {
        let mut points: Vec<(f64, f64)> =
            all.iter().map(|r| (r.number("order"), each(r, SIZES[0]) / each(r, size))).collect();
        points.retain(|p| p.1.is_finite());
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (!points.is_empty()).then(|| Line::new(format!("groups of {}", size.0), points))
    };
    SIZES[1..].iter().filter_map(line).collect()
}

/// A line for each of these versions, in the same color in every figure of them.
fn of(versions: &[&str], records: &[Record], value: &str) -> Vec<Line> {
    let line = |(color, wanted): (usize, &&str)| {
        let here: Vec<Record> = records.iter().filter(|r| version(r) == *wanted).cloned().collect();
        let line = lines(&here, "order", value, |r| match version(r) {
            CORES => super::place_of(r),
            other => other.to_string(),
        });
        Some(Line { color: Some(color), ..line.into_iter().next()? })
    };
    versions.iter().enumerate().filter_map(line).collect()
}

/// The time of one version over that of another, a line for each level.
fn ratios(records: &[Record], sizes: &[f64], upper: &str, lower: &str) -> Vec<Line> {
    let mut all = vec![];
    for &n in sizes {
        let find = |wanted: &str, order: f64| {
            let like = |r: &&Record| version(r) == wanted && r.number("n") == n && r.number("order") == order;
            records.iter().find(like).map(|r| r.number("seconds"))
        };
        let mut orders = numbers(records, "order");
        orders.sort_by(f64::total_cmp);
        let point = |p: f64| Some((p, find(upper, p)? / find(lower, p)?));
        let points: Vec<(f64, f64)> = orders.into_iter().filter_map(point).collect();
        if !points.is_empty() {
            all.push(Line::new(format!("level {}", level(n)), points));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_figure_has_more_than_six_lines() {
        let mut records = vec![];
        let mut operators: Vec<&str> = VERSIONS.into_iter().chain(BOUNDS).chain(APPROACHES).collect();
        operators.sort_unstable();
        operators.dedup();
        for operator in operators {
            let seconds = match operator {
                "loops" => 4.0,
                "groups" => 2.0,
                _ => 1.0,
            };
            for precision in ["f32", "f64"] {
                for n in [96_768, 774_144, 6_193_152] {
                    for order in [20, 1, 4] {
                        let mut r = Record::default();
                        r.set("operator", format!("{operator}, {precision}")).set("precision", precision);
                        r.set("n", n).set("order", order).set("seconds", seconds).set("rate", 1e6).set("operations", 9);
                        if operator == "groups by size" {
                            for (size, took) in [(1, 7.0), (2, 21.0), (4, 28.0), (8, 14.0)] {
                                r.set(&format!("part_groups of {size}"), took);
                            }
                        }
                        records.push(r.set("gflops", 1.0).set("device", "cuda:0").clone());
                    }
                }
            }
        }
        let figures = figures(&records);
        let lines = |end: &str| match figures.iter().find(|f| f.0 == end).map(|f| &f.1.content) {
            Some(Content::Lines { lines, .. }) => lines.clone(),
            _ => panic!("{end} is missing: {:?}", figures.iter().map(|f| &f.0).collect::<Vec<_>>()),
        };
        assert!(figures.iter().all(|f| lines(&f.0).len() <= 6));
        assert_eq!(lines("share-f32")[0].points, [(1.0, 0.5), (4.0, 0.5), (20.0, 0.5)]);
        // 42 translations in 21 s, where 7 take 7 s; 84 in 28 s, and 56 in 14 s.
        let sizes: Vec<_> = lines("sizes-f32").into_iter().map(|l| (l.name, l.points)).collect();
        let level = |x: f64| vec![(1.0, x), (4.0, x), (20.0, x)];
        let expected = [("groups of 2", 2.0), ("groups of 4", 3.0), ("groups of 8", 4.0)];
        assert_eq!(sizes, expected.map(|(name, x)| (name.to_string(), level(x))));
        assert_eq!(lines("approaches-f64-level3").len(), APPROACHES.len());
        assert_eq!((lines("groups-f64").len(), lines("operations-f32").len()), (3, 6));
        assert_eq!(lines("time-f64-level4").len(), 6);
        // Of the cores only the rate counts.
        let cores = lines("time-f32-level3").pop().unwrap();
        assert!((cores.points[0].1 - 0.096_768).abs() < 1e-12, "{:?}", cores.points);
    }
}
