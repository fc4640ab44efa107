//! The kept choice of the sums of a run as numbers of a checkpoint.

use fmm_core::mesh::Recipe;
use fmm_core::{Kept, KeptMesh, Precision, Settings, Weights};

/// What their names begin with.
const PREFIX: &str = "kept_";

/// Precisions as numbers: bits, the mean of both of them, and 0 where it is open.
const PRECISIONS: [(Precision, f64); 4] =
    [(Precision::Auto, 0.0), (Precision::F32, 32.0), (Precision::Mixed, 48.0), (Precision::F64, 64.0)];

/// The weights of errors of a mesh.
const WEIGHTS: [&str; 3] = ["mesh_relative", "mesh_field", "mesh_potential"];

/// The numbers of a kept choice.
pub fn numbers(kept: &Kept) -> Vec<(String, f64)> {
    let bits = PRECISIONS.iter().find(|(p, _)| *p == kept.precision).map_or(0.0, |p| p.1);
    let mut numbers = vec![
        ("direct", f64::from(u8::from(kept.direct))),
        ("target_error", kept.target_error),
        ("precision_bits", bits),
        ("sums", f64::from(kept.sums)),
        ("patience", f64::from(kept.patience)),
    ];
    numbers.extend(kept.leaf_size.map(|size| ("leaf_size", size as f64)));
    if let Some(KeptMesh { order, error, weights: Weights(weights) }) = kept.mesh {
        numbers.extend([("mesh_order", order as f64), ("mesh_error", error)]);
        numbers.extend(WEIGHTS.into_iter().zip(weights));
    }
    numbers.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), value)).collect()
}

/// The reverse; none for numbers that are not there, as in checkpoints of earlier versions, or that
/// are no choice.
pub fn recalled(get: &impl Fn(&str) -> Option<f64>) -> Option<Kept> {
    let get = |name: &str| get(&format!("{PREFIX}{name}"));
    let (target_error, bits) = (get("target_error")?, get("precision_bits")?);
    let (_, precision) = PRECISIONS.into_iter().map(|(p, b)| (b, p)).find(|(b, _)| *b == bits)?;
    let direct = get("direct")? != 0.0;
    let mesh = || {
        let [relative, field, potential] = WEIGHTS.map(get);
        let (order, weights) = (get("mesh_order")? as usize, Weights([relative?, field?, potential?]));
        let mesh = KeptMesh { order, error: get("mesh_error")?, weights };
        Recipe::ORDERS.contains(&order).then_some(mesh)
    };
    let kept = Kept {
        direct,
        target_error,
        precision,
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
            for (direct, leaf_size) in [(false, Some(77)), (true, None)] {
                let mesh = KeptMesh { order: 7, error: 1e-5, weights: Weights([0.1, 1.0 / 3.0, 0.0]) };
                let mesh = (!direct).then_some(mesh);
                let kept = Kept { direct, target_error: 3e-5, precision, leaf_size, sums: 5, patience: 8, mesh };
                let numbers = numbers(&kept);
                let get = |name: &str| numbers.iter().find(|n| n.0 == name).map(|n| n.1);
                assert_eq!(recalled(&get), Some(kept));
            }
        }
        assert_eq!(recalled(&|_: &str| None), None);
    }
}
