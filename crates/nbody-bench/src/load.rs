//! Other load on the machine while a case is measured: processor time that neither this process nor idling took.

use std::time::Instant;

use super::record::Record;

/// The name in a record: cores that others kept busy on average.
const NAME: &str = "other_load";
/// Cores of others from which on times are not trusted; a quiet desktop keeps some hundredths busy.
const MOST: f64 = 0.2;
/// Seconds below which the clocks of the system, which tick 100 times a second, say nothing.
const LEAST: f64 = 0.2;
/// Ticks of `/proc` a second (`USER_HZ`), the same on all Linux systems.
const TICKS: f64 = 100.0;

/// Processor time since the start of the machine and of this process.
pub struct Load {
    begun: Instant,
    ticks: Option<(f64, f64)>,
}

impl Load {
    /// Measures from now on.
    pub fn begin() -> Self {
        Load { begun: Instant::now(), ticks: ticks() }
    }

    /// Notes what others took since the begin, where the system says so.
    pub fn note(&self, record: &mut Record) {
        let seconds = self.begun.elapsed().as_secs_f64();
        if let (Some((all, own)), Some((all_now, own_now))) = (self.ticks, ticks())
            && seconds >= LEAST
        {
            let others = ((all_now - all) - (own_now - own)).max(0.0) / TICKS / seconds;
            record.set(NAME, (100.0 * others).round() / 100.0);
        }
    }
}

/// Busy time of all cores and of this process, in ticks. Time that the host gave to other machines is busy too.
fn ticks() -> Option<(f64, f64)> {
    let fields = |text: &str| -> Vec<f64> { text.split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect() };
    let all = std::fs::read_to_string("/proc/stat").ok()?;
    // user, nice, system, idle, iowait, irq, softirq, steal
    let cpu = fields(all.lines().next()?.strip_prefix("cpu ")?);
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|&i| cpu.get(i)).sum();
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may hold anything; the state comes after it, and user and system time eleven further on.
    let own = fields(own.rsplit_once(')')?.1);
    Some((busy, own.get(11)? + own.get(12)?))
}

/// Whether others disturbed the measurement.
pub fn disturbed(record: &Record) -> bool {
    record.number(NAME) > MOST
}

/// What is said in place of conclusions where others disturbed some measurements.
pub fn warning(records: &[Record]) -> Option<String> {
    let count = records.iter().filter(|r| disturbed(r)).count();
    let largest = records.iter().map(|r| r.number(NAME)).fold(0.0, f64::max);
    (count > 0).then(|| {
        format!(
            "Warning: other programs kept up to {largest:.1} cores busy during {count} of {} cases. No conclusion is \
             drawn from these times; measure again on a quiet machine, with --force.",
            records.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn own_time_is_no_other_load() {
        let (all, own) = ticks().unwrap();
        let begun = Instant::now();
        let mut x = 1u64;
        while begun.elapsed().as_millis() < 400 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let (all_now, own_now) = ticks().unwrap();
        assert!(own_now - own >= 5.0 && all_now - all >= own_now - own - 2.0, "{own} {own_now} {all} {all_now}");
    }

    #[test]
    fn cases_with_other_load_are_warned_of() {
        let with = |load: f64| {
            let mut record = Record::default();
            record.set(NAME, load);
            record
        };
        assert!(warning(&[with(0.05), Record::default()]).is_none());
        let text = warning(&[with(0.05), with(1.25)]).unwrap();
        assert!(text.contains("up to 1.2 cores busy during 1 of 2 cases") && text.contains("No conclusion"), "{text}");
    }
}
