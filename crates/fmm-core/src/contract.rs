//! The contract: a sum is done again, aiming lower, until measurements on itself show that the tolerance is kept.
//!
//! The tables of [`accuracy`] hold for sets like those that they were measured on. Where the order is ours to choose, every
//! executor measures each attempt as it stands, and this page decides what happens next: the same decisions wherever the sum runs.

use crate::accuracy::{self, Problem};
use crate::{Choice, Error, Method, Precision, Settings};

/// A sum of one set of particles that can be done with one choice after another.
pub trait Attempt {
    /// Resolves what `settings` leave open so that the error is `aim`.
    ///
    /// # Errors
    /// Settings that cannot be met.
    fn choose(&self, settings: &Settings, problem: Problem, aim: f64) -> Result<Choice, Error> {
        accuracy::choose_for(settings, problem, aim)
    }

    /// Does the whole sum with `choice`, in place of any earlier result.
    ///
    /// # Errors
    /// What the executor cannot do, with the reason.
    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error>;

    /// The error of the present result as far as samples tell: the larger of rms(e) and L2 (see [`accuracy`]).
    fn error(&mut self) -> f64;
}

/// The share of the tolerance up to which a sampled error is believed to be below it: samples scatter.
const TRUSTED: f64 = 0.8;

/// How often order and angle are chosen anew before the direct sum is taken.
const ATTEMPTS: usize = 4;

/// The largest direct sum that stands in where no expansion keeps the tolerance.
const MOST_PAIRS: f64 = 1e11;

/// Sums until the tolerance is kept, and says with what.
///
/// # Errors
/// Settings that cannot be met, and what the executor cannot do.
pub fn keep(settings: &Settings, problem: Problem, place: &mut impl Attempt) -> Result<Choice, Error> {
    let guarded = settings.order.is_none();
    let (mut attempt, mut aim) = (settings.clone(), settings.tolerance);
    for tried in 0..ATTEMPTS {
        let choice = match place.choose(&attempt, problem, aim) {
            // Beyond what the arithmetic that was asked for can hold.
            Err(_) if tried > 0 => break,
            chosen => chosen?,
        };
        place.sum(&attempt, choice.clone())?;
        // A direct sum in double precision has nothing to prove.
        let exact = choice.order.is_none() && choice.precision == Precision::F64;
        if !guarded || exact {
            return Ok(choice);
        }
        let error = place.error();
        if error <= TRUSTED * settings.tolerance {
            return Ok(choice);
        }
        aim = (aim * (0.5 * settings.tolerance / error).clamp(1e-4, 0.5)).max(Settings::TIGHTEST);
        if choice.order.is_none() && settings.precision == Precision::F32 {
            break;
        }
        if settings.precision == Precision::Auto && (tried > 0 || choice.order.is_none() || !error.is_finite()) {
            attempt.precision = Precision::F64;
        }
        attempt.leaf_size = settings.leaf_size.or(Some(choice.leaf_size)).filter(|_| settings.uniform.is_none());
    }
    let pairs = problem.sources as f64 * problem.targets as f64;
    if settings.precision == Precision::F32 || pairs > MOST_PAIRS {
        return Err(Error::Unsupported(format!(
            "tolerance {:e} is not reached on these particles by {} in {}; use --method direct or precision f64",
            settings.tolerance,
            settings.method.name(),
            attempt.precision.name()
        )));
    }
    let direct = Settings { method: Method::Direct, precision: Precision::F64, uniform: None, ..settings.clone() };
    let choice = place.choose(&direct, problem, settings.tolerance)?;
    place.sum(&direct, choice.clone())?;
    Ok(choice)
}
