//! Translations in the plane alone: what `nbody bench m2l2d` times (Cruz, Layton & Barba, Tables 2 and 3).

use rayon::prelude::*;

use super::pyramid::{Pyramid, exponent_above};
use super::series::Series;
use super::shifts::M2l;
use super::{Kernel, Lists, Rule};
use crate::math::Real;
use crate::math::counted::count;
use crate::math::simd::dispatch;
use crate::workload::Work;
use crate::{Csr, Precision};

/// Target boxes of a task.
const TASK: usize = 16;

/// The rows of the last boxes of a pyramid.
pub struct Geometry {
    /// The boxes.
    pub tree: Pyramid,
    /// Whom each meets.
    pub rows: Csr<u32>,
    /// The first of those that are meant.
    pub first: usize,
}

impl Geometry {
    /// At least so many translations.
    pub fn new(translations: usize) -> Self {
        // A box meets 27 others, fewer at the rim.
        let levels = (1..12usize).find(|&l| translations <= 20 << (2 * l)).unwrap_or(12);
        let points = 1 << (2 * levels);
        let place = |i| [number(i, 0.754_877_666_246_692_8), number(i, 0.569_840_290_998_053_2)];
        let x: Vec<[f64; 2]> = (0..points).map(place).collect();
        let mut tree = Pyramid::new(&x, 1.0, levels);
        let rule = Rule { theta: 0.5, min_distance: 0.0, swap_min_points: usize::MAX };
        let rows = Lists::between_pyramids(&tree, &tree, rule).m2l;
        // From the leaves on, which are the last boxes.
        let mut first = tree.len();
        while first > 0 && rows.start[tree.len()] - rows.start[first] < translations as u64 {
            first -= 1;
        }
        // Leaves of one point have no size to be their unit. In this one all ratios of a unit and a distance are at
        // most one.
        let all = (first..tree.len()).flat_map(|target| rows.row(target).iter().map(move |&s| (target, s as usize)));
        let way = |(a, b): (usize, usize)| [0, 1].map(|d| tree.center[d][a] - tree.center[d][b]);
        let square = all.map(way).map(|[x, y]| x * x + y * y).fold(f64::INFINITY, f64::min);
        tree.exponent.fill(exponent_above(square.sqrt()) - 1);
        Geometry { tree, rows, first }
    }

    /// How many translations there are.
    pub fn units(&self) -> usize {
        (self.rows.start[self.tree.len()] - self.rows.start[self.first]) as usize
    }
}

/// Numbers in [0, 1) that look random.
pub fn number(i: usize, step: f64) -> f64 {
    (i as f64 * step + 0.3).fract()
}

/// A part of a coefficient: number 2 (box · terms + term) is real, the next one imaginary.
pub fn coefficient(i: usize) -> f64 {
    number(i, 0.618_033_988_749_894_9) - 0.5
}

/// M2L of the harmonic kernel with `order` terms in `precision`, which is single or else double, at least
/// `translations` of them: the rows of as many boxes of a pyramid.
pub fn translations(order: usize, precision: Precision, translations: usize) -> Box<dyn Work> {
    match precision {
        Precision::F32 => Box::new(Translations::<f32>::new(order, translations)),
        _ => Box::new(Translations::<f64>::new(order, translations)),
    }
}

struct Translations<T> {
    series: Series<T>,
    geometry: Geometry,
    multipoles: Vec<T>,
    locals: Vec<T>,
}

impl<T: Real> Translations<T> {
    fn new(order: usize, translations: usize) -> Self {
        let geometry = Geometry::new(translations);
        let series = Series::<T>::new(Kernel::Harmonic, order);
        let (n, boxes) = (series.len(), geometry.tree.len());
        // Real parts of all terms, then imaginary ones, up to whole vectors.
        let part = |i: usize| {
            let (cell, side, term) = (i / n, i % n / series.part, i % series.part);
            if term < order { T::from_f64(coefficient(2 * (cell * order + term) + side)) } else { T::ZERO }
        };
        Translations {
            multipoles: (0..boxes * n).map(part).collect(),
            locals: vec![T::ZERO; (boxes - geometry.first) * n],
            series,
            geometry,
        }
    }

    fn of<'a>(&'a self, i: usize, locals: &'a mut [T]) -> M2l<'a, T> {
        let Translations { series, geometry: Geometry { tree, rows, first }, multipoles, .. } = self;
        M2l { series, trees: [tree, tree], rows, global: 0, first: first + i * TASK, multipoles, locals }
    }
}

impl<T: Real> Work for Translations<T> {
    fn units(&self) -> usize {
        self.geometry.units()
    }

    fn operations(&mut self) -> u64 {
        // Those of the first boxes, for all.
        let mut locals = vec![T::ZERO; self.locals.len().min(TASK * self.series.len())];
        let boxes = locals.len() / self.series.len();
        let Geometry { rows, first, .. } = &self.geometry;
        let some = rows.start[first + boxes] - rows.start[*first];
        count(self.of(0, &mut locals)) * self.units() as u64 / some.max(1)
    }

    fn run(&mut self) -> f64 {
        let mut locals = std::mem::take(&mut self.locals);
        let n = TASK * self.series.len();
        locals.par_chunks_mut(n).enumerate().for_each(|(i, locals)| dispatch(self.of(i, locals)));
        self.locals = locals;
        self.locals[0].to_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_all_ratios_are_numbers_of_single_precision() {
        for n in [1, 2160, 36_720] {
            let Geometry { tree, rows, first } = Geometry::new(n);
            let mut most = 0.0f64;
            for target in first..tree.len() {
                for &source in rows.row(target) {
                    let [x, y] = [0, 1].map(|d| tree.center[d][target] - tree.center[d][source as usize]);
                    let ratio = x.hypot(y) / 2f64.powi(tree.exponent[target]);
                    assert!(ratio >= 1.0, "{n}: {ratio}");
                    most = most.max(ratio);
                }
            }
            // Its 16th power and that of the next, in a product.
            assert!(most < 100.0, "{n}: {most}");
        }
    }

    #[test]
    fn single_precision_translates_as_double_does() {
        let mut single = Translations::<f32>::new(8, 2160);
        let mut double = Translations::<f64>::new(8, 2160);
        single.run();
        double.run();
        let parts = [single.series.part, double.series.part];
        for cell in 0..double.locals.len() / double.series.len() {
            for side in 0..2 {
                for term in 0..8 {
                    let [i, j] = parts.map(|part| (2 * cell + side) * part + term);
                    let scale = (0..8).map(|t| double.locals[2 * cell * parts[1] + t].abs()).fold(0.0, f64::max);
                    let difference = f64::from(single.locals[i]) - double.locals[j];
                    assert!(difference.abs() < 1e-4 * scale, "{cell} {side} {term}: {difference:e} of {scale:e}");
                }
            }
        }
    }
}
