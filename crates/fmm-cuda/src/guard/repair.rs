//! The targets with the largest predicted errors, summed again.

use cust::memory::DevicePointer;
use fmm_core::guard::{BINS, Norms, bin_of};
use fmm_core::{Error, Softening};

use super::{ALONE, Guard, Measured};
use crate::Gpu;
use crate::error_field::Predicted;
use crate::view::{RepairView, Sum, TILE, WorstView};

/// The most blocks that count.
const COUNTERS: usize = 264;

/// Where fields go that were summed again.
pub struct Repaired {
    /// Sorted place → caller's index.
    pub order: DevicePointer<u32>,
    /// Sums in the order of the tree.
    pub sums: DevicePointer<Sum>,
    /// Fields in the caller's order.
    pub field: DevicePointer<f64>,
    /// What `sums` are multiplied by to be `field`.
    pub unscale: f64,
}

impl Guard {
    /// Sums the targets of the largest predicted errors directly, if [`Norms::worst`] finds at most
    /// `most` of them that make `norms` too large, and puts their fields to `field`, in the caller's
    /// order. Returns whether it has.
    pub fn repair(
        &mut self,
        gpu: &Gpu,
        softening: Softening,
        (sum, predicted): (&Measured, &Predicted),
        (norms, tolerance, most): (Norms, f64, usize),
        to: Repaired,
    ) -> Result<bool, Error> {
        let worst = self.choose(gpu, predicted, (norms, tolerance, most))?;
        if worst == 0 {
            return Ok(false);
        }
        if predicted.is_distributed() {
            let joined = self.join_sample(gpu, sum, predicted.here(), worst)?;
            self.direct(gpu, softening, &joined, (self.slots.pointer(), worst), false)?;
        } else {
            self.direct(gpu, softening, sum, (self.picked.pointer(), worst), false)?;
        }
        let view = RepairView {
            picked: self.picked.pointer(),
            rows: self.out.pointer(),
            order: to.order,
            sums: to.sums,
            field: to.field,
            squares: self.field.pointer(),
            unit: sum.scale * sum.scale,
            unscale: to.unscale,
            count: worst as u32,
        };
        let blocks = worst.div_ceil(TILE) as u32;
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), "guard_repair", blocks, TILE as u32, &view)? };
        gpu.finish()?;
        self.repaired = true;
        Ok(true)
    }

    /// Picks the targets that [`Norms::worst`] asks for. Returns how many.
    fn choose(
        &mut self,
        gpu: &Gpu,
        predicted: &Predicted,
        (norms, tolerance, most): (Norms, f64, usize),
    ) -> Result<usize, Error> {
        self.counts.resize(2 * BINS)?;
        self.counts.fill(gpu.stream(), 0)?;
        let mut view = WorstView {
            squares: self.field.pointer(),
            counts: self.counts.pointer(),
            chosen: DevicePointer::null(),
            from: [f64::INFINITY; 2],
            share: predicted.here(),
        };
        let (kernels, stream) = (gpu.kernels(), gpu.stream());
        let count = (view.share[1] - view.share[0]) as usize;
        let blocks = count.div_ceil(ALONE).min(COUNTERS) as u32;
        // SAFETY: both arrays have the lengths that the view says.
        unsafe { kernels.launch(stream, "guard_count", blocks, ALONE as u32, &view)? };
        gpu.finish()?;
        let mut counts = self.counts.download()?;
        let team = gpu.member().filter(|_| predicted.is_distributed());
        if let Some(member) = team {
            let all = member.gathered(counts.iter().map(|&count| f64::from(count)).collect())?;
            counts = (0..2 * BINS).map(|bin| all.iter().map(|of| of[bin] as u32).sum()).collect();
        }
        let counts = [&counts[..BINS], &counts[BINS..]];
        let Some(from) = norms.worst(counts, tolerance, most) else { return Ok(0) };
        let above = |k: usize| counts[k].iter().skip(bin_of(from[k])).map(|&c| c as usize).sum::<usize>();
        self.picked.resize(above(0) + above(1))?;
        self.weight.resize(above(0) + above(1))?;
        self.weight.fill(stream, 0)?;
        self.counts.fill(stream, 0)?;
        (view.chosen, view.from) = (self.picked.pointer(), from);
        // SAFETY: no more targets are chosen than have been counted.
        unsafe { kernels.launch(stream, "guard_choose", count.div_ceil(TILE) as u32, TILE as u32, &view)? };
        gpu.finish()?;
        let chosen = self.counts.download_first(1)?[0] as usize;
        let Some(member) = team else { return Ok(chosen) };
        let own = self.picked.download_first(chosen)?;
        let all = member.gathered(own.into_iter().map(f64::from).collect())?.concat();
        self.picked.upload(&all.iter().map(|&place| place as u32).collect::<Vec<_>>())?;
        gpu.settle()?;
        Ok(all.len())
    }
}
