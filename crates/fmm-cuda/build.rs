//! Compiles `kernels/*.cu` to PTX with nvcc. Without nvcc the crate builds too, and reports the reason at run time.
//!
//! PTX is kept in the user's cache directory under the SHA-256 of everything that it depends on, so that no clone on a
//! machine compiles a kernel twice.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

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
    // Not PATH: it differs from one shell to the next. `scripts/setup --gpu` touches build.rs after it installs a compiler.
    for variable in ["NVCC", "CUDA_HOME"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let mut modules = String::new();
    let mut missing = "None".to_string();
    let mut release = String::new();
    match find(&root) {
        Ok(nvcc) => {
            println!("cargo:rerun-if-changed={}", nvcc.display());
            let compiler = Compiler::new(nvcc);
            release = compiler.release();
            let mut jobs = vec![];
            for &(name, fused) in MODULES {
                for capability in CAPABILITIES {
                    let ptx = out.join(format!("{name}.{capability}.ptx"));
                    writeln!(modules, "    ({name:?}, {capability}, include_str!({ptx:?})),").expect("text grows");
                    jobs.push(Job { source: kernels.join(format!("{name}.cu")), ptx, capability, fused });
                }
            }
            compiler.run(&jobs);
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
    found.ok_or_else(|| {
        "there was no nvcc in CUDA_HOME, on the PATH or in .venv-cuda when the program was built; \
         set NVCC to one and build again"
            .into()
    })
}

fn runs(nvcc: &Path) -> bool {
    nvcc.is_file() && Command::new(nvcc).arg("--version").output().is_ok_and(|o| o.status.success())
}

/// A kernel file to compile for one compute capability.
struct Job {
    source: PathBuf,
    ptx: PathBuf,
    capability: u32,
    fused: bool,
}

impl Job {
    fn options(&self) -> [String; 6] {
        let architecture = format!("--gpu-architecture=compute_{}", self.capability);
        let fmad = format!("--fmad={}", self.fused);
        ["--ptx", "--std=c++17", "-O3", "--Werror=all-warnings", &architecture, &fmad].map(str::to_string)
    }
}

/// An nvcc and the cache of what it has compiled.
struct Compiler {
    nvcc: PathBuf,
    /// What the compiler prints of its version, and the sizes of its parts.
    version: String,
    /// None where no cache directory can be made.
    cache: Option<PathBuf>,
}

/// A kernel that no build has asked for in this time leaves the cache.
const KEPT: Duration = Duration::from_secs(60 * 24 * 3600);

impl Compiler {
    fn new(nvcc: PathBuf) -> Self {
        let output = Command::new(&nvcc).arg("--version").output();
        let mut version = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        // The part that writes PTX comes in a package of its own, whose release nvcc does not print.
        for part in [nvcc.clone(), nvcc.with_file_name("../nvvm/bin/cicc")] {
            let size = fs::metadata(part).map_or(0, |m| m.len());
            writeln!(version, "{size}").expect("text grows");
        }
        let home = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")));
        let cache = cache.map(|c| c.join("nbody/ptx")).filter(|c| fs::create_dir_all(c).is_ok());
        Compiler { nvcc, version, cache }
    }

    /// As 13.0.
    fn release(&self) -> String {
        let rest = self.version.split("release ").nth(1);
        rest.and_then(|rest| rest.split(',').next()).unwrap_or_default().to_string()
    }

    /// Compiles all, as many at once as cargo allows.
    fn run(&self, jobs: &[Job]) {
        let threads = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.make(job);
                    }
                });
            }
        });
        self.clean();
    }

    /// Writes the PTX of one job, from the cache if it is there.
    fn make(&self, job: &Job) {
        let Some(cache) = &self.cache else { return self.compile(job) };
        let kept = cache.join(format!("{}.ptx", self.key(job)));
        if fs::copy(&kept, &job.ptx).is_ok() {
            // A file system that keeps no times costs a compilation later.
            let _ = File::options().write(true).open(&kept).and_then(|f| f.set_modified(SystemTime::now()));
            return;
        }
        self.compile(job);
        // Written whole or not at all; without a place in the cache the build goes on.
        let part = kept.with_extension(std::process::id().to_string());
        let copy = || {
            fs::copy(&job.ptx, &part)?;
            File::open(&part)?.sync_all()?;
            fs::rename(&part, &kept)
        };
        if copy().is_err() {
            let _ = fs::remove_file(&part);
        }
    }

    /// SHA-256, in hexadecimal, of the compiler's version, the options and all text that is compiled.
    fn key(&self, job: &Job) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&self.version);
        job.options().iter().for_each(|o| add(o));
        texts(&job.source, &mut add);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Stops the build where the text is wrong.
    fn compile(&self, job: &Job) {
        let mut command = Command::new(&self.nvcc);
        command.args(job.options()).arg("--output-file").arg(&job.ptx).arg(&job.source);
        match command.output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => panic!("{command:?} fails:\n{}", String::from_utf8_lossy(&output.stderr)),
            Err(e) => panic!("{command:?}: {e}"),
        }
    }

    /// Removes what has not been used for a long time.
    fn clean(&self) {
        let entries = self.cache.iter().flat_map(fs::read_dir).flatten().flatten();
        let age = |m: fs::Metadata| m.modified().ok().and_then(|t| t.elapsed().ok()).unwrap_or_default();
        for old in entries.filter(|e| e.metadata().is_ok_and(|m| age(m) > KEPT)) {
            let _ = fs::remove_file(old.path());
        }
    }
}

/// The text of a kernel file and of every file of ours that it includes.
fn texts(source: &Path, add: &mut impl FnMut(&str)) {
    let text = fs::read_to_string(source).unwrap_or_default();
    add(&text);
    for name in text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next()) {
        texts(&source.with_file_name(name), add);
    }
}
