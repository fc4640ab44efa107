//! A step of a flow: particles move, are stretched and exchange vorticity, and become cells again.

use rayon::prelude::*;

use super::super::blocks::{CELLS, Grid};
use super::super::differences::{gradients, laplacian, stretched};
use super::super::poisson::{Solution, Solve};
use super::super::remesh::Placed;
use super::penalise::Loads;
use super::support::{left, surrounded};
use super::{Flow, Method, Scheme};
use crate::math::CollectVec;
use crate::{Error, StageTimes};

/// The largest ν dt/h². The differences of a wave of two cells a period in all directions are −16/h² of it, and the midpoint rule is
/// stable to −2.
pub const FOURIER: f64 = 0.125;

impl Method {
    /// The longest step that diffusion allows on cells of side `h`: infinity without viscosity.
    pub fn longest_step(&self, h: f64) -> f64 {
        if self.viscosity > 0.0 { FOURIER * h * h / self.viscosity } else { f64::INFINITY }
    }
}

impl Flow {
    /// Goes on from `time` by `span`: in one step, or where the method limits dt |∇u| in as many as that, diffusion and bodies ask for,
    /// each of what is left divided by a whole number. `now` is the solution of this state, if it is known.
    ///
    /// # Errors
    /// [`Error::Range`] for a step that diffusion does not allow ([`Method::longest_step`]); [`Error::Unsupported`] where more than 10⁶ steps are asked
    /// for, where bodies overlap or are near the faces of the domain, and where vorticity has reached them; those of [`Solve::solve`].
    pub fn step(
        &mut self,
        solver: &mut dyn Solve,
        (time, span): (f64, f64),
        mut now: Option<Solution>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let mut loads = Loads::none(self.conditions.bodies.len());
        let mut done = 0.0;
        loop {
            let mut solution = match now.take() {
                Some(solution) => solution,
                None => self.solve(solver, time + done, times)?,
            };
            let before = self.impulse();
            let taken = self.penalise(solver, &mut solution, (time + done, self.expected(span - done)), times)?;
            let slopes = gradients(&self.grid, &self.vorticity, &solution.velocity);
            let parts = self.parts(span - done, &slopes)?;
            let dt = (span - done) / parts as f64;
            self.advance(solver, (time + done, dt), (&solution, &slopes), times)?;
            loads.add(dt / span, &self.loads_over(&taken, before, (time + done, dt)));
            if parts == 1 {
                self.loads = loads;
                return Ok(());
            }
            done += dt;
        }
    }

    /// How long a step of bodies will be, as far as gradients are not known yet.
    fn expected(&self, span: f64) -> f64 {
        let longest = self.method.longest_step(self.lattice.spacing()).min(self.passing());
        if self.method.lagrangian.is_some() { span.min(longest) } else { span }
    }

    /// The number of steps that `span` is to be divided into.
    fn parts(&self, span: f64, slopes: &[[[f64; 3]; 3]]) -> Result<u64, Error> {
        // Rounding of a step that was computed as the longest one counts for nothing.
        const ROUNDING: f64 = 1.0 + 1e-9;
        let diffusion = self.method.longest_step(self.lattice.spacing());
        let Some(limit) = self.method.lagrangian else {
            if span > diffusion * ROUNDING {
                let value = span / diffusion * FOURIER;
                return Err(Error::Range { what: "viscosity*dt/h^2", value, range: "0 to 0.125" });
            }
            return Ok(1);
        };
        let square = |g: &[[f64; 3]; 3]| g.as_flattened().iter().map(|g| g * g).sum::<f64>();
        let steepest = slopes.par_iter().map(square).reduce(|| 0.0, f64::max).sqrt();
        let longest = diffusion.min(limit / steepest).min(self.passing());
        let parts = (span / longest / ROUNDING).ceil().max(1.0);
        if parts > 1e6 {
            let what = "a whole step would be divided into more than a million; make time.viscosity and velocities smaller, \
                        or the cells or the interval between outputs larger";
            return Err(Error::Unsupported(format!("{parts:.1e} steps: {what}")));
        }
        Ok(parts as u64)
    }

    /// A step of length `dt` from the velocity and its gradients in the cells.
    fn advance(
        &mut self,
        solver: &mut dyn Solve,
        (time, dt): (f64, f64),
        (solution, slopes): (&Solution, &[[[f64; 3]; 3]]),
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let diffused = self.diffused(&self.grid, &self.vorticity);
        // Cells that diffusion reaches are particles too.
        let carries = |&i: &usize| self.vorticity[i] != [0.0; 3] || diffused.as_ref().is_some_and(|d| d[i] != [0.0; 3]);
        let cells: Vec<usize> = (0..self.vorticity.len()).filter(carries).collect();
        let center = |&i: &usize| self.grid.center_of(i / CELLS, i % CELLS);
        let mut x: Vec<[f64; 3]> = cells.par_iter().map(center).collect_vec();
        let mut w: Vec<[f64; 3]> = cells.iter().map(|&i| self.vorticity[i]).collect();
        // At the first stage particles are at centers.
        let here = |&i: &usize| {
            let mut rate = stretched(self.vorticity[i], slopes[i]);
            if let Some(d) = &diffused {
                (0..3).for_each(|k| rate[k] += d[i][k]);
            }
            [solution.velocity[i], rate]
        };
        let first: Vec<[[f64; 3]; 2]> = cells.par_iter().map(here).collect_vec();
        let add = |to: &mut [[f64; 3]], rates: &[[[f64; 3]; 2]], which: usize, factor: f64| {
            to.par_iter_mut().zip(rates).for_each(|(v, r)| (0..3).for_each(|k| v[k] += factor * r[which][k]));
        };
        match self.method.scheme {
            Scheme::RungeKutta2 => {
                let (mut middle, mut turned) = (x.clone(), w.clone());
                add(&mut middle, &first, 0, 0.5 * dt);
                add(&mut turned, &first, 1, 0.5 * dt);
                let rates = self.rates(solver, time + 0.5 * dt, [&middle, &turned], times)?;
                add(&mut x, &rates, 0, dt);
                add(&mut w, &rates, 1, dt);
            }
            Scheme::RungeKutta3 => {
                let mut kept = first;
                // When a stage is, and its factors.
                let stages =
                    [(0.0, 0.0, 1.0 / 3.0), (1.0 / 3.0, -5.0 / 9.0, 15.0 / 16.0), (0.75, -153.0 / 128.0, 8.0 / 15.0)];
                for (part, a, b) in stages {
                    if part > 0.0 {
                        let rates = self.rates(solver, time + part * dt, [&x, &w], times)?;
                        kept.par_iter_mut().zip(rates).for_each(|(q, r)| {
                            for n in 0..2 {
                                (0..3).for_each(|k| q[n][k] = a * q[n][k] + r[n][k]);
                            }
                        });
                    }
                    add(&mut x, &kept, 0, b * dt);
                    add(&mut w, &kept, 1, b * dt);
                }
            }
        }
        let placed = self.placed(&x)?;
        self.grid = self.lattice.grid(placed.reached());
        self.vorticity = placed.scatter(&self.grid, &w);
        self.trim(time + dt)
    }

    fn placed(&self, x: &[[f64; 3]]) -> Result<Placed, Error> {
        Placed::new(&self.lattice, self.method.kernel, x).ok_or_else(left)
    }

    /// ν ∇²ω in all cells; `None` without viscosity.
    fn diffused(&self, grid: &Grid, vorticity: &[[f64; 3]]) -> Option<Vec<[f64; 3]>> {
        let viscosity = self.method.viscosity;
        (viscosity > 0.0).then(|| laplacian(grid, vorticity, viscosity))
    }

    /// u and (ω·∇)u + ν ∇²ω at particles.
    fn rates(
        &self,
        solver: &mut dyn Solve,
        time: f64,
        [x, w]: [&[[f64; 3]]; 2],
        times: &mut StageTimes,
    ) -> Result<Vec<[[f64; 3]; 2]>, Error> {
        let placed = self.placed(x)?;
        let reached = self.lattice.grid(placed.reached());
        let (grid, field) = surrounded(&self.lattice, &reached, &placed.scatter(&reached, w), vec![]);
        let solution = self.velocities(solver, time, (&grid, &field), times)?;
        let slopes = gradients(&grid, &field, &solution.velocity);
        let [a, b, c] = [0, 1, 2].map(|k| slopes.par_iter().map(|g| g[k]).collect_vec());
        let there = placed.gather(&grid, [&solution.velocity, &a, &b, &c]);
        let mut rates =
            there.into_par_iter().zip(w).map(|([u, a, b, c], &w)| [u, stretched(w, [a, b, c])]).collect_vec();
        if let Some(diffused) = self.diffused(&grid, &field) {
            let there = placed.gather(&grid, [&diffused]);
            rates.par_iter_mut().zip(there).for_each(|(r, [d])| (0..3).for_each(|k| r[1][k] += d[k]));
        }
        Ok(rates)
    }
}
