//! Which models lie in the plane and which in space, and the keys of discs and of vortices.

use super::groups::Keys;
use super::models::{Kind, NAMES};
use super::reader::Range;
use super::{Law, Model};
use crate::messages;
use crate::units::Dimension;
use crate::vortex_ring::VortexRing;

impl Keys<'_> {
    /// Notes what does not fit the dimensions of the run.
    pub(super) fn place(&self, kind: Kind, [position, velocity, rotation]: [[f64; 3]; 3]) {
        let (name, (space, plane)) = (NAMES[kind as usize].0, kind.lies());
        let (fits, label) = match self.plane {
            true => (plane, "run.dimensions is 2"),
            false => (space, "run.dimensions is 3"),
        };
        if !fits {
            let fitting = NAMES.iter().filter(|(_, k)| if self.plane { k.lies().1 } else { k.lies().0 });
            let names: Vec<&str> = fitting.map(|(n, _)| *n).collect();
            let (lies, dimensions) = if self.plane { ("in space", 2) } else { ("in the plane", 3) };
            let help = format!("with run.dimensions = {dimensions}: {}", names.join(", "));
            self.s.mistake("model", format!("model = \"{name}\" lies {lies}"), label, Some(help));
        }
        if self.law == Law::Vortex && !self.plane && !matches!(kind, Kind::VortexRing | Kind::File) && space {
            let help = "use model = \"vortex-ring\" or \"file\" with force.law = \"vortex\" in space";
            let message = format!("the model {name} has masses, no vorticity");
            self.s.mistake("model", message, "force.law is \"vortex\"", Some(help.into()));
        }
        if self.law == Law::Vortex && velocity != [0.0; 3] {
            let message = "vortices have no velocity of their own".to_string();
            self.s.mistake("velocity", message, "they move with the flow", None);
        }
        let out_of_plane = |v: [f64; 3]| v[2] != 0.0;
        for (key, out) in [
            ("position", out_of_plane(position)),
            ("velocity", out_of_plane(velocity)),
            ("rotation", rotation[0] != 0.0 || rotation[1] != 0.0),
        ] {
            if self.plane && out {
                let allowed = if key == "rotation" { "allowed: [0, 0, angle]" } else { "allowed: [x, y, 0]" };
                self.s.mistake(key, format!("{} leaves the plane", self.s.full(key)), allowed, None);
            }
        }
    }

    pub(super) fn uniform_disc(&mut self) -> Option<Model> {
        let n = self.count(1);
        let (mass, radius) = (self.mass("mass", 1.0), self.length("radius", 1.0));
        let charge = self.charge("the total charge of the group, for example charge = 1");
        self.needs_inertia("a uniform disc");
        let velocities = self.velocities();
        Some(Model::UniformDisc { n: n?, mass, charge, radius, velocities })
    }

    pub(super) fn vortex_patch(&mut self) -> Option<Model> {
        let n = self.count(1);
        let circulation = self.s.number("circulation", Range::FINITE);
        if !self.s.has("circulation") {
            self.s.missing("circulation", "the total circulation of the patch, for example circulation = 1");
        }
        let radius = self.length("radius", 1.0);
        let axis_ratio = self.s.number("axis_ratio", Range::AXIS_RATIO).unwrap_or(1.0);
        if self.law != Law::Vortex {
            let label = format!("force.law is \"{}\"", self.law.name());
            let help = "set force.law = \"vortex\"";
            self.s.mistake("model", "a vortex patch has circulations, no masses".into(), label, Some(help.into()));
        }
        Some(Model::VortexPatch { n: n?, circulation: circulation?, radius, axis_ratio })
    }

    pub(super) fn vortex_ring(&mut self) -> Option<Model> {
        let circulation = self.s.number("circulation", Range::FINITE);
        if !self.s.has("circulation") {
            self.s.missing("circulation", "the circulation of the ring, for example circulation = 1");
        }
        let mut given = |key, default: Option<f64>| {
            let given = self.s.quantity(key, Dimension::Length, self.units, Range::SIZE);
            if self.s.has(key) { given } else { default }
        };
        let radius = given("radius", Some(1.0));
        let core = given("core", radius.map(|r| 0.1 * r));
        let spacing = given("spacing", core.map(|c| 0.5 * c));
        let (radius, core, spacing) = (radius?, core?, spacing?);
        for (key, value, of, most) in [("core", core, "radius", radius), ("spacing", spacing, "core", core)] {
            if value > most {
                let message = format!("{} = {} is above the {of}", self.s.full(key), messages::number(value));
                self.s.mistake(key, message, format!("allowed: to {}, the {of}", messages::number(most)), None);
            }
        }
        if self.law != Law::Vortex {
            let label = format!("force.law is \"{}\"", self.law.name());
            let help = "set force.law = \"vortex\"";
            self.s.mistake("model", "a vortex ring has vorticity, no masses".into(), label, Some(help.into()));
        }
        let ring = VortexRing { circulation: circulation?, radius, core, spacing };
        if ring.count() > u64::from(u32::MAX) - 1 {
            let message =
                format!("{} = {} makes too many particles", self.s.full("spacing"), messages::number(spacing));
            let label = format!("allowed: up to {} particles", u32::MAX - 1);
            self.s.mistake("spacing", message, label, Some("make it larger".into()));
        }
        Some(Model::VortexRing(ring))
    }

    /// Notes that the model's particles have masses.
    fn needs_inertia(&self, what: &str) {
        if self.law == Law::Vortex {
            let help = "use model = \"vortex-patch\" or \"file\" with force.law = \"vortex\"";
            self.s.mistake(
                "model",
                format!("{what} has masses, no circulations"),
                "force.law is \"vortex\"",
                Some(help.into()),
            );
        }
    }
}
