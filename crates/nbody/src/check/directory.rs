//! The check of a run directory: every file, and that they belong together.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Findings;
use super::file::{Kind, examine};
use crate::convert::source::INDEX;
use crate::failure::Failure;
use crate::files::run_id;
use crate::files::series::Series;
use crate::files::{checkpoint, regular};
use crate::messages::{counted, short};
use crate::run::identity::Identity;

/// Checks all files of a run directory.
///
/// # Errors
/// 66 where it is no run directory, 74 where it cannot be read.
pub fn check(path: &Path, findings: &mut Findings) -> Result<(), Failure> {
    let names = list(path)?;
    if !names.contains(INDEX) && !names.contains("scenario.toml") {
        let line = format!("{}: no run directory, it has neither {INDEX} nor scenario.toml", path.display());
        return Err(Failure::new(66, line));
    }
    let series = match Series::read(&path.join(INDEX)) {
        Ok(series) => Some(series),
        Err(e) => {
            findings.problem(65, e.to_string());
            None
        }
    };
    let listed: Vec<(String, f64)> =
        series.iter().flat_map(|s| s.entries()).map(|e| (e.name.clone(), e.time)).collect();
    let identity = identity(path, findings)?;
    snapshots(path, &names, (&listed[..], &identity), findings)?;
    let reports = ["run.json", "timings.json"].map(|name| (name, names.contains(name).then(|| report(path, name))));
    let complete = matches!(&reports[0].1, Some(Ok(run)) if run["complete"] == true);
    let latest = resume(path, &names, findings)?;
    let part = match (&reports[0].1, &latest) {
        (Some(Ok(run)), Some((step, scenario))) => Part::of(run, *step, scenario),
        _ => None,
    };
    diagnostics(path, &names, (&listed, complete, part), findings);
    json_files(reports, findings);
    if !identity.strangers.is_empty() {
        findings.resume = Some("not possible: files of another run are here".into());
    }
    Ok(())
}

fn list(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let cannot = |e| Failure::new(74, format!("{}: cannot list the folder: {e}", path.display()));
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path).map_err(cannot)? {
        names.insert(entry.map_err(cannot)?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// The id of the run, and the files of other runs that are here.
fn identity(path: &Path, findings: &mut Findings) -> Result<Identity, Failure> {
    let identity = Identity::of_folder(path)?;
    match (identity.id, identity.mixture()) {
        (Some(id), _) => findings.note(format!("run id {id}")),
        (None, Some(mixture)) => findings.stranger(mixture),
        (None, None) => findings.note("run id: none; an older version wrote these files"),
    }
    identity.problems().into_iter().for_each(|problem| findings.stranger(problem));
    if !identity.without.is_empty() {
        findings.note(format!("without a run id: {}", identity.without.join(", ")));
    }
    Ok(identity)
}

/// Each snapshot, and whether it agrees with the index and with the first one.
fn snapshots(
    path: &Path,
    names: &BTreeSet<String>,
    (listed, identity): (&[(String, f64)], &Identity),
    findings: &mut Findings,
) -> Result<(), Failure> {
    let own = identity.id;
    let mut ids: Option<Vec<u64>> = None;
    let mut whole = true;
    for (name, time) in listed {
        if !names.contains(name) {
            findings.problem(65, format!("{name}: named by {INDEX} but not there"));
            whole = false;
            continue;
        }
        let s = match examine(&path.join(name), findings)? {
            Kind::Snapshot(s) => s,
            Kind::Grid(about) => {
                if about.time != *time {
                    findings.problem(65, format!("{name}: its time is {}, that of {INDEX} is {time}", about.time));
                }
                continue;
            }
            _ => {
                whole = false;
                continue;
            }
        };
        // A snapshot of another run is named as one already.
        if identity.is_stranger(name) {
            continue;
        }
        if s.time != *time {
            findings.problem(65, format!("{name}: its time is {}, that of {INDEX} is {time}", s.time));
        }
        match &ids {
            None => ids = Some(s.id),
            Some(first) if *first != s.id => {
                findings.problem(65, format!("{name}: its particles are not those of the first snapshot"));
            }
            Some(_) => {}
        }
    }
    let known = |name: &str| listed.iter().any(|(n, _)| n == name);
    let named = |name: &str| known(name) || identity.is_stranger(name);
    let numbered = |n: &str| (n.starts_with("snap_") || n.starts_with("grid_")) && n.ends_with(".hdf");
    for name in names.iter().filter(|n| numbered(n) && !named(n)) {
        let why = match own.is_some() && run_id::of_file(&path.join(name)).is_ok_and(|id| id == own) {
            true => "a full disk or a kill left it so; nbody run --resume DIR repairs it",
            false => "left by another run?",
        };
        findings.problem(65, format!("{name}: not named by {INDEX}, {why}"));
    }
    if whole {
        // The names are part of it, so that an exchange of two snapshots shows.
        let mut hash = Sha256::new();
        for (sha, name) in &findings.hashes {
            hash.update(format!("{sha}  {name}\n"));
        }
        let sha = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        findings.hashes.push((sha, path.display().to_string()));
    }
    Ok(())
}

/// The last part of a run, which one scenario has written: the whole of it where it was not resumed.
struct Part {
    /// The step of the checkpoint that it went on from.
    from: Option<f64>,
    /// Time between lines of `diagnostics.csv`.
    every: f64,
}

impl Part {
    /// That of `run.json` and of the scenario in the latest checkpoint, of this step; `None` where these are not of one part, or there
    /// is no interval.
    fn of(run: &serde_json::Value, step: u64, scenario: &str) -> Option<Part> {
        let scenario: toml::Table = scenario.parse().ok()?;
        let every = scenario.get("output")?.get("diagnostics_every")?;
        let every = every.as_float().or(every.as_integer().map(|n| n as f64))?;
        (every > 0.0 && run["steps"] == step).then(|| Part { from: run["resumed_from_step"].as_f64(), every })
    }

    /// The time of a line that is not there. Earlier parts may have had another interval or another step.
    fn lost(&self, steps: &[f64], times: &[f64]) -> Option<f64> {
        let before = |from: f64| steps.iter().rposition(|step| *step <= from).map_or(0, |last| last + 1);
        let own = &times[self.from.map_or(0, before)..];
        let next = |time: f64| ((time / self.every + 1e-6).floor() + 1.0) * self.every;
        own.windows(2).find(|w| w[1] > next(w[0]) + 1e-6 * self.every).map(|w| next(w[0]))
    }
}

/// Whether every line has as many finite numbers as there are columns, in order of time, and those of the first snapshot and of the last
/// one of a complete run are there, and all between that the last part of the run has written.
fn diagnostics(
    path: &Path,
    names: &BTreeSet<String>,
    (listed, complete, part): (&[(String, f64)], bool, Option<Part>),
    findings: &mut Findings,
) {
    const NAME: &str = "diagnostics.csv";
    if !names.contains(NAME) {
        findings.note(format!("{NAME}: none"));
        return;
    }
    match crate::files::columns::read_columns(&path.join(NAME)) {
        Err(e) => findings.problem(e.exit_code(), e.to_string()),
        Ok(columns) => {
            // By time: with a longer step, which --force allows, a later line has a smaller number.
            let column =
                |name: &str| columns.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice()).unwrap_or_default();
            let (steps, times) = (column("step"), column("time"));
            let ends = [listed.first(), listed.last().filter(|_| complete)];
            let lacking = ends.into_iter().flatten().find(|(_, time)| !times.contains(time));
            let lost = part.and_then(|part| part.lost(steps, times));
            match (times.windows(2).find(|w| w[0] >= w[1]), lacking, lost) {
                (Some(w), ..) => findings.problem(65, format!("{NAME}: time {} comes after time {}", w[1], w[0])),
                (None, Some((name, time)), _) => {
                    findings
                        .problem(65, format!("{NAME}: no line of time {time}, when {name} was taken: lines are lost"));
                }
                (None, None, Some(time)) => {
                    let time = short(time);
                    let what = format!(
                        "{NAME}: no line of time {time}, which output.diagnostics_every asks for: lines are lost"
                    );
                    findings.problem(65, what);
                }
                (None, None, None) => findings.note(format!("{NAME}: {}", counted(times.len(), "line"))),
            }
        }
    }
}

/// The content of a JSON file, or the exit code and the text of what is wrong with it.
type Report = Result<serde_json::Value, (u8, String)>;

fn report(path: &Path, name: &str) -> Report {
    let text = regular::read(&path.join(name), regular::REPORT).map_err(|e| (e.exit_code(), e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| (65, e.to_string()))
}

fn json_files(reports: [(&str, Option<Report>); 2], findings: &mut Findings) {
    for (name, report) in reports {
        match report {
            None => findings.note(format!("{name}: none; the run goes on, or was ended by force")),
            Some(Err((code, e))) => findings.problem(code, format!("{name}: {e}")),
            Some(Ok(_)) => findings.note(name),
        }
    }
}

/// Both checkpoints, and from which of them the run would go on: its step and scenario.
fn resume(path: &Path, names: &BTreeSet<String>, findings: &mut Findings) -> Result<Option<(u64, String)>, Failure> {
    // By time, as a run does.
    let mut best: Option<(u64, f64, &str, String)> = None;
    let hashes = findings.hashes.len();
    for name in checkpoint::NAMES.into_iter().filter(|n| names.contains(*n)) {
        if let Kind::Checkpoint(step, time, scenario) = examine(&path.join(name), findings)?
            && best.as_ref().is_none_or(|&(s, t, ..)| (t, s) < (time, step))
        {
            best = Some((step, time, name, scenario));
        }
    }
    // When checkpoints are written depends on the clock: they are no part of what a run computed.
    findings.hashes.truncate(hashes);
    findings.resume = Some(match &best {
        Some((step, time, name, _)) => {
            format!("from {name} at step {step}, time {time}: nbody run --resume {}", path.display())
        }
        None => "not possible: there is no whole checkpoint".to_string(),
    });
    Ok(best.map(|(step, .., scenario)| (step, scenario)))
}
