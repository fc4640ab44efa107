//! The kernels that replace 1/r: softened (Plummer 1911; Dehnen 2001; Springel, Yoshida & White 2001) and screened (Yukawa 1935).

use crate::math::Number;
use crate::math::exp::{exp_minus, last};
use crate::math::simd::Vector;

/// A radial kernel K(r) in any unit of length.
pub trait Radial<V: Vector>: Copy {
    /// K and −K'/r from r². Both are 0 at coincident bodies where they would be infinite; `APART` promises that r² > 0 and lets
    /// that be left out.
    fn eval<const APART: bool>(&self, r2: V) -> (V, V);

    /// g = −K'/r and h = −g'/r from r², so that ∂²K/∂x_i∂x_j = h x_i x_j − g δ_ij. Both are 0 at
    /// coincident bodies where they would be infinite.
    fn second(&self, r2: V) -> (V, V);
}

/// s³ and 3 s⁵.
#[inline(always)]
fn cubed<V: Vector>(s: V) -> (V, V) {
    let s2 = s.mul(s);
    let cube = s2.mul(s);
    (cube, cube.mul(s2).mul(V::constant(3.0)))
}

#[inline(always)]
fn inverse_root<V: Vector, const APART: bool>(r2: V) -> V {
    if APART { r2.rsqrt_positive() } else { r2.rsqrt() }
}

/// 1/r.
#[derive(Clone, Copy)]
pub struct Newton;

impl<V: Vector> Radial<V> for Newton {
    #[inline(always)]
    fn eval<const APART: bool>(&self, r2: V) -> (V, V) {
        let s = inverse_root::<V, APART>(r2);
        (s, s.mul(s).mul(s))
    }

    #[inline(always)]
    fn second(&self, r2: V) -> (V, V) {
        cubed(r2.rsqrt())
    }
}

/// (r² + ε²)^(−1/2), with ε².
#[derive(Clone, Copy)]
pub struct Plummer<V>(pub V);

impl<V: Vector> Radial<V> for Plummer<V> {
    #[inline(always)]
    fn eval<const APART: bool>(&self, r2: V) -> (V, V) {
        let s = inverse_root::<V, APART>(r2.add(self.0));
        (s, s.mul(s).mul(s))
    }

    #[inline(always)]
    fn second(&self, r2: V) -> (V, V) {
        cubed(r2.add(self.0).rsqrt())
    }
}

/// (r² + 3/2 ε²)(r² + ε²)^(−3/2) with ε²: falcON's P1.
#[derive(Clone, Copy)]
pub struct P1<V>(pub V);

impl<V: Vector> Radial<V> for P1<V> {
    #[inline(always)]
    fn eval<const APART: bool>(&self, r2: V) -> (V, V) {
        // With s = (r² + ε²)^(−1/2): K = s (1 + ε² s²/2), −K'/r = s³ (1 + 3/2 ε² s²).
        let s = inverse_root::<V, APART>(r2.add(self.0));
        let s2 = s.mul(s);
        let e = self.0.mul(s2);
        let potential = e.mul(V::constant(0.5)).mul_add(s, s);
        (potential, e.mul_add(V::constant(1.5), V::constant(1.0)).mul(s2.mul(s)))
    }

    #[inline(always)]
    fn second(&self, r2: V) -> (V, V) {
        // g = s³ (1 + 3/2 ε² s²), h = 3 s⁵ (1 + 5/2 ε² s²).
        let s = r2.add(self.0).rsqrt();
        let (e, (cube, fifth)) = (self.0.mul(s).mul(s), cubed(s));
        let one = V::constant(1.0);
        (e.mul_add(V::constant(1.5), one).mul(cube), e.mul_add(V::constant(2.5), one).mul(fifth))
    }
}

/// GADGET's cubic spline (Springel, Yoshida & White 2001), with 1/h; 1/r beyond h = 2.8 ε.
#[derive(Clone, Copy)]
pub struct Spline<V>(pub V);

impl<V: Vector> Radial<V> for Spline<V> {
    #[inline(always)]
    fn eval<const APART: bool>(&self, r2: V) -> (V, V) {
        let s = inverse_root::<V, APART>(r2);
        let u = r2.mul(s).mul(self.0);
        let inverse = s.mul(V::splat(V::Scalar::ONE).div(self.0));
        let one = V::constant(1.0);
        // The polynomials are for u ≤ 1, and would overflow far out.
        let v = u.sub(u.sub(one).keep_where_at_least(u, one));
        // Coefficients of w(u) and g(u), from u^0 up.
        let near_w = polynomial(&[14.0 / 5.0, 0.0, -16.0 / 3.0, 0.0, 48.0 / 5.0, -32.0 / 5.0], v);
        let near_g = polynomial(&[32.0 / 3.0, 0.0, -192.0 / 5.0, 32.0], v);
        let mid_w = polynomial(&[16.0 / 5.0, 0.0, -32.0 / 3.0, 16.0, -48.0 / 5.0, 32.0 / 15.0], v);
        let mid_g = polynomial(&[64.0 / 3.0, -48.0, 192.0 / 5.0, -32.0 / 3.0], v);
        let (far_w, far_g) = (inverse, inverse.mul(inverse).mul(inverse));
        let fifteenth = V::constant(1.0 / 15.0);
        let scale = self.0;
        let w = by_radius(u, near_w, far_w.neg_mul_add(fifteenth, mid_w), far_w);
        let g = by_radius(u, near_g, far_g.neg_mul_add(fifteenth, mid_g), far_g);
        (w.mul(scale), g.mul(scale.mul(scale).mul(scale)))
    }

    #[inline(always)]
    fn second(&self, r2: V) -> (V, V) {
        let s = r2.rsqrt();
        let (scale, one) = (self.0, V::constant(1.0));
        let u = r2.mul(s).mul(scale);
        let inverse = s.mul(one.div(scale));
        let v = u.sub(u.sub(one).keep_where_at_least(u, one));
        // −g'/u of the same polynomials.
        let near = polynomial(&[384.0 / 5.0, -96.0], v);
        let far = cubed(inverse).1;
        let mid = inverse.mul_add(V::constant(48.0), polynomial(&[-384.0 / 5.0, 32.0], v));
        let h = by_radius(u, near, far.neg_mul_add(V::constant(1.0 / 15.0), mid), far);
        let cube = scale.mul(scale).mul(scale);
        (self.eval::<false>(r2).1, h.mul(cube).mul(scale.mul(scale)))
    }
}

/// exp(−κr)/r, with κ; 0 where the exponential is below all numbers.
#[derive(Clone, Copy)]
pub struct Yukawa<V>(pub V);

impl<V: Vector> Radial<V> for Yukawa<V> {
    #[inline(always)]
    fn eval<const APART: bool>(&self, r2: V) -> (V, V) {
        let s = inverse_root::<V, APART>(r2);
        let x = r2.mul(s).mul(self.0);
        let potential = exp_minus(x).keep_where_at_least(last(), x).mul(s);
        (potential, x.mul_add(potential, potential).mul(s.mul(s)))
    }

    #[inline(always)]
    fn second(&self, r2: V) -> (V, V) {
        // h = (3 + 3 κr + (κr)²) K/r⁴.
        let s = r2.rsqrt();
        let (s2, x) = (s.mul(s), r2.mul(s).mul(self.0));
        let (potential, slope) = self.eval::<false>(r2);
        (slope, slope.mul_add(V::constant(3.0), x.mul(x).mul(potential).mul(s2)).mul(s2))
    }
}

/// Σ c_k u^k.
#[inline(always)]
fn polynomial<V: Vector>(c: &[f64], u: V) -> V {
    let mut sum = V::constant(c[c.len() - 1]);
    for k in (0..c.len() - 1).rev() {
        sum = sum.mul_add(u, V::constant(c[k]));
    }
    sum
}

/// `near` where u < 1/2, `mid` where u < 1, else `far`.
#[inline(always)]
fn by_radius<V: Vector>(u: V, near: V, mid: V, far: V) -> V {
    let (half, one) = (V::constant(0.5), V::constant(1.0));
    let mid = mid.keep_where_at_least(u, half);
    let inner = near.sub(near.keep_where_at_least(u, half)).add(mid.sub(mid.keep_where_at_least(u, one)));
    inner.add(far.keep_where_at_least(u, one))
}
