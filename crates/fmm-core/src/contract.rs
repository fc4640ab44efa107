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
    let guarded = settings.guarded().is_some();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::Kind;

    /// Sums whose errors, in tolerances, are these one after the other; the last of them from then on.
    struct Errs<'a> {
        errors: &'a [f64],
        done: Vec<Choice>,
        measured: usize,
    }

    const TOLERANCE: f64 = 1e-4;

    impl Attempt for Errs<'_> {
        fn choose(&self, settings: &Settings, problem: Problem, aim: f64) -> Result<Choice, Error> {
            // As executors may, it refuses what no single precision can hold.
            if settings.precision == Precision::F32 && aim < 1e-2 * TOLERANCE {
                return Err(Error::Unsupported("beyond".into()));
            }
            accuracy::choose_for(settings, problem, aim)
        }

        fn sum(&mut self, _: &Settings, choice: Choice) -> Result<(), Error> {
            self.done.push(choice);
            Ok(())
        }

        fn error(&mut self) -> f64 {
            self.measured += 1;
            TOLERANCE * self.errors[(self.measured - 1).min(self.errors.len() - 1)]
        }
    }

    fn kept(settings: Settings, errors: &[f64], bodies: usize) -> (Result<Choice, Error>, Vec<Choice>, usize) {
        let settings = Settings { tolerance: TOLERANCE, ..settings };
        let (kind, crowding, dense_leaf) = (Kind::Filling, 1.0, 0.1);
        let problem = Problem { sources: bodies, targets: bodies, kind, crowding, dense_leaf, strength_range: 1.0 };
        let mut place = Errs { errors, done: vec![], measured: 0 };
        let choice = keep(&settings, problem, &mut place);
        (choice, place.done, place.measured)
    }

    fn fast(precision: Precision) -> Settings {
        Settings { method: Method::Fmm, precision, ..Settings::default() }
    }

    #[test]
    fn what_is_kept_is_summed_once_and_measured_unless_the_order_is_given() {
        let (choice, done, measured) = kept(fast(Precision::F64), &[0.79], 100_000);
        assert!(choice.unwrap() == done[0] && done.len() == 1 && measured == 1);
        let (_, done, measured) = kept(fast(Precision::F64), &[0.81, 0.5], 100_000);
        assert!(done.len() == 2 && measured == 2);
        let given = Settings { order: Some(3), ..fast(Precision::F64) };
        let (_, done, measured) = kept(given, &[1e9], 100_000);
        assert!(done.len() == 1 && done[0].order == Some(3) && measured == 0);
        let direct = Settings { method: Method::Direct, ..fast(Precision::F64) };
        assert_eq!(kept(direct.clone(), &[1e9], 1000).2, 0);
        // In single precision it has something to prove.
        let (_, done, measured) = kept(Settings { precision: Precision::Auto, ..direct }, &[5.0], 100_000);
        assert!(
            measured == 1 && done[0].precision == Precision::F32 && done[1].precision == Precision::F64,
            "{done:?}"
        );
    }

    #[test]
    fn each_attempt_aims_lower_and_the_last_is_the_direct_sum() {
        let (choice, done, measured) = kept(fast(Precision::F64), &[10.0], 100_000);
        let orders: Vec<usize> = done.iter().filter_map(|c| c.order).collect();
        assert!(
            orders.len() == ATTEMPTS && measured == ATTEMPTS && orders.windows(2).all(|w| w[1] > w[0]),
            "{orders:?}"
        );
        assert!(done.iter().all(|c| c.leaf_size == done[0].leaf_size || c.order.is_none()));
        let last = done.last().unwrap();
        assert!(last.method == Method::Direct && last.precision == Precision::F64 && choice.unwrap() == *last);
        // No direct sum of so many.
        let (choice, done, _) = kept(fast(Precision::F64), &[10.0], 1_000_000);
        assert!(choice.is_err() && done.iter().all(|c| c.method == Method::Fmm));
    }

    #[test]
    fn single_precision_is_given_up_where_it_is_ours_to_choose() {
        let (_, done, _) = kept(fast(Precision::Auto), &[2.0, 2.0, 0.5], 100_000);
        let precisions: Vec<Precision> = done.iter().map(|c| c.precision).collect();
        assert_eq!(precisions, [Precision::F32, Precision::F32, Precision::F64]);
        // Where it is no number at once.
        let (_, done, _) = kept(fast(Precision::Auto), &[f64::INFINITY, 0.5], 100_000);
        assert_eq!(done[1].precision, Precision::F64);
        // Where it was asked for there is no other, whether sums fail or cannot be chosen.
        for errors in [&[2.0][..], &[1e4]] {
            let (choice, done, _) = kept(fast(Precision::F32), errors, 100_000);
            assert!(choice.is_err() && done.iter().all(|c| c.precision == Precision::F32), "{choice:?}");
            let text = choice.unwrap_err().to_string();
            assert!(text.contains("is not reached on these particles by fmm in f32"), "{text}");
        }
    }
}
