//! Inviscid flow in free space by the remeshed vortex method (Koumoutsakos 1997; Cottet & Koumoutsakos 2000).
//!
//! Particles are the cells with vorticity of a grid of one level. dx/dt = u(x), dω/dt = (ω·∇)u: at each stage of Runge & Kutta's scheme
//! particles give their vorticity to the cells around by M4', u follows from the Poisson solver and (ω·∇)u by differences of
//! it, and both come back to the particles by M4'. At the end of a step the cells become the particles of the next. There are blocks
//! only where there is vorticity, and around it as far as differences reach.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::poisson::{Solution, Solve};
use super::remesh::{Lattice, Placed, padded, stretching};
use super::vorticity::Vorticity;
use crate::{Error, StageTimes};

/// How a step is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// The midpoint rule.
    RungeKutta2,
    /// Williamson's scheme of third order with two registers (1980).
    #[default]
    RungeKutta3,
}

impl Scheme {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::RungeKutta2 => "rk2",
            Scheme::RungeKutta3 => "rk3",
        }
    }
}

/// A flow at one time.
#[derive(Debug, Clone)]
pub struct Flow {
    lattice: Lattice,
    scheme: Scheme,
    cutoff: f64,
    grid: Grid,
    vorticity: Vec<[f64; 3]>,
}

/// Integrals of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Integrals {
    /// ½ ∫ ω·Ψ, the kinetic energy of the flow in all of space.
    pub energy: f64,
    /// ∫ |ω|².
    pub enstrophy: f64,
    /// ∫ ω.
    pub total: [f64; 3],
    /// ½ ∫ x × ω, x from the middle of the domain.
    pub impulse: [f64; 3],
    /// The fluxes of ω through the half plane beyond the middle of the domain, x > x_m, y = y_m: that along y and that against it. Of rings about
    /// the line x_m, y_m, along z these are their circulations.
    pub circulation: [f64; 2],
    /// The largest |ω|.
    pub largest: f64,
    /// √(∫ (∇·ω)²/∫ |ω|²) h: what the particles have lost of being a curl.
    pub divergence: f64,
}

impl Flow {
    /// The flow with `vorticity` on a grid of `base`·16 cells a side. Below `cutoff` of the largest, vorticity is left out at the end of each
    /// step.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for vorticity at the faces of the domain.
    pub fn new(lattice: Lattice, vorticity: &dyn Vorticity, (scheme, cutoff): (Scheme, f64)) -> Result<Self, Error> {
        let base = lattice.base;
        let all = (0..base.pow(3)).into_par_iter().map(|n| {
            let block = Block { level: 0, index: [n % base, n / base % base, n / (base * base)] };
            let alone = lattice.grid([block]);
            let values = alone.sample(vorticity);
            values.iter().any(|w| *w != [0.0; 3]).then_some((block, values))
        });
        let filled: Vec<(Block, Vec<[f64; 3]>)> = all.flatten().collect();
        let grid = lattice.grid(filled.iter().map(|f| f.0));
        let mut field = vec![[0.0; 3]; grid.cells()];
        for (block, values) in filled {
            let b = grid.number(block).expect("the grid has its blocks");
            field[b * CELLS..(b + 1) * CELLS].copy_from_slice(&values);
        }
        let mut flow = Flow { lattice, scheme, cutoff, grid, vorticity: field };
        flow.trim()?;
        Ok(flow)
    }

    /// The cells that there are.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// ω of each.
    pub fn vorticity(&self) -> &[[f64; 3]] {
        &self.vorticity
    }

    /// Ψ and u, as `solver` finds them.
    ///
    /// # Errors
    /// Those of [`Solve::solve`].
    pub fn solve(&self, solver: &mut dyn Solve, times: &mut StageTimes) -> Result<Solution, Error> {
        solver.solve(&self.grid, &self.vorticity, times)
    }

    /// Goes on by `dt`. `now` is the solution of this state, if it is known.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where vorticity has come to the faces of the domain; those of [`Solve::solve`].
    pub fn step(
        &mut self,
        solver: &mut dyn Solve,
        dt: f64,
        now: Option<Solution>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let cells: Vec<usize> = (0..self.vorticity.len()).filter(|&i| self.vorticity[i] != [0.0; 3]).collect();
        let centre = |&i: &usize| self.grid.centre_of(i / CELLS, i % CELLS);
        let mut x: Vec<[f64; 3]> = cells.par_iter().map(centre).collect();
        let mut w: Vec<[f64; 3]> = cells.iter().map(|&i| self.vorticity[i]).collect();
        // At the first stage particles are at centres.
        let solution = match now {
            Some(solution) => solution,
            None => self.solve(solver, times)?,
        };
        let stretched = stretching(&self.grid, &self.vorticity, &solution.velocity);
        let first: Vec<[[f64; 3]; 2]> = cells.iter().map(|&i| [solution.velocity[i], stretched[i]]).collect();
        let add = |to: &mut [[f64; 3]], rates: &[[[f64; 3]; 2]], which: usize, factor: f64| {
            to.par_iter_mut().zip(rates).for_each(|(v, r)| (0..3).for_each(|k| v[k] += factor * r[which][k]));
        };
        match self.scheme {
            Scheme::RungeKutta2 => {
                let (mut middle, mut turned) = (x.clone(), w.clone());
                add(&mut middle, &first, 0, 0.5 * dt);
                add(&mut turned, &first, 1, 0.5 * dt);
                let rates = self.rates(solver, [&middle, &turned], times)?;
                add(&mut x, &rates, 0, dt);
                add(&mut w, &rates, 1, dt);
            }
            Scheme::RungeKutta3 => {
                let mut kept = first;
                for (stage, (a, b)) in
                    [(0.0, 1.0 / 3.0), (-5.0 / 9.0, 15.0 / 16.0), (-153.0 / 128.0, 8.0 / 15.0)].into_iter().enumerate()
                {
                    if stage > 0 {
                        let rates = self.rates(solver, [&x, &w], times)?;
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
        self.trim()
    }

    fn placed(&self, x: &[[f64; 3]]) -> Result<Placed, Error> {
        Placed::new(&self.lattice, x).ok_or_else(left)
    }

    /// u and (ω·∇)u at particles.
    fn rates(
        &self,
        solver: &mut dyn Solve,
        [x, w]: [&[[f64; 3]]; 2],
        times: &mut StageTimes,
    ) -> Result<Vec<[[f64; 3]; 2]>, Error> {
        let placed = self.placed(x)?;
        let reached = self.lattice.grid(placed.reached());
        let (grid, field) = surrounded(&self.lattice, &reached, &placed.scatter(&reached, w));
        let solution = solver.solve(&grid, &field, times)?;
        let stretched = stretching(&grid, &field, &solution.velocity);
        Ok(placed.gather(&grid, [&solution.velocity, &stretched]))
    }

    /// Leaves out what is below the cutoff, and has blocks as far as differences of u reach.
    fn trim(&mut self) -> Result<(), Error> {
        let square = |w: &[f64; 3]| w.iter().map(|w| w * w).sum::<f64>();
        let largest = self.vorticity.par_iter().map(square).reduce(|| 0.0, f64::max);
        let least = self.cutoff * self.cutoff * largest;
        self.vorticity.par_iter_mut().for_each(|w| {
            if square(w) < least {
                *w = [0.0; 3];
            }
        });
        let faces = self.lattice.base * BLOCK as u32;
        let near_face = self.vorticity.par_iter().enumerate().any(|(i, w)| {
            let (block, cell) = (self.grid.blocks()[i / CELLS], split(i % CELLS));
            let at = |d: usize| block.index[d] * BLOCK as u32 + cell[d] as u32;
            *w != [0.0; 3] && (0..3).any(|d| at(d) < 4 || at(d) + 4 >= faces)
        });
        if near_face {
            return Err(left());
        }
        (self.grid, self.vorticity) = surrounded(&self.lattice, &self.grid, &self.vorticity);
        Ok(())
    }

    /// Integrals of the flow; `solution` is that of its present state.
    pub fn integrals(&self, solution: &Solution) -> Integrals {
        let h = self.lattice.spacing();
        let middle = self.lattice.corner.map(|c| c + self.lattice.side / 2.0);
        let of_block = |(b, &block): (usize, &Block)| {
            let mut sums = Integrals::default();
            let own = &self.vorticity[b * CELLS..(b + 1) * CELLS];
            if own.iter().all(|w| *w == [0.0; 3]) {
                return sums;
            }
            let wide = padded(&self.grid, &self.vorticity, block);
            let across = BLOCK + 4;
            for (c, w) in own.iter().enumerate() {
                let (psi, cell) = (solution.psi[b * CELLS + c], split(c));
                let x: [f64; 3] = std::array::from_fn(|d| self.grid.coordinate(block, d, cell[d]) - middle[d]);
                sums.energy += 0.5 * (w[0] * psi[0] + w[1] * psi[1] + w[2] * psi[2]);
                let square = w[0] * w[0] + w[1] * w[1] + w[2] * w[2];
                sums.enstrophy += square;
                sums.largest = sums.largest.max(square.sqrt());
                for k in 0..3 {
                    let (a, b) = ((k + 1) % 3, (k + 2) % 3);
                    sums.total[k] += w[k];
                    sums.impulse[k] += 0.5 * (x[a] * w[b] - x[b] * w[a]);
                }
                // The plane lies between two layers of cells: half of each.
                if x[0] > 0.0 && x[1].abs() < h {
                    sums.circulation[usize::from(w[1] < 0.0)] += 0.5 * w[1].abs();
                }
                let here = (cell[0] + 2) as usize + across * ((cell[1] + 2) as usize + across * (cell[2] + 2) as usize);
                let along = |d: usize, step: usize| wide[here + step][d] - wide[here - step][d];
                let divergence = 0.5 * (along(0, 1) + along(1, across) + along(2, across * across));
                sums.divergence += divergence * divergence;
            }
            sums
        };
        let blocks: Vec<Integrals> = self.grid.blocks().par_iter().enumerate().map(of_block).collect();
        let mut all = Integrals::default();
        for b in blocks {
            all.energy += b.energy;
            all.enstrophy += b.enstrophy;
            all.divergence += b.divergence;
            all.largest = all.largest.max(b.largest);
            (0..3).for_each(|k| all.total[k] += b.total[k]);
            (0..3).for_each(|k| all.impulse[k] += b.impulse[k]);
            (0..2).for_each(|k| all.circulation[k] += b.circulation[k]);
        }
        let (volume, area) = (h * h * h, h * h);
        // Differences are per h, which the definition takes back.
        all.divergence = if all.enstrophy > 0.0 { (all.divergence / all.enstrophy).sqrt() } else { 0.0 };
        Integrals {
            energy: all.energy * volume,
            enstrophy: all.enstrophy * volume,
            total: all.total.map(|t| t * volume),
            impulse: all.impulse.map(|i| i * volume),
            circulation: all.circulation.map(|c| c * area),
            ..all
        }
    }
}

fn left() -> Error {
    Error::Unsupported("vorticity has come to the faces of the domain; make grid.side larger".into())
}

/// The blocks of a field with vorticity, and those that a cell with vorticity is nearer to than differences of u reach, with their values.
fn surrounded(lattice: &Lattice, grid: &Grid, field: &[[f64; 3]]) -> (Grid, Vec<[f64; 3]>) {
    // Two cells of a difference, two of M4'.
    const NEAR: i64 = 4;
    let across = i64::from(lattice.base);
    let needed = |(b, &block): (usize, &Block)| {
        let own = &field[b * CELLS..(b + 1) * CELLS];
        let (mut low, mut high) = ([BLOCK as i64; 3], [-1; 3]);
        for (c, _) in own.iter().enumerate().filter(|(_, w)| **w != [0.0; 3]) {
            let cell = split(c);
            for d in 0..3 {
                (low[d], high[d]) = (low[d].min(cell[d]), high[d].max(cell[d]));
            }
        }
        if high[0] < 0 {
            return vec![];
        }
        let near = |n: i64| {
            let offset = [n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1];
            let index: [i64; 3] = std::array::from_fn(|d| i64::from(block.index[d]) + offset[d]);
            let reached = (0..3).all(|d| match offset[d] {
                -1 => low[d] < NEAR,
                1 => high[d] >= BLOCK as i64 - NEAR,
                _ => true,
            });
            let there = reached && index.iter().all(|i| (0..across).contains(i));
            there.then(|| Block { level: 0, index: index.map(|i| i as u32) })
        };
        (0..27).filter_map(near).collect()
    };
    let blocks: Vec<Vec<Block>> = grid.blocks().par_iter().enumerate().map(needed).collect();
    let wider = lattice.grid(blocks.into_iter().flatten().collect::<BTreeSet<Block>>());
    let mut values = vec![[0.0; 3]; wider.cells()];
    values.par_chunks_mut(CELLS).zip(wider.blocks()).for_each(|(to, &block)| {
        if let Some(b) = grid.number(block) {
            to.copy_from_slice(&field[b * CELLS..(b + 1) * CELLS]);
        }
    });
    (wider, values)
}

#[cfg(test)]
mod tests {
    use super::super::poisson::Solver;
    use super::super::vorticity::{GaussianRing, Parts};
    use super::*;

    fn solver() -> Solver {
        Solver { leaf_size: 256, order: 4, theta: 0.6, ..Solver::default() }
    }

    fn flow(scheme: Scheme, base: u32, rings: &[GaussianRing]) -> Flow {
        let lattice = Lattice { corner: [-0.5; 3], side: 1.0, base };
        let rings = rings.iter().map(|&r| Box::new(r) as Box<dyn Vorticity>).collect();
        Flow::new(lattice, &Parts(rings), (scheme, 1e-4)).unwrap()
    }

    fn ring(z: f64, up: f64) -> GaussianRing {
        GaussianRing { centre: [0.0, 0.0, z], axis: [0.0, 0.0, up], radius: 0.2, core: 0.06, circulation: 1.0 }
    }

    fn integrals(flow: &Flow) -> Integrals {
        flow.integrals(&flow.solve(&mut solver(), &mut StageTimes::default()).unwrap())
    }

    /// Where the impulse is: ½ ∫ z (x × ω)_z over its integral.
    fn height(flow: &Flow) -> f64 {
        let (mut sum, mut all) = (0.0, 0.0);
        for (i, w) in flow.vorticity.iter().enumerate() {
            let [x, y, z] = flow.grid.centre_of(i / CELLS, i % CELLS);
            sum += z * (x * w[1] - y * w[0]);
            all += x * w[1] - y * w[0];
        }
        sum / all
    }

    #[test]
    fn a_ring_moves_at_its_speed_and_keeps_what_it_should() {
        for (scheme, up) in [(Scheme::RungeKutta2, 1.0), (Scheme::RungeKutta3, -1.0)] {
            let mut flow = flow(scheme, 3, &[ring(0.0, up)]);
            let first = integrals(&flow);
            // Γ = 1, and the impulse πR²Γ of a thin ring grows by σ²/2R² of it.
            let circulation = |i: &Integrals| i.circulation[usize::from(up < 0.0)];
            assert!((circulation(&first) - 1.0).abs() < 2e-3 && first.circulation[usize::from(up > 0.0)] < 1e-9);
            let impulse = std::f64::consts::PI * (0.04 + 0.06 * 0.06 / 2.0);
            assert!((first.impulse[2] * up / impulse - 1.0).abs() < 2e-3, "{first:?}");
            for _ in 0..4 {
                flow.step(&mut solver(), 0.005, None, &mut StageTimes::default()).unwrap();
            }
            let (last, speed) = (integrals(&flow), height(&flow) * up / 0.02);
            // The formula is of thin rings, and cells of a third of the core widen it.
            let thin = ((8.0f64 * 0.2 / 0.06).ln() - 0.558) / (4.0 * std::f64::consts::PI * 0.2);
            assert!((0.88..1.0).contains(&(speed / thin)), "{speed} {thin}");
            let close = |a: f64, b: f64, by: f64| (a - b).abs() < by * b.abs();
            assert!(close(last.energy, first.energy, 5e-3), "{last:?} {first:?}");
            assert!(close(last.impulse[2], first.impulse[2], 1e-3), "{last:?} {first:?}");
            assert!(close(circulation(&last), circulation(&first), 2e-3), "{last:?} {first:?}");
            let size = first.impulse[2].abs();
            assert!(
                last.impulse[0].abs() < 1e-4 * size && last.total.iter().all(|t| t.abs() < 1e-4 * size),
                "{last:?}"
            );
        }
    }

    #[test]
    fn rings_that_meet_stretch_and_those_that_leave_are_told() {
        let mut meeting = flow(Scheme::RungeKutta3, 3, &[ring(-0.06, 1.0), ring(0.06, -1.0)]);
        let first = integrals(&meeting);
        for _ in 0..3 {
            meeting.step(&mut solver(), 0.01, None, &mut StageTimes::default()).unwrap();
        }
        let last = integrals(&meeting);
        // They widen, and so their vorticity grows.
        assert!(last.enstrophy > 1.02 * first.enstrophy && last.impulse[2].abs() < 1e-4, "{first:?} {last:?}");
        assert!((last.energy / first.energy - 1.0).abs() < 2e-2, "{first:?} {last:?}");
        let mut leaving = flow(Scheme::RungeKutta2, 2, &[ring(0.15, 1.0)]);
        let end = (0..20).find_map(|_| leaving.step(&mut solver(), 0.02, None, &mut StageTimes::default()).err());
        assert!(end.unwrap().to_string().contains("faces of the domain"));
    }

    #[test]
    fn bits_do_not_depend_on_the_number_of_threads() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut flow = flow(Scheme::RungeKutta2, 2, &[ring(0.0, 1.0)]);
                flow.step(&mut solver(), 0.01, None, &mut StageTimes::default()).unwrap();
                (integrals(&flow), flow.vorticity)
            })
        };
        assert_eq!(run(1), run(3));
    }
}
