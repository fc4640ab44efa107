//! A step of a flow: particles move, are stretched and exchange vorticity, and become cells again.

use super::super::blocks::Grid;
use super::super::poisson::Solution;
use super::particles::remeshed;
use super::penalise::{Impulse, Loads, PASSED};
use super::store::{FieldStore, Now};
use super::{Flow, Method, Scheme, short};
use crate::{Error, StageTimes};

/// The largest ν dt/h². The differences of a wave of two cells a period in all directions are −16/h² of it, and the midpoint rule is
/// stable to −2.
pub const FOURIER: f64 = 0.125;

/// On several levels: how many of the finest cells a particle may pass in a step. Particles around the blocks of a level are made a block
/// deep.
const FARTHEST: f64 = 8.0;

impl Method {
    /// The longest step that diffusion allows on cells of side `h`: infinity without viscosity.
    pub fn longest_step(&self, h: f64) -> f64 {
        if self.viscosity > 0.0 { FOURIER * h * h / self.viscosity } else { f64::INFINITY }
    }
}

impl<F> Flow<F> {
    /// Goes on from `time` by `span`: in one step, or where the method limits dt |∇u| in as many as that, diffusion and bodies ask for,
    /// each of what is left divided by a whole number. `now` is the solution of this state, if it is known.
    ///
    /// # Errors
    /// [`Error::Range`] for a step that diffusion does not allow ([`Method::longest_step`]); [`Error::Unsupported`] for one that is too long for blocks that
    /// adapt, where more than 10⁶ steps are asked for, where bodies overlap or are near the faces
    /// of the domain, and where vorticity has reached them; those of [`FieldStore::solve`].
    pub fn step<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        (time, span): (f64, f64),
        mut now: Option<Solution<F>>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let mut loads = Loads::none(self.conditions.bodies.len());
        let mut done = 0.0;
        loop {
            let mut solution = match now.take() {
                Some(solution) => solution,
                None => self.solve(store, time + done, times)?,
            };
            let before = self.impulse(store)?;
            let taken = self.penalise(store, &mut solution, (time + done, self.expected(span - done)), times)?;
            let motion = store.motion(&self.grid, &solution.velocity)?;
            let parts = self.parts(store, span - done, (&solution.velocity, &motion))?;
            let dt = (span - done) / parts as f64;
            let after = self.advance(store, (time + done, dt), (&solution, &motion), times)?;
            let impulses = [before, after, self.impulse(store)?];
            loads.add(dt / span, &self.loads_over(&taken, impulses, (time + done, dt)));
            self.steps += 1;
            if parts == 1 {
                self.loads = loads;
                return Ok(());
            }
            done += dt;
        }
    }

    /// How long a step of bodies will be, as far as gradients are not known yet.
    fn expected(&self, span: f64) -> f64 {
        let longest = self.method.longest_step(self.grid.spacing(self.grid.finest())).min(self.passing());
        if self.method.lagrangian.is_some() { span.min(longest) } else { span }
    }

    /// The number of steps that `span` is to be divided into.
    fn parts<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        span: f64,
        (velocity, motion): (&F, &S::Motion),
    ) -> Result<u64, Error> {
        // Rounding of a step that was computed as the longest one counts for nothing.
        const ROUNDING: f64 = 1.0 + 1e-9;
        let h = self.grid.spacing(self.grid.finest());
        let diffusion = self.method.longest_step(h);
        let crossing = match self.method.thresholds.finest {
            0 => f64::INFINITY,
            _ => FARTHEST * h / store.fastest(&self.vorticity, velocity)?,
        };
        let Some(limit) = self.method.lagrangian else {
            if span > diffusion * ROUNDING {
                let value = span / diffusion * FOURIER;
                return Err(Error::Range { what: "viscosity*dt/h^2", value, range: "0 to 0.125" });
            }
            let passing = self.conditions.longest_step(self.smallest());
            if span > passing * ROUNDING {
                let what = format!(
                    "in a step of {} the stream passes a body by {} of the smallest cells, and {PASSED} are allowed; \
                     make time.dt at most {}, or \"auto\"",
                    short(span),
                    short(span / passing * PASSED),
                    short(0.995 * passing)
                );
                return Err(Error::Unsupported(what));
            }
            if span > crossing * ROUNDING {
                // Rounded down, so that what it names is allowed.
                let what = format!(
                    "a step of {} carries vorticity over {} of the smallest cells, and on blocks that adapt {FARTHEST} \
                     are allowed; make time.dt at most {}, or \"auto\"",
                    short(span),
                    short(span / crossing * FARTHEST),
                    short(0.995 * crossing)
                );
                return Err(Error::Unsupported(what));
            }
            return Ok(1);
        };
        let steepest = store.steepest(&self.vorticity, motion)?;
        let longest = diffusion.min(limit / steepest).min(self.passing()).min(crossing);
        let parts = (span / longest / ROUNDING).ceil().max(1.0);
        if parts > 1e6 {
            let what = "a whole step would be divided into more than a million; make time.viscosity and velocities smaller, \
                        or the cells or the interval between outputs larger";
            return Err(Error::Unsupported(format!("{} steps: {what}", short(parts))));
        }
        Ok(parts as u64)
    }

    /// A step of length `dt` from the velocity and its gradients in the cells. Returns the impulse
    /// at its end, before [`trim`](Self::trim) leaves anything out.
    fn advance<S: FieldStore<Field = F> + ?Sized>(
        &mut self,
        store: &mut S,
        (time, dt): (f64, f64),
        (solution, motion): (&Solution<F>, &S::Motion),
        times: &mut StageTimes,
    ) -> Result<Impulse, Error> {
        let diffused = self.diffused(store, &self.grid, &self.vorticity)?;
        let (vorticity, velocity) = (&self.vorticity, &solution.velocity);
        let now = Now { vorticity, velocity, motion, diffused: diffused.as_ref() };
        let (grid, mut particles, first) = self.particles(store, &now, dt)?;
        match self.method.scheme {
            Scheme::RungeKutta2 => {
                let mut middle = store.copy(&particles)?;
                store.advance(&mut middle, &first, 0.5 * dt)?;
                let rates = self.rates(store, time + 0.5 * dt, (&grid, &middle), times)?;
                store.advance(&mut particles, &rates, dt)?;
            }
            Scheme::RungeKutta3 => {
                let mut kept = first;
                // When a stage is, and its factors.
                let stages =
                    [(0.0, 0.0, 1.0 / 3.0), (1.0 / 3.0, -5.0 / 9.0, 15.0 / 16.0), (0.75, -153.0 / 128.0, 8.0 / 15.0)];
                for (part, a, b) in stages {
                    if part > 0.0 {
                        let rates = self.rates(store, time + part * dt, (&grid, &particles), times)?;
                        store.blend(&mut kept, a, &rates)?;
                    }
                    store.advance(&mut particles, &kept, b * dt)?;
                }
            }
        }
        let placed = self.placed(store, &particles)?;
        (self.grid, self.vorticity) = remeshed(store, &grid, (&placed, &particles))?;
        let impulse = self.impulse(store)?;
        self.trim(store, time + dt, true)?;
        Ok(impulse)
    }

    /// ν ∇²ω in all cells; `None` without viscosity.
    fn diffused<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        grid: &Grid,
        vorticity: &F,
    ) -> Result<Option<F>, Error> {
        let viscosity = self.method.viscosity;
        (viscosity > 0.0).then(|| store.laplacian(grid, vorticity, viscosity)).transpose()
    }

    /// u and (ω·∇)u + ν ∇²ω at the particles of each level, whose grid is that of the step.
    fn rates<S: FieldStore<Field = F> + ?Sized>(
        &self,
        store: &mut S,
        time: f64,
        (like, particles): (&Grid, &S::Particles),
        times: &mut StageTimes,
    ) -> Result<S::Rates, Error> {
        let placed = self.placed(store, particles)?;
        let (grid, field) = remeshed(store, like, (&placed, particles))?;
        let (grid, field) = self.surrounded(store, (&grid, &field), vec![])?;
        let solution = self.velocities(store, time, (&grid, &field), times)?;
        let motion = store.motion(&grid, &solution.velocity)?;
        let diffused = self.diffused(store, &grid, &field)?;
        store.rates(&grid, (&placed, particles), &motion, diffused.as_ref())
    }
}
