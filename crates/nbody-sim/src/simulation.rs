//! A simulation in the hands of a caller, who makes the steps and looks at the particles in between.

use std::sync::Arc;

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

/// The particles of a scenario. The same steps have the same bits as in a run of the command, in any portions.
pub struct Simulation {
    scenario: Scenario,
    motion: Motion,
    /// Steps made.
    steps: u64,
    /// At the start, or where a caller has placed the particles: energies drift from these.
    first: Option<Diagnostics>,
    /// Whether the last forces have potentials.
    whole: bool,
    times: StageTimes,
}

impl Simulation {
    /// Makes the particles of a scenario and hands them to the device. Also returns warnings for the user. `hdf5` reads
    /// snapshots in HDF5 files, `note` receives notes on the choice of the device.
    ///
    /// # Errors
    /// Those of [`Initial::of`], [`with_step`] and [`Motion::new`].
    pub fn new(scenario: Scenario, hdf5: ReadHdf5, note: &mut dyn FnMut(Note)) -> Result<(Self, Vec<String>), Failure> {
        let initial = Initial::of(&scenario, hdf5)?;
        let mut warnings = suspicious(&scenario)?;
        let (scenario, chosen) = with_step(scenario, &initial)?;
        warnings.extend(chosen);
        let motion = Motion::new(&scenario, Arc::new(initial), note)?;
        let times = StageTimes::default();
        Ok((Simulation { scenario, motion, steps: 0, first: None, whole: false, times }, warnings))
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
        let steps = clock.steps(until).map_err(|ratio| {
            let near = [ratio.floor(), ratio.ceil()].map(|steps| number(clock.time(steps as u64)));
            let (until, dt) = (number(until), number(clock.dt));
            format!("until = {until} is not a whole number of steps of {dt}; use {} or {}", near[0], near[1])
        })?;
        Ok(steps.saturating_sub(self.steps))
    }

    /// Makes a step. `last` is whether diagnostics may be asked for after it: without it they cost another sum.
    ///
    /// # Errors
    /// Those of [`Motion::step`]. The particles are then somewhere within the step.
    pub fn step(&mut self, last: bool) -> Result<(), Error> {
        if self.first.is_none() {
            self.first = Some(self.sums()?);
        }
        self.whole = last;
        self.motion.step(self.steps + 1, last, &mut self.times)?;
        self.steps += 1;
        Ok(())
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
        if !self.whole {
            self.motion.want_potential(true);
            self.motion.forget_forces();
            self.whole = true;
        }
        self.motion.refresh(&mut self.times)?;
        match self.motion.totals()? {
            Some(now) => Ok(now),
            None => {
                let copied = self.motion.copy()?()?;
                Ok(self.motion.diagnostics(&copied))
            }
        }
    }

    /// The particles as a snapshot of a run has them: without potentials and accelerations, positions in their box.
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

    /// Places the particles elsewhere. Errors of the energy count from here on. `[n]`
    ///
    /// # Errors
    /// Values that are not finite, and those of the device.
    pub fn set_positions(&mut self, position: Vec<[f64; 3]>) -> Result<(), Error> {
        (self.first, self.whole) = (None, false);
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
