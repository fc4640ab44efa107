//! Compiles `kernels/*.cu` to PTX where there is an nvcc; without one the crate builds all the same and says so at run time.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The kernels' files, and whether multiplications and additions may be fused: not where bits must be the CPU's.
const MODULES: &[(&str, bool)] = &[
    ("box", false),
    ("cartesian", true),
    ("evaluate", true),
    ("ewald", true),
    ("gather", false),
    ("gauss_boxes", false),
    ("gauss_near", true),
    ("gauss_series", true),
    ("grid_far", true),
    ("grid_near", true),
    ("guard", true),
    ("lists", false),
    ("m2l", true),
    ("m2l_ways", true),
    ("moments", true),
    ("near", true),
    ("near_box", true),
    ("order", false),
    ("p2p", true),
    ("peak", true),
    ("planar_far", true),
    ("planar_lists", false),
    ("planar_near", true),
    ("planar_pairs", true),
    ("planar_run", false),
    ("planar_single", true),
    ("planar_threads", true),
    ("planar_tree", false),
    ("short", true),
    ("sort", false),
    ("step", false),
    ("survey", false),
    ("totals", false),
    ("translate", true),
    ("tree", false),
];

/// Compute capabilities that get PTX of their own; the driver compiles it for newer ones.
const CAPABILITIES: [u32; 2] = [80, 90];

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let kernels = root.join("kernels");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", kernels.display());
    // What stands elsewhere does not matter where NVCC names the compiler, or none.
    let named = env::var_os("NVCC").is_some_and(|v| !v.is_empty());
    for variable in if named { &["NVCC"][..] } else { &["NVCC", "CUDA_HOME", "PATH"] } {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    // Cargo takes a file that is not there for one that has changed, always: `scripts/setup` touches this one when it installs a compiler.
    let installed = root.join(".venv-cuda/requirements-cuda.txt");
    if installed.exists() {
        println!("cargo:rerun-if-changed={}", installed.display());
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let mut modules = String::new();
    let mut missing = "None".to_string();
    let mut release = String::new();
    match find(&root) {
        Ok(nvcc) => {
            release = release_of(&nvcc);
            for &(name, fused) in MODULES {
                for capability in CAPABILITIES {
                    let ptx = out.join(format!("{name}.{capability}.ptx"));
                    let source = kernels.join(format!("{name}.cu"));
                    // Of dozens of files few change at a time, and some take a minute.
                    if changed(&nvcc).max(changed(Path::new("build.rs"))).max(newest(&source)) >= changed(&ptx) {
                        compile(&nvcc, &source, &ptx, capability, fused);
                    }
                    writeln!(modules, "    ({name:?}, {capability}, include_str!({ptx:?})),").expect("text grows");
                }
            }
        }
        Err(why) => missing = format!("Some({why:?})"),
    }
    let text = format!(
        "/// Name, compute capability and PTX of every module.\n\
         pub const MODULES: &[(&str, u32, &str)] = &[\n{modules}];\n\
         /// Why there is none.\n\
         pub const MISSING: Option<&str> = {missing};\n\
         /// The release of CUDA that compiled them, as 13.0.\n\
         pub const RELEASE: &str = {release:?};\n"
    );
    fs::write(out.join("modules.rs"), text).expect("cargo's folder can be written");
}

/// The compiler: named by NVCC, in CUDA_HOME, on the PATH, or in the folder that `scripts/setup` fills.
fn find(root: &Path) -> Result<PathBuf, String> {
    if let Some(nvcc) = env::var_os("NVCC").filter(|v| !v.is_empty()) {
        let nvcc = PathBuf::from(nvcc);
        return if runs(&nvcc) { Ok(nvcc) } else { Err(format!("NVCC = {} does not run", nvcc.display())) };
    }
    let mut places: Vec<PathBuf> = vec![];
    if let Some(home) = env::var_os("CUDA_HOME").filter(|v| !v.is_empty()) {
        places.push(Path::new(&home).join("bin"));
    }
    places.extend(env::var_os("PATH").iter().flat_map(env::split_paths));
    let libraries = fs::read_dir(root.join(".venv-cuda/lib")).into_iter().flatten().flatten();
    places.extend(libraries.map(|python| python.path().join("site-packages/nvidia/cu13/bin")));
    let found = places.into_iter().map(|place| place.join("nvcc")).find(|nvcc| runs(nvcc));
    found.ok_or_else(|| "no nvcc was named by NVCC, in CUDA_HOME, on the PATH or in .venv-cuda".into())
}

fn runs(nvcc: &Path) -> bool {
    nvcc.is_file() && Command::new(nvcc).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// The release that a compiler tells, as 13.0.
fn release_of(nvcc: &Path) -> String {
    let told = Command::new(nvcc).arg("--version").output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    let told = told.unwrap_or_default();
    told.split("release ").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default().to_string()
}

/// When a file was written; long ago if there is none.
fn changed(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// When a source or anything that it includes was last written.
fn newest(source: &Path) -> SystemTime {
    let text = fs::read_to_string(source).unwrap_or_default();
    let included = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
    let times = included.map(|name| newest(&source.with_file_name(name)));
    times.fold(changed(source), SystemTime::max)
}

/// Compiles one file; stops the build where its text is wrong.
fn compile(nvcc: &Path, source: &Path, ptx: &Path, capability: u32, fused: bool) {
    let mut command = Command::new(nvcc);
    command.args(["--ptx", "--std=c++17", "-O3", "--Werror=all-warnings"]);
    command.arg(format!("--gpu-architecture=compute_{capability}"));
    command.arg(format!("--fmad={fused}"));
    command.arg("--output-file").arg(ptx).arg(source);
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!("{command:?} fails:\n{}", String::from_utf8_lossy(&output.stderr)),
        Err(e) => panic!("{command:?}: {e}"),
    }
}
