//! Disks that fill up or fail, kills, signals and power cuts at every step of the save path: what was whole stays whole, the
//! program says what happened, and a run goes on to the same bits.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::faults::{
    Call, Failure, WATCHED, calls, copy, differing, full, missing, on_faulty_disk, temporaries,
};
use crate::common::{Folder, code, outputs};
use nbody::files::{checkpoint, series::Series, snapshot};

const TINY: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 20
[time]
dt = 0.01
end = 0.06
[output]
every = 0.02
diagnostics_every = 0.01
"#;

/// Where a run stands before its disk fails: at a checkpoint in its middle, with files of all kinds.
struct Half {
    folder: Folder,
}

impl Half {
    fn new() -> Self {
        let folder = Folder::new(TINY);
        folder.done(&["case.toml", "--out", "whole", "-q"]);
        // Two generations of checkpoints.
        folder.done(&["case.toml", "--out", "half", "-q", "--until", "0.02"]);
        folder.done(&["--resume", "half", "-q", "--until", "0.03"]);
        let half = Half { folder };
        half.reset();
        half
    }

    /// The watched folder as it was at the beginning.
    fn reset(&self) {
        let watched = self.folder.path(WATCHED);
        let _ = fs::remove_dir_all(&watched);
        copy(&self.folder.path("half"), &watched);
    }

    /// The command that goes on to the end.
    fn resume(&self, threads: &str) -> Command {
        self.folder.command(&["run", "--resume", WATCHED, "-q", "--until", "0.06", "--threads", threads])
    }

    /// The watched folder must hold what a run can go on from, and nothing that is wrong; going on must give the unbroken
    /// run. A fault at a call that only reads may have cost the newest checkpoint.
    fn goes_on(&self, why: &str) {
        let watched = self.folder.path(WATCHED);
        let found = checkpoint::latest(&watched).unwrap_or_else(|e| panic!("{why}: {e}")).expect(why);
        assert!(found.damaged.is_none() && found.checkpoint.step >= 2, "{why}: {:?}", found.damaged);
        whole_files(&watched, why);
        let output = self.resume("2").output().unwrap();
        assert_eq!(code(&output), 0, "{why}: {}", outputs(&output));
        assert_eq!(differing(&self.folder.path("whole"), &watched), [""; 0], "{why}");
    }
}

/// Every file under its own name must be whole.
fn whole_files(folder: &Path, why: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("snap_") {
            let s = snapshot::read(&path).unwrap_or_else(|e| panic!("{why}: {e}"));
            snapshot::check_vtkhdf(&path, &s).unwrap_or_else(|e| panic!("{why}: {e}"));
        } else if name == "run.hdf.series" {
            for entry in Series::read(&path).unwrap_or_else(|e| panic!("{why}: {e}")).entries() {
                assert!(
                    folder.join(&entry.name).is_file(),
                    "{why}: the index names {}, which is not there",
                    entry.name
                );
            }
        } else if name.ends_with(".json") {
            serde_json::from_slice::<serde_json::Value>(&fs::read(&path).unwrap())
                .unwrap_or_else(|e| panic!("{why}: {name}: {e}"));
        }
    }
}

/// A number of the calls, all of them in the long version.
fn chosen(count: usize, few: usize) -> impl Iterator<Item = usize> {
    let step = if full() { 1 } else { count.div_ceil(few).max(1) };
    (1..=count).step_by(step)
}

/// ENOSPC, EIO.
const FULL: &str = "28";
const BROKEN: &str = "5";

#[test]
fn whatever_fails_on_the_disk_is_told_and_harms_nothing() {
    let half = Half::new();
    // Writing, syncing, renaming, opening, and removing what a resumed run has to do again.
    for (only, action, few) in [("W", FULL, 6), ("S", BROKEN, 6), ("R", BROKEN, 5), ("O", FULL, 4), ("U", BROKEN, 1)] {
        half.reset();
        let count = calls(half.resume("1"), only).len();
        for at in chosen(count, few) {
            half.reset();
            let why = format!("error {action} at call {at} of {count} of {only}");
            let output = on_faulty_disk(half.resume("1"), Failure { at, action, only });
            let text = outputs(&output);
            assert!(!text.contains("panicked"), "{why}: {text}");
            // Checkpoints that cannot be opened for reading are passed over with a warning.
            assert!(code(&output) == 74 || only == "O" && matches!(code(&output), 0 | 65 | 66), "{why}: {text}");
            if code(&output) == 74 {
                assert!(text.contains(WATCHED), "{why} is told without a file: {text}");
                assert!(text.contains("os error") || text.contains("cannot"), "{why}: {text}");
            }
            assert_eq!(temporaries(&half.folder.path(WATCHED)), [""; 0], "{why}");
            half.goes_on(&why);
        }
    }
}

#[test]
fn a_disk_that_stays_full_is_told_and_harms_nothing() {
    let half = Half::new();
    let count = calls(half.resume("1"), "W").len();
    for at in chosen(count, 4) {
        half.reset();
        let why = format!("a full disk from write {at} of {count} on");
        let output = on_faulty_disk(half.resume("1"), Failure { at, action: "from 28", only: "WO" });
        assert_eq!(code(&output), 74, "{why}: {}", outputs(&output));
        assert!(outputs(&output).contains("No space left"), "{why}: {}", outputs(&output));
        half.goes_on(&why);
    }
}

#[test]
fn a_disk_that_writes_something_else_is_found_out() {
    let half = Half::new();
    // Lines of the diagnostics are appended, and not read again. When they come among the other writes, which another
    // thread makes, is not fixed.
    let resume = || {
        let mut command = half.resume("1");
        command.env("FAULTY_ROOT", ".tmp-");
        command
    };
    let count = calls(resume(), "W").len();
    assert!(count > 5);
    for at in chosen(count, 4) {
        half.reset();
        let why = format!("a wrong bit in write {at} of {count}");
        let output = on_faulty_disk(resume(), Failure { at, action: "wrong", only: "W" });
        let text = outputs(&output);
        assert!(code(&output) == 74 && text.contains("differs from what was written"), "{why}: {text}");
        assert_eq!(temporaries(&half.folder.path(WATCHED)), [""; 0], "{why}");
        half.goes_on(&why);
    }
}

#[test]
fn an_error_while_closing_loses_nothing() {
    // What was written has been synced and compared by then.
    let half = Half::new();
    let count = calls(half.resume("1"), "C").len();
    for at in chosen(count, 4) {
        half.reset();
        let output = on_faulty_disk(half.resume("1"), Failure { at, action: BROKEN, only: "C" });
        assert!(matches!(code(&output), 0 | 65 | 74), "close {at}: {}", outputs(&output));
        half.goes_on(&format!("an error at close {at} of {count}"));
    }
}

#[test]
fn a_kill_at_any_call_of_the_save_path_loses_no_checkpoint() {
    let half = Half::new();
    let count = calls(half.resume("1"), "").len();
    println!("{count} calls");
    for action in ["kill", "half"] {
        for at in chosen(count, 10) {
            half.reset();
            let output = on_faulty_disk(half.resume("1"), Failure { at, action, only: "" });
            assert_eq!(code(&output), -1, "{action} at {at}: {}", outputs(&output));
            half.goes_on(&format!("{action} at call {at} of {count}"));
        }
    }
}

#[test]
fn a_kill_of_a_run_that_begins_leaves_a_run_or_none() {
    let folder = Folder::new(TINY);
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    let start = || folder.command(&["run", "case.toml", "--out", WATCHED, "-q", "--threads", "1", "--force"]);
    let count = calls(start(), "").len();
    for again in [false, true] {
        for at in chosen(count, 6) {
            // In an empty place, or over an earlier run with --force.
            let watched = folder.path(WATCHED);
            let _ = fs::remove_dir_all(&watched);
            if again {
                copy(&folder.path("whole"), &watched);
            }
            let why = format!("kill at call {at} of {count}, over an earlier run: {again}");
            let output = on_faulty_disk(start(), Failure { at, action: "kill", only: "" });
            assert_eq!(code(&output), -1, "{why}: {}", outputs(&output));
            if watched.is_dir() {
                whole_files(&watched, &why);
                let resumed = folder.run(&["--resume", WATCHED, "-q"]);
                assert!(matches!(code(&resumed), 0 | 66), "{why}: {}", outputs(&resumed));
                if code(&resumed) == 0 {
                    assert_eq!(differing(&folder.path("whole"), &watched), [""; 0], "{why}");
                    continue;
                }
            }
            let fresh = start().output().unwrap();
            assert_eq!(code(&fresh), 0, "{why}: {}", outputs(&fresh));
            assert_eq!(differing(&folder.path("whole"), &watched), [""; 0], "{why}");
            assert_eq!(temporaries(&watched), [""; 0], "{why}");
        }
    }
}

#[test]
fn a_signal_at_any_call_of_the_save_path_ends_with_a_checkpoint() {
    let half = Half::new();
    let count = calls(half.resume("1"), "").len();
    for at in chosen(count, 6) {
        half.reset();
        let output = on_faulty_disk(half.resume("1"), Failure { at, action: "signal 15", only: "" });
        // 0 where the signal came after the last step.
        assert!(matches!(code(&output), 0 | 75), "signal at {at}: {}", outputs(&output));
        if code(&output) == 75 {
            assert!(outputs(&output).contains(&format!("nbody run --resume {WATCHED}")), "{}", outputs(&output));
        }
        half.goes_on(&format!("signal at call {at} of {count}"));
    }
}

/// A disk whose caches are lost when the power is: what has been synced is there, the rest may be or not.
#[derive(Default)]
struct Disk {
    /// What each file holds, and what of it is synced.
    files: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names as processes see them, and as the disk has them.
    names: BTreeMap<String, usize>,
    synced: BTreeMap<String, usize>,
}

impl Disk {
    /// The disk with the files of a folder that has been there for long.
    fn of(folder: &Path) -> Self {
        let mut disk = Disk::default();
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            disk.names.insert(format!("{WATCHED}/{}", entry.file_name().to_str().unwrap()), disk.files.len());
            disk.files.push((bytes.clone(), bytes));
        }
        disk.synced = disk.names.clone();
        disk
    }

    fn apply(&mut self, call: &Call) {
        let path = &call.words[0];
        let number = |k: usize| call.words[k].parse::<usize>().unwrap();
        match call.letter {
            'O' if number(1) == 1 && !self.names.contains_key(path) => {
                self.names.insert(path.clone(), self.files.len());
                self.files.push((vec![], vec![]));
            }
            'O' if number(1) == 1 && path.ends_with(".csv") => self.files[self.names[path]].0.clear(),
            'W' => {
                let (file, from) = (&mut self.files[self.names[path]].0, number(1));
                file.resize(file.len().max(from + call.data.len()), 0);
                file[from..from + call.data.len()].copy_from_slice(&call.data);
            }
            'T' => self.files[self.names[path]].0.resize(number(1), 0),
            // A folder: all of its names.
            'S' if !self.names.contains_key(path) => self.synced = self.names.clone(),
            'S' => {
                let file = &mut self.files[self.names[path]];
                file.1.clone_from(&file.0);
            }
            'R' => {
                let file = self.names.remove(path).unwrap();
                self.names.insert(call.words[1].clone(), file);
            }
            'U' => drop(self.names.remove(path)),
            _ => {}
        }
    }

    /// What may be found when the power is back: of names the old ones or the new ones, of contents the synced ones, or (as
    /// after a kill) all.
    fn after_a_cut(&self) -> [BTreeMap<String, &[u8]>; 3] {
        let state = |names: &BTreeMap<String, usize>, all: bool| {
            let content = |i: usize| if all { &self.files[i].0[..] } else { &self.files[i].1[..] };
            names.iter().map(|(n, &i)| (n.clone(), content(i))).collect()
        };
        [state(&self.synced, false), state(&self.names, false), state(&self.names, true)]
    }
}

#[test]
fn a_power_cut_at_any_time_leaves_a_generation() {
    let half = Half::new();
    let mut disk = Disk::of(&half.folder.path(WATCHED));
    let log = calls(half.resume("1"), "");
    assert!(log.iter().filter(|c| c.letter == 'S').count() > 10, "syncs are seen");
    let watched = half.folder.path(WATCHED);
    let restore = |state: &BTreeMap<String, &[u8]>| {
        fs::remove_dir_all(&watched).unwrap();
        fs::create_dir(&watched).unwrap();
        for (name, bytes) in state {
            fs::write(half.folder.path(name), bytes).unwrap();
        }
    };
    let mut seen = BTreeSet::new();
    for (i, call) in log.iter().enumerate() {
        disk.apply(call);
        if !"WSRUT".contains(call.letter) {
            continue;
        }
        for (variant, state) in disk.after_a_cut().into_iter().enumerate() {
            // Most calls change nothing of what survives.
            if seen.insert(format!("{state:?}")) && (full() || seen.len() % 3 == 0) {
                restore(&state);
                half.goes_on(&format!(
                    "power cut after call {i} ({} {:?}), variant {variant}",
                    call.letter, call.words
                ));
            }
        }
    }
    // The run has reported that it is done: a power cut takes nothing of it back.
    for state in disk.after_a_cut() {
        restore(&state);
        assert_eq!(checkpoint::latest(&watched).unwrap().unwrap().checkpoint.step, 6);
        assert_eq!(differing(&half.folder.path("whole"), &watched), [""; 0]);
    }
    println!("{} calls, {} states", log.len(), seen.len());
    assert!(seen.len() > 20, "{} states", seen.len());
}

#[test]
fn a_disk_that_fills_up_before_any_later_checkpoint_does_not_lose_the_run() {
    let folder = Folder::new(TINY);
    folder.done(&["case.toml", "--out", "whole", "-q"]);
    let start = || folder.command(&["run", "case.toml", "--out", WATCHED, "-q", "--threads", "1", "--force"]);
    let log = calls(start(), "");
    let first = log.iter().position(|c| c.letter == 'R' && c.words[1].ends_with("checkpoint.0.hdf")).unwrap();
    let counted = |calls: &[Call]| calls.iter().filter(|c| "WO".contains(c.letter)).count();
    let (before, count) = (counted(&log[..first]), counted(&log));
    let watched = folder.path(WATCHED);
    for at in chosen(count - before, 8) {
        let _ = fs::remove_dir_all(&watched);
        let why = format!("a full disk from call {at} of {} after the first checkpoint on", count - before);
        let output = on_faulty_disk(start(), Failure { at: before + at, action: "from 28", only: "WO" });
        assert_eq!(code(&output), 74, "{why}: {}", outputs(&output));
        assert_eq!(temporaries(&watched), [""; 0], "{why}");
        // With the index as it is, without the last snapshot where the disk was full for that.
        whole_files(&watched, &why);
        folder.done(&["--resume", WATCHED, "-q"]);
        assert_eq!(differing(&folder.path("whole"), &watched), [""; 0], "{why}");
        let check = folder.command(&["check", WATCHED]).output().unwrap();
        assert_eq!(code(&check), 0, "{why}: {}", outputs(&check));
    }
}

#[test]
fn a_disk_that_others_fill_has_room_for_the_next_checkpoint() {
    if !can_mount() {
        return missing("tmpfs of one's own (unshare -rm mount)");
    }
    let folder = Folder::new(TINY);
    fs::create_dir_all(folder.path("mounted")).unwrap();
    let script = "mount -t tmpfs -o size=8m none mounted || exit 1
        \"$0\" run case.toml --out mounted/run -q --set particles.0.n=2000 --until 100000 \
            --set output.every=1000 --set output.diagnostics_every=1000 &
        for i in $(seq 100); do ls mounted/run/.checkpoint.1.hdf.tmp-* > /dev/null 2>&1 && break; sleep 0.1; done
        cat /dev/zero > mounted/others 2> /dev/null; [ $(stat -f -c %f mounted) = 0 ] || exit 9
        sleep 0.3; kill -TERM $!; wait $!; code=$?; cp -r mounted/run out; exit $code";
    let mut command = Command::new("unshare");
    command.current_dir(folder.path("")).args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_nbody")]);
    let output = command.output().unwrap();
    // The part that the checkpoint does not need is enough for run.json and timings.json.
    assert_eq!(code(&output), 75, "{}", outputs(&output));
    let latest = checkpoint::latest(&folder.path("out")).unwrap().unwrap();
    assert!(latest.checkpoint.step > 0, "{}", outputs(&output));
    folder.done(&["--resume", "out", "-q", "--steps", "1"]);
}

/// Whether file systems can be mounted in a user's own name space.
fn can_mount() -> bool {
    let tried = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    tried.is_ok_and(|o| o.status.success())
}

#[test]
fn a_disk_of_any_size_gives_a_right_file_or_none() {
    if !can_mount() {
        return missing("tmpfs of one's own (unshare -rm mount)");
    }
    let folder = Folder::new(TINY);
    folder.done(&["case.toml", "--out", "whole", "-q", "--set", "particles.0.n=2000"]);
    let whole = folder.path("whole");
    let snapshot_size = fs::metadata(whole.join("snap_000000.hdf")).unwrap().len();
    let largest: u64 = fs::read_dir(&whole).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert!(snapshot_size > 100_000);
    // From nothing to what holds all files: the disk fills up in each of them, at its start, in its middle and at its end.
    let step = if full() { 4 } else { 200 };
    let (mut failed, mut passed) = (0, 0);
    for kilobytes in (16..largest / 1024 + 512).step_by(step) {
        let script = format!(
            "mount -t tmpfs -o size={kilobytes}k none mounted && mkdir mounted/d && \
             \"$0\" run case.toml --out mounted/d/run -q --set particles.0.n=2000; code=$?; \
             cp -r mounted/d/run out; exit $code"
        );
        let (mounted, out) = (folder.path("mounted"), folder.path("out"));
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&mounted).unwrap();
        let mut command = Command::new("unshare");
        command.current_dir(folder.path("")).args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_nbody")]);
        let output = command.output().unwrap();
        let why = format!("a disk of {kilobytes} kB");
        assert!(matches!(code(&output), 0 | 74), "{why}: {} {}", code(&output), outputs(&output));
        if code(&output) == 0 {
            passed += 1;
            assert_eq!(differing(&whole, &out), [""; 0], "{why}");
            continue;
        }
        failed += 1;
        assert!(outputs(&output).contains("No space left"), "{why}: {}", outputs(&output));
        whole_files(&out, &why);
        assert_eq!(temporaries(&out), [""; 0], "{why}");
        for (name, bytes) in crate::common::faults::data(&out) {
            let same = fs::read(whole.join(&name)).unwrap();
            assert!(bytes == same || !name.starts_with("snap_"), "{why}: {name} is wrong");
        }
    }
    println!("{failed} sizes too small, {passed} large enough");
    assert!(failed > 2 && passed > 0);
}
