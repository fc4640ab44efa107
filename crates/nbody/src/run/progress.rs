//! Progress on stderr: a bar on a terminal, elsewhere one plain line every 30 seconds.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::Options;
use super::plan::Plan;
use crate::console::bar_style;
use crate::times::TimeUnit;

/// Between plain lines.
const INTERVAL: Duration = Duration::from_secs(30);

/// Progress of a run.
pub struct Progress {
    kind: Kind,
    verbose: bool,
    unit: TimeUnit,
}

enum Kind {
    /// Nothing is shown.
    Quiet,
    /// A bar on a terminal.
    Bar(ProgressBar),
    /// Lines in a log.
    Lines {
        /// Number of steps of the run.
        steps: u64,
        /// Steps that were done before.
        first_step: u64,
        /// When it began.
        start: Instant,
        /// When the last line was written.
        last: Cell<Instant>,
    },
}

impl Progress {
    /// Says what begins: `what`, as "1000 particles", takes the steps of `plan` from `first_step` on. Times are shown in `unit`.
    pub fn start(
        plan: &Plan,
        (what, unit): (&str, TimeUnit),
        threads: usize,
        first_step: u64,
        options: &Options,
    ) -> Self {
        let kind = Kind::start(plan, what, threads, first_step, options);
        Progress { kind, verbose: options.verbose, unit }
    }

    /// Prints a line for users of `-v` only.
    pub fn note(&self, text: &str) {
        if !self.verbose {
            return;
        }
        match &self.kind {
            Kind::Bar(bar) => bar.suspend(|| crate::console::tell(format_args!("{text}"))),
            _ => crate::console::tell(format_args!("{text}")),
        }
    }

    /// Prints a warning, also of a quiet run: it is no progress.
    pub fn warn(&self, text: &str) {
        match &self.kind {
            Kind::Bar(bar) => bar.suspend(|| crate::console::tell(format_args!("nbody: warning: {text}"))),
            _ => crate::console::tell(format_args!("nbody: warning: {text}")),
        }
    }

    /// What says that a signal has come, also to a quiet run: a step may be long.
    pub fn answer(&self) -> impl FnOnce() + Send + use<> {
        let bar = if let Kind::Bar(bar) = &self.kind { Some(bar.clone()) } else { None };
        move || {
            let say = || {
                crate::console::tell(
                    "nbody: signal received: the run ends after this step; a second signal ends it at once",
                )
            };
            match bar {
                Some(bar) => bar.suspend(say),
                None => say(),
            }
        }
    }

    /// After a step. No number is no error: the run began without energy.
    pub fn at(&self, step: u64, time: f64, energy_error: f64) {
        let time = self.unit.text(time);
        let error = if energy_error.is_nan() { String::new() } else { format!("  dE/E0 = {energy_error:.1e}") };
        match &self.kind {
            Kind::Quiet => {}
            Kind::Bar(bar) => {
                bar.set_position(step);
                bar.set_message(format!("t = {time}{error}"));
            }
            Kind::Lines { steps, first_step, start, last } => {
                if last.get().elapsed() < INTERVAL {
                    return;
                }
                last.set(Instant::now());
                let gone = start.elapsed().as_secs_f64();
                let left = gone / (step - first_step) as f64 * (steps - step) as f64;
                crate::console::tell(format_args!(
                    "step {step}/{steps}  t = {time}{error}  {gone:.0} s gone, {left:.0} s left"
                ));
            }
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}

impl Kind {
    fn start(plan: &Plan, what: &str, threads: usize, first_step: u64, options: &Options) -> Self {
        // With --json a machine follows the run, by its events.
        if options.quiet || options.json {
            return Kind::Quiet;
        }
        let from = if first_step > 0 { format!(", going on from step {first_step}") } else { String::new() };
        crate::console::tell(format_args!("{}: {what}, {} steps, {threads} threads{from}", plan.title, plan.steps));
        if !std::io::stderr().is_terminal() {
            let now = Instant::now();
            return Kind::Lines { steps: plan.steps, first_step, start: now, last: Cell::new(now) };
        }
        let bar = ProgressBar::new(plan.steps).with_position(first_step);
        // 80 columns hold it.
        let template = "{wide_bar} {percent:>3} %  step {pos}/{len}  {msg}{left}";
        bar.set_style(bar_style(template, first_step));
        bar.enable_steady_tick(Duration::from_millis(500));
        Kind::Bar(bar)
    }
}
