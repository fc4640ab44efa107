//! Lines of a figure from records, and where two of them cross.

use super::machine;
use super::record::Record;
use nbody_cli::figure::{Content, Figure, Line};

/// The name of what goes on from measured points.
const EXTRAPOLATED: &str = "dashed: extrapolated";

/// One line for each name, of the values `x` and `y`; sorted by x, with error bars where y is a time. What was extrapolated is a dashed
/// line of the same colour.
pub fn lines(records: &[Record], x: &str, y: &str, name: impl Fn(&Record) -> String) -> Vec<Line> {
    let mut names: Vec<String> = vec![];
    for record in records {
        let name = name(record);
        if !names.contains(&name) && record.number(x).is_finite() && record.number(y).is_finite() {
            names.push(name);
        }
    }
    let mut all = vec![];
    for (color, wanted) in names.into_iter().enumerate() {
        let mut here: Vec<&Record> =
            records.iter().filter(|r| name(r) == wanted && (r.number(x) + r.number(y)).is_finite()).collect();
        here.sort_by(|a, b| a.number(x).total_cmp(&b.number(x)));
        let point = |r: &&Record| (r.number(x), r.number(y));
        let (guessed, measured): (Vec<&Record>, Vec<&Record>) = here.iter().partition(|r| r.is("extrapolated"));
        let spread = match y {
            "seconds" => measured.iter().map(|r| (r.number("seconds_low"), r.number("seconds_high"))).collect(),
            _ => vec![],
        };
        let points: Vec<(f64, f64)> = measured.iter().map(point).collect();
        let mut dashed: Vec<(f64, f64)> = points.last().copied().into_iter().collect();
        dashed.extend(guessed.iter().map(point));
        let of_measured = !points.is_empty();
        if of_measured {
            all.push(Line { spread, color: Some(color), ..Line::new(&wanted, points) });
        }
        if !guessed.is_empty() {
            // One entry of the legend for all: the color says of what.
            let name = if of_measured { EXTRAPOLATED.to_string() } else { format!("{wanted}, extrapolated") };
            let line = Line::new(name, dashed).dashed();
            all.push(Line { color: Some(color), ..line });
        }
    }
    all
}

/// How many times faster than the cores a GPU is: for each case that was measured on both, the record of the
/// GPU with the ratio of each of these times as `speedup`, and the name of the time as `part`.
pub fn speedups(records: &[Record], times: &[&str]) -> Vec<Record> {
    let case = |r: &Record| r.text("case").split_once('/').map(|(_, case)| case.to_string());
    let on_cores = |r: &&Record| r.text("device") == "cpu";
    let mut all = vec![];
    for gpu in records.iter().filter(|r| !on_cores(r)) {
        let Some(cores) = records.iter().filter(on_cores).find(|r| case(r) == case(gpu)) else { continue };
        for time in times {
            let mut record = gpu.clone();
            record.set("speedup", cores.number(time) / gpu.number(time)).set("part", part(time));
            record.set("extrapolated", cores.is("extrapolated") || gpu.is("extrapolated"));
            all.push(record);
        }
    }
    all
}

/// The name of a stage without what it has in front in a record.
pub fn part(time: &str) -> &str {
    time.strip_prefix("stage_").unwrap_or(time)
}

/// A figure of some records, with their machines in the caption. A line that is alone has no legend: the
/// subtitle names it.
pub fn figure(records: &[Record], title: impl Into<String>, subtitle: impl Into<String>, content: Content) -> Figure {
    let mut subtitle = subtitle.into();
    if let Content::Lines { lines, .. } = &content
        && let [line] = &lines[..]
        && !subtitle.contains(&line.name)
    {
        subtitle = format!("{}; {subtitle}", line.name);
    }
    Figure { title: title.into(), subtitle, caption: machine::caption(records), content }
}

/// The distinct texts under a name, in the order in which they come.
pub fn distinct(records: &[Record], name: &str) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for text in records.iter().map(|r| r.text(name).to_string()) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// The distinct numbers under a name, in the order in which they come.
pub fn numbers(records: &[Record], name: &str) -> Vec<f64> {
    let mut all: Vec<f64> = vec![];
    for value in records.iter().map(|r| r.number(name)).filter(|v| v.is_finite()) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// The ends of the error bar of a time; both the time itself where it was extrapolated.
fn bar(record: &Record) -> [f64; 2] {
    let end = |name: &str| Some(record.number(name)).filter(|v| v.is_finite()).unwrap_or(record.number("seconds"));
    [end("seconds_low"), end("seconds_high")]
}

/// Whether the error bars of two times have common points, so that neither is known to be the shorter one.
pub fn overlap(a: &Record, b: &Record) -> bool {
    let ([a_low, a_high], [b_low, b_high]) = (bar(a), bar(b));
    a_low <= b_high && b_low <= a_high
}

/// Where the second curve falls below the first for good: straight lines between points of log-log plots. Points ascend in x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Crossing {
    /// Below already at the first common point.
    Before(f64),
    /// Here.
    At(f64),
    /// Not below at the last common point.
    After(f64),
}

/// The crossing of two curves at their common places; none if they have none.
pub fn crossing(first: &[(f64, f64)], second: &[(f64, f64)]) -> Option<Crossing> {
    let common: Vec<(f64, f64)> = first
        .iter()
        .filter_map(|&(x, a)| second.iter().find(|s| s.0 == x).map(|s| (x, (s.1 / a).ln())))
        .filter(|p| p.1.is_finite())
        .collect();
    let last = common.last()?;
    if last.1 >= 0.0 {
        return Some(Crossing::After(last.0));
    }
    match common.iter().rposition(|p| p.1 >= 0.0) {
        None => Some(Crossing::Before(common[0].0)),
        Some(i) => {
            let ((x0, d0), (x1, d1)) = (common[i], common[i + 1]);
            Some(Crossing::At((x0.ln() + (x1 / x0).ln() * d0 / (d0 - d1)).exp()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_cross_where_they_are_equal() {
        let quadratic: Vec<(f64, f64)> = [1.0, 10.0, 100.0].map(|x| (x, x * x)).to_vec();
        let linear: Vec<(f64, f64)> = [1.0, 10.0, 100.0, 1e3].map(|x| (x, 5.0 * x)).to_vec();
        let Some(Crossing::At(x)) = crossing(&quadratic, &linear) else { panic!("they cross at 5") };
        assert!((x - 5.0).abs() < 1e-12, "{x}");
        assert_eq!(crossing(&quadratic[2..], &linear), Some(Crossing::Before(100.0)));
        assert_eq!(crossing(&quadratic[..1], &linear), Some(Crossing::After(1.0)));
        assert_eq!(crossing(&quadratic[..1], &linear[1..]), None);
    }

    #[test]
    fn speedups_are_of_the_same_case_on_both() {
        let record = |case: &str, seconds: f64, p2p: f64| {
            let mut r = Record::default();
            r.set("case", case).set("device", case.split('/').next().unwrap());
            r.set("seconds", seconds).set("stage_P2P", p2p).clone()
        };
        let records =
            [record("cpu/fmm/n10", 8.0, 3.0), record("cuda:0/fmm/n10", 2.0, 1.0), record("cuda:0/fmm/n20", 1.0, 1.0)];
        let all = speedups(&records, &["seconds", "stage_P2P"]);
        let shown: Vec<_> = all.iter().map(|r| (r.text("part"), r.number("speedup"))).collect();
        assert_eq!(shown, [("seconds", 4.0), ("P2P", 3.0)]);
    }

    #[test]
    fn what_was_extrapolated_is_dashed_in_the_same_colour() {
        let record = |n: usize, method: &str, seconds: f64, guessed: bool| {
            let mut r = Record::default();
            r.set("n", n).set("method", method).set("seconds", seconds).set("extrapolated", guessed);
            r.set("seconds_low", 0.9 * seconds).set("seconds_high", 1.1 * seconds);
            r
        };
        let records = [
            record(20, "a", 4.0, true),
            record(10, "a", 1.0, false),
            record(10, "b", 2.0, false),
            record(10, "c", f64::NAN, false),
        ];
        let lines = lines(&records, "n", "seconds", |r| r.text("method").into());
        let shown: Vec<_> = lines.iter().map(|l| (&l.name[..], l.points.len(), l.dashed, l.color)).collect();
        assert_eq!(shown, [("a", 1, false, Some(0)), (EXTRAPOLATED, 2, true, Some(0)), ("b", 1, false, Some(1))]);
        assert_eq!(lines[0].spread, [(0.9, 1.1)]);
    }
}
