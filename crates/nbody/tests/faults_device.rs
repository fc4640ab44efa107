//! Drivers and GPUs that are missing, too old, too small, or fail: against drivers made for the purpose, which compute nothing.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::faults::{full, missing};
use crate::common::{Folder, code, outputs};
use nbody::files::checkpoint;

const SMALL: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 100
[solver]
method = "direct"
[time]
dt = 0.01
end = 0.05
"#;

/// A folder with a `libcuda.so.1` compiled from C.
fn driver(name: &str, source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults").join(format!("{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let text = folder.join("driver.c");
    fs::write(&text, source).unwrap();
    let mut command = std::process::Command::new("cc");
    command.args(["-O1", "-w", "-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so.1")).arg(&text);
    assert!(command.status().unwrap().success(), "cc cannot compile the driver {name}");
    folder
}

/// The driver of `tests/faults/libcuda.c`, with all functions that the program binds.
fn whole_driver(name: &str) -> PathBuf {
    let own = include_str!("faults/libcuda.c");
    let rest = fmm_cuda::FUNCTIONS.iter().filter(|f| !own.contains(&format!("int {f}(")));
    let rest: String = rest.map(|f| format!("int {f}() {{ return broken; }}\n")).collect();
    driver(name, &format!("{own}{rest}"))
}

fn run(folder: &Folder, driver: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = folder.command(&["run"]);
    command.args(arguments).env("LD_LIBRARY_PATH", driver).envs(settings.iter().copied()).output().unwrap()
}

#[test]
fn without_a_driver_the_cores_do_it_and_a_gpu_that_is_asked_for_is_missed() {
    let folder = Folder::new(SMALL);
    let broken = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults/no-library");
    fs::create_dir_all(&broken).unwrap();
    fs::write(broken.join("libcuda.so.1"), "no library").unwrap();
    let part = driver("part", "int cuInit(unsigned flags) { return 0; }");
    let whole = whole_driver("absent");
    for (name, place, settings, words) in [
        ("no library", &broken, &[][..], "no NVIDIA driver"),
        ("a library without its functions", &part, &[], "lacks the function cu"),
        ("no device at the start", &whole, &[("CUDA_INIT", "100")], "shows no GPU"),
        ("no device in the list", &whole, &[("CUDA_DEVICES", "0")], "shows no GPU"),
        ("a driver that fails", &whole, &[("CUDA_INIT", "999")], "the NVIDIA driver fails"),
    ] {
        let (one, two) = (format!("{name}-auto"), format!("{name}-cuda"));
        let auto =
            run(&folder, place, settings, &["case.toml", "--out", &one, "--steps", "1", "--set", "particles.0.n=4000"]);
        assert!(code(&auto) == 0 && outputs(&auto).contains("running on the CPU ("), "{name}: {}", outputs(&auto));
        let cuda = run(&folder, place, settings, &["case.toml", "--out", &two, "--device", "cuda", "--steps", "1"]);
        let text = outputs(&cuda);
        assert!(code(&cuda) == 69 && text.contains(words) && text.contains("device auto or cpu"), "{name}: {text}");
        for output in [auto, cuda] {
            assert!(!outputs(&output).contains("panicked"), "{name}: {}", outputs(&output));
        }
    }
    let second = run(&folder, &whole, &[], &["case.toml", "--out", "second", "--device", "cuda:1"]);
    assert!(code(&second) == 69 && outputs(&second).contains("no GPU 1: the driver shows 1"), "{}", outputs(&second));
}

/// Whether the program has kernels. If not, the output says so.
fn with_kernels() -> bool {
    if let Some(why) = fmm_cuda::MISSING {
        missing(&format!("GPU kernels in this build ({why})"));
    }
    fmm_cuda::MISSING.is_none()
}

#[test]
fn old_gpus_and_drivers_are_told() {
    if !with_kernels() {
        return;
    }
    let folder = Folder::new(SMALL);
    let whole = whole_driver("old");
    for (settings, words) in [
        (("CUDA_CAPABILITY", "75"), "Fake GPU has compute capability 7.5; the kernels need 8.0 or newer"),
        (("CUDA_VERSION", "11040"), "the NVIDIA driver is that of CUDA 11.4; the kernels need that of CUDA 1"),
        (("CUDA_VERSION", "11040"), "or newer: update the driver"),
    ] {
        let output = run(&folder, &whole, &[settings], &["case.toml", "--out", "a", "--device", "cuda", "--force"]);
        let text = outputs(&output);
        assert!(code(&output) == 69 && text.contains(words), "{settings:?}: {} {text}", code(&output));
        assert!(!text.contains("panicked") && !folder.path("a/snap_000000.hdf").exists(), "{text}");
        let output = run(
            &folder,
            &whole,
            &[settings],
            &["case.toml", "--out", "b", "--force", "--steps", "1", "--set", "particles.0.n=4000"],
        );
        assert!(code(&output) == 0 && outputs(&output).contains("running on the CPU ("), "{}", outputs(&output));
    }
}

#[test]
fn modules_are_loaded_when_they_are_used_and_a_failure_names_them() {
    if !with_kernels() {
        return;
    }
    let folder = Folder::new(SMALL);
    let whole = whole_driver("modules");
    let counts = folder.path("counts");
    let arguments = ["case.toml", "--out", "a", "--device", "cuda", "--steps", "1"];
    let output = run(&folder, &whole, &[("CUDA_COUNT", counts.to_str().unwrap())], &arguments);
    assert_eq!(code(&output), 0, "{}", outputs(&output));
    let text = fs::read_to_string(&counts).unwrap();
    let loaded: usize = text.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!((1..=8).contains(&loaded), "{loaded} of {} modules", fmm_cuda::MODULES.len());
    let output = run(&folder, &whole, &[("CUDA_MODULE", "209")], &[&arguments[..], &["--force"]].concat());
    let text = outputs(&output);
    assert!(code(&output) == 70 && text.contains("cannot load the GPU kernels of "), "{} {text}", code(&output));
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn memory_of_a_gpu_that_is_short_is_told_at_the_start() {
    if !with_kernels() {
        return;
    }
    let folder = Folder::new(SMALL);
    let whole = whole_driver("small");
    let arguments = ["case.toml", "--out", "a", "--device", "cuda", "--force"];
    let output = run(
        &folder,
        &whole,
        &[("CUDA_MEMORY", "300000")],
        &[&arguments[..], &["--set", "particles.0.n=4000"]].concat(),
    );
    let text = outputs(&output);
    assert!(code(&output) == 71 && text.contains("4000 particles need") && text.contains("free on Fake GPU"), "{text}");
    let counts = folder.path("counts");
    let counted = [("CUDA_COUNT", counts.to_str().unwrap())];
    let _ = run(&folder, &whole, &counted, &[&arguments[..], &["--steps", "2"]].concat());
    let text = fs::read_to_string(&counts).unwrap();
    let allocations: usize = text.split(' ').next().unwrap().parse().unwrap();
    assert!(allocations > 3, "{text}");
    for at in 1..=allocations {
        let output =
            run(&folder, &whole, &[("CUDA_ALLOC_AT", &at.to_string())], &[&arguments[..], &["--steps", "2"]].concat());
        let text = outputs(&output);
        // 1: a driver that computes nothing may be found out before.
        assert!(matches!(code(&output), 71 | 1 | 0), "allocation {at} of {allocations}: {} {text}", code(&output));
        assert!(!text.contains("panicked"), "{text}");
        if code(&output) == 71 {
            assert!(text.contains("bytes of GPU memory"), "{text}");
        }
    }
}

#[test]
fn a_gpu_that_breaks_in_the_middle_leaves_the_checkpoint() {
    if !with_kernels() {
        return;
    }
    let folder = Folder::new(SMALL);
    let whole = whole_driver("broken");
    let counts = folder.path("counts");
    let started = run(&folder, &whole, &[], &["case.toml", "--out", "half", "-q", "--device", "cuda", "--steps", "2"]);
    assert_eq!(code(&started), 0, "{}", outputs(&started));
    let resume = ["--resume", "a", "-q"];
    let fresh = || {
        let _ = fs::remove_dir_all(folder.path("a"));
        crate::common::faults::copy(&folder.path("half"), &folder.path("a"));
    };
    fresh();
    let _ = run(&folder, &whole, &[("CUDA_COUNT", counts.to_str().unwrap())], &resume);
    let text = fs::read_to_string(&counts).unwrap();
    let waits: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(waits > 5, "{text}");
    for at in (1..=waits).step_by(if full() { 1 } else { waits.div_ceil(8) }) {
        fresh();
        let output = run(&folder, &whole, &[("CUDA_SYNC_AT", &at.to_string())], &resume);
        let (text, why) = (outputs(&output), format!("wait {at} of {waits}"));
        assert!(!text.contains("panicked"), "{why}: {text}");
        assert!(code(&output) == 70, "{why}: {} {text}", code(&output));
        // Before the first sum nothing of the run has changed.
        let begun = !text.contains("initial particles");
        assert!(!begun || text.contains("nbody run --resume a"), "{why}: {text}");
        assert!(!begun || text.contains("checkpoint is that of step"), "{why}: {text}");
        // What was whole is whole, and nothing that the broken device gave is on the disk.
        let found = checkpoint::latest(&folder.path("a")).unwrap().unwrap();
        assert!(found.damaged.is_none() && found.checkpoint.step >= 2, "{why}");
        let again = run(&folder, &whole, &[], &resume);
        assert_eq!(code(&again), 0, "{why}: {}", outputs(&again));
    }
}

#[test]
fn a_gpu_that_sums_wrongly_is_found_out() {
    if !with_kernels() {
        return;
    }
    // This driver's kernels do nothing: all forces are zero, and no call fails.
    let folder = Folder::new(&format!("{SMALL}[verify]\nevery = 0.01\naction = 'stop'\n"));
    let whole = whole_driver("wrong");
    let output = run(&folder, &whole, &[], &["case.toml", "--out", "a", "--device", "cuda"]);
    let text = outputs(&output);
    assert!(code(&output) == 1 && text.contains("force error"), "{} {text}", code(&output));
    assert!(!folder.path("a/snap_000000.hdf").exists(), "a wrong state is not written");
}
