//! The rate of each operator within whole sums, one stage after the other, on all cores or on a GPU, compared with the peak of
//! multiply-adds there. Against N it is Fig. 7 of Yokota & Barba.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use fmm_core::accuracy::{self, Problem};
use fmm_core::cpu::execute;
use fmm_core::cpu::workload::{Operator, work};
use fmm_core::expansion::Spherical;
use fmm_core::math::Real;
use fmm_core::plan::OctreePlan;
use fmm_core::tree::Cube;
use fmm_core::workload::peak;
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

/// The operators, each a stage: M2P is that of the treecode, all others are those of the FMM.
const STAGES: [(Operator, Stage); 7] = [
    (Operator::P2P, Stage::P2P),
    (Operator::P2M, Stage::P2M),
    (Operator::M2M, Stage::M2M),
    (Operator::M2lMatrix, Stage::M2L),
    (Operator::L2L, Stage::L2L),
    (Operator::L2P, Stage::L2P),
    (Operator::M2P, Stage::M2P),
];

/// What a sum is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sum {
    n: usize,
    device: Device,
    threads: usize,
    method: Method,
    order: usize,
    precision: Precision,
}

/// Sums of one kind: all operators are measured at once.
struct Sums {
    plan: OctreePlan<3>,
    times: Vec<StageTimes>,
    peak: f64,
}

/// Those of the size at hand.
type Kept = Rc<RefCell<Vec<(Sum, Sums)>>>;

/// The cases of a device: the first order in single precision for all sizes, and on a GPU all orders and precisions for the largest.
pub fn cases(sweep: &Sweep, device: Device) -> Vec<Case> {
    let kept = Kept::default();
    let mut all = vec![];
    let largest = sweep.preset.n as usize;
    for n in sweep.preset.sizes() {
        for (k, &order) in sweep.preset.orders.iter().enumerate() {
            for precision in [Precision::F32, Precision::F64] {
                let curve = k == 0 && precision == Precision::F32;
                // In single precision (2p)! overflows.
                let exists = precision == Precision::F64 || order <= 26.0;
                if !exists || !(curve || (n == largest && device != Device::Cpu)) {
                    continue;
                }
                for (operator, stage) in STAGES.into_iter().filter(|s| s.0.has_order() || k == 0) {
                    let method = if stage == Stage::M2P { Method::Treecode } else { Method::Fmm };
                    let sum = Sum { n, device, threads: sweep.threads, method, order: order as usize, precision };
                    let kept = kept.clone();
                    let measure = move |context: &mut Context| measure(sum, (operator, stage), &kept, context);
                    all.push(Case {
                        key: format!("{device}/sum/{}/p{order}/{}/n{n}", stage.name(), precision.name()),
                        weight: 0.05 + 1e-6 * n as f64,
                        work: Work::Other(Box::new(measure)),
                    });
                }
            }
        }
    }
    all
}

fn measure(sum: Sum, what: (Operator, Stage), kept: &Kept, context: &mut Context) -> Result<Option<Record>, Failure> {
    if context.stopped() {
        return Ok(None);
    }
    let mut kept = kept.borrow_mut();
    // Plans of many sizes would not fit in memory.
    kept.retain(|(k, _)| k.n == sum.n);
    if kept.iter().all(|(k, _)| *k != sum) {
        kept.push((sum, sums(sum, context)?));
    }
    let Some((_, sums)) = kept.iter().find(|(k, _)| *k == sum) else { return Ok(None) };
    let mut record = record(what, sum, sums);
    context.machine(&mut record, sum.device);
    Ok(Some(record))
}

fn sums(sum: Sum, context: &mut Context) -> Result<Sums, Failure> {
    let Sum { n, device, threads, method, order, precision } = sum;
    let settings = Settings { method, order: Some(order), precision, ..Settings::default() };
    let text = |e: fmm_core::Error| Failure::new(71, e.to_string());
    let (position, strength) = (Set::Uniform.points(n, None), vec![1.0 / n as f64; n]);
    let limits = context.limits;
    let Device::Cuda(ordinal) = device else {
        let cube = Cube::around(&[&position[..]]);
        let problem = Problem::of(&position, &[&strength], n, &cube);
        let choice = accuracy::choose(&settings, problem).map_err(text)?;
        let cube = accuracy::fit(cube, &problem, accuracy::best_leaf(&choice), choice.leaf_size);
        return context.threads(threads, || {
            let plan = OctreePlan::new(&settings, choice, cube, &position, None, &mut StageTimes::default());
            let times = match precision {
                Precision::F32 => on_cores::<f32>(&plan, &position, &strength, (limits.samples, limits.budget)),
                _ => on_cores::<f64>(&plan, &position, &strength, (limits.samples, limits.budget)),
            };
            let peak = rayon::broadcast(|_| peak(precision, limits.budget.min(0.02))).iter().sum();
            Sums { plan, times, peak }
        });
    };
    let gpu = Gpu::open(ordinal).map_err(|e| Failure::new(69, e.to_string()))?;
    let (plan, times) = fmm_cuda::time_stages(&gpu, &settings, &position, &strength, limits.samples).map_err(text)?;
    Ok(Sums { plan, times, peak: fmm_cuda::peak(&gpu, precision).map_err(text)? })
}

/// The stages of the sums of a plan on all threads of the pool.
fn on_cores<T: Real>(
    plan: &OctreePlan<3>,
    position: &[[f64; 3]],
    strength: &[f64],
    (samples, budget): (usize, f64),
) -> Vec<StageTimes> {
    let expansion = Spherical::<T>::new(plan.choice.order.unwrap_or(1), plan.geometry.classes);
    let softening = Settings::default().softening;
    let (begun, mut all) = (Instant::now(), vec![]);
    // The first makes tables.
    while all.len() < 2 || (all.len() <= samples && begun.elapsed().as_secs_f64() < budget) {
        let mut times = StageTimes::default();
        execute::<T, _, _, 3>(&expansion, &softening, plan, position, strength, None, &mut times);
        all.push(times);
    }
    all.remove(0);
    all
}

/// How often `stage` does its operator.
fn units(plan: &OctreePlan<3>, stage: Stage) -> usize {
    let tree = &plan.targets;
    match stage {
        Stage::P2P => {
            let row = |t: usize| plan.lists.p2p.row(t).iter().map(|p| tree.count(p.source as usize)).sum::<usize>();
            (0..tree.len()).map(|t| tree.count(t) * row(t)).sum()
        }
        Stage::M2P => (0..tree.len()).map(|t| tree.count(t) * plan.lists.m2p.row(t).len()).sum(),
        Stage::M2L => plan.lists.m2l.len(),
        Stage::M2M | Stage::L2L => tree.len() - 1,
        _ => tree.order.len(),
    }
}

fn record((operator, stage): (Operator, Stage), sum: Sum, sums: &Sums) -> Record {
    let n = ((sum.order + 1) * (sum.order + 1)) as f64;
    let operations = match operator {
        Operator::P2P => PAIR,
        Operator::M2lMatrix => 2.0 * n * n,
        // The same mathematics as the CPU's: its text is counted.
        _ => {
            work(operator, sum.order, sum.precision).map_or(f64::NAN, |mut w| w.operations() as f64 / w.units() as f64)
        }
    };
    let units = units(&sums.plan, stage) as f64;
    let mut seconds: Vec<f64> = sums.times.iter().map(|t| t.seconds(stage)).collect();
    let mut record = Record::default();
    spread(&mut record, &mut seconds);
    let each = record.number("seconds") / units;
    // Few bodies leave some stages without work.
    let rate = if units > 0.0 { operations / each } else { 0.0 };
    record.set("operator", stage.name()).set("unit", operator.unit()).set("precision", sum.precision.name());
    if operator.has_order() {
        record.set("order", sum.order);
    }
    record.set("n", sum.n).set("method", sum.method.name()).set("units", units);
    record.set("device", sum.device.to_string()).set("threads", sum.threads);
    record.set("operations", operations).set("nanoseconds", 1e9 * each);
    record.set("gflops", rate / 1e9).set("peak_gflops", sums.peak / 1e9).set("fraction", rate / sums.peak);
    record
}
