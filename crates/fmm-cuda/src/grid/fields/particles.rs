//! The particles of a flow on a device: made from cells, sorted by cells, and cells again.
//!
//! Sums over particles are made by the cells that they go to, in the order of the particles' cells
//! and numbers: the same bits in every run.

use std::collections::BTreeSet;
use std::ops::Range;

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::grid::blocks::CELLS;
use fmm_core::grid::flow::{Lost, Now, Seeded};
use fmm_core::grid::hierarchy::NONE;
use fmm_core::grid::padded::neighbor;
use fmm_core::grid::remesh::{Kernel, Lattice};
use fmm_core::grid::{BLOCK, Block, Grid};

use super::memory::Array;
use super::tables::Tables;
use super::view::{AROUND, FIELD_THREADS, ParticleView, SEEDED, SLICES, SeededView};
use super::{Device, MEANS, MOTION, after};

/// Particles of all levels, one level after the other.
pub struct DeviceParticles {
    /// Those of each level.
    levels: Vec<Range<usize>>,
    /// `[n][3]`
    pub position: Array<f64>,
    /// `[n][3]`
    pub vorticity: Array<f64>,
}

/// dx/dt and dω/dt of particles.
pub struct DeviceRates {
    /// `[n][3]`
    pub velocity: Array<f64>,
    /// `[n][3]`
    pub growth: Array<f64>,
}

/// Particles of a level, sorted by cells.
struct Sorted {
    level: u8,
    /// Blocks that hold some, and the number of each for every block of a box around them.
    blocks: Vec<Block>,
    occupied: Array<u32>,
    /// The first block of the box along each axis, and how many it has.
    low: [i32; 3],
    side: [i32; 3],
    start: Array<u32>,
    order: Array<u32>,
}

/// Particles by cells.
pub struct DevicePlaced {
    kernel: Kernel,
    lattice: Lattice,
    levels: Vec<Sorted>,
    /// Blocks of level 0 that the particles reach.
    pub roots: BTreeSet<Block>,
}

/// Running sums, and the sum of all.
fn firsts(counts: &[u32]) -> (Vec<u32>, usize) {
    let mut sum = 0;
    let first = |&count: &u32| {
        sum += count as usize;
        (sum - count as usize) as u32
    };
    let firsts = counts.iter().map(first).collect();
    (firsts, sum)
}

/// The particles of all levels of a grid and their rates; the field is known on the first grid.
pub fn seeded(
    device: &Device,
    [tables, wider]: [&Tables; 2],
    now: &Now<Array<f64>, Array<f64>>,
    way: f64,
) -> Result<(DeviceParticles, DeviceRates), Error> {
    let moved = |field, kind| tables.onto(device, &tables.levels(device, field, kind)?, &wider.grid);
    let (w, motion) = (moved(now.vorticity, MEANS)?, moved(now.motion, MOTION)?);
    let d = now.diffused.map(|d| moved(d, MEANS)).transpose()?;
    let (w, motion) = (wider.levels(device, &w, MEANS)?, wider.levels(device, &motion, MOTION)?);
    let d = d.as_ref().map(|d| wider.levels(device, d, MEANS)).transpose()?;
    let (mut rows, mut blocks): (Vec<[u32; SEEDED]>, _) = (vec![], vec![]);
    for level in 0..=wider.grid.finest() {
        let margin = Seeded::margin(&wider.grid, level, way) as u32;
        let row = |s: Seeded| {
            let (above, part) = s.coarser.unwrap_or((NONE, 0));
            [s.number, s.near.unwrap_or(0), above, part as u32, margin]
        };
        let start = rows.len();
        rows.extend(Seeded::of(&wider.grid, &wider.hierarchy, level).into_iter().map(row));
        blocks.push(start..rows.len());
    }
    let (table, counts) = (device.with(rows.as_flattened())?, device.array::<u32>(rows.len())?);
    let view = SeededView {
        seeded: table.pointer(),
        block: wider.block.pointer(),
        vorticity: w.own.pointer(),
        vorticity_made: w.made.pointer(),
        motion: motion.own.pointer(),
        motion_made: motion.made.pointer(),
        diffused: d.as_ref().map_or(DevicePointer::null(), |d| d.own.pointer()),
        diffused_made: d.as_ref().map_or(DevicePointer::null(), |d| d.made.pointer()),
        counts: counts.pointer(),
        first: DevicePointer::null(),
        position: DevicePointer::null(),
        weight: DevicePointer::null(),
        velocity: DevicePointer::null(),
        growth: DevicePointer::null(),
        corner: wider.grid.corner(),
        spacing: wider.grid.spacing(0),
        own_blocks: wider.hierarchy.own() as u32,
        count: rows.len() as u32,
    };
    device.launch("seeds_count", rows.len(), &view)?;
    let (first, n) = firsts(&device.read(&counts)?);
    let place = |b: usize| first.get(b).map_or(n, |&f| f as usize);
    let levels = blocks.iter().map(|b| place(b.start)..place(b.end)).collect();
    let first = device.with(&first)?;
    let [position, vorticity, velocity, growth] = [(); 4].map(|()| device.array::<f64>(3 * n));
    let particles = DeviceParticles { levels, position: position?, vorticity: vorticity? };
    let rates = DeviceRates { velocity: velocity?, growth: growth? };
    let view = SeededView {
        first: first.pointer(),
        position: particles.position.pointer(),
        weight: particles.vorticity.pointer(),
        velocity: rates.velocity.pointer(),
        growth: rates.growth.pointer(),
        ..view
    };
    device.launch("seeds_write", rows.len(), &view)?;
    Ok((particles, rates))
}

impl DeviceParticles {
    /// A copy.
    pub fn copy(&self, device: &Device) -> Result<Self, Error> {
        let stream = device.gpu.stream();
        let (position, vorticity) = (self.position.copy(stream)?, self.vorticity.copy(stream)?);
        Ok(DeviceParticles { levels: self.levels.clone(), position, vorticity })
    }

    /// The view of those of a level.
    fn view(&self, level: usize, lattice: &Lattice, kernel: Kernel) -> ParticleView {
        let range = &self.levels[level];
        let across = f64::from(lattice.base * BLOCK as u32) * 2f64.powi(level as i32);
        ParticleView {
            position: after(self.position.pointer(), 3 * range.start),
            vorticity: after(self.vorticity.pointer(), 3 * range.start),
            velocity: DevicePointer::null(),
            growth: DevicePointer::null(),
            occupied: DevicePointer::null(),
            held: DevicePointer::null(),
            reached: DevicePointer::null(),
            first: DevicePointer::null(),
            start: DevicePointer::null(),
            taken: DevicePointer::null(),
            order: DevicePointer::null(),
            bounds: DevicePointer::null(),
            around: DevicePointer::null(),
            targets: DevicePointer::null(),
            motion: DevicePointer::null(),
            motion_made: DevicePointer::null(),
            diffused: DevicePointer::null(),
            diffused_made: DevicePointer::null(),
            out: DevicePointer::null(),
            corner: lattice.corner,
            cells: across / lattice.side,
            across,
            low: [0; 3],
            side: [1; 3],
            n: range.len() as u32,
            count: 0,
            own_blocks: 0,
            reach: kernel.reach() as u32,
        }
    }

    /// The particles by cells.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn place(&self, device: &Device, lattice: &Lattice, kernel: Kernel) -> Result<DevicePlaced, Lost> {
        let (mut levels, mut roots) = (vec![], BTreeSet::new());
        for level in 0..self.levels.len() {
            levels.extend(self.sorted(device, level, (lattice, kernel), &mut roots)?);
        }
        Ok(DevicePlaced { kernel, lattice: *lattice, levels, roots })
    }

    /// Those of a level; `None` if there are none.
    fn sorted(
        &self,
        device: &Device,
        level: usize,
        (lattice, kernel): (&Lattice, Kernel),
        roots: &mut BTreeSet<Block>,
    ) -> Result<Option<Sorted>, Lost> {
        let n = self.levels[level].len();
        if n == 0 {
            return Ok(None);
        }
        let threads = n.div_ceil(FIELD_THREADS);
        let bounds = device.with(&[i32::MAX, i32::MAX, i32::MAX, i32::MIN, i32::MIN, i32::MIN, 0])?;
        let view = ParticleView { bounds: bounds.pointer(), ..self.view(level, lattice, kernel) };
        device.launch("remesh_bounds", threads, &view)?;
        let ends = device.read(&bounds)?;
        if ends[6] > 0 {
            return Err(Lost::Outside(level as u8));
        }
        let low = [ends[0], ends[1], ends[2]];
        let side: [i32; 3] = std::array::from_fn(|d| ends[3 + d] - ends[d] + 1);
        let count = side.iter().map(|&s| s as usize).product();
        let (held, reached) = (device.zeros::<u32>(count)?, device.zeros::<u32>(count)?);
        let view = ParticleView { held: held.pointer(), reached: reached.pointer(), low, side, ..view };
        device.launch("remesh_reach", threads, &view)?;
        let (held, reached) = (device.read(&held)?, device.read(&reached)?);
        let (mut blocks, mut counts, mut number) = (vec![], vec![], vec![NONE; count]);
        for (i, &here) in held.iter().enumerate().filter(|(_, here)| **here > 0) {
            let place =
                [i % side[0] as usize, i / side[0] as usize % side[1] as usize, i / (side[0] * side[1]) as usize];
            let index = std::array::from_fn(|d| (low[d] + place[d] as i32) as u32);
            let block = Block { level: level as u8, index };
            number[i] = blocks.len() as u32;
            let near = (0..AROUND).filter(|&n| reached[i] >> n & 1 != 0);
            roots.extend(near.map(|n| neighbor(block, n).root()));
            blocks.push(block);
            counts.push(here);
        }
        let (first, occupied) = (device.with(&firsts(&counts).0)?, device.with(&number)?);
        let start = device.array(blocks.len() * CELLS + 1)?;
        let (taken, order) = (device.zeros(blocks.len() * CELLS)?, device.array(n)?);
        let view = ParticleView {
            occupied: occupied.pointer(),
            first: first.pointer(),
            start: start.pointer(),
            taken: taken.pointer(),
            order: order.pointer(),
            ..view
        };
        device.launch("remesh_count", threads, &view)?;
        device.launch("remesh_starts", blocks.len(), &view)?;
        device.launch("remesh_sort", threads, &view)?;
        device.launch("remesh_order", blocks.len(), &view)?;
        Ok(Some(Sorted { level: level as u8, blocks, occupied, low, side, start, order }))
    }
}

impl DevicePlaced {
    fn view(&self, sorted: &Sorted, particles: &DeviceParticles) -> ParticleView {
        ParticleView {
            occupied: sorted.occupied.pointer(),
            start: sorted.start.pointer(),
            order: sorted.order.pointer(),
            low: sorted.low,
            side: sorted.side,
            ..particles.view(usize::from(sorted.level), &self.lattice, self.kernel)
        }
    }

    fn named(&self, m4: &'static str, m6: &'static str) -> &'static str {
        match self.kernel {
            Kernel::M4 => m4,
            Kernel::M6 => m6,
        }
    }

    /// What particles make of the cells of their level.
    pub fn scatter(&self, device: &Device, grid: &Grid, particles: &DeviceParticles) -> Result<Array<f64>, Error> {
        let out = device.zeros(3 * grid.cells())?;
        for sorted in &self.levels {
            let number: std::collections::HashMap<Block, u32> = sorted.blocks.iter().copied().zip(0..).collect();
            let (mut targets, mut around): (Vec<u32>, Vec<[u32; AROUND]>) = (vec![], vec![]);
            for (b, block) in grid.blocks().iter().enumerate().filter(|(_, b)| b.level == sorted.level) {
                let near = std::array::from_fn(|n| number.get(&neighbor(*block, n)).copied().unwrap_or(NONE));
                if near.iter().any(|&n| n != NONE) {
                    targets.push(b as u32);
                    around.push(near);
                }
            }
            let (count, around) = (targets.len(), device.with(around.as_flattened())?);
            let targets = device.with(&targets)?;
            let view = ParticleView {
                around: around.pointer(),
                targets: targets.pointer(),
                out: out.pointer(),
                count: count as u32,
                ..self.view(sorted, particles)
            };
            device.launch(self.named("remesh_scatter_m4", "remesh_scatter_m6"), SLICES * count, &view)?;
        }
        Ok(out)
    }

    /// u and (ω·∇)u + ν ∇²ω at the particles.
    pub fn gather(
        &self,
        device: &Device,
        tables: &Tables,
        particles: &DeviceParticles,
        (motion, diffused): (&Array<f64>, Option<&Array<f64>>),
    ) -> Result<DeviceRates, Error> {
        let motion = tables.levels(device, motion, MOTION)?;
        let diffused = diffused.map(|d| tables.levels(device, d, MEANS)).transpose()?;
        let rates = DeviceRates {
            velocity: device.array(particles.position.len())?,
            growth: device.array(particles.position.len())?,
        };
        for sorted in &self.levels {
            let around: Vec<_> = sorted.blocks.iter().map(|&b| tables.hierarchy.around(b)).collect();
            let around = device.with(around.as_flattened())?;
            let range = &particles.levels[usize::from(sorted.level)];
            let view = ParticleView {
                around: around.pointer(),
                motion: motion.own.pointer(),
                motion_made: motion.made.pointer(),
                diffused: diffused.as_ref().map_or(DevicePointer::null(), |d| d.own.pointer()),
                diffused_made: diffused.as_ref().map_or(DevicePointer::null(), |d| d.made.pointer()),
                velocity: after(rates.velocity.pointer(), 3 * range.start),
                growth: after(rates.growth.pointer(), 3 * range.start),
                own_blocks: tables.hierarchy.own() as u32,
                ..self.view(sorted, particles)
            };
            let blocks = range.len().div_ceil(FIELD_THREADS);
            device.launch(self.named("remesh_gather_m4", "remesh_gather_m6"), blocks, &view)?;
        }
        Ok(rates)
    }
}
