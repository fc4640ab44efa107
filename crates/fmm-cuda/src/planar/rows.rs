//! Who meets whom, on the device: the rows of [`Lists`], element by element.

use cust::memory::DevicePointer;
use fmm_core::Csr;
use fmm_core::Error;
use fmm_core::planar::{Lists, Pyramid, Rule};

use super::pyramid::DevicePyramid;
use super::view::{ConnectView, LISTS, ROWS, THREADS};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{Work, launch};

/// Rows of source boxes on the device, as [`Csr`] has them.
#[derive(Default)]
pub struct DeviceRows {
    /// First entry of each row, and one past the last. `[boxes + 1]`
    pub start: Buffer<u64>,
    /// Source boxes. `[start[boxes]]`
    pub source: Buffer<u32>,
}

impl DeviceRows {
    fn download(&self) -> Result<Csr<u32>, Error> {
        Ok(Csr { start: self.start.download()?, items: self.source.download()? })
    }
}

/// The four lists of a plan on the device.
#[derive(Default)]
pub struct DeviceLists {
    /// M2L.
    pub m2l: DeviceRows,
    /// M2P, P2L and P2P.
    pub leaves: [DeviceRows; LISTS],
    near: [DeviceRows; 2],
    root: DeviceRows,
    total: Buffer<u64>,
}

/// Entries a leaf that there is room for at first: M2L, M2P, P2L, P2P, and strong pairs of a level.
const EXPECTED: [usize; 5] = [100, 3, 3, 20, 26];

impl DeviceLists {
    /// The lists of the fast multipole method between pyramids with the same number of levels:
    /// those of [`Lists::between_pyramids`].
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn fmm(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        targets: &DevicePyramid,
        sources: &DevicePyramid,
        rule: Rule,
    ) -> Result<(), Error> {
        let (levels, boxes) = (targets.levels(), targets.boxes());
        let leaves = 1usize << (2 * levels);
        let mut needed = EXPECTED.map(|e| e * leaves + 1024);
        if self.root.start.is_empty() {
            self.root.start.upload(&[0, 1])?;
            self.root.source.upload(&[0])?;
            gpu.settle()?;
        }
        loop {
            self.m2l.start.resize(boxes + 1)?;
            let kept = self.m2l.source.capacity();
            self.m2l.source.resize(kept.max(needed[0]))?;
            for (rows, needed) in self.leaves.iter_mut().zip(&needed[1..]) {
                rows.start.resize(boxes + 1)?;
                let kept = rows.source.capacity();
                rows.source.resize(kept.max(*needed))?;
            }
            for near in &mut self.near {
                near.start.resize(leaves + 1)?;
                let kept = near.source.capacity();
                near.source.resize(kept.max(needed[4]))?;
            }
            self.traverse(gpu, work, targets, sources, rule)?;
            work.mark(gpu, "read back")?;
            gpu.finish()?;
            let total = self.total.download()?;
            let ends = &total[2 * levels + 2..];
            let strong = (1..=levels).map(|l| total[2 * l + 1]).max().unwrap_or(1);
            let found = [total[2 * levels], ends[0], ends[1], ends[2], strong].map(|f| f as usize);
            let near = self.near[0].source.len().min(self.near[1].source.len());
            let there = |k: usize| if k == 0 { self.m2l.source.len() } else { self.leaves[k - 1].source.len() };
            let capacity = [there(0), there(1), there(2), there(3), near];
            if (0..5).all(|k| found[k] <= capacity[k]) {
                self.m2l.source.resize(found[0])?;
                for (rows, found) in self.leaves.iter_mut().zip(&found[1..]) {
                    rows.source.resize(*found)?;
                }
                return Ok(());
            }
            // A quarter more: where a list had no room, the levels below may have found too few.
            needed =
                std::array::from_fn(
                    |k| {
                        if found[k] > capacity[k] { found[k] + found[k] / 4 + 1024 } else { capacity[k] }
                    },
                );
        }
    }

    /// Queues the rows of all levels; what does not fit is counted.
    fn traverse(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        targets: &DevicePyramid,
        sources: &DevicePyramid,
        rule: Rule,
    ) -> Result<(), Error> {
        let levels = targets.levels();
        self.total.resize(2 * levels + 2 + LISTS)?;
        self.total.fill(gpu.stream(), 0)?;
        self.m2l.start.fill(gpu.stream(), 0)?;
        for rows in &mut self.leaves {
            rows.start.fill(gpu.stream(), 0)?;
        }
        let tickets = work.tickets(gpu, levels + 1)?;
        work.mark(gpu, "rows")?;
        let none = DevicePointer::null();
        // SAFETY: places of the totals, as many as there are.
        let place = |k: usize| unsafe { self.total.pointer().add(k) };
        let mut near = (self.root.start.pointer(), self.root.source.pointer(), 1);
        for level in 1..=levels + 1 {
            // After the last level its strong pairs are sorted out.
            let last = level > levels;
            let depth = level.min(levels);
            let first = Pyramid::first(depth);
            let cells = Pyramid::first(depth + 1) - first;
            let tiles = cells.div_ceil(ROWS);
            let (status, epoch) = work.launch(gpu, LISTS * tiles)?;
            let out = &self.near[level % 2];
            let pairs = |rows: &DeviceRows| (rows.source.pointer(), rows.source.len() as u64);
            // SAFETY: rows of all boxes.
            let at = |rows: &DeviceRows| unsafe { rows.start.pointer().add(first) };
            let (start, lists, found, before) = if last {
                let lists = self.leaves.each_ref().map(pairs);
                let found = [0, 1, 2].map(|k| place(2 * levels + 2 + k));
                (self.leaves.each_ref().map(at), lists, found, [none; LISTS])
            } else {
                let lists = [pairs(&self.m2l), pairs(out), (DevicePointer::null(), 0)];
                let found = [place(2 * level), place(2 * level + 1), none];
                ([at(&self.m2l), out.start.pointer(), none], lists, found, [place(2 * level - 2), none, none])
            };
            let view = ConnectView {
                targets: targets.view(),
                sources: sources.view(),
                near_start: near.0,
                near: near.1,
                near_capacity: near.2,
                start,
                source: lists.map(|l| l.0),
                capacity: lists.map(|l| l.1),
                before,
                found,
                status,
                // SAFETY: one for each launch.
                ticket: unsafe { tickets.add(level - 1) },
                theta: rule.theta,
                min_distance: rule.min_distance,
                swap_min_points: rule.swap_min_points as u64,
                epoch,
                first: first as u32,
                cells: cells as u32,
                parents: Pyramid::first(depth.saturating_sub(1)) as u32,
                tiles: tiles as u32,
            };
            let name = if last { "planar_swap" } else { "planar_connect" };
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { launch(gpu, name, tiles, THREADS, &view)? };
            if !last {
                near = (out.start.pointer(), out.source.pointer(), out.source.len() as u64);
            }
        }
        Ok(())
    }

    /// A copy of the lists.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn download(&self) -> Result<Lists, Error> {
        let [m2p, p2l, p2p] = &self.leaves;
        Ok(Lists { m2l: self.m2l.download()?, m2p: m2p.download()?, p2l: p2l.download()?, p2p: p2p.download()? })
    }
}
