//! Evaluations of series at many points: what `nbody bench gauss` times (Cruz, Layton & Barba, Tables 4 and 5).

use rayon::prelude::*;

use super::points::{Spread, spread};
use super::series::{Basis, Points, Shape};
use crate::math::counted::count;
use crate::workload::Work;

/// Points of a box.
const BOX: usize = 64;

/// Series whose coefficients are used in turn: more than a first-level cache holds, as in a sum.
const SERIES: usize = 256;

/// Evaluations in the plane of series with `order` terms an axis, at `points` points, up to whole boxes of 64 of them.
pub fn evaluations(basis: Basis, order: usize, points: usize) -> Box<dyn Work> {
    let shape = Shape { dimension: 2, order, columns: 1 };
    let number = |i: usize| (i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() - 0.5;
    let boxes = points.div_ceil(BOX);
    Box::new(Evaluations {
        shape,
        basis,
        x: [0, 1].map(|d| (0..boxes * BOX).map(|i| number(2 * i + d)).collect()),
        // Hermite series serve points some boxes away.
        center: if basis == Basis::Hermite { [2.0, -1.0, 0.0] } else { [0.0; 3] },
        coefficients: (0..SERIES * shape.total()).map(number).collect(),
        out: vec![0.0; boxes * BOX],
    })
}

struct Evaluations {
    shape: Shape,
    basis: Basis,
    x: [Vec<f64>; 2],
    center: [f64; 3],
    coefficients: Vec<f64>,
    out: Vec<f64>,
}

impl Evaluations {
    /// The series and the points of one box.
    fn of<'a>(&'a self, i: usize, out: &'a mut [f64]) -> Spread<'a> {
        let range = i * BOX..(i + 1) * BOX;
        let x = [&self.x[0][range.clone()], &self.x[1][range], &[]];
        let points = Points { x, center: self.center, scale: 1.0 };
        let from = &self.coefficients[i % SERIES * self.shape.total()..][..self.shape.total()];
        Spread { shape: self.shape, basis: self.basis, points, from, gradient: false, out }
    }
}

impl Work for Evaluations {
    fn units(&self) -> usize {
        self.out.len()
    }

    fn operations(&mut self) -> u64 {
        let mut out = [0.0; BOX];
        count(self.of(0, &mut out)) * (self.units() / BOX) as u64
    }

    fn run(&mut self) -> f64 {
        let mut out = std::mem::take(&mut self.out);
        out.par_chunks_mut(BOX).enumerate().for_each(|(i, out)| spread(self.of(i, out)));
        self.out = out;
        self.out[0]
    }
}
