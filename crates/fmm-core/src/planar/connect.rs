//! Who meets whom: boxes of one level are well separated where R + θ r ≤ θ d.

use rayon::prelude::*;

use super::Pyramid;
use crate::math::CollectVec;
use crate::{Csr, lists};

/// The four lists of a plan: source boxes.
pub type Lists = lists::Lists<u32>;

/// Adds the rows of the next boxes, which come in pieces.
fn extend(rows: &mut Csr<u32>, pieces: &[Piece]) {
    for piece in pieces {
        for &n in &piece.lengths {
            rows.start.push(rows.start[rows.start.len() - 1] + u64::from(n));
        }
        rows.items.extend_from_slice(&piece.source);
    }
}

/// When boxes meet by which operator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// θ.
    pub theta: f64,
    /// Points of boxes that are closer than this meet directly.
    pub min_distance: f64,
    /// Roles are swapped only where the smaller leaf has at least this many points.
    pub swap_min_points: usize,
}

impl Rule {
    /// Whether a box of radius `large` seen from one of radius `small`, `d` apart, is far enough: R + θ r ≤ θ d.
    fn apart(&self, large: f64, small: f64, d: f64) -> bool {
        // With roles swapped a box may be so small compared with the other that the sum loses it to
        // rounding. The gap between the two must be larger than rounding.
        let gap = d - large - small;
        large + self.theta * small <= self.theta * d && gap >= self.min_distance && gap >= SMALLEST_GAP * d
    }
}

/// The least part of their distance that separated boxes leave between them.
const SMALLEST_GAP: f64 = 1.0 / (1u64 << 40) as f64;

/// Rows that one task has made.
#[derive(Default)]
struct Piece {
    lengths: Vec<u32>,
    source: Vec<u32>,
}

impl Piece {
    fn close(&mut self, begun: usize) {
        self.lengths.push((self.source.len() - begun) as u32);
    }
}

/// Target boxes of one task.
const TASK: usize = 64;

impl Lists {
    /// Every leaf of the targets against the root of the sources.
    pub fn of_pyramid(targets: &Pyramid) -> Self {
        let none = Csr { start: vec![0; targets.len() + 1], items: vec![] };
        let leaves = targets.leaves();
        let start = (0..=targets.len()).map(|cell| cell.saturating_sub(leaves.start) as u64).collect();
        let p2p = Csr { start, items: vec![0; leaves.len()] };
        Lists { m2l: none.clone(), m2p: none.clone(), p2l: none, p2p }
    }

    /// The lists of the fast multipole method; both pyramids have the same number of levels.
    pub fn between_pyramids(targets: &Pyramid, sources: &Pyramid, rule: Rule) -> Self {
        let mut m2l = Csr { start: vec![0, 0], items: vec![] };
        // Pairs of one level that are not separated.
        let mut strong = Csr { start: vec![0, 1], items: vec![0] };
        for level in 1..=targets.levels {
            let cells: Vec<usize> = targets.level(level).collect();
            let parents = Pyramid::first(level - 1);
            let pieces: Vec<[Piece; 2]> = cells
                .par_chunks(TASK)
                .map(|cells| connect(targets, sources, rule, cells, &strong, parents))
                .collect_vec();
            let (weak, near): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().map(|[a, b]| (a, b)).unzip();
            extend(&mut m2l, &weak);
            strong = Csr { start: vec![0], items: vec![] };
            extend(&mut strong, &near);
        }
        let first = Pyramid::first(targets.levels);
        let cells: Vec<usize> = targets.leaves().collect();
        let pieces: Vec<[Piece; 3]> =
            cells.par_chunks(TASK).map(|cells| swap(targets, sources, rule, cells, &strong, first)).collect_vec();
        let mut rows = [(); 3].map(|()| Csr { start: vec![0; first + 1], items: vec![] });
        for piece in &pieces {
            for (rows, piece) in rows.iter_mut().zip(piece) {
                extend(rows, std::slice::from_ref(piece));
            }
        }
        let [m2p, p2l, p2p] = rows;
        Lists { m2l, m2p, p2l, p2p }
    }
}

fn distance(targets: &Pyramid, sources: &Pyramid, b: usize, c: usize) -> f64 {
    let d = [0, 1].map(|k| targets.center[k][b] - sources.center[k][c]);
    (d[0] * d[0] + d[1] * d[1]).sqrt()
}

/// Sorts the children of the parents' strong boxes into weak and strong ones. `parents` is the number of the first box of the
/// parents' level.
fn connect(
    targets: &Pyramid,
    sources: &Pyramid,
    rule: Rule,
    cells: &[usize],
    strong: &Csr<u32>,
    parents: usize,
) -> [Piece; 2] {
    let [mut weak, mut near] = [Piece::default(), Piece::default()];
    for &b in cells {
        let begun = [weak.source.len(), near.source.len()];
        if targets.count(b) > 0 {
            let radius = targets.radius[b];
            for &parent in strong.row((b - 1) / 4 - parents) {
                for c in 4 * parent as usize + 1..4 * parent as usize + 5 {
                    if sources.count(c) == 0 {
                        continue;
                    }
                    let other = sources.radius[c];
                    let d = distance(targets, sources, b, c);
                    if rule.apart(radius.max(other), radius.min(other), d) {
                        weak.source.push(c as u32);
                    } else {
                        near.source.push(c as u32);
                    }
                }
            }
        }
        weak.close(begun[0]);
        near.close(begun[1]);
    }
    [weak, near]
}

/// Takes from the strong pairs of leaves those that are separated with swapped roles.
fn swap(
    targets: &Pyramid,
    sources: &Pyramid,
    rule: Rule,
    cells: &[usize],
    strong: &Csr<u32>,
    first: usize,
) -> [Piece; 3] {
    let mut pieces: [Piece; 3] = Default::default();
    for &b in cells {
        let begun = pieces.each_ref().map(|p| p.source.len());
        for &c in strong.row(b - first) {
            let (radius, other) = (targets.radius[b], sources.radius[c as usize]);
            let d = distance(targets, sources, b, c as usize);
            let kind = if !rule.apart(radius.min(other), radius.max(other), d) {
                2
            } else if radius > other {
                // The multipole of the small source box at the points of the large target box.
                if sources.count(c as usize) >= rule.swap_min_points { 0 } else { 2 }
            } else if targets.count(b) >= rule.swap_min_points {
                1
            } else {
                2
            };
            pieces[kind].source.push(c);
        }
        for (piece, begun) in pieces.iter_mut().zip(begun) {
            piece.close(begun);
        }
    }
    pieces
}
