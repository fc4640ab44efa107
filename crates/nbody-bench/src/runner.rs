//! The loop over the cases of a suite: progress, records at once, an end at Ctrl-C that loses nothing.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use fmm_core::Method;
use indicatif::ProgressBar;

use super::measure::{Context, Sum};
use super::record::{Record, Store};
use super::suite::{Case, Suite, Work};
use nbody_cli::console::bar_style;
use nbody_sim::failure::Failure;

/// Measures the cases that the store does not hold; false if a signal came first.
///
/// # Errors
/// What a case refuses, with its name; 74 where a record cannot be written.
pub fn run(
    suite: &Suite,
    cases: Vec<Case>,
    context: &mut Context,
    store: &mut Store,
    quiet: bool,
) -> Result<bool, Failure> {
    let left: Vec<Case> = cases.into_iter().filter(|c| !store.holds(&c.key)).collect();
    let progress = Progress::start(suite.name, &left, quiet);
    for case in left {
        if context.stopped() {
            return Ok(false);
        }
        progress.begin(&case.key);
        let failed = |failure: Failure| {
            Failure::new(
                failure.code,
                format!("{}: {}", case.key, failure.render(false).trim_end().trim_start_matches("nbody: ")),
            )
        };
        let measured = match &case.work {
            Work::Sum(sum) => context.sum(sum),
            Work::SumOrGuess(sum, longest) => match guess(sum, *longest, store.records()) {
                Some(mut record) => {
                    context.machine(&mut record, sum.device);
                    Ok(Some(record))
                }
                None => context.sum(sum),
            },
            Work::Other(work) => work(context),
        };
        let Some(mut record) = measured.map_err(failed)? else { return Ok(false) };
        record.set("suite", suite.name).set("case", case.key);
        store.append(record)?;
        progress.done(case.weight);
    }
    progress.finish();
    Ok(true)
}

/// The record of a sum that would take longer than `longest` seconds, from the largest that was measured: direct sums grow as N²,
/// others as N log N. None where it should be measured.
fn guess(sum: &Sum, longest: f64, records: &[Record]) -> Option<Record> {
    let like = |r: &&Record| {
        let mut same = Record::default();
        sum.tell(&mut same);
        let alike = same.0.iter().all(|(k, v)| k == "n" || r.0.get(k) == Some(v));
        alike && r.number("n") < sum.n as f64 && !r.is("extrapolated")
    };
    let from = records.iter().filter(like).max_by(|a, b| a.number("n").total_cmp(&b.number("n")))?;
    let (n, m) = (sum.n as f64, from.number("n"));
    let growth = if sum.method == Method::Direct { (n / m).powi(2) } else { n * n.ln() / (m * m.ln()) };
    let seconds = from.number("seconds") * growth;
    if seconds <= longest {
        return None;
    }
    let mut record = Record::default();
    sum.tell(&mut record);
    record.set("extrapolated", true).set("extrapolated_from", m as u64).set("seconds", seconds);
    // The errors are those of the sum that was measured.
    for name in ["rms", "p99", "max", "l2", "sample", "precision", "asked", "kept"] {
        record.set(name, from.0.get(name).cloned().unwrap_or_default());
    }
    Some(record)
}

/// Progress on stderr: a bar on a terminal, elsewhere a line now and then.
struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    begun: Instant,
    done: std::cell::Cell<(f64, Option<Instant>)>,
    all: f64,
}

/// Units of the bar for a second of expected work.
const UNITS: f64 = 1000.0;
/// Between plain lines.
const INTERVAL: Duration = Duration::from_secs(30);

impl Progress {
    fn start(name: &str, cases: &[Case], quiet: bool) -> Self {
        let all: f64 = cases.iter().map(|c| c.weight).sum();
        let terminal = std::io::stderr().is_terminal();
        if !quiet {
            nbody_cli::console::tell(format_args!("nbody bench {name}: {} cases to measure", cases.len()));
        }
        let bar = (terminal && !quiet).then(|| ProgressBar::new((all * UNITS) as u64));
        if let Some(bar) = &bar {
            bar.set_style(bar_style("{bar:20} {percent:>3} %{left}  {wide_msg}", 0));
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        let lines = !quiet && !terminal;
        Progress { bar, lines, begun: Instant::now(), done: std::cell::Cell::new((0.0, None)), all }
    }

    fn begin(&self, case: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(case.to_string());
        }
    }

    fn done(&self, weight: f64) {
        let (before, last) = self.done.get();
        let done = before + weight;
        let due = last.unwrap_or(self.begun).elapsed() >= INTERVAL;
        self.done.set((done, if due { Some(Instant::now()) } else { last }));
        if let Some(bar) = &self.bar {
            bar.set_position((done * UNITS) as u64);
        }
        if self.lines && due {
            let gone = self.begun.elapsed().as_secs_f64();
            let left = gone / done * (self.all - done);
            nbody_cli::console::tell(format_args!(
                "{:.0} %  {gone:.0} s gone, {left:.0} s left",
                100.0 * done / self.all
            ));
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use fmm_core::Precision;

    use super::*;
    use crate::norm::Norm;
    use crate::sets::Set;
    use fmm::Device;
    use fmm::Kernel;

    #[test]
    fn long_sums_are_extrapolated_from_the_largest_that_was_measured() {
        let sum = |n, method| Sum {
            kernel: Kernel::Laplace,
            set: Set::Uniform,
            sigma: None,
            n,
            device: Device::Cpu,
            threads: 2,
            method,
            tolerance: 1e-3,
            norm: Norm::Rms,
            precision: Precision::Auto,
            order: None,
            theta: None,
            leaf_size: None,
        };
        let measured = |n: usize, seconds: f64| {
            let mut record = Record::default();
            sum(n, Method::Direct).tell(&mut record);
            record.set("seconds", seconds).set("rms", 1e-6);
            record
        };
        let mut guessed = measured(4000, 16.0);
        guessed.set("extrapolated", true);
        let records = [measured(1000, 0.9), measured(2000, 4.0), guessed];
        let record = guess(&sum(8000, Method::Direct), 10.0, &records).unwrap();
        assert_eq!((record.number("seconds"), record.number("rms")), (64.0, 1e-6));
        assert!(record.is("extrapolated") && record.number("extrapolated_from") == 2000.0);
        assert!(guess(&sum(8000, Method::Direct), 100.0, &records).is_none(), "short enough to measure");
        assert!(guess(&sum(8000, Method::Fmm), 1.0, &records).is_none(), "another method");
        assert!(guess(&sum(1000, Method::Direct), 0.0, &records).is_none(), "nothing smaller");
    }
}
