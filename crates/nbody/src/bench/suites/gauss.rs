//! Evaluation of Hermite and Taylor series in the plane at many points, alone.

use fmm_core::gauss::series::Basis;
use fmm_core::gauss::workload::evaluations;

use super::rates::{COLUMNS, Kernel, case, figures, summary};
use crate::bench::suite::Suite;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "gauss",
    preset: include_str!("../../../../../configs/bench-gauss.toml"),
    plane: None,
    cpu_only: true,
    cases: |sweep| {
        let mut all = vec![];
        for (name, basis) in [("Hermite series", Basis::Hermite), ("Taylor series", Basis::Powers)] {
            for order in sweep.preset.orders.iter().map(|&p| p as usize) {
                for n in sweep.preset.sizes() {
                    let make = Box::new(move || evaluations(basis, order, n));
                    all.push(case(Kernel { name, order, n, make }, sweep.threads));
                }
            }
        }
        Ok(all)
    },
    figures: |records| {
        let title = "Evaluation of series of Gaussians";
        vec![(String::new(), figures(records, title, "boxes of 64 points, two axes", "evaluations"))]
    },
    summary: |records| summary(records, "points"),
    texts: |_| vec![],
    columns: COLUMNS,
};
