//! Intervals that are no whole number of steps: a message with the nearest ones that are, in the
//! units that the scenario writes them in.

use super::clock::Clock;
use super::document::Value;
use super::reader::Section;
use crate::messages::digits;
use crate::units::{Dimension, System, split};

/// Digits of a suggested time: rounded so, it still is a whole number of steps ([`Clock::steps`]).
const DIGITS: usize = 12;

/// How a key gives its time: as a number in the scenario's units, or as a string with a unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// The name of the unit, and one of it in the scenario's units.
    unit: Option<(String, f64)>,
}

impl Written {
    pub(super) fn of(s: &mut Section<'_>, key: &'static str, units: System) -> Self {
        let named = |item: &super::document::Item| match &item.value {
            Value::String(text) => Some(split(text).1.to_string()),
            _ => None,
        };
        let with_size = |name: String| units.convert(&format!("1 {name}"), Dimension::Time).ok().map(|one| (name, one));
        Written { unit: s.item(key).and_then(named).and_then(with_size) }
    }

    /// A time in the scenario's units, as the key would give it.
    fn text(&self, time: f64) -> String {
        match &self.unit {
            Some((name, one)) => format!("\"{} {name}\"", digits(time / one, DIGITS)),
            None => digits(time, DIGITS),
        }
    }
}

/// The steps that intervals are compared with.
pub(super) struct Steps<'a> {
    pub clock: &'a Clock,
    /// How `time.dt` is written; `None` for "auto", when steps are those of the shortest interval.
    pub dt: Option<&'a Written>,
}

/// Reports that `key` is no whole number of steps, but `ratio` of them, with the nearest values
/// that are.
pub(super) fn undivided(
    s: &mut Section<'_>,
    key: &'static str,
    units: System,
    steps: &Steps<'_>,
    (interval, ratio): (f64, f64),
) {
    let written = Written::of(s, key, units);
    let (full, clock, given) = (s.full(key), steps.clock, written.text(interval));
    let (below, above) = (ratio.floor(), ratio.ceil());
    let round = |steps: f64| written.text(clock.time(steps as u64));
    let message = match steps.dt {
        Some(dt) => format!("time.dt = {} does not divide {full} = {given}", dt.text(clock.dt)),
        None => format!("{full} = {given} is no multiple of the shortest interval, {}", written.text(clock.dt)),
    };
    let help = match steps.dt {
        _ if ratio > 1e15 => "a run has at most 2^53 steps; choose a larger dt".to_string(),
        None => {
            let (below, above) = (round(below.max(1.0)), round(above));
            format!("with dt = \"auto\" all intervals are multiples of the shortest: use {full} = {below} or {above}")
        }
        Some(_) if below < 1.0 => {
            format!("{full} must be at least one step: use {full} = {}, or a smaller dt", written.text(clock.dt))
        }
        Some(dt) => format!(
            "use {full} = {} or {} ({below} or {above} steps), or time.dt = {} or {}",
            round(below),
            round(above),
            dt.text(interval / below),
            dt.text(interval / above)
        ),
    };
    let unit = if steps.dt.is_none() { "intervals" } else { "steps" };
    let ratio = if ratio > 1e15 { digits(ratio, DIGITS) } else { format!("{ratio:.6}") };
    s.mistake(key, message, format!("{ratio} {unit}"), Some(help));
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Override, Scenario};

    fn scenario(end: &str, dt: &str) -> Result<Scenario, String> {
        let text = "[units]\nsystem = 'galactic'\n[[particles]]\nmodel = 'plummer'\nn = 10\n[time]\ndt = 1\nend = 1\n";
        let sets = [Override::set(format!("time.dt={dt}")), Override::set(format!("time.end={end}"))];
        let read = Scenario::parse("a.toml", text.into(), None, &sets);
        read.map_err(|p| p.render(false).split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn suggestions_are_in_the_units_of_the_text_and_divide() {
        let text = scenario("\"20.5 Myr\"", "\"1 Myr\"").unwrap_err();
        assert!(text.contains("time.dt = \"1 Myr\" does not divide time.end = \"20.5 Myr\""), "{text}");
        assert!(text.contains("use time.end = \"20 Myr\" or \"21 Myr\" (20 or 21 steps)"), "{text}");
        assert!(text.contains("or time.dt = \"1.025 Myr\" or \"0.97619047619 Myr\""), "{text}");
        for (end, dt, steps) in [
            ("\"20 Myr\"", "\"1 Myr\"", 20),
            ("\"20.5 Myr\"", "\"1.025 Myr\"", 20),
            ("\"20.5 Myr\"", "\"976.190476190 kyr\"", 21),
        ] {
            assert_eq!(scenario(end, dt).unwrap().steps, steps, "{end} {dt}");
        }
        // Each key in its own unit; numbers stay numbers.
        let text = scenario("\"20.5 Myr\"", "0.003").unwrap_err();
        assert!(text.contains("time.dt = 0.003 does not divide time.end = \"20.5 Myr\""), "{text}");
    }
}
