//! The kernels: their names, what they need and what they give.

use std::fmt;
use std::str::FromStr;

use fmm_core::{Softening, gauss, planar};

use crate::Errors;

/// What is summed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// Σ q/r in three dimensions, and minus its gradient.
    Laplace,
    /// Σ q exp(−κr)/r in three dimensions with this κ, and minus its gradient.
    Yukawa(f64),
    /// Σ q log r in the plane, and minus its gradient.
    Log,
    /// Σ Γ/(z_j − z) in the plane, with complex strengths.
    Harmonic,
    /// The velocity of vortex particles in three dimensions (Biot & Savart).
    Vortex,
    /// Σ q exp(−r²/(2σ²)) with this σ, and minus its gradient, in one, two or three dimensions.
    Gauss(f64),
}

/// Kernels that are summed by the same code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Family {
    /// Σ q K(r) in space, and minus its gradient.
    Radial,
    /// Vortices in space.
    Vortex,
    /// In the plane.
    Plane(planar::Kernel),
    /// Gaussians of this width.
    Gauss(f64),
}

/// Names of what a kernel gives at each target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outputs {
    /// Of [`Evaluation::potential`](crate::Evaluation::potential), if the kernel has one.
    pub potential: Option<&'static str>,
    /// Of the components of [`Evaluation::field`](crate::Evaluation::field).
    pub field: &'static [&'static str],
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
            gauss::Settings::new(sigma).check().map_err(|e| e.to_string())?;
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
        known.ok_or_else(|| format!("allowed: {}", Kernel::forms(|_| true).join(", ")))
    }
}

impl Kernel {
    /// All kernels; those with a parameter have 1.
    pub const ALL: [Kernel; 6] =
        [Kernel::Laplace, Kernel::Yukawa(1.0), Kernel::Log, Kernel::Harmonic, Kernel::Vortex, Kernel::Gauss(1.0)];

    /// The kernels that `wanted` takes, as options name them: `laplace`, `yukawa:KAPPA`.
    pub fn forms(wanted: fn(Kernel) -> bool) -> Vec<&'static str> {
        let form = |kernel| match kernel {
            Kernel::Yukawa(_) => "yukawa:KAPPA",
            Kernel::Gauss(_) => "gauss:SIGMA",
            other => other.name(),
        };
        Kernel::ALL.into_iter().filter(|kernel| wanted(*kernel)).map(form).collect()
    }

    /// Whether it sums a radial function in space, as 1/r.
    pub fn is_radial(self) -> bool {
        self.family() == Family::Radial
    }

    /// Whether it is summed by the trees of three dimensions, also of arrays that lie on a GPU.
    pub fn is_in_space(self) -> bool {
        matches!(self.family(), Family::Radial | Family::Vortex)
    }

    /// Whether the error of each target can be estimated.
    pub fn estimates_errors(self) -> bool {
        !matches!(self.family(), Family::Gauss(_))
    }

    /// The name, without the parameter.
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

    /// Names of the columns of strengths: `q`, or `wx`, `wy`, `wz` of vortices.
    pub fn strengths(self) -> &'static [&'static str] {
        match self {
            Kernel::Vortex => &["wx", "wy", "wz"],
            _ => &["q"],
        }
    }

    /// Name of a further column that sources may have: imaginary parts. Only the harmonic kernel sums them.
    pub fn imaginary(self) -> Option<&'static str> {
        self.plane().map(|_| "qi")
    }

    /// The code that sums it.
    pub fn family(self) -> Family {
        match self {
            Kernel::Laplace | Kernel::Yukawa(_) => Family::Radial,
            Kernel::Vortex => Family::Vortex,
            Kernel::Log => Family::Plane(planar::Kernel::Log),
            Kernel::Harmonic => Family::Plane(planar::Kernel::Harmonic),
            Kernel::Gauss(sigma) => Family::Gauss(sigma),
        }
    }

    /// What it gives at each target, in `dimension` dimensions.
    pub fn outputs(self, dimension: usize) -> Outputs {
        const FIELD: &[&str] = &["ex", "ey", "ez"];
        let (potential, field) = match self.family() {
            Family::Radial => (Some("potential"), FIELD),
            Family::Plane(planar::Kernel::Log) => (Some("potential"), &FIELD[..2]),
            Family::Gauss(_) => (Some("potential"), &FIELD[..dimension.min(3)]),
            Family::Plane(planar::Kernel::Harmonic) => (None, &["re", "im"][..]),
            Family::Vortex => (None, &["ux", "uy", "uz"][..]),
        };
        Outputs { potential, field }
    }

    /// The kernel of sums in the plane, if it is one.
    pub fn plane(self) -> Option<planar::Kernel> {
        if let Family::Plane(kernel) = self.family() { Some(kernel) } else { None }
    }

    /// The radial function of sums in space; `softening` replaces 1/r at short distances.
    pub(crate) fn radial(self, softening: Softening) -> Softening {
        match self {
            // −0 is 0, of which the screening length is infinite.
            Kernel::Yukawa(kappa) => Softening::Yukawa(1.0 / (kappa + 0.0)),
            _ => softening,
        }
    }

    /// Whether `errors` keep the tolerance. In the plane it bounds L2; of sums of Gaussians it
    /// bounds the largest error.
    pub fn keeps(self, errors: &Errors, tolerance: f64) -> bool {
        match self.family() {
            Family::Plane(_) => errors.l2 <= tolerance,
            Family::Radial | Family::Vortex => errors.keep(tolerance),
            Family::Gauss(_) => errors.max <= tolerance,
        }
    }

    /// Whether the interval of a norm that the tolerance bounds reaches above the tolerance: `errors`
    /// are an estimate from a sample, which may keep it where all targets do not.
    pub fn may_miss(self, errors: &Errors, tolerance: f64) -> bool {
        let Errors { rms_interval: [_, rms], l2_interval: [_, l2], .. } = *errors;
        match self.family() {
            Family::Plane(_) => l2 > tolerance,
            Family::Radial | Family::Vortex => rms > tolerance || l2 > tolerance,
            // Its bound is proved.
            Family::Gauss(_) => false,
        }
    }
}
