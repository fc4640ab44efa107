//! Every source at every target: targets in vectors, sources streamed.

use super::simd::Vector;
use crate::expansion::{Points, Sums};
use crate::kernel::{Newton, P1, Plummer, Radial, Spline};
use crate::real::Real;
use crate::settings::Softening;

/// Vectors of targets that are worked on together: enough independent chains to fill the pipelines.
const GROUP: usize = 2;

/// The sums of the softened 1/r; see [`crate::expansion::Expansion::p2p`].
#[inline(always)]
pub fn softened<T: Real, V: Vector<Scalar = T>>(
    softening: Softening,
    unit: f64,
    same: Option<isize>,
    targets: Points<T, 3>,
    sources: Points<T, 3>,
    sums: &mut Sums<T, 3>,
) {
    let square = |e: f64| V::constant((e / unit) * (e / unit));
    match softening {
        Softening::None => all_pairs::<T, V, _>(Newton, same, targets, sources, sums),
        Softening::Plummer(e) => all_pairs::<T, V, _>(Plummer::<V>(square(e)), same, targets, sources, sums),
        Softening::P1(e) => all_pairs::<T, V, _>(P1::<V>(square(e)), same, targets, sources, sums),
        Softening::Spline(e) => {
            all_pairs::<T, V, _>(Spline::<V>(V::constant(unit / (2.8 * e))), same, targets, sources, sums)
        }
    }
}

#[inline(always)]
fn all_pairs<T: Real, V: Vector<Scalar = T>, K: Radial<V>>(
    kernel: K,
    same: Option<isize>,
    targets: Points<T, 3>,
    sources: Points<T, 3>,
    sums: &mut Sums<T, 3>,
) {
    let n = sums.potential.len();
    let mut i = 0;
    while i < n {
        let vectors = ((n - i) / T::WIDTH).min(GROUP);
        // Targets i.. are sources own.. : only there a target must skip itself.
        let own = same
            .map(|s| s + i as isize)
            .filter(|&own| !K::SINGULAR && own < sources.q.len() as isize && own + (vectors * T::WIDTH) as isize > 0);
        let split = !sources.low[0].is_empty();
        match (vectors, own, split) {
            (GROUP, None, false) => group::<T, V, K, GROUP, false>(kernel, None, i, targets, sources, sums),
            (GROUP, None, true) => group::<T, V, K, GROUP, true>(kernel, None, i, targets, sources, sums),
            (GROUP, own, false) => group::<T, V, K, GROUP, false>(kernel, own, i, targets, sources, sums),
            (_, own, false) => group::<T, V, K, 1, false>(kernel, own, i, targets, sources, sums),
            (GROUP, own, true) => group::<T, V, K, GROUP, true>(kernel, own, i, targets, sources, sums),
            (_, own, true) => group::<T, V, K, 1, true>(kernel, own, i, targets, sources, sums),
        }
        i += vectors * T::WIDTH;
    }
}

/// `N` vectors of targets from place `i`; with `own`, target i + k is source own + k and skipped. `SPLIT` adds the
/// low parts of the coordinates: close pairs then keep all digits of their distance.
#[inline(always)]
fn group<T: Real, V: Vector<Scalar = T>, K: Radial<V>, const N: usize, const SPLIT: bool>(
    kernel: K,
    own: Option<isize>,
    i: usize,
    targets: Points<T, 3>,
    sources: Points<T, 3>,
    sums: &mut Sums<T, 3>,
) {
    let n = sources.q.len();
    let high = sources.x.map(|x| &x[..n]);
    let low = if SPLIT { sources.low.map(|x| &x[..n]) } else { high };
    let load = |x: [&[T]; 3]| -> [[V; 3]; N] { std::array::from_fn(|k| x.map(|x| V::load(&x[i + k * T::WIDTH..]))) };
    let at = load(targets.x);
    let at_low = if SPLIT { load(targets.low) } else { at };
    let mut total = [[V::zero(); 4]; N];
    // Ones around a zero: shifted so that the zero falls on the lane that is the source itself.
    let mut hole = [T::ONE; 33];
    hole[16] = T::ZERO;
    for j in 0..n {
        // No closures in here: they are compiled without the vector instructions unless they happen to be inlined.
        let source = [V::splat(high[0][j]), V::splat(high[1][j]), V::splat(high[2][j])];
        let source_low = [V::splat(low[0][j]), V::splat(low[1][j]), V::splat(low[2][j])];
        let q = V::splat(sources.q[j]);
        for k in 0..N {
            let mut d = [at[k][0].sub(source[0]), at[k][1].sub(source[1]), at[k][2].sub(source[2])];
            if SPLIT {
                for c in 0..3 {
                    d[c] = d[c].add(at_low[k][c].sub(source_low[c]));
                }
            }
            let [dx, dy, dz] = d;
            let r2 = dx.mul_add(dx, dy.mul_add(dy, dz.mul(dz)));
            let (potential, force) = kernel.eval(r2);
            let mut q = q;
            if let Some(own) = own {
                let lane = j as isize - own - (k * T::WIDTH) as isize;
                if (0..T::WIDTH as isize).contains(&lane) {
                    q = q.mul(V::load(&hole[16 - lane as usize..]));
                }
            }
            let force = q.mul(force);
            total[k][0] = q.mul_add(potential, total[k][0]);
            total[k][1] = force.mul_add(dx, total[k][1]);
            total[k][2] = force.mul_add(dy, total[k][2]);
            total[k][3] = force.mul_add(dz, total[k][3]);
        }
    }
    for k in 0..N {
        let place = i + k * T::WIDTH;
        V::load(&sums.potential[place..]).add(total[k][0]).store(&mut sums.potential[place..]);
        for d in 0..3 {
            V::load(&sums.field[d][place..]).add(total[k][d + 1]).store(&mut sums.field[d][place..]);
        }
    }
}
