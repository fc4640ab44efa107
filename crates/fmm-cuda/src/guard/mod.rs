//! The guard: the error of a sum on a sample of its targets, drawn and summed on the device.

mod in_box;
mod repair;

use std::ops::Range;

use cust::memory::DevicePointer;
use fmm_core::cpu::{OTHER_DIGITS, velocity_of};
use fmm_core::guard::{Drawn, Look, Norms, Sample, sample_size, split};
use fmm_core::{Error, Softening};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::error_field::{ErrorField, Expected, Predicted, Totals};
use crate::ewald::Ewald;
use crate::shares::{Divided, Member};
use crate::view::{Body, ColumnView, GuardView, RecordView, Sum, TILE};

pub use in_box::{MeasuredInBox, PART};
pub use repair::Repaired;

/// Sources of a block at least, the most shares of them, and targets of a block. The bits of a sum depend on these and not on the device.
const FEWEST: usize = 256;
const PARTS: usize = 2048;
const GUARDED: usize = 128;

/// Targets of a predicted sample of a sum in double precision at least.
const DOUBLE: usize = 128;

/// Threads of a block that is alone, or that counts.
const ALONE: usize = 1024;

/// How many parts `n` sources have, each summed by blocks of its own.
fn parts_of(n: usize) -> usize {
    (n / FEWEST).clamp(1, PARTS)
}

/// The sources, of `n`, that a member of a team sums at the sample.
pub fn sources_of(member: &Member, n: usize) -> Range<usize> {
    let (parts, own) = (parts_of(n), member.share(parts_of(n), Divided::Evenly));
    n * own.start / parts..n * own.end / parts
}

/// The arrays of a guard.
#[derive(Default)]
pub struct Guard {
    field: ErrorField,
    /// Whether `field` is that of the present sum.
    predicts: bool,
    /// Whether the worst targets of that sum were summed again.
    repaired: bool,
    picked: Buffer<u32>,
    weight: Buffer<f64>,
    partial: Buffer<f64>,
    out: Buffer<f64>,
    counts: Buffer<u32>,
    /// What the GPUs of a team know together of the targets that are picked, see [`RecordView`],
    /// and 0, 1, 2, …
    records: Buffer<f64>,
    slots: Buffer<u32>,
    /// In boxes.
    pub ewald: Ewald,
}

/// A sum that is to be measured.
#[derive(Clone, Copy)]
pub struct Measured {
    /// The sources, `[n]`.
    pub bodies: DevicePointer<Body>,
    /// Number of bodies.
    pub n: usize,
    /// What the strengths of the sources were multiplied by, and those of what was found not.
    pub strength_scale: f64,
    /// What their lengths were multiplied by.
    pub unit: f64,
    /// What lengths are to be multiplied by, so that squares of forces are numbers.
    pub scale: f64,
    /// The targets, in the caller's unit; three numbers from every `stride`th on.
    pub position: DevicePointer<f64>,
    /// What was found at them, the same.
    pub field: DevicePointer<f64>,
    /// Numbers from one target to the next.
    pub stride: usize,
    /// Number of targets.
    pub targets: usize,
    /// Whether the GPUs of a team share what the guard sums.
    pub shared: bool,
}

/// A sample of targets, with what is right there and what was found.
#[derive(Default)]
pub struct Rows {
    /// Places in the sample.
    pub drawn: Vec<Drawn>,
    /// The field and the square of its largest term.
    exact: Vec<[f64; 4]>,
    found: Vec<[f64; 3]>,
    /// The root mean square of the field over all targets, where errors are predicted.
    pub rms: Option<f64>,
    /// The part of the predicted squares that targets have which are in the sample for certain.
    pub certain: [f64; 2],
    /// Whether far pairs were in single precision.
    pub single: bool,
}

impl Rows {
    /// The norms of the errors, and what the driver compares with the tolerance.
    pub fn norms(self) -> (Norms, f64) {
        let norms =
            Sample::drawn(self.drawn, self.certain).weigh(self.exact.into_iter().map(split), self.found, self.rms);
        (norms, if self.rms.is_some() { norms.judged() } else { norms.error() })
    }
}

/// How a sample is drawn.
#[derive(Clone, Copy)]
pub struct Draw {
    /// How many targets.
    pub look: Look,
    /// Whether the sample serves the judgement of this sum by itself; others are joined with those of
    /// other columns.
    pub whole: bool,
    /// Whether it is the sample of the last call.
    pub same_sample: bool,
    /// Whether all pairs are in double precision.
    pub exact: bool,
}

/// By this factor the error of a velocity is taken to be larger than in its sample, which is drawn where the field of one column of its
/// strengths errs: where the columns cancel, a sample sees less of the error.
const UNSEEN: f64 = 1.25;

/// The error of a velocity from the fields of the columns of its strengths, each with its component, in one sample. Of the square of the
/// largest term it knows a bound: the sum of those of the columns.
pub fn error_of_velocity(columns: &[(usize, Rows)]) -> f64 {
    let Some((_, first)) = columns.first() else { return 0.0 };
    let n = first.drawn.len();
    let drawn = first.drawn.clone();
    let mut all = Rows { drawn, exact: vec![[0.0; 4]; n], found: vec![[0.0; 3]; n], ..Rows::default() };
    for (k, rows) in columns {
        for i in 0..n {
            let [x, y, z, largest] = rows.exact[i];
            let (exact, found) = (velocity_of(*k, [x, y, z]), velocity_of(*k, rows.found[i]));
            for d in 0..3 {
                all.exact[i][d] += exact[d];
                all.found[i][d] += found[d];
            }
            all.exact[i][3] += largest / (4.0 * std::f64::consts::PI).powi(2);
        }
    }
    UNSEEN * all.norms().1
}

/// A target of a sample with its weight as kernels have it.
fn drawn(target: usize, weight: f64) -> Drawn {
    Drawn { target, weight: weight.abs(), certain: weight < 0.0 }
}

impl Guard {
    /// The targets of the last sample.
    pub fn picked(&self) -> DevicePointer<u32> {
        self.picked.pointer()
    }

    /// Whether the errors of the last sum that was measured are predicted.
    pub fn predicts(&self) -> bool {
        self.predicts
    }

    /// Queues the drawing of a sample of `size` of `count` targets, by their expected errors if these are known: those
    /// of the last sample if it was of the same sum, or new ones.
    fn pick(
        &mut self,
        gpu: &Gpu,
        count: usize,
        size: usize,
        (expected, same_sum): (Option<Expected>, bool),
    ) -> Result<(), Error> {
        self.picked.resize(size)?;
        self.weight.resize(size)?;
        let places = (self.picked.pointer(), self.weight.pointer());
        let repaired = std::mem::replace(&mut self.repaired, false);
        let known = repaired || same_sum && self.predicts;
        self.predicts = false;
        if let Some(sum) = expected.filter(|_| count > size) {
            // The largest sums leave no memory for an error field: their sample is an even one.
            let bytes = if known { 0 } else { self.field.growth(&sum) };
            let fits = bytes == 0 || bytes < gpu.free_memory()?;
            if gpu.agree(fits)? {
                if !known {
                    self.field.predict(gpu, &sum)?;
                }
                let population = sum.population();
                if population.distributed {
                    // Each GPU fills the slots of its share.
                    self.picked.fill(gpu.stream(), 0xff)?;
                }
                self.field.draw(gpu, &population, size, places)?;
                self.predicts = true;
                return Ok(());
            }
            self.field = ErrorField::default();
        }
        let (picked, weight) = places;
        let view = GuardView { picked, weight, all: count as u32, targets: size as u32, ..GuardView::default() };
        // SAFETY: both arrays have as many numbers as targets are picked.
        unsafe { gpu.kernels().launch(gpu.stream(), "guard_spread", 1, ALONE as u32, &view) }
    }

    /// The sum on a sample of its targets, drawn by their predicted errors if these are known.
    pub fn rows(
        &mut self,
        gpu: &Gpu,
        softening: Softening,
        sum: &Measured,
        predicted: Option<&Predicted>,
        Draw { look, whole, same_sample, exact }: Draw,
    ) -> Result<Rows, Error> {
        if sum.targets == 0 || sum.n == 0 {
            return Ok(Rows::default());
        }
        let known = whole && predicted.is_some();
        let targets = match predicted {
            // Sums in double precision take long enough for a sample that leaves less doubt.
            Some(field) if known && field.is_double() => look.size(sum.targets).max(DOUBLE),
            _ if known => look.size(sum.targets),
            _ => sample_size(sum.targets),
        };
        if !same_sample {
            let same_sum = whole && look != Look::First;
            self.pick(gpu, sum.targets, targets, (predicted.map(Expected::Predicted), same_sum))?;
        }
        // A far pair errs by 2e-7, a fiftieth of the least tolerance of sums in single precision. Where terms cancel
        // their sum errs by more, and double precision decides.
        let single = !exact && known && predicted.is_some_and(|field| !field.is_double());
        let scale = sum.scale * if single { OTHER_DIGITS } else { 1.0 };
        let sum = &Measured { scale, ..*sum };
        match predicted.filter(|field| field.is_distributed()) {
            Some(field) => {
                let joined = self.join_sample(gpu, sum, field.here(), targets)?;
                self.direct(gpu, softening, &joined, (self.slots.pointer(), targets), single)?;
            }
            None => self.direct(gpu, softening, sum, (self.picked.pointer(), targets), single)?,
        }
        gpu.finish()?;
        let rows = self.out.download()?;
        let unit = sum.strength_scale / (sum.scale * sum.scale);
        let mut all = Rows { single, ..Rows::default() };
        if let Some(predicted) = predicted.filter(|_| whole && self.predicts) {
            let totals = self.field.totals(predicted)?;
            all.rms = Some(totals.field * predicted.per_field() * unit);
            all.certain = totals.certain;
        }
        for (k, row) in rows.as_chunks::<8>().0.iter().enumerate().filter(|(_, row)| row[7] != 0.0) {
            all.drawn.push(drawn(k, row[7]));
            all.exact.push([row[0], row[1], row[2], row[3]]);
            all.found.push([row[4], row[5], row[6]].map(|f| f * unit));
        }
        Ok(all)
    }

    /// What the GPUs of a team know together of the `count` targets that are picked, each in the
    /// share of one of them. All get places and weights of all, and the sum with the targets in the
    /// order of `slots`.
    fn join_sample(&mut self, gpu: &Gpu, sum: &Measured, share: [u32; 2], count: usize) -> Result<Measured, Error> {
        self.records.resize(8 * count)?;
        let view = RecordView {
            position: sum.position,
            field: sum.field,
            picked: self.picked.pointer(),
            weight: self.weight.pointer(),
            records: self.records.pointer(),
            share,
            stride: sum.stride as u32,
            count: count as u32,
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe {
            gpu.kernels().launch(gpu.stream(), "guard_records", count.div_ceil(TILE) as u32, TILE as u32, &view)?
        };
        let all = gpu.join_numbers(&mut self.records)?;
        let records = all.as_chunks::<8>().0;
        self.picked.upload(&records.iter().map(|record| record[0] as u32).collect::<Vec<_>>())?;
        self.weight.upload(&records.iter().map(|record| record[1]).collect::<Vec<_>>())?;
        if self.slots.len() < count {
            self.slots.upload(&(0..count as u32).collect::<Vec<_>>())?;
        }
        gpu.settle()?;
        let records = self.records.pointer();
        Ok(Measured { position: records.wrapping_add(2), field: records.wrapping_add(5), stride: 8, ..*sum })
    }

    /// Queues direct sums at the `targets` that are `picked`, with far pairs in single precision or not: rows of eight
    /// numbers to `out`, see [`GuardView`].
    fn direct(
        &mut self,
        gpu: &Gpu,
        softening: Softening,
        sum: &Measured,
        (picked, targets): (DevicePointer<u32>, usize),
        single: bool,
    ) -> Result<(), Error> {
        let parts = parts_of(sum.n);
        let together = if targets > 64 { GUARDED } else { targets.max(32).next_power_of_two() };
        let split = GUARDED / together;
        self.partial.resize(targets * parts * split * 4)?;
        self.out.resize(targets * 8)?;
        let (name, length) = kernel(softening, sum.scale);
        let member = gpu.member().filter(|_| sum.shared);
        let own = member.map_or(0..parts, |member| member.share(parts, Divided::Evenly));
        let view = GuardView {
            sources: sum.bodies,
            position: sum.position,
            field: sum.field,
            picked,
            weight: self.weight.pointer(),
            partial: self.partial.pointer(),
            out: self.out.pointer(),
            softening: length,
            unit: sum.unit,
            scale: sum.scale / sum.unit,
            n: sum.n as u32,
            all: sum.targets as u32,
            targets: targets as u32,
            parts: parts as u32,
            first_part: own.start as u32,
            split: split as u32,
            stride: sum.stride as u32,
            single: u32::from(single),
        };
        let kernels = gpu.kernels();
        if !own.is_empty() {
            let grid = (targets.div_ceil(together) as u32, own.len() as u32);
            // SAFETY: all arrays have the lengths that the view says.
            unsafe { kernels.launch(gpu.stream(), &format!("guard_{name}_f64"), grid, GUARDED as u32, &view)? };
        }
        if sum.shared {
            gpu.exchange_shares(&self.partial, parts, ("direct sums", Divided::Evenly))?;
        }
        // SAFETY: as above.
        unsafe { kernels.launch(gpu.stream(), "guard_join", targets as u32, TILE as u32, &view) }
    }

    /// The estimated errors of the field of a sum, whose error has the norm `of_vectors` over that of the field, in the caller's
    /// order. `unscale` is what `sums` are multiplied by to be the field.
    pub fn errors(
        &mut self,
        gpu: &Gpu,
        predicted: &Predicted,
        of_vectors: f64,
        (order, sums, unscale): (DevicePointer<u32>, DevicePointer<Sum>, f64),
        count: usize,
    ) -> Result<Vec<f64>, Error> {
        let Totals { error, field, .. } = self.field.totals(predicted)?;
        // The factor does not scale the rounding of the field itself. Beside that single precision holds a
        // thousandth of the error.
        let rounding = predicted.epsilon() * field;
        let lost = f64::max(error * error - rounding * rounding, 1e-6 * error * error).sqrt();
        let factor = match of_vectors * field / lost {
            factor if factor.is_finite() => factor,
            _ => 1.0,
        };
        self.partial.resize(count)?;
        let view = ColumnView {
            squares: self.field.pointer(),
            sums,
            order,
            error: self.partial.pointer(),
            factor,
            rounding: predicted.epsilon() / predicted.per_field(),
            unscale: predicted.per_field() * unscale,
            count: count as u32,
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(gpu.stream(), "guard_errors", count.div_ceil(TILE) as u32, TILE as u32, &view)? };
        gpu.finish()?;
        self.partial.download_first(count)
    }
}
