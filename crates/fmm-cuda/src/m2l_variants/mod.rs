//! Variants of M2L on the last level of a full octree in a periodic box: what `nbody bench m2l`
//! compares (Kohnke et al., Figs. 15 to 18 and 23). Their variant with kernels that launch kernels
//! is missing: it needs CUDA's runtime library.

pub mod view;

use std::time::Duration;

use cust::memory::DevicePointer;
use fmm_core::math::CollectVec;
use fmm_core::plan::OctreePlan;
use fmm_core::{Boundary, Choice, Error, Family, Method, PeriodicBox, Precision, Settings, Stage, StageTimes};
use rayon::prelude::*;

use self::view::{M2lVariantsView, MEMBERS, NAIVE, WIDTH};
use crate::buffer::Buffer;
use crate::direct::Output;
use crate::fmm::{Fmm, Planned};
use crate::inputs::Inputs;
use crate::microbenchmarks::timed;
use crate::mma_layout::DeviceReal;
use crate::{DeviceWork, Gpu};

/// Translations of a cell.
const EACH: usize = 189;

/// A variant of the kernel that turns multipoles into local expansions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum M2lVariant {
    /// A thread for each coefficient of each target, which loops over the octree.
    Naive,
    /// Lists sorted beforehand by groups of 1, 2, 4 and 8 offsets that share an operator but for signs, which are bits.
    Grouped,
    /// What the groups load, without the products: the bound by memory.
    Loads,
    /// The products of the groups, of what was loaded once: the bound by arithmetic.
    Products,
    /// Rotations to the axis and back, O(p³).
    Rotated,
}

impl M2lVariant {
    fn kernel(self) -> &'static str {
        match self {
            M2lVariant::Naive => "naive",
            M2lVariant::Grouped => "grouped",
            M2lVariant::Loads => "loads",
            M2lVariant::Products => "products",
            M2lVariant::Rotated => "rotated",
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
}

/// Offsets −3 to 3 along each axis, x fastest.
fn offsets() -> impl IndexedParallelIterator<Item = [i32; 3]> {
    (0..343usize).into_par_iter().map(|k| [k % 7, k / 7 % 7, k / 49].map(|c| c as i32 - 3))
}

/// I_l^m to `degree` of a place, m ≥ 0 at l(l + 1)/2 + m; zeros at the origin.
fn irregular(degree: usize, x: [f64; 3]) -> Vec<[f64; 2]> {
    let place = |l: usize, m: usize| l * (l + 1) / 2 + m;
    let mut all = vec![[0.0; 2]; (degree + 1) * (degree + 2) / 2];
    let r2 = x.iter().map(|c| c * c).sum::<f64>();
    if r2 == 0.0 {
        return all;
    }
    for m in 0..=degree {
        all[place(m, m)] = if m == 0 {
            [1.0 / r2.sqrt(), 0.0]
        } else {
            let ([a, b], f) = (all[place(m - 1, m - 1)], -(2.0 * m as f64 - 1.0) / r2);
            [f * (x[0] * a - x[1] * b), f * (x[0] * b + x[1] * a)]
        };
        for l in m + 1..=degree {
            let f = (2 * l - 1) as f64 * x[2];
            let below = if l > m + 1 { all[place(l - 2, m)] } else { [0.0; 2] };
            let g = ((l - 1) * (l - 1)) as f64 - (m * m) as f64;
            let one = all[place(l - 1, m)];
            all[place(l, m)] = std::array::from_fn(|k| (f * one[k] - g * below[k]) / r2);
        }
    }
    all
}

/// For each octant its groups: how many members, and of each the offset plus 3, three bits an axis, and from bit 16 on the signs that make its
/// operator of that of the offset without signs: of real and of imaginary parts, by the parities of the order and of degree and order.
fn groups() -> (Vec<u32>, Vec<[i32; 3]>) {
    let far = |o: &[i32; 3]| o.iter().any(|c| c.abs() > 1);
    let bases: Vec<[i32; 3]> = (0..64).map(|k| [k % 4, k / 4 % 4, k / 16]).filter(far).collect();
    let mut all = vec![];
    for octant in 0..8 {
        let lies = |o: &[i32; 3]| {
            (0..3).all(|d| if octant >> d & 1 == 0 { (-2..=3).contains(&o[d]) } else { (-3..=2).contains(&o[d]) })
        };
        for base in &bases {
            let mirrors = (0..8).filter(|f| (0..3).all(|d| f >> d & 1 == 0 || base[d] > 0));
            let members: Vec<u32> = mirrors
                .map(|f: i32| {
                    (f, std::array::from_fn::<i32, 3, _>(|d| if f >> d & 1 == 1 { -base[d] } else { base[d] }))
                })
                .filter(|(_, o)| lies(o))
                .map(|(f, o)| {
                    let (fx, fy, fz) = (f & 1, f >> 1 & 1, f >> 2 & 1);
                    let signs = (0..4).fold(0, |signs, which| {
                        let (m, lm) = (which & 1, which >> 1);
                        let (re, im) = ((fx & m) ^ (fz & lm), (fx & (m ^ 1)) ^ fy ^ (fz & lm));
                        signs | re << which | im << (4 + which)
                    });
                    ((o[0] + 3) | (o[1] + 3) << 3 | (o[2] + 3) << 6 | signs << 16) as u32
                })
                .collect();
            all.push(members.len() as u32);
            all.extend((0..MEMBERS).map(|k| members.get(k).copied().unwrap_or(0)));
        }
    }
    (all, bases)
}

/// The blocks that exchange x and z, row by row: of the real and the imaginary parts of multipoles, and of local expansions.
fn swaps(p: usize) -> [Vec<f64>; 4] {
    let mut out: [Vec<f64>; 4] = Default::default();
    // B_n^{m,l} at [m + n][l + n].
    let mut b = vec![vec![1.0]];
    for n in 0..=p as i32 {
        if n > 0 {
            let last = |m: i32, l: i32| -> f64 {
                let inside = m.abs() < n && l.abs() < n;
                if inside { b[(m + n - 1) as usize][(l + n - 1) as usize] } else { 0.0 }
            };
            let entry = |m: i32, l: i32| match l {
                _ if l == n => -last(m, n - 1) + 0.5 * (last(m + 1, n - 1) + last(m - 1, n - 1)),
                _ if l == -n => last(m, 1 - n) + 0.5 * (last(m + 1, 1 - n) + last(m - 1, 1 - n)),
                _ => 0.5 * (last(m + 1, l) - last(m - 1, l)),
            };
            b = (-n..=n).map(|m| (-n..=n).map(|l| entry(m, l)).collect()).collect();
        }
        let at = |m: i32, l: i32| b[(m + n) as usize][(l + n) as usize];
        for m in 0..=n {
            for l in 0..=n {
                let sign = if l % 2 == 0 { 1.0 } else { -1.0 };
                let (there, back) = if l == 0 { (0.0, 0.0) } else { (sign * at(m, -l), sign * at(-l, m)) };
                out[0].push(at(m, l) + there);
                out[1].push(at(m, l) - there);
                out[2].push(at(l, m) + back);
                out[3].push(at(l, m) - back);
            }
        }
    }
    out
}

impl<T: DeviceReal> M2lVariants<T> {
    /// Translations of order `order`, 1 to 20, on level `depth`, 2 to 6.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other orders and depths, [`Error::Device`] where memory lacks or the device fails.
    pub fn new(gpu: &Gpu, variant: M2lVariant, order: usize, depth: usize) -> Result<Self, Error> {
        if !(1..=20).contains(&order) || !(2..=6).contains(&depth) {
            return Err(Error::Unsupported(format!("M2L of order {order} on level {depth}: allowed: 1 to 20, 2 to 6")));
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
        let mut multipoles = Buffer::new();
        multipoles.upload(&real(&multipoles_of(p, side.pow(3))))?;
        let mut locals = Buffer::new();
        locals.resize(2 * pairs * side.pow(3))?;
        let place = |o: [i32; 3]| o.map(|c| 2.0 * f64::from(c));
        let (groups, bases) = groups();
        let table = |o: [i32; 3]| irregular(2 * p, place(o)).into_flattened();
        let operators: Vec<f64> = match variant {
            M2lVariant::Naive => offsets().map(table).collect::<Vec<_>>().concat(),
            M2lVariant::Rotated => vec![],
            _ => bases.par_iter().map(|&o| table(o)).collect_vec().concat(),
        };
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
            operators: upload(&operators)?,
            groups: lists,
            swaps: upload(&swaps(p).concat())?,
            turns: upload(&turns)?,
            powers: upload(&powers)?,
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
}

/// Coefficients of the size that bodies make.
fn multipoles_of(p: usize, cells: usize) -> Vec<f64> {
    let mut sizes = vec![];
    let mut size = 1.0;
    for l in 0..=p {
        size /= l.max(1) as f64;
        (0..=l).for_each(|m| sizes.extend([size, if m == 0 { 0.0 } else { size }]));
    }
    let numbers = (0..cells * sizes.len()).into_par_iter();
    numbers.map(|i| sizes[i % sizes.len()] * (((i * 7919 + 13) % 10_007) as f64 / 5003.5 - 1.0)).collect()
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
        let (p, cells) = (self.order, self.side.pow(3));
        let pairs = (p + 1) * (p + 2) / 2;
        let targets = (WIDTH / pairs).clamp(1, 16);
        let view = M2lVariantsView {
            multipoles: self.multipoles.pointer().cast(),
            locals: self.locals.pointer().cast(),
            operators: self.operators.pointer().cast(),
            groups: self.groups.pointer(),
            swaps: self.swaps.pointer().cast(),
            turns: self.turns.pointer().cast(),
            powers: self.powers.pointer().cast(),
            p: p as u32,
            side: self.side as u32,
            cells: cells as u32,
            targets: targets as u32,
            blocks: ((p + 1) * (p + 2) * (2 * p + 3) / 6) as u32,
        };
        let threads = (targets * pairs).next_multiple_of(32);
        let complex = 2 * size_of::<T>();
        let (blocks, threads, shared) = match self.variant {
            M2lVariant::Naive => ((cells * pairs).div_ceil(NAIVE), NAIVE, 0),
            M2lVariant::Rotated => (cells.div_ceil(targets), threads, complex * targets * pairs),
            _ => {
                let held = (2 * p + 1) * (p + 1) + targets * MEMBERS * pairs;
                (8 * (cells / 8).div_ceil(targets), threads, complex * held)
            }
        };
        let name = format!("m2l_variants_{}_{}", self.variant.kernel(), T::NAME);
        timed(gpu, || {
            // SAFETY: all arrays have the lengths that the order and the depth say.
            unsafe { gpu.kernels().launch_with(gpu.stream(), &name, blocks as u32, (threads as u32, shared), &view) }
        })
    }
}

/// M2L as sums have it, all levels of a tree whose last is full.
pub struct Ours {
    fmm: std::cell::RefCell<Fmm>,
    planned: Planned,
    settings: Settings,
    inputs: Inputs,
    field: Buffer<f64>,
    units: usize,
}

impl Ours {
    /// Translations of order `order` down to level `depth` of a periodic box, in `precision`.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or the device fails.
    pub fn new(gpu: &Gpu, precision: Precision, order: usize, depth: usize) -> Result<Self, Error> {
        gpu.enter()?;
        let side = 1usize << depth;
        let middle = |k: usize| [k % side, k / side % side, k / side / side].map(|c| (c as f64 + 0.5) / side as f64);
        let positions: Vec<[f64; 3]> = (0..side.pow(3)).map(middle).collect();
        let strengths: Vec<f64> = (0..side.pow(3)).map(|k| ((k * 7919) % 17) as f64 - 8.0).collect();
        let settings = Settings {
            method: Method::Fmm,
            precision,
            tolerance: if precision == Precision::F32 { 1e-4 } else { 1e-8 },
            order: Some(order),
            boundary: Boundary::Periodic(PeriodicBox::cube(1.0)),
            ..Settings::default()
        };
        let (expansion, theta) = (Some(Family::Spherical), Some(0.75f64.sqrt()));
        let choice = Choice { method: Method::Fmm, precision, expansion, order: Some(order), theta, leaf_size: 1 };
        // Cells of one body would meet directly.
        let all = Settings { uniform: Some(fmm_core::Uniform { depth, separation: 1 }), ..settings.clone() };
        let plan = OctreePlan::in_box(&all, choice, [1.0; 3], &positions, None, &mut StageTimes::default());
        let units = plan.lists.m2l.len();
        let mut inputs = Inputs::default();
        inputs.upload(gpu, (&positions, &[&strengths], None))?;
        let mut field = Buffer::new();
        field.resize(3 * positions.len())?;
        let mut fmm = Fmm::default();
        fmm.apart = true;
        let planned = fmm.take(&plan)?;
        fmm.gather(gpu, inputs.ends())?;
        let fmm = std::cell::RefCell::new(fmm);
        Ok(Ours { fmm, planned, settings, inputs, field, units })
    }
}

impl DeviceWork for Ours {
    fn units(&self) -> usize {
        self.units
    }

    /// The products of a real matrix.
    fn operations(&self) -> f64 {
        2.0 * ((self.settings.order.unwrap_or(1) + 1) as f64).powi(4)
    }

    fn precision(&self) -> Precision {
        self.settings.precision
    }

    fn run(&self, gpu: &Gpu) -> Result<Duration, Error> {
        let (output, mut times) =
            (Output { field: self.field.pointer(), potential: DevicePointer::null() }, StageTimes::default());
        let mut fmm = self.fmm.borrow_mut();
        fmm.sum(gpu, &self.settings, &self.planned, self.inputs.ends(), output, &mut times, None, None)?;
        Ok(Duration::from_secs_f64(times.seconds(Stage::M2L)))
    }
}

#[cfg(test)]
mod tests {
    use super::view::GROUPS;
    use super::*;

    #[test]
    fn groups_are_of_one_two_four_and_eight() {
        let (groups, bases) = groups();
        assert_eq!(bases.len(), GROUPS);
        for octant in groups.chunks(GROUPS * (1 + MEMBERS)) {
            let sizes: Vec<u32> = octant.chunks(1 + MEMBERS).map(|g| g[0]).collect();
            let of = |size| sizes.iter().filter(|&&s| s == size).count();
            assert_eq!([1, 2, 4, 8].map(of), [7, 21, 21, 7]);
        }
    }

    #[test]
    fn tables_are_those_of_the_formulas() {
        let all = irregular(4, [0.3, -0.4, 1.2]);
        let expected = [
            (2, 1, [-0.290_875_400_290_337, 0.387_833_867_053_782]),
            (4, 3, [1.390_164_634_978_85, 0.522_796_956_744_183]),
        ];
        for (l, m, value) in expected {
            let found = all[l * (l + 1) / 2 + m];
            assert!((0..2).all(|k| (found[k] - value[k]).abs() < 1e-12), "{l} {m} {found:?}");
        }
        // B_3^{0,l} for l = −3 … 3: 2.5, 0, −0.5, 0, 0.5, 0, −2.5, folded onto l ≥ 0.
        let [re, im, ..] = swaps(3);
        let start = 1 + 4 + 9;
        assert_eq!((&re[start..start + 4], &im[start..start + 4]), (&[0.0, 1.0, 0.0, -5.0][..], &[0.0; 4][..]));
    }
}
