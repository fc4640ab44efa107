//! Sums at the points of bricks on a device: direct ones, and those of expansions where it takes them too.

use std::ops::Range;

use cust::memory::{AsyncCopyDestination, DeviceCopy, DevicePointer, DeviceSlice, LockedBuffer};
use cust::stream::{Stream, StreamFlags};
use fmm_core::grid::far::{Expansions, weights_len};
use fmm_core::grid::near::SUMS;
use fmm_core::grid::plan::{BRICKS, Brick, Lists, SIDE};
use fmm_core::grid::sources::{Cells, Sources};
use fmm_core::grid::{Green, Grid};
use fmm_core::math::scale::power_of_two_below;
use fmm_core::{Error, Stage, StageTimes};

use super::tasks::{NONE, Tasks};
use super::view::{COLUMNS, EVALUATORS, GridSource, GridView};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::clock::Clock;
use crate::direct::fits;
use crate::error::device as told;

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
    tasks: Tasks,
    scale: f64,
    root: f64,
    order_p: usize,
    /// Sums on the host, in memory that the device writes to by itself.
    host: Option<LockedBuffer<f64>>,
    copies: Stream,
}

impl Sums {
    /// No arrays yet.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses a queue.
    pub fn new(gpu: &Gpu) -> Result<Self, Error> {
        gpu.enter()?;
        let copies = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(told("cannot make a queue of the GPU"))?;
        Ok(Sums {
            cells: Default::default(),
            order: Buffer::new(),
            sources: Buffer::new(),
            bricks: Buffer::new(),
            direct: Direct::default(),
            far: Default::default(),
            nodes: Default::default(),
            factors: Default::default(),
            out: Buffer::new(),
            tasks: Tasks::default(),
            scale: 1.0,
            root: 1.0,
            order_p: 1,
            host: None,
            copies,
        })
    }

    /// Sends what is known before there is a tree, and has memory ready for what comes back. The GPU must be entered.
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
        self.bricks.upload(&(0..bricks).map(at).collect::<Vec<_>>())?;
        if self.host.as_ref().is_none_or(|h| h.len() < bricks * SUMS) {
            self.host = None;
            // SAFETY: only what the device has written is read.
            let host = unsafe { LockedBuffer::uninitialized(bricks * SUMS) };
            let bytes = bricks * SUMS * size_of::<f64>();
            self.host = Some(host.map_err(told(&format!("no {bytes} bytes of memory for the sums")))?);
        }
        Ok(())
    }

    /// Sends the tree and the lists; with expansions if their sums are made here too.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or a copy fails.
    pub fn take(
        &mut self,
        gpu: &Gpu,
        sources: &Sources,
        lists: &Lists,
        expansions: Option<(&Expansions<f64>, usize)>,
    ) -> Result<(), Error> {
        let expansions = expansions.filter(|_| !lists.far.is_empty());
        self.tasks = Tasks::new(lists, sources, expansions.is_some());
        let tasks = &self.tasks;
        let weights = expansions.map_or(0, |(e, _)| self.nodes.1.growth(e.weights().len()));
        let bytes = self.out.growth(tasks.places * SUMS) + self.sources.growth(sources.len()) + weights;
        fits(gpu, bytes, "the sums of the grid")?;
        self.order.upload(&sources.tree.order)?;
        self.direct.tasks.upload(&tasks.tasks)?;
        self.direct.runs.upload(&tasks.runs)?;
        self.direct.parts.upload(&tasks.parts)?;
        self.sources.resize(sources.len())?;
        self.out.resize(tasks.places * SUMS)?;
        if let Some((expansions, order)) = expansions {
            self.far.0.upload(&tasks.far)?;
            self.far.1.upload(&lists.far.items)?;
            let (tree, scale) = (&sources.tree, self.scale);
            let node = |(c, half): (&[f64; 3], &f64)| [c[0] * scale, c[1] * scale, c[2] * scale, 1.0 / (half * scale)];
            self.nodes.0.upload(&tree.center.iter().zip(expansions.half()).map(node).collect::<Vec<_>>())?;
            self.nodes.1.upload(expansions.weights())?;
            self.factors.0.upload(expansions.factors().0)?;
            self.factors.1.upload(expansions.factors().1)?;
            self.root = tree.half(0);
            self.order_p = order;
        }
        gpu.settle()
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
            scale: self.scale,
            stream: self.scale,
            velocity: -self.scale * self.scale,
            n: self.order.len() as u32,
            count: 0,
            degree: self.order_p as u32,
            length: weights_len(self.order_p) as u32,
        }
    }

    /// Queues all sums, and their way back group by group. What they take goes to the clock that is given back.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver refuses.
    pub fn begin<'a>(&mut self, gpu: &'a Gpu, green: Green) -> Result<Clock<'a>, Error> {
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
            if self.tasks.far.is_empty() {
                self.bring(gpu, stream, &group.places)?;
            }
        }
        gpu.order(gpu.side(), gpu.stream())?;
        clock.mark(Some(Stage::P2P))?;
        if !self.tasks.far.is_empty() {
            gpu.order(gpu.stream(), gpu.side())?;
            for g in 0..self.tasks.groups.len() {
                let (stream, group) =
                    (if g % 2 == 0 { gpu.stream() } else { gpu.side() }, self.tasks.groups[g].clone());
                self.expand(gpu, stream, &view, &group.far)?;
                self.bring(gpu, stream, &group.places)?;
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

    /// Queues the way back of the sums at `places` once `stream` has made them.
    fn bring(&mut self, gpu: &Gpu, stream: &Stream, places: &Range<usize>) -> Result<(), Error> {
        let (Some(host), false) = (&mut self.host, places.is_empty()) else { return Ok(()) };
        gpu.order(stream, &self.copies)?;
        let range = places.start * SUMS..places.end * SUMS;
        // SAFETY: both are of these lengths, and nobody looks at the host's before the queue is done.
        let queued = unsafe {
            let from = DeviceSlice::from_raw_parts(after(self.out.pointer(), range.start), range.len());
            from.async_copy_to(&mut host[range], &self.copies)
        };
        queued.map_err(told("cannot copy from the GPU"))
    }

    /// Waits for the sums.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel or a copy has failed.
    pub fn finish(&self, clock: Clock<'_>, times: &mut StageTimes) -> Result<(), Error> {
        clock.read(times)?;
        self.copies.synchronize().map_err(told("cannot copy from the GPU"))
    }

    /// The sums of a brick, none where it has none.
    pub fn of(&self, brick: usize) -> &[f64] {
        let place = self.tasks.place[brick];
        match &self.host {
            Some(host) if place != NONE => &host[place as usize * SUMS..(place as usize + 1) * SUMS],
            _ => &[],
        }
    }

    /// The direct sums alone once more, without their way back: what the device takes for them.
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
fn after<T: DeviceCopy>(array: DevicePointer<T>, n: usize) -> DevicePointer<T> {
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
