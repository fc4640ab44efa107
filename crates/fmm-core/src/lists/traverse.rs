//! One traversal, level by level: each target cell inherits what its parent left undecided.

use std::ops::Range;

use rayon::prelude::*;

use super::rule::distance2 as offset2;
use super::space::image_class;
use super::{Classes, Lists, Pair, Rule, Space};
use crate::Csr;
use crate::math::CollectVec;
use crate::tree::Tree;

/// A source cell that a target cell has not yet dealt with. The offset is between cells of one level and
/// means nothing once the source is a leaf above the target's level, or is to be met directly.
#[derive(Clone, Copy)]
struct Near<const D: usize> {
    source: u32,
    /// Which image of it: see [`image_class`].
    image: u32,
    offset: [i32; D],
    /// Whether all bodies of the source act directly on those of the target, even where the levels
    /// below would allow an expansion.
    direct: bool,
}

/// What a run of target cells decided. The `_end` vectors hold a running total after each cell.
#[derive(Default)]
struct Found<const D: usize> {
    lists: [Vec<Pair>; 4],
    ends: [Vec<usize>; 4],
    near: Vec<Near<D>>,
    near_end: Vec<usize>,
}

const M2L: usize = 0;
const M2P: usize = 1;
const P2L: usize = 2;
const P2P: usize = 3;

impl<const D: usize> Found<D> {
    /// Empty, with room for twice as much as this holds.
    fn room(&self) -> Self {
        Found {
            lists: self.lists.each_ref().map(|l| Vec::with_capacity(2 * l.len())),
            ends: self.ends.each_ref().map(|e| Vec::with_capacity(e.len())),
            near: Vec::with_capacity(2 * self.near.len()),
            near_end: Vec::with_capacity(self.near_end.len()),
        }
    }

    fn push(&mut self, list: usize, source: usize, class: u32) {
        self.lists[list].push(Pair { source: source as u32, class });
    }

    fn end_cell(&mut self) {
        for k in 0..4 {
            self.ends[k].push(self.lists[k].len());
        }
        self.near_end.push(self.near.len());
    }
}

struct Traversal<'a, const D: usize> {
    targets: &'a Tree<D>,
    sources: &'a Tree<D>,
    source_level: &'a [u16],
    rule: Rule,
    classes: Classes<D>,
    space: &'a Space<D>,
    /// Of the root cell: sides over the longest.
    aspect: [f64; D],
    /// The squared diagonal of a cell over that of a cube.
    stretch: f64,
}

impl Lists {
    /// The lists of a fast multipole method between two trees of the same root cube.
    pub fn fmm<const D: usize>(targets: &Tree<D>, sources: &Tree<D>, rule: Rule, classes: Classes<D>) -> Self {
        Self::fmm_in(&Space::open(targets.side), targets, sources, rule, classes)
    }

    /// The same with the images of the root that are near in `space`.
    pub fn fmm_in<const D: usize>(
        space: &Space<D>,
        targets: &Tree<D>,
        sources: &Tree<D>,
        rule: Rule,
        classes: Classes<D>,
    ) -> Self {
        let level_of = sources.level_of();
        let traversal = Traversal::new(space, [targets, sources], &level_of, rule, classes);
        let mut all = Assembly::default();
        let mut near: Vec<Near<D>> = vec![];
        let mut near_start = vec![0];
        for level in 0..targets.levels() {
            let found = in_blocks(targets.level(level), |t, found| {
                if !targets.has_targets(t) {
                    return;
                }
                if level == 0 {
                    for &image in &space.near {
                        traversal.same_level(0, 0, 0, (image, image_class(image)), found);
                    }
                } else {
                    let parent = targets.parent[t] as usize - targets.level(level - 1).start;
                    for n in &near[near_start[parent]..near_start[parent + 1]] {
                        traversal.inherit(t, level, n, found);
                    }
                }
            });
            near.clear();
            near_start.truncate(1);
            for f in found {
                let base = near.len();
                near.extend_from_slice(&f.near);
                near_start.extend(f.near_end.iter().map(|e| base + e));
                all.append(f);
            }
        }
        all.finish()
    }

    /// The lists of a treecode: every leaf of the targets walks the sources from their root.
    pub fn treecode<const D: usize>(targets: &Tree<D>, sources: &Tree<D>, rule: Rule) -> Self {
        Self::treecode_in(&Space::open(targets.side), targets, sources, rule)
    }

    /// The same with the images of the root that are near in `space`.
    pub fn treecode_in<const D: usize>(space: &Space<D>, targets: &Tree<D>, sources: &Tree<D>, rule: Rule) -> Self {
        let level_of = sources.level_of();
        let traversal = Traversal::new(space, [targets, sources], &level_of, rule, Classes::new(rule.separation2));
        let mut all = Assembly::default();
        for level in 0..targets.levels() {
            let found = in_blocks(targets.level(level), |t, found| {
                if targets.is_leaf(t) && targets.has_targets(t) {
                    for &image in &space.near {
                        traversal.walk(t, targets.half(level), 0, image_class(image), found);
                    }
                }
            });
            found.into_iter().for_each(|f| all.append(f));
        }
        all.finish()
    }

    /// The lists of a direct sum: every leaf of the targets meets the root of the sources.
    pub fn direct<const D: usize>(targets: &Tree<D>) -> Self {
        let mut all = Assembly::default();
        for f in in_blocks(0..targets.len(), |t, found: &mut Found<D>| {
            if targets.is_leaf(t) && targets.has_targets(t) {
                found.push(P2P, 0, 0);
            }
        }) {
            all.append(f);
        }
        all.finish()
    }
}

impl<'a, const D: usize> Traversal<'a, D> {
    fn new(
        space: &'a Space<D>,
        [targets, sources]: [&'a Tree<D>; 2],
        source_level: &'a [u16],
        rule: Rule,
        classes: Classes<D>,
    ) -> Self {
        let (aspect, stretch) = (space.aspect(), space.stretch());
        Traversal { targets, sources, source_level, rule, classes, space, aspect, stretch }
    }

    /// Decides for target `t` what its parent left open.
    fn inherit(&self, t: usize, level: usize, n: &Near<D>, found: &mut Found<D>) {
        let s = n.source as usize;
        if n.direct {
            return self.directly(t, s, n.image, found);
        }
        if self.sources.is_leaf(s) {
            return self.coarse_source(t, level, s, n.image, found);
        }
        for c in self.opened(s) {
            let (oc, ot) = (self.sources.octant[c], self.targets.octant[t]);
            let offset = std::array::from_fn(|d| 2 * n.offset[d] + i32::from(oc >> d & 1) - i32::from(ot >> d & 1));
            self.same_level(t, level, c, (offset, n.image), found);
        }
    }

    /// The children of a source cell.
    fn opened(&self, s: usize) -> Range<usize> {
        assert!(self.sources.children[s] != Tree::<D>::STUB, "a cell is opened whose children are on another rank");
        self.sources.child_range(s)
    }

    /// Decides on a cell at `offset` from the target, which is this image of `s`.
    fn same_level(&self, t: usize, level: usize, s: usize, (offset, image): ([i32; D], u32), found: &mut Found<D>) {
        let (leaf_t, leaf_s) = (self.targets.is_leaf(t), self.sources.is_leaf(s));
        let few = leaf_t && leaf_s && self.targets.count(t) * self.sources.count(s) <= self.rule.m2l_min_pairs;
        if !few && self.separated(level, offset) {
            found.push(M2L, s, self.classes.class(offset));
        } else if leaf_t && leaf_s {
            found.push(P2P, s, image);
        } else if leaf_t {
            self.walk(t, self.targets.half(level), s, image, found);
        } else if self.classes.hold_children(offset) {
            found.near.push(Near { source: s as u32, image, offset, direct: false });
        } else {
            // Far enough but for the softening, which smaller cells would only come closer to.
            self.directly(t, s, image, found);
        }
    }

    /// All bodies of `s` at all leaves below `t`.
    fn directly(&self, t: usize, s: usize, image: u32, found: &mut Found<D>) {
        if self.targets.is_leaf(t) {
            found.push(P2P, s, image);
        } else {
            found.near.push(Near { source: s as u32, image, offset: [0; D], direct: true });
        }
    }

    fn separated(&self, level: usize, offset: [i32; D]) -> bool {
        let clear = || {
            let side = 2.0 * self.targets.half(level);
            let gap2 = offset2(offset.map(|o| (o.abs() - 1).max(0)), &self.aspect);
            gap2 * (side * side) >= self.rule.min_distance * self.rule.min_distance
        };
        self.rule.far(offset, &self.aspect, self.stretch) && (self.rule.min_distance == 0.0 || clear())
    }

    /// A source leaf above the level of the target.
    fn coarse_source(&self, t: usize, level: usize, s: usize, image: u32, found: &mut Found<D>) {
        let (half_t, half_s) = (self.targets.half(level), self.sources.half(self.source_level[s] as usize));
        let at = self.space.seen_from(image, &self.targets.center[t]);
        let r2 = self.distance2(&at, &self.sources.center[s], half_s);
        if self.targets.count(t) >= self.rule.p2l_min_bodies && self.apart(r2, half_t) {
            found.push(P2L, s, image);
        } else if self.targets.is_leaf(t) {
            found.push(P2P, s, image);
        } else {
            found.near.push(Near { source: s as u32, image, offset: [0; D], direct: false });
        }
    }

    /// Goes down from this image of source `s` for the target leaf `t`.
    fn walk(&self, t: usize, half_t: f64, s: usize, image: u32, found: &mut Found<D>) {
        if self.sources.count(s) < self.rule.m2p_min_bodies {
            return found.push(P2P, s, image);
        }
        let half_s = self.sources.half(self.source_level[s] as usize);
        let at = self.space.seen_from(image, &self.targets.center[t]);
        let r2 = self.distance2(&self.sources.center[s], &at, half_t);
        if self.apart(r2, half_s) {
            found.push(M2P, s, image);
        } else if self.sources.is_leaf(s) {
            found.push(P2P, s, image);
        } else {
            self.opened(s).for_each(|c| self.walk(t, half_t, c, image, found));
        }
    }

    /// Whether an expansion about the center of a cell of half side `half` holds at squared distance `r2`.
    fn apart(&self, r2: f64, half: f64) -> bool {
        let reach = self.rule.min_distance + half * (self.stretch * D as f64).sqrt();
        r2 >= self.rule.point_separation2 * self.stretch * (half * half)
            && (self.rule.min_distance == 0.0 || r2 >= reach * reach)
    }

    /// Squared distance from `x` to the cell about `center` whose longest side is twice `half`.
    fn distance2(&self, x: &[f64; D], center: &[f64; D], half: f64) -> f64 {
        let mut r2 = 0.0;
        for d in 0..D {
            let gap = ((x[d] - center[d]).abs() - half * self.aspect[d]).max(0.0);
            r2 += gap * gap;
        }
        r2
    }
}

/// Visits the cells in parallel blocks and returns the findings in order.
fn in_blocks<const D: usize>(cells: Range<usize>, visit: impl Fn(usize, &mut Found<D>) + Sync) -> Vec<Found<D>> {
    const BLOCK: usize = 256;
    let blocks = cells.len().div_ceil(BLOCK);
    let found = |b: usize, mut found: Found<D>| {
        for t in cells.start + b * BLOCK..(cells.start + (b + 1) * BLOCK).min(cells.end) {
            visit(t, &mut found);
            found.end_cell();
        }
        found
    };
    if blocks == 0 {
        return vec![];
    }
    // The first block gives an estimate of the room that the others need. It lies at a corner,
    // where lists are short, so `room` doubles it.
    let first = found(0, Found::default());
    let rest: Vec<_> = (1..blocks).into_par_iter().map(|b| found(b, first.room())).collect_vec();
    std::iter::once(first).chain(rest).collect()
}

/// Puts the findings of blocks together, at the end and on all cores: lists are long.
#[derive(Default)]
struct Assembly {
    pairs: [Vec<Vec<Pair>>; 4],
    ends: [Vec<Vec<usize>>; 4],
}

impl Assembly {
    fn append<const D: usize>(&mut self, found: Found<D>) {
        for (k, (pairs, ends)) in found.lists.into_iter().zip(found.ends).enumerate() {
            self.pairs[k].push(pairs);
            self.ends[k].push(ends);
        }
    }

    fn finish(self) -> Lists {
        let mut parts = self.pairs.into_iter().zip(self.ends).map(|(pairs, ends)| joined(pairs, &ends));
        let [m2l, m2p, p2l, p2p] = std::array::from_fn(|_| parts.next().expect("four lists"));
        Lists { m2l, m2p, p2l, p2p }
    }
}

/// The rows of all parts, one after the other.
fn joined(parts: Vec<Vec<Pair>>, ends: &[Vec<usize>]) -> Csr<Pair> {
    let mut start = vec![0];
    let mut base = 0;
    for (part, ends) in parts.iter().zip(ends) {
        start.extend(ends.iter().map(|e| (base + e) as u64));
        base += part.len();
    }
    // The cores that copy are the first to touch the pages.
    let mut pairs = bytemuck::zeroed_vec::<Pair>(base);
    let mut rest = &mut pairs[..];
    let mut copies = Vec::with_capacity(parts.len());
    for part in parts {
        let (to, others) = std::mem::take(&mut rest).split_at_mut(part.len());
        copies.push((to, part));
        rest = others;
    }
    copies.into_par_iter().for_each(|(to, part)| to.copy_from_slice(&part));
    Csr { start, items: pairs }
}
