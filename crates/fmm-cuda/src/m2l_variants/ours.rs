//! M2L as sums have it, for comparison with the variants.

use std::time::Duration;

use cust::memory::DevicePointer;
use fmm_core::plan::OctreePlan;
use fmm_core::{Boundary, Choice, Error, Family, Method, PeriodicBox, Precision, Settings, Stage, StageTimes};

use crate::buffer::Buffer;
use crate::direct::Output;
use crate::fmm::{Fmm, Planned};
use crate::inputs::Inputs;
use crate::{DeviceWork, Gpu};

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
