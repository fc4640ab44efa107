//! The guard: the error of a sum on a sample of its targets, drawn and summed on the device.

use cust::memory::DevicePointer;
use fmm_core::boundary::{Moments, PeriodicBox};
use fmm_core::cpu::velocity_of;
use fmm_core::ewald::{self, Sums};
use fmm_core::guard::{Sample, sample_size, split};
use fmm_core::{Error, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::ewald::{Ewald, Picked, Request};
use crate::view::{BOX_ROW, Body, GuardView, ShareView, TILE};

/// Sources of a block at least, the most shares of them, and targets of a block. The bits of a sum depend on these and not on the device.
const FEWEST: usize = 256;
const PARTS: usize = 1024;
const GUARDED: usize = 128;

/// Threads of a block that is alone, and warps of a block of shares.
const ALONE: usize = 1024;
const WARPS: usize = 4;

/// Targets that are asked, at most about: of local expansions, which cost next to nothing, and of multipoles.
const SAMPLE: usize = 1 << 15;
const SAMPLE_MULTIPOLES: usize = 1 << 12;
/// The same in sets that lie along lines, where a single target can make the rms.
const SAMPLE_LINES: usize = 1 << 17;

/// The largest share where `tolerance` is to be kept: that of a thousand times as large an error. Where forces cancel errors count
/// relative to a thousandth of the largest term, and no target that feels nothing at all is to take the sample for itself.
pub fn largest_share(tolerance: f64) -> f64 {
    (1e3 * tolerance).powi(2)
}

/// Every how many leaves of a tree of `bodies` targets are asked, where `level_start` has the first cell of each level, and one past the last.
pub fn leaf_step(bodies: usize, level_start: &[u32], treecode: bool) -> usize {
    // A line meets 2^l cells of level l along an axis, and a curve some more.
    let cells = level_start.windows(2).map(|level| f64::from(level[1] - level[0]));
    let sample = match treecode {
        _ if cells.enumerate().all(|(l, count)| count <= 8.0 * (l as f64).exp2()) => SAMPLE_LINES,
        true => SAMPLE_MULTIPOLES,
        false => SAMPLE,
    };
    bodies.div_ceil(sample).max(1)
}

/// The arrays of a guard.
#[derive(Default)]
pub struct Guard {
    start: Buffer<u32>,
    found: Buffer<f64>,
    target: Buffer<u32>,
    share: Buffer<f64>,
    picked: Buffer<u32>,
    weight: Buffer<f64>,
    partial: Buffer<f64>,
    out: Buffer<f64>,
    /// In boxes.
    pub ewald: Ewald,
}

/// The sums of a guard in a box have this part of the tolerance as their error.
pub const PART: f64 = 0.05;

/// A sum over all images that is to be measured.
pub struct MeasuredInBox {
    /// What Ewald's sum needs, whose sources have begun.
    pub request: Request,
    /// Number of targets.
    pub targets: usize,
    /// The targets in the caller's order, as they are.
    pub position: DevicePointer<f64>,
    /// What was found, in the caller's order.
    pub found: crate::direct::Output,
    /// Of the sources as they are, of no charge.
    pub outer: Moments,
}

/// Where expansions err most, as far as the sum knows that has left them; the guard's own arrays are still missing.
pub struct Shares {
    /// All but the guard's arrays.
    pub view: ShareView,
    /// Precision of the expansions in names of kernels, and bytes of a number.
    pub real: (&'static str, usize),
    /// Leaves of the targets' tree.
    pub leaves: usize,
    /// Number of targets.
    pub targets: usize,
}

/// A sum that is to be measured.
pub struct Measured {
    /// The sources, `[n]`.
    pub bodies: DevicePointer<Body>,
    /// Number of bodies.
    pub n: usize,
    /// What the strengths of the sources were multiplied by, and those of what was found not.
    pub strength_scale: f64,
    /// What their lengths were multiplied by.
    pub unit: f64,
    /// What lengths are to be multiplied by, so that squares of forces are numbers.
    pub scale: f64,
    /// The targets, in the caller's unit; three numbers from every `stride`th on.
    pub position: DevicePointer<f64>,
    /// What was found at them, the same.
    pub field: DevicePointer<f64>,
    /// Numbers from one target to the next.
    pub stride: usize,
    /// Number of targets.
    pub targets: usize,
}

/// A sample of targets, with what is right there and what was found.
#[derive(Default)]
pub struct Rows {
    /// Places in the sample, and weights.
    pub drawn: Vec<(usize, f64)>,
    /// The field and the square of its largest term.
    exact: Vec<[f64; 4]>,
    found: Vec<[f64; 3]>,
}

impl Rows {
    /// The larger of rms(e) and L2, as [`Sample::weigh`] defines them.
    pub fn error(self) -> f64 {
        Sample::drawn(self.drawn).weigh(self.exact.into_iter().map(split), self.found, None).error()
    }
}

/// By this factor the error of a velocity is taken to be larger than in its sample, which is drawn where the field of one column of its
/// strengths errs: where the columns cancel, a sample sees less of the error.
const UNSEEN: f64 = 1.25;

/// The error of a velocity from the fields of the columns of its strengths, each with its component, in one sample. Of the square of the
/// largest term it knows a bound: the sum of those of the columns.
pub fn error_of_velocity(columns: &[(usize, Rows)]) -> f64 {
    let Some((_, first)) = columns.first() else { return 0.0 };
    let n = first.drawn.len();
    let mut all = Rows { drawn: first.drawn.clone(), exact: vec![[0.0; 4]; n], found: vec![[0.0; 3]; n] };
    for (k, rows) in columns {
        for i in 0..n {
            let [x, y, z, largest] = rows.exact[i];
            let (exact, found) = (velocity_of(*k, [x, y, z]), velocity_of(*k, rows.found[i]));
            for d in 0..3 {
                all.exact[i][d] += exact[d];
                all.found[i][d] += found[d];
            }
            all.exact[i][3] += largest / (4.0 * std::f64::consts::PI).powi(2);
        }
    }
    UNSEEN * all.error()
}

/// Room for the targets of a sample of leaves, as many as they are likely to hold.
fn first_room(shares: Option<&Shares>) -> usize {
    shares.map_or(0, |s| {
        let each = s.targets.div_ceil(s.leaves.max(1));
        (2 * each * s.view.count as usize + 1024).min(s.targets)
    })
}

impl Guard {
    /// The targets of the last sample.
    pub fn picked(&self) -> DevicePointer<u32> {
        self.picked.pointer()
    }

    /// The sum on a sample of its targets, drawn by `shares`, or the sample of the last call.
    pub fn rows(
        &mut self,
        gpu: &Gpu,
        softening: Softening,
        sum: &Measured,
        shares: Option<&Shares>,
        same_sample: bool,
    ) -> Result<Rows, Error> {
        if sum.targets == 0 || sum.n == 0 {
            return Ok(Rows::default());
        }
        let shares = shares.filter(|_| !same_sample);
        let targets = sample_size(sum.targets);
        self.picked.resize(targets)?;
        self.weight.resize(targets)?;
        let parts = (sum.n / FEWEST).clamp(1, PARTS);
        self.partial.resize(targets * parts * 4)?;
        self.out.resize(targets * 8 + 1)?;
        self.found.resize(1)?;
        let mut room = first_room(shares);
        let rows = loop {
            if let Some(shares) = shares {
                self.shares(gpu, shares, room)?;
            }
            let (name, length) = kernel(softening, sum.scale);
            let of_shares = |p: &Buffer<f64>| if shares.is_some() { p.pointer() } else { DevicePointer::null() };
            let view = GuardView {
                sources: sum.bodies,
                position: sum.position,
                field: sum.field,
                shared: of_shares(&self.found),
                share_target: self.target.pointer(),
                share: of_shares(&self.share),
                picked: self.picked.pointer(),
                weight: self.weight.pointer(),
                partial: self.partial.pointer(),
                out: self.out.pointer(),
                softening: length,
                unit: sum.unit,
                scale: sum.scale / sum.unit,
                n: sum.n as u32,
                all: sum.targets as u32,
                targets: targets as u32,
                parts: parts as u32,
                capacity: room as u32,
                stride: sum.stride as u32,
            };
            // SAFETY: all arrays have the lengths that the view says.
            unsafe {
                let kernels = gpu.kernels();
                if !same_sample {
                    kernels.launch(gpu.stream(), "guard_pick", 1, ALONE as u32, &view)?;
                }
                let grid = (targets.div_ceil(GUARDED) as u32, parts as u32);
                kernels.launch(gpu.stream(), &format!("guard_{name}_f64"), grid, GUARDED as u32, &view)?;
                let blocks = targets.div_ceil(TILE / 32) as u32;
                kernels.launch(gpu.stream(), "guard_join", blocks, TILE as u32, &view)?;
            }
            gpu.finish()?;
            let rows = self.out.download()?;
            let found = rows[8 * targets] as usize;
            if found <= room {
                break rows;
            }
            room = found;
        };
        let unit = sum.strength_scale / (sum.scale * sum.scale);
        let mut all = Rows::default();
        for (k, row) in rows.as_chunks::<8>().0.iter().enumerate().filter(|(_, row)| row[7] > 0.0) {
            all.drawn.push((k, row[7]));
            all.exact.push([row[0], row[1], row[2], row[3]]);
            all.found.push([row[4], row[5], row[6]].map(|f| f * unit));
        }
        Ok(all)
    }

    /// The larger of rms(e), L2 and that of the potential, as [`Sample::errors_in_box`] defines them, of a sum over all images on a sample of its targets.
    pub fn error_in_box(
        &mut self,
        gpu: &Gpu,
        cell: &PeriodicBox,
        sum: &MeasuredInBox,
        shares: Option<&Shares>,
    ) -> Result<f64, Error> {
        if sum.targets == 0 {
            return Ok(0.0);
        }
        let targets = sample_size(sum.targets);
        self.picked.resize(targets)?;
        self.weight.resize(targets)?;
        self.found.resize(1)?;
        let mut room = first_room(shares);
        let rows = loop {
            if let Some(shares) = shares {
                self.shares(gpu, shares, room)?;
            }
            let of_shares = |p: &Buffer<f64>| if shares.is_some() { p.pointer() } else { DevicePointer::null() };
            let view = GuardView {
                shared: of_shares(&self.found),
                share_target: self.target.pointer(),
                share: of_shares(&self.share),
                picked: self.picked.pointer(),
                weight: self.weight.pointer(),
                all: sum.targets as u32,
                targets: targets as u32,
                capacity: room as u32,
                ..GuardView::default()
            };
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), "guard_pick", 1, ALONE as u32, &view)? };
            let picked = Picked {
                picked: (self.picked.pointer(), targets),
                weight: self.weight.pointer(),
                shared: of_shares(&self.found),
                position: sum.position,
                found: sum.found,
            };
            self.ewald.some(gpu, sum.request, picked)?;
            gpu.finish()?;
            let rows = self.ewald.out.download()?;
            let found = rows[BOX_ROW * targets] as usize;
            if found <= room {
                break rows;
            }
            room = found;
        };
        let (mut drawn, mut exact) = (vec![], Sums::default());
        let (mut places, mut potential, mut field) = (vec![], vec![], vec![]);
        for row in rows.as_chunks::<BOX_ROW>().0.iter().filter(|row| row[9] > 0.0) {
            drawn.push((drawn.len(), row[9]));
            exact.potential.push(row[0]);
            exact.field.push([row[1], row[2], row[3]]);
            exact.largest.push(row[4]);
            potential.push(row[5]);
            field.push([row[6], row[7], row[8]]);
            places.push([row[10], row[11], row[12]]);
        }
        ewald::depolarise(cell, &sum.outer, &places, &mut exact.potential, &mut exact.field);
        let (norms, potential) = Sample::drawn(drawn).errors_in_box(&exact, &potential, &field, None);
        Ok(norms.error().max(potential))
    }

    /// Queues the shares of the targets in a sample of leaves, with room for so many.
    fn shares(&mut self, gpu: &Gpu, shares: &Shares, room: usize) -> Result<(), Error> {
        let count = shares.view.count as usize;
        self.start.resize(count)?;
        self.target.resize(room)?;
        self.share.resize(room)?;
        let view = ShareView {
            start: self.start.pointer(),
            found: self.found.pointer(),
            target: self.target.pointer(),
            share: self.share.pointer(),
            capacity: room as u32,
            ..shares.view
        };
        let (real, bytes) = shares.real;
        let shared = WARPS * (2 * view.order as usize + 3) * 4 * bytes;
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            let kernels = gpu.kernels();
            kernels.launch(gpu.stream(), "share_starts", 1, ALONE as u32, &view)?;
            let chunks = (view.leaf_size as usize).div_ceil(32);
            let blocks = (count * chunks).div_ceil(WARPS) as u32;
            let name = format!("shares_{real}");
            kernels.launch_with(gpu.stream(), &name, blocks, (32 * WARPS as u32, shared), &view)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fmm_core::tree::{Cube, Tree};
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use std::f64::consts::TAU;

    #[test]
    fn all_targets_are_asked_along_lines_alone() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut step = |at: fn([f64; 3]) -> [f64; 3], treecode| {
            let points: Vec<[f64; 3]> = (0..70_000).map(|_| at(rng.random())).collect();
            let tree = Tree::octree(&points, Cube::around(&[&points]), 200);
            leaf_step(points.len(), &tree.level_start, treecode)
        };
        for treecode in [false, true] {
            assert_eq!(step(|u| [u[0], 0.0, 0.0], treecode), 1);
            assert_eq!(step(|u| [u[0], -2.0 * u[0], 0.3 * u[0]], treecode), 1);
            assert_eq!(step(|u| [(TAU * u[0]).cos(), (TAU * u[0]).sin(), 1e-6 * u[1]], treecode), 1);
            let others = if treecode { 18 } else { 3 };
            assert_eq!(step(|u| [u[0], u[1], 0.0], treecode), others);
            assert_eq!(step(|u| u, treecode), others);
            // A ball that is the denser the nearer to its middle.
            assert_eq!(step(|u| [u[0], u[1], u[2]].map(|c| (c - 0.5) * (-12.0 * u[0]).exp()), treecode), others);
        }
    }
}
