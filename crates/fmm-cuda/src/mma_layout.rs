//! The order in which tensor cores (`mma` instructions) take the matrices of M2L.

use cust::memory::DeviceCopy;
use fmm_core::math::Real;

/// A precision of the device.
pub trait DeviceReal: Real + DeviceCopy {
    /// Appends four numbers as the words that one lane of the tensor cores takes.
    ///
    /// `f32` is rounded to TF32. With `split`, each `f32` becomes two bf16 numbers, the second for
    /// the remainder, in pairs.
    fn words(four: [f64; 4], split: bool, to: &mut Vec<u32>);

    /// The words of four signs.
    fn sign_words(four: [bool; 4], split: bool) -> [u32; 4] {
        let _ = split;
        four.map(|negative| u32::from(negative) << 31)
    }
}

impl DeviceReal for f32 {
    fn words(four: [f64; 4], split: bool, to: &mut Vec<u32>) {
        if !split {
            return to.extend(four.map(|x| rounded(x as f32, 13)));
        }
        let high = four.map(|x| rounded(x as f32, 16));
        let low = std::array::from_fn(|i| rounded((four[i] - f64::from(f32::from_bits(high[i]))) as f32, 16));
        to.extend([high, low].iter().flat_map(|half: &[u32; 4]| [half[0] >> 16 | half[1], half[2] >> 16 | half[3]]));
    }

    fn sign_words(four: [bool; 4], split: bool) -> [u32; 4] {
        let bit = four.map(u32::from);
        if split {
            let pairs = [bit[0] << 15 | bit[1] << 31, bit[2] << 15 | bit[3] << 31];
            [pairs[0], pairs[1], pairs[0], pairs[1]]
        } else {
            bit.map(|b| b << 31)
        }
    }
}

impl DeviceReal for f64 {
    fn words(four: [f64; 4], _: bool, to: &mut Vec<u32>) {
        to.extend(four.iter().flat_map(|x| [x.to_bits() as u32, (x.to_bits() >> 32) as u32]));
    }
}

/// The bits of `x` rounded to the nearest number whose last `cut` bits are 0.
fn rounded(x: f32, cut: u32) -> u32 {
    let bits = x.to_bits().wrapping_add(1 << (cut - 1)) & (u32::MAX << cut);
    if f32::from_bits(bits).is_finite() { bits } else { x.to_bits() & (u32::MAX << cut) }
}

/// The tiles of the matrix products of M2L on tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MmaLayout {
    /// Coefficients.
    pub n: usize,
    /// Eights of target coefficients of a block: the kernels exist for some numbers.
    pub tiles: usize,
    /// Eights of target coefficients of all blocks.
    pub columns: usize,
    /// Steps of 16 source coefficients.
    pub steps: usize,
    /// Whether the last step has 8.
    pub half: bool,
}

impl MmaLayout {
    /// For `n` coefficients of `bytes` each.
    pub fn new(n: usize, bytes: usize) -> Self {
        let sizes: &[usize] = if bytes == 4 { &[1, 2, 4, 5, 7, 8, 9, 11, 13] } else { &[1, 2, 4, 5, 6] };
        let (all, most) = (n.div_ceil(8), sizes[sizes.len() - 1]);
        let blocks = all.div_ceil(most);
        let tiles = sizes.iter().copied().find(|&size| size >= all.div_ceil(blocks)).unwrap_or(most);
        let steps = n.div_ceil(16);
        MmaLayout { n, tiles, columns: tiles * blocks, steps, half: n - 16 * (steps - 1) <= 8 }
    }

    /// Packed places of a cell.
    pub fn pitch(&self) -> usize {
        16 * self.steps
    }

    /// The coefficient at a packed place: four (in a last half step two) side by side belong to one lane.
    pub fn coefficient(&self, place: usize) -> Option<usize> {
        let (step, lane, k) = (place / 16, place % 16 / 4, place % 4);
        let held = if self.half && step + 1 == self.steps { 2 } else { 4 };
        Some(16 * step + held * lane + k).filter(|&c| k < held && c < self.n)
    }

    /// A matrix `[source][target]` in the order of the lanes, four numbers a lane.
    pub fn arrange(&self, matrix: &[f64]) -> Vec<[f64; 4]> {
        let mut out = vec![];
        for step in 0..self.steps {
            for column in 0..self.columns {
                out.extend((0..32).map(|lane| {
                    std::array::from_fn(|k| {
                        let source = self.coefficient(16 * step + 4 * (lane % 4) + k);
                        let target = 8 * column + lane / 4;
                        source.filter(|_| target < self.n).map_or(0.0, |source| matrix[source * self.n + target])
                    })
                }));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product as the tensor cores do it, place by place, is the matrix's.
    #[test]
    fn layouts_hold_every_entry_once() {
        for (n, bytes) in [(4, 4), (25, 4), (36, 8), (49, 4), (100, 8), (225, 4), (961, 8)] {
            let cut = MmaLayout::new(n, bytes);
            let matrix: Vec<f64> = (0..n * n).map(|i| i as f64).collect();
            let arranged = cut.arrange(&matrix);
            let mut found = vec![0.0; n * n];
            for (place, &entry) in arranged.as_flattened().iter().enumerate() {
                let (block, lane, k) = (place / 128, place / 4 % 32, place % 4);
                let (step, column) = (block / cut.columns, block % cut.columns);
                if let Some(source) = cut.coefficient(16 * step + 4 * (lane % 4) + k)
                    && 8 * column + lane / 4 < n
                {
                    found[source * n + 8 * column + lane / 4] += entry;
                }
            }
            assert_eq!(found, matrix, "{n}");
            let kept = (0..cut.pitch()).filter_map(|place| cut.coefficient(place)).count();
            assert_eq!((kept, cut.columns % cut.tiles), (n, 0));
        }
    }
}
