//! `[external]`: a fixed field in addition to that of the particles.

use std::fmt::Write;

use fmm_core::forces::{External, Shape};

use super::reader::{Range, Section};
use super::resolved::{number, text, vector};
use super::{Law, Scenario};
use crate::units::{Dimension, System};

/// A shape without its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    None,
    PointMass,
    LogarithmicHalo,
    UniformField,
}

const KINDS: [(&str, Kind); 4] = [
    ("none", Kind::None),
    ("point-mass", Kind::PointMass),
    ("logarithmic-halo", Kind::LogarithmicHalo),
    ("uniform-field", Kind::UniformField),
];

/// Keys with the potentials that they belong to.
const KEYS: [(&str, &[Kind]); 7] = [
    ("position", &[Kind::PointMass, Kind::LogarithmicHalo]),
    ("mass", &[Kind::PointMass]),
    ("charge", &[Kind::PointMass]),
    ("core_radius", &[Kind::PointMass, Kind::LogarithmicHalo]),
    ("velocity", &[Kind::LogarithmicHalo]),
    ("flattening", &[Kind::LogarithmicHalo]),
    ("field", &[Kind::UniformField]),
];

/// Reads the section; `None` where nothing acts from outside. In the plane there are no external
/// fields.
pub(super) fn external(mut s: Section<'_>, units: System, law: Law, plane: bool) -> Option<External> {
    let kind = s.choice("potential", &KINDS);
    let position = s.vector("position", Dimension::Length, units).unwrap_or_default();
    let mass = s.quantity("mass", Dimension::Mass, units, Range::POSITIVE);
    let charge = s.quantity("charge", Dimension::Charge, units, Range::FINITE);
    let core = s.quantity("core_radius", Dimension::Length, units, Range::NOT_NEGATIVE);
    let velocity = s.quantity("velocity", Dimension::Velocity, units, Range::POSITIVE);
    let flattening = s.number("flattening", Range::FLATTENING).unwrap_or(1.0);
    let field = s.numbers("field");
    let kind = match kind {
        Some(kind) => kind,
        None => {
            if !s.has("potential") && KEYS.iter().any(|(key, _)| s.has(key)) {
                s.missing("potential", "one of none, point-mass, logarithmic-halo, uniform-field");
            }
            s.close();
            return None;
        }
    };
    if plane && kind != Kind::None {
        let message = "there are no external fields in the plane".to_string();
        s.mistake("potential", message, "run.dimensions is 2", None);
        s.close();
        return None;
    }
    if law == Law::Vortex && kind != Kind::None {
        let message = "external fields do not act on vortices".to_string();
        s.mistake("potential", message, "force.law is \"vortex\"", None);
        s.close();
        return None;
    }
    let name = KINDS[kind as usize].0;
    for (key, kinds) in KEYS {
        if s.has(key) && !kinds.contains(&kind) {
            let label = format!("potential is \"{name}\"");
            s.mistake(key, format!("external.{key} does not belong to potential = \"{name}\""), label, None);
        }
    }
    let need = |key: &str, help: &str| {
        if !s.has(key) {
            s.missing(key, help);
        }
    };
    let source = match (kind, law) {
        (Kind::PointMass, Law::Gravity) => {
            need("mass", "the mass of the point, for example mass = 1");
            if s.has("charge") {
                let message = "a charge has no effect under gravity".to_string();
                s.mistake("charge", message, "force.law is \"gravity\"", Some("give external.mass".into()));
            }
            mass
        }
        (Kind::PointMass, Law::Coulomb) => {
            need("charge", "the charge of the point, for example charge = 1");
            if s.has("mass") {
                let message = "a mass has no effect under Coulomb's law".to_string();
                s.mistake("mass", message, "force.law is \"coulomb\"", Some("give external.charge".into()));
            }
            charge
        }
        _ => None,
    };
    if kind == Kind::LogarithmicHalo {
        need("velocity", "the circular velocity far outside, for example velocity = 1");
        need("core_radius", "the radius within which the force falls to 0, for example core_radius = 0.1");
        if law == Law::Coulomb {
            let message = "the logarithmic halo acts by gravity".to_string();
            s.mistake("potential", message, "force.law is \"coulomb\"", None);
        }
        if core == Some(0.0) {
            s.mistake("core_radius", "external.core_radius = 0 is outside its range".into(), "allowed: above 0", None);
        }
    }
    if kind == Kind::UniformField {
        need("field", "three components, for example field = [0, 0, -9.81]");
    }
    s.close();
    let shape = match kind {
        Kind::None => return None,
        Kind::PointMass => Shape::Point { source: source?, core_radius: core.unwrap_or(0.0) },
        Kind::LogarithmicHalo => Shape::Logarithmic { velocity: velocity?, core_radius: core?, flattening },
        Kind::UniformField => Shape::Uniform { field: field? },
    };
    Some(External { shape, position })
}

impl Scenario {
    /// Writes the section with every value, for `scenario.resolved.toml`.
    pub(super) fn write_external(&self, out: &mut String) -> std::fmt::Result {
        let Some(external) = &self.external else { return Ok(()) };
        let position = vector(external.position);
        writeln!(out, "\n[external]")?;
        match external.shape {
            Shape::Point { source, core_radius } => {
                let key = if self.charged() { "charge" } else { "mass" };
                writeln!(out, "potential = {}\nposition = {position}", text("point-mass"))?;
                writeln!(out, "{key} = {}\ncore_radius = {}", number(source), number(core_radius))
            }
            Shape::Logarithmic { velocity, core_radius, flattening } => {
                writeln!(out, "potential = {}\nposition = {position}", text("logarithmic-halo"))?;
                writeln!(out, "velocity = {}\ncore_radius = {}", number(velocity), number(core_radius))?;
                writeln!(out, "flattening = {}", number(flattening))
            }
            Shape::Uniform { field } => writeln!(out, "potential = \"uniform-field\"\nfield = {}", vector(field)),
        }
    }
}
