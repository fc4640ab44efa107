//! Sums at the points of bricks on a device: direct ones, and those of expansions where it takes them too.

use std::ops::Range;

use cust::memory::{DeviceCopy, DevicePointer};
use cust::stream::Stream;
use fmm_core::grid::far::{Expansions, weights_len};
use fmm_core::grid::near::SUMS;
use fmm_core::grid::plan::{BRICKS, Brick, Lists, SIDE};
use fmm_core::grid::sources::{Cells, Sources};
use fmm_core::grid::{Green, Grid};
use fmm_core::math::scale::power_of_two_below;
use fmm_core::{Error, Stage};

use super::tasks::Tasks;
use super::view::{COLUMNS, EVALUATORS, GridSource, GridView};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::direct::fits;

/// Threads of a block that sorts or joins.
const THREADS: usize = 256;

/// The lists of direct sums on the device.
#[derive(Default)]
struct Direct {
    tasks: Buffer<[u32; 4]>,
    runs: Buffer<[u32; 2]>,
    parts: Buffer<[u32; 3]>,
}

/// The arrays of sums on a device, kept from one to the next.
#[derive(Default)]
pub struct Sums {
    cells: (Buffer<[f64; 3]>, Buffer<[f64; 3]>, Buffer<f64>),
    order: Buffer<u32>,
    sources: Buffer<GridSource>,
    bricks: Buffer<[[f64; SIDE]; 3]>,
    direct: Direct,
    far: (Buffer<[u32; 4]>, Buffer<u32>),
    nodes: (Buffer<[f64; 4]>, Buffer<f64>),
    factors: (Buffer<f64>, Buffer<[f64; 2]>),
    out: Buffer<f64>,
    place: Buffer<u32>,
    /// Sums that the cores made.
    others: Buffer<f64>,
    tasks: Tasks,
    scale: f64,
    root: f64,
    order_p: usize,
}

impl Sums {
    /// Sends what is known before there is a tree. The GPU must be entered.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or a copy fails.
    pub fn send(&mut self, grid: &Grid, cells: &Cells) -> Result<(), Error> {
        self.scale = 1.0 / power_of_two_below(grid.side());
        let bricks = grid.blocks().len() * BRICKS;
        let at = |b: usize| Brick::new(grid, b).at.map(|x| x.map(|x| x * self.scale));
        self.cells.0.upload(&cells.center)?;
        self.cells.1.upload(&cells.strength)?;
        self.cells.2.upload(&cells.core2)?;
        self.bricks.upload(&(0..bricks).map(at).collect::<Vec<_>>())
    }

    /// Sends the strengths of other cells, whose numbers are the same.
    ///
    /// # Errors
    /// [`Error::Device`] if the copy fails.
    pub fn strengthen(&mut self, cells: &Cells) -> Result<(), Error> {
        self.cells.1.upload(&cells.strength)
    }

    /// Sends the tree and the lists; with the order of expansions if their sums are made here too.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or a copy fails.
    pub fn take(&mut self, gpu: &Gpu, sources: &Sources, lists: &Lists, order: Option<usize>) -> Result<(), Error> {
        let order = order.filter(|_| !lists.far.is_empty());
        self.tasks = Tasks::new(lists, sources, order.is_some());
        let tasks = &self.tasks;
        let weights = order.map_or(0, |p| self.nodes.1.growth(weights_len(p) * sources.tree.len()));
        let bytes = self.out.growth(tasks.places * SUMS) + self.sources.growth(sources.len()) + weights;
        fits(gpu, bytes, "the sums of the grid")?;
        self.order.upload(&sources.tree.order)?;
        self.direct.tasks.upload(&tasks.tasks)?;
        self.direct.runs.upload(&tasks.runs)?;
        self.direct.parts.upload(&tasks.parts)?;
        self.place.upload(&tasks.place)?;
        self.sources.resize(sources.len())?;
        self.out.resize(tasks.places * SUMS)?;
        if let Some(order) = order {
            self.far.0.upload(&tasks.far)?;
            self.far.1.upload(&lists.far.items)?;
            (self.root, self.order_p) = (sources.tree.half(0), order);
        }
        Ok(())
    }

    /// Sends the expansions of the tree.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or a copy fails.
    pub fn weigh(&mut self, sources: &Sources, expansions: &Expansions<f64>) -> Result<(), Error> {
        let (tree, scale) = (&sources.tree, self.scale);
        let node = |(c, half): (&[f64; 3], &f64)| [c[0] * scale, c[1] * scale, c[2] * scale, 1.0 / (half * scale)];
        self.nodes.0.upload(&tree.center.iter().zip(expansions.half()).map(node).collect::<Vec<_>>())?;
        self.nodes.1.upload(expansions.weights())?;
        self.factors.0.upload(expansions.factors().0)?;
        self.factors.1.upload(expansions.factors().1)
    }

    fn view(&self) -> GridView {
        GridView {
            center: self.cells.0.pointer(),
            strength: self.cells.1.pointer(),
            core2: self.cells.2.pointer(),
            order: self.order.pointer(),
            source: self.sources.pointer(),
            brick: self.bricks.pointer(),
            tasks: self.direct.tasks.pointer(),
            runs: self.direct.runs.pointer(),
            parts: self.direct.parts.pointer(),
            nodes: self.far.1.pointer(),
            node: self.nodes.0.pointer(),
            weights: self.nodes.1.pointer(),
            diagonal: self.factors.0.pointer(),
            steps: self.factors.1.pointer(),
            out: self.out.pointer(),
            place: self.place.pointer(),
            others: self.others.pointer(),
            psi: DevicePointer::null(),
            field: DevicePointer::null(),
            scale: self.scale,
            stream: self.scale,
            velocity: -self.scale * self.scale,
            n: self.order.len() as u32,
            count: 0,
            degree: self.order_p as u32,
            length: weights_len(self.order_p) as u32,
        }
    }

    /// Queues all sums. What they take goes to the clock that is given back.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn begin<'a>(&mut self, gpu: &'a Gpu, green: Green) -> Result<Clock<'a>, Error> {
        gpu.settle()?;
        let view = self.view();
        let mut clock = Clock::start(gpu)?;
        if !self.tasks.far.is_empty() {
            // Bricks without direct sums.
            self.out.fill(gpu.stream(), 0)?;
        }
        launch(gpu, gpu.stream(), "grid_sort", self.order.len().div_ceil(THREADS), THREADS, 0, &view)?;
        clock.mark(None)?;
        gpu.order(gpu.stream(), gpu.side())?;
        // Where the last blocks of one group leave room, those of the next begin.
        for g in 0..self.tasks.groups.len() {
            let (stream, group) = (if g % 2 == 0 { gpu.stream() } else { gpu.side() }, self.tasks.groups[g].clone());
            self.direct(gpu, stream, green, &view, [&group.tasks, &group.parts])?;
        }
        gpu.order(gpu.side(), gpu.stream())?;
        clock.mark(Some(Stage::P2P))?;
        if !self.tasks.far.is_empty() {
            gpu.order(gpu.stream(), gpu.side())?;
            for g in 0..self.tasks.groups.len() {
                let (stream, group) =
                    (if g % 2 == 0 { gpu.stream() } else { gpu.side() }, self.tasks.groups[g].clone());
                self.expand(gpu, stream, &view, &group.far)?;
            }
            gpu.order(gpu.side(), gpu.stream())?;
            clock.mark(Some(Stage::M2P))?;
        }
        Ok(clock)
    }

    /// Queues direct sums of a group.
    fn direct(
        &self,
        gpu: &Gpu,
        stream: &Stream,
        green: Green,
        view: &GridView,
        [tasks, parts]: [&Range<usize>; 2],
    ) -> Result<(), Error> {
        let name = if green == Green::Singular { "grid_p2p_singular" } else { "grid_p2p_regularised" };
        let of_group =
            GridView { tasks: after(view.tasks, tasks.start), parts: after(view.parts, parts.start), ..*view };
        launch(gpu, stream, name, tasks.len(), COLUMNS, 0, &of_group)?;
        launch(gpu, stream, "grid_join", parts.len(), THREADS, 0, &of_group)
    }

    /// Queues expansions of a group.
    fn expand(&self, gpu: &Gpu, stream: &Stream, view: &GridView, far: &Range<usize>) -> Result<(), Error> {
        let shared = (view.length as usize + 1).next_multiple_of(2) * size_of::<f64>();
        let tasks = after(self.far.0.pointer(), far.start);
        let of_group = GridView { tasks, stream: 1.0 / self.root, velocity: 1.0 / (self.root * self.root), ..*view };
        launch(gpu, stream, "grid_m2p", far.len(), EVALUATORS, shared, &of_group)
    }

    /// Queues Ψ and u in all cells, block after block: `[cells][3]` each. The sums of the cores, if
    /// there are any, are `others`, with
    /// [`SUMS`] numbers a brick; all are of strengths multiplied by `scale`.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn spread(
        &mut self,
        gpu: &Gpu,
        others: &[f64],
        scale: f64,
        [psi, field]: [DevicePointer<f64>; 2],
    ) -> Result<(), Error> {
        self.others.upload(others)?;
        gpu.settle()?;
        let stream = 1.0 / (4.0 * std::f64::consts::PI * scale);
        let view = GridView { psi, field, stream, ..self.view() };
        launch(gpu, gpu.stream(), "grid_spread", self.place.len() / BRICKS, THREADS, 0, &view)
    }

    /// The direct sums alone once more: what the device takes for them.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn direct_again(&self, gpu: &Gpu, green: Green) -> Result<std::time::Duration, Error> {
        let (view, all) = (self.view(), [&(0..self.tasks.tasks.len()), &(0..self.tasks.parts.len())]);
        crate::microbenchmarks::timed(gpu, || self.direct(gpu, gpu.stream(), green, &view, all))
    }

    /// The expansions alone once more.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver or a kernel fails.
    pub fn expand_again(&self, gpu: &Gpu) -> Result<std::time::Duration, Error> {
        let (view, all) = (self.view(), 0..self.tasks.far.len());
        crate::microbenchmarks::timed(gpu, || self.expand(gpu, gpu.stream(), &view, &all))
    }
}

/// The address of the element `n` of an array.
pub(super) fn after<T: DeviceCopy>(array: DevicePointer<T>, n: usize) -> DevicePointer<T> {
    // Of an empty array nothing is asked.
    if n == 0 { array } else { array.wrapping_add(n) }
}

fn launch(
    gpu: &Gpu,
    stream: &Stream,
    name: &str,
    blocks: usize,
    threads: usize,
    shared: usize,
    view: &GridView,
) -> Result<(), Error> {
    if blocks == 0 {
        return Ok(());
    }
    // SAFETY: all arrays have the lengths that the view says.
    unsafe { gpu.kernels().launch_with(stream, name, blocks as u32, (threads as u32, shared), view) }
}
