//! What is summed: each kernel says which columns it needs and which it gives.

use std::str::FromStr;

use fmm_core::{Choice, Settings, StageTimes};

use super::laplace;
use crate::device::Device;
use crate::fault::Fault;

/// The kernel of a sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// Σ q/r in three dimensions, and minus its gradient. Where y or z are not in the files, they are 0.
    Laplace,
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "laplace" => Ok(Kernel::Laplace),
            _ => Err("allowed: laplace".into()),
        }
    }
}

impl Kernel {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Laplace => "laplace",
        }
    }

    /// The columns of the sources beside their positions.
    pub fn strengths(self) -> &'static [&'static str] {
        match self {
            Kernel::Laplace => &["q"],
        }
    }
}

/// A sum to be done.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// What is summed.
    pub kernel: Kernel,
    /// How.
    pub settings: &'a Settings,
    /// Where.
    pub device: Device,
    /// Not to tell which device was taken.
    pub quiet: bool,
    /// Positions of the sources, 0 on axes that the files do not have.
    pub sources: &'a [[f64; 3]],
    /// One array for each of [`Kernel::strengths`].
    pub strengths: &'a [Vec<f64>],
    /// Positions of the targets; `None`: the sources, without their own pairs.
    pub targets: Option<&'a [[f64; 3]]>,
}

/// A sum that was done.
#[derive(Debug)]
pub struct Answer {
    /// The output: names and values, one for each target.
    pub columns: Vec<(&'static str, Vec<f64>)>,
    /// Which of the columns are the components of the vector whose error the tolerance bounds.
    pub judged: std::ops::Range<usize>,
    /// What was chosen.
    pub choice: Choice,
    /// Where it was done.
    pub device: Device,
    /// Pairs of sources at the same place.
    pub coincident_pairs: u64,
    /// Seconds of the stages.
    pub times: StageTimes,
}

/// The vector at one target as it should be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Truth {
    /// As many components as are judged; the others are 0.
    pub vector: [f64; 3],
    /// The largest contribution of a single source to it.
    pub largest: f64,
}

impl Problem<'_> {
    /// The sum.
    ///
    /// # Errors
    /// 2 for what the settings ask in vain, 65 for too many particles.
    pub fn sum(&self) -> Result<Answer, Fault> {
        match self.kernel {
            Kernel::Laplace => laplace::sum(self),
        }
    }

    /// The direct sum in f64 at some targets, pair by pair as the formulas stand.
    pub fn truth(&self, at: &[[f64; 3]]) -> Vec<Truth> {
        match self.kernel {
            Kernel::Laplace => laplace::truth(self, at),
        }
    }
}
