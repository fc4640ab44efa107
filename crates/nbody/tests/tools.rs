//! `nbody init`, `info`, `check`, `plot`, `completions`, `man` and `--version` from end to end.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use nbody::scenario::Scenario;
use nbody::scenario::grid::GridScenario;
use serde_json::Value;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
    command.current_dir(folder).args(arguments);
    command
}

fn nbody(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn messages(output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("panicked"), "{text}");
    text
}

fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = nbody(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", messages(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = nbody(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", messages(&output));
    messages(&output)
}

/// A small run, made once; tests copy it.
fn run_copy() -> tempfile::TempDir {
    static RUN: OnceLock<tempfile::TempDir> = OnceLock::new();
    let original = RUN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        ok(folder.path(), &["init", "plummer"]);
        let sets = ["particles.0.n=200", "time.end=0.25", "output.every=0.125", "solver.method=\"direct\""];
        let sets: Vec<&str> = sets.iter().flat_map(|s| ["--set", *s]).collect();
        ok(folder.path(), &[&["run", "plummer.toml", "-q", "--out", "run"], &sets[..]].concat());
        folder
    });
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("run")).unwrap();
    for entry in fs::read_dir(original.path().join("run")).unwrap() {
        let from = entry.unwrap().path();
        if from.is_file() {
            fs::copy(&from, copy.path().join("run").join(from.file_name().unwrap())).unwrap();
        }
    }
    copy
}

/// Flips a bit in the middle of a file.
fn damage(path: &Path, share: f64) {
    let mut bytes = fs::read(path).unwrap();
    let at = (bytes.len() as f64 * share) as usize;
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// Flips a bit in every 64th byte of the middle of a file: some of them are in use.
fn spoil_middle(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let n = bytes.len();
    bytes[n / 3..2 * n / 3].iter_mut().step_by(64).for_each(|b| *b ^= 4);
    fs::write(path, bytes).unwrap();
}

#[test]
fn every_scenario_is_written_and_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let list = ok(folder.path(), &["init", "--list"]);
    assert!(list.lines().count() >= 2);
    for line in list.lines() {
        let (name, description) = line.split_once(' ').unwrap();
        assert!(description.trim().len() > 10, "{line}");
        let to = format!("case-{name}");
        let text = ok(folder.path(), &["init", name, "--to", &to]);
        assert!(text.contains(&format!("nbody run {to}/{name}.toml")), "{text}");
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(format!("{name}.toml"));
        let written = folder.path().join(&to).join(format!("{name}.toml"));
        assert_eq!(fs::read(&written).unwrap(), fs::read(original).unwrap());
        // A file that it names must have come along.
        let grid = GridScenario::load(&written, &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
        if grid.is_none() {
            Scenario::load(&written, &[]).unwrap_or_else(|e| panic!("{}", e.render(false)));
        }
        for data in fs::read_dir(folder.path().join(&to)).unwrap() {
            assert!(data.unwrap().metadata().unwrap().len() > 0);
        }
        assert!(fails(folder.path(), &["init", name, "--to", &to], 74).contains("is there already"));
        ok(folder.path(), &["init", name, "--to", &to, "--force"]);
    }
    let text = fails(folder.path(), &["init", "plumer"], 2);
    assert!(text.contains("did you mean \"plummer\"") && text.contains("planets"), "{text}");
    fails(folder.path(), &["init"], 2);
    fs::write(folder.path().join("file"), "").unwrap();
    fails(folder.path(), &["init", "plummer", "--to", "file"], 74);
}

#[test]
fn info_tells_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), &["info"]);
    assert!(text.contains("gpus") && text.contains("hdf5"), "{text}");
    let json: Value = serde_json::from_str(&ok(folder.path(), &["info", "--json"])).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["threads"].as_u64().unwrap() >= 1);
    // GPUs, or why there is none.
    let gpus = &json["gpus"];
    assert_eq!(gpus["usable"].as_array().unwrap().is_empty(), gpus["reason"].is_string(), "{gpus}");
    let version = ok(folder.path(), &["--version"]);
    let simd = json["simd"].as_str().unwrap();
    let commit = json["commit"].as_str().unwrap_or("unknown");
    for word in [env!("CARGO_PKG_VERSION"), commit, json["hdf5"].as_str().unwrap(), simd, "GPU kernels"] {
        assert!(version.contains(word), "{version} lacks {word}");
    }
}

#[test]
fn info_tells_of_files() {
    let folder = run_copy();
    let json = |path: &str| -> Value { serde_json::from_str(&ok(folder.path(), &["info", path, "--json"])).unwrap() };
    let run = json("run");
    assert_eq!((&run["kind"], &run["particles"], &run["time"]), (&"run directory".into(), &200.into(), &0.25.into()));
    assert_eq!(run["snapshots"]["times"], serde_json::json!([0.0, 0.125, 0.25]));
    assert_eq!(run["units"]["system"], "nbody");
    let snapshot = json("run/snap_000001.hdf");
    assert_eq!((&snapshot["kind"], &snapshot["time"]), (&"snapshot".into(), &0.125.into()));
    assert!((snapshot["mass"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    let radius = |share: &str| snapshot["mass_radii"][share].as_f64().unwrap();
    assert!(0.0 < radius("10") && radius("10") < radius("50") && radius("50") < radius("90"));
    assert!((snapshot["energy"]["total"].as_f64().unwrap() + 0.25).abs() < 0.1, "{snapshot}");
    // Without notes of the run the energies come from the arrays.
    ok(folder.path(), &["convert", "run/snap_000001.hdf", "a.npy"]);
    let table = json("a.npy");
    assert_eq!(table["kind"], "table of particles");
    let gap = table["energy"]["total"].as_f64().unwrap() - snapshot["energy"]["total"].as_f64().unwrap();
    assert!(gap.abs() < 1e-6, "{gap}");
    assert_eq!(json("run/checkpoint.0.hdf")["kind"], "checkpoint");
    assert_eq!(json("run/checkpoint.0.hdf")["step"], 0);
    assert_eq!(json("run/checkpoint.1.hdf")["step"], run["step"]);
    for (path, code) in [("missing", 66), (".", 66), ("run/run.json", 65), ("run/scenario.toml", 65)] {
        fails(folder.path(), &["info", path], code);
    }
}

#[test]
fn check_passes_a_run_and_hashes_what_it_computed() {
    let folder = run_copy();
    let text = ok(folder.path(), &["check", "run", "--hash"]);
    assert!(text.contains("from checkpoint") && text.contains("nbody run --resume run"), "{text}");
    let last = |text: &str| text.lines().last().unwrap().split("  ").next().unwrap().to_string();
    assert_eq!(last(&text).len(), 64);
    // The same data written at another time, chunked, compressed and placed otherwise: the same hash.
    let one = |name: &str| last(&ok(folder.path(), &["check", name, "--hash"]));
    fs::copy(folder.path().join("run/snap_000002.hdf"), folder.path().join("copy.hdf")).unwrap();
    assert_eq!(one("run/snap_000002.hdf"), one("copy.hdf"));
    assert_ne!(one("run/snap_000002.hdf"), one("run/snap_000001.hdf"));
    // When checkpoints are written depends on the clock.
    for name in ["checkpoint.0.hdf", "checkpoint.1.hdf"] {
        let _ = fs::remove_file(folder.path().join("run").join(name));
    }
    let without = ok(folder.path(), &["check", "run", "--hash"]);
    assert_eq!(last(&without), last(&text));
    assert!(without.contains("not possible"), "{without}");
    let json: Value = serde_json::from_str(&ok(folder.path(), &["check", "run", "--json", "--hash"])).unwrap();
    assert_eq!((&json["whole"], json["hashes"].as_array().unwrap().len()), (&true.into(), 4));
}

#[test]
fn check_finds_damage_of_every_kind() {
    type Break = fn(&Path);
    fn copy(run: &Path, from: &str, to: &str) {
        fs::copy(run.join(from), run.join(to)).unwrap();
    }
    let cases: [(Break, &str); 11] = [
        (|run| spoil_middle(&run.join("snap_000001.hdf")), "snap_000001.hdf"),
        (|run| spoil_middle(&run.join("checkpoint.0.hdf")), "checkpoint.0.hdf"),
        (|run| fs::remove_file(run.join("snap_000002.hdf")).unwrap(), "not there"),
        (|run| copy(run, "snap_000001.hdf", "snap_000009.hdf"), "not named by"),
        (|run| copy(run, "snap_000001.hdf", "snap_000002.hdf"), "its time is 0.125"),
        (|run| fs::write(run.join("run.hdf.series"), "{}").unwrap(), "not an index"),
        (|run| fs::write(run.join("run.json"), "{").unwrap(), "run.json"),
        (|run| fs::write(run.join("diagnostics.csv"), "step,time\n0,0\n1,nan\n").unwrap(), "line 3, column time"),
        (|run| fs::write(run.join("diagnostics.csv"), "step,time\n1,1\n2,0\n").unwrap(), "comes after"),
        (|run| fs::write(run.join("diagnostics.csv"), "").unwrap(), "no line of time 0, when snap_000000.hdf"),
        (
            |run| fs::write(run.join("diagnostics.csv"), "step,time\n0,0\n").unwrap(),
            "no line of time 0.25, when snap_000002.hdf",
        ),
    ];
    for (spoil, words) in cases {
        let folder = run_copy();
        spoil(&folder.path().join("run"));
        let text = fails(folder.path(), &["check", "run"], 65);
        assert!(text.contains("DAMAGED") && text.contains(words), "{words}: {text}");
    }
    let folder = tempfile::tempdir().unwrap();
    fails(folder.path(), &["check", "missing.hdf"], 66);
    fails(folder.path(), &["check", "."], 66);
    fs::write(folder.path().join("a.csv"), "x\n1\n").unwrap();
    assert!(fails(folder.path(), &["check", "a.csv"], 65).contains("only HDF5 files"));
}

#[test]
fn every_flipped_bit_of_the_arrays_is_found() {
    let folder = run_copy();
    let path = folder.path().join("run/snap_000001.hdf");
    let original = fs::read(&path).unwrap();
    // Where the positions are: no bit of them may change unseen.
    let positions = nbody::files::snapshot::read(&path).unwrap().position;
    for k in 0..40 {
        damage(&path, (f64::from(k) + 0.5) / 40.0);
        let output = nbody(folder.path(), &["check", "run/snap_000001.hdf"]);
        messages(&output);
        if output.status.success() {
            assert_eq!(nbody::files::snapshot::read(&path).unwrap().position, positions, "{k}");
        }
        fs::write(&path, &original).unwrap();
    }
}

#[test]
fn plots_hold_their_series() {
    let folder = run_copy();
    let run = folder.path().join("run");
    // All columns of a run are plotted, by name.
    let text = "step,time,energy_error,lagrangian_10,lagrangian_50,force_error\n0,0,0,0.2,0.8,\n1,0.5,-1e-6,0.21,0.79,1e-5\n2,1,2e-6,0.2,0.8,\n";
    fs::write(run.join("diagnostics.csv"), text).unwrap();
    let output = ok(folder.path(), &["plot", "run", "--out", "figures"]);
    assert_eq!(output.lines().count(), 8);
    let svg = |name: &str| fs::read_to_string(folder.path().join("figures").join(name)).unwrap();
    for (name, words) in [
        (
            "energy_error.svg",
            &["Energy drift", "time (N-body units)", "10⁻⁶", "largest so far", "threads", "N = 200"][..],
        ),
        ("lagrangian_radii.svg", &["10 % of the mass", "50 % of the mass", "Lagrangian radius (N-body units)"]),
        ("stage_times.svg", &["P2P", "output", "wall time (s)", " %"]),
    ] {
        let text = svg(name);
        for word in words {
            assert!(text.contains(word), "{name} lacks {word}");
        }
    }
    assert!(svg("energy_error.svg").matches("<polyline").count() > 5);
    for name in ["energy_error.png", "lagrangian_radii.png", "stage_times.png"] {
        let bytes = fs::read(folder.path().join("figures").join(name)).unwrap();
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
        let size = [&bytes[16..20], &bytes[20..24]].map(|b| u32::from_be_bytes(b.try_into().unwrap()));
        assert_eq!(size, [1600, 1000]);
        // A picture without text and lines is smaller.
        assert!(bytes.len() > 20_000, "{name}: {}", bytes.len());
    }
    let first = fs::read(folder.path().join("figures/energy_error.png")).unwrap();
    ok(folder.path(), &["plot", "run"]);
    assert!(fs::read(run.join("plots/energy_error.png")).unwrap() == first, "not the same picture twice");

    // Of the snapshots those are shown that are there.
    fs::remove_file(run.join("snap_000001.hdf")).unwrap();
    let output = nbody(folder.path(), &["plot", "run"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("particles"));
    assert!(messages(&output).contains("warning: run: 1 of 3 snapshots that run.hdf.series names are not there"));

    fs::remove_file(run.join("diagnostics.csv")).unwrap();
    fs::remove_file(run.join("timings.json")).unwrap();
    fs::remove_file(run.join("run.hdf.series")).unwrap();
    assert!(fails(folder.path(), &["plot", "run"], 66).contains("nothing to plot"));
    fails(folder.path(), &["plot", "missing"], 66);
    for command in ["plot", "paraview"] {
        assert!(fails(folder.path(), &[command, "run/run.json"], 66).contains("a file, and no run directory"));
    }
    assert!(fails(folder.path(), &["info", "run/scenario.toml"], 65).contains("--dry-run shows what it is"));
    fs::write(run.join("timings.json"), "[").unwrap();
    fails(folder.path(), &["plot", "run"], 65);
}

#[test]
fn ions_in_a_box_have_temperature_and_pressure_and_no_radii() {
    let folder = run_copy();
    let run = folder.path().join("run");
    let text = "step,time,energy_error,lagrangian_50,temperature,pressure\n0,0,0,0.8,10,-3\n1,1,1e-6,0.8,900,-2\n";
    fs::write(run.join("diagnostics.csv"), text).unwrap();
    for (name, text) in [("scenario.toml", ""), ("scenario.resolved.toml", "[thermostat]\ntemperature = 1300.0\n")] {
        let text = format!("[units]\nsystem = 'md'\n[force]\nlaw = 'coulomb'\n[boundary]\nkind = 'periodic'\n{text}");
        fs::write(run.join(name), text).unwrap();
    }
    let output = ok(folder.path(), &["plot", "run"]);
    assert!(!output.contains("lagrangian_radii"), "{output}");
    let svg = |name: &str| fs::read_to_string(run.join("plots").join(name)).unwrap();
    for word in ["Temperature", "temperature (K)", "thermostat", "time (ps)", "1500"] {
        assert!(svg("temperature.svg").contains(word), "no {word}");
    }
    assert!(svg("pressure.svg").contains("pressure (kJ/mol/nm³)") && !svg("pressure.svg").contains("thermostat"));
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let commands = ["run", "init", "info", "check", "convert", "plot", "paraview", "bench", "completions", "man"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = ok(folder.path(), &["completions", shell]);
        assert!(commands.iter().all(|c| text.contains(c)), "{shell}");
    }
    fails(folder.path(), &["completions", "tcsh"], 2);
    assert!(ok(folder.path(), &["man"]).contains(".TH nbody 1"));
    let text = ok(folder.path(), &["man", "pages"]);
    let count = fs::read_dir(folder.path().join("pages")).unwrap().count();
    assert!(text.contains(&format!("wrote {count} pages")), "{text}");
    for name in commands {
        let page = fs::read_to_string(folder.path().join("pages").join(format!("nbody-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(name), "{name}");
    }
}

#[test]
fn a_reader_that_goes_away_and_a_full_disk() {
    let folder = run_copy();
    let commands: [&[&str]; 6] = [
        &["info"],
        &["info", "run"],
        &["check", "run", "--hash"],
        &["init", "--list"],
        &["completions", "bash"],
        &["man"],
    ];
    for arguments in commands {
        let mut child =
            command(folder.path(), arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((child.wait().unwrap().code(), text.as_str()), (Some(0), ""), "{arguments:?}");

        let full = PathBuf::from("/dev/full");
        if full.exists() {
            let full = fs::OpenOptions::new().write(true).open(full).unwrap();
            let output = command(folder.path(), arguments).stdout(full).output().unwrap();
            assert_eq!(output.status.code(), Some(74), "{arguments:?}");
            assert!(messages(&output).contains("standard output"));
        }
    }
}
