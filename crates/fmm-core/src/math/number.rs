//! The two precisions.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// `f32` or `f64`.
pub trait Number:
    Copy
    + Default
    + Debug
    + PartialOrd
    + Send
    + Sync
    + 'static
    + bytemuck::Pod
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
{
    /// Elements in one virtual vector of 64 bytes. It does not depend on the registers of the
    /// machine.
    const WIDTH: usize;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Squared distances below this count as coincident: the force would overflow.
    const TINY: Self;
    /// The name in reports.
    const NAME: &'static str;

    /// Rounds from `f64`.
    fn from_f64(x: f64) -> Self;
    /// Widens to `f64`.
    fn to_f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
}

impl Number for f64 {
    const WIDTH: usize = 8;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const TINY: f64 = 1e-200;
    const NAME: &'static str = "f64";

    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
}

impl Number for f32 {
    const WIDTH: usize = 16;
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const TINY: f32 = 1e-25;
    const NAME: &'static str = "f32";

    #[inline(always)]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
}
