//! What is summed: each kernel says which columns it needs and which it gives.

use std::fmt;
use std::str::FromStr;

use fmm_core::planar::Blob;
use fmm_core::{Choice, Settings, Softening, StageTimes};

use super::{Errors, gauss, laplace, plane, vortex};
use crate::device::Device;
use crate::fault::Fault;

/// The kernel of a sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// Σ q/r in three dimensions, and minus its gradient. Where y or z are not in the files, they are 0.
    Laplace,
    /// Σ q exp(−κr)/r in three dimensions with this κ, and minus its gradient.
    Yukawa(f64),
    /// Σ q log r in the plane, and minus its gradient.
    Log,
    /// Σ Γ/(z_j − z) in the plane, with complex strengths.
    Harmonic,
    /// The velocity of vortex particles in three dimensions (Biot & Savart).
    Vortex,
    /// Σ q exp(−r²/(2σ²)) with this σ, and minus its gradient, along the axes that the files have.
    Gauss(f64),
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Kernel::Gauss(sigma) => write!(f, "gauss:{sigma}"),
            Kernel::Yukawa(kappa) => write!(f, "yukawa:{kappa}"),
            kernel => f.write_str(kernel.name()),
        }
    }
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(("gauss", sigma)) = text.split_once(':') {
            let sigma = sigma.parse().map_err(|_| format!("sigma {sigma:?} is not a number"))?;
            fmm_core::gauss::Settings::new(sigma).check().map_err(|e| e.to_string())?;
            return Ok(Kernel::Gauss(sigma));
        }
        if text == "gauss" {
            return Err("its width is missing: gauss:SIGMA, for example gauss:0.1".into());
        }
        if let Some(("yukawa", kappa)) = text.split_once(':') {
            let kappa: f64 = kappa.parse().map_err(|_| format!("kappa {kappa:?} is not a number"))?;
            if !(0.0..=1e100).contains(&kappa) {
                return Err(format!("kappa = {kappa} is outside its range, 0 to 1e100"));
            }
            return Ok(Kernel::Yukawa(kappa));
        }
        if text == "yukawa" {
            return Err("its inverse length is missing: yukawa:KAPPA, for example yukawa:0.1".into());
        }
        let known = Kernel::ALL.into_iter().find(|k| k.name() == text);
        known.ok_or_else(|| format!("allowed: {}, yukawa:KAPPA, gauss:SIGMA", Kernel::ALL.map(Kernel::name).join(", ")))
    }
}

impl Kernel {
    /// All kernels without a number of their own.
    pub const ALL: [Kernel; 4] = [Kernel::Laplace, Kernel::Log, Kernel::Harmonic, Kernel::Vortex];

    /// The name on the command line, without numbers.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Laplace => "laplace",
            Kernel::Log => "log",
            Kernel::Harmonic => "harmonic",
            Kernel::Vortex => "vortex",
            Kernel::Gauss(_) => "gauss",
            Kernel::Yukawa(_) => "yukawa",
        }
    }

    /// The kernel of the library, if it is radial and lives in space; `softening` replaces 1/r at short distance.
    pub fn radial(self, softening: Softening) -> Softening {
        match self {
            Kernel::Yukawa(kappa) => Softening::Yukawa(1.0 / kappa),
            _ => softening,
        }
    }

    /// The columns of the sources beside their positions.
    pub fn strengths(self) -> &'static [&'static str] {
        match self {
            Kernel::Laplace | Kernel::Yukawa(_) | Kernel::Log | Kernel::Harmonic | Kernel::Gauss(_) => &["q"],
            Kernel::Vortex => &["wx", "wy", "wz"],
        }
    }

    /// A further column that the sources may have: imaginary parts, which the kernel log refuses.
    pub fn imaginary(self) -> Option<&'static str> {
        self.plane().map(|_| "qi")
    }

    /// The kernel of the library, if it lives in the plane.
    pub fn plane(self) -> Option<fmm_core::planar::Kernel> {
        match self {
            Kernel::Log => Some(fmm_core::planar::Kernel::Log),
            Kernel::Harmonic => Some(fmm_core::planar::Kernel::Harmonic),
            Kernel::Laplace | Kernel::Yukawa(_) | Kernel::Vortex | Kernel::Gauss(_) => None,
        }
    }

    /// Whether errors keep the tolerance: in the plane it bounds L2 alone, and sums of Gaussians err nowhere by more.
    pub fn keeps(self, errors: &Errors, tolerance: f64) -> bool {
        match self {
            Kernel::Log | Kernel::Harmonic => errors.l2 <= tolerance,
            Kernel::Laplace | Kernel::Yukawa(_) | Kernel::Vortex => errors.keep(tolerance),
            Kernel::Gauss(_) => errors.max <= tolerance,
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
    /// The blobs that sources in the plane are.
    pub blob: Blob,
    /// Where.
    pub device: Device,
    /// Not to tell which device was taken.
    pub quiet: bool,
    /// Axes that the files have, 1 to 3.
    pub dimension: usize,
    /// Positions of the sources, 0 on axes that the files do not have.
    pub sources: &'a [[f64; 3]],
    /// One array for each of [`Kernel::strengths`], and perhaps that of [`Kernel::imaginary`].
    pub strengths: &'a [Vec<f64>],
    /// Positions of the targets; `None`: the sources, without their own pairs.
    pub targets: Option<&'a [[f64; 3]]>,
}

/// A sum that was done.
#[derive(Debug)]
pub struct Answer {
    /// The output: names and values, one for each target.
    pub columns: Vec<(&'static str, Vec<f64>)>,
    /// Which of the columns are the components of the vector whose error the tolerance bounds; sums of Gaussians are judged by their value.
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
    /// 2 for what the settings ask in vain, 65 for too many particles, 69 for a GPU where there are only kernels for the CPU.
    pub fn sum(&self) -> Result<Answer, Fault> {
        match self.kernel {
            Kernel::Laplace | Kernel::Yukawa(_) => laplace::sum(self),
            Kernel::Log | Kernel::Harmonic => plane::sum(self),
            Kernel::Vortex => vortex::sum(self),
            Kernel::Gauss(sigma) => gauss::sum(self, sigma),
        }
    }

    /// The direct sum in f64 at some targets, pair by pair as the formulas stand; in a periodic box by Ewald's sum.
    pub fn truth(&self, at: &[[f64; 3]]) -> Vec<Truth> {
        match self.kernel {
            Kernel::Laplace | Kernel::Yukawa(_) => laplace::truth(self, at),
            Kernel::Log | Kernel::Harmonic => plane::truth(self, at),
            Kernel::Vortex => vortex::truth(self, at),
            Kernel::Gauss(sigma) => gauss::truth(self, sigma, at),
        }
    }
}
