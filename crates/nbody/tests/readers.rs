//! Snapshots opened by the programs that people use: h5py, yt, VTK 9.2.6 (which stands for ParaView 5.11) and the
//! newest VTK.
//!
//! `scripts/setup --test` installs them. Where they are absent each check says `skipped` aloud, and fails if
//! NBODY_REQUIRE_READERS=1, which `scripts/test` sets.

use std::path::Path;

use crate::common::python;
use nbody::files::series::Series;
use nbody::files::snapshot::{Field, Float, Layout, Snapshot, Units, write};

const STEPS: usize = 3;

/// A run of three snapshots, as a scenario would leave it.
fn run(folder: &Path, n: usize, precision: Float) {
    let mut series = Series::new(folder.join("run.hdf.series"));
    for step in 0..STEPS {
        // Not a multiple of the number of the step: readers that ignore the index would show 0, 1, 2.
        let time = 0.1 + 0.3 * step as f64;
        let rows = |shift: f64| {
            (0..n).map(|i| std::array::from_fn(|k| ((i * 3 + k) as f64 * 0.7).sin() + shift * time)).collect()
        };
        let snapshot = Snapshot {
            time,
            step: 100 * step as u64,
            id: (0..n as u64).map(|i| 10 + 3 * i).collect(),
            position: rows(1.0),
            velocity: rows(0.0),
            mass: (0..n).map(|i| 1.0 + (i % 7) as f64).collect(),
            charge: Some(vec![1.5; n]),
            potential: Some(vec![-0.5; n]),
            acceleration: Some(rows(2.0)),
            force_error: Some(vec![1e-7; n]),
            vorticity: Some(rows(3.0)),
            units: Units { length_cm: 3.0857e18, mass_g: 1.98841e33, velocity_cm_per_s: 1e5 },
            box_size: 0.0,
            diagnostics: vec![("kinetic".into(), 1.0)],
            run: nbody::files::run_id::RunId::parse("0123456789abcdef"),
        };
        let name = format!("snap_{step:06}.hdf");
        write(&folder.join(&name), &snapshot, &Layout { fields: Field::ALL.to_vec(), precision }).unwrap();
        series.add(&name, time).unwrap();
    }
}

/// Runs a check of `tests/python` on the run, with the Python of one of the environments of `scripts/setup`.
fn check(environment: &str, script: &str, n: usize, precision: Float) {
    let Some(mut python) = python(environment, script) else { return };
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), n, precision);
    let of = [n.to_string(), STEPS.to_string()];
    let output = python.arg(folder.path().join("run.hdf.series")).args(of).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.lines().any(|l| l.starts_with("ok ")), "{text}");
    println!("{text}");
}

#[test]
fn h5py_finds_the_layout() {
    check(".venv", "check_layout.py", 1000, Float::F32);
}

#[test]
fn h5py_finds_the_layout_of_several_chunks() {
    check(".venv", "check_layout.py", 150_000, Float::F64);
}

#[test]
fn vtk_9_2_6_opens_snapshots() {
    check(".venv", "check_vtk.py", 1000, Float::F32);
}

#[test]
fn the_newest_vtk_opens_snapshots() {
    check(".venv-vtk-new", "check_vtk.py", 1000, Float::F64);
}

#[test]
fn the_newest_vtk_opens_several_chunks() {
    check(".venv-vtk-new", "check_vtk.py", 150_000, Float::F32);
}

#[test]
fn yt_opens_snapshots() {
    check(".venv", "check_yt.py", 1000, Float::F64);
}
