//! The operators of expansions of one order, as tables.
//!
//! Translations are matrices, which do not depend on the level. A mirror along an axis changes only the signs of
//! coefficients, so that the M2L of the offsets (±a, ±b, ±c) share one matrix.

use cust::memory::DeviceCopy;
use fmm_core::Error;
use fmm_core::expansion::{Expansion, Kind, Spherical, Translation, matrix, recurrences};
use fmm_core::math::{CollectVec, Real};
use rayon::prelude::*;

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cartesian::{self, Softened};
use crate::kernels::SHARED;
use crate::m2l::M2l;
use crate::m2l_scales::Scales;
use crate::m2l_schedule::{M2lSchedule, Offsets, signs};
use crate::mma_layout::{Arithmetic, DeviceReal, MmaLayout};
use crate::view::CELLS;

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

/// How the product of a translation is divided among blocks and threads.
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

/// What tables are made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basis {
    /// Order of the expansions.
    pub order: usize,
    /// Of Cartesian expansions.
    pub softened: Option<Softened>,
    /// Of M2L.
    pub offsets: Offsets,
    /// Of M2L; halves serve spherical expansions alone.
    pub arithmetic: Arithmetic,
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
        let Basis { order, offsets, arithmetic, softened } = basis;
        let plan = M2lSchedule::new(offsets);
        if let Some(softened) = softened {
            let expansion = softened.expansion(order, offsets);
            let signs = cartesian::signs(&expansion);
            let mut tables = Self::with(basis, &expansion, M2l::new(&plan, arithmetic, &signs, vec![], None)?)?;
            let bodies = cartesian::Bodies::new(softened, order, &expansion)?;
            cartesian::matrices::<T>(
                gpu,
                softened,
                &expansion,
                (order, offsets, arithmetic),
                &plan,
                &bodies,
                &mut tables.m2l,
            )?;
            tables.cartesian = Some(bodies);
            return Ok(tables);
        }
        let expansion = Spherical::<f64>::new(order, offsets.classes);
        let cut = MmaLayout::new((order + 1) * (order + 1), arithmetic);
        let of = |&offset: &[i32; 3]| matrix(&expansion, Translation::M2L(offsets.classes.class(offset)));
        let words = |matrix: Vec<f64>| {
            let mut words = vec![];
            cut.arrange(&matrix).into_iter().for_each(|four| arithmetic.words(four, &mut words));
            words
        };
        let (words, scales) = if arithmetic == Arithmetic::TwoHalves {
            let mut matrices = plan.bases.par_iter().map(of).collect_vec();
            let scales = Scales::new(order, &mut matrices);
            (matrices.into_par_iter().map(words).collect_vec(), Some(scales))
        } else {
            (plan.bases.par_iter().map(|base| words(of(base))).collect_vec(), None)
        };
        let m2l = M2l::new(&plan, arithmetic, &signs(order), words.concat(), scales.as_ref())?;
        let mut tables = Self::with(basis, &expansion, m2l)?;
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
            all.upload(&(0..8).into_par_iter().map(one).collect_vec().concat())?;
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

/// A matrix with its rows padded by zeros.
fn padded<T: Real>(matrix: &[f64], cut: Cut) -> Vec<T> {
    let mut out = vec![T::ZERO; cut.n * cut.columns];
    for (row, from) in out.chunks_mut(cut.columns).zip(matrix.chunks(cut.n)) {
        row.iter_mut().zip(from).for_each(|(to, x)| *to = T::from_f64(*x));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
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
