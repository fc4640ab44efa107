//! Compiles the `.cu` files below `kernels/` with nvcc. Without nvcc the crate builds too, and reports the reason at
//! run time.
//!
//! Each file becomes one fat binary: machine code and PTX for every capability of [`CAPABILITIES`],
//! compressed. The crate embeds it with the names of its kernels. The PTX is kept for the tests.
//! With `NBODY_KERNELS=ptx` the fat binaries hold PTX only: they compile faster, and the driver
//! makes the machine code when a module is first used.
//!
//! The structs that kernels take are generated from the Rust text of [`ROOMS`], see `build/arguments.rs`.
//!
//! Results are kept in the user's cache directory under the SHA-256 of everything that they depend
//! on, so that no clone on a machine compiles a kernel twice.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

#[path = "build/arguments.rs"]
mod arguments;

/// The kernels' files, and whether multiplications and additions may be fused: not where bits must
/// be the CPU's.
const MODULES: &[(&str, bool)] = &[
    ("bath", false),
    ("box", false),
    ("cartesian", true),
    ("evaluate", true),
    ("ewald", true),
    ("gather", false),
    ("gauss_boxes", false),
    ("gauss_near", true),
    ("gauss_series", true),
    ("gauss_single", true),
    ("grid_differences", true),
    ("grid_far", true),
    ("grid_levels", true),
    ("grid_measures", true),
    ("grid_near", true),
    ("grid_remesh", true),
    ("grid_seeds", true),
    ("error_draw", true),
    ("error_field", true),
    ("guard", true),
    ("hessian", true),
    ("lists", false),
    ("m2l", true),
    ("m2l_launches", true),
    ("m2l_variants", true),
    ("mesh_cells", false),
    ("mesh_fft", true),
    ("mesh_near", true),
    ("mesh_window", true),
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
    ("planar_versions", true),
    ("short", true),
    ("sort", false),
    ("step", false),
    ("survey", false),
    ("totals", false),
    ("translate", true),
    ("tree", false),
];

/// Files whose kernels launch kernels. They are linked with CUDA's device runtime, for which a fat binary holds machine code alone, of
/// each of [`CAPABILITIES`]: the driver cannot compile them for a newer device.
const LAUNCHING: &[&str] = &["m2l_launches"];

/// The view files: the name of the header that is generated from them, the headers that it
/// includes, and for each file its module and its path in src/.
type Views = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);
const ROOMS: &[Views] = &[
    (
        "view",
        &[],
        &[
            ("crate::view", "view/mod.rs"),
            ("crate::view", "view/bath.rs"),
            ("crate::view", "view/bodies.rs"),
            ("crate::view", "view/cells.rs"),
            ("crate::view", "view/guard.rs"),
            ("crate::view", "view/hessian.rs"),
            ("crate::view", "view/peak.rs"),
            ("crate::view", "view/team.rs"),
        ],
    ),
    ("periodic", &["view"], &[("crate::view", "view/periodic.rs")]),
    ("geometry", &[], &[("crate::geometry::view", "geometry/view.rs")]),
    ("gauss", &[], &[("crate::gauss::view", "gauss/view.rs")]),
    ("gauss_single", &[], &[("crate::gauss::single::view", "gauss/single/view.rs")]),
    ("grid", &[], &[("crate::grid::view", "grid/view.rs")]),
    ("grid_fields", &[], &[("crate::grid::fields::view", "grid/fields/view.rs")]),
    ("planar", &[], &[("crate::planar::view", "planar/view.rs")]),
    ("planar_versions", &["view"], &[("crate::planar::versions::view", "planar/versions/view.rs")]),
    ("forces", &["view", "mesh"], &[("crate::forces::view", "forces/view.rs")]),
    ("m2l_variants", &["view"], &[("crate::m2l_variants::view", "m2l_variants/view.rs")]),
    ("mesh", &["view"], &[("crate::mesh::view", "mesh/view.rs")]),
];

/// Compute capabilities that get machine code and PTX, the oldest first. The driver compiles the
/// PTX for newer ones.
const CAPABILITIES: [u32; 2] = [80, 90];

/// The variable that says what the fat binaries hold, and its values, the default first.
const KERNELS: &str = "NBODY_KERNELS";
const CONTENTS: [&str; 2] = ["fat", "ptx"];

/// Whether the fat binaries hold machine code, and not PTX only.
fn machine_code() -> bool {
    let value = env::var_os(KERNELS).filter(|v| !v.is_empty()).unwrap_or(CONTENTS[0].into());
    let [fat, ptx] = CONTENTS;
    assert!(
        CONTENTS.iter().any(|c| value == *c),
        "{KERNELS} = {value:?}: allowed are {fat:?} (the default) and {ptx:?}"
    );
    value == fat
}

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let kernels = root.join("kernels");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={}", kernels.display()); // with all folders below it
    // Not PATH: it differs from one shell to the next. `scripts/setup --gpu` touches build.rs after
    // it installs a compiler.
    for variable in [KERNELS, "NVCC", "CUDA_HOME"].iter().chain(FLAGS) {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    machine_code();
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    generate_arguments(&out);
    let (mut modules, mut texts) = (String::new(), String::new());
    let (mut missing, mut release, mut grid_near) = ("None".to_string(), String::new(), r#""""#.to_string());
    match find(&root) {
        Ok(nvcc) => {
            println!("cargo:rerun-if-changed={}", nvcc.display());
            let compiler = Compiler::new(nvcc, vec![kernels.clone(), out.clone()]);
            release = compiler.release();
            let sources = sources(&kernels);
            let jobs: Vec<Job> = MODULES
                .iter()
                .map(|&(name, fused)| Job { name, source: source(&sources, name), out: out.clone(), fused })
                .collect();
            compiler.run(&jobs);
            for job in &jobs {
                let (name, binary) = (job.name, job.binary());
                writeln!(
                    modules,
                    "    Binary {{ name: {name:?}, kernels: &{:?}, code: &Aligned(*include_bytes!({binary:?})) }},",
                    job.kernels()
                )
                .expect("text grows");
                for capability in CAPABILITIES {
                    let text = job.ptx(capability);
                    writeln!(texts, "    ({name:?}, {capability}, include_str!({text:?})),").expect("text grows");
                }
                if name == "grid_near" {
                    grid_near = format!("include_str!({:?})", job.ptx(CAPABILITIES[CAPABILITIES.len() - 1]));
                }
            }
        }
        Err(why) => missing = format!("Some({why:?})"),
    }
    let oldest = (CAPABILITIES[0] / 10, CAPABILITIES[0] % 10);
    let text = format!(
        "/// Every module.\n\
         pub static MODULES: &[Binary] = &[\n{modules}];\n\
         /// Why there is none.\n\
         pub const MISSING: Option<&str> = {missing};\n\
         /// The release of CUDA that compiled them, as 13.0.\n\
         pub const RELEASE: &str = {release:?};\n\
         /// Major and minor number of the oldest compute capability that they serve.\n\
         pub const OLDEST: (i32, i32) = {oldest:?};\n\
         /// The newest PTX of the module `grid_near`; empty without kernels.\n\
         pub const GRID_NEAR: &str = {grid_near};\n"
    );
    fs::write(out.join("modules.rs"), text).expect("cargo's folder can be written");
    let text = format!(
        "/// Name, compute capability and PTX of every module.\n\
         const PTX: &[(&str, u32, &str)] = &[\n{texts}];\n"
    );
    fs::write(out.join("ptx.rs"), text).expect("cargo's folder can be written");
}

/// Writes the headers `arguments/*.cuh`, and `layouts.rs` with the name and the content of the layout of each.
fn generate_arguments(out: &Path) {
    let read = |&(path, file): &(&'static str, &str)| {
        println!("cargo:rerun-if-changed=src/{file}");
        (path, fs::read_to_string(Path::new("src").join(file)).unwrap_or_else(|e| panic!("src/{file}: {e}")))
    };
    let rooms: Vec<_> = ROOMS
        .iter()
        .map(|&(name, includes, files)| arguments::Room { name, includes, modules: files.iter().map(read).collect() })
        .collect();
    let folder = out.join("arguments");
    fs::create_dir_all(&folder).expect("cargo's folder can be written");
    let mut layouts = String::new();
    for (room, text) in rooms.iter().zip(arguments::generate(&rooms)) {
        fs::write(folder.join(format!("{}.cuh", room.name)), text.header).expect("cargo's folder can be written");
        writeln!(layouts, "    (\"{}_layout\", {}),", room.name, text.layout).expect("text grows");
    }
    let text = format!(
        "/// Constants, offsets and sizes of the arguments of kernels, in bytes, by the name of the array in the PTX.\n\
         pub const LAYOUTS: &[(&str, &[usize])] = &[\n{layouts}];\n"
    );
    fs::write(out.join("layouts.rs"), text).expect("cargo's folder can be written");
}

/// The compiler: named by NVCC, in CUDA_HOME, on the PATH, or in the folder that `scripts/setup`
/// fills.
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

/// The `.cu` files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let kernels = files.into_iter().filter(|path| path.extension().is_some_and(|e| e == "cu"));
    kernels.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The file of a module, in any folder.
fn source(sources: &[PathBuf], name: &str) -> PathBuf {
    let found: Vec<_> = sources.iter().filter(|path| path.file_stem().is_some_and(|stem| stem == name)).collect();
    assert!(found.len() == 1, "kernels/ must hold one file {name}.cu; found: {found:?}");
    found[0].clone()
}

/// A kernel file to compile.
struct Job {
    name: &'static str,
    source: PathBuf,
    /// The folder of the results.
    out: PathBuf,
    fused: bool,
}

impl Job {
    /// The fat binary.
    fn binary(&self) -> PathBuf {
        self.out.join(format!("{}.fatbin", self.name))
    }

    fn ptx(&self, capability: u32) -> PathBuf {
        self.out.join(format!("{}.{capability}.ptx", self.name))
    }

    /// All files that the compiler writes for it, each with its ending.
    fn results(&self) -> Vec<(String, PathBuf)> {
        let texts = CAPABILITIES.iter().map(|&c| (format!("{c}.ptx"), self.ptx(c)));
        [("fatbin".to_string(), self.binary())].into_iter().chain(texts).collect()
    }

    /// The names of its kernels, the same for every capability.
    fn kernels(&self) -> Vec<String> {
        let names = CAPABILITIES.map(|capability| {
            let text = fs::read_to_string(self.ptx(capability)).expect("it was just written");
            let entries = text.split(".entry ").skip(1).filter_map(|rest| rest.split('(').next());
            let mut names: Vec<String> = entries.map(str::to_string).collect();
            names.sort_unstable();
            names
        });
        assert!(names.iter().all(|n| *n == names[0]), "{} has other kernels for another capability", self.name);
        names.into_iter().next().unwrap_or_default()
    }

    /// Whether its kernels launch kernels.
    fn launches(&self) -> bool {
        LAUNCHING.contains(&self.name)
    }

    fn options(&self) -> Vec<String> {
        let mut options = ["--fatbin", "--std=c++17", "-O3", "--Werror=all-warnings"].map(str::to_string).to_vec();
        options.push(format!("--fmad={}", self.fused));
        options.extend(self.launches().then(|| "--relocatable-device-code=true".into()));
        let machine_code = machine_code() || self.launches();
        let code = |c| match machine_code {
            true => format!("--generate-code=arch=compute_{c},code=[sm_{c},compute_{c}]"),
            false => format!("--generate-code=arch=compute_{c},code=[compute_{c}]"),
        };
        options.extend(CAPABILITIES.map(code));
        options
    }
}

/// An nvcc and the cache of what it has compiled.
struct Compiler {
    nvcc: PathBuf,
    /// The folders in which nvcc looks for our headers.
    include: Vec<PathBuf>,
    /// What its parts print of their versions, their sizes, and the sizes of its headers.
    version: String,
    /// None where no cache directory can be made.
    cache: Option<PathBuf>,
}

/// Variables that add to nvcc's options or name the compiler that it calls.
const FLAGS: &[&str] = &["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"];

/// A kernel that no build has asked for in this time leaves the cache.
const KEPT: Duration = Duration::from_secs(60 * 24 * 3600);

impl Compiler {
    fn new(nvcc: PathBuf, include: Vec<PathBuf>) -> Self {
        // The parts come in packages of their own, and so do the headers: nvcc prints the release
        // of neither.
        let real = nvcc.canonicalize().unwrap_or_else(|_| nvcc.clone());
        let parts = ["nvcc", "ptxas", "fatbinary", "../nvvm/bin/cicc"].map(|part| real.with_file_name(part));
        let mut version = String::new();
        for part in parts {
            let output = Command::new(&part).arg("--version").output();
            version += &output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
            let size = fs::metadata(part).map_or(0, |m| m.len());
            writeln!(version, "{size}").expect("text grows");
        }
        for folder in ["../include", "../include/crt"] {
            let entries = fs::read_dir(real.with_file_name(folder)).into_iter().flatten().flatten();
            let size = |e: &fs::DirEntry| e.metadata().map_or(0, |m| if m.is_file() { m.len() } else { 0 });
            let mut headers: Vec<_> = entries.map(|e| (e.file_name(), size(&e))).collect();
            headers.sort_unstable();
            writeln!(version, "{headers:?}").expect("text grows");
        }
        let home = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")));
        let cache = cache.map(|c| c.join("nbody/kernels")).filter(|c| fs::create_dir_all(c).is_ok());
        Compiler { nvcc, include, version, cache }
    }

    /// The file of nvcc that a link leads to.
    fn real(&self) -> PathBuf {
        self.nvcc.canonicalize().unwrap_or_else(|_| self.nvcc.clone())
    }

    /// As 13.0.
    fn release(&self) -> String {
        let rest = self.version.split("release ").nth(1);
        rest.and_then(|rest| rest.split(',').next()).unwrap_or_default().to_string()
    }

    /// Asks for the smallest fat binary, where nvcc has the option: from 12.8 on. Drivers read it
    /// from 12.4 on, and the program asks for a driver of nvcc's own release or newer anyway.
    fn compression(&self) -> Option<&'static str> {
        let release = self.release();
        let mut numbers = release.split('.').map(|n| n.parse::<u32>().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        (found >= (12, 8)).then_some("--compress-mode=size")
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

    /// Writes the results of one job, from the cache if they are there.
    fn make(&self, job: &Job) {
        let Some(cache) = &self.cache else { return self.compile(job) };
        let (key, results) = (self.key(job), job.results());
        let kept = |ending: &str| cache.join(format!("{key}.{ending}"));
        if results.iter().all(|(ending, file)| fs::copy(kept(ending), file).is_ok()) {
            for (ending, _) in &results {
                // A file system that keeps no times costs a compilation later.
                let file = File::options().write(true).open(kept(ending));
                let _ = file.and_then(|f| f.set_modified(SystemTime::now()));
            }
            return;
        }
        self.compile(job);
        for (ending, file) in &results {
            // Written whole or not at all; without a place in the cache the build goes on.
            let part = kept(&format!("{ending}.{}", std::process::id()));
            let copy = || {
                fs::copy(file, &part)?;
                File::open(&part)?.sync_all()?;
                fs::rename(&part, kept(ending))
            };
            if copy().is_err() {
                let _ = fs::remove_file(&part);
            }
        }
    }

    /// SHA-256, in hexadecimal, of the compiler's version, the options, the variables and all text
    /// that is compiled.
    fn key(&self, job: &Job) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&self.version);
        job.options().iter().for_each(|o| add(o));
        add(self.compression().unwrap_or_default());
        FLAGS.iter().for_each(|name| add(&env::var(name).unwrap_or_default()));
        texts(&job.source, &self.include, &mut add);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Stops the build where the text is wrong.
    fn compile(&self, job: &Job) {
        // nvcc leaves the PTX among the other files that it makes on the way.
        let steps = job.out.join(format!("{}.steps", job.name));
        fs::create_dir_all(&steps).expect("cargo's folder can be written");
        let mut command = Command::new(&self.nvcc);
        command.args(job.options()).args(self.compression()).arg("--keep").arg("--keep-dir").arg(&steps);
        command.args(self.include.iter().map(|folder| format!("-I{}", folder.display())));
        let compiled = if job.launches() { steps.join("relocatable.fatbin") } else { job.binary() };
        run(command.arg("--output-file").arg(&compiled).arg(&job.source));
        if job.launches() {
            let mut command = Command::new(&self.nvcc);
            command.args(["--device-link", "--fatbin"]).args(self.compression());
            command.args(CAPABILITIES.map(|c| format!("--generate-code=arch=compute_{c},code=sm_{c}")));
            // Where nvcc's package has the library; nvcc knows the folders of an installed toolkit.
            command.arg(format!("-L{}", self.real().with_file_name("../lib").display())).arg("-lcudadevrt");
            run(command.arg("--output-file").arg(job.binary()).arg(&compiled));
        }
        for capability in CAPABILITIES {
            let text = steps.join(format!("{}.compute_{capability}.ptx", job.name));
            fs::rename(&text, job.ptx(capability)).unwrap_or_else(|e| panic!("nvcc left no {text:?}: {e}"));
        }
        let _ = fs::remove_dir_all(steps);
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

/// Runs the compiler; stops the build where it fails.
fn run(command: &mut Command) {
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!("{command:?} fails:\n{}", String::from_utf8_lossy(&output.stderr)),
        Err(e) => panic!("{command:?}: {e}"),
    }
}

/// The text of a kernel file and of every file of ours that it includes.
fn texts(source: &Path, include: &[PathBuf], add: &mut impl FnMut(&str)) {
    let text = fs::read_to_string(source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    add(&text);
    for name in text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next()) {
        let found = include.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        texts(&found.unwrap_or_else(|| panic!("{}: no {name}", source.display())), include, add);
    }
}
