//! Where the time of one force evaluation goes, by stage and device.

use fmm_core::{Method, Stage};

use super::{COLUMNS, place_of, sums};
use crate::bench::lines::{distinct, figure};
use crate::bench::record::Record;
use crate::bench::suite::{Case, Suite, Sweep};
use crate::bench::table::significant;
use crate::fault::Fault;
use crate::plot::figure::{Axis, Content, Figure};
use crate::told::number;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "stages",
    preset: include_str!("../../../../../configs/bench-stages.toml"),
    plane: Some(include_str!("../../../../../configs/bench-plane-stages.toml")),
    cpu_only: false,
    cases,
    figures,
    summary,
    texts: |_| vec![],
    columns: COLUMNS,
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Fault> {
    Ok(sums(sweep, sweep.preset.n as usize, Method::Fmm).into_iter().map(Case::sum).collect())
}

/// The stages that the records have, in order.
fn stages(records: &[Record]) -> Vec<&'static str> {
    let has = |name: &str| records.iter().any(|r| r.number(&format!("stage_{name}")) > 0.0);
    Stage::ALL.map(Stage::name).into_iter().filter(|s| has(s)).collect()
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    // The rest shares a name: there are no more colours.
    const SHOWN: [&str; 6] = ["tree", "lists", "M2L", "L2P", "P2P", "guard"];
    let parts: Vec<&str> = SHOWN.into_iter().filter(|s| stages(records).contains(s)).collect();
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here: Vec<Record> = records.iter().filter(|r| r.text("set") == set).cloned().collect();
        let bars = here.iter().map(|r| {
            let mut lengths: Vec<f64> = parts.iter().map(|s| part(r, s)).collect();
            let rest: f64 = stages(records).iter().filter(|s| !parts.contains(s)).map(|s| part(r, s)).sum();
            lengths.push((r.number("seconds") - lengths.iter().sum::<f64>()).max(rest));
            let name = format!("{}, {}", place_of(r), number(r.number("tolerance")));
            (name, lengths, format!("{} s", significant(r.number("seconds"))))
        });
        let content = Content::Stacked {
            x: Axis::linear("time of the stages of one force evaluation (s)"),
            bars: bars.collect(),
            parts: parts.iter().map(|s| s.to_string()).chain(["others".into()]).collect(),
        };
        // A GPU sums near and far field at once.
        let whole = |r: &Record| stages(records).iter().map(|s| part(r, s)).sum::<f64>();
        let more = if here.iter().any(|r| whole(r) > 1.02 * r.number("seconds")) {
            "; stages that run at once add up to more than the whole"
        } else {
            ""
        };
        let subtitle = format!("{set}, N = {}, by device and tolerance{more}", here[0].number("n"));
        all.push((set, figure(&here, "Where the time of the FMM goes", subtitle, content)));
    }
    all
}

fn part(record: &Record, stage: &str) -> f64 {
    Some(record.number(&format!("stage_{stage}"))).filter(|s| s.is_finite()).unwrap_or(0.0)
}

fn summary(records: &[Record]) -> Vec<String> {
    let of = |r: &Record| {
        let mut shares: Vec<(f64, &str)> =
            stages(records).into_iter().map(|s| (part(r, s) / r.number("seconds"), s)).collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let told: Vec<String> = shares.iter().take(3).map(|(x, s)| format!("{s} {:.0} %", 100.0 * x)).collect();
        let (set, n, tolerance) = (r.text("set"), r.number("n"), number(r.number("tolerance")));
        format!(
            "{set}, N = {n}, {tolerance}, {}: {} s, of which {}.",
            place_of(r),
            significant(r.number("seconds")),
            told.join(", ")
        )
    };
    records.iter().map(of).collect()
}
