//! Time a particle against N for sets that lie differently.

use fmm_core::Method;

use super::{place_of, suite, sums};
use crate::lines::{figure, lines, numbers};
use crate::measure::Sum;
use crate::norm::Norm;
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep};
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(include_str!("../../../../configs/bench-plane-distributions.toml")),
    ..suite("distributions", include_str!("../../../../configs/bench-distributions.toml"), cases, figures, summary)
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for n in sweep.preset.sizes() {
        for sum in sums(sweep, n, Method::Fmm) {
            let widths = if sum.set.has_width() { &sweep.preset.sigmas[..] } else { &[] };
            all.extend(widths.iter().map(|&w| Case::sum(Sum { sigma: Some(w), ..sum.clone() })));
            if widths.is_empty() {
                all.push(Case::sum(sum));
            }
        }
    }
    Ok(all)
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for tolerance in numbers(records, "tolerance") {
        let here: Vec<Record> = records.iter().filter(|r| r.number("tolerance") == tolerance).cloned().collect();
        if numbers(&here, "sigma").len() > 1 {
            all.push((format!("{tolerance:e}-sigma"), widths(&here, tolerance)));
            continue;
        }
        let content = Content::Lines {
            x: Axis::log("particles N"),
            y: Axis::log("time of one force evaluation (s)"),
            lines: lines(&here, "n", "seconds", |r| format!("{}, {}", r.text("set"), place_of(r))),
            marks: vec![],
        };
        let width = numbers(&here, "sigma").first().map_or(String::new(), |s| format!("; normal and layer: σ = {s}"));
        let subtitle = format!("FMM, {} at most {}{width}", Norm::of(&here[0]).errors(), number(tolerance));
        all.push((format!("{tolerance:e}"), figure(&here, "Time by the shape of the set", subtitle, content)));
    }
    all
}

/// The time over that of the uniform set against the width of the sets, at the largest N.
fn widths(records: &[Record], tolerance: f64) -> Figure {
    let largest = records.iter().map(|r| r.number("n")).fold(0.0, f64::max);
    let here: Vec<Record> = records.iter().filter(|r| r.number("n") == largest).cloned().collect();
    let mut relative = here.clone();
    for r in &mut relative {
        let uniform = here.iter().find(|u| u.text("set") == "uniform" && u.text("device") == r.text("device"));
        r.set("relative", uniform.map_or(f64::NAN, |u| r.number("seconds") / u.number("seconds")));
    }
    let content = Content::Lines {
        x: Axis::log("width σ over the side of the square"),
        y: Axis::linear("time / time of the uniform set"),
        lines: lines(&relative, "sigma", "relative", |r| format!("{}, {}", r.text("set"), place_of(r))),
        marks: vec![],
    };
    let about = "points outside the unit square (cube) are drawn again";
    let errors = Norm::of(&here[0]).errors();
    let subtitle = format!("FMM, N = {largest}, {errors} at most {}; {about}", number(tolerance));
    figure(&here, "Time by the width of the set", subtitle, content)
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
            let sigma = r.number("sigma");
            let width = if sigma.is_finite() { format!(" (σ = {sigma})") } else { String::new() };
            all.push(format!(
                "{}{width}, {}, N = {largest}, {}: {} times the time of the uniform set.",
                r.text("set"),
                place_of(r),
                number(r.number("tolerance")),
                significant(r.number("seconds") / uniform.number("seconds"))
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_by_width_are_over_those_of_the_uniform_set_of_the_same_place() {
        let record = |device: &str, set: &str, sigma: f64, seconds: f64| {
            let mut r = Record::default();
            r.set("device", device).set("threads", 1).set("set", set).set("n", 1000).set("tolerance", 1e-6);
            // The uniform set has no width.
            r.set("sigma", sigma).set("seconds", seconds).clone()
        };
        let records = [
            record("cpu", "uniform", f64::NAN, 2.0),
            record("cuda:0", "uniform", f64::NAN, 1.0),
            record("cpu", "normal", 0.1, 3.0),
            record("cpu", "normal", 0.5, 2.0),
            record("cuda:0", "normal", 0.1, 1.25),
        ];
        let figures = figures(&records);
        let Content::Lines { lines, .. } = &figures[0].1.content else { panic!("lines") };
        assert_eq!((&figures[0].0[..], lines.len()), ("1e-6-sigma", 2));
        assert_eq!(lines[0].points, [(0.1, 1.5), (0.5, 1.0)]);
        assert_eq!(lines[1].points, [(0.1, 1.25)]);
    }
}
