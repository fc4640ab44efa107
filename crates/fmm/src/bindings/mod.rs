//! What interfaces of this library in other languages share: options by name, arrays in rows,
//! threads that survive a fork, and panics as errors.

mod arrays;
pub mod forks;
mod guard;
mod request;
mod session;
mod threads;

pub use arrays::{Arrays, components};
pub use guard::{Failure, guarded, message};
pub use request::{Options, Request};
pub use session::Session;
pub use threads::Threads;
