//! The one loop of all runs: steps, what is due after them, and the end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::course::{Course, Ending};
use super::plan::Due;
use crate::failure::Failure;
use crate::signals::Stop;

/// What moves by steps: particles, or a flow on a grid.
pub trait Evolve {
    /// Its course.
    fn course(&self) -> &Course;

    /// Its course, to go on.
    fn course_mut(&mut self) -> &mut Course;

    /// What moves, and how many of them there are.
    fn size(&self) -> (&'static str, usize);

    /// Computes what the first step after a checkpoint begins with.
    ///
    /// # Errors
    /// Those of the solver.
    fn refresh(&mut self) -> Result<(), Failure>;

    /// Makes a step, which the course counts already; `next` is written after it.
    ///
    /// # Errors
    /// Those of the solver, and 70 for values that are no longer finite.
    fn step(&mut self, next: Due) -> Result<(), Failure>;

    /// Writes what is due, a checkpoint last: a run that goes on from there need not write the others.
    ///
    /// # Errors
    /// 74 for files that cannot be written, 70 for values that are no longer finite, 1 for sums
    /// that missed the tolerance.
    fn output(&mut self, due: Due) -> Result<(), Failure>;

    /// Whether the snapshot of the present step has been written.
    fn is_written(&self) -> bool;

    /// The scenario with all that the solver chose, which is known once there are results.
    fn resolved(&self) -> String;

    /// dE/E0 at the last diagnostics.
    fn drift(&self) -> f64;

    /// Warns of what its last state shows; returns what makes no sense.
    fn judge(&self) -> Vec<String> {
        vec![]
    }

    /// `run.json`, and the result in a few lines.
    fn report(&self) -> (Value, String);
}

/// Makes all steps, and the last files.
///
/// # Errors
/// 75 for a run that was interrupted, 1 for results that make no sense where `--strict` asks, and those of the steps and outputs, with
/// the command that goes on from the last checkpoint.
pub fn run(mut run: impl Evolve, stop: &Stop) -> Result<(), Failure> {
    let (course, (what, size)) = (run.course(), run.size());
    let (plan, directory) = (&course.plan, course.directory.path().to_string_lossy());
    let facts = json!({
        "title": plan.title, "directory": directory, what: size, "step": course.step, "steps": plan.steps,
        "time": course.time(), "end": plan.clock.time(plan.steps), "threads": course.threads,
    });
    course.events.send("start", facts)?;
    let outcome = advance(&mut run, stop).and_then(|ending| run.course_mut().wait().map(|()| ending));
    run.course().progress.finish();
    let ending = match outcome {
        Ok(ending) => ending,
        Err(failure) => {
            let course = run.course_mut();
            // The snapshot of an earlier step is complete, even if something has failed since.
            let _ = course.settle(true);
            let failure = course.with_way_back(failure);
            let facts =
                json!({ "step": course.step, "exit_code": failure.code, "error": failure.render(false).trim() });
            course.events.send("end", facts)?;
            return Err(failure);
        }
    };
    let nonsense = run.judge();
    let report = run.report();
    let course = run.course_mut();
    nonsense.iter().for_each(|text| course.progress.warn(text));
    let nonsense = nonsense.first().filter(|_| course.options.strict);
    course.conclude(ending, report, nonsense.is_some())?;
    nonsense.map_or(Ok(()), |text| Err(Failure::new(1, format!("{text} (--strict)"))))
}

/// The first outputs, if they are not there.
fn begin(run: &mut impl Evolve) -> Result<(), Failure> {
    let course = run.course();
    let (step, end) = (course.step, course.plan.steps);
    let all = Due { snapshot: true, diagnostics: true, checkpoint: true, verify: false };
    match course.resumed_at {
        // A checkpoint too: from there on no failure loses the run.
        None => output(run, Due { verify: course.plan.due(step, false).verify, ..all }),
        // A run that was stopped in passing, and is now to end here. Its line may be there: no two are of one step.
        Some(_) if step == end && !run.is_written() => {
            let diagnostics = course.directory.last_line() != Some(course.time());
            output(run, Due { diagnostics, ..all })
        }
        Some(_) => run.refresh(),
    }
}

fn output(run: &mut impl Evolve, due: Due) -> Result<(), Failure> {
    run.course_mut().wrote = true;
    run.output(due)
}

fn advance(run: &mut impl Evolve, stop: &Stop) -> Result<Ending, Failure> {
    stop.announce(run.course().progress.answer());
    begin(run)?;
    // What a run begins with is on the disk before its long part.
    run.course_mut().wait()?;
    let resolved = run.resolved();
    let course = run.course_mut();
    course.directory.write_resolved(&resolved)?;
    course.progress.note(&resolved);
    let steps = course.plan.steps;
    let mut longest = Duration::ZERO;
    while run.course().step < steps {
        let course = run.course_mut();
        course.directory.reserve_checkpoint()?;
        let start = Instant::now();
        course.step += 1;
        let next = course.plan.due(course.step, course.step == steps);
        run.step(next)?;
        let course = run.course();
        let ending = course.ending(stop, longest.max(start.elapsed()));
        let due = course.due(ending);
        if due.any() {
            output(run, due)?;
        }
        let drift = run.drift();
        let course = run.course_mut();
        course.settle(false)?;
        course.progress.at(course.step, course.time(), drift);
        course.events.progress(course.step, steps, course.time(), drift)?;
        if let Some(ending) = ending {
            return Ok(ending);
        }
        longest = longest.max(start.elapsed());
    }
    Ok(Ending::Complete)
}
