//! Errors of sums that a scenario asks for and cannot have, with the keys that they are about.

use fmm_core::{Error, ErrorKind, Softening};

use super::Scenario;
use super::resolved::{text, vector};
use crate::messages::{self, number};

impl Scenario {
    /// The message of an error that the scenario's keys cause: a setting out of its range, a request that
    /// no sum meets, a tolerance that is not reached. `None` for all other errors, of numbers and of the device.
    pub fn refused(&self, error: &Error) -> Option<String> {
        match error.kind() {
            ErrorKind::Request | ErrorKind::Tolerance => {}
            ErrorKind::Data if matches!(error, Error::Charged(_)) => {}
            ErrorKind::Data | ErrorKind::Device | ErrorKind::Cancelled => return None,
        }
        if self.settings.errors && error.to_string().starts_with("errors of each target") {
            return Some(self.lacking_errors());
        }
        let message = messages::error(error);
        let keys = self.keys_of(&message);
        Some(if keys.is_empty() { message } else { format!("{message} (the scenario has {})", keys.join(", ")) })
    }

    /// What is said where the device estimates no errors of forces and snapshots are to hold them.
    pub fn lacking_errors(&self) -> String {
        format!(
            "output.fields names \"force_error\", but the errors of forces are not estimated with solver.device = \"{}\"; \
             allowed with it: solver.device = \"cpu\"",
            self.device
        )
    }

    /// The keys that a message names in words, with their values: those of the options of a sum.
    fn keys_of(&self, message: &str) -> Vec<String> {
        let s = &self.settings;
        let count = |n: Option<usize>| n.map(|n| n.to_string());
        let kernel = s.softening;
        let softening = (kernel != Softening::None && !kernel.screens())
            .then(|| format!("{{ kernel = {}, length = {} }}", text(kernel.name()), number(kernel.length())));
        let cell = s.boundary.periodic();
        let known = [
            ("method", "solver.method", Some(text(s.method.name()))),
            ("precision", "solver.precision", Some(text(s.precision.name()))),
            ("tolerance", "solver.tolerance", Some(number(s.tolerance))),
            ("order", "solver.order", count(s.order)),
            ("theta", "solver.theta", s.theta.map(number)),
            ("leaf", "solver.leaf_size", count(s.leaf_size)),
            ("screen", "force.screening_length", kernel.screens().then(|| number(kernel.screening_length()))),
            ("soften", "force.softening", softening),
            ("box", "boundary.side", cell.map(|cell| vector(cell.side))),
            ("surroundings", "boundary.surroundings", cell.map(super::boundary::surroundings)),
        ];
        let named = known.into_iter().filter(|(word, ..)| message.contains(word));
        named.filter_map(|(_, key, value)| Some(format!("{key} = {}", value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_keys_that_they_are_about() {
        let text = "[force]\nlaw = 'coulomb'\nscreening_length = 0.25\n[[particles]]\nmodel = 'uniform-sphere'\n\
                    n = 10\nradius = 1\ncharge = 1\n[solver]\nmethod = 'fmm'\nprecision = 'f32'\n[time]\ndt = 1\nend = 1\n";
        let scenario =
            Scenario::parse("a.toml", text.into(), None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        let screened = Error::Unsupported("expansions end at 30 screening lengths; method direct".into());
        let tolerance = Error::Tolerance { tolerance: 1e-4, method: "fmm", precision: "f32" };
        for (error, keys) in [
            (screened, "(the scenario has solver.method = \"fmm\", force.screening_length = 0.25)"),
            (tolerance, "(the scenario has solver.precision = \"f32\", solver.tolerance = 0.0001)"),
            (Error::Range { what: "theta", value: 2.0, range: "0.2 to 1" }, "theta = 2 is outside 0.2 to 1"),
        ] {
            let message = scenario.refused(&error).unwrap();
            assert!(message.ends_with(keys), "{message}");
        }
        let text = text.replace("precision = 'f32'", "device = 'cuda'") + "[output]\nfields = ['force_error']\n";
        let scenario = Scenario::parse("a.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        let message = scenario.refused(&Error::Unsupported("errors of each target are estimated elsewhere".into()));
        let expected = "output.fields names \"force_error\", but the errors of forces are not estimated with \
                        solver.device = \"cuda:0\"; allowed with it: solver.device = \"cpu\"";
        assert_eq!(message.as_deref(), Some(expected));
        let overflow = Error::NotFinite { what: "velocity", index: 0, value: f64::NAN, count: 1 };
        assert_eq!([scenario.refused(&overflow), scenario.refused(&Error::Device("lost".into()))], [None, None]);
    }
}
