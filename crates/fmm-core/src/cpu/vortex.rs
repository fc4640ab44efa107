//! The velocity of vortex particles (Biot & Savart): three sums of 1/r over one tree and one set of lists.

use rayon::prelude::*;

use super::guard::Sample;
use super::schedule::{Bodies, execute_sorted};
use crate::accuracy::{Kind, Problem, Strengths};
use crate::contract::{self, Attempt};
use crate::expansion::{Cartesian, Spherical};
use crate::math::Real;
use crate::math::simd::{Task, Vector, dispatch};
use crate::plan::Plan;
use crate::tree::Cube;
use crate::{Choice, Error, Family, Precision, Settings, Softening, Stage, StageTimes};

/// A velocity field, in the order of the targets.
#[derive(Debug, Clone, PartialEq)]
pub struct Velocity {
    /// u. `[targets]`
    pub velocity: Vec<[f64; 3]>,
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
}

/// u(x) = −1/(4π) Σ g(r) (x − x_j) × ω_j with g = 1/r³, or (r² + 5/2 ε²)(r² + ε²)^(−5/2) with [`Softening::P1`], the high-order
/// algebraic regularisation (Winckelmans & Leonard 1993). Strengths ω are vorticities times volumes, one array a component; without
/// targets the field is at the sources. `tolerance` bounds rms and L2 of the velocity as it does those of a force.
///
/// # Errors
/// Those of [`evaluate`](super::evaluate); [`Error::Unsupported`] for other softenings.
///
/// ```
/// use fmm_core::{Settings, StageTimes, biot_savart};
/// // A particle of strength 4π along z at the origin turns (1, 0, 0) towards y.
/// let strengths: [&[f64]; 3] = [&[0.0], &[0.0], &[4.0 * std::f64::consts::PI]];
/// let at = [[1.0, 0.0, 0.0]];
/// let u = biot_savart(&Settings::default(), &[[0.0; 3]], strengths, Some(&at), &mut StageTimes::default())?;
/// assert_eq!(u.velocity[0], [0.0, 1.0, 0.0]);
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn biot_savart(
    settings: &Settings,
    sources: &[[f64; 3]],
    strengths: [&[f64]; 3],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> Result<Velocity, Error> {
    for q in strengths {
        crate::bodies::check(sources, &[], q)?;
    }
    crate::bodies::check(targets.unwrap_or(&[]), &[], &[])?;
    crate::bodies::check_reach(&[sources, targets.unwrap_or(&[])])?;
    let settings = settings.clone().simplified();
    if !matches!(settings.softening, Softening::None | Softening::P1(_)) {
        return Err(Error::Unsupported("velocities of vortices know the softening p1, or none".into()));
    }
    if settings.boundary.periodic().is_some() {
        return Err(Error::Unsupported("velocities of vortices know no periodic boxes".into()));
    }
    let cube = times.time_more(Stage::Tree, || Cube::around(&[sources, targets.unwrap_or(&[])]));
    let count = targets.map_or(sources.len(), <[_]>::len);
    let mut problem = times.time_more(Stage::Tree, || Problem::of(sources, strengths[0], count, &cube));
    for q in strengths {
        let sizes = Strengths::of(q);
        problem.strength_range = problem.strength_range.max(sizes.largest / sizes.smallest);
    }
    // Components of vector products are differences.
    problem.kind = Kind::Cancelling;
    let mut attempt =
        VortexAttempt { cube, sources, strengths, targets, times, softening: settings.softening, done: None };
    let choice = contract::keep(&settings, problem, &mut attempt)?;
    let Done { velocity, coincident_pairs, .. } = attempt.done.expect("the contract has summed");
    Ok(Velocity { velocity, choice, coincident_pairs })
}

/// A velocity field, summed with one choice after another.
struct VortexAttempt<'a> {
    cube: Cube<3>,
    sources: &'a [[f64; 3]],
    strengths: [&'a [f64]; 3],
    targets: Option<&'a [[f64; 3]]>,
    times: &'a mut StageTimes,
    softening: Softening,
    done: Option<Done>,
}

/// The present result.
struct Done {
    velocity: Vec<[f64; 3]>,
    coincident_pairs: u64,
    /// Where the expansions err: see [`Sample::new`].
    shares: Vec<(u32, f64)>,
}

const FOUR_PI: f64 = 4.0 * std::f64::consts::PI;

/// a × b.
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

impl Attempt for VortexAttempt<'_> {
    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error> {
        let VortexAttempt { cube, sources, strengths, targets, .. } = *self;
        let times = &mut *self.times;
        let plan = Plan::new(settings, choice, cube, sources, targets, times);
        let mut velocity = vec![[0.0; 3]; plan.targets.order.len()];
        let mut all_shares: Vec<(u32, f64)> = vec![];
        for (k, q) in strengths.into_iter().enumerate() {
            let (field, shares) = match plan.choice.precision {
                Precision::F32 => sum::<f32>(settings, &plan, sources, q, targets, times),
                _ => sum::<f64>(settings, &plan, sources, q, targets, times),
            };
            // −1/(4π) E_k × (unit vector k): the part of the sum that ω_k makes.
            let mut axis = [0.0; 3];
            axis[k] = -1.0 / FOUR_PI;
            for (&i, e) in plan.targets.order.iter().zip(&field) {
                let part = cross(*e, axis);
                for d in 0..3 {
                    velocity[i as usize][d] += part[d];
                }
            }
            if all_shares.is_empty() {
                all_shares = shares;
            } else {
                all_shares.iter_mut().zip(shares).for_each(|(a, b)| a.1 += b.1);
            }
        }
        all_shares.iter_mut().for_each(|s| s.0 = plan.targets.order[s.0 as usize]);
        let coincident_pairs = plan.source_tree().coincident_pairs;
        self.done = Some(Done { velocity, coincident_pairs, shares: all_shares });
        Ok(())
    }

    fn error(&mut self) -> f64 {
        let Some(done) = &self.done else { return f64::INFINITY };
        let at = self.targets.unwrap_or(self.sources);
        let sample = Sample::new(at.len(), &done.shares);
        let places: Vec<usize> = sample.places().collect();
        self.times.time(Stage::Guard, || {
            let sources = Sources::new(self.sources, self.strengths);
            let core = if let Softening::P1(e) = self.softening { e } else { 0.0 };
            let direct = |&i: &usize| dispatch(Direct { at: at[i], sources: &sources, core2: core * core });
            let exact: Vec<[f64; 4]> = places.par_iter().map(direct).collect();
            let found: Vec<[f64; 3]> = places.iter().map(|&i| done.velocity[i]).collect();
            sample.weigh(&exact, &found)
        })
    }
}

/// Sources by component, up to whole vectors; padding has no strength.
struct Sources {
    x: [Vec<f64>; 3],
    w: [Vec<f64>; 3],
}

impl Sources {
    fn new(position: &[[f64; 3]], strengths: [&[f64]; 3]) -> Self {
        let padded = |mut values: Vec<f64>, with: f64| {
            values.resize(values.len().next_multiple_of(f64::WIDTH), with);
            values
        };
        let place = |d: usize| position.first().map_or(0.0, |x| x[d]);
        Sources {
            x: [0, 1, 2].map(|d| padded(position.iter().map(|x| x[d]).collect(), place(d))),
            w: strengths.map(|q| padded(q.to_vec(), 0.0)),
        }
    }
}

/// The direct sum at one place, and the square of its largest term.
struct Direct<'a> {
    at: [f64; 3],
    sources: &'a Sources,
    /// ε².
    core2: f64,
}

impl Task<f64> for Direct<'_> {
    type Out = [f64; 4];

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> [f64; 4] {
        let Direct { at, sources: Sources { x, w }, core2 } = self;
        let at = [V::splat(at[0]), V::splat(at[1]), V::splat(at[2])];
        let (core2, more) = (V::constant(core2), V::constant(2.5 * core2));
        let tiny = V::constant(f64::MIN_POSITIVE);
        let (mut sum, mut largest) = ([V::zero(); 3], V::zero());
        for j in (0..x[0].len()).step_by(f64::WIDTH) {
            let mut d = [V::zero(); 3];
            let mut q = [V::zero(); 3];
            for k in 0..3 {
                d[k] = at[k].sub(V::load(&x[k][j..]));
                q[k] = V::load(&w[k][j..]);
            }
            let r2 = d[2].mul_add(d[2], d[1].mul_add(d[1], d[0].mul(d[0])));
            let s = r2.add(core2);
            // Nothing acts at distance zero.
            let g = r2.add(more).div(s.mul(s).mul(s.sqrt())).keep_where_at_least(r2, tiny);
            let mut square = V::zero();
            for k in 0..3 {
                let (a, b) = ((k + 1) % 3, (k + 2) % 3);
                let term = g.mul(d[b].neg_mul_add(q[a], d[a].mul(q[b])));
                sum[k] = sum[k].sub(term);
                square = term.mul_add(term, square);
            }
            largest = largest.max(square);
        }
        let mut lanes = [0.0; 16];
        largest.store(&mut lanes);
        let [u, v, w] = [sum[0].sum(), sum[1].sum(), sum[2].sum()].map(|s| s / FOUR_PI);
        [u, v, w, lanes.into_iter().fold(0.0, f64::max) / (FOUR_PI * FOUR_PI)]
    }
}

/// E = Σ q g(r) (x − x_j) in the order of the target tree, and where the expansions err.
fn sum<T: Real>(
    settings: &Settings,
    plan: &Plan<3>,
    sources: &[[f64; 3]],
    q: &[f64],
    targets: Option<&[[f64; 3]]>,
    times: &mut StageTimes,
) -> (Vec<[f64; 3]>, Vec<(u32, f64)>) {
    let bodies = times.time_more(Stage::Tree, || Bodies::new(plan, sources, q, targets));
    let (order, guarded) = (plan.choice.order.unwrap_or(1), settings.guarded());
    let (sums, shares) = if plan.choice.expansion == Some(Family::Cartesian) {
        let tree = &plan.targets;
        let expansion = Cartesian::<T>::new(order, settings.softening, plan.classes, tree.side, tree.levels());
        execute_sorted(&expansion, &settings.softening, plan, &bodies, guarded, times)
    } else {
        let expansion = Spherical::<T>::shared(order, plan.classes);
        execute_sorted(&*expansion, &settings.softening, plan, &bodies, guarded, times)
    };
    (sums.into_iter().map(|s| s.field).collect(), shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_sums_as_the_formula_stands() {
        let number = |i: usize, k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0 - 0.4;
        // A number of sources that fills no vector, the place of one of them among the targets.
        let position: Vec<[f64; 3]> = (0..13).map(|i| [1, 2, 3].map(|k| number(i, k))).collect();
        let w: Vec<[f64; 3]> = (0..13).map(|i| [4, 5, 6].map(|k| number(i, k))).collect();
        let columns: [Vec<f64>; 3] = [0, 1, 2].map(|k| w.iter().map(|w| w[k]).collect());
        let sources = Sources::new(&position, [&columns[0], &columns[1], &columns[2]]);
        for core in [0.0, 0.3] {
            for at in [position[4], [0.7, -0.2, 0.1]] {
                let mut exact = [0.0; 4];
                for (x, w) in position.iter().zip(&w) {
                    let d = [0, 1, 2].map(|k: usize| at[k] - x[k]);
                    let (r2, c2) = (d.iter().map(|d| d * d).sum::<f64>(), core * core);
                    if r2 > 0.0 {
                        let g = (r2 + 2.5 * c2) * (r2 + c2).powf(-2.5) / FOUR_PI;
                        let term = cross(d, *w).map(|c| -g * c);
                        (0..3).for_each(|k| exact[k] += term[k]);
                        exact[3] = f64::max(exact[3], term.iter().map(|t| t * t).sum());
                    }
                }
                let found = dispatch(Direct { at, sources: &sources, core2: core * core });
                for k in 0..4 {
                    assert!((found[k] - exact[k]).abs() < 1e-13 * (1.0 + exact[k].abs()), "{found:?} {exact:?}");
                }
            }
        }
    }
}
