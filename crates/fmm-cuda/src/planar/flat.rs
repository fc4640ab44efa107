//! Particles of a run in the plane: sums at their present positions, where these are.

use cust::memory::DevicePointer;
use fmm_core::accuracy::Strengths;
use fmm_core::bodies::coincident_pairs;
use fmm_core::planar::{Blob, Kernel, Request};
use fmm_core::{Choice, Error, Kept, Method, Settings, Stage, StageTimes};

use super::flow::SHARES;
use super::trial::{self, Arrays, Output};
use super::view::{FLAT_FOUND, FlattenView, THREADS};
use super::{Inputs, fits, policy};
use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::launch;

/// What a store in the plane has in place of octrees.
pub struct Flat {
    kernel: Kernel,
    blob: Blob,
    /// Points of the last sum, and the strengths.
    inputs: Inputs,
    arrays: Arrays,
    found: Buffer<f64>,
    size: Strengths,
    /// Whether the last sum was direct.
    direct: bool,
}

impl Flat {
    /// Of no particles.
    ///
    /// # Errors
    /// A blob without a length.
    pub fn new(kernel: Kernel, blob: Blob) -> Result<Self, Error> {
        blob.check()?;
        Ok(Flat {
            kernel,
            blob,
            inputs: Inputs::default(),
            arrays: Arrays::default(),
            found: Buffer::new(),
            size: Strengths::of(&[]),
            direct: true,
        })
    }

    /// Sets the length of the blobs.
    pub fn set_core(&mut self, length: f64) {
        self.blob = self.blob.with_length(length);
    }

    /// Whether sums have a potential.
    pub fn has_potential(&self) -> bool {
        self.kernel == Kernel::Log
    }

    /// Takes the strengths of other particles, and refuses what sums of them would be refused.
    ///
    /// # Errors
    /// Those of the choice of a method, [`Error::Unsupported`] for 2³¹ particles, [`Error::Device`] without the memory.
    pub fn take(&mut self, gpu: &Gpu, settings: &Settings, strength: &[f64]) -> Result<(), Error> {
        *self = Flat::new(self.kernel, self.blob)?;
        fits(gpu, strength.len(), strength.len())?;
        self.size = Strengths::of(&[strength]);
        self.inputs.strengths[0].upload(strength)?;
        gpu.settle()?;
        policy::choose(&self.request(settings, strength.len(), 1.0)?).map(|_| ())
    }

    fn request(&self, settings: &Settings, n: usize, extent: f64) -> Result<Request, Error> {
        Request::new(settings, self.kernel, self.blob, (n, None), &[self.size], extent)
    }

    /// Sums at the particles' positions, `[n][3]`, until the tolerance is kept, as [`trial::keep`]; none if one of
    /// these is no number.
    ///
    /// # Errors
    /// Those of [`trial::keep`].
    pub fn sum(
        &mut self,
        gpu: &Gpu,
        settings: &Settings,
        position: DevicePointer<f64>,
        (potential, field): (&mut Buffer<f64>, &Buffer<f64>),
        kept: Option<Kept>,
        times: &mut StageTimes,
    ) -> Result<Option<(Choice, Option<Kept>)>, Error> {
        let n = self.inputs.strengths[0].len();
        let Some(extent) = times.time_more(Stage::Tree, || self.flatten(gpu, position, n))? else { return Ok(None) };
        let request = self.request(settings, n, extent)?;
        potential.resize(if self.has_potential() { n } else { 0 })?;
        let output = Output { potential: potential.pointer(), field: field.pointer(), width: 3 };
        let (choice, kept) = trial::keep(gpu, &request, &self.inputs, &mut self.arrays, output, kept, times)?;
        gpu.finish()?;
        self.direct = choice.method == Method::Direct;
        Ok(Some((choice, kept)))
    }

    /// Takes x and y. Returns the longer side of the rectangle around them, or `None` if a
    /// coordinate is not finite.
    fn flatten(&mut self, gpu: &Gpu, position: DevicePointer<f64>, n: usize) -> Result<Option<f64>, Error> {
        self.inputs.sources.resize(2 * n)?;
        if n == 0 {
            return Ok(Some(0.0));
        }
        let blocks = n.div_ceil(THREADS).min(SHARES);
        self.found.resize(FLAT_FOUND * blocks)?;
        let (points, found) = (self.inputs.sources.pointer(), self.found.pointer());
        let view = FlattenView { position, points, found, n: n as u64 };
        // SAFETY: all arrays have the lengths that the view says, with a place for each block.
        unsafe { launch(gpu, "planar_flatten", blocks, THREADS, &view)? };
        gpu.finish()?;
        let found = self.found.download()?;
        let largest = |k: usize| found.iter().skip(k).step_by(FLAT_FOUND).copied().fold(f64::NEG_INFINITY, f64::max);
        if largest(4) > 0.0 {
            return Ok(None);
        }
        Ok(Some((largest(0) + largest(2)).max(largest(1) + largest(3))))
    }

    /// Pairs of particles at the same place in the last sum; none if the copy fails.
    pub fn coincident_pairs(&self) -> u64 {
        // Where no coordinate is there twice along one of the axes none coincide.
        if !self.direct && self.arrays.may_coincide(false).is_ok_and(|may| !may) {
            return 0;
        }
        self.inputs.sources.download().map_or(0, |flat| coincident_pairs(flat.as_chunks::<2>().0))
    }
}
