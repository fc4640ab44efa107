//! Translations as matrices: for executors that multiply, and for comparisons.

use super::Expansion;
use crate::math::simd::{Task, Vector, dispatch};

/// Which translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translation {
    /// A child's multipole, from its corner, to its parent's.
    M2M(u8),
    /// A multipole to a local expansion across the offset of a class.
    M2L(u32),
    /// A parent's local expansion to its child's in a corner.
    L2L(u8),
}

/// The matrix of a translation that does not depend on the level: `[source coefficient][target coefficient]`, n² numbers.
pub fn matrix<E: Expansion<f64, D>, const D: usize>(expansion: &E, translation: Translation) -> Vec<f64> {
    dispatch(Units { expansion, translation })
}

/// Translates the unit vectors, as many at once as there are lanes.
struct Units<'a, E, const D: usize> {
    expansion: &'a E,
    translation: Translation,
}

impl<E: Expansion<f64, D>, const D: usize> Task<f64> for Units<'_, E, D> {
    type Out = Vec<f64>;

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self) -> Vec<f64> {
        const WIDTH: usize = <f64 as crate::math::Number>::WIDTH;
        let n = self.expansion.len();
        let mut out = vec![0.0; n * n];
        let (mut lanes, mut scratch) = (vec![V::zero(); n], vec![]);
        for first in (0..n).step_by(WIDTH) {
            for k in 0..n {
                let mut unit = [0.0; WIDTH];
                if (first..first + WIDTH).contains(&k) {
                    unit[k - first] = 1.0;
                }
                lanes[k] = V::load(&unit);
            }
            match self.translation {
                Translation::M2M(octant) => self.expansion.m2m(octant, &mut lanes, &mut scratch),
                Translation::M2L(class) => self.expansion.m2l(class, 0, &mut lanes, &mut scratch),
                Translation::L2L(octant) => self.expansion.l2l(octant, &mut lanes, &mut scratch),
            }
            for k in 0..n {
                let mut image = [0.0; WIDTH];
                lanes[k].store(&mut image);
                for lane in 0..WIDTH.min(n - first) {
                    out[(first + lane) * n + k] = image[lane];
                }
            }
        }
        out
    }
}
