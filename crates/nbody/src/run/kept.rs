//! The kept choice of the sums of a run as numbers of a checkpoint.

use fmm_core::kept::Mesh;
use fmm_core::{Kept, Precision, Settings};

/// What their names begin with.
const PREFIX: &str = "kept_";

/// Precisions as numbers: bits, the mean of both of them, and 0 where it is open.
const PRECISIONS: [(Precision, f64); 4] =
    [(Precision::Auto, 0.0), (Precision::F32, 32.0), (Precision::Mixed, 48.0), (Precision::F64, 64.0)];

/// The number of a precision.
fn bits(precision: Precision) -> f64 {
    PRECISIONS.iter().find(|(p, _)| *p == precision).map_or(0.0, |p| p.1)
}

/// The reverse.
fn precision(bits: f64) -> Option<Precision> {
    PRECISIONS.into_iter().find(|(_, b)| *b == bits).map(|p| p.0)
}

/// The numbers of a kept choice.
pub fn numbers(kept: &Kept) -> Vec<(String, f64)> {
    let mut numbers = vec![
        ("direct", f64::from(u8::from(kept.direct))),
        ("target_error", kept.target_error),
        ("precision_bits", bits(kept.precision)),
        ("sums", f64::from(kept.sums)),
        ("patience", f64::from(kept.patience)),
    ];
    numbers.extend(kept.leaf_size.map(|size| ("leaf_size", size as f64)));
    if let Some(mesh) = kept.mesh {
        numbers.extend([
            ("mesh_order", mesh.order as f64),
            ("mesh_neighbours", mesh.neighbours as f64),
            ("mesh_precision_bits", bits(mesh.precision)),
            ("mesh_left", f64::from(mesh.left)),
        ]);
    }
    numbers.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), value)).collect()
}

/// The reverse; none for numbers that are not there, as in checkpoints of earlier versions, or that
/// are no choice.
pub fn recalled(get: &impl Fn(&str) -> Option<f64>) -> Option<Kept> {
    let get = |name: &str| get(&format!("{PREFIX}{name}"));
    let target_error = get("target_error")?;
    let mesh = || {
        Some(Mesh {
            order: get("mesh_order")? as usize,
            neighbours: get("mesh_neighbours")? as usize,
            precision: precision(get("mesh_precision_bits")?)?,
            left: get("mesh_left")? as u32,
        })
    };
    let kept = Kept {
        direct: get("direct")? != 0.0,
        target_error,
        precision: precision(get("precision_bits")?)?,
        leaf_size: get("leaf_size").map(|size| size as usize),
        sums: get("sums")? as u32,
        patience: get("patience")? as u32,
        mesh: mesh(),
    };
    (Settings::TIGHTEST..=0.1).contains(&target_error).then_some(kept)
}

/// Takes a kept choice out of the numbers of a checkpoint.
pub fn forget(numbers: &mut Vec<(String, f64)>) {
    numbers.retain(|(name, _)| !name.starts_with(PREFIX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_recalled_as_the_choice_that_they_were() {
        for (precision, _) in PRECISIONS {
            let mesh = Mesh { order: 7, neighbours: 64, precision, left: 3 };
            for (direct, leaf_size, mesh) in [(false, Some(77), Some(mesh)), (true, None, None)] {
                let kept = Kept { direct, target_error: 3e-5, precision, leaf_size, sums: 5, patience: 8, mesh };
                let numbers = numbers(&kept);
                let get = |name: &str| numbers.iter().find(|n| n.0 == name).map(|n| n.1);
                assert_eq!(recalled(&get), Some(kept));
            }
        }
        assert_eq!(recalled(&|_: &str| None), None);
    }
}
