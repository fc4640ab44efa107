//! Closed surfaces of triangles: corners that are one, edges, parts, and which side is outside.

use std::collections::HashMap;
use std::f64::consts::PI;

use fmm_core::math::cross;
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::files::run_id::RunId;
use crate::files::stl::Triangle;

/// A closed surface whose triangles are counterclockwise as they are seen from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Closed {
    /// Corners, each once.
    pub corners: Vec<[f64; 3]>,
    /// Three numbers of corners for each triangle.
    pub triangles: Vec<[u32; 3]>,
}

/// Triangles whose area is less than this part of the square of their longest side have none, and
/// are left out where edges do not matter.
const FLAT: f64 = 1e-12;

impl Closed {
    /// Corners with the same coordinates are one, and a triangle with two equal corners is left out.
    /// Each part is turned so that space far away is outside: a part within another is a cavity, one
    /// within that is solid again, and so on.
    ///
    /// # Errors
    /// A text, where there are no triangles, where they enclose no volume, and where an edge is not
    /// of two triangles that pass it in opposite directions.
    pub fn of(all: &[Triangle]) -> Result<Self, String> {
        let (mut corners, mut triangles, mut numbers) = (vec![], vec![], HashMap::new());
        for triangle in all {
            let numbered = triangle.map(|corner| {
                // −0 and 0 are one.
                let corner = corner.map(|x| x + 0.0);
                *numbers.entry(corner.map(f64::to_bits)).or_insert_with(|| {
                    corners.push(corner);
                    corners.len() as u32 - 1
                })
            });
            let [a, b, c] = numbered;
            if a != b && b != c && c != a {
                triangles.push(numbered);
            }
        }
        let mut found = Closed { corners, triangles };
        if found.triangles.is_empty() {
            return Err("has no triangles".into());
        }
        found.check_edges()?;
        found.turn_outwards();
        let (volume, _) = found.volume_and_center();
        if volume.is_nan() || volume <= 0.0 {
            return Err("its triangles enclose no volume".into());
        }
        Ok(found)
    }

    fn check_edges(&self) -> Result<(), String> {
        // How often an edge is passed from its lower to its higher corner, and back.
        let mut passed: HashMap<[u32; 2], [u32; 2]> = HashMap::new();
        for &triangle in &self.triangles {
            for [from, to] in edges(triangle) {
                passed.entry([from.min(to), from.max(to)]).or_default()[usize::from(from > to)] += 1;
            }
        }
        let wrong = passed.iter().filter(|(_, times)| **times != [1, 1]);
        // The first of them, so that a message is the same every time.
        let Some((edge, times)) = wrong.clone().min() else { return Ok(()) };
        let [from, to] = edge.map(|c| self.corners[c as usize]);
        let what = match times {
            [0, 1] | [1, 0] => "one triangle alone",
            [0, 2] | [2, 0] => "two triangles that pass it in the same direction",
            _ => "more than two triangles",
        };
        let (count, all) = (wrong.count(), passed.len());
        Err(format!(
            "is no closed surface: {count} of its {all} edges are not between two triangles, for example that from \
             {from:?} to {to:?}, which is of {what}; corners are one where all digits agree. Mend it with a mesh tool"
        ))
    }

    /// The corners of a triangle.
    fn at(&self, triangle: [u32; 3]) -> Triangle {
        triangle.map(|c| self.corners[c as usize])
    }

    /// The triangles of each part: those that are connected by edges.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut by_edge: HashMap<[u32; 2], usize> = HashMap::new();
        for (t, &triangle) in self.triangles.iter().enumerate() {
            by_edge.extend(edges(triangle).map(|edge| (edge, t)));
        }
        let (mut part_of, mut parts) = (vec![false; self.triangles.len()], vec![]);
        for first in 0..self.triangles.len() {
            if std::mem::replace(&mut part_of[first], true) {
                continue;
            }
            let mut part = vec![first];
            let mut seen = 0;
            while seen < part.len() {
                for [from, to] in edges(self.triangles[part[seen]]) {
                    // The other side of an edge passes it the other way.
                    let beyond = by_edge[&[to, from]];
                    if !std::mem::replace(&mut part_of[beyond], true) {
                        part.push(beyond);
                    }
                }
                seen += 1;
            }
            parts.push(part);
        }
        parts
    }

    fn turn_outwards(&mut self) {
        let parts = self.parts();
        let ends: Vec<[[f64; 3]; 2]> = parts.iter().map(|part| self.ends(part)).collect();
        let is_wrong = |(p, part): (usize, &Vec<usize>)| {
            let corner = self.corners[self.triangles[part[0]][0] as usize];
            let may_hold = |o: usize| (0..3).all(|d| ends[o][0][d] <= corner[d] && corner[d] <= ends[o][1][d]);
            let holds = |o: &usize| *o != p && may_hold(*o) && self.times_around(&parts[*o], corner).abs() > 0.5;
            let depth = (0..parts.len()).filter(holds).count();
            (self.six_volumes(part) > 0.0) != depth.is_multiple_of(2)
        };
        let wrong: Vec<bool> = parts.par_iter().enumerate().map(is_wrong).collect();
        let turned = parts.iter().zip(wrong).filter(|(_, wrong)| *wrong).flat_map(|(part, _)| part);
        turned.for_each(|&t| self.triangles[t].swap(1, 2));
    }

    /// The lowest and the highest coordinates of a part.
    fn ends(&self, part: &[usize]) -> [[f64; 3]; 2] {
        let corners = part.iter().flat_map(|&t| self.at(self.triangles[t]));
        corners.fold([[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]], |[low, high], x| {
            [std::array::from_fn(|d| x[d].min(low[d])), std::array::from_fn(|d| x[d].max(high[d]))]
        })
    }

    /// How often a part goes around a point: the sum of the solid angles of its triangles over 4π
    /// (van Oosterom & Strackee 1983).
    fn times_around(&self, part: &[usize], x: [f64; 3]) -> f64 {
        let angle = |&t: &usize| {
            let [a, b, c] = self.at(self.triangles[t]).map(|y| difference(y, x));
            let [la, lb, lc] = [a, b, c].map(|v| dot(v, v).sqrt());
            dot(a, cross(b, c)).atan2(la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb)
        };
        part.iter().map(angle).sum::<f64>() / (2.0 * PI)
    }

    /// Six times the volume inside of a part, negative where its triangles are turned inwards.
    fn six_volumes(&self, part: &[usize]) -> f64 {
        // Tetrahedra with a corner of the surface: one far away would cost digits.
        let apex = self.corners[self.triangles[part[0]][0] as usize];
        let of = |&t: &usize| {
            let [a, b, c] = self.at(self.triangles[t]).map(|x| difference(x, apex));
            dot(a, cross(b, c))
        };
        part.iter().map(of).sum()
    }

    /// The volume inside, and its center.
    pub fn volume_and_center(&self) -> (f64, [f64; 3]) {
        let apex = self.corners[self.triangles[0][0] as usize];
        let (mut six, mut moment) = (0.0, [0.0; 3]);
        for &triangle in &self.triangles {
            let [a, b, c] = self.at(triangle).map(|x| difference(x, apex));
            let part = dot(a, cross(b, c));
            six += part;
            (0..3).for_each(|d| moment[d] += part * (a[d] + b[d] + c[d]));
        }
        (six / 6.0, [0, 1, 2].map(|d| apex[d] + moment[d] / (4.0 * six)))
    }

    /// The triangles that have an area.
    pub fn with_area(&self) -> Vec<[u32; 3]> {
        let has = |&&triangle: &&[u32; 3]| {
            let [a, b, c] = self.at(triangle);
            let [ab, bc, ca] = [difference(b, a), difference(c, b), difference(a, c)];
            let longest = [ab, bc, ca].map(|v| dot(v, v)).into_iter().fold(0.0, f64::max);
            let across = cross(ab, ca);
            dot(across, across).sqrt() > FLAT * longest
        };
        self.triangles.iter().filter(has).copied().collect()
    }

    /// Digits that tell it from any other surface.
    pub fn digest(&self) -> RunId {
        let mut hash = Sha256::new();
        self.corners.as_flattened().iter().for_each(|x| hash.update(x.to_le_bytes()));
        self.triangles.as_flattened().iter().for_each(|c| hash.update(c.to_le_bytes()));
        let bytes = hash.finalize();
        RunId::of_hash(std::array::from_fn(|i| bytes[i]))
    }
}

fn edges([a, b, c]: [u32; 3]) -> [[u32; 2]; 3] {
    [[a, b], [b, c], [c, a]]
}

pub(super) fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|d| a[d] - b[d])
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The box from one corner to the opposite one.
    pub fn of_a_box(low: [f64; 3], high: [f64; 3]) -> Vec<Triangle> {
        let corner = |n: usize| [0, 1, 2].map(|d| [low[d], high[d]][n >> d & 1]);
        let quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        let halves = |[a, b, c, d]: [usize; 4]| [[a, b, c], [a, c, d]];
        quads.into_iter().flat_map(halves).map(|t| t.map(corner)).collect()
    }

    fn inwards(all: Vec<Triangle>) -> Vec<Triangle> {
        all.into_iter().map(|[a, b, c]| [a, c, b]).collect()
    }

    #[test]
    fn corners_are_one_and_the_volume_is_that_inside() {
        let mut all = of_a_box([0.0, 2.0, 3.0], [2.0, 3.0, 3.5]);
        let [a, b, _] = all[0];
        all.push([a, b, b]);
        // A zero with a sign is a zero.
        all.iter_mut().take(4).for_each(|t| t.iter_mut().for_each(|c| c[0] = if c[0] == 0.0 { -0.0 } else { c[0] }));
        let found = Closed::of(&all).unwrap();
        assert_eq!((found.corners.len(), found.triangles.len()), (8, 12));
        let (volume, center) = found.volume_and_center();
        assert!((volume - 1.0).abs() < 1e-15, "{volume}");
        assert!((0..3).all(|d| (center[d] - [1.0, 2.5, 3.25][d]).abs() < 1e-15), "{center:?}");
        // The same volume, another surface.
        let other = Closed::of(&of_a_box([0.0, 2.0, 3.0], [1.0, 4.0, 3.5])).unwrap();
        assert_eq!(other.volume_and_center().0, volume);
        assert!(other.digest() != found.digest() && found.digest() == found.clone().digest());
    }

    #[test]
    fn parts_are_turned_by_what_they_lie_within() {
        let [outer, hole, core, other] = [
            of_a_box([0.0; 3], [4.0; 3]),
            of_a_box([1.0; 3], [3.0; 3]),
            of_a_box([1.5; 3], [2.5; 3]),
            of_a_box([5.0, 0.0, 0.0], [6.0, 1.0, 1.0]),
        ];
        let expected = 64.0 - 8.0 + 1.0 + 1.0;
        for turned in 0..16 {
            let parts = [&outer, &hole, &core, &other].into_iter().enumerate();
            let all =
                parts.flat_map(|(p, part)| if turned >> p & 1 == 1 { inwards(part.clone()) } else { part.clone() });
            let found = Closed::of(&all.collect::<Vec<_>>()).unwrap();
            assert_eq!(found.parts().len(), 4);
            let volume = found.volume_and_center().0;
            assert!((volume - expected).abs() < 1e-12, "{turned}: {volume}");
        }
    }

    #[test]
    fn what_is_no_closed_surface_is_refused() {
        let all = of_a_box([0.0; 3], [1.0; 3]);
        let mut turned = all.clone();
        turned[4].swap(0, 1);
        for (triangles, words) in [
            (all[1..].to_vec(), "3 of its 18 edges are not between two triangles"),
            (all[1..].to_vec(), "which is of one triangle alone"),
            ([&all[..], &all[..1]].concat(), "more than two triangles"),
            (turned, "pass it in the same direction"),
            (vec![all[0], [all[0][0], all[0][2], all[0][1]]], "enclose no volume"),
            (vec![], "has no triangles"),
        ] {
            let found = Closed::of(&triangles).unwrap_err();
            assert!(found.contains(words), "{words}: {found}");
        }
    }
}
