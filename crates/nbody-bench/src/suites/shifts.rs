//! Speed of the shifts in the plane against the order: whole sums of one order each, and nanoseconds of one M2M, M2L and L2L.

use fmm_core::planar::{Lists, Pyramid, Rule, levels, swap_min_points};
use fmm_core::{Method, Precision};

use super::{COLUMNS, place_of, sums};
use crate::lines::{distinct, figure, lines};
use crate::measure::{Context, Sum};
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep, Work};
use crate::table::significant;
use fmm::Device;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "shifts",
    preset: include_str!("../../../../configs/bench-shifts.toml"),
    plane: Some(include_str!("../../../../configs/bench-shifts.toml")),
    cpu_only: false,
    gpu_only: false,
    cases,
    figures,
    summary,
    texts: |_| vec![],
    columns: &[
        COLUMNS[0],
        COLUMNS[1],
        COLUMNS[2],
        COLUMNS[3],
        ("kernel", "kernel"),
        ("order", "p"),
        ("leaf", "leaf"),
        ("seconds", "s"),
        ("m2l_shifts", "M2L"),
        ("m2l_ns", "ns an M2L"),
        ("m2m_ns", "ns an M2M"),
        ("l2l_ns", "ns an L2L"),
        ("m2l_gflops", "M2L, Gflop/s"),
        ("l2", "L2"),
    ],
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for sum in sums(sweep, sweep.preset.n as usize, Method::Fmm) {
        for &order in &sweep.preset.orders {
            for &leaf in &sweep.preset.leaves {
                let (order, leaf_size) = (Some(order as usize), Some(leaf as usize));
                let sum = Sum { order, leaf_size, precision: Precision::F64, ..sum.clone() };
                let case = Case::sum(sum.clone());
                all.push(Case { work: Work::Other(Box::new(move |context| measure(&sum, context))), ..case });
            }
        }
    }
    Ok(all)
}

/// The record of a sum with the cost of each of its shifts, in nanoseconds of one thread or of a GPU.
fn measure(sum: &Sum, context: &mut Context) -> Result<Option<Record>, Failure> {
    let Some(mut record) = context.sum(sum)? else { return Ok(None) };
    let bodies = context.bodies(sum.kernel, sum.set, sum.n)?;
    let points: Vec<[f64; 2]> = bodies.particles.position.iter().map(|x| [x[0], x[1]]).collect();
    let (order, leaf) = (sum.order.unwrap_or(1), sum.leaf_size.unwrap_or(64));
    let pyramid = Pyramid::new(&points, 1.0, levels(sum.n, sum.n, leaf));
    let theta = record.number("theta");
    let rule = Rule { theta, min_distance: 0.0, swap_min_points: swap_min_points(order) };
    let counts = [
        ("M2L", "m2l", Lists::between_pyramids(&pyramid, &pyramid, rule).m2l.len()),
        ("M2M", "m2m", pyramid.len() - 1),
        ("L2L", "l2l", pyramid.len() - 1),
    ];
    // Threads of the host have no part in what a GPU does.
    let threads = if sum.device == Device::Cpu { record.number("threads") } else { 1.0 };
    for (stage, name, count) in counts {
        let seconds = record.number(&format!("stage_{stage}")) * threads;
        if count > 0 && seconds.is_finite() {
            record.set(&format!("{name}_shifts"), count).set(&format!("{name}_ns"), 1e9 * seconds / count as f64);
        }
    }
    // A real matrix times complex numbers.
    let terms = order as f64 + f64::from(u8::from(sum.kernel == fmm::Kernel::Log));
    let gflops = 4.0 * terms * terms / record.number("m2l_ns");
    if gflops.is_finite() {
        record.set("m2l_gflops", gflops);
    }
    Ok(Some(record))
}

fn name(record: &Record) -> String {
    format!("{}, {}, leaves of {}", record.text("kernel"), place_of(record), record.number("leaf"))
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("set") == set).cloned().collect();
        for (end, value, title, y) in [
            ("", "m2l_ns", "Time of one M2L by the order", "nanoseconds of a thread, or of a GPU"),
            ("-sum", "seconds", "Time of a whole sum by the order", "time of one force evaluation (s)"),
        ] {
            let content = Content::Lines {
                x: Axis::linear("order p of the expansions"),
                y: Axis::log(y),
                lines: lines(&here, "order", value, name),
                marks: vec![],
            };
            let subtitle = format!("{set}, N = {}, double precision", here[0].number("n"));
            all.push((format!("{set}{end}"), figure(&here, title, subtitle, content)));
        }
    }
    all
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here = records.iter().filter(|r| r.text("set") == set && r.number("m2l_gflops").is_finite());
        let Some(best) = here.max_by(|a, b| a.number("m2l_gflops").total_cmp(&b.number("m2l_gflops"))) else {
            continue;
        };
        let each = if best.text("device") == "cpu" { " a thread" } else { "" };
        all.push(format!(
            "{set}, {}: M2L is at its best at p = {}: {} Gflop/s{each}, {} ns each.",
            name(best),
            best.number("order"),
            significant(best.number("m2l_gflops")),
            significant(best.number("m2l_ns"))
        ));
    }
    all
}
