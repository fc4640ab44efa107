//! Sums in the plane: log and harmonic kernels over complex numbers (Goude & Engblom 2013).
//!
//! A point is a complex number z. With G(z) = Σ Γ_j/(z − z_j):
//!
//! - [`Kernel::Log`]: potential Σ q_j log|z − z_j| and field e = −∇ of it, (−Re G, Im G); strengths are real;
//! - [`Kernel::Harmonic`]: Φ(z) = Σ Γ_j/(z_j − z) = −G, with complex strengths.
//!
//! Pairs at distance zero contribute nothing. The sentence of this crate holds here too: a plan ([`Pyramid`] and [`Lists`]) is
//! executed with an expansion (powers of z, in units of each box) stage by stage, in the order that [`Plan::schedule`] shares with
//! three dimensions.
//!
//! Conventions, for a box with center c and unit u (a power of two, at least the largest distance of its points from c):
//!
//! | | log | harmonic (of G) |
//! |---|---|---|
//! | multipole | a_0 log(z − c) + Σ a_k u^k/(z − c)^k, k = 1..p | Σ a_n u^n/(z − c)^(n+1), n = 0..p − 1 |
//! | local | Σ b_k ((z − c)/u)^k, k = 0..p | (1/u) Σ b_n ((z − c)/u)^n, n = 0..p − 1 |
//!
//! In these units no power over- or underflows to harm, and shifts by zero need no exception. Every operator adds to its result.

pub mod accuracy;
mod bodies;
mod connect;
mod error_field;
mod evaluate;
mod execute;
mod flow;
pub mod guard;
mod kernel;
mod logarithm;
mod missed;
mod near;
mod plan;
mod points;
mod pyramid;
mod request;
pub mod series;
mod shifts;
mod underflow;
pub mod workload;

pub use accuracy::{MAX_ORDER, check, levels, swap_min_points};
pub use connect::{Lists, Rule};
pub(crate) use evaluate::evaluate_kept;
pub use evaluate::{Problem, Sum, evaluate, evaluate_problem};
pub use flow::{Flow, velocities};
pub use kernel::{Blob, Kernel};
pub use plan::Plan;
pub use pyramid::{Pyramid, power};
pub use request::Request;
