//! Evaluations of Hermite series in the plane at many points in single precision: what `nbody bench gauss` times next
//! to those of sums, which are in double.

use rayon::prelude::*;

use crate::math::Number;
use crate::math::counted::count;
use crate::math::exp::exp_minus;
use crate::math::simd::{Task, Vector, dispatch};
use crate::workload::Work;

/// Vectors that share the loads of the coefficients.
const TOGETHER: usize = 4;

/// Points of a box: so many vectors.
const BOX: usize = TOGETHER * <f32 as Number>::WIDTH;

/// Series whose coefficients are used in turn.
const SERIES: usize = 256;

/// Center of the series: they serve points some boxes away.
const CENTER: [f32; 2] = [2.0, -1.0];

/// Evaluations of Hermite series with `order` terms an axis, at `points` points, up to whole boxes of 64 of them. The
/// series are the polynomials, times a Gaussian, that they become before they are evaluated.
pub fn hermite_evaluations(order: usize, points: usize) -> Box<dyn Work> {
    let number = |i: usize| ((i as f64 * 0.754_877_666_246_692_8 + 0.3).fract() - 0.5) as f32;
    let points = points.next_multiple_of(BOX);
    Box::new(Evaluations {
        order,
        x: [0, 1].map(|d| (0..points).map(|i| number(2 * i + d)).collect()),
        coefficients: (0..SERIES * order * order).map(number).collect(),
        out: vec![0.0; points],
    })
}

struct Evaluations {
    order: usize,
    x: [Vec<f32>; 2],
    coefficients: Vec<f32>,
    out: Vec<f32>,
}

/// The series and the points of one box.
struct OfBox<'a> {
    order: usize,
    x: [&'a [f32]; 2],
    /// `[order][order]`, those of the first axis outside.
    from: &'a [f32],
    out: &'a mut [f32],
}

impl Task<f32> for OfBox<'_> {
    type Out = ();

    /// Horner's rule along both axes, a point a lane.
    #[inline(always)]
    fn run<V: Vector<Scalar = f32>>(self) {
        let width = <f32 as Number>::WIDTH;
        let mut z = [[V::zero(); TOGETHER]; 2];
        for d in 0..2 {
            let center = V::splat(CENTER[d]);
            for t in 0..TOGETHER {
                z[d][t] = V::load(&self.x[d][t * width..]).sub(center);
            }
        }
        let mut sums = [V::zero(); TOGETHER];
        for row in self.from.chunks_exact(self.order).rev() {
            let mut inner = [V::zero(); TOGETHER];
            for &c in row.iter().rev() {
                let c = V::splat(c);
                for t in 0..TOGETHER {
                    inner[t] = inner[t].mul_add(z[1][t], c);
                }
            }
            for t in 0..TOGETHER {
                sums[t] = sums[t].mul_add(z[0][t], inner[t]);
            }
        }
        for t in 0..TOGETHER {
            let square = z[0][t].mul_add(z[0][t], z[1][t].mul(z[1][t]));
            let sum = sums[t].mul(exp_minus(square.mul(V::constant(0.5))));
            sum.store(&mut self.out[t * width..]);
        }
    }
}

impl Evaluations {
    fn of<'a>(&'a self, i: usize, out: &'a mut [f32]) -> OfBox<'a> {
        let n = self.order * self.order;
        let x = [0, 1].map(|d| &self.x[d][i * BOX..(i + 1) * BOX]);
        OfBox { order: self.order, x, from: &self.coefficients[i % SERIES * n..][..n], out }
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
        out.par_chunks_mut(BOX).enumerate().for_each(|(i, out)| dispatch(self.of(i, out)));
        self.out = out;
        f64::from(self.out[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_polynomials() {
        let mut work = Evaluations {
            order: 3,
            x: [1.3, -0.2].map(|x| vec![x; BOX]),
            coefficients: (0..SERIES * 9).map(|i| i as f32 - 4.0).collect(),
            out: vec![0.0; BOX],
        };
        let (x, y) = (-0.7f64, 0.8f64);
        let mut expected = 0.0;
        for i in 0..3 {
            (0..3).for_each(|k| expected += (3.0 * f64::from(i) + f64::from(k) - 4.0) * x.powi(i) * y.powi(k));
        }
        expected *= (-0.5 * (x * x + y * y)).exp();
        assert_eq!(work.units(), BOX);
        assert!((work.run() - expected).abs() < 1e-5, "{} {expected}", work.out[0]);
        assert!(work.out.iter().all(|o| *o == work.out[0]));
    }
}
