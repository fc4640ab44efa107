//! What a plan will cost, in nanoseconds of one core, or of a device: constants measured once, so that the choice never depends on a timing.

use rayon::prelude::*;

use super::boxes::{Lattice, Occupied};
use super::series::{LANES, Shape};
use crate::math::CollectVec;

/// Costs of the operators for one shape.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// P2P, a pair.
    pub pair: f64,
    /// P2M, a point.
    pub p2m: f64,
    /// P2L, a point and a box.
    pub p2l: f64,
    /// L2P, a point.
    pub l2p: f64,
    /// M2P, a point and a box.
    pub m2p: f64,
    /// M2L, a matrix along one axis.
    pub matrix: f64,
    /// M2L, a box and an axis, without the products with matrices.
    pub turn: f64,
    /// Finding the boxes of a row, and bringing their points together.
    pub row: f64,
}

/// Nanoseconds of one vector instruction.
const INSTRUCTION: f64 = 0.4;

/// Nanoseconds of finding the boxes of a row, and of bringing their points together.
const ROW: f64 = 90.0;

impl Costs {
    /// On the cores of a machine, for sums with exponentials of so many terms.
    pub fn new(shape: Shape, terms: usize, gradient: bool) -> Self {
        let (d, p, c) = (shape.dimension as f64, shape.order as f64, shape.columns as f64);
        let vectors = (shape.row() / LANES) as f64;
        let slopes = if gradient { 1.0 } else { 0.0 };
        let i = INSTRUCTION;
        let pair = i * (terms as f64 + 11.0 + 3.0 * d + c * (1.0 + slopes * (d + 1.0))) / LANES as f64;
        let outer = 2.5 * vectors;
        let powers = d * p * 0.5 + 20.0;
        let exponential = d * 5.0;
        let gather = c * (1.15 * p * vectors + outer);
        let spread = outer * (1.0 + slopes * (d - 1.0))
            + c * (1.25 * p * vectors * (1.0 + slopes) + (1.0 + d * slopes) * (vectors + 8.0))
            + slopes * powers;
        Costs {
            pair,
            p2m: i * (powers + gather),
            p2l: i * (powers + exponential + gather),
            l2p: i * (powers + spread),
            m2p: i * (powers + exponential + spread),
            matrix: i * c * 1.1 * p * p * vectors,
            turn: i * c * 1.5 * p * p * vectors * LANES as f64 / p,
            row: ROW,
        }
    }
}

/// Boxes with at least so many points may take part in an expansion.
pub type Thresholds = [usize; 2];

/// Never.
pub const NONE: usize = usize::MAX;

/// Thresholds that are tried for sources and for targets.
const TRIED: [usize; 7] = [1, 3, 8, 24, 80, 300, NONE];

/// The last of them that a box of so many points reaches.
fn class(points: usize) -> usize {
    TRIED.iter().rposition(|&t| points >= t).unwrap_or(0)
}

/// Target boxes that stand for all.
const SAMPLE: usize = 24;

/// What is planned, but for the thresholds.
pub struct Outline<'a, const D: usize> {
    /// The lattice.
    pub lattice: &'a Lattice<D>,
    /// Boxes of sources and targets.
    pub boxes: [&'a Occupied<D>; 2],
    /// The cut-off in sides.
    pub cutoff: f64,
    /// Boxes along an axis that M2L reaches.
    pub reach: i64,
    /// What operators cost.
    pub costs: Costs,
    /// Most numbers in expansions, and those of one.
    pub memory: (f64, f64),
}

impl<const D: usize> Outline<'_, D> {
    /// The cheapest of the thresholds that `allowed` lets pass, and its cost.
    pub fn best(&self, allowed: impl Fn(Thresholds) -> bool) -> Option<(Thresholds, f64)> {
        let mut best: Option<(Thresholds, f64)> = None;
        let costs = self.all();
        for (i, &from) in TRIED.iter().enumerate() {
            for (k, &to) in TRIED.iter().enumerate() {
                let here = costs[i][k];
                if allowed([from, to]) && best.is_none_or(|b| here < b.1) {
                    best = Some(([from, to], here));
                }
            }
        }
        best
    }

    /// Costs of all thresholds.
    fn all(&self) -> [[f64; TRIED.len()]; TRIED.len()] {
        let [sources, targets] = self.boxes;
        let mut total = [[0.0; TRIED.len()]; TRIED.len()];
        // What is done once a box.
        let points = |boxes: &Occupied<D>| {
            let mut all = [[0.0; 2]; TRIED.len()];
            for i in 0..boxes.len() {
                let n = boxes.count(i);
                let here = &mut all[class(n)];
                *here = [here[0] + 1.0, here[1] + n as f64];
            }
            // Whole numbers: any order gives the same sums.
            for k in (0..TRIED.len() - 1).rev() {
                all[k] = [all[k][0] + all[k + 1][0], all[k][1] + all[k + 1][1]];
            }
            all
        };
        let (from, to) = (points(sources), points(targets));
        for i in 0..TRIED.len() {
            for k in 0..TRIED.len() {
                total[i][k] = from[i][1] * self.costs.p2m + to[k][1] * self.costs.l2p;
                // Passes hold as many boxes again in between.
                if (from[i][0] + to[k][0]) * self.memory.1 * 2.0 > self.memory.0 {
                    total[i][k] = f64::INFINITY;
                }
            }
        }
        // Boxes by the work that they are likely to be.
        let weight = |i: usize| 1.0 + targets.count(i) as f64;
        let all: f64 = (0..targets.len()).map(weight).sum();
        let (mut next, mut before, mut number, mut some) = (0.5, 0.0, 0usize, vec![]);
        for c in 0..targets.len() {
            before += weight(c);
            let mut times = 0;
            while number < SAMPLE && next * all / SAMPLE as f64 <= before {
                (next, number, times) = (next + 1.0, number + 1, times + 1);
            }
            if times > 0 {
                let share = times as f64 * all / (SAMPLE as f64 * weight(c));
                some.push((c, share));
            }
        }
        // Sums in a fixed order, which does not depend on the threads.
        let parts: Vec<_> = some.par_iter().map(|&(c, share)| self.share(c, share)).collect_vec();
        for part in parts {
            for (total, part) in total.as_flattened_mut().iter_mut().zip(part.as_flattened()) {
                *total += part;
            }
        }
        total
    }

    /// `share` times the costs of one target box.
    fn share(&self, c: usize, share: f64) -> [[f64; TRIED.len()]; TRIED.len()] {
        let mut total = [[0.0; TRIED.len()]; TRIED.len()];
        let [sources, targets] = self.boxes;
        let (cell, here) = (targets.cells[c], targets.count(c) as f64);
        let costs = &self.costs;
        // By the class of the source box: its direct sum, and the cheaper of that and P2L or M2P.
        let mut direct = [0.0; TRIED.len()];
        let (mut taylor, mut hermite, mut rows) = (direct, direct, 0.0);
        self.lattice.rows(&cell, self.cutoff, &mut |from, last| {
            rows += costs.row;
            for b in sources.row(self.lattice, &from, last) {
                let there = sources.count(b) as f64;
                let class = class(sources.count(b));
                let pairs = here * there * costs.pair;
                direct[class] += pairs;
                taylor[class] += pairs.min(there * costs.p2l);
                hermite[class] += pairs.min(here * costs.m2p);
            }
        });
        let sweep = self.sweep(&cell);
        for (i, _) in TRIED.iter().enumerate() {
            for (k, &least) in TRIED.iter().enumerate() {
                let (below, above) = (0..i, i..TRIED.len());
                let cost = if targets.count(c) >= least {
                    let swept = if i + 1 == TRIED.len() { 0.0 } else { sweep[i][k] };
                    taylor[below].iter().sum::<f64>() + swept
                } else {
                    direct[below].iter().sum::<f64>() + hermite[above].iter().sum::<f64>()
                };
                // Where all boxes have a series there are no lists.
                total[i][k] = share * if i + k == 0 { cost } else { cost + rows };
            }
        }
        total
    }

    /// The share of one target box in the passes of M2L.
    fn sweep(&self, cell: &[i64; D]) -> [[f64; TRIED.len()]; TRIED.len()] {
        let mut cost = [[0.0; TRIED.len()]; TRIED.len()];
        let [sources, targets] = self.boxes;
        let reach = self.reach;
        // Boxes by class on the lines that the last pass, the one before it and so on take: all others of a line share a result with this one.
        let range = |d: usize| (cell[d] - reach).max(0)..=(cell[d] + reach).min(self.lattice.count[d] - 1);
        // Sources in each row along x, and target boxes in the same column of x as this one.
        let mut rows: Vec<([i64; D], [f64; TRIED.len()], [f64; TRIED.len()])> = vec![];
        let (first, last) = (*range(0).start(), *range(0).end());
        let mut push = |y: Option<i64>, z: Option<i64>| {
            let mut from = *cell;
            from[0] = first;
            let mut column = *cell;
            for (d, at) in [(1, y), (2, z)] {
                if let Some(at) = at {
                    (from[d], column[d]) = (at, at);
                }
            }
            let (mut row, mut same) = ([0.0; TRIED.len()], [0.0; TRIED.len()]);
            for b in sources.row(self.lattice, &from, last) {
                for (n, &t) in row.iter_mut().zip(&TRIED) {
                    *n += f64::from(u8::from(sources.count(b) >= t));
                }
            }
            if let Some(t) = targets.find(self.lattice, &column) {
                for (n, &least) in same.iter_mut().zip(&TRIED) {
                    *n += f64::from(u8::from(targets.count(t) >= least));
                }
            }
            rows.push((column, row, same));
        };
        match D {
            1 => push(None, None),
            2 => range(1).for_each(|y| push(Some(y), None)),
            _ => range(2).for_each(|z| range(1).for_each(|y| push(Some(y), Some(z)))),
        }
        for i in 0..TRIED.len() - 1 {
            for k in 0..TRIED.len() - 1 {
                let (matrix, turn) = (self.costs.matrix, self.costs.turn);
                let mut sum = turn;
                let shared: f64 = rows.iter().map(|r| r.2[k]).sum::<f64>().max(1.0);
                // Along x: results of each row are shared with all targets of the plane.
                sum += rows.iter().filter(|r| r.1[i] > 0.0).map(|r| r.1[i] * matrix + turn).sum::<f64>()
                    / if D == 1 { 1.0 } else { shared };
                if D > 2 {
                    // Along y: those of each z are shared with the targets of the line along z.
                    let (mut line, mut lines) = (0.0f64, 0.0);
                    for plane in rows.chunk_by(|a, b| a.0[2] == b.0[2]) {
                        let boxes = plane.iter().filter(|r| r.1[i] > 0.0).count() as f64;
                        if boxes > 0.0 {
                            lines += boxes * matrix + turn;
                            sum += matrix;
                        }
                        line += plane.iter().filter(|r| r.0[1] == cell[1]).map(|r| r.2[k]).sum::<f64>();
                    }
                    sum += lines / line.max(1.0);
                } else if D == 2 {
                    sum += rows.iter().filter(|r| r.1[i] > 0.0).count() as f64 * matrix;
                }
                cost[i][k] = sum;
            }
        }
        cost
    }
}
