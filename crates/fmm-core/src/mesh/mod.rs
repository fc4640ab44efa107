//! Ewald's sum with a mesh: pairs within a cut-off, all else by Fourier transforms of strengths on a mesh.
//!
//! The kernel is split by a prolate spheroidal wave function ψ_c (Liang, Lu, Barnett, Greengard &
//! Jiang 2025): 1/r less I(u)/(C r) is zero from u = r/r_c = 1 on, with I(u) = ∫₀ᵘψ_c and C = I(1);
//! the rest has the waves 4π/k² ψ_c(k r_c/c) of k ≤ c/r_c, and no others.

pub(crate) mod cells;
mod near;
pub mod recipe;
mod split;
mod transform;
mod window;

use rayon::prelude::*;
use realfft::FftNum;

use crate::boundary::{Moments, PeriodicBox};
use crate::ewald::depolarise;
use crate::math::scale::strength_scale;
use crate::math::{CollectVec, Number, Real};
use crate::tree::sort::{Item, by_key};
use crate::{Precision, Softening, Stage, StageTimes};
pub use cells::columns;
use near::Near;
pub use near::{Far, MARGIN, MOST_LOOKED_AT, Neighbours, TERMS};
pub use recipe::Recipe;
pub use split::{Influence, Split};
use transform::Transform;
use window::Placed;
pub use window::{MOST_POINTS, Window};

/// Rounds to the precision of a sum.
#[inline(always)]
fn real<T: Real>(x: f64) -> T {
    <T as Number>::from_f64(x)
}

/// What a sum with a mesh gives.
pub struct Sums {
    /// Σ q K over all images. `[targets]`
    pub potential: Vec<f64>,
    /// −∇ of it. `[targets]`
    pub field: Vec<[f64; 3]>,
    /// Pairs of sources at bitwise the same place.
    pub coincident_pairs: u64,
    /// Which bodies are close together.
    pub neighbours: Neighbours,
}

/// Points in the order of their keys, those of one key in their own order.
fn sorted_by(points: &[[f64; 3]], key: impl Fn(&[f64; 3]) -> usize + Sync) -> Vec<Item> {
    let item = |(i, x): (usize, &[f64; 3])| Item { key: key(x) as u64, index: i as u32 };
    let mut items = points.par_iter().enumerate().map(item).collect_vec();
    let largest = items.par_iter().map(|i| i.key).max().unwrap_or(0);
    by_key(&mut items, u64::BITS - largest.leading_zeros());
    items
}

/// A sum with a mesh over a box.
#[derive(Debug, Clone, Copy)]
pub struct Mesh {
    /// The box.
    pub cell: PeriodicBox,
    /// None, or a spline that ends within the cut-off.
    pub softening: Softening,
    /// Window, waves and mesh.
    pub recipe: Recipe,
    /// Pairs up to this distance are summed one by one.
    pub cutoff: f64,
    /// `Mixed`: pairs in single, mesh in double.
    pub precision: Precision,
    /// Pairs within so many cut-offs are too close for single precision.
    pub closest: f64,
}

/// Points as they are wrapped into the box, and as they were given.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// In the box.
    pub wrapped: &'a [[f64; 3]],
    /// Anywhere.
    pub given: &'a [[f64; 3]],
}

/// Sides of a box, sources with strengths, and targets if they are others; in the units of a sum.
type Set<'a> = ([f64; 3], (&'a [[f64; 3]], &'a [f64]), Option<&'a [[f64; 3]]>);

impl Mesh {
    /// Potential and field of the sources at `targets`, or at themselves, none of which sees itself
    /// but its images. Zero if the sum is cancelled.
    pub fn sums(&self, sources: Places, strengths: &[f64], targets: Option<Places>, times: &mut StageTimes) -> Sums {
        let split = Split::of(self);
        let (scale, unit) = (split.scale, strength_scale(strengths));
        let small = |points: &[[f64; 3]]| points.par_iter().map(|x| x.map(|c| c * scale)).collect_vec();
        let (x, q) = (small(sources.wrapped), strengths.par_iter().map(|q| q * unit).collect_vec());
        let at = targets.map(|t| small(t.wrapped));
        let far_kernel = split.far();
        let softening = self.softening.scaled(scale);

        let set = (split.sides, (&x[..], &q[..]), at.as_deref());
        let (neighbours, near, coincident_pairs) = match self.precision {
            Precision::F32 | Precision::Mixed => self.near::<f32>(&far_kernel, softening, set, times),
            _ => self.near::<f64>(&far_kernel, softening, set, times),
        };
        if times.cancel().is_set() {
            let n = at.as_ref().map_or(x.len(), Vec::len);
            return Sums { potential: vec![0.0; n], field: vec![[0.0; 3]; n], coincident_pairs: 0, neighbours };
        }
        let far = match self.precision {
            Precision::F32 => self.far::<f32>(&split, set, times),
            _ => self.far::<f64>(&split, set, times),
        };
        times.time_more(Stage::Output, || {
            let n = far.1.len();
            let mut sums = vec![[0.0; 4]; n];
            neighbours.targets().iter().zip(&near).for_each(|(&i, s)| sums[i as usize] = s.0);
            far.0.iter().zip(&far.1).for_each(|(&i, s)| (0..4).for_each(|k| sums[i as usize][k] += s[k]));
            let charge: f64 = q.iter().sum();
            let background = split.background() * charge;
            let (back, per_length) = (scale / unit, scale * scale / unit);
            let own = if targets.is_none() { Split::own(softening) } else { 0.0 };
            let mut potential = sums
                .par_iter()
                .enumerate()
                .map(|(i, s)| (s[0] - background - if own > 0.0 { own * q[i] } else { 0.0 }) * back)
                .collect_vec();
            let mut field = sums.par_iter().map(|s| [s[1], s[2], s[3]].map(|c| c * per_length)).collect_vec();
            let moments = Moments::of(sources.given, strengths, [0.0; 3]);
            depolarise(&self.cell, &moments, targets.unwrap_or(sources).given, &mut potential, &mut field);
            Sums { potential, field, coincident_pairs, neighbours }
        })
    }

    /// The targets of sums of pairs within the cut-off, these sums, and pairs of sources at one place.
    fn near<T: Real>(
        &self,
        far: &Far,
        softening: Softening,
        (sides, (x, q), at): Set,
        times: &mut StageTimes,
    ) -> (Neighbours, Vec<near::Sum>, u64) {
        let single = T::WIDTH != f64::WIDTH;
        let closest = if single { self.closest } else { 0.0 };
        let near = times.time(Stage::Tree, || Near::<T>::new(sides, far, (softening, closest), (x, q), at));
        let cancel = times.cancel().clone();
        let mut sums = times.time(Stage::P2P, || near.sums(&cancel));
        let again: Vec<u32> = (0..sums.len() as u32).filter(|&i| sums[i as usize].1).collect();
        if !again.is_empty() {
            // Single precision loses the digits of such distances.
            times.time_more(Stage::P2P, || {
                let wide = Near::<f64>::new(sides, far, (softening, 0.0), (x, q), at);
                again.iter().zip(wide.sums_at(&again)).for_each(|(&i, sum)| sums[i as usize] = sum);
            });
        }
        let coincident = times.time_more(Stage::Tree, || near.coincident_pairs(x));
        (times.time_more(Stage::Tree, || near.neighbours()), sums, coincident)
    }

    /// The far kernel's sums, and the target of each.
    fn far<T: Real + FftNum>(
        &self,
        split: &Split,
        (sides, (x, q), at): Set,
        times: &mut StageTimes,
    ) -> (Vec<u32>, Vec<[f64; 4]>) {
        let (counts, Recipe { points, oversampling, .. }) =
            (self.recipe.counts(self.cutoff, self.cell.side), self.recipe);
        let window = Window::<T>::new(points, oversampling);
        let placed = times.time_more(Stage::Tree, || Placed::<T>::new(counts, points, sides, x));
        let planes = times.time(Stage::Spread, || window::spread(&window, &placed, q));
        let planes = times.time(Stage::Fft, || {
            let influence = split.influence(self.recipe, &window, counts);
            Transform::new(counts, sides, influence.highest).apply(&planes, |m, square| influence.at(m, square))
        });
        let elsewhere = at.map(|at| times.time_more(Stage::Tree, || Placed::<T>::new(counts, points, sides, at)));
        let placed = elsewhere.unwrap_or(placed);
        let sums = times.time(Stage::Gather, || window::gather(&window, &placed, &planes));
        (placed.order, sums)
    }
}
