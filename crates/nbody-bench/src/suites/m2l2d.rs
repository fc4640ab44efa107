//! M2L in the plane alone, the rows of many target boxes; on a GPU by its tensor cores, by threads
//! that have a translation each, and by threads that have a row of one.

use fmm_core::planar::workload::translations;
use fmm_cuda::planar::workload::{Translations, Version};

use super::rate_table;
use super::rates::{COLUMNS, DeviceKernel, Kernel, case, device_case, figures, summary, threads};
use crate::suite::{Places, Suite};
use fmm::Device;

/// Translations of a box.
const EACH: usize = 27;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "m2l2d",
    preset: include_str!("../../../../configs/bench-m2l2d.toml"),
    plane: None,
    places: Places::All,
    cases: |sweep| {
        let mut all = vec![];
        for order in sweep.preset.orders.iter().map(|&p| p as usize) {
            for n in sweep.preset.sizes() {
                for &device in &sweep.devices {
                    let Device::Cuda(ordinal) = device else {
                        for threads in threads(sweep) {
                            let make = Box::new(move || translations(order, n));
                            all.push(case(Kernel { name: "M2L", order, n, make }, threads));
                        }
                        continue;
                    };
                    // A multipole of two parts for each box that meets 27, and a local expansion.
                    let copied = [2 * order * n / EACH; 2];
                    for (name, version) in [
                        ("M2L, tensor cores", Version::Tensor),
                        ("M2L, a thread each", Version::Thread),
                        ("M2L, a thread a row", Version::Row),
                    ] {
                        let make =
                            Box::new(move |gpu: &_| Ok(Box::new(Translations::new(gpu, version, order, n)?) as _));
                        all.push(device_case(DeviceKernel { name, order, n, copied, make }, ordinal));
                    }
                }
            }
        }
        Ok(all)
    },
    figures: |records| {
        figures(records, "Translations in the plane", "harmonic kernel, rows of a pyramid", "translations")
    },
    summary: |records| summary(records, "translations"),
    texts: |records| vec![("m2l2d-table.md", rate_table::markdown(records))],
    columns: COLUMNS,
};
