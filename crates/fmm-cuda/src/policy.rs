//! Which sums the device does, until it has trees: direct ones.

use fmm_core::accuracy::{self, Problem};
use fmm_core::{Choice, Error, Method, Settings};

/// The most pairs of a sum whose method is `auto`: seconds on a large GPU.
pub const MOST_PAIRS: f64 = 1e13;

/// The most bodies: the number of keys, a power of two, is a 32-bit number.
const MOST_BODIES: usize = 1 << 31;

/// Resolves method and precision of a sum on the device.
///
/// # Errors
/// [`Error::Unsupported`] for methods other than the direct sum, for `auto` where the direct sum has more than
/// [`MOST_PAIRS`] pairs, and those of [`accuracy::choose`].
pub fn choose(settings: &Settings, problem: Problem) -> Result<Choice, Error> {
    let Problem { sources, targets, .. } = problem;
    if let Method::Treecode | Method::Fmm = settings.method {
        let method = settings.method.name();
        return Err(Error::Unsupported(format!(
            "method {method} runs on the CPU, GPUs sum directly; use device cpu, or method direct or auto"
        )));
    }
    let pairs = sources as f64 * targets as f64;
    if settings.method == Method::Auto && pairs > MOST_PAIRS {
        return Err(Error::Unsupported(format!(
            "{sources} sources at {targets} targets are {pairs:.1e} pairs, and GPUs sum directly, with method auto up to \
             {MOST_PAIRS:e} pairs; use device cpu, which has faster methods, or method direct"
        )));
    }
    if sources.max(targets) > MOST_BODIES {
        return Err(Error::Unsupported(format!(
            "more than {MOST_BODIES} particles do not fit a GPU's sum; use device cpu"
        )));
    }
    accuracy::choose(&Settings { method: Method::Direct, ..settings.clone() }, problem)
}
