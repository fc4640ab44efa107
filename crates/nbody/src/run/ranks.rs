//! `nbody-mpi run`: the same command with particles that several ranks share.
//!
//! The first rank runs as `nbody run` does, and writes what that writes with `--device cpu`. The others follow its orders
//! ([`nbody_sim::ranks`]).

use std::time::Instant;

use fmm_core::comm::Comm;
use nbody_sim::Order;
use nbody_sim::ranks::{agreed, follow};

use super::Options;
use crate::failure::Failure;
use crate::scenario::{Scenario, document};
use crate::signals::Stop;

/// Runs a scenario on all ranks.
///
/// # Errors
/// Those of [`run`](super::run), on all ranks with the same code; the message is on the first. 65 for a scenario with what ranks do not
/// do, before anything is computed or written.
pub fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let begun = Instant::now();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.unwrap_or(0))
        .build()
        .map_err(|e| Failure::new(71, format!("rank {}: cannot start the worker threads: {e}", comm.rank())));
    let pool = agreed(comm, pool)?;
    pool.install(|| {
        if comm.rank() > 0 {
            // It goes on after a first signal: the first rank ends the run after its step.
            let listening = Stop::install();
            follow(comm);
            return agreed(comm, listening.map(drop));
        }
        let done = first(comm, options, begun);
        Order::End.give(comm);
        agreed(comm, done)
    })
}

fn first(comm: &dyn Comm, options: &Options, begun: Instant) -> Result<(), Failure> {
    if options.dry_run {
        return Err(Failure::new(2, "--dry-run: ranks run; nbody run has --dry-run"));
    }
    super::begin(&Options { ranks: Some(comm.size()), ..options.clone() }, Some(comm), begun)
}

/// What ranks take of the keys with more than one meaning: a key, or all that begin with one, and its values; without any the key
/// must be left out.
const TAKEN: [(&str, &[&str]); 9] = [
    ("run.dimensions", &["3"]),
    ("boundary.kind", &["\"open\""]),
    ("force.law", &["\"gravity\"", "\"coulomb\""]),
    ("solver.device", &["\"auto\"", "\"cpu\""]),
    ("force.exclusions", &[]),
    ("external.", &[]),
    ("short_range.", &[]),
    ("thermostat.", &[]),
    ("verify.", &[]),
];

/// Checks that ranks can run a scenario that was read from `name`: gravity or Coulomb forces in open space, on the cores.
///
/// # Errors
/// 65 with the first key that they cannot serve.
pub fn check(name: &str, scenario: &Scenario) -> Result<(), Failure> {
    let values = document::values(&scenario.resolved(None, 0));
    for (taken, allowed) in TAKEN {
        let is = |key: &str| key == taken || taken.ends_with('.') && key.starts_with(taken);
        let Some((key, value)) = values.iter().find(|(key, value)| is(key) && !allowed.contains(&value.as_str()))
        else {
            continue;
        };
        let allowed = match allowed {
            [] => format!("leave out {}", taken.trim_end_matches('.')),
            _ => format!("allowed: {}", allowed.join(" or ")),
        };
        let line = format!("{name}: {key} = {value} is not done by several ranks; {allowed}, or take nbody run");
        return Err(Failure::new(65, line));
    }
    Ok(())
}

/// The refusal of a scenario with a grid.
pub fn no_grid(name: &str) -> Failure {
    Failure::new(65, format!("{name}: has a [grid]; several ranks run particles alone, and nbody run has grids"))
}
