//! What the program says and does where there is nothing to do, or nothing that could be done.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{Folder, code, json, outputs};

const SMALL: &str = r#"
[[particles]]
model = "plummer"
n = 200
[time]
dt = 0.01
end = 0.05
"#;

/// A folder after a run to the end in `a`.
fn finished() -> Folder {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q"]);
    folder
}

#[test]
fn more_particles_than_memory_are_refused_before_they_are_built() {
    let folder = Folder::new(SMALL);
    // 2 TB: where there are as many, this is not refused.
    for more in [&["--dry-run"][..], &["--out", "a"]] {
        let output = folder.case(&[&["--set", "particles.0.n=4294967294"], more].concat());
        let text = outputs(&output);
        assert!(code(&output) == 71 && text.contains("4294967294 particles need 1.9"), "{text}");
        assert!(text.contains("TiB at the least") && text.contains("are free"), "{text}");
    }
    assert!(!folder.path("a").exists());
    // Two groups of which each could be numbered.
    let two = format!("{SMALL}[[particles]]\nmodel = 'plummer'\nn = 4294967000\n");
    fs::write(folder.path("case.toml"), two).unwrap();
    let output = folder.case(&["--set", "particles.0.n=4294967000", "--out", "a"]);
    assert!(code(&output) == 65 && outputs(&output).contains("8589934000 particles"), "{}", outputs(&output));
}

/// A run that `--steps` has ended goes on where a later end is named, and says so.
#[test]
fn a_run_of_some_steps_is_not_called_complete() {
    let folder = Folder::new(SMALL);
    folder.done(&["case.toml", "--out", "a", "-q", "--steps", "3"]);
    let idle = folder.run(&["--resume", "a"]);
    let text = outputs(&idle);
    assert!(code(&idle) == 0 && !text.contains("complete"), "{text}");
    let time = json(&folder.path("a/run.json"))["time"].clone();
    for part in ["nothing was left to do", &format!("has been given, time {time}"), "--until T"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_finished_run_has_nothing_left_to_do() {
    let folder = finished();
    let reports = || ["run.json", "timings.json"].map(|n| fs::read(folder.path("a").join(n)).unwrap());
    let before = reports();
    let output = folder.run(&["--resume", "a"]);
    assert!(reports() == before, "the reports of the run are kept");
    let text = outputs(&output);
    assert!(code(&output) == 0 && text.contains("nothing was left to do"), "{text}");
    assert!(!text.contains("virial ratio") && text.contains("energy "), "{text}");
    let more = folder.run(&["--resume", "a", "--until", "0.1"]);
    let text = outputs(&more);
    // Each step of both parts counts once.
    let timings = json(&folder.path("a/timings.json"));
    assert_eq!((&timings["from_step"], &timings["to_step"]), (&0.into(), &10.into()));
    assert_eq!(timings["stages"]["drift"]["calls"], 10, "{timings}");
    assert!(timings["stages"]["output"]["calls"].as_u64().unwrap() >= 3, "{timings}");
    assert!(code(&more) == 0 && text.contains("virial ratio  ") && !text.contains("nothing was left"), "{text}");
}

#[test]
fn no_diagnostics_that_are_not_finite_are_written() {
    let folder = Folder::new(SMALL);
    // The distances are swallowed.
    let output = folder.case(&["--out", "a", "--set", "particles.0.position=[1e200,0,0]"]);
    assert!(
        code(&output) == 65 && outputs(&output).contains("particles.0.position = 1e200 along x"),
        "{}",
        outputs(&output)
    );
    // Velocities are there, and their squares are not.
    let output = folder.case(&["--out", "b", "--set", "particles.0.velocity=[1e200,0,0]"]);
    let text = outputs(&output);
    assert!(code(&output) == 70 && text.contains("before any step") && !text.contains("step before are"), "{text}");
    assert!(!folder.path("b/snap_000000.hdf").exists() && !folder.path("b/diagnostics.csv").exists());
}

#[test]
fn numbers_that_sums_cannot_hold_are_refused() {
    let folder = Folder::new(SMALL);
    // A fifth of the bodies had one x: at 1e15 the spacing of numbers is 0.125.
    let output = folder.case(&["--out", "a", "--set", "particles.0.position=[1e15,0,0]"]);
    assert!(
        code(&output) == 65 && outputs(&output).contains("particles.0.position = 1e15 along x"),
        "{}",
        outputs(&output)
    );
    for (rows, kernel, says) in [
        ("0,0,0,1e160\n1e160,0,0,1e160", "laplace", "a coordinate of 1e160 is outside what 64-bit numbers hold"),
        ("0,0,0,1\n1e-160,0,0,1\n1,0,0,1", "laplace", "a distance of 1e-160 is outside what 64-bit numbers hold"),
        ("0,0,0,1\n1e-310,0,0,1", "laplace", "a distance of 1e-310"),
    ] {
        fs::write(folder.path("p.csv"), format!("x,y,z,q\n{rows}\n")).unwrap();
        let output = folder.eval(&format!("--sources p.csv --kernel {kernel} --check"));
        assert!(
            code(&output) == 65 && output.stdout.is_empty() && outputs(&output).contains(says),
            "{}",
            outputs(&output)
        );
    }
}

#[test]
fn messages_lead_on() {
    let folder = Folder::new(SMALL);
    for (arguments, rc, says) in [
        (&["run", "plummer"][..], 66, "nbody init plummer && nbody run plummer.toml"),
        (&["run", "case.toml", "--until", "5 parsecs"], 65, "[--until:1:10]"),
        (&["check", "case.toml"], 65, "nbody run case.toml --dry-run checks it"),
    ] {
        let output = folder.command(arguments).output().unwrap();
        let text = outputs(&output);
        assert!(code(&output) == rc && text.contains(says) && !text.contains("DAMAGED"), "{text}");
    }
    let start = "[[particles]]\nmodel = 'file'\npath = 'a/checkpoint.0.hdf'\n[time]\ndt = 0.01\nend = 0.01\n";
    fs::write(folder.path("start.toml"), start).unwrap();
    folder.done(&["case.toml", "--out", "a", "-q", "--steps", "1"]);
    let output = folder.run(&["start.toml", "-q"]);
    let says = "a checkpoint, not a snapshot; make one of it: nbody convert a/checkpoint.0.hdf start.hdf";
    assert!(code(&output) == 65 && outputs(&output).contains(says), "{}", outputs(&output));
    fs::write(folder.path("p.csv"), "x,y,z,m\n0,0,0,9e11\n1,0,0,0\n").unwrap();
    let output = folder.command(&["info", "p.csv"]).output().unwrap();
    assert!(outputs(&output).contains("mass            9.00000e11\n"), "{}", outputs(&output));
}

#[test]
fn one_text_asks_for_one_kind_of_grid() {
    let grid = "[grid]\nn = 32\nfinest = 64\n[[vorticity]]\nmodel = 'ring'\ncenter = [0.5, 0.5, 0.5]\nradius = 0.125\n";
    let folder = Folder::new(grid);
    let output = folder.case(&["--dry-run"]);
    let text = outputs(&output);
    assert!(code(&output) == 65 && text.contains("grid.finest has no effect on the uniform grid of grid.n"), "{text}");
    fs::write(folder.path("case.toml"), grid.replace("n = 32\n", "")).unwrap();
    folder.done(&["case.toml", "--dry-run", "--set", "grid.n=32"]);
    // Nothing that comes after a uniform grid is dropped.
    fs::write(folder.path("case.toml"), grid.replace("finest = 64\n", "")).unwrap();
    for sets in [&["grid.refinement=0.1"][..], &["grid.finest=64"], &["grid.n=32", "grid.finest=64"]] {
        let output = folder
            .case(&[&["--dry-run"][..], &sets.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>()].concat());
        assert!(code(&output) == 65 && outputs(&output).contains("has no effect on the uniform grid"), "{sets:?}");
    }
}

#[test]
fn messages_are_short_whatever_was_given() {
    let folder = Folder::new(&format!("a={}", "[".repeat(100_000)));
    let output = folder.case(&[]);
    assert!(code(&output) == 65 && outputs(&output).len() < 20_000, "{} bytes", outputs(&output).len());
    fs::write(folder.path("case.toml"), SMALL).unwrap();
    for (set, number) in [("time.dt=-1e-320", "-1e-320"), ("particles.0.mass=-1e300", "-1e300")] {
        let text = outputs(&folder.case(&["--set", set]));
        assert!(text.contains(&format!(" = {number} is outside its range")), "{text}");
    }
    fs::write(folder.path("p.csv"), "x,y,z,q\n0,0,0,1\n1,0,0,1\n").unwrap();
    let output = folder.command(&["eval", "--sources", "p.csv", "--tolerance", "1e-300"]).output().unwrap();
    assert!(code(&output) == 2 && outputs(&output).contains("1e-300 is outside"), "{}", outputs(&output));
}

#[test]
fn sums_are_no_snapshot_and_not_damaged() {
    let folder = Folder::new(SMALL);
    fs::write(folder.path("p.csv"), "x,y,z,q\n0,0,0,1\n1,0,0,1\n").unwrap();
    let output = folder.command(&["eval", "--sources", "p.csv", "--output", "o.hdf"]).output().unwrap();
    // Two particles are nothing for a GPU, and nothing is said of one.
    assert!(code(&output) == 0 && output.stderr.is_empty(), "{}", outputs(&output));
    for command in ["check", "info"] {
        let output = folder.command(&[command, "o.hdf"]).output().unwrap();
        let text = outputs(&output);
        assert!(code(&output) == 65 && text.contains("no snapshot") && !text.contains("DAMAGED"), "{text}");
    }
}

#[test]
fn convert_tells_what_it_leaves_out() {
    let folder = Folder::new(SMALL);
    fs::write(folder.path("p.csv"), "x,y,m,q,name,age\n0,0,3,1,1,2\n1,0,4,-1,1,2\n").unwrap();
    let output = folder.command(&["convert", "p.csv", "p.hdf"]).output().unwrap();
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    assert!(outputs(&output).contains("p.csv: left out the columns name, age"), "{}", outputs(&output));
    let s = nbody::files::snapshot::read(&folder.path("p.hdf")).unwrap();
    assert_eq!((s.mass, s.charge), (vec![3.0, 4.0], Some(vec![1.0, -1.0])));
    let back = folder.command(&["convert", "p.hdf", "back.csv"]).output().unwrap();
    assert!(code(&back) == 0 && back.stderr.is_empty(), "{}", outputs(&back));
}

#[test]
fn force_removes_what_runs_write_and_nothing_else() {
    let folder = finished();
    let mine = ["snap_mine.hdf", "snap_1.hdf", "snap_000001.hdf.bak", "snap_00000x.hdf"];
    mine.iter().for_each(|n| fs::write(folder.path("a").join(n), "mine").unwrap());
    fs::write(folder.path("a/snap_1000000.hdf"), "of a long run").unwrap();
    folder.done(&["case.toml", "--out", "a", "-q", "--force"]);
    for name in mine {
        assert_eq!(fs::read_to_string(folder.path("a").join(name)).unwrap_or_default(), "mine", "{name}");
    }
    assert!(!folder.path("a/snap_1000000.hdf").exists());
}

/// A run must not remove what it is about to read, or what it has just read and would read if it were repeated.
#[test]
fn force_spares_what_the_scenario_reads() {
    let folder = finished();
    let scenario = |path: &str| {
        let text = format!("[[particles]]\nmodel = 'file'\npath = '{path}'\n[time]\ndt = 0.01\nend = 0.05\n");
        fs::write(folder.path("next.toml"), text).unwrap();
    };
    std::os::unix::fs::symlink(folder.path("a/snap_000001.hdf"), folder.path("link.hdf")).unwrap();
    for path in ["a/snap_000001.hdf", "b/../a/snap_000001.hdf", "link.hdf"] {
        fs::create_dir_all(folder.path("b")).unwrap();
        scenario(path);
        let output = folder.run(&["next.toml", "--out", "a", "-q", "--force"]);
        let text = outputs(&output);
        assert!(
            code(&output) == 74 && text.contains("the scenario reads this file") && text.contains("--out"),
            "{text}"
        );
        assert!(folder.path("a/snap_000001.hdf").exists() && folder.path("a/checkpoint.0.hdf").exists());
    }
    // Files that no run writes stay in any case.
    fs::copy(folder.path("a/snap_000001.hdf"), folder.path("a/start.hdf")).unwrap();
    scenario("a/start.hdf");
    folder.done(&["next.toml", "--out", "a", "-q", "--force"]);
    assert!(folder.path("a/start.hdf").exists());
}

/// Of flows and of solutions without steps: the first file is known to be good before an earlier one is removed.
#[test]
fn grids_that_cannot_begin_leave_an_earlier_run() {
    let grid = "[grid]\ncorner = [-1.5, -1.5, -1.5]\nside = 3\nn = 32\n";
    let ring =
        "[[vorticity]]\nmodel = 'vortex-ring'\ncenter = [0, 0, 0]\nradius = 0.5\ncore = 0.2\ncirculation = 1e39\n";
    let body = |shape: &str| format!("[[bodies]]\nshape = {shape}\n");
    let bodies = body("'sphere'\ncenter = [0, 0, 0]\nradius = 0.25")
        + &body("'box'\ncenter = [0.2, 0.1, 0]\nsides = [0.4, 0.4, 0.4]");
    let [time, flow] = ["[time]\ndt = 0.01\nend = 0.01\n", "[flow]\ninflow = [1, 0, 0]\n"];
    for (text, exit, says) in [
        (format!("{grid}{ring}{time}"), 70, "which its precision cannot hold"),
        (format!("{grid}{ring}"), 70, "which its precision cannot hold"),
        (format!("{grid}{flow}{bodies}{time}"), 65, "bodies.0 and bodies.1 overlap at time 0"),
    ] {
        let folder = finished();
        let names = || fs::read_dir(folder.path("a")).unwrap().map(|e| e.unwrap().file_name()).collect::<BTreeSet<_>>();
        let before = names();
        fs::write(folder.path("grid.toml"), &text).unwrap();
        let output = folder.run(&["grid.toml", "--out", "a", "-q", "--force"]);
        assert!(code(&output) == exit && outputs(&output).contains(says), "{text}: {}", outputs(&output));
        assert_eq!(names(), before, "{text}");
    }
}

#[test]
fn a_script_for_paraview_takes_no_other_file() {
    let folder = finished();
    let write = || folder.command(&["paraview", "a", "--out", "show.py"]).output().unwrap();
    for _ in 0..2 {
        assert_eq!(code(&write()), 0, "{}", outputs(&write()));
    }
    fs::write(folder.path("show.py"), "print('mine')\n").unwrap();
    let output = write();
    assert!(code(&output) == 74 && outputs(&output).contains("show.py: is there already"), "{}", outputs(&output));
    assert_eq!(fs::read_to_string(folder.path("show.py")).unwrap(), "print('mine')\n");
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    let folder = Folder::new(SMALL);
    let output = folder.case(&["--out", "a", "--set", "particles.0.rotation=[0,0,1e300]"]);
    assert!(code(&output) == 65 && outputs(&output).contains("-1e6 to 1e6"), "{}", outputs(&output));
    let arguments = ["bench", "--n", "100", "--smallest", "1000", "--device", "cpu"];
    let output = folder.command(&arguments).output().unwrap();
    assert!(
        code(&output) == 2 && outputs(&output).contains("--smallest 1000 is above --n 100"),
        "{}",
        outputs(&output)
    );
}

#[test]
fn a_crystal_that_does_not_fit_its_box_is_noticed() {
    let crystal = "[force]\nlaw = 'coulomb'\n[boundary]\nkind = 'periodic'\nside = 4.0\n[[particles]]\n\
                   model = 'crystal'\nlattice = 'NaCl'\ncharge = 1\ncells = 2\nsurface = 'periodic'\n[time]\ndt = 0.01\nend = 0.01\n";
    let folder = Folder::new(crystal);
    let told_of = |sets: &[&str]| outputs(&folder.case(&[&["--dry-run"], sets].concat()));
    assert!(!told_of(&[]).contains("warning"), "{}", told_of(&[]));
    let text = told_of(&["--set", "boundary.side=[4, 4, 4.5]"]);
    assert!(text.contains("with a side of 4, and boundary.side is 4, 4, 4.5"), "{text}");
}

#[test]
fn a_box_that_is_not_summed_is_noticed() {
    let crystal = "[force]\nlaw = 'coulomb'\n[boundary]\nkind = 'periodic'\nside = 4.0\n[[particles]]\n\
                   model = 'crystal'\nlattice = 'NaCl'\ncharge = 1\ncells = 2\nsurface = 'periodic'\n[time]\ndt = 0.01\nend = 0\n";
    let folder = Folder::new(crystal);
    folder.done(&["case.toml", "--out", "a", "-q"]);
    for (options, warned) in [("", true), (" --periodic 4", false), (" -q", false)] {
        let output = folder.eval(&format!("--sources a/snap_000000.hdf{options}"));
        let warning = outputs(&output).contains("in a periodic box (longest side 4)");
        assert!(code(&output) == 0 && warning == warned, "{options}: {}", outputs(&output));
    }
}

#[test]
fn lines_are_in_order_after_a_longer_step() {
    let folder = finished();
    let longer = ["run", "--resume", "a", "--until", "0.15", "-q", "--set", "time.dt=0.05", "--force"];
    let output = folder.command(&longer).output().unwrap();
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let check = folder.command(&["check", "a"]).output().unwrap();
    assert_eq!(code(&check), 0, "{}", outputs(&check));
}

#[test]
fn a_line_that_is_lost_is_found_and_other_intervals_are_none() {
    let folder = Folder::new(SMALL);
    let check = || folder.command(&["check", "a"]).output().unwrap();
    let lines = || fs::read_to_string(folder.path("a/diagnostics.csv")).unwrap();
    let lose = |time: &str| {
        let kept = lines().split_inclusive('\n').filter(|l| l.split(',').nth(1) != Some(time)).collect::<String>();
        fs::write(folder.path("a/diagnostics.csv"), kept).unwrap();
    };
    let part = |every: &str, until: &str| {
        let every = format!("output.diagnostics_every={every}");
        folder.done(&["--resume", "a", "-q", "--until", until, "--set", &every]);
        assert_eq!(code(&check()), 0, "{every}: {}", outputs(&check()));
    };
    folder.done(&[
        "case.toml",
        "--out",
        "a",
        "-q",
        "--force",
        "--until",
        "0.05",
        "--set",
        "output.diagnostics_every=0.02",
    ]);
    assert_eq!(code(&check()), 0, "{}", outputs(&check()));
    // The end is no multiple of the interval: its line is removed as the run goes on.
    part("0.03", "0.16");
    part("0.01", "0.21");
    let whole = lines();
    for time in ["0.18", "0.2"] {
        lose(time);
        let says =
            format!("diagnostics.csv: no line of time {time}, which output.diagnostics_every asks for: lines are lost");
        assert!(code(&check()) == 65 && outputs(&check()).contains(&says), "{time}: {}", outputs(&check()));
        fs::write(folder.path("a/diagnostics.csv"), &whole).unwrap();
    }
    // With another step, whose numbers are others too.
    folder.done(&[
        "--resume",
        "a",
        "-q",
        "--until",
        "0.31",
        "--set",
        "time.dt=0.005",
        "--set",
        "output.diagnostics_every=0.01",
        "--force",
    ]);
    assert_eq!(code(&check()), 0, "{}", outputs(&check()));
    lose("0.29");
    assert_eq!(code(&check()), 65, "{}", outputs(&check()));
}
