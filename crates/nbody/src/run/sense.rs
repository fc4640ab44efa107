//! Results that make no sense: a run reports each kind once while it goes on, and all at its end.
//!
//! None of them is certain to be a mistake, so the exit code stays 0 unless `--strict` asks for 1.

use std::f64::consts::PI;

use fmm_core::totals::{degrees_of_freedom, kinetic_about_center};

use crate::diagnostics::Diagnostics;
use crate::messages::{number, short};
use crate::scenario::{Law, Scenario};
use crate::thermostat::{Kind, Thermostat};
use crate::units::System;

/// Energy may be off by this part before it is reported.
const ENERGY: f64 = 0.01;
/// A cluster whose virial ratio is larger flies apart within a crossing time.
const VIRIAL: f64 = 20.0;
/// A temperature this many times above or below its bath has left it, if it does not scatter that much.
const TEMPERATURE: f64 = 2.0;
/// Standard deviations that the logarithm of the temperature of few ions may be off.
const SCATTER: f64 = 6.0;
/// A temperature this many times above that of the bath and of the start is that of no liquid.
const WILD: f64 = 10.0;
/// Ions whose temperature is this part of that of their bath do not move.
const AT_REST: f64 = 1e-6;
/// A bath has taken hold of ions whose temperature is this close to its own.
const HELD: f64 = 1.2;

/// Kinetic energy about the center of mass, and potential energy: the same in every frame of reference.
#[derive(Debug, Clone, Copy)]
struct Energies {
    kinetic: f64,
    potential: f64,
}

impl Energies {
    /// The energies of particles with this total mass. Where momentum is not conserved, the motion
    /// of the center of mass is not subtracted.
    fn of(scenario: &Scenario, mass: f64, now: &Diagnostics) -> Self {
        let carried = scenario.law != Law::Vortex && scenario.external.is_none() && mass > 0.0;
        let kinetic = if carried { kinetic_about_center(now.kinetic, now.momentum, mass) } else { now.kinetic };
        Energies { kinetic, potential: now.potential }
    }

    /// |E − E₀| relative to |E₀|, to a tenth of T₀ + |W₀| where these nearly cancel, or to `least`; 0 where there is
    /// nothing to compare with.
    fn error(self, first: Energies, least: f64) -> f64 {
        let total = |e: Energies| e.kinetic + e.potential;
        let scale = total(first).abs().max(0.1 * (first.kinetic + first.potential.abs())).max(least);
        let error = (total(self) - total(first)).abs();
        if scale == 0.0 { 0.0 } else { error / scale }
    }
}

/// Names of what a checkpoint keeps.
const KEPT: [&str; 9] = [
    "sense_first_kinetic",
    "sense_first_potential",
    "sense_energy_error",
    "sense_largest_energy_error",
    "sense_bath_held",
    "sense_energy_reported",
    "sense_virial_reported",
    "sense_temperature_reported",
    "sense_energy_conserved",
];

/// What diagnostics have shown so far.
#[derive(Debug, Default)]
pub struct Sense {
    /// The total mass.
    mass: f64,
    /// Σ Γ² or Σ m².
    squares: f64,
    /// Number of particles.
    count: usize,
    /// Energies at the first look since they are conserved, or at the last one before; the least ones where viscosity takes
    /// energy.
    first: Option<Energies>,
    /// Error of the energy at the last look.
    energy: f64,
    /// Largest error of the energy.
    worst: f64,
    /// Whether there has been a look since energy is conserved.
    conserved: bool,
    /// The temperature at the first look, in units of the bath's.
    begun: Option<f64>,
    /// Whether the temperature has reached that of its bath.
    held: bool,
    energy_reported: bool,
    virial_reported: bool,
    temperature_reported: bool,
}

impl Sense {
    /// Nothing shown yet, of particles with these masses or circulations.
    pub fn new(masses: &[f64]) -> Self {
        let (mass, squares) = (masses.iter().sum(), masses.iter().map(|m| m * m).sum());
        Sense { mass, squares, count: masses.len(), ..Sense::default() }
    }

    /// The least energy that an error of the energy is relative to. In the plane the zero of potentials means nothing:
    /// there it is what W changes by when all distances grow by e, Clausius' virial or ((ΣΓ)² − ΣΓ²)/4π, and of vortices at least
    /// ΣΓ²/4π; in space nothing.
    fn least_energy(&self, scenario: &Scenario, now: &Diagnostics) -> f64 {
        match scenario.plane {
            None => 0.0,
            Some(_) if scenario.law == Law::Vortex => {
                f64::max((self.mass * self.mass - self.squares).abs(), self.squares) / (4.0 * PI)
            }
            Some(_) => now.clausius.abs(),
        }
    }

    /// What a checkpoint keeps, so that a resumed run ends as an unbroken one.
    pub fn numbers(&self) -> Vec<(String, f64)> {
        let first = self.first.map_or([0.0; 2], |e| [e.kinetic, e.potential]);
        let Sense { energy, worst, held, energy_reported, virial_reported, temperature_reported, conserved, .. } =
            *self;
        let flags = [held, energy_reported, virial_reported, temperature_reported, conserved];
        let values = [first[0], first[1], energy, worst].into_iter().chain(flags.map(|f| f64::from(u8::from(f))));
        KEPT.into_iter().zip(values).map(|(name, value)| (name.to_string(), value)).collect()
    }

    /// The reverse of [`numbers`](Self::numbers); a checkpoint without them leaves nothing shown.
    pub fn recall(&mut self, numbers: &[(String, f64)]) {
        let all = KEPT.map(|name| numbers.iter().find(|(n, _)| n == name).map(|&(_, value)| value));
        let [Some(kinetic), Some(potential), Some(energy), Some(worst), held, energetic, virial, heated, conserved] =
            all
        else {
            return;
        };
        self.first = Some(Energies { kinetic, potential });
        (self.energy, self.worst) = (energy, worst);
        let flag = |value: Option<f64>| value == Some(1.0);
        (self.held, self.energy_reported) = (flag(held), flag(energetic));
        (self.virial_reported, self.temperature_reported, self.conserved) =
            (flag(virial), flag(heated), flag(conserved));
    }

    /// What diagnostics after `step` show for the first time, with the likely cause and what to try.
    pub fn look(&mut self, scenario: &Scenario, step: u64, now: &Diagnostics) -> Vec<String> {
        let mut found = vec![];
        let energies = Energies::of(scenario, self.mass, now);
        // A bath exchanges energy with the particles: it is conserved from the first look after that.
        if !self.conserved {
            self.first = Some(energies);
            self.conserved = scenario.bath.is_none_or(|bath| step >= bath.last);
        }
        // Viscosity takes energy from vortices in space, and gives none: the least energy so far is not exceeded.
        let viscous = scenario.viscosity > 0.0;
        if viscous && self.first.is_some_and(|first| energies.kinetic < first.kinetic) {
            self.first = Some(energies);
        }
        let first = self.first.unwrap_or(energies);
        // In the plane energies are of pairs of blobs, which viscosity widens.
        let widens = viscous && scenario.plane.is_some();
        let error = if widens { 0.0 } else { energies.error(first, self.least_energy(scenario, now)) };
        if error > ENERGY && error > 10.0 * self.energy && !self.energy_reported {
            self.energy_reported = true;
            found.push(self.energy_text(scenario, error));
        }
        (self.energy, self.worst) = (error, self.worst.max(error));
        let ratio = if now.clausius == 0.0 { 0.0 } else { -2.0 * energies.kinetic / now.clausius };
        let bound = scenario.law == Law::Gravity && now.ions.is_none() && scenario.external.is_none();
        if bound && ratio > VIRIAL && !self.virial_reported {
            self.virial_reported = true;
            found.push(format!(
                "the virial ratio is {}: the particles fly apart, as if masses were too small or velocities too large; are \
                 units.system and the units of files what was meant?",
                short(ratio)
            ));
        }
        if let (Some(ions), Some(bath)) = (now.ions, scenario.bath) {
            found.extend(self.temperature(scenario.units, (ions.temperature, bath), step));
        }
        found
    }

    /// What the temperature of ions after `step` shows for the first time, next to that of their bath.
    fn temperature(&mut self, units: System, (temperature, bath): (f64, Thermostat), step: u64) -> Option<String> {
        let ratio = temperature / bath.temperature;
        let begun = *self.begun.get_or_insert(ratio);
        self.held |= (1.0 / HELD..HELD).contains(&ratio);
        let freedom = degrees_of_freedom(self.count).max(1.0);
        let most = TEMPERATURE.max((SCATTER * (2.0 / freedom).sqrt()).exp());
        let left = self.held && !(1.0 / most..most).contains(&ratio);
        // Ions may begin cold or hot, but a bath makes none hotter than both.
        let wild = ratio > most.max(WILD) * begun.max(1.0);
        let at_rest =
            bath.kind == Kind::Rescale && (1..=bath.last).contains(&step) && ratio < AT_REST && self.count > 1;
        if self.temperature_reported || !(left || wild || at_rest) {
            return None;
        }
        self.temperature_reported = true;
        let kelvin = if units.has_kelvin() { " K" } else { "" };
        let [now, asked] = [temperature, bath.temperature].map(short);
        let why = if at_rest {
            "thermostat.kind = \"rescale\" multiplies the motion about the center of mass, and there is none: give velocities, or \
             begin with \"langevin\""
        } else {
            "try a smaller time.dt, or look for ions too close to each other"
        };
        Some(format!("the temperature is {now}{kelvin}, and the bath's {asked}{kelvin}: {why}"))
    }

    /// What is to be said at the end of a run of `particles`.
    pub fn end(&self, scenario: &Scenario, particles: usize) -> Vec<String> {
        let mut found = vec![];
        if particles == 0 {
            found.push("there were no particles: is a table of [[particles]] empty?".to_string());
        }
        if self.worst > ENERGY {
            found.push(self.energy_text(scenario, self.worst));
        }
        if self.virial_reported || self.temperature_reported {
            let what = if self.virial_reported { "virial ratio" } else { "temperature" };
            found.push(format!("the {what} made no sense during the run"));
        }
        found
    }

    fn energy_text(&self, scenario: &Scenario, error: f64) -> String {
        let percent = if error < 10.0 { format!("{:.1} %", 100.0 * error) } else { format!("{error:.0} times itself") };
        let mut causes = vec![format!("a smaller time.dt (now {})", number(scenario.clock.dt))];
        if scenario.settings.softening.length() == 0.0 && scenario.plane.is_none() {
            causes.push("a softening (now none)".into());
        } else {
            causes.push("a longer softening".into());
        }
        let units = if scenario.units == System::Nbody { "" } else { ", and check units.system" };
        format!("the energy is off by {percent}; try {}{units}", causes.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Ions;

    fn scenario(more: &str) -> Scenario {
        let text = format!("[[particles]]\nmodel = \"plummer\"\nn = 10\n[time]\ndt = 0.01\nend = 1\n{more}");
        Scenario::parse("s.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)))
    }

    fn energies(kinetic: f64, potential: f64) -> Diagnostics {
        Diagnostics { kinetic, potential, clausius: potential, ..Diagnostics::default() }
    }

    #[test]
    fn energy_that_leaps_is_reported_once_and_at_the_end() {
        let (s, first) = (scenario(""), energies(0.25, -0.5));
        let mut sense = Sense::default();
        assert!(sense.look(&s, 1, &first).is_empty() && sense.look(&s, 1, &energies(0.251, -0.5)).is_empty());
        let text = sense.look(&s, 1, &energies(1.0, -0.5)).concat();
        assert!(text.contains("off by 300.0 %") && text.contains("time.dt (now 0.01)"), "{text}");
        assert!(sense.look(&s, 1, &energies(2.0, -0.5)).is_empty(), "once");
        assert_eq!(sense.end(&s, 10).len(), 1);
        // A slow drift is said at the end alone; where T and W nearly cancel, their difference is no measure.
        let mut slow = Sense::default();
        slow.look(&s, 1, &first);
        for k in 0..30 {
            assert!(slow.look(&s, 1, &energies(0.25 + 1e-3 * f64::from(k), -0.5)).is_empty());
        }
        assert!(slow.end(&s, 10).concat().contains("off by 11.6 %"), "{:?}", slow.end(&s, 10));
        let mut parabolic = Sense::default();
        parabolic.look(&s, 1, &energies(0.5, -0.500_001));
        assert!(parabolic.look(&s, 1, &energies(0.500_1, -0.500_001)).is_empty() && parabolic.end(&s, 10).is_empty());
    }

    /// Vortices in the plane or in space.
    fn vortices(more: &str) -> Scenario {
        let text = format!("[force]\nlaw = \"vortex\"\n{more}");
        Scenario::parse("s.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)))
    }

    #[test]
    fn vortices_of_both_signs_are_compared_with_what_their_distances_are_worth() {
        let s = vortices(
            "[run]\ndimensions = 2\n[[particles]]\nmodel = \"vortex-patch\"\nn = 10\ncirculation = 1.0\n[time]\ndt = 0.01\nend = 1\n",
        );
        // 2,000 of them: ΣΓ²/4π = 159, (Σ|Γ|)²/4π = 318,000.
        let strengths: Vec<f64> = (0..2000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let mut sense = Sense::new(&strengths);
        assert!(sense.look(&s, 0, &energies(0.0, 30.0)).is_empty());
        assert!(sense.look(&s, 1, &energies(0.0, 31.0)).is_empty());
        let text = sense.look(&s, 2, &energies(0.0, -380.0)).concat();
        assert!(text.contains("off by 257.6 %"), "{text}");
        // Of one sign all pairs count.
        let mut equal = Sense::new(&[1.0; 2000]);
        equal.look(&s, 0, &energies(0.0, 30.0));
        assert!(equal.look(&s, 1, &energies(0.0, -380.0)).is_empty());
    }

    #[test]
    fn viscosity_never_gives_energy() {
        let s = vortices(
            "softening = { kernel = \"p1\", length = 0.2 }\n[[particles]]\nmodel = \"vortex-ring\"\ncirculation = 1.0\nradius = 1.0\n\
             core = 0.2\nspacing = 0.2\n[time]\ndt = 0.01\nend = 1\nviscosity = 0.01\n",
        );
        let mut sense = Sense::new(&[0.0; 10]);
        for kinetic in [500.0, 410.0, 412.0, 405.0] {
            assert!(sense.look(&s, 1, &energies(kinetic, 0.0)).is_empty(), "{kinetic}");
        }
        let text = sense.look(&s, 1, &energies(421.0, 0.0)).concat();
        assert!(text.contains("off by 4.0 %"), "{text}");
    }

    #[test]
    fn clusters_that_fly_apart_and_empty_runs_are_reported() {
        let (s, wild) = (scenario(""), energies(30.0, -0.5));
        let mut sense = Sense::default();
        assert!(sense.look(&s, 1, &wild).concat().contains("virial ratio is 120"));
        assert_eq!((sense.look(&s, 1, &wild).len(), sense.end(&s, 10).len()), (0, 1));
        assert!(Sense::default().end(&s, 0).concat().contains("no particles"));
    }

    #[test]
    fn the_frame_of_reference_makes_no_difference() {
        // A cluster of mass 2 that moves at 10: T = 0.25 + 100.
        let (s, moving) =
            (scenario(""), |kinetic: f64| Diagnostics { momentum: [20.0, 0.0, 0.0], ..energies(kinetic, -0.5) });
        let mut sense = Sense::new(&[2.0]);
        assert!(sense.look(&s, 1, &moving(100.25)).is_empty() && sense.end(&s, 10).is_empty());
        // 300 % of −0.25, and a part in a hundred of the energy in this frame.
        let text = sense.look(&s, 1, &moving(101.0)).concat();
        assert!(text.contains("off by 300.0 %"), "{text}");
    }

    #[test]
    fn a_resumed_run_remembers() {
        let (s, first) = (scenario(""), energies(0.25, -0.5));
        let mut sense = Sense::new(&[1.0]);
        sense.look(&s, 1, &first);
        sense.look(&s, 1, &energies(1.0, -0.5));
        let mut resumed = Sense::new(&[1.0]);
        resumed.recall(&sense.numbers());
        assert_eq!(resumed.end(&s, 10), sense.end(&s, 10));
        assert!(
            resumed.end(&s, 10).concat().contains("300.0 %") && resumed.look(&s, 1, &energies(2.0, -0.5)).is_empty()
        );
    }

    /// Ions with a bath of 300 K up to step 10, and their diagnostics.
    fn ions(kind: &str) -> (Scenario, impl Fn(f64, f64) -> Diagnostics) {
        let text = format!(
            "[units]\nsystem = \"md\"\n[force]\nlaw = \"coulomb\"\n[[particles]]\nmodel = \"crystal\"\nlattice = \"NaCl\"\ncells = 2\n\
             spacing = 0.3\nsurface = \"periodic\"\ncharge = 1.0\nmass = 23\n[boundary]\nkind = \"periodic\"\nside = 1.2\n[thermostat]\n\
             kind = \"{kind}\"\ntemperature = 300\ntime = 0.1\nuntil = 0.1\n[time]\ndt = 0.01\nend = 1\n"
        );
        let scenario = Scenario::parse("s.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        let diagnostics = |temperature: f64, potential: f64| Diagnostics {
            ions: Some(Ions { temperature, ..Ions::default() }),
            ..energies(1e-3 * temperature, potential)
        };
        (scenario, diagnostics)
    }

    #[test]
    fn ions_hotter_than_bath_and_start_are_reported() {
        let (s, of) = ions("langevin");
        let mut sense = Sense::new(&[23.0; 64]);
        assert!(sense.look(&s, 0, &of(0.0, -10.0)).is_empty() && sense.look(&s, 1, &of(1000.0, -10.0)).is_empty());
        let text = sense.look(&s, 2, &of(2.5e57, -10.0)).concat();
        assert!(text.contains("the temperature is 2.5e57 K, and the bath's 300 K: try a smaller time.dt"), "{text}");
        // What begins hot may cool.
        let mut hot = Sense::new(&[23.0; 64]);
        assert!(hot.look(&s, 0, &of(20_000.0, -10.0)).is_empty() && hot.look(&s, 1, &of(10_000.0, -10.0)).is_empty());
        assert!(hot.end(&s, 64).is_empty());
    }

    #[test]
    fn ions_at_rest_are_not_rescaled() {
        for (kind, count) in [("rescale", 1), ("langevin", 0)] {
            let (s, of) = ions(kind);
            let mut sense = Sense::new(&[23.0; 64]);
            assert!(sense.look(&s, 0, &of(0.0, -10.0)).is_empty());
            let texts = sense.look(&s, 5, &of(1e-12, -10.0));
            assert!(texts.len() == count && texts.iter().all(|t| t.contains("begin with \"langevin\"")), "{texts:?}");
        }
    }

    #[test]
    fn energy_is_conserved_after_the_bath() {
        let (s, of) = ions("langevin");
        let mut sense = Sense::new(&[23.0; 64]);
        for (step, potential) in [(0, -10.0), (5, -7.0), (11, -6.0), (12, -6.0)] {
            assert!(sense.look(&s, step, &of(300.0, potential)).is_empty(), "step {step}");
        }
        let mut resumed = Sense::new(&[23.0; 64]);
        resumed.recall(&sense.numbers());
        for mut sense in [sense, resumed] {
            let text = sense.look(&s, 13, &of(300.0, -5.0)).concat();
            assert!(text.contains("the energy is off by 17.5 %"), "{text}");
        }
    }
}
