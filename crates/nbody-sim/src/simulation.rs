//! A simulation in the hands of a caller, who makes the steps and looks at the particles in between.

use fmm::Note;
use fmm_core::{Error, StageTimes};

use crate::diagnostics::Diagnostics;
use crate::failure::Failure;
use crate::files::snapshot::Snapshot;
use crate::initial::{Initial, ReadHdf5, suspicious};
use crate::messages::number;
use crate::motion::Motion;
use crate::scenario::Scenario;
use crate::time_step::with_step;

/// Numbers of steps that are whole numbers in double precision.
const MOST_STEPS: f64 = 1e15;

/// The particles of a scenario. The same steps have the same bits as in a run of the command, in
/// any portions.
pub struct Simulation {
    scenario: Scenario,
    motion: Motion<'static>,
    /// Steps made.
    steps: u64,
    /// At the start, or where a caller has placed the particles: energies drift from these.
    first: Option<Diagnostics>,
    /// Whether the last forces have potentials.
    whole: bool,
    /// Whether a step has failed: the particles are somewhere within it.
    broken: bool,
    times: StageTimes,
}

impl Simulation {
    /// Makes the particles of a scenario and hands them to the device. Also returns warnings for
    /// the user. `hdf5` reads snapshots in HDF5 files, `note` receives notes on the choice of the
    /// device.
    ///
    /// # Errors
    /// Those of [`Initial::of`], [`with_step`] and [`Motion::new`].
    pub fn new(
        mut scenario: Scenario,
        hdf5: ReadHdf5,
        note: &mut dyn FnMut(Note),
    ) -> Result<(Self, Vec<String>), Failure> {
        // Its snapshots hold no estimated errors, and not every device has them.
        scenario.settings.errors = false;
        let initial = Initial::of(&scenario, hdf5)?;
        let mut warnings = suspicious(&scenario)?;
        let (scenario, chosen) = with_step(scenario, &initial)?;
        warnings.extend(chosen);
        let motion = Motion::new(&scenario, None, initial, note)?;
        let times = StageTimes::default();
        Ok((Simulation { scenario, motion, steps: 0, first: None, whole: false, broken: false, times }, warnings))
    }

    /// The scenario, with its step chosen.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The particles at the start, whose masses and charges stay.
    pub fn initial(&self) -> &Initial {
        self.motion.initial()
    }

    /// Number of steps made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The present time.
    pub fn time(&self) -> f64 {
        self.scenario.clock.time(self.steps)
    }

    /// Number of steps from now to a time.
    ///
    /// # Errors
    /// A time that is over, and one between two steps, with the times that are allowed.
    pub fn steps_until(&self, until: f64) -> Result<u64, String> {
        let clock = &self.scenario.clock;
        if until.is_nan() || until < self.time() {
            let now = number(self.time());
            return Err(format!("until = {} is before the present time; allowed: {now} or later", number(until)));
        }
        if until.is_infinite() || until / clock.dt > MOST_STEPS {
            let last = number(MOST_STEPS * clock.dt);
            return Err(format!("until = {} is more than 1e15 steps; allowed: {last} at most", number(until)));
        }
        let steps = clock.steps(until).map_err(|ratio| {
            let near = [ratio.floor(), ratio.ceil()].map(|steps| number(clock.time(steps as u64)));
            let (until, dt) = (number(until), number(clock.dt));
            format!("until = {until} is not a whole number of steps of {dt}; use {} or {}", near[0], near[1])
        })?;
        Ok(steps.saturating_sub(self.steps))
    }

    /// Makes a step. `last` is whether diagnostics may be asked for after it: without it they cost
    /// another sum.
    ///
    /// # Errors
    /// Those of [`Motion::step`]. The particles are then somewhere within the step, and no other
    /// step can be made.
    pub fn step(&mut self, last: bool) -> Result<(), Error> {
        if self.first.is_none() {
            self.first = Some(self.sums()?);
        }
        self.check()?;
        self.broken = true;
        self.whole = last;
        self.motion.step(self.steps + 1, last, &mut self.times)?;
        self.broken = false;
        self.steps += 1;
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        if !self.broken {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "the simulation failed within step {} and cannot go on; make a new one",
            self.steps + 1
        )))
    }

    /// Names and values of the diagnostics, as in the columns of `diagnostics.csv` after step and time.
    ///
    /// # Errors
    /// Those of the sum of the forces, and of the device.
    pub fn diagnostics(&mut self) -> Result<Vec<(&'static str, f64)>, Error> {
        let now = self.sums()?;
        Ok(now.named(self.first.get_or_insert(now)))
    }

    fn sums(&mut self) -> Result<Diagnostics, Error> {
        self.check()?;
        if !self.whole {
            self.motion.want_potential(true);
            self.motion.forget_forces();
        }
        self.motion.refresh(&mut self.times)?;
        self.whole = true;
        match self.motion.totals()? {
            Some(now) => Ok(now),
            None => {
                let copied = self.motion.copy()?()?;
                Ok(self.motion.diagnostics(&copied))
            }
        }
    }

    /// The particles as a snapshot of a run has them: without potentials and accelerations,
    /// positions in their box.
    ///
    /// # Errors
    /// Those of the device; of vortices, whose velocities follow from a sum, those of the sum.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error> {
        if self.scenario.vortices() {
            self.motion.refresh(&mut self.times)?;
        }
        let copied = self.motion.copy()?()?;
        let (time, step) = (self.time(), self.steps);
        Ok(Snapshot { time, step, ..self.motion.builder().snapshot(copied, &[]) })
    }

    /// Places the particles elsewhere, in a periodic box relative to the image in which each is.
    /// Errors of the energy count from here on. `[n]`
    ///
    /// # Errors
    /// Values that are not finite, and those of the device.
    pub fn set_positions(&mut self, position: Vec<[f64; 3]>) -> Result<(), Error> {
        (self.first, self.whole) = (None, false);
        let position = self.motion.unwrapped(position)?;
        self.motion.change(|particles| particles.position = position)
    }

    /// Gives the particles other velocities. Errors of the energy count from here on. `[n]`
    ///
    /// # Errors
    /// Values that are not finite, and those of the device.
    pub fn set_velocities(&mut self, velocity: Vec<[f64; 3]>) -> Result<(), Error> {
        (self.first, self.whole) = (None, false);
        self.motion.change(|particles| particles.velocity = velocity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initial::no_hdf5;
    use fmm_core::{ForceReport, Totals};

    fn simulation(more: &str) -> Simulation {
        of(format!("[[particles]]\nmodel = 'plummer'\nn = 40\n[time]\ndt = 0.01\nend = 1\n{more}"))
    }

    fn of(text: String) -> Simulation {
        let scenario = Scenario::parse("s.toml", text, None, &[]).unwrap_or_else(|p| panic!("{}", p.render(false)));
        Simulation::new(scenario, no_hdf5, &mut |_| {}).unwrap().0
    }

    #[test]
    fn looks_in_between_leave_the_bits() {
        for integrator in ["leapfrog-kdk", "leapfrog-dkd", "yoshida4"] {
            let key = format!("integrator = '{integrator}'");
            let (mut plain, mut watched) = (simulation(&key), simulation(&key));
            for step in 0..5 {
                plain.step(false).unwrap();
                watched.diagnostics().unwrap();
                watched.step(step % 2 == 0).unwrap();
                watched.snapshot().unwrap();
            }
            assert_eq!(plain.snapshot().unwrap(), watched.snapshot().unwrap(), "{integrator}");
            // The potentials of the last forces are not there: they are summed again.
            assert_eq!(plain.diagnostics().unwrap(), watched.diagnostics().unwrap(), "{integrator}");
        }
    }

    /// A store that sums its totals itself gives the columns of one whose particles are copied.
    #[test]
    fn totals_have_the_names_of_copies() {
        let names = |d: Vec<(&'static str, f64)>| d.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let ions = "[force]\nlaw = 'coulomb'\n[boundary]\nkind = 'periodic'\nside = 20";
        let gravity = "[boundary]\nkind = 'periodic'\nside = 20";
        for (more, extra) in [("", ""), (gravity, ""), (ions, "charge = 1\n")] {
            let text =
                format!("[[particles]]\nmodel = 'uniform-cube'\nn = 40\n{extra}[time]\ndt = 0.01\nend = 1\n{more}");
            let mut s = of(text);
            let (totals, report) = (Totals { kinetic: 2.0, ..Totals::default() }, ForceReport::default());
            let found = s.motion.builder().diagnostics_of(&totals, report);
            let names_found = names(found.named(&found));
            assert_eq!(names_found, names(s.diagnostics().unwrap()), "{more}");
            assert_eq!(names_found.contains(&"temperature"), more == ions, "{more}");
        }
    }

    #[test]
    fn energies_count_from_the_start_or_a_change() {
        let mut s = simulation("");
        let error = |s: &mut Simulation| s.diagnostics().unwrap().iter().find(|(n, _)| *n == "energy_error").unwrap().1;
        // The energy at the start is known without anybody having asked for it.
        (0..5).for_each(|_| s.step(false).unwrap());
        assert!(error(&mut s) != 0.0 && error(&mut s).abs() < 0.01);
        let faster = s.snapshot().unwrap().velocity.iter().map(|v| v.map(|v| 2.0 * v)).collect();
        s.set_velocities(faster).unwrap();
        assert_eq!(error(&mut s), 0.0);
        let refused = s.set_positions(vec![[f64::NAN; 3]; 40]);
        assert!(matches!(refused, Err(Error::NotFinite { .. })) && error(&mut s) == 0.0);
    }

    #[test]
    fn times_between_steps_are_refused_with_those_that_are_allowed() {
        let mut s = simulation("");
        s.step(true).unwrap();
        assert_eq!((s.steps_until(0.01), s.steps_until(0.3)), (Ok(0), Ok(29)));
        for (until, says) in [
            (0.0, "until = 0 is before the present time; allowed: 0.01 or later"),
            (f64::NAN, "until = NaN is before"),
            (0.333, "until = 0.333 is not a whole number of steps of 0.01; use 0.33 or 0.34"),
        ] {
            assert!(s.steps_until(until).unwrap_err().contains(says), "{:?}", s.steps_until(until));
        }
    }

    #[test]
    fn no_step_follows_one_that_failed() {
        let mut s = simulation("");
        s.set_velocities(vec![[f64::MAX; 3]; 40]).unwrap();
        assert!(s.step(true).is_err() && s.steps() == 0);
        for again in [s.step(true), s.diagnostics().map(|_| ())] {
            assert!(again.unwrap_err().to_string().contains("failed within step 1"));
        }
    }
}
