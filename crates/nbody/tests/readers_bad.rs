//! Files made by others (with h5py, by `python/bad_snapshots.py`) that must be refused, each for its own reason.

use std::fs;

use crate::common::python;
use nbody::files::snapshot::read;

/// What the message about each file must say.
const EXPECTED: [(&str, &str); 25] = [
    ("not_hdf5", "not an HDF5 file"),
    ("no_header", "/Header is missing"),
    ("no_coordinates", "/PartType1/Coordinates is missing"),
    ("no_masses", "/PartType1/Masses is missing"),
    ("wrong_shape", "/PartType1/Coordinates has the shape [10, 2] instead of [10, 3]"),
    ("wrong_length", "/PartType1/Masses has the shape [9] instead of [10]"),
    ("wrong_type", "/PartType1/Masses has the wrong type"),
    ("float_ids", "/PartType1/ParticleIDs has the wrong type"),
    ("negative_ids", "/PartType1/ParticleIDs[3] = -4 is below 0"),
    ("twice", "the id 5 twice"),
    ("nan", "/PartType1/Coordinates of row 6 is NaN (1 such values in all)"),
    ("huge", "/PartType1/Coordinates declares"),
    ("bomb", "/PartType1/Masses has the shape [100000000] instead of [10]"),
    ("never_filled", "/PartType1/Masses declares 80 bytes of data but the file holds 0"),
    ("external_storage", "lie in another file"),
    ("external_link", "/PartType1/Masses is an external link"),
    ("soft_link", "/PartType1/Masses is a soft link"),
    ("virtual", "lie in another file"),
    ("other_types", "5 particles of type 0"),
    ("part_of_many", "files of a snapshot"),
    ("lzf", "/PartType1/Masses uses the filter"),
    ("missing_chunk", "/PartType1/Masses is damaged (its index of 2 chunks is wrong)"),
    ("unchecked", "/PartType1/Masses is damaged (its index of 1 chunks is wrong)"),
    ("large_chunks", "/PartType1/Masses has chunks of 33554432 bytes for 80 bytes of data"),
    ("long_chunk", "/PartType1/Masses declares 80 bytes of data but the file holds 2147483647"),
];

#[test]
fn each_bad_file_is_refused_for_its_reason() {
    let Some(mut python) = python(".venv", "bad_snapshots.py") else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = python.arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for (name, words) in EXPECTED {
        let error = read(&folder.path().join(name).with_extension("hdf5")).expect_err(name);
        assert!(error.to_string().contains(words), "{name}: {error}");
        assert!(error.to_string().contains(&format!("{name}.hdf5")), "{error}");
        assert_eq!(error.exit_code(), 65, "{name}");
    }
    // One file of the script is good: what GADGET would write, with equal masses in the header.
    let good = read(&folder.path().join("gadget.hdf5")).unwrap();
    assert_eq!((good.id.len(), good.mass[9], good.time, good.step), (10, 0.25, 2.0, 0));
    assert!(good.velocity.is_empty());
    assert_eq!(
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|e| {
                let name = e.as_ref().unwrap().file_name();
                name.to_str().unwrap().ends_with(".hdf5")
            })
            .count(),
        EXPECTED.len() + 1,
        "a file that nothing expects"
    );
}
