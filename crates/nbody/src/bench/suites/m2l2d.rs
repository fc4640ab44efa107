//! M2L in the plane alone, the rows of many target boxes.

use fmm_core::planar::workload::translations;

use super::rates::{COLUMNS, Kernel, case, figures, summary};
use crate::bench::suite::Suite;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "m2l2d",
    preset: include_str!("../../../../../configs/bench-m2l2d.toml"),
    plane: None,
    cpu_only: true,
    cases: |sweep| {
        let mut all = vec![];
        for order in sweep.preset.orders.iter().map(|&p| p as usize) {
            for n in sweep.preset.sizes() {
                let make = Box::new(move || translations(order, n));
                all.push(case(Kernel { name: "M2L", order, n, make }, sweep.threads));
            }
        }
        Ok(all)
    },
    figures: |records| {
        let title = "Translations in the plane";
        vec![(String::new(), figures(records, title, "harmonic kernel, rows of a pyramid", "translations"))]
    },
    summary: |records| summary(records, "translations"),
    texts: |_| vec![],
    columns: COLUMNS,
};
