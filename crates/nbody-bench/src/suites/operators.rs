//! The rate of each operator, compared with the peak of multiply-adds measured in the same run:
//! alone in the cache of one core, and in whole sums of any size on all cores and on a GPU.

use std::time::Instant;

use fmm_core::Precision;
use fmm_core::cpu::workload::{Operator, work};
use fmm_core::workload::peak;

use super::{stage_rates, suite};
use crate::lines::{distinct, figure, lines, numbers};
use crate::measure::{Context, Limits, spread};
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep, Work};
use crate::table::significant;
use fmm::Device;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    columns: &[
        ("device", "device"),
        ("precision", "precision"),
        ("n", "N"),
        ("operator", "operator"),
        ("order", "p"),
        ("nanoseconds", "ns a unit"),
        ("unit", "unit"),
        ("gflops", "GFLOP/s"),
        ("fraction", "of the peak"),
    ],
    ..suite("operators", include_str!("../../../../configs/bench-operators.toml"), cases, figures, summary)
};

/// Seconds of a sample.
const SAMPLE: f64 = 0.01;

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for &device in &sweep.devices {
        all.extend(stage_rates::cases(sweep, device));
        if device != Device::Cpu {
            continue;
        }
        for operator in Operator::ALL {
            for &order in sweep.preset.orders.iter().take(if operator.has_order() { usize::MAX } else { 1 }) {
                all.extend(case(operator, order as usize, Precision::F32));
                all.extend(case(operator, order as usize, Precision::F64));
            }
        }
    }
    Ok(all)
}

fn case(operator: Operator, order: usize, precision: Precision) -> Option<Case> {
    // In single precision (2p)! overflows.
    if !operator.exists(order) || (precision == Precision::F32 && order > 26) {
        return None;
    }
    let key = format!("{}/p{order}/{}", operator.name(), precision.name());
    Some(Case {
        key,
        weight: 0.3,
        work: Work::Other(Box::new(move |context| measure(operator, order, precision, context))),
    })
}

fn measure(
    operator: Operator,
    order: usize,
    precision: Precision,
    context: &mut Context,
) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let Some(mut record) = time(operator, order, precision, context.limits) else {
        return Err(Failure::new(70, format!("there is no {} of order {order}", operator.name())));
    };
    context.machine(&mut record, Device::Cpu);
    Ok(Some(record))
}

/// The record of an operator alone.
pub fn time(
    operator: Operator,
    order: usize,
    precision: Precision,
    Limits { samples, budget }: Limits,
) -> Option<Record> {
    let mut work = work(operator, order, precision)?;
    let (operations, units) = (work.operations() as f64, work.units() as f64);
    let mut run = |repetitions: usize| {
        let start = Instant::now();
        for _ in 0..repetitions {
            std::hint::black_box(work.run());
        }
        start.elapsed().as_secs_f64() / repetitions as f64
    };
    let once = run(1).min(run(1));
    let repetitions = (SAMPLE.min(budget) / once).clamp(1.0, 1e6) as usize;
    let (begun, mut seconds) = (Instant::now(), vec![]);
    while seconds.is_empty() || (seconds.len() < samples && begun.elapsed().as_secs_f64() < budget) {
        seconds.push(run(repetitions));
    }
    let mut record = Record::default();
    spread(&mut record, &mut seconds);
    let (peak, rate) = (peak(precision, 2.0 * SAMPLE.min(budget)), operations / record.number("seconds"));
    record.set("operator", operator.name()).set("unit", operator.unit()).set("precision", precision.name());
    if operator.has_order() {
        record.set("order", order);
    }
    let nanoseconds = 1e9 * record.number("seconds") / units;
    record.set("operations", operations / units).set("nanoseconds", nanoseconds);
    record.set("gflops", rate / 1e9).set("peak_gflops", peak / 1e9).set("fraction", rate / peak);
    record.set("device", "cpu").set("threads", 1);
    Some(record)
}

/// The records of each device and precision that are drawn as bars: alone on a core, and in the largest sums of a GPU.
fn groups(records: &[Record]) -> Vec<(String, String, Vec<Record>)> {
    let mut all = vec![];
    let largest = numbers(records, "n").into_iter().fold(0.0, f64::max);
    for device in distinct(records, "device") {
        for precision in distinct(records, "precision") {
            let barred = |r: &&Record| if device == "cpu" { alone(r) } else { r.number("n") == largest };
            let among = |r: &&Record| r.text("device") == device && r.text("precision") == precision && barred(r);
            let here: Vec<Record> = records.iter().filter(among).cloned().collect();
            if !here.is_empty() {
                all.push((device.clone(), precision, here));
            }
        }
    }
    all
}

/// Whether the operator was measured alone, not in a whole sum.
fn alone(record: &Record) -> bool {
    record.number("n").is_nan()
}

/// Rates against N, the operators of whole sums: a figure for each device.
fn curves(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for device in distinct(records, "device") {
        let here = records.iter().filter(|r| r.text("device") == device && r.text("precision") == "f32" && !alone(r));
        let here: Vec<Record> = here.cloned().collect();
        let Some(order) = numbers(&here, "order").into_iter().reduce(f64::min) else { continue };
        let here: Vec<Record> =
            here.into_iter().filter(|r| r.number("order") == order || r.number("order").is_nan()).collect();
        let content = Content::Lines {
            x: Axis::log("particles N"),
            y: Axis::log("GFLOP/s"),
            lines: lines(&here, "n", "gflops", |r| r.text("operator").to_string()),
            marks: vec![],
        };
        let place = if device == "cpu" { super::place_of(&here[0]) } else { device.clone() };
        let subtitle =
            format!("{place}, whole sums, uniform, p = {order}, f32; M2P is the treecode's, all others are the FMM's");
        let name = format!("curves-{}", device.replace(':', ""));
        all.push((name, figure(&here, "Rates of the operators against N", subtitle, content)));
    }
    all
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = curves(records);
    for (device, precision, here) in groups(records) {
        let bars = here.iter().map(|r| {
            let order =
                if r.number("order").is_finite() { format!(", p = {}", r.number("order")) } else { String::new() };
            let text = format!("{}, {:.0} %", significant(r.number("gflops")), 100.0 * r.number("fraction"));
            (format!("{}{order}", r.text("operator")), r.number("gflops"), text)
        });
        let best = here.iter().map(|r| r.number("peak_gflops")).fold(0.0, f64::max);
        let peak = ("multiply-adds alone".to_string(), best, format!("{}: the measured peak", significant(best)));
        let bars = std::iter::once(peak).chain(bars).collect();
        let content = Content::Bars { x: Axis::linear("GFLOP/s"), bars };
        let (name, how) = if device == "cpu" {
            (precision.clone(), "one thread, data in the cache; share of the peak of multiply-adds".to_string())
        } else {
            let n = here[0].number("n");
            let how = format!("{device}, in sums of N = {n}; share of the peak of multiply-adds without tensor cores");
            (format!("{}-{precision}", device.replace(':', "")), how)
        };
        all.push((name, figure(&here, "Rates of the operators", format!("{precision}, {how}"), content)));
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for (device, precision, here) in groups(records) {
        let share = |r: &&Record| r.number("fraction");
        let best = here.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        let worst = here.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
        if let (Some(best), Some(worst)) = (best, worst) {
            let text = |r: &Record| format!("{} ({:.0} %)", r.text("operator"), 100.0 * r.number("fraction"));
            let (best, worst) = (text(best), text(worst));
            all.push(format!("{precision} on {device}: nearest to the peak is {best}, farthest {worst}."));
        }
    }
    all
}
