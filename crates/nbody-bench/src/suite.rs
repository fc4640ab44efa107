//! What a suite is: cases to measure, and figures and sentences made of their records.

use std::path::PathBuf;

use super::measure::{Context, Sum};
use super::norm::Norm;
use super::preset::Preset;
use super::record::Record;
use fmm::Device;
use fmm::Kernel;
use nbody_cli::figure::Figure;
use nbody_sim::failure::Failure;

/// A family of measurements.
pub struct Suite {
    /// Its name on the command line, in records and of its files.
    pub name: &'static str,
    /// Its built-in preset, of `configs/`.
    pub preset: &'static str,
    /// The same for kernels of the plane; `None` for a suite that has 1/r alone.
    pub plane: Option<&'static str>,
    /// Where it measures.
    pub places: Places,
    /// What is to be measured, in this order.
    pub cases: fn(&Sweep) -> Result<Vec<Case>, Failure>,
    /// Figures with the ends of their names.
    pub figures: fn(&[Record]) -> Vec<(String, Figure)>,
    /// What the records say, a sentence each.
    pub summary: fn(&[Record]) -> Vec<String>,
    /// Further files: their names and contents.
    pub texts: fn(&[Record]) -> Vec<(&'static str, String)>,
    /// Columns of the table: the name in the record and the heading.
    pub columns: &'static [(&'static str, &'static str)],
}

/// Where a suite measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// On the cores and on a GPU.
    All,
    /// On the cores alone.
    Cores,
    /// On one GPU and several.
    Teams,
}

/// What a suite sweeps over.
pub struct Sweep {
    /// Sizes, tolerances and so on.
    pub preset: Preset,
    /// Where: never [`Device::Auto`], never empty.
    pub devices: Vec<Device>,
    /// Threads where nothing else is said.
    pub threads: usize,
    /// The Python that has the other codes.
    pub python: Option<PathBuf>,
}

/// One measurement.
pub struct Case {
    /// Its name in the file: what is measured, and nothing of the result.
    pub key: String,
    /// About how many seconds it takes.
    pub weight: f64,
    /// What is done.
    pub work: Work,
}

/// Any measurement: its record, or none where a signal came.
pub type Other = Box<dyn Fn(&mut Context) -> Result<Option<Record>, Failure>>;

/// What is done for a case.
pub enum Work {
    /// A whole sum.
    Sum(Sum),
    /// A whole sum, or its time extrapolated from smaller ones where it would take longer than these seconds.
    SumOrGuess(Sum, f64),
    /// Anything else.
    Other(Other),
}

impl Case {
    /// A sum. Its key names everything that distinguishes it from similar ones.
    pub fn sum(sum: Sum) -> Self {
        let part = |name: &str, value: Option<String>| value.map_or(String::new(), |v| format!("/{name}{v}"));
        // Keys of cases of 1/r do not name the kernel, nor those of rms and L2 the norm.
        let kernel = Some(sum.kernel).filter(|&k| k != Kernel::Laplace).map(|k| k.name().to_string());
        let norm = Some(sum.norm).filter(|&n| n != Norm::Rms).map(|n| n.name().to_string());
        let key = format!(
            "{}/{}/n{}/{:e}/{}t/{}{}{}{}{}{}{}",
            sum.device,
            sum.method.name(),
            sum.n,
            sum.tolerance,
            sum.threads,
            sum.set.name(),
            part("sigma", sum.sigma.map(|s| s.to_string())),
            part("", kernel),
            part("", norm),
            part("p", sum.order.map(|p| p.to_string())),
            part("theta", sum.theta.map(|t| t.to_string())),
            part("leaf", sum.leaf_size.map(|l| l.to_string())),
        );
        Case { key, weight: 0.2 + 2e-6 * sum.n as f64, work: Work::Sum(sum) }
    }
}
