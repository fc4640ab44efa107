//! The octree on the device.

use std::ops::Range;

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::tree::{Cube, Tree};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::sort::{Key, sort};
use crate::geometry::tiles::Tiles;
use crate::geometry::view::{
    CellsView, DIGITS, GrowthView, KEY_LEVELS, RADIX, STATE_COINCIDENT, STATE_CROWDED, STATE_DEEP, STATE_KINDS,
    STATE_LEAVES, STATE_SIZE, THREADS, WORD_TILE,
};
use crate::geometry::work::{Work, launch};

/// Blocks that share the cells of a level, as many as a large GPU runs at once.
const SHARES: usize = 1056;

/// Blocks that share the cells where kinds are counted: each adds its counts to those of all.
const KIND_SHARES: usize = 132;

/// Digits that keys are sorted by in passes over all bodies: 13 levels. Few bodies share a cell of that level; these are sorted by the rest of
/// their keys among themselves.
const COARSE: usize = 5;

/// Cells over sorted bodies, on the device: the arrays of [`Tree`], whose documentation says what they hold.
#[derive(Default)]
pub struct DeviceTree {
    /// Sorted place → index in the caller's order. `[n]`
    pub order: Buffer<u32>,
    /// First body of a cell and one past its last, as sorted places. `[cells]`
    pub bodies: Buffer<[u32; 2]>,
    /// First child of a cell and one past its last; equal for a leaf. `[cells]`
    pub children: Buffer<[u32; 2]>,
    /// Parent of a cell; the root's is itself. `[cells]`
    pub parent: Buffer<u32>,
    /// The cell after those below a cell, in the order of a recursion; [`u32::MAX`] after the last. `[cells]`
    pub skip: Buffer<u32>,
    /// Which corner of the parent. `[cells]`
    pub octant: Buffer<u8>,
    /// Level of a cell. `[cells]`
    pub level: Buffer<u16>,
    /// Geometric center. `[cells]`
    pub center: Buffer<[f64; 3]>,
    /// Leaves, in the order of their bodies.
    pub leaves: Buffer<u32>,
    /// The cells as the operators take them.
    pub tiles: Tiles,
    key: Buffer<u64>,
    side: f64,
    leaf_size: usize,
    level_start: Vec<u32>,
    coincident_pairs: u64,
    on_host: bool,
    /// Whether too many bodies agree in the [`COARSE`] digits of their keys to be sorted by the others afterwards.
    crowded: bool,
    /// Where another GPU sums the rest.
    share: Option<Range<usize>>,
}

impl DeviceTree {
    /// Leaves lists and sums to bodies of these sorted places; `None`: to all.
    pub fn divide(&mut self, share: Option<Range<usize>>) {
        self.share = share;
    }

    /// Whether another GPU sums a part.
    pub(crate) fn is_divided(&self) -> bool {
        self.share.is_some()
    }

    /// First body whose sum is made here and one past the last, as sorted places.
    pub(crate) fn share(&self) -> [u32; 2] {
        self.share.as_ref().map_or([0, u32::MAX], |share| [share.start as u32, share.end as u32])
    }

    /// The octree of `n` positions, `[n][3]` on the device, in `cube`: that of [`Tree::octree`].
    ///
    /// Where more than `leaf_size` bodies at different places have the same key, the tree must be
    /// deeper than keys resolve. The positions are then copied to the host, which builds the tree;
    /// [`DeviceTree::on_host`] returns true.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    ///
    /// # Panics
    /// If `leaf_size` is 0 or there are more positions than a `u32` numbers.
    pub fn build(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        position: &Buffer<f64>,
        cube: Cube<3>,
        leaf_size: usize,
    ) -> Result<(), Error> {
        assert!(leaf_size > 0, "leaf size 0");
        let n = position.len() / 3;
        assert!(n < u32::MAX as usize, "too many points");
        gpu.enter()?;
        if n == 0 {
            return self.upload(&Tree::octree(&[], cube, leaf_size));
        }
        let by = Key::Cell(cube);
        let mut digits = if self.crowded { DIGITS } else { COARSE };
        sort(gpu, work, position.pointer(), n, by, digits, &mut self.key, &mut self.order)?;
        // Twice what uniform sets need; where that is not enough, what was needed says how much is.
        let mut capacity = self.bodies.capacity().max(n / leaf_size * 6 + 4096);
        // As deep as the last tree, if there was one: a launch for each level that may be takes longer than most levels do.
        let mut depths =
            if self.level_start.is_empty() { KEY_LEVELS } else { (self.level_start.len() - 1).min(KEY_LEVELS) };
        loop {
            let state = self.grow(gpu, work, position.pointer(), cube, leaf_size, capacity, depths)?;
            if digits < DIGITS && state[STATE_CROWDED] != 0 {
                // And so the next time: sets change little from sum to sum.
                (digits, self.crowded) = (DIGITS, true);
                sort(gpu, work, position.pointer(), n, by, digits, &mut self.key, &mut self.order)?;
                continue;
            }
            let cells = state[KEY_LEVELS + 1] as usize;
            if depths < KEY_LEVELS && state[depths + 1] > state[depths] {
                depths = KEY_LEVELS;
                continue;
            }
            if cells > u32::MAX as usize / 2 {
                return Err(Error::Unsupported(format!(
                    "{n} bodies in leaves of {leaf_size} are more cells than the GPU's numbers hold"
                )));
            }
            if cells > capacity {
                capacity = cells.max(2 * capacity);
                continue;
            }
            if state[STATE_DEEP] != 0 {
                let points: Vec<[f64; 3]> = position.download()?.chunks_exact(3).map(|x| [x[0], x[1], x[2]]).collect();
                self.upload(&Tree::octree(&points, cube, leaf_size))?;
                self.on_host = true;
                return Ok(());
            }
            self.keep(&state)?;
            self.tiles.cut(gpu, work, cells, &state[STATE_KINDS..])?;
            (self.side, self.leaf_size, self.on_host) = (cube.side, leaf_size, false);
            return Ok(());
        }
    }

    /// Builds the first `depths` levels and their children, with memory for `capacity` cells. The
    /// returned state shows whether both were enough.
    #[expect(clippy::too_many_arguments, reason = "how large a tree may be")]
    fn grow(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        position: DevicePointer<f64>,
        cube: Cube<3>,
        leaf_size: usize,
        capacity: usize,
        depths: usize,
    ) -> Result<Vec<u64>, Error> {
        let n = self.order.len();
        let words = n / 32 + 1;
        self.resize(capacity)?;
        self.leaves.resize(capacity)?;
        work.map.resize(words)?;
        work.rank.resize(words)?;
        work.state.resize(STATE_SIZE)?;
        work.kind.resize(capacity)?;
        work.mark(gpu, "cells")?;
        work.map.fill(gpu.stream(), 0)?;
        work.state.fill(gpu.stream(), 0)?;
        work.bins.resize(RADIX)?;
        work.bins.fill(gpu.stream(), 0)?;
        let ticket = work.tickets(gpu, KEY_LEVELS + 1)?;
        let tiles = capacity.div_ceil(THREADS / 8).max(words.div_ceil(WORD_TILE));
        let mut view = GrowthView {
            position,
            key: self.key.pointer(),
            order: self.order.pointer(),
            bodies: self.bodies.pointer(),
            children: self.children.pointer(),
            parent: self.parent.pointer(),
            skip: self.skip.pointer(),
            leaves: self.leaves.pointer(),
            center: self.center.pointer(),
            level: self.level.pointer(),
            octant: self.octant.pointer(),
            map: work.map.pointer(),
            rank: work.rank.pointer(),
            kind: work.kind.pointer(),
            bins: work.bins.pointer(),
            state: work.state.pointer(),
            status: DevicePointer::null(),
            ticket,
            corner: cube.corner,
            side: cube.side,
            epoch: 0,
            n: n as u32,
            leaf_size: leaf_size as u32,
            capacity: capacity as u32,
            depth: 0,
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            launch(gpu, "sort_rest", n.div_ceil(THREADS), THREADS, &view)?;
            launch(gpu, "root", 1, 32, &view)?;
            for depth in 0..depths {
                view.depth = depth as u32;
                (view.status, view.epoch) = work.launch(gpu, tiles)?;
                // Level l has at most 8^l cells.
                let blocks = if depth < 7 { 8usize.pow(depth as u32).div_ceil(THREADS / 8) } else { SHARES };
                launch(gpu, "split", blocks.min(SHARES), THREADS, &view)?;
            }
            view.depth = depths as u32;
            launch(gpu, "end_levels", 1, 32, &view)?;
            work.mark(gpu, "leaves")?;
            launch(gpu, "deepest", 132, THREADS, &view)?;
            launch(gpu, "coincident", n.div_ceil(THREADS), THREADS, &view)?;
            launch(gpu, "mark_leaves", SHARES, THREADS, &view)?;
            (view.status, view.epoch) = work.launch(gpu, tiles)?;
            launch(gpu, "count_leaves", words.div_ceil(WORD_TILE), THREADS, &view)?;
            launch(gpu, "place_leaves", SHARES, THREADS, &view)?;
            launch(gpu, "count_kinds", KIND_SHARES, THREADS, &view)?;
        }
        work.mark(gpu, "read back")?;
        gpu.finish()?;
        work.state.download()
    }

    /// Cuts the arrays to what the state says.
    fn keep(&mut self, state: &[u64]) -> Result<(), Error> {
        let cells = state[KEY_LEVELS + 1];
        self.level_start = state[..KEY_LEVELS + 2].iter().map(|&s| s as u32).collect();
        // Levels without cells all start at the end.
        let levels = state.iter().position(|&s| s == cells).unwrap_or(KEY_LEVELS + 1);
        self.level_start.truncate(levels + 1);
        self.coincident_pairs = state[STATE_COINCIDENT];
        self.resize(cells as usize)?;
        self.leaves.resize(state[STATE_LEAVES] as usize)
    }

    fn resize(&mut self, cells: usize) -> Result<(), Error> {
        self.bodies.resize(cells)?;
        self.children.resize(cells)?;
        self.parent.resize(cells)?;
        self.skip.resize(cells)?;
        self.octant.resize(cells)?;
        self.level.resize(cells)?;
        self.center.resize(cells)
    }

    /// Gives back the keys.
    pub(crate) fn trim(&mut self) {
        self.key = Buffer::new();
    }

    /// Copies a tree of the host to the device.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the copy fails.
    pub fn upload(&mut self, tree: &Tree<3>) -> Result<(), Error> {
        self.order.upload(&tree.order)?;
        self.bodies.upload(&tree.bodies)?;
        self.children.upload(&tree.children)?;
        self.parent.upload(&tree.parent)?;
        let mut skip = vec![u32::MAX; tree.len()];
        for cell in 1..tree.len() {
            let parent = tree.parent[cell] as usize;
            let next = cell as u32 + 1;
            skip[cell] = if next == tree.children[parent][1] { skip[parent] } else { next };
        }
        self.skip.upload(&skip)?;
        self.octant.upload(&tree.octant)?;
        self.level.upload(&tree.level_of())?;
        self.center.upload(&tree.center)?;
        self.leaves.upload(&tree.leaves)?;
        self.tiles.upload(tree)?;
        (self.side, self.leaf_size, self.coincident_pairs) = (tree.side, tree.leaf_size, tree.coincident_pairs);
        self.level_start.clone_from(&tree.level_start);
        self.on_host = false;
        Ok(())
    }

    /// A copy of the tree.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<Tree<3>, Error> {
        Ok(Tree {
            side: self.side,
            order: self.order.download()?,
            bodies: self.bodies.download()?,
            children: self.children.download()?,
            parent: self.parent.download()?,
            octant: self.octant.download()?,
            center: self.center.download()?,
            level_start: self.level_start.clone(),
            leaf_size: self.leaf_size,
            leaves: self.leaves.download()?,
            coincident_pairs: self.coincident_pairs,
        })
    }

    /// First cell of each level, and one past the last cell. `[levels + 1]`
    pub fn level_start(&self) -> &[u32] {
        &self.level_start
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.bodies.len()
    }

    /// Side of the root cube.
    pub fn side(&self) -> f64 {
        self.side
    }

    /// Pairs of bodies at bitwise the same place.
    pub fn coincident_pairs(&self) -> u64 {
        self.coincident_pairs
    }

    /// Whether the host made the tree, because keys do not resolve the bodies.
    pub fn on_host(&self) -> bool {
        self.on_host
    }

    /// The arrays as kernels take them.
    pub(crate) fn view(&self) -> CellsView {
        CellsView {
            bodies: self.bodies.pointer(),
            children: self.children.pointer(),
            parent: self.parent.pointer(),
            skip: self.skip.pointer(),
            center: self.center.pointer(),
            level: self.level.pointer(),
            octant: self.octant.pointer(),
            side: self.side,
            share: self.share(),
        }
    }
}
