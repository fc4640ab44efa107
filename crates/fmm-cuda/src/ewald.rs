//! Ewald's sum on the device (see [`fmm_core::ewald`]): the direct sum over all images, and what the guard of a box compares with.

use cust::memory::DevicePointer;
use cust::stream::Stream;
use fmm_core::boundary::PeriodicBox;
use fmm_core::ewald::Split;
use fmm_core::math::scale::power_of_two_below;
use fmm_core::{Error, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::{self, Output};
use crate::kernels::SHARED;
use crate::view::Points;
use crate::view::{BOX_ROW, Body, DEEP, EwaldView, SOURCES, TILE};

/// Threads of a block: columns of waves; warps in real space and at targets.
const COLUMNS: usize = 256;
const NEAR_WARPS: usize = 4;
const AT_WARPS: usize = 4;

/// Targets of one launch where all are wanted, and the most shares of the sources. The bits of a sum depend on these and not on the device.
const TARGETS: usize = 1 << 15;
const SHARES: usize = 1024;
/// Blocks of the structure factors. So few leave room for other kernels at the same time.
const BLOCKS: usize = 264;

/// Fewest bodies that are worth a share of the structure factors.
const FEWEST: usize = 512;

/// Instructions of double precision of a pair in real space, of one that is passed over, and of a body for a column of waves, about; the same where those are
/// in single precision. Only the split between them depends on it.
const COSTS: [[f64; 3]; 2] = [[180.0, 8.0, 30.0], [30.0, 4.0, 17.0]];
/// Of a target for a column.
const COLUMN_AT: f64 = 300.0;

/// The accuracy from which on single precision serves: its sums over some thousand bodies err by a few 1e-6 of themselves.
const SINGLE: f64 = 4e-6;

/// The sources of a sum.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The box.
    pub cell: &'a PeriodicBox,
    /// Errors relative to typical values.
    pub accuracy: f64,
    /// Whether single precision may serve where that accuracy allows it. Where forces cancel it errs by more.
    pub single: bool,
    /// In the box, with strengths as they are.
    pub points: Points,
    /// What strengths are multiplied by.
    pub strength_scale: f64,
    /// Σ q.
    pub charge: f64,
    /// Targets of the whole sum: what is cheapest depends on it.
    pub targets: usize,
}

/// What is to be summed of them.
#[derive(Clone, Copy)]
pub struct Request {
    /// None or a spline.
    pub softening: Softening,
    /// In the box, in any order, with scaled strengths.
    pub sources: DevicePointer<Body>,
    /// In the box.
    pub targets: DevicePointer<Body>,
    /// Whether they are the sources, in the same order, and none sees itself.
    pub same: bool,
    /// The place of each target in the caller's order; null: the same.
    pub order: DevicePointer<u32>,
}

/// Targets that the guard has picked, and what was found at them.
#[derive(Clone, Copy)]
pub struct Picked {
    /// Places among the targets, and how many.
    pub picked: (DevicePointer<u32>, usize),
    /// See [`EwaldView`].
    pub weight: DevicePointer<f64>,
    /// The same.
    pub position: DevicePointer<f64>,
    /// The same.
    pub found: Output,
}

/// The arrays of Ewald's sums.
#[derive(Default)]
pub struct Ewald {
    columns: Buffer<u32>,
    /// What `columns` holds.
    known: Option<([f64; 3], f64)>,
    /// Of the sources that have begun.
    begun: Option<Begun>,
    structure: Buffer<f64>,
    factors: Buffer<f64>,
    partial: Buffer<f64>,
    waves: Buffer<f64>,
    /// Rows of the guard. `[count][BOX_ROW]`
    pub out: Buffer<f64>,
}

/// How a sum is split, in units of the box.
struct Cut {
    split: Split,
    side: [f64; 3],
    most: [u32; 3],
    reach: [u32; 3],
    /// Whether sums are in single precision.
    single: bool,
}

/// Sources whose structure factors are known, or on their way.
struct Begun {
    cut: Cut,
    scale: f64,
    strength_scale: f64,
    /// π Q/(α² V), scaled.
    background: f64,
    n: u32,
    columns: u32,
    parts: u32,
    bodies: u32,
}

impl Cut {
    /// For a distance up to which images are summed, in shortest sides.
    fn with(side: [f64; 3], cutoff: f64, (accuracy, single): (f64, bool)) -> Self {
        let shortest = side.into_iter().fold(f64::INFINITY, f64::min);
        let reached = cutoff * shortest;
        let split = Split::with(Split::with(1.0, accuracy).cutoff / reached, accuracy);
        let most = side.map(|s| (split.highest * s / (2.0 * std::f64::consts::PI)) as u32);
        // The nearest image is at most half a side away, the next ones at least that.
        let reach = side.map(|s| (reached / s + 0.5) as u32);
        Cut { split, side, most, reach, single: single && accuracy >= SINGLE && reach == [0; 3] }
    }

    /// About what it costs.
    fn cost(&self, n: usize, targets: usize) -> f64 {
        let images: f64 = self.reach.iter().map(|r| f64::from(2 * r + 1)).product();
        let volume: f64 = self.side.iter().product();
        let ball = (4.2 * self.split.cutoff.powi(3) / volume / images).min(1.0);
        let [pair, passed, column] = COSTS[usize::from(self.single)];
        let pairs = n as f64 * targets as f64 * images * (pair * ball + passed);
        let waves = 0.6 * self.most.iter().map(|m| f64::from(m + 1)).product::<f64>() / DEEP as f64;
        pairs + waves * (column * n as f64 + COLUMN_AT * targets as f64)
    }

    /// The cheapest.
    fn cheapest(side: [f64; 3], wanted: (f64, bool), n: usize, targets: usize) -> Self {
        let cuts = [0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.4999, 0.75, 1.0, 1.49];
        let mut all: Vec<Cut> = cuts.into_iter().map(|cutoff| Cut::with(side, cutoff, wanted)).collect();
        let least = |c: &Cut| c.cost(n, targets);
        all.sort_by(|a, b| least(a).total_cmp(&least(b)));
        all.swap_remove(0)
    }

    /// Numbers along x and y, and the first of [`DEEP`] along z, of all waves: threads side by side share the last.
    fn columns(&self) -> Vec<u32> {
        let wave = self.side.map(|s| 2.0 * std::f64::consts::PI / s);
        let within = |a: u32, b: u32, c: u32| {
            let k = [a, b, c];
            (0..3).map(|d| (f64::from(k[d]) * wave[d]).powi(2)).sum::<f64>() <= self.split.highest.powi(2)
        };
        let mut all = vec![];
        for c in (0..=self.most[2]).step_by(DEEP) {
            for a in 0..=self.most[0] {
                for b in (0..=self.most[1]).take_while(|&b| within(a, b, c)) {
                    all.extend([a, b, c, 0]);
                }
            }
        }
        all
    }
}

impl Ewald {
    /// Queues the sums at all `count` targets, in tin foil, to `output` in the caller's order; the sources must have begun.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn all(&mut self, gpu: &Gpu, request: Request, count: usize, output: Output) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let launch = count.min(TARGETS);
        let mut view = self.ready(gpu, request, launch)?;
        (view.potential, view.field) = (output.potential, output.field);
        for first in (0..count).step_by(launch) {
            (view.first, view.count) = (first as u32, launch.min(count - first) as u32);
            at_targets(gpu, request, &view, false)?;
        }
        Ok(())
    }

    /// Queues the sums at the picked targets. `out` gets them together with the results that are to
    /// be checked there. The structure factors must have been queued.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn some(&mut self, gpu: &Gpu, request: Request, picked: Picked) -> Result<(), Error> {
        let (places, count) = picked.picked;
        self.out.resize(count * BOX_ROW)?;
        let view = EwaldView {
            picked: places,
            weight: picked.weight,
            position: picked.position,
            potential: picked.found.potential,
            field: picked.found.field,
            out: self.out.pointer(),
            ..self.ready(gpu, request, count)?
        };
        let single = self.single() && request.softening == Softening::None;
        at_targets(gpu, request, &view, single)
    }

    /// Whether the structure factors that are known are in single precision.
    pub fn single(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.cut.single)
    }

    /// Queues the structure factors of `sources` on a queue.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails; [`Error::Unsupported`] for boxes that are too long.
    pub fn begin(&mut self, gpu: &Gpu, stream: &Stream, sources: Sources) -> Result<(), Error> {
        let Sources { cell, accuracy, single, points, strength_scale, charge, targets } = sources;
        let n = points.n;
        // In units near the box's own, exactly.
        let scale = power_of_two_below(1.0 / cell.longest());
        let side = cell.side.map(|s| s * scale);
        let cut = Cut::cheapest(side, (accuracy, single), n, targets);
        let rows = rows_of(cut.most);
        if rows > SHARED / 16 {
            return Err(Error::Unsupported(format!(
                "Ewald's sum of a box of {:?} has too many waves along its longest side for a GPU; use device cpu",
                cell.side
            )));
        }
        if self.known != Some((side, cut.split.highest)) {
            self.columns.upload(&cut.columns())?;
            gpu.settle()?;
            self.known = Some((side, cut.split.highest));
        }
        let columns = self.columns.len() / 4;
        // Blocks that waves fill evenly: their bodies' cosines and sines are made once for each group.
        let groups = columns.div_ceil(COLUMNS);
        let threads = columns.div_ceil(groups).next_multiple_of(32);
        let parts = (BLOCKS / groups).min(n / FEWEST).max(1);
        let sums = 8 * DEEP * columns;
        direct::fits(gpu, self.structure.growth(parts * sums), &format!("the waves of {n} sources"))?;
        self.structure.resize(parts * sums)?;
        self.factors.resize(sums)?;
        let (name, each) = if cut.single { ("ewald_structure_f32", 8) } else { ("ewald_structure", 16) };
        let bodies = (SHARED / each / rows).clamp(1, 32);
        let volume: f64 = side.iter().product();
        let alpha = cut.split.alpha;
        let begun = Begun {
            background: std::f64::consts::PI * charge * strength_scale / (alpha * alpha * volume),
            cut,
            scale,
            strength_scale,
            n: n as u32,
            columns: columns as u32,
            parts: parts as u32,
            bodies: bodies as u32,
        };
        let view = EwaldView { place: points.position, charge: points.strength, ..self.view(&begun) };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            let kernels = gpu.kernels();
            let grid = (groups as u32, parts as u32);
            let shared = bodies * rows * each;
            kernels.launch_with(stream, name, grid, (threads as u32, shared), &view)?;
            kernels.launch(stream, "ewald_factors", sums.div_ceil(32) as u32, TILE as u32, &view)?;
        }
        self.begun = Some(begun);
        Ok(())
    }

    /// Makes ready for `launch` targets at a time.
    fn ready(&mut self, gpu: &Gpu, request: Request, launch: usize) -> Result<EwaldView, Error> {
        let n = self.begun.as_ref().map_or(0, |begun| begun.n as usize);
        let shares = n.div_ceil(SOURCES).min(SHARES / launch.div_ceil(256)).max(1);
        direct::fits(gpu, self.partial.growth(shares * launch * 5), &format!("sums at {launch} targets"))?;
        self.partial.resize(shares * launch * 5)?;
        self.waves.resize(launch * 4)?;
        let begun = self.begun.as_ref().ok_or_else(|| Error::Device("Ewald's sum has not begun".into()))?;
        Ok(EwaldView {
            sources: request.sources,
            targets: request.targets,
            order: request.order,
            partial: self.partial.pointer(),
            waves: self.waves.pointer(),
            softening: direct::kernel(request.softening, begun.scale).1,
            same: u32::from(request.same),
            shares: shares as u32,
            count: launch as u32,
            ..self.view(begun)
        })
    }

    /// What both parts of a sum need.
    fn view(&self, begun: &Begun) -> EwaldView {
        let Begun { cut, scale, strength_scale, .. } = begun;
        let null = DevicePointer::null();
        EwaldView {
            sources: DevicePointer::null(),
            targets: DevicePointer::null(),
            place: null,
            charge: null,
            picked: DevicePointer::null(),
            order: DevicePointer::null(),
            columns: self.columns.pointer().cast(),
            structure: self.structure.pointer(),
            factors: self.factors.pointer(),
            partial: null,
            waves: null,
            potential: null,
            field: null,
            position: null,
            weight: null,
            out: null,
            side: cut.side,
            scale: *scale,
            alpha: cut.split.alpha,
            cutoff2: cut.split.cutoff.powi(2),
            highest2: cut.split.highest.powi(2),
            softening: 0.0,
            background: begun.background,
            potential_scale: scale / strength_scale,
            field_scale: scale * scale / strength_scale,
            strength_scale: *strength_scale,
            n: begun.n,
            count: 0,
            columns_len: begun.columns,
            parts: begun.parts,
            shares: 0,
            most: cut.most,
            reach: cut.reach,
            same: 0,
            first: 0,
            bodies: begun.bodies,
        }
    }
}

/// Cosines and sines of a body.
fn rows_of(most: [u32; 3]) -> usize {
    most.iter().map(|m| *m as usize + 1).sum::<usize>() + DEEP - 1
}

/// Queues both spaces at the targets of a launch.
fn at_targets(gpu: &Gpu, request: Request, view: &EwaldView, single: bool) -> Result<(), Error> {
    let count = view.count as usize;
    let name = match request.softening {
        Softening::None if single => "ewald_near_f32",
        Softening::None => "ewald_near",
        _ => "ewald_near_spline",
    };
    let rows = rows_of(view.most);
    let warps = (SHARED / 16 / rows).clamp(1, AT_WARPS);
    // SAFETY: all arrays have the lengths that the view says.
    unsafe {
        let kernels = gpu.kernels();
        let grid = (view.shares.div_ceil(NEAR_WARPS as u32), count.div_ceil(32) as u32);
        kernels.launch(gpu.stream(), name, grid, 32 * NEAR_WARPS as u32, view)?;
        let grid = count.div_ceil(warps) as u32;
        kernels.launch_with(gpu.stream(), "ewald_waves", grid, (32 * warps as u32, warps * rows * 16), view)?;
        kernels.launch(gpu.stream(), "ewald_join", count.div_ceil(TILE / 32) as u32, TILE as u32, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every wave up to the highest is in one column, and so many are not wasted.
    #[test]
    fn columns_hold_every_wave_once() {
        for (side, cutoff, accuracy) in [([1.0; 3], 0.45, 1e-6), ([0.5, 1.0, 0.7], 0.3, 1e-10), ([1.0; 3], 1.49, 1e-3)]
        {
            let cut = Cut::with(side, cutoff, (accuracy, true));
            let columns = cut.columns();
            let mut waves: Vec<[u32; 3]> = columns
                .as_chunks::<4>()
                .0
                .iter()
                .flat_map(|&[a, b, c, _]| (c..c + DEEP as u32).map(move |c| [a, b, c]))
                .collect();
            let all = waves.len();
            waves.sort_unstable();
            waves.dedup();
            assert_eq!(waves.len(), all);
            let wave = side.map(|s| 2.0 * std::f64::consts::PI / s);
            let mut needed = 0;
            for a in 0..200 {
                for b in 0..200 {
                    for c in 0..200 {
                        let k: [u32; 3] = [a, b, c];
                        let k2: f64 = (0..3).map(|d| (f64::from(k[d]) * wave[d]).powi(2)).sum();
                        if k2 <= cut.split.highest.powi(2) {
                            needed += 1;
                            assert!(waves.binary_search(&k).is_ok(), "{k:?}");
                        }
                    }
                }
            }
            // Columns are whole: where there are few waves, what they hold beyond them weighs more.
            assert!(all < 2 * needed + 4 * DEEP, "{all} {needed}");
        }
    }

    #[test]
    fn images_within_the_cutoff_are_reached() {
        let side = [1.0, 4.0, 2.0];
        for cutoff in [0.3, 0.4999, 0.75, 1.49] {
            let cut = Cut::with(side, cutoff, (1e-6, true));
            for d in 0..3 {
                // The first image that is not reached, of a body half a side away on the other side.
                assert!((f64::from(cut.reach[d]) + 0.5) * side[d] >= cut.split.cutoff * (1.0 - 1e-9), "{cutoff} {d}");
            }
            assert!(cutoff > 0.5 || cut.reach == [0; 3]);
        }
    }
}
