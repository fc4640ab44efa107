//! A closed surface of triangles as the form of a body: its signed distance.

use std::path::PathBuf;

use fmm_core::grid::bodies::Solid;
use parry3d_f64::query::PointQuery as _;
use parry3d_f64::shape::{TriMesh, TriMeshFlags};
use rayon::prelude::*;

use crate::files::stl::Triangles;

/// A surface, in the units of a scenario and about a point that comes to the center of its body.
#[derive(Clone)]
pub struct Surface {
    /// The file that it was read from.
    pub path: PathBuf,
    /// How much larger it is than in the file.
    pub scale: f64,
    /// The point of the file that comes to the center of the body.
    pub origin: [f64; 3],
    /// The volume inside.
    pub volume: f64,
    mesh: TriMesh,
    depth: f64,
    extent: f64,
}

/// Points along each side of the box around a surface that its depth is looked for at.
const LOOKS: usize = 16;
/// Times that the search for the deepest point halves its step.
const HALVINGS: usize = 12;

impl Surface {
    /// The surface of a file; `origin` is the center of its volume where none is given.
    ///
    /// # Errors
    /// A text, where the triangles are too small or too large for their scale, or too many.
    pub fn new(path: PathBuf, scale: f64, origin: Option<[f64; 3]>, from: Triangles) -> Result<Self, String> {
        let (volume, center) = from.volume_and_center();
        let origin = origin.unwrap_or(center);
        let own = |x: &[f64; 3]| [0, 1, 2].map(|d| (x[d] - origin[d]) * scale);
        let corners: Vec<[f64; 3]> = from.corners.iter().map(own).collect();
        let length = |x: &[f64; 3]| x.iter().fold(0.0f64, |l, x| l.hypot(*x));
        let extent = corners.iter().map(length).fold(0.0, f64::max);
        let volume = volume * scale.powi(3);
        if !(1e-60..=1e60).contains(&extent) || volume.is_nan() || volume <= 0.0 {
            return Err(format!("the surface reaches {extent:e} from its origin and has a volume of {volume:e}"));
        }
        let corners = corners.into_iter().map(Into::into).collect();
        let mesh = TriMesh::with_flags(corners, from.triangles, TriMeshFlags::ORIENTED);
        let mesh = mesh.map_err(|e| format!("the triangles are no surface: {e}"))?;
        let mut surface = Surface { path, scale, origin, volume, mesh, depth: 0.0, extent };
        surface.depth = surface.deepest();
        Ok(surface)
    }

    /// The number of its triangles.
    pub fn triangles(&self) -> usize {
        self.mesh.num_triangles()
    }

    /// The depth of its deepest point, or a little less.
    fn deepest(&self) -> f64 {
        let bounds = self.mesh.local_aabb();
        let (low, size) = (bounds.mins.to_array(), bounds.extents().to_array());
        let at = |n: usize| {
            let place = [n % LOOKS, n / LOOKS % LOOKS, n / (LOOKS * LOOKS)];
            [0, 1, 2].map(|d| low[d] + size[d] * (place[d] as f64 + 0.5) / LOOKS as f64)
        };
        let look = |x: [f64; 3]| (-self.distance(x), x);
        let deeper = |a: (f64, [f64; 3]), b: (f64, [f64; 3])| if b.0 > a.0 { b } else { a };
        let looks: Vec<_> = (0..LOOKS * LOOKS * LOOKS).into_par_iter().map(|n| look(at(n))).collect();
        let mut best = looks.into_iter().reduce(deeper).expect("some points");
        let mut step = size.map(|s| s / LOOKS as f64);
        for _ in 0..HALVINGS {
            let (_, from) = best;
            let around = (0..27).map(|n| {
                let side = [n % 3, n / 3 % 3, n / 9].map(|i: i32| f64::from(i - 1));
                look(std::array::from_fn(|d| from[d] + side[d] * step[d]))
            });
            best = around.fold(best, deeper);
            step = step.map(|s| s / 2.0);
        }
        best.0
    }
}

impl Solid for Surface {
    fn distance(&self, x: [f64; 3]) -> f64 {
        self.mesh.distance_to_local_point(x.into(), false)
    }

    fn depth(&self) -> f64 {
        self.depth
    }

    fn extent(&self) -> f64 {
        self.extent
    }
}

impl std::fmt::Debug for Surface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, triangles) = (self.path.display(), self.triangles());
        write!(f, "{path}: {triangles} triangles, scale {}, origin {:?}", self.scale, self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An L: a cube of side 2 without the quarter x > 1, y > 1.
    fn angle() -> Triangles {
        let outline = [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [1.0, 1.0], [1.0, 2.0], [0.0, 2.0]];
        let corners = [0.0, 2.0].into_iter().flat_map(|z| outline.map(|[x, y]| [x, y, z])).collect();
        let face = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]];
        let lower = face.map(|[a, b, c]| [a, c, b]);
        let upper = face.map(|t: [u32; 3]| t.map(|c| c + 6));
        let sides = (0..6u32).flat_map(|i| {
            let j = (i + 1) % 6;
            [[i, j, j + 6], [i, j + 6, i + 6]]
        });
        Triangles { corners, triangles: lower.into_iter().chain(upper).chain(sides).collect() }
    }

    fn surface(scale: f64, origin: Option<[f64; 3]>) -> Surface {
        Surface::new("angle.stl".into(), scale, origin, angle()).unwrap()
    }

    /// The distance of the nearest of many points of the surface, and how often the triangles go
    /// around `x` (the sum of their solid angles: van Oosterom & Strackee 1983).
    fn by_hand(of: &Triangles, x: [f64; 3]) -> (f64, f64) {
        let (mut nearest, mut angle) = (f64::INFINITY, 0.0);
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        for t in &of.triangles {
            let [a, b, c] = t.map(|i| [0, 1, 2].map(|d| of.corners[i as usize][d] - x[d]));
            let [la, lb, lc] = [a, b, c].map(|v| dot(v, v).sqrt());
            let across = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
            let below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
            angle += 2.0 * dot(a, across).atan2(below);
            for i in 0..=40 {
                for j in 0..=40 - i {
                    let [u, v] = [i, j].map(|n| f64::from(n) / 40.0);
                    let p = [0, 1, 2].map(|d| a[d] + u * (b[d] - a[d]) + v * (c[d] - a[d]));
                    nearest = nearest.min(dot(p, p).sqrt());
                }
            }
        }
        (nearest, angle / (4.0 * std::f64::consts::PI))
    }

    #[test]
    fn distances_and_sides_are_those_of_the_triangles() {
        let (of, surface) = (angle(), surface(1.0, Some([0.0; 3])));
        for n in 0..2000 {
            let x = [0.754_877_67, 0.569_840_29, 0.430_159_71].map(|r| (f64::from(n) * r).fract() * 3.0 - 0.5);
            let (nearest, times) = by_hand(&of, x);
            let found = surface.distance(x);
            // Points of the triangles are 0.05 apart, those on the diagonals 0.07.
            assert!(
                found.abs() <= nearest + 1e-12 && nearest * nearest - found * found < 0.0036,
                "{x:?}: {found} {nearest}"
            );
            assert_eq!(found < 0.0, times > 0.5, "{x:?}: {found}, {times} times around");
        }
    }

    #[test]
    fn size_and_place_follow_scale_and_origin() {
        let whole = surface(1.0, None);
        assert!((whole.volume - 6.0).abs() < 1e-14, "{}", whole.volume);
        // The centers of three cubes of sides 1, 1 and 2.
        let center = [5.0 / 6.0, 5.0 / 6.0, 1.0];
        assert!((0..3).all(|d| (whole.origin[d] - center[d]).abs() < 1e-14), "{:?}", whole.origin);
        let small = surface(0.1, None);
        assert!((small.volume - 6e-3).abs() < 1e-16 && (small.extent - 0.1 * whole.extent).abs() < 1e-15);
        assert!((small.distance([0.01, 0.02, 0.03]) - 0.1 * whole.distance([0.1, 0.2, 0.3])).abs() < 1e-15);
        let moved = surface(1.0, Some([1.0, 0.0, 0.0]));
        assert!((moved.distance([-0.5, 0.5, 1.0]) + 0.5).abs() < 1e-14, "{}", moved.distance([-0.5, 0.5, 1.0]));
        assert!((moved.extent - 3.0).abs() < 1e-14, "{}", moved.extent);
    }

    #[test]
    fn the_deepest_point_is_found() {
        // The largest ball in an L of sides 2 and width 1 touches both outer sides and the inner edge: r = 2 − √2.
        let expected = 2.0 - 2f64.sqrt();
        let found = surface(1.0, None).depth;
        assert!((0.99 * expected..=expected + 1e-12).contains(&found), "{found} {expected}");
    }
}
