//! Evaluation of Hermite and Taylor series in the plane at many points, alone.

use fmm_core::gauss::series::Basis;
use fmm_core::gauss::workload::evaluations;
use fmm_cuda::gauss::workload::Evaluations;

use super::rates::{COLUMNS, DeviceKernel, Kernel, case, device_case, figures, summary};
use crate::suite::Suite;
use fmm::Device;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "gauss",
    preset: include_str!("../../../../configs/bench-gauss.toml"),
    plane: None,
    cpu_only: false,
    gpu_only: false,
    cases: |sweep| {
        let mut all = vec![];
        for (name, basis) in [("Hermite series", Basis::Hermite), ("Taylor series", Basis::Powers)] {
            for order in sweep.preset.orders.iter().map(|&p| p as usize) {
                for n in sweep.preset.sizes() {
                    for &device in &sweep.devices {
                        all.push(if let Device::Cuda(ordinal) = device {
                            let make =
                                Box::new(move |gpu: &_| Ok(Box::new(Evaluations::new(gpu, basis, order, n)?) as _));
                            device_case(DeviceKernel { name, order, n, make }, ordinal)
                        } else {
                            let make = Box::new(move || evaluations(basis, order, n));
                            case(Kernel { name, order, n, make }, sweep.threads)
                        });
                    }
                }
            }
        }
        Ok(all)
    },
    figures: |records| {
        let title = "Evaluation of series of Gaussians";
        vec![(String::new(), figures(records, title, "boxes of 64 points (on a GPU 512), two axes", "evaluations"))]
    },
    summary: |records| summary(records, "points"),
    texts: |_| vec![],
    columns: COLUMNS,
};
