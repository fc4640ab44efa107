//! Snapshots with the estimated errors of their forces.

use fmm_core::Softening;
use fmm_core::cpu::direct_field;

use crate::common::{Folder, code, outputs, random};
use nbody::files::snapshot;

/// Charges with q/m = 30, in sums whose errors are those of a low order.
const CHARGES: &str = r#"
[force]
law = "coulomb"
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "file"
path = "p.csv"
[solver]
method = "fmm"
order = 3
[time]
dt = 0.001
end = 0.002
[output]
every = 0.001
fields = ["acceleration", "force_error", "charge"]
"#;

fn charges(n: usize) -> String {
    let row = |v: &[f64]| format!("{},{},{},{},{}\n", v[0], v[1], v[2], 0.1 * (v[3] + 0.1), 3.0 * (v[3] + 0.1));
    format!("x,y,z,mass,charge\n{}", random(4 * n).chunks(4).map(row).collect::<String>())
}

#[test]
fn force_errors_of_a_snapshot_have_the_size_of_the_errors_of_its_accelerations() {
    let folder = Folder::with(&[("case.toml", CHARGES), ("p.csv", &charges(2000))]);
    let output = folder.case(&["--out", "a"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    for step in [0, 2] {
        let s = snapshot::read(&folder.path(&format!("a/snap_{step:06}.hdf"))).unwrap();
        let (charge, found, estimate) = (s.charge.unwrap(), s.acceleration.unwrap(), s.force_error.unwrap());
        let exact = direct_field(Softening::Plummer(0.05), &s.position, &charge, &s.position);
        let off = |i: usize| (0..3).map(|d| (found[i][d] - 30.0 * exact[i].0[d]).powi(2)).sum::<f64>();
        let errors: f64 = (0..found.len()).map(off).sum();
        let ratio = (estimate.iter().map(|e| e * e).sum::<f64>() / errors).sqrt();
        assert!((0.6..1.6).contains(&ratio), "step {step}: {ratio}");
        let close = (0..found.len()).filter(|&i| (0.25..4.0).contains(&(off(i).sqrt() / estimate[i]))).count();
        assert!(close > 1200, "step {step}: {close} of 2000");
    }
    // A stopped run goes on to the same files.
    folder.done(&["case.toml", "--out", "b", "--steps", "1"]);
    folder.done(&["--resume", "b", "--until", "0.002"]);
    let [a, b] = ["a", "b"].map(|run| snapshot::read(&folder.path(&format!("{run}/snap_000002.hdf"))).unwrap());
    assert_eq!((a.force_error, a.position), (b.force_error, b.position));
}

#[test]
fn force_errors_are_written_only_where_they_are_named() {
    let without = CHARGES.replace("fields = [\"acceleration\", \"force_error\", \"charge\"]\n", "");
    let folder = Folder::with(&[("case.toml", &without), ("p.csv", &charges(300))]);
    folder.done(&["case.toml", "--out", "a"]);
    let s = snapshot::read(&folder.path("a/snap_000000.hdf")).unwrap();
    assert!(s.force_error.is_none() && s.acceleration.is_some() && s.potential.is_some());
}

#[test]
fn force_errors_in_the_plane_are_refused_by_key_and_value() {
    let plane = CHARGES.replace("[force]", "[run]\ndimensions = 2\n[force]").replace("\"plummer\"", "\"algebraic\"");
    let folder = Folder::with(&[("case.toml", &plane), ("p.csv", "x,y,z,mass,charge\n0,0,0,1,1\n1,0,0,1,1\n")]);
    let output = folder.case(&["--out", "a"]);
    assert_eq!(code(&output), 65, "{}", outputs(&output));
    for words in ["case.toml", "output.fields names \"force_error\"", "errors of sums in the plane are not estimated"] {
        assert!(outputs(&output).contains(words), "{}", outputs(&output));
    }
}
