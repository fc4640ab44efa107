//! Forces in addition to the sum, on the device: see [`fmm_core::forces`].

pub mod view;

use cust::memory::DevicePointer;
use fmm_core::boundary::PeriodicBox;
use fmm_core::forces::{External, Forces, LennardJones, Shape};
use fmm_core::{Error, ForceReport, Stage, StageTimes};

use self::view::{ExclusionView, ExternalView, ShortView};
use crate::Gpu;
use crate::boxed::Boxed;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::geometry::{Work, launch};
use crate::inputs::Ends;
use crate::mesh::InCells;
use crate::mesh::view::{BrickView, Lattice, NEAR_WARPS};

/// Threads of a block of the kernels that have a particle a thread.
const EACH: usize = 256;

/// What acts in addition to a sum, and its arrays.
#[derive(Default)]
pub struct Acting {
    /// What acts.
    pub forces: Forces,
    /// Energy and virial of the last forces between particles.
    pub force_report: ForceReport,
    ions: InCells,
    partial: Buffer<f64>,
    /// Excluded partners of each particle: `[n + 1]`, and as many as there are.
    start: Buffer<u32>,
    partner: Buffer<u32>,
    less: Buffer<f64>,
}

impl Acting {
    /// For these forces.
    pub fn new(forces: Forces) -> Self {
        Acting { forces, ..Acting::default() }
    }

    /// Makes ready for `n` particles.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if a copy fails.
    pub fn ready(&mut self, n: usize) -> Result<(), Error> {
        let pairs = &self.forces.exclusions;
        if pairs.is_empty() {
            return Ok(());
        }
        let mut partners: Vec<[u32; 2]> =
            pairs.iter().flat_map(|&[i, j]| [[i as u32, j as u32], [j as u32, i as u32]]).collect();
        partners.sort_unstable();
        let mut start = vec![0u32; n + 1];
        partners.iter().for_each(|[i, _]| start[*i as usize + 1] += 1);
        (0..n).for_each(|i| start[i + 1] += start[i]);
        self.start.upload(&start)?;
        self.partner.upload(&partners.iter().map(|p| p[1]).collect::<Vec<u32>>())?;
        self.less.resize(n)
    }

    /// What potentials of the last forces are too large by, at each particle; nothing where no pair is excluded.
    pub fn less(&self) -> Option<DevicePointer<f64>> {
        (!self.forces.exclusions.is_empty()).then(|| self.less.pointer())
    }

    /// Adds the forces to `field`, in the caller's order, of particles whose places in a periodic box `boxed` knows.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn add(
        &mut self,
        gpu: &Gpu,
        (work, boxed): (&mut Work, &Boxed),
        ends: Ends,
        field: &Buffer<f64>,
        times: &mut StageTimes,
    ) -> Result<(), Error> {
        if self.forces.is_none() || ends.sources.n == 0 {
            return Ok(());
        }
        times.time_more(Stage::P2P, || {
            self.force_report = ForceReport::default();
            if let Some(external) = self.forces.external {
                self.add_external(gpu, &external, ends, field)?;
            }
            if let (Some(pairs), Some(cell)) = (self.forces.short_range, self.forces.cell) {
                self.add_neighbours(gpu, work, &pairs, &cell, boxed, ends, field)?;
            }
            if !self.forces.exclusions.is_empty() {
                self.take_exclusions(gpu, ends, field)?;
            }
            gpu.finish()
        })
    }

    fn add_external(&self, gpu: &Gpu, external: &External, ends: Ends, field: &Buffer<f64>) -> Result<(), Error> {
        let square = |x: f64| x * x;
        let (shape, parameter) = match external.shape {
            Shape::Point { source, core_radius } => (0, [self.forces.constant * source, square(core_radius), 0.0]),
            Shape::Logarithmic { velocity, core_radius, flattening } => {
                (1, [-square(velocity), square(core_radius), square(flattening)])
            }
            Shape::Uniform { field } => (2, field),
        };
        let n = ends.sources.n;
        let view = ExternalView {
            position: ends.sources.position,
            field: field.pointer(),
            center: external.position,
            parameter,
            per_field: 1.0 / self.forces.constant,
            n: n as u32,
            shape,
        };
        // SAFETY: both arrays have three numbers for each particle.
        unsafe { launch(gpu, "external_field", n.div_ceil(EACH), EACH, &view) }
    }

    fn take_exclusions(&mut self, gpu: &Gpu, ends: Ends, field: &Buffer<f64>) -> Result<(), Error> {
        let n = ends.sources.n;
        self.partial.resize(2 * n)?;
        let (name, softening) = kernel(self.forces.softening, 1.0);
        let view = ExclusionView {
            position: ends.sources.position,
            strength: ends.sources.strength,
            start: self.start.pointer(),
            partner: self.partner.pointer(),
            field: field.pointer(),
            less: self.less.pointer(),
            partial: self.partial.pointer(),
            kinds: self.forces.short_range.map_or([[0.0; 4]; 4], |pairs| pairs.kinds()),
            sides: self.forces.cell.map_or([0.0; 3], |cell| cell.side),
            cutoff: self.forces.short_range.map_or(0.0, |pairs| pairs.cutoff),
            per_charge: 1.0 / self.forces.constant,
            softening,
            n: n as u32,
        };
        // SAFETY: all arrays have the lengths that the view says, and partners are particles.
        unsafe { launch(gpu, &format!("exclusions_{name}"), n.div_ceil(EACH), EACH, &view)? };
        gpu.finish()?;
        self.count_beside()
    }

    /// Adds the partial sums of energy and virial, in their order.
    fn count_beside(&mut self) -> Result<(), Error> {
        for part in self.partial.download()?.as_chunks::<2>().0 {
            self.force_report.energy += part[0];
            self.force_report.virial += part[1];
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the ends of one sum")]
    fn add_neighbours(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        pairs: &LennardJones,
        cell: &PeriodicBox,
        boxed: &Boxed,
        ends: Ends,
        field: &Buffer<f64>,
    ) -> Result<(), Error> {
        let n = ends.sources.n;
        let lattice = Lattice::of_pairs(cell.side, pairs.cutoff, n);
        self.ions.arrange(gpu, work, &lattice, boxed.ends(ends).sources, 1.0, false)?;
        let (scale, pairs) = (lattice.scale, pairs.scaled(lattice.scale));
        let brick = lattice.brick(pairs.cutoff, n, 1.0);
        let blocks = lattice.bricks(brick);
        self.partial.resize(2 * NEAR_WARPS * blocks as usize)?;
        let view = ShortView {
            bricks: BrickView::new(&lattice, brick, pairs.cutoff, &self.ions, &self.ions),
            order: self.ions.order.pointer(),
            field: field.pointer(),
            partial: self.partial.pointer(),
            kinds: pairs.kinds(),
            cutoff: pairs.cutoff,
            per_charge: scale / self.forces.constant,
        };
        let stream = gpu.stream();
        self.partial.fill(stream, 0)?;
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { gpu.kernels().launch(stream, "short_range", blocks, (32 * NEAR_WARPS) as u32, &view)? };
        gpu.finish()?;
        self.count_beside()
    }
}
