//! The field of the last degree of an expansion, from which the error of the expansion is estimated.

use std::ops::Range;

use super::cartesian::Indices;
use crate::Family;
use crate::math::factorial;

/// Where the coefficients c of degree p are, and weights w with which Σ w c² is the mean square,
/// over all directions, of the field of that degree at distance 1 from the center.
#[derive(Debug, Clone)]
pub struct LastDegree {
    /// Places of the coefficients.
    pub places: Range<usize>,
    /// The weights in local expansions. `[places]`
    pub local: Vec<f64>,
    /// The weights in multipoles. `[places]`
    pub multipole: Vec<f64>,
}

impl LastDegree {
    /// Of expansions of order `p`.
    pub fn new(family: Family, p: usize) -> Self {
        match family {
            Family::Spherical => Self::spherical(p),
            Family::Cartesian => Self::cartesian(p),
        }
    }

    /// ⟨|R_p^m|²⟩ and ⟨|I_p^m|²⟩ over the unit sphere, times the ratio of ⟨|∇Φ|²⟩ to ⟨Φ²⟩, which is
    /// p (2p + 1) and (p + 1)(2p + 1). Orders m > 0 stand for −m too.
    fn spherical(p: usize) -> Self {
        let weight = |k: usize, local: bool| {
            let m = k.div_ceil(2);
            let (product, fold) = (factorial(p + m) * factorial(p - m), if m == 0 { 1.0 } else { 2.0 });
            fold * if local { p as f64 / product } else { (p + 1) as f64 * product }
        };
        let weights = |local| (0..2 * p + 1).map(|k| weight(k, local)).collect();
        LastDegree { places: p * p..(p + 1) * (p + 1), local: weights(true), multipole: weights(false) }
    }

    /// Of 1/r: Σ L_k²/k! over (2p + 1)!! is the mean square of a harmonic polynomial, and p!/(2p + 1) Σ k! M_k² that of
    /// the potential of a single source, which is the largest that moments can have.
    fn cartesian(p: usize) -> Self {
        let (indices, degree) = (Indices::new(p), p as f64);
        let places = if p == 0 { 0..1 } else { super::cartesian::count(p - 1)..super::cartesian::count(p) };
        let double: f64 = (0..=p).map(|k| (2 * k + 1) as f64).product();
        let local = |k: usize| degree * (2.0 * degree + 1.0) / double / indices.factorial(k);
        let multipole = |k: usize| (degree + 1.0) * factorial(p) * indices.factorial(k);
        let (local, multipole) = (places.clone().map(local).collect(), places.clone().map(multipole).collect());
        LastDegree { places, local, multipole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expansion::{Cartesian, Expansion, Spherical};
    use crate::kernel::{Points, Softening, Sums};
    use crate::lists::Classes;
    use crate::math::simd::Array;

    type V = Array<f64, 8>;

    /// Mean of |field|² over the unit sphere of an expansion whose coefficients are zero but for the last degree.
    fn mean_square<E: Expansion<f64, 3>>(expansion: &E, local: bool, c: &[f64]) -> f64 {
        let n = 4096;
        let at: Vec<[f64; 3]> = (0..n)
            .map(|i| {
                let z = (2 * i + 1) as f64 / n as f64 - 1.0;
                let (s, f) = ((1.0 - z * z).sqrt(), i as f64 * 2.399_963_229_728_653);
                [s * f.cos(), s * f.sin(), z]
            })
            .collect();
        let x: [Vec<f64>; 3] = [0, 1, 2].map(|d| at.iter().map(|x| x[d]).collect());
        let (mut potential, mut field) = (vec![0.0; n], [0; 3].map(|_| vec![0.0; n]));
        let points = Points { x: x.each_ref().map(|x| &x[..]), q: &[] };
        let mut sums = Sums { potential: &mut potential, field: field.each_mut().map(|f| &mut f[..]) };
        if local {
            expansion.l2p::<V>(c, points, &mut sums)
        } else {
            expansion.m2p::<V>(1.0, c, points, &mut sums)
        }
        (0..n).map(|i| (0..3).map(|d| field[d][i].powi(2)).sum::<f64>()).sum::<f64>() / n as f64
    }

    #[test]
    fn weights_give_the_mean_square_of_the_field() {
        for p in [1, 2, 5, 9] {
            let (expansion, last) =
                (Spherical::<f64>::new(p, Classes::new(4.0)), LastDegree::new(Family::Spherical, p));
            for (local, weights) in [(true, &last.local), (false, &last.multipole)] {
                let mut c = vec![0.0; (p + 1) * (p + 1)];
                let scale = |w: f64| 1.0 / w.sqrt();
                last.places.clone().zip(weights).for_each(|(k, w)| c[k] = scale(*w) * (1.0 + 0.3 * (k % 3) as f64));
                let expected: f64 = last.places.clone().zip(weights).map(|(k, w)| w * c[k] * c[k]).sum();
                let found = mean_square(&expansion, local, &c);
                assert!((found / expected - 1.0).abs() < 2e-3, "{p} {local}: {found} {expected}");
            }
        }
    }

    #[test]
    fn cartesian_weights_are_those_of_single_sources() {
        for p in [1, 3, 6] {
            let expansion = Cartesian::<f64>::new(p, Softening::None, Classes::new(4.0), 2.0, 1);
            let last = LastDegree::new(Family::Cartesian, p);
            let mut c = vec![0.0; super::super::cartesian::count(p)];
            let (x, mut q) = ([[0.3], [-0.4], [0.2]].map(|c| vec![c[0]; 8]), vec![0.0; 8]);
            q[0] = 1.0;
            expansion.p2m::<V>(Points { x: x.each_ref().map(|x| &x[..]), q: &q }, &mut c);
            c[..last.places.start].fill(0.0);
            let expected: f64 = last.places.clone().zip(&last.multipole).map(|(k, w)| w * c[k] * c[k]).sum();
            let found = mean_square(&expansion, false, &c);
            assert!((found / expected - 1.0).abs() < 2e-3, "{p}: {found} {expected}");
        }
    }
}
