//! The same sum, and sums that grow with them, on one GPU and several.

use fmm_core::Method;

use super::{suite, sums};
use crate::lines::{distinct, figure, numbers};
use crate::measure::Sum;
use crate::record::Record;
use crate::suite::{Case, Places, Suite, Sweep};
use crate::table::significant;
use fmm::{Device, Team};
use nbody_cli::figure::{Axis, Content, Figure, Line};
use nbody_sim::failure::Failure;
use nbody_sim::messages::number;

/// The suite. `n` of the preset is the number of particles whose sum is shared, `smallest` the number for each GPU of sums
/// that grow.
pub const SUITE: Suite = Suite {
    places: Places::Teams,
    ..suite("scaling", include_str!("../../../../configs/bench-scaling.toml"), cases, figures, summary)
};

/// The first GPUs of a device: one, two, four and so on, and all.
fn teams(device: Device, present: u32) -> Vec<Device> {
    let all = match device {
        Device::Team(team) => team.ordinals(present),
        Device::Cuda(n) => vec![n],
        Device::Auto | Device::Cpu => return vec![],
    };
    if all.is_empty() {
        return vec![];
    }
    let mut counts: Vec<usize> = (0..).map(|k| 1 << k).take_while(|&count| count < all.len()).collect();
    counts.push(all.len());
    let of = |count: usize| match &all[..count] {
        [one] => Device::Cuda(*one),
        several => Device::Team(Team::Some(several.iter().fold(0, |bits, n| bits | 1 << n))),
    };
    counts.into_iter().map(of).collect()
}

/// How many GPUs a device has.
fn count(device: &str) -> f64 {
    device.split(',').count() as f64
}

fn cases(sweep: &Sweep) -> Result<Vec<Case>, Failure> {
    let present = fmm_cuda::devices();
    let count_of = present.as_ref().map_or(0, |all| all.len() as u32);
    let teams: Vec<Device> = sweep.devices.iter().flat_map(|&device| teams(device, count_of)).collect();
    if let (true, Device::Team(_), Err(why)) = (teams.is_empty(), sweep.devices[0], present) {
        return Err(Failure::new(69, format!("scaling: {why}")));
    }
    if teams.is_empty() {
        return Err(Failure::new(2, "scaling: this suite is of GPUs alone; allowed: --device cuda:all, cuda:0,cuda:1"));
    }
    let mut all: Vec<Case> = vec![];
    for grows in [false, true] {
        for &device in &teams {
            let n = if grows { sweep.preset.smallest * count(&device.to_string()) } else { sweep.preset.n };
            let here = sums(sweep, n as usize, Method::Fmm).into_iter().filter(|sum| sum.device == sweep.devices[0]);
            all.extend(here.map(|sum| Case::sum(Sum { device, ..sum })));
        }
    }
    // A sum may be of both kinds.
    let mut keys: Vec<String> = vec![];
    all.retain(|case| {
        let new = !keys.contains(&case.key);
        keys.push(case.key.clone());
        new
    });
    Ok(all)
}

/// Of a set and a tolerance, (GPUs, N, seconds), the fewest GPUs first.
struct Series {
    name: String,
    rows: Vec<(f64, f64, f64)>,
}

impl Series {
    /// How many times as fast as by one GPU the sum of the same N is.
    fn speedups(&self) -> Vec<(f64, f64, f64)> {
        self.compared(|n, one_n, _| n == one_n, |seconds, one| one / seconds)
    }

    /// The time of one GPU over that of several, which have as many particles each.
    fn efficiencies(&self) -> Vec<(f64, f64, f64)> {
        self.compared(|n, one_n, gpus| n == gpus * one_n, |seconds, one| one / seconds)
    }

    fn compared(&self, alike: impl Fn(f64, f64, f64) -> bool, ratio: impl Fn(f64, f64) -> f64) -> Vec<(f64, f64, f64)> {
        let of = |&(gpus, n, seconds): &(f64, f64, f64)| {
            let one = self.rows.iter().find(|one| one.0 == 1.0 && alike(n, one.1, gpus))?;
            (gpus > 1.0).then(|| (gpus, n, ratio(seconds, one.2)))
        };
        self.rows.iter().filter_map(of).collect()
    }
}

fn series(records: &[Record]) -> Vec<Series> {
    let mut all = vec![];
    for set in distinct(records, "set") {
        for tolerance in numbers(records, "tolerance") {
            let here = records.iter().filter(|r| r.text("set") == set && r.number("tolerance") == tolerance);
            let mut rows: Vec<_> =
                here.map(|r| (count(r.text("device")), r.number("n"), r.number("seconds"))).collect();
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            all.push(Series { name: format!("{set}, {}", number(tolerance)), rows });
        }
    }
    all
}

fn figures(records: &[Record]) -> Vec<(String, Figure)> {
    let all = series(records);
    let most = all.iter().flat_map(|s| &s.rows).map(|row| row.0).fold(1.0, f64::max);
    let lines = |of: fn(&Series) -> Vec<(f64, f64, f64)>, ideal: f64| {
        let measured = all.iter().filter_map(|series| {
            let points: Vec<_> = of(series).into_iter().map(|(gpus, _, ratio)| (gpus, ratio)).collect();
            let line = [(1.0, 1.0)].into_iter().chain(points.iter().copied()).collect();
            (!points.is_empty()).then(|| Line::new(series.name.clone(), line))
        });
        let ideal = Line::new("ideal", vec![(1.0, 1.0), (most, ideal)]).dashed();
        measured.chain([ideal]).collect::<Vec<_>>()
    };
    let drawn = [
        ("strong", "The same sum on several GPUs", "times as fast as one GPU", lines(Series::speedups, most)),
        ("weak", "As many particles for each GPU", "time of one GPU / time", lines(Series::efficiencies, 1.0)),
    ];
    let drawn = drawn.into_iter().filter(|(.., lines)| lines.len() > 1);
    drawn
        .map(|(end, title, what, lines)| {
            let content = Content::Lines { x: Axis::linear("GPUs"), y: Axis::linear(what), lines, marks: vec![] };
            (end.into(), figure(records, title, "FMM, whole force evaluations with their guard", content))
        })
        .collect()
}

fn summary(records: &[Record]) -> Vec<String> {
    let mut all = vec![];
    for series in series(records) {
        for (gpus, n, speedup) in series.speedups() {
            let (n, speedup) = (number(n), significant(speedup));
            all.push(format!("{}: {gpus} GPUs are {speedup} times as fast as one at N = {n}.", series.name));
        }
        for (gpus, n, efficiency) in series.efficiencies() {
            let (n, efficiency) = (number(n / gpus), significant(efficiency));
            all.push(format!(
                "{}: with {n} particles each, {gpus} GPUs have an efficiency of {efficiency}.",
                series.name
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_double_up_to_all() {
        let names = |device, present| teams(device, present).iter().map(Device::to_string).collect::<Vec<_>>();
        assert_eq!(names(Device::Team(Team::All), 3), ["cuda:0", "cuda:0,cuda:1", "cuda:0,cuda:1,cuda:2"]);
        assert_eq!(names(Device::Team(Team::Some(0b1010)), 4), ["cuda:1", "cuda:1,cuda:3"]);
        assert_eq!(names(Device::Cuda(2), 4), ["cuda:2"]);
        assert!(teams(Device::Cpu, 4).is_empty() && teams(Device::Team(Team::All), 0).is_empty());
    }

    #[test]
    fn ratios_are_to_one_gpu() {
        let rows = vec![(1.0, 10.0, 4.0), (1.0, 20.0, 8.0), (2.0, 20.0, 5.0)];
        let series = Series { name: String::new(), rows };
        assert_eq!(series.speedups(), [(2.0, 20.0, 1.6)]);
        assert_eq!(series.efficiencies(), [(2.0, 20.0, 0.8)]);
    }
}
