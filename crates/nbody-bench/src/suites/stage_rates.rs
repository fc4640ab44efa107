//! The rate of each operator within whole sums on a GPU, one stage after the other, compared with
//! the peak of its multiply-adds.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use fmm_core::cpu::workload::{Operator, work};
use fmm_core::plan::OctreePlan;
use fmm_core::{Method, Precision, Settings, Stage, StageTimes};
use fmm_cuda::Gpu;

use crate::measure::{Context, spread};
use crate::record::Record;
use crate::sets::Set;
use crate::suite::{Case, Sweep, Work};
use fmm::Device;
use nbody_sim::failure::Failure;

/// Operations of a pair, as the field counts them since Nyland, Harris & Prins (2007).
const PAIR: f64 = 20.0;

/// The operators of the FMM, each a stage.
const STAGES: [(Operator, Stage); 6] = [
    (Operator::P2P, Stage::P2P),
    (Operator::P2M, Stage::P2M),
    (Operator::M2M, Stage::M2M),
    (Operator::M2lMatrix, Stage::M2L),
    (Operator::L2L, Stage::L2L),
    (Operator::L2P, Stage::L2P),
];

/// Sums of one order and precision: all operators are measured at once.
struct Sums {
    plan: OctreePlan<3>,
    times: Vec<StageTimes>,
    peak: f64,
}

type Kept = Rc<RefCell<HashMap<(usize, &'static str), Sums>>>;

/// The cases of a GPU.
pub fn cases(sweep: &Sweep, ordinal: u32) -> Vec<Case> {
    let (n, kept) = (sweep.preset.n as usize, Kept::default());
    let mut all = vec![];
    for (operator, stage) in STAGES {
        for &order in sweep.preset.orders.iter().take(if operator.has_order() { usize::MAX } else { 1 }) {
            for precision in [Precision::F32, Precision::F64] {
                let (order, kept) = (order as usize, kept.clone());
                // In single precision (2p)! overflows.
                if precision == Precision::F32 && order > 26 {
                    continue;
                }
                let measure = move |context: &mut Context| {
                    if context.stopped() {
                        return Ok(None);
                    }
                    let mut kept = kept.borrow_mut();
                    let sums = match kept.entry((order, precision.name())) {
                        Entry::Occupied(there) => there.into_mut(),
                        Entry::Vacant(place) => {
                            place.insert(sums(n, ordinal, order, precision, context.limits.samples)?)
                        }
                    };
                    let mut record = record((operator, stage), order, precision, sums);
                    record.set("device", Device::Cuda(ordinal).to_string()).set("n", n);
                    context.machine(&mut record, Device::Cuda(ordinal));
                    Ok(Some(record))
                };
                all.push(Case {
                    key: format!("cuda:{ordinal}/{}/p{order}/{}", stage.name(), precision.name()),
                    weight: 0.5,
                    work: Work::Other(Box::new(measure)),
                });
            }
        }
    }
    all
}

fn sums(n: usize, ordinal: u32, order: usize, precision: Precision, samples: usize) -> Result<Sums, Failure> {
    let gpu = Gpu::open(ordinal).map_err(|e| Failure::new(69, e.to_string()))?;
    let settings = Settings { method: Method::Fmm, order: Some(order), precision, ..Settings::default() };
    let text = |e: fmm_core::Error| Failure::new(71, e.to_string());
    let (position, strength) = (Set::Uniform.points(n), vec![1.0 / n as f64; n]);
    let (plan, times) = fmm_cuda::time_stages(&gpu, &settings, &position, &strength, samples).map_err(text)?;
    Ok(Sums { plan, times, peak: fmm_cuda::peak(&gpu, precision).map_err(text)? })
}

/// How often `stage` does its operator.
fn units(plan: &OctreePlan<3>, stage: Stage) -> usize {
    let tree = &plan.targets;
    match stage {
        Stage::P2P => {
            let row = |t: usize| plan.lists.p2p.row(t).iter().map(|p| tree.count(p.source as usize)).sum::<usize>();
            (0..tree.len()).map(|t| tree.count(t) * row(t)).sum()
        }
        Stage::M2L => plan.lists.m2l.len(),
        Stage::M2M | Stage::L2L => tree.len() - 1,
        _ => tree.order.len(),
    }
}

fn record((operator, stage): (Operator, Stage), order: usize, precision: Precision, sums: &Sums) -> Record {
    let n = ((order + 1) * (order + 1)) as f64;
    let operations = match operator {
        Operator::P2P => PAIR,
        Operator::M2lMatrix => 2.0 * n * n,
        // The same mathematics as the CPU's: its text is counted.
        _ => work(operator, order, precision).map_or(f64::NAN, |mut w| w.operations() as f64 / w.units() as f64),
    };
    let units = units(&sums.plan, stage) as f64;
    let mut seconds: Vec<f64> = sums.times.iter().map(|t| t.seconds(stage)).collect();
    let mut record = Record::default();
    spread(&mut record, &mut seconds);
    let each = record.number("seconds") / units;
    let rate = operations / each;
    record.set("operator", stage.name()).set("unit", operator.unit()).set("precision", precision.name());
    if operator.has_order() {
        record.set("order", order);
    }
    record.set("operations", operations).set("nanoseconds", 1e9 * each);
    record.set("gflops", rate / 1e9).set("peak_gflops", sums.peak / 1e9).set("fraction", rate / sums.peak);
    record
}
