//! Interaction lists on the device.

use fmm_core::Csr;
use fmm_core::Error;
use fmm_core::lists::{Classes, Lists, Pair, Rule, Space, image_class};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::DeviceTree;
use crate::geometry::view::{COUNTS, Image, LISTS, ListsView, TARGETS, THREADS};
use crate::geometry::work::{Work, launch};

/// Threads of a block of a treecode's walk: a warp walks, and one for each list places the rows.
const WALKERS: usize = 32 * COUNTS;

/// Targets of a block of the traversal in a level of at most [`SMALL`] cells, where a level takes as long as its slowest block: one
/// for each warp.
const FEW: usize = 8;
const SMALL: u32 = 32_768;

/// The most pairs that there is room for before they have been counted: a gigabyte of them.
const MOST_AT_FIRST: usize = 1 << 27;

/// Rows of pairs on the device, as [`Csr`] has them.
#[derive(Default)]
pub struct DeviceCsr {
    /// First pair of each row, and one past the last pair. `[cells + 1]`
    pub start: Buffer<u64>,
    /// Source and class. `[start[cells]]`
    pub pairs: Buffer<[u32; 2]>,
}

impl DeviceCsr {
    /// Copies `list`.
    fn upload(&mut self, list: &Csr<Pair>) -> Result<(), Error> {
        let pairs: Vec<[u32; 2]> = list.items.iter().map(|pair| [pair.source, pair.class]).collect();
        self.start.upload(&list.start)?;
        self.pairs.upload(&pairs)
    }

    /// A copy of the rows.
    fn download(&self) -> Result<Csr<Pair>, Error> {
        let items = self.pairs.download()?.into_iter().map(|[source, class]| Pair { source, class }).collect();
        Ok(Csr { start: self.start.download()?, items })
    }
}

/// What a traversal is expected to find, and how it goes.
struct Guess {
    /// Pairs of a cell.
    each: [usize; LISTS],
    /// Cells that a level leaves to the next.
    near: usize,
    /// Launches: the levels of the targets that are traversed one by one.
    launches: usize,
}

/// The images of the root that it meets.
fn of_root(space: &Space<3>) -> Vec<Image> {
    space.near.iter().map(|&offset| Image { offset, class: image_class(offset), source: 0 }).collect()
}

/// The four lists of a plan on the device, as [`Lists`] has them.
#[derive(Default)]
pub struct DeviceLists {
    /// M2L, M2P, P2L and P2P.
    lists: [DeviceCsr; LISTS],
}

impl DeviceLists {
    /// The lists of a fast multipole method between two trees of the same root in `space`: those of [`Lists::fmm_in`].
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    #[expect(clippy::too_many_arguments, reason = "the ends of one traversal")]
    pub fn fmm(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        space: &Space<3>,
        targets: &DeviceTree,
        sources: &DeviceTree,
        rule: Rule,
        classes: Classes<3>,
    ) -> Result<(), Error> {
        self.fmm_from(gpu, work, space, targets, sources, rule, classes, (0, &of_root(space)))
    }

    /// The same where lists begin at a level whose cells meet these images each.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    #[expect(clippy::too_many_arguments, reason = "the ends of one traversal")]
    pub fn fmm_from(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        space: &Space<3>,
        targets: &DeviceTree,
        sources: &DeviceTree,
        rule: Rule,
        classes: Classes<3>,
        (base, met): (usize, &[Image]),
    ) -> Result<(), Error> {
        let first = targets.level_start();
        let each = met.len() / (first[base + 1] - first[base]) as usize;
        let levels = targets.level_start().windows(2);
        let widest = levels.map(|l| (l[1] - l[0]) as usize).max().unwrap_or(0);
        let launches = targets.level_start().len() - 1;
        // Every cell of a box has all its neighbours.
        let near = if space.near.len() > 1 { 40 } else { 32 };
        let guess = Guess { each: [190, 1, 1, near / 2], near: near * widest + met.len(), launches };
        images(gpu, work, met)?;
        self.until_all_fit(gpu, work, targets, guess, |gpu, work, view| {
            let mut parents = 0;
            for (depth, level) in targets.level_start().windows(2).enumerate() {
                let cells = level[1] - level[0];
                let rows = if cells <= SMALL { FEW } else { TARGETS };
                let tiles = (cells as usize).div_ceil(rows);
                let (status, epoch) = work.launch(gpu, COUNTS * tiles)?;
                let (from, to) = (depth % 2, (depth + 1) % 2);
                let view = ListsView {
                    targets: targets.view(),
                    sources: sources.view(),
                    near: work.near[from].pointer(),
                    near_start: work.near_start[from].pointer(),
                    near_out: work.near[to].pointer(),
                    near_out_start: work.near_start[to].pointer(),
                    status,
                    epoch,
                    first: level[0],
                    cells,
                    rows: rows as u32,
                    parents,
                    depth: depth as u32,
                    base: base as u32,
                    image_count: each as u32,
                    radius: classes.radii(),
                    ..rule_of(rule, space, view)
                };
                // SAFETY: all arrays have the lengths that the view says.
                unsafe { launch(gpu, "lists_fmm", tiles, THREADS, &view)? };
                parents = level[0];
            }
            Ok(())
        })
    }

    /// The lists of a treecode between two trees of the same root in `space`: those of [`Lists::treecode_in`].
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn treecode(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        space: &Space<3>,
        targets: &DeviceTree,
        sources: &DeviceTree,
        rule: Rule,
    ) -> Result<(), Error> {
        images(gpu, work, &of_root(space))?;
        let cells = targets.cells();
        let tiles = cells.div_ceil(TARGETS);
        let guess = Guess { each: [0, 200, 0, 30], near: 0, launches: 1 };
        self.until_all_fit(gpu, work, targets, guess, |gpu, work, view| {
            work.near_start[1].resize(cells + 1)?;
            let (status, epoch) = work.launch(gpu, COUNTS * tiles)?;
            let view = ListsView {
                targets: targets.view(),
                sources: sources.view(),
                near_out_start: work.near_start[1].pointer(),
                status,
                epoch,
                cells: cells as u32,
                ..rule_of(rule, space, view)
            };
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { launch(gpu, "lists_walk", tiles, WALKERS, &view) }
        })
    }

    /// Queues a traversal, again with more memory where what it found did not fit.
    fn until_all_fit(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        targets: &DeviceTree,
        Guess { each, near, launches }: Guess,
        mut traverse: impl FnMut(&Gpu, &mut Work, ListsView) -> Result<(), Error>,
    ) -> Result<(), Error> {
        gpu.enter()?;
        let cells = targets.cells();
        let mut needed: [usize; COUNTS] =
            std::array::from_fn(|k| each.get(k).map_or(near, |e| e * cells).min(MOST_AT_FIRST) + 1024);
        let mut first = true;
        loop {
            for (csr, needed) in self.lists.iter_mut().zip(needed) {
                csr.start.resize(cells + 1)?;
                // What an earlier traversal has left is used as it is.
                csr.pairs.resize(if first && csr.pairs.capacity() > 0 { csr.pairs.capacity() } else { needed })?;
            }
            for k in 0..2 {
                let kept = work.near[k].capacity();
                work.near[k].resize(kept.max(needed[LISTS]))?;
                work.near_start[k].resize(cells + 1)?;
            }
            first = false;
            work.total.resize((launches + 1) * COUNTS)?;
            work.mark(gpu, "lists")?;
            work.total.fill(gpu.stream(), 0)?;
            let ticket = work.tickets(gpu, launches)?;
            let near = work.near[0].capacity().min(work.near[1].capacity());
            let lists = &self.lists;
            let capacity: [u64; COUNTS] =
                std::array::from_fn(|k| lists.get(k).map_or(near, |csr| csr.pairs.capacity()) as u64);
            let view = ListsView {
                targets: targets.view(),
                sources: targets.view(),
                start: std::array::from_fn(|k| self.lists[k].start.pointer()),
                pairs: std::array::from_fn(|k| self.lists[k].pairs.pointer()),
                capacity,
                near: cust::memory::DevicePointer::null(),
                near_start: cust::memory::DevicePointer::null(),
                near_out: cust::memory::DevicePointer::null(),
                near_out_start: cust::memory::DevicePointer::null(),
                total: work.total.pointer(),
                status: cust::memory::DevicePointer::null(),
                ticket,
                images: work.images.pointer(),
                point_separation2: 0.0,
                min_distance: 0.0,
                separation: 0.0,
                diagonal: 0.0,
                sides: [0.0; 3],
                aspect: [1.0; 3],
                m2l_min_pairs: 0,
                m2p_min_bodies: 0,
                p2l_min_bodies: 0,
                epoch: 0,
                first: 0,
                cells: 0,
                parents: 0,
                depth: 0,
                radius: [0; 3],
                separation2: 0,
                last: cells as u32,
                rows: TARGETS as u32,
                image_count: work.images.len() as u32,
                base: 0,
            };
            traverse(gpu, work, view)?;
            work.mark(gpu, "read back")?;
            gpu.finish()?;
            let total = work.total.download()?;
            let found: [usize; COUNTS] = std::array::from_fn(|k| total[launches * COUNTS + k] as usize);
            if found.iter().zip(capacity).all(|(&f, c)| f as u64 <= c) {
                for (csr, found) in self.lists.iter_mut().zip(found) {
                    csr.pairs.resize(found)?;
                }
                return Ok(());
            }
            // A quarter more, for the steps to come.
            needed = std::array::from_fn(|k| {
                if found[k] as u64 > capacity[k] { found[k] + found[k] / 4 } else { capacity[k] as usize }
            });
        }
    }

    /// Well-separated cells of one level.
    pub fn m2l(&self) -> &DeviceCsr {
        &self.lists[0]
    }

    /// Small sources seen by the bodies of a large leaf.
    pub fn m2p(&self) -> &DeviceCsr {
        &self.lists[1]
    }

    /// The bodies of a large leaf seen by a small cell.
    pub fn p2l(&self) -> &DeviceCsr {
        &self.lists[2]
    }

    /// Neighbours, and pairs too small for anything else.
    pub fn p2p(&self) -> &DeviceCsr {
        &self.lists[3]
    }

    /// Copies lists of the host.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if a copy fails.
    pub fn upload(&mut self, lists: &Lists) -> Result<(), Error> {
        let from = [&lists.m2l, &lists.m2p, &lists.p2l, &lists.p2p];
        self.lists.iter_mut().zip(from).try_for_each(|(list, from)| list.upload(from))
    }

    /// A copy of the lists.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<Lists, Error> {
        let [m2l, m2p, p2l, p2p] = &self.lists;
        Ok(Lists { m2l: m2l.download()?, m2p: m2p.download()?, p2l: p2l.download()?, p2p: p2p.download()? })
    }
}

/// Copies the images that lists know, if they are others than the last time.
fn images(gpu: &Gpu, work: &mut Work, all: &[Image]) -> Result<(), Error> {
    if work.known != all {
        work.images.upload(all)?;
        // The queue does not wait for copies.
        gpu.settle()?;
        work.known = all.to_vec();
    }
    Ok(())
}

/// The view with the rule and the space in it.
fn rule_of(rule: Rule, space: &Space<3>, view: ListsView) -> ListsView {
    let (aspect, stretch) = (space.aspect(), space.stretch());
    let cubes = aspect == [1.0; 3];
    ListsView {
        separation2: if cubes { rule.separation2.ceil() as i32 } else { 0 },
        separation: rule.separation2 * stretch,
        point_separation2: rule.point_separation2 * stretch,
        diagonal: (stretch * 3.0).sqrt(),
        sides: if space.near.len() > 1 { space.sides } else { [0.0; 3] },
        aspect,
        min_distance: rule.min_distance,
        m2l_min_pairs: rule.m2l_min_pairs as u64,
        m2p_min_bodies: rule.m2p_min_bodies as u64,
        p2l_min_bodies: rule.p2l_min_bodies as u64,
        ..view
    }
}
