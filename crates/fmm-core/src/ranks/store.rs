//! The particles of a run that several ranks share: each rank moves those at its home.

use super::{Ranks, home};
use crate::comm::Comm;
use crate::cpu::{CpuStore, Summing};
use crate::solve::Evaluation;
use crate::{Error, Kept, Particles, Settings, StageTimes};

/// A sum in space over ranks.
struct OverRanks<'a> {
    ranks: Ranks<'a>,
    settings: Settings,
}

impl Summing for OverRanks<'_> {
    fn sum(
        &mut self,
        Particles { position, strength, .. }: &Particles,
        kept: Option<Kept>,
        times: &mut StageTimes,
    ) -> Result<(Evaluation, Option<Kept>), Error> {
        self.ranks.evaluate_kept(&self.settings, kept, (position, strength), times)
    }

    fn check(&self, particles: &Particles) -> Result<(), Error> {
        home::check(self.ranks.comm(), particles)
    }
}

/// A store for the particles whose home is this rank, without particles yet. Uploads, sums and checks are collective, and
/// all ranks get the same errors. Sums and motion have the bits of a [`CpuStore`] with all particles.
///
/// # Errors
/// [`Error::Range`] if a setting lies outside its range; [`Error::Unsupported`] for periodic boxes.
pub fn store<'a>(comm: &'a dyn Comm, settings: Settings) -> Result<CpuStore<'a>, Error> {
    settings.check()?;
    super::check(&settings)?;
    Ok(CpuStore::with(OverRanks { ranks: Ranks::new(comm), settings }))
}
