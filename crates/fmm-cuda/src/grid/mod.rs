//! The Poisson solver on grids with a device: direct sums on it, in double precision, while the cores evaluate the expansions (van Rees et al.
//! 2014), or both on it.
//!
//! - [`tasks`]: how the sums of bricks are divided, which depends on the lists alone.
//! - [`sums`]: the kernels and the way of the data; cells travel while their tree is built, and
//!   fields stay until they are asked for.
//! - [`fields`]: the fields of a flow on the device.
//! - [`balance`]: which nodes act directly, so that device and cores end together.
//! - [`workload`]: the least that the sums can take.

pub mod balance;
pub mod fields;
pub mod sums;
pub mod tasks;
pub mod view;
pub mod workload;

use cust::context::CurrentContext;
use cust::memory::{DevicePointer, LockedBuffer};
use fmm_core::grid::correction::correct;
use fmm_core::grid::far::Expansions;
use fmm_core::grid::near::SUMS;
use fmm_core::grid::plan::{BRICKS, Lists};
use fmm_core::grid::sources::{Cells, Sources};
use fmm_core::grid::{Grid, Solution, Solve, Solver, Work};
use fmm_core::math::CollectVec;
use fmm_core::{Error, Stage, StageTimes};
use rayon::prelude::*;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::error::device as told;
use balance::Rates;
use sums::Sums;

/// Who evaluates the expansions; direct sums are the device's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expanding {
    /// The cores, at the same time.
    Cores,
    /// The device, in double precision.
    Device,
}

/// What a solution needs besides strengths. Solutions for the same cells, as those of penalisation
/// are, have one plan.
struct Plan {
    grid: Grid,
    /// The cells with vorticity.
    number: Vec<u32>,
    solver: Solver,
    sources: Sources,
    lists: Lists,
}

impl Plan {
    fn is_of(&self, grid: &Grid, cells: &Cells, solver: Solver) -> bool {
        self.grid == *grid && self.number == cells.number && self.solver == solver
    }
}

/// The solver with a device.
pub struct CudaSolver {
    // Dropped before the GPU that holds its memory.
    sums: Sums,
    gpu: Gpu,
    solver: Solver,
    expanding: Expanding,
    rates: Option<Rates>,
    /// Sums of expansions by the cores, kept from one solution to the next: new memory would be as slow as they are.
    far: Vec<f64>,
    /// That of the last solution.
    plan: Option<Plan>,
    /// What the sums of the last solution are multiplied by.
    scale: f64,
    /// Ψ and u of solutions that go to the host.
    fields: [Buffer<f64>; 2],
    /// One of them on its way, in memory that the device writes to by itself.
    host: Option<LockedBuffer<f64>>,
}

impl CudaSolver {
    /// A solver with these settings. Where the cores evaluate expansions and the settings name no split, the first solution chooses one, and all others
    /// keep it.
    ///
    /// # Errors
    /// Those of [`Solver::check`]; [`Error::Device`] if the driver fails.
    pub fn new(gpu: Gpu, solver: Solver, expanding: Expanding) -> Result<Self, Error> {
        solver.check()?;
        Ok(CudaSolver {
            sums: Sums::default(),
            gpu,
            solver,
            expanding,
            rates: None,
            far: vec![],
            plan: None,
            scale: 1.0,
            fields: Default::default(),
            host: None,
        })
    }

    /// Other settings from now on.
    ///
    /// # Errors
    /// Those of [`Solver::check`].
    pub fn configure(&mut self, solver: Solver, expanding: Expanding) -> Result<(), Error> {
        solver.check()?;
        (self.solver, self.expanding, self.rates, self.plan) = (solver, expanding, None, None);
        Ok(())
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The settings, with the split once it is chosen.
    pub fn settings(&self) -> Solver {
        self.solver
    }

    /// Who evaluates the expansions.
    pub fn expanding(&self) -> Expanding {
        self.expanding
    }

    /// What the split was chosen by, if it was.
    pub fn rates(&self) -> Option<Rates> {
        self.rates
    }

    /// The sums of the last solution, to be timed alone.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Chooses a split.
    fn split(&mut self, grid: &Grid, sources: &Sources) -> Result<(), Error> {
        let rates = match self.rates {
            Some(rates) => rates,
            None => balance::measure(&self.gpu, &self.solver)?,
        };
        self.rates = Some(rates);
        let shares = Lists::shares(grid, sources, self.solver.rule(), &balance::splits());
        self.solver.split = balance::choose(&shares, rates).map(|share| share.split);
        Ok(())
    }
}

impl CudaSolver {
    /// Makes the sums for `vorticity`, a value for each cell of `grid`. They stay on the device
    /// and, in part, on the cores.
    ///
    /// # Errors
    /// Those of [`Solver::check_for`]; [`Error::Device`] if the device fails.
    fn sum(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Work, Error> {
        self.solver.check_for(grid, vorticity)?;
        self.gpu.enter()?;
        let cells = times.time(Stage::Tree, || Cells::new(grid, vorticity, self.solver.green));
        let plan = match self.plan.take().filter(|p| p.is_of(grid, &cells, self.solver)) {
            Some(mut plan) => {
                times.time_more(Stage::Tree, || plan.sources.strengthen(&cells));
                self.sums.strengthen(&cells)?;
                plan
            }
            None => self.planned(grid, cells, times)?,
        };
        let (solver, Plan { sources, lists, .. }) = (self.solver, &plan);
        if self.expanding == Expanding::Cores {
            let clock = self.sums.begin(&self.gpu, solver.green)?;
            let len = if lists.far.is_empty() { 0 } else { grid.blocks().len() * BRICKS * SUMS };
            self.far.par_chunks_mut(SUMS).for_each(|sums| sums.fill(0.0));
            self.far.resize(len, 0.0);
            solver.expand(grid, sources, lists, &mut self.far, times);
            clock.read(times)?;
        } else {
            self.far.clear();
            if !lists.far.is_empty() {
                self.sums.weigh(sources, &Expansions::new(sources, solver.order, times))?;
            }
            self.sums.begin(&self.gpu, solver.green)?.read(times)?;
        }
        self.scale = sources.scale;
        let work = solver.work(grid, sources, lists);
        self.plan = Some(plan);
        Ok(work)
    }

    /// The tree of some cells and its lists, which the device has then too.
    fn planned(&mut self, grid: &Grid, cells: Cells, times: &mut StageTimes) -> Result<Plan, Error> {
        let solver = self.solver;
        let (context, sums) = (self.gpu.context(), &mut self.sums);
        let (sources, sent) = std::thread::scope(|scope| {
            let send = scope.spawn(|| {
                CurrentContext::set_current(&context).map_err(told("cannot use the GPU"))?;
                sums.send(grid, &cells)
            });
            let sources = times.time_more(Stage::Tree, || Sources::of(grid, &cells, solver.leaf_size));
            (sources, send.join())
        });
        sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let chooses =
            self.expanding == Expanding::Cores && solver.split.is_none() && solver.theta > 0.0 && !sources.is_empty();
        times.time(Stage::Lists, || {
            if chooses {
                self.split(grid, &sources)?;
            }
            let lists = Lists::new(grid, &sources, self.solver.rule());
            let order = (self.expanding == Expanding::Device).then_some(solver.order);
            self.sums.take(&self.gpu, &sources, &lists, order)?;
            Ok(Plan { grid: grid.clone(), number: cells.number, solver: self.solver, sources, lists })
        })
    }

    /// Queues Ψ and u of the last sums, at these places on the device: `[cells][3]` each.
    fn spread(&mut self, fields: [DevicePointer<f64>; 2]) -> Result<(), Error> {
        self.sums.spread(&self.gpu, &self.far, self.scale, fields)
    }

    /// Ψ (0) or u (1), once the queue has made it.
    fn fetch(&mut self, which: usize) -> Result<Vec<[f64; 3]>, Error> {
        let field = &self.fields[which];
        if field.is_empty() {
            return Ok(vec![]);
        }
        if self.host.as_ref().is_none_or(|h| h.len() < field.len()) {
            self.host = None;
            self.host = Some(LockedBuffer::new(&0.0, field.len()).map_err(told("no memory for the fields"))?);
        }
        let host = self.host.as_mut().expect("it is there");
        field.read_by(&mut host[..field.len()], self.gpu.stream())?;
        let (threes, _) = host[..field.len()].as_chunks();
        Ok(threes.par_iter().copied().collect_vec())
    }
}

impl Solve for CudaSolver {
    fn solve(&mut self, grid: &Grid, vorticity: &[[f64; 3]], times: &mut StageTimes) -> Result<Solution, Error> {
        // A solution by itself is a whole one, also where it is repeated to be timed.
        self.plan = None;
        let work = self.sum(grid, vorticity, times)?;
        times.time(Stage::Output, || {
            self.fields.iter_mut().try_for_each(|field| field.resize(3 * grid.cells()))?;
            self.spread(self.fields.each_ref().map(Buffer::pointer))?;
            let (mut psi, mut velocity) = (self.fetch(0)?, self.fetch(1)?);
            if self.solver.correction {
                correct(grid, self.solver.green, vorticity, &mut psi, &mut velocity);
            }
            Ok(Solution { psi, velocity, work })
        })
    }
}
