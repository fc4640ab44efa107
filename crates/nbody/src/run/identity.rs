//! Which run the files of a directory belong to.

use std::collections::BTreeMap;
use std::path::Path;

use super::directory::{is_ours, names};
use super::resume::values;
use crate::fault::Fault;
use crate::files::run_id::RunId;
use crate::initial::Initial;
use crate::scenario::Scenario;
use crate::scenario::grid::GridScenario;

/// What of a scenario is no physics: names, outputs, checks, the way forces are summed, and the end, which may be moved.
const OTHER: [&str; 5] = ["title", "time.end", "output.", "verify.", "solver."];
/// Strangers that are named; more would bury the message.
const NAMED: usize = 10;

fn of(resolved: &str, state: &[&[f64]]) -> RunId {
    let values = values(resolved);
    let physics = values.iter().filter(|(k, _)| !OTHER.iter().any(|o| k == o || o.ends_with('.') && k.starts_with(o)));
    RunId::of(physics.map(|(k, v)| (k.as_str(), v.as_str())), state)
}

/// The id of a run of particles.
pub fn of_particles(scenario: &Scenario, i: &Initial) -> RunId {
    let state = [i.position.as_flattened(), i.velocity.as_flattened(), &i.mass, &i.charge];
    of(&scenario.resolved(None, i.len()), &state)
}

/// The id of a run on a grid with this vorticity at its start.
pub fn of_grid(scenario: &GridScenario, vorticity: &[[f64; 3]]) -> RunId {
    of(&scenario.resolved(), &[vorticity.as_flattened()])
}

/// What the files of a run directory say of their run.
#[derive(Debug)]
pub struct Identity {
    /// The id that most of them have; `None` for a run that an older version began.
    pub id: Option<RunId>,
    /// Files with another id.
    pub strangers: Vec<(String, RunId)>,
    /// Files without an id where the others have one.
    pub without: Vec<String>,
}

impl Identity {
    /// Reads the id of every file that a run writes. What cannot be read has no say: whoever needs the file tells of it.
    ///
    /// # Errors
    /// 74 where the folder cannot be listed.
    pub fn of_folder(folder: &Path) -> Result<Self, Fault> {
        let mut names = names(folder)?;
        // `scenario.toml` is the user's text, and tables of grids have columns and nothing else.
        let carries =
            |n: &String| is_ours(n) && n != "scenario.toml" && !(n.starts_with("grid_") && n.ends_with(".csv"));
        names.retain(carries);
        names.sort();
        let found: Vec<(String, Option<RunId>)> =
            names.into_iter().filter_map(|n| RunId::of_file(&folder.join(&n)).ok().map(|id| (n, id))).collect();
        let mut votes: BTreeMap<Option<RunId>, usize> = BTreeMap::new();
        found.iter().for_each(|(_, id)| *votes.entry(*id).or_default() += 1);
        let id = votes.into_iter().max_by_key(|(_, n)| *n).and_then(|(id, _)| id);
        let (mut strangers, mut without) = (vec![], vec![]);
        for (name, of) in found {
            match of {
                Some(other) if Some(other) != id => strangers.push((name, other)),
                None if id.is_some() => without.push(name),
                _ => {}
            }
        }
        Ok(Identity { id, strangers, without })
    }

    /// What is wrong with each stranger, a line each.
    pub fn problems(&self) -> Vec<String> {
        let own = self.id.map_or("none: an older version began this run".to_string(), |id| id.to_string());
        let line = |(name, id): &(String, RunId)| format!("{name}: of another run, its run id is {id}, expected {own}");
        self.strangers.iter().map(line).collect()
    }

    /// The id, if all files are of one run.
    ///
    /// # Errors
    /// 65 that names the files of other runs.
    pub fn agreed(self, folder: &Path) -> Result<Option<RunId>, Fault> {
        let problems = self.problems();
        if problems.is_empty() {
            return Ok(self.id);
        }
        let mut text = format!("{}: files of another run lie in this run directory:\n", folder.display());
        problems.iter().take(NAMED).for_each(|p| text.push_str(&format!("  {p}\n")));
        if let more @ 1.. = problems.len().saturating_sub(NAMED) {
            text.push_str(&format!("  and {more} more\n"));
        }
        text.push_str("nothing was changed; move them to another folder, put back the run's own, and try again");
        Err(Fault::new(65, text))
    }
}
