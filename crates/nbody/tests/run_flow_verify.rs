//! `[verify]` of flows on grids: velocities in samples of the cells against direct sums.

use std::fs;

use crate::common::{Folder, code, json, outputs};
use nbody::scenario::Override;
use nbody::scenario::grid::GridScenario;

/// A ring whose velocities err by a few 1e-5, in a stream that is faster.
const RING: &str = r#"
title = "ring"
[grid]
corner = [-0.5, -0.5, -0.5]
n = 32
[flow]
inflow = [0, 0, 3]
[[vorticity]]
model = "vortex-ring"
center = [0, 0, 0]
radius = 0.15
core = 0.06
circulation = 0.1
[solver]
leaf_size = 64
split = 16
device = "cpu"
[time]
integrator = "rk2"
dt = 0.0005
end = 0.002
[output]
directory = "out"
every = 0.001
[verify]
sample = 300
every = 0.001
"#;

const COARSE: [&str; 4] = ["--set", "solver.order=1", "--set", "solver.theta=0.9"];

fn table(folder: &Folder, run: &str) -> String {
    fs::read_to_string(folder.path(run).join("diagnostics.csv")).unwrap()
}

/// The errors of a run's table: the last column but that of its id, empty where nothing was
/// measured.
fn errors(folder: &Folder, run: &str) -> Vec<Option<f64>> {
    let table = table(folder, run);
    let mut lines = table.lines().map(|line| line.rsplit(',').nth(1).unwrap());
    assert_eq!(lines.next(), Some("velocity_error"));
    lines.map(|cell| (!cell.is_empty()).then(|| cell.parse().unwrap())).collect()
}

/// The scenario without the section.
fn unchecked() -> &'static str {
    RING.split("[verify]").next().unwrap()
}

#[test]
fn velocity_errors_are_reported() {
    let folder = Folder::new(RING);
    let out = folder.case(&["--threads", "2"]);
    assert!(code(&out) == 0 && !outputs(&out).contains("warning"), "{}", outputs(&out));
    assert!(outputs(&out).contains(" at most of 3 samples, 1e-3 asked\n"), "{}", outputs(&out));
    let error = &json(&folder.path("out/run.json"))["velocity_error"];
    assert_eq!((&error["samples"], &error["cells_per_sample"]), (&3.into(), &300.into()));
    let [last, largest] = ["last", "largest"].map(|key| error[key].as_f64().unwrap());
    assert!((1e-6..2e-4).contains(&largest) && last <= largest, "{error}");
    let measured = errors(&folder, "out");
    assert!(measured.len() == 3 && measured[2] == Some(last), "{measured:?}");
    assert!(measured.iter().all(|e| e.is_some_and(|e| (1e-6..2e-4).contains(&e))), "{measured:?}");
    // Coarser sums err more; without the section nothing is measured.
    let coarse =
        folder.run(&[&["case.toml", "--out", "coarse", "--set", "verify.tolerance=0.1"], &COARSE[..]].concat());
    assert_eq!(code(&coarse), 0, "{}", outputs(&coarse));
    let coarse = json(&folder.path("coarse/run.json"))["velocity_error"]["largest"].as_f64().unwrap();
    assert!(coarse > 100.0 * largest, "{coarse} {largest}");
    fs::write(folder.path("bare.toml"), unchecked()).unwrap();
    folder.done(&["bare.toml", "--out", "bare", "-q"]);
    assert!(json(&folder.path("bare/run.json"))["velocity_error"].is_null());
    assert_eq!(errors(&folder, "bare"), [None; 3]);
}

#[test]
fn velocities_of_direct_sums_have_no_error() {
    // On two levels too. What solving takes away from the vorticity, and the inflow, are no part of
    // the error.
    let levels = "side = 2\nfinest = 32\ncoarsest = 16\nrefinement = 0.5\ncompression = 0.01";
    let off_center = RING.replace("center = [0, 0, 0]", "center = [0.25, 0.25, 0.25]");
    for text in [RING.to_string(), off_center.replace("n = 32", levels)] {
        let folder = Folder::new(&text);
        for sets in ["", "solver.green='singular'", "solver.correction=true"] {
            let exact = ["--set", "solver.theta=0", "--set", "solver.precision='f64'", "--until", "0.0005", "-q"];
            let more = if sets.is_empty() { vec![] } else { vec!["--set", sets] };
            folder.done(&[&["case.toml", "--force", "--set", "verify.every=0.0005"], &exact[..], &more].concat());
            let errors = errors(&folder, "out");
            assert!(errors.len() == 2 && errors.iter().all(|e| e.is_some_and(|e| e < 1e-11)), "{sets}: {errors:?}");
        }
    }
}

#[test]
fn velocities_that_miss_the_tolerance_are_reported_or_stop_the_run() {
    let folder = Folder::new(RING);
    let warned = folder.case(&COARSE);
    let text = outputs(&warned);
    assert!(
        code(&warned) == 0 && text.contains("warning: step 0, time 0: the L2 velocity error of 300 cells is "),
        "{text}"
    );
    assert!(text.contains("above verify.tolerance = 1e-3"), "{text}");
    let stop = ["--out", "stopped", "--set", "verify.action=stop", "--set", "verify.tolerance=1e-6"];
    let stopped = folder.case(&[&stop[..], &COARSE].concat());
    let text = outputs(&stopped);
    assert!(code(&stopped) == 1 && text.contains("by more than 10 times"), "{text}");
    assert!(text.contains("a larger solver.order") && text.contains("verify.action = \"warn\" goes on"), "{text}");
    assert!(!folder.path("stopped/grid_000000.hdf").exists(), "a wrong state is not written");
    // A smaller miss may be chance.
    let near = ["--out", "near", "--set", "verify.action=stop", "--set", "verify.tolerance=1e-2", "--force"];
    let near = folder.case(&[&near[..], &COARSE].concat());
    assert_eq!(code(&near), 0, "{}", outputs(&near));
}

#[test]
fn a_resumed_flow_remembers_its_velocity_errors() {
    let folder = Folder::new(RING);
    folder.done(&["case.toml", "--out", "whole", "-q", "--threads", "2"]);
    folder.done(&["case.toml", "--out", "parts", "-q", "--threads", "1", "--steps", "1"]);
    folder.done(&["--resume", "parts", "-q", "--threads", "2", "--steps", "2"]);
    folder.done(&["--resume", "parts", "-q", "--until", "0.002"]);
    assert_eq!(table(&folder, "whole"), table(&folder, "parts"));
    let [whole, parts] = ["whole/run.json", "parts/run.json"].map(|name| json(&folder.path(name)));
    assert_eq!(whole["velocity_error"], parts["velocity_error"]);
    assert!(whole["velocity_error"]["samples"] == 3);
}

#[test]
fn checks_begin_and_end_on_resuming_and_change_nothing_else() {
    let folder = Folder::new(RING);
    fs::write(folder.path("bare.toml"), unchecked()).unwrap();
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    folder.done(&["bare.toml", "--out", "bare", "-q", "--steps", "1"]);
    // A version that did not know the column began the run.
    let without = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        [&cells[..cells.len() - 2], &cells[cells.len() - 1..]].concat().join(",") + "\n"
    };
    let old: String = table(&folder, "bare").lines().map(without).collect();
    fs::write(folder.path("bare/diagnostics.csv"), old).unwrap();
    folder.done(&["case.toml", "--resume", "--out", "bare", "-q", "--steps", "1"]);
    folder.done(&["bare.toml", "--resume", "--out", "bare", "-q"]);
    let [found, whole] = ["bare", "whole"].map(|run| errors(&folder, run));
    assert_eq!(found, [None, whole[1], whole[1]]);
    assert!(whole[1].is_some());
    let [found, whole] = ["bare", "whole"].map(|run| table(&folder, run).lines().map(without).collect::<String>());
    assert_eq!(found, whole);
    for file in ["grid_000001.hdf", "grid_000002.hdf", "run.hdf.series"] {
        let [found, whole] = ["bare", "whole"].map(|run| fs::read(folder.path(run).join(file)).unwrap());
        assert!(found == whole, "{file}");
    }
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let refused = |text: &str, set: &str| {
        let sets = [Override::set(set)];
        let read = GridScenario::parse("case.toml", text.into(), None, &sets[..usize::from(!set.is_empty())]);
        let Err(mistakes) = read else { panic!("{set} was accepted") };
        let text = mistakes.render(false).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("1 mistake; nothing was run"), "{set}: {text}");
        text
    };
    for (set, words) in [
        ("verify.sample=0", "allowed: 1 to 1000000"),
        ("verify.sample=2000000", "allowed: 1 to 1000000"),
        ("verify.every=0", "allowed: above 0 and finite"),
        ("verify.every=0.0007", "does not divide verify.every = 0.0007"),
        ("verify.every=1e-12", "verify.every = 1e-12"),
        ("verify.tolerance=0", "allowed: 1e-14 to 0.1"),
        ("verify.tolerance=nan", "verify.tolerance"),
        ("verify.action=halt", "verify.action = \"halt\" is unknown"),
        ("verify.tolerence=1e-3", "did you mean 'tolerance'?"),
        ("verify=3", "'verify' is a number, not a section"),
    ] {
        let text = refused(RING, set);
        assert!(text.contains(words), "{set}: {text}");
    }
    let still =
        "[grid]\nn = 32\n[[vorticity]]\nmodel = 'vortex-ring'\ncenter = [0.5, 0.5, 0.5]\nradius = 0.15\n[verify]\n";
    let text = refused(still, "");
    assert!(text.contains("'verify' is of flows that go on, and the scenario has no [time]"), "{text}");
}

#[test]
fn checks_are_written_back_with_every_value() {
    let read = |text: &str| GridScenario::parse("case.toml", text.into(), None, &[]).unwrap().unwrap();
    for (given, resolved) in [
        ("", "[verify]\nsample = 256\nevery = 0.001\ntolerance = 0.001\naction = \"warn\"\n"),
        (
            "sample = 9\nevery = 0.0015\ntolerance = 0.02\naction = 'stop'\n",
            "[verify]\nsample = 9\nevery = 0.0015\ntolerance = 0.02\naction = \"stop\"\n",
        ),
    ] {
        let scenario = read(&format!("{}[verify]\n{given}", unchecked()));
        let text = scenario.resolved();
        assert!(text.ends_with(&format!("\n{resolved}")), "{text}");
        assert_eq!(scenario.steps, read(&text).steps);
    }
    // A check makes no step shorter: with an automatic step it is due after whole ones.
    let automatic = RING.replace("dt = 0.0005", "dt = 'auto'");
    assert_eq!(read(&automatic).steps.unwrap().count, 2);
    let sooner = automatic
        .replace("every = 0.001\n[verify]\nsample = 300\nevery = 0.001", "every = 0.001\n[verify]\nevery = 0.0005");
    assert!(GridScenario::parse("case.toml", sooner, None, &[]).is_err());
}
