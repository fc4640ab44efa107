//! What a run remembers across checkpoints beside the state of its particles.

use fmm_core::Stage;

use super::Simulation;
use crate::diagnostics::Diagnostics;
use crate::run::report;
use crate::run::verify::Verified;

impl Simulation<'_> {
    /// What a checkpoint keeps beside the state of the particles.
    pub(super) fn numbers(&self) -> Vec<(String, f64)> {
        let first = self.first.unwrap_or_default();
        let energies = |name: &str, d: &Diagnostics| {
            [(format!("{name}_kinetic"), d.kinetic), (format!("{name}_potential"), d.potential)]
        };
        let mut numbers = [energies("first", &first), energies("last", &self.last)].concat();
        numbers.push(("largest_energy_error".into(), self.worst));
        numbers.push(("timed_from_step".into(), self.timed_from as f64));
        numbers.extend(self.sense.numbers());
        let [initial, other] = self.wall.outside(&self.times);
        numbers.push(("initial_state_seconds".into(), initial));
        numbers.push(("other_seconds".into(), other));
        for (stage, seconds, calls) in report::stages(&self.times) {
            numbers.push((format!("{}_seconds", stage.name()), seconds));
            numbers.push((format!("{}_calls", stage.name()), calls as f64));
        }
        if let Some(last) = self.verified.last.filter(|_| self.verified.largest.is_finite()) {
            numbers.push(("force_error_last".into(), last));
            numbers.push(("force_error_largest".into(), self.verified.largest));
            numbers.push(("force_error_count".into(), self.verified.count as f64));
        }
        numbers
    }

    /// The reverse of [`numbers`](Self::numbers).
    pub(super) fn recall(&mut self, numbers: &[(String, f64)]) {
        let get = |name: &str| numbers.iter().find(|(n, _)| n == name).map(|&(_, v)| v);
        let energies = |name: &str| {
            let kinetic = get(&format!("{name}_kinetic"))?;
            Some(Diagnostics { kinetic, potential: get(&format!("{name}_potential"))?, ..Diagnostics::default() })
        };
        self.first = energies("first");
        self.last = energies("last").unwrap_or_default();
        self.worst = get("largest_energy_error").unwrap_or(0.0);
        self.sense.recall(numbers);
        if let Some(from) = get("timed_from_step") {
            self.timed_from = from as u64;
            self.wall.before = ["initial_state_seconds", "other_seconds"].map(|name| get(name).unwrap_or(0.0));
            for stage in Stage::ALL {
                let kept = |what: &str| get(&format!("{}_{what}", stage.name())).unwrap_or(0.0);
                self.times.add_calls(stage, kept("seconds"), kept("calls") as u64);
            }
            self.wall.stages_before = self.times.total();
        }
        self.verified = Verified {
            last: get("force_error_last"),
            largest: get("force_error_largest").unwrap_or(0.0),
            count: get("force_error_count").unwrap_or(0.0) as u64,
        };
    }
}
