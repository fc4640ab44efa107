//! What is known of arrays of numbers on the device, by one pass over each.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::accuracy::Strengths;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::view::{NumbersShare, NumbersView, TILE};

/// Blocks that share an array: the bits of its sums depend on this and not on the device.
const SHARES: usize = 512;

impl NumbersShare {
    /// Of no numbers.
    const NONE: Self = NumbersShare {
        first: u64::MAX,
        bad: 0,
        plus: 0,
        minus: 0,
        largest: 0.0,
        smallest: f64::INFINITY,
        sum: 0.0,
        magnitude: 0.0,
    };

    fn join(self, other: &Self) -> Self {
        NumbersShare {
            first: self.first.min(other.first),
            bad: self.bad + other.bad,
            plus: self.plus + other.plus,
            minus: self.minus + other.minus,
            largest: self.largest.max(other.largest),
            smallest: self.smallest.min(other.smallest),
            sum: self.sum + other.sum,
            magnitude: self.magnitude + other.magnitude,
        }
    }

    /// What choices depend on, if the numbers are strengths.
    pub fn strengths(&self) -> Strengths {
        let mixed = self.plus > 0 && self.minus > 0;
        Strengths { mixed, largest: self.largest, smallest: self.smallest }
    }
}

/// The memory of the passes.
#[derive(Default)]
pub struct Numbers {
    shares: Buffer<NumbersShare>,
}

impl Numbers {
    /// What is known of each of `arrays`, which are addresses and numbers of `f64`.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn of(&mut self, gpu: &Gpu, arrays: &[(DevicePointer<f64>, usize)]) -> Result<Vec<NumbersShare>, Error> {
        let blocks = |n: usize| n.div_ceil(TILE).min(SHARES);
        self.shares.resize(arrays.iter().map(|a| blocks(a.1)).sum())?;
        let mut first = 0;
        for &(x, n) in arrays.iter().filter(|a| a.1 > 0) {
            let share = self.shares.pointer().wrapping_offset(first as isize);
            let view = NumbersView { x, share, n: n as u64 };
            // SAFETY: the array has `n` numbers, and there is a share for each block.
            unsafe {
                gpu.kernels().launch(gpu.stream(), "numbers_f64", blocks(n) as u32, TILE as u32, &view)?;
            }
            first += blocks(n);
        }
        let shares = self.shares.read(gpu.stream())?;
        let mut rest = &shares[..];
        let all = arrays.iter().map(|&(_, n)| {
            let (own, others) = rest.split_at(blocks(n));
            rest = others;
            own.iter().fold(NumbersShare::NONE, NumbersShare::join)
        });
        Ok(all.collect())
    }
}
