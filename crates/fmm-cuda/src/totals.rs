//! Sums over all particles for diagnostics, on the device: nothing but some thousand numbers comes to the host.

use cust::memory::DevicePointer;
use fmm_core::totals::{self, Extent};
use fmm_core::{Error, Totals as Sums};

use crate::Gpu;
use crate::buffer::Buffer;
use crate::geometry::{DIGITS, Key, Work, sort};
use crate::view::{CHUNK, Sphere, TILE, TOTALS, TotalsView};

/// Blocks that share the particles: the bits of the sums depend on this and not on the device.
const SHARES: usize = 1024;

/// Spheres that are queued before the host asks whether the last has been found.
const SPHERES: usize = 32;

/// Rounds after which a sphere of any size has shrunk to a point of any other: 0.9^(32 1024) is no number any more.
const ROUNDS: usize = 1024;

/// The arrays of the sums.
#[derive(Default)]
pub struct Totals {
    partial: Buffer<f64>,
    sphere: Buffer<Sphere>,
    outside: Buffer<u8>,
    key: Buffer<u64>,
    order: Buffer<u32>,
}

/// Particles in the caller's order, and what the last forces have found.
#[derive(Clone, Copy)]
pub struct State {
    /// `[n][3]`
    pub position: DevicePointer<f64>,
    /// `[n][3]`
    pub velocity: DevicePointer<f64>,
    /// `[n][3]`
    pub field: DevicePointer<f64>,
    /// `[n]`
    pub potential: DevicePointer<f64>,
    /// `[n]`
    pub mass: DevicePointer<f64>,
    /// `[n]`
    pub strength: DevicePointer<f64>,
    /// `[n]`
    pub coupling: DevicePointer<f64>,
    /// Number of particles.
    pub n: usize,
}

impl Totals {
    /// Bytes more of device memory than there are now for `n` particles.
    pub fn growth(&self, work: &Work, n: usize) -> usize {
        self.outside.growth(n) + self.key.growth(n) + self.order.growth(n) + work.sort_growth(n)
    }

    /// Sums over `state`.
    ///
    /// # Errors
    /// [`Error::Device`] without the memory, or if the driver fails.
    pub fn of(&mut self, gpu: &Gpu, work: &mut Work, state: State) -> Result<Sums, Error> {
        let n = state.n;
        if n == 0 {
            return Ok(Sums::default());
        }
        let shares = n.div_ceil(TILE).min(SHARES);
        self.partial.resize((shares * TOTALS).max(n.div_ceil(CHUNK)).max(2 * CHUNK))?;
        self.sphere.resize(1)?;
        let mut view = TotalsView {
            position: state.position,
            velocity: state.velocity,
            field: state.field,
            potential: state.potential,
            mass: state.mass,
            strength: state.strength,
            coupling: state.coupling,
            partial: self.partial.pointer(),
            sphere: self.sphere.pointer(),
            outside: DevicePointer::null(),
            order: DevicePointer::null(),
            key: DevicePointer::null(),
            n: n as u64,
            first: 0,
            shrink: totals::SHRINK,
            fewest: totals::fewest(n) as f64,
            massless: 0,
            shares: shares as u32,
        };
        launch(gpu, "totals_sums", shares, &view)?;
        let rows = self.found(gpu, shares * TOTALS)?;
        let (mut sum, mut largest) = ([0.0; TOTALS - 1], 0.0);
        for row in rows.as_chunks::<TOTALS>().0 {
            sum.iter_mut().zip(row).for_each(|(s, x)| *s += x);
            largest = f64::max(largest, row[TOTALS - 1]);
        }
        let three = |first: usize| std::array::from_fn(|d| sum[first + d]);
        view.massless = u32::from(largest == 0.0);
        let (first, weight): ([f64; 3], f64) = if largest == 0.0 { (three(13), n as f64) } else { (three(10), sum[9]) };
        // As on the CPU, where no mass is left there is no center.
        let extent = if weight > 0.0 {
            self.extent(gpu, work, &mut view, first.map(|c| c / weight))?
        } else {
            Extent::default()
        };
        Ok(Sums {
            kinetic: sum[0],
            interaction: sum[1],
            momentum: three(2),
            angular_momentum: three(5),
            clausius: sum[8],
            first_moment: three(16),
            second_moment: sum[19],
            extent,
        })
    }

    /// Centers and radii of particles of which `center_of_mass` is known.
    fn extent(
        &mut self,
        gpu: &Gpu,
        work: &mut Work,
        view: &mut TotalsView,
        center_of_mass: [f64; 3],
    ) -> Result<Extent, Error> {
        let (n, shares) = (view.n as usize, view.shares as usize);
        self.sphere.upload(&[Sphere { center: center_of_mass, ..Sphere::default() }])?;
        if n > totals::FEWEST {
            self.outside.resize(n)?;
            self.outside.fill(gpu.stream(), 0)?;
            view.outside = self.outside.pointer();
            // The queue does not wait for what is copied from the host.
            gpu.settle()?;
            launch(gpu, "totals_reach", shares, view)?;
            launch(gpu, "totals_first", 1, view)?;
            let (mut done, mut rounds) = (false, 0);
            while !done {
                rounds += 1;
                if rounds > ROUNDS {
                    return Err(Error::Device("the GPU finds no center of density: its sums make no sense".into()));
                }
                for _ in 0..SPHERES {
                    launch(gpu, "totals_sphere", shares, view)?;
                    launch(gpu, "totals_next", 1, view)?;
                }
                gpu.finish()?;
                done = self.sphere.download()?[0].done == 1;
            }
        }
        let density_center = self.sphere.download()?[0].center;
        let by = Key::Distance(density_center);
        sort(gpu, work, view.position, n, by, DIGITS, &mut self.key, &mut self.order)?;
        (view.key, view.order) = (self.key.pointer(), self.order.pointer());
        launch(gpu, "totals_chunks", n.div_ceil(CHUNK), view)?;
        let chunks = self.found(gpu, n.div_ceil(CHUNK))?;
        let total: f64 = chunks.iter().sum();
        let mut lagrangian = [0.0; 3];
        for (radius, share) in lagrangian.iter_mut().zip(totals::SHARES) {
            *radius = self.radius(gpu, view, &chunks, totals::reached(share, total))?;
        }
        Ok(Extent { center_of_mass, density_center, lagrangian })
    }

    /// The distance within which there is `wanted` of the mass, of which each of `chunks` has its part.
    fn radius(&mut self, gpu: &Gpu, view: &TotalsView, chunks: &[f64], wanted: f64) -> Result<f64, Error> {
        let mut sum = 0.0;
        for (c, mass) in chunks.iter().enumerate() {
            if sum + mass < wanted && c + 1 < chunks.len() {
                sum += mass;
                continue;
            }
            let first = c * CHUNK;
            let count = CHUNK.min(view.n as usize - first);
            launch(gpu, "totals_chunk", count.div_ceil(TILE), &TotalsView { first: first as u64, ..*view })?;
            let mut square = 0.0;
            for [mass, r2] in self.found(gpu, 2 * count)?.as_chunks::<2>().0 {
                (sum, square) = (sum + mass, *r2);
                if sum >= wanted {
                    break;
                }
            }
            return Ok(square.sqrt());
        }
        Ok(0.0)
    }

    /// The first numbers that blocks have found.
    fn found(&mut self, gpu: &Gpu, count: usize) -> Result<Vec<f64>, Error> {
        gpu.finish()?;
        self.partial.download_first(count)
    }
}

fn launch(gpu: &Gpu, name: &str, blocks: usize, view: &TotalsView) -> Result<(), Error> {
    // SAFETY: all arrays have the lengths that the view says.
    unsafe { gpu.kernels().launch(gpu.stream(), name, blocks as u32, TILE as u32, view) }
}
