//! The records as a Markdown table.

use super::record::Record;
use crate::told::number;

/// A table of these columns (name in the record, heading), without those that no record has.
pub fn markdown(records: &[Record], columns: &[(&str, &str)]) -> String {
    let columns: Vec<_> = columns.iter().filter(|(name, _)| records.iter().any(|r| r.0.contains_key(*name))).collect();
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = row(columns.iter().map(|c| c.1.to_string()).collect());
    text += &format!("|{}\n", "---|".repeat(columns.len()));
    for record in records {
        text += &row(columns.iter().map(|(name, _)| cell(record, name)).collect());
    }
    text
}

fn cell(record: &Record, name: &str) -> String {
    let value = record.number(name);
    match name {
        _ if value.is_nan() => record.text(name).to_string(),
        // A sum whose error exceeds what was asked must not pass for one that keeps it.
        "rms" if record.0.get("kept").is_some_and(|kept| kept == false) => format!("{value:.1e} (not kept)"),
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
        "n" | "order" | "leaf" | "threads" | "samples" => format!("{value}"),
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
        let columns = [("method", "method"), ("n", "N"), ("seconds", "s"), ("rms", "rms"), ("order", "p")];
        let text = markdown(&[a, b], &columns);
        let expected = "| method | N | s | rms |\n|---|---|---|---|\n| fmm | 1000 | 0.0123 ± 0.000500 | 1.2e-4 |\n\
                        | direct | 2000 | (4.00) | 2.0e-3 (not kept) |\n";
        assert_eq!(text, expected);
        assert_eq!([12345.6, 1.0, 1e-9, f64::INFINITY].map(significant), ["12346", "1.00", "1.00e-9", "inf"]);
    }
}
