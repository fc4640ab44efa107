//! The suites, one a file. A new one is a file here, a preset in `configs/` and a line in `bench/arguments.rs`.

pub mod accuracy;
pub mod crossover;
pub mod distributions;
pub mod gauss;
pub mod leafsize;
pub mod m2l;
pub mod m2l2d;
mod m2l_figures;
pub mod mesh;
pub mod operators;
pub mod peers;
pub mod periodic;
mod periodic_figures;
pub mod poisson;
mod poisson_figures;
mod rate_table;
mod rates;
pub mod scaling;
pub mod shifts;
mod sphere;
mod stage_rates;
pub mod stages;
pub mod threads;
pub mod tune;

/// All of them.
pub const ALL: [&Suite; 17] = [
    &crossover::SUITE,
    &stages::SUITE,
    &operators::SUITE,
    &accuracy::SUITE,
    &leafsize::SUITE,
    &distributions::SUITE,
    &shifts::SUITE,
    &threads::SUITE,
    &scaling::SUITE,
    &m2l::SUITE,
    &m2l2d::SUITE,
    &gauss::SUITE,
    &mesh::SUITE,
    &peers::SUITE,
    &periodic::SUITE,
    &poisson::SUITE,
    &tune::SUITE,
];

/// The suite of this name.
pub fn named(name: &str) -> Option<&'static Suite> {
    ALL.into_iter().find(|s| s.name == name)
}

use fmm_core::{Method, Precision};

use super::measure::Sum;
use super::record::Record;
use super::sets::Set;
use super::suite::{Case, Places, Suite, Sweep};
use fmm::Device;
use nbody_cli::figure::Figure;
use nbody_sim::failure::Failure;

/// A suite of sums of 1/r on every device, without further texts.
const fn suite(
    name: &'static str,
    preset: &'static str,
    cases: fn(&Sweep) -> Result<Vec<Case>, Failure>,
    figures: fn(&[Record]) -> Vec<(String, Figure)>,
    summary: fn(&[Record]) -> Vec<String>,
) -> Suite {
    Suite {
        name,
        preset,
        plane: None,
        places: Places::All,
        cases,
        figures,
        summary,
        texts: |_| vec![],
        columns: COLUMNS,
    }
}

/// Columns that describe a sum.
const COLUMNS: &[(&str, &str)] = &[
    ("set", "set"),
    ("n", "N"),
    ("device", "device"),
    ("threads", "threads"),
    ("method", "method"),
    ("tolerance", "tolerance"),
    ("norm", "norm"),
    ("precision", "precision"),
    ("order", "p"),
    ("theta", "θ"),
    ("leaf", "leaf"),
    ("seconds", "s"),
    ("rms", "rms"),
    ("l2", "L2"),
    ("p99", "99 %"),
    ("max", "max"),
];

/// The sums of every device, set and tolerance with `n` particles.
fn sums(sweep: &Sweep, n: usize, method: Method) -> Vec<Sum> {
    let mut all = vec![];
    for set in sweep.preset.sets.iter().filter_map(|s| Set::named(s)) {
        for &tolerance in &sweep.preset.tolerances {
            for &device in &sweep.devices {
                all.push(Sum {
                    kernel: sweep.preset.kernel(),
                    set,
                    sigma: None,
                    n,
                    device,
                    // Where the GPU works, all threads of the host serve it.
                    threads: sweep.threads,
                    method,
                    tolerance,
                    norm: sweep.preset.norm(),
                    precision: Precision::Auto,
                    order: None,
                    theta: None,
                    leaf_size: None,
                });
            }
        }
    }
    all
}

/// How a device is named in a legend.
fn place(device: Device, threads: f64) -> String {
    match device {
        Device::Cpu if threads == 1.0 => "cpu, 1 thread".into(),
        Device::Cpu => format!("cpu, {threads} threads"),
        _ => device.to_string(),
    }
}

/// The same of a record.
fn place_of(record: &super::record::Record) -> String {
    place(record.text("device").parse().unwrap_or_default(), record.number("threads"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset;

    #[test]
    fn every_suite_has_a_preset_and_cases_of_their_own_names() {
        let texts = ALL.into_iter().flat_map(|s| [(s, Some(s.preset)), (s, s.plane)]);
        for (suite, text) in texts.filter_map(|(s, t)| Some((s, t?))) {
            let preset = Preset::parse(suite.name, text).unwrap();
            assert_eq!(preset.kernel().plane().is_some(), Some(text) == suite.plane, "{}", suite.name);
            assert_eq!(named(suite.name).map(|s| s.name), Some(suite.name));
            let devices = vec![Device::Cpu, Device::Cuda(0)];
            let cases = (suite.cases)(&Sweep { preset, devices, threads: 2, python: None }).unwrap();
            let mut keys: Vec<&str> = cases.iter().map(|c| &c.key[..]).collect();
            assert!(!keys.is_empty() || suite.name == "peers", "{}", suite.name);
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), cases.len(), "{}: two cases of one name", suite.name);
        }
    }
}
