//! `[boundary]`: open space, or a box with images.

use std::fmt::Write;

use fmm_core::{Boundary, PeriodicBox, Softening, Surroundings};

use super::document::Value;
use super::reader::{Range, Section};
use super::resolved::{number, text, vector};
use super::{Law, Scenario};
use crate::messages;
use crate::units::{Dimension, System};

/// Names of surroundings; others are given by their dielectric constant.
const NAMED: [(&str, Surroundings); 2] =
    [("tinfoil", Surroundings::TinFoil), ("vacuum", Surroundings::Dielectric(1.0))];

/// Reads the section. `plane` is true for a run in the plane, `external` if there is a field that has no images.
pub(super) fn boundary(
    mut s: Section<'_>,
    units: System,
    law: Law,
    (softening, plane): (Softening, bool),
    external: bool,
) -> Boundary {
    let periodic = s.choice("kind", &[("open", false), ("periodic", true)]) == Some(true);
    let side = match s.item("side").map(|i| &i.value) {
        Some(Value::Array(_)) => s.vector("side", Dimension::Length, units),
        Some(_) => s.quantity("side", Dimension::Length, units, Range::SIDE).map(|side| [side; 3]),
        None => None,
    };
    let surroundings = match s.item("surroundings").map(|i| &i.value) {
        Some(Value::Float(_) | Value::Integer(_)) => {
            s.number("surroundings", Range::DIELECTRIC).map(Surroundings::Dielectric)
        }
        Some(_) => s.choice("surroundings", &NAMED),
        None => None,
    };
    for key in ["side", "surroundings"] {
        if !periodic && s.has(key) {
            let message = format!("{} has no effect in open space", s.full(key));
            s.mistake(key, message, "boundary.kind is \"open\"", Some("set boundary.kind = \"periodic\"".into()));
        }
    }
    if !periodic {
        s.close();
        return Boundary::Open;
    }
    let refuse = |label: &str, help: &str| {
        let message = "boundary.kind = \"periodic\" does not go with the rest".to_string();
        s.mistake("kind", message, label, Some(help.into()));
    };
    if plane {
        refuse("run.dimensions is 2", "periodic boxes are in space: set run.dimensions = 3");
    }
    if law == Law::Vortex && !plane {
        refuse("force.law is \"vortex\"", "vortices in space have no images: use kind = \"open\"");
    }
    if external {
        refuse("external fields have no images", "leave out [external], or use kind = \"open\"");
    }
    if !s.has("side") {
        s.missing("side", "the side of a cubic box, or three sides, for example side = 10.0");
    }
    let side = side.filter(|sides| {
        let bad = sides.iter().find(|side| !Range::SIDE.contains(**side));
        if let Some(side) = bad {
            let message = format!("{} = {} is outside its range", s.full("side"), messages::number(*side));
            s.mistake("side", message, format!("allowed: {}", Range::SIDE.text()), None);
        }
        bad.is_none()
    });
    let cell = side.map(|side| PeriodicBox { side, surroundings: surroundings.unwrap_or_default() });
    if let (false, Some(Err(why))) = (plane, cell.map(|cell| cell.check(softening))) {
        let help = if softening.screens() {
            "leave out force.screening_length, or use kind = \"open\""
        } else {
            "choose another force.softening, or a larger box"
        };
        refuse(&why.to_string(), help);
    }
    s.close();
    // Without its side a box is a box all the same: what goes with boxes alone is no mistake.
    let unknown = PeriodicBox { side: [Range::SIDE.high; 3], surroundings: surroundings.unwrap_or_default() };
    Boundary::Periodic(cell.unwrap_or(unknown))
}

/// The value of `boundary.surroundings` of this box.
pub(super) fn surroundings(cell: &PeriodicBox) -> String {
    let named = NAMED.iter().find(|(_, s)| *s == cell.surroundings).map(|(name, _)| text(name));
    match (named, cell.surroundings) {
        (Some(name), _) => name,
        (None, Surroundings::Dielectric(medium)) => number(medium),
        (None, Surroundings::TinFoil) => text("tinfoil"),
    }
}

impl Scenario {
    /// The section of the resolved scenario.
    pub(super) fn write_boundary(&self, out: &mut String) -> std::fmt::Result {
        let Some(cell) = self.settings.boundary.periodic() else {
            return writeln!(out, "\n[boundary]\nkind = \"open\"");
        };
        let surroundings = surroundings(cell);
        let unit = match self.units.unit(Dimension::Length) {
            "" => String::new(),
            u => format!("  # {u}"),
        };
        writeln!(out, "\n[boundary]\nkind = \"periodic\"\nside = {}{unit}", vector(cell.side))?;
        writeln!(out, "surroundings = {surroundings}")
    }
}
