//! What host and device share: the arguments of the kernels that make trees and lists. The header of the kernels,
//! `arguments/geometry.cuh`, is generated from this text.

use cust::memory::{DeviceCopy, DevicePointer};

use crate::view::ReadOnly;

/// Levels below the root that a key resolves.
pub const KEY_LEVELS: usize = 21;
/// Threads of a block.
pub const THREADS: usize = 256;
/// Digits of a key.
pub const DIGITS: usize = 8;
/// Values of a digit.
pub const RADIX: usize = 256;
/// Keys that a thread of a pass of the sort holds.
pub const SORT_ITEMS: usize = 16;
/// Keys of a block of a pass of the sort.
pub const SORT_TILE: usize = SORT_ITEMS * THREADS;
/// Words of the map of leaves that a thread counts.
pub const WORDS: usize = 4;
/// Words of the map of leaves that a block counts.
pub const WORD_TILE: usize = WORDS * THREADS;
/// The most targets of a block of the traversal.
pub const TARGETS: usize = 32;
/// Place of the number of leaves in the state of a tree, whose first places are the first cells of levels.
pub const STATE_LEAVES: usize = 24;
/// Place of the flag of a tree that keys do not resolve.
pub const STATE_DEEP: usize = 25;
/// Place of the number of coincident pairs.
pub const STATE_COINCIDENT: usize = 26;
/// Place of the flag of a tree whose bodies have to be sorted by all digits of their keys.
pub const STATE_CROWDED: usize = 27;
/// First place of the numbers of cells of each kind.
pub const STATE_KINDS: usize = 28;
/// Kinds of cells: level and octant, that is 8 level + octant.
pub const KINDS: usize = 8 * (KEY_LEVELS + 1);
/// Length of the state of a tree.
pub const STATE_SIZE: usize = STATE_KINDS + KINDS;
/// First place of the bounds in what is found of a sample; before them the pairs in bins.
pub const FOUND_BOUNDS: usize = 1;
/// First place of the pairs of neighbours that share cells of each level.
pub const FOUND_LEVELS: usize = 7;
/// Length of what is found of a sample.
pub const FOUND_SIZE: usize = FOUND_LEVELS + KEY_LEVELS + 1;
/// Bins of a sample along an axis.
pub const DIVISIONS: usize = 16;
/// Cells of one kind that a block of the operators takes at once.
pub const TILE_CELLS: usize = 64;
/// No cell.
pub const NO_CELL: u32 = u32::MAX;
/// M2L, M2P, P2L and P2P.
pub const LISTS: usize = 4;
/// The lists, and what is left to the next level.
pub const COUNTS: usize = 5;

const _: () = assert!(DIVISIONS == fmm_core::accuracy::Spread::<3>::DIVISIONS && TILE_CELLS == crate::view::CELLS);

/// A source cell and the class of a pair.
///
/// Kernels: `source`, `cls`.
pub type Pair = [u32; 2];

/// Keys and their sort.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct SortView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[DIGITS][RADIX]`: counts, then first places.
    pub bins: DevicePointer<u32>,
    /// `[n]` of a pass.
    pub key: ReadOnly<u64>,
    /// `[n]`, or null: 0, 1, 2, …
    pub index: ReadOnly<u32>,
    /// `[n]`
    pub key_out: DevicePointer<u64>,
    /// `[n]`
    pub index_out: DevicePointer<u32>,
    /// `[tiles][RADIX]`
    pub status: DevicePointer<u64>,
    /// Counts the tiles that blocks have taken.
    pub ticket: DevicePointer<u32>,
    /// Lower corner of the cube; points of a mesh over the sides of its box.
    pub corner: [f64; 3],
    /// Side of the cube.
    pub side: f64,
    /// Number of the launch.
    pub epoch: u64,
    /// Number of keys.
    pub n: u32,
    /// Number of the pass.
    pub digit: u32,
    /// Points of a mesh along each axis.
    pub points: [u32; 3],
    /// Of them in a cell.
    pub group: [u32; 3],
}

/// A tree that grows level by level.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct GrowthView {
    /// `[n][3]`
    pub position: ReadOnly<f64>,
    /// `[n]`, sorted.
    pub key: DevicePointer<u64>,
    /// `[n]`
    pub order: DevicePointer<u32>,
    /// `[capacity]`
    pub bodies: DevicePointer<[u32; 2]>,
    /// `[capacity]`
    pub children: DevicePointer<[u32; 2]>,
    /// `[capacity]`
    pub parent: DevicePointer<u32>,
    /// `[capacity]`
    pub skip: DevicePointer<u32>,
    /// `[capacity]`
    pub leaves: DevicePointer<u32>,
    /// `[capacity]`
    pub center: DevicePointer<[f64; 3]>,
    /// `[capacity]`
    pub level: DevicePointer<u16>,
    /// `[capacity]`
    pub octant: DevicePointer<u8>,
    /// `[n / 32 + 1]`: a bit for each body, set for the first of a leaf.
    pub map: DevicePointer<u32>,
    /// `[n / 32 + 1]`: leaves before those of a word.
    pub rank: DevicePointer<u32>,
    /// `[capacity]`: 8 level + octant, to be sorted by.
    pub kind: DevicePointer<u64>,
    /// `[RADIX]`: cells of each kind.
    pub bins: DevicePointer<u32>,
    /// `[STATE_SIZE]`
    pub state: DevicePointer<u64>,
    /// `[tiles]`
    pub status: DevicePointer<u64>,
    /// `[KEY_LEVELS + 1]`
    pub ticket: DevicePointer<u32>,
    /// Lower corner of the cube.
    pub corner: [f64; 3],
    /// Side of the cube.
    pub side: f64,
    /// Number of the launch.
    pub epoch: u64,
    /// Number of bodies.
    pub n: u32,
    /// The most bodies of a leaf.
    pub leaf_size: u32,
    /// CellsView that there is memory for.
    pub capacity: u32,
    /// Number of the level.
    pub depth: u32,
}

/// Cells by kind, divided into tiles.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct TilesView {
    /// By kind, then by number. `[cells]`
    pub sorted: ReadOnly<u32>,
    /// Cells of one kind, then [`NONE`](crate::view::NONE). `[tiles][CELLS]`
    pub tiles: DevicePointer<u32>,
    /// First of each kind in `sorted`, and one past the last.
    pub first: [u32; KINDS + 1],
    /// First tile of each kind, and one past the last.
    pub first_tile: [u32; KINDS + 1],
}

/// How a sample of bodies lies.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct SurveyView {
    /// `[][3]`: every `step`th is in the sample.
    pub position: ReadOnly<f64>,
    /// `[count][3]`
    pub sample: DevicePointer<f64>,
    /// `[count]`, sorted.
    pub key: ReadOnly<u64>,
    /// Smallest and largest coordinates of the share of each block. `[blocks][6]`
    pub bounds: DevicePointer<f64>,
    /// Bodies of the sample in equal bins of the cube.
    pub bins: DevicePointer<u32>,
    /// `[FOUND_SIZE]`
    pub found: DevicePointer<u64>,
    /// Lower corner of the cube.
    pub corner: [f64; 3],
    /// Side of the cube.
    pub side: f64,
    /// Of the sample in the set.
    pub step: u64,
    /// Number of bodies of the sample.
    pub count: u32,
    /// Blocks that have shares of it.
    pub blocks: u32,
    /// Between neighbours in the order of keys.
    pub apart: u32,
    /// Fills the last word.
    pub unused: u32,
}

/// A finished tree.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct CellsView {
    /// First body and one past the last, as sorted places. `[cells]`
    pub bodies: ReadOnly<[u32; 2]>,
    /// First child and one past the last; equal for a leaf. `[cells]`
    pub children: ReadOnly<[u32; 2]>,
    /// `[cells]`
    pub parent: ReadOnly<u32>,
    /// The cell after those below a cell, in the order of a recursion. `[cells]`
    pub skip: ReadOnly<u32>,
    /// `[cells]`
    pub center: ReadOnly<[f64; 3]>,
    /// `[cells]`
    pub level: ReadOnly<u16>,
    /// Which corner of the parent. `[cells]`
    pub octant: ReadOnly<u8>,
    /// Side of the root.
    pub side: f64,
    /// First body whose lists are made here, and one past the last.
    pub share: [u32; 2],
}

/// A source cell that a target cell has not yet dealt with.
#[derive(Debug, Clone, Copy, Default, DeviceCopy)]
#[repr(C, align(16))]
pub struct Near {
    /// Source cell.
    pub source: u32,
    /// Which image of it.
    pub image: u32,
    /// Between cells of one level.
    pub offset: [i16; 3],
    /// 1: all bodies act directly, even where the levels below would allow expansions.
    pub direct: u16,
}

/// Where lists begin: a cell or an image of one.
#[derive(Debug, Clone, Copy, Default, PartialEq, DeviceCopy)]
#[repr(C)]
pub struct Image {
    /// Its place from the target, in units of the sides of the cells.
    pub offset: [i32; 3],
    /// See [`fmm_core::lists::image_class`].
    ///
    /// Kernels: `cls`.
    pub class: u32,
    /// The cell that it is one of.
    pub source: u32,
}

/// One level of the traversal.
#[derive(Debug, Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct ListsView {
    /// Tree of the targets.
    pub targets: CellsView,
    /// Tree of the sources.
    pub sources: CellsView,
    /// `[cells + 1]` each.
    pub start: [DevicePointer<u64>; LISTS],
    /// `[capacity]` each: source and class.
    pub pairs: [DevicePointer<Pair>; LISTS],
    /// Of each list, and of what a level leaves to the next.
    pub capacity: [u64; COUNTS],
    /// What the level above left.
    pub near: ReadOnly<Near>,
    /// `[parents + 1]`
    pub near_start: ReadOnly<u64>,
    /// What this level leaves.
    pub near_out: DevicePointer<Near>,
    /// `[cells + 1]`
    pub near_out_start: DevicePointer<u64>,
    /// `[levels + 1][COUNTS]`: pairs above each level, and what the level above left.
    pub total: DevicePointer<u64>,
    /// `[COUNTS][tiles]`
    pub status: DevicePointer<u64>,
    /// `[levels]`
    pub ticket: DevicePointer<u32>,
    /// Those that lists know. `[cells of level base][image_count]`
    pub images: ReadOnly<Image>,
    /// Of the rule, for cells of this shape.
    pub point_separation2: f64,
    /// Of the rule.
    pub min_distance: f64,
    /// Of the rule, for cells that are no cubes.
    pub separation: f64,
    /// Of a cell, in longest sides.
    pub diagonal: f64,
    /// Of the periodic box, or 0.
    pub sides: [f64; 3],
    /// The sides of a cell over the longest.
    pub aspect: [f64; 3],
    /// Of the rule.
    pub m2l_min_pairs: u64,
    /// Of the rule.
    pub m2p_min_bodies: u64,
    /// Of the rule.
    pub p2l_min_bodies: u64,
    /// Number of the launch.
    pub epoch: u64,
    /// First cell of the level.
    pub first: u32,
    /// Number of cells of the level.
    pub cells: u32,
    /// First cell of the level above.
    pub parents: u32,
    /// Number of the level.
    pub depth: u32,
    /// The largest offsets of a class along the axes.
    pub radius: [i32; 3],
    /// Of the rule, rounded up: it is compared with whole numbers. 0: cells are no cubes.
    pub separation2: i32,
    /// One past the last cell of the tree.
    pub last: u32,
    /// Targets of a block, at most [`TARGETS`].
    pub rows: u32,
    /// Number of images of a target.
    pub image_count: u32,
    /// The level that lists begin at.
    pub base: u32,
}
