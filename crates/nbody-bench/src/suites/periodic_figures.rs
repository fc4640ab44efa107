//! Figures and sentences of charges in periodic boxes.

use super::place_of;
use crate::lines::{distinct, figure, lines, numbers};
use crate::record::Record;
use crate::table::significant;
use nbody_cli::figure::{Axis, Content, Figure};
use nbody_sim::messages::number;

/// The methods that `auto` chooses from.
const OWN: [&str; 3] = ["mesh", "fmm", "direct"];

/// The name of OpenMM's sum in records.
pub(super) const OPENMM: &str = "openmm";

fn name(record: &Record) -> String {
    let method = match record.text("method") {
        OPENMM => "OpenMM PME",
        "direct" => "Ewald",
        method => method,
    };
    format!("{method}, {}", place_of(record))
}

/// What was measured, of one set.
fn measured(records: &[Record], set: &str) -> Vec<Record> {
    records.iter().filter(|r| r.text("set") == set && !r.is("absent")).cloned().collect()
}

/// The fastest sum of each place and N by `method` whose errors are no larger than `tolerance`.
fn fastest(records: &[Record], method: &str, tolerance: f64) -> Vec<Record> {
    let mut all: Vec<Record> = vec![];
    let kept = |r: &&Record| r.text("method") == method && r.number("l2") <= tolerance;
    for record in records.iter().filter(kept) {
        let same = |a: &&mut Record| place_of(a) == place_of(record) && a.number("n") == record.number("n");
        match all.iter_mut().find(same) {
            Some(before) if before.number("seconds") <= record.number("seconds") => {}
            Some(before) => *before = record.clone(),
            None => all.push(record.clone()),
        }
    }
    all
}

pub(super) fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here = measured(records, &set);
        let ours: Vec<Record> = here.iter().filter(|r| r.text("method") != OPENMM).cloned().collect();
        for tolerance in numbers(&ours, "tolerance") {
            let fast = ours.iter().filter(|r| r.number("tolerance") == tolerance && r.text("method") != "direct");
            let mut drawn: Vec<Record> = fast.filter(|r| r.text("method") != "auto").cloned().collect();
            drawn.extend(ours.iter().filter(|r| r.text("method") == "direct").cloned());
            drawn.extend(fastest(&here, OPENMM, tolerance));
            let content = Content::Lines {
                x: Axis::log("charges N"),
                y: Axis::log("time of a step's sum (s)"),
                lines: lines(&drawn, "n", "seconds", name),
                marks: vec![],
            };
            let subtitle = format!("{set}, rms and L2 at most {}; OpenMM: L2", number(tolerance));
            all.push((format!("{set}-{tolerance:e}"), figure(&drawn, "Charges in a periodic box", subtitle, content)));
        }
        for n in numbers(&here, "n") {
            let drawn: Vec<Record> =
                here.iter().filter(|r| r.number("n") == n && r.text("method") != "auto").cloned().collect();
            let content = Content::Lines {
                x: Axis::log("measured L2 error of the field"),
                y: Axis::log("time of a step's sum (s)"),
                lines: lines(&drawn, "l2", "seconds", name),
                marks: vec![],
            };
            let title = "Time against error in a periodic box";
            all.push((format!("{set}-n{n}"), figure(&drawn, title, format!("{set}, N = {n}"), content)));
        }
    }
    all
}

/// The program's own choice is named where it takes so many times as long as the fastest method.
const WRONG: f64 = 1.2;

pub(super) fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        let here = measured(records, &set);
        for n in numbers(&here, "n") {
            let asked = numbers(&here, "tolerance");
            all.extend(asked.into_iter().flat_map(|tolerance| of_choice(&here, &set, n, tolerance)));
            all.extend(of_openmm(&here, &set, n));
        }
    }
    let absent = |r: &&Record| r.is("absent") && r.text("method") == OPENMM;
    if records.iter().any(|r| absent(&r)) {
        let why = records.iter().find(absent).map_or(String::new(), |r| r.text("why").to_string());
        all.push(format!("OpenMM was not measured everywhere: {why}; scripts/requirements-openmm.txt has it, --python names its Python."));
    }
    all
}

/// What our own choice costs over the fastest method that keeps the tolerance, where it is much.
fn of_choice(records: &[Record], set: &str, n: f64, tolerance: f64) -> Vec<String> {
    let here = || records.iter().filter(|r| r.number("n") == n);
    let mut all = vec![];
    for chosen in here().filter(|r| r.text("method") == "auto" && r.number("tolerance") == tolerance) {
        let place = place_of(chosen);
        // Ewald's sum has all digits and is measured once.
        let same = |r: &&Record| {
            let direct = r.text("method") == "direct";
            place_of(r) == place && (direct || r.number("tolerance") == tolerance) && OWN.contains(&r.text("method"))
        };
        let Some(best) = here().filter(same).min_by(|a, b| a.number("seconds").total_cmp(&b.number("seconds"))) else {
            continue;
        };
        let own = here().filter(same).find(|r| r.text("method") == chosen.text("chosen"));
        let ratio = own.map_or(f64::NAN, |own| own.number("seconds") / best.number("seconds"));
        if ratio > WRONG {
            all.push(format!(
                "{set}, N = {n}, {}, {place}: auto takes {}, which takes {} times as long as {}.",
                number(tolerance),
                chosen.text("chosen"),
                significant(ratio),
                best.text("method")
            ));
        }
    }
    all
}

/// How much faster than OpenMM we are, at an error that is no larger than its own.
fn of_openmm(records: &[Record], set: &str, n: f64) -> Vec<String> {
    let here = || records.iter().filter(|r| r.number("n") == n);
    let mut all = vec![];
    for rival in here().filter(|r| r.text("method") == OPENMM) {
        let no_worse = |r: &&Record| {
            place_of(r) == place_of(rival) && OWN.contains(&r.text("method")) && r.number("l2") <= rival.number("l2")
        };
        let ours = here().filter(no_worse).min_by(|a, b| a.number("seconds").total_cmp(&b.number("seconds")));
        if let Some(ours) = ours {
            all.push(format!(
                "{set}, N = {n}, {}: OpenMM's PME takes {} s at L2 {:.1e}, {} {} s at {:.1e}: {} times.",
                place_of(rival),
                significant(rival.number("seconds")),
                rival.number("l2"),
                ours.text("method"),
                significant(ours.number("seconds")),
                ours.number("l2"),
                significant(rival.number("seconds") / ours.number("seconds")),
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(method: &str, chosen: &str, tolerance: f64, seconds: f64, l2: f64) -> Record {
        let mut record = Record::default();
        record.set("set", "water").set("n", 3000).set("device", "cpu").set("threads", 2).set("method", method);
        record.set("chosen", chosen).set("tolerance", tolerance).set("seconds", seconds).set("l2", l2).clone()
    }

    #[test]
    fn wrong_choices_and_other_codes_are_named() {
        let mut records = vec![
            record("mesh", "mesh", 1e-3, 1.0, 2e-4),
            record("fmm", "fmm", 1e-3, 1.5, 3e-4),
            record("direct", "direct", 1e-3, 9.0, 1e-14),
            record("auto", "fmm", 1e-3, 1.5, 3e-4),
            record("mesh", "mesh", 1e-6, 4.0, 1e-7),
            record("auto", "mesh", 1e-6, 4.0, 1e-7),
            record(OPENMM, "PME", 1e-4, 6.0, 1e-6),
        ];
        let text = summary(&records);
        assert_eq!(text.len(), 2, "{text:?}");
        assert!(text[0].contains("auto takes fmm, which takes 1.50 times as long as mesh"), "{text:?}");
        assert!(
            text[1].contains("OpenMM's PME takes 6.00 s at L2 1.0e-6, mesh 4.00 s at 1.0e-7: 1.50 times"),
            "{text:?}"
        );
        let names: Vec<String> = figures(&records).into_iter().map(|f| f.0).collect();
        assert_eq!(names, ["water-1e-3", "water-1e-6", "water-n3000"]);
        let mut missing = record(OPENMM, "", 1e-4, f64::NAN, f64::NAN);
        missing.set("absent", true).set("why", "OpenMM is not installed");
        records.push(missing);
        assert!(summary(&records)[2].contains("OpenMM is not installed"));
    }
}
