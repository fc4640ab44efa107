//! A table of rates in the form of Cruz, Layton & Barba's Tables 2 to 5: cores and GPU in one line for each order and size.

use crate::record::Record;
use crate::table::significant;

/// A column: its heading, and its cell in the line of some records.
type Column = (String, Box<dyn Fn(&[&Record]) -> f64>);

/// The records as Markdown, one table for each operator.
pub fn markdown(records: &[Record]) -> String {
    let mut text = String::from(
        "All numbers are in double precision. Reduction: local expansions are summed in the kernel. GB/s: what the kernel reads and writes, \
         each number once.\n",
    );
    let mut families: Vec<&str> = records.iter().map(family).collect();
    families.sort_unstable();
    families.dedup();
    for wanted in families {
        let here: Vec<&Record> = records.iter().filter(|r| family(r) == wanted).collect();
        let columns = columns(&here);
        text += &format!("\n{wanted}\n\n| p | number |");
        columns.iter().for_each(|c| text += &format!(" {} |", c.0));
        text += &format!("\n|---|---|{}\n", "---|".repeat(columns.len()));
        let mut keys: Vec<(f64, f64)> = here.iter().map(|r| (r.number("order"), r.number("n"))).collect();
        keys.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        keys.dedup();
        for (order, n) in keys {
            let line: Vec<&Record> =
                here.iter().copied().filter(|r| (r.number("order"), r.number("n")) == (order, n)).collect();
            text += &format!("| {order} | {n} |");
            for column in &columns {
                let value = (column.1)(&line);
                text += &match value {
                    _ if !value.is_finite() => "  |".into(),
                    _ if value >= 1e5 => format!(" {value:.2e} |"),
                    _ => format!(" {} |", significant(value)),
                };
            }
            text.push('\n');
        }
    }
    text
}

/// The operator without its version.
pub fn family(record: &Record) -> &str {
    record.text("operator").split(',').next().unwrap_or_default()
}

fn columns(records: &[&Record]) -> Vec<Column> {
    let mut threads: Vec<f64> =
        records.iter().filter(|r| r.text("device") == "cpu").map(|r| r.number("threads")).collect();
    threads.sort_by(f64::total_cmp);
    threads.dedup();
    let mut all: Vec<Column> = vec![];
    for &count in &threads {
        all.push((format!("{count} cores, a second"), Box::new(move |line| cores(line, count).map_or(f64::NAN, rate))));
    }
    if records.iter().any(|r| r.text("device") != "cpu") {
        let fields = [
            ("GPU kernel, µs", "seconds", 1e6),
            ("to device, µs", "copy_to_device", 1e6),
            ("to host, µs", "copy_to_host", 1e6),
            ("Gop/s", "gflops", 1.0),
            ("GB/s", "gigabytes", 1.0),
            ("GPU, a second", "rate", 1.0),
        ];
        for (heading, field, times) in fields {
            all.push((heading.into(), Box::new(move |line| gpu(line).map_or(f64::NAN, |r| times * r.number(field)))));
        }
        for &count in &threads {
            let both = move |line: &[&Record]| Some((rate(gpu(line)?), rate(cores(line, count)?)));
            let ratio = move |line: &[&Record]| both(line).map_or(f64::NAN, |(gpu, cores)| gpu / cores);
            all.push((format!("GPU / {count} cores"), Box::new(ratio)));
        }
    }
    all
}

fn rate(record: &Record) -> f64 {
    record.number("rate")
}

fn cores<'a>(line: &[&'a Record], threads: f64) -> Option<&'a Record> {
    line.iter().copied().find(|r| r.text("device") == "cpu" && r.number("threads") == threads)
}

/// The fastest version on a GPU.
fn gpu<'a>(line: &[&'a Record]) -> Option<&'a Record> {
    let there = line.iter().copied().filter(|r| r.text("device") != "cpu");
    there.max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_gpu_stand_in_one_line() {
        let record = |device: &str, operator: &str, threads: u64, rate: f64| {
            let mut r = Record::default();
            r.set("device", device).set("operator", operator).set("order", 8).set("n", 2160).set("rate", rate);
            r.set("threads", threads).set("seconds", 1e-3).set("gigabytes", 5.0).clone()
        };
        let records = [
            record("cpu", "M2L", 1, 10.0),
            record("cpu", "M2L", 2, 20.0),
            record("cuda:0", "M2L, a thread each", 2, 300.0),
            record("cuda:0", "M2L, tensor cores", 2, 400.0),
        ];
        let text = markdown(&records);
        assert!(text.contains("| 8 | 2160 | 10.0 | 20.0 | 1000 |  |  |  | 5.00 | 400 | 40.0 | 20.0 |"), "{text}");
        assert!(!markdown(&records[..2]).contains("GPU kernel"));
    }
}
