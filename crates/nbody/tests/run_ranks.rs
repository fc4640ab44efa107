//! Runs over ranks, which are threads here: the bits of a single process, files in pieces, and ranks that fail.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fmm_core::comm::{self, Comm, Threads};
use nbody::console::last_words;
use nbody::files::checkpoint::{self, Checkpoint};
use nbody::run::{self, Options, ranks};

const CLUSTER: &str = r#"
[force]
softening = { kernel = "plummer", length = 0.05 }
[[particles]]
model = "plummer"
n = 500
[solver]
tolerance = 1e-3
method = "fmm"
[time]
dt = 0.01
end = 0.5
[output]
every = 0.13
diagnostics_every = 0.1
fields = ["position", "velocity", "potential", "acceleration", "force_error"]
"#;

/// A folder with a scenario.
struct Case(tempfile::TempDir);

impl Case {
    fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("case.toml"), scenario).unwrap();
        Case(folder)
    }

    /// The options of a run into `out` with `threads`.
    fn options(&self, out: &str, threads: usize) -> Options {
        Options {
            scenario: Some(self.0.path().join("case.toml")),
            out: Some(self.0.path().join(out)),
            threads: Some(threads),
            device: Some("cpu".parse().unwrap()),
            quiet: true,
            ..Options::default()
        }
    }

    /// What a run left of what it computed, by file.
    fn data(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.0.path().join(out);
        let names = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let ours = names.filter(|n| n.starts_with("snap_") || n == "diagnostics.csv" || n == "run.hdf.series");
        ours.map(|n| (n.clone(), fs::read(folder.join(&n)).unwrap())).collect()
    }

    /// The last checkpoint of a run, without the times that it remembers and its scenario, which names the folder.
    fn checkpoint(&self, out: &str) -> Checkpoint {
        let mut checkpoint = checkpoint::latest(&self.0.path().join(out)).unwrap().unwrap().checkpoint;
        checkpoint.scenario.clear();
        checkpoint
            .numbers
            .retain(|(n, _)| !n.ends_with("_seconds") && !n.ends_with("_calls") && n != "timed_from_step");
        checkpoint
    }

    fn assert_same(&self, a: &str, b: &str) {
        let [one, other] = [a, b].map(|out| self.data(out));
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{a} and {b}");
        for (name, bytes) in &one {
            assert!(*bytes == other[name], "{name} differs in {a} and {b}");
        }
        assert!(self.checkpoint(a) == self.checkpoint(b), "the checkpoints of {a} and {b} differ");
    }
}

/// The exit codes of a run on so many ranks, and the message of the first.
fn on_ranks(size: usize, options: &Options) -> (Vec<u8>, String) {
    let ended = comm::run(size, |comm| {
        ranks::run(comm, options).map_or_else(|f| (f.code, f.render(false)), |()| (0, String::new()))
    });
    let (codes, mut texts): (Vec<u8>, Vec<String>) = ended.expect("no rank aborts").into_iter().unzip();
    (codes, texts.swap_remove(0))
}

fn done_on_ranks(size: usize, options: &Options) {
    assert_eq!(on_ranks(size, options), (vec![0; size], String::new()), "{size} ranks, {options:?}");
}

fn resumed(options: Options) -> Options {
    Options { resume: Some(None), ..options }
}

#[test]
fn a_resumed_run_has_one_hash_for_any_number_of_ranks_and_threads() {
    let scenario = CLUSTER.replace("n = 500", "n = 300").replace("every = 0.13", "every = 0.23");
    let case = Case::new(&scenario.replace("diagnostics_every = 0.1", "diagnostics_every = 0.2"));
    run::run(&case.options("whole", 1)).unwrap();
    let sizes = [1, 2, 3, 4, 8];
    // Every number of ranks makes the first steps of a run with a thread each, and the last ones of another with two.
    for (k, size) in sizes.into_iter().enumerate() {
        let out = size.to_string();
        done_on_ranks(size, &Options { steps: Some(19 + k as u64), ..case.options(&out, 1) });
        done_on_ranks(sizes[(k + 2) % sizes.len()], &resumed(case.options(&out, 2)));
        case.assert_same("whole", &out);
    }
}

#[test]
fn checkpoints_of_one_process_go_on_on_ranks_and_back() {
    let scenario = CLUSTER.replace("end = 0.5", "end = 0.2");
    for more in ["", "law = \"coulomb\"\n", "integrator"] {
        let scenario = match more {
            "integrator" => scenario.replace("dt = 0.01", "dt = 0.01\nintegrator = \"yoshida4\""),
            _ => scenario.replace("[force]\n", &format!("[force]\n{more}")),
        };
        let scenario = match more.contains("coulomb") {
            true => {
                scenario.replace("model = \"plummer\"\nn = 500", "model = \"uniform-sphere\"\nn = 500\ncharge = 2.0")
            }
            false => scenario,
        };
        let case = Case::new(&scenario);
        run::run(&case.options("whole", 2)).unwrap();
        let part = case.options("parts", 1);
        run::run(&Options { steps: Some(7), ..part.clone() }).unwrap();
        // It ends before the wall time is over, with a checkpoint in passing.
        let (codes, text) = on_ranks(3, &resumed(Options { max_wall: Some(Duration::ZERO), ..part.clone() }));
        assert_eq!(codes, [75; 3], "{text}");
        assert!(text.contains("stopped before --max-wall is over after step 8"), "{text}");
        assert!(text.contains("mpirun -n 3 nbody-mpi run --resume"), "{text}");
        done_on_ranks(2, &resumed(Options { steps: Some(5), ..part.clone() }));
        run::run(&resumed(part)).unwrap();
        case.assert_same("whole", "parts");
    }
}

#[test]
fn particles_with_several_homes_leave_the_files_of_one_process() {
    let scenario = CLUSTER.replace("n = 500", "n = 40000").replace("end = 0.5", "end = 0.02").replace("1e-3", "1e-2");
    let case = Case::new(&scenario);
    run::run(&case.options("whole", 2)).unwrap();
    done_on_ranks(3, &case.options("three", 1));
    case.assert_same("whole", "three");
}

#[test]
fn fewer_particles_than_ranks_run() {
    let case = Case::new("[[particles]]\nmodel = \"figure-eight\"\n[time]\ndt = 0.01\nend = 0.1\n");
    run::run(&case.options("one", 1)).unwrap();
    done_on_ranks(8, &case.options("eight", 1));
    case.assert_same("one", "eight");
}

#[test]
fn what_ranks_do_not_do_is_refused_before_anything_is_written() {
    let case = Case::new(CLUSTER);
    for (set, says) in [
        ("verify.sample=9", "verify.action = \"warn\" is not done by several ranks; leave out verify"),
        ("solver.device=cuda", "solver.device = \"cuda:0\" is not done by several ranks; allowed: \"auto\" or \"cpu\""),
        (
            "force.law=coulomb;particles.0={model='uniform-sphere',n=9,charge=1.0};force.exclusions=[[0,1]]",
            "force.exclusions = [[0, 1]] is not done by several ranks",
        ),
        (
            "force.softening.kernel=spline;boundary={kind='periodic',side=9.0}",
            "boundary.kind = \"periodic\" is not done by several ranks",
        ),
        ("external={potential='point-mass',mass=1.0}", "external."),
    ] {
        let options =
            Options { device: None, sets: set.split(';').map(String::from).collect(), ..case.options("out", 1) };
        let (codes, text) = on_ranks(2, &options);
        assert_eq!(codes, [65; 2], "{set}: {text}");
        assert!(text.contains("case.toml: ") && text.contains(says), "{set}: {text}");
        assert!(!case.0.path().join("out").exists(), "{set}");
    }
    let (codes, text) = on_ranks(2, &Options { dry_run: true, ..case.options("out", 1) });
    assert!(codes == [2; 2] && text.contains("--dry-run"), "{text}");
    let grid = Case::new(include_str!("../../../scenarios/vortex-rings.toml"));
    let (codes, text) = on_ranks(2, &Options { device: None, ..grid.options("out", 1) });
    assert!(codes == [65; 2] && text.contains("case.toml: has a [grid]"), "{text}");
    // Nor does a checkpoint go on with what they do not do.
    let checked = Options { sets: vec!["verify.sample=9".into()], ..case.options("checked", 1) };
    run::run(&Options { steps: Some(1), ..checked }).unwrap();
    let before = case.data("checked");
    let (codes, text) = on_ranks(2, &Options { scenario: None, ..resumed(case.options("checked", 1)) });
    assert!(codes == [65; 2] && text.contains("verify.action"), "{text}");
    assert!(case.data("checked") == before);
}

/// A rank whose messages end after some exchanges: it panics.
struct Failing<'a> {
    comm: &'a Threads,
    left: AtomicUsize,
}

impl Comm for Failing<'_> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn sum(&self, values: &mut [u64]) {
        self.comm.sum(values);
    }

    fn max(&self, values: &mut [f64]) {
        self.comm.max(values);
    }

    fn all_gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        assert!(self.rank() != 1 || left > 0, "a rank is out");
        self.comm.all_gather(own)
    }

    fn all_to_all(&self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.comm.all_to_all(messages)
    }

    fn barrier(&self) {
        self.comm.barrier();
    }

    fn abort(&self, code: i32) -> ! {
        self.comm.abort(code)
    }
}

#[test]
fn a_rank_that_panics_ends_the_run_which_goes_on_from_its_last_checkpoint() {
    let case = Case::new(&CLUSTER.replace("end = 0.5", "end = 0.1"));
    run::run(&case.options("whole", 1)).unwrap();
    let options = case.options("broken", 1);
    done_on_ranks(2, &Options { steps: Some(3), ..options.clone() });
    let again = resumed(options);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        comm::run(3, |comm| ranks::run(&Failing { comm, left: AtomicUsize::new(150) }, &again).is_ok())
    }));
    let payload = panicked.expect_err("a panic");
    assert!(payload.downcast_ref::<&str>().is_some_and(|m| m.contains("a rank is out")));
    let words = last_words();
    assert!(words.contains("The last checkpoint is that of step 3"), "{words}");
    let broken = case.0.path().join("broken");
    assert!(words.contains(&format!("mpirun -n 3 nbody-mpi run --resume {}", broken.display())), "{words}");
    assert!(is_incomplete(&broken), "the run was over before the panic");
    done_on_ranks(2, &again);
    case.assert_same("whole", "broken");
}

fn is_incomplete(folder: &Path) -> bool {
    checkpoint::latest(folder).unwrap().unwrap().checkpoint.step < 10
}
