//! The choices of a run, from one sum of the forces to the next.
//!
//! Sums at the same positions begin with the same kept choice, however often they are repeated: for
//! diagnostics, or by a run that goes on from a checkpoint. So what an observer asks for in between
//! changes no bit of the motion.

use fmm_core::{Error, Kept, ParticleStore, StageTimes};

/// The choice that each sum begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Choices {
    /// What sums at the present positions begin with.
    now: Option<Kept>,
    /// What those at the next positions do.
    next: Option<Kept>,
}

impl Choices {
    /// Those of a run that goes on from a checkpoint, which has remembered [`now`](Self::now).
    pub fn recalled(now: Option<Kept>) -> Self {
        Choices { now, next: now }
    }

    /// What sums at the present positions begin with; none where they read the tables.
    pub fn now(&self) -> Option<Kept> {
        self.now
    }

    /// Sums the forces for the motion.
    ///
    /// # Errors
    /// Those of [`ParticleStore::forces`].
    pub fn forces(&mut self, store: &mut dyn ParticleStore, times: &mut StageTimes) -> Result<(), Error> {
        self.next = store.forces_kept(self.now, times)?;
        Ok(())
    }

    /// Sums the forces at positions where the motion asks for none.
    ///
    /// # Errors
    /// Those of [`ParticleStore::forces`].
    pub fn look(&self, store: &mut dyn ParticleStore, times: &mut StageTimes) -> Result<(), Error> {
        store.forces_kept(self.now, times).map(|_| ())
    }

    /// Notes that the positions have changed.
    pub fn move_on(&mut self) {
        self.now = self.next;
    }
}
