//! The error of a sum on the device: what the guard is asked.

use cust::memory::DevicePointer;
use fmm_core::boundary::Background;
use fmm_core::comm::Solo;
use fmm_core::error_model::DOUBTED;
use fmm_core::guard::{Look, TRUSTED, sample_size};
use fmm_core::math::scale::power_of_two_below;
use fmm_core::prediction::Prediction;
use fmm_core::solve::Quantity;
use fmm_core::{Choice, Error, Method, PeriodicBox, Weights, accuracy};

use super::{Arrays, SpaceTrial, Summed};
use crate::Gpu;
use crate::boxed::Boxed;
use crate::buffer::Buffer;
use crate::error_field::{Alike, Expected, Predicted};
use crate::ewald;
use crate::guard::{self, Draw, Measured, MeasuredInBox, Repaired, Rows};
use crate::inputs::Ends;
use crate::order::Units;

impl SpaceTrial<'_> {
    /// The error of the present sum over all images.
    fn measure_in_box(&mut self, cell: &PeriodicBox) -> Result<f64, Error> {
        let output = self.output();
        let ends = self.inputs.ends();
        if ends.sources.n == 0 || ends.at().n == 0 {
            return Ok(0.0);
        }
        let weights = self.weights_in_box(cell)?;
        let Arrays { fmm, mesh, boxed, guard, .. } = &mut *self.arrays;
        let same = ends.targets.is_none();
        let ions = boxed.field_of_ions(cell, ends.sources.n);
        let background = boxed.background(cell);
        let predicted = if self.meshed.is_some() { None } else { fmm.predicted(self.tolerance, background) };
        let ([bodies, at], order, expected) = match self.meshed {
            Some(error) => {
                let (bodies, order) = (mesh.bodies(same), mesh.order(same));
                let alike = Alike {
                    field: output.field,
                    order,
                    bodies: [bodies[1], bodies[0]],
                    cells: mesh.cells(same),
                    same,
                    count: [ends.at().n, ends.sources.n],
                    strength_scale: ends.strength_scale(),
                    least_square: Weights::least_square(ions),
                    doubted: error * ions / (DOUBTED * self.tolerance),
                    reach: self.softening.newtonian_beyond(0.0),
                };
                (bodies, order, Some(Expected::Alike(alike)))
            }
            None => (fmm.bodies(same), fmm.order(), predicted.as_ref().map(Expected::Predicted)),
        };
        let request = ewald::Request { softening: self.softening, sources: bodies, targets: at, same, order };
        let (position, targets) = (ends.at().position, ends.at().n);
        let sharper = weights.sharper(boxed.potential_of_ions(cell, ends.sources.n));
        let sources = guarded(cell, boxed, boxed.ends(ends), self.tolerance / sharper);
        if !std::mem::replace(&mut self.begun, true) || sharper > 1.0 {
            guard.ewald.begin(self.gpu, self.gpu.stream(), ewald::Sources { single: sharper == 1.0, ..sources })?;
        }
        self.gpu.order(self.gpu.side(), self.gpu.stream())?;
        let (rms, outer) = (weights.rms(ions), boxed.outer());
        let sum = MeasuredInBox { request, targets, position, found: output, rms, outer };
        let (norms, error) = guard.error_in_box(self.gpu, cell, &sum, expected)?;
        self.norms = Some(norms);
        if !guard.ewald.single() || error <= TRUSTED * self.tolerance {
            return Ok(error);
        }
        // It may be the guard that errs: where forces cancel its single precision does. No sum is refused by that.
        let exact = ewald::Sources { single: false, ..sources };
        guard.ewald.begin(self.gpu, self.gpu.stream(), exact)?;
        let (norms, error) = guard.error_in_box(self.gpu, cell, &sum, expected)?;
        self.norms = Some(norms);
        Ok(error)
    }

    /// [`Boxed::weights`] of the present sum, added up once.
    pub(super) fn weights_in_box(&mut self, cell: &PeriodicBox) -> Result<Weights, Error> {
        if let Some(weights) = self.weights {
            return Ok(weights);
        }
        let (ends, output) = (self.inputs.ends(), self.output());
        let weights = self.arrays.boxed.weights(self.gpu, cell, ends, output)?;
        self.weights = Some(weights);
        Ok(weights)
    }

    pub(super) fn measure(&mut self, summed: &Summed, look: Look) -> Result<f64, Error> {
        if let Some(cell) = self.cell {
            return self.measure_in_box(&cell);
        }
        if self.quantity == Quantity::Velocity {
            return Ok(guard::error_of_velocity(&summed.columns));
        }
        let (sum, expected) = self.measured(summed, self.field.pointer());
        let whole = self.hessian.is_none();
        let mut rows = |exact| {
            let draw = Draw { look, whole, same_sample: exact, exact };
            self.arrays.guard.rows(self.gpu, self.softening, &sum, expected.as_ref(), draw)
        };
        let first = rows(false)?;
        let (drawn, single) = (if whole { vec![] } else { first.drawn.clone() }, first.single);
        let predicted = first.rms.is_some();
        let (mut norms, mut found) = first.norms();
        let closer = look.next(found / self.tolerance, sum.targets).filter(|_| predicted);
        let refused = found > TRUSTED * self.tolerance && closer.is_none();
        if single && refused {
            // It may be the guard that errs, as in a box: no sum is refused by its single precision.
            (norms, found) = rows(true)?.norms();
        }
        // Second derivatives of direct sums are in double precision.
        if self.hessian.is_none() || summed.units.is_some() {
            self.norms = Some(norms);
            return Ok(found);
        }
        let same = self.inputs.ends().targets.is_none();
        let Arrays { hessian, guard, .. } = &mut *self.arrays;
        let error = hessian.error(self.gpu, self.softening, &sum, (guard.picked(), &drawn), same)?;
        Ok(found.max(error))
    }

    /// Sums the worst targets of the present sum again, see [`Guard::repair`](crate::guard::Guard::repair).
    pub(super) fn sum_again(&mut self, summed: &Summed, choice: &Choice) -> Result<bool, Error> {
        let mendable = self.cell.is_none() && self.arrays.guard.predicts();
        let (sum, predicted) = self.measured(summed, self.field.pointer());
        let Some((norms, predicted)) = self.norms.zip(predicted).filter(|_| mendable) else { return Ok(false) };
        let Arrays { fmm, guard, .. } = &mut *self.arrays;
        let to = Repaired {
            order: fmm.order(),
            sums: fmm.sums(),
            field: self.field.pointer(),
            unscale: 1.0 / fmm.strength_scale(),
        };
        let most = accuracy::repairs(self.problem, choice);
        guard.repair(self.gpu, self.softening, (&sum, &predicted), (norms, self.tolerance, most), to)
    }

    /// The norm of the error of the present sum over that of its vectors, measured if the driver has not.
    pub(super) fn of_vectors(&mut self, summed: &Summed, choice: &Choice) -> Result<f64, Error> {
        if choice.is_exact() {
            return Ok(0.0);
        }
        if self.norms.is_none() {
            self.measure(summed, Look::First)?;
        }
        Ok(self.norms.map_or(0.0, |norms| norms.of_vectors))
    }

    /// What the guard finds of the present sum in open space, of one column of strengths, whose results are in `field` in the
    /// caller's order.
    pub(super) fn rows(
        &mut self,
        summed: &Summed,
        field: DevicePointer<f64>,
        same_sample: bool,
    ) -> Result<Rows, Error> {
        let (sum, predicted) = self.measured(summed, field);
        let draw = Draw { look: Look::First, whole: false, same_sample, exact: true };
        self.arrays.guard.rows(self.gpu, self.softening, &sum, predicted.as_ref(), draw)
    }

    /// The present sum for the guard, and for its error field.
    fn measured(&self, summed: &Summed, field: DevicePointer<f64>) -> (Measured, Option<Predicted>) {
        let Arrays { fmm, direct, .. } = &*self.arrays;
        let ends = self.inputs.ends();
        let scale = power_of_two_below(2.0 / self.cube.side);
        let (n, targets) = (ends.sources.n, ends.at().n);
        match summed.units {
            // Direct sums have bodies of their own.
            Some(Units { scale: unit, strength_scale, .. }) => {
                let position = ends.at().position;
                let bodies = direct.sources.bodies.pointer();
                let shared = false;
                let sum =
                    Measured { bodies, n, unit, scale, position, field, stride: 3, strength_scale, targets, shared };
                (sum, None)
            }
            // In the order of the tree, where strengths are scaled.
            None => {
                let [bodies, at] = fmm.bodies(ends.targets.is_none());
                let (position, field, shared) = (at.cast(), fmm.fields(), fmm.is_divided());
                let (unit, strength_scale, stride) = (1.0, 1.0, 4);
                let sum = Measured { bodies, n, unit, scale, position, field, stride, strength_scale, targets, shared };
                (sum, fmm.predicted(self.tolerance, Background::default()))
            }
        }
    }
}

/// The estimated errors of the last sum, whose choice and norm of the error over its vectors these are and whose results are
/// `field`, in the caller's order.
///
/// # Errors
/// [`Error::Device`] where memory lacks or the device fails.
pub fn errors(
    gpu: &Gpu,
    arrays: &mut Arrays,
    tolerance: f64,
    (choice, of_vectors): (&Choice, f64),
    field: &Buffer<f64>,
) -> Result<Vec<f64>, Error> {
    if field.is_empty() {
        return Ok(vec![]);
    }
    let Arrays { fmm, guard, .. } = arrays;
    let meshed = choice.method == Method::Mesh;
    let by_expansions = choice.order.is_some() && !meshed && guard.predicts();
    if let Some(predicted) = fmm.predicted(tolerance, Background::default()).filter(|_| by_expansions) {
        let to = (fmm.order(), fmm.sums(), 1.0 / fmm.strength_scale());
        return guard.errors(gpu, &predicted, of_vectors, to, field.len() / 3);
    }
    let (sums, epsilon) = (&field.download_threes()?, choice.precision.epsilon());
    // Of a mesh the same everywhere, as on the cores; what a sample finds scales it.
    let largest = sums.as_flattened().iter().fold(0.0, |m: f64, c| m.max(c.abs()));
    let error = &if meshed { vec![tolerance * largest; sums.len()] } else { vec![] };
    Ok(Prediction { comm: &Solo, sums, error, largest_term: &[], epsilon, relative: true }.calibrated(of_vectors))
}

/// The sources of the sums of a guard, whose places in the box are those of `within`.
pub(super) fn guarded<'a>(cell: &'a PeriodicBox, boxed: &Boxed, within: Ends, tolerance: f64) -> ewald::Sources<'a> {
    ewald::Sources {
        cell,
        accuracy: f64::max(guard::PART * tolerance, fmm_core::ewald::EXACT),
        single: true,
        points: within.sources,
        strength_scale: within.strength_scale(),
        charge: boxed.charge(),
        targets: sample_size(within.at().n),
    }
}
