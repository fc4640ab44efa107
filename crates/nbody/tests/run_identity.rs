//! Files of another run in a run directory: found by the id that every file carries, refused by name, and nothing is lost.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Folder, code, outputs};
use nbody::files::checkpoint;
use nbody::files::run_id::{self, RunId};
use nbody::files::snapshot::{self, Float, Layout};

const SMALL: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 50
[time]
dt = 0.01
end = 0.08
[output]
every = 0.02
diagnostics_every = 0.01
"#;

const GRID: &str = r#"
[grid]
corner = [-0.5, -0.5, -0.5]
n = 32
[[vorticity]]
model = "ring"
center = [0, 0, 0]
radius = 0.25
"#;

/// All files that carry an id.
const FILES: [&str; 10] = [
    "checkpoint.0.hdf",
    "checkpoint.1.hdf",
    "diagnostics.csv",
    "run.hdf.series",
    "run.json",
    "scenario.resolved.toml",
    "snap_000000.hdf",
    "snap_000001.hdf",
    "snap_000002.hdf",
    "timings.json",
];

fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.map(|p| (p.file_name().unwrap().to_str().unwrap().to_string(), fs::read(&p).unwrap())).collect()
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    crate::common::faults::copy(from, to);
}

/// The id that all files of a run have.
fn id_of(run: &Path) -> RunId {
    let id = run_id::of_file(&run.join("run.json")).unwrap().unwrap();
    for name in FILES {
        assert_eq!(run_id::of_file(&run.join(name)).unwrap(), Some(id), "{name}");
    }
    id
}

fn check(folder: &Folder, run: &str) -> (i32, String) {
    let output = folder.command(&["check", run]).output().unwrap();
    (code(&output), outputs(&output) + &String::from_utf8_lossy(&output.stdout))
}

#[test]
fn every_file_carries_the_id_of_physics_seed_and_initial_state() {
    let folder = Folder::new(SMALL);
    let until = ["-q", "--until", "0.04"];
    folder.done(&[&["case.toml", "--out", "a"], &until[..]].concat());
    let id = id_of(&folder.path("a"));
    let same: [&[&str]; 4] = [
        &["--set", "output.precision=f32"],
        &["--set", "title=other"],
        &["--set", "solver.method=fmm"],
        &["--set", "output.checkpoint_wall='1h'", "--threads", "1"],
    ];
    for sets in same {
        folder.done(&[&["case.toml", "--out", "b", "--force"], &until[..], sets].concat());
        assert_eq!(id_of(&folder.path("b")), id, "{sets:?}");
    }
    for set in ["run.seed=1", "particles.0.n=51", "force.softening.length=0.06", "time.dt=0.005"] {
        folder.done(&[&["case.toml", "--out", "b", "--force", "--set", set], &until[..]].concat());
        assert_ne!(id_of(&folder.path("b")), id, "{set}");
    }
    // The end may move, and the id stays that of the beginning.
    folder.done(&["--resume", "a", "-q", "--until", "0.06"]);
    assert_eq!(id_of(&folder.path("a")), id);
    assert_eq!(run_id::of_file(&folder.path("a/snap_000003.hdf")).unwrap(), Some(id));
}

#[test]
fn the_id_does_not_depend_on_the_folder() {
    let case = "[[particles]]\nmodel = 'file'\npath = 'p.csv'\n[time]\ndt = 0.01\nend = 0.01\n";
    let table = "x,y,z,mass\n0,0,0,1\n1,0,0,1\n";
    let id = |table: &str| {
        let folder = Folder::with(&[("case.toml", case), ("p.csv", table)]);
        folder.done(&["case.toml", "--out", "a", "-q"]);
        run_id::of_file(&folder.path("a/run.json")).unwrap().unwrap()
    };
    assert_eq!(id(table), id(table));
    assert_ne!(id(table), id(&table.replace("1,0,0,1", "2,0,0,1")));
}

#[test]
fn files_of_another_seed_are_refused_by_name_and_nothing_is_lost() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "own", "-q", "--until", "0.04"]);
    folder.done(&["case.toml", "--out", "other", "-q", "--until", "0.04", "--set", "run.seed=1"]);
    let [own, other] = ["own", "other"].map(|n| id_of(&folder.path(n)).to_string());
    for name in FILES {
        let run = folder.path("a");
        copy(&folder.path("own"), &run);
        fs::copy(folder.path("other").join(name), run.join(name)).unwrap();
        let before = bytes(&run);
        for more in [&[][..], &["--force"]] {
            let output = folder.run(&[&["--resume", "a", "--until", "0.08"], more].concat());
            let text = outputs(&output);
            assert_eq!(code(&output), 65, "{name}: {text}");
            assert!(text.contains(&format!("{name}: of another run, its run id is {other}, expected {own}")), "{text}");
            let mut after = bytes(&run);
            after.remove(".lock");
            assert!(after.iter().eq(before.iter().filter(|(n, _)| *n != ".lock")), "{name}");
        }
        let (code, text) = check(&folder, "a");
        assert!(!text.contains("DAMAGED"), "{name}: {text}");
        assert!(code == 65 && text.contains(&format!("OTHER RUN  {name}: of another run")), "{name}: {text}");
    }
    // With its own file back the run goes on.
    copy(&folder.path("own"), &folder.path("a"));
    folder.done(&["--resume", "a", "-q", "--until", "0.08"]);
    let (code, text) = check(&folder, "a");
    assert!(code == 0 && text.contains(&format!("run id {own}")), "{text}");
}

/// Takes the id from every file, as older versions wrote them.
fn without_id(run: &Path) {
    for name in FILES {
        let path = run.join(name);
        let id = run_id::of_file(&path).unwrap().unwrap();
        if name.starts_with("checkpoint") {
            let mut c = checkpoint::read(&path).unwrap();
            c.run = None;
            checkpoint::write(&path, &c).unwrap();
        } else if name.ends_with(".hdf") {
            let mut s = snapshot::read(&path).unwrap();
            s.run = None;
            snapshot::write(&path, &s, &Layout { fields: s.fields(), precision: Float::F64 }).unwrap();
        } else {
            let text = fs::read_to_string(&path).unwrap();
            let text = match name.rsplit('.').next().unwrap() {
                // The header without its last name, and each line without its last, empty cell.
                "csv" => text.lines().map(|l| format!("{}\n", l.rsplit_once(',').unwrap().0)).collect(),
                "toml" => text.replace(&id.comment(), ""),
                _ => {
                    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
                    value.as_object_mut().unwrap().remove("run_id").unwrap();
                    value.to_string()
                }
            };
            fs::write(&path, text).unwrap();
        }
        assert_eq!(run_id::of_file(&path).unwrap(), None, "{name}");
    }
}

#[test]
fn files_of_older_versions_without_an_id_are_read() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q", "--until", "0.04"]);
    copy(&folder.path("a"), &folder.path("old"));
    without_id(&folder.path("old"));
    let old = fs::read_to_string(folder.path("old/diagnostics.csv")).unwrap();
    assert_eq!(old.lines().next().unwrap().rsplit(',').next(), Some("force_error"));
    let (exit, text) = check(&folder, "old");
    assert!(exit == 0 && text.contains("run id: none; an older version"), "{text}");
    for run in ["a", "old"] {
        folder.done(&["--resume", run, "-q", "--until", "0.08"]);
    }
    let last = |run: &str| snapshot::read(&folder.path(run).join("snap_000004.hdf")).unwrap();
    assert!(last("a").position == last("old").position && last("old").run.is_none());
    let (exit, text) = check(&folder, "old");
    assert_eq!(exit, 0, "{text}");
    // A file of a run with an id is a stranger there.
    fs::copy(folder.path("a/checkpoint.0.hdf"), folder.path("old/checkpoint.0.hdf")).unwrap();
    let output = folder.run(&["--resume", "old"]);
    assert!(
        code(&output) == 65 && outputs(&output).contains("checkpoint.0.hdf: of another run"),
        "{}",
        outputs(&output)
    );
}

#[test]
fn runs_on_grids_carry_an_id_too() {
    let folder = Folder::new(GRID);
    folder.done(&["case.toml", "--out", "a", "-q"]);
    folder.done(&["case.toml", "--out", "b", "-q", "--set", "vorticity.0.radius=0.2"]);
    let [a, b] = ["a", "b"].map(|n| run_id::of_file(&folder.path(n).join("grid_000000.hdf")).unwrap().unwrap());
    assert_ne!(a, b);
    for name in ["run.hdf.series", "run.json", "timings.json", "scenario.resolved.toml"] {
        assert_eq!(run_id::of_file(&folder.path("a").join(name)).unwrap(), Some(a), "{name}");
    }
    let (exit, text) = check(&folder, "a");
    assert!(exit == 0 && text.contains(&format!("run id {a}")), "{text}");
    fs::copy(folder.path("b/grid_000000.hdf"), folder.path("a/grid_000000.hdf")).unwrap();
    let (exit, text) = check(&folder, "a");
    assert!(exit == 65 && text.contains("grid_000000.hdf: of another run"), "{text}");
}
