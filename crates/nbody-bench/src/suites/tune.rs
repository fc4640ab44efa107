//! The constants of the cost model and the tables of errors, measured here, as text for maintainers
//! of `crates/fmm-core/src/accuracy/`. The program reads nothing of it: a choice never depends on a
//! timing.

use fmm_core::cpu::workload::Operator;
use fmm_core::{Method, Precision};

use super::operators::time;
use super::{suite, sums};
use crate::measure::Sum;
use crate::record::Record;
use crate::suite::{Case, Places, Suite, Sweep, Work};
use crate::table::significant;
use fmm::Device;
use nbody_cli::figure::Figure;
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    places: Places::Cores,
    texts: |records| vec![("constants.toml", text(records))],
    columns: &[
        ("set", "set"),
        ("n", "N"),
        ("operator", "operator"),
        ("precision", "precision"),
        ("order", "p"),
        ("nanoseconds", "ns a unit"),
        ("rms", "rms"),
        ("l2", "L2"),
    ],
    ..suite(
        "tune",
        include_str!("../../../../configs/bench-tune.toml"),
        cases,
        |_| Vec::<(String, Figure)>::new(),
        summary,
    )
};

/// Errors of other seeds and sizes are larger now and then.
const MARGIN: f64 = 1.15;

/// Smaller errors are those of direct sums.
const ROUNDING: f64 = 1e-14;

const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F64];

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = Vec::from(PRECISIONS.map(|p| operator(Operator::P2P, 1, p)));
    for kind in [Operator::M2lRotation, Operator::M2lMatrix] {
        for order in (2..=24).step_by(2).filter(|&p| kind.exists(p)) {
            all.extend(PRECISIONS.map(|p| operator(kind, order, p)));
        }
    }
    for &order in &sweep.preset.orders {
        for sum in sums(sweep, sweep.preset.n as usize, Method::Fmm).into_iter().filter(|s| s.device == Device::Cpu) {
            // The widest angle: the rule of 27 near cells.
            let theta = Some(0.75f64.sqrt());
            let sum = Sum { order: Some(order as usize), theta, precision: Precision::F64, ..sum };
            all.push(Case::sum(sum));
        }
    }
    Ok(all)
}

fn operator(operator: Operator, order: usize, precision: Precision) -> Case {
    let work = Work::Other(Box::new(move |context| {
        let record = time(operator, order, precision, context.limits);
        let mut record = record.ok_or_else(|| Failure::new(70, "no such operator"))?;
        context.machine(&mut record, Device::Cpu);
        Ok(Some(record).filter(|_| !context.stopped()))
    }));
    Case { key: format!("{}/p{order}/{}", operator.name(), precision.name()), weight: 0.3, work }
}

/// Order and nanoseconds of an operator.
fn times(records: &[Record], operator: Operator, precision: &str) -> Vec<(f64, f64)> {
    let here = records.iter().filter(|r| r.text("operator") == operator.name() && r.text("precision") == precision);
    here.map(|r| (r.number("order"), r.number("nanoseconds"))).collect()
}

/// a and b of y = a + b x, least squares with the weight of each (x, y).
fn straight(points: &[(f64, f64)], weight: fn(f64) -> f64) -> (f64, f64) {
    let sum = |f: fn(&(f64, f64)) -> f64| points.iter().map(|p| f(p) * weight(p.1)).sum::<f64>();
    let (w, x, y, xx, xy) = (sum(|_| 1.0), sum(|p| p.0), sum(|p| p.1), sum(|p| p.0 * p.0), sum(|p| p.0 * p.1));
    let b = (w * xy - x * y) / (w * xx - x * x);
    ((y - b * x) / w, b)
}

/// What a maintainer pastes.
fn text(records: &[Record]) -> String {
    let mut text = String::from(
        "# Measured by `nbody bench tune`; for crates/fmm-core/src/accuracy/{cost,tables}.rs. Nanoseconds of one thread.\n",
    );
    if let Some(r) = records.first() {
        text +=
            &format!("# {}, {}, nbody {} ({})\n", r.text("cpu"), r.text("simd"), r.text("version"), r.text("commit"));
    }
    for (precision, width) in [("f32", 16.0), ("f64", 8.0)] {
        text += &format!("\n[{precision}]\n");
        if let Some((_, pair)) = times(records, Operator::P2P, precision).first() {
            text += &format!("pair = {}\n", significant(*pair));
        }
        let (matrix, rotation) =
            (times(records, Operator::M2lMatrix, precision), times(records, Operator::M2lRotation, precision));
        // a + b n ⌈n/width⌉ with n coefficients.
        let products = |p: f64| {
            let n = (p + 1.0) * (p + 1.0);
            n * (n / width).ceil()
        };
        if matrix.len() > 1 {
            let (a, b) =
                straight(&matrix.iter().map(|&(p, t)| (products(p), t)).collect::<Vec<_>>(), |t| 1.0 / (t * t));
            text += &format!("m2l_matrix = {{ first = {}, product = {} }}\n", significant(a), significant(b));
        }
        if rotation.len() > 1 {
            // t = at_11 ((p+1)/12)^exponent, by logarithms.
            let logs: Vec<(f64, f64)> = rotation.iter().map(|&(p, t)| (((p + 1.0) / 12.0).ln(), t.ln())).collect();
            let (a, b) = straight(&logs, |_| 1.0);
            text += &format!(
                "m2l_rotation = {{ at_order_11 = {}, exponent = {} }}\n",
                significant(a.exp()),
                significant(b)
            );
        }
    }
    text += "\n# Errors by order, rule of 27 near cells, with a margin of 15 %: the larger of rms and L2, the worst of the sets:\n# [order, error]. Without those at rounding level, where the set was too small for translations.\n[errors]\n";
    for (name, sets) in [("filling", &["uniform"][..]), ("clustered", &["plummer", "two-clusters"])] {
        let mut errors: Vec<(f64, f64)> = vec![];
        for r in records.iter().filter(|r| sets.contains(&r.text("set"))) {
            let (order, error) = (r.number("order"), MARGIN * r.number("rms").max(r.number("l2")));
            if error < ROUNDING {
                continue;
            }
            match errors.iter_mut().find(|e| e.0 == order) {
                Some(e) => e.1 = e.1.max(error),
                None => errors.push((order, error)),
            }
        }
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let list: Vec<String> = errors.iter().map(|e| format!("[{}, {:.1e}]", e.0, e.1)).collect();
        text += &format!("{name} = [{}]\n", list.join(", "));
    }
    text
}

fn summary(records: &[Record]) -> Vec<String> {
    vec![format!("Constants for crates/fmm-core/src/accuracy/:\n\n{}", text(records))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_behind_the_times() {
        let mut records = vec![];
        let mut add = |operator: Operator, order: f64, nanoseconds: f64| {
            let mut r = Record::default();
            r.set("operator", operator.name())
                .set("precision", "f64")
                .set("order", order)
                .set("nanoseconds", nanoseconds);
            records.push(r);
        };
        for p in [2.0, 4.0, 6.0, 8.0, 10.0f64] {
            let n: f64 = (p + 1.0) * (p + 1.0);
            add(Operator::M2lMatrix, p, 10.0 + 0.25 * n * (n / 8.0).ceil());
            add(Operator::M2lRotation, p, 400.0 * ((p + 1.0) / 12.0).powf(2.25));
        }
        add(Operator::P2P, f64::NAN, 0.8);
        let mut error = Record::default();
        error.set("set", "uniform").set("order", 3).set("rms", 1e-3).set("l2", 2e-3);
        records.push(error);
        let mut rounding = Record::default();
        rounding.set("set", "uniform").set("order", 20).set("rms", 1e-15).set("l2", 1e-15);
        records.push(rounding);
        let text = text(&records);
        let value: toml::Table = text.parse().unwrap();
        let f64s = &value["f64"];
        assert_eq!(f64s["pair"].as_float(), Some(0.8), "{text}");
        assert_eq!(
            (f64s["m2l_matrix"]["first"].as_float(), f64s["m2l_matrix"]["product"].as_float()),
            (Some(10.0), Some(0.25))
        );
        assert_eq!(f64s["m2l_rotation"]["exponent"].as_float(), Some(2.25), "{text}");
        assert_eq!(f64s["m2l_rotation"]["at_order_11"].as_integer(), Some(400), "{text}");
        assert_eq!(value["errors"]["filling"].as_array().map(Vec::len), Some(1), "{text}");
        let first = &value["errors"]["filling"][0];
        assert_eq!((first[0].as_integer(), first[1].as_float()), (Some(3), Some(2.3e-3)), "{text}");
    }

    #[test]
    fn times_a_tenth_off_one_way_and_the_other_make_no_slope() {
        // By logarithms, orders 2 and 10 are as good as 5 and 7, and one nanosecond is no end of the scale.
        let points = [(1.0, 1.1f64.ln()), (2.0, 0.9f64.ln()), (3.0, 0.9f64.ln()), (4.0, 1.1f64.ln())];
        assert!(straight(&points, |_| 1.0).1.abs() < 1e-12);
        let (a, b) = straight(&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)], |t| 1.0 / (t * t));
        assert!((a - 1.0).abs() < 1e-12 && (b - 2.0).abs() < 1e-12);
    }
}
