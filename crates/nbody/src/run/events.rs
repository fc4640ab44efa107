//! `--json`: what happens in a run, one JSON object a line on stdout.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::failure::Failure;

/// Between two `progress` events.
const INTERVAL: Duration = Duration::from_secs(1);

/// The events of a run; nothing is printed unless they are asked for.
pub struct Events {
    on: bool,
    progress: Cell<Option<Instant>>,
}

impl Events {
    /// Prints if `on`.
    pub fn new(on: bool) -> Self {
        Events { on, progress: Cell::new(None) }
    }

    /// An event with its name and an object of what is known of it.
    pub fn send(&self, event: &str, facts: Value) -> Result<(), Failure> {
        if !self.on {
            return Ok(());
        }
        let mut object = serde_json::Map::new();
        object.insert("event".into(), event.into());
        object.extend(facts.as_object().cloned().unwrap_or_default());
        crate::console::print(&format!("{}\n", Value::Object(object)))
    }

    /// A step was done; sent once a second.
    pub fn progress(&self, step: u64, steps: u64, time: f64, energy_error: f64) -> Result<(), Failure> {
        if !self.on || self.progress.get().is_some_and(|last| last.elapsed() < INTERVAL) {
            return Ok(());
        }
        self.progress.set(Some(Instant::now()));
        self.send("progress", json!({ "step": step, "steps": steps, "time": time, "energy_error": energy_error }))
    }
}
