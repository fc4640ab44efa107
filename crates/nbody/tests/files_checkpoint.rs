//! Checkpoints: bit for bit, in turns, and a damaged one is passed over.

use std::fs;

use fmm_core::grid::Block;
use nbody::files::checkpoint::{Checkpoint, Checkpoints, Flow, NAMES, Particles, State, latest, read, write};
use nbody::files::run_id::RunId;

fn state(step: u64) -> Checkpoint {
    let rows = |f: f64| (0..100).map(|i| std::array::from_fn(|k| f * (i * 3 + k) as f64 + 0.1)).collect();
    Checkpoint {
        step,
        time: step as f64 * 0.1,
        scenario: "title = \"ä\"\n".into(),
        state: State::Particles(Particles {
            id: (0..100).collect(),
            position: rows(1.0),
            velocity: rows(-0.3),
            acceleration: rows(1e-9),
            mass: vec![0.01; 100],
            charge: (step % 2 == 1).then(|| vec![-1.0; 100]),
            vorticity: (step % 3 == 1).then(|| rows(2.0)),
        }),
        numbers: vec![("kinetic".into(), 0.1), ("worst".into(), -0.0)],
        run: (step % 2 == 1).then(|| RunId::parse("0123456789abcdef").unwrap()),
    }
}

/// Two blocks of a flow, of these levels.
fn flow(levels: [u8; 2]) -> Checkpoint {
    let vorticity = (0..2 * 4096).map(|i| std::array::from_fn(|k| (i * 3 + k) as f64 - 0.1)).collect();
    let places = [[0, 1, 2], [3, 4, 1 << 20]];
    let blocks = places.into_iter().zip(levels).map(|(index, level)| Block { level, index }).collect();
    Checkpoint { state: State::Flow(Flow { blocks, vorticity }), ..state(1) }
}

#[test]
fn a_state_comes_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.hdf");
    for state in [state(3), state(u64::MAX - 5), Checkpoint::default(), flow([0, 0]), flow([1, 2])] {
        write(&path, &state).unwrap();
        assert!(read(&path).unwrap() == state);
    }
    // printf 'title = "ä"\n' | sha256sum
    assert_eq!(state(0).scenario_hash(), "192e133e3c603d240432a379eb55383f0ef5d039266be85e532f03c92c63868c");
}

#[test]
fn two_files_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    assert!(latest(folder.path()).unwrap().is_none());
    let mut checkpoints = Checkpoints::new(folder.path());
    for step in 1..=3 {
        let (path, _) = checkpoints.write(&state(step)).unwrap();
        let found = latest(folder.path()).unwrap().unwrap();
        assert!(found.path == path && found.checkpoint == state(step) && found.damaged.is_none());
    }
    assert!(read(&folder.path().join(NAMES[1])).unwrap() == state(2));
    // A resumed run keeps the checkpoint that it began with.
    let mut resumed = Checkpoints::after(&latest(folder.path()).unwrap().unwrap());
    assert_eq!(resumed.write(&state(4)).unwrap().0, folder.path().join(NAMES[1]));
    assert!(read(&folder.path().join(NAMES[0])).unwrap() == state(3));
}

#[test]
fn a_damaged_file_is_passed_over_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(folder.path());
    checkpoints.write(&state(1)).unwrap();
    let (newer, _) = checkpoints.write(&state(2)).unwrap();
    let whole = fs::read(&newer).unwrap();
    fs::write(&newer, &whole[..whole.len() / 2]).unwrap();
    let found = latest(folder.path()).unwrap().unwrap();
    assert!(found.checkpoint == state(1));
    assert!(found.damaged.unwrap().to_string().contains(NAMES[1]));
    fs::write(folder.path().join(NAMES[0]), "").unwrap();
    assert_eq!(latest(folder.path()).unwrap_err().exit_code(), 65);
}

#[test]
fn every_bit_flip_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.hdf");
    for (state, apart) in [(state(1), 23), (flow([0, 0]), 401)] {
        write(&path, &state).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let mut found = 0;
        for i in (0..bytes.len()).step_by(apart) {
            bytes[i] ^= 1 << (i % 8);
            fs::write(&path, &bytes).unwrap();
            match read(&path) {
                Ok(back) => assert!(back == state, "silently wrong after a flip in byte {i}"),
                Err(_) => found += 1,
            }
            bytes[i] ^= 1 << (i % 8);
        }
        assert!(found > bytes.len() / apart / 4, "{found} of {} found", bytes.len() / apart);
    }
}

/// Replaces the last value of an array through HDF5, whose own checksums then fit.
fn change<T: hdf5::H5Type + Copy>(group: &hdf5::Group, name: &str, to: fn(T) -> T) {
    let data = group.dataset(name).unwrap();
    let mut values = data.read_raw::<T>().unwrap();
    let last = values.last_mut().unwrap();
    *last = to(*last);
    data.write_raw(&values).unwrap();
}

#[test]
fn every_part_of_a_state_is_under_its_hash() {
    type Change<'a> = (&'a str, &'a dyn Fn(&hdf5::Group));
    let next: fn(f64) -> f64 = |v| f64::from_bits(v.to_bits() ^ 1);
    let other = hdf5::types::FixedAscii::<16>::from_ascii("0123456789abcdee").unwrap();
    let changes: [Change; 15] = [
        ("the run", &|g| g.attr("RunID").unwrap().write_scalar(&other).unwrap()),
        ("no run", &|g| g.delete_attr("RunID").unwrap()),
        ("the step", &|g| change::<u64>(g, "Step", |v| v + 1)),
        ("the time", &|g| g.attr("Time").unwrap().write_scalar(&next(0.1)).unwrap()),
        ("the scenario", &|g| change::<u8>(g, "Scenario", |v| v ^ 1)),
        ("the hash of the scenario", &|g| change::<u8>(g, "ScenarioSHA256", |v| v ^ 1)),
        ("the hash", &|g| change::<u8>(g, "StateSHA256", |v| v ^ 1)),
        ("an id", &|g| change::<u64>(g, "ParticleIDs", |v| v + 1)),
        ("a mass", &|g| change(g, "Masses", next)),
        ("a charge", &|g| change(g, "Charges", next)),
        ("no charges", &|g| g.unlink("Charges").unwrap()),
        ("a position", &|g| change(g, "Coordinates", next)),
        ("a velocity", &|g| change(g, "Velocities", next)),
        ("an acceleration", &|g| change(g, "Acceleration", next)),
        ("a number", &|g| g.group("Numbers").unwrap().attr("kinetic").unwrap().write_scalar(&next(0.1)).unwrap()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.hdf");
    let of_flow: [Change; 3] = [
        ("a block", &|g| change::<u64>(g, "Blocks", |v| v + 1)),
        ("a level", &|g| change::<u64>(g, "Levels", |v| v + 1)),
        ("vorticity", &|g| change(g, "Vorticity", next)),
    ];
    let of_flow = of_flow.into_iter().map(|c| (flow([0, 1]), c));
    for (state, (what, change)) in changes.into_iter().map(|c| (state(1), c)).chain(of_flow) {
        write(&path, &state).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        change(&file.group("Checkpoint").unwrap());
        file.close().unwrap();
        let error = read(&path).expect_err(what);
        assert!(error.to_string().contains("SHA-256") && error.exit_code() == 65, "{what}: {error}");
    }
}

#[test]
fn a_state_that_is_not_finite_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut checkpoints = Checkpoints::new(folder.path());
    let (path, _) = checkpoints.write(&state(1)).unwrap();
    let mut bad = state(2);
    let State::Particles(particles) = &mut bad.state else { unreachable!() };
    particles.acceleration[7][1] = f64::NAN;
    let error = checkpoints.write(&bad).unwrap_err();
    assert!(error.to_string().contains("acceleration of particle 7 is NaN"), "{error}");
    let mut bad = flow([0, 0]);
    let State::Flow(cells) = &mut bad.state else { unreachable!() };
    cells.vorticity[4097][2] = f64::INFINITY;
    let error = checkpoints.write(&bad).unwrap_err();
    assert!(error.to_string().contains("vorticity of cell 4097 is inf"), "{error}");
    let found = latest(folder.path()).unwrap().unwrap();
    assert!(found.path == path && found.checkpoint == state(1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_space_of_the_next_checkpoint_is_reserved_and_used() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let hidden = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
        names.filter(|p| p.to_str().unwrap().contains(".tmp-")).collect::<Vec<_>>()
    };
    let mut checkpoints = Checkpoints::new(folder.path());
    checkpoints.reserve().unwrap();
    assert!(hidden().is_empty(), "its size is not known before the first");
    let (_, bytes) = checkpoints.write(&state(1)).unwrap();
    assert!(hidden().is_empty());
    checkpoints.reserve().unwrap();
    let reserved = std::fs::metadata(&hidden()[0]).unwrap();
    // File systems that cannot reserve have no blocks for it.
    assert!(reserved.len() == 0 && (reserved.blocks() == 0 || reserved.blocks() * 512 >= bytes));
    checkpoints.reserve().unwrap();
    let (path, bytes) = checkpoints.write(&state(2)).unwrap();
    let written = std::fs::metadata(path).unwrap();
    assert_eq!((written.ino(), written.len()), (reserved.ino(), bytes));
    assert!(hidden().is_empty() && latest(folder.path()).unwrap().unwrap().checkpoint == state(2));
    checkpoints.reserve().unwrap();
    drop(checkpoints);
    assert!(hidden().is_empty(), "a run that ends leaves no space reserved");
}
