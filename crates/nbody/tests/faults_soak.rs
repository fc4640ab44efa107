//! A long run that is killed again and again, at random times and with other numbers of threads, comes to the bits of one
//! that nobody touched; and these are the same whatever the threads and the vectors of the processor.
#![cfg(unix)]

mod common;

use std::process::Stdio;
use std::time::{Duration, Instant};

use common::faults::{differing, full};
use common::{Folder, code, random, told};
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
    assert_eq!(code(&output), 0, "{}", told(&output));
    told(&output).lines().last().unwrap().split(' ').next().unwrap().to_string()
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
        let mut command = folder.command(&["run", "--resume", "parts", "-q", "--steps", &count, "--threads", threads]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let kill = killed < kills && next() < 0.75;
        let patience = if kill { part.mul_f64(next()) } else { Duration::from_secs(600) };
        let started = Instant::now();
        let mut status = child.try_wait().unwrap();
        while status.is_none() && started.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
            status = child.try_wait().unwrap();
        }
        if status.is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        let status = child.wait().unwrap();
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

/// The name of the vectors that a command takes.
fn simd(folder: &Folder, wanted: &str) -> String {
    let output = folder.command(&["--version"]).env("NBODY_SIMD", wanted).output().unwrap();
    let text = told(&output);
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
                    folder.command(&["run", "case.toml", "--out", "a", "--force", "-q", "--until", "0.26"]);
                command.args(["--set", &sets[0], "--set", &sets[1], "--threads", threads]);
                let output = command.env("NBODY_SIMD", vectors).output().unwrap();
                assert_eq!(code(&output), 0, "{}", told(&output));
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
