//! Evaluation of series in the plane at many points, alone: Hermite series in both precisions, Taylor series in double.

use fmm_core::gauss::series::Basis;
use fmm_core::gauss::single::hermite_evaluations;
use fmm_core::gauss::workload::evaluations;
use fmm_core::{Error, Precision};
use fmm_cuda::gauss::single::SingleEvaluations;
use fmm_cuda::gauss::workload::Evaluations;
use fmm_cuda::{DeviceWork, Gpu};

use super::rate_table;
use super::rates::{COLUMNS, DeviceKernel, Kernel, case, device_case, figures, summary, threads};
use crate::suite::{Places, Suite};
use fmm::Device;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "gauss",
    preset: include_str!("../../../../configs/bench-gauss.toml"),
    plane: None,
    places: Places::All,
    cases: |sweep| {
        let mut all = vec![];
        // The paper's tables have Hermite series in single precision.
        for (name, basis, precision) in [
            ("Hermite series", Basis::Hermite, Precision::F32),
            ("Hermite series", Basis::Hermite, Precision::F64),
            ("Taylor series", Basis::Powers, Precision::F64),
        ] {
            let single = precision == Precision::F32;
            for order in sweep.preset.orders.iter().map(|&p| p as usize) {
                for n in sweep.preset.sizes() {
                    for &device in &sweep.devices {
                        if let Device::Cuda(ordinal) = device {
                            let make = Box::new(move |gpu: &Gpu| -> Result<Box<dyn DeviceWork>, Error> {
                                Ok(match single {
                                    true => Box::new(SingleEvaluations::new(gpu, order, n)?),
                                    false => Box::new(Evaluations::new(gpu, basis, order, n)?),
                                })
                            });
                            // Points of two coordinates, and a value of each.
                            let copied = [2 * n, n];
                            all.push(device_case(DeviceKernel { name, order, n, copied, precision, make }, ordinal));
                            continue;
                        }
                        for threads in threads(sweep) {
                            let make = Box::new(move || match single {
                                true => hermite_evaluations(order, n),
                                false => evaluations(basis, order, n),
                            });
                            all.push(case(Kernel { name, order, n, precision, make }, threads));
                        }
                    }
                }
            }
        }
        Ok(all)
    },
    figures: |records| {
        let of = "boxes of 64 points (on a GPU 512), two axes";
        figures(records, "Evaluation of series of Gaussians", of, "evaluations")
    },
    summary: |records| summary(records, "points"),
    texts: |records| vec![("gauss-table.md", rate_table::markdown(records))],
    columns: COLUMNS,
};
