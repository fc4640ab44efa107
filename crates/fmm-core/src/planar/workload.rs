//! Translations in the plane alone: what `nbody bench m2l2d` times (Cruz, Layton & Barba, Tables 2 and 3).

use rayon::prelude::*;

use super::pyramid::Pyramid;
use super::series::Series;
use super::shifts::M2l;
use super::{Kernel, Lists, Rule};
use crate::Csr;
use crate::math::counted::count;
use crate::math::simd::dispatch;
use crate::workload::Work;

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
        let tree = Pyramid::new(&x, 1.0, levels);
        let rule = Rule { theta: 0.5, min_distance: 0.0, swap_min_points: usize::MAX };
        let rows = Lists::between_pyramids(&tree, &tree, rule).m2l;
        // From the leaves on, which are the last boxes.
        let mut first = tree.len();
        while first > 0 && rows.start[tree.len()] - rows.start[first] < translations as u64 {
            first -= 1;
        }
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

/// A part of a coefficient.
pub fn coefficient(i: usize) -> f64 {
    number(i, 0.618_033_988_749_894_9) - 0.5
}

/// M2L of the harmonic kernel with `order` terms, at least `translations` of them: the rows of as many boxes of a pyramid.
pub fn translations(order: usize, translations: usize) -> Box<dyn Work> {
    let geometry = Geometry::new(translations);
    let series = Series::new(Kernel::Harmonic, order);
    let (n, boxes) = (series.len(), geometry.tree.len());
    Box::new(Translations {
        multipoles: (0..boxes * n).map(coefficient).collect(),
        locals: vec![0.0; (boxes - geometry.first) * n],
        series,
        geometry,
    })
}

struct Translations {
    series: Series<f64>,
    geometry: Geometry,
    multipoles: Vec<f64>,
    locals: Vec<f64>,
}

impl Translations {
    fn of<'a>(&'a self, i: usize, locals: &'a mut [f64]) -> M2l<'a, f64> {
        let Translations { series, geometry: Geometry { tree, rows, first }, multipoles, .. } = self;
        M2l { series, trees: [tree, tree], rows, global: 0, first: first + i * TASK, multipoles, locals }
    }
}

impl Work for Translations {
    fn units(&self) -> usize {
        self.geometry.units()
    }

    fn operations(&mut self) -> u64 {
        // Those of the first boxes, for all.
        let mut locals = vec![0.0; self.locals.len().min(TASK * self.series.len())];
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
        self.locals[0]
    }
}
