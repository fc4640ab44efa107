//! A table of rates in the form of Cruz, Layton & Barba's Tables 2 to 5: cores and GPU in one line for each order and
//! size.

use crate::record::Record;
use crate::table::significant;

/// A column: its heading, and its cell in the line of some records.
type Column = (String, Box<dyn Fn(&[&Record]) -> f64>);

/// The records as Markdown, one table for each operator and precision.
pub fn markdown(records: &[Record]) -> String {
    let mut text = String::from(
        "GB/s: what the kernel reads and writes, each number once. M2L on a GPU: in double precision the fastest \
         version, which adds up the local expansions of each list itself; in single precision the fastest of the \
         paper's versions, after which a kernel of its own adds them up (reduction).\n",
    );
    let mut tables: Vec<(&str, &str)> = records.iter().map(|r| (base(family(r)), r.text("precision"))).collect();
    tables.sort_unstable();
    tables.dedup();
    for (wanted, precision) in tables {
        // In double precision the program has its own versions.
        let compared = |r: &&Record| precision == "f32" || family(r) == wanted;
        let of = |r: &&Record| base(family(r)) == wanted && r.text("precision") == precision;
        let here: Vec<&Record> = records.iter().filter(of).filter(compared).collect();
        let columns = columns(&here);
        text += &format!("\n{wanted}, {precision}\n\n| p | number |");
        columns.iter().for_each(|c| text += &format!(" {} |", c.0));
        text += &format!("\n|---|---|{}\n", "---|".repeat(columns.len()));
        let mut keys: Vec<(f64, f64)> = here.iter().map(|r| (r.number("order"), r.number("n"))).collect();
        keys.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        keys.dedup();
        for (order, n) in keys {
            let line: Vec<&Record> =
                here.iter().copied().filter(|r| (r.number("order"), r.number("n")) == (order, n)).collect();
            text += &format!("| {order} | {n} |");
            columns.iter().for_each(|column| text += &cell((column.1)(&line)));
            text.push('\n');
        }
    }
    text
}

/// A cell; an empty one of what is no number.
fn cell(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "  |".into(),
        _ if value >= 1e5 => format!(" {value:.2e} |"),
        _ => format!(" {} |", significant(value)),
    }
}

/// The versions on a GPU at their largest size as Markdown: what each takes of a multiprocessor, and what bounds how
/// many threads run at once. None without a GPU.
pub fn versions(records: &[Record]) -> Option<String> {
    let there = |r: &&Record| r.text("device") != "cpu" && r.number("occupancy").is_finite();
    let mut all: Vec<&Record> = records.iter().filter(there).collect();
    let version = |r: &Record| (r.text("operator").to_string(), r.text("precision").to_string(), r.number("order"));
    let largest = |r: &Record| {
        let like = all.iter().filter(|o| version(o) == version(r));
        like.map(|o| o.number("n")).fold(0.0, f64::max)
    };
    let kept: Vec<bool> = all.iter().map(|r| r.number("n") == largest(r)).collect();
    let mut kept = kept.into_iter();
    all.retain(|_| kept.next().unwrap_or(false));
    if all.is_empty() {
        return None;
    }
    let mut text = String::from(
        "Versions on a GPU. Occupancy: threads that a multiprocessor holds at once, of the most; limiter: what bounds \
         it first.\n\n\
         | version | precision | p | number | a second | Gop/s | reduction, µs | registers | \
         shared memory of a block, bytes | spilled, bytes | threads of a block | occupancy, % | limiter |\n",
    );
    text += &format!("|{}\n", "---|".repeat(13));
    for r in all {
        text += &format!(
            "| {} | {} | {} | {} |",
            r.text("operator"),
            r.text("precision"),
            r.number("order"),
            r.number("n")
        );
        let micro = 1e6 * r.number("part_reduction");
        [r.number("rate"), r.number("gflops"), micro].into_iter().for_each(|value| text += &cell(value));
        let whole = ["registers", "shared_bytes", "spilled_bytes", "block_threads"].map(|name| r.number(name));
        whole.into_iter().for_each(|value| text += &format!(" {value} |"));
        text += &format!(" {:.0} | {} |\n", 100.0 * r.number("occupancy"), r.text("limiter"));
    }
    Some(text)
}

/// The operator without its version.
pub fn family(record: &Record) -> &str {
    record.text("operator").split(',').next().unwrap_or_default()
}

/// An operator that some versions of a paper are of, without the word for them.
pub fn base(family: &str) -> &str {
    family.trim_end_matches(" of the paper")
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
            ("reduction, µs", "part_reduction", 1e6),
            ("to device, µs", "copy_to_device", 1e6),
            ("to host, µs", "copy_to_host", 1e6),
            ("Gop/s", "gflops", 1.0),
            ("GB/s", "gigabytes", 1.0),
            ("GPU, a second", "rate", 1.0),
        ];
        let known = |field: &str| records.iter().any(|r| r.number(field).is_finite());
        for (heading, field, times) in fields.into_iter().filter(|f| f.1 != "part_reduction" || known(f.1)) {
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

    fn record(device: &str, operator: &str, precision: &str, threads: u64, rate: f64) -> Record {
        let mut r = Record::default();
        r.set("device", device).set("operator", operator).set("order", 8).set("n", 2160).set("rate", rate);
        r.set("precision", precision).set("threads", threads).set("seconds", 1e-3).set("gigabytes", 5.0).clone()
    }

    #[test]
    fn cores_and_gpu_stand_in_one_line() {
        let mut paper = record("cuda:0", "M2L of the paper, unrolled", "f32", 2, 600.0);
        paper.set("part_reduction", 2e-5);
        let records = [
            record("cpu", "M2L", "f64", 1, 10.0),
            record("cpu", "M2L", "f64", 2, 20.0),
            record("cpu", "M2L", "f32", 1, 30.0),
            record("cuda:0", "M2L, a thread each", "f64", 2, 300.0),
            record("cuda:0", "M2L, tensor cores", "f64", 2, 400.0),
            // It does not add up: no rival of the others.
            record("cuda:0", "M2L of the paper, unrolled", "f64", 2, 900.0),
            paper,
        ];
        let text = markdown(&records);
        assert!(text.contains("| 8 | 2160 | 10.0 | 20.0 | 1000 |  |  |  | 5.00 | 400 | 40.0 | 20.0 |"), "{text}");
        assert!(text.contains("| 8 | 2160 | 30.0 | 1000 | 20.0 |  |  |  | 5.00 | 600 | 20.0 |"), "{text}");
        assert!(text.contains("\nM2L, f32\n") && text.contains("\nM2L, f64\n"), "{text}");
        assert!(!markdown(&records[..2]).contains("GPU kernel"));
    }

    #[test]
    fn versions_are_listed_at_their_largest_size() {
        let version = |n: u64, occupancy: f64| {
            let mut r = record("cuda:0", "M2L of the paper, row-wise", "f32", 2, 5.0);
            r.set("n", n).set("occupancy", occupancy).set("limiter", "registers").set("registers", 40);
            r.set("shared_bytes", 0)
                .set("spilled_bytes", 0)
                .set("block_threads", 128)
                .set("part_reduction", 2e-5)
                .clone()
        };
        let text = versions(&[version(2160, 0.5), version(9072, 0.75), record("cpu", "M2L", "f32", 1, 1.0)]).unwrap();
        let expected =
            "| M2L of the paper, row-wise | f32 | 8 | 9072 | 5.00 |  | 20.0 | 40 | 0 | 0 | 128 | 75 | registers |";
        assert!(text.contains(expected) && !text.contains("2160"), "{text}");
        assert_eq!(versions(&[record("cpu", "M2L", "f32", 1, 1.0)]), None);
    }
}
