//! Flows on a grid that are stopped and go on: to the same bits, from the right checkpoint, and not as another run.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::{Folder, code, column, json, outputs};
use nbody::files::checkpoint::{self, State};

const RING: &str = r#"
title = "ring"
[grid]
corner = [-0.5, -0.5, -0.5]
n = 32
[[vorticity]]
model = "vortex-ring"
center = [0, 0, 0]
radius = 0.15
core = 0.06
circulation = 0.1
[solver]
order = 3
theta = 0.7
device = "cpu"
[time]
integrator = "rk2"
dt = 0.01
end = 0.08
[output]
directory = "out"
formats = ["vtkhdf", "csv"]
fields = ["vorticity", "velocity"]
precision = "f64"
every = 0.03
diagnostics_every = 0.02
"#;

const PARTICLES: &str = r#"
[[particles]]
model = "plummer"
n = 20
[time]
dt = 0.01
end = 0.02
"#;

/// Every byte of what a run computed, by file.
fn data(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let ours = names.filter(|n| n.starts_with("grid_") || n == "diagnostics.csv" || n == "run.hdf.series");
    ours.map(|n| (n.clone(), fs::read(folder.join(&n)).unwrap())).collect()
}

fn same(a: &Path, b: &Path) {
    let [first, second] = [data(a), data(b)];
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(*bytes == second[name], "{name} differs");
    }
    for key in ["steps", "parts", "time", "energy_error", "enstrophy_growth", "circulation"] {
        let [a, b] = [a, b].map(|run| json(&run.join("run.json"))[key].clone());
        assert_eq!(a, b, "{key} of run.json");
    }
}

/// The newest checkpoint of a run.
fn latest(folder: &Path) -> checkpoint::Latest {
    checkpoint::latest(folder).unwrap().unwrap()
}

#[test]
fn a_resumed_flow_has_the_same_bits() {
    let folder = Folder::new(RING);
    folder.done(&["case.toml", "--out", "whole", "--threads", "2", "-q"]);
    // Steps 0, 3, 6 and 8, in two kinds of files, the index and the diagnostics.
    assert_eq!(data(&folder.path("whole")).len(), 10);
    // What is written at steps 1 and 5 because the run ends there has no place in the longer one.
    folder.done(&["case.toml", "--out", "parts", "--threads", "1", "-q", "--steps", "1"]);
    folder.done(&["--resume", "parts", "--threads", "2", "-q", "--steps", "4"]);
    assert_eq!(column(&folder.path("parts"), "step"), [0.0, 2.0, 4.0, 5.0]);
    folder.done(&["case.toml", "--resume", "--out", "parts", "--threads", "1", "-q"]);
    same(&folder.path("whole"), &folder.path("parts"));
    let run = json(&folder.path("parts/run.json"));
    assert_eq!((&run["complete"], &run["resumed_from_step"]), (&true.into(), &5.into()));
    // Once more: nothing is left to do, and nothing changes.
    let before = fs::read(folder.path("parts/run.json")).unwrap();
    let idle = folder.run(&["--resume", "parts"]);
    assert!(code(&idle) == 0 && outputs(&idle).contains("nothing was left to do"), "{}", outputs(&idle));
    same(&folder.path("whole"), &folder.path("parts"));
    assert!(fs::read(folder.path("parts/run.json")).unwrap() == before);
    let back = folder.run(&["--resume", "parts", "--until", "0.03"]);
    assert!(code(&back) == 65 && outputs(&back).contains("--until"), "{}", outputs(&back));
    let check = folder.command(&["check", "parts"]).output().unwrap();
    let text = outputs(&check);
    assert!(code(&check) == 0 && text.contains("at step 8, time 0.08: nbody run --resume parts"), "{text}");
    let path = latest(&folder.path("parts")).path.display().to_string();
    let info = folder.command(&["info", &path]).output().unwrap();
    let text = outputs(&info);
    assert!(code(&info) == 0 && text.contains("checkpoint of a flow on a grid") && text.contains("of 16³"), "{text}");
    let convert = folder.command(&["convert", &path, "a.csv"]).output().unwrap();
    assert!(code(&convert) == 65 && outputs(&convert).contains("of a flow on a grid, not"), "{}", outputs(&convert));
}

#[test]
fn a_flow_on_blocks_that_adapt_resumes_to_the_same_bits() {
    // A ring near the middle of one of eight blocks, which has parts where the others have none.
    let grid = "corner = [-1, -1, -1]\nside = 2\nfinest = 64\ncoarsest = 16\nrefinement = 0.5\ncompression = 0.01";
    let text = RING.replace("corner = [-0.5, -0.5, -0.5]\nn = 32", grid);
    let text = text.replace("center = [0, 0, 0]", "center = [0.38, 0.39, 0.37]");
    let folder = Folder::new(&text.replace("dt = 0.01\nend = 0.08", "dt = 'auto'\nend = 0.06"));
    let case = ["case.toml", "-q", "--set", "output.formats=['vtkhdf']", "--set", "output.every=0.02"];
    folder.done(&[&case[..], &["--out", "whole", "--threads", "2"]].concat());
    folder.done(&[&case[..], &["--out", "parts", "--threads", "1", "--steps", "1"]].concat());
    let State::Flow(flow) = latest(&folder.path("parts")).checkpoint.state else { panic!("no flow") };
    assert!(flow.blocks.iter().any(|b| b.level == 2) && flow.blocks.iter().any(|b| b.level < 2), "{:?}", flow.blocks);
    // Killed where it happens to be, and from there on.
    let mut command = folder.command(&["run", "--resume", "parts", "-q", "--until", "0.06"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    let _ = child.kill();
    child.wait().unwrap();
    folder.done(&["--resume", "parts", "-q", "--threads", "2", "--until", "0.06"]);
    same(&folder.path("whole"), &folder.path("parts"));
    let forced =
        folder.run(&[&case[..], &["--resume", "--out", "parts", "--set", "grid.coarsest=32", "--force"]].concat());
    assert!(
        code(&forced) == 65 && outputs(&forced).contains("grid.coarsest or grid.n as they were"),
        "{}",
        outputs(&forced)
    );
    let fewer =
        folder.run(&[&case[..], &["--resume", "--out", "parts", "--set", "grid.finest=32", "--force"]].concat());
    assert!(
        code(&fewer) == 65 && outputs(&fewer).contains("blocks of 64 cells a side of the domain"),
        "{}",
        outputs(&fewer)
    );
}

#[test]
fn tables_alone_go_on_too_and_so_does_an_initial_state() {
    let folder = Folder::new(RING);
    let tables = ["case.toml", "-q", "--set", "output.formats=['csv']", "--set", "output.every=0.01"];
    folder.done(&[&tables[..], &["--out", "whole", "--until", "0.04"]].concat());
    folder.done(&[&tables[..], &["--out", "parts", "--until", "0"]].concat());
    assert_eq!(data(&folder.path("parts")).len(), 3);
    folder.done(&["--resume", "parts", "-q", "--until", "0.03"]);
    folder.done(&["--resume", "parts", "-q"]);
    folder.done(&["--resume", "parts", "-q", "--until", "0.04"]);
    same(&folder.path("whole"), &folder.path("parts"));
    // Without intervals there are the first and the last state alone.
    fs::write(folder.path("bare.toml"), RING.replace("every = 0.03\ndiagnostics_every = 0.02\n", "")).unwrap();
    folder.done(&["bare.toml", "-q", "--out", "bare", "--until", "0.03"]);
    folder.done(&["bare.toml", "-q", "--out", "begun", "--until", "0"]);
    folder.done(&["--resume", "begun", "-q", "--until", "0.03"]);
    same(&folder.path("bare"), &folder.path("begun"));
}

#[test]
fn a_flow_stopped_by_signals_and_the_clock_has_the_same_bits() {
    let folder = Folder::new(RING);
    let long = ["case.toml", "-q", "--until", "0.3", "--set", "output.checkpoint_wall='1s'"];
    let begun = Instant::now();
    folder.done(&[&long[..], &["--out", "whole"]].concat());
    // However fast the machine is, this ends within the run.
    let part = begun.elapsed() / 4;
    let wall = format!("{}ms", part.as_millis());
    let stopped = folder.run(&[&long[..], &["--out", "parts", "--max-wall", &wall]].concat());
    assert_eq!(code(&stopped), 75, "{}", outputs(&stopped));
    assert!(outputs(&stopped).contains("before --max-wall is over after step"), "{}", outputs(&stopped));
    assert!(outputs(&stopped).ends_with("\nnbody run --resume parts\n"), "{}", outputs(&stopped));
    let mut stops = 0;
    loop {
        let mut command = folder.command(&["run", "--resume", "parts", "--threads", ["1", "2"][stops % 2]]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(part);
        let _ = Command::new("kill").args([["-INT", "-TERM"][stops % 2], &child.id().to_string()]).status();
        let output = child.wait_with_output().unwrap();
        match code(&output) {
            0 => break,
            75 => stops += 1,
            other => panic!("exit code {other}: {}", outputs(&output)),
        }
        let step = latest(&folder.path("parts")).checkpoint.step;
        let text = outputs(&output);
        assert!(text.contains(&format!("stopped by a signal after step {step}, ")), "{text}");
        assert!(text.ends_with("\nnbody run --resume parts\n"), "{text}");
        // Nothing is written out of turn.
        let lines = column(&folder.path("parts"), "step");
        assert!(lines.iter().all(|s| s % 2.0 == 0.0) && lines.len() as u64 == 1 + step / 2, "{step}: {lines:?}");
        if stops == 4 {
            folder.done(&["--resume", "parts", "-q"]);
            break;
        }
    }
    assert!(stops > 0, "the run was never stopped");
    same(&folder.path("whole"), &folder.path("parts"));
}

#[test]
fn a_run_that_is_to_end_where_it_was_stopped_has_one_line_of_that_step() {
    let folder = Folder::with(&[("flow.toml", RING), ("particles.toml", PARTICLES)]);
    for case in ["flow.toml", "particles.toml"] {
        // A hundred million steps: no machine is so fast that it comes to the end.
        let sets = ["--set", "output.every=1e6", "--set", "output.diagnostics_every=0.01"];
        let stopped =
            folder.run(&[&[case, "-q", "--out", "a", "--until", "1e6", "--max-wall", "300ms"], &sets[..]].concat());
        assert_eq!(code(&stopped), 75, "{}", outputs(&stopped));
        let step = latest(&folder.path("a")).checkpoint.step;
        folder.done(&["--resume", "a", "-q", "--steps", "0"]);
        let (lines, expected) = (column(&folder.path("a"), "step"), (0..=step).map(|s| s as f64));
        assert!(lines == expected.collect::<Vec<_>>(), "{case}: {lines:?}");
        let files = json(&folder.path("a/run.hdf.series"))["files"].as_array().map(Vec::len);
        assert_eq!(files, Some(2), "{case}");
        // Of two checkpoints of that step the later counts, whose end is there.
        let idle = folder.run(&["--resume", "a"]);
        assert!(code(&idle) == 0 && outputs(&idle).contains("nothing was left to do"), "{case}: {}", outputs(&idle));
        fs::remove_dir_all(folder.path("a")).unwrap();
    }
}

#[test]
fn a_damaged_checkpoint_of_a_flow_falls_back_to_the_other() {
    let folder = Folder::new(RING);
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    folder.done(&["case.toml", "--out", "parts", "-q", "--steps", "4"]);
    folder.done(&["--resume", "parts", "-q", "--steps", "3"]);
    let newest = latest(&folder.path("parts"));
    assert_eq!(newest.checkpoint.step, 7);
    let bytes = fs::read(&newest.path).unwrap();
    fs::write(&newest.path, &bytes[..bytes.len() / 2]).unwrap();
    let output = folder.run(&["--resume", "parts", "--until", "0.08"]);
    let text = outputs(&output);
    let name = newest.path.file_name().unwrap().to_str().unwrap();
    assert!(code(&output) == 0 && text.contains("nbody: warning: ") && text.contains(name), "{text}");
    assert!(text.contains("step 4"), "{text}");
    same(&folder.path("whole"), &folder.path("parts"));
}

#[test]
fn another_flow_is_refused_by_its_keys() {
    let folder = Folder::new(RING);
    folder.done(&["case.toml", "--out", "a", "-q", "--steps", "2"]);
    let before = data(&folder.path("a"));
    let resume = |more: &[&str]| folder.run(&[&["case.toml", "--resume", "--out", "a", "-q"], more].concat());
    for (set, line) in [
        ("grid.n=48", "grid.n: 32 in the checkpoint, 48 now"),
        ("time.cutoff=1e-3", "time.cutoff: 0.0001 in the checkpoint, 0.001 now"),
        ("vorticity.0.radius=0.16", "vorticity.0.radius: 0.15 in the checkpoint, 0.16 now"),
        ("solver.order=4", "solver.order: 3 in the checkpoint, 4 now"),
        ("output.fields=['velocity']", "output.fields: "),
    ] {
        let output = resume(&["--set", set]);
        assert!(code(&output) == 65 && outputs(&output).contains(line), "{set}: {}", outputs(&output));
    }
    // Cells that are not those of the checkpoint cannot be forced.
    let forced = resume(&["--set", "grid.n=48", "--force"]);
    assert!(code(&forced) == 65 && outputs(&forced).contains("grid.n as they were"), "{}", outputs(&forced));
    let divides = resume(&["--set", "time.dt=0.016", "--set", "output.every=0.032", "--force"]);
    assert!(code(&divides) == 65 && outputs(&divides).contains("time.dt"), "{}", outputs(&divides));
    assert!(data(&folder.path("a")) == before, "a refused run changes nothing");
    let free = ["--set", "title=other", "--set", "output.every=0.01", "--set", "output.checkpoint_wall='1h'"];
    let output = resume(&[&free[..], &["--set", "output.diagnostics_every=0.01", "--until", "0.03"]].concat());
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let output = resume(&["--set", "time.dt=0.005", "--until", "0.05", "--force"]);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let end = latest(&folder.path("a")).checkpoint;
    assert_eq!((end.step, end.time), (10, 0.05));
}

#[test]
fn a_solution_without_steps_is_not_resumed() {
    let folder = Folder::new(&RING.replace("[time]\nintegrator = \"rk2\"\ndt = 0.01\nend = 0.08\n", ""));
    let case = folder.path("case.toml");
    let text = fs::read_to_string(&case).unwrap();
    fs::write(case, text.replace("every = 0.03\ndiagnostics_every = 0.02\n", "")).unwrap();
    for option in [&["--resume"][..], &["--until", "1"], &["--steps", "1"], &["--max-wall", "1h"]] {
        let output = folder.case(option);
        let words = format!("{}: case.toml has a [grid] and no [time]", option[0]);
        assert!(code(&output) == 2 && outputs(&output).contains(&words), "{option:?}: {}", outputs(&output));
    }
    folder.done(&["case.toml", "-q"]);
    let output = folder.run(&["--resume", "out"]);
    assert!(code(&output) == 66 && outputs(&output).contains("grid without [time]"), "{}", outputs(&output));
}

#[test]
fn checkpoints_of_particles_and_of_flows_are_told_apart() {
    let folder = Folder::with(&[("flow.toml", RING), ("particles.toml", PARTICLES)]);
    folder.done(&["flow.toml", "--out", "flow", "-q", "--steps", "1"]);
    folder.done(&["particles.toml", "--out", "particles", "-q", "--steps", "1"]);
    let refused = |arguments: &[&str], words: &[&str]| {
        let output = folder.run(arguments);
        let text = outputs(&output);
        assert!(code(&output) == 65 && words.iter().all(|w| text.contains(w)), "{arguments:?}: {text}");
    };
    refused(&["flow.toml", "--resume", "particles"], &["a checkpoint of particles, and flow.toml has a [grid]"]);
    let words = "a checkpoint of a flow on a grid, and particles.toml is one of particles";
    refused(&["particles.toml", "--resume", "flow"], &[words]);
    // Among the files of the other kind, which an id would call those of another run.
    let (flow, particles) = (latest(&folder.path("flow")), latest(&folder.path("particles")));
    assert!(matches!(flow.checkpoint.state, State::Flow(_)));
    for (to, other, words) in [
        ("flow", &particles, "a checkpoint of particles, in the directory of a run with a [grid]"),
        ("particles", &flow, "a checkpoint of a flow on a grid, in the directory of a run of particles"),
    ] {
        let checkpoint = checkpoint::Checkpoint { run: None, ..other.checkpoint.clone() };
        for name in checkpoint::NAMES {
            checkpoint::write(&folder.path(to).join(name), &checkpoint).unwrap();
        }
        refused(&["--resume", to], &["checkpoint.", words]);
    }
}

#[test]
fn a_scenario_that_needs_a_table_goes_on_without_it() {
    let folder = Folder::new(RING);
    folder.done(&["case.toml", "--out", "a", "-q", "--until", "0"]);
    let table = fs::read_to_string(folder.path("a/grid_000000.csv")).unwrap();
    fs::write(folder.path("w.csv"), table.replacen("vorticity_x,vorticity_y,vorticity_z", "wx,wy,wz", 1)).unwrap();
    let ring = &RING[RING.find("model = ").unwrap()..RING.find("[solver]").unwrap()];
    let text = RING.replace(ring, "model = 'file'\npath = 'w.csv'\nn = 32\n");
    fs::write(folder.path("file.toml"), text).unwrap();
    folder.done(&["file.toml", "--out", "whole", "-q", "--until", "0.03"]);
    folder.done(&["file.toml", "--out", "parts", "-q", "--steps", "1"]);
    fs::remove_file(folder.path("w.csv")).unwrap();
    folder.done(&["--resume", "parts", "-q", "--until", "0.03"]);
    same(&folder.path("whole"), &folder.path("parts"));
}

#[test]
fn checkpoints_that_are_older_than_the_key_center_are_read() {
    use nbody::scenario::grid::GridScenario;
    let old = RING.replace("center", "centre");
    assert!(GridScenario::parse("new.toml", old.clone(), None, &[]).is_err());
    let text = |text: String| GridScenario::parse_resumed("checkpoint", text, &[]).unwrap().unwrap().text;
    assert_eq!(text(old), text(RING.into()));
}
