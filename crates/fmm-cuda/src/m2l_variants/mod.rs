//! Variants of M2L on the last level of a full octree in a periodic box: what `nbody bench m2l`
//! compares (Kohnke et al., Figs. 15 to 23).

mod ours;
mod tables;
pub mod view;

use std::time::Duration;

use cust::memory::UnifiedBuffer;
use fmm_core::math::CollectVec;
use fmm_core::{Error, Precision};
use rayon::prelude::*;

pub use self::ours::Ours;
use self::tables::{groups, irregular, multipoles_of, offsets, swaps};
use self::view::{LAUNCHES, M2lVariantsView, MEMBERS, NAIVE, PARTS, WIDTH};
use crate::buffer::Buffer;
use crate::error::device as told;
use crate::microbenchmarks::timed;
use crate::mma_layout::DeviceReal;
use crate::occupancy::{Occupancy, occupancy};
use crate::{DeviceWork, Gpu};

/// Translations of a cell.
const EACH: usize = 189;

/// Cells whose kernels one kernel launches: all of them together fit into the device's queue of 2048.
const BATCH: usize = 2048 / LAUNCHES;

/// The groups of each size have a kernel, and its time this name.
const SIZES: [(usize, &str); 4] = [(1, "groups of 1"), (2, "groups of 2"), (4, "groups of 4"), (8, "groups of 8")];

/// A variant of the kernel that turns multipoles into local expansions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum M2lVariant {
    /// A thread for each coefficient of each target, which loops over the octree.
    Naive,
    /// The same with multipoles, operators and results in unified memory, which host and device share.
    Unified,
    /// Kernels that kernels launch, one for each target and neighbor of its parent.
    Launches,
    /// Lists sorted beforehand by groups of 1, 2, 4 and 8 offsets that share an operator but for signs, which are bits.
    Grouped,
    /// The same with a kernel for the groups of each size.
    Sizes,
    /// What the groups load, without the products: the bound by memory.
    Loads,
    /// The products of the groups, of what was loaded once: the bound by arithmetic.
    Products,
    /// Rotations to the axis and back, O(p³).
    Rotated,
}

impl M2lVariant {
    /// Whether there is machine code for devices of a compute capability: kernels that launch kernels have none for
    /// 10.0 and newer, and the driver cannot compile them.
    pub fn serves(self, capability: (i32, i32)) -> bool {
        self != M2lVariant::Launches || (8..=9).contains(&capability.0)
    }

    fn kernel(self) -> &'static str {
        match self {
            M2lVariant::Naive | M2lVariant::Unified => "m2l_variants_naive",
            M2lVariant::Launches => "m2l_launches_child",
            M2lVariant::Grouped | M2lVariant::Sizes => "m2l_variants_grouped",
            M2lVariant::Loads => "m2l_variants_loads",
            M2lVariant::Products => "m2l_variants_products",
            M2lVariant::Rotated => "m2l_variants_rotated",
        }
    }
}

/// Translations by one variant, of made-up multipoles.
pub struct M2lVariants<T: DeviceReal> {
    variant: M2lVariant,
    order: usize,
    side: usize,
    multipoles: Buffer<T>,
    locals: Buffer<T>,
    operators: Buffer<T>,
    groups: Buffer<u32>,
    swaps: Buffer<T>,
    turns: Buffer<T>,
    powers: Buffer<T>,
    parts: Buffer<T>,
    failed: Buffer<u32>,
    /// The memory of multipoles, operators and results where it is shared with the host.
    _unified: Vec<UnifiedBuffer<T>>,
}

/// Numbers in unified memory, and the array on the device that they are.
fn unified<T: DeviceReal>(values: &[T]) -> Result<(UnifiedBuffer<T>, Buffer<T>), Error> {
    let mut memory = UnifiedBuffer::from_slice(values).map_err(told("no unified memory"))?;
    let address = memory.as_unified_ptr().as_raw() as u64;
    // SAFETY: the memory is kept as long as the array, and the device reaches it.
    let array = unsafe { Buffer::lent(address, values.len()) };
    Ok((memory, array))
}

impl<T: DeviceReal> M2lVariants<T> {
    /// Translations of order `order`, 1 to 20, on level `depth`, 2 to 6.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other orders and depths, and for devices that the variant does not
    /// [serve](M2lVariant::serves); [`Error::Device`] where memory lacks or the device fails.
    pub fn new(gpu: &Gpu, variant: M2lVariant, order: usize, depth: usize) -> Result<Self, Error> {
        if !(1..=20).contains(&order) || !(2..=6).contains(&depth) {
            return Err(Error::Unsupported(format!("M2L of order {order} on level {depth}: allowed: 1 to 20, 2 to 6")));
        }
        let capability = gpu.description().capability;
        if !variant.serves(capability) {
            let (major, minor) = capability;
            let why = format!("kernels that launch kernels on compute capability {major}.{minor}: allowed: 8.0 to 9.9");
            return Err(Error::Unsupported(why));
        }
        gpu.enter()?;
        let (p, side) = (order, 1usize << depth);
        let pairs = (p + 1) * (p + 2) / 2;
        let real = |values: &[f64]| values.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
        let upload = |values: &[f64]| {
            let mut buffer = Buffer::new();
            buffer.upload(&real(values))?;
            Ok::<_, Error>(buffer)
        };
        let numbers = 2 * pairs * side.pow(3);
        let place = |o: [i32; 3]| o.map(|c| 2.0 * f64::from(c));
        let (groups, bases) = groups();
        let table = |o: [i32; 3]| irregular(2 * p, place(o)).into_flattened();
        let operators: Vec<f64> = match variant {
            M2lVariant::Naive | M2lVariant::Unified | M2lVariant::Launches => {
                offsets().map(table).collect::<Vec<_>>().concat()
            }
            M2lVariant::Rotated => vec![],
            _ => bases.par_iter().map(|&o| table(o)).collect_vec().concat(),
        };
        let mut all = [real(&multipoles_of(p, side.pow(3))), real(&operators)].map(|values| (values, Buffer::new()));
        let (mut locals, mut memories) = (Buffer::new(), vec![]);
        if variant == M2lVariant::Unified {
            for (values, array) in &mut all {
                let (memory, there) = unified(values)?;
                memories.push(memory);
                *array = there;
            }
            let (memory, there) = unified(&vec![T::ZERO; numbers])?;
            memories.push(memory);
            locals = there;
        } else {
            for (values, array) in &mut all {
                array.upload(values)?;
            }
            locals.resize(numbers)?;
        }
        let [multipoles, operators] = all.map(|(_, array)| array);
        let (mut parts, mut failed) = (Buffer::new(), Buffer::new());
        if variant == M2lVariant::Launches {
            parts.resize(2 * pairs * PARTS * BATCH.min(side.pow(3)))?;
        }
        failed.upload(&[0])?;
        let (mut turns, mut powers) = (vec![], vec![]);
        for o in offsets().collect::<Vec<_>>() {
            // From the source to the target.
            let d = place(o).map(|c| -c);
            let (rho, r) = (d[0].hypot(d[1]), d.iter().map(|c| c * c).sum::<f64>().sqrt().max(1.0));
            let first = if rho > 0.0 { [d[1] / rho, -d[0] / rho] } else { [1.0, 0.0] };
            for e in [first, [d[2] / r, rho / r]] {
                let mut power = [1.0, 0.0];
                for _ in 0..=p {
                    turns.extend(power);
                    power = [power[0] * e[0] - power[1] * e[1], power[0] * e[1] + power[1] * e[0]];
                }
            }
            let mut value = 1.0 / r;
            for k in 0..=2 * p {
                powers.push(value);
                value *= (k + 1) as f64 / r;
            }
        }
        let mut lists = Buffer::new();
        lists.upload(&groups)?;
        let variants = M2lVariants {
            variant,
            order,
            side,
            multipoles,
            locals,
            operators,
            groups: lists,
            swaps: upload(&swaps(p).concat())?,
            turns: upload(&turns)?,
            powers: upload(&powers)?,
            parts,
            failed,
            _unified: memories,
        };
        gpu.settle()?;
        Ok(variants)
    }

    /// The results: A_l^m, m ≥ 0 at l(l + 1)/2 + m, of each cell, x fastest; and the multipoles.
    ///
    /// # Errors
    /// [`Error::Device`] if a copy fails.
    pub fn results(&self) -> Result<[Vec<f64>; 2], Error> {
        let numbers = |b: &Buffer<T>| Ok::<_, Error>(b.download()?.into_iter().map(T::to_f64).collect());
        Ok([numbers(&self.locals)?, numbers(&self.multipoles)?])
    }
    /// The argument of a kernel for `count` cells from `first` on, which only the kernels that launch others regard.
    fn view(&self, first: usize, count: usize) -> M2lVariantsView {
        let p = self.order;
        M2lVariantsView {
            multipoles: self.multipoles.pointer().cast(),
            locals: self.locals.pointer().cast(),
            operators: self.operators.pointer().cast(),
            groups: self.groups.pointer(),
            swaps: self.swaps.pointer().cast(),
            turns: self.turns.pointer().cast(),
            powers: self.powers.pointer().cast(),
            parts: self.parts.pointer().cast(),
            failed: self.failed.pointer(),
            p: p as u32,
            side: self.side as u32,
            cells: self.side.pow(3) as u32,
            targets: self.targets() as u32,
            blocks: ((p + 1) * (p + 2) * (2 * p + 3) / 6) as u32,
            first: first as u32,
            count: count as u32,
        }
    }

    /// Pairs (l, m) with m ≥ 0.
    fn pairs(&self) -> usize {
        (self.order + 1) * (self.order + 2) / 2
    }

    /// Targets of a block.
    fn targets(&self) -> usize {
        (WIDTH / self.pairs()).clamp(1, 16)
    }

    /// Blocks, threads of each and bytes of its shared memory, with groups of up to `members` offsets.
    fn shape(&self, members: usize) -> (u32, u32, usize) {
        let (p, cells, pairs, targets) = (self.order, self.side.pow(3), self.pairs(), self.targets());
        let (threads, complex) = ((targets * pairs).next_multiple_of(32), 2 * size_of::<T>());
        let operator = (2 * p + 1) * (p + 1);
        let (blocks, threads, shared) = match self.variant {
            M2lVariant::Naive | M2lVariant::Unified => ((cells * pairs).div_ceil(NAIVE), NAIVE, 0),
            M2lVariant::Launches => (8 * LAUNCHES * cells, 2 * pairs, complex * (operator + 2 * pairs)),
            M2lVariant::Rotated => (cells.div_ceil(targets), threads, complex * targets * pairs),
            _ => {
                let held = operator + targets * members * pairs;
                (8 * (cells / 8).div_ceil(targets), threads, complex * held)
            }
        };
        (blocks as u32, threads as u32, shared)
    }

    /// Queues the kernel of the groups of `size` offsets.
    fn launch_size(&self, gpu: &Gpu, size: usize) -> Result<(), Error> {
        let ((blocks, threads, shared), view) = (self.shape(size), self.view(0, 0));
        let name = format!("m2l_variants_size{size}_{}", T::NAME);
        // SAFETY: all arrays have the lengths that the order and the depth say.
        unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks, (threads, shared), &view) }
    }

    /// Runs the kernels that launch kernels, and those that add up.
    fn run_launches(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let names = ["m2l_launches", "m2l_launches_join"].map(|name| format!("{name}_{}", T::NAME));
        let cells = self.side.pow(3);
        let took = timed(gpu, || {
            for first in (0..cells).step_by(BATCH) {
                let count = BATCH.min(cells - first);
                let view = self.view(first, count);
                let join = (count * self.pairs()).div_ceil(NAIVE) as u32;
                // SAFETY: all arrays have the lengths that the order and the depth say; there are parts for a batch.
                unsafe {
                    gpu.kernels().launch(gpu.stream(), &names[0], count as u32, (3, 3, 3), &view)?;
                    gpu.kernels().launch(gpu.stream(), &names[1], join, NAIVE as u32, &view)?;
                }
            }
            Ok(())
        })?;
        if self.failed.download()? != [0] {
            return Err(Error::Device("the GPU refused to launch a kernel from a kernel".into()));
        }
        Ok(took)
    }
}

impl<T: DeviceReal> DeviceWork for M2lVariants<T> {
    fn units(&self) -> usize {
        EACH * self.side.pow(3)
    }

    /// Products of complex numbers, 8 operations each; with rotations what the blocks, the turns and the shift have.
    fn operations(&self) -> f64 {
        let p = self.order as f64;
        let pairs = (p + 1.0) * (p + 2.0) / 2.0;
        match self.variant {
            M2lVariant::Rotated => {
                let blocks = (p + 1.0) * (p + 2.0) * (2.0 * p + 3.0) / 6.0;
                let shift = (p + 1.0) * (p + 2.0) * (p + 3.0) / 6.0 * 2.0 - pairs;
                16.0 * blocks + 24.0 * pairs + 4.0 * shift
            }
            _ => 8.0 * pairs * (p + 1.0) * (p + 1.0),
        }
    }

    fn precision(&self) -> Precision {
        if size_of::<T>() == 4 { Precision::F32 } else { Precision::F64 }
    }

    fn run(&self, gpu: &Gpu) -> Result<Duration, Error> {
        match self.variant {
            M2lVariant::Launches => self.run_launches(gpu),
            M2lVariant::Sizes => timed(gpu, || SIZES.iter().try_for_each(|&(size, _)| self.launch_size(gpu, size))),
            _ => {
                let (blocks, threads, shared) = self.shape(MEMBERS);
                let (name, view) = (format!("{}_{}", self.variant.kernel(), T::NAME), self.view(0, 0));
                timed(gpu, || {
                    // SAFETY: all arrays have the lengths that the order and the depth say.
                    unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks, (threads, shared), &view) }
                })
            }
        }
    }

    /// Of the groups of each size, where they have a kernel each. The results are wrong until the next run.
    fn parts(&self, gpu: &Gpu) -> Result<Vec<(&'static str, Duration)>, Error> {
        let sizes = SIZES.iter().filter(|_| self.variant == M2lVariant::Sizes);
        sizes.map(|&(size, name)| Ok((name, timed(gpu, || self.launch_size(gpu, size))?))).collect()
    }

    /// Of the kernels that are launched by others, where there are such; none of those of the groups of each size.
    fn occupancy(&self, gpu: &Gpu) -> Result<Option<Occupancy>, Error> {
        if self.variant == M2lVariant::Sizes {
            return Ok(None);
        }
        let (_, threads, shared) = self.shape(MEMBERS);
        occupancy(gpu, &format!("{}_{}", self.variant.kernel(), T::NAME), threads as usize, shared).map(Some)
    }
}
