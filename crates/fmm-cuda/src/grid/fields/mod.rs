//! The fields of a flow on a device: [`FieldStore`] with a GPU.
//!
//! ω, Ψ, u, its gradients and the particles stay on the device between steps. The host decides
//! which blocks there are, from a few numbers a block, and sends tables of them. ω goes to the host
//! once a solution, for the tree of its cells.
//!
//! - `memory`: arrays that come and go.
//! - `tables`: blocks of all levels.
//! - `particles`: particles from cells, and back.

mod memory;
mod particles;
mod tables;
pub mod view;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use cust::memory::{DeviceCopy, DevicePointer, LockedBuffer};
use fmm_core::grid::blocks::CELLS;
use fmm_core::grid::flow::{FieldStore, Filled, Impulse, Lost, Now, Path};
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::transfer::Values;
use fmm_core::grid::wavelet;
use fmm_core::grid::{BLOCK, Block, Grid, Solution, Solver, Work};
use fmm_core::{Error, Stage, StageTimes};

use super::sums::after;
use super::{CudaSolver, Expanding};
use crate::Gpu;
use crate::error::device as told;
use memory::{Array, Pool};
use particles::{DeviceParticles, DevicePlaced, DeviceRates};
use tables::Tables;
use view::{FIELD_THREADS, FieldView};

/// Grids whose tables are kept: those of a step, and of its stages.
const KEPT: usize = 8;

/// Numbers of a cell, and what they are.
const MEANS: (usize, Values) = (3, Values::Means);
const POINTS: (usize, Values) = (3, Values::Points);
const MOTION: (usize, Values) = (12, Values::Points);

/// A device and its spare memory.
pub struct Device<'a> {
    gpu: &'a Gpu,
    pool: &'a Arc<Pool>,
}

impl Device<'_> {
    fn array<T: DeviceCopy>(&self, len: usize) -> Result<Array<T>, Error> {
        self.pool.array(len)
    }

    fn zeros<T: DeviceCopy>(&self, len: usize) -> Result<Array<T>, Error> {
        self.pool.zeros(len, self.gpu.stream())
    }

    fn with<T: DeviceCopy>(&self, values: &[T]) -> Result<Array<T>, Error> {
        self.pool.with(values, self.gpu.stream())
    }

    fn read<T: DeviceCopy + Default>(&self, array: &Array<T>) -> Result<Vec<T>, Error> {
        array.read(self.gpu.stream())
    }

    /// Launches a kernel with so many blocks of [`FIELD_THREADS`].
    fn launch<V: DeviceCopy>(&self, name: &str, blocks: usize, view: &V) -> Result<(), Error> {
        self.launch_with(name, blocks, 0, view)
    }

    fn launch_with<V: DeviceCopy>(&self, name: &str, blocks: usize, shared: usize, view: &V) -> Result<(), Error> {
        let threads = (FIELD_THREADS as u32, shared);
        // SAFETY: each view names arrays of the lengths that its kernel expects, which wait for the
        // queue when they are dropped.
        unsafe { self.gpu.kernels().launch_with(self.gpu.stream(), name, blocks as u32, threads, view) }
    }
}

/// A view of nothing.
fn blank() -> FieldView {
    FieldView {
        own: DevicePointer::null(),
        made: DevicePointer::null(),
        around: DevicePointer::null(),
        block: DevicePointer::null(),
        table: DevicePointer::null(),
        other: DevicePointer::null(),
        third: DevicePointer::null(),
        out: DevicePointer::null(),
        second: DevicePointer::null(),
        integers: DevicePointer::null(),
        corner: [0.0; 3],
        vector: [0.0; 3],
        spacing: 1.0,
        factor: [1.0; 2],
        own_blocks: 0,
        count: 0,
        numbers: 3,
        points: 0,
    }
}

/// The fields of a flow on a device, with its solver.
pub struct CudaFields {
    // Dropped before the GPU that holds its memory.
    tables: Vec<Rc<Tables>>,
    pool: Arc<Pool>,
    /// ω on its way to the tree.
    staged: Option<LockedBuffer<f64>>,
    solver: CudaSolver,
}

impl CudaFields {
    /// Fields on the device of a solver.
    pub fn new(solver: CudaSolver) -> Self {
        CudaFields { tables: vec![], pool: Pool::new(solver.gpu()), staged: None, solver }
    }

    /// The solver.
    pub fn solver(&self) -> &CudaSolver {
        &self.solver
    }

    /// Other settings from now on.
    ///
    /// # Errors
    /// Those of [`Solver::check`].
    pub fn configure(&mut self, solver: Solver, expanding: Expanding) -> Result<(), Error> {
        self.solver.configure(solver, expanding)
    }

    fn device(&self) -> Result<Device<'_>, Error> {
        self.solver.gpu.enter()?;
        Ok(Device { gpu: &self.solver.gpu, pool: &self.pool })
    }

    /// The tables of a grid; those of the last few are kept.
    fn tables(&mut self, grid: &Grid) -> Result<Rc<Tables>, Error> {
        let tables = match self.tables.iter().position(|t| t.grid == *grid) {
            Some(i) => self.tables.remove(i),
            None => Rc::new(Tables::new(&self.device()?, grid)?),
        };
        self.tables.truncate(KEPT - 1);
        self.tables.insert(0, tables.clone());
        Ok(tables)
    }

    /// What a kernel makes of a field on all levels: `numbers` a cell.
    fn differences(
        &mut self,
        name: &str,
        (grid, field): (&Grid, &Array<f64>),
        (kind, numbers): ((usize, Values), usize),
        factor: f64,
    ) -> Result<Array<f64>, Error> {
        let tables = self.tables(grid)?;
        let device = self.device()?;
        let (levels, out) = (tables.levels(&device, field, kind)?, device.array(numbers * grid.cells())?);
        let view = FieldView { out: out.pointer(), factor: [factor; 2], ..tables.view(&levels) };
        device.launch(name, grid.blocks().len(), &view)?;
        Ok(out)
    }

    /// `each` numbers of every block of a field.
    fn measured(&self, name: &str, field: &Array<f64>, each: usize, view: FieldView) -> Result<Vec<f64>, Error> {
        let device = self.device()?;
        let blocks = field.len() / (3 * CELLS);
        let out = device.array(each * blocks)?;
        device.launch(name, blocks, &FieldView { own: field.pointer(), out: out.pointer(), ..view })?;
        device.read(&out)
    }

    /// `to` becomes `factors[0]` times itself plus `factors[1]` times another array.
    fn blended(&self, to: &mut Array<f64>, factor: [f64; 2], other: &Array<f64>) -> Result<(), Error> {
        let (own, out) = (other.pointer(), to.pointer());
        let count = u32::try_from(to.len()).map_err(|_| Error::TooMany(to.len()))?;
        let view = FieldView { own, out, factor, count, ..blank() };
        self.device()?.launch("field_blend", to.len().div_ceil(FIELD_THREADS), &view)
    }

    /// The values of a field in memory that the device writes to by itself, kept in `self.staged`.
    fn stage(&mut self, field: &Array<f64>) -> Result<(), Error> {
        let gpu = &self.solver.gpu;
        gpu.enter()?;
        if self.staged.as_ref().is_none_or(|s| s.len() < field.len()) {
            self.staged = None;
            let room = LockedBuffer::new(&0.0, field.len() + field.len() / 8);
            self.staged = Some(room.map_err(told("no memory for the vorticity"))?);
        }
        let staged = self.staged.as_mut().expect("just made");
        field.read_into(&mut staged[..field.len()], gpu.stream())
    }
}

/// The largest of some numbers, zero without any.
fn largest(numbers: Vec<f64>) -> f64 {
    numbers.into_iter().fold(0.0, f64::max)
}

impl FieldStore for CudaFields {
    type Field = Array<f64>;
    type Motion = Array<f64>;
    type Particles = DeviceParticles;
    type Rates = DeviceRates;
    type Placed = DevicePlaced;

    fn upload(&mut self, values: Vec<[f64; 3]>) -> Result<Array<f64>, Error> {
        self.device()?.with(values.as_flattened())
    }

    fn download<'a>(&mut self, field: &'a Array<f64>) -> Result<Cow<'a, [[f64; 3]]>, Error> {
        self.stage(field)?;
        let (threes, _) = self.staged.as_ref().expect("it is staged")[..field.len()].as_chunks();
        Ok(Cow::Owned(threes.to_vec()))
    }

    fn pick(&mut self, field: &Array<f64>, cells: &[u32]) -> Result<Vec<[f64; 3]>, Error> {
        let device = self.device()?;
        let (table, out) = (device.with(cells)?, device.array(3 * cells.len())?);
        let count = cells.len() as u32;
        let view = FieldView { own: field.pointer(), table: table.pointer(), out: out.pointer(), count, ..blank() };
        device.launch("field_pick", cells.len().div_ceil(FIELD_THREADS), &view)?;
        let mut values = vec![[0.0; 3]; cells.len()];
        out.read_into(values.as_flattened_mut(), device.gpu.stream())?;
        Ok(values)
    }

    fn put(&mut self, grid: &Grid, cells: &[u32], values: &[[f64; 3]]) -> Result<Array<f64>, Error> {
        let device = self.device()?;
        let (table, own) = (device.with(cells)?, device.with(values.as_flattened())?);
        let out = device.zeros(3 * grid.cells())?;
        let count = cells.len() as u32;
        let view = FieldView { own: own.pointer(), table: table.pointer(), out: out.pointer(), count, ..blank() };
        device.launch("field_put", cells.len().div_ceil(FIELD_THREADS), &view)?;
        Ok(out)
    }

    fn add(&mut self, to: &mut Array<f64>, other: &Array<f64>) -> Result<(), Error> {
        self.blended(to, [1.0; 2], other)
    }

    fn shift(&mut self, field: &mut Array<f64>, vector: [f64; 3]) -> Result<(), Error> {
        let cells = field.len() / 3;
        let view = FieldView { out: field.pointer(), vector, count: cells as u32, ..blank() };
        self.device()?.launch("field_shift", cells.div_ceil(FIELD_THREADS), &view)
    }

    fn solve(
        &mut self,
        grid: &Grid,
        vorticity: &Array<f64>,
        times: &mut StageTimes,
    ) -> Result<Solution<Array<f64>>, Error> {
        times.time_more(Stage::Tree, || self.stage(vorticity))?;
        let (values, _) = self.staged.as_ref().expect("it is staged")[..vorticity.len()].as_chunks::<3>();
        // A flow that bodies have not moved yet has nothing to sum.
        let turns = values.iter().any(|w| *w != [0.0; 3]);
        let work = match turns {
            true => match self.solver.sum(grid, values, times) {
                // Memory that waits may be what the sums lack.
                Err(Error::Device(_)) if self.pool.release() => self.solver.sum(grid, values, times)?,
                work => work?,
            },
            false => Work { targets: grid.cells(), ..Work::default() },
        };
        let device = self.device()?;
        let [psi, velocity] = match turns {
            true => [device.array(vorticity.len())?, device.array(vorticity.len())?],
            false => [device.zeros(vorticity.len())?, device.zeros(vorticity.len())?],
        };
        if turns {
            let solver = self.solver.settings();
            times.time(Stage::Output, || self.solver.spread([psi.pointer(), velocity.pointer()]))?;
            if solver.correction {
                let tables = self.tables(grid)?;
                let device = self.device()?;
                let levels = tables.levels(&device, vorticity, MEANS)?;
                let (out, second, factor) = (psi.pointer(), velocity.pointer(), solver.green.leading_errors());
                let view = FieldView { out, second, factor, ..tables.view(&levels) };
                device.launch("field_correct", grid.blocks().len(), &view)?;
            }
        }
        Ok(Solution { psi, velocity, work })
    }

    fn project(&mut self, grid: &Grid, vorticity: &mut Array<f64>, psi: &Array<f64>) -> Result<(), Error> {
        let sources = self.differences("field_divergence", (grid, psi), (POINTS, 1), 1.0)?;
        let tables = self.tables(grid)?;
        let device = self.device()?;
        let levels = tables.levels(&device, &sources, (1, Values::Points))?;
        let view = FieldView { out: vorticity.pointer(), table: tables.others.pointer(), ..tables.view(&levels) };
        device.launch("field_project", grid.blocks().len(), &view)
    }

    fn curl(&mut self, grid: &Grid, field: &Array<f64>) -> Result<Array<f64>, Error> {
        self.differences("field_curl", (grid, field), (POINTS, 3), 1.0)
    }

    fn laplacian(&mut self, grid: &Grid, vorticity: &Array<f64>, factor: f64) -> Result<Array<f64>, Error> {
        self.differences("field_laplacian", (grid, vorticity), (MEANS, 3), factor)
    }

    fn motion(&mut self, grid: &Grid, velocity: &Array<f64>) -> Result<Array<f64>, Error> {
        self.differences("field_motion", (grid, velocity), (POINTS, 12), 1.0)
    }

    fn onto(&mut self, from: &Grid, field: &Array<f64>, to: &Grid) -> Result<Array<f64>, Error> {
        let tables = self.tables(from)?;
        let device = self.device()?;
        tables.onto(&device, &tables.levels(&device, field, MEANS)?, to)
    }

    fn fastest(&mut self, vorticity: &Array<f64>, velocity: &Array<f64>) -> Result<f64, Error> {
        let view = FieldView { other: velocity.pointer(), ..blank() };
        Ok(largest(self.measured("field_fastest", vorticity, 1, view)?).sqrt())
    }

    fn steepest(&mut self, vorticity: &Array<f64>, motion: &Array<f64>) -> Result<f64, Error> {
        let view = FieldView { other: motion.pointer(), ..blank() };
        Ok(largest(self.measured("field_steepest", vorticity, 1, view)?).sqrt())
    }

    fn cut(&mut self, vorticity: &mut Array<f64>, part: f64) -> Result<(), Error> {
        let least = part.powi(2) * largest(self.measured("field_largest", vorticity, 1, blank())?);
        let view = FieldView { out: vorticity.pointer(), factor: [least; 2], ..blank() };
        self.device()?.launch("field_cut", vorticity.len() / (3 * CELLS), &view)
    }

    fn filled(&mut self, vorticity: &Array<f64>) -> Result<Vec<Option<Filled>>, Error> {
        let device = self.device()?;
        let blocks = vorticity.len() / (3 * CELLS);
        let ends = device.array::<u32>(6 * blocks)?;
        let view = FieldView { own: vorticity.pointer(), integers: ends.pointer(), ..blank() };
        device.launch("field_filled", blocks, &view)?;
        let filled = |ends: &[u32]| {
            let end = |n: usize| i64::from(ends[n]);
            let (low, high) = ([0, 1, 2].map(end), [3, 4, 5].map(end));
            (low[0] < BLOCK as i64).then_some(Filled { low, high })
        };
        Ok(device.read(&ends)?.chunks_exact(6).map(filled).collect())
    }

    fn impulse(&mut self, grid: &Grid, vorticity: &Array<f64>, about: [f64; 3]) -> Result<Impulse, Error> {
        let view = FieldView { vector: about, ..self.tables(grid)?.alone(vorticity) };
        let sums = self.measured("field_impulse", vorticity, 6, view)?;
        let of_block = |s: &[f64]| Impulse { linear: [s[0], s[1], s[2]], angular: [s[3], s[4], s[5]] };
        Ok(Impulse::sum(&sums.chunks_exact(6).map(of_block).collect::<Vec<_>>()))
    }

    fn details(
        &mut self,
        grid: &Grid,
        vorticity: &Array<f64>,
        beyond: usize,
    ) -> Result<impl FnMut(&[Block]) -> Result<Vec<f64>, Error>, Error> {
        let tables = self.tables(grid)?;
        let device = self.device()?;
        let levels = tables.levels(&device, vorticity, MEANS)?;
        // Means of 2³ cells, and of two more on all sides.
        let wide = (BLOCK + 2 * beyond) / 2 + wavelet::AROUND;
        let shared = 3 * wide * wide * wide * size_of::<f64>();
        Ok(move |blocks: &[Block]| {
            let around: Vec<_> = blocks.iter().map(|&b| tables.hierarchy.around(b)).collect();
            let (around, out) = (device.with(around.as_flattened())?, device.array(blocks.len())?);
            let (count, out_at) = (beyond as u32, out.pointer());
            let view = FieldView { around: around.pointer(), out: out_at, count, ..tables.view(&levels) };
            device.launch_with("field_detail", blocks.len(), shared, &view)?;
            device.read(&out)
        })
    }

    fn paths(&mut self, grid: &Grid, now: &Now<Array<f64>, Array<f64>>, dt: f64) -> Result<Vec<Option<Path>>, Error> {
        let third = now.diffused.map_or(DevicePointer::null(), Array::pointer);
        let alone = self.tables(grid)?.alone(now.vorticity);
        let view = FieldView { other: now.velocity.pointer(), third, factor: [dt; 2], ..alone };
        let ends = self.measured("field_paths", now.vorticity, 6, view)?;
        let path = |e: &[f64]| (e[0] <= e[3]).then_some([[e[0], e[1], e[2]], [e[3], e[4], e[5]]]);
        Ok(ends.chunks_exact(6).map(path).collect())
    }

    fn particles(
        &mut self,
        grids: [&Grid; 2],
        now: &Now<Array<f64>, Array<f64>>,
        way: f64,
    ) -> Result<(DeviceParticles, DeviceRates), Error> {
        let [tables, wider] = [self.tables(grids[0])?, self.tables(grids[1])?];
        particles::seeded(&self.device()?, [&tables, &wider], now, way)
    }

    fn advance(&mut self, particles: &mut DeviceParticles, rates: &DeviceRates, factor: f64) -> Result<(), Error> {
        self.blended(&mut particles.position, [1.0, factor], &rates.velocity)?;
        self.blended(&mut particles.vorticity, [1.0, factor], &rates.growth)
    }

    fn copy(&mut self, particles: &DeviceParticles) -> Result<DeviceParticles, Error> {
        particles.copy(&self.device()?)
    }

    fn blend(&mut self, rates: &mut DeviceRates, factor: f64, others: &DeviceRates) -> Result<(), Error> {
        self.blended(&mut rates.velocity, [factor, 1.0], &others.velocity)?;
        self.blended(&mut rates.growth, [factor, 1.0], &others.growth)
    }

    fn place(&mut self, lattice: &Lattice, kernel: Kernel, particles: &DeviceParticles) -> Result<DevicePlaced, Lost> {
        particles.place(&self.device()?, lattice, kernel)
    }

    fn roots(&self, placed: &DevicePlaced) -> BTreeSet<Block> {
        placed.roots.clone()
    }

    fn scatter(
        &mut self,
        grid: &Grid,
        placed: &DevicePlaced,
        particles: &DeviceParticles,
    ) -> Result<Array<f64>, Error> {
        placed.scatter(&self.device()?, grid, particles)
    }

    fn rates(
        &mut self,
        grid: &Grid,
        (placed, particles): (&DevicePlaced, &DeviceParticles),
        motion: &Array<f64>,
        diffused: Option<&Array<f64>>,
    ) -> Result<DeviceRates, Error> {
        let tables = self.tables(grid)?;
        placed.gather(&self.device()?, &tables, particles, (motion, diffused))
    }
}
