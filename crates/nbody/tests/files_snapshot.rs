//! Snapshots: what is written comes back, bad files are refused by name, and errors leave the old file.

use std::path::Path;

use nbody::files::FileError;
use nbody::files::snapshot::{Field, Float, Layout, Snapshot, Units, read, write};

fn sample(n: usize) -> Snapshot {
    let x = |i: usize, k: usize| ((i * 37 + k * 11) % 101) as f64 / 7.0 - 5.0;
    let rows = |shift: usize| (0..n).map(|i| std::array::from_fn(|k| x(i + shift, k))).collect::<Vec<[f64; 3]>>();
    Snapshot {
        time: 1.25,
        step: 40,
        id: (0..n as u64).map(|i| 2 * i + 1).collect(),
        position: rows(0),
        velocity: rows(5),
        mass: (0..n).map(|i| 1.0 + x(i, 1).abs()).collect(),
        charge: Some((0..n).map(|i| x(i, 2)).collect()),
        potential: Some((0..n).map(|i| -x(i, 0).abs()).collect()),
        acceleration: Some(rows(9)),
        force_error: Some((0..n).map(|i| 1e-6 * x(i, 3).abs()).collect()),
        vorticity: Some(rows(13)),
        units: Units { length_cm: 1.495978707e13, mass_g: 1.98840987e33, velocity_cm_per_s: 4.74e5 },
        box_size: 3.0,
        diagnostics: vec![("kinetic".into(), 0.5), ("potential".into(), -1.0)],
        run: nbody::files::run_id::RunId::parse("0123456789abcdef"),
    }
}

fn full(precision: Float) -> Layout {
    Layout { fields: Field::ALL.to_vec(), precision }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn f64_comes_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    for n in [0, 1, 2, 70_000] {
        let snapshot = sample(n);
        let bytes = write(&path, &snapshot, &full(Float::F64)).unwrap();
        assert_eq!(bytes, std::fs::metadata(&path).unwrap().len());
        assert!(read(&path).unwrap() == snapshot);
        assert_eq!(names(folder.path()), ["a.hdf"]);
    }
}

#[test]
fn f32_rounds_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    let snapshot = sample(100);
    write(&path, &snapshot, &full(Float::F32)).unwrap();
    let back = read(&path).unwrap();
    assert_eq!(back.id, snapshot.id);
    for (a, b) in back.position.as_flattened().iter().zip(snapshot.position.as_flattened()) {
        assert_eq!(*a, f64::from(*b as f32));
    }
}

#[test]
fn the_same_snapshot_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.hdf"), folder.path().join("b.hdf"));
    write(&a, &sample(1000), &full(Float::F32)).unwrap();
    // Clock times in a file would have the resolution of a second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    write(&b, &sample(1000), &full(Float::F32)).unwrap();
    assert!(std::fs::read(a).unwrap() == std::fs::read(b).unwrap());
}

#[test]
fn rows_are_in_id_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    let sorted = sample(50);
    let mut mixed = sorted.clone();
    mixed.id.reverse();
    mixed.position.reverse();
    mixed.velocity.reverse();
    mixed.mass.reverse();
    mixed.charge.as_mut().unwrap().reverse();
    mixed.potential.as_mut().unwrap().reverse();
    mixed.acceleration.as_mut().unwrap().reverse();
    mixed.force_error.as_mut().unwrap().reverse();
    mixed.vorticity.as_mut().unwrap().reverse();
    write(&path, &mixed, &full(Float::F64)).unwrap();
    assert!(read(&path).unwrap() == sorted);
}

#[test]
fn only_what_is_asked_for_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    write(&path, &sample(9), &Layout { fields: vec![], precision: Float::F64 }).unwrap();
    let back = read(&path).unwrap();
    assert!(back.velocity.is_empty() && back.charge.is_none());
    assert!(back.potential.is_none() && back.acceleration.is_none() && back.force_error.is_none());
    assert!(back.vorticity.is_none());
    assert_eq!((back.position, back.mass), (sample(9).position, sample(9).mass));
}

#[test]
fn what_cannot_be_written_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    write(&path, &sample(3), &full(Float::F64)).unwrap();
    let old = std::fs::read(&path).unwrap();
    let refuse = |change: &dyn Fn(&mut Snapshot), precision, words: &str| {
        let mut snapshot = sample(3);
        change(&mut snapshot);
        let error = write(&path, &snapshot, &full(precision)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(matches!(error, FileError::Unwritable { .. }));
        assert!(std::fs::read(&path).unwrap() == old);
        assert_eq!(names(folder.path()), ["a.hdf"]);
    };
    refuse(&|s| s.velocity[1][2] = f64::NAN, Float::F64, "velocity of particle 3 is NaN");
    refuse(&|s| s.position[2][0] = 1e300, Float::F32, "position of particle 5 is 1e300, too large for f32");
    refuse(&|s| s.id[2] = 1, Float::F64, "two particles have the id 1");
    refuse(&|s| s.potential = None, Float::F64, "no potential");
    refuse(&|s| s.force_error = None, Float::F64, "no force_error");
    refuse(&|s| s.mass.truncate(2), Float::F64, "mass has 2 rows for 3 ids");
    refuse(&|s| s.time = f64::INFINITY, Float::F64, "time is inf");
}

#[test]
fn a_missing_folder_is_an_error_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    let error = write(&folder.path().join("none/a.hdf"), &sample(3), &full(Float::F64)).unwrap_err();
    assert_eq!(error.exit_code(), 74);
    assert_eq!(read(&folder.path().join("none.hdf")).unwrap_err().exit_code(), 66);
}

#[test]
fn every_truncation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    write(&path, &sample(200), &full(Float::F64)).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(512) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(read(&path).unwrap_err().exit_code(), 65, "{length} of {} bytes", whole.len());
    }
}

#[test]
fn every_bit_flip_in_the_arrays_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf");
    let snapshot = sample(200);
    write(&path, &snapshot, &full(Float::F64)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let mut found = 0;
    for i in (0..bytes.len()).step_by(23) {
        bytes[i] ^= 1 << (i % 8);
        std::fs::write(&path, &bytes).unwrap();
        match read(&path) {
            Ok(back) => assert!(back == snapshot, "silently wrong after a flip in byte {i}"),
            Err(_) => found += 1,
        }
        bytes[i] ^= 1 << (i % 8);
    }
    assert!(found > bytes.len() / 23 / 4, "{found}");
}
