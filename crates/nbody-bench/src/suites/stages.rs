//! Where the time of one force evaluation goes, by stage and device.

use fmm_core::Stage;

use super::{place_of, suite, sums};
use crate::lines::{distinct, figure};
use crate::record::Record;
use crate::suite::{Case, Suite, Sweep};
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite.
pub const SUITE: Suite = Suite {
    plane: Some(include_str!("../../../../configs/bench-plane-stages.toml")),
    texts: |records| vec![("stages-shares.md", shares(records))],
    ..suite("stages", include_str!("../../../../configs/bench-stages.toml"), cases, figures, summary)
};

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let of = |method| sums(sweep, sweep.preset.n as usize, method);
    Ok(sweep.preset.methods().into_iter().flat_map(of).map(Case::sum).collect())
}

/// The stages that the records have, in order.
fn stages(records: &[Record]) -> Vec<&'static str> {
    let has = |name: &str| records.iter().any(|r| r.number(&format!("stage_{name}")) > 0.0);
    Stage::ALL.map(Stage::name).into_iter().filter(|s| has(s)).collect()
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    const SHOWN: [&str; 10] = ["P2P", "M2P", "M2L", "P2M", "L2P", "tree", "lists", "M2M", "L2L", "guard"];
    let parts: Vec<&str> = SHOWN.into_iter().filter(|s| stages(records).contains(s)).collect();
    // A GPU's bars next to those of cores would be too short to read.
    let places = distinct(records, "set")
        .into_iter()
        .flat_map(|set| distinct(records, "device").into_iter().map(move |device| (set.clone(), device)));
    let mut all = vec![];
    for (set, device) in places {
        let like = |r: &&Record| r.text("set") == set && r.text("device") == device;
        let here: Vec<Record> = records.iter().filter(like).cloned().collect();
        let Some(first) = here.first() else { continue };
        let bars = here.iter().map(|r| {
            let lengths = lengths(r, &parts, &stages(records));
            let name = format!("{}, {}", r.text("method"), number(r.number("tolerance")));
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
            "; stages that run at once are shortened to add up to the whole"
        } else {
            ""
        };
        let about = format!("{set}, N = {}, {}", first.number("n"), place_of(first));
        let subtitle = format!("{about}, by method and tolerance; tree: keys, sort and cells{more}");
        let end = if device == "cpu" { set } else { format!("{set}-{}", device.replace(':', "")) };
        all.push((end, figure(&here, "Where the time of one force evaluation goes", subtitle, content)));
    }
    all
}

/// The lengths of `parts` of all `stages` and of the rest, which add up to the time of the record: stages that run at once are shortened.
fn lengths(record: &Record, parts: &[&str], stages: &[&str]) -> Vec<f64> {
    let mut lengths: Vec<f64> = parts.iter().map(|s| part(record, s)).collect();
    let rest: f64 = stages.iter().filter(|s| !parts.contains(s)).map(|s| part(record, s)).sum();
    let whole = record.number("seconds");
    lengths.push((whole - lengths.iter().sum::<f64>()).max(rest));
    let sum: f64 = lengths.iter().sum();
    lengths.iter_mut().for_each(|l| *l *= (whole / sum).min(1.0));
    lengths
}

/// A table of shares of the whole, in percent: a row for each part and a column for each record. The whole of a GPU has the copies to
/// it and back.
fn shares(records: &[Record]) -> String {
    let copies = |r: &Record| Some(r.number("copy_to_device") + r.number("copy_to_host")).filter(|c| c.is_finite());
    let whole = |r: &Record| r.number("seconds") + copies(r).unwrap_or(0.0);
    let mut text =
        String::from("Shares of one force evaluation, %. Parts of a GPU that run at once add up to more.\n\n| part |");
    for r in records {
        let (set, tolerance) = (r.text("set"), number(r.number("tolerance")));
        text += &format!(" {}, {}, {set}, {tolerance} |", r.text("method"), place_of(r));
    }
    text += &format!("\n|---|{}\n", "---|".repeat(records.len()));
    let mut row = |name: &str, of: &dyn Fn(&Record) -> f64| {
        let cells = records.iter().map(|r| format!(" {:.1} |", 100.0 * of(r) / whole(r)));
        text += &format!("| {name} |{}\n", cells.collect::<String>());
    };
    for stage in stages(records) {
        row(stage, &|r| part(r, stage));
    }
    if records.iter().any(|r| copies(r).is_some()) {
        row("transfers", &|r| copies(r).unwrap_or(0.0));
    }
    text
}

fn part(record: &Record, stage: &str) -> f64 {
    Some(record.number(&format!("stage_{stage}"))).filter(|s| s.is_finite()).unwrap_or(0.0)
}

fn summary(records: &[Record]) -> Vec<String> {
    let of = |r: &Record| {
        let mut shares: Vec<(f64, &str)> =
            stages(records).into_iter().map(|s| (part(r, s) / r.number("seconds"), s)).collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let text: Vec<String> = shares.iter().take(3).map(|(x, s)| format!("{s} {:.0} %", 100.0 * x)).collect();
        let (set, n, tolerance) = (r.text("set"), r.number("n"), number(r.number("tolerance")));
        format!(
            "{set}, N = {n}, {tolerance}, {} on {}: {} s, of which {}.",
            r.text("method"),
            place_of(r),
            significant(r.number("seconds")),
            text.join(", ")
        )
    };
    records.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_figures_of_their_own() {
        let record = |device: &str, seconds: f64| {
            let mut r = Record::default();
            r.set("device", device)
                .set("set", "uniform")
                .set("seconds", seconds)
                .set("stage_P2P", 0.5 * seconds)
                .clone()
        };
        let figures = figures(&[record("cpu", 1.0), record("cuda:0", 0.01)]);
        let bars = |f: &Figure| match &f.content {
            Content::Stacked { bars, .. } => bars.len(),
            _ => 0,
        };
        let shown: Vec<_> = figures.iter().map(|f| (&f.0[..], bars(&f.1))).collect();
        assert_eq!(shown, [("uniform", 1), ("uniform-cuda0", 1)]);
    }

    #[test]
    fn transfers_are_part_of_the_whole() {
        let mut record = Record::default();
        record.set("seconds", 3.0).set("stage_P2P", 2.0).set("device", "cuda:0").set("set", "uniform");
        record.set("method", "fmm").set("tolerance", 1e-6).set("copy_to_device", 0.75).set("copy_to_host", 0.25);
        let text = shares(&[record]);
        let row = |name: &str| text.lines().find(|l| l.starts_with(&format!("| {name} |"))).map(str::to_string);
        assert_eq!(row("P2P").as_deref(), Some("| P2P | 50.0 |"), "{text}");
        assert_eq!(row("transfers").as_deref(), Some("| transfers | 25.0 |"), "{text}");
    }

    #[test]
    fn bars_are_as_long_as_their_label_says() {
        let mut record = Record::default();
        record.set("seconds", 2.0).set("stage_tree", 0.5).set("stage_P2P", 1.0).set("stage_M2M", 0.2);
        let of = |r: &Record| lengths(r, &["tree", "P2P"], &["tree", "P2P", "M2M"]);
        assert_eq!(of(&record), [0.5, 1.0, 0.5]);
        // Near and far field at once.
        record.set("stage_P2P", 3.3);
        let all = of(&record);
        assert!((all.iter().sum::<f64>() - 2.0).abs() < 1e-12 && all[0] == 0.25, "{all:?}");
    }
}
