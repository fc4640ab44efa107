//! The records as a Markdown table.

use super::norm::Norm;
use super::record::Record;
use nbody_sim::messages::number;

/// Columns that a table has even if all records say the same.
const ALWAYS: [&str; 4] = ["n", "method", "seconds", "rms"];

/// A table of these columns (name in the record, heading), aligned. What all records share stands once above it; columns that no record
/// has are left out, and so are the last ones where the table would be wider than `width` (but [`ALWAYS`] stay).
pub fn markdown(records: &[Record], columns: &[(&str, &str)], width: Option<usize>) -> String {
    let there = columns.iter().filter(|(name, _)| records.iter().any(|r| r.0.contains_key(*name)));
    let (mut shared, mut shown) = (vec![], vec![]);
    for (name, heading) in there {
        let cells: Vec<String> = records.iter().map(|r| cell(r, name)).collect();
        let same = cells.len() > 1 && cells.iter().all(|c| *c == cells[0]) && !ALWAYS.contains(name);
        match same {
            true => shared.push(format!("{heading} {}", cells[0])),
            false => {
                let longest = cells.iter().chain([&heading.to_string()]).map(|c| c.chars().count()).max();
                shown.push((*name, *heading, cells, longest.unwrap_or(0)));
            }
        }
    }
    let wide = |shown: &[(&str, &str, Vec<String>, usize)]| 1 + shown.iter().map(|(.., w)| w + 3).sum::<usize>();
    let mut left_out = vec![];
    while width.is_some_and(|width| wide(&shown) > width) {
        let Some(last) = shown.iter().rposition(|(name, ..)| !ALWAYS.contains(name)) else { break };
        left_out.insert(0, shown.remove(last).1);
    }
    let row = |cell: &dyn Fn(usize) -> String| -> String {
        let cells: Vec<String> = (0..shown.len()).map(|k| format!("{:w$}", cell(k), w = shown[k].3)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = if shared.is_empty() { String::new() } else { format!("All with: {}.\n\n", shared.join(", ")) };
    text += &row(&|k| shown[k].1.to_string());
    text += &row(&|k| "-".repeat(shown[k].3));
    for i in 0..records.len() {
        text += &row(&|k| shown[k].2[i].clone());
    }
    if !left_out.is_empty() {
        text += &format!("\nIn the records, but too wide for this terminal: {}.\n", left_out.join(", "));
    }
    text
}

fn cell(record: &Record, name: &str) -> String {
    let value = record.number(name);
    match name {
        _ if value.is_nan() => record.text(name).to_string(),
        // A sum whose error exceeds what was asked must not pass for one that keeps it.
        "rms" if record.0.get("kept").is_some_and(|kept| kept == false) => match Norm::of(record) {
            Norm::Rms => format!("{value:.1e} (not kept)"),
            // Its own column may not fit the terminal.
            Norm::Max => format!("{value:.1e} (max {:.1e} not kept)", record.number("max")),
        },
        "rms" | "l2" | "p99" | "max" | "rival_rms" | "rival_l2" => format!("{value:.1e}"),
        "seconds" if record.is("extrapolated") => format!("({})", significant(value)),
        "seconds" => {
            let half = 0.5 * (record.number("seconds_high") - record.number("seconds_low"));
            if half.is_finite() {
                format!("{} ± {}", significant(value), significant(half))
            } else {
                significant(value)
            }
        }
        "n" | "order" | "leaf" | "threads" | "samples" | "boxes" | "m2l" | "direct" | "swapped" => format!("{value}"),
        "tolerance" | "setting" => number(value),
        "fraction" => format!("{:.0} %", 100.0 * value),
        _ => significant(value),
    }
}

/// Three significant digits.
pub fn significant(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{x}");
    }
    let digits = 2 - x.abs().log10().floor() as i32;
    if (0..=6).contains(&digits) {
        format!("{x:.*}", digits as usize)
    } else if digits < 0 && digits > -10 {
        format!("{x:.0}")
    } else {
        format!("{x:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_columns_that_are_there() {
        let mut a = Record::default();
        a.set("n", 1000).set("method", "fmm").set("rms", 0.000_123_4).set("seconds", 0.012_345);
        a.set("seconds_low", 0.012).set("seconds_high", 0.013);
        a.set("kept", true);
        let mut b = Record::default();
        b.set("n", 2000).set("method", "direct").set("seconds", 4.0).set("extrapolated", true);
        b.set("rms", 0.002).set("kept", false);
        a.set("device", "cpu").set("threads", 2);
        b.set("device", "cpu").set("threads", 2);
        let columns = [("device", "device"), ("method", "method"), ("n", "N"), ("seconds", "s"), ("rms", "rms")];
        let columns = [&columns[..], &[("order", "p")]].concat();
        let rows = "| method | N    | s                 | rms               |\n\
                    | ------ | ---- | ----------------- | ----------------- |\n\
                    | fmm    | 1000 | 0.0123 ± 0.000500 | 1.2e-4            |\n\
                    | direct | 2000 | (4.00)            | 2.0e-3 (not kept) |\n";
        let both = [a, b];
        assert_eq!(markdown(&both, &columns, None), format!("All with: device cpu.\n\n{rows}"));
        let columns = [&columns[..], &[("threads", "threads"), ("leaf", "leaf")]].concat();
        let [a, mut b] = both;
        b.set("leaf", 64).set("threads", 1);
        let text = markdown(&[a, b], &columns, Some(58));
        let narrow = text.lines().filter(|l| l.starts_with('|')).all(|l| l.chars().count() <= 58);
        assert!(narrow && text.contains("too wide for this terminal: threads, leaf."), "{text}");
        // The norm that is not kept is named in a column that every table has.
        let mut c = Record::default();
        c.set("n", 10).set("rms", 1e-7).set("max", 2e-6).set("norm", "max").set("kept", false);
        let text = markdown(&[c.clone()], &[("n", "N"), ("rms", "rms"), ("max", "max")], Some(40));
        assert!(text.contains("1.0e-7 (max 2.0e-6 not kept)") && text.contains("too wide"), "{text}");
        c.set("kept", true);
        assert!(markdown(&[c], &[("rms", "rms")], None).contains("| 1.0e-7 |"));
        assert_eq!([12345.6, 1.0, 1e-9, f64::INFINITY].map(significant), ["12346", "1.00", "1.00e-9", "inf"]);
    }
}
