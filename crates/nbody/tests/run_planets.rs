//! Ten years of the solar system against JPL's ephemeris DE421.

use std::path::Path;
use std::process::Command;

use nbody::files::{csv, snapshot};

/// Positions relative to the first body, the Sun.
fn heliocentric(x: &[[f64; 3]]) -> Vec<[f64; 3]> {
    x.iter().map(|body| std::array::from_fn(|k| body[k] - x[0][k])).collect()
}

fn length(x: [f64; 3]) -> f64 {
    x[0].hypot(x[1]).hypot(x[2])
}

#[test]
fn planets_are_where_the_ephemeris_has_them() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("planets");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
    command.arg("run").arg(scenarios.join("planets.toml")).arg("--out").arg(&out).arg("-q");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.file_name().unwrap().to_str().unwrap().starts_with("snap_"));
    names.sort();
    let end = snapshot::read(names.last().unwrap()).unwrap();
    assert_eq!((end.time, end.step), (10.0, 14_610), "3652.5 days are ten years of 365.25");
    let reference = csv::read(&scenarios.join("planets-2010.csv"), &["x", "y", "z"]).unwrap();
    let (ours, theirs) = (heliocentric(&end.position), heliocentric(&reference.positions().unwrap()));
    assert_eq!(ours.len(), 10);
    // Relativity, the Moon's distance from the Earth and the asteroids are left out; these bounds know.
    let bounds = [
        ("Mercury", 1e-4),
        ("Venus", 2e-5),
        ("Earth+Moon", 2e-5),
        ("Mars", 2e-5),
        ("Jupiter", 2e-7),
        ("Saturn", 2e-7),
        ("Uranus", 2e-7),
        ("Neptune", 2e-7),
    ];
    let mut table = String::new();
    let mut missed = false;
    for (i, (name, bound)) in (1..).zip(bounds) {
        let difference = std::array::from_fn(|k| ours[i][k] - theirs[i][k]);
        let error = length(difference) / length(theirs[i]);
        missed |= error > bound;
        table += &format!("{name:<11} {error:.2e}, allowed {bound:.0e}\n");
    }
    assert!(!missed, "relative heliocentric errors:\n{table}");
    println!("{table}");
}
