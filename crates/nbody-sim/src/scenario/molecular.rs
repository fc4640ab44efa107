//! `[short_range]` and `[thermostat]`: what ions have in addition to their charges.

use std::fmt::Write;

use fmm_core::forces::LennardJones;

use super::reader::{Range, Section};
use super::resolved::{number, text};
use super::{Law, Scenario};
use crate::thermostat::{Kind, Thermostat};
use crate::units::{Dimension, System};

/// Reports a mistake if a section is given that needs ions in a periodic box and there are none.
fn needs_ions(s: &Section<'_>, law: Law, shortest: Option<f64>) {
    if law != Law::Coulomb || shortest.is_none() {
        let message = format!("{} is for ions in a periodic box", s.full("kind"));
        let help = "set force.law = \"coulomb\" and boundary.kind = \"periodic\"";
        s.mistake("kind", message, "there are none here", Some(help.into()));
    }
}

/// Two numbers above zero, of positive and negative ions; one number is that of both.
fn of_both(s: &mut Section<'_>, key: &'static str, dimension: Dimension, units: System) -> Option<[f64; 2]> {
    let one = s.quantity(key, dimension, units, Range::POSITIVE);
    if !s.has(key) {
        s.missing(key, &format!("of the positive ions, for example {key} = 0.3"));
    }
    one.map(|x| [x; 2])
}

/// Reads `[short_range]`; `shortest` is the shortest side of the box, if there is one.
pub(super) fn short_range(mut s: Section<'_>, units: System, law: Law, shortest: Option<f64>) -> Option<LennardJones> {
    let asked = s.choice("kind", &[("none", false), ("lennard-jones", true)]) == Some(true);
    if !asked {
        let keys = [
            s.quantity("sigma", Dimension::Length, units, Range::POSITIVE).is_some(),
            s.quantity("epsilon", Dimension::Energy, units, Range::POSITIVE).is_some(),
            s.quantity("partner_sigma", Dimension::Length, units, Range::POSITIVE).is_some(),
            s.quantity("partner_epsilon", Dimension::Energy, units, Range::POSITIVE).is_some(),
            s.quantity("cutoff", Dimension::Length, units, Range::POSITIVE).is_some(),
        ];
        if keys.contains(&true) && !s.has("kind") {
            s.missing("kind", "kind = \"lennard-jones\"");
        }
        s.close();
        return None;
    }
    needs_ions(&s, law, shortest);
    let (mut sigma, mut epsilon) =
        (of_both(&mut s, "sigma", Dimension::Length, units), of_both(&mut s, "epsilon", Dimension::Energy, units));
    if let (Some(both), Some(x)) = (&mut sigma, s.quantity("partner_sigma", Dimension::Length, units, Range::POSITIVE))
    {
        both[1] = x;
    }
    if let (Some(both), Some(x)) =
        (&mut epsilon, s.quantity("partner_epsilon", Dimension::Energy, units, Range::POSITIVE))
    {
        both[1] = x;
    }
    let cutoff = s.quantity("cutoff", Dimension::Length, units, Range::POSITIVE);
    if !s.has("cutoff") {
        s.missing("cutoff", "where forces end, some 2.5 sigma, for example cutoff = 0.9");
    }
    if let (Some(cutoff), Some(shortest)) = (cutoff, shortest)
        && cutoff > 0.5 * shortest
    {
        let message =
            format!("{} = {} reaches beyond half of the box", s.full("cutoff"), crate::messages::number(cutoff));
        s.mistake("cutoff", message, format!("allowed: up to {}", crate::messages::number(0.5 * shortest)), None);
    }
    s.close();
    Some(LennardJones { sigma: sigma?, epsilon: epsilon?, cutoff: cutoff? })
}

/// Reads `[thermostat]`; `steps` turns a time into steps.
pub(super) fn thermostat(
    mut s: Section<'_>,
    units: System,
    law: Law,
    shortest: Option<f64>,
    dt: Option<f64>,
) -> Option<Thermostat> {
    let kinds = [("none", None), ("langevin", Some(Kind::Langevin)), ("rescale", Some(Kind::Rescale))];
    let kind = s.choice("kind", &kinds).flatten();
    let temperature = s.number("temperature", Range::POSITIVE);
    let time = s.quantity("time", Dimension::Time, units, Range::POSITIVE);
    let until = s.quantity("until", Dimension::Time, units, Range::NOT_NEGATIVE);
    let given = s.has("temperature") || s.has("time") || s.has("until");
    let Some(kind) = kind else {
        if given && !s.has("kind") {
            s.missing("kind", "one of none, langevin, rescale");
        }
        s.close();
        return None;
    };
    needs_ions(&s, law, shortest);
    for (key, help) in [
        ("temperature", "of the bath, for example temperature = 1200.0"),
        ("time", "in which velocities forget, for example time = 0.1"),
    ] {
        if !s.has(key) {
            s.missing(key, help);
        }
    }
    s.close();
    // A bath that ends within a step takes no part in it.
    let last = match (until, dt) {
        (Some(until), Some(dt)) => (until / dt * (1.0 + 1e-12)) as u64,
        _ => u64::MAX,
    };
    let temperature = temperature?;
    Some(Thermostat { kind, temperature, energy: units.boltzmann() * temperature, time: time?, last })
}

impl Scenario {
    /// The sections of the resolved scenario, if there is anything in them.
    pub(super) fn write_molecular(&self, out: &mut String) -> std::fmt::Result {
        let unit = |d| match self.units.unit(d) {
            "" => String::new(),
            u => format!("  # {u}"),
        };
        let (length, time) = (unit(Dimension::Length), unit(Dimension::Time));
        if let Some(pairs) = &self.short_range {
            let [a, b] = pairs.sigma.map(number);
            writeln!(
                out,
                "\n[short_range]\nkind = \"lennard-jones\"\nsigma = {a}{length}\npartner_sigma = {b}{length}"
            )?;
            let [a, b] = pairs.epsilon.map(number);
            writeln!(out, "epsilon = {a}\npartner_epsilon = {b}\ncutoff = {}{length}", number(pairs.cutoff))?;
        }
        let Some(bath) = &self.bath else { return Ok(()) };
        writeln!(out, "\n[thermostat]\nkind = {}\ntemperature = {}", text(bath.kind.name()), number(bath.temperature))?;
        writeln!(out, "time = {}{time}", number(bath.time))?;
        match bath.last {
            u64::MAX => Ok(()),
            last => writeln!(out, "until = {}{time}", number(self.clock.time(last))),
        }
    }
}
