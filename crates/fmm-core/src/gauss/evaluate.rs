//! A sum of Gaussians on this machine's cores.

use rayon::prelude::*;

use super::boxes::Sorted;
use super::execute::execute;
use super::plan::{Choice, CostModel, OnHost, Plan, PointStats};
use super::{Route, Settings};
use crate::bodies;
use crate::math::CollectVec;
use crate::{Error, Stage, StageTimes};

/// A sum of Gaussians, in the order of the targets; one entry for each column of strengths.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation<const D: usize> {
    /// G. `[columns][targets]`
    pub potential: Vec<Vec<f64>>,
    /// e = −∇G; empty where it was not asked for. `[columns][targets]`
    pub field: Vec<Vec<[f64; D]>>,
    /// What was chosen.
    pub choice: Choice,
    /// Pairs of boxes on each route: direct, Hermite, Taylor, and boxes of M2L.
    pub routes: Routes,
}

/// How often each route was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Routes {
    /// Runs of sources that met a box of targets directly.
    pub direct: usize,
    /// Hermite series evaluated at the points of a box.
    pub hermite: usize,
    /// Boxes of sources added to a Taylor series point by point.
    pub taylor: usize,
    /// Hermite series and Taylor series that M2L connects.
    pub translated: [usize; 2],
}

/// The sums G(y) = Σ q_j exp(−|y − x_j|²/(2σ²)) of `sources` at `targets`, without targets at the sources themselves, for one or more columns of
/// strengths. A source at its own place counts, with q.
///
/// The error of G is at most `tolerance` Σ|q|, and so is that of σ ∇G, for any distribution of
/// points. Far from all sources, where G itself is tiny, its relative error is not bounded.
///
/// # Errors
/// Settings out of range, values that are not finite, columns whose length is not the number of
/// sources, points whose distance exceeds 1e150 σ, more than 2³² − 2 points.
///
/// ```
/// use fmm_core::{StageTimes, gauss};
/// let settings = gauss::Settings { gradient: true, ..gauss::Settings::new(1.0) };
/// let sum = gauss::evaluate(&settings, &[[0.0]], &[&[2.0]], Some(&[[1.0]]), &mut StageTimes::default())?;
/// assert!((sum.potential[0][0] - 2.0 * f64::exp(-0.5)).abs() < 1e-6);
/// assert!((sum.field[0][0][0] - 2.0 * f64::exp(-0.5)).abs() < 1e-6);
/// # Ok::<(), fmm_core::Error>(())
/// ```
pub fn evaluate<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    strengths: &[&[f64]],
    targets: Option<&[[f64; D]]>,
    times: &mut StageTimes,
) -> Result<Evaluation<D>, Error>
where
    Axes<D>: Dimension<D>,
{
    Axes::evaluate(settings, sources, strengths, targets, times)
}

/// The axes of a space.
pub struct Axes<const D: usize>;

/// What a space of one, two or three axes can do. The two methods are [`evaluate`] and [`Plan::new`], compiled in this crate once for each
/// number of axes: generic functions would be compiled again in every crate that calls them.
pub trait Dimension<const D: usize> {
    /// [`evaluate`].
    ///
    /// # Errors
    /// Those of [`evaluate`].
    fn evaluate(
        settings: &Settings,
        sources: &[[f64; D]],
        strengths: &[&[f64]],
        targets: Option<&[[f64; D]]>,
        times: &mut StageTimes,
    ) -> Result<Evaluation<D>, Error>;

    /// [`Plan::new`].
    ///
    /// # Errors
    /// Those of [`Plan::new`].
    fn plan(
        settings: &Settings,
        columns: usize,
        stats: &mut dyn PointStats<D>,
        model: &CostModel,
        times: &mut StageTimes,
    ) -> Result<Plan<D>, Error>;
}

macro_rules! dimensions {
    ($($d:literal)*) => {$(
        impl Dimension<$d> for Axes<$d> {
            fn evaluate(
                settings: &Settings,
                sources: &[[f64; $d]],
                strengths: &[&[f64]],
                targets: Option<&[[f64; $d]]>,
                times: &mut StageTimes,
            ) -> Result<Evaluation<$d>, Error> {
                sum(settings, sources, strengths, targets, times)
            }

            fn plan(
                settings: &Settings,
                columns: usize,
                stats: &mut dyn PointStats<$d>,
                model: &CostModel,
                times: &mut StageTimes,
            ) -> Result<Plan<$d>, Error> {
                Plan::cheapest(settings, columns, stats, model, times)
            }
        }
    )*};
}
dimensions!(1 2 3);

impl<const D: usize> Plan<D> {
    /// Plans the sum of the sources of `stats`, each with `columns` strengths, at its targets.
    ///
    /// # Errors
    /// A route that was asked for and that no box can take, and those of `stats`.
    pub fn new(
        settings: &Settings,
        columns: usize,
        stats: &mut dyn PointStats<D>,
        model: &CostModel,
        times: &mut StageTimes,
    ) -> Result<Self, Error>
    where
        Axes<D>: Dimension<D>,
    {
        Axes::plan(settings, columns, stats, model, times)
    }
}

fn sum<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    strengths: &[&[f64]],
    targets: Option<&[[f64; D]]>,
    times: &mut StageTimes,
) -> Result<Evaluation<D>, Error> {
    check(settings, sources, strengths, targets)?;
    let plan = Plan::cheapest(settings, strengths.len(), &mut OnHost { sources, targets }, &CostModel::CPU, times)?;
    let (from, at, columns) = times.time_more(Stage::Tree, || {
        let from = Sorted::new(&plan.geometry.lattice, plan.source_tree(), sources);
        let at = targets.map(|t| Sorted::new(&plan.geometry.lattice, &plan.targets, t));
        let pick = |q: &&[f64]| from.order.par_iter().map(|&i| q[i as usize]).collect_vec();
        let columns: Vec<Vec<f64>> = strengths.iter().map(pick).collect();
        (from, at, columns)
    });
    let at = at.as_ref().unwrap_or(&from);
    let sums = execute(&plan, settings.sigma, [&from, at], &columns, times);
    let (n, columns) = (at.order.len(), strengths.len());
    let each = if settings.gradient { 1 + D } else { 1 };
    let mut potential = vec![vec![0.0; n]; columns];
    let mut field = if settings.gradient { vec![vec![[0.0; D]; n]; columns] } else { vec![] };
    for (&i, sums) in at.order.iter().zip(sums.chunks_exact(columns * each)) {
        for (c, sums) in sums.chunks_exact(each).enumerate() {
            potential[c][i as usize] = sums[0];
            if settings.gradient {
                field[c][i as usize] = std::array::from_fn(|d| -sums[1 + d] / settings.sigma);
            }
        }
    }
    Ok(Evaluation { potential, field, routes: Routes::of(&plan), choice: plan.choice })
}

impl Routes {
    /// Those of a plan.
    pub fn of<const D: usize>(plan: &Plan<D>) -> Self {
        let swept = if plan.geometry.passes.is_empty() {
            [0; 2]
        } else {
            [plan.geometry.expanded.len(), plan.geometry.local.len()]
        };
        let lists = &plan.lists;
        Routes { direct: lists.p2p.len(), hermite: lists.m2p.len(), taylor: lists.p2l.len(), translated: swept }
    }
}

/// The checks of [`evaluate`].
///
/// # Errors
/// Those of [`evaluate`].
pub fn check<const D: usize>(
    settings: &Settings,
    sources: &[[f64; D]],
    strengths: &[&[f64]],
    targets: Option<&[[f64; D]]>,
) -> Result<(), Error> {
    settings.check()?;
    bodies::check_sources(sources, strengths)?;
    bodies::check_positions(targets.unwrap_or(&[]))?;
    if strengths.is_empty() {
        return Err(Error::Unsupported("a sum needs at least one column of strengths".into()));
    }
    spread(settings.sigma, sources, targets)
}

/// Refuses points whose distances in units of σ have no square.
fn spread<const D: usize>(sigma: f64, sources: &[[f64; D]], targets: Option<&[[f64; D]]>) -> Result<(), Error> {
    let all = || sources.iter().chain(targets.unwrap_or(&[])).flatten();
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
    let far = (high - low) / sigma;
    if all().next().is_none() || far <= 1e150 {
        return Ok(());
    }
    Err(Error::Unsupported(format!("points {:e} apart are farther than 1e150 times sigma = {sigma:e}", high - low)))
}

impl Settings {
    /// The checks of [`evaluate`].
    ///
    /// # Errors
    /// [`Error::Range`] for the first value outside its range.
    pub fn check(&self) -> Result<(), Error> {
        let range =
            |what, value: f64, ok: bool, range| if ok { Ok(()) } else { Err(Error::Range { what, value, range }) };
        range("sigma", self.sigma, (1e-150..=1e150).contains(&self.sigma), "1e-150 to 1e150")?;
        range("tolerance", self.tolerance, (1e-14..=0.1).contains(&self.tolerance), "1e-14 to 0.1")?;
        match self.side {
            Some(side) => range(
                "side of the boxes",
                side / self.sigma,
                (0.01..=1e3).contains(&(side / self.sigma)),
                "0.01 to 1000 sigma",
            ),
            None => Ok(()),
        }
    }

    /// Sums in which every pair counts, to rounding, for this σ.
    pub fn plain(sigma: f64) -> Self {
        Settings { route: Some(Route::All), ..Settings::new(sigma) }
    }
}
