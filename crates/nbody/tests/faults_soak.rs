//! A long run that is killed again and again, at random times and with other numbers of threads,
//! ends with the bits of an undisturbed run. These bits do not depend on the threads or the vectors
//! of the processor.
#![cfg(unix)]

use std::fs;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::faults::{copy, differing, full, temporaries};
use crate::common::{Folder, code, outputs, random};
use nbody::files::checkpoint;

/// A run of some milliseconds a step, with outputs that fall between checkpoints.
const SOAK: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 600
[solver]
method = "fmm"
tolerance = 1e-4
[time]
dt = 0.01
end = END
[output]
every = 1.3
diagnostics_every = 0.07
checkpoint_wall = "1s"
"#;

/// SHA-256 of all snapshots, by `nbody check`.
fn hash(folder: &Folder, run: &str) -> String {
    let output = folder.command(&["check", "--hash", run]).output().unwrap();
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    outputs(&output).lines().last().unwrap().split(' ').next().unwrap().to_string()
}

/// How `command` ends if it is killed once `patience` is over: without a code then.
fn killed_after(mut command: Command, patience: Duration) -> ExitStatus {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while started.elapsed() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap()
}

#[test]
fn a_run_that_is_killed_again_and_again_comes_to_the_same_end() {
    let (steps, kills): (u64, usize) = if full() { (10_000, 100) } else { (400, 6) };
    let end = (steps as f64 / 100.0).to_string();
    let folder = Folder::new(&SOAK.replace("END", &end));
    let begun = Instant::now();
    folder.done(&["case.toml", "--out", "whole", "-q", "--threads", "2"]);
    let unbroken = begun.elapsed();
    // Every part ends with a checkpoint after 50 steps, or by a kill before.
    let mut dice = random(100_000).into_iter();
    let mut next = || dice.next().unwrap();
    let part = unbroken.mul_f64(50.0 / steps as f64);
    let (mut killed, mut parts, mut done) = (0, 0, 0);
    folder.done(&["case.toml", "--out", "parts", "-q", "--steps", "0"]);
    while done < steps {
        let threads = ["1", "2", "3", "7"][(4.0 * next()) as usize];
        let count = 50.min(steps - done).to_string();
        let command = folder.command(&["run", "--resume", "parts", "-q", "--steps", &count, "--threads", threads]);
        let kill = killed < kills && next() < 0.75;
        let patience = if kill { part.mul_f64(next()) } else { Duration::from_secs(600) };
        let status = killed_after(command, patience);
        killed += usize::from(status.code().is_none());
        assert!(status.code().is_none_or(|code| code == 0), "{status}");
        let found = checkpoint::latest(&folder.path("parts")).unwrap().unwrap();
        let step = found.checkpoint.step;
        assert!(found.damaged.is_none() && step >= done, "step {step} after {done}");
        assert!(status.code().is_none() || step > done, "a part that ended has come no further than step {done}");
        (done, parts) = (step, parts + 1);
    }
    println!("{steps} steps in {parts} parts, {killed} of them killed; unbroken in {unbroken:?}");
    assert!(killed >= if full() { kills } else { kills / 3 }, "{killed} kills");
    // The last part ended for good; what it began with says another end.
    folder.done(&["--resume", "parts", "-q", "--until", &end]);
    assert_eq!(differing(&folder.path("whole"), &folder.path("parts")), [""; 0]);
    assert_eq!(hash(&folder, "whole"), hash(&folder, "parts"));
}

/// From the same checkpoint each time, so that every kill finds the same run: while it starts, computes, and saves.
#[test]
fn a_kill_at_any_time_goes_on_with_other_threads() {
    let wanted = if full() { 200 } else { 8 };
    let folder = Folder::new(&SOAK.replace("END", "0.9").replace("every = 1.3", "every = 0.13"));
    folder.done(&["case.toml", "--out", "whole", "-q", "--threads", "2"]);
    folder.done(&["case.toml", "--out", "begun", "-q", "--threads", "2", "--until", "0.3"]);
    let mut dice = random(100_000).into_iter();
    let mut next = || dice.next().unwrap();
    let (mut killed, mut halves, mut saved, mut longest) = (0, 0, 0, Duration::from_millis(500));
    while killed < wanted {
        let threads = ["1", "2", "3", "7"];
        let [first, more] = [(4.0 * next()) as usize, 1 + (3.0 * next()) as usize];
        let [before, after] = [threads[first], threads[(first + more) % 4]];
        let _ = fs::remove_dir_all(folder.path("a"));
        copy(&folder.path("begun"), &folder.path("a"));
        let command = folder.command(&["run", "--resume", "a", "-q", "--until", "0.6", "--threads", before]);
        let started = Instant::now();
        let status = killed_after(command, longest.mul_f64(next()));
        if status.code().is_none() {
            killed += 1;
            halves += usize::from(!temporaries(&folder.path("a")).is_empty());
            let found = checkpoint::latest(&folder.path("a")).unwrap().unwrap();
            saved += usize::from(found.checkpoint.step == 60);
            assert!(found.damaged.is_none() && [30, 60].contains(&found.checkpoint.step));
        } else {
            assert_eq!(status.code(), Some(0));
            // A little beyond the end of what was seen: every moment has its turn.
            longest = started.elapsed().mul_f64(1.1);
        }
        folder.done(&["--resume", "a", "-q", "--until", "0.9", "--threads", after]);
        let differing = differing(&folder.path("whole"), &folder.path("a"));
        assert_eq!(differing, [""; 0], "after {killed} kills, from {before} to {after} threads");
        assert_eq!(temporaries(&folder.path("a")), [""; 0]);
    }
    println!("{killed} kills: {halves} left a file half written, {saved} came after the checkpoint");
}

/// The name of the vectors that a command takes.
fn simd(folder: &Folder, wanted: &str) -> String {
    let output = folder.command(&["--version"]).env("NBODY_SIMD", wanted).output().unwrap();
    let text = outputs(&output);
    text.split("SIMD ").nth(1).unwrap().split([',', ')']).next().unwrap().to_string()
}

#[test]
fn one_hash_for_all_threads_and_vectors() {
    let folder = Folder::new(&SOAK.replace("END", "0.65").replace("every = 1.3", "every = 0.13"));
    let mut hashes = vec![];
    for method in ["fmm", "treecode", "direct"] {
        for precision in ["f32", "f64"] {
            let sets = [format!("solver.method={method}"), format!("solver.precision={precision}")];
            let of = |vectors: &str, threads: &str| {
                let mut command =
                    folder.command(&["run", "case.toml", "--out", "a", "--force", "-q", "--until", "0.13"]);
                command.args(["--set", &sets[0], "--set", &sets[1], "--threads", threads]);
                let output = command.env("NBODY_SIMD", vectors).output().unwrap();
                assert_eq!(code(&output), 0, "{}", outputs(&output));
                hash(&folder, "a")
            };
            let first = of("avx512", "1");
            for threads in ["2", "3", "7"] {
                assert_eq!(of("avx512", threads), first, "{method} in {precision} on {threads} threads");
            }
            // Without fused multiply-add numbers are rounded twice where they were rounded once: other bits, as documented.
            let baseline = of("baseline", "2");
            assert_eq!(of("baseline", "3"), baseline);
            if simd(&folder, "avx2") == "AVX2+FMA" {
                assert_eq!(of("avx2", "2"), first, "{method} in {precision}: AVX2 against {}", simd(&folder, "avx512"));
                assert_ne!(baseline, first, "{method} in {precision}");
            }
            hashes.push(first);
        }
    }
    println!("{} against {}", simd(&folder, "avx512"), simd(&folder, "avx2"));
    // Methods and precisions do differ: the hash sees what it should.
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 6);
}
