//! `nbody convert`: every format gives back the same bits, and wrong inputs are refused by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::python;
use nbody::files::formats::FORMATS;
use nbody::files::series::Series;
use nbody::files::snapshot::{Field, Float, Layout, Snapshot, Units, read, write};

const N: usize = 300;

/// Numbers that are awkward to print, exact in f32 if `single`.
fn sample(time: f64, step: u64, single: bool) -> Snapshot {
    let value = |i: usize, k: usize| {
        let v = match (i + k) % 7 {
            0 => -0.0,
            1 => 1.0 / 3.0 + i as f64,
            2 => 1e-30 * (1.0 + k as f64 / 3.0),
            3 => -1.0e30 / (3.0 + i as f64),
            4 => f64::from(f32::MIN_POSITIVE) / 8.0,
            _ => (i as f64 * 0.37 + k as f64 + time).sin(),
        };
        if single { f64::from(v as f32) } else { v }
    };
    let rows = |shift: usize| (0..N).map(|i| std::array::from_fn(|k| value(i + shift, k))).collect::<Vec<[f64; 3]>>();
    let list = |shift: usize| (0..N).map(|i| value(i, shift)).collect::<Vec<f64>>();
    Snapshot {
        time,
        step,
        id: (0..N as u64).map(|i| (1 << 60) + 3 * i).collect(),
        position: rows(0),
        velocity: rows(1),
        mass: list(2).iter().map(|m| m.abs()).collect(),
        charge: Some(list(3)),
        potential: Some(list(4)),
        acceleration: Some(rows(5)),
        force_error: Some(list(2)),
        vorticity: Some(rows(6)),
        units: Units { length_cm: 3.0857e18, mass_g: 1.98841e33, velocity_cm_per_s: 1e5 },
        box_size: 2.5,
        diagnostics: vec![("kinetic".into(), 0.1 + time), ("potential".into(), -1.0 / 3.0)],
        run: None,
    }
}

fn layout(precision: Float) -> Layout {
    Layout { fields: Field::ALL.to_vec(), precision }
}

fn nbody(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nbody")).current_dir(folder).args(arguments).output().unwrap()
}

fn messages(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = nbody(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", messages(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The SHA-256 that `nbody check --hash` prints for a file.
fn hash(folder: &Path, name: &str) -> String {
    let text = ok(folder, &["check", name, "--hash"]);
    text.lines().last().unwrap().split("  ").next().unwrap().to_string()
}

/// The bits of all numbers: -0 is not 0.
fn bits(s: &Snapshot) -> Vec<u64> {
    let mut s = s.clone();
    s.diagnostics.sort_by(|a, b| a.0.cmp(&b.0));
    let vectors = [&s.position, &s.velocity, s.acceleration.as_ref().unwrap(), s.vorticity.as_ref().unwrap()];
    let scalars = [&s.charge, &s.potential, &s.force_error].map(|v| v.as_ref().unwrap());
    let lists = [&s.mass, scalars[0], scalars[1], scalars[2]];
    let mut all: Vec<u64> = s.id.clone();
    all.extend(vectors.iter().flat_map(|v| v.as_flattened()).map(|v| v.to_bits()));
    all.extend(lists.iter().flat_map(|v| v.iter()).map(|v| v.to_bits()));
    all.extend(s.diagnostics.iter().map(|(_, v)| v.to_bits()));
    all
}

fn run(folder: &Path, precision: Float) {
    let mut series = Series::new(folder.join("run.hdf.series"));
    for step in 0..3 {
        let name = format!("snap_{step:06}.hdf");
        let s = sample(0.1 + 0.3 * step as f64, 10 * step, precision == Float::F32);
        write(&folder.join(&name), &s, &layout(precision)).unwrap();
        series.add(&name, s.time).unwrap();
    }
    fs::write(folder.join("scenario.toml"), "title = \"t\"\n").unwrap();
}

#[test]
fn every_format_gives_back_the_same_bits() {
    for precision in [Float::F32, Float::F64] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let original = sample(0.1 + 0.2, 40, precision == Float::F32);
        write(&at("a.hdf"), &original, &layout(precision)).unwrap();
        let before = hash(folder.path(), "a.hdf");
        for ending in ["csv", "hdf5", "vtkhdf", "npy", "hdf"] {
            let (there, back) = (format!("there.{ending}"), format!("back.{ending}.hdf"));
            ok(folder.path(), &["convert", "a.hdf", &there]);
            // .npy has no place for the time, the units and the step.
            let rest: &[&str] = if ending == "npy" { &["--time", "0.30000000000000004"] } else { &[] };
            ok(folder.path(), &[&["convert", &there, &back], rest].concat());
            let mut read_back = read(&at(&back)).unwrap();
            if ending == "npy" {
                (read_back.step, read_back.units, read_back.box_size) = (40, original.units, original.box_size);
                read_back.diagnostics = original.diagnostics.clone();
            } else {
                assert_eq!(hash(folder.path(), &back), before, "{ending}");
            }
            assert_eq!(bits(&read_back), bits(&original), "{ending}");
            assert_eq!(read_back.time.to_bits(), original.time.to_bits(), "{ending}");
            let same = |s: &Snapshot| (s.step, s.units, s.box_size);
            assert_eq!(same(&read_back), same(&original), "{ending}");
            assert_eq!(nbody::files::snapshot::precision(&at(&back)).unwrap(), precision, "{ending}");
        }
        // The other way around: what was CSV or .npy is so again, byte for byte.
        for ending in ["csv", "npy"] {
            ok(folder.path(), &["convert", &format!("back.{ending}.hdf"), &format!("again.{ending}")]);
            let files = ["there", "again"].map(|n| fs::read(at(&format!("{n}.{ending}"))).unwrap());
            assert!(files[0] == files[1], "{ending}");
        }
    }
}

#[test]
fn a_run_becomes_one_file_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Float::F64);
    let text = ok(folder.path(), &["convert", ".", "all.vtkhdf"]);
    assert!(text.contains("3 snapshots"), "{text}");
    for (k, name) in ["snap_000000.hdf", "snap_000001.hdf", "snap_000002.hdf"].into_iter().enumerate() {
        ok(folder.path(), &["convert", "all.vtkhdf", "k.hdf", "--snapshot", &k.to_string(), "--force"]);
        assert_eq!(hash(folder.path(), "k.hdf"), hash(folder.path(), name));
        let [a, b] = ["k.hdf", name].map(|n| read(&folder.path().join(n)).unwrap());
        assert_eq!(bits(&a), bits(&b));
    }
    ok(folder.path(), &["check", "all.vtkhdf"]);
    ok(folder.path(), &["convert", ".", "last.csv", "--snapshot", "last"]);
    assert!(fs::read_to_string(folder.path().join("last.csv")).unwrap().contains("# step = 20\n"));
}

/// Leaves fewer particles in the first snapshot of a run.
fn shrink(folder: &Path, precision: Float) {
    let mut fewer = sample(0.1, 0, precision == Float::F32);
    let keep = 100;
    fewer.id.truncate(keep);
    let more = [&mut fewer.acceleration, &mut fewer.vorticity].map(|v| v.as_mut().unwrap());
    for v in [&mut fewer.position, &mut fewer.velocity].into_iter().chain(more) {
        v.truncate(keep);
    }
    fewer.mass.truncate(keep);
    for v in [&mut fewer.charge, &mut fewer.potential, &mut fewer.force_error] {
        v.as_mut().unwrap().truncate(keep);
    }
    write(&folder.join("snap_000000.hdf"), &fewer, &layout(precision)).unwrap();
}

#[test]
fn numbers_of_particles_may_change() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Float::F64);
    shrink(folder.path(), Float::F64);
    ok(folder.path(), &["convert", ".", "all.vtkhdf"]);
    for (k, name) in ["snap_000000.hdf", "snap_000001.hdf", "snap_000002.hdf"].into_iter().enumerate() {
        ok(folder.path(), &["convert", "all.vtkhdf", "k.hdf", "--snapshot", &k.to_string(), "--force"]);
        assert_eq!(hash(folder.path(), "k.hdf"), hash(folder.path(), name));
    }
}

#[test]
fn what_cannot_be_converted_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Float::F64);
    fs::write(folder.path().join("no_mass.csv"), "x,y,z\n1,2,3\n").unwrap();
    fs::write(folder.path().join("twice.csv"), "id,x,y,z,mass\n4,1,2,3,1\n4,1,2,4,1\n").unwrap();
    fs::write(folder.path().join("time.csv"), "# time = soon\nx,y,z,mass\n1,2,3,1\n").unwrap();
    fs::write(folder.path().join("big.csv"), "x,y,z,mass\n1e300,2,3,1\n").unwrap();
    fs::write(folder.path().join("text.hdf"), "hello").unwrap();
    fs::write(folder.path().join("there.csv"), "").unwrap();
    for (arguments, code, words) in [
        (&["snap_000000.hdf", "a.txt"][..], 2, "the ending names no format"),
        (&["missing.hdf", "a.csv"], 66, "missing.hdf: no such file"),
        (&[".", "a.csv"], 2, "has 3 snapshots: choose one with --snapshot 0 to 2"),
        (&[".", "a.csv", "--snapshot", "3"], 2, "numbered 0 to 2"),
        (&[".", "a.csv", "--snapshot", "first"], 2, "a whole number of 0 or more, or last"),
        (&["snap_000000.hdf", "there.csv"], 74, "there.csv: is there already"),
        (&["snap_000000.hdf", "no/a.csv"], 74, "no/a.csv: cannot write"),
        (&["no_mass.csv", "a.hdf"], 65, "no column mass"),
        (&["twice.csv", "a.npy"], 65, "two rows have the id 4"),
        (&["time.csv", "a.hdf"], 65, "# time = soon"),
        (&["big.csv", "a.hdf", "--precision", "f32"], 65, "too large for f32"),
        (&["text.hdf", "a.csv"], 65, "not an HDF5 file"),
        (&["there.csv", "a.hdf"], 65, "empty"),
        (&["no_mass.csv", "a.hdf", "--units", "cgs"], 2, "allowed: nbody, si, astro, solar, md, galactic"),
        (&["snap_000001.hdf", "a.csv", "--units", "si"], 65, "snap_000001.hdf: says that its units are 3085"),
        (&["snap_000001.hdf", "a.csv", "--time", "7"], 65, "snap_000001.hdf: says that its time is "),
    ] {
        let output = nbody(folder.path(), &[&["convert"], arguments].concat());
        let text = messages(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
    let left: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|p| !p.to_str().unwrap().contains("/a.")), "{left:?}");
}

/// Runs a check of `tests/python` in one of the environments of `scripts/setup`.
fn check(environment: &str, script: &str, folder: &Path, arguments: &[&str]) {
    let Some(mut python) = python(environment, script) else { return };
    let output = python.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success() && messages(&output).contains("ok "), "{}", messages(&output));
    println!("{}", messages(&output));
}

#[test]
fn yt_and_pynbody_open_gadget_files_and_numpy_opens_npy() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Float::F64);
    for (ending, precision) in [("hdf5", "f64"), ("npy", "f32"), ("csv", "f64")] {
        let name = format!("a.{ending}");
        ok(folder.path(), &["convert", "snap_000001.hdf", &name, "--precision", precision]);
    }
    check(".venv", "check_converted.py", folder.path(), &["snap_000001.hdf", "a.hdf5", "a.npy", "a.csv"]);
}

#[test]
fn the_newest_vtk_opens_temporal_files() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Float::F32);
    // Otherwise the cells of all steps are alike, and wrong offsets would not show.
    shrink(folder.path(), Float::F32);
    ok(folder.path(), &["convert", ".", "all.vtkhdf"]);
    check(".venv-vtk-new", "check_temporal.py", folder.path(), &["all.vtkhdf", "run.hdf.series"]);
}

#[test]
fn the_documented_hash_is_what_python_computes() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), Float::F32);
    ok(folder.path(), &["convert", ".", "all.vtkhdf"]);
    let names = ["snap_000000.hdf", "snap_000001.hdf", "all.vtkhdf"];
    let hashes = names.map(|n| hash(folder.path(), n));
    let arguments: Vec<&str> = names.iter().zip(&hashes).flat_map(|(n, h)| [*n, h.as_str()]).collect();
    check(".venv", "check_hash.py", folder.path(), &arguments);
}

/// Formats that are read by their ending have no checksums, and their files are not damaged.
#[test]
fn files_without_checksums_are_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a.hdf"), &sample(0.3, 40, false), &layout(Float::F64)).unwrap();
    for format in FORMATS.iter().filter(|format| format.read.is_some()) {
        for ending in format.endings {
            let name = format!("a.{ending}");
            ok(folder.path(), &["convert", "a.hdf", &name]);
            let output = nbody(folder.path(), &["check", &name]);
            let expected = "only HDF5 files have checksums; nbody info reads this one through";
            assert_eq!(output.status.code(), Some(65), "{name}");
            assert!(messages(&output).contains(expected), "{name}: {}", messages(&output));
            let text = ok(folder.path(), &["info", &name]);
            assert!(text.contains("table of particles"), "{name}: {text}");
        }
    }
}
