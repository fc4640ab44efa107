//! A sum on the device for the driver: executed with one choice after another, and measured.

mod boxes;
mod measure;

use cust::memory::DevicePointer;
use fmm_core::accuracy::{self, Problem, Strengths};
use fmm_core::guard::{Look, Norms};
use fmm_core::mesh::Recipe;
use fmm_core::plan::OctreePlan;
use fmm_core::solve::{Quantity, Solved, Trial, solve};
use fmm_core::tree::Cube;
use fmm_core::{
    Cancel, Choice, Error, Kept, Method, PeriodicBox, Precision, Settings, Softening, Stage, StageTimes, Weights,
};

use crate::boxed::Boxed;
use crate::buffer::Buffer;
use crate::direct::{self, Direct, Output, Request};
use crate::ewald::Ewald;
use crate::fmm::Fmm;
use crate::geometry::{Survey, Work};
use crate::guard::{Guard, Rows};
use crate::hessian::Hessian;
use crate::inputs::{Ends, Host, Inputs};
use crate::mesh::{self, MeshSums};
use crate::order::{Ordered, Units};
use crate::view::{TILE, VelocityView};
use crate::{Gpu, policy};

pub use measure::errors;

/// The arrays of sums, kept from one to the next.
#[derive(Default)]
pub struct Arrays {
    /// Of fast methods.
    pub fmm: Fmm,
    /// Of direct sums.
    pub direct: Direct,
    survey: Survey,
    guard: Guard,
    hessian: Hessian,
    /// Of periodic boxes.
    pub boxed: Boxed,
    mesh: MeshSums,
    ewald: Ewald,
    ewald_bodies: [Ordered; 2],
    /// What one column of strengths gives to a velocity. `[targets][3]`
    column: Buffer<f64>,
    /// Shared by all that sort.
    pub work: Work,
}

/// The bodies of a sum on the device, and where its results go.
pub struct Bodies<'a> {
    /// What is summed; velocities where the strengths have three columns.
    pub quantity: Quantity,
    /// Sources and targets.
    pub inputs: &'a mut Inputs,
    /// The same on the host, from where they come again if their memory is needed meanwhile; none where they must stay.
    pub host: Option<Host<'a>>,
    /// What the choice depends on of the strengths.
    pub strengths: Strengths,
    /// `[targets][3]`, in the caller's order.
    pub field: &'a mut Buffer<f64>,
    /// `[targets]`; none if it is not wanted now.
    pub potential: Option<&'a mut Buffer<f64>>,
    /// `[targets][6]`; with [`Quantity::Hessian`].
    pub hessian: Option<&'a mut Buffer<f64>>,
}

/// What is known of a sum whose results stay on the device.
#[derive(Default)]
pub struct Summed {
    /// The units of the sum, if it is direct in open space.
    pub units: Option<Units>,
    /// Pairs of sources at bitwise the same place, if trees have counted them.
    pub coincident_pairs: Option<u64>,
    /// The guard's rows for each column of a velocity: component and sample. They are measured
    /// column by column, because the bodies of the next column replace those of the last.
    columns: Vec<(usize, Rows)>,
    /// The norm of the error over that of the vectors, if estimates of errors are asked for.
    pub of_vectors: f64,
    /// Whether a GPU of a team has the results in its slice of the caller's order alone.
    pub sliced: bool,
}

/// Sums until the tolerance is kept, beginning with what an earlier sum of a run has `kept`; nothing
/// but counters and the guard's sample is copied to the host.
///
/// # Errors
/// Those of [`policy::choose`] and [`solve`], [`Error::Device`] where memory lacks or the device fails.
pub fn sum(
    gpu: &Gpu,
    arrays: &mut Arrays,
    settings: &Settings,
    bodies: Bodies,
    kept: Option<Kept>,
    times: &mut StageTimes,
) -> Result<Solved<Summed>, Error> {
    let (mut trial, resolved) = begin(gpu, arrays, settings, bodies, times)?;
    let mut solved = solve(&resolved, kept, &mut trial)?;
    if settings.errors {
        solved.sums.of_vectors = trial.of_vectors(&solved.sums, &solved.choice)?;
    }
    Ok(solved)
}

/// Sums with the order of `settings`, which must be given, and measures the error as the driver does.
///
/// # Errors
/// Those of [`sum`].
pub fn measure(gpu: &Gpu, arrays: &mut Arrays, settings: &Settings, bodies: Bodies) -> Result<f64, Error> {
    let times = &mut StageTimes::default();
    let (mut trial, resolved) = begin(gpu, arrays, settings, bodies, times)?;
    let summed = trial.execute(&resolved, &accuracy::choose(&resolved, trial.problem)?)?;
    trial.measure(&summed, Look::First)
}

/// What is known before the first choice, and the settings with method and leaf size resolved.
fn begin<'a>(
    gpu: &'a Gpu,
    arrays: &'a mut Arrays,
    settings: &Settings,
    bodies: Bodies<'a>,
    times: &'a mut StageTimes,
) -> Result<(SpaceTrial<'a>, Settings), Error> {
    if bodies.quantity == Quantity::Hessian && settings.boundary.periodic().is_some() {
        let why = "second derivatives in periodic boxes are summed on the cores alone; device: auto, cpu";
        return Err(Error::Unsupported(why.into()));
    }
    if settings.errors && bodies.quantity != Quantity::Potential {
        let why = "errors of each target of vortices and with second derivatives are estimated on the cores alone; \
                   device: auto, cpu";
        return Err(Error::Unsupported(why.into()));
    }
    let Bodies { quantity, inputs, host, strengths, field, potential, hessian } = bodies;
    let ends = inputs.ends();
    // Second derivatives are summed whole by every GPU of a team.
    arrays.fmm.divided = quantity != Quantity::Hessian;
    // What else is done with results takes all of them.
    arrays.fmm.whole = settings.errors || quantity != Quantity::Potential || settings.boundary.periodic().is_some();
    // Method and leaves anew for every sum, from the bodies as they are.
    let (cube, problem, resolved) = times.time_more(Stage::Tree, || resolve(gpu, arrays, settings, ends, strengths))?;
    let trial = SpaceTrial {
        gpu,
        arrays,
        cube,
        problem,
        fits: settings.leaf_size.is_none() && settings.uniform.is_none(),
        quantity,
        inputs,
        host,
        field,
        potential,
        hessian,
        cell: settings.boundary.periodic().copied(),
        softening: settings.softening,
        tolerance: settings.tolerance,
        begun: false,
        meshed: None,
        weights: None,
        norms: None,
        times,
    };
    Ok((trial, resolved))
}

/// The cube of all bodies, what the choice depends on, and the settings with method and leaf size resolved.
///
/// # Errors
/// Those of [`policy::choose`], [`Error::Device`] where memory lacks or the device fails.
pub fn resolve(
    gpu: &Gpu,
    arrays: &mut Arrays,
    settings: &Settings,
    ends: Ends,
    strengths: Strengths,
) -> Result<(Cube<3>, Problem, Settings), Error> {
    if let Some(cell) = settings.boundary.periodic() {
        settings.check()?;
        direct::fits(gpu, arrays.boxed.growth(cell, ends), "the places of all particles in the box")?;
        arrays.boxed.wrap(gpu, cell, ends)?;
        let cube = Cube { corner: [0.0; 3], side: cell.longest() };
        let sources = arrays.boxed.ends(ends).sources;
        let dense = settings.softening != Softening::None;
        let spread = arrays.survey.spread(gpu, &mut arrays.work, sources, cube, dense)?;
        let problem = Problem::new(ends.sources.n, ends.at().n, strengths, &spread, &cube).in_box();
        let problem = problem.with_mesh(Some(policy::MESH));
        let resolved = policy::choose(settings, problem)?;
        return Ok((cube, problem, policy::choose_precision(resolved, arrays.boxed.imbalance())));
    }
    let sets = [Some(ends.sources), ends.targets];
    let cube = arrays.survey.cube(gpu, &sets.into_iter().flatten().collect::<Vec<_>>())?;
    // Where bodies are dense matters to softened kernels alone.
    let dense = settings.softening != Softening::None;
    let spread = arrays.survey.spread(gpu, &mut arrays.work, ends.sources, cube, dense)?;
    let problem = Problem::new(ends.sources.n, ends.at().n, strengths, &spread, &cube);
    Ok((cube, problem, policy::choose(settings, problem)?))
}

/// A sum in space on the device. Its results stay there.
struct SpaceTrial<'a> {
    gpu: &'a Gpu,
    arrays: &'a mut Arrays,
    cube: Cube<3>,
    problem: Problem,
    /// Whether the cube may be widened to fit the leaves: not where their size or level is given.
    fits: bool,
    quantity: Quantity,
    inputs: &'a mut Inputs,
    host: Option<Host<'a>>,
    field: &'a mut Buffer<f64>,
    potential: Option<&'a mut Buffer<f64>>,
    hessian: Option<&'a mut Buffer<f64>>,
    cell: Option<PeriodicBox>,
    softening: Softening,
    tolerance: f64,
    /// Whether the guard's waves are on their way.
    begun: bool,
    /// The error that the last sum would have among ions, if it had a mesh.
    meshed: Option<f64>,
    /// Of the present sum in a box, once they are known.
    weights: Option<Weights>,
    /// What the guard has found of the last sum.
    norms: Option<Norms>,
    times: &'a mut StageTimes,
}

impl SpaceTrial<'_> {
    fn output(&self) -> Output {
        let potential = self.potential.as_ref().map_or(DevicePointer::null(), |p| p.pointer());
        Output { field: self.field.pointer(), potential }
    }

    /// The sum of every column of strengths by `sum`, measured where the bodies of one column make room for those of the next.
    fn of_columns(
        &mut self,
        settings: &Settings,
        mut sum: impl FnMut(&mut Self, Ends, Output) -> Result<Summed, Error>,
    ) -> Result<Summed, Error> {
        if self.quantity != Quantity::Velocity {
            return sum(self, self.inputs.ends(), self.output());
        }
        let n = self.inputs.ends().at().n;
        self.arrays.column.resize(3 * n)?;
        self.field.fill(self.gpu.stream(), 0)?;
        let (mut all, mut columns) = (Summed::default(), vec![]);
        for &column in &self.inputs.by_size() {
            let output = Output { field: self.arrays.column.pointer(), potential: DevicePointer::null() };
            all = sum(self, self.inputs.ends_of(column), output)?;
            let view = VelocityView {
                field: output.field,
                velocity: self.field.pointer(),
                n: n as u32,
                component: column as u32,
            };
            if n > 0 {
                let blocks = n.div_ceil(TILE) as u32;
                // SAFETY: both arrays have three numbers for each of the targets.
                unsafe {
                    self.gpu.kernels().launch(self.gpu.stream(), "add_velocity_f64", blocks, TILE as u32, &view)?
                };
            }
            self.gpu.finish()?;
            if settings.guarded().is_some() {
                let start = std::time::Instant::now();
                let same_sample = !columns.is_empty();
                columns.push((column, self.rows(&all, output.field, same_sample)?));
                self.times.add(Stage::Guard, start.elapsed());
            }
        }
        Ok(Summed { columns, ..all })
    }

    fn direct_sum(&mut self, request: &Request, ends: Ends, output: Output) -> Result<Summed, Error> {
        let (gpu, direct) = (self.gpu, &mut self.arrays.direct);
        let (sources, targets) = (ends.sources.n, ends.targets.map(|t| t.n));
        let what = format!("{sources} sources at {} targets", ends.at().n);
        direct::fits(gpu, direct.growth(request, sources, targets), &what)?;
        let units = direct::units(self.cube, ends.largest);
        let sorted = request.precision == Precision::F32;
        let same = ends.targets.is_none();
        self.times.time(Stage::Tree, || {
            direct.sources.arrange(gpu, ends.sources, units, sorted)?;
            if let Some(points) = ends.targets {
                direct.targets.arrange(gpu, points, units, sorted)?;
            }
            gpu.finish()
        })?;
        self.times.time(Stage::P2P, || {
            direct.sum(gpu, request, units, same, output)?;
            if let Some(out) = &self.hessian {
                // In double precision bodies are in the caller's order.
                let bodies = (&direct.sources.bodies, (!same).then_some(&direct.targets.bodies));
                self.arrays.hessian.of_all_pairs(gpu, request.softening, units, bodies, out.pointer())?;
            }
            gpu.finish()
        })?;
        Ok(Summed { units: Some(units), ..Summed::default() })
    }

    /// A sum in open space with expansions.
    fn sum_by_plan(&mut self, settings: &Settings, choice: &Choice) -> Result<Summed, Error> {
        let (gpu, Arrays { fmm, work, .. }) = (self.gpu, &mut *self.arrays);
        let fitted = || accuracy::fit(self.cube, &self.problem, policy::best_leaf(choice), choice.leaf_size);
        let cube = if self.fits { fitted() } else { self.cube };
        let planned = match (settings.uniform, self.host) {
            (None, _) => {
                let positions = self.inputs.positions();
                fmm.plan(gpu, work, settings, choice.clone(), (cube, None), positions, self.times)?
            }
            // The device makes no trees of one depth.
            (Some(_), Some((sources, _, targets))) => {
                let plan = OctreePlan::new(settings, choice.clone(), cube, sources, targets, self.times);
                self.times.time_more(Stage::Tree, || fmm.take(&plan))?
            }
            (Some(_), None) => {
                let why = "trees of a given depth for vortices and runs are on the cores alone; use device cpu";
                return Err(Error::Unsupported(why.into()));
            }
        };
        self.of_columns(settings, |trial, ends, output| {
            let Arrays { fmm, work, hessian, .. } = &mut *trial.arrays;
            let more = if trial.hessian.is_some() { hessian.growth(ends.at().n) } else { 0 };
            let scarce = trial.host.is_some() && fmm.growth(ends) + more > gpu.free_memory()?;
            if scarce {
                fmm.trim(work);
            }
            fmm.gather(gpu, ends)?;
            if scarce {
                gpu.finish()?;
                trial.inputs.release();
            }
            fmm.sum(gpu, settings, &planned, ends, output, trial.times, None, None)?;
            if let Some(out) = &trial.hessian {
                fmm.hessian(gpu, hessian, out.pointer(), trial.times)?;
            }
            let (coincident_pairs, sliced) = (Some(planned.coincident_pairs), fmm.is_sliced());
            Ok(Summed { coincident_pairs, sliced, ..Summed::default() })
        })
    }
}

impl Trial for SpaceTrial<'_> {
    type Sums = Summed;

    fn problem(&self) -> Problem {
        self.problem
    }

    fn cancel(&self) -> &Cancel {
        self.times.cancel()
    }

    fn choose(&self, settings: &Settings, target_error: f64) -> Result<Choice, Error> {
        let target_error = policy::table_error(&self.problem, self.quantity.table_error(target_error));
        let choice = accuracy::choose_for(settings, self.problem, target_error)?;
        if let Some(points) = self.cell.and_then(|cell| policy::mesh_points(&cell, &self.problem, &choice)) {
            mesh::check_lines(points, choice.precision == Precision::F32)?;
        }
        if self.quantity != Quantity::Hessian || (choice.method, choice.precision) != (Method::Direct, Precision::F32) {
            return Ok(choice);
        }
        if settings.precision == Precision::F32 {
            let why = "direct sums of second derivatives on a GPU are in double precision; precision: auto, f64";
            return Err(Error::Unsupported(why.into()));
        }
        Ok(Choice { precision: Precision::F64, ..choice })
    }

    fn execute(&mut self, settings: &Settings, choice: &Choice) -> Result<Summed, Error> {
        if let Some(host) = self.host.filter(|_| self.inputs.released()) {
            self.inputs.upload(self.gpu, host)?;
        }
        let n = self.inputs.ends().at().n;
        self.field.resize(3 * n)?;
        if let Some(potential) = &mut self.potential {
            potential.resize(n)?;
        }
        if let Some(hessian) = &mut self.hessian {
            hessian.resize(6 * n)?;
        }
        let meshed = choice.order.filter(|_| choice.method == Method::Mesh);
        self.meshed = meshed.map(|points| Recipe::error_in(points, choice.precision));
        self.weights = None;
        match (self.cell, choice.method) {
            (Some(cell), Method::Mesh) => self.sum_with_mesh(settings, choice, &cell),
            (Some(cell), Method::Direct) => {
                self.direct_in_box(&cell)?;
                Ok(Summed::default())
            }
            (Some(cell), _) => self.sum_in_box(settings, choice, &cell),
            (None, Method::Direct) => {
                let (softening, precision) = (settings.softening, choice.precision);
                let request = Request { softening, precision, potential: self.potential.is_some() };
                self.of_columns(settings, |trial, ends, output| trial.direct_sum(&request, ends, output))
            }
            (None, _) => self.sum_by_plan(settings, choice),
        }
    }

    fn weights(&mut self, _: &Summed) -> Result<Option<Weights>, Error> {
        let Some(cell) = self.cell else { return Ok(None) };
        let start = std::time::Instant::now();
        let weights = self.weights_in_box(&cell);
        self.times.add(Stage::Guard, start.elapsed());
        weights.map(Some)
    }

    fn looks_closer(&self) -> bool {
        // Second derivatives have one sample for every look.
        self.cell.is_none() && self.hessian.is_none() && self.arrays.guard.predicts()
    }

    fn error(&mut self, summed: &Summed, look: Look) -> Result<f64, Error> {
        let start = std::time::Instant::now();
        let measured = self.measure(summed, look);
        self.times.add(Stage::Guard, start.elapsed());
        measured
    }

    fn repair(&mut self, summed: &mut Summed, choice: &Choice) -> Result<bool, Error> {
        let start = std::time::Instant::now();
        let repaired = self.sum_again(summed, choice);
        self.times.add(Stage::Guard, start.elapsed());
        repaired
    }
}
