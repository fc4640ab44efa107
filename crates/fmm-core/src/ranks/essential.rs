//! What the lists of a rank name of other ranks: multipoles of cells, and runs of bodies.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rayon::prelude::*;

use super::cuts::Cuts;
use super::part::Part;
use crate::comm::{Comm, exchanged, gathered};
use crate::csr::Csr;
use crate::lists::Pair;
use crate::math::Real;
use crate::plan::OctreePlan;

/// What is asked of each rank, and what each asks of this one.
pub(super) struct Requests {
    /// The cells of this part whose multipoles are asked for, by their owners.
    wanted: Vec<Vec<u32>>,
    /// The cells of this part whose multipoles other ranks ask for.
    asked: Vec<Vec<u32>>,
    /// The runs of sorted places whose bodies come from each rank.
    bodies: Vec<Vec<[u32; 2]>>,
    /// The runs that other ranks ask for.
    bodies_asked: Vec<Vec<[u32; 2]>>,
}

/// Bodies with strengths, in runs of sorted places.
pub(super) struct Gathered {
    /// Ascending; none begins where another ends.
    pub runs: Vec<[u32; 2]>,
    /// Those of all runs.
    pub bodies: Vec<([f64; 3], f64)>,
    /// Bodies that have come from other ranks.
    pub received: usize,
}

impl Requests {
    /// Reads the lists and exchanges what they name.
    pub fn new(comm: &dyn Comm, part: &Part, plan: &OctreePlan<3>, cuts: &Cuts) -> Self {
        let (tree, lists) = (&plan.targets, &plan.lists);
        let (rank, size) = (comm.rank() as u32, comm.size());
        let (mut wanted, mut numbers) = (vec![vec![]; size], vec![vec![]; size]);
        for cell in named(tree.len(), [&lists.m2l, &lists.m2p]) {
            if let Some([owner, number]) = part.origin[cell as usize].filter(|[owner, _]| *owner != rank) {
                wanted[owner as usize].push(cell);
                numbers[owner as usize].push(number);
            }
        }
        let asked = exchanged(comm, &numbers);
        let asked = asked.into_iter().map(|cells| cells.into_iter().map(|c| part.own[c as usize]).collect()).collect();
        let near = named(tree.len(), [&lists.p2p, &lists.p2l]);
        let mut runs: Vec<[u32; 2]> = near.into_iter().map(|cell| tree.bodies[cell as usize]).collect();
        runs.sort_unstable();
        let runs = joined(runs);
        let of_owner = |owner: usize| {
            let (start, end) = (cuts.first[owner], cuts.first[owner + 1]);
            let within = |&[a, b]: &[u32; 2]| (a.max(start) < b.min(end)).then(|| [a.max(start), b.min(end)]);
            if owner == rank as usize { vec![] } else { runs.iter().filter_map(within).collect() }
        };
        let bodies: Vec<Vec<[u32; 2]>> = (0..size).map(of_owner).collect();
        let bodies_asked = exchanged(comm, &bodies);
        Requests { wanted, asked, bodies, bodies_asked }
    }

    /// Exchanges bodies. `own` gives those of this rank by their sorted places from its first on.
    pub fn bodies(&self, comm: &dyn Comm, cuts: &Cuts, own: impl Fn(usize) -> ([f64; 3], f64)) -> Gathered {
        let [first, end] = [cuts.first[comm.rank()], cuts.first[comm.rank() + 1]];
        let row = |place: u32| {
            let ([x, y, z], q) = own((place - first) as usize);
            [x, y, z, q]
        };
        let of_peer = |runs: &Vec<[u32; 2]>| runs.iter().flat_map(|&[a, b]| (a..b).map(row)).collect();
        let to: Vec<Vec<[f64; 4]>> = self.bodies_asked.iter().map(of_peer).collect();
        let from = exchanged(comm, &to);
        let received = from.iter().map(Vec::len).sum();
        let (mut runs, mut bodies) = (vec![], Vec::with_capacity(received + (end - first) as usize));
        for (owner, rows) in from.into_iter().enumerate() {
            runs.extend_from_slice(&self.bodies[owner]);
            bodies.extend(rows.into_iter().map(|[x, y, z, q]| ([x, y, z], q)));
            if owner == comm.rank() && first < end {
                runs.push([first, end]);
                bodies.extend((0..(end - first) as usize).map(&own));
            }
        }
        Gathered { runs: joined(runs), bodies, received }
    }

    /// Completes what the cells of the part have, multipoles or single numbers, in which each rank has computed those of
    /// its own cells. Returns the bytes that have come.
    pub fn complete<T: Real>(&self, comm: &dyn Comm, part: &Part, cuts: &Cuts, of_cells: &mut [T]) -> usize {
        let n = of_cells.len() / part.origin.len();
        let of = |cells: &mut dyn Iterator<Item = u32>, of_cells: &[T]| -> Vec<T> {
            cells.flat_map(|c| of_cells[c as usize * n..(c as usize + 1) * n].iter().copied()).collect()
        };
        let rank = comm.rank() as u32;
        let mut mine = part.branches.iter().zip(&cuts.owner).filter(|(_, owner)| **owner == rank).map(|(&c, _)| c);
        let branches: Vec<T> = gathered(comm, &of(&mut mine, of_cells));
        let to: Vec<Vec<T>> = self.asked.iter().map(|cells| of(&mut cells.iter().copied(), of_cells)).collect();
        let from = exchanged(comm, &to);
        let received = std::iter::once((&part.branches, &branches)).chain(self.wanted.iter().zip(&from));
        let mut bytes = 0;
        for (cells, values) in received {
            bytes += size_of_val(&values[..]);
            for (&cell, values) in cells.iter().zip(values.chunks_exact(n)) {
                of_cells[cell as usize * n..(cell as usize + 1) * n].copy_from_slice(values);
            }
        }
        bytes
    }
}

/// The source cells that lists name, in ascending order.
fn named(cells: usize, lists: [&Csr<Pair>; 2]) -> Vec<u32> {
    let named: Vec<AtomicBool> = (0..cells).map(|_| AtomicBool::new(false)).collect();
    for list in lists {
        list.items.par_iter().for_each(|pair| named[pair.source as usize].store(true, Relaxed));
    }
    (0..cells as u32).filter(|&c| named[c as usize].load(Relaxed)).collect()
}

/// Ascending runs, with those joined that touch or overlap.
fn joined(runs: Vec<[u32; 2]>) -> Vec<[u32; 2]> {
    let mut all: Vec<[u32; 2]> = vec![];
    for [start, end] in runs.into_iter().filter(|[start, end]| start < end) {
        match all.last_mut() {
            Some(last) if start <= last[1] => last[1] = last[1].max(end),
            _ => all.push([start, end]),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_are_one() {
        assert_eq!(joined(vec![[0, 2], [2, 2], [2, 5], [3, 4], [7, 9]]), [[0, 5], [7, 9]]);
    }
}
