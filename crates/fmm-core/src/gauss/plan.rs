//! The plan of a sum of Gaussians: boxes, which of them are expanded, who meets whom on which route.

use std::ops::Range;

use rayon::prelude::*;

use super::bound::Demand;
use super::boxes::{Lattice, MARGIN, Occupied};
use super::cost::{Costs, NONE, Outline, Thresholds};
use super::series::Shape;
use super::sweep::{Pass, passes};
use super::{Route, Settings};
use crate::math::CollectVec;
use crate::plan::{self, Geometry};
use crate::{Csr, Error, Stage, StageTimes};

/// Numbers of all expansions together at most: 4 GiB.
const MEMORY: f64 = (1u64 << 29) as f64;

/// Sides of boxes that are tried, in units of σ.
const SIDES: [f64; 7] = [3.0, 2.2, 1.6, 1.2, 0.85, 0.6, 0.4];

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Side of a box.
    pub side: f64,
    /// Terms of the series along each axis; none where every pair of boxes meets directly.
    pub order: Option<usize>,
    /// Boxes of at least so many sources, and targets, have a series.
    pub thresholds: [usize; 2],
    /// The distance beyond which boxes do not meet, in the unit of the points; infinite for the plain sum.
    pub cutoff: f64,
    /// Degree of the exponential's series in direct sums.
    pub terms: usize,
    /// Points of the fullest box.
    pub fullest: usize,
    /// Nanoseconds of one core that the cost model expects.
    pub cost: f64,
}

/// Who meets whom, target by target.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Runs of sources that each box of targets meets directly.
    pub p2p: Csr<[u32; 2]>,
    /// Boxes of sources whose Hermite series is evaluated at its points.
    pub m2p: Csr<u32>,
    /// Boxes of sources whose points add to its Taylor series.
    pub p2l: Csr<u32>,
}

/// Boxes of one level.
#[derive(Debug, Clone)]
pub struct Boxes<const D: usize> {
    /// Where boxes are.
    pub lattice: Lattice<D>,
    /// Boxes of sources with a Hermite series, ascending.
    pub expanded: Vec<u32>,
    /// Boxes of targets with a Taylor series, ascending.
    pub local: Vec<u32>,
    /// M2L, pass by pass.
    pub passes: Vec<Pass<D>>,
    /// Boxes along an axis that M2L reaches.
    pub reach: i64,
    /// How the coefficients of a box lie.
    pub shape: Shape,
    /// What every pair keeps.
    pub demand: Demand,
}

impl<const D: usize> Geometry for Boxes<D> {
    type Choice = Choice;
    type Tree = Occupied<D>;
    type Lists = Lists;
}

/// The plan of a sum of Gaussians.
pub type Plan<const D: usize> = plan::Plan<Boxes<D>>;

/// Statistics of the points that a plan is made for, on the host or on a device.
pub trait PointStats<const D: usize> {
    /// How many sources, and how many targets if they are others.
    fn points(&self) -> [usize; 2];

    /// The corners of the box around all points; zeros if there are none.
    ///
    /// # Errors
    /// Those of a device.
    fn bounds(&mut self) -> Result<[[f64; D]; 2], Error>;

    /// The boxes that hold sources, and targets if they are others.
    ///
    /// # Errors
    /// Those of a device.
    fn count(&mut self, lattice: &Lattice<D>) -> Result<[Option<Occupied<D>>; 2], Error>;
}

/// Points in the memory of this machine.
pub struct OnHost<'a, const D: usize> {
    /// Sources.
    pub sources: &'a [[f64; D]],
    /// Targets, if they are others.
    pub targets: Option<&'a [[f64; D]]>,
}

impl<const D: usize> PointStats<D> for OnHost<'_, D> {
    fn points(&self) -> [usize; 2] {
        [self.sources.len(), self.targets.map_or(0, <[_]>::len)]
    }

    fn bounds(&mut self) -> Result<[[f64; D]; 2], Error> {
        let mut all = [[f64::INFINITY; D], [f64::NEG_INFINITY; D]];
        for x in self.sources.iter().chain(self.targets.unwrap_or(&[])) {
            for d in 0..D {
                (all[0][d], all[1][d]) = (all[0][d].min(x[d]), all[1][d].max(x[d]));
            }
        }
        Ok(if all[0][0] <= all[1][0] { all } else { [[0.0; D]; 2] })
    }

    fn count(&mut self, lattice: &Lattice<D>) -> Result<[Option<Occupied<D>>; 2], Error> {
        Ok([Some(Occupied::new(lattice, self.sources)), self.targets.map(|t| Occupied::new(lattice, t))])
    }
}

/// What operators cost where a plan is executed, by shape, terms of the exponential and whether derivatives are wanted; and the part of the
/// tolerance that truncation and cut-off may take, rounding and exponentials having the rest.
pub struct CostModel<'a> {
    /// See [`Costs::new`].
    pub costs: &'a dyn Fn(Shape, usize, bool) -> Costs,
    /// Below 1.
    pub share: f64,
}

impl CostModel<'_> {
    /// The cores of a machine.
    pub const CPU: CostModel<'static> = CostModel { costs: &Costs::new, share: 0.98 };
}

/// A side of boxes with what it takes.
struct Candidate<const D: usize> {
    lattice: Lattice<D>,
    occupied: [Option<Occupied<D>>; 2],
    order: Option<usize>,
    thresholds: Thresholds,
    cost: f64,
}

impl<const D: usize> Plan<D> {
    /// What [`Plan::new`] does, for any number of axes.
    pub(super) fn cheapest(
        settings: &Settings,
        columns: usize,
        stats: &mut dyn PointStats<D>,
        model: &CostModel,
        times: &mut StageTimes,
    ) -> Result<Self, Error> {
        let demand = Demand { dimension: D, tolerance: model.share * settings.tolerance, gradient: settings.gradient };
        let terms = match settings.tolerance {
            _ if settings.route == Some(Route::All) => 13,
            t if t >= 2e-8 => 8,
            _ => 13,
        };
        let shape = Shape { dimension: D, order: 1, columns };
        let best = times.time(Stage::Tree, || {
            let [low, high] = stats.bounds()?;
            let points = stats.points();
            let mut search = Search { settings, demand, terms, shape, low, high, points, stats, model };
            match settings.route {
                Some(Route::All) => search.plain().map(Some),
                _ => search.best(),
            }
        })?;
        let Some(best) = best else {
            return Err(Error::Unsupported("no boxes keep the tolerance on this route; leave the route open".into()));
        };
        let Candidate { lattice, occupied, order, thresholds, cost } = best;
        let cutoff = if settings.route == Some(Route::All) { f64::INFINITY } else { demand.cutoff() };
        let count = |o: &Occupied<D>| (0..o.len()).map(|i| o.count(i)).max().unwrap_or(0);
        let fullest = occupied.iter().flatten().map(count).max().unwrap_or(0);
        let (side, cutoff_length) = (lattice.side, cutoff * settings.sigma);
        let choice = Choice { side, order, thresholds, cutoff: cutoff_length, terms, fullest, cost };
        let [sources, targets] = occupied;
        let sources = sources.expect("counted");
        let (targets, sources) = match targets {
            Some(targets) => (targets, Some(sources)),
            None => (sources, None),
        };
        let shape = Shape { order: order.unwrap_or(1), ..shape };
        let sides = cutoff * settings.sigma / lattice.side;
        let reach = if order.is_some() { lattice.reach(sides) } else { 0 };
        let (expanded, local, passes) = (vec![], vec![], vec![]);
        let geometry = Boxes { lattice, expanded, local, passes, reach, shape, demand };
        let mut plan = Plan { choice, targets, sources, lists: Lists::default(), geometry };
        let costs = (model.costs)(shape, terms, settings.gradient);
        times.time(Stage::Lists, || plan.connect(settings, thresholds, sides, costs));
        Ok(plan)
    }

    /// Lists and passes.
    fn connect(&mut self, settings: &Settings, thresholds: Thresholds, sides: f64, costs: Costs) {
        let (from, to) = (self.source_tree(), &self.targets);
        let Boxes { lattice, reach, .. } = &self.geometry;
        let large = |boxes: &Occupied<D>, least: usize| -> Vec<u32> {
            (0..boxes.len() as u32).filter(|&i| boxes.count(i as usize) >= least).collect()
        };
        let (expanded, local) = (large(from, thresholds[0]), large(to, thresholds[1]));
        let one = |c: usize| {
            let (mut p2p, mut m2p, mut p2l): (Vec<[u32; 2]>, Vec<u32>, Vec<u32>) = (vec![], vec![], vec![]);
            if thresholds == [1, 1] {
                return (p2p, m2p, p2l);
            }
            let here = to.count(c);
            let mut directly = |run: Range<u32>| match p2p.last_mut() {
                Some(last) if last[1] == run.start => last[1] = run.end,
                _ => p2p.push([run.start, run.end]),
            };
            let is_local = here >= thresholds[1];
            lattice.rows(&to.cells[c], sides, &mut |first, last| {
                for b in from.row(lattice, &first, last) {
                    let there = from.count(b);
                    let is_expanded = there >= thresholds[0];
                    let pairs = (here * there) as f64 * costs.pair;
                    match (is_expanded, is_local) {
                        (true, true) => {}
                        (true, false) if settings.route.is_some() || here as f64 * costs.m2p < pairs => {
                            m2p.push(b as u32);
                        }
                        (false, true) if settings.route.is_some() || there as f64 * costs.p2l < pairs => {
                            p2l.push(b as u32);
                        }
                        _ => directly(from.start[b]..from.start[b + 1]),
                    }
                }
            });
            (p2p, m2p, p2l)
        };
        let rows: Vec<_> = (0..to.len()).into_par_iter().map(one).collect_vec();
        let (mut p2p, mut m2p, mut p2l) = (vec![], vec![], vec![]);
        for row in rows {
            p2p.push(row.0);
            m2p.push(row.1);
            p2l.push(row.2);
        }
        let lists = Lists { p2p: p2p.into(), m2p: m2p.into(), p2l: p2l.into() };
        let cells = |boxes: &Occupied<D>, some: &[u32]| -> Vec<[i64; D]> {
            some.iter().map(|&i| boxes.cells[i as usize]).collect()
        };
        let passes = match expanded.is_empty() || local.is_empty() {
            true => vec![],
            false => passes(lattice, *reach, &cells(from, &expanded), &cells(to, &local)),
        };
        self.lists = lists;
        (self.geometry.expanded, self.geometry.local, self.geometry.passes) = (expanded, local, passes);
    }
}

/// The search for the cheapest boxes.
struct Search<'a, const D: usize> {
    settings: &'a Settings,
    demand: Demand,
    terms: usize,
    shape: Shape,
    low: [f64; D],
    high: [f64; D],
    /// Sources, and targets if they are others.
    points: [usize; 2],
    stats: &'a mut dyn PointStats<D>,
    model: &'a CostModel<'a>,
}

impl<const D: usize> Search<'_, D> {
    fn candidate(&mut self, side: f64) -> Result<Candidate<D>, Error> {
        let lattice = Lattice::new(self.low, self.high, side);
        let occupied = self.stats.count(&lattice)?;
        Ok(Candidate { lattice, occupied, order: None, thresholds: [NONE; 2], cost: f64::INFINITY })
    }

    /// Sums every pair. Boxes only divide the work.
    fn plain(&mut self) -> Result<Candidate<D>, Error> {
        let extent = (0..D).map(|d| self.high[d] - self.low[d]).fold(0.0, f64::max);
        let targets = if self.points[1] > 0 { self.points[1] } else { self.points[0] };
        let pieces = ((targets as f64 / 256.0).powf(1.0 / D as f64)).ceil();
        let side = extent / pieces.max(1.0);
        self.candidate(if side > 0.0 { side } else { self.settings.sigma })
    }

    fn best(&mut self) -> Result<Option<Candidate<D>>, Error> {
        let (sigma, cutoff) = (self.settings.sigma, self.demand.cutoff());
        let extent = (0..D).map(|d| self.high[d] - self.low[d]).fold(0.0, f64::max);
        let mut sides: Vec<f64> = match self.settings.side {
            Some(side) => vec![side],
            None => {
                let parts = [1.0, 0.5, 1.0 / 3.0, 0.25].map(|part| part * extent * (1.0 + 1e-9));
                let near = parts.into_iter().filter(|&s| s > 0.0 && s < SIDES[0] * sigma);
                let direct = [cutoff, 0.5 * cutoff, cutoff / 3.0];
                SIDES.iter().chain(&direct).map(|s| s * sigma).filter(|&s| s < extent).chain(near).collect()
            }
        };
        if sides.is_empty() {
            sides.push(if extent > 0.0 { extent * (1.0 + 1e-9) } else { sigma });
        }
        // From the largest boxes on: where they hold one point each, smaller ones are of no use.
        sides.sort_by(|a, b| b.total_cmp(a));
        let points = self.points[0] + self.points[1];
        let mut best: Option<Candidate<D>> = None;
        let mut dearer = 0;
        for side in sides {
            let mut candidate = self.candidate(side)?;
            self.judge(&mut candidate);
            let boxes: usize = candidate.occupied.iter().flatten().map(Occupied::len).sum();
            let least = best.as_ref().map_or(f64::INFINITY, |b| b.cost);
            // Costs fall and then rise again, but for the noise of the sample that they are taken from.
            dearer = if candidate.cost > 1.3 * least { dearer + 1 } else { 0 };
            if candidate.cost < least {
                best = Some(candidate);
            }
            if best.is_some() && (dearer == 2 || points as f64 <= 1.5 * boxes as f64) {
                break;
            }
        }
        Ok(best)
    }

    /// Finds order and thresholds of a candidate.
    fn judge(&self, candidate: &mut Candidate<D>) {
        let Settings { sigma, route, gradient, .. } = *self.settings;
        let half = 0.5 * candidate.lattice.side / sigma * (1.0 + MARGIN);
        // A side far beyond σ, as where there are too many boxes for the keys, leaves no expansion.
        let order = if half < 4.0 { self.demand.order(half, 0.0) } else { None };
        candidate.order = order.filter(|_| route != Some(Route::Direct));
        let cutoff = self.demand.cutoff() * sigma / candidate.lattice.side;
        let shape = Shape { order: candidate.order.unwrap_or(1), ..self.shape };
        let [sources, targets] = &candidate.occupied;
        let Some(sources) = sources else { return };
        let outline = Outline {
            lattice: &candidate.lattice,
            boxes: [sources, targets.as_ref().unwrap_or(sources)],
            cutoff,
            reach: candidate.lattice.reach(cutoff),
            costs: (self.model.costs)(shape, self.terms, gradient),
            memory: (MEMORY, shape.total() as f64),
        };
        let has_order = candidate.order.is_some();
        let allowed = |[from, to]: Thresholds| match route {
            Some(Route::Hermite) => has_order && from == 1 && to == NONE,
            Some(Route::Taylor) => has_order && from == NONE && to == 1,
            Some(Route::HermiteTaylor) => has_order && from == 1 && to == 1,
            _ => has_order || (from == NONE && to == NONE),
        };
        if let Some((thresholds, cost)) = outline.best(allowed) {
            (candidate.thresholds, candidate.cost) = (thresholds, cost);
            if thresholds == [NONE; 2] {
                candidate.order = None;
            }
        }
    }
}
