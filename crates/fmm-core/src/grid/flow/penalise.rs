//! Solid bodies in a flow by penalisation (Angot et al. 1999; Coquerelle & Cottet 2008), and the forces on them.
//!
//! ∂u/∂t = λ χ (u_b − u) within a body, implicit over a step with the velocity that follows from ω' = ω + ∇ × q, q = λ dt χ (u_b − u'): see
//! `constraint.rs`. The force on a body is the integral of −q/dt. That on all bodies is also −dI/dt with the impulse I = ½ ∫ x × ω, and their moment
//! −dA/dt + U × I with A = −½ ∫ |x|² ω and the inflow U: a formula that knows nothing of bodies, and sees what the motion fails to conserve.
//! What a step leaves out at its end, below the cutoff or where blocks are joined, takes its
//! impulse with it. That is no force: it is `Loads::lost`.

use super::super::bodies::{Body, Inflow, Pose};
use super::super::poisson::Solution;
use super::Flow;
use super::store::FieldStore;
use crate::math::cross;
use crate::{Error, StageTimes};

/// What a flow is subject to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions {
    /// The uniform flow far away, which is added to ∇ × Ψ.
    pub inflow: Inflow,
    /// Solid bodies.
    pub bodies: Vec<Body>,
    /// λ h/U, 100 for example, with the largest speed U of fluid that is to be stopped: within a body what slips through in the time that the
    /// stream takes for a cell falls by this factor.
    pub penalty: f64,
}

/// How many of the smallest cells the stream may pass a body by in a step whose length is given. A
/// step penalises once, at its start: the further the stream goes in it, the more of it enters the
/// body. Bodies are four cells wide at least.
pub const PASSED: f64 = 2.0;

impl Conditions {
    /// The longest step that bodies allow on cells of side `h`: in it the stream passes none of
    /// them by more than [`PASSED`] cells. It is infinity where nothing moves.
    pub fn longest_step(&self, h: f64) -> f64 {
        PASSED * self.cell_time(h)
    }

    /// The time in which the stream passes the fastest body by one cell of side `h`.
    fn cell_time(&self, h: f64) -> f64 {
        let length = |v: [f64; 3]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let inflow = length(self.inflow.velocity);
        let speeds = self.bodies.iter().map(|b| inflow + length(b.velocity) + length(b.spin) * b.extent());
        h / speeds.fold(0.0, f64::max)
    }
}

/// A force and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// The force on a body, for a fluid of density 1.
    pub force: [f64; 3],
    /// Its moment.
    pub moment: [f64; 3],
}

impl Load {
    /// Adds `factor` times another.
    pub(super) fn add(&mut self, factor: f64, other: &Load) {
        for k in 0..3 {
            self.force[k] += factor * other.force[k];
            self.moment[k] += factor * other.moment[k];
        }
    }
}

/// Mean forces of the fluid on bodies over a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loads {
    /// On each body by penalisation; moments about its center.
    pub bodies: Vec<Load>,
    /// On all bodies by penalisation; the moment about the middle of the domain.
    pub total: Load,
    /// The same by the change of the impulse up to the end of a step, before [`lost`](Self::lost).
    pub impulse: Load,
    /// The rate of the impulse of what a step leaves out at its end: with `impulse` it is −dI/dt.
    pub lost: Load,
}

impl Loads {
    /// None yet, on `bodies` bodies.
    pub fn none(bodies: usize) -> Self {
        Loads { bodies: vec![Load::default(); bodies], ..Loads::default() }
    }

    /// All of them in one row: the total, by the impulse, what is lost, and each body; a force
    /// before its moment.
    pub fn numbers(&self) -> Vec<f64> {
        let all = [&self.total, &self.impulse, &self.lost].into_iter().chain(&self.bodies);
        all.flat_map(|l| l.force.into_iter().chain(l.moment)).collect()
    }

    /// The inverse of [`numbers`](Self::numbers); none yet for a row of another length.
    pub(super) fn of(bodies: usize, numbers: &[f64]) -> Self {
        let rows: Vec<Load> =
            numbers.chunks_exact(6).map(|n| Load { force: [n[0], n[1], n[2]], moment: [n[3], n[4], n[5]] }).collect();
        match &rows[..] {
            [total, impulse, lost, own @ ..] if own.len() == bodies => {
                Loads { bodies: own.to_vec(), total: *total, impulse: *impulse, lost: *lost }
            }
            _ => Loads::none(bodies),
        }
    }

    /// Adds `factor` times others.
    pub(super) fn add(&mut self, factor: f64, other: &Loads) {
        self.bodies.iter_mut().zip(&other.bodies).for_each(|(a, b)| a.add(factor, b));
        self.total.add(factor, &other.total);
        self.impulse.add(factor, &other.impulse);
        self.lost.add(factor, &other.lost);
    }
}

/// The impulse I = ½ ∫ x × ω and the angular impulse A = −½ ∫ |x|² ω.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Impulse {
    /// I.
    pub linear: [f64; 3],
    /// A.
    pub angular: [f64; 3],
}

impl Impulse {
    /// The sum of those of blocks, in their order.
    pub fn sum(blocks: &[Impulse]) -> Impulse {
        blocks.iter().fold(Impulse::default(), |mut all, b| {
            (0..3).for_each(|k| {
                (all.linear[k], all.angular[k]) = (all.linear[k] + b.linear[k], all.angular[k] + b.angular[k])
            });
            all
        })
    }
}

impl<F> Flow<F> {
    /// The bodies at a time.
    pub(super) fn poses(&self, time: f64) -> Vec<Pose> {
        self.conditions.bodies.iter().map(|b| b.at(time)).collect()
    }

    /// h of the finest level, which the blocks around bodies are of.
    pub(super) fn smallest(&self) -> f64 {
        self.lattice.spacing(self.method.thresholds.finest)
    }

    fn middle(&self) -> [f64; 3] {
        self.lattice.corner.map(|c| c + self.lattice.side / 2.0)
    }

    /// The longest step in which fluid and bodies pass each other by half a cell: a step penalises once, at its start, when the gradients of a
    /// flow that begins to move are still none.
    pub(super) fn passing(&self) -> f64 {
        0.5 * self.conditions.cell_time(self.smallest())
    }

    /// Gives the fluid within bodies their velocity: `solution` has the velocity of this state. Returns the momentum that each body, and in
    /// the end all of them, take from the fluid. `span` is the longest that the step may become.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for bodies that overlap or reach the faces of the domain; those of
    /// [`FieldStore::solve`].
    pub(super) fn penalise<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        solution: &mut Solution<F>,
        (time, span): (f64, f64),
        times: &mut StageTimes,
    ) -> Result<Vec<Load>, Error> {
        let (poses, middle) = (self.poses(time), self.middle());
        let mut loads = vec![Load::default(); poses.len() + 1];
        let (inflow, constraint) = (self.conditions.inflow.at(time), self.constraint(&poses)?);
        let numbers: Vec<u32> = constraint.cells.iter().map(|held| held.cell).collect();
        let velocity = store.pick(&solution.velocity, &numbers)?;
        let constraint = constraint.against(self.conditions.penalty, (&velocity, inflow, span));
        let changes = constraint.change(store, (&velocity, inflow, span), times)?;
        if changes.iter().all(|q| *q == [0.0; 3]) {
            return Ok(loads);
        }
        let volume = self.smallest().powi(3);
        for (held, q) in constraint.cells.iter().zip(&changes) {
            let taken = q.map(|q| -volume * q);
            for (load, about) in [(held.body, poses[held.body].center), (poses.len(), middle)] {
                let arm = std::array::from_fn(|k| held.center[k] - about[k]);
                loads[load].add(1.0, &Load { force: taken, moment: cross(arm, taken) });
            }
        }
        let field = store.put(&self.grid, &numbers, &changes)?;
        let added = store.curl(&self.grid, &field)?;
        let more = store.solve(&self.grid, &added, times)?;
        store.add(&mut self.vorticity, &added)?;
        store.add(&mut solution.velocity, &more.velocity)?;
        Ok(loads)
    }

    /// I and A about the middle of the domain; zero without bodies, which nobody asks for.
    pub(super) fn impulse<S: FieldStore<Field = F> + ?Sized>(&self, store: &mut S) -> Result<Impulse, Error> {
        match self.conditions.bodies.is_empty() {
            true => Ok(Impulse::default()),
            false => store.impulse(&self.grid, &self.vorticity, self.middle()),
        }
    }

    /// Mean forces over a step, from what the bodies took and from I and A before it, after it, and
    /// without what it leaves out at its end.
    pub(super) fn loads_over(
        &self,
        taken: &[Load],
        [before, after, kept]: [Impulse; 3],
        (time, dt): (f64, f64),
    ) -> Loads {
        let Some((all, own)) = taken.split_last().filter(|(_, own)| !own.is_empty()) else { return Loads::none(0) };
        let per_time = |load: &Load| {
            let mut mean = Load::default();
            mean.add(1.0 / dt, load);
            mean
        };
        let carried = [(time, before), (time + dt, after)].map(|(t, i)| cross(self.conditions.inflow.at(t), i.linear));
        let impulse = Load {
            force: std::array::from_fn(|k| (before.linear[k] - after.linear[k]) / dt),
            moment: std::array::from_fn(|k| {
                (before.angular[k] - after.angular[k]) / dt + 0.5 * (carried[0][k] + carried[1][k])
            }),
        };
        let lost = Load {
            force: std::array::from_fn(|k| (after.linear[k] - kept.linear[k]) / dt),
            moment: std::array::from_fn(|k| (after.angular[k] - kept.angular[k]) / dt),
        };
        Loads { bodies: own.iter().map(per_time).collect(), total: per_time(all), impulse, lost }
    }
}
