//! What the tests of every place share: sets of particles, direct sums as the formulas stand, norms of errors, and the
//! [contract](mod@contract) that a place has to keep.

pub mod contract;
pub mod gauss;
pub mod hessian;
pub mod planar;
pub mod random;
pub mod ranks;
pub mod sets;
pub mod space;
