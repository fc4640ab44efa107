//! The error field of a sum on the device, and the sample of the guard that is drawn by it: see
//! [`fmm_core::error_model`].

use cust::memory::DevicePointer;
use fmm_core::boundary::Background;
use fmm_core::error_model::{
    CORE, DOUBTED, LARGEST, LEAST, LOCAL, LOOKED_AT, NEAR, OF_PAIRS, Replaced, epsilon_of_terms, far_of_classes,
    least_of_random, of_classes, of_mixed, rounding_of_multipoles, rounds_pairs,
};
use fmm_core::expansion::LastDegree;
use fmm_core::guard::{EVEN, FLOOR, ROUNDS};
use fmm_core::lists::Classes;
use fmm_core::{Error, Family, Precision, Softening, mesh};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::far::Far;
use crate::mma_layout::DeviceReal;
use crate::near::Near;
use crate::place::Place;
use crate::shares::{Divided, MOST_CHUNKS, chunks_of};
use crate::view::{AlikeView, Body, DrawView, ErrorView, Sum, TreeView};

/// What M2L with halves loses of a cell's multipole, over [`cell_scale`](crate::view::M2lView::cell_scale), of which the largest
/// coefficient is 2¹⁴ to 2¹⁵ times as much: 1.5e-7 of 2¹⁴, most of it where the products of many cells are added up
/// (docs/accuracy.md).
const OF_HALVES: f64 = 16384.0 * 1.5e-7;

/// Threads of the blocks of cells and leaves, and of chunks.
const THREADS: usize = 128;
const CELLS: usize = 256;
const CHUNK_THREADS: usize = 256;

/// A sum by expansions whose errors are to be predicted.
pub struct Predicted {
    view: ErrorView,
    /// Precision of the expansions in names of kernels.
    real: &'static str,
    family: Family,
    classes: Classes<3>,
    /// See [`ErrorView::charges`].
    replaced: Option<Replaced>,
    /// Cells of sources and targets, and targets.
    cells: [usize; 2],
    targets: usize,
    /// What fields are multiplied by to be in units of half the side of the root.
    unit: f64,
    distributed: bool,
}

/// The root, and what was chosen.
pub struct Described {
    /// Half the side of the root.
    pub root: f64,
    /// The sides of a cell over the longest.
    pub aspect: [f64; 3],
    /// Family of the expansions.
    pub family: Family,
    /// Their order.
    pub order: usize,
    /// Precision of the sum.
    pub precision: Precision,
    /// The numbering of the offsets.
    pub classes: Classes<3>,
    /// The tolerance that is to be kept.
    pub tolerance: f64,
    /// The kernel.
    pub softening: Softening,
    /// What sums in a box get at last, of scaled strengths.
    pub background: Background,
    /// Σ|q| in open space; infinite in a box.
    pub total: f64,
    /// Whether local expansions have been summed.
    pub locals: bool,
    /// See [`Predicted::is_distributed`].
    pub distributed: bool,
}

impl Predicted {
    /// The sum at `place` by the expansions of `far` and the pairs of `near`.
    pub fn new<T: DeviceReal>(
        place: &Place,
        far: &Far<T>,
        near: &Near,
        cells: [usize; 2],
        targets: usize,
        about: Described,
    ) -> Self {
        let Described { root, aspect, family, order, precision, classes, tolerance, softening, .. } = about;
        let Described { background, total, locals, distributed, .. } = about;
        let replaced = Replaced::new(softening, family);
        let epsilon = epsilon_of_terms(precision);
        let last = LastDegree::new(family, order);
        let single = size_of::<T>() == 4;
        let null = DevicePointer::null();
        let (near_bodies, sizes, again) = near.rounded().unwrap_or((null.cast(), null.cast(), null.cast()));
        let counted = rounds_pairs(precision, tolerance, !far.squares.is_empty());
        let view = ErrorView {
            targets: place.targets,
            sources: place.sources,
            m2l: place.m2l,
            m2p: place.m2p,
            p2p: place.p2p,
            near_bodies,
            sizes: if counted { sizes } else { null.cast() },
            again,
            leaves: place.target_leaves.0,
            target_bodies: place.target_bodies,
            source_bodies: place.source_bodies,
            sums: place.sums,
            multipoles: far.multipoles.pointer().cast(),
            locals: if locals { far.locals.pointer().cast() } else { null.cast() },
            cell_scale: far.scales_of_halves(),
            of_halves: OF_HALVES.powi(2),
            strength_squares: if far.squares.is_empty() { null.cast() } else { far.squares.pointer() },
            weights: null,
            by_class: null.cast(),
            far_by_class: null.cast(),
            charges: null.cast(),
            norms: null.cast(),
            octants: null,
            handed: null,
            squares: null.cast(),
            sides: place.sides,
            aspect,
            root,
            class_unit: 1.0,
            local: LOCAL,
            least_of_random: least_of_random(aspect, order),
            near: NEAR,
            least: LEAST,
            core2: softening.core().powi(2),
            core2_of_terms: softening.core_of_terms().powi(2),
            core: CORE,
            rounding: epsilon * epsilon,
            of_mixed: of_mixed(precision),
            per_potential: if total > 0.0 { 1.0 / total } else { 0.0 },
            of_pairs: OF_PAIRS,
            of_rounding: rounding_of_multipoles(precision, !far.squares.is_empty()),
            replaced: replaced.map_or(0.0, |replaced| replaced.part * replaced.part),
            floor: FLOOR,
            doubted: (DOUBTED * tolerance).powi(2),
            looked_at: LOOKED_AT as u32,
            reach2: softening.newtonian_beyond(0.0).powi(2),
            middle: background.middle,
            uniform: background.uniform,
            slope: background.slope,
            largest: (LARGEST * tolerance).powi(2),
            leaf_count: place.target_leaves.1 as u32,
            order: order as u32,
            coefficients: (far.multipoles.len() / cells[0].max(1)) as u32,
            first: last.places.start as u32,
            width: last.places.len() as u32,
            same: u32::from(place.same),
            has_m2l: u32::from(place.pairs[0] > 0),
            has_m2p: u32::from(place.pairs[1] > 0),
            replaced_power: replaced.map_or(0, |replaced| replaced.power as u32),
        };
        let real = if single { "f32" } else { "f64" };
        Predicted { view, real, family, classes, replaced, cells, targets, unit: root * root, distributed }
    }

    /// Whether the expansions are in double precision.
    pub fn is_double(&self) -> bool {
        self.real == "f64"
    }

    /// Whether each GPU of a team has its share of the sums, and of their errors, for itself.
    pub fn is_distributed(&self) -> bool {
        self.distributed
    }

    /// The sorted places of the targets whose sums are here: the first, and one past the last.
    pub fn here(&self) -> [u32; 2] {
        let all = [0, self.targets as u32];
        if self.distributed { self.view.targets.share } else { all }
    }

    /// What a field in units of half the side of the root is multiplied by to be in those of the bodies.
    pub fn per_field(&self) -> f64 {
        1.0 / self.unit
    }

    /// The spacing of numbers next to 1 in the precision of the sum.
    pub fn epsilon(&self) -> f64 {
        self.view.rounding.sqrt()
    }
}

/// A sum that errs alike at all targets, as one with a mesh does.
#[derive(Clone, Copy)]
pub struct Alike {
    /// What was summed, in the caller's order. `[targets][3]`
    pub field: DevicePointer<f64>,
    /// The place of each target in the caller's order, in the order in which they are drawn.
    pub order: DevicePointer<u32>,
    /// Targets and sources in the order of cells, the latter with scaled strengths.
    pub bodies: [DevicePointer<Body>; 2],
    /// The cell of each target, and the first source of each cell.
    pub cells: [DevicePointer<u32>; 2],
    /// Whether targets and sources are the same.
    pub same: bool,
    /// Numbers of targets and sources.
    pub count: [usize; 2],
    /// What strengths were multiplied by.
    pub strength_scale: f64,
    /// The least |e|² that relative errors refer to.
    pub least_square: f64,
    /// The field below which an error is [doubted](DOUBTED).
    pub doubted: f64,
    /// Beyond this distance terms are those of point charges.
    pub reach: f64,
}

/// What is known of the errors of a sum before any is measured.
#[derive(Clone, Copy)]
pub enum Expected<'a> {
    /// The error of each target.
    Predicted(&'a Predicted),
    /// That it is the same everywhere.
    Alike(Alike),
}

/// The targets that a sample is drawn of.
pub struct Population {
    /// The sums in the order of the targets, if their squares are to be added up.
    field: DevicePointer<Sum>,
    /// What these are multiplied by.
    unit: f64,
    count: usize,
    /// See [`Predicted::is_distributed`].
    pub distributed: bool,
}

impl Expected<'_> {
    /// The targets, whose squares an [`ErrorField`] holds.
    pub fn population(&self) -> Population {
        match *self {
            Expected::Predicted(&Predicted { view, unit, targets: count, distributed, .. }) => {
                Population { field: view.sums, unit, count, distributed }
            }
            Expected::Alike(Alike { count: [count, _], .. }) => {
                Population { field: DevicePointer::null(), unit: 0.0, count, distributed: false }
            }
        }
    }
}

/// What is known of all predicted errors of a sum.
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    /// The root mean square of them over all targets, in units of half the side of the root.
    pub error: f64,
    /// That of the field.
    pub field: f64,
    /// The part of the sums of both squares that targets have which are in the last sample for
    /// certain.
    pub certain: [f64; 2],
}

/// The arrays of error fields, kept from sum to sum.
#[derive(Default)]
pub struct ErrorField {
    /// Those of the last degree, and of charges where 1/r is in place of a softened kernel.
    weights: Buffer<f64>,
    by_class: Buffer<u32>,
    far_by_class: Buffer<f32>,
    class_unit: f64,
    /// What these hold.
    known: Option<(Family, u32, Classes<3>, u32)>,
    charges: Buffer<f32>,
    norms: Buffer<f32>,
    octants: Buffer<f64>,
    handed: Buffer<f64>,
    squares: Buffer<f32>,
    sums: Buffer<f64>,
    totals: Buffer<f64>,
    plan: Buffer<f64>,
    starts: Buffer<f64>,
    sure: Buffer<f64>,
}

impl ErrorField {
    /// Bytes more of device memory than there are now for the error field of a sum.
    pub fn growth(&self, sum: &Expected) -> usize {
        let sum = match sum {
            Expected::Predicted(sum) => sum,
            Expected::Alike(sum) => return self.squares.growth(2 * sum.count[0]),
        };
        let [sources, targets] = sum.cells;
        let octants = self.octants.growth(8 * targets) + self.handed.growth(8 * targets);
        let charges = self.charges.growth(if sum.replaced.is_some() { sources } else { 0 });
        self.norms.growth(sources + targets) + charges + octants + self.squares.growth(2 * sum.targets)
    }

    /// Queues the error field of a sum.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn predict(&mut self, gpu: &Gpu, sum: &Expected) -> Result<(), Error> {
        let sum = match sum {
            Expected::Predicted(sum) => *sum,
            Expected::Alike(sum) => return self.predict_alike(gpu, sum),
        };
        let Predicted { view, real, family, classes, replaced, cells, targets, .. } = *sum;
        let charge = replaced.map(Replaced::charge);
        let key = (family, view.order, classes, view.replaced_power);
        if self.known != Some(key) {
            self.known = None;
            let last = LastDegree::new(family, view.order as usize);
            let of_charge = charge.as_ref().map_or(&[][..], |charge| &charge.multipole);
            self.weights.upload(&[&last.multipole, &last.local, of_charge].concat())?;
            let (by_class, unit) = of_classes(classes, view.order as usize);
            // A load of 16 bytes a pair: the upper half of a number is exact enough for an estimate.
            let upper = |x: f32| (x.to_bits() + 0x8000) >> 16;
            let twos = by_class.as_flattened().as_chunks::<2>().0.iter().map(|&[a, b]| upper(a) | upper(b) << 16);
            self.by_class.upload(&twos.collect::<Vec<_>>())?;
            self.far_by_class.upload(&far_of_classes(classes))?;
            self.class_unit = unit;
            // The queue does not wait for copies.
            gpu.settle()?;
            self.known = Some(key);
        }
        self.norms.resize(cells[0] + cells[1])?;
        self.octants.resize(8 * cells[1])?;
        self.handed.resize(8 * cells[1])?;
        self.squares.resize(2 * targets)?;
        self.charges.resize(if replaced.is_some() { cells[0] } else { 0 })?;
        let view = ErrorView {
            weights: self.weights.pointer(),
            by_class: self.by_class.pointer(),
            far_by_class: self.far_by_class.pointer(),
            class_unit: self.class_unit,
            charges: if replaced.is_some() { self.charges.pointer() } else { view.charges },
            norms: self.norms.pointer(),
            octants: self.octants.pointer(),
            handed: self.handed.pointer(),
            squares: self.squares.pointer(),
            ..view
        };
        let blocks = |threads: usize, block: usize| threads.div_ceil(block) as u32;
        // SAFETY: all arrays have the lengths that the views say.
        unsafe {
            let (kernels, stream) = (gpu.kernels(), gpu.stream());
            let all = blocks(cells[0] + cells[1], CELLS);
            kernels.launch(stream, &format!("error_norms_{real}"), all, CELLS as u32, &view)?;
            if let Some(charge) = charge {
                let (norms, weights) = (self.charges.pointer(), view.weights.wrapping_add(2 * view.width as usize));
                let (first, width) = (charge.places.start as u32, charge.places.len() as u32);
                let targets = TreeView { cells: 0, ..view.targets };
                let strength_squares = DevicePointer::null();
                let of_charges = ErrorView { targets, strength_squares, weights, norms, first, width, ..view };
                kernels.launch(stream, &format!("error_norms_{real}"), all, CELLS as u32, &of_charges)?;
            }
            kernels.launch(stream, "error_pairs", blocks(32 * cells[1], THREADS), THREADS as u32, &view)?;
            kernels.launch(stream, "error_cells", blocks(8 * cells[1], THREADS), THREADS as u32, &view)?;
            let leaves = blocks(8 * view.leaf_count as usize, THREADS);
            kernels.launch(stream, "error_targets", leaves, THREADS as u32, &view)?;
        }
        let divided = view.targets.share[1] != u32::MAX;
        if divided && !sum.distributed {
            gpu.exchange_shares(&self.squares, targets, ("squares", Divided::ByWork))?;
        }
        Ok(())
    }

    /// The same of a sum that errs alike everywhere.
    fn predict_alike(&mut self, gpu: &Gpu, sum: &Alike) -> Result<(), Error> {
        let ([targets, bodies], [cell, start], [count, sources]) = (sum.bodies, sum.cells, sum.count);
        self.squares.resize(2 * count)?;
        let view = AlikeView {
            field: sum.field,
            order: sum.order,
            targets,
            bodies,
            cell,
            start,
            squares: self.squares.pointer(),
            least_square: sum.least_square,
            doubted_square: sum.doubted * sum.doubted,
            floor: FLOOR / (sum.strength_scale * sum.strength_scale),
            reach2: sum.reach * sum.reach,
            count: count as u32,
            sources: sources as u32,
            margin: mesh::MARGIN as u32,
            most: mesh::MOST_LOOKED_AT as u32,
            same: u32::from(sum.same),
            unused: 0,
        };
        let blocks = count.div_ceil(CHUNK_THREADS) as u32;
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), "error_alike", blocks, CHUNK_THREADS as u32, &view) }
    }

    /// Queues the drawing of a sample of `size` targets by the error field: their places in the
    /// order of the tree to `picked`, and what they stand for to `weight`. Of distributed sums it
    /// draws those of this GPU's share alone, and leaves the others as they are.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn draw(
        &mut self,
        gpu: &Gpu,
        of: &Population,
        size: usize,
        (picked, weight): (DevicePointer<u32>, DevicePointer<f64>),
    ) -> Result<(), Error> {
        let chunks = chunks_of(of.count);
        let own = gpu.member().filter(|_| of.distributed).map_or(0..chunks, |member| member.chunks(of.count));
        self.sums.resize(5 * chunks)?;
        self.totals.resize(5)?;
        self.plan.resize(8)?;
        self.starts.resize(chunks + 1)?;
        self.sure.resize(chunks + 1)?;
        let draw = DrawView {
            squares: self.squares.pointer(),
            field: of.field,
            sums: self.sums.pointer(),
            totals: self.totals.pointer(),
            plan: self.plan.pointer(),
            starts: self.starts.pointer(),
            sure: self.sure.pointer(),
            picked,
            weight,
            unit: of.unit,
            even: EVEN,
            count: of.count as u32,
            chunks: chunks as u32,
            first: own.start as u32,
            size: size as u32,
            again: 0,
        };
        let launch = |name, blocks: usize, threads: usize, draw: &DrawView| {
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { gpu.kernels().launch(gpu.stream(), name, blocks as u32, threads as u32, draw) }
        };
        for round in 0..=ROUNDS {
            if of.distributed {
                // Of the chunks of others nothing is added.
                self.sums.fill(gpu.stream(), 0)?;
            }
            let draw = DrawView { again: u32::from(round > 0), ..draw };
            launch(if round == 0 { "error_chunks" } else { "error_rest" }, own.len(), CHUNK_THREADS, &draw)?;
            if of.distributed {
                gpu.join_numbers(&mut self.sums)?;
            }
            launch("error_starts", 1, MOST_CHUNKS, &draw)?;
        }
        launch("error_draw", own.len(), CHUNK_THREADS, &draw)
    }

    /// What is known of the predicted errors of the last sample.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn totals(&self, sum: &Predicted) -> Result<Totals, Error> {
        let totals = self.totals.download()?;
        let [error, field] = [1, 2].map(|k| (totals[k] / sum.targets as f64).sqrt());
        let certain = [0, 1].map(|k| if totals[k] > 0.0 { 1.0 - totals[3 + k] / totals[k] } else { 0.0 });
        Ok(Totals { error, field, certain })
    }

    /// Where the squares of the predicted errors of the last sum are, over the field and in units of
    /// half the side of the root, in the order of the tree. `[targets][2]`
    pub fn pointer(&self) -> DevicePointer<f32> {
        self.squares.pointer()
    }
}
