//! Second derivatives of the potential: of pairs and expansions of a sum that was executed for the
//! field, and of all pairs.
//!
//! The method is that of fmm-core's `cpu/hessian.rs`: the derivatives of an expansion along the
//! axes are expansions, and the operators of the field give their gradients.

use cust::memory::DevicePointer;
use fmm_core::expansion::{Kind, recurrences as factors};
use fmm_core::guard::{Drawn, Sample, sample_size};
use fmm_core::kernel::Pairs;
use fmm_core::{Error, Softening, Stage, StageTimes};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::cartesian;
use crate::direct::{self, BLOCKS, kernel};
use crate::far::{AtBodies, Far, Series};
use crate::guard::Measured;
use crate::mma_layout::DeviceReal;
use crate::operators::{Basis, Operators};
use crate::order::Units;
use crate::place::Place;
use crate::view::{Body, DerivativeView, HessianPairView, HessianSumView, HessianView, Sum, TILE, TreeView};

/// Threads of a block of pairs, each of which has a target: `THREADS` of the kernels.
const THREADS: usize = 128;
/// Sources of a share, at least.
const FEWEST: usize = 256;
/// Numbers of a share: `TERMS` of the kernels, and the largest term.
const NUMBERS: usize = 8;

/// The arrays of second derivatives, kept from sum to sum.
#[derive(Default)]
pub struct Hessian {
    /// In the order of the targets' tree. `[targets][6]`
    tree_order: Buffer<f64>,
    /// Of the derivative along one axis.
    sums: Buffer<Sum>,
    single: Derivatives<f32>,
    double: Derivatives<f64>,
    partial: Buffer<f64>,
    sum: Buffer<f64>,
    largest: Buffer<f64>,
    found_there: Buffer<f64>,
}

/// A precision of expansions.
pub trait Precision: DeviceReal {
    /// Its arrays.
    fn derivatives(hessian: &mut Hessian) -> &mut Derivatives<Self>;
}

impl Precision for f32 {
    fn derivatives(hessian: &mut Hessian) -> &mut Derivatives<f32> {
        &mut hessian.single
    }
}

impl Precision for f64 {
    fn derivatives(hessian: &mut Hessian) -> &mut Derivatives<f64> {
        &mut hessian.double
    }
}

/// Derivatives of expansions along one axis, and what evaluates those of multipoles, whose order is the next.
pub struct Derivatives<T: DeviceReal> {
    coefficients: Buffer<T>,
    next: Option<Next<T>>,
}

/// Of expansions of a basis: the recurrences of the next order, or the multi-indices.
type Next<T> = (Basis, Buffer<T>, Option<cartesian::Bodies>);

impl<T: DeviceReal> Default for Derivatives<T> {
    fn default() -> Self {
        Derivatives { coefficients: Buffer::new(), next: None }
    }
}

/// A sum by a plan that was executed for the field.
pub struct Executed<'a> {
    /// Its arrays.
    pub place: Place<'a>,
    /// The kernel.
    pub softening: Softening,
    /// Side of the root cube.
    pub side: f64,
    /// Number of targets.
    pub targets: usize,
    /// Place of each of the caller's targets in the order of the tree.
    pub inverse: DevicePointer<u32>,
    /// What strengths were multiplied by.
    pub strength_scale: f64,
}

impl Hessian {
    /// The second derivatives at the targets of `sum`, whose expansions are `far`, to `out` in the
    /// caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or the device fails.
    pub fn of_plan<T: Precision>(
        &mut self,
        gpu: &Gpu,
        sum: &Executed,
        far: &Far<T>,
        out: DevicePointer<f64>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        let (n, place) = (sum.targets, &sum.place);
        if n == 0 {
            return Ok(());
        }
        direct::fits(gpu, self.growth(n), &format!("second derivatives at {n} targets"))?;
        self.tree_order.resize(6 * n)?;
        self.sums.resize(n)?;
        times.time_more(Stage::P2P, || {
            self.pairs::<T>(gpu, sum)?;
            gpu.finish()
        })?;
        let of_axis = Place { sums: self.sums.pointer(), ..*place };
        let unit = sum.side;
        let mut view = HessianView {
            sums: self.sums.pointer(),
            inverse: sum.inverse,
            hessian: self.tree_order.pointer(),
            out,
            scale: 1.0 / unit,
            n: n as u32,
            axis: 0,
        };
        let launch = |name, view: &HessianView| {
            let blocks = n.div_ceil(TILE) as u32;
            // SAFETY: all arrays are of the targets' number.
            unsafe { gpu.kernels().launch(gpu.stream(), name, blocks, TILE as u32, view) }
        };
        for axis in 0..3 {
            view.axis = axis;
            self.sums.fill(gpu.stream(), 0)?;
            let (derivatives, along) = (T::derivatives(self), Along { place: &of_axis, axis, unit });
            times.time_more(Stage::L2P, || {
                derivatives.of_locals(gpu, far, along)?;
                gpu.finish()
            })?;
            if place.pairs[1] > 0 {
                times.time_more(Stage::M2P, || {
                    derivatives.of_multipoles(gpu, far, along)?;
                    gpu.finish()
                })?;
            }
            launch("hessian_add", &view)?;
        }
        view.scale = 1.0 / sum.strength_scale;
        times.time_more(Stage::Output, || {
            launch("return_hessian", &view)?;
            gpu.finish()
        })
    }

    /// Bytes more of device memory than there are now for so many targets.
    pub fn growth(&self, targets: usize) -> usize {
        self.tree_order.growth(6 * targets) + self.sums.growth(targets)
    }

    /// Queues the pairs of all leaves.
    fn pairs<T: DeviceReal>(&self, gpu: &Gpu, sum: &Executed) -> Result<(), Error> {
        let (place, (name, softening)) = (&sum.place, kernel(sum.softening, 1.0));
        let (leaves, count) = place.target_leaves;
        let view = HessianPairView {
            targets: place.targets,
            sources: place.sources,
            list: place.p2p,
            leaves,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            hessian: self.tree_order.pointer(),
            softening,
            smooth_below: sum.softening.smooth_below(),
            sides: place.sides,
            same: u32::from(place.same),
            unused: 0,
        };
        let name = format!("p2p_hessian_{name}_{}", T::NAME);
        // SAFETY: the arrays have the lengths that the trees say.
        unsafe { gpu.kernels().launch(gpu.stream(), &name, count as u32, THREADS as u32, &view) }
    }

    /// The second derivatives of all pairs of `sources` and `targets`, or of the sources among
    /// themselves, to `out`. Bodies are in `units`, and in the caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or the device fails.
    pub fn of_all_pairs(
        &mut self,
        gpu: &Gpu,
        softening: Softening,
        units: Units,
        (sources, targets): (&Buffer<Body>, Option<&Buffer<Body>>),
        out: DevicePointer<f64>,
    ) -> Result<(), Error> {
        let at = targets.unwrap_or(sources);
        let (n, count) = (sources.len(), at.len());
        if count == 0 {
            return Ok(());
        }
        let parts = (BLOCKS / count.div_ceil(THREADS)).clamp(1, n.div_ceil(FEWEST).max(1));
        let more = self.partial.growth(count * parts * NUMBERS);
        direct::fits(gpu, more, &format!("second derivatives of {n} sources at {count} targets"))?;
        self.partial.resize(count * parts * NUMBERS)?;
        let scale = units.scale;
        let view = HessianSumView {
            sources: sources.pointer(),
            position: at.pointer().cast(),
            picked: DevicePointer::null(),
            found: DevicePointer::null(),
            partial: self.partial.pointer(),
            sum: out,
            largest: DevicePointer::null(),
            found_there: DevicePointer::null(),
            softening: kernel(softening, scale).1,
            scale: 1.0,
            sum_scale: scale * scale * scale / units.strength_scale,
            n: n as u32,
            targets: count as u32,
            parts: parts as u32,
            stride: 4,
            same: u32::from(targets.is_none()),
            unused: 0,
        };
        launch_sums(gpu, kernel(softening, scale).0, &view)
    }

    /// The error of the second derivatives of the last plan at the targets that a guard has
    /// `picked`, of which `drawn` has the places.
    ///
    /// # Errors
    /// [`Error::Device`] where memory lacks or the device fails.
    pub fn error(
        &mut self,
        gpu: &Gpu,
        softening: Softening,
        sum: &Measured,
        (picked, drawn): (DevicePointer<u32>, &[Drawn]),
        same: bool,
    ) -> Result<f64, Error> {
        if sum.targets == 0 || sum.n == 0 {
            return Ok(0.0);
        }
        let targets = sample_size(sum.targets);
        let parts = (BLOCKS / targets.div_ceil(THREADS)).clamp(1, (sum.n / FEWEST).max(1));
        self.partial.resize(targets * parts * NUMBERS)?;
        self.sum.resize(6 * targets)?;
        self.largest.resize(targets)?;
        self.found_there.resize(6 * targets)?;
        let scale = sum.scale;
        let (name, softening) = kernel(softening, scale);
        let view = HessianSumView {
            sources: sum.bodies,
            position: sum.position,
            picked,
            found: self.tree_order.pointer(),
            partial: self.partial.pointer(),
            sum: self.sum.pointer(),
            largest: self.largest.pointer(),
            found_there: self.found_there.pointer(),
            softening,
            scale,
            sum_scale: 1.0,
            n: sum.n as u32,
            targets: targets as u32,
            parts: parts as u32,
            stride: sum.stride as u32,
            same: u32::from(same),
            unused: 0,
        };
        launch_sums(gpu, name, &view)?;
        gpu.finish()?;
        let (largest, sum, found) = (self.largest.download()?, self.sum.download()?, self.found_there.download()?);
        let row = |all: &[f64], k: usize| std::array::from_fn(|d| all[6 * k + d]);
        let unit = 1.0 / (scale * scale * scale);
        let exact = drawn.iter().map(|d| (row(&sum, d.target), largest[d.target]));
        let found = drawn.iter().map(|d| row(&found, d.target).map(|h| h * unit));
        Ok(Sample::drawn(drawn.to_vec(), [0.0; 2]).error_of_matrices(exact, found))
    }
}

/// Queues the sums of `view` with the kernel of this name.
fn launch_sums(gpu: &Gpu, name: &str, view: &HessianSumView) -> Result<(), Error> {
    let (targets, parts) = (view.targets as usize, view.parts);
    // SAFETY: all arrays have the lengths that the view says. Without sources there is nothing to
    // read, and sums are zero.
    unsafe {
        let kernels = gpu.kernels();
        if view.n > 0 {
            let (name, grid) = (format!("hessian_sums_{name}_f64"), (targets.div_ceil(THREADS) as u32, parts));
            kernels.launch(gpu.stream(), &name, grid, THREADS as u32, view)?;
        }
        let view = HessianSumView { parts: if view.n > 0 { parts } else { 0 }, ..*view };
        kernels.launch(gpu.stream(), "hessian_join", targets.div_ceil(TILE / 32) as u32, TILE as u32, &view)
    }
}

/// Of which cells derivatives are taken, and how.
#[derive(Clone, Copy)]
struct Along<'a> {
    /// The sums are those of this axis alone.
    place: &'a Place<'a>,
    axis: u32,
    /// The length for which derivatives are taken.
    unit: f64,
}

impl<T: DeviceReal> Derivatives<T> {
    /// Queues the gradients of the derivatives of all local expansions.
    fn of_locals(&mut self, gpu: &Gpu, far: &Far<T>, along: Along) -> Result<(), Error> {
        let (Operators { basis, recurrences, cartesian, .. }, place) = (far.operators(), along.place);
        let (order, cartesian, locals) = (basis.order, cartesian.as_ref(), far.locals.pointer().cast());
        derive(gpu, "l2p", along, place.targets, (locals, order), (&mut self.coefficients, order, cartesian))?;
        let coefficients = self.coefficients.pointer().cast();
        let series = Series { order, coefficients, recurrences: &recurrences[0], cartesian };
        far.at_bodies(gpu, place, AtBodies::L2P, place.target_leaves, series)
    }

    /// Queues the gradients of the derivatives of all multipoles where these meet leaves.
    fn of_multipoles(&mut self, gpu: &Gpu, far: &Far<T>, along: Along) -> Result<(), Error> {
        let (basis, place, multipoles) = (&far.operators().basis, along.place, far.multipoles.pointer().cast());
        let next = match self.next.take().filter(|(of, ..)| of == basis) {
            Some(next) => next,
            None => next(gpu, *basis)?,
        };
        let (_, recurrences, cartesian) = self.next.insert(next);
        let (order, cartesian) = (basis.order + 1, cartesian.as_ref());
        derive(
            gpu,
            "m2p",
            along,
            place.sources,
            (multipoles, basis.order),
            (&mut self.coefficients, order, cartesian),
        )?;
        let coefficients = self.coefficients.pointer().cast();
        let series = Series { order, coefficients, recurrences, cartesian };
        far.at_bodies(gpu, place, AtBodies::M2P, place.target_leaves, series)
    }
}

/// Queues the derivatives of the expansions of all cells of `tree`, with the order and the
/// multi-indices that these have.
fn derive<T: DeviceReal>(
    gpu: &Gpu,
    name: &str,
    along: Along,
    tree: TreeView,
    (coefficients, order): (DevicePointer<u8>, usize),
    (out, next, cartesian): (&mut Buffer<T>, usize, Option<&cartesian::Bodies>),
) -> Result<(), Error> {
    let (family, each) = match cartesian {
        Some(_) => ("cartesian", cartesian::count_of(next)),
        None => ("spherical", (next + 1).pow(2)),
    };
    let count = tree.cells as usize * each;
    direct::fits(gpu, out.growth(count), &format!("derivatives of {} expansions", tree.cells))?;
    out.resize(count)?;
    let view = DerivativeView {
        tree,
        exponents: cartesian.map_or(DevicePointer::null(), cartesian::Bodies::exponents),
        coefficients,
        out: out.pointer().cast(),
        unit: along.unit,
        order: order as u32,
        axis: along.axis,
    };
    let (name, blocks) = (format!("{name}_derivative_{family}_{}", T::NAME), count.div_ceil(TILE) as u32);
    // SAFETY: there are so many coefficients of all cells.
    unsafe { gpu.kernels().launch(gpu.stream(), &name, blocks, TILE as u32, &view) }
}

/// What evaluates multipoles of the order after that of `basis`.
fn next<T: DeviceReal>(gpu: &Gpu, basis: Basis) -> Result<Next<T>, Error> {
    let (order, mut recurrences) = (basis.order + 1, Buffer::new());
    let cartesian = match basis.softened {
        Some(softened) => Some(cartesian::Bodies::new(softened, order, &softened.expansion(order, basis.offsets))?),
        None => {
            let factors = factors(Kind::Irregular, order + 1);
            recurrences.upload(&factors.as_flattened().iter().map(|&f| T::from_f64(f)).collect::<Vec<_>>())?;
            None
        }
    };
    // Tables were copied, for which the queue does not wait.
    gpu.settle()?;
    Ok((basis, recurrences, cartesian))
}
