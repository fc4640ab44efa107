//! Particles from the files of other programs: what is read, converted, and refused.

use std::fs;
use std::path::Path;

use hdf5::File;
use nbody::initial::Initial;
use nbody::scenario::Scenario;

/// The particles of `name` in `folder`, or the message of what is wrong with it.
fn particles(folder: &Path, name: &str, system: &str) -> Result<Initial, String> {
    let text = format!(
        "[units]\nsystem = '{system}'\n[[particles]]\nmodel = 'file'\npath = '{name}'\n[time]\ndt = 1\nend = 1\n"
    );
    let scenario = Scenario::parse("a.toml", text, Some(folder), &[]).map_err(|p| p.render(false))?;
    Initial::of(&scenario, nbody::files::read_hdf5).map_err(|f| format!("{} {}", f.code, f.render(false)))
}

/// A GADGET snapshot of three halo particles and one star, with ids out of order.
fn gadget(path: &Path, attributes: &[(&str, f64)], gas: u32) {
    let file = File::create(path).unwrap();
    let header = file.create_group("Header").unwrap();
    header.new_attr_builder().with_data(&[gas, 3, 0, 0, 1, 0]).create("NumPart_ThisFile").unwrap();
    header.new_attr_builder().with_data(&[0.0, 0.5, 0.0, 0.0, 0.0, 0.0]).create("MassTable").unwrap();
    for (name, value) in attributes {
        header.new_attr::<f64>().create(*name).unwrap().write_scalar(value).unwrap();
    }
    for (kind, ids) in [("PartType1", vec![7u32, 5, 9]), ("PartType4", vec![6])] {
        let group = file.create_group(kind).unwrap();
        let rows: Vec<[f32; 3]> = ids.iter().map(|&i| [i as f32, 1.0, 2.0]).collect();
        let rows = ndarray::Array2::from_shape_fn((rows.len(), 3), |(i, k)| rows[i][k]);
        group.new_dataset_builder().with_data(&rows).create("Coordinates").unwrap();
        group.new_dataset_builder().with_data(&(&rows * 10.0)).create("Velocities").unwrap();
        group.new_dataset_builder().with_data(&ids).create("ParticleIDs").unwrap();
        if kind == "PartType4" {
            group.new_dataset_builder().with_data(&[2.0f32]).create("Masses").unwrap();
        }
    }
}

#[test]
fn gadget_files_are_read_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    gadget(&folder.path().join("a.hdf5"), &[("Time", 0.0), ("Redshift", 0.0), ("HubbleParam", 1.0)], 0);
    let p = particles(folder.path(), "a.hdf5", "nbody").unwrap();
    // In the order of the ids; the mass table holds for the halo.
    assert_eq!(p.position.iter().map(|x| x[0]).collect::<Vec<_>>(), [5.0, 6.0, 7.0, 9.0]);
    assert_eq!(p.mass, [0.5, 2.0, 0.5, 0.5]);
    assert_eq!(p.velocity[1], [60.0, 10.0, 20.0]);
    // GADGET's usual units: kpc, 1e10 solar masses, km/s.
    let units = [("UnitLength_in_cm", 3.085678e21), ("UnitMass_in_g", 1.989e43), ("UnitVelocity_in_cm_per_s", 1e5)];
    gadget(&folder.path().join("b.h5"), &units, 0);
    let p = particles(folder.path(), "b.h5", "astro").unwrap();
    assert!((p.position[0][0] / 5000.0 - 1.0).abs() < 1e-6 && (p.mass[1] / 2e10 - 1.0).abs() < 1e-3, "{p:?}");
    assert!((p.velocity[1][0] - 60.0).abs() < 1e-9);
    let message = particles(folder.path(), "b.h5", "nbody").unwrap_err();
    assert!(message.contains("b.h5: it has physical units") && message.contains("astro"), "{message}");
}

/// Files that `nbody convert` makes of snapshots have charges, which runs under Coulomb's law begin with.
#[test]
fn charges_of_all_particles_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.hdf5");
    gadget(&path, &[], 0);
    let start = || {
        let text =
            "[[particles]]\nmodel = 'file'\npath = 'a.hdf5'\n[force]\nlaw = 'coulomb'\n[time]\ndt = 1\nend = 1\n";
        let scenario = Scenario::parse("a.toml", text.into(), Some(folder.path()), &[]).unwrap();
        Initial::of(&scenario, nbody::files::read_hdf5).map_err(|f| f.render(false))
    };
    let charged = |kind: &str, charges: &[f64]| {
        let group = File::append(&path).unwrap().group(kind).unwrap();
        group.new_dataset_builder().with_data(charges).create("Charges").unwrap();
    };
    charged("PartType1", &[1.0, -1.0, 0.5]);
    // The star has none.
    assert!(start().unwrap_err().contains("no charges"));
    charged("PartType4", &[2.0]);
    assert_eq!(start().unwrap().charge, [-1.0, 2.0, 1.0, 0.5]);
}

#[test]
fn gadget_files_that_would_be_misread_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (attribute, value, gas, words) in [
        ("Redshift", 0.5, 0, "Redshift = 0.5 of /Header: a cosmological file"),
        ("Omega0", 0.3, 0, "Omega0 = 0.3 of /Header: a cosmological file"),
        ("OmegaLambda", 0.7, 0, "a cosmological file"),
        ("HubbleParam", 0.7, 0, "in units of 1/h"),
        ("NumFilesPerSnapshot", 4.0, 0, "one of 4 files"),
        ("Time", 0.0, 8, "8 particles of gas"),
    ] {
        gadget(&folder.path().join("a.hdf5"), &[(attribute, value)], gas);
        let message = particles(folder.path(), "a.hdf5", "nbody").unwrap_err();
        assert!(message.starts_with("65 ") && message.contains(words), "{message}");
    }
}

/// A tipsy file of two dark particles and a star.
fn tipsy(big: bool, padding: usize, gas: i32, dimensions: i32) -> Vec<u8> {
    let int = |v: i32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
    let float = |v: f32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
    let mut bytes = if big { 0.25f64.to_be_bytes() } else { 0.25f64.to_le_bytes() }.to_vec();
    [3, dimensions, gas, 2, 1].iter().for_each(|&v| bytes.extend(int(v)));
    bytes.extend(vec![0; padding]);
    for (width, first) in [(9, 1.0f32), (9, 2.0), (11, 3.0)] {
        (0..width).for_each(|k| bytes.extend(float(first + 0.125 * k as f32)));
    }
    bytes
}

#[test]
fn tipsy_files_are_read_in_both_orders_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (big, padding) in [(true, 4), (true, 0), (false, 4), (false, 0)] {
        fs::write(folder.path().join("a.tipsy"), tipsy(big, padding, 0, 3)).unwrap();
        let p = particles(folder.path(), "a.tipsy", "nbody").unwrap();
        assert_eq!(p.mass, [1.0, 2.0, 3.0]);
        assert_eq!(p.position[2], [3.125, 3.25, 3.375]);
        assert_eq!(p.velocity[1], [2.5, 2.625, 2.75]);
    }
    let whole = tipsy(true, 4, 0, 3);
    for (bytes, words) in [
        (whole[..whole.len() - 1].to_vec(), "it is damaged"),
        (whole[..20].to_vec(), "20 bytes"),
        (tipsy(true, 4, 5, 3), "5 particles of gas"),
        (tipsy(true, 4, 0, 2), "not a tipsy file of three dimensions"),
        ([&whole[..40], &f32::NAN.to_be_bytes()[..], &whole[44..]].concat(), "particle 0 has the value NaN"),
    ] {
        fs::write(folder.path().join("b.std"), bytes).unwrap();
        let message = particles(folder.path(), "b.std", "nbody").unwrap_err();
        assert!(message.starts_with("65 ") && message.contains(words), "{message}");
    }
}

#[test]
fn numpy_arrays_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |values: &[f64], width: usize| {
        let file = fs::File::create(folder.path().join("a.npy")).unwrap();
        nbody::files::npy::write(file, values, width).unwrap();
    };
    write(&[1.0, 2.0, 3.0, 0.5, 4.0, 5.0, 6.0, 0.25], 4);
    let p = particles(folder.path(), "a.npy", "nbody").unwrap();
    assert_eq!((p.position[1], p.velocity[1], p.mass), ([4.0, 5.0, 6.0], [0.0; 3], vec![0.5, 0.25]));
    write(&[1.0, 2.0, 3.0, 7.0, 8.0, 9.0, 0.5], 7);
    let p = particles(folder.path(), "a.npy", "nbody").unwrap();
    assert_eq!((p.position[0], p.velocity[0], p.mass), ([1.0, 2.0, 3.0], [7.0, 8.0, 9.0], vec![0.5]));
    write(&[1.0, 2.0, 3.0, 4.0, 5.0], 5);
    let message = particles(folder.path(), "a.npy", "nbody").unwrap_err();
    assert!(message.contains("rows of 5 numbers; 4 (x, y, z, mass) or 7"), "{message}");
}
