//! The sums of a team to where they belong: each GPU gets those at its slice of the targets in the
//! caller's order.

use cust::memory::DevicePointer;
use fmm_core::Error;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::Output;
use crate::shares::{Divided, Member};
use crate::view::{BOUNDS, ParcelView, Sum, TEAM, TILE};

/// Sums on their way.
#[derive(Default)]
pub struct Delivery {
    counts: Buffer<u32>,
    /// Of this GPU's share of the targets, by the slices that they belong to.
    sums: Buffer<Sum>,
    index: Buffer<u32>,
    /// What has come.
    sums_in: Buffer<Sum>,
    index_in: Buffer<u32>,
}

/// Sums in the order of a tree.
#[derive(Clone, Copy)]
pub struct Sorted {
    /// `[n]`
    pub sums: DevicePointer<Sum>,
    /// More of the potential, or null. `[n]`
    pub more: DevicePointer<Sum>,
    /// Sorted place → caller's index. `[n]`
    pub order: DevicePointer<u32>,
    /// What the strengths were multiplied by.
    pub strength_scale: f64,
    /// Number of targets.
    pub n: usize,
}

impl Delivery {
    /// Takes the memory for the share and the slice of a member of `n` targets.
    ///
    /// # Errors
    /// [`Error::Device`] without it.
    pub fn reserve(&mut self, member: &Member, n: usize) -> Result<(), Error> {
        let (own, slice) = (member.share(n, Divided::ByWork).len(), member.share(n, Divided::Evenly).len());
        self.counts.resize(TEAM)?;
        self.sums.resize(own)?;
        self.index.resize(own)?;
        self.sums_in.resize(slice)?;
        self.index_in.resize(slice)
    }

    /// Brings the sums that all GPUs have at their shares of the targets to `output`: to its slice
    /// of this GPU alone. The memory is [reserved](Delivery::reserve).
    ///
    /// # Errors
    /// [`Error::Device`] if a GPU fails.
    pub fn deliver(&mut self, gpu: &Gpu, member: &Member, from: Sorted, output: Output) -> Result<(), Error> {
        let n = from.n;
        let (own, slices) = (member.share(n, Divided::ByWork), member.bounds(n, Divided::Evenly));
        let members = slices.len() - 1;
        self.counts.fill(gpu.stream(), 0)?;
        let mut view = ParcelView {
            sums: from.sums,
            more: from.more,
            order: from.order,
            parcels: self.sums.pointer(),
            index: self.index.pointer(),
            counts: self.counts.pointer(),
            field: output.field,
            potential: output.potential,
            slices: std::array::from_fn(|k| slices[k.min(members)] as u32),
            starts: [0; BOUNDS],
            strength_scale: from.strength_scale,
            first: own.start as u32,
            count: own.len() as u32,
            members: members as u32,
        };
        let launch = |name, view: &ParcelView| match view.count {
            0 => Ok(()),
            count => {
                let blocks = (count as usize).div_ceil(TILE) as u32;
                // SAFETY: all arrays have the lengths that the view says.
                unsafe { gpu.kernels().launch(gpu.stream(), name, blocks, TILE as u32, view) }
            }
        };
        launch("parcel_count", &view)?;
        let counts = self.counts.read(gpu.stream())?;
        let all = member.gathered(counts[..members].iter().map(|&count| f64::from(count)).collect())?;
        // Where what goes to a slice begins at a GPU.
        let starts = |of: &[f64], to: usize| of[..to].iter().sum::<f64>() as usize;
        view.starts = std::array::from_fn(|to| starts(&all[member.index()], to.min(members)) as u32);
        self.counts.fill(gpu.stream(), 0)?;
        launch("parcel_fill", &view)?;
        let me = member.index();
        let mut places = vec![0];
        for (k, of) in all.iter().enumerate() {
            places.push(places[k] + if k == me { 0 } else { of[me] as usize });
        }
        self.sums_in.resize(places[members])?;
        self.index_in.resize(places[members])?;
        let piece = |k: usize, each: usize| {
            let (start, count) = (starts(&all[k], me), all[k][me] as usize);
            vec![(places[k] * each, start * each..(start + count) * each)]
        };
        gpu.pull((&self.sums, &self.sums_in), ("parcels", n), &|k| piece(k, size_of::<Sum>()))?;
        gpu.pull((&self.index, &self.index_in), ("their places", n), &|k| piece(k, size_of::<u32>()))?;
        let own = view.starts[me] as usize;
        let (parcels, index) = (self.sums.pointer(), self.index.pointer());
        let kept = (parcels.wrapping_add(own), index.wrapping_add(own), all[me][me] as usize);
        let come = (self.sums_in.pointer(), self.index_in.pointer(), places[members]);
        for (parcels, index, count) in [kept, come] {
            launch("parcel_take", &ParcelView { parcels, index, count: count as u32, ..view })?;
        }
        Ok(())
    }
}
