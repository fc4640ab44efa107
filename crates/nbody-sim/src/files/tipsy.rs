//! Tipsy's binary snapshots (gasoline, ChaNGa, PKDGRAV), G = 1: big-endian ("standard") or little-endian.
//!
//! A header of the time (f64) and the numbers of all, of dimensions, of gas, dark and star particles (i32), with four
//! bytes of padding or without; then records of f32: dark ones (mass, position, velocity, softening, potential), then
//! stars (mass, position, velocity, metals, time of birth, softening, potential).

use std::path::Path;

use super::error::READ;
use super::snapshot::Snapshot;
use super::{FileError, regular};

/// Numbers of a dark particle and of a star.
const WIDTHS: [u64; 2] = [9, 11];

/// Reads dark particles, then stars, numbered from 0.
///
/// # Errors
/// [`FileError::Missing`], [`FileError::Io`]; [`FileError::Data`] if the header does not fit the size of the file, for
/// gas, and for values that are not finite.
pub fn read(path: &Path) -> Result<Snapshot, FileError> {
    let error = |what: String| FileError::data(path, what);
    // The header is judged before memory is taken for the rest.
    let mut file = regular::open(path, u64::MAX)?;
    let length = file.metadata().map_err(FileError::io(path, READ))?.len();
    let mut head = [0u8; 28];
    if length < head.len() as u64 {
        return Err(error(format!("{length} bytes; a tipsy file has a header of 28 or 32")));
    }
    std::io::Read::read_exact(&mut file, &mut head).map_err(FileError::io(path, READ))?;
    // Of the two orders of bytes one makes a sensible number of dimensions.
    let word = |i: usize| [head[8 + 4 * i], head[9 + 4 * i], head[10 + 4 * i], head[11 + 4 * i]];
    let big = u32::from_be_bytes(word(1)) == 3;
    if !big && u32::from_le_bytes(word(1)) != 3 {
        return Err(error("not a tipsy file of three dimensions".into()));
    }
    let count = |i: usize| u64::from(if big { u32::from_be_bytes(word(i)) } else { u32::from_le_bytes(word(i)) });
    let [total, gas, dark, stars] = [count(0), count(2), count(3), count(4)];
    if gas > 0 {
        return Err(error(format!("{gas} particles of gas; only dark particles and stars can be run")));
    }
    let bytes = 4 * (dark * WIDTHS[0] + stars * WIDTHS[1]);
    let start = length.checked_sub(bytes).filter(|s| [28, 32].contains(s) && total == dark + stars);
    let Some(start) = start else {
        let what =
            format!("{length} bytes do not hold the {total} particles ({dark} dark, {stars} stars) of its header");
        return Err(error(format!("{what}; it is damaged, or no tipsy file")));
    };
    let data = std::fs::read(path).map_err(FileError::io(path, READ))?;
    if data.len() as u64 != length {
        return Err(error("changed while it was read".into()));
    }
    let float = |c: &[u8]| {
        let four = [c[0], c[1], c[2], c[3]];
        f64::from(if big { f32::from_be_bytes(four) } else { f32::from_le_bytes(four) })
    };
    let time = head.first_chunk().map_or(0.0, |t| if big { f64::from_be_bytes(*t) } else { f64::from_le_bytes(*t) });
    let mut s = Snapshot { time, id: (0..total).collect(), ..Snapshot::default() };
    let (first, second) = data[start as usize..].split_at(4 * (dark * WIDTHS[0]) as usize);
    for (part, width) in [(first, WIDTHS[0]), (second, WIDTHS[1])] {
        for record in part.chunks_exact(4 * width as usize) {
            let v: Vec<f64> = record.chunks_exact(4).take(7).map(float).collect();
            if let Some(bad) = v.iter().find(|v| !v.is_finite()) {
                return Err(error(format!("particle {} has the value {bad}", s.mass.len())));
            }
            s.mass.push(v[0]);
            s.position.push([v[1], v[2], v[3]]);
            s.velocity.push([v[4], v[5], v[6]]);
        }
    }
    Ok(s)
}
