//! Divides the sums of bricks into tasks for a device. It uses integers alone and is a pure
//! function of the lists, so that bits do not depend on the device.

use std::ops::Range;

use fmm_core::grid::plan::Lists;
use fmm_core::grid::sources::Sources;
use fmm_core::math::CollectVec;
use rayon::prelude::*;

/// Sums of bricks are made group by group, on two queues in turn.
const GROUPS: usize = 4;

/// Shares that fill any device; the sums of one brick may be several.
const SHARES: usize = 4096;

/// The fewest sources of a share of a brick that has several.
const FEWEST: usize = 8192;

/// Bricks whose sums are made together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// In [`Tasks::tasks`], those with most sources first.
    pub tasks: Range<usize>,
    /// In [`Tasks::parts`].
    pub parts: Range<usize>,
    /// In [`Tasks::far`].
    pub far: Range<usize>,
    /// Places of their sums.
    pub places: Range<usize>,
}

/// The lists in the form that a device reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks {
    /// The place of the sums of each brick; [`NONE`] where there are none.
    pub place: Vec<u32>,
    /// Brick, first run, one past the last, place of the sums.
    pub tasks: Vec<[u32; 4]>,
    /// First source and one past the last.
    pub runs: Vec<[u32; 2]>,
    /// Place of the sums of a brick, first of those to be added to them, one past the last.
    pub parts: Vec<[u32; 3]>,
    /// Brick, first node, one past the last, place of the sums.
    pub far: Vec<[u32; 4]>,
    /// One after the other.
    pub groups: Vec<Group>,
    /// Places of sums of bricks.
    pub bricks: usize,
    /// Places of sums in all.
    pub places: usize,
}

/// No place.
pub const NONE: u32 = super::view::NO_SUMS;

/// The sources that act directly on a brick, in runs that do not touch.
fn runs(lists: &Lists, sources: &Sources, brick: usize) -> Vec<[u32; 2]> {
    let mut all: Vec<[u32; 2]> = vec![];
    for run in lists.runs(sources, brick).filter(|run| !run.is_empty()) {
        let [start, end] = [run.start, run.end].map(|n| n as u32);
        match all.last_mut() {
            Some(last) if last[1] == start => last[1] = end,
            _ => all.push([start, end]),
        }
    }
    all
}

fn len(runs: &[[u32; 2]]) -> usize {
    runs.iter().map(|r| (r[1] - r[0]) as usize).sum()
}

impl Tasks {
    /// The direct sums of `lists`, and its expansions if `expansions` says so.
    pub fn new(lists: &Lists, sources: &Sources, expansions: bool) -> Self {
        let bricks = lists.near.rows();
        let rows: Vec<Vec<[u32; 2]>> = (0..bricks).into_par_iter().map(|b| runs(lists, sources, b)).collect_vec();
        let far = |b: usize| if expansions { lists.far.range(b) } else { 0..0 };
        let busy: Vec<usize> = (0..bricks).filter(|&b| !rows[b].is_empty() || !far(b).is_empty()).collect();
        let all: usize = rows.iter().map(|r| len(r)).sum();
        let share = (all / SHARES).max(FEWEST);
        let mut out = Tasks { place: vec![NONE; bricks], bricks: busy.len(), places: busy.len(), ..Tasks::default() };
        let mut group = Group { tasks: 0..0, parts: 0..0, far: 0..0, places: 0..0 };
        let mut met = 0;
        for (place, &b) in busy.iter().enumerate() {
            out.place[b] = place as u32;
            if !far(b).is_empty() {
                out.far.push([b, far(b).start, far(b).end, place].map(|n| n as u32));
            }
            out.cut(b, place, &rows[b], share);
            met += len(&rows[b]);
            let last = place + 1 == busy.len();
            let early = out.groups.len() + 1 < GROUPS && met * GROUPS >= all * (out.groups.len() + 1);
            if last || (all > 0 && early) {
                group.tasks.end = out.tasks.len();
                group.parts.end = out.parts.len();
                group.far.end = out.far.len();
                group.places.end = place + 1;
                let size = |t: &[u32; 4]| std::cmp::Reverse(len(&out.runs[t[1] as usize..t[2] as usize]));
                out.tasks[group.tasks.clone()].sort_by_key(size);
                let [tasks, parts, far] = [group.tasks.end, group.parts.end, group.far.end].map(|end| end..end);
                let places = place + 1..place + 1;
                out.groups.push(std::mem::replace(&mut group, Group { tasks, parts, far, places }));
            }
        }
        out
    }

    /// Adds the shares of a brick.
    fn cut(&mut self, brick: usize, place: usize, row: &[[u32; 2]], share: usize) {
        // Shares of one brick have the same number of sources, but for the last.
        let count = len(row).div_ceil(share);
        let Some(each) = len(row).checked_div(count).map(|each| each + 1) else { return };
        let (mut pieces, mut filled): (Vec<Range<usize>>, usize) = (vec![], each);
        for &[mut start, end] in row {
            while start < end {
                if filled == each {
                    pieces.push(self.runs.len()..self.runs.len());
                    filled = 0;
                }
                let here = (each - filled).min((end - start) as usize);
                self.runs.push([start, start + here as u32]);
                (start, filled) = (start + here as u32, filled + here);
                if let Some(piece) = pieces.last_mut() {
                    piece.end = self.runs.len();
                }
            }
        }
        let extra = self.places;
        self.places += pieces.len() - 1;
        for (i, piece) in pieces.iter().enumerate() {
            let at = if i == 0 { place } else { extra + i - 1 };
            self.tasks.push([brick, piece.start, piece.end, at].map(|n| n as u32));
        }
        if self.places > extra {
            self.parts.push([place, extra, self.places].map(|n| n as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fmm_core::grid::{Green, Grid, Ring, Rings, Solver};

    #[test]
    fn every_source_is_met_once_whatever_the_cut() {
        for (theta, radius, cut) in [(0.0, 0.25, true), (0.5, 0.25, true), (0.5, 0.1, false)] {
            let rings = Rings(vec![Ring::of_paper([0.5; 3], [0.0, 0.0, 1.0], radius)]);
            let grid = Grid::uniform([0.0; 3], 1.0, 3);
            let sources = Sources::new(&grid, &grid.sample(&rings), Green::Regularised, 32);
            assert_eq!(sources.len() > 2 * FEWEST, cut, "{}", sources.len());
            let lists = Lists::new(&grid, &sources, Solver { theta, ..Solver::default() }.rule());
            let tasks = Tasks::new(&lists, &sources, true);
            let bricks = grid.blocks().len() * 8;
            assert_eq!((tasks.place.len(), tasks.bricks, tasks.parts.is_empty()), (bricks, bricks, !cut));
            assert_eq!(tasks.groups.len(), GROUPS);
            // Groups and places follow each other without gaps.
            let mut written = vec![0; tasks.places];
            let mut next = [0; 4];
            for group in &tasks.groups {
                for (range, next) in [&group.tasks, &group.parts, &group.far, &group.places].into_iter().zip(&mut next)
                {
                    assert_eq!(range.start, *next);
                    *next = range.end;
                }
                let mut seen = vec![vec![0; sources.len()]; group.places.len()];
                for &[brick, first, end, place] in &tasks.tasks[group.tasks.clone()] {
                    let of = tasks.place[brick as usize] as usize;
                    assert!(group.places.contains(&of));
                    written[place as usize] += 1;
                    let part = tasks.parts[group.parts.clone()].iter().find(|p| p[0] as usize == of);
                    assert!(place as usize == of || part.is_some_and(|p| (p[1]..p[2]).contains(&place)));
                    for run in &tasks.runs[first as usize..end as usize] {
                        (run[0]..run[1]).for_each(|i| seen[of - group.places.start][i as usize] += 1);
                    }
                }
                for b in (0..bricks).filter(|&b| group.places.contains(&(tasks.place[b] as usize))) {
                    let mut expected = vec![0; sources.len()];
                    lists.runs(&sources, b).for_each(|run| run.for_each(|i| expected[i] += 1));
                    assert_eq!(seen[tasks.place[b] as usize - group.places.start], expected);
                }
            }
            assert_eq!(next, [tasks.tasks.len(), tasks.parts.len(), tasks.far.len(), tasks.bricks]);
            assert!(written.iter().all(|&w| w <= 1) && written[tasks.bricks..].iter().all(|&w| w == 1));
            assert_eq!(tasks.far.iter().map(|t| (t[2] - t[1]) as usize).sum::<usize>(), lists.far.len());
        }
    }
}
