//! The cells of a tree in tiles, which the operators take one by one.

use fmm_core::Error;
use fmm_core::tree::Tree;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::view::{KINDS, RADIX, SORT_TILE, SortView, THREADS, TilesView};
use crate::geometry::work::{Work, launch};
use crate::view::{CELLS, NONE};

use cust::memory::DevicePointer;

/// Tiles of [`CELLS`] cells of one level and octant, in their order, then [`NONE`]. Two tiles of an
/// octant alternate with two of the next, so that neighboring tiles hold neighboring cells, which
/// share sources, even if their octants differ.
#[derive(Default)]
pub struct Tiles {
    /// `[tiles][CELLS]`
    pub cells: Buffer<u32>,
    /// First tile of each level, and one past the last. `[levels + 1]`
    level_start: Vec<usize>,
}

impl Tiles {
    /// First tile of each level, and one past the last. `[levels + 1]`
    pub fn level_start(&self) -> &[usize] {
        &self.level_start
    }

    /// Number of tiles.
    pub fn count(&self) -> usize {
        self.level_start.last().copied().unwrap_or(0)
    }

    /// Queues the tiles of `cells` cells, of which `kinds` says how many there are of each level and octant; `work` has their kinds.
    pub(super) fn cut(&mut self, gpu: &Gpu, work: &mut Work, cells: usize, kinds: &[u64]) -> Result<(), Error> {
        let (mut first, mut first_tile) = ([0u32; KINDS + 1], [0u32; KINDS + 1]);
        for (kind, &count) in kinds.iter().enumerate() {
            first[kind + 1] = first[kind] + count as u32;
            first_tile[kind + 1] = first_tile[kind] + (count as u32).div_ceil(CELLS as u32);
        }
        let levels = kinds.chunks(8).position(|level| level.iter().all(|&n| n == 0)).unwrap_or(KINDS / 8);
        self.level_start = (0..=levels).map(|level| first_tile[8 * level] as usize).collect();
        self.cells.resize(self.count() * CELLS)?;
        work.index.resize(cells.max(work.index.len()))?;
        work.kind_out.resize(cells)?;
        let tiles = cells.div_ceil(SORT_TILE);
        let ticket = work.tickets(gpu, 1)?;
        let (status, epoch) = work.launch(gpu, tiles * RADIX)?;
        let sort = SortView {
            position: DevicePointer::null(),
            bins: work.bins.pointer(),
            key: work.kind.pointer(),
            index: DevicePointer::null(),
            key_out: work.kind_out.pointer(),
            index_out: work.index.pointer(),
            status,
            ticket,
            corner: [0.0; 3],
            side: 0.0,
            epoch,
            n: cells as u32,
            digit: 0,
            points: [0; 3],
            group: [0; 3],
        };
        let view = TilesView { sorted: work.index.pointer(), tiles: self.cells.pointer(), first, first_tile };
        // SAFETY: all arrays have the lengths that the views say.
        unsafe {
            launch(gpu, "sort_bins", 1, RADIX, &sort)?;
            launch(gpu, "sort_pass", tiles, THREADS, &sort)?;
            launch(gpu, "fill_tiles", (self.count() * CELLS).div_ceil(THREADS), THREADS, &view)
        }
    }

    /// Copies the tiles of `tree`.
    pub(super) fn upload(&mut self, tree: &Tree<3>) -> Result<(), Error> {
        let mut cells = vec![];
        self.level_start = vec![0];
        for level in 0..tree.levels() {
            let mut octants: [Vec<u32>; 8] = Default::default();
            tree.level(level).for_each(|c| octants[usize::from(tree.octant[c])].push(c as u32));
            octants.iter_mut().for_each(|octant| octant.resize(octant.len().next_multiple_of(CELLS), NONE));
            let longest = octants.iter().map(Vec::len).max().unwrap_or(0);
            for first in (0..longest).step_by(2 * CELLS) {
                for octant in &octants {
                    cells.extend_from_slice(&octant[first.min(octant.len())..(first + 2 * CELLS).min(octant.len())]);
                }
            }
            self.level_start.push(cells.len() / CELLS);
        }
        self.cells.upload(&cells)
    }
}
