//! `--dry-run`: what a run would need, from one sum of its forces; nothing is written.

use std::time::Instant;

use fmm_core::StageTimes;
use serde_json::json;

use super::Options;
use crate::console::notes;
use crate::failure::Failure;
use crate::files::snapshot::{Field, Float};
use crate::messages::{bytes, counted};
use crate::scenario::Scenario;

/// Prints the resolved scenario, and below it what the run would need.
pub fn run(scenario: Scenario, options: &Options, threads: usize) -> Result<(), Failure> {
    let (scenario, initial) = super::start(scenario, options)?;
    let scenario = &scenario;
    let n = initial.len();
    let mut store = scenario.store(None, n, &mut notes(options.quiet || options.json))?;
    let particles = initial.particles(scenario.law, scenario.signed_constant());
    store.upload(&particles).map_err(|e| Failure::new(65, format!("initial particles: {e}")))?;
    let mut times = StageTimes::default();
    let mut sum = || {
        let start = Instant::now();
        store.forces(&mut times).map(|()| start.elapsed().as_secs_f64())
    };
    // The first sum starts the threads and touches memory for the first time: if it is short, a
    // second sum measures better.
    let refuse = |e: fmm_core::Error| Failure::new(65, scenario.refused(&e).unwrap_or_else(|| e.to_string()));
    let mut seconds = sum().map_err(refuse)?;
    if seconds < 1.0 {
        seconds = seconds.min(sum().map_err(refuse)?);
    }
    let sums = scenario.steps.saturating_mul(scenario.integrator.sums_per_step()).saturating_add(1);
    let snapshots = 1 + scenario.steps.div_ceil(scenario.snapshot_every.max(1));
    let snapshot = snapshot_bytes(scenario, n);
    let checkpoint = checkpoint_bytes(scenario, n);
    let memory = peak_memory().map(|probe| probe + output_memory(n, snapshot.max(checkpoint)));
    let total = sums as f64 * seconds;
    let resolved = scenario.resolved(store.choice().as_ref(), n);
    if options.json {
        let facts = json!({
            "event": "dry-run", "particles": n, "steps": scenario.steps, "threads": threads, "snapshots": snapshots,
            "snapshot_bytes": snapshot, "checkpoint_bytes": checkpoint, "memory_bytes": memory,
            "seconds_per_force_sum": seconds, "seconds": total, "scenario": resolved,
        });
        return crate::console::print(&format!("{facts}\n"));
    }
    let memory = memory.map_or("unknown on this system".into(), bytes);
    crate::console::print(&format!(
        "{resolved}\n# Nothing was run. {n} particles, {} steps on {} would need about\n\
         #   memory      {memory}, from one sum of the forces and the copies that outputs take\n\
         #   a snapshot  {} ({snapshots} of them: {}), a checkpoint {} (2 of them)\n\
         #   time        {}, at {seconds:.2e} s a sum of the forces as just measured, without outputs\n",
        scenario.steps,
        counted(threads, "thread"),
        bytes(snapshot),
        bytes(snapshot.saturating_mul(snapshots)),
        bytes(checkpoint),
        span(total),
    ))
}

/// Bytes of a snapshot file: arrays that are compressed (ids, masses, charges, cells) shrink to a few percent.
fn snapshot_bytes(scenario: &Scenario, n: usize) -> u64 {
    let float = if scenario.layout.precision == Float::F32 { 4 } else { 8 };
    let width = |f: &Field| match f {
        Field::Position | Field::Velocity | Field::Acceleration | Field::Vorticity => 3 * float,
        Field::Potential | Field::ForceError => float,
        Field::Mass | Field::Id | Field::Charge => 0,
    };
    let fields = Field::ALL.iter().filter(|f| **f == Field::Position || scenario.layout.fields.contains(f));
    let compressed = 1;
    n as u64 * (fields.map(width).sum::<u64>() + compressed) + 16_000
}

/// Three vectors in full, four of vortices in space, the rest compressed.
fn checkpoint_bytes(scenario: &Scenario, n: usize) -> u64 {
    let vorticity = if scenario.vortices_in_space() { 24 } else { 0 };
    n as u64 * (72 + 1 + u64::from(scenario.charged()) + vorticity) + 16_000
}

/// Copies of the state and the sums, and the file twice while it is assembled.
fn output_memory(n: usize, file: u64) -> u64 {
    let (particles, field, acceleration, rows) = (64, 32, 24, 96);
    n as u64 * (particles + field + acceleration + rows) + 2 * file.min(1 << 30)
}

/// The most memory that this process has had, in bytes, where the system reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?)
}

/// Seconds in words, rounded to what an estimate is worth.
fn span(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = std::time::Duration::try_from_secs_f64(seconds.round()).unwrap_or(std::time::Duration::MAX);
    humantime::format_duration(whole).to_string()
}
