//! What a flow remembers across checkpoints next to its vorticity, and what of its scenario a run that goes on is compared by.

use std::path::PathBuf;

use fmm_core::grid::BLOCK;
use fmm_core::grid::flow::Integrals;

use super::{FlowRun, FlowScenario, report};
use crate::failure::Failure;
use crate::files::checkpoint::{Checkpoint, State};
use crate::run::plan::Plan;
use crate::run::ranks;
use crate::run::resume::{FILES, LAST_FILE, Resumable};
use crate::run::verify::Verified;
use crate::scenario::Override;
use crate::scenario::grid::GridScenario;
use fmm::GridStore;

/// Pairs of the whole run, as estimated at its start.
pub const PAIRS: &str = "pairs";
/// The split of the solver, if it has one: a flow that bodies have not moved yet chooses none.
pub const SPLIT: &str = "split";
/// Steps that were made, parts of whole ones too.
const PARTS: &str = "parts";

/// Forces over the last step, numbered.
const LOAD: &str = "load_";
/// What the first grid held of each ring, numbered.
const HELD: &str = "held_";

/// What a run says of its integrals at its end.
const KEPT: [&str; 4] = ["energy", "enstrophy", "circulation_below", "circulation_above"];

impl<S: GridStore> FlowRun<S> {
    /// What a checkpoint keeps.
    pub(super) fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers = vec![];
        for (when, i) in [("first", self.first.unwrap_or_default()), ("last", self.last)] {
            let values = [i.energy, i.enstrophy, i.circulation[0], i.circulation[1]];
            numbers.extend(KEPT.into_iter().zip(values).map(|(name, v)| (format!("{when}_{name}"), v)));
        }
        numbers.extend([(PAIRS, self.pairs), (FILES, self.files as f64)].map(named));
        numbers.extend(self.parts().map(|parts| named((PARTS, parts as f64))));
        numbers.extend(self.store.settings().split.map(|split| named((SPLIT, split as f64))));
        let loads = self.flow.loads().numbers().into_iter().enumerate();
        numbers.extend(loads.map(|(i, value)| (format!("{LOAD}{i}"), value)));
        numbers.extend(self.held.iter().enumerate().map(|(i, part)| (format!("{HELD}{i}"), *part)));
        numbers.extend(self.last_file.map(|step| named((LAST_FILE, step as f64))));
        numbers.extend(self.verified.numbers(report::VELOCITY_ERROR));
        numbers
    }

    /// The reverse of [`numbers`](Self::numbers), but for the number of files, which depends on how the run goes on.
    pub(super) fn recall(&mut self, checkpoint: &Checkpoint) {
        let integrals = |when: &str| {
            let [energy, enstrophy, below, above] = KEPT.map(|name| checkpoint.number(&format!("{when}_{name}")));
            Some(Integrals {
                energy: energy?,
                enstrophy: enstrophy?,
                circulation: [below?, above?],
                ..Integrals::default()
            })
        };
        self.first = integrals("first");
        self.last = integrals("last").unwrap_or_default();
        self.pairs = checkpoint.number(PAIRS).unwrap_or(0.0);
        self.parts_before = checkpoint.number(PARTS).map(|parts| parts as u64);
        let loads = (0..).map_while(|i| checkpoint.number(&format!("{LOAD}{i}")));
        self.flow.recall(&loads.collect::<Vec<_>>());
        self.held = (0..).map_while(|i| checkpoint.number(&format!("{HELD}{i}"))).collect();
        self.verified = Verified::recalled(report::VELOCITY_ERROR, |name| checkpoint.number(name));
        // In steps of the run until now, as the step that it goes on from.
        let here = |step: f64| step as u64 == checkpoint.step;
        self.last_file = checkpoint.number(LAST_FILE).filter(|&s| here(s)).map(|_| self.course.step);
    }
}

fn named((name, value): (&str, f64)) -> (String, f64) {
    (name.into(), value)
}

impl Resumable for FlowScenario {
    fn parse_resumed(name: &str, text: String, sets: &[Override]) -> Result<Self, Failure> {
        let grid = GridScenario::parse_resumed(name, text, sets)?;
        let none = || Failure::new(65, format!("{name}: its scenario has no [grid] with [time]"));
        grid.and_then(FlowScenario::of).ok_or_else(none)
    }

    fn plan(&self) -> Plan {
        Plan {
            title: self.grid.title.clone(),
            clock: self.steps.clock,
            steps: self.steps.count,
            snapshot_every: self.steps.every,
            diagnostics_every: self.steps.diagnostics_every,
            verify_every: self.steps.verify.map(|check| check.verify.every),
            checkpoint_wall: self.steps.checkpoint_wall,
        }
    }

    fn set_steps(&mut self, steps: u64) {
        self.steps.count = steps;
    }

    fn directory(&mut self) -> &mut PathBuf {
        &mut self.grid.directory
    }

    fn text(&self) -> &str {
        &self.grid.text
    }

    fn resolved_of(&self, _: &State) -> String {
        self.resolved(None)
    }

    fn columns(&self) -> String {
        report::columns(self.grid.conditions.bodies.len())
    }

    fn check_for_ranks(&self, name: &str) -> Result<(), Failure> {
        Err(ranks::no_grid(name))
    }

    fn check(&self, before: &Self, state: &State) -> Result<(), String> {
        if self.lattice() != before.lattice() {
            return Err(
                "its cells are those of grid.corner, grid.side and grid.coarsest or grid.n as they were; these cannot \
                        change"
                    .into(),
            );
        }
        let State::Flow(flow) = state else { return Ok(()) };
        let finest = flow.blocks.iter().map(|b| b.level).max().unwrap_or(0);
        if finest <= self.steps.method.thresholds.finest {
            return Ok(());
        }
        let cells = (self.lattice().base * BLOCK as u32) << finest;
        Err(format!("it has blocks of {cells} cells a side of the domain; grid.finest cannot become less than that"))
    }
}
