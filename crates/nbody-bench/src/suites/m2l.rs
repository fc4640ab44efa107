//! M2L in space alone, in several ways on a GPU: loops over the octree, lists sorted by groups of operators, rotations, and ours, between
//! what the groups take for their loads alone and for their products alone.

use fmm_core::{Error, Precision};
use fmm_cuda::{DeviceWork, Gpu, M2lVariant, M2lVariants, Ours};

use super::rates::{COLUMNS, DeviceKernel, device_case, figures, summary};
use crate::suite::Suite;
use fmm::Device;
use nbody_sim::failure::Failure;

/// Names of the variants in single and double precision. `None` is the M2L of this program.
const VARIANTS: [([&str; 2], Option<M2lVariant>); 6] = [
    (["loops, f32", "loops, f64"], Some(M2lVariant::Naive)),
    (["groups, f32", "groups, f64"], Some(M2lVariant::Grouped)),
    (["loads of the groups, f32", "loads of the groups, f64"], Some(M2lVariant::Loads)),
    (["products of the groups, f32", "products of the groups, f64"], Some(M2lVariant::Products)),
    (["rotations, f32", "rotations, f64"], Some(M2lVariant::Rotated)),
    (["tensor cores, f32", "tensor cores, f64"], None),
];

/// Levels, and translations of a cell.
const DEPTHS: std::ops::RangeInclusive<usize> = 3..=5;
const EACH: usize = 189;

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
    cpu_only: false,
    gpu_only: true,
    cases: |sweep| {
        let mut all = vec![];
        let gpus = sweep.devices.iter().filter_map(|d| if let Device::Cuda(n) = d { Some(*n) } else { None });
        for ordinal in gpus {
            let (least, most) = (sweep.preset.smallest, sweep.preset.n);
            let sizes = DEPTHS.map(|depth| (depth, EACH << (3 * depth)));
            for (depth, n) in sizes.filter(|s| (least..=most).contains(&(s.1 as f64))) {
                for order in sweep.preset.orders.iter().map(|&p| p as usize) {
                    for (k, precision) in [Precision::F32, Precision::F64].into_iter().enumerate() {
                        for (names, variant) in VARIANTS {
                            let make = Box::new(move |gpu: &Gpu| make(gpu, variant, precision, order, depth));
                            all.push(device_case(DeviceKernel { name: names[k], order, n, make }, ordinal));
                        }
                    }
                }
            }
        }
        if all.is_empty() {
            return Err(Failure::new(
                69,
                "bench m2l: the ways are those of a GPU, and n of 96,768, 774,144 and 6,193,152",
            ));
        }
        Ok(all)
    },
    figures: |records| {
        let title = "M2L in several ways";
        vec![(String::new(), figures(records, title, "the last level of a full octree", "translations"))]
    },
    summary: |records| summary(records, "translations"),
    texts: |_| vec![],
    columns: COLUMNS,
};
