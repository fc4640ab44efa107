//! Ewald's sum with a mesh on the device, see [`fmm_core::mesh`]: pairs within a cut-off, all else by Fourier transforms of
//! strengths on a mesh.
//!
//! Bodies are sorted once, by cells of whole points of the mesh; pairs, spreading and gathering read them in this order.

mod cells;
mod pairs;
mod tables;
mod transform;
pub mod view;
mod window;

use cust::memory::DevicePointer;
use fmm_core::mesh::{Influence, Mesh, Recipe, Split, Window};
use fmm_core::{Error, Precision, Stage, StageTimes};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::direct::{self, Output};
use crate::fmm::More;
use crate::geometry::Work;
use crate::inputs::Ends;
use crate::view::Body;
pub use cells::InCells;
use pairs::{PairRequest, PairSums, Pairs};
pub use transform::check_lines;
use transform::{MeshArrays, Transform};
use view::Lattice;
use window::{Scales, Windows};

/// The arrays of sums with a mesh, kept from one to the next.
#[derive(Default)]
pub struct MeshSums {
    tables: Option<Tables>,
    sources: InCells,
    targets: InCells,
    pairs: PairSums,
    arrays: MeshArrays,
    coincident: Buffer<u64>,
}

/// What sums of one box, recipe, cut-off and precision have in common.
struct Tables {
    of: ([f64; 3], Recipe, f64, Precision),
    split: Split,
    lattice: Lattice,
    pairs: Pairs,
    windows: Windows,
    transform: Transform,
}

/// Whether pairs and whether the mesh are in single precision.
fn singles(precision: Precision) -> (bool, bool) {
    (matches!(precision, Precision::F32 | Precision::Mixed), precision == Precision::F32)
}

impl Tables {
    fn new(mesh: &Mesh) -> Result<Self, Error> {
        let Mesh { cell, recipe, cutoff, precision, .. } = *mesh;
        let split = Split::of(mesh);
        let points = recipe.counts(cutoff, cell.side);
        let all: f64 = points.iter().map(|&n| n as f64).product();
        if all >= f64::from(u32::MAX) {
            return Err(Error::Unsupported(format!(
                "the mesh of this box would have {all:.1e} points, more than a GPU's numbers count; use device cpu, or a \
                 larger leaf_size, the number of bodies within the cut-off"
            )));
        }
        let single = singles(precision).1;
        let lattice = Lattice::new(points, cell.side, cutoff, split.scale);
        let window = Window::<f64>::new(recipe.points, recipe.oversampling);
        let influence = split.influence(recipe, &window, points);
        Ok(Tables {
            of: (cell.side, recipe, cutoff, precision),
            lattice,
            pairs: Pairs::new(split.far(), &lattice)?,
            windows: Windows::new(&window, recipe.points, single)?,
            transform: Transform::new(points, split.sides, &influence, single)?,
            split,
        })
    }
}

impl MeshSums {
    /// Sums at all targets, whose places lie in the box, to `output` in the caller's order: in tin
    /// foil. `charge` is Σ q, `crowding` how many times more bodies a body sees around it than if
    /// they filled the box evenly. Returns the pairs of sources at bitwise the same place.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for meshes of too many points, or with lines that are too long; [`Error::Device`] without
    /// the memory, or if the driver fails.
    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        mesh: &Mesh,
        within: Ends,
        (charge, crowding): (f64, f64),
        output: Output,
        more: Option<More>,
        times: &mut StageTimes,
    ) -> Result<u64, Error> {
        let of = (mesh.cell.side, mesh.recipe, mesh.cutoff, mesh.precision);
        let made = match self.tables.take().filter(|tables| tables.of == of) {
            Some(tables) => tables,
            None => {
                let tables = Tables::new(mesh)?;
                gpu.settle()?;
                tables
            }
        };
        let MeshSums { tables, sources, targets, pairs, arrays, coincident } = self;
        let Tables { split, lattice, pairs: near, windows, transform, .. } = tables.insert(made);
        let (n, m) = (within.sources.n, within.at().n);
        let cells = lattice.all_cells();
        let more_memory = sources.growth(n, cells)
            + within.targets.map_or(0, |t| targets.growth(t.n, cells))
            + pairs.growth(m)
            + transform.growth(arrays);
        direct::fits(gpu, more_memory, &format!("the mesh of {:?} points and {n} bodies", lattice.points))?;
        let single_pairs = singles(mesh.precision).0;
        let unit = within.strength_scale();
        let mut clock = Clock::start(gpu)?;
        sources.arrange(gpu, work, lattice, within.sources, unit, single_pairs)?;
        let others = within.targets.is_some();
        if let Some(points) = within.targets {
            targets.arrange(gpu, work, lattice, points, unit, single_pairs)?;
        }
        transform.ready(arrays)?;
        sources.count_coincident(gpu, lattice, coincident)?;
        clock.mark(Some(Stage::Tree))?;
        // Pairs at the same time as the mesh: neither needs the other until both are at the targets.
        let brick = lattice.brick(mesh.cutoff * split.scale, m, crowding);
        let request = PairRequest {
            lattice,
            brick,
            sources,
            targets: others.then_some(targets),
            softening: mesh.softening,
            single: single_pairs,
            closest: mesh.closest,
        };
        gpu.order(gpu.stream(), gpu.side())?;
        clock.beside(gpu.side(), Stage::P2P, || near.sum(gpu, gpu.side(), &request, pairs))?;
        windows.spread(gpu, lattice, sources, &arrays.mesh)?;
        clock.mark(Some(Stage::Spread))?;
        transform.apply(gpu, arrays)?;
        clock.mark(Some(Stage::Fft))?;
        gpu.order(gpu.side(), gpu.stream())?;
        if let Some(more) = more {
            more(gpu.side())?;
        }
        clock.mark(None)?;
        let softening = mesh.softening.scaled(split.scale);
        let scales = Scales {
            background: split.background() * charge * unit,
            own: if others || direct::kernel(softening, 1.0).0 == "newton" { 0.0 } else { Split::own(softening) },
            potential: split.scale / unit,
            field: split.scale * split.scale / unit,
        };
        let at = if others { &*targets } else { &*sources };
        windows.gather(gpu, lattice, at, &arrays.functions, &pairs.sums, scales, output)?;
        clock.mark(Some(Stage::Gather))?;
        clock.read(times)?;
        Ok(coincident.download()?.first().copied().unwrap_or(0))
    }

    /// Sources, and targets if they are others, as the guard reads them: in the order of cells.
    pub fn bodies(&self, same: bool) -> [DevicePointer<Body>; 2] {
        let sources = self.sources.bodies.pointer();
        [sources, if same { sources } else { self.targets.bodies.pointer() }]
    }

    /// The cell of each target, and the first source of each cell.
    pub fn cells(&self, same: bool) -> [DevicePointer<u32>; 2] {
        let at = if same { &self.sources } else { &self.targets };
        [at.cell.pointer(), self.sources.start.pointer()]
    }

    /// The target of each place.
    pub fn order(&self, same: bool) -> DevicePointer<u32> {
        if same { self.sources.order.pointer() } else { self.targets.order.pointer() }
    }
}

/// Potential and field, `[x][y][z][4]`, of strengths on a mesh of so many points over a box of these sides: the transforms
/// alone, for comparisons.
///
/// # Errors
/// [`Error::Unsupported`] for lines that are too long; [`Error::Device`] without the memory, or if the driver fails.
pub fn transforms(
    gpu: &Gpu,
    counts: [usize; 3],
    sides: [f64; 3],
    influence: &Influence,
    strengths: &[f64],
    single: bool,
) -> Result<Vec<f64>, Error> {
    gpu.enter()?;
    let transform = Transform::new(counts, sides, influence, single)?;
    let mut arrays = MeshArrays::default();
    transform.ready(&mut arrays)?;
    arrays.mesh = tables::place_real(strengths, single)?;
    gpu.settle()?;
    transform.apply(gpu, &arrays)?;
    gpu.finish()?;
    tables::read_real(&arrays.functions, single)
}
