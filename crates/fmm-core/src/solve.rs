//! The driver of every sum: choose, execute, measure, and again with a smaller target error until
//! the tolerance is kept.
//!
//! The tables of [`accuracy`] hold for sets like those that they were measured on. Where the order
//! is not given, each executor measures the error of its result, and this module decides what
//! happens next. The decisions are the same on the CPU and on a GPU.

use crate::accuracy::{self, Problem};
use crate::guard::TRUSTED;
use crate::kept::{Kept, directly};
use crate::{Cancel, Choice, Error, Precision, Settings, Softening};

/// Potential and field of a sum, in the order of the targets. Vectors `V` have three components, or
/// are complex numbers in the plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation<V = [f64; 3]> {
    /// Σ q K; empty where the kernel has none (vortices, the harmonic kernel of the plane). `[targets]`
    pub potential: Vec<f64>,
    /// e = −∇ of the potential, in the plane e_x + i e_y; the velocity of vortices; Φ of the
    /// harmonic kernel. `[targets]`
    pub field: Vec<V>,
    /// The estimated size of the error of the field; empty where it is not estimated. `[targets]`
    pub error: Vec<f64>,
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
}

/// What a sum in space gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Σ q K and −∇ of it.
    Potential,
    /// The same, and the second derivatives of the potential.
    Hessian,
    /// The velocity of vortex particles, whose strengths have three columns.
    Velocity,
}

impl Quantity {
    /// Checks that these settings allow a sum of this quantity.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for velocities in periodic boxes and with other softenings than p1.
    pub fn check(self, settings: &Settings) -> Result<(), Error> {
        if self != Quantity::Velocity {
            return Ok(());
        }
        if !matches!(settings.softening, Softening::None | Softening::P1(_)) {
            return Err(Error::Unsupported("velocities of vortices know the softening p1, or none".into()));
        }
        if settings.boundary.periodic().is_some() {
            return Err(Error::Unsupported("velocities of vortices know no periodic boxes".into()));
        }
        Ok(())
    }

    /// The error of a field by which tables, which are of fields, have a choice for `target_error`
    /// of this quantity.
    pub fn table_error(self, target_error: f64) -> f64 {
        if self == Quantity::Hessian { HESSIAN_SHARE * target_error } else { target_error }
    }
}

/// The error of the field for which the error of second derivatives is about 1: theirs were up to
/// eight times as large.
const HESSIAN_SHARE: f64 = 0.25;

/// One problem on one place, which executes it with any choice.
pub trait Trial {
    /// What one execution gives.
    type Sums;

    /// What choices depend on.
    fn problem(&self) -> Problem;

    /// What ends the sum early.
    fn cancel(&self) -> &Cancel;

    /// Resolves what `settings` leave open so that the error is about `target_error`.
    ///
    /// # Errors
    /// Settings that cannot be met.
    fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
        accuracy::choose_for(settings, self.problem(), target_error)
    }

    /// Executes the whole sum with `choice`.
    ///
    /// # Errors
    /// What the place cannot do, with the reason.
    fn execute(&mut self, settings: &Settings, choice: &Choice) -> Result<Self::Sums, Error>;

    /// The error of `sums` on a sample of the targets: the larger of rms(e) and L2 (see [`accuracy`]).
    ///
    /// # Errors
    /// What keeps the place from measuring.
    fn error(&mut self, sums: &Self::Sums) -> Result<f64, Error>;

    /// Sums the targets with the largest predicted errors directly, if few of them make what
    /// [`Self::error`] has found too large in the `sums` of `choice`. Returns whether it has.
    ///
    /// # Errors
    /// What keeps the place from summing.
    fn repair(&mut self, _sums: &mut Self::Sums, _choice: &Choice) -> Result<bool, Error> {
        Ok(false)
    }
}

/// How often order and angle are chosen anew before the direct sum is taken.
const TRIALS: usize = 4;

/// The largest direct sum that is taken where no expansion keeps the tolerance.
const MOST_PAIRS: f64 = 1e11;

/// Sums that keep the tolerance.
#[derive(Debug)]
pub struct Solved<S> {
    /// The choice that kept it.
    pub choice: Choice,
    /// Its sums.
    pub sums: S,
    /// What the next sum of a run begins with; none where the choice of the tables held.
    pub kept: Option<Kept>,
}

/// Executes `trial` until the tolerance is kept. A run passes what its last sum has `kept`: that
/// choice is executed first, and all is chosen anew where it no longer holds.
///
/// # Errors
/// Settings that cannot be met, what the place cannot do, [`Error::Cancelled`].
pub fn solve<T: Trial>(settings: &Settings, kept: Option<Kept>, trial: &mut T) -> Result<Solved<T::Sums>, Error> {
    let [first, most] = Kept::PATIENCE;
    let patience = kept.map_or(first, |k| k.patience.saturating_mul(2).min(most));
    if let Some(mut kept) = kept.filter(|k| k.sums < k.patience && settings.guarded().is_some()) {
        let asked = kept.fill(settings);
        // What cannot be chosen, say in single precision, is chosen anew.
        if let Ok(choice) = trial.choose(&asked, kept.target_error)
            && let Ok(sums) = attempt(settings, (&asked, &choice), trial)?
        {
            kept.sums += 1;
            return Ok(Solved { choice, sums, kept: Some(kept) });
        }
    }
    let solved = solve_by_tables(settings, trial)?;
    Ok(Solved { kept: solved.kept.map(|kept| Kept { patience, ..kept }), ..solved })
}

/// Executes `trial` with the choice of the tables, and where that misses the tolerance with smaller
/// target errors, until it is kept.
fn solve_by_tables<T: Trial>(settings: &Settings, trial: &mut T) -> Result<Solved<T::Sums>, Error> {
    let (mut asked, mut target_error) = (settings.clone(), settings.tolerance);
    for tried in 0..TRIALS {
        let choice = match trial.choose(&asked, target_error) {
            // Beyond what the arithmetic that was asked for can hold.
            Err(_) if tried > 0 => break,
            chosen => chosen?,
        };
        let error = match attempt(settings, (&asked, &choice), trial)? {
            Ok(sums) => {
                let Settings { precision, leaf_size, .. } = asked;
                let kept = Kept { direct: false, target_error, precision, leaf_size, sums: 0, patience: 0 };
                return Ok(Solved { choice, sums, kept: (tried > 0).then_some(kept) });
            }
            Err(error) => error,
        };
        // In crystals, whose forces cancel by symmetry, the next order alone may be no better: later steps are larger.
        let step = (0.5 * settings.tolerance / error).clamp(1e-4, if tried == 0 { 0.5 } else { 0.1 });
        target_error = (target_error * step).max(Settings::TIGHTEST);
        if choice.order.is_none() && settings.precision == Precision::F32 {
            break;
        }
        if settings.precision == Precision::Auto && (tried > 0 || choice.order.is_none() || !error.is_finite()) {
            asked.precision = Precision::F64;
        }
        asked.leaf_size = settings.leaf_size.or(Some(choice.leaf_size)).filter(|_| settings.uniform.is_none());
    }
    let problem = trial.problem();
    let pairs = problem.sources as f64 * problem.targets as f64;
    if settings.precision == Precision::F32 || pairs > MOST_PAIRS {
        let (method, precision) = (settings.method.name(), asked.precision.name());
        return Err(Error::Tolerance { tolerance: settings.tolerance, method, precision });
    }
    let asked = directly(settings);
    let choice = trial.choose(&asked, settings.tolerance)?;
    let sums = whole(trial, &asked, &choice)?;
    let (target_error, precision) = (settings.tolerance, Precision::F64);
    let kept = Kept { direct: true, target_error, precision, leaf_size: None, sums: 0, patience: 0 };
    Ok(Solved { choice, sums, kept: Some(kept) })
}

/// The sums of a choice, or their error if it is above the tolerance.
fn attempt<T: Trial>(
    settings: &Settings,
    (asked, choice): (&Settings, &Choice),
    trial: &mut T,
) -> Result<Result<T::Sums, f64>, Error> {
    let mut sums = whole(trial, asked, choice)?;
    if settings.guarded().is_none() || choice.is_exact() {
        return Ok(Ok(sums));
    }
    let error = trial.error(&sums)?;
    let holds = |error: f64| error <= TRUSTED * settings.tolerance;
    let holds = holds(error) || (trial.repair(&mut sums, choice)? && holds(trial.error(&sums)?));
    Ok(if holds { Ok(sums) } else { Err(error) })
}

/// Executes `trial`; an error if parts of it were left out.
fn whole<T: Trial>(trial: &mut T, settings: &Settings, choice: &Choice) -> Result<T::Sums, Error> {
    let sums = trial.execute(settings, choice)?;
    if trial.cancel().is_set() { Err(Error::Cancelled) } else { Ok(sums) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use crate::accuracy::Kind;

    /// Sums whose errors, in tolerances, are these one after the other; the last of them from then on.
    struct Errs<'a> {
        problem: Problem,
        errors: &'a [f64],
        done: Vec<Choice>,
        measured: usize,
        cancel: Cancel,
    }

    const TOLERANCE: f64 = 1e-4;

    impl Trial for Errs<'_> {
        type Sums = Choice;

        fn problem(&self) -> Problem {
            self.problem
        }

        fn cancel(&self) -> &Cancel {
            &self.cancel
        }

        fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
            // As executors may, it refuses what no single precision can hold.
            if settings.precision == Precision::F32 && target_error < 1e-2 * TOLERANCE {
                return Err(Error::Unsupported("beyond".into()));
            }
            accuracy::choose_for(settings, self.problem, target_error)
        }

        fn execute(&mut self, _: &Settings, choice: &Choice) -> Result<Choice, Error> {
            self.done.push(choice.clone());
            Ok(choice.clone())
        }

        fn error(&mut self, sums: &Choice) -> Result<f64, Error> {
            assert_eq!(Some(sums), self.done.last());
            self.measured += 1;
            Ok(TOLERANCE * self.errors[(self.measured - 1).min(self.errors.len() - 1)])
        }
    }

    /// What solving gives, the choices that were executed, and how many of them were measured.
    type Done = (Result<Solved<Choice>, Error>, Vec<Choice>, usize);

    /// Solves after a sum that has kept `before`.
    fn solved_after(before: Option<Kept>, settings: Settings, errors: &[f64], bodies: usize) -> Done {
        let settings = Settings { tolerance: TOLERANCE, ..settings };
        let (kind, crowding, dense_leaf) = (Kind::Filling, 1.0, 0.1);
        let problem =
            Problem { sources: bodies, targets: bodies, kind, crowding, dense_leaf, side: 1.0, strength_range: 1.0 };
        let mut trial = Errs { problem, errors, done: vec![], measured: 0, cancel: Cancel::new() };
        let solved = solve(&settings, before, &mut trial);
        if let Ok(solved) = &solved {
            assert_eq!(solved.choice, solved.sums, "the sums are of another choice");
        }
        (solved, trial.done, trial.measured)
    }

    fn kept(settings: Settings, errors: &[f64], bodies: usize) -> (Result<Choice, Error>, Vec<Choice>, usize) {
        let (solved, done, measured) = solved_after(None, settings, errors, bodies);
        (solved.map(|s| s.choice), done, measured)
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
    fn each_trial_has_a_smaller_target_error_and_the_last_is_the_direct_sum() {
        let (choice, done, measured) = kept(fast(Precision::F64), &[10.0], 100_000);
        let orders: Vec<usize> = done.iter().filter_map(|c| c.order).collect();
        assert!(orders.len() == TRIALS && measured == TRIALS && orders.windows(2).all(|w| w[1] > w[0]), "{orders:?}");
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
    #[test]
    fn the_next_sum_of_a_run_begins_with_what_held() {
        let settings = || fast(Precision::Auto);
        // Tables that hold leave nothing to keep.
        assert_eq!(solved_after(None, settings(), &[0.5], 100_000).0.unwrap().kept, None);
        // Of a smaller target error alone, and in double precision.
        for (errors, trials) in [(&[2.0, 0.5][..], 2), (&[2.0, 2.0, 0.5], 3)] {
            let (first, done, _) = solved_after(None, settings(), errors, 100_000);
            let first = first.unwrap();
            assert!(done.len() == trials && first.choice != done[0]);
            let (next, done, measured) = solved_after(first.kept, settings(), &[0.5], 100_000);
            let next = next.unwrap();
            assert!(done.len() == 1 && measured == 1 && next.choice == first.choice, "{done:?}");
            assert_eq!(next.kept, first.kept.map(|k| Kept { sums: 1, ..k }));
        }
        // The direct sum, which needs no measurement.
        let (first, ..) = solved_after(None, settings(), &[10.0], 100_000);
        let (next, done, measured) = solved_after(first.unwrap().kept, settings(), &[10.0], 100_000);
        assert!(done.len() == 1 && measured == 0 && done[0].method == Method::Direct);
        assert_eq!(next.unwrap().kept.map(|k| (k.direct, k.sums)), Some((true, 1)));
    }

    #[test]
    fn what_no_longer_holds_is_chosen_anew() {
        let before = solved_after(None, fast(Precision::Auto), &[2.0, 0.5], 100_000).0.unwrap().kept;
        let errors = [2.0, 2.0, 0.5];
        let (anew, plain, _) = solved_after(None, fast(Precision::Auto), &errors, 100_000);
        let (solved, done, _) = solved_after(before, fast(Precision::Auto), &[&[2.0], &errors[..]].concat(), 100_000);
        assert!(done.len() == 4 && done[1..] == plain && done[0] != plain[0], "{done:?}");
        assert_eq!(solved.unwrap().kept, anew.unwrap().kept.map(|k| Kept { patience: 8, ..k }));
        // What cannot be chosen is not executed.
        let beyond = before.map(|k| Kept { target_error: 1e-3 * TOLERANCE, ..k });
        let (solved, done, _) = solved_after(beyond, fast(Precision::F32), &[0.5], 100_000);
        assert!(done.len() == 1 && solved.unwrap().kept.is_none());
        // An order that is given is neither judged nor kept.
        let given = || Settings { order: Some(3), ..fast(Precision::Auto) };
        let [(solved, done, measured), (_, plain, _)] =
            [before, None].map(|k| solved_after(k, given(), &[9.0], 100_000));
        assert!(done == plain && measured == 0 && solved.unwrap().kept.is_none());
    }

    #[test]
    fn tables_are_read_again_more_and_more_rarely() {
        let after = |kept, errors: &[f64]| {
            let (solved, done, _) = solved_after(kept, fast(Precision::F64), errors, 100_000);
            (solved.unwrap().kept, done)
        };
        let (mut kept, _) = after(None, &[2.0, 0.5]);
        let mut waits = vec![];
        for _ in 0..300 {
            // The choice that is kept holds, that of the tables does not.
            let began = kept;
            let tables = |done: &[Choice]| done[0] == after(None, &[0.5]).1[0];
            let (next, done) = after(kept, &[0.5]);
            kept = next;
            if tables(&done) {
                assert_eq!(kept, None, "what misled the tables is over");
                waits.push(began.unwrap().sums);
                kept = after(began, &[2.0, 0.5]).0;
            }
        }
        assert_eq!(waits, [4, 8, 16, 32, 64, 64, 64]);
    }
}
