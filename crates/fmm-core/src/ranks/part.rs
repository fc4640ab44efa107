//! A rank's part of the octree of all particles: the coarse cells, its own below them, and what it may need of others.
//!
//! Cells are numbered as in the whole tree with others left out, bodies as in the whole tree. Lists, stages and the
//! error field of own targets are then those of a single process, in the same order.

use rayon::prelude::*;

use super::cuts::Cuts;
use crate::comm::{Comm, exchanged};
use crate::lists::{Reach, Seen};
use crate::math::CollectVec;
use crate::tree::{Growth, Tree, child_center};

/// A cell as it is sent to another rank.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::NoUninit, bytemuck::AnyBitPattern)]
#[repr(C)]
pub(super) struct Cell {
    /// Sorted places among the bodies of all ranks.
    bodies: [u32; 2],
    /// Its number in the own tree of its owner.
    number: u32,
    level: u16,
    octant: u8,
    /// 1 for a leaf.
    leaf: u8,
}

/// What a rank knows of the cells of its part of the octree of all particles.
pub(super) struct Part {
    /// Whether a cell is split by the cuts: several ranks may have bodies in it. `[cells]`
    pub shared: Vec<bool>,
    /// The leaves of the cuts, in their order.
    pub branches: Vec<u32>,
    /// The owner of a cell that is sent on request, and its number there; none of cells that all ranks know. `[cells]`
    pub origin: Vec<Option<[u32; 2]>>,
    /// The cells of this part by their numbers in the own tree; 0 for those that all ranks know.
    pub own: Vec<u32>,
    /// Cells that have come from other ranks.
    pub received: usize,
}

/// What the part of a rank is made of.
pub(super) struct Pieces<'a> {
    pub cuts: &'a Cuts,
    /// The tree of the rank's bodies, [within](Tree::part) the cuts.
    pub own: Tree<3>,
    pub growth: Growth,
    pub reach: Reach,
}

impl Part {
    /// Bytes of a cell as it is sent.
    pub const CELL_BYTES: usize = size_of::<Cell>();

    /// Exchanges cells and puts the part together. The leaves of its tree are those of this rank, its order that of this
    /// rank's bodies.
    pub fn new(comm: &dyn Comm, Pieces { cuts, own, growth, reach }: Pieces) -> (Tree<3>, Self) {
        let rank = comm.rank();
        let first = cuts.first[rank];
        let branch_of = branches_of(&own, &cuts.tree);
        let levels = own.level_of();
        let cell = |c: usize| Cell {
            bodies: own.bodies[c].map(|b| b + first),
            number: c as u32,
            level: levels[c],
            octant: own.octant[c],
            leaf: u8::from(own.is_leaf(c)),
        };
        let essential = Essential { own: &own, levels: &levels, cuts, reach, branch_of: &branch_of };
        let to: Vec<Vec<Cell>> =
            (0..comm.size()).map(|peer| essential.cells(rank, peer).into_iter().map(cell).collect()).collect();
        let from = exchanged(comm, &to);
        let mut cells: Vec<(Cell, Option<u32>)> = coarse(cuts, growth);
        let received = from.iter().map(Vec::len).sum();
        for (owner, sent) in from.into_iter().enumerate() {
            cells.extend(sent.into_iter().map(|cell| (cell, Some(owner as u32))));
        }
        let below = (0..own.len()).filter(|&c| branch_of[c] == Place::Below);
        cells.extend(below.map(|c| (cell(c), Some(rank as u32))));
        // Cells of a level are disjoint.
        cells.par_sort_unstable_by_key(|(c, _)| (c.level, c.bodies[0]));
        let (mut tree, mut part) = assembled(&cells, cuts, own);
        let owned = cuts.first[rank]..cuts.first[rank + 1];
        let mine = |[start, end]: [u32; 2]| owned.start <= start && end <= owned.end && start < end;
        tree.leaves =
            (0..tree.len() as u32).filter(|&c| tree.is_leaf(c as usize) && mine(tree.bodies[c as usize])).collect();
        tree.leaves.sort_unstable_by_key(|&c| tree.bodies[c as usize][0]);
        tree.leaf_size = if let Growth::Leaves(most) = growth { most } else { usize::MAX };
        for (c, origin) in part.origin.iter().enumerate() {
            if let Some([_, number]) = origin.filter(|[owner, _]| *owner as usize == rank) {
                part.own[number as usize] = c as u32;
            }
        }
        (tree, Part { received, ..part })
    }
}

/// Where a cell of the own tree is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// It is this cell of the cuts, which is split there.
    Above(u32),
    /// It is this leaf of the cuts.
    Branch(u32),
    /// Below a leaf of the cuts.
    Below,
}

fn branches_of(own: &Tree<3>, coarse: &Tree<3>) -> Vec<Place> {
    let place = |c: usize| if coarse.is_leaf(c) { Place::Branch(c as u32) } else { Place::Above(c as u32) };
    let mut places = vec![place(0)];
    for cell in 1..own.len() {
        let here = match places[own.parent[cell] as usize] {
            Place::Above(parent) => {
                let same = |&c: &usize| coarse.octant[c] == own.octant[cell];
                place(coarse.child_range(parent as usize).find(same).expect("a cell that was counted"))
            }
            Place::Branch(_) | Place::Below => Place::Below,
        };
        places.push(here);
    }
    places
}

/// What other ranks may open of the own tree.
struct Essential<'a> {
    own: &'a Tree<3>,
    levels: &'a [u16],
    cuts: &'a Cuts,
    reach: Reach,
    branch_of: &'a [Place],
}

impl Essential<'_> {
    /// The own cells that `peer` may meet, but for those that all ranks know.
    fn cells(&self, rank: usize, peer: usize) -> Vec<usize> {
        if peer == rank {
            return vec![];
        }
        let coarse = &self.cuts.tree;
        let levels = coarse.level_of();
        let domains: Vec<Seen<3>> = coarse
            .leaves
            .iter()
            .zip(&self.cuts.owner)
            .filter(|(_, owner)| **owner as usize == peer)
            .map(|(&leaf, _)| {
                let level = levels[leaf as usize] as usize;
                Seen { level, center: coarse.center[leaf as usize], half: coarse.half(level) }
            })
            .collect();
        let branches: Vec<usize> =
            (0..self.own.len()).filter(|&c| matches!(self.branch_of[c], Place::Branch(_))).collect();
        let of_branch = |&branch: &usize| {
            let mut cells = vec![];
            self.open(branch, &domains, &mut cells);
            cells
        };
        branches.par_iter().map(of_branch).collect_vec().concat()
    }

    /// Adds the children of `cell` that a domain may open, and goes on with them.
    fn open(&self, cell: usize, domains: &[Seen<3>], cells: &mut Vec<usize>) {
        if self.own.is_leaf(cell) {
            return;
        }
        let level = self.levels[cell] as usize;
        let source = Seen { level, center: self.own.center[cell], half: self.own.half(level) };
        let opens = |domain: &&Seen<3>| self.reach.opens(&source, self.own.count(cell), domain);
        let domains: Vec<Seen<3>> = domains.iter().filter(opens).copied().collect();
        if domains.is_empty() {
            return;
        }
        cells.extend(self.own.child_range(cell));
        self.own.child_range(cell).for_each(|child| self.open(child, &domains, cells));
    }
}

/// The cells of the cuts.
fn coarse(cuts: &Cuts, growth: Growth) -> Vec<(Cell, Option<u32>)> {
    let tree = &cuts.tree;
    let levels = tree.level_of();
    let of = |c: usize| {
        // Above the depth of a key, the number of bodies alone decides.
        let split = match growth {
            Growth::Leaves(most) => tree.count(c) > most,
            Growth::Depth(depth) => usize::from(levels[c]) < depth && tree.count(c) > 0,
        };
        let cell = Cell {
            bodies: tree.bodies[c],
            number: c as u32,
            level: levels[c],
            octant: tree.octant[c],
            leaf: u8::from(!split),
        };
        (cell, None)
    };
    (0..tree.len()).map(of).collect()
}

/// The tree of `cells`, which are ordered by level and bodies.
fn assembled(cells: &[(Cell, Option<u32>)], cuts: &Cuts, own: Tree<3>) -> (Tree<3>, Part) {
    let n = cells.len();
    let mut tree = Tree {
        side: cuts.tree.side,
        order: own.order,
        coincident_pairs: own.coincident_pairs,
        bodies: cells.iter().map(|(c, _)| c.bodies).collect(),
        octant: cells.iter().map(|(c, _)| c.octant).collect(),
        children: vec![[0, 0]; n],
        parent: vec![0; n],
        center: vec![cuts.tree.center[0]; n],
        level_start: vec![0],
        ..Tree::default()
    };
    let mut next = 0;
    while next < n {
        let level = tree.level_start.len() - 1;
        next += cells[next..].partition_point(|(c, _)| usize::from(c.level) <= level);
        tree.level_start.push(next as u32);
    }
    for level in 0..tree.levels() {
        let half = tree.half(level);
        let mut child = tree.level(level).end;
        for cell in tree.level(level) {
            let (first, end) = (child, tree.bodies[cell][1]);
            while child < n && usize::from(cells[child].0.level) == level + 1 && tree.bodies[child][0] < end {
                tree.parent[child] = cell as u32;
                tree.center[child] = child_center(&tree.center[cell], tree.octant[child], half);
                child += 1;
            }
            if cells[cell].0.leaf == 0 {
                tree.children[cell] = if first == child { Tree::<3>::STUB } else { [first as u32, child as u32] };
            }
        }
    }
    let branch = |c: &usize| cells[*c].1.is_none() && cuts.tree.is_leaf(cells[*c].0.number as usize);
    let mut branches: Vec<u32> = (0..n).filter(branch).map(|c| c as u32).collect();
    branches.sort_unstable_by_key(|&c| tree.bodies[c as usize][0]);
    let shared = |(c, owner): &(Cell, Option<u32>)| owner.is_none() && !cuts.tree.is_leaf(c.number as usize);
    let part = Part {
        shared: cells.iter().map(shared).collect(),
        branches,
        origin: cells.iter().map(|(c, owner)| owner.map(|owner| [owner, c.number])).collect(),
        own: vec![0; own.bodies.len()],
        received: 0,
    };
    (tree, part)
}
