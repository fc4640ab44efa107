//! Going on from a checkpoint: which one, and whether it is still the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Options;
use super::directory::{Rewind, RunDirectory, has_section};
use super::kept;
use super::plan::Plan;
use crate::failure::Failure;
use crate::files::checkpoint::{self, Latest, State};
use crate::scenario::document::{self, Override};
use fmm::Device;

/// Keys that may change: how long, how often and what is reported, but not what is computed or the
/// format of the output.
const FREE: [&str; 6] =
    ["title", "time.end", "output.directory", "output.every", "output.diagnostics_every", "output.checkpoint_wall"];
/// A key whose value may go from one GPU to another or to several, which have the same bits.
const DEVICE: &str = "solver.device";
/// Differences that are listed; more would bury them.
const LISTED: usize = 20;

/// A scenario whose runs can be resumed.
pub trait Resumable: Sized {
    /// Reads the resolved scenario of a checkpoint, which needs no other files any more.
    ///
    /// # Errors
    /// 65 with all mistakes.
    fn parse_resumed(name: &str, text: String, sets: &[Override]) -> Result<Self, Failure>;

    /// Its steps.
    fn plan(&self) -> Plan;

    /// Has a run end after so many steps.
    fn set_steps(&mut self, steps: u64);

    /// Its run directory.
    fn directory(&mut self) -> &mut PathBuf;

    /// The text that it was read from.
    fn text(&self) -> &str;

    /// The scenario with every value, of a run with this state.
    fn resolved_of(&self, state: &State) -> String;

    /// The columns of its `diagnostics.csv`.
    fn columns(&self) -> String;

    /// Refuses what several ranks do not run.
    ///
    /// # Errors
    /// 65 with what it is; `name` is the file.
    fn check_for_ranks(&self, name: &str) -> Result<(), Failure>;

    /// Refuses a state that it cannot go on from, not even by force; the run until then was `before`.
    ///
    /// # Errors
    /// What is wrong, without the name of the file.
    fn check(&self, before: &Self, state: &State) -> Result<(), String>;
}

/// A run to be continued.
pub struct Resumed<S> {
    /// What it does from now on.
    pub scenario: S,
    /// Where it is.
    pub latest: Latest,
    /// Number of its files of fields, where the checkpoint knows.
    pub files: Option<u64>,
}

/// Takes the directory of an earlier run, and reads its newest whole checkpoint; a damaged one is named on stderr.
///
/// # Errors
/// 66 where there is none, 74 if another process is at work there, 65 for damage and files of another run.
pub fn open(folder: &Path) -> Result<(RunDirectory, Latest), Failure> {
    if !folder.is_dir() {
        let line = format!("{}: no such run directory; --resume takes the folder of an earlier run", folder.display());
        return Err(Failure::new(66, line));
    }
    let directory = RunDirectory::open(folder)?;
    let latest = latest(folder)?;
    let (path, state) = (latest.path.display(), &latest.checkpoint.state);
    if let Some(gridded) = has_section(folder, "grid")
        && gridded != matches!(state, State::Flow(_))
    {
        let other = if gridded { "with a [grid]" } else { "of particles" };
        let line = format!("{path}: a checkpoint of {}, in the directory of a run {other}", state.kind());
        return Err(Failure::new(65, line));
    }
    if let Some(damage) = &latest.damaged {
        let step = latest.checkpoint.step;
        crate::console::tell(format_args!("nbody: warning: {damage}; going on from {path}, step {step}"));
    }
    Ok((directory, latest))
}

/// The newest whole checkpoint of `folder`.
fn latest(folder: &Path) -> Result<Latest, Failure> {
    checkpoint::latest(folder)?.ok_or_else(|| {
        if has_section(folder, "grid") == Some(true) && has_section(folder, "time") == Some(false) {
            let why = "a solution on a grid without [time], which has no steps to go on with";
            return Failure::new(66, format!("{}: {why}", folder.display()));
        }
        let line = format!(
            "{}: there is no checkpoint to go on from; a run writes one at its start, when it is stopped, when it ends \
             and every output.checkpoint_wall. Without --resume, --force starts again from the beginning",
            folder.display()
        );
        Failure::new(66, line)
    })
}

/// The continued run, whose scenario is compared with that of the checkpoint, and its directory brought back to there.
///
/// # Errors
/// 65 for physics that differ without `--force`, for an end before the checkpoint, and for files that are not those of the run; 74 for
/// files that cannot be written. Before 74 nothing has been changed.
pub fn go_on<S: Resumable>(
    asked: Option<S>,
    (mut directory, mut latest): (RunDirectory, Latest),
    options: &Options,
) -> Result<(RunDirectory, Resumed<S>), Failure> {
    let given = asked.as_ref().map(|s| s.text().to_owned());
    let (state, name) = (&latest.checkpoint, latest.path.display().to_string());
    let mut scenario = match asked {
        Some(scenario) => scenario,
        None => S::parse_resumed(&name, state.scenario.clone(), &options.overrides())?,
    };
    if options.ranks.is_some() {
        scenario.check_for_ranks(&name)?;
    }
    let now = document::values(&scenario.resolved_of(&state.state));
    let before = S::parse_resumed(&name, state.scenario.clone(), &places(&state.scenario, &now))?;
    let differences = differences([&before, &scenario].map(|s| s.resolved_of(&state.state)));
    if !differences.is_empty() && !options.force {
        return Err(refuse(&name, &differences));
    }
    let clock = scenario.plan().clock;
    let step = clock.steps(state.time).map_err(|_| {
        Failure::new(65, format!("time.dt = {} does not divide the checkpoint's time {}", clock.dt, state.time))
    })?;
    scenario.check(&before, &state.state).map_err(|what| Failure::new(65, format!("{name}: {what}")))?;
    if let Some(steps) = options.steps {
        scenario.set_steps(step + steps);
    }
    let (old, new) = (before.plan(), scenario.plan());
    if new.steps < step {
        let line = format!(
            "{name}: the run has reached time {} already, past the end {} that is asked for; name a later one with \
             --until T",
            state.time,
            clock.time(new.steps)
        );
        return Err(Failure::new(65, line));
    }
    *scenario.directory() = directory.path().to_owned();
    // What the earlier run wrote only because it ended, and this one would not have written in passing.
    let ended = |every_before: u64, every_now: u64| {
        state.step > 0
            && step < new.steps
            && !state.step.is_multiple_of(every_before)
            && !step.is_multiple_of(every_now)
    };
    let surplus = [ended(old.snapshot_every, new.snapshot_every), ended(old.diagnostics_every, new.diagnostics_every)];
    let files = state.number(FILES).map(|n| n as u64);
    let last = state.number(LAST_FILE) == Some(state.step as f64) && surplus[0];
    let files = files.map(|n| n.saturating_sub(u64::from(last)));
    let columns = before.columns();
    let back = Rewind { time: state.time, dt: old.clock.dt, columns: &columns, surplus, files };
    directory.rewind(&latest, &back)?;
    if let Some(text) = given {
        directory.write_given(&text)?;
    }
    if !differences.is_empty() {
        // It belongs to other settings.
        kept::forget(&mut latest.checkpoint.numbers);
    }
    Ok((directory, Resumed { scenario, latest, files }))
}

/// What checkpoints call the number of files of fields.
pub const FILES: &str = "files";
/// What they call the step of the last one.
pub const LAST_FILE: &str = "last_file_step";

fn refuse(name: &str, differences: &[String]) -> Failure {
    let mut line = format!("{name}: the scenario is not the one that this run began with:\n");
    differences.iter().take(LISTED).for_each(|d| line.push_str(&format!("  {d}\n")));
    if differences.len() > LISTED {
        line.push_str(&format!("  and {} more\n", differences.len() - LISTED));
    }
    line.push_str(
        "time.end, output.every, output.diagnostics_every, output.checkpoint_wall, title, [verify], --threads \
         and the number of GPUs may change; --force goes on with the rest as well, from the state of the checkpoint",
    );
    Failure::new(65, line)
}

/// Whether a key says where the surface of a body lies. It may have moved: its digest says whether
/// it is the same.
fn is_place(key: &str) -> bool {
    key.starts_with("bodies.") && key.ends_with(".path")
}

/// Where the surfaces of a scenario lie now.
fn places(text: &str, now: &BTreeMap<String, String>) -> Vec<Override> {
    let keys = document::values(text).into_keys().filter(|key| is_place(key));
    keys.filter_map(|key| Some(Override::set(format!("{key}={}", now.get(&key)?)))).collect()
}

/// The keys in which two resolved scenarios differ though they should not, each in a line.
fn differences(scenarios: [String; 2]) -> Vec<String> {
    let [before, now] = scenarios.map(|text| document::values(&text));
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let is_free = |k: &str| FREE.contains(&k) || k.starts_with("verify.") || is_place(k);
    let fixed = keys.into_iter().filter(|k| !is_free(k));
    let absent = "absent".to_string();
    let value = |of: &BTreeMap<String, String>, key: &String| of.get(key).unwrap_or(&absent).clone();
    let pairs = fixed.map(|k| (k, value(&before, k), value(&now, k)));
    let gpus = |key: &str, values: [&str; 2]| {
        let is_gpu = |value: &str| value.trim_matches('"').parse::<Device>().is_ok_and(|d| d.gpu().is_some());
        key == DEVICE && values.into_iter().all(is_gpu)
    };
    let differ = |(k, a, b): &(&String, String, String)| a != b && !gpus(k, [a, b]);
    pairs.filter(differ).map(|(k, a, b)| format!("{k}: {a} in the checkpoint, {b} now")).collect()
}

/// The command that goes on with the run in `folder`, as a shell takes it, on as many `ranks`.
pub fn command(folder: &Path, ranks: Option<usize>) -> String {
    let name = folder.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    let quoted = if name.chars().all(plain) && !name.starts_with('-') {
        name.into_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    };
    let program = ranks.map_or("nbody".into(), |ranks| format!("mpirun -n {ranks} nbody-mpi"));
    format!("{program} run --resume {quoted}")
}

/// The run directory that the options name, if they do.
pub fn folder(options: &Options) -> Option<PathBuf> {
    options.resume.clone().flatten().or_else(|| options.out.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn differences(before: &Scenario, now: &Scenario) -> Vec<String> {
        super::differences([before, now].map(|s| s.resolved(None, 10)))
    }

    fn scenario(sets: &[&str]) -> Scenario {
        let text = "[[particles]]\nmodel='plummer'\nn=10\n[time]\ndt=0.1\nend=1\n".to_string();
        let sets: Vec<Override> = sets.iter().map(|s| Override::set(*s)).collect();
        Scenario::parse("a.toml", text, None, &sets).unwrap_or_else(|p| panic!("{}", p.render(false)))
    }

    #[test]
    fn what_may_change_and_what_may_not() {
        let before = scenario(&[]);
        let free = [
            "title=other",
            "time.end=2.0",
            "output.every=0.5",
            "output.diagnostics_every=0.1",
            "verify.sample=9",
            "output.checkpoint_wall='1h'",
            "output.directory=elsewhere",
        ];
        assert_eq!(differences(&before, &scenario(&free)), [""; 0]);
        for (set, line) in [
            ("time.dt=0.05", "time.dt: 0.1 in the checkpoint, 0.05 now"),
            ("solver.order=4", "solver.order: absent in the checkpoint, 4 now"),
            ("particles.0.n=11", "particles.0.n: 10 in the checkpoint, 11 now"),
            ("run.seed=1", "run.seed: 0 in the checkpoint, 1 now"),
            ("output.precision=f32", "output.precision: \"f64\" in the checkpoint, \"f32\" now"),
            (
                "particles.0.position=[1,2,3]",
                "particles.0.position: [0.0, 0.0, 0.0] in the checkpoint, [1.0, 2.0, 3.0] now",
            ),
        ] {
            assert_eq!(differences(&before, &scenario(&[set])), [line]);
        }
        let on = |device: &str| scenario(&[&format!("solver.device='{device}'")]);
        for [before, now] in [["cuda", "cuda:1"], ["cuda:0,cuda:1", "cuda:0"], ["cuda:0", "cuda:all"]] {
            assert_eq!(differences(&on(before), &on(now)), [""; 0], "{before} {now}");
        }
        for [before, now] in [["cuda", "cpu"], ["cpu", "cuda:0,cuda:1"], ["auto", "cuda:0"]] {
            assert_eq!(differences(&on(before), &on(now)).len(), 1, "{before} {now}");
        }
    }

    #[test]
    fn folders_are_quoted_for_the_shell() {
        assert_eq!(command(Path::new("out/a-1"), None), "nbody run --resume out/a-1");
        assert_eq!(command(Path::new("my run's"), None), r"nbody run --resume 'my run'\''s'");
        assert_eq!(command(Path::new("a"), Some(3)), "mpirun -n 3 nbody-mpi run --resume a");
    }
}
