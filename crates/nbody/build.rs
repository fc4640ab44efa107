//! What the program knows of its own making: the commit, and the scenarios of the folder `scenarios`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    println!("cargo:rustc-env=NBODY_COMMIT={}", commit(&root).unwrap_or_default());
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo")).join("scenarios.rs");
    fs::write(out, scenarios(&root.join("scenarios"))).expect("cargo's folder can be written");
    // What the program is made of: an edit makes the commit a dirty one.
    for name in ["fmm", "fmm-core", "fmm-cuda", "nbody", "nbody-bench", "nbody-cli", "nbody-sim"] {
        println!("cargo:rerun-if-changed=../{name}/src");
    }
    for part in ["build.rs", "../../kernels", "../../scenarios", "../../configs"] {
        println!("cargo:rerun-if-changed={part}");
    }
}

/// The commit of the checkout at `root`, with `-dirty` where files differ from it; none outside a checkout of our own.
fn commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    // The sources may lie, unpacked, within a checkout of something else.
    let top = fs::canonicalize(git(&["rev-parse", "--show-toplevel"])?).ok()?;
    if top != fs::canonicalize(root).ok()? {
        return None;
    }
    // The log grows with every commit and every checkout; HEAD alone names the branch only.
    for name in ["logs/HEAD", "HEAD"] {
        let path = root.join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

/// Names and contents of every file of the folder, as Rust text: none can be forgotten.
fn scenarios(folder: &Path) -> String {
    let mut paths: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_file()).collect(),
        Err(e) => panic!("{}: {e}", folder.display()),
    };
    paths.sort();
    let mut text = String::from("&[\n");
    for path in paths {
        let (name, path) = (path.file_name().unwrap_or_default(), fs::canonicalize(&path).unwrap_or(path.clone()));
        writeln!(text, "    ({name:?}, include_bytes!({path:?})),").expect("text grows");
    }
    text + "]"
}
