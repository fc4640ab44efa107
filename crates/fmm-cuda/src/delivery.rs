//! Sums from the order of a tree to that of the caller: all of them, or on the GPUs of a team those
//! at the slice of the targets that each has.

use cust::memory::DevicePointer;
use fmm_core::Error;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::Output;
use crate::shares::{Divided, Member, for_kernels};
use crate::view::{BOUNDS, GatherView, ParcelView, Sum, TEAM, TILE};

/// The arrays of deliveries, kept from one to the next.
#[derive(Default)]
pub struct Delivery {
    /// Caller's order → sorted place of the targets.
    inverse: Buffer<u32>,
    counts: Buffer<u32>,
    /// Of this GPU's share of the targets, by the slices that they belong to.
    sums: Buffer<Sum>,
    index: Buffer<u32>,
    /// The same of the shares of others, of this GPU's slice.
    sums_in: Buffer<Sum>,
    index_in: Buffer<u32>,
    sliced: bool,
}

/// Sums in the order of a tree.
#[derive(Clone, Copy)]
pub struct Sorted<'a> {
    /// `[n]`
    pub sums: &'a Buffer<Sum>,
    /// More of the potential. `[n]`
    pub more: Option<&'a Buffer<Sum>>,
    /// Sorted place → caller's index. `[n]`
    pub order: DevicePointer<u32>,
    /// What the strengths were multiplied by.
    pub strength_scale: f64,
}

impl Sorted<'_> {
    fn more(&self) -> DevicePointer<Sum> {
        self.more.map_or(DevicePointer::null(), Buffer::pointer)
    }
}

impl Delivery {
    /// Makes ready for `n` targets.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory.
    pub fn ready(&mut self, n: usize) -> Result<(), Error> {
        self.inverse.resize(n)
    }

    /// Bytes more of device memory than there are now for `n` targets.
    pub fn growth(&self, n: usize) -> usize {
        self.inverse.growth(n)
    }

    /// Caller's order → sorted place of the targets, after a delivery of all sums.
    pub fn inverse(&self) -> DevicePointer<u32> {
        self.inverse.pointer()
    }

    /// Whether the results of the last sum are right in this GPU's slice of the caller's order
    /// alone.
    pub fn is_sliced(&self) -> bool {
        self.sliced
    }

    /// Brings sums to `output`. Each `member` of a team has those at its share of the targets, and
    /// gets those at its slice; all if all results are to be `whole`, or if one lacks the memory for
    /// parcels. The sum is complete, and its time ends here.
    ///
    /// # Errors
    /// [`Error::Device`] if a GPU fails.
    pub fn deliver(
        &mut self,
        gpu: &Gpu,
        (member, whole): (Option<&Member>, bool),
        from: Sorted,
        output: Output,
    ) -> Result<(), Error> {
        let n = from.sums.len();
        self.sliced = false;
        if let Some(member) = member {
            gpu.wait()?;
            member.end();
            let ready = !whole && self.reserve(member, n).is_ok();
            self.sliced = gpu.agree(ready)?;
            if self.sliced {
                return self.send(gpu, member, from, output);
            }
            gpu.exchange_shares(from.sums, n, ("sums", Divided::ByWork))?;
            if let Some(more) = from.more {
                gpu.exchange_shares(more, n, ("potentials", Divided::ByWork))?;
            }
        }
        self.scatter(gpu, from, output)
    }

    /// Queues the copying of all sums into the caller's order.
    fn scatter(&self, gpu: &Gpu, from: Sorted, output: Output) -> Result<(), Error> {
        let n = from.sums.len();
        let view = GatherView {
            order: from.order,
            inverse: self.inverse.pointer(),
            sums: from.sums.pointer(),
            more: from.more(),
            field: output.field,
            potential: output.potential,
            strength_scale: from.strength_scale,
            n: n as u32,
            ..GatherView::default()
        };
        // SAFETY: all arrays are of the targets' number.
        let launch =
            |name| unsafe { gpu.kernels().launch(gpu.stream(), name, n.div_ceil(TILE) as u32, TILE as u32, &view) };
        launch("invert_order")?;
        launch("return_sums_f64")
    }

    /// Takes the memory for the share and the slice of a member of `n` targets.
    fn reserve(&mut self, member: &Member, n: usize) -> Result<(), Error> {
        let (own, slice) = (member.share(n, Divided::ByWork).len(), member.share(n, Divided::Evenly).len());
        self.counts.resize(TEAM)?;
        self.sums.resize(own)?;
        self.index.resize(own)?;
        self.sums_in.resize(slice)?;
        self.index_in.resize(slice)
    }

    /// Sends the sums of this GPU's share to the slices that they belong to, and receives those of
    /// its slice.
    fn send(&mut self, gpu: &Gpu, member: &Member, from: Sorted, output: Output) -> Result<(), Error> {
        let n = from.sums.len();
        let (own, slices) = (member.share(n, Divided::ByWork), member.bounds(n, Divided::Evenly));
        let members = slices.len() - 1;
        self.counts.fill(gpu.stream(), 0)?;
        let mut view = ParcelView {
            sums: from.sums.pointer(),
            more: from.more(),
            order: from.order,
            parcels: self.sums.pointer(),
            index: self.index.pointer(),
            counts: self.counts.pointer(),
            field: output.field,
            potential: output.potential,
            slices: for_kernels(&slices),
            starts: [0; BOUNDS],
            strength_scale: from.strength_scale,
            first: own.start as u32,
            count: own.len() as u32,
            members: members as u32,
        };
        let launch = |name, view: &ParcelView| {
            let blocks = (view.count as usize).div_ceil(TILE) as u32;
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), name, blocks, TILE as u32, view) }
        };
        launch("parcel_count", &view)?;
        let counts = self.counts.read(gpu.stream())?;
        let all = member.gathered(counts[..members].iter().map(|&count| f64::from(count)).collect())?;
        // Where what goes to a slice begins at a GPU.
        let starts = |of: &[f64], to: usize| of[..to].iter().sum::<f64>() as usize;
        let me = member.index();
        view.starts = for_kernels(&(0..=members).map(|to| starts(&all[me], to)).collect::<Vec<_>>());
        self.counts.fill(gpu.stream(), 0)?;
        launch("parcel_fill", &view)?;
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
        let received = (self.sums_in.pointer(), self.index_in.pointer(), places[members]);
        for (parcels, index, count) in [kept, received] {
            launch("parcel_take", &ParcelView { parcels, index, count: count as u32, ..view })?;
        }
        Ok(())
    }
}
