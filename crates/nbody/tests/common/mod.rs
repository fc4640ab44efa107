//! The program in a folder of its own, and what its runs leave.

pub mod faults;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

/// A folder of a test's own.
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// With a scenario, `case.toml`, in it.
    pub fn new(scenario: &str) -> Self {
        Folder::with(&[("case.toml", scenario)])
    }

    /// With these files in it, each a name and its text.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Folder(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `nbody`, to be started in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nbody"));
        command.current_dir(self.0.path()).args(arguments);
        command
    }

    /// `nbody run` with all of its arguments.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(&["run"]).args(arguments).output().unwrap()
    }

    /// `nbody run case.toml` with more arguments.
    pub fn case(&self, arguments: &[&str]) -> Output {
        self.command(&["run", "case.toml"]).args(arguments).output().unwrap()
    }

    /// `nbody eval` with words that are separated by spaces.
    pub fn eval(&self, words: &str) -> Output {
        self.command(&["eval"]).args(words.split_whitespace()).output().unwrap()
    }

    /// The CSV of an `eval` that must succeed: header and rows.
    pub fn table(&self, words: &str) -> (String, Vec<Vec<f64>>) {
        let out = self.eval(words);
        assert_eq!(code(&out), 0, "{words}: {}", stderr(&out));
        rows(&String::from_utf8(out.stdout).unwrap())
    }

    /// As [`run`](Self::run), to the end and with success.
    pub fn done(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", outputs(&output));
    }
}

/// Both outputs of the program.
pub fn outputs(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The program's standard error: messages, no results.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Header and rows of a CSV of numbers.
pub fn rows(text: &str) -> (String, Vec<Vec<f64>>) {
    let mut lines = text.lines();
    let header = lines.next().unwrap().to_string();
    (header, lines.map(|l| l.split(',').map(|v| v.parse().unwrap()).collect()).collect())
}

/// Numbers in [0, 1) without a pattern.
pub fn random(n: usize) -> Vec<f64> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// The Python of one of the environments of `scripts/setup`, to run this file of `tests/python`; where there is none this is said, and
/// with NBODY_REQUIRE_READERS=1 fails.
pub fn python(environment: &str, script: &str) -> Option<Command> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../..").join(environment).join("bin/python");
    if !python.exists() {
        let what = format!("skipped: no {environment} (scripts/setup --test makes it)");
        assert!(std::env::var_os("NBODY_REQUIRE_READERS").is_none_or(|v| v != "1"), "{what}");
        eprintln!("{what}");
        return None;
    }
    let mut command = Command::new(python);
    command.arg(here.join("tests/python").join(script));
    Some(command)
}

/// Waits until `ready`.
pub fn wait(ready: impl Fn() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed().as_secs() < 60, "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal, say `-TERM`, to a program that is there.
pub fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// The exit code; -1 after a signal.
pub fn code(output: &Output) -> i32 {
    let code = output.status.code().unwrap_or(-1);
    if let Some(page) = std::env::var_os("NBODY_MESSAGES").filter(|_| code > 0) {
        // For scripts/messages; one write, since tests run side by side.
        let text = format!("\u{1}{code}\n{}", stderr(output));
        let page = fs::OpenOptions::new().create(true).append(true).open(page);
        page.and_then(|mut page| std::io::Write::write_all(&mut page, text.as_bytes())).unwrap();
    }
    code
}

/// A column of the `diagnostics.csv` of a run, by name.
pub fn column(run: &Path, name: &str) -> Vec<f64> {
    let text = fs::read_to_string(run.join("diagnostics.csv")).unwrap();
    let index = text.lines().next().unwrap().split(',').position(|n| n == name).unwrap();
    text.lines().skip(1).map(|l| l.split(',').nth(index).unwrap().parse().unwrap()).collect()
}

/// A JSON file.
pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The first GPU. Without one the test says so aloud and passes, or fails where `NBODY_REQUIRE_GPU`
/// is 1.
pub fn gpu() -> Option<fmm_cuda::Gpu> {
    match fmm_cuda::Gpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(why) => {
            assert!(std::env::var("NBODY_REQUIRE_GPU").as_deref() != Ok("1"), "NBODY_REQUIRE_GPU = 1, and {why}");
            eprintln!("skipped: no device ({why})");
            None
        }
    }
}
