//! The bodies of a periodic box: where they lie in it, and what is not harmonic of their potential.

use cust::memory::DevicePointer;
use fmm_core::accuracy::{field_of_ions, potential_of_ions};
use fmm_core::boundary::{Background, Moments, PeriodicBox};
use fmm_core::math::blocked::added;
use fmm_core::{Error, Weights};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::direct::Output;
use crate::geometry::DeviceTree;
use crate::inputs::Ends;
use crate::view::Points;
use crate::view::{BoxView, MOMENTS, TILE, WEIGHTS};

/// Blocks that share the bodies where their moments are summed. The bits of a sum depend on this and not on the device.
const SHARES: usize = 512;

/// Places in the box of the bodies of a sum, and their moments.
#[derive(Default)]
pub struct Boxed {
    /// Of the sources, and of the targets where they are others. `[n][3]`
    wrapped: [Buffer<f64>; 2],
    /// The same in the cube that a box is stretched to where trees are made; empty where boxes are cubes.
    stretched: [Buffer<f64>; 2],
    partial: Buffer<f64>,
    /// Of wrapped bodies about the middle of the box.
    inner: Moments,
    /// Σ |q|.
    magnitude: f64,
    /// Σ q².
    squares: f64,
    /// Of bodies as they are about the origin.
    outer: Moments,
}

/// What the kernels need of a box.
fn of(cell: &PeriodicBox) -> BoxView {
    BoxView {
        side: cell.side,
        stretch: cell.side.map(|s| cell.longest() / s),
        middle: cell.side.map(|s| 0.5 * s),
        ..BoxView::default()
    }
}

/// Blocks that share so many bodies.
fn shares(n: usize) -> usize {
    n.div_ceil(TILE).clamp(1, SHARES)
}

/// Whether trees are made of stretched places.
fn stretches(cell: &PeriodicBox) -> bool {
    cell.side != [cell.longest(); 3]
}

impl Boxed {
    /// Bytes more of device memory than there are now for bodies of these ends.
    pub fn growth(&self, cell: &PeriodicBox, ends: Ends) -> usize {
        let each = [Some(ends.sources.n), ends.targets.map(|t| t.n)].map(|n| 3 * n.unwrap_or(0));
        let all = if stretches(cell) { 2 } else { 1 };
        all * self.wrapped.iter().zip(each).map(|(b, n)| b.growth(n)).sum::<usize>()
    }

    /// Finds the places of all bodies in the box, and the moments of the sources.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn wrap(&mut self, gpu: &Gpu, cell: &PeriodicBox, ends: Ends) -> Result<(), Error> {
        let blocks = shares(ends.sources.n);
        for (k, points) in [Some(ends.sources), ends.targets].into_iter().flatten().enumerate() {
            self.wrapped[k].resize(3 * points.n)?;
            self.stretched[k].resize(if stretches(cell) { 3 * points.n } else { 0 })?;
            if points.n == 0 {
                continue;
            }
            self.partial.resize(blocks * MOMENTS)?;
            let view = BoxView {
                position: points.position,
                strength: if k == 0 { points.strength } else { DevicePointer::null() },
                wrapped: self.wrapped[k].pointer(),
                stretched: self.stretched[k].pointer(),
                partial: self.partial.pointer(),
                n: points.n as u64,
                ..of(cell)
            };
            let blocks = if k == 0 { blocks } else { points.n.div_ceil(TILE) };
            // SAFETY: all arrays are of the points' number, and there is a share for each block.
            unsafe { gpu.kernels().launch(gpu.stream(), "box_wrap", blocks as u32, TILE as u32, &view)? };
        }
        (self.inner, self.outer, self.magnitude, self.squares) = Default::default();
        if ends.sources.n == 0 {
            return Ok(());
        }
        gpu.finish()?;
        for s in self.partial.download()?.as_chunks::<MOMENTS>().0 {
            self.inner.charge += s[0];
            self.inner.second += s[4];
            self.magnitude += s[5];
            self.outer.second += s[9];
            self.squares += s[10];
            for d in 0..3 {
                self.inner.dipole[d] += s[1 + d];
                self.outer.dipole[d] += s[6 + d];
            }
        }
        Ok(())
    }

    /// The bodies in the box.
    pub fn ends(&self, ends: Ends) -> Ends {
        let at = |k: usize, points: Points| Points { position: self.wrapped[k].pointer(), ..points };
        Ends { sources: at(0, ends.sources), targets: ends.targets.map(|t| at(1, t)), ..ends }
    }

    /// Positions that trees are made of: of the sources, and of the targets where they are others.
    pub fn places(&self, cell: &PeriodicBox, ends: Ends) -> (&Buffer<f64>, Option<&Buffer<f64>>) {
        let all = if stretches(cell) { &self.stretched } else { &self.wrapped };
        (&all[0], ends.targets.map(|_| &all[1]))
    }

    /// Q of the sources.
    pub fn charge(&self) -> f64 {
        self.inner.charge
    }

    /// |Q| over Σ |q|.
    pub fn imbalance(&self) -> f64 {
        if self.magnitude > 0.0 { self.inner.charge.abs() / self.magnitude } else { 0.0 }
    }

    /// What the surroundings do: the moments of the sources as they are, without the charge, of which rounding is left.
    pub fn outer(&self) -> Moments {
        Moments { charge: 0.0, ..self.outer }
    }

    /// What sums with expansions get at last.
    pub fn background(&self, cell: &PeriodicBox) -> Background {
        Background::of(cell, &self.inner, &self.outer())
    }

    /// [`field_of_ions`] of so many sources.
    pub fn field_of_ions(&self, cell: &PeriodicBox, sources: usize) -> f64 {
        field_of_ions(cell.volume(), sources, self.squares)
    }

    /// [`potential_of_ions`] of so many sources.
    pub fn potential_of_ions(&self, cell: &PeriodicBox, sources: usize) -> f64 {
        potential_of_ions(cell.volume(), sources, self.squares)
    }

    /// How much errors of one size at all of these targets count in what was summed.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn weights(&mut self, gpu: &Gpu, cell: &PeriodicBox, ends: Ends, output: Output) -> Result<Weights, Error> {
        let (targets, field) = (ends.at().n, self.field_of_ions(cell, ends.sources.n));
        let blocks = shares(targets);
        self.partial.resize(blocks * WEIGHTS)?;
        let view = BoxView {
            partial: self.partial.pointer(),
            field: output.field,
            potential: output.potential,
            least_square: Weights::least_square(field),
            n: targets as u64,
            ..BoxView::default()
        };
        // SAFETY: both arrays are of the targets' number, and there is a share for each block.
        unsafe { gpu.kernels().launch(gpu.stream(), "box_weights", blocks as u32, TILE as u32, &view)? };
        let shares = self.partial.read(gpu.stream())?;
        let sums = added(shares.as_chunks::<WEIGHTS>().0.iter().copied());
        Ok(Weights::of(sums, targets, field))
    }

    /// Queues the adding of what is not harmonic of the potential, (2π/3V) Σ q |x − x_j|² (de Leeuw, Perram & Smith 1980), where `harmonic`, and of
    /// the surroundings, in the caller's order.
    ///
    /// # Errors
    /// [`Error::Device`] if the driver fails.
    pub fn finish(
        &self,
        gpu: &Gpu,
        cell: &PeriodicBox,
        ends: Ends,
        harmonic: bool,
        output: Output,
    ) -> Result<(), Error> {
        let at = ends.at();
        if at.n == 0 {
            return Ok(());
        }
        let c = if harmonic { 2.0 * std::f64::consts::PI / (3.0 * cell.volume()) } else { 0.0 };
        let around = cell.depolarisation().unwrap_or(0.0);
        let view = BoxView {
            position: at.position,
            wrapped: self.wrapped[usize::from(ends.targets.is_some())].pointer(),
            field: output.field,
            potential: output.potential,
            charge: c * self.inner.charge,
            dipole: self.inner.dipole.map(|d| c * d),
            second: c * self.inner.second,
            outer_dipole: self.outer.dipole.map(|d| around * d),
            outer_second: around * self.outer.second,
            n: at.n as u64,
            ..of(cell)
        };
        // SAFETY: all arrays are of the targets' number.
        unsafe { gpu.kernels().launch(gpu.stream(), "box_finish", at.n.div_ceil(TILE) as u32, TILE as u32, &view) }
    }
}

/// Queues the return of the centers of cells, made in the cube that a box is stretched to, to the box.
///
/// # Errors
/// [`Error::Device`] if the driver fails.
pub fn unstretch(gpu: &Gpu, cell: &PeriodicBox, tree: &DeviceTree) -> Result<(), Error> {
    if !stretches(cell) {
        return Ok(());
    }
    let n = tree.cells();
    let view = BoxView { center: tree.center.pointer().cast(), n: n as u64, ..of(cell) };
    // SAFETY: there are so many cells.
    unsafe { gpu.kernels().launch(gpu.stream(), "box_centers", n.div_ceil(TILE) as u32, TILE as u32, &view) }
}
