//! Penalisation that is implicit in the projection too: which momentum bodies give to the fluid so
//! that its velocity within them is theirs.
//!
//! A force that stops the fluid in some cells makes a velocity that is no curl. What the curl of
//! the change leaves is only a part of it, two thirds of a uniform stream in a sphere for example.
//! So one penalisation a step lets fluid slip, by an amount that depends on how many steps there
//! are (Hejlesen et al. 2015). Here the change q, per volume, solves q = −m (u + A q − w) with m =
//! λ dt χ, the velocity w of the body, and A q, the velocity of the vorticity ∇ × q. Divided by 1 +
//! m, it is solved by the method of generalized conjugate residuals (Eisenstat, Elman & Schultz
//! 1983). A is not quite symmetric: differences and the solver's sums see short waves differently.

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::super::bodies::Pose;
use super::store::FieldStore;
use super::{Flow, short};
use crate::math::CollectVec;
use crate::{Error, StageTimes};

/// What may be left of the slip that a step found.
const OF_SLIP: f64 = 0.01;
/// What may be left of the speed at which the stream passes a body, where a step goes one cell: a
/// force that a longer step finds is not better known for less slip.
const OF_STREAM: f64 = 0.004;
/// The most velocities that are solved for in a step; what then is left of the slip is for the
/// next.
const ROUNDS: usize = 40;

/// Cells around bodies that differences of their velocities reach.
const MARGIN: f64 = 4.0;

/// A cell of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Its number in the flow's grid.
    pub cell: u32,
    /// Its number among the cells of the blocks around bodies.
    near: u32,
    /// Which body it is of.
    pub body: usize,
    /// Its center.
    pub center: [f64; 3],
    /// χ, or λ dt χ.
    strength: f64,
    /// The velocity of the body there.
    wanted: [f64; 3],
}

/// The cells of bodies and the blocks around them.
pub(super) struct Constraint {
    grid: Grid,
    pub cells: Vec<Held>,
}

impl<F> Flow<F> {
    /// The cells of the bodies.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for bodies that overlap: what each of them takes would say nothing;
    /// and for one that reaches the faces of the domain.
    pub(super) fn constraint(&self, poses: &[Pose]) -> Result<Constraint, Error> {
        // Blocks from which differences and the velocities of bodies' cells may be asked for.
        let radius = 0.5 * 3f64.sqrt() * BLOCK as f64;
        let (h, finest) = (self.smallest(), self.method.thresholds.finest);
        for (p, pose) in poses.iter().enumerate() {
            let margin = self.conditions.bodies[p].extent() + MARGIN * h;
            let outside = |d: usize| {
                let from = pose.center[d] - self.lattice.corner[d];
                from < margin || from > self.lattice.side - margin
            };
            if (0..3).any(outside) {
                let at = pose.center.map(short).join(", ");
                let what = "nearer to a face of the domain than its extent and four cells; end the run earlier by time.end, \
                            or start anew with a larger grid.side";
                return Err(Error::Unsupported(format!("body {p}, whose center is at {at}, is {what}")));
            }
        }
        let is_near = |block: &&Block| {
            if block.level != finest {
                return false;
            }
            let center: [f64; 3] = std::array::from_fn(|d| self.grid.coordinate(**block, d, 0) + 7.5 * h);
            poses.iter().any(|p| p.meets(center, radius * h, MARGIN * h))
        };
        // Of one level: bodies lie within blocks of the finest.
        let grid = self.lattice.grid(self.grid.blocks().iter().filter(is_near).copied());
        let whole = &self.grid;
        let of_block = |(n, &block): (usize, &Block)| {
            let b = whole.number(block).expect("a block of the flow");
            let parts: Vec<Vec<Option<f64>>> = poses.iter().map(|pose| masks_of_parts(pose, &grid, block)).collect();
            let mut cells = vec![];
            for c in 0..CELLS {
                let center = grid.center(block, split(c));
                let mask = |p: usize, pose: &Pose| parts[p][part(c)].unwrap_or_else(|| pose.mask(center, h));
                let masks = poses.iter().enumerate().map(|(p, pose)| (p, pose, mask(p, pose)));
                let mut own = masks.filter(|o| o.2 > 0.0);
                let Some((body, pose, mask)) = own.next() else { continue };
                if let Some((other, ..)) = own.next() {
                    let what = "overlap; keep them at a distance by their centers or their motion";
                    return Err(Error::Unsupported(format!("bodies {body} and {other} {what}")));
                }
                let wanted = pose.velocity(center);
                let [cell, near] = [b, n].map(|block| (block * CELLS + c) as u32);
                cells.push(Held { cell, near, body, center, strength: mask, wanted });
            }
            Ok(cells)
        };
        let by_block = grid.blocks().par_iter().enumerate().map(of_block).collect_vec();
        let by_block = by_block.into_iter().collect::<Result<Vec<_>, Error>>()?;
        Ok(Constraint { grid, cells: by_block.concat() })
    }
}

/// Cells a side of the parts of a block that may have one mask: to ask for the distance from a
/// surface of many triangles costs more than all else that is done with a cell.
const PART: usize = 4;
/// Parts along a side of a block.
const PARTS: usize = BLOCK / PART;

/// The part of a block that a cell is in.
fn part(cell: usize) -> usize {
    let [i, j, k] = split(cell).map(|i| i as usize / PART);
    i + PARTS * (j + PARTS * k)
}

/// χ of each part of a block where it is the same in all of it.
fn masks_of_parts(pose: &Pose, grid: &Grid, block: Block) -> Vec<Option<f64>> {
    let h = grid.spacing(block.level);
    let half = 0.5 * (PART - 1) as f64;
    let of_part = |p: usize| {
        let parts = [p % PARTS, p / PARTS % PARTS, p / (PARTS * PARTS)];
        let center = std::array::from_fn(|d| grid.coordinate(block, d, 0) + ((PART * parts[d]) as f64 + half) * h);
        pose.mask_of_ball(center, half * 3f64.sqrt() * h, h)
    };
    (0..PARTS * PARTS * PARTS).map(of_part).collect()
}

impl Constraint {
    /// The same with the strengths for a step of about `dt`; `velocity` is that of the cells, with
    /// `inflow`.
    pub fn against(mut self, penalty: f64, (velocity, inflow, dt): (&[[f64; 3]], [f64; 3], f64)) -> Self {
        // λ is of the flow, not of the step: else shorter steps would stop more of the cells at the
        // surface.
        let speed = |(held, u): (&Held, &[f64; 3])| {
            let from = |u: [f64; 3]| (0..3).map(|k| (u[k] - held.wanted[k]).powi(2)).sum::<f64>();
            from(*u).max(from(inflow))
        };
        let fastest = self.cells.iter().zip(velocity).map(speed).fold(0.0, f64::max).sqrt();
        let strength = penalty * fastest * dt / self.grid.spacing(self.grid.finest());
        self.cells.iter_mut().for_each(|held| held.strength *= strength);
        self
    }

    /// The change of the momentum of each cell, per volume; `velocity` is that of the cells before,
    /// with `inflow`, and the step is about `dt`.
    ///
    /// # Errors
    /// Those of [`FieldStore::solve`].
    pub fn change<S: FieldStore + ?Sized>(
        &self,
        store: &mut S,
        (velocity, inflow, dt): (&[[f64; 3]], [f64; 3], f64),
        times: &mut StageTimes,
    ) -> Result<Vec<[f64; 3]>, Error> {
        let once = |(held, u): (&Held, &[f64; 3])| {
            let part = held.strength / (1.0 + held.strength);
            std::array::from_fn(|k| -part * (u[k] - held.wanted[k]))
        };
        let mut residual: Vec<[f64; 3]> = self.cells.iter().zip(velocity).map(once).collect();
        let numbers: Vec<u32> = self.cells.iter().map(|held| held.near).collect();
        let mut change = vec![[0.0; 3]; self.cells.len()];
        let passing = |held: &Held| std::array::from_fn(|k| inflow[k] - held.wanted[k]);
        let stream = square(&self.cells.iter().map(passing).collect::<Vec<_>>());
        let cells = dt / self.grid.spacing(self.grid.finest()) * (stream / self.cells.len().max(1) as f64).sqrt();
        let limit = (OF_SLIP * OF_SLIP * square(&residual)).max((OF_STREAM * cells).powi(2) * stream);
        // Directions, and what the operator makes of them, each of length 1.
        let mut tried: Vec<[Vec<[f64; 3]>; 2]> = vec![];
        while square(&residual) > limit && tried.len() < ROUNDS {
            let mut direction = residual.clone();
            let mut image = self.applied(store, &numbers, &direction, times)?;
            for [d, i] in &tried {
                let part = -dot(&image, i);
                add(&mut direction, part, d);
                add(&mut image, part, i);
            }
            let length = square(&image).sqrt();
            // Velocities that no vorticity could change.
            if length <= 1e-12 * square(&residual).sqrt() {
                break;
            }
            for v in [&mut direction, &mut image] {
                v.par_iter_mut().with_min_len(TOGETHER).for_each(|v| *v = v.map(|v| v / length));
            }
            let part = dot(&residual, &image);
            add(&mut change, part, &direction);
            add(&mut residual, -part, &image);
            tried.push([direction, image]);
        }
        Ok(change)
    }

    /// (q + m A q)/(1 + m).
    fn applied<S: FieldStore + ?Sized>(
        &self,
        store: &mut S,
        numbers: &[u32],
        change: &[[f64; 3]],
        times: &mut StageTimes,
    ) -> Result<Vec<[f64; 3]>, Error> {
        let field = store.put(&self.grid, numbers, change)?;
        let turning = store.curl(&self.grid, &field)?;
        let solution = store.solve(&self.grid, &turning, times)?;
        let velocity = store.pick(&solution.velocity, numbers)?;
        let of_cell = |((held, q), u): ((&Held, &[f64; 3]), &[f64; 3])| {
            std::array::from_fn(|k| (q[k] + held.strength * u[k]) / (1.0 + held.strength))
        };
        Ok(self.cells.par_iter().zip(change).zip(&velocity).map(of_cell).collect_vec())
    }
}

/// Products are summed in chunks of so many cells, then the chunks in their order: the same for any
/// number of threads.
const TOGETHER: usize = 1024;

fn dot(a: &[[f64; 3]], b: &[[f64; 3]]) -> f64 {
    let of = |(a, b): (&[[f64; 3]], &[[f64; 3]])| -> f64 {
        a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| a * b).sum()
    };
    a.par_chunks(TOGETHER).zip(b.par_chunks(TOGETHER)).map(of).collect_vec().iter().sum()
}

fn square(a: &[[f64; 3]]) -> f64 {
    dot(a, a)
}

fn add(to: &mut [[f64; 3]], factor: f64, other: &[[f64; 3]]) {
    to.par_iter_mut().zip(other).with_min_len(TOGETHER).for_each(|(a, b)| (0..3).for_each(|k| a[k] += factor * b[k]));
}
