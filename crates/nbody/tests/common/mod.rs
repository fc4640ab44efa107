//! The program in a folder of its own, and what its runs leave.
#![allow(dead_code, reason = "every test file takes a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with a scenario, `case.toml`, in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("case.toml"), scenario).unwrap();
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

    /// As [`run`](Self::run), to the end and with success.
    pub fn done(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", told(&output));
    }
}

/// Both outputs of the program.
pub fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The exit code; -1 after a signal.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
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
