//! STL: the triangles of a surface, in text or binary.
//!
//! Read by hand, since the crate that there is (`stl_io` 0.11) reads the first `solid` of a text
//! alone, and refuses capitals and solids without a name.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::error::READ;
use super::{FileError, regular};

/// Most bytes of a file: 20 million triangles in binary.
const MOST: u64 = 1 << 30;
/// Bytes of a binary file before its triangles, the last four their number, and of each of them.
const HEAD: usize = 84;
const EACH: usize = 50;
/// A longer line is none of a text.
const LONGEST: u64 = 4096;

/// The corners of a triangle.
pub type Triangle = [[f64; 3]; 3];

/// Reads the triangles of a file, of all solids that are in it.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Folder`], [`FileError::Io`]; [`FileError::Data`] for a file
/// that is no STL or is cut short, and for coordinates that are not finite.
pub fn read(path: &Path) -> Result<Vec<Triangle>, FileError> {
    let file = regular::open(path, MOST)?;
    let length = file.metadata().map_err(FileError::io(path, READ))?.len();
    let mut file = BufReader::new(file);
    let head = file.fill_buf().map_err(FileError::io(path, READ))?;
    let count = head.get(HEAD - 4..HEAD).and_then(|b| Some(u32::from_le_bytes(b.try_into().ok()?)));
    // A binary file may begin with `solid` too; its length says what it is.
    let bytes = |count: u32| HEAD as u64 + EACH as u64 * u64::from(count);
    let binary = count.is_some_and(|count| length == bytes(count));
    let begins = |head: &[u8], with: &[u8]| head.len() >= with.len() && head[..with.len()].eq_ignore_ascii_case(with);
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let triangles = if binary {
        read_binary(&mut file)
    } else if begins(start, b"solid") {
        return read_text(path, &mut file);
    } else {
        let what = match count {
            Some(count) => format!(
                "is no STL file: it does not begin with \"solid\", as text does, and as binary it would have {} bytes \
                 for its {count} triangles, not {length}",
                bytes(count)
            ),
            None => format!("is no STL file: it does not begin with \"solid\", and has {length} bytes alone"),
        };
        return Err(FileError::data(path, what));
    };
    let triangles = triangles.map_err(FileError::io(path, READ))?;
    match triangles.iter().position(|t| t.as_flattened().iter().any(|x| !x.is_finite())) {
        Some(n) => {
            let what = format!("triangle {n} (from 0) has the corners {:?}; all must be finite", triangles[n]);
            Err(FileError::data(path, what))
        }
        None => Ok(triangles),
    }
}

fn read_binary(file: &mut BufReader<File>) -> std::io::Result<Vec<Triangle>> {
    let mut bytes = vec![];
    file.read_to_end(&mut bytes)?;
    let number = |b: &[u8]| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let corner = |b: &[u8]| [number(&b[0..4]), number(&b[4..8]), number(&b[8..12])];
    // After the normal, which the corners give too.
    let triangle = |t: &[u8; EACH]| [corner(&t[12..24]), corner(&t[24..36]), corner(&t[36..48])];
    Ok(bytes[HEAD.min(bytes.len())..].as_chunks::<EACH>().0.iter().map(triangle).collect())
}

fn read_text(path: &Path, file: &mut BufReader<File>) -> Result<Vec<Triangle>, FileError> {
    let (mut triangles, mut corners, mut bytes, mut ended): (Vec<Triangle>, Vec<[f64; 3]>, _, _) =
        (vec![], vec![], vec![], false);
    for line in 1.. {
        bytes.clear();
        let length = file.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        if length.map_err(FileError::io(path, READ))? == 0 {
            break;
        }
        let wrong = |what: &str| Err(FileError::data(path, format!("line {line}: {what}")));
        if bytes.len() as u64 == LONGEST {
            return wrong("is too long for an STL file in text");
        }
        // Names may have any letters.
        let text = String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_ascii_lowercase();
        let mut words = text.split_whitespace();
        match words.next() {
            None | Some("facet" | "outer" | "endloop") => {}
            Some("solid") => ended = false,
            Some("endsolid") => ended = true,
            Some("vertex") => {
                let numbers: Vec<f64> = words.by_ref().map_while(|word| word.parse().ok()).collect();
                let corner = <[f64; 3]>::try_from(numbers).ok().filter(|c| c.iter().all(|x| x.is_finite()));
                let Some(corner) = corner.filter(|_| words.next().is_none()) else {
                    return wrong(&format!("{:?} is no corner: vertex and three finite numbers", text.trim()));
                };
                corners.push(corner);
            }
            Some("endfacet") => {
                let Ok(triangle) = Triangle::try_from(std::mem::take(&mut corners)) else {
                    return wrong("ends a facet that has not three corners");
                };
                triangles.push(triangle);
            }
            Some(word) => return wrong(&format!("{word:?} is no word of an STL file in text")),
        }
    }
    if !ended {
        return Err(FileError::data(path, "ends before endsolid: it is cut short, or no STL file in text"));
    }
    Ok(triangles)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIANGLES: [Triangle; 2] =
        [[[0.0, 1.5, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]], [[0.25, 0.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]]];

    fn text(triangles: &[Triangle]) -> String {
        let mut text = "solid of a test\n".to_string();
        for t in triangles {
            text.push_str("facet normal 0 0 0\nouter loop\n");
            t.iter().for_each(|[x, y, z]| text.push_str(&format!("vertex {x} {y} {z}\n")));
            text.push_str("endloop\nendfacet\n");
        }
        text + "endsolid of a test\n"
    }

    fn binary(head: &str, triangles: &[Triangle]) -> Vec<u8> {
        let mut bytes = format!("{head:80}").into_bytes();
        bytes.extend((triangles.len() as u32).to_le_bytes());
        for t in triangles {
            bytes.extend([0; 12]);
            t.as_flattened().iter().for_each(|x| bytes.extend((*x as f32).to_le_bytes()));
            bytes.extend([0; 2]);
        }
        bytes
    }

    fn read_bytes(bytes: &[u8]) -> Result<Vec<Triangle>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.stl");
        std::fs::write(&path, bytes).unwrap();
        read(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn text_and_binary_have_the_same_triangles() {
        let plain = text(&TRIANGLES);
        let written = [
            plain.clone().into_bytes(),
            plain.to_ascii_uppercase().replace('\n', "\r\n").into_bytes(),
            plain.replace("of a test", "").into_bytes(),
            format!("\u{feff}  {plain}\n\n").into_bytes(),
            [&b"solid caf\xe9\n"[..], plain.as_bytes().split_at(16).1].concat(),
            binary("", &TRIANGLES),
            binary("solid, in spite of it\n", &TRIANGLES),
            // Several solids, one after the other.
            (text(&TRIANGLES[..1]) + &text(&TRIANGLES[1..])).into_bytes(),
        ];
        for (n, bytes) in written.iter().enumerate() {
            assert_eq!(read_bytes(bytes).as_deref(), Ok(&TRIANGLES[..]), "{n}");
        }
    }

    #[test]
    fn what_is_no_stl_file_is_refused_with_its_place() {
        let (plain, whole) = (text(&TRIANGLES), binary("", &TRIANGLES));
        let mut infinite = TRIANGLES;
        infinite[1][2][0] = f64::INFINITY;
        for (bytes, words) in [
            (&b""[..], "0 bytes alone"),
            (b"x, y, z\n1, 2, 3\n", "does not begin with \"solid\""),
            (&whole[..150], "184 bytes for its 2 triangles, not 150"),
            (&binary("", &infinite), "triangle 1 (from 0)"),
            (plain.replacen("vertex 1", "vertex one", 1).as_bytes(), "line 5: \"vertex one 0 0\" is no corner"),
            (plain.replacen("vertex 1", "vertex 1 1", 1).as_bytes(), "line 5: \"vertex 1 1 0 0\" is no corner"),
            (plain.replacen("vertex 1", "vertex nan", 1).as_bytes(), "is no corner"),
            (plain.replacen("vertex 1 0 0\n", "", 1).as_bytes(), "line 7: ends a facet that has not three corners"),
            (plain.replacen("endloop", "end", 1).as_bytes(), "line 7: \"end\" is no word"),
            (plain.replace("endsolid of a test\n", "").as_bytes(), "cut short"),
            (&[&b"solid x\n"[..], &[b'1'; 10_000]].concat(), "line 2: is too long"),
        ] {
            let found = read_bytes(bytes).unwrap_err();
            assert!(found.contains(words), "{words}: {found}");
        }
    }
}
