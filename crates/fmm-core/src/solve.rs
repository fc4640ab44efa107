//! The driver of every sum: choose, execute, measure, and again with a smaller target error until
//! the tolerance is kept.
//!
//! The tables of [`accuracy`] hold for sets like those that they were measured on. Where the order
//! is not given, each executor measures the error of its result, and this module decides what
//! happens next. The decisions are the same on the CPU and on a GPU.

use crate::accuracy::{self, Problem};
use crate::guard::{Look, TRUSTED};
use crate::kept::{Kept, KeptMesh, Weights, directly};
use crate::{Cancel, Choice, Error, Method, Precision, Settings, Softening};

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

    /// Looks at the problem as closely as the tables want before they are read.
    fn look(&mut self) {}

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
    fn error(&mut self, sums: &Self::Sums, look: Look) -> Result<f64, Error>;

    /// How much errors of one size at all targets count in the error of `sums`, which a mesh has made; none if the
    /// place does not know it, and measures every sum of a run.
    ///
    /// # Errors
    /// What keeps the place from adding up.
    fn weights(&mut self, _sums: &Self::Sums) -> Result<Option<Weights>, Error> {
        Ok(None)
    }

    /// Whether a closer look at the last sums says more than the first: where the sample was drawn
    /// by prediction, of targets at which direct sums are cheap.
    fn looks_closer(&self) -> bool {
        false
    }

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

/// The share of the tolerance up to which the error of a mesh is taken from an earlier sum of a run.
const KNOWN: f64 = 0.6;

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
    let missed = |k: &Kept| k.direct || k.target_error < settings.tolerance;
    let patience = kept.filter(missed).map_or(first, |k| k.patience.saturating_mul(2).min(most));
    if let Some(mut kept) = kept.filter(|k| k.sums < k.patience && settings.guarded().is_some()) {
        let asked = kept.fill(settings);
        if kept.mesh.is_none() {
            trial.look();
        }
        // What cannot be chosen, say in single precision, is chosen anew.
        if let Ok(choice) = trial.choose(&asked, kept.target_error)
            && let Ok((sums, mesh)) = attempt(settings, (&asked, &choice), kept.known_mesh(), trial)?
        {
            (kept.sums, kept.mesh) = (kept.sums + 1, mesh);
            return Ok(Solved { choice, sums, kept: Some(kept) });
        }
    }
    let solved = solve_by_tables(settings, trial)?;
    // A mesh of tables that held is measured again when they are read again.
    let patience = |kept: Kept| Kept { patience: if missed(&kept) { patience } else { KeptMesh::EVERY - 1 }, ..kept };
    Ok(Solved { kept: solved.kept.map(patience), ..solved })
}

/// Executes `trial` with the choice of the tables, and where that misses the tolerance with smaller
/// target errors, until it is kept.
fn solve_by_tables<T: Trial>(settings: &Settings, trial: &mut T) -> Result<Solved<T::Sums>, Error> {
    trial.look();
    let (mut asked, mut target_error) = (settings.clone(), settings.tolerance);
    let mut missed = None;
    for tried in 0..TRIALS {
        let mut chosen = trial.choose(&asked, target_error);
        // A smaller target error may still mean the order that has just missed.
        while chosen.is_ok() && chosen.as_ref().ok() == missed.as_ref() && target_error > Settings::TIGHTEST {
            target_error = (0.5 * target_error).max(Settings::TIGHTEST);
            chosen = trial.choose(&asked, target_error);
        }
        let choice = match chosen {
            // Beyond what the arithmetic that was asked for can hold.
            Err(_) if tried > 0 => break,
            chosen => chosen?,
        };
        let error = match attempt(settings, (&asked, &choice), None, trial)? {
            Ok((sums, mesh)) => {
                let (precision, leaf_size) = match mesh {
                    Some(_) => (choice.precision, Some(choice.leaf_size)),
                    None => (asked.precision, asked.leaf_size),
                };
                let kept = Kept { direct: false, target_error, precision, leaf_size, sums: 0, patience: 0, mesh };
                return Ok(Solved { choice, sums, kept: (tried > 0 || mesh.is_some()).then_some(kept) });
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
        missed = Some(choice);
    }
    let problem = trial.problem();
    let pairs = problem.pairs();
    if settings.precision == Precision::F32 || pairs > MOST_PAIRS {
        let (method, precision) = (settings.method.name(), asked.precision.name());
        return Err(Error::Tolerance { tolerance: settings.tolerance, method, precision });
    }
    let asked = directly(settings);
    let choice = trial.choose(&asked, settings.tolerance)?;
    let sums = whole(trial, &asked, &choice)?;
    let (target_error, precision) = (settings.tolerance, Precision::F64);
    let kept = Kept { direct: true, target_error, precision, leaf_size: None, sums: 0, patience: 0, mesh: None };
    Ok(Solved { choice, sums, kept: Some(kept) })
}

/// Sums that were judged: those that hold, with what is kept of their mesh, or the error of others.
type Judged<S> = Result<(S, Option<KeptMesh>), f64>;

/// The sums of a choice, or their error if it is above the tolerance. `known` is the mesh of an earlier sum that tells
/// it, if one does; what is kept of the present one comes with the sums.
fn attempt<T: Trial>(
    settings: &Settings,
    (asked, choice): (&Settings, &Choice),
    known: Option<KeptMesh>,
    trial: &mut T,
) -> Result<Judged<T::Sums>, Error> {
    let mut sums = whole(trial, asked, choice)?;
    if settings.guarded().is_none() || choice.is_exact() {
        return Ok(Ok((sums, None)));
    }
    let meshed = choice.method == Method::Mesh;
    let weights = if meshed { trial.weights(&sums)? } else { None };
    if let (Some(known), Some(now)) = (known, weights)
        && known.error_with(now) <= KNOWN * settings.tolerance
    {
        return Ok(Ok((sums, Some(known))));
    }
    let error = judge(settings, &sums, trial)?;
    let holds = |error: f64| error <= TRUSTED * settings.tolerance;
    if holds(error) {
        let mesh = choice.order.zip(weights).map(|(order, weights)| KeptMesh { order, error, weights });
        return Ok(Ok((sums, mesh)));
    }
    let repaired = trial.repair(&mut sums, choice)? && holds(judge(settings, &sums, trial)?);
    Ok(if repaired { Ok((sums, None)) } else { Err(error) })
}

/// The error of `sums` by as close a look as it wants.
fn judge<T: Trial>(settings: &Settings, sums: &T::Sums, trial: &mut T) -> Result<f64, Error> {
    let (mut look, mut error) = (Look::First, trial.error(sums, Look::First)?);
    let targets = trial.problem().targets;
    while let Some(next) = look.next(error / settings.tolerance, targets).filter(|_| trial.looks_closer()) {
        (look, error) = (next, trial.error(sums, next)?);
    }
    Ok(error)
}

/// Executes `trial`; an error if parts of it were left out.
fn whole<T: Trial>(trial: &mut T, settings: &Settings, choice: &Choice) -> Result<T::Sums, Error> {
    let sums = trial.execute(settings, choice)?;
    if trial.cancel().is_set() { Err(Error::Cancelled) } else { Ok(sums) }
}

#[cfg(test)]
mod tests;
