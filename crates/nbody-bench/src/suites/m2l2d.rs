//! M2L in the plane alone, the rows of many target boxes, in both precisions. On a GPU by the versions that Cruz,
//! Layton & Barba go through, and in double precision by the program's: on the tensor cores, by threads that have a
//! translation each, and by threads that have a row of one.

use fmm_core::planar::workload::translations;
use fmm_core::{Error, Precision};
use fmm_cuda::planar::versions::{PaperTranslations, PaperVersion};
use fmm_cuda::planar::workload::{Translations, Version};
use fmm_cuda::{DeviceWork, Gpu};

use super::rate_table;
use super::rates::{COLUMNS, DeviceKernel, Kernel, PRECISIONS, case, device_case, figures, summary, threads};
use crate::suite::{Case, Places, Suite, Sweep};
use fmm::Device;
use nbody_sim::failure::Failure;

/// Translations of a box.
const EACH: usize = 27;

/// The program's versions, which add up the translations of each target themselves.
const OURS: [(&str, Version); 3] = [
    ("M2L, tensor cores", Version::Tensor),
    ("M2L, a thread each", Version::Thread),
    ("M2L, a thread a row", Version::Row),
];

/// The paper's versions, which write each translation, and are followed by a sum of those of each target.
const PAPERS: [(&str, PaperVersion); 5] = [
    ("M2L of the paper, a thread a translation", PaperVersion::Diagonals),
    ("M2L of the paper, row-wise", PaperVersion::Rows),
    ("M2L of the paper, shared memory", PaperVersion::Shared),
    ("M2L of the paper, unrolled", PaperVersion::Unrolled),
    ("M2L of the paper, overlapped", PaperVersion::Overlapped),
];

/// The suite.
pub const SUITE: Suite = Suite {
    name: "m2l2d",
    preset: include_str!("../../../../configs/bench-m2l2d.toml"),
    plane: None,
    places: Places::All,
    cases,
    figures: |records| {
        figures(records, "Translations in the plane", "harmonic kernel, rows of a pyramid", "translations")
    },
    summary: |records| summary(records, "translations"),
    texts: |records| {
        let versions = rate_table::versions(records).map(|text| ("m2l2d-versions.md", text));
        [("m2l2d-table.md", rate_table::markdown(records))].into_iter().chain(versions).collect()
    },
    columns: COLUMNS,
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let mut all = vec![];
    for order in sweep.preset.orders.iter().map(|&p| p as usize) {
        for n in sweep.preset.sizes() {
            for &device in &sweep.devices {
                for precision in PRECISIONS {
                    match device {
                        Device::Cuda(ordinal) => {
                            let largest = n as f64 == sweep.preset.n;
                            let kernels = on_gpu(order, n, precision, largest);
                            all.extend(kernels.map(|kernel| device_case(kernel, ordinal)));
                        }
                        _ => all.extend(threads(sweep).into_iter().map(|threads| {
                            let make = Box::new(move || translations(order, precision, n));
                            case(Kernel { name: "M2L", order, n, precision, make }, threads)
                        })),
                    }
                }
            }
        }
    }
    Ok(all)
}

/// The versions in a precision: in double those of the paper at the largest number alone.
fn on_gpu(order: usize, n: usize, precision: Precision, largest: bool) -> impl Iterator<Item = DeviceKernel> {
    let papers = PAPERS.into_iter().filter(move |_| largest || precision == Precision::F32);
    // A multipole of two parts for each box that meets 27, and a local expansion.
    let copied = [2 * order * n / EACH; 2];
    let ours = OURS.into_iter().filter(move |_| precision == Precision::F64).map(move |(name, version)| {
        let make = Box::new(move |gpu: &Gpu| Ok(Box::new(Translations::new(gpu, version, order, n)?) as _));
        DeviceKernel { name, order, n, copied, precision, make }
    });
    ours.chain(papers.map(move |(name, version)| {
        let make = Box::new(move |gpu: &Gpu| paper(gpu, version, precision, order, n));
        DeviceKernel { name, order, n, copied, precision, make }
    }))
}

fn paper(
    gpu: &Gpu,
    version: PaperVersion,
    precision: Precision,
    order: usize,
    n: usize,
) -> Result<Box<dyn DeviceWork>, Error> {
    Ok(match precision {
        Precision::F32 => Box::new(PaperTranslations::<f32>::new(gpu, version, order, n)?),
        _ => Box::new(PaperTranslations::<f64>::new(gpu, version, order, n)?),
    })
}
