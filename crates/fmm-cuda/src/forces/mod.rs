//! Forces in addition to the sum, on the device: see [`fmm_core::forces`].

pub mod view;

use cust::memory::DevicePointer;
use fmm_core::boundary::PeriodicBox;
use fmm_core::forces::{External, Forces, LennardJones, Shape};
use fmm_core::math::blocked::added;
use fmm_core::{Error, ForceReport, Stage, StageTimes};

use self::view::{ExclusionView, ExternalView, PairTotalsView, ShortView};
use crate::Gpu;
use crate::boxed::Boxed;
use crate::buffer::Buffer;
use crate::direct::kernel;
use crate::geometry::{Work, launch};
use crate::inputs::Ends;
use crate::mesh::InCells;
use crate::mesh::view::{BrickView, Lattice, NEAR_WARPS};
use crate::view::TILE;

/// Blocks that add up energies and virials: their bits depend on this and not on the device.
const SHARES: usize = 64;

/// The cells of short-range forces.
struct ShortPairs {
    lattice: Lattice,
    /// In units of the lattice.
    law: LennardJones,
    /// Cells of a block, and how many blocks there are.
    brick: [u32; 3],
    blocks: u32,
}

impl ShortPairs {
    fn new(law: LennardJones, cell: &PeriodicBox, n: usize) -> Self {
        let lattice = Lattice::of_pairs(cell.side, law.cutoff, n);
        let law = law.scaled(lattice.scale);
        let brick = lattice.brick(law.cutoff, n, 1.0);
        ShortPairs { lattice, law, brick, blocks: lattice.bricks(brick) }
    }
}

/// What acts in addition to a sum, and its arrays.
#[derive(Default)]
pub struct Acting {
    /// What acts.
    pub forces: Forces,
    /// Energy and virial of the last forces between particles.
    pub force_report: ForceReport,
    ions: InCells,
    /// Energy and virial, of each warp that has pairs within the cut-off and then of each particle that has excluded ones.
    partial: Buffer<f64>,
    total: Buffer<f64>,
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
            if let Some(external) = self.forces.external {
                self.add_external(gpu, &external, ends, field)?;
            }
            let n = ends.sources.n;
            let pairs = self.forces.short_range.zip(self.forces.cell).map(|(law, cell)| ShortPairs::new(law, &cell, n));
            let warps = pairs.as_ref().map_or(0, |pairs| NEAR_WARPS * pairs.blocks as usize);
            let excluded = if self.forces.exclusions.is_empty() { 0 } else { n };
            self.partial.resize(2 * (warps + excluded))?;
            if let Some(pairs) = pairs {
                self.partial.fill(gpu.stream(), 0)?;
                self.add_neighbours(gpu, work, &pairs, boxed, ends, field)?;
            }
            if excluded > 0 {
                self.take_exclusions(gpu, ends, field, warps)?;
            }
            self.force_report = self.report(gpu)?;
            gpu.finish()
        })
    }

    /// Energy and virial of all pairs.
    fn report(&mut self, gpu: &Gpu) -> Result<ForceReport, Error> {
        let n = self.partial.len() / 2;
        if n == 0 {
            return Ok(ForceReport::default());
        }
        let blocks = n.div_ceil(TILE).min(SHARES);
        self.total.resize(2 * blocks)?;
        let view = PairTotalsView { partial: self.partial.pointer(), total: self.total.pointer(), n: n as u64 };
        // SAFETY: there are `n` shares, and totals for each block.
        unsafe { launch(gpu, "pair_totals", blocks, TILE, &view)? };
        let [energy, virial] = added(self.total.read(gpu.stream())?.as_chunks::<2>().0.iter().copied());
        Ok(ForceReport { energy, virial })
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
        unsafe { launch(gpu, "external_field", n.div_ceil(TILE), TILE, &view) }
    }

    /// The first `warps` energies and virials are others'.
    fn take_exclusions(&self, gpu: &Gpu, ends: Ends, field: &Buffer<f64>, warps: usize) -> Result<(), Error> {
        let n = ends.sources.n;
        let (name, softening) = kernel(self.forces.softening, 1.0);
        let view = ExclusionView {
            position: ends.sources.position,
            strength: ends.sources.strength,
            start: self.start.pointer(),
            partner: self.partner.pointer(),
            field: field.pointer(),
            less: self.less.pointer(),
            partial: self.partial.pointer().wrapping_add(2 * warps),
            kinds: self.forces.short_range.map_or([[0.0; 4]; 4], |pairs| pairs.kinds()),
            sides: self.forces.cell.map_or([0.0; 3], |cell| cell.side),
            cutoff: self.forces.short_range.map_or(0.0, |pairs| pairs.cutoff),
            per_charge: 1.0 / self.forces.constant,
            softening,
            n: n as u32,
        };
        // SAFETY: all arrays have the lengths that the view says, and partners are particles.
        unsafe { launch(gpu, &format!("exclusions_{name}"), n.div_ceil(TILE), TILE, &view) }
    }

    fn add_neighbours(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        &ShortPairs { lattice, law, brick, blocks }: &ShortPairs,
        boxed: &Boxed,
        ends: Ends,
        field: &Buffer<f64>,
    ) -> Result<(), Error> {
        self.ions.arrange(gpu, work, &lattice, boxed.ends(ends).sources, 1.0, false)?;
        let view = ShortView {
            bricks: BrickView::new(&lattice, brick, law.cutoff, &self.ions, &self.ions),
            order: self.ions.order.pointer(),
            field: field.pointer(),
            partial: self.partial.pointer(),
            kinds: law.kinds(),
            cutoff: law.cutoff,
            per_charge: lattice.scale / self.forces.constant,
        };
        // SAFETY: all arrays have the lengths that the view says.
        unsafe { launch(gpu, "short_range", blocks as usize, 32 * NEAR_WARPS, &view) }
    }
}
