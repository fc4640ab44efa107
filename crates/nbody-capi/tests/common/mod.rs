//! Compiles and runs programs against the libraries that cargo built for these tests.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use tempfile::TempDir;

/// The folder of the crate.
pub const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The folder of the libraries: that of the test.
pub fn built() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    assert!(folder.join("libnbody_capi.so").exists(), "no libnbody_capi.so in {}", folder.display());
    folder
}

/// Which library a program is linked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Shared,
    Static,
}

/// What the static library needs: Libs.private of scripts/capi.
pub const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// A folder with links to the libraries under the names that scripts/capi gives them.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        let place = TempDir::new().unwrap();
        let major = env!("CARGO_PKG_VERSION_MAJOR");
        for name in ["libnbody.so".to_string(), format!("libnbody.so.{major}")] {
            symlink(built().join("libnbody_capi.so"), place.path().join(name)).unwrap();
        }
        symlink(built().join("libnbody_capi.a"), place.path().join("libnbody.a")).unwrap();
        Place(place)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles files, relative to the crate, by `compiler` with its options. Returns the program.
    pub fn compile(&self, compiler: &[&str], files: &[&str], link: Link) -> PathBuf {
        let program = self.path().join(format!("program-{link:?}"));
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(format!("{CRATE}/include"));
        command.args(files.iter().map(|file| Path::new(CRATE).join(file))).arg("-o").arg(&program);
        // C++ compiles what follows -x as C++, libraries too.
        command.args(compiler.contains(&"-x").then_some(["-x", "none"]).into_iter().flatten());
        match link {
            Link::Shared => command.arg("-L").arg(self.path()).arg("-lnbody"),
            Link::Static => command.arg(self.path().join("libnbody.a")).args(SYSTEM),
        };
        let done = command.arg("-lpthread").current_dir(self.path()).output().unwrap();
        assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
        program
    }

    /// Whether this text in C becomes a program that ends well.
    pub fn compiles_and_runs(&self, compiler: &[&str], text: &str) -> bool {
        let (file, program) = (self.path().join("probe.c"), self.path().join("probe"));
        fs::write(&file, text).unwrap();
        let compiled = Command::new(compiler[0]).args(&compiler[1..]).arg(file).arg("-o").arg(&program).output();
        compiled.is_ok_and(|done| done.status.success()) && Command::new(program).status().is_ok_and(|s| s.success())
    }

    /// A command that runs a program with the shared library.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.path());
        command
    }

    /// Compiles a program of tests/c with cc, runs it, and returns its standard output.
    pub fn run_c(&self, file: &str, link: Link) -> String {
        let program = self.compile(&C99, &[&format!("tests/c/{file}")], link);
        succeed(&mut self.command(&program), &[])
    }
}

/// cc for strict C99, with the functions of POSIX.
pub const C99: [&str; 4] = ["cc", "-std=c99", "-pedantic", "-D_POSIX_C_SOURCE=200809L"];

/// Whether a command can be run on this machine; says `skipped` if not.
pub fn there_is(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("skipped: no {tool}");
    }
    there
}

/// Runs a command with this input for at most two minutes. Returns its standard output.
pub fn succeed(command: &mut Command, input: &[u8]) -> String {
    String::from_utf8(bytes(command, input)).unwrap()
}

/// The same with an output of any bytes.
pub fn bytes(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let output = finish(command, input);
    let texts = || (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{}\n{}", output.status, texts().0, texts().1);
    output.stdout
}

fn finish(command: &mut Command, input: &[u8]) -> Output {
    // With children of its own it is a group, which ends as a whole.
    command.process_group(0);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that ends early reads no more: its status and texts say why.
    let _ = child.stdin.take().unwrap().write_all(input);
    let id = child.id();
    let waiting = thread::spawn(move || child.wait_with_output().unwrap());
    let begun = Instant::now();
    while !waiting.is_finished() {
        if begun.elapsed() > Duration::from_secs(120) {
            // The thread ends with the test.
            Command::new("kill").args(["-9", "--", &format!("-{id}")]).status().unwrap();
            panic!("{command:?} runs for more than two minutes");
        }
        thread::sleep(Duration::from_millis(5));
    }
    waiting.join().unwrap()
}

/// The text of a file of the crate.
pub fn text(file: &str) -> String {
    fs::read_to_string(format!("{CRATE}/{file}")).unwrap()
}
