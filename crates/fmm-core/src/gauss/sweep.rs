//! M2L of all pairs of boxes at once, axis by axis.
//!
//! The matrix of a translation is a product over the axes and depends on the offset alone. The sum over all sources within n boxes along every
//! axis is therefore D passes along lines of the lattice, each with at most 2n + 1 matrices a box, instead of D matrices for each of (2n + 1)^D
//! pairs. Boxes without points of their own take part in between where a line from a source and one to a target cross.

use std::ops::Range;

use rayon::prelude::*;

use super::boxes::{Lattice, along};
use crate::math::CollectVec;

/// One pass: from the boxes of the pass before it (the sources at first) to others on the same lines.
#[derive(Debug, Clone)]
pub struct Pass<const D: usize> {
    /// The axis.
    pub axis: usize,
    /// Where the results are.
    pub cells: Vec<[i64; D]>,
    /// The boxes before it in the order of the lines along the axis.
    pub order: Vec<u32>,
    /// Which of these each box takes.
    pub rows: Vec<Range<u32>>,
}

/// The passes from some boxes to others. The results of the last pass are in the order of `targets`.
pub fn passes<const D: usize>(
    lattice: &Lattice<D>,
    reach: i64,
    sources: &[[i64; D]],
    targets: &[[i64; D]],
) -> Vec<Pass<D>> {
    let mut before = sources.to_vec();
    let mut all = Vec::with_capacity(D);
    for axis in 0..D {
        let mut order: Vec<u32> = (0..before.len() as u32).collect();
        order.par_sort_unstable_by_key(|&i| along(axis, &before[i as usize]));
        let lines: Vec<[i64; D]> = order.par_iter().map(|&i| along(axis, &before[i as usize])).collect_vec();
        let cells = match axis + 1 == D {
            true => targets.to_vec(),
            false => wanted(lattice, reach, axis, &lines, targets),
        };
        let rows = cells.par_iter().map(|c| within(&lines, along(axis, c), reach)).collect_vec();
        before = cells.clone();
        all.push(Pass { axis, cells, order, rows });
    }
    all
}

/// Those of `lines`, which are in the order of [`along`] like `cell`, on the line through `cell` and no more than `reach` from it.
fn within<const D: usize>(lines: &[[i64; D]], cell: [i64; D], reach: i64) -> Range<u32> {
    let (mut low, mut high) = (cell, cell);
    low[D - 1] -= reach;
    high[D - 1] += reach;
    let first = lines.partition_point(|c| *c < low);
    // Not far on: a line holds no more of them than twice the reach and one.
    let most = lines.len().min(first + 2 * reach as usize + 1);
    let count = lines[first..most].partition_point(|c| *c <= high);
    first as u32..(first + count) as u32
}

/// Boxes within reach along `axis` that may be on the way to a target.
fn wanted<const D: usize>(
    lattice: &Lattice<D>,
    reach: i64,
    axis: usize,
    lines: &[[i64; D]],
    targets: &[[i64; D]],
) -> Vec<[i64; D]> {
    // The later passes change the axes after this one. The search for targets is along the last
    // axis only and ignores the axes in between.
    let last = D - 1;
    let project = |c: &[i64; D]| along(last, &std::array::from_fn(|d| if d > axis && d < last { 0 } else { c[d] }));
    let mut shadows: Vec<[i64; D]> = targets.par_iter().map(project).collect_vec();
    shadows.par_sort_unstable();
    shadows.dedup();
    let each: Vec<&[[i64; D]]> = lines.chunk_by(|a, b| a[..last] == b[..last]).collect();
    let on_line = |line: &[[i64; D]]| -> Vec<[i64; D]> {
        let (mut next, mut some) = (0, vec![]);
        for cell in line {
            let at = cell[last];
            for here in (at - reach).max(next)..=(at + reach).min(lattice.count[axis] - 1) {
                // Back to the order of the axes.
                let mut rest = cell.iter();
                let mut to = [here; D];
                for d in (0..D).rev().filter(|&d| d != axis) {
                    to[d] = *rest.next().expect("as many axes");
                }
                if !within(&shadows, project(&to), reach).is_empty() {
                    some.push(to);
                }
                next = here + 1;
            }
        }
        some
    };
    each.par_iter().map(|line| on_line(line)).collect_vec().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the ways from each source to each target: one, if it is within reach along all axes.
    #[test]
    fn every_pair_meets_once() {
        let lattice = Lattice { origin: [0.0; 3], side: 1.0, count: [12; 3], inverse: 1.0 };
        let pick = |k: i64| -> Vec<[i64; 3]> {
            (0..60).map(|i| [(i * i * k) % 12, (i * 5 + k) % 12, (i * (i + 3) / 2 * k) % 12]).collect()
        };
        for reach in [0, 1, 3, 20] {
            let [mut sources, mut targets] = [pick(7), pick(5)];
            for set in [&mut sources, &mut targets] {
                set.sort_unstable();
                set.dedup();
            }
            // Each source is worth a power of a number that no sum of others makes: sums of squares of distinct numbers would do, but bits are exact.
            let mut values: Vec<u64> = (0..sources.len()).map(|i| 1 << i).collect();
            for pass in passes(&lattice, reach, &sources, &targets) {
                let sum = |r: &Range<u32>| r.clone().map(|k| values[pass.order[k as usize] as usize]).sum();
                values = pass.rows.iter().map(sum).collect();
            }
            for (t, value) in targets.iter().zip(values) {
                for (i, s) in sources.iter().enumerate() {
                    let near = (0..3).all(|d| (t[d] - s[d]).abs() <= reach);
                    assert_eq!(value >> i & 1 == 1, near, "{reach}: {s:?} to {t:?}");
                }
            }
        }
    }
}
