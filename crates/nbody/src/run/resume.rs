//! Going on from a checkpoint: which one, and whether it is still the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Options;
use super::directory::on_grid;
use crate::fault::Fault;
use crate::files::checkpoint::{self, Latest};
use crate::scenario::Scenario;
use crate::scenario::document::{self, Item, Override, Value};

/// Keys that may change: how long, how often and what is told, but not what is computed or the format of the output.
const FREE: [&str; 6] =
    ["title", "time.end", "output.directory", "output.every", "output.diagnostics_every", "output.checkpoint_wall"];
/// Differences that are listed; more would bury them.
const LISTED: usize = 20;

/// A run to be continued.
pub struct Resumed {
    /// What it does from now on.
    pub scenario: Scenario,
    /// What it did before.
    pub before: Scenario,
    /// Where it is.
    pub latest: Latest,
}

/// Refuses what is no folder.
pub fn must_be_folder(folder: &Path) -> Result<(), Fault> {
    if folder.is_dir() {
        return Ok(());
    }
    let line = format!("{}: no such run directory; --resume takes the folder of an earlier run", folder.display());
    Err(Fault::new(66, line))
}

/// Reads the newest whole checkpoint of `folder`.
pub fn latest(folder: &Path) -> Result<Latest, Fault> {
    checkpoint::latest(folder)?.ok_or_else(|| {
        if on_grid(folder) {
            let why = "a run on a grid, which cannot be resumed; run its scenario.toml anew, with --out DIR or --force";
            return Fault::new(66, format!("{}: {why}", folder.display()));
        }
        let line = format!(
            "{}: there is no checkpoint to go on from; a run writes one at its start, when it is stopped, when it ends \
             and every output.checkpoint_wall. Without --resume, --force starts again from the beginning",
            folder.display()
        );
        Fault::new(66, line)
    })
}

/// The scenario of the continued run, checked against that of the checkpoint.
///
/// # Errors
/// 65 for physics that differ without `--force`, and for an end before the checkpoint.
pub fn resume(asked: Option<Scenario>, latest: Latest, options: &Options, sets: &[Override]) -> Result<Resumed, Fault> {
    let (state, name) = (&latest.checkpoint, latest.path.display().to_string());
    let before = Scenario::parse_resumed(&name, state.scenario.clone(), &[])?;
    let mut scenario = match asked {
        Some(scenario) => scenario,
        None => Scenario::parse_resumed(&name, state.scenario.clone(), sets)?,
    };
    let differences = differences(&before, &scenario, state.id.len());
    if !differences.is_empty() && !options.force {
        return Err(refuse(&name, &differences));
    }
    let step = scenario.clock.steps(state.time).map_err(|_| {
        Fault::new(65, format!("time.dt = {} does not divide the checkpoint's time {}", scenario.clock.dt, state.time))
    })?;
    if scenario.charged() && state.charge.is_none() {
        return Err(Fault::new(65, format!("{name}: holds no charges, which force.law = \"coulomb\" needs")));
    }
    if let Some(steps) = options.steps {
        scenario.steps = step + steps;
    }
    if scenario.steps < step {
        let line = format!(
            "{name}: the run has come to time {} already, past the end {} that is asked for; name a later one with \
             --until T",
            state.time,
            scenario.end()
        );
        return Err(Fault::new(65, line));
    }
    Ok(Resumed { scenario, before, latest })
}

fn refuse(name: &str, differences: &[String]) -> Fault {
    let mut line = format!("{name}: the scenario is not the one that this run began with:\n");
    differences.iter().take(LISTED).for_each(|d| line.push_str(&format!("  {d}\n")));
    if differences.len() > LISTED {
        line.push_str(&format!("  and {} more\n", differences.len() - LISTED));
    }
    line.push_str(
        "time.end, output.every, output.diagnostics_every, output.checkpoint_wall, title, [verify] and --threads may \
         change; --force goes on with the rest as well, from the particles of the checkpoint",
    );
    Fault::new(65, line)
}

/// The keys in which two scenarios differ though they should not, each in a line.
fn differences(before: &Scenario, now: &Scenario, particles: usize) -> Vec<String> {
    let [before, now] = [before, now].map(|s| values(&s.resolved(None, particles)));
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let fixed = keys.into_iter().filter(|k| !FREE.contains(&k.as_str()) && !k.starts_with("verify."));
    let absent = "absent".to_string();
    let value = |of: &BTreeMap<String, String>, key: &String| of.get(key).unwrap_or(&absent).clone();
    let pairs = fixed.map(|k| (k, value(&before, k), value(&now, k)));
    pairs.filter(|(_, a, b)| a != b).map(|(k, a, b)| format!("{k}: {a} in the checkpoint, {b} now")).collect()
}

/// Every key with its value, as `section.key`.
pub(super) fn values(text: &str) -> BTreeMap<String, String> {
    fn walk(name: &str, item: &Item, all: &mut BTreeMap<String, String>) {
        let inside = |key: &str| if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
        match &item.value {
            Value::Table(entries) => entries.iter().for_each(|(k, v)| walk(&inside(&k.name), v, all)),
            Value::Array(list) if list.iter().any(|i| matches!(i.value, Value::Table(_))) => {
                list.iter().enumerate().for_each(|(i, v)| walk(&inside(&i.to_string()), v, all));
            }
            value => drop(all.insert(name.to_string(), told(value))),
        }
    }
    let mut all = BTreeMap::new();
    // What the program wrote itself it can read.
    if let Ok(root) = document::parse(text, 0) {
        walk("", &root, &mut all);
    }
    all
}

fn told(value: &Value) -> String {
    match value {
        Value::String(s) => format!("\"{s}\""),
        Value::Integer(i) => i.map_or("a number of more than 64 bits".into(), |i| i.to_string()),
        Value::Float(x) => format!("{x:?}"),
        Value::Boolean(b) => b.to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(|i| told(&i.value)).collect::<Vec<_>>().join(", ")),
        Value::Table(_) | Value::Datetime => value.kind().into(),
    }
}

/// The command that goes on with the run in `folder`, as a shell takes it.
pub fn command(folder: &Path) -> String {
    let name = folder.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    let quoted = if name.chars().all(plain) && !name.starts_with('-') {
        name.into_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    };
    format!("nbody run --resume {quoted}")
}

/// The run directory that the options name, if they do.
pub fn folder(options: &Options) -> Option<PathBuf> {
    options.resume.clone().flatten().or_else(|| options.out.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(differences(&before, &scenario(&free), 10), [""; 0]);
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
            assert_eq!(differences(&before, &scenario(&[set]), 10), [line]);
        }
    }

    #[test]
    fn folders_are_quoted_for_the_shell() {
        assert_eq!(command(Path::new("out/a-1")), "nbody run --resume out/a-1");
        assert_eq!(command(Path::new("my run's")), r"nbody run --resume 'my run'\''s'");
    }
}
