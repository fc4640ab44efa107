//! `[verify]` of a grid with `[time]`: velocities in some of its cells against direct sums.

use std::fmt::{self, Write};

use super::super::Verify;
use super::super::clock::Clock;
use super::super::reader::{Range, Section};
use super::super::resolved::{number, text};
use super::super::sections::sample_and_action;
use super::intervals::cadence;

/// `[verify]` of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VelocityCheck {
    /// Which cells, when, and what a miss does.
    pub verify: Verify,
    /// The largest relative L2 error of the velocities that is no miss. The solver of grids has no
    /// tolerance of its own.
    pub tolerance: f64,
}

/// `verify.tolerance` where it is not given.
const TOLERANCE: f64 = 1e-3;

/// Reads the section; `None` without it, and where a mistake left a hole. `steps` are the clock of
/// the flow and the steps between its diagnostics, which are those between samples unless `every`
/// says otherwise. With `dt = "auto"` samples make no step shorter: a check does not change the
/// run.
pub(super) fn read(top: &mut Section<'_>, steps: Option<(&Clock, u64)>) -> Option<VelocityCheck> {
    let given = top.has("verify");
    let mut s = top.section("verify");
    let (sample, action) = sample_and_action(&mut s);
    let tolerance = s.number("tolerance", Range::TOLERANCE).unwrap_or(TOLERANCE);
    let interval = s.number("every", Range::POSITIVE);
    let every = steps.and_then(|(clock, usual)| Some(cadence(&s, "every", interval, clock)?.unwrap_or(usual)));
    s.close();
    let verify = Verify { sample, every: every?, action };
    given.then_some(VelocityCheck { verify, tolerance })
}

impl VelocityCheck {
    /// The section with its defaults filled in.
    pub(super) fn write(&self, clock: &Clock, out: &mut String) -> fmt::Result {
        let Verify { sample, every, action } = self.verify;
        writeln!(out, "\n[verify]\nsample = {sample}")?;
        // Without steps in between there is no time to write, and a run that goes on takes the
        // default again.
        if every > 0 {
            writeln!(out, "every = {}", number(clock.time(every)))?;
        }
        writeln!(out, "tolerance = {}\naction = {}", number(self.tolerance), text(action.name()))
    }
}
