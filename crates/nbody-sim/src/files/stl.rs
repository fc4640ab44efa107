//! STL: the triangles of a surface, in text or binary.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::Path;

use super::error::READ;
use super::{FileError, regular};

/// Most bytes of a file: 20 million triangles in binary.
const MOST: u64 = 1 << 30;

/// A closed surface of triangles, each counterclockwise as it is seen from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Triangles {
    /// Corners, each once, in the units of the file.
    pub corners: Vec<[f64; 3]>,
    /// Three numbers of corners for each triangle.
    pub triangles: Vec<[u32; 3]>,
}

/// Reads a closed surface. Corners with the same coordinates are one; a triangle with two equal
/// corners is left out, and where all triangles are turned inwards all are turned.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Folder`], [`FileError::Io`]; [`FileError::Data`] for a file
/// that is no STL, is cut short, has coordinates that are not finite, or whose triangles do not
/// close a volume: each edge must be of two of them, in opposite directions.
pub fn read(path: &Path) -> Result<Triangles, FileError> {
    let mut file = BufReader::new(regular::open(path, MOST)?);
    let bad = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::InvalidData => FileError::data(path, format!("is no STL file: {e}")),
        std::io::ErrorKind::UnexpectedEof => {
            FileError::data(path, "is no STL file, or ends before its last triangle; copy it again")
        }
        _ => FileError::io(path, READ)(e),
    };
    let (mut corners, mut triangles, mut numbers) = (vec![], vec![], HashMap::new());
    for (t, triangle) in stl_io::create_stl_reader(&mut file).map_err(bad)?.enumerate() {
        let mut numbered = [0; 3];
        for (number, corner) in numbered.iter_mut().zip(triangle.map_err(bad)?.vertices) {
            // −0 and 0 are one.
            let corner = corner.0.map(|x| x + 0.0);
            if corner.iter().any(|x| !x.is_finite()) {
                let what = format!("triangle {t} (counted from 0) has a corner at {corner:?}; all must be finite");
                return Err(FileError::data(path, what));
            }
            *number = *numbers.entry(corner.map(f32::to_bits)).or_insert_with(|| {
                corners.push(corner.map(f64::from));
                corners.len() as u32 - 1
            });
        }
        let [a, b, c] = numbered;
        if a != b && b != c && c != a {
            triangles.push(numbered);
        }
    }
    let mut found = Triangles { corners, triangles };
    found.check_closed().map_err(|what| FileError::data(path, what))?;
    let volume = found.volume_and_center().0;
    if volume == 0.0 {
        return Err(FileError::data(path, "its triangles enclose no volume"));
    }
    if volume < 0.0 {
        found.triangles.iter_mut().for_each(|t| t.swap(1, 2));
    }
    Ok(found)
}

impl Triangles {
    /// The corners of a triangle.
    fn at(&self, triangle: [u32; 3]) -> [[f64; 3]; 3] {
        triangle.map(|c| self.corners[c as usize])
    }

    fn check_closed(&self) -> Result<(), String> {
        if self.triangles.is_empty() {
            return Err("has no triangles".into());
        }
        // How often an edge is passed from its lower to its higher corner, and back.
        let mut passed: HashMap<[u32; 2], [u32; 2]> = HashMap::new();
        for &[a, b, c] in &self.triangles {
            for [from, to] in [[a, b], [b, c], [c, a]] {
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
            "is no closed surface: {count} of its {all} edges are not between two triangles, for example that from {from:?} to {to:?}, which is of {what}; \
             corners are one where all digits agree. Mend it with a mesh tool"
        ))
    }

    /// The volume inside, negative where triangles are turned inwards, and its center.
    pub fn volume_and_center(&self) -> (f64, [f64; 3]) {
        // Tetrahedra with a corner of the surface: one far away would cost digits.
        let apex = self.corners[self.triangles[0][0] as usize];
        let (mut volume, mut moment) = (0.0, [0.0; 3]);
        for &triangle in &self.triangles {
            let [a, b, c] = self.at(triangle).map(|x| [0, 1, 2].map(|d| x[d] - apex[d]));
            let six = a[0] * (b[1] * c[2] - b[2] * c[1])
                + a[1] * (b[2] * c[0] - b[0] * c[2])
                + a[2] * (b[0] * c[1] - b[1] * c[0]);
            volume += six / 6.0;
            (0..3).for_each(|d| moment[d] += six / 24.0 * (a[d] + b[d] + c[d]));
        }
        (volume, [0, 1, 2].map(|d| apex[d] + moment[d] / volume))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box from (1, 2, 3) to (3, 3, 3.5), by the rows of its triangles' corners.
    fn of_a_box() -> Vec<[[f32; 3]; 3]> {
        let corner = |n: usize| [0, 1, 2].map(|d| [[1.0, 3.0], [2.0, 3.0], [3.0, 3.5]][d][n >> d & 1]);
        let quads = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        let halves = |[a, b, c, d]: [usize; 4]| [[a, b, c], [a, c, d]];
        quads.into_iter().flat_map(halves).map(|t| t.map(corner)).collect()
    }

    fn text(triangles: &[[[f32; 3]; 3]]) -> String {
        let mut text = "solid of a test\n".to_string();
        for t in triangles {
            text.push_str("facet normal 0 0 0\nouter loop\n");
            t.iter().for_each(|[x, y, z]| text.push_str(&format!("vertex {x} {y} {z}\n")));
            text.push_str("endloop\nendfacet\n");
        }
        text + "endsolid of a test\n"
    }

    fn binary(triangles: &[[[f32; 3]; 3]]) -> Vec<u8> {
        let mut bytes = vec![b' '; 80];
        bytes.extend((triangles.len() as u32).to_le_bytes());
        for t in triangles {
            bytes.extend([0; 12]);
            t.as_flattened().iter().for_each(|x| bytes.extend(x.to_le_bytes()));
            bytes.extend([0; 2]);
        }
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> Result<Triangles, FileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stl");
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    }

    #[test]
    fn text_and_binary_are_the_same_surface() {
        let all = of_a_box();
        let found = read_bytes(text(&all).as_bytes()).unwrap();
        assert_eq!(found, read_bytes(&binary(&all)).unwrap());
        assert_eq!((found.corners.len(), found.triangles.len()), (8, 12));
        let (volume, center) = found.volume_and_center();
        assert!((volume - 1.0).abs() < 1e-15, "{volume}");
        assert!((0..3).all(|d| (center[d] - [2.0, 2.5, 3.25][d]).abs() < 1e-15), "{center:?}");
    }

    #[test]
    fn triangles_turned_inwards_are_turned() {
        let inwards: Vec<_> = of_a_box().into_iter().map(|[a, b, c]| [a, c, b]).collect();
        let found = read_bytes(&binary(&inwards)).unwrap();
        assert!(found.volume_and_center().0 > 0.0);
    }

    #[test]
    fn signs_of_zero_and_triangles_without_area_do_not_matter() {
        let mut all = of_a_box();
        all.iter_mut().for_each(|t| t.iter_mut().for_each(|c| c[0] -= 1.0));
        all[3][0][0] *= -1.0;
        let [a, b, _] = all[0];
        all.push([a, b, b]);
        assert_eq!(read_bytes(&binary(&all)).unwrap().triangles.len(), 12);
    }

    #[test]
    fn what_is_no_closed_surface_is_refused() {
        let all = of_a_box();
        let message = |bytes: &[u8]| read_bytes(bytes).unwrap_err().to_string();
        let open = message(&binary(&all[1..]));
        assert!(open.contains("3 of its 18 edges") && open.contains("one triangle alone"), "{open}");
        let twice = message(&binary(&[&all[..], &all[..1]].concat()));
        assert!(twice.contains("more than two triangles"), "{twice}");
        let mut turned = all.clone();
        turned[4].swap(0, 1);
        let turned = message(&binary(&turned));
        assert!(turned.contains("in the same direction"), "{turned}");
        let flat = message(&binary(&[all[0], [all[0][0], all[0][2], all[0][1]]]));
        assert!(flat.contains("enclose no volume"), "{flat}");
        let mut broken = all.clone();
        broken[5][1][2] = f32::NAN;
        let broken = message(&binary(&broken));
        assert!(broken.contains("triangle 5") && broken.contains("NaN"), "{broken}");
        let short = message(&binary(&all)[..300]);
        assert!(short.contains("ends before its last triangle"), "{short}");
        assert!(message(b"x, y, z\n1, 2, 3\n").contains("no STL file"));
        assert!(message(text(&[]).as_bytes()).contains("no triangles"));
        let garbled = text(&all).replacen("vertex 1", "vertex one", 1);
        assert!(message(garbled.as_bytes()).contains("no STL file"));
    }
}
