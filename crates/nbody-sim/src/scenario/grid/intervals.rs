//! Times of a flow that are whole numbers of its steps.

use super::super::clock::Clock;
use super::super::reader::Section;
use crate::messages::number as in_message;

/// Steps between outputs: `Some(None)` where no interval is given, `None` where it is no whole
/// number of steps.
pub(super) fn cadence(s: &Section<'_>, key: &str, interval: Option<f64>, clock: &Clock) -> Option<Option<u64>> {
    let Some(interval) = interval else { return Some(None) };
    match steps(s, key, clock, interval)? {
        0 => {
            let message = format!("{} = {} is shorter than a step", s.full(key), in_message(interval));
            s.mistake(key, message, format!("time.dt = {}", in_message(clock.dt)), None);
            None
        }
        steps => Some(Some(steps)),
    }
}

/// A time as a number of steps.
pub(super) fn steps(s: &Section<'_>, key: &str, clock: &Clock, interval: f64) -> Option<u64> {
    match clock.steps(interval) {
        Ok(steps) => Some(steps),
        Err(ratio) => {
            let (full, dt) = (s.full(key), in_message(clock.dt));
            let message = format!("time.dt = {dt} does not divide {full} = {}", in_message(interval));
            let [below, above] = [ratio.floor(), ratio.ceil()].map(|steps| in_message(steps * clock.dt));
            let help = match ratio {
                _ if below == above => "give a longer step".to_string(),
                _ if ratio < 1.0 => format!("use {full} = {above}"),
                _ => format!("use {full} = {below} or {above}"),
            };
            s.mistake(key, message, format!("{} steps", in_message(ratio)), Some(help));
            None
        }
    }
}
