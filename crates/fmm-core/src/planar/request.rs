//! A checked request for a sum in the plane, without the points, which may be on the host or a
//! device. Its units keep powers from over- and underflowing.

use super::pyramid::{exponent_above, power};
use super::{Blob, Kernel, underflow};
use crate::accuracy::{Kind, Problem as Size, Strengths};
use crate::math::scale::scale_of;
use crate::{Error, Settings, Softening};

/// A sum in the plane without its points, checked.
#[derive(Debug, Clone)]
pub struct Request {
    /// Without contradictions.
    pub settings: Settings,
    /// What is summed.
    pub kernel: Kernel,
    /// With lengths in the scaled unit, 2^`global`.
    pub blob: Blob,
    /// What the choice of method and order depends on.
    pub size: Size,
    /// The unit of length is 2^this of the caller's.
    pub global: i32,
    /// What strengths are multiplied by.
    pub scale: f64,
    /// Whether strengths have imaginary parts.
    pub complex: bool,
    /// Whether the targets are not the sources.
    pub apart: bool,
    /// Whether points may be so close, or blobs so short, compared with the extent of the set that
    /// squares underflow. For points only a scan of all coordinates can decide:
    /// [`Problem::new`](super::Problem::new).
    pub may_underflow: bool,
}

impl Request {
    /// Of so many sources, at so many targets if these are others. `strengths` says how large the real parts are, and the imaginary ones if
    /// there are any; `extent` is the longer side of the rectangle around all points.
    ///
    /// # Errors
    /// Softenings of space, blobs without a length, imaginary strengths of the log kernel.
    pub fn new(
        settings: &Settings,
        kernel: Kernel,
        blob: Blob,
        (sources, targets): (usize, Option<usize>),
        strengths: &[Strengths],
        extent: f64,
    ) -> Result<Self, Error> {
        blob.check()?;
        let settings = settings.clone().simplified();
        if settings.softening != Softening::None {
            return Err(Error::Unsupported("softenings of three dimensions have no meaning in the plane".into()));
        }
        let blob = if blob.length() < underflow::POINT * extent { Blob::Point } else { blob };
        let complex = strengths.len() > 1;
        if kernel == Kernel::Log && complex {
            return Err(Error::Unsupported("strengths of the log kernel are real".into()));
        }
        let most = |of: fn(&Strengths) -> f64| strengths.iter().map(of).fold(0.0, f64::max);
        let size = Size {
            sources,
            targets: targets.unwrap_or(sources),
            kind: Kind::Cancelling,
            crowding: 1.0,
            dense_leaf: 0.0,
            side: extent,
            strength_range: most(|s| s.largest / s.smallest),
            mesh: None,
            field: None,
        };
        let global = exponent_above(if extent > 0.0 { extent } else { 1.0 });
        let short = blob.length() > 0.0 && blob.length() < underflow::SHORT * extent;
        let (blob, scale) = (blob.scaled(power(-global)), scale_of(most(|s| s.largest)));
        Ok(Request {
            settings,
            kernel,
            blob,
            size,
            global,
            scale,
            complex,
            apart: targets.is_some(),
            may_underflow: short,
        })
    }

    /// What turns the parts of G in scaled units into those of the field (log) or of Φ (harmonic) in the caller's.
    pub fn signs(&self) -> [f64; 2] {
        let unit = 1.0 / self.scale * power(-self.global);
        [-unit, if self.kernel == Kernel::Log { unit } else { -unit }]
    }
}
