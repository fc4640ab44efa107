//! A sum on the device as the contract wants it: done with one choice after another, and measured.

use cust::memory::DevicePointer;
use fmm_core::contract::Attempt;
use fmm_core::cpu::{guard::Sample, power_of_two_below};
use fmm_core::plan::Plan;
use fmm_core::tree::Cube;
use fmm_core::{Choice, Error, Method, Precision, Settings, Softening, Stage, StageTimes};

use crate::buffer::Buffer;
use crate::direct::{self, Direct, Output, Request};
use crate::fmm::{Ends, Fmm, Shares};
use crate::order::Units;
use crate::{Gpu, guard};

/// A sum on the device, done with one choice after another.
pub struct DeviceAttempt<'a> {
    /// Where.
    pub gpu: &'a Gpu,
    /// The arrays of fast methods.
    pub fmm: &'a mut Fmm,
    /// The arrays of direct sums.
    pub direct: &'a mut Direct,
    /// Around everything.
    pub cube: Cube<3>,
    /// On the host.
    pub sources: &'a [[f64; 3]],
    /// On the host; none where the targets are the sources.
    pub targets: Option<&'a [[f64; 3]]>,
    /// The same on the device, `[n][3]`.
    pub positions: (&'a Buffer<f64>, Option<&'a Buffer<f64>>),
    /// And with strengths.
    pub ends: Ends,
    /// `[targets][3]`, on the device, in the caller's order.
    pub field: &'a mut Buffer<f64>,
    /// `[targets]`; none if it is not wanted now.
    pub potential: Option<&'a mut Buffer<f64>>,
    /// Of the kernel.
    pub softening: Softening,
    /// Where times go.
    pub times: &'a mut StageTimes,
    /// Where the present sum errs most.
    pub shares: Shares,
    /// The units of the present sum, if it is direct.
    pub arranged: Option<Units>,
    /// What went wrong in measuring.
    pub failed: Option<Error>,
    /// Of the last sum, if the trees know.
    pub coincident_pairs: Option<u64>,
}

impl DeviceAttempt<'_> {
    fn output(&self) -> Output {
        let potential = self.potential.as_ref().map_or(DevicePointer::null(), |p| p.pointer());
        Output { field: self.field.pointer(), potential }
    }

    fn direct_sum(&mut self, settings: &Settings, choice: &Choice) -> Result<(), Error> {
        let output = self.output();
        let (gpu, direct, ends) = (self.gpu, &mut *self.direct, self.ends);
        let request =
            Request { softening: settings.softening, precision: choice.precision, potential: self.potential.is_some() };
        let n = self.targets.map_or(self.sources.len(), <[_]>::len);
        let bytes = Direct::bytes(&request, self.sources.len(), self.targets.map(<[_]>::len));
        direct::fits(gpu, bytes, &format!("{} sources at {n} targets", self.sources.len()))?;
        let units = direct::units(self.cube, ends.largest);
        (self.arranged, self.shares) = (Some(units), vec![]);
        let sorted = choice.precision == Precision::F32;
        let same = ends.targets.is_none();
        self.times.time(Stage::Tree, || {
            direct.sources.arrange(gpu, ends.sources, units, sorted)?;
            if let Some(points) = ends.targets {
                direct.targets.arrange(gpu, points, units, sorted)?;
            }
            gpu.finish()
        })?;
        self.times.time(Stage::P2P, || {
            direct.sum(gpu, &request, units, same, output)?;
            gpu.finish()
        })
    }

    fn measure(&mut self) -> Result<f64, Error> {
        let at = self.targets.unwrap_or(self.sources);
        let sample = Sample::new(at.len(), &self.shares);
        let field = direct::triples(&self.field.download()?);
        let scale = power_of_two_below(2.0 / self.cube.side);
        let fast = self.fmm.source_bodies(self.targets.is_none());
        let (bodies, unit) = match self.arranged {
            // Direct sums have bodies of their own.
            Some(units) => (&self.direct.sources.bodies, units.scale),
            None => (fast, 1.0),
        };
        let (bodies, n) = (bodies.pointer(), self.sources.len());
        let sources = guard::Sources { bodies, n, strength_scale: self.ends.strength_scale(), unit, scale };
        guard::error(self.gpu, &sources, self.softening, &sample, at, &field)
    }
}

impl Attempt for DeviceAttempt<'_> {
    fn sum(&mut self, settings: &Settings, choice: Choice) -> Result<(), Error> {
        self.failed.take().map_or(Ok(()), Err)?;
        let at = self.targets.unwrap_or(self.sources);
        self.field.resize(3 * at.len())?;
        if let Some(potential) = &mut self.potential {
            potential.resize(at.len())?;
        }
        if choice.method == Method::Direct {
            return self.direct_sum(settings, &choice);
        }
        self.arranged = None;
        let fast = self.fmm.plan(self.gpu, settings, choice.clone(), self.cube, self.positions, self.times)?;
        let plan =
            fast.unwrap_or_else(|| Plan::new(settings, choice, self.cube, self.sources, self.targets, self.times));
        let output = self.output();
        let guarded = settings.order.is_none().then_some(at);
        let (gpu, ends) = (self.gpu, self.ends);
        self.shares = self.fmm.sum(gpu, settings, &plan, ends, output, guarded, self.times, None)?;
        self.coincident_pairs = Some(plan.source_tree().coincident_pairs);
        Ok(())
    }

    fn error(&mut self) -> f64 {
        let start = std::time::Instant::now();
        let measured = self.measure();
        self.times.add(Stage::Guard, start.elapsed());
        measured.unwrap_or_else(|e| {
            self.failed = Some(e);
            f64::INFINITY
        })
    }
}
