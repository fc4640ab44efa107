//! What `nbody run` prints: events, estimates, checks of the forces, and mistakes beyond the
//! scenario's text.

use std::fs;
use std::path::PathBuf;

use crate::common::{Folder, code, outputs};
use nbody::files::snapshot;
use serde_json::Value;

const SMALL: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 2000
[solver]
method = "fmm"
[time]
dt = 0.01
end = 0.1
[output]
every = 0.05
diagnostics_every = 0.02
[verify]
every = 0.05
"#;

#[test]
fn events_are_one_object_a_line() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--out", "a", "--json"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    assert!(output.stderr.is_empty(), "{}", outputs(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let steps = |name: &str| -> Vec<u64> {
        events.iter().filter(|e| e["event"] == name).map(|e| e["step"].as_u64().unwrap_or(99)).collect()
    };
    assert_eq!((steps("start"), steps("snapshot"), steps("checkpoint")), (vec![0], vec![0, 5, 10], vec![0, 10]));
    assert_eq!(steps("diagnostics"), [0, 2, 4, 6, 8, 10]);
    assert!(!steps("progress").is_empty());
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["exit_code"], &end["steps"]), (&"end".into(), &0.into(), &10.into()));
    let size = fs::metadata(folder.path("a/snap_000001.hdf")).unwrap().len();
    assert!(events.iter().any(|e| e["file"] == "snap_000001.hdf" && e["bytes"] == size), "{text}");
}

#[test]
fn forces_are_checked_during_the_run() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--out", "a"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    assert!(!outputs(&output).contains("warning"), "{}", outputs(&output));
    let report: Value = serde_json::from_slice(&fs::read(folder.path("a/run.json")).unwrap()).unwrap();
    let error = &report["force_error"];
    assert_eq!(error["samples"], 3);
    let largest = error["largest"].as_f64().unwrap();
    assert!(largest > 1e-8 && largest <= 1e-4, "{error}");
    let table = fs::read_to_string(folder.path("a/diagnostics.csv")).unwrap();
    // The last column names the run and is empty.
    assert!(table.lines().next().unwrap().contains(",lagrangian_10,lagrangian_50,lagrangian_90,force_error,run_"));
    assert!(table.lines().skip(1).all(|l| l.rsplit(',').nth(1).unwrap().parse::<f64>().unwrap() > 0.0), "{table}");
    let last = snapshot::read(&folder.path("a/snap_000002.hdf")).unwrap();
    for name in ["total", "energy_error", "momentum_x", "virial_ratio", "density_center_y", "lagrangian_50"] {
        assert!(last.diagnostics.iter().any(|(n, _)| n == name), "no {name} in {:?}", last.diagnostics);
    }
    assert_eq!(last.diagnostics.iter().find(|(n, _)| n == "force_error").unwrap().1, error["last"].as_f64().unwrap());
}

#[test]
fn forces_that_miss_the_tolerance_are_told_or_stop_the_run() {
    let folder = Folder::new(SMALL);
    let crude = ["--set", "solver.order=1", "--set", "solver.theta=1.0", "--set", "solver.tolerance=1e-6"];
    let warned = folder.case(&[&["--out", "a"][..], &crude].concat());
    assert_eq!(code(&warned), 0, "{}", outputs(&warned));
    assert!(outputs(&warned).contains("warning: step 0, "), "{}", outputs(&warned));
    let stop = [&["--out", "b", "--set", "verify.action=stop"][..], &crude].concat();
    let stopped = folder.case(&stop);
    assert_eq!(code(&stopped), 1, "{}", outputs(&stopped));
    assert!(outputs(&stopped).contains("above solver.tolerance = 1e-6"), "{}", outputs(&stopped));
    assert!(!folder.path("b/snap_000000.hdf").exists(), "a wrong state is not written");
}

#[test]
fn a_dry_run_tells_what_is_needed_and_writes_nothing() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--dry-run"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["order = ", "memory", "a snapshot", "(3 of them", "time ", "10 steps"] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
    // The text is a scenario, and the size of a snapshot is near the truth.
    fs::write(folder.path("again.toml"), &text).unwrap();
    let facts = folder.case(&["--dry-run", "--json"]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    assert_eq!(code(&folder.case(&["--out", "a", "-q"])), 0);
    for (key, name) in [("snapshot_bytes", "snap_000001.hdf"), ("checkpoint_bytes", "checkpoint.0.hdf")] {
        let (estimate, is) = (facts[key].as_f64().unwrap(), fs::metadata(folder.path("a").join(name)).unwrap().len());
        assert!((estimate / is as f64 - 1.0).abs() < 0.1, "{key}: {estimate} outputs, {is} found");
    }
    let again = folder.run(&["again.toml", "--out", "b", "-q"]);
    assert_eq!(code(&again), 0, "{}", outputs(&again));
}

#[test]
fn until_and_steps_set_the_end() {
    let folder = Folder::new(SMALL);
    for (arguments, steps) in [(["--until", "0.03"], 3), (["--steps", "4"], 4), (["--steps", "0"], 0)] {
        let output = folder.case(&[&["--out", "a", "--force", "-q"][..], &arguments].concat());
        assert_eq!(code(&output), 0, "{}", outputs(&output));
        let report: Value = serde_json::from_slice(&fs::read(folder.path("a/run.json")).unwrap()).unwrap();
        assert_eq!((&report["steps"], &report["complete"]), (&steps.into(), &true.into()));
    }
    assert_eq!(code(&folder.case(&["--out", "b", "--until", "0.035"])), 65);
    assert_eq!(code(&folder.case(&["--out", "b", "--until", "-1"])), 65);
    assert_eq!(code(&folder.case(&["--out", "b", "--until", "1", "--steps", "1"])), 2);
}

/// A mistake that is found when the directory is looked at; the others are in tests/mistakes.
#[test]
fn a_directory_in_use_is_told_as_expected() {
    let folder = Folder::new(SMALL);
    assert_eq!(code(&folder.case(&["--out", "a", "-q", "--steps", "0"])), 0);
    let output = folder.case(&["--out", "a"]);
    let message = format!("exit code {}\n{}", code(&output), outputs(&output));
    let expected = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes/directory_in_use.txt");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&expected, &message).unwrap();
    }
    assert_eq!(message, fs::read_to_string(&expected).unwrap_or_default());
}

/// Steps far longer than the time in which two bodies meet: the energy is off by many times itself.
#[test]
fn absurd_energies_are_reported_and_refused_by_strict() {
    let folder = Folder::new(SMALL);
    let wild = [
        "--set",
        "time.dt=5",
        "--set",
        "time.end=50",
        "--set",
        "output.every=50",
        "--set",
        "output.diagnostics_every=5",
    ];
    let arguments =
        |out: &'static str| [&["case.toml", "--out", out][..], &wild, &["--set", "verify.every=50"]].concat();
    let output = folder.run(&arguments("a"));
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let warnings = outputs(&output).matches("the energy is off by").count();
    assert_eq!(warnings, 2, "once during the run, once at its end: {}", outputs(&output));
    assert!(outputs(&output).contains("try a smaller time.dt (now 5) or a longer softening"), "{}", outputs(&output));
    let strict = folder.run(&[&arguments("b")[..], &["--strict"]].concat());
    assert!(code(&strict) == 1 && outputs(&strict).contains("(--strict)"), "{}", outputs(&strict));
    // A sound run ends with 0.
    assert_eq!(code(&folder.case(&["--out", "c", "-q", "--strict"])), 0);
}

/// What is no TOML is text: quantities need no quotes within those of the shell.
#[test]
fn quantities_in_set_need_no_quotes() {
    let case = "[units]\nsystem = \"astro\"\n[[particles]]\nmodel = \"plummer\"\nn = 100\n[time]\ndt = \"0.1 Myr\"\nend = \"1 Myr\"\n";
    let folder = Folder::new(case);
    let end = |set: &str, out: &str| {
        let output = folder.case(&["--set", set, "--dry-run", "-v", "--out", out]);
        assert_eq!(code(&output), 0, "{set}: {}", outputs(&output));
        let text = outputs(&output);
        text.lines().find(|l| l.starts_with("end = ")).unwrap_or_else(|| panic!("{text}")).to_string()
    };
    assert_eq!(end("time.end=0.2 Myr", "a"), end("time.end=\"0.2 Myr\"", "b"));
    assert_ne!(end("time.end=0.2 Myr", "a"), end("time.end=0.4Myr", "c"));
}
