//! What is summed: the kernels, each defined once, and their direct sums.

mod hessian;
mod pairs;
mod points;
mod radial;
mod softening;

pub use hessian::{AXES, Hessian};
pub use pairs::{FAR, PairRelation, Pairs};
pub use points::{Points, Sums};
pub use radial::*;
pub use softening::{Softening, UseRadial};
