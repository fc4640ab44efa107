//! M2L in space alone, in several ways on a GPU: loops over the octree, also in unified memory; kernels that launch
//! kernels; lists sorted by groups of operators, in one kernel or one for each size of the groups; rotations, and
//! ours, between what the groups take for their loads alone and for their products alone; and on all cores, for
//! reference.

use fmm_core::cpu::workload::Operator;
use fmm_core::{Error, Precision};
use fmm_cuda::{DeviceWork, Gpu, M2lVariant, M2lVariants, Ours};

use super::m2l_figures::{CORES, EACH, figures};
use super::operators::time;
use super::rates::{COLUMNS, DeviceKernel, device_case, summary};
use crate::measure::{Context, spread};
use crate::record::Record;
use crate::suite::{Case, Places, Suite, Sweep, Work};
use fmm::Device;
use nbody_sim::failure::Failure;

/// Names of the variants in single and double precision, and the deepest level of each. `None` is the M2L of this
/// program.
const VARIANTS: [([&str; 2], Option<M2lVariant>, usize); 9] = [
    (["loops, f32", "loops, f64"], Some(M2lVariant::Naive), 5),
    (["loops in unified memory, f32", "loops in unified memory, f64"], Some(M2lVariant::Unified), 3),
    (["launches, f32", "launches, f64"], Some(M2lVariant::Launches), 4),
    (["groups, f32", "groups, f64"], Some(M2lVariant::Grouped), 5),
    (["groups by size, f32", "groups by size, f64"], Some(M2lVariant::Sizes), 4),
    (["loads of the groups, f32", "loads of the groups, f64"], Some(M2lVariant::Loads), 5),
    (["products of the groups, f32", "products of the groups, f64"], Some(M2lVariant::Products), 5),
    (["rotations, f32", "rotations, f64"], Some(M2lVariant::Rotated), 5),
    (["tensor cores, f32", "tensor cores, f64"], None, 5),
];

/// Levels.
const DEPTHS: std::ops::RangeInclusive<usize> = 3..=5;

/// Whether the GPU of this number can run a variant; true where the driver does not say what it is.
fn serves(ordinal: u32, variant: Option<M2lVariant>) -> bool {
    let known = fmm_cuda::devices().ok().and_then(|all| all.into_iter().find(|d| d.ordinal == ordinal));
    variant.zip(known).is_none_or(|(variant, device)| variant.serves(device.capability))
}

type Made = Result<Box<dyn DeviceWork>, Error>;

fn make(gpu: &Gpu, variant: Option<M2lVariant>, precision: Precision, order: usize, depth: usize) -> Made {
    Ok(match (variant, precision) {
        (None, _) => Box::new(Ours::new(gpu, precision, order, depth)?),
        (Some(variant), Precision::F32) => Box::new(M2lVariants::<f32>::new(gpu, variant, order, depth)?),
        (Some(variant), _) => Box::new(M2lVariants::<f64>::new(gpu, variant, order, depth)?),
    })
}

/// The suite.
pub const SUITE: Suite = Suite {
    name: "m2l",
    preset: include_str!("../../../../configs/bench-m2l.toml"),
    plane: None,
    places: Places::All,
    cases,
    figures,
    summary: |records| summary(records, "translations"),
    texts: |_| vec![],
    columns: COLUMNS,
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let sizes = DEPTHS.map(|depth| (depth, EACH << (3 * depth)));
    let (least, most) = (sweep.preset.smallest, sweep.preset.n);
    let sizes: Vec<(usize, usize)> = sizes.filter(|s| (least..=most).contains(&(s.1 as f64))).collect();
    let Some(&(_, smallest)) = sizes.first() else {
        let line = "bench m2l: n counts translations: 96,768, 774,144 and 6,193,152 are those of levels 3 to 5";
        return Err(Failure::new(65, line));
    };
    let mut all = vec![];
    for &device in &sweep.devices {
        for order in sweep.preset.orders.iter().map(|&p| p as usize) {
            for (k, precision) in [Precision::F32, Precision::F64].into_iter().enumerate() {
                let Device::Cuda(ordinal) = device else {
                    all.push(on_cores(order, precision, smallest, sweep.threads));
                    continue;
                };
                for &(depth, n) in &sizes {
                    for (names, variant, deepest) in VARIANTS {
                        if depth > deepest || !serves(ordinal, variant) {
                            continue;
                        }
                        let make = Box::new(move |gpu: &Gpu| make(gpu, variant, precision, order, depth));
                        let kernel = DeviceKernel { name: names[k], order, n, precision, copied: [0; 2], make };
                        all.push(device_case(kernel, ordinal));
                    }
                }
            }
        }
    }
    Ok(all)
}

/// The case of all cores: each thread translates pairs in its own cache, by the faster of rotations and matrices.
fn on_cores(order: usize, precision: Precision, n: usize, threads: usize) -> Case {
    let measure = move |context: &mut Context| {
        if context.stopped() {
            return Ok(None);
        }
        let mut best: Option<Record> = None;
        for operator in [Operator::M2lRotation, Operator::M2lMatrix] {
            let limits = context.limits;
            let each = context.threads(threads, || rayon::broadcast(|_| time(operator, order, precision, limits)))?;
            // All threads end together but for noise: the rate is the sum of theirs.
            let Some(each) = each.into_iter().collect::<Option<Vec<Record>>>() else { continue };
            let rate: f64 = each.iter().map(|r| 1e9 / r.number("nanoseconds")).sum();
            if best.as_ref().is_some_and(|b| b.number("rate") >= rate) {
                continue;
            }
            let sum = |name: &str| each.iter().map(|r| r.number(name)).sum::<f64>();
            let mut record = Record::default();
            spread(&mut record, &mut [n as f64 / rate]);
            record.set("operator", format!("{CORES}, {}", precision.name())).set("order", order).set("n", n);
            record.set("way", operator.name()).set("precision", precision.name()).set("rate", rate);
            record.set("device", "cpu").set("threads", threads).set("operations", each[0].number("operations"));
            record.set("gflops", sum("gflops")).set("peak_gflops", sum("peak_gflops"));
            best = Some(record.set("fraction", sum("gflops") / sum("peak_gflops")).clone());
        }
        let Some(mut record) = best else { return Err(Failure::new(70, format!("there is no M2L of order {order}"))) };
        context.machine(&mut record, Device::Cpu);
        Ok(Some(record))
    };
    let key = format!("cpu/M2L/p{order}/{}/{threads}t", precision.name());
    Case { key, weight: 0.2, work: Work::Other(Box::new(measure)) }
}
