//! Runs that are stopped and go on: to the same bits, from the right checkpoint, and not as another run.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, code, json, outputs, send, wait};
use nbody::files::checkpoint;

const SMALL: &str = r#"
title = "small"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 400
virial_radius = 1
[solver]
tolerance = 1e-6
method = "fmm"
[time]
dt = 0.01
end = 6.0
[output]
every = 0.7
diagnostics_every = 0.11
[verify]
sample = 20
every = 0.5
"#;

/// Every byte of what a run computed, by file.
fn data(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let ours = names.filter(|n| n.starts_with("snap_") || n == "diagnostics.csv" || n == "run.hdf.series");
    ours.map(|n| (n.clone(), fs::read(folder.join(&n)).unwrap())).collect()
}

fn same(a: &Path, b: &Path) {
    let (a, b) = (data(a), data(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, bytes) in &a {
        assert!(*bytes == b[name], "{name} differs");
    }
}

#[test]
fn a_run_stopped_at_random_steps_gives_the_same_bytes() {
    let folder = Folder::new(SMALL);
    let begun = Instant::now();
    folder.done(&["case.toml", "--out", "whole", "--threads", "2", "-q"]);
    let whole = begun.elapsed();
    assert_eq!(data(&folder.path("whole")).len(), 12);
    let mut stops = 0;
    let mut arguments = vec!["case.toml", "--out", "parts", "--threads", "1"];
    loop {
        let mut command = folder.command(&["run"]);
        let child = command.args(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // A part of the whole run between a quarter and a half, by the time of day.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        std::thread::sleep(whole / 4 + whole / 4 * (now.subsec_micros() % 100) / 100);
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        let output = child.wait_with_output().unwrap();
        match code(&output) {
            0 => break,
            75 => stops += 1,
            other => panic!("exit code {other}: {}", outputs(&output)),
        }
        let step = checkpoint::latest(&folder.path("parts")).unwrap().unwrap().checkpoint.step;
        assert!(outputs(&output).contains(&format!("after step {step}, ")), "{}", outputs(&output));
        // Nothing is written out of turn.
        let index = nbody::files::series::Series::read(&folder.path("parts/run.hdf.series")).unwrap();
        for (i, entry) in index.entries().iter().enumerate() {
            assert!((entry.time - 0.7 * i as f64).abs() < 1e-9, "stopped at step {step}: {:?}", index.entries());
        }
        assert!(outputs(&output).ends_with("\nnbody run --resume parts\n"), "{}", outputs(&output));
        arguments = vec!["--resume", "parts", "--threads", ["2", "3", "1"][stops % 3]];
        if stops == 20 {
            folder.done(&arguments);
            break;
        }
    }
    assert!(stops > 0, "the run was never stopped");
    same(&folder.path("whole"), &folder.path("parts"));
}

#[test]
fn a_longer_end_gives_the_run_that_it_would_have_been() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "whole", "-q", "--until", "3"]);
    // 1.03 is due for nothing: what is written there has no place in the longer run.
    folder.done(&["case.toml", "--out", "parts", "-q", "--until", "1.03"]);
    folder.done(&["--resume", "parts", "-q", "--steps", "7"]);
    folder.done(&["case.toml", "--resume", "parts", "-q", "--until", "3", "--set", "verify.sample=20"]);
    same(&folder.path("whole"), &folder.path("parts"));
    let report = json(&folder.path("parts/run.json"));
    assert_eq!((&report["complete"], &report["resumed_from_step"]), (&true.into(), &110.into()));
    // Once more: there is nothing left to do, and nothing changes.
    folder.done(&["--resume", "parts", "-q"]);
    same(&folder.path("whole"), &folder.path("parts"));
    let back = folder.run(&["--resume", "parts", "--until", "2"]);
    assert_eq!(code(&back), 65);
    assert!(outputs(&back).contains("--until"), "{}", outputs(&back));
}

#[test]
fn an_index_that_is_lost_or_damaged_is_made_anew() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "whole", "-q", "--until", "3"]);
    folder.done(&["case.toml", "--out", "parts", "-q", "--until", "1.5"]);
    for (name, text) in [("lost", None), ("cut", Some("{\n  \"file-ser")), ("other", Some("{}"))] {
        let run = folder.path(name);
        crate::common::faults::copy(&folder.path("parts"), &run);
        let index = run.join("run.hdf.series");
        text.map_or_else(|| fs::remove_file(&index), |text| fs::write(&index, text)).unwrap();
        let output = folder.run(&["--resume", name, "-q", "--until", "3"]);
        let text = outputs(&output);
        assert!(code(&output) == 0 && text.contains("it is made anew of 4 snapshots"), "{name}: {text}");
        same(&folder.path("whole"), &run);
    }
}

#[test]
fn an_initial_snapshot_goes_on_as_the_run_that_it_begins() {
    let folder = Folder::new(SMALL);
    let text = SMALL.replace("every = 0.7\ndiagnostics_every = 0.11\n", "").replace("every = 0.5\n", "");
    fs::write(folder.path("bare.toml"), text).unwrap();
    for case in ["case.toml", "bare.toml"] {
        let (whole, parts) = (format!("whole-{case}"), format!("parts-{case}"));
        folder.done(&[case, "--out", &whole, "-q", "--until", "0.3"]);
        folder.done(&[case, "--out", &parts, "-q", "--until", "0"]);
        assert_eq!(data(&folder.path(&parts)).len(), 3, "{case}");
        folder.done(&["--resume", &parts, "-q", "--until", "0.3"]);
        same(&folder.path(&whole), &folder.path(&parts));
    }
}

#[test]
fn times_add_up_over_the_parts_of_a_run() {
    let folder = Folder::new(SMALL);
    let timings =
        || -> serde_json::Value { serde_json::from_slice(&fs::read(folder.path("a/timings.json")).unwrap()).unwrap() };
    let number = |timings: &serde_json::Value, of: &str| timings["stages"]["kick"][of].as_f64().unwrap();
    folder.done(&["case.toml", "--out", "a", "-q", "--until", "0.2"]);
    let first = timings();
    let begun = std::time::Instant::now();
    folder.done(&["--resume", "a", "-q", "--until", "0.5"]);
    let second = begun.elapsed().as_secs_f64();
    let both = timings();
    // All of the wall time has its row: stages, initial states, and what is left.
    let seconds = |timings: &serde_json::Value| {
        ["total_seconds", "initial_state_seconds", "other_seconds", "wall_seconds"]
            .map(|name| timings[name].as_f64().unwrap())
    };
    let [stages, initial, other, wall] = seconds(&both);
    assert!(initial > 0.0 && other > 0.0 && (stages + initial + other - wall).abs() < 1e-9 * wall, "{both}");
    assert!(wall > seconds(&first)[3] && wall < seconds(&first)[3] + second, "{both}");
    assert_eq!((&both["from_step"], &both["to_step"]), (&0.into(), &50.into()));
    assert_eq!(number(&both, "calls") / 50.0, number(&first, "calls") / 20.0);
    assert!(number(&both, "seconds") > number(&first, "seconds"));
    assert!(both["total_seconds"].as_f64() > first["total_seconds"].as_f64());
}

#[test]
fn every_integrator_goes_on_bit_for_bit() {
    let folder = Folder::new(SMALL);
    for integrator in ["leapfrog-dkd", "yoshida4"] {
        let set = format!("time.integrator={integrator}");
        let (whole, parts) = (format!("{integrator}-whole"), format!("{integrator}-parts"));
        folder.done(&["case.toml", "--out", &whole, "-q", "--set", &set, "--until", "0.5"]);
        folder.done(&["case.toml", "--out", &parts, "-q", "--set", &set, "--steps", "23"]);
        folder.done(&["--resume", &parts, "-q", "--until", "0.5"]);
        same(&folder.path(&whole), &folder.path(&parts));
    }
}

/// Ions whose forces cancel at the start, when the choice of the tables misses the tolerance. Heat soon changes that.
const HEATED: &str = r#"
[units]
system = "md"
[force]
law = "coulomb"
[boundary]
kind = "periodic"
side = 2.256
[[particles]]
model = "crystal"
cells = 4
spacing = 0.282
surface = "periodic"
charge = 1
mass = 22.99
partner_mass = 35.45
[thermostat]
kind = "langevin"
temperature = 1200.0
time = 0.05
[solver]
method = "fmm"
tolerance = 1e-3
[time]
dt = 0.001
end = 0.013
[output]
every = 0.013
"#;

#[test]
fn kept_choices_spare_sums_and_go_on_bit_for_bit() {
    let folder = Folder::new(HEATED);
    for (integrator, sums) in [("leapfrog-kdk", 14), ("leapfrog-dkd", 15), ("yoshida4", 40)] {
        let set = format!("time.integrator={integrator}");
        let [whole, parts, anew] = ["whole", "parts", "anew"].map(|part| format!("{integrator}-{part}"));
        folder.done(&["case.toml", "--out", &whole, "-q", "--set", &set, "--threads", "2"]);
        // Each sum of pairs is that of a trial. Sums for which the tables are read take up to five:
        // the first, the fifth after it, and the ninth after that.
        let timings: serde_json::Value = json(&folder.path(&whole).join("timings.json"));
        let trials = timings["stages"]["P2P"]["calls"].as_u64().unwrap();
        assert!((sums + 2..=sums + 16).contains(&trials), "{integrator}: {trials} trials for {sums} sums");
        for out in [&parts, &anew] {
            folder.done(&["case.toml", "--out", out, "-q", "--set", &set, "--steps", "7"]);
        }
        folder.done(&["--resume", &parts, "-q", "--threads", "1", "--until", "0.013"]);
        same(&folder.path(&whole), &folder.path(&parts));
        // Without what it has kept, as from a checkpoint of an earlier version, a run goes on with another choice.
        let mut latest = checkpoint::latest(&folder.path(&anew)).unwrap().unwrap();
        let all = latest.checkpoint.numbers.len();
        latest.checkpoint.numbers.retain(|(name, _)| !name.starts_with("kept_"));
        assert!(latest.checkpoint.numbers.len() < all, "{integrator}");
        checkpoint::write(&latest.path, &latest.checkpoint).unwrap();
        folder.done(&["--resume", &anew, "-q", "--until", "0.013"]);
        assert!(data(&folder.path(&whole)) != data(&folder.path(&anew)), "{integrator}");
    }
}

#[test]
fn other_settings_that_are_forced_forget_the_kept_choice() {
    let folder = Folder::new(HEATED);
    folder.done(&["case.toml", "--out", "a", "-q", "--steps", "3"]);
    let kept = || {
        let latest = checkpoint::latest(&folder.path("a")).unwrap().unwrap();
        latest.checkpoint.number("kept_target_error")
    };
    let before = kept();
    assert!(before.is_some());
    folder.done(&["--resume", "a", "-q", "--steps", "1"]);
    assert_eq!(kept(), before);
    folder.done(&["--resume", "a", "-q", "--force", "--set", "solver.tolerance=0.05", "--steps", "1"]);
    assert_ne!(kept(), before);
}

#[test]
fn a_damaged_checkpoint_falls_back_to_the_other() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "whole", "-q", "--until", "0.6"]);
    folder.done(&["case.toml", "--out", "parts", "-q", "--until", "0.2"]);
    folder.done(&["--resume", "parts", "-q", "--until", "0.4"]);
    let newest = checkpoint::latest(&folder.path("parts")).unwrap().unwrap();
    assert_eq!(newest.checkpoint.step, 40);
    let bytes = fs::read(&newest.path).unwrap();
    fs::write(&newest.path, &bytes[..bytes.len() / 2]).unwrap();
    let output = folder.run(&["--resume", "parts", "--until", "0.6"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let name = newest.path.file_name().unwrap().to_str().unwrap();
    assert!(outputs(&output).contains(name) && outputs(&output).contains("step 20"), "{}", outputs(&output));
    same(&folder.path("whole"), &folder.path("parts"));
    for name in checkpoint::NAMES {
        fs::write(folder.path("parts").join(name), "nothing").unwrap();
    }
    assert_eq!(code(&folder.run(&["--resume", "parts"])), 65);
}

#[test]
fn other_physics_are_refused_and_can_be_forced() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q", "--until", "0.2"]);
    let before = data(&folder.path("a"));
    let sets = ["--set", "force.softening.length=0.1", "--set", "time.dt=0.005", "--set", "title=other"];
    let arguments = [&["case.toml", "--resume", "--out", "a", "--until", "0.4"][..], &sets].concat();
    let output = folder.run(&arguments);
    assert_eq!(code(&output), 65, "{}", outputs(&output));
    let text = outputs(&output);
    for words in ["force.softening.length: 0.05 in the checkpoint, 0.1 now", "time.dt: 0.01", "--force"] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("title: "), "{text}");
    assert!(data(&folder.path("a")) == before, "a refused run changes nothing");
    // What the checkpoint lacks cannot be forced.
    let charged = "particles=[{model='uniform-cube',n=400,side=1,charge=1}]";
    let forced = ["--force", "--set", "force.law='coulomb'", "--set", charged];
    let output = folder.run(&[&arguments[..], &forced].concat());
    assert!(code(&output) == 65 && outputs(&output).contains("holds no charges"), "{}", outputs(&output));
    folder.done(&[&arguments[..], &["--force", "-q"]].concat());
    let end = checkpoint::latest(&folder.path("a")).unwrap().unwrap().checkpoint;
    assert_eq!((end.step, end.time), (80, 0.4));
}

#[test]
fn what_cannot_be_resumed_is_told() {
    let folder = Folder::new(SMALL);
    fs::create_dir(folder.path("empty")).unwrap();
    for (arguments, exit, words) in [
        (&["--resume", "absent"][..], 66, "no such run directory"),
        (&["--resume", "case.toml"], 66, "no such run directory"),
        (&["--resume", "empty"], 66, "no checkpoint"),
        (&["--resume"], 2, "--resume DIR"),
        (&[], 2, "SCENARIO"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(code(&output), exit, "{arguments:?}: {}", outputs(&output));
        assert!(outputs(&output).contains(words), "{arguments:?}: {}", outputs(&output));
    }
}

#[test]
fn a_directory_belongs_to_one_process_and_a_killed_run_goes_on() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "whole", "-q", "--until", "20"]);
    let long = ["case.toml", "--out", "a", "-q", "--until", "20", "--set", "output.checkpoint_wall='1s'"];
    let mut child = folder.command(&["run"]).args(long).stdout(Stdio::null()).spawn().unwrap();
    wait(|| folder.path("a/snap_000000.hdf").is_file());
    for arguments in [&["case.toml", "--out", "a", "--force"][..], &["--resume", "a"]] {
        let output = folder.run(arguments);
        assert_eq!(code(&output), 74, "{}", outputs(&output));
        assert!(outputs(&output).contains("another nbody run"), "{}", outputs(&output));
    }
    // After the first, checkpoints come by the clock; what is done after one when the process is killed is done again.
    wait(|| folder.path("a/checkpoint.1.hdf").is_file() || child_is_gone(child.id()));
    assert!(folder.path("a/checkpoint.1.hdf").is_file());
    std::thread::sleep(Duration::from_millis(300));
    let _ = child.kill();
    let _ = child.wait();
    fs::write(folder.path("a/.snap_000009.hdf.tmp-1"), "half").unwrap();
    folder.done(&["--resume", "a", "-q"]);
    same(&folder.path("whole"), &folder.path("a"));
    assert!(!folder.path("a/.snap_000009.hdf.tmp-1").exists());
}

fn child_is_gone(id: u32) -> bool {
    !Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn the_wall_clock_stops_a_run_in_time() {
    let folder = Folder::new(SMALL);
    let begun = Instant::now();
    let output = folder.run(&["case.toml", "--out", "a", "--until", "1000000", "--max-wall", "1500ms", "-q"]);
    assert_eq!(code(&output), 75, "{}", outputs(&output));
    assert!((1.0..10.0).contains(&begun.elapsed().as_secs_f64()));
    assert!(outputs(&output).contains("--max-wall") && outputs(&output).contains("nbody run --resume a"));
    assert!(checkpoint::latest(&folder.path("a")).unwrap().unwrap().checkpoint.step > 0);
    assert_eq!(code(&folder.run(&["case.toml", "--max-wall", "soon"])), 2);
}

/// A step of a flow whose length is automatic goes from one output to the next, in many parts.
#[test]
fn a_signal_is_answered_while_a_step_is_long() {
    let flow = "[grid]\ncorner = [-0.5, -0.5, -0.5]\nn = 64\n[[vorticity]]\nmodel = 'vortex-ring'\ncenter = [0, 0, 0]\n\
                radius = 0.15\ncore = 0.06\n[time]\ndt = 'auto'\nend = 1000\n[output]\ndiagnostics_every = 1000\n";
    let folder = Folder::new(flow);
    let heard = fs::File::create(folder.path("heard")).unwrap();
    let mut child = folder.command(&["run", "case.toml", "--out", "a", "-q"]).stderr(heard).spawn().unwrap();
    let text = || fs::read_to_string(folder.path("heard")).unwrap();
    wait(|| folder.path("a/scenario.resolved.toml").is_file());
    send("-INT", &child);
    wait(|| text().contains("signal received: the run ends after this step; a second signal ends it at once\n"));
    assert!(child.try_wait().unwrap().is_none(), "the step is not over");
    send("-INT", &child);
    assert_eq!(child.wait().unwrap().code(), Some(75));
    assert!(!text().contains("stopped by a signal after"), "{}", text());
}

#[test]
fn a_second_signal_stops_at_once_and_leaves_valid_files() {
    let folder = Folder::new(SMALL);
    // A step of this takes seconds.
    let sets = ["--set", "particles.0.n=60000", "--set", "solver.method=direct", "--set", "solver.tolerance=1e-10"];
    let arguments = [&["case.toml", "--out", "a", "-q"][..], &sets].concat();
    let mut child =
        folder.command(&["run"]).args(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait(|| folder.path("a/scenario.resolved.toml").is_file());
    for _ in 0..2 {
        send("-TERM", &child);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(child.wait().unwrap().code(), Some(75));
    let first = nbody::files::snapshot::read(&folder.path("a/snap_000000.hdf")).unwrap();
    assert_eq!(first.id.len(), 60_000);
    assert!(!folder.path("a/checkpoint.1.hdf").exists(), "the step was not finished");
}
