//! What each fuzz target does with its bytes. `crates/nbody/tests/corpus.rs` does the same with the kept corpus, as an ordinary test.
//!
//! A reader may refuse anything, with an error that names the file; it may not panic, hang, or take memory that the size of the file does
//! not justify.

use std::io::Write;
use std::path::Path;

use nbody::files::{FileError, checkpoint, csv as table, digest, formats, npy as numpy, series, snapshot, tipsy};
use nbody::scenario::{Override, Scenario};

const COLUMNS: [&str; 10] = ["x", "y", "z", "vx", "vy", "vz", "m", "mass", "q", "id"];

/// A scenario; after zero bytes `--set` options. What is accepted says all of itself: the resolved scenario is one.
pub fn scenario(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('\0');
    let text = parts.next().unwrap_or_default().to_string();
    let sets: Vec<Override> = parts.map(Override::set).collect();
    match Scenario::parse("f.toml", text, None, &sets) {
        Err(problems) => assert!(problems.render(false).len() < 100_000, "a report without an end"),
        Ok(scenario) => {
            let resolved = scenario.resolved(None, 10);
            let again = Scenario::parse_resumed("g.toml", resolved.clone(), &[]);
            let again = again.unwrap_or_else(|p| panic!("{resolved}\n{}", p.render(false)));
            assert_eq!(again.resolved(None, 10), resolved);
        }
    }
}

/// A table; numbers that were read are finite and as many as there are rows.
pub fn csv(data: &[u8]) {
    match table::parse(Path::new("f.csv"), data, &COLUMNS) {
        Err(e) => told(&e, "f.csv"),
        Ok(t) => {
            for name in COLUMNS.iter().filter(|n| **n != "id") {
                let Some(column) = t.column(name) else { continue };
                assert!(column.len() == t.rows() && column.iter().all(|v| v.is_finite()));
            }
            let _ = (t.positions(), t.vectors(["vx", "vy", "vz"]), t.one_of(&["m", "mass"]));
        }
    }
}

/// An array, and a tipsy file, and an index of snapshots.
pub fn npy(data: &[u8]) {
    on_file(data, |path| {
        match numpy::read(path, &COLUMNS) {
            Err(e) => told(&e, "fuzz"),
            Ok(numpy::Npy::Array { rows, width, values }) => assert_eq!(values.len(), rows * width),
            Ok(numpy::Npy::Table(t)) => drop(t.positions()),
        }
        let _ = numpy::is_single(path);
        let _ = tipsy::read(path).map_err(|e| told(&e, "fuzz"));
        let _ = series::Series::read(path).map_err(|e| told(&e, "fuzz"));
    });
}

/// An HDF5 file by every way that one is read.
pub fn hdf5(data: &[u8]) {
    on_file(data, |path| {
        match snapshot::read(path) {
            Err(e) => told(&e, "fuzz"),
            Ok(s) => {
                assert!(s.position.len() == s.id.len() && s.mass.len() == s.id.len());
                assert!(s.position.as_flattened().iter().all(|v| v.is_finite()));
                let _ = snapshot::check_vtkhdf(path, &s);
            }
        }
        let _ = snapshot::precision(path);
        if let Err(e) = digest::digest(path) {
            told(&e, "fuzz");
        }
        if let Ok(Some(t)) = formats::temporal::Temporal::open(path) {
            (0..t.times().len().min(4)).for_each(|i| drop(t.load(i)));
        }
    });
}

/// A checkpoint; one that is accepted has the digest that it says.
pub fn checkpoint(data: &[u8]) {
    on_file(data, |path| {
        if let Err(e) = checkpoint::read(path) {
            told(&e, "fuzz");
        }
        let _ = checkpoint::is(path);
    });
}

/// An error must say which file it is about, and is no failure of the machine.
fn told(e: &FileError, name: &str) {
    let text = e.to_string();
    assert!(text.contains(name) && e.exit_code() == 65, "{text}");
}

fn on_file(data: &[u8], read: impl Fn(&Path)) {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let mut file = tempfile::Builder::new().prefix("fuzz").tempfile_in(folder).expect("a folder for files");
    file.write_all(data).expect("room for a file");
    read(file.path());
}
