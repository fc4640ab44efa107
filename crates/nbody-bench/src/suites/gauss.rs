//! Evaluation of Hermite and Taylor series in the plane at many points, alone.

use fmm_core::gauss::series::Basis;
use fmm_core::gauss::workload::evaluations;
use fmm_cuda::gauss::workload::Evaluations;

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
        for (name, basis) in [("Hermite series", Basis::Hermite), ("Taylor series", Basis::Powers)] {
            for order in sweep.preset.orders.iter().map(|&p| p as usize) {
                for n in sweep.preset.sizes() {
                    for &device in &sweep.devices {
                        if let Device::Cuda(ordinal) = device {
                            let make =
                                Box::new(move |gpu: &_| Ok(Box::new(Evaluations::new(gpu, basis, order, n)?) as _));
                            // Points of two coordinates, and a value of each.
                            let copied = [2 * n, n];
                            all.push(device_case(DeviceKernel { name, order, n, copied, make }, ordinal));
                            continue;
                        }
                        for threads in threads(sweep) {
                            let make = Box::new(move || evaluations(basis, order, n));
                            all.push(case(Kernel { name, order, n, make }, threads));
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
