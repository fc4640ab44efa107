//! Facts on a run directory.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::facts::Facts;
use super::{grid, particles};
use crate::convert::source::Source;
use crate::failure::Failure;
use crate::files::{checkpoint, regular, run_id};
use crate::messages::short;

/// The number of snapshots and their times.
pub fn add_times(facts: &mut Facts, source: &Source) {
    let times = source.times();
    let text = match &times[..] {
        [] => "none".to_string(),
        [one] => format!("1 at time {}", short(*one)),
        [first, .., last] => format!("{} from time {} to {}", times.len(), short(*first), short(*last)),
    };
    facts.add_as("snapshots", json!({ "count": times.len(), "times": times }), text);
}

/// What the files of a run say; the particles are those of its last snapshot.
pub fn facts(source: &Source, path: &Path) -> Result<Facts, Failure> {
    let directory = if path.is_dir() { path.to_owned() } else { path.with_file_name("") };
    let mut facts = Facts::new(path.display().to_string());
    facts.add("kind", json!("run directory"));
    let run: Value = regular::read(&directory.join("run.json"), regular::REPORT)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or(Value::Null);
    if let Some(title) = run["title"].as_str() {
        facts.add("title", json!(title));
    }
    if let Some(id) = run[run_id::KEY].as_str() {
        facts.add(run_id::KEY, json!(id));
    }
    let state = match run["complete"].as_bool() {
        Some(true) => "complete",
        Some(false) => "stopped before its end",
        None => "no run.json: still running, or ended by force",
    };
    facts.add_as("complete", run["complete"].clone(), state);
    if let Some(steps) = run["steps"].as_u64() {
        facts.add("steps", json!(steps));
    }
    let solver = &run["solver"];
    if let Some(method) = solver["method"].as_str() {
        let part = |key: &str| match &solver[key] {
            Value::Null => String::new(),
            Value::String(v) => format!(", {v}"),
            v => format!(", {} {}", key.replace('_', " "), v.as_f64().map_or(v.to_string(), short)),
        };
        let text = ["precision", "order", "theta", "tolerance"].map(part).concat();
        facts.add_as("solver", solver.clone(), format!("{method}{text}"));
    }
    if let Some(worst) = run["largest_energy_error"].as_f64() {
        facts.add_as("largest_energy_error", json!(worst), format!("{worst:.2e}"));
    }
    add_times(&mut facts, source);
    match checkpoint::latest(&directory) {
        Ok(Some(latest)) => {
            let c = &latest.checkpoint;
            let name = latest.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = format!("{name}, step {}, time {}", c.step, short(c.time));
            facts.add_as("checkpoint", json!({ "file": name, "step": c.step, "time": c.time }), text);
        }
        Ok(None) => facts.add_as("checkpoint", Value::Null, "none"),
        Err(e) => facts.add_as("checkpoint", Value::Null, format!("damaged: {e}")),
    }
    let bytes: u64 = fs::read_dir(&directory)
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.metadata().ok())
        .filter(fs::Metadata::is_file)
        .map(|m| m.len())
        .sum();
    facts.add_as("bytes", json!(bytes), format!("{bytes} ({:.1} MB)", bytes as f64 / 1e6));
    if let Source::Run { path, entries } = source
        && let Some(last) = entries.last()
    {
        match grid::about(&path.join(&last.name))? {
            Some(about) => grid::add(&mut facts, &about),
            None => particles::add(&mut facts, &source.load(entries.len() - 1)?),
        }
    }
    Ok(facts)
}
