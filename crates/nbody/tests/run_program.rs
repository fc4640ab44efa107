//! The program from end to end: the files of a run, exit codes, reproducibility, signals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Folder, code, column, json, outputs, send, wait};
use nbody::files::snapshot;
use sha2::{Digest, Sha256};

const SMALL: &str = r#"
title = "small"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 300
virial_radius = 1
[[particles]]
model = "uniform-sphere"
n = 100
mass = 0.1
virial_ratio = 1.0
position = [3, 0, 0]
velocity = [0, 0.5, 0]
[solver]
tolerance = 1e-6
[time]
dt = 0.01
end = 0.5
[output]
every = 0.1
diagnostics_every = 0.05
"#;

/// SHA-256 of the diagnostics, and of the numbers of every snapshot.
fn hash(folder: &Path) -> String {
    let mut names: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.file_name().unwrap().to_str().unwrap().starts_with("snap_"));
    names.sort();
    assert!(names.len() > 3);
    let mut sha = Sha256::new();
    sha.update(fs::read(folder.join("diagnostics.csv")).unwrap());
    for name in names {
        let s = snapshot::read(&name).unwrap();
        sha.update(format!("{} {}", s.time.to_bits(), s.step));
        let vectors = [&s.position, &s.velocity, s.acceleration.as_ref().unwrap()];
        let vectors = vectors.into_iter().flatten().flatten();
        let numbers = vectors.chain(&s.mass).chain(s.potential.as_ref().unwrap());
        numbers.for_each(|x| sha.update(x.to_le_bytes()));
    }
    sha.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn a_run_that_cannot_begin_leaves_room_for_the_next() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--out", "a", "--device", "cuda:4711"]);
    assert_eq!(code(&output), 69, "{}", outputs(&output));
    assert!(!folder.path("a/scenario.toml").exists());
    folder.done(&["case.toml", "--out", "a", "--device", "cpu", "--steps", "1", "-q"]);
    assert_eq!(fs::read_to_string(folder.path("a/scenario.toml")).unwrap(), SMALL);
}

#[test]
fn an_empty_table_takes_no_place_of_a_list() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--out", "a", "--set", "particles.1.position={}", "--dry-run"]);
    assert!(code(&output) == 65 && outputs(&output).contains("particles.1.position"), "{}", outputs(&output));
}

#[test]
fn a_run_leaves_complete_files() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--out", "a"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let out = folder.path("a");
    for name in
        ["scenario.toml", "scenario.resolved.toml", "run.hdf.series", "diagnostics.csv", "run.json", "timings.json"]
    {
        assert!(out.join(name).is_file(), "{name} is missing");
    }
    assert_eq!(fs::read_to_string(out.join("scenario.toml")).unwrap(), SMALL);
    let series: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(out.join("run.hdf.series")).unwrap()).unwrap();
    let times: Vec<f64> = series["files"].as_array().unwrap().iter().map(|f| f["time"].as_f64().unwrap()).collect();
    assert_eq!(times, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
    let last = snapshot::read(&out.join("snap_000005.hdf")).unwrap();
    assert_eq!((last.id.len(), last.time, last.step), (400, 0.5, 50));
    assert!(last.potential.unwrap().iter().all(|p| *p < 0.0));
    // Two clusters with a softening: the leapfrog keeps the energy to 1e-4 and the momentum that the offset gave.
    let drift = column(&out, "energy_error");
    assert_eq!(drift.len(), 11);
    assert!(drift.iter().any(|d| *d != 0.0) && drift.iter().all(|d| d.abs() < 1e-4), "{drift:?}");
    assert!(column(&out, "momentum_y").iter().all(|p| (p - 0.05).abs() < 1e-6));
    let table = String::from_utf8(output.stdout).unwrap();
    for word in ["stage", "seconds", "calls", "kick", "drift", "output", "total"] {
        assert!(table.contains(word), "no {word} in\n{table}");
    }
    // The resolved scenario is a scenario, and gives the same run.
    fs::copy(out.join("scenario.resolved.toml"), folder.path("case.toml")).unwrap();
    let again = folder.case(&["--out", "b", "-q"]);
    assert_eq!(code(&again), 0, "{}", outputs(&again));
    assert_eq!(hash(&out), hash(&folder.path("b")));
}

#[test]
fn bits_do_not_depend_on_threads() {
    let folder = Folder::new(SMALL);
    let hashes = ["1", "2", "3"].map(|threads| {
        let output = folder.case(&["--out", threads, "--threads", threads, "-q"]);
        assert_eq!(code(&output), 0, "{}", outputs(&output));
        hash(&folder.path(threads))
    });
    assert!(hashes[0] == hashes[1] && hashes[1] == hashes[2], "{hashes:?}");
    let other = folder.case(&["--out", "4", "-q", "--set", "run.seed=1"]);
    assert_eq!(code(&other), 0);
    assert_ne!(hashes[0], hash(&folder.path("4")), "another seed gives other particles");
}

#[test]
fn a_used_directory_is_refused_unless_forced() {
    let folder = Folder::new(SMALL);
    assert_eq!(code(&folder.case(&["--out", "a", "-q"])), 0);
    let refused = folder.case(&["--out", "a", "-q"]);
    assert_eq!(code(&refused), 74);
    assert!(outputs(&refused).contains("--force"), "{}", outputs(&refused));
    fs::write(folder.path("a/notes.txt"), "mine").unwrap();
    assert!(folder.command(&["plot", "a"]).output().unwrap().status.success());
    assert!(folder.path("a/plots/energy_error.svg").is_file());
    let forced = folder.case(&["--out", "a", "-q", "--force", "--set", "time.end=0"]);
    assert_eq!(code(&forced), 0, "{}", outputs(&forced));
    // end = 0: the initial snapshot only, and nothing is left of the longer run; other people's files stay.
    assert!(folder.path("a/snap_000000.hdf").is_file() && !folder.path("a/snap_000001.hdf").exists());
    assert!(folder.path("a/notes.txt").is_file() && !folder.path("a/plots").exists());
    fs::create_dir(folder.path("a/plots")).unwrap();
    fs::write(folder.path("a/plots/notes.txt"), "mine too").unwrap();
    assert_eq!(code(&folder.case(&["--out", "a", "-q", "--force", "--set", "time.end=0"])), 0);
    assert!(folder.path("a/plots/notes.txt").is_file());
}

#[test]
fn exit_codes() {
    let folder = Folder::new(SMALL);
    assert_eq!(code(&folder.case(&["--threads", "0"])), 2);
    assert_eq!(code(&folder.case(&["--colour"])), 2);
    assert_eq!(code(&folder.case(&["--set", "time.dt=-1"])), 65);
    assert_eq!(code(&folder.case(&["--set", "particles=[{model=\"file\",path=\"absent.csv\"}]"])), 66);
    // Folders are no input.
    fs::create_dir(folder.path("p.csv")).unwrap();
    let output = folder.case(&["--set", "particles=[{model=\"file\",path=\"p.csv\"}]"]);
    assert!(code(&output) == 66 && outputs(&output).contains("p.csv: is a folder"), "{}", outputs(&output));
    let output = folder.run(&["p.csv"]);
    assert!(code(&output) == 66 && outputs(&output).contains("p.csv: is a folder"), "{}", outputs(&output));
    let missing = folder.run(&["absent.toml"]);
    assert_eq!(code(&missing), 66);
    assert_eq!(code(&folder.case(&["--out", "/dev/null/x"])), 74);
    assert!(!folder.path("out").exists(), "a refused run leaves nothing");
}

#[test]
fn values_that_are_no_longer_finite_stop_the_run() {
    let folder = Folder::new(SMALL);
    let sets = ["--set", "particles.0.velocity=[1e150,0,0]", "--set", "time.dt=1e200", "--set", "time.end=1e201"];
    let more = ["--set", "output.every=1e201", "--set", "output.diagnostics_every=1e201", "--out", "a"];
    let output = folder.case(&[&sets[..], &more[..]].concat());
    assert_eq!(code(&output), 70, "{}", outputs(&output));
    assert!(outputs(&output).contains("stopped at step 1,"), "{}", outputs(&output));
    assert!(folder.path("a/snap_000000.hdf").is_file() && !folder.path("a/snap_000001.hdf").exists());
}

#[test]
fn one_particle_moves_straight() {
    let one = "[[particles]]\nmodel = 'plummer'\nn = 1\nvelocity = [1, 0, 0]\n[time]\ndt = 0.125\nend = 1\n";
    let folder = Folder::new(one);
    let output = folder.case(&["--out", "a"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let last = snapshot::read(&folder.path("a/snap_000001.hdf")).unwrap();
    assert_eq!(last.position, [[1.0, 0.0, 0.0]]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_run_after_its_step() {
    let folder = Folder::new(SMALL);
    for signal in ["-INT", "-HUP"] {
        let run = ["run", "case.toml", "--out", &signal[1..], "-q", "--set", "time.end=100000"];
        let mut child = folder.command(&run).spawn().unwrap();
        let out = folder.path(&signal[1..]);
        wait(|| out.join("snap_000002.hdf").is_file());
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), Some(75), "{signal}");
        let report = json(&out.join("run.json"));
        assert_eq!(report["complete"], false);
        let series = json(&out.join("run.hdf.series"));
        for file in series["files"].as_array().unwrap() {
            let name = file["name"].as_str().unwrap();
            let read = snapshot::read(&out.join(name)).unwrap();
            assert_eq!(Some(read.time), file["time"].as_f64(), "{name}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let folder = Folder::new(SMALL);
    let run = folder.command(&["run", "case.toml", "--out", "a", "-q", "--set", "time.end=100000"]);
    let mut nohup = Command::new("nohup");
    nohup.arg(run.get_program()).args(run.get_args()).current_dir(folder.path(""));
    let mut child = nohup.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait(|| folder.path("a/snap_000002.hdf").is_file());
    send("-HUP", &child);
    wait(|| folder.path("a/snap_000005.hdf").is_file());
    assert!(child.try_wait().unwrap().is_none(), "SIGHUP has ended it");
    send("-TERM", &child);
    assert_eq!(child.wait().unwrap().code(), Some(75));
}

const FROM_FILE: &str = "[[particles]]\nmodel = 'file'\npath = 'p.csv'\n[time]\ndt = 0.5\nend = 1\n";

#[test]
fn tables_are_checked_and_sorted() {
    let folder = Folder::new(FROM_FILE);
    let run = |text: &str, sets: &[&str]| {
        fs::write(folder.path("p.csv"), text).unwrap();
        folder.case(&[&["--out", "a", "--force", "-q"], sets].concat())
    };
    let output = run("mass,id,x,y,z,name\n1,7,5,0,0,b\n# note\n2,3,-5,0,0,a\n", &[]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    assert_eq!(snapshot::read(&folder.path("a/snap_000000.hdf")).unwrap().mass, [2.0, 1.0]);
    // A snapshot is a scenario's file as well, in the same units only.
    let more = folder.case(&["--out", "b", "--set", "particles.0.path=a/snap_000000.hdf"]);
    assert_eq!(code(&more), 0, "{}", outputs(&more));
    let other = ["--out", "c", "--set", "particles.0.path=a/snap_000000.hdf", "--set", "units.system=si"];
    assert_eq!(code(&folder.case(&other)), 65);

    let coulomb: &[&str] = &["--set", "force.law=coulomb"];
    for (text, sets, word) in [
        ("x,y,z\n1,2,3\n", &[][..], "mass"),
        ("x,y,mass\n1,2,3\n", &[], "z"),
        ("x,y,z,mass\n1,2,3,-4\n", &[], "-4"),
        ("x,y,z,mass\n1,nan,3,4\n", &[], "y"),
        ("id,x,y,z,mass\n5,1,2,3,4\n5,0,2,3,4\n", &[], "id 5"),
        ("x,y,z,mass\n1,2,3,4\n", coulomb, "charge"),
        ("x,y,z,mass,q\n1,2,3,0,1\n", coulomb, "mass = 0"),
    ] {
        let output = run(text, sets);
        assert_eq!(code(&output), 65, "{text}: {}", outputs(&output));
        assert!(outputs(&output).contains(word), "{text}: {}", outputs(&output));
    }
}

#[test]
fn equal_charges_repel_and_their_energy_is_kept() {
    let folder = Folder::new(FROM_FILE);
    fs::write(folder.path("p.csv"), "x,y,z,mass,charge\n0.5,0,0,2,3\n-0.5,0,0,2,3\n").unwrap();
    let sets = ["--set", "force.law=coulomb", "--set", "time.dt=0.001", "--set", "output.every=0.5", "--out", "a"];
    let output = folder.case(&sets);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let first = snapshot::read(&folder.path("a/snap_000000.hdf")).unwrap();
    // k_e = 1: φ = q/r = 3, a = q²/(r² m) = 4.5, W = q φ = 9.
    assert_eq!(first.potential.unwrap(), [3.0, 3.0]);
    assert_eq!(first.acceleration.unwrap(), [[4.5, 0.0, 0.0], [-4.5, 0.0, 0.0]]);
    assert_eq!((first.charge.unwrap(), column(&folder.path("a"), "potential")[0]), (vec![3.0; 2], 9.0));
    assert!(column(&folder.path("a"), "energy_error").iter().all(|e| e.abs() < 1e-5));
    assert!(column(&folder.path("a"), "kinetic").last().unwrap() > &4.0);
}
