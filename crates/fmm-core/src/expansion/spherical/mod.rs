//! Spherical harmonics: the expansion of 1/r in three dimensions, of any order up to 30.
//!
//! Sources within a of the multipole's center, targets within b of the local one, centers R apart: the error of the
//! potential is at most Q/(R−a−b) ((a+b)/R)^(p+1) (Greengard & Rokhlin 1987). All degrees
//! n ≤ p, l ≤ p are kept.

mod harmonics;
mod images;
mod lattice;
mod rotation;

use std::any::{Any, TypeId};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use harmonics::at as place_of;
use harmonics::{Factors, at};
pub use harmonics::{Kind, recurrences};
pub use lattice::{Lattice, between_cells};
use rotation::{Direction, Swap};

use super::{Expansion, Points, Sums, add_weighted};
use crate::expansion::dense::Operators;
use crate::lists::Classes;
use crate::math::Real;
use crate::math::simd::Vector;

/// The highest order whose M2L is faster by matrices than by rotations, see docs/performance.md.
const DENSE: usize = 4;

/// Multipole and local expansions of order p in solid harmonics.
#[derive(Debug, Clone)]
pub struct Spherical<T> {
    p: usize,
    numbering: Classes<3>,
    moments: Factors<T>,
    /// To degree p + 1: the gradient of a multipole.
    gradients: Factors<T>,
    swap_multipole: Swap<T>,
    swap_local: Swap<T>,
    /// Directions from child to parent center, by octant.
    octants: Vec<Direction<T>>,
    /// k!/r^(k+1) and the direction, by class; `None` for the offset zero.
    classes: Vec<Option<(Direction<T>, Vec<T>)>>,
    /// s^j/j! with the shift s between a cell and its parent in units of the parent's half side, √3/2 of cubes.
    shift: Vec<T>,
}

/// Expansions that [`Spherical::shared`] has made, the one asked for last at the end: numbers, order, offsets.
type Made = Vec<(TypeId, usize, Classes<3>, Arc<dyn Any + Send + Sync>)>;

/// A run uses one or two; another box or tolerance may come between its sums.
const KEPT: usize = 8;

impl<T: Real> Spherical<T> {
    /// As [`new`](Self::new), and made once: every sum of a run asks for the same, and a small one takes less time than its
    /// operators.
    pub fn shared(p: usize, classes: Classes<3>) -> Arc<Self> {
        static MADE: Mutex<Made> = Mutex::new(vec![]);
        let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (TypeId::of::<T>(), p, classes);
        let found = |made: &mut Made| {
            let place = made.iter().position(|m| (m.0, m.1, m.2) == key)?;
            made[place..].rotate_left(1);
            made.last().map(|m| m.3.clone())
        };
        let known = found(&mut made());
        let expansion = known.unwrap_or_else(|| {
            // Without the lock: another thread may make the same meanwhile.
            let new: Arc<dyn Any + Send + Sync> = Arc::new(Self::new(p, classes));
            let mut made = made();
            made.push((key.0, p, classes, new.clone()));
            let surplus = made.len().saturating_sub(KEPT);
            made.drain(..surplus);
            new
        });
        expansion.downcast().expect("the type of the numbers is part of the key")
    }

    /// Expansions of order `p` for the offsets of `classes`.
    ///
    /// # Panics
    /// If p is 0 or above 31: one more than users may ask for, for derivatives of multipoles.
    pub fn new(p: usize, classes: Classes<3>) -> Self {
        let numbering = classes;
        assert!((1..=31).contains(&p), "order {p}");
        let aspect = classes.aspect();
        let octants = (0..8u8)
            .map(|o| Direction::new(p, std::array::from_fn(|d| aspect[d] * if o >> d & 1 == 1 { 0.5 } else { -0.5 })))
            .collect();
        let classes = (0..classes.len() as u32)
            .map(|c| {
                let offset = classes.offset(c);
                // Target minus source, in half sides.
                let d: [f64; 3] = std::array::from_fn(|k| -2.0 * f64::from(offset[k]) * aspect[k]);
                let r = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
                (r > 0.0).then(|| {
                    let mut value = 1.0 / r;
                    let powers = (0..=2 * p).map(|k| {
                        let here = T::from_f64(value);
                        value *= (k + 1) as f64 / r;
                        here
                    });
                    (Direction::new(p, d), powers.collect())
                })
            })
            .collect();
        let step = (0.25 * aspect.iter().map(|a| a * a).sum::<f64>()).sqrt();
        let mut value = 1.0;
        let shift = (1..=p + 1).map(|j| {
            let here = T::from_f64(value);
            value *= step / j as f64;
            here
        });
        Spherical {
            p,
            numbering,
            moments: Factors::new(p),
            gradients: Factors::new(p + 1),
            swap_multipole: Swap::new(p, false),
            swap_local: Swap::new(p, true),
            octants,
            classes,
            shift: shift.collect(),
        }
    }

    /// Every R_l^m of degree ≤ p at a place in units of the cell.
    #[inline(always)]
    pub(crate) fn regular<V: Vector<Scalar = T>>(&self, at: [V; 3], values: &mut [V]) {
        self.moments.fill(Kind::Regular, at, values);
    }

    /// Adds Σ q H_l^m to the coefficients.
    #[inline(always)]
    fn moments<V: Vector<Scalar = T>>(&self, kind: Kind, sources: Points<T, 3>, coefficients: &mut [T]) {
        let (mut values, mut sums) = (vec![V::zero(); self.len()], vec![V::zero(); self.len()]);
        for i in (0..sources.q.len()).step_by(T::WIDTH) {
            self.moments.fill(kind, sources.load(i), &mut values);
            let q = V::load(&sources.q[i..]);
            for (s, v) in sums.iter_mut().zip(&values) {
                *s = q.mul_add(*v, *s);
            }
        }
        for (c, s) in coefficients.iter_mut().zip(&sums) {
            *c += s.sum();
        }
    }
}

/// The weights of Re and Im of the harmonics of degree ≤ `degree` in potential and gradient: `potential(l, m)` and
/// `gradient(l, m)` give the coefficients that meet H_l^m there. Both kinds of harmonics pair order m with the
/// coefficients of order m, m−1 and m+1 of a neighbouring degree (the negative orders folded onto the positive).
fn weights<T: Real>(
    degree: usize,
    z_sign: f64,
    potential: impl Fn(usize, isize) -> [T; 2],
    gradient: impl Fn(usize, isize) -> [T; 2],
) -> Vec<[T; 4]> {
    let mut all = vec![[T::ZERO; 4]; (degree + 1) * (degree + 1)];
    for l in 0..=degree {
        for m in 0..=l {
            let order = m as isize;
            let fold = T::from_f64(if m == 0 { 1.0 } else { 2.0 });
            let z_fold = T::from_f64(z_sign) * fold;
            let (here, middle) = (potential(l, order), gradient(l, order));
            let (a, b) = (gradient(l, order - 1), gradient(l, order + 1));
            if m == 0 {
                all[at(l, 0)] = [here[0], -b[0], -b[1], z_fold * middle[0]];
            } else {
                all[at(l, m)] = [fold * here[0], a[0] - b[0], -(a[1] + b[1]), z_fold * middle[0]];
                all[at(l, m) + 1] = [fold * here[1], a[1] - b[1], a[0] + b[0], z_fold * middle[1]];
            }
        }
    }
    all
}

/// The weights of the regular harmonics of degree ≤ p in the potential of a local expansion of
/// order p and in its three derivatives.
fn local_weights<T: Real>(local: &[T], p: usize) -> Vec<[T; 4]> {
    weights(p, 1.0, |l, m| coefficient(local, p, l, m), |l, m| coefficient(local, p, l + 1, m))
}

/// The weights of the irregular harmonics of degree ≤ p + 1 in the potential of a multipole of order p and in its three derivatives.
pub(crate) fn multipole_weights<T: Real>(multipole: &[T], p: usize) -> Vec<[T; 4]> {
    let below = |l: usize, m| if l == 0 { [T::ZERO; 2] } else { coefficient(multipole, p, l - 1, m) };
    weights(p + 1, -1.0, |l, m| coefficient(multipole, p, l, m), below)
}

/// A_l^m as [Re, Im], zero outside 0 ≤ m ≤ l ≤ p.
fn coefficient<T: Real>(a: &[T], p: usize, l: usize, m: isize) -> [T; 2] {
    if m < 0 || m as usize > l || l > p {
        [T::ZERO; 2]
    } else if m == 0 {
        [a[at(l, 0)], T::ZERO]
    } else {
        let k = at(l, m as usize);
        [a[k], a[k + 1]]
    }
}

/// L_l^m = (−1)^(l+m) Σ_j M_j^m (l+j)!/r^(l+j+1) for `N` degrees from `l`; `k` is the place of the order within its degree.
#[inline(always)]
fn along_z<T: Real, V: Vector<Scalar = T>, const N: usize>(
    k: usize,
    l: usize,
    m: usize,
    powers: &[T],
    from: &[V],
    to: &mut [V],
) {
    let mut sums = [V::zero(); N];
    let p = powers.len() / 2;
    let mut place = m * m + k;
    for (j, powers) in (m..=p).zip(powers[l + m..].windows(N)) {
        let x = from[place];
        for i in 0..N {
            sums[i] = V::splat(powers[i]).mul_add(x, sums[i]);
        }
        place += 2 * j + 1;
    }
    for i in 0..N {
        let l = l + i;
        to[l * l + k] = if (l + m).is_multiple_of(2) { sums[i] } else { V::zero().sub(sums[i]) };
    }
}

impl<T: Real> Expansion<T, 3> for Spherical<T> {
    fn len(&self) -> usize {
        (self.p + 1) * (self.p + 1)
    }

    fn matrices(&self) -> Option<Arc<Operators<T>>> {
        let make = || Spherical::<f64>::new(self.p, self.numbering);
        (self.p <= DENSE && self.numbering.are_cubic()).then(|| Operators::shared(self.p, self.numbering, make))
    }

    fn degree(&self, l: usize) -> Range<usize> {
        l * l..(l + 1) * (l + 1)
    }

    fn lattice(&self, operator: &Lattice, multipole: &[T], local: &mut [T]) {
        let doubles: Vec<f64> = multipole.iter().map(|m| m.to_f64()).collect();
        for (l, far) in local.iter_mut().zip(operator.apply(&doubles)) {
            *l += T::from_f64(far);
        }
    }

    #[inline(always)]
    fn p2m<V: Vector<Scalar = T>>(&self, sources: Points<T, 3>, multipole: &mut [T]) {
        self.moments::<V>(Kind::Regular, sources, multipole);
    }

    #[inline(always)]
    fn p2l<V: Vector<Scalar = T>>(&self, _: f64, sources: Points<T, 3>, local: &mut [T]) {
        self.moments::<V>(Kind::Irregular, sources, local);
    }

    fn derivative(&self, local: bool, coefficients: &[T], axis: usize) -> Vec<T> {
        let weights = if local { local_weights(coefficients, self.p) } else { multipole_weights(coefficients, self.p) };
        let zonal = |k: usize| k.isqrt().pow(2) == k;
        // Weights of orders above 0 count twice, for the negative ones.
        let half = T::from_f64(0.5);
        weights.iter().enumerate().map(|(k, w)| if zonal(k) { w[axis + 1] } else { half * w[axis + 1] }).collect()
    }

    #[inline(always)]
    fn l2p<V: Vector<Scalar = T>>(&self, local: &[T], targets: Points<T, 3>, sums: &mut Sums<T, 3>) {
        let weights = local_weights(local, self.p);
        let mut values = vec![V::zero(); weights.len()];
        for i in (0..sums.potential.len()).step_by(T::WIDTH) {
            self.moments.fill(Kind::Regular, targets.load(i), &mut values);
            add_weighted(i, &weights, &values, sums);
        }
    }

    #[inline(always)]
    fn m2p<V: Vector<Scalar = T>>(&self, _: f64, multipole: &[T], targets: Points<T, 3>, sums: &mut Sums<T, 3>) {
        let weights = multipole_weights(multipole, self.p);
        let mut values = vec![V::zero(); weights.len()];
        for i in (0..sums.potential.len()).step_by(T::WIDTH) {
            self.gradients.fill(Kind::Irregular, targets.load(i), &mut values);
            add_weighted(i, &weights, &values, sums);
        }
    }

    #[inline(always)]
    fn m2m<V: Vector<Scalar = T>>(&self, octant: u8, lanes: &mut [V], scratch: &mut Vec<V>) {
        scratch.resize(self.len(), V::zero());
        // From the child's unit to the parent's.
        let mut scale = 1.0;
        for l in 0..=self.p {
            for c in &mut lanes[l * l..(l + 1) * (l + 1)] {
                *c = c.mul(V::constant(scale));
            }
            scale *= 0.5;
        }
        let direction = &self.octants[octant as usize];
        direction.turn(&self.swap_multipole, lanes, scratch);
        for l in (1..=self.p).rev() {
            for k in 0..=2 * l {
                let m = k.div_ceil(2);
                let mut sum = lanes[l * l + k];
                for j in 1..=l - m {
                    sum = V::splat(self.shift[j]).mul_add(lanes[(l - j) * (l - j) + k], sum);
                }
                lanes[l * l + k] = sum;
            }
        }
        direction.turn_back(&self.swap_multipole, lanes, scratch);
    }

    #[inline(always)]
    fn l2l<V: Vector<Scalar = T>>(&self, octant: u8, lanes: &mut [V], scratch: &mut Vec<V>) {
        scratch.resize(self.len(), V::zero());
        let direction = &self.octants[octant as usize];
        direction.turn(&self.swap_local, lanes, scratch);
        for l in 0..=self.p {
            for k in 0..=2 * l {
                let mut sum = lanes[l * l + k];
                for j in 1..=self.p - l {
                    sum = V::splat(self.shift[j]).mul_add(lanes[(l + j) * (l + j) + k], sum);
                }
                lanes[l * l + k] = sum;
            }
        }
        direction.turn_back(&self.swap_local, lanes, scratch);
        let mut scale = 0.5;
        for l in 0..=self.p {
            for c in &mut lanes[l * l..(l + 1) * (l + 1)] {
                *c = c.mul(V::constant(scale));
            }
            scale *= 0.5;
        }
    }

    #[inline(always)]
    fn m2l<V: Vector<Scalar = T>>(&self, class: u32, _: usize, lanes: &mut [V], scratch: &mut Vec<V>) {
        scratch.resize(self.len(), V::zero());
        let (direction, powers) = self.classes[class as usize].as_ref().expect("no translation by zero");
        direction.turn(&self.swap_multipole, lanes, scratch);
        // Re and Im alike.
        for m in 0..=self.p {
            let parts = if m == 0 { 1 } else { 2 };
            for part in 0..parts {
                let k = at(m, m) - m * m + part;
                let mut l = m;
                while l <= self.p {
                    // Several sums at a time: one alone would wait for each of its own additions.
                    match self.p - l {
                        0 => along_z::<T, V, 1>(k, l, m, powers, lanes, scratch),
                        1 => along_z::<T, V, 2>(k, l, m, powers, lanes, scratch),
                        2 => along_z::<T, V, 3>(k, l, m, powers, lanes, scratch),
                        3 => along_z::<T, V, 4>(k, l, m, powers, lanes, scratch),
                        4 => along_z::<T, V, 5>(k, l, m, powers, lanes, scratch),
                        _ => along_z::<T, V, 6>(k, l, m, powers, lanes, scratch),
                    }
                    l += 6;
                }
            }
        }
        lanes.copy_from_slice(scratch);
        direction.turn_back(&self.swap_local, lanes, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_made_once() {
        let classes = Classes::new(4.0);
        let first = Spherical::<f64>::shared(3, classes);
        assert!(Arc::ptr_eq(&first, &Spherical::shared(3, classes)));
        // Another order, other offsets, other numbers.
        assert!(Spherical::<f64>::shared(4, classes).p == 4 && Spherical::<f32>::shared(3, classes).p == 3);
        assert_eq!(Spherical::<f64>::shared(3, Classes::new(5.0)).numbering, Classes::new(5.0));
    }
}
