//! Which run the files of a directory belong to.

use std::collections::BTreeMap;
use std::path::Path;

use super::names::{is_ours, names};
use crate::failure::Failure;
use crate::files::run_id::{self, RunId};
use crate::initial::Initial;
use crate::scenario::{Scenario, document};

/// What of a scenario is no physics: names, outputs, checks, the way forces are summed, and the end, which may be moved.
const OTHER: [&str; 5] = ["title", "time.end", "output.", "verify.", "solver."];
/// Strangers that are named; more would bury the message.
const NAMED: usize = 10;

/// Where a table lies: its numbers are in the initial state.
const PATH: &str = ".path";

fn of(resolved: &str, state: &[&[f64]]) -> RunId {
    let values = document::values(resolved);
    let other = |k: &str| OTHER.iter().any(|o| k == *o || o.ends_with('.') && k.starts_with(o)) || k.ends_with(PATH);
    let physics = values.iter().filter(|(k, _)| !other(k));
    run_id::of(physics.map(|(k, v)| (k.as_str(), v.as_str())), state)
}

/// The id of a run of particles.
pub fn of_particles(scenario: &Scenario, i: &Initial) -> RunId {
    let state = [i.position.as_flattened(), i.velocity.as_flattened(), &i.mass, &i.charge];
    of(&scenario.resolved(None, i.len()), &state)
}

/// The id of a run on a grid with this resolved scenario, and this vorticity at its start.
pub fn of_grid(resolved: &str, vorticity: &[[f64; 3]]) -> RunId {
    of(resolved, &[vorticity.as_flattened()])
}

/// What the files of a run directory say of their run.
#[derive(Debug, Default)]
pub struct Identity {
    /// The id that most of them have; `None` for a run that an older version began, and where files
    /// of runs are mixed.
    pub id: Option<RunId>,
    /// Files with another id.
    pub strangers: Vec<(String, RunId)>,
    /// Files without an id where the others have one.
    pub without: Vec<String>,
    /// Runs that have as many files as each other, and more than any other: none of them can be
    /// called the own.
    mixed: Vec<RunId>,
}

impl Identity {
    /// Reads the id of every file that a run writes. Files that cannot be read are ignored here;
    /// the code that needs them reports the error.
    ///
    /// # Errors
    /// 74 where the folder cannot be listed.
    pub fn of_folder(folder: &Path) -> Result<Self, Failure> {
        let mut names = names(folder)?;
        // `scenario.toml` is the user's text, and tables of grids have columns and nothing else.
        let carries =
            |n: &String| is_ours(n) && n != "scenario.toml" && !(n.starts_with("grid_") && n.ends_with(".csv"));
        names.retain(carries);
        names.sort();
        Ok(Identity::of_files(
            names.into_iter().filter_map(|n| run_id::of_file(&folder.join(&n)).ok().map(|id| (n, id))).collect(),
        ))
    }

    fn of_files(found: Vec<(String, Option<RunId>)>) -> Self {
        let mut votes: BTreeMap<Option<RunId>, usize> = BTreeMap::new();
        found.iter().for_each(|(_, id)| *votes.entry(*id).or_default() += 1);
        let most = votes.values().copied().max().unwrap_or(0);
        let first: Vec<Option<RunId>> = votes.into_iter().filter(|(_, n)| *n == most).map(|(id, _)| id).collect();
        // Files without an id may be of any run: they decide nothing next to those that have one.
        let runs: Vec<RunId> = first.iter().copied().flatten().collect();
        let mut identity = Identity::default();
        match runs[..] {
            [] => {}
            [one] => identity.id = Some(one),
            _ => identity.mixed = runs,
        }
        let known = identity.id.is_some() || !identity.mixed.is_empty();
        for (name, of) in found {
            match of {
                Some(other) if Some(other) != identity.id => identity.strangers.push((name, other)),
                None if known => identity.without.push(name),
                _ => {}
            }
        }
        identity
    }

    /// Whether a file is known to be of another run than the rest.
    pub fn is_stranger(&self, name: &str) -> bool {
        self.strangers.iter().any(|(stranger, _)| stranger == name)
    }

    /// What is wrong with each stranger, a line each.
    pub fn problems(&self) -> Vec<String> {
        let line = |(name, id): &(String, RunId)| match (self.id, &self.mixed[..]) {
            (Some(own), _) => format!("{name}: of another run, its run id is {id}, expected {own}"),
            (None, []) => {
                format!("{name}: of another run, its run id is {id}, expected none: an older version began this run")
            }
            (None, _) => format!("{name}: of the run {id}"),
        };
        self.strangers.iter().map(line).collect()
    }

    /// Which runs' files are mixed so that no run has more of them than another; `None` where one
    /// has.
    pub fn mixture(&self) -> Option<String> {
        let (last, others) = self.mixed.split_last()?;
        let others: Vec<&str> = others.iter().map(RunId::as_str).collect();
        Some(format!(
            "files of {} runs are mixed, as many of {} as of {last}",
            self.mixed.len(),
            others.join(" as of ")
        ))
    }

    /// The id, if all files are of one run.
    ///
    /// # Errors
    /// 65 that names the files of other runs.
    pub fn agreed(self, folder: &Path) -> Result<Option<RunId>, Failure> {
        let problems = self.problems();
        if problems.is_empty() {
            return Ok(self.id);
        }
        let what = self.mixture().unwrap_or_else(|| "files of another run lie in this run directory".into());
        let mut text = format!("{}: {what}:\n", folder.display());
        problems.iter().take(NAMED).for_each(|p| text.push_str(&format!("  {p}\n")));
        if let more @ 1.. = problems.len().saturating_sub(NAMED) {
            text.push_str(&format!("  and {more} more\n"));
        }
        text.push_str("nothing was changed; move them to another folder, put back the run's own, and try again");
        Err(Failure::new(65, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, Option<char>)]) -> Identity {
        let id = |digit: char| RunId::parse(&digit.to_string().repeat(16));
        Identity::of_files(files.iter().map(|(name, digit)| (name.to_string(), digit.and_then(id))).collect())
    }

    #[test]
    fn a_tie_names_both_runs_and_calls_none_expected() {
        let tie = of(&[("a", Some('a')), ("b", Some('b')), ("c", Some('b')), ("d", Some('a')), ("e", Some('c'))]);
        assert!(tie.id.is_none() && tie.strangers.len() == 5);
        let text = tie.agreed(Path::new("run")).unwrap_err().render(false);
        assert!(
            text.contains(&format!("2 runs are mixed, as many of {} as of {}", "a".repeat(16), "b".repeat(16))),
            "{text}"
        );
        assert!(text.contains(&format!("a: of the run {}", "a".repeat(16))) && !text.contains("expected"), "{text}");
    }

    #[test]
    fn most_files_have_the_id_of_the_run() {
        let most = of(&[("a", Some('a')), ("b", Some('b')), ("c", Some('a')), ("d", None)]);
        assert!(most.is_stranger("b") && !most.is_stranger("a") && most.mixture().is_none());
        assert_eq!(most.without, ["d"]);
        // As many without an id: those of an older version, or of a run that has one.
        assert_eq!(of(&[("a", Some('a')), ("b", None)]).id, RunId::parse(&"a".repeat(16)));
        let old = of(&[("a", Some('a')), ("b", None), ("c", None)]);
        assert!(old.id.is_none() && old.is_stranger("a") && old.problems()[0].contains("expected none"));
    }
}
