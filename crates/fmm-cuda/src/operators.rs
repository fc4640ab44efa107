//! The operators of spherical expansions of one order, as tables.
//!
//! Translations are matrices, which do not depend on the level. A mirror along an axis changes only the signs of
//! coefficients, so that the M2L of the offsets (±a, ±b, ±c) share one matrix.

use cust::memory::DeviceCopy;
use fmm_core::Error;
use fmm_core::expansion::{Kind, Spherical, Translation, matrix, recurrences};
use fmm_core::lists::Classes;
use fmm_core::real::Real;
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::kernels::SHARED;
use crate::view::{CELLS, NONE};

/// Targets and coefficients that a thread of a translation holds.
const ROWS: usize = 8;
const COLUMNS: usize = 4;
/// The most target coefficients of a block.
const WIDEST: usize = 172;
/// Source coefficients that a block takes at a time, at most.
const DEEPEST: usize = 36;

/// A precision of the device.
pub trait DeviceReal: Real + DeviceCopy {}

impl DeviceReal for f32 {}
impl DeviceReal for f64 {}

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
    fn new(n: usize, bytes: usize) -> Self {
        let columns = n.next_multiple_of(COLUMNS);
        let part = columns.div_ceil(columns.div_ceil(WIDEST)).next_multiple_of(COLUMNS);
        let row = (CELLS + 4 + part) * bytes;
        let deepest = (SHARED / row).min(DEEPEST);
        let depth = n.div_ceil(n.div_ceil(deepest));
        let threads = (part / COLUMNS * (CELLS / ROWS)).next_multiple_of(32).max(CELLS);
        Cut { n, columns, part, depth, threads, shared: depth * row }
    }
}

/// Which matrix a target of an octant meets at each slot, and the matrices.
pub struct Set<T: DeviceCopy> {
    /// `[8][slots]`
    pub operators: Buffer<u32>,
    /// `[][n][columns]`
    pub matrices: Buffer<T>,
    /// Slots.
    pub slots: usize,
}

/// All tables of an order.
pub struct Operators<T: DeviceCopy> {
    /// Order of the expansions.
    pub order: usize,
    /// Of M2L.
    pub offsets: Offsets,
    /// Of translations.
    pub cut: Cut,
    /// Of P2M and L2P, P2L, M2P: the last to one degree more.
    pub recurrences: [Buffer<T>; 3],
    /// Of M2M.
    pub m2m: Set<T>,
    /// Of M2L.
    pub m2l: Set<T>,
    /// Of L2L.
    pub l2l: Set<T>,
    /// Bit d is set if the coefficient changes its sign in a mirror along axis d. `[n]`
    pub signs: Buffer<u8>,
    /// The slot of a class at targets of an octant. `[8][classes]`
    pub slot_of: Buffer<u32>,
}

impl<T: DeviceReal> Operators<T> {
    /// Computes the tables and copies them to the device.
    pub fn new(order: usize, offsets: Offsets) -> Result<Self, Error> {
        let expansion = Spherical::<f64>::new(order, offsets.classes);
        let cut = Cut::new((order + 1) * (order + 1), size_of::<T>());
        let plan = Slots::new(offsets);
        let all = |translations: &[Translation]| {
            let one = |t: &Translation| padded::<T>(&matrix(&expansion, *t), cut);
            translations.par_iter().map(one).collect::<Vec<_>>().concat()
        };
        let set = |operators: &[u32], translations: &[Translation]| {
            let mut set = Set { operators: Buffer::new(), matrices: Buffer::new(), slots: operators.len() / 8 };
            set.operators.upload(operators)?;
            set.matrices.upload(&all(translations))?;
            Ok::<_, Error>(set)
        };
        let octants = |make: fn(u8) -> Translation| (0..8).map(make).collect::<Vec<_>>();
        let children: Vec<u32> = (0..64).map(|i| i % 8).collect();
        let own: Vec<u32> = (0..8).collect();
        let bases: Vec<Translation> =
            plan.bases.iter().map(|&offset| Translation::M2L(offsets.classes.class(offset))).collect();
        let mut tables = Operators {
            order,
            offsets,
            cut,
            recurrences: Default::default(),
            m2m: set(&children, &octants(Translation::M2M))?,
            m2l: set(&plan.operators, &bases)?,
            l2l: set(&own, &octants(Translation::L2L))?,
            signs: Buffer::new(),
            slot_of: Buffer::new(),
        };
        let kinds = [(Kind::Regular, order), (Kind::Irregular, order), (Kind::Irregular, order + 1)];
        for (table, (kind, degree)) in tables.recurrences.iter_mut().zip(kinds) {
            let factors = recurrences(kind, degree);
            table.upload(&factors.as_flattened().iter().map(|&f| T::from_f64(f)).collect::<Vec<_>>())?;
        }
        tables.signs.upload(&signs(order))?;
        tables.slot_of.upload(&plan.slot_of)?;
        Ok(tables)
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
struct Slots {
    operators: Vec<u32>,
    slot_of: Vec<u32>,
    /// The offsets of the matrices, no component negative.
    bases: Vec<[i32; 3]>,
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

    #[test]
    fn products_are_cut_to_fit() {
        for bytes in [4, 8] {
            for p in 1..=30 {
                let cut = Cut::new((p + 1) * (p + 1), bytes);
                assert!(cut.shared <= SHARED && cut.threads <= 352 && cut.part % 4 == 0, "{p} {cut:?}");
                assert!(cut.depth > 0 && cut.part * cut.columns.div_ceil(cut.part) >= cut.columns, "{p} {cut:?}");
            }
        }
    }
}
