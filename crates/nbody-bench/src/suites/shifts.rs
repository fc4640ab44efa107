//! Speed of the shifts in the plane against the order: whole sums of one order each, and nanoseconds of one M2M, M2L and L2L.

use fmm_core::planar::{Lists, Pyramid, Rule, levels, swap_min_points};
use fmm_core::{Method, Precision};

use super::{COLUMNS, place_of, suite, sums};
use crate::lines::{distinct, figure, lines, numbers, speedups};
use crate::measure::{Context, Sum};
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep, Work};
use crate::table::significant;
use fmm::Device;
use nbody_cli::figure::{Axis, Content, Figure, Line};
use nbody_sim::failure::Failure;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(include_str!("../../../../configs/bench-shifts.toml")),
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
    ..suite("shifts", include_str!("../../../../configs/bench-shifts.toml"), cases, figures, summary)
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for (leaf, n) in sweep.preset.leaves() {
        for sum in sums(sweep, n, Method::Fmm) {
            for &order in &sweep.preset.orders {
                let (order, leaf_size) = (Some(order as usize), Some(leaf));
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
    let bodies = context.bodies(sum.kernel, sum.set, sum.sigma, sum.n)?;
    let points: Vec<[f64; 2]> = bodies.particles.position.iter().map(|x| [x[0], x[1]]).collect();
    let (order, leaf) = (sum.order.unwrap_or(1), sum.leaf_size.unwrap_or(1));
    let pyramid = Pyramid::new(&points, 1.0, levels(sum.n, sum.n, leaf));
    let theta = record.number("theta");
    let rule = Rule { theta, min_distance: 0.0, swap_min_points: swap_min_points(order) };
    let counts = [
        ("M2L", "m2l", Lists::between_pyramids(&pyramid, &pyramid, rule).m2l.len()),
        ("M2M", "m2m", pyramid.len() - 1),
        ("L2L", "l2l", pyramid.len() - 1),
        ("P2M", "p2m", sum.n),
        ("L2P", "l2p", sum.n),
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

/// The parts whose time depends on the order: Goude & Engblom, Fig. 4.
const PARTS: [&str; 5] = ["stage_M2M", "stage_M2L", "stage_L2L", "stage_P2M", "stage_L2P"];
/// Their times of one shift, or of one point, in a record.
const EACH: [(&str, &str); 5] =
    [("m2m_ns", "M2M"), ("m2l_ns", "M2L"), ("l2l_ns", "L2L"), ("p2m_ns", "P2M"), ("l2p_ns", "L2P")];

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    let x = || Axis::linear("order p of the expansions");
    for set in distinct(records, "set") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("set") == set).cloned().collect();
        let mut add = |end: String, title: &str, about: String, y: Axis, lines: Vec<Line>| {
            let content = Content::Lines { x: x(), y, lines, marks: vec![] };
            all.push((
                format!("{set}{end}"),
                figure(&here, title, format!("{set}, {about}, double precision"), content),
            ));
        };
        if numbers(&here, "n").len() > 1 {
            let boxes = (here[0].number("n") / here[0].number("per_box")).round();
            let y = Axis::linear("fastest number of points in a box N_d");
            add("-best".into(), "Best points in a box by the order", format!("{boxes} boxes"), y, best(&here));
            continue;
        }
        let n = here[0].number("n");
        for device in distinct(&here, "device") {
            let lines: Vec<Line> = EACH.iter().enumerate().filter_map(|of| each(&here, &device, of)).collect();
            let (first, end) =
                (here.iter().find(|r| r.text("device") == device), format!("-{}", device.replace(':', "")));
            let place = first.map_or(String::new(), name);
            let unit = if device == "cpu" { "nanoseconds of a thread" } else { "nanoseconds of the GPU" };
            let about = format!("{place}, N = {n}; M2M, M2L, L2L: of one shift, P2M, L2P: of one point");
            add(end, "Time of each part by the order", about, Axis::log(unit), lines);
        }
        let speedup = lines(&speedups(&here, &PARTS), "order", "speedup", |r| r.text("part").into());
        if !speedup.is_empty() {
            let about = format!("N = {n}, cores: {} threads", here[0].number("threads"));
            let y = Axis::linear("time on the cores / time on the GPU");
            add("-speedup".into(), "Speed-up of each part by the order", about, y, speedup);
        }
        let y = Axis::log("time of one force evaluation (s)");
        add(
            "-sum".into(),
            "Time of a whole sum by the order",
            format!("N = {n}"),
            y,
            lines(&here, "order", "seconds", name),
        );
    }
    all
}

/// The line of one part of a device.
fn each(records: &[Record], device: &str, (color, (field, part)): (usize, &(&str, &str))) -> Option<Line> {
    let here: Vec<Record> = records.iter().filter(|r| r.text("device") == device).cloned().collect();
    let line = lines(&here, "order", field, |_| part.to_string()).pop()?;
    Some(Line { color: Some(color), ..line })
}

/// For each device the points in a box that take the least time a point, against the order: Goude & Engblom, Fig. 5.
fn best(records: &[Record]) -> Vec<Line> {
    let time = |r: &Record| r.number("seconds") / r.number("n");
    let fastest = |r: &&Record| {
        let like = |o: &&Record| place_of(o) == place_of(r) && o.number("order") == r.number("order");
        records.iter().filter(like).all(|o| time(r) <= time(o))
    };
    let all: Vec<Record> = records.iter().filter(fastest).cloned().collect();
    lines(&all, "order", "per_box", place_of)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_box_takes_the_least_time_a_point() {
        let record = |order: u64, points: f64, each: f64| {
            let mut r = Record::default();
            r.set("device", "cpu").set("threads", 1).set("set", "uniform").set("order", order).set("per_box", points);
            r.set("n", 16.0 * points).set("seconds", each * 16.0 * points).clone()
        };
        let records = [record(4, 10.0, 1.0), record(4, 50.0, 2.0), record(20, 10.0, 5.0), record(20, 50.0, 3.0)];
        let figures = figures(&records);
        let Content::Lines { lines, .. } = &figures[0].1.content else { panic!("lines") };
        assert_eq!((&figures[0].0[..], &lines[0].points[..]), ("uniform-best", &[(4.0, 10.0), (20.0, 50.0)][..]));
    }
}
