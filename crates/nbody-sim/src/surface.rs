//! A closed surface of triangles as the form of a body: its signed distance.

mod closed;

use std::path::{Path, PathBuf};

use fmm_core::grid::bodies::Solid;
use parry3d_f64::query::{PointQueryWithLocation as _, Ray, RayCast as _};
use parry3d_f64::shape::{TriMesh, TrianglePointLocation};
use rayon::prelude::*;

use crate::files::run_id::RunId;
use crate::files::{FileError, stl};
use closed::{Closed, difference, dot};

/// A surface, in the units of a scenario, in the frame of its body.
#[derive(Clone)]
pub struct Surface {
    /// The file that it was read from.
    pub path: PathBuf,
    /// What lengths of the file are multiplied by.
    pub scale: f64,
    /// The point of the file, in its units, that is the center of the body.
    pub origin: [f64; 3],
    /// Digits that tell the triangles of the file from any others.
    pub digest: RunId,
    /// The number of its triangles.
    pub triangles: usize,
    /// The volume inside.
    pub volume: f64,
    mesh: TriMesh,
    depth: f64,
    extent: f64,
}

/// Points along each side of the box around a surface at which its depth is taken, and how often the
/// distance between them is halved around the deepest.
const PLACES: usize = 16;
const HALVINGS: usize = 3;

/// A point's distance from a triangle is along its normal, if the nearest point lies within it: if
/// the cosine is less than this, the triangle is too flat to have a normal.
const UPRIGHT: f64 = 0.9;

/// Directions of rays, along no axis and in no plane of a lattice.
const DIRECTIONS: [[f64; 3]; 3] = [[0.5377, 0.6613, 0.5231], [-0.7013, 0.2911, 0.6507], [0.1931, -0.8117, 0.5513]];

impl Surface {
    /// Reads a surface from an STL file; `origin` is the center of its volume where none is given.
    ///
    /// # Errors
    /// Those of [`stl::read`]; [`FileError::Data`] for triangles that close no volume, and where the
    /// surface is too small or too large for numbers.
    pub fn read(path: &Path, scale: f64, origin: Option<[f64; 3]>) -> Result<Self, FileError> {
        let error = |what: String| FileError::data(path, what);
        let closed = Closed::of(&stl::read(path)?).map_err(error)?;
        let (volume, center) = closed.volume_and_center();
        let origin = origin.unwrap_or(center);
        let own = |&x: &[f64; 3]| difference(x, origin).map(|x| x * scale);
        let corners: Vec<[f64; 3]> = closed.corners.iter().map(own).collect();
        let extent = corners.iter().map(|&x| dot(x, x).sqrt()).fold(0.0, f64::max);
        let volume = volume * scale.powi(3);
        if !(1e-60..=1e60).contains(&extent) || volume.is_nan() || volume <= 0.0 {
            let what = format!(
                "with the scale {scale:e} the surface reaches {extent:.3e} from its origin; allowed: 1e-60 to 1e60"
            );
            return Err(error(what));
        }
        let corners = corners.into_iter().map(Into::into).collect();
        let mesh = TriMesh::new(corners, closed.with_area()).map_err(|e| error(format!("is no surface: {e}")))?;
        let (digest, triangles) = (closed.digest(), closed.triangles.len());
        let path = path.to_owned();
        let mut surface = Surface { path, scale, origin, digest, triangles, volume, mesh, depth: 0.0, extent };
        surface.depth = surface.deepest();
        Ok(surface)
    }

    /// The depth of its deepest point, or a little less.
    fn deepest(&self) -> f64 {
        let bounds = self.mesh.local_aabb();
        let (low, size) = (bounds.mins.to_array(), bounds.extents().to_array());
        let at = |n: usize| {
            let place = [n % PLACES, n / PLACES % PLACES, n / (PLACES * PLACES)];
            [0, 1, 2].map(|d| low[d] + size[d] * (place[d] as f64 + 0.5) / PLACES as f64)
        };
        let deeper = |a: (f64, [f64; 3]), b: (f64, [f64; 3])| if b.0 > a.0 { b } else { a };
        let depths = |places: Vec<[f64; 3]>| -> Vec<(f64, [f64; 3])> {
            places.into_par_iter().map(|x| (-self.distance(x), x)).collect()
        };
        let places = (0..PLACES * PLACES * PLACES).map(at).collect();
        let mut best = depths(places).into_iter().reduce(deeper).expect("some places");
        let mut step = size.map(|s| 0.5 * s / PLACES as f64);
        for _ in 0..HALVINGS {
            let from = best.1;
            let around = |n: usize| {
                let side = [n % 3, n / 3 % 3, n / 9].map(|i| i as f64 - 1.0);
                [0, 1, 2].map(|d| from[d] + side[d] * step[d])
            };
            best = depths((0..27).map(around).collect()).into_iter().fold(best, deeper);
            step = step.map(|s| 0.5 * s);
        }
        best.0
    }

    /// Whether a point is inside: whether most of a few rays from it leave through the first triangle
    /// that they meet. The nearest triangle says nothing where the nearest point is on an edge.
    fn is_inside(&self, x: [f64; 3]) -> bool {
        let leaves = |direction: &[f64; 3]| {
            let ray = Ray::new(x.into(), (*direction).into());
            let hit = self.mesh.cast_local_ray_and_get_normal(&ray, f64::MAX, false);
            hit.is_some_and(|hit| dot(self.normal(hit.subshape), *direction) > 0.0)
        };
        2 * DIRECTIONS.iter().filter(|d| leaves(d)).count() > DIRECTIONS.len()
    }

    /// The normal of a triangle, outwards, as long as twice its area.
    fn normal(&self, triangle: u32) -> [f64; 3] {
        self.mesh.triangle(triangle).scaled_normal().to_array()
    }
}

impl Solid for Surface {
    fn distance(&self, x: [f64; 3]) -> f64 {
        let (nearest, (triangle, place)) = self.mesh.project_local_point_and_get_location(x.into(), false);
        let from = difference(x, nearest.point.to_array());
        let distance = dot(from, from).sqrt();
        let normal = self.normal(triangle);
        let along = dot(from, normal) / (distance * dot(normal, normal).sqrt());
        let inside = match place {
            TrianglePointLocation::OnFace(..) if along.abs() > UPRIGHT => along < 0.0,
            _ => self.is_inside(x),
        };
        if inside { -distance } else { distance }
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
        let Surface { path, triangles, scale, origin, .. } = self;
        write!(f, "{}: {triangles} triangles, scale {scale}, origin {origin:?}", path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::stl::Triangle;
    use closed::tests::of_a_box;
    use fmm_core::math::cross;

    /// An L: a cube of side 2 without the quarter x > 1, y > 1.
    fn angle() -> Vec<Triangle> {
        let outline = [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [1.0, 1.0], [1.0, 2.0], [0.0, 2.0]];
        let at = |[x, y]: [f64; 2], z: f64| [x, y, z];
        let face = [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]];
        let lower = face.map(|[a, b, c]: [usize; 3]| [a, c, b].map(|i| at(outline[i], 0.0)));
        let upper = face.map(|t| t.map(|i| at(outline[i], 2.0)));
        let sides = (0..6).flat_map(|i| {
            let [a, b] = [outline[i], outline[(i + 1) % 6]];
            [[at(a, 0.0), at(b, 0.0), at(b, 2.0)], [at(a, 0.0), at(b, 2.0), at(a, 2.0)]]
        });
        lower.into_iter().chain(upper).chain(sides).collect()
    }

    /// A knife: its edge is a line from 0 to 2 on the z axis. The side of y > 0 passes it from corner
    /// to corner, the other one in two halves: a triangle without area is between them.
    fn knife() -> Vec<Triangle> {
        let [a, b, m] = [[0.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 1.0]];
        let [c, d, e, f] = [[2.0, 0.2, 0.0], [2.0, 0.2, 2.0], [2.0, -0.2, 0.0], [2.0, -0.2, 2.0]];
        let upper = [[a, b, d], [a, d, c]];
        let flat = [[a, m, b]];
        let lower = [[a, e, m], [m, e, f], [m, f, b]];
        let rest = [[c, d, f], [c, f, e], [a, c, e], [b, f, d]];
        upper.into_iter().chain(flat).chain(lower).chain(rest).collect()
    }

    fn surface(of: &[Triangle], scale: f64, origin: Option<[f64; 3]>) -> Surface {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stl");
        let mut text = "solid\n".to_string();
        for t in of {
            text.push_str("facet normal 0 0 0\nouter loop\n");
            t.iter().for_each(|[x, y, z]| text.push_str(&format!("vertex {x} {y} {z}\n")));
            text.push_str("endloop\nendfacet\n");
        }
        std::fs::write(&path, text + "endsolid\n").unwrap();
        Surface::read(&path, scale, origin).unwrap()
    }

    /// The distance of the nearest of many points of the surface, and how often the triangles go
    /// around `x`.
    fn by_points(of: &[Triangle], x: [f64; 3]) -> (f64, f64) {
        let (mut nearest, mut angle) = (f64::INFINITY, 0.0);
        for t in of {
            let [a, b, c] = t.map(|y| difference(y, x));
            let [la, lb, lc] = [a, b, c].map(|v| dot(v, v).sqrt());
            let below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
            angle += 2.0 * dot(a, cross(b, c)).atan2(below);
            for i in 0..=40 {
                for j in 0..=40 - i {
                    let [u, v] = [i, j].map(|n| f64::from(n) / 40.0);
                    let p = [0, 1, 2].map(|d| a[d] + u * (b[d] - a[d]) + v * (c[d] - a[d]));
                    nearest = nearest.min(dot(p, p).sqrt());
                }
            }
        }
        (nearest, angle.abs() / (4.0 * std::f64::consts::PI))
    }

    #[test]
    fn distances_and_sides_are_those_of_the_triangles() {
        let apart = [of_a_box([0.0; 3], [1.0; 3]), of_a_box([1.5, 0.0, 0.0], [2.0, 2.0, 2.0])].concat();
        for (name, of) in [("angle", angle()), ("knife", knife()), ("two boxes", apart)] {
            let surface = surface(&of, 1.0, Some([0.0; 3]));
            for n in 0..2000 {
                let x = [0.754_877_67, 0.569_840_29, 0.430_159_71].map(|r| (f64::from(n) * r).fract() * 3.0 - 0.5);
                let (nearest, times) = by_points(&of, x);
                let found = surface.distance(x);
                // Points of the triangles are 0.05 apart, those on the diagonals 0.07.
                let close = found.abs() <= nearest + 1e-12 && nearest * nearest - found * found < 0.0036;
                assert!(close, "{name}, {x:?}: {found} {nearest}");
                assert_eq!(found < 0.0, times > 0.5, "{name}, {x:?}: {found}, {times} times around");
            }
        }
    }

    #[test]
    fn size_and_place_follow_scale_and_origin() {
        let whole = surface(&angle(), 1.0, None);
        assert!((whole.volume - 6.0).abs() < 1e-14, "{}", whole.volume);
        // The centers of three cubes of sides 1, 1 and 2.
        let center = [5.0 / 6.0, 5.0 / 6.0, 1.0];
        assert!((0..3).all(|d| (whole.origin[d] - center[d]).abs() < 1e-14), "{:?}", whole.origin);
        let small = surface(&angle(), 0.1, None);
        assert!((small.volume - 6e-3).abs() < 1e-16 && (small.extent - 0.1 * whole.extent).abs() < 1e-15);
        assert!((small.distance([0.01, 0.02, 0.03]) - 0.1 * whole.distance([0.1, 0.2, 0.3])).abs() < 1e-15);
        let moved = surface(&angle(), 1.0, Some([1.0, 0.0, 0.0]));
        let found = moved.distance([-0.5, 0.5, 1.0]);
        assert!((found + 0.5).abs() < 1e-14 && (moved.extent - 3.0).abs() < 1e-14, "{found} {}", moved.extent);
    }

    #[test]
    fn the_deepest_point_is_found() {
        // The largest ball in an L of sides 2 and width 1 touches both outer sides and the inner edge: r = 2 − √2.
        let expected = 2.0 - 2f64.sqrt();
        let found = surface(&angle(), 1.0, None).depth;
        assert!((0.97 * expected..=expected + 1e-12).contains(&found), "{found} {expected}");
    }
}
