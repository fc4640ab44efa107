//! The order in which tensor cores (`mma` instructions) take the matrices of M2L.

use cust::memory::DeviceCopy;
use fmm_core::math::Real;

/// A precision of the device.
pub trait DeviceReal: Real + DeviceCopy {}

impl DeviceReal for f32 {}
impl DeviceReal for f64 {}

/// How tensor cores multiply the numbers of M2L. The first two serve expansions in single precision, the others those in
/// double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// One product in TF32, of 11 bits.
    Tf32,
    /// Three of bf16: each number is the sum of two, 16 bits.
    TwoBf16,
    /// Three of halves: each number is the sum of two, 22 bits. Their exponents have five bits, so that numbers are
    /// scaled before, see [`Scales`](crate::m2l_scales::Scales).
    TwoHalves,
    /// One in double precision.
    Double,
}

impl Arithmetic {
    /// Its name in those of kernels.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::Tf32 => "f32",
            Arithmetic::TwoBf16 => "split_f32",
            Arithmetic::TwoHalves => "half_f64",
            Arithmetic::Double => "f64",
        }
    }

    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        if self == Arithmetic::Double { 8 } else { 4 }
    }

    /// The numbers of eights of target coefficients for which there are kernels: as many as registers hold the sums of.
    fn tiles(self) -> &'static [usize] {
        match self {
            Arithmetic::Tf32 | Arithmetic::TwoBf16 => &[1, 2, 4, 5, 7, 8, 9, 11, 13],
            Arithmetic::TwoHalves => &[1, 2, 4, 5, 7, 8, 9],
            Arithmetic::Double => &[1, 2, 4, 5, 6],
        }
    }

    /// Appends four numbers as the words that one lane of the tensor cores takes: of numbers in two parts the first parts in
    /// pairs, then the remainders.
    pub fn words(self, four: [f64; 4], to: &mut Vec<u32>) {
        match self {
            Arithmetic::Tf32 => to.extend(four.map(|x| rounded(x as f32, 13))),
            Arithmetic::TwoBf16 => parts(four, to, |x| {
                let bits = rounded(x as f32, 16);
                ((bits >> 16) as u16, f64::from(f32::from_bits(bits)))
            }),
            Arithmetic::TwoHalves => parts(four, to, half),
            Arithmetic::Double => to.extend(four.iter().flat_map(|x| [x.to_bits() as u32, (x.to_bits() >> 32) as u32])),
        }
    }

    /// The words of four signs.
    pub fn sign_words(self, four: [bool; 4]) -> [u32; 4] {
        let bit = four.map(u32::from);
        match self {
            Arithmetic::Tf32 | Arithmetic::Double => bit.map(|b| b << 31),
            Arithmetic::TwoBf16 | Arithmetic::TwoHalves => {
                let pairs = [bit[0] << 15 | bit[1] << 31, bit[2] << 15 | bit[3] << 31];
                [pairs[0], pairs[1], pairs[0], pairs[1]]
            }
        }
    }
}

/// Appends four numbers, each the sum of two whose bits and values `part` gives.
fn parts(four: [f64; 4], to: &mut Vec<u32>, part: impl Fn(f64) -> (u16, f64)) {
    let high = four.map(&part);
    let low = std::array::from_fn(|i| part(four[i] - high[i].1));
    let pair = |[a, b]: [u16; 2]| u32::from(a) | u32::from(b) << 16;
    to.extend([high, low].iter().flat_map(|p| [pair([p[0].0, p[1].0]), pair([p[2].0, p[3].0])]));
}

/// The bits of the half that is nearest to `x`, and what it is. The same on every processor, whose own conversions may round
/// twice.
///
/// # Panics
/// If `x` is beyond the halves.
fn half(x: f64) -> (u16, f64) {
    // Steps of halves grow from 2^-24 on with the exponent, of which 10 bits follow the first.
    let exponent = ((x.to_bits() >> 52) as i32 & 0x7ff) - 1023;
    let step = exponent.max(-14) - 10;
    let steps = (x.abs() * 2f64.powi(-step)).round_ties_even();
    let value = steps * 2f64.powi(step);
    assert!(value < 65536.0, "{x} is no half");
    // What rounds up to the next power of two carries into the exponent.
    let bits = steps as u16 + ((step + 24) << 10) as u16;
    (bits | u16::from(x.is_sign_negative()) << 15, value.copysign(x))
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
    /// For `n` coefficients.
    pub fn new(n: usize, arithmetic: Arithmetic) -> Self {
        let sizes = arithmetic.tiles();
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
        use Arithmetic::{Double, Tf32, TwoBf16, TwoHalves};
        for (n, arithmetic) in [
            (4, Tf32),
            (25, Tf32),
            (36, Double),
            (49, TwoBf16),
            (100, Double),
            (169, TwoHalves),
            (225, TwoBf16),
            (961, Double),
        ] {
            let cut = MmaLayout::new(n, arithmetic);
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

    /// The two parts of a number add up to it.
    #[test]
    fn numbers_in_two_parts_keep_16_and_22_bits() {
        let value = |arithmetic, bits: u32| match arithmetic {
            Arithmetic::TwoBf16 => f64::from(f32::from_bits(bits << 16)),
            _ => {
                let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 1023));
                let size = match exponent {
                    0 => fraction * 2f64.powi(-24),
                    _ => (1024.0 + fraction) * 2f64.powi(exponent as i32 - 25),
                };
                if bits >> 15 == 1 { -size } else { size }
            }
        };
        // Halves round 2047.6/2048 up to a power of two, 1e-6 is below their normal numbers, and 4097 lies between two.
        assert_eq!(
            [1.0, -0.25, 1e-6, 4097.0, 2047.6 / 2048.0, 0.0].map(|x| half(x).0),
            [0x3c00, 0xb400, 17, 0x6c00, 0x3c00, 0]
        );
        let four = [1.0 / 3.0, -1234.567, 16383.9, 1.5e-3];
        for (arithmetic, bits) in [(Arithmetic::TwoBf16, 16), (Arithmetic::TwoHalves, 22)] {
            let mut words = vec![];
            arithmetic.words(four, &mut words);
            for (k, x) in four.into_iter().enumerate() {
                let part = |word: u32| value(arithmetic, word >> (16 * (k % 2)) & 0xffff);
                let sum = part(words[k / 2]) + part(words[2 + k / 2]);
                // The smallest halves are 2^-24.
                let most = f64::max(x.abs() * 0.5f64.powi(bits), 0.5f64.powi(25));
                assert!((sum - x).abs() <= most, "{arithmetic:?} {x} {sum}");
            }
        }
    }
}
