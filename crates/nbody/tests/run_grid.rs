//! Scenarios with a `[grid]`: files, errors, options, and readers of what they leave.

use crate::common::{Folder, code, gpu, python, stderr};
use serde_json::Value;

const RINGS: &str = r#"
title = "rings"
[grid]
corner = [-0.5, -0.5, -0.5]
finest = 64
refinement = 30
compression = 1
[[vorticity]]
model = "ring"
center = [0, 0, 0]
radius = 0.25
[[vorticity]]
model = "ring"
center = [0, 0, 0]
radius = 0.25
axis = [2, 0, 0]
core = 0.2
[output]
directory = "out"
formats = ["vtkhdf", "csv"]
"#;

/// Both rings in one octant of the domain, which alone is refined.
const ASIDE: [&str; 6] = [
    "vorticity.0.center=[-0.25, -0.25, -0.25]",
    "vorticity.1.center=[-0.25, -0.25, -0.25]",
    "vorticity.0.radius=0.12",
    "vorticity.1.radius=0.12",
    "vorticity.1.core=0.1",
    "grid.finest=64",
];

fn aside() -> Vec<&'static str> {
    ASIDE.iter().flat_map(|set| ["--set", set]).collect()
}

fn json(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.path(name)).unwrap()).unwrap()
}

fn error(run: &Value, field: &str) -> f64 {
    run["errors"][field]["rms"].as_f64().unwrap()
}

#[test]
fn a_grid_is_solved_told_and_checked() {
    let folder = Folder::new(RINGS);
    let out = folder.case(&[&aside()[..], &["--threads", "2"]].concat());
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let text = String::from_utf8_lossy(&out.stdout);
    for words in
        ["rings\n", "cells in", "treecode in f32, order 6", "error of psi  rms", "error of u    rms", "M2P", "P2P"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let run = json(&folder, "out/run.json");
    assert_eq!(run["grid"]["blocks_by_level"], serde_json::json!([0, 7, 8]));
    assert!((0.05..0.3).contains(&error(&run, "stream")) && (0.1..0.5).contains(&error(&run, "velocity")), "{run}");
    assert_eq!(json(&folder, "out/timings.json")["stages"]["P2P"]["calls"], 1);
    let index = json(&folder, "out/run.hdf.series");
    assert_eq!(index["files"][0]["name"], "grid_000000.hdf");
    // The resolved scenario is a scenario itself, and of the same run.
    let again = folder.run(&["out/scenario.resolved.toml", "-q", "--out", "again", "--threads", "1"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    for name in ["grid_000000.hdf", "grid_000000.csv"] {
        let [a, b] = ["out", "again"].map(|d| std::fs::read(folder.path(&format!("{d}/{name}"))).unwrap());
        assert!(a == b, "{name} depends on the number of threads");
    }
    let check = folder.command(&["check", "out"]).output().unwrap();
    let text = String::from_utf8_lossy(&check.stdout);
    assert!(code(&check) == 0 && text.contains("grid_000000.hdf: fields on"), "{text}{}", stderr(&check));
    let check = folder.command(&["check", "out/grid_000000.hdf", "--hash"]).output().unwrap();
    assert_eq!(code(&check), 0, "{}", stderr(&check));
    assert_eq!(code(&folder.case(&[])), 74, "the directory is in use");
    assert!(!stderr(&folder.case(&[])).contains("--resume"), "nothing to go on from");
    let tables = folder.case(&["--force", "-q", "--set", "grid.n=16", "--set", "output.formats=[\"csv\"]"]);
    assert_eq!(code(&tables), 0, "{}", stderr(&tables));
    let outside = folder.case(&["-q", "--out", "none", "--set", "grid.corner=[9, 9, 9]"]);
    assert!(
        code(&outside) == 65 && stderr(&outside).contains("no vorticity lies in the domain"),
        "{}",
        stderr(&outside)
    );
    assert!(!folder.path("none").exists());
    for command in ["check", "info"] {
        let output = folder.command(&[command, "out"]).output().unwrap();
        assert_eq!(code(&output), 0, "{command}: {}", stderr(&output));
    }
}

#[test]
fn one_component_is_solved_for_alone() {
    let folder = Folder::new(RINGS);
    let whole = folder.case(&[&aside()[..], &["-q", "--set", "grid.n=64", "--set", "solver.theta=0"]].concat());
    assert_eq!(code(&whole), 0, "{}", stderr(&whole));
    // The second ring's axis is x: y is a component of both.
    let sets = ["-q", "--out", "one", "--set", "grid.component=y", "--set", "grid.n=64", "--set", "solver.theta=0"];
    let one = folder.case(&[&aside()[..], &sets].concat());
    assert_eq!(code(&one), 0, "{}", stderr(&one));
    let run = json(&folder, "one/run.json");
    assert!((0.01..0.3).contains(&error(&run, "stream")) && run["errors"]["velocity"].is_null(), "{run}");
    let rows = |d: &str| -> Vec<Vec<f64>> {
        let table = std::fs::read_to_string(folder.path(&format!("{d}/grid_000000.csv"))).unwrap();
        let lines = table.lines().filter(|l| !l.starts_with('#')).skip(1);
        lines.map(|l| l.split(',').filter_map(|x| x.parse().ok()).collect()).collect()
    };
    let (whole, one) = (rows("out"), rows("one"));
    assert!(whole.len() == 64 * 64 * 64 && one.len() == whole.len());
    let largest = whole.iter().map(|r| r[8].abs()).fold(0.0, f64::max);
    for (all, row) in whole.iter().zip(&one) {
        // x, y, z, h; ω; Ψ.
        assert!([row[4], row[6], row[7], row[9]] == [0.0; 4] && row[5] == all[5], "{row:?} {all:?}");
        assert!((row[8] - all[8]).abs() < 1e-5 * largest, "{row:?} {all:?}");
    }
    let flow = folder.case(&["--dry-run", "--set", "grid.component=y", "--until", "1", "--set", "time.dt=0.1"]);
    assert!(code(&flow) == 65 && stderr(&flow).contains("one component of ω is no flow"), "{}", stderr(&flow));
    let wrong = folder.case(&["--dry-run", "--set", "grid.component=w"]);
    assert!(code(&wrong) == 65 && stderr(&wrong).contains("grid.component"), "{}", stderr(&wrong));
}

#[test]
fn uniform_grids_direct_sums_and_the_correction_are_keys() {
    let folder = Folder::new(RINGS);
    let run = |name: &str, sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|s| ["--set", s]).collect();
        let out = folder.case(&[&["-q", "--out", name], &sets[..]].concat());
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        json(&folder, &format!("{name}/run.json"))
    };
    let usual = ["grid.n=32", "output.formats=['csv']", "solver.green=singular"];
    let tree = run("tree", &usual);
    let direct = run("direct", &[&usual[..], &["solver.theta=0"]].concat());
    let corrected =
        run("corrected", &[&usual[..], &["solver.theta=0", "solver.correction=true", "solver.precision=f64"]].concat());
    assert_eq!(tree["grid"]["cells"], 32768);
    assert_eq!(direct["solver"]["method"], "direct");
    assert_eq!(direct["work"]["indirect_pairs"], 0);
    let sources = direct["work"]["sources"].as_u64().unwrap();
    assert_eq!(direct["work"]["direct_pairs"].as_u64(), Some(sources * 32768));
    let ratio = error(&tree, "stream") / error(&direct, "stream");
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
    assert!(error(&corrected, "stream") < 0.2 * error(&direct, "stream"), "{corrected}");
    // Tables have no place in the index.
    let listed = json(&folder, "tree/run.hdf.series")["files"].as_array().map(Vec::len);
    assert!(listed == Some(0) && folder.path("tree/grid_000000.csv").exists(), "{listed:?}");
}

#[test]
fn vorticity_comes_from_files_too() {
    let folder = Folder::new(RINGS);
    let usual = ["-q", "--set", "output.formats=['csv']", "--set", "solver.theta=0"];
    let out = folder.case(&[&usual[..], &["--set", "grid.n=16", "--out", "a"]].concat());
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    // The table that was written is one to read, under other names.
    let table = std::fs::read_to_string(folder.path("a/grid_000000.csv")).unwrap();
    let renamed = table.replacen("vorticity_x,vorticity_y,vorticity_z", "wx,wy,wz", 1);
    std::fs::write(folder.path("w.csv"), renamed).unwrap();
    let scenario =
        "[grid]\ncorner = [-0.5, -0.5, -0.5]\nn = 16\n[[vorticity]]\nmodel = 'file'\npath = 'w.csv'\nn = 16\n";
    std::fs::write(folder.path("file.toml"), scenario).unwrap();
    let out = folder.run(&[&["file.toml"], &usual[..], &["--out", "b"]].concat());
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    assert!(json(&folder, "b/run.json")["errors"].is_null());
    assert_eq!(std::fs::read_to_string(folder.path("b/grid_000000.csv")).unwrap(), table);
    let out = folder.run(&[&["file.toml"], &usual[..], &["--out", "c", "--set", "vorticity.0.n=20"]].concat());
    assert_eq!(code(&out), 65);
    assert!(stderr(&out).contains("w.csv: row 0: (-0.46875, -0.46875, -0.46875) is no center"), "{}", stderr(&out));
}

#[test]
fn what_means_nothing_to_a_grid_is_refused() {
    let folder = Folder::new(RINGS);
    for (arguments, exit, words) in [
        (&["--steps", "3"][..], 2, "--steps"),
        (&["--resume", "out"], 2, "--resume"),
        (&["--device", "cuda:99"], 69, "device = cuda:99: "),
        (&["--device", "hybrid:99"], 69, "device = hybrid:99: "),
        (&["--device", "both"], 2, "hybrid:N"),
        (&["--set", "solver.device=both"], 65, "hybrid:N"),
        (&["--set", "solver.split=-1"], 65, "solver.split"),
        (&["--set", "grid.n=20"], 65, "grid.n = 20 is no multiple of 16"),
        (&["--set", "grid.finest=96", "--set", "grid.coarsest=32"], 65, "is not grid.coarsest = 32 doubled"),
        (&["--set", "grid.finest=48"], 65, "grid.finest = 48 has no coarser level"),
        (&["--set", "grid.finest=48"], 65, "allowed: multiples of 32, for example 32 or 64"),
        (&["--set", "grid.finest=64", "--set", "grid.coarsest=64"], 65, "allowed: 32 or another half of it"),
        (&["--set", "grid.compression=31"], 65, "grid.compression is above grid.refinement"),
        (&["--set", "solver.theta=1"], 65, "allowed: 0 to 0.9"),
        (&["--set", "solver.order=20", "--set", "solver.precision=f32"], 65, "single precision: 1 to 14"),
        (&["--set", "vorticity.1.core=0.3"], 65, "vorticity.1.core = 0.3 is above the radius"),
        (&["--set", "vorticity.1.axis=[0,0,0]"], 65, "has no direction"),
        (&["--set", "grid.refine=1"], 65, "did you mean 'refinement'?"),
        (&["--set", "time.dt=1"], 65, "time.end is missing"),
        (&["--set", "solver.method=fmm"], 65, "unknown key 'method'"),
        (&["--set", "vorticity.0.model=file"], 65, "path is missing"),
        (&["--set", "vorticity.0.peak=1e-165"], 65, "allowed with this core: sizes from 7.813e-104 to 7.812e96, and 0"),
        (&["--set", "vorticity.0.peak=-1e160"], 65, "vorticity.0.peak = -1e160 is outside its range"),
        (&["--set", "vorticity.0.radius=99999999999999999999999"], 65, "radius is a whole number of more than 64 bits"),
    ] {
        let out = folder.case(arguments);
        assert!(code(&out) == exit && stderr(&out).contains(words), "{arguments:?}: {}\n{}", code(&out), stderr(&out));
    }
    let dry = folder.case(&["--dry-run"]);
    assert!(code(&dry) == 0 && String::from_utf8_lossy(&dry.stdout).contains("# Nothing was run."), "{}", stderr(&dry));
    assert!(!folder.path("out").exists());
}

#[test]
fn a_split_that_was_chosen_is_told_and_taken_back() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new(RINGS);
    let out = folder.case(&[&aside()[..], &["--device", "hybrid"]].concat());
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("direct sums on GPU 0 in f64, expansions on the cores; nodes of fewer than"), "{text}");
    let run = json(&folder, "out/run.json");
    assert_eq!(run["solver"]["device"], "hybrid:0");
    let again = folder.run(&["out/scenario.resolved.toml", "-q", "--out", "again", "--threads", "1"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert_eq!(json(&folder, "again/run.json")["solver"]["split"], run["solver"]["split"]);
    let [a, b] = ["out", "again"].map(|d| std::fs::read(folder.path(&format!("{d}/grid_000000.csv"))).unwrap());
    assert!(a == b, "not the same bits");
    for device in ["cpu", "cuda"] {
        let out = folder.case(&[&aside()[..], &["-q", "--out", device, "--device", device]].concat());
        assert_eq!(code(&out), 0, "{}", stderr(&out));
        for field in ["stream", "velocity"] {
            let ratio = error(&json(&folder, &format!("{device}/run.json")), field) / error(&run, field);
            assert!((0.999..1.001).contains(&ratio), "{device} {field}: {ratio}");
        }
    }
}

/// Both VTKs find in every cell what the table says.
fn opens(environment: &str) {
    let Some(mut python) = python(environment, "check_amr.py") else { return };
    let folder = Folder::new(RINGS);
    let out = folder.case(&[&aside()[..], &["-q"]].concat());
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let files = ["out/grid_000000.hdf", "out/grid_000000.csv"].map(|name| folder.path(name));
    let output = python.args(files).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.starts_with("ok "), "{text}{}", stderr(&output));
}

#[test]
fn vtk_9_2_6_opens_blocks() {
    opens(".venv");
}

#[test]
fn the_newest_vtk_opens_blocks() {
    opens(".venv-vtk-new");
}

const MEETING: &str = r#"
title = "meeting"
[grid]
corner = [-0.5, -0.5, -0.5]
n = 48
[[vorticity]]
model = "vortex-ring"
center = [0, 0, -0.15]
radius = 0.2
core = 0.06
[[vorticity]]
model = "vortex-ring"
center = [0, 0, 0.15]
axis = [0, 0, -1]
radius = 0.2
core = 0.06
[solver]
order = 4
[time]
dt = 0.01
end = 0.03
[output]
directory = "out"
every = 0.02
diagnostics_every = 0.01
"#;

#[test]
fn a_flow_goes_on_and_tells_its_integrals() {
    let folder = Folder::new(MEETING);
    let out = folder.case(&["--threads", "2"]);
    assert_eq!(code(&out), 0, "{}", stderr(&out));
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("steps         3 to time 0.03, rk3") && text.contains("enstrophy"), "{text}");
    // Steps 0, 2 and 3.
    let times: Vec<f64> = json(&folder, "out/run.hdf.series")["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["time"].as_f64().unwrap())
        .collect();
    assert_eq!(times, [0.0, 0.02, 0.03]);
    let column = |name: &str| crate::common::column(&folder.path("out"), name);
    let (energy, enstrophy) = (column("energy_error"), column("enstrophy"));
    assert_eq!(column("step"), [0.0, 1.0, 2.0, 3.0]);
    assert!(energy[0] == 0.0 && energy.iter().all(|e| e.abs() < 2e-2), "{energy:?}");
    assert!(enstrophy.windows(2).all(|w| w[1] > w[0]), "{enstrophy:?}");
    // Γ of each ring is 1 but for the tails of their cores, which overlap and cancel; so do their impulses.
    let [below, above] = ["circulation_below", "circulation_above"].map(column);
    assert!(below.iter().all(|c| (c - 1.0).abs() < 5e-3), "{below:?}");
    assert!(below.iter().zip(&above).all(|(a, b)| (a + b).abs() < 1e-5), "{below:?} {above:?}");
    assert!(column("impulse_z").iter().all(|i| i.abs() < 1e-5));
    let again = folder.run(&["out/scenario.resolved.toml", "-q", "--out", "again", "--threads", "1"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    for name in ["grid_000002.hdf", "diagnostics.csv"] {
        let [a, b] = ["out", "again"].map(|d| std::fs::read(folder.path(&format!("{d}/{name}"))).unwrap());
        assert!(a == b, "{name} depends on the number of threads");
    }
    let check = folder.command(&["check", "out"]).output().unwrap();
    assert_eq!(code(&check), 0, "{}", stderr(&check));
    for (path, words) in [("out", "3 from time 0 to 0.03"), ("out/grid_000001.hdf", "fields on a grid")] {
        let info = folder.command(&["info", path]).output().unwrap();
        let text = String::from_utf8_lossy(&info.stdout);
        assert!(code(&info) == 0 && text.contains(words) && text.contains("of 16³ cells"), "{text}{}", stderr(&info));
    }
    let convert = folder.command(&["convert", "out/grid_000001.hdf", "a.csv"]).output().unwrap();
    assert!(
        code(&convert) == 65 && stderr(&convert).contains("fields on a grid, not particles"),
        "{}",
        stderr(&convert)
    );
}

#[test]
fn steps_that_cannot_be_made_are_refused() {
    let folder = Folder::new(MEETING);
    for (arguments, exit, words) in [
        (&["--set", "time.integrator=rk4"][..], 65, "did you mean \"rk3\"?"),
        (&["--set", "time.remeshing=m8"], 65, "allowed: m4, m6"),
        (&["--set", "time.end=0.025"], 65, "time.dt = 0.01 does not divide time.end = 0.025"),
        (&["--set", "output.every=0.015"], 65, "does not divide output.every"),
        (&["--set", "time.cutoff=0.5"], 65, "allowed: 0 to 0.1"),
        (&["--set", "time.viscosity=-1"], 65, "time.viscosity = -1 is outside its range"),
        (&["--set", "time.viscosity=0.1"], 65, "allowed: up to 0.000542, from h^2/(8 time.viscosity)"),
        (&["--set", "grid.n=1048576"], 65, "more than the 4294967295 that can be numbered"),
        (
            &["--set", "vorticity.0.circulation=0", "--set", "vorticity.1.circulation=0"],
            65,
            "no vorticity lies in the domain",
        ),
        (&["--set", "vorticity.0.center=[0, 0, 0.4]"], 65, "faces of the domain"),
        (&["--set", "vorticity.0.peak=1"], 65, "unknown key 'peak'"),
    ] {
        let out = folder.case(arguments);
        assert!(code(&out) == exit && stderr(&out).contains(words), "{arguments:?}: {}\n{}", code(&out), stderr(&out));
    }
    assert!(!folder.path("out").exists());
}
