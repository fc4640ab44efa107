//! The error of a sum over all images.

use cust::memory::DevicePointer;
use fmm_core::Error;
use fmm_core::boundary::{Moments, PeriodicBox};
use fmm_core::ewald::{self, Sums};
use fmm_core::guard::{Norms, Sample, sample_size};

use super::{Guard, drawn};
use crate::Gpu;
use crate::error_field::Expected;
use crate::ewald::{Picked, Request};
use crate::view::BOX_ROW;

/// The sums of a guard in a box have this part of the tolerance as their error.
pub const PART: f64 = 0.05;

/// A sum over all images that is to be measured.
pub struct MeasuredInBox {
    /// What Ewald's sum needs, whose sources have begun.
    pub request: Request,
    /// Number of targets.
    pub targets: usize,
    /// The targets in the caller's order, as they are.
    pub position: DevicePointer<f64>,
    /// What was found, in the caller's order.
    pub found: crate::direct::Output,
    /// The root mean square of the field that was found, over all targets.
    pub rms: f64,
    /// Of the sources as they are, of no charge.
    pub outer: Moments,
}

impl Guard {
    /// The norms of the errors of a sum over all images on a sample of its targets, as [`Sample::errors_in_box`] defines
    /// them, and what the driver compares with the tolerance.
    pub fn error_in_box(
        &mut self,
        gpu: &Gpu,
        cell: &PeriodicBox,
        sum: &MeasuredInBox,
        expected: Option<Expected>,
    ) -> Result<(Norms, f64), Error> {
        let targets = sample_size(sum.targets);
        self.pick(gpu, sum.targets, targets, (expected, false))?;
        let picked = Picked {
            picked: (self.picked.pointer(), targets),
            weight: self.weight.pointer(),
            position: sum.position,
            found: sum.found,
        };
        self.ewald.some(gpu, sum.request, picked)?;
        gpu.finish()?;
        let rows = self.ewald.out.download()?;
        let (mut places_drawn, mut exact) = (vec![], Sums::default());
        let (mut places, mut potential, mut field) = (vec![], vec![], vec![]);
        for row in rows.as_chunks::<BOX_ROW>().0.iter().filter(|row| row[9] != 0.0) {
            places_drawn.push(drawn(places_drawn.len(), row[9]));
            exact.potential.push(row[0]);
            exact.field.push([row[1], row[2], row[3]]);
            exact.largest.push(row[4]);
            potential.push(row[5]);
            field.push([row[6], row[7], row[8]]);
            places.push([row[10], row[11], row[12]]);
        }
        ewald::depolarise(cell, &sum.outer, &places, &mut exact.potential, &mut exact.field);
        let sample = Sample::drawn(places_drawn, [0.0; 2]);
        let (norms, potential) = sample.errors_in_box(&exact, &potential, &field, Some(sum.rms));
        Ok((norms, norms.judged().max(potential)))
    }
}
