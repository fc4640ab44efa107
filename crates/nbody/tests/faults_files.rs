//! Files that are truncated or have a wrong bit: none is taken for another, and a run goes on from
//! the other generation.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::faults::{data, full, missing};
use crate::common::{Folder, code, outputs, random};
use nbody::files::snapshot::{self, Field, Float, Layout, Snapshot};
use nbody::files::{FileError, checkpoint, series::Series};

const SMALL: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 300
[time]
dt = 0.01
end = 0.04
[output]
every = 0.02
"#;

/// A folder with a run in `a` that has files of all kinds and two generations of checkpoints.
fn finished() -> Folder {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q", "--until", "0.02"]);
    folder.done(&["--resume", "a", "-q", "--until", "0.04"]);
    folder
}

/// Files of the run whose damage must be found.
const GUARDED: [&str; 4] = ["snap_000001.hdf", "checkpoint.0.hdf", "checkpoint.1.hdf", "run.hdf.series"];

/// Everything that a file says, or why it is refused.
fn read(path: &Path) -> Result<String, FileError> {
    let name = path.file_name().unwrap().to_string_lossy();
    if name.starts_with("snap_") {
        let s = snapshot::read(path)?;
        snapshot::check_vtkhdf(path, &s)?;
        return Ok(format!("{s:?}"));
    }
    if name.starts_with("checkpoint.") {
        return checkpoint::read(path).map(|c| format!("{c:?}"));
    }
    Series::read(path).map(|s| format!("{:?}", s.entries()))
}

#[test]
fn every_truncation_is_refused() {
    let folder = finished();
    let copy = |name: &str| folder.path("a").join(name);
    let mut tried = 0;
    for name in GUARDED {
        let (path, whole) = (folder.path(name), fs::read(copy(name)).unwrap());
        for length in (0..whole.len()).step_by(if full() { 512 } else { 4096 }) {
            fs::write(&path, &whole[..length]).unwrap();
            let error = read(&path).expect_err(&format!("{name} of {length} bytes, {} were written", whole.len()));
            assert_eq!(error.exit_code(), 65, "{name} of {length} bytes: {error}");
            tried += 1;
        }
    }
    println!("{tried} truncations");
}

#[test]
fn no_bit_flip_goes_unnoticed() {
    let folder = finished();
    let flips = if full() { 1000 } else { 100 };
    let mut found = 0;
    for name in GUARDED {
        let (path, whole) = (folder.path("a").join(name), fs::read(folder.path("a").join(name)).unwrap());
        let right = read(&path).unwrap();
        for (k, place) in random(flips).into_iter().enumerate() {
            let mut bytes = whole.clone();
            let bit = (place * (8 * whole.len()) as f64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            match read(&path) {
                Err(e) => {
                    assert!(e.to_string().contains(name) && e.exit_code() == 65, "{e}");
                    found += 1;
                }
                // The index of the snapshots is compared with them.
                Ok(text) if text != right && name.ends_with("series") => {
                    let output = folder.command(&["check", "a"]).output().unwrap();
                    assert_eq!(code(&output), 65, "flip {k} of {name}, bit {bit}: {}", outputs(&output));
                    found += 1;
                }
                Ok(text) => assert!(text == right, "flip {k} of {name}, bit {bit} makes another file"),
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    println!("{} flips, {found} found, the others harmless", flips * GUARDED.len());
    assert!(found > flips);
}

#[test]
fn damage_to_the_newest_checkpoint_costs_a_generation() {
    let folder = finished();
    let newest = checkpoint::latest(&folder.path("a")).unwrap().unwrap().path;
    let (name, bytes) = (newest.file_name().unwrap().to_str().unwrap(), fs::read(&newest).unwrap());
    folder.done(&["case.toml", "--out", "whole", "-q", "--until", "0.08"]);
    let flip = |at: usize| bytes.iter().enumerate().map(|(i, b)| b ^ u8::from(i == at)).collect::<Vec<u8>>();
    // Between the parts of a file are bytes that mean nothing.
    let matters = |at: &usize| {
        fs::write(folder.path("flipped.hdf"), flip(*at)).unwrap();
        checkpoint::read(&folder.path("flipped.hdf")).is_err()
    };
    let within = (bytes.len() / 2..).find(matters).unwrap();
    let damages: [(&str, Vec<u8>); 4] = [
        ("empty", vec![]),
        ("half", bytes[..bytes.len() / 2].to_vec()),
        ("zeros", vec![0; bytes.len()]),
        ("flip", flip(within)),
    ];
    for (what, damaged) in damages {
        let run = folder.path(what);
        crate::common::faults::copy(&folder.path("a"), &run);
        fs::write(run.join(name), damaged).unwrap();
        let output = folder.command(&["check", what]).output().unwrap();
        assert!(code(&output) == 65 && outputs(&output).contains("from checkpoint"), "{what}: {}", outputs(&output));
        let output = folder.run(&["--resume", what, "--until", "0.08"]);
        let text = outputs(&output);
        assert!(code(&output) == 0 && text.contains(name) && text.contains("going on from"), "{what}: {text}");
        assert_eq!(crate::common::faults::differing(&folder.path("whole"), &run), [""; 0], "{what}");
    }
}

/// `check` of a whole run after one file of it was changed.
#[test]
fn a_check_finds_what_is_missing_or_does_not_belong() {
    let folder = finished();
    type Change = (&'static str, fn(&Path));
    let changes: [Change; 6] = [
        ("no snapshot", |run| fs::remove_file(run.join("snap_000001.hdf")).unwrap()),
        ("exchanged", |run| {
            fs::rename(run.join("snap_000001.hdf"), run.join("x")).unwrap();
            fs::rename(run.join("snap_000002.hdf"), run.join("snap_000001.hdf")).unwrap();
            fs::rename(run.join("x"), run.join("snap_000002.hdf")).unwrap();
        }),
        ("one more", |run| assert!(fs::copy(run.join("snap_000001.hdf"), run.join("snap_000003.hdf")).is_ok())),
        ("cut table", |run| {
            let text = fs::read_to_string(run.join("diagnostics.csv")).unwrap();
            fs::write(run.join("diagnostics.csv"), &text[..text.len() - 30]).unwrap();
        }),
        ("no index", |run| fs::remove_file(run.join("run.hdf.series")).unwrap()),
        ("cut report", |run| fs::write(run.join("run.json"), "{\"program\":").unwrap()),
    ];
    for (what, change) in changes {
        let run = folder.path(what);
        crate::common::faults::copy(&folder.path("a"), &run);
        change(&run);
        let output = folder.command(&["check", what]).output().unwrap();
        assert!(matches!(code(&output), 65 | 66), "{what}: {}", outputs(&output));
    }
}

fn sample() -> Snapshot {
    let rows = |f: f64| (0..100).map(|i| std::array::from_fn(|k| f * (i * 3 + k) as f64)).collect::<Vec<[f64; 3]>>();
    Snapshot {
        id: (0..100).collect(),
        position: rows(1.0),
        velocity: rows(-0.3),
        mass: vec![1.0; 100],
        ..Snapshot::default()
    }
}

#[test]
fn poison_is_told_with_its_field_first_place_and_number() {
    let folder = Folder::new("[[particles]]\nmodel = 'file'\npath = 'p.csv'\n[time]\ndt = 0.5\nend = 1\n");
    let header = "x,y,z,vx,vy,vz,mass\n";
    for (column, name) in header.trim().split(',').enumerate() {
        for poison in ["nan", "inf", "-inf"] {
            let row = |i: usize| {
                let value = |k: usize| if k == column && i >= 70 { poison.into() } else { format!("{}", i + k + 1) };
                (0..7).map(value).collect::<Vec<String>>().join(",") + "\n"
            };
            fs::write(folder.path("p.csv"), header.to_string() + &(0..100).map(row).collect::<String>()).unwrap();
            let output = folder.case(&["--out", "a"]);
            // The header is line 1.
            assert!(
                code(&output) == 65 && outputs(&output).contains(&format!("line 72, column {name}")),
                "{}",
                outputs(&output)
            );
        }
    }
    // An array of a snapshot that holds what no writer of ours writes: GADGET's contiguous arrays can be changed in place.
    let path = folder.path("p.hdf5");
    for (what, place) in [("Coordinates", 1.0), ("Velocities", -0.3)] {
        nbody::files::formats::plain::write(&path, &sample(), Float::F64).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        // The number of row 70, component 0.
        let value = (place * 210.0f64).to_le_bytes();
        let at = bytes.windows(8).position(|w| w == value).unwrap();
        bytes[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let output = folder.case(&["--out", "a", "--set", "particles.0.path=p.hdf5"]);
        let text = outputs(&output);
        assert!(code(&output) == 65 && text.contains(&format!("/PartType1/{what} of row 70 is NaN (1 such")), "{text}");
    }
    assert!(!folder.path("a").exists());
}

#[test]
fn files_of_other_versions_and_kinds_are_refused() {
    let folder = finished();
    let files: [(&str, Vec<u8>); 4] = [
        ("text.hdf", b"x,y,z\n1,2,3\n".to_vec()),
        ("empty.hdf", vec![]),
        ("signature.hdf", b"\x89HDF\r\n\x1a\n".to_vec()),
        // A superblock of a version to come.
        ("newer.hdf", {
            let mut bytes = fs::read(folder.path("a/snap_000000.hdf")).unwrap();
            bytes[8] = 9;
            bytes
        }),
    ];
    for (name, bytes) in files {
        fs::write(folder.path(name), bytes).unwrap();
        for command in ["check", "info"] {
            let output = folder.command(&[command, name]).output().unwrap();
            assert!(
                code(&output) == 65 && outputs(&output).contains("not an HDF5 file, damaged, or of a version"),
                "{}",
                outputs(&output)
            );
        }
    }
    for (name, code_of) in [("absent.hdf", 66), ("a", 0)] {
        assert_eq!(code(&folder.command(&["info", name]).output().unwrap()), code_of, "{name}");
    }
    // A checkpoint that a later program wrote. And big-endian numbers are numbers.
    let Some(mut python) = crate::common::python(".venv", "other_versions.py") else {
        return missing("h5py, which makes files of other versions");
    };
    assert!(python.arg(folder.path("a")).status().unwrap().success());
    let text = checkpoint::read(&folder.path("a/later.hdf")).unwrap_err().to_string();
    assert!(text.contains("a checkpoint of format 5; this program reads formats 1 to 4"), "{text}");
    let (own, big) = ("a/snap_000001.hdf", "a/big_endian.hdf5");
    let [own, big] = [own, big].map(|n| snapshot::read(&folder.path(n)).unwrap());
    assert!(own.position == big.position && own.mass == big.mass && own.id == big.id);
}

#[test]
fn a_file_is_written_whole_where_a_folder_of_its_name_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("s.hdf");
    fs::create_dir(&path).unwrap();
    let layout = Layout { fields: vec![Field::Velocity], precision: Float::F64 };
    assert_eq!(snapshot::write(&path, &sample(), &layout).unwrap_err().exit_code(), 74);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_the_library_does_not_survive_is_refused_by_the_process_that_does() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};
    let folder = finished();
    // A program of its own file, which is exchanged while it waits for its sources: what it starts then to look at the targets first
    // dies as the library would have it.
    let program = folder.path("program");
    for (script, words) in [
        ("kill -SEGV $$", "does not survive it (signal 11)"),
        ("exit 71", "does not survive it (out of memory)"),
        ("exit 0", ""),
    ] {
        let _ = fs::remove_file(&program);
        fs::copy(env!("CARGO_BIN_EXE_nbody"), &program).unwrap();
        let mut command = Command::new(&program);
        command.current_dir(folder.path("")).args([
            "eval",
            "--sources",
            "/dev/stdin",
            "--targets",
            "a/snap_000000.hdf",
        ]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // More than a pipe takes in: when it is written, the program reads.
        let mut sources = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut sources, "# wait\n".repeat(1 << 16).as_bytes()).unwrap();
        fs::remove_file(&program).unwrap();
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        std::io::Write::write_all(&mut sources, b"x,y,z,q\n0,0,0,1\n").unwrap();
        drop(sources);
        let output = child.wait_with_output().unwrap();
        let text = crate::common::stderr(&output);
        let expected = if words.is_empty() { 0 } else { 65 };
        assert!(code(&output) == expected && text.contains(words), "{script}: {} {text}", code(&output));
        assert!(words.is_empty() || text.contains("snap_000000.hdf"), "{text}");
    }
    // The probe is silent and exits with 0 for all files that it survives, good or not: the reader
    // reports what is wrong.
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for file in ["hdf5", "checkpoint"].iter().flat_map(|n| fs::read_dir(corpus.join(n)).unwrap()) {
        let output = folder.command(&["--probe-hdf5"]).arg(file.unwrap().path()).output().unwrap();
        assert!(code(&output) == 0 && outputs(&output).is_empty(), "{}", outputs(&output));
    }
}

/// Files of a run that are read as text: a device without an end and a pipe without a writer are refused at once.
#[test]
fn devices_and_pipes_in_a_run_directory_are_refused() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q"]);
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let commands: [(&str, &[&str]); 7] = [
        ("case.toml", &["run", "case.toml", "--out", "b", "-q"]),
        ("a/diagnostics.csv", &["plot", "a"]),
        ("a/diagnostics.csv", &["run", "--resume", "a", "--until", "1", "-q"]),
        ("a/run.hdf.series", &["check", "a"]),
        ("a/run.json", &["plot", "a"]),
        ("a/timings.json", &["check", "a"]),
        ("a/.lock", &["run", "case.toml", "--out", "a", "--force", "-q"]),
    ];
    for (name, command) in commands {
        let (path, kept) = (folder.path(name), folder.path("kept"));
        fs::rename(&path, &kept).unwrap();
        for target in [Path::new("/dev/zero"), &pipe, &folder.path("outside")] {
            std::os::unix::fs::symlink(target, &path).unwrap();
            let output = folder.limited("ulimit -v 4000000; ulimit -t 60", command).output().unwrap();
            let missing = target.ends_with("outside");
            if !missing {
                assert!(
                    outputs(&output).contains("not a regular file") && [65, 74].contains(&code(&output)),
                    "{name} -> {target:?}: {} {}",
                    code(&output),
                    outputs(&output)
                );
            }
            assert!(!folder.path("outside").exists(), "{name}: a file was made behind the link");
            fs::remove_file(&path).unwrap();
        }
        fs::rename(&kept, &path).unwrap();
    }
}

/// A run that cannot begin takes no other's place.
#[test]
fn a_run_that_cannot_begin_leaves_the_earlier_one() {
    let far = "[[particles]]\nmodel = \"file\"\npath = \"far.csv\"\n[time]\ndt = 0.01\nend = 0.1\n";
    let table = "x,y,z,mass\n1e120,0,0,1\n0,0,0,1\n";
    let folder = Folder::with(&[("case.toml", SMALL), ("far.toml", far), ("far.csv", table)]);
    folder.done(&["case.toml", "--out", "a", "-q"]);
    let before = data(&folder.path("a"));
    let output = folder.run(&["far.toml", "--out", "a", "-q", "--force"]);
    assert_eq!(code(&output), 65, "{}", outputs(&output));
    assert!(data(&folder.path("a")) == before, "files of the earlier run");
    folder.done(&["case.toml", "--out", "a", "-q", "--force"]);
}

/// `--force` and `plot` keep to the run directory: behind a link are files of somebody else.
#[test]
fn figures_behind_a_link_are_left_alone() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q"]);
    fs::create_dir(folder.path("elsewhere")).unwrap();
    fs::write(folder.path("elsewhere/energy_error.svg"), "mine").unwrap();
    std::os::unix::fs::symlink(folder.path("elsewhere"), folder.path("a/plots")).unwrap();
    folder.done(&["case.toml", "--out", "a", "-q", "--force"]);
    let output = folder.command(&["plot", "a"]).output().unwrap();
    assert!(code(&output) == 74 && outputs(&output).contains("--out"), "{}", outputs(&output));
    assert_eq!(fs::read_to_string(folder.path("elsewhere/energy_error.svg")).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.path("elsewhere")).unwrap().count(), 1);
}
