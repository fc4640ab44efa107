//! The fields of a flow on the cores, with any solver.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rayon::prelude::*;

use super::super::blocks::{BLOCK, Block, CELLS, Grid, split};
use super::super::differences::{Motion, curl, divergent, laplacian, motion, stretched};
use super::super::levels::Levels;
use super::super::padded::padded;
use super::super::poisson::{Solution, Solve, Work};
use super::super::remesh::{Kernel, Lattice, Placed};
use super::super::transfer::Values;
use super::super::wavelet::{AROUND, detail};
use super::particles::{Particles, Rates, particles};
use super::penalise::Impulse;
use super::store::{FieldStore, Filled, Lost, Now, Path};
use crate::math::{CollectVec, cross, zeros};
use crate::{Error, StageTimes};

/// Values of the cells.
type Field = Vec<[f64; 3]>;

fn square(w: &[f64; 3]) -> f64 {
    w.iter().map(|w| w * w).sum()
}

impl<T: Solve + ?Sized> FieldStore for T {
    type Field = Field;
    type Motion = Vec<Motion>;
    type Particles = Vec<Particles>;
    type Rates = Vec<Rates>;
    type Placed = Vec<Placed>;

    fn upload(&mut self, values: Field) -> Result<Field, Error> {
        Ok(values)
    }

    fn download<'a>(&mut self, field: &'a Field) -> Result<Cow<'a, [[f64; 3]]>, Error> {
        Ok(Cow::Borrowed(field))
    }

    fn pick(&mut self, field: &Field, cells: &[u32]) -> Result<Field, Error> {
        Ok(cells.par_iter().map(|&c| field[c as usize]).collect_vec())
    }

    fn put(&mut self, grid: &Grid, cells: &[u32], values: &[[f64; 3]]) -> Result<Field, Error> {
        let mut field = zeros(grid.cells());
        cells.iter().zip(values).for_each(|(&c, v)| field[c as usize] = *v);
        Ok(field)
    }

    fn add(&mut self, to: &mut Field, other: &Field) -> Result<(), Error> {
        to.par_iter_mut().zip(other).for_each(|(a, b)| (0..3).for_each(|k| a[k] += b[k]));
        Ok(())
    }

    fn shift(&mut self, field: &mut Field, by: [f64; 3]) -> Result<(), Error> {
        field.par_iter_mut().for_each(|u| (0..3).for_each(|k| u[k] += by[k]));
        Ok(())
    }

    fn solve(&mut self, grid: &Grid, vorticity: &Field, times: &mut StageTimes) -> Result<Solution, Error> {
        // A flow that bodies have not moved yet has nothing to sum.
        if vorticity.par_iter().any(|w| *w != [0.0; 3]) {
            return Solve::solve(self, grid, vorticity, times);
        }
        let none = || vec![[0.0; 3]; grid.cells()];
        let work = Work { targets: grid.cells(), ..Work::default() };
        Ok(Solution { psi: none(), velocity: none(), work })
    }

    fn project(&mut self, grid: &Grid, vorticity: &mut Field, psi: &Field) -> Result<(), Error> {
        let gradient = divergent(grid, vorticity, psi);
        self.add(vorticity, &gradient)
    }

    fn curl(&mut self, grid: &Grid, field: &Field) -> Result<Field, Error> {
        Ok(curl(grid, field))
    }

    fn laplacian(&mut self, grid: &Grid, vorticity: &Field, factor: f64) -> Result<Field, Error> {
        Ok(laplacian(grid, vorticity, factor))
    }

    fn motion(&mut self, grid: &Grid, velocity: &Field) -> Result<Vec<Motion>, Error> {
        Ok(motion(grid, velocity))
    }

    fn onto(&mut self, from: &Grid, field: &Field, to: &Grid) -> Result<Field, Error> {
        Ok(Levels::of(from, field, Values::Means).onto(Values::Means, to))
    }

    fn fastest(&mut self, vorticity: &Field, velocity: &Field) -> Result<f64, Error> {
        let turning = vorticity.par_chunks(CELLS).zip(velocity.par_chunks(CELLS));
        let of_block = |(w, u): (&[[f64; 3]], &[[f64; 3]])| match w.iter().any(|w| *w != [0.0; 3]) {
            true => u.iter().map(square).fold(0.0, f64::max),
            false => 0.0,
        };
        Ok(turning.map(of_block).reduce(|| 0.0, f64::max).sqrt())
    }

    fn steepest(&mut self, vorticity: &Field, motion: &Vec<Motion>) -> Result<f64, Error> {
        let square = |motion: &Motion| motion[3..].iter().map(|g| g * g).sum::<f64>();
        // Where there is no vorticity, a difference may reach beyond the blocks that there are.
        let turning = motion.par_iter().zip(vorticity).filter(|(_, w)| **w != [0.0; 3]);
        Ok(turning.map(|(motion, _)| square(motion)).reduce(|| 0.0, f64::max).sqrt())
    }

    fn cut(&mut self, vorticity: &mut Field, part: f64) -> Result<(), Error> {
        let largest = vorticity.par_iter().map(square).reduce(|| 0.0, f64::max);
        let least = part.powi(2) * largest;
        vorticity.par_iter_mut().for_each(|w| {
            if square(w) < least {
                *w = [0.0; 3];
            }
        });
        Ok(())
    }

    fn filled(&mut self, vorticity: &Field) -> Result<Vec<Option<Filled>>, Error> {
        let of_block = |field: &[[f64; 3]]| {
            let (mut low, mut high) = ([BLOCK as i64; 3], [-1; 3]);
            for (c, _) in field.iter().enumerate().filter(|(_, w)| **w != [0.0; 3]) {
                let cell = split(c);
                for d in 0..3 {
                    (low[d], high[d]) = (low[d].min(cell[d]), high[d].max(cell[d]));
                }
            }
            (high[0] >= 0).then_some(Filled { low, high })
        };
        Ok(vorticity.par_chunks(CELLS).map(of_block).collect_vec())
    }

    fn impulse(&mut self, grid: &Grid, vorticity: &Field, about: [f64; 3]) -> Result<Impulse, Error> {
        let of_block = |(b, &block): (usize, &Block)| {
            let (mut sums, volume) = (Impulse::default(), grid.spacing(block.level).powi(3));
            for (c, w) in vorticity[b * CELLS..(b + 1) * CELLS].iter().enumerate() {
                let center = grid.center(block, split(c));
                let x: [f64; 3] = std::array::from_fn(|d| center[d] - about[d]);
                let (turned, square) = (cross(x, *w), x.iter().map(|x| x * x).sum::<f64>());
                for k in 0..3 {
                    sums.linear[k] += 0.5 * volume * turned[k];
                    sums.angular[k] -= 0.5 * volume * square * w[k];
                }
            }
            sums
        };
        Ok(Impulse::sum(&grid.blocks().par_iter().enumerate().map(of_block).collect_vec()))
    }

    fn details(
        &mut self,
        grid: &Grid,
        vorticity: &Field,
        beyond: usize,
    ) -> Result<impl FnMut(&[Block]) -> Result<Vec<f64>, Error>, Error> {
        let levels = Levels::of(grid, vorticity, Values::Means);
        let of_block = move |&block: &Block| detail(&padded(&levels.around(block), beyond + AROUND), beyond);
        Ok(move |blocks: &[Block]| Ok(blocks.par_iter().map(&of_block).collect_vec()))
    }

    fn paths(&mut self, grid: &Grid, now: &Now<Field, Vec<Motion>>, dt: f64) -> Result<Vec<Option<Path>>, Error> {
        // Cells that diffusion reaches are particles too.
        let carries = |i: &usize| now.vorticity[*i] != [0.0; 3] || now.diffused.is_some_and(|d| d[*i] != [0.0; 3]);
        let of_block = |b: usize| {
            let mut ends = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
            for i in (b * CELLS..(b + 1) * CELLS).filter(carries) {
                let x = grid.center_of(b, i % CELLS);
                for d in 0..3 {
                    let way = dt * now.velocity[i][d];
                    ends[0][d] = ends[0][d].min(x[d] + way.min(0.0));
                    ends[1][d] = ends[1][d].max(x[d] + way.max(0.0));
                }
            }
            (ends[0][0] <= ends[1][0]).then_some(ends)
        };
        Ok((0..grid.blocks().len()).into_par_iter().map(of_block).collect_vec())
    }

    fn particles(
        &mut self,
        grids: [&Grid; 2],
        now: &Now<Field, Vec<Motion>>,
        way: f64,
    ) -> Result<(Vec<Particles>, Vec<Rates>), Error> {
        Ok(particles(grids, now, way))
    }

    fn advance(&mut self, particles: &mut Vec<Particles>, rates: &Vec<Rates>, factor: f64) -> Result<(), Error> {
        particles.iter_mut().zip(rates).for_each(|(p, r)| p.advance(r, factor));
        Ok(())
    }

    fn copy(&mut self, particles: &Vec<Particles>) -> Result<Vec<Particles>, Error> {
        Ok(particles.clone())
    }

    fn blend(&mut self, rates: &mut Vec<Rates>, factor: f64, others: &Vec<Rates>) -> Result<(), Error> {
        rates.iter_mut().zip(others).for_each(|(rates, others)| {
            rates.par_iter_mut().zip(others).for_each(|(q, r)| {
                for n in 0..2 {
                    (0..3).for_each(|k| q[n][k] = factor * q[n][k] + r[n][k]);
                }
            });
        });
        Ok(())
    }

    fn place(&mut self, lattice: &Lattice, kernel: Kernel, particles: &Vec<Particles>) -> Result<Vec<Placed>, Lost> {
        let place = |p: &Particles| Placed::new(lattice, p.level, kernel, &p.position).ok_or(Lost::Outside(p.level));
        particles.iter().map(place).collect()
    }

    fn roots(&self, placed: &Vec<Placed>) -> BTreeSet<Block> {
        placed.iter().flat_map(Placed::reached).map(Block::root).collect()
    }

    fn scatter(&mut self, grid: &Grid, placed: &Vec<Placed>, particles: &Vec<Particles>) -> Result<Field, Error> {
        let mut field = zeros(grid.cells());
        placed.iter().zip(particles).for_each(|(placed, p)| placed.scatter(grid, &p.vorticity, &mut field));
        Ok(field)
    }

    fn rates(
        &mut self,
        grid: &Grid,
        (placed, particles): (&Vec<Placed>, &Vec<Particles>),
        motion: &Vec<Motion>,
        diffused: Option<&Field>,
    ) -> Result<Vec<Rates>, Error> {
        let motion = Levels::of(grid, motion, Values::Points);
        let diffused = diffused.map(|d| Levels::of(grid, d, Values::Means));
        let of_level = |(placed, p): (&Placed, &Particles)| {
            let rate = |i: usize, m: Motion| [[m[0], m[1], m[2]], stretched(p.vorticity[i], &m)];
            let mut rates = placed.gather(&motion, rate);
            if let Some(diffused) = &diffused {
                let there = placed.gather(diffused, |_, d| d);
                rates.par_iter_mut().zip(there).for_each(|(r, d)| (0..3).for_each(|k| r[1][k] += d[k]));
            }
            rates
        };
        Ok(placed.iter().zip(particles).map(of_level).collect())
    }
}
