//! The operators of expansions of one order, as tables.
//!
//! Translations are matrices, which do not depend on the level. A mirror along an axis changes only the signs of
//! coefficients, so that the M2L of the offsets (±a, ±b, ±c) share one matrix.

use cust::memory::DeviceCopy;
use fmm_core::Error;
use fmm_core::expansion::{Expansion, Kind, Spherical, Translation, matrix, recurrences};
use fmm_core::lists::Classes;
use fmm_core::real::Real;
use rayon::prelude::*;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cartesian::{self, Softened};
use crate::kernels::SHARED;
use crate::view::{CELLS, NONE};

/// Targets and coefficients that a thread of a translation holds.
const ROWS: usize = 8;
const COLUMNS: usize = 4;
/// The most and, where others could work as well, the fewest target coefficients of a block.
const WIDEST: usize = 172;
const NARROWEST: usize = 24;
/// Source coefficients that a block takes at a time, at most.
const DEEPEST: usize = 36;

/// Threads of a block, at least: so many gather at once.
const GATHERING: usize = 256;

/// A precision of the device.
pub trait DeviceReal: Real + DeviceCopy {
    /// Appends the words of four numbers as a lane of the tensor cores takes them. In single precision: what TF32 holds; where numbers
    /// are split, what bf16 holds, in pairs, and then what it holds of the rest.
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

/// Which offsets M2L meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offsets {
    /// The rule's.
    pub separation2: f64,
    /// Whether cells may be near for their softening, however many sides they are apart.
    pub softened: bool,
    /// Their numbers.
    pub classes: Classes<3>,
}

/// How the product of a translation is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Coefficients.
    pub n: usize,
    /// The same rounded up.
    pub columns: usize,
    /// Target coefficients of a block.
    pub part: usize,
    /// Source coefficients at a time.
    pub depth: usize,
    /// Threads of a block.
    pub threads: usize,
    /// Bytes of shared memory of a block.
    pub shared: usize,
}

impl Cut {
    /// For `n` coefficients of `bytes` each, with a block's target coefficients in as many as `blocks` parts.
    pub fn new(n: usize, bytes: usize, blocks: usize) -> Self {
        let columns = n.next_multiple_of(COLUMNS);
        let parts = blocks.min(columns / NARROWEST).max(columns.div_ceil(WIDEST));
        let part = columns.div_ceil(parts).next_multiple_of(COLUMNS);
        let row = (CELLS + 4 + part) * bytes;
        let deepest = (SHARED / row).min(DEEPEST);
        let depth = n.div_ceil(n.div_ceil(deepest));
        let threads = (part / COLUMNS * (CELLS / ROWS)).next_multiple_of(32).max(GATHERING);
        Cut { n, columns, part, depth, threads, shared: depth * row }
    }
}

/// The tables of M2L: see `M2lView`.
pub struct M2l {
    /// `[8][slots]`
    pub operators: Buffer<u32>,
    /// `[8][classes]`
    pub slot_of: Buffer<u32>,
    /// `[8][pitch]`
    pub source_signs: Buffer<u32>,
    /// `[8][8 columns]`
    pub target_signs: Buffer<u32>,
    /// `[pitch]`
    pub order: Buffer<u32>,
    /// Words of numbers `[][steps][columns][32][4]`
    pub matrices: Buffer<u32>,
    /// Operators that targets of one octant can meet.
    pub slots: usize,
    /// Matrices of a level; 0: all levels have the same.
    pub per_level: usize,
    /// How the product is cut.
    pub cut: Fragments,
}

/// How the products of M2L are cut for the tensor cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
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

impl Fragments {
    fn new(n: usize, bytes: usize) -> Self {
        let sizes: &[usize] = if bytes == 4 { &[1, 2, 4, 5, 7, 8, 9, 11, 13] } else { &[1, 2, 4, 5, 6] };
        let (all, most) = (n.div_ceil(8), sizes[sizes.len() - 1]);
        let blocks = all.div_ceil(most);
        let tiles = sizes.iter().copied().find(|&size| size >= all.div_ceil(blocks)).unwrap_or(most);
        let steps = n.div_ceil(16);
        Fragments { n, tiles, columns: tiles * blocks, steps, half: n - 16 * (steps - 1) <= 8 }
    }

    /// Packed places of a cell.
    pub fn pitch(&self) -> usize {
        16 * self.steps
    }

    /// The coefficient at a packed place: four (in a last half step two) side by side belong to one lane.
    fn coefficient(&self, place: usize) -> Option<usize> {
        let (step, lane, k) = (place / 16, place % 16 / 4, place % 4);
        let held = if self.half && step + 1 == self.steps { 2 } else { 4 };
        Some(16 * step + held * lane + k).filter(|&c| k < held && c < self.n)
    }

    /// A matrix `[source][target]` in the order of the lanes, four numbers a lane.
    fn arrange(&self, matrix: &[f64]) -> Vec<[f64; 4]> {
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

/// What tables are made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basis {
    /// Order of the expansions.
    pub order: usize,
    /// Of Cartesian expansions.
    pub softened: Option<Softened>,
    /// Of M2L.
    pub offsets: Offsets,
    /// Whether M2L in single precision multiplies numbers cut into two.
    pub split: bool,
}

/// All tables of an order.
pub struct Operators<T: DeviceCopy> {
    /// Of what.
    pub basis: Basis,
    /// At bodies, of Cartesian expansions.
    pub cartesian: Option<cartesian::Bodies>,
    /// Of translations.
    pub cut: Cut,
    /// Of P2M and L2P, P2L, M2P: the last to one degree more.
    pub recurrences: [Buffer<T>; 3],
    /// Of M2M. `[8][n][columns]`
    pub m2m: Buffer<T>,
    /// Of L2L. `[8][n][columns]`
    pub l2l: Buffer<T>,
    /// Of M2L.
    pub m2l: M2l,
}

impl<T: DeviceReal> Operators<T> {
    /// Computes the tables and copies them to the device.
    pub fn new(gpu: &Gpu, basis: Basis) -> Result<Self, Error> {
        let Basis { order, offsets, split, softened } = basis;
        let plan = Slots::new(offsets);
        if let Some(softened) = softened {
            let expansion = softened.expansion(order, offsets);
            let signs = cartesian::signs(&expansion);
            let mut tables = Self::with(basis, &expansion, M2l::new::<T>(&plan, split, &signs, vec![])?)?;
            let bodies = cartesian::Bodies::new(softened, order, &expansion)?;
            cartesian::matrices::<T>(
                gpu,
                softened,
                &expansion,
                (order, offsets, split),
                &plan,
                &bodies,
                &mut tables.m2l,
            )?;
            tables.cartesian = Some(bodies);
            return Ok(tables);
        }
        let expansion = Spherical::<f64>::new(order, offsets.classes);
        let cut = Fragments::new((order + 1) * (order + 1), size_of::<T>());
        let one = |&offset: &[i32; 3]| {
            let mut words = vec![];
            let matrix = matrix(&expansion, Translation::M2L(offsets.classes.class(offset)));
            cut.arrange(&matrix).into_iter().for_each(|four| T::words(four, split, &mut words));
            words
        };
        let matrices = plan.bases.par_iter().map(one).collect::<Vec<_>>().concat();
        let mut tables = Self::with(basis, &expansion, M2l::new::<T>(&plan, split, &signs(order), matrices)?)?;
        let kinds = [(Kind::Regular, order), (Kind::Irregular, order), (Kind::Irregular, order + 1)];
        for (table, (kind, degree)) in tables.recurrences.iter_mut().zip(kinds) {
            let factors = recurrences(kind, degree);
            table.upload(&factors.as_flattened().iter().map(|&f| T::from_f64(f)).collect::<Vec<_>>())?;
        }
        Ok(tables)
    }

    /// The tables of both families.
    fn with<E: Expansion<f64, 3>>(basis: Basis, expansion: &E, m2l: M2l) -> Result<Self, Error> {
        let cut = Cut::new(expansion.len(), size_of::<T>(), 1);
        let octants = |make: fn(u8) -> Translation| {
            let one = |octant: u8| padded::<T>(&matrix(expansion, make(octant)), cut);
            let mut all = Buffer::new();
            all.upload(&(0..8).into_par_iter().map(one).collect::<Vec<_>>().concat())?;
            Ok::<_, Error>(all)
        };
        Ok(Operators {
            basis,
            cartesian: None,
            cut,
            recurrences: Default::default(),
            m2m: octants(Translation::M2M)?,
            l2l: octants(Translation::L2L)?,
            m2l,
        })
    }
}

impl M2l {
    /// The tables for coefficients whose mirrors change `signs`.
    fn new<T: DeviceReal>(plan: &Slots, split: bool, signs: &[u8], matrices: Vec<u32>) -> Result<Self, Error> {
        let cut = Fragments::new(signs.len(), size_of::<T>());
        let odd = |axes: u8, k: Option<usize>| k.is_some_and(|k| (signs[k] & axes).count_ones() % 2 == 1);
        let packed = |axes| {
            let four = move |at: usize| std::array::from_fn(|j| odd(axes, cut.coefficient(4 * at + j)));
            (0..cut.pitch() / 4).flat_map(move |at| T::sign_words(four(at), split))
        };
        let plain =
            |axes| (0..8 * cut.columns).map(move |k| u32::from(odd(axes, Some(k).filter(|&k| k < cut.n))) << 31);
        let upload = |values: &[u32]| {
            let mut buffer = Buffer::new();
            buffer.upload(values)?;
            Ok::<_, Error>(buffer)
        };
        let order: Vec<u32> = (0..cut.pitch()).map(|place| cut.coefficient(place).map_or(NONE, |k| k as u32)).collect();
        Ok(M2l {
            slots: plan.operators.len() / 8,
            per_level: 0,
            operators: upload(&plan.operators)?,
            slot_of: upload(&plan.slot_of)?,
            source_signs: upload(&(0..8).flat_map(packed).collect::<Vec<_>>())?,
            target_signs: upload(&(0..8).flat_map(plain).collect::<Vec<_>>())?,
            order: upload(&order)?,
            matrices: upload(&matrices)?,
            cut,
        })
    }
}

/// A matrix with its rows padded by zeros.
fn padded<T: Real>(matrix: &[f64], cut: Cut) -> Vec<T> {
    let mut out = vec![T::ZERO; cut.n * cut.columns];
    for (row, from) in out.chunks_mut(cut.columns).zip(matrix.chunks(cut.n)) {
        row.iter_mut().zip(from).for_each(|(to, x)| *to = T::from_f64(*x));
    }
    out
}

/// The axes whose mirrors change the sign of each coefficient: Re A_l^m and Im A_l^m are even or odd in x, y and z.
fn signs(order: usize) -> Vec<u8> {
    let mut all = vec![];
    for l in 0..=order {
        for k in 0..=2 * l {
            let m = k.div_ceil(2);
            let imaginary = m > 0 && k % 2 == 0;
            let x = (m + usize::from(imaginary)) % 2;
            let z = (l + m) % 2;
            all.push((x | usize::from(imaginary) << 1 | z << 2) as u8);
        }
    }
    all
}

/// The operators of M2L that targets of each octant can meet, in the order in which they are applied.
pub struct Slots {
    operators: Vec<u32>,
    slot_of: Vec<u32>,
    /// The offsets of the matrices, no component negative.
    pub bases: Vec<[i32; 3]>,
}

impl Slots {
    fn new(offsets: Offsets) -> Self {
        let Offsets { separation2, softened, classes } = offsets;
        let square = |o: [i32; 3]| f64::from(o.iter().map(|c| c * c).sum::<i32>());
        // Children of cells that are not separated.
        let meets = |octant: i32, o: [i32; 3]| {
            let parents = std::array::from_fn(|d| (o[d] + (octant >> d & 1)).div_euclid(2));
            square(o) >= separation2 && classes.hold_children(parents) && (softened || square(parents) < separation2)
        };
        let mut bases: Vec<[i32; 3]> = vec![];
        let mut of_octant = vec![vec![]; 8];
        for class in 0..classes.len() as u32 {
            let offset = classes.offset(class);
            let octants: Vec<i32> = (0..8).filter(|&octant| meets(octant, offset)).collect();
            if octants.is_empty() {
                continue;
            }
            let base = offset.map(i32::abs);
            let place = bases.iter().position(|b| *b == base).unwrap_or_else(|| {
                bases.push(base);
                bases.len() - 1
            });
            let mirrors = (0..3).map(|d| u32::from(offset[d] < 0) << (29 + d)).sum::<u32>();
            for octant in octants {
                of_octant[octant as usize].push((mirrors | place as u32, class));
            }
        }
        let slots = of_octant.iter().map(Vec::len).max().unwrap_or(0);
        let mut operators = vec![0; 8 * slots];
        let mut slot_of = vec![NONE; 8 * classes.len()];
        for (octant, mine) in of_octant.iter_mut().enumerate() {
            // Operators of one mirror side by side.
            mine.sort_unstable();
            for (slot, &(operator, class)) in mine.iter().enumerate() {
                operators[octant * slots + slot] = operator;
                slot_of[octant * classes.len() + class as usize] = slot as u32;
            }
        }
        Slots { operators, slot_of, bases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(separation2: f64) -> Offsets {
        Offsets { separation2, softened: false, classes: Classes::new(separation2) }
    }

    #[test]
    fn targets_of_every_octant_meet_189_operators_of_56_matrices() {
        let slots = Slots::new(offsets(4.0));
        assert_eq!((slots.operators.len(), slots.bases.len()), (8 * 189, 56));
        assert_eq!(slots.slot_of.iter().filter(|s| **s != NONE).count(), 8 * 189);
    }

    /// Mirrored matrices are those of the CPU's operator for every class.
    #[test]
    fn mirrors_change_only_signs() {
        let p = 4;
        let n = (p + 1) * (p + 1);
        let offsets = offsets(4.0);
        let (slots, signs) = (Slots::new(offsets), signs(p));
        let expansion = Spherical::<f64>::new(p, offsets.classes);
        for octant in 0..8 {
            for class in 0..offsets.classes.len() {
                let slot = slots.slot_of[octant * offsets.classes.len() + class];
                if slot == NONE {
                    continue;
                }
                let operator = slots.operators[octant * 189 + slot as usize];
                let axes = (operator >> 29) as u8;
                let base = slots.bases[(operator & 0x1fff_ffff) as usize];
                let shared = matrix(&expansion, Translation::M2L(offsets.classes.class(base)));
                let own = matrix(&expansion, Translation::M2L(class as u32));
                let sign = |k: usize| if (signs[k] & axes).count_ones() % 2 == 1 { -1.0 } else { 1.0 };
                let largest = own.iter().fold(0.0f64, |a, x| a.max(x.abs()));
                for j in 0..n {
                    for k in 0..n {
                        let mirrored = sign(j) * sign(k) * shared[j * n + k];
                        assert!((mirrored - own[j * n + k]).abs() < 1e-13 * largest, "{class} {j} {k}");
                    }
                }
            }
        }
    }

    /// The product as the tensor cores do it, place by place, is the matrix's.
    #[test]
    fn fragments_hold_every_entry_once() {
        for (n, bytes) in [(4, 4), (25, 4), (36, 8), (49, 4), (100, 8), (225, 4), (961, 8)] {
            let cut = Fragments::new(n, bytes);
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

    #[test]
    fn products_are_cut_to_fit() {
        for bytes in [4, 8] {
            for p in 1..=30 {
                let n = (p + 1) * (p + 1);
                let shared_out = Cut::new(n, bytes, 4);
                assert!(shared_out.part * shared_out.columns.div_ceil(shared_out.part) >= shared_out.columns, "{p}");
                assert_eq!(shared_out.columns.div_ceil(shared_out.part) >= 4, p >= 9, "{p} {shared_out:?}");
                let cut = Cut::new(n, bytes, 1);
                assert!(cut.shared <= SHARED && cut.threads <= 352 && cut.part.is_multiple_of(4), "{p} {cut:?}");
                assert!(cut.depth > 0 && cut.part * cut.columns.div_ceil(cut.part) >= cut.columns, "{p} {cut:?}");
            }
        }
    }
}
