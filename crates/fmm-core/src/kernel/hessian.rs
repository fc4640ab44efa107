//! Second derivatives of the potential, pair by pair.

use super::pairs::{AllPairs, FAR, hole};
use super::radial::Radial;
use super::{PairRelation, Pairs, Points, Softening, Sums, UseRadial};
use crate::math::Real;
use crate::math::simd::{Array, Vector};

/// The second derivatives of a kernel: ∂²K/∂x_i∂x_j = h x_i x_j − g δ_ij with g = −K'/r and h = −g'/r.
///
/// As [`Pairs`] its number is Σ q g, and its components are Σ q h x_i x_j for xx, yy, zz, xy, xz, yz.
#[derive(Debug, Clone, Copy)]
pub struct Hessian(pub Softening);

/// The axes of each component.
pub const AXES: [[usize; 2]; 6] = [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2], [1, 2]];

impl Hessian {
    /// The second derivatives from a number and components as [`Pairs`] gives them.
    pub fn combine(g: f64, h: [f64; 6]) -> [f64; 6] {
        std::array::from_fn(|k| if k < 3 { h[k] - g } else { h[k] })
    }

    /// The second derivatives at a distance `d` from a source of strength 1; 0 at distance zero
    /// where they would be infinite.
    pub fn at(self, d: [f64; 3]) -> [f64; 6] {
        struct At(f64);
        impl UseRadial<Array<f64, 8>> for At {
            type Out = [f64; 2];

            fn run<K: Radial<Array<f64, 8>>>(self, kernel: K) -> [f64; 2] {
                let (g, h) = kernel.second(Vector::splat(self.0));
                [g.first(), h.first()]
            }
        }
        let [g, h] = self.0.with_radial(1.0, At(d.iter().map(|c| c * c).sum()));
        Self::combine(g, AXES.map(|[i, j]| h * d[i] * d[j]))
    }
}

impl Pairs<3, 6> for Hessian {
    /// That is g(0); the components vanish.
    fn potential_at_zero(&self) -> f64 {
        -self.at([0.0; 3])[0]
    }

    fn smooth_below(&self) -> f64 {
        self.0.length()
    }

    #[inline(always)]
    fn p2p<T: Real, V: Vector<Scalar = T>>(
        &self,
        unit: f64,
        relation: PairRelation,
        targets: Points<T, 3>,
        sources: Points<T, 3>,
        sums: &mut Sums<T, 6>,
        nearest: &mut [T],
    ) {
        self.0.with_radial::<V, _>(unit, AllPairs { relation, targets, sources, sums, nearest });
    }

    fn scales(unit: f64) -> [f64; 2] {
        let cube = 1.0 / unit / unit / unit;
        [cube; 2]
    }
}

impl<T: Real, V: Vector<Scalar = T>> UseRadial<V> for AllPairs<'_, '_, T, 6> {
    type Out = ();

    #[inline(always)]
    fn run<K: Radial<V>>(self, kernel: K) {
        let AllPairs { relation, targets, sources, sums, nearest } = self;
        let n = sources.q.len();
        let [sx, sy, sz] = [&sources.x[0][..n], &sources.x[1][..n], &sources.x[2][..n]];
        let hole = hole::<T>();
        for i in (0..sums.potential.len()).step_by(T::WIDTH) {
            let at: [V; 3] = targets.load(i);
            let (mut total, mut least) = ([V::zero(); 7], V::constant(FAR));
            for j in 0..n {
                let (dx, dy, dz) = (at[0].sub(V::splat(sx[j])), at[1].sub(V::splat(sy[j])), at[2].sub(V::splat(sz[j])));
                let r2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul(dz)));
                let (g, h) = kernel.second(r2);
                let (mut q, mut distance) = (V::splat(sources.q[j]), r2);
                if let PairRelation::Same(first) = relation {
                    let lane = j as isize - first - i as isize;
                    if (0..T::WIDTH as isize).contains(&lane) {
                        let others = V::load(&hole[16 - lane as usize..]);
                        q = q.mul(others);
                        distance = V::constant(FAR).mul_add(V::constant(1.0).sub(others), r2);
                    }
                }
                least = least.min(distance);
                let h = q.mul(h);
                let (hx, hy, hz) = (h.mul(dx), h.mul(dy), h.mul(dz));
                total[0] = q.mul_add(g, total[0]);
                total[1] = hx.mul_add(dx, total[1]);
                total[2] = hy.mul_add(dy, total[2]);
                total[3] = hz.mul_add(dz, total[3]);
                total[4] = hx.mul_add(dy, total[4]);
                total[5] = hx.mul_add(dz, total[5]);
                total[6] = hy.mul_add(dz, total[6]);
            }
            if size_of::<T>() == 4 {
                V::load(&nearest[i..]).min(least).store(&mut nearest[i..]);
            }
            V::load(&sums.potential[i..]).add(total[0]).store(&mut sums.potential[i..]);
            for k in 0..6 {
                V::load(&sums.field[k][i..]).add(total[k + 1]).store(&mut sums.field[k][i..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_derivatives_are_differences_of_slopes() {
        let kernels = Softening::SOFTENED.map(|k| k.with_length(0.3)).into_iter().chain([Softening::Yukawa(0.5)]);
        for kernel in kernels {
            // The spline's pieces meet at 0.42 and 0.84.
            for d in [[0.1, 0.05, -0.07], [0.3, -0.2, 0.4], [0.7, 0.9, 1.1], [0.5, 0.5, 0.1]] {
                let field = |d: [f64; 3]| {
                    let r = d.iter().map(|c| c * c).sum::<f64>().sqrt();
                    d.map(|c| -kernel.at(r).1 * c)
                };
                let (found, step) = (Hessian(kernel).at(d), 1e-5);
                for (k, [i, j]) in AXES.into_iter().enumerate() {
                    let moved = |by: f64| std::array::from_fn(|a| if a == j { d[a] + by } else { d[a] });
                    let difference = (field(moved(step))[i] - field(moved(-step))[i]) / (2.0 * step);
                    let size = found.iter().fold(0.0, |m: f64, c| m.max(c.abs()));
                    assert!(
                        (difference - found[k]).abs() < 1e-7 * size,
                        "{kernel:?} {d:?} {k}: {difference} {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn coincident_bodies() {
        assert_eq!(Hessian(Softening::None).at([0.0; 3]), [0.0; 6]);
        assert_eq!(Hessian(Softening::Yukawa(1.0)).at([0.0; 3]), [0.0; 6]);
        let plummer = Hessian(Softening::Plummer(0.5)).at([0.0; 3]);
        assert_eq!(plummer, [-8.0, -8.0, -8.0, 0.0, 0.0, 0.0]);
        assert_eq!(Hessian(Softening::Plummer(0.5)).potential_at_zero(), 8.0);
    }
}
