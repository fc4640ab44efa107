//! The kept corpus of the fuzz targets: what once was worth keeping is refused or read, and no more.

#[path = "../../../fuzz/targets.rs"]
mod targets;

use std::fs;
use std::path::Path;

fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        target(&fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count >= 5, "{count} files in {}", folder.display());
}

#[test]
fn scenarios() {
    replay("scenario", targets::scenario);
}

#[test]
fn tables() {
    replay("csv", targets::csv);
}

#[test]
fn arrays() {
    replay("npy", targets::npy);
}

#[test]
fn hdf5_files() {
    replay("hdf5", targets::hdf5);
}

#[test]
fn checkpoints() {
    replay("checkpoint", targets::checkpoint);
}
