//! Sums of particles that several ranks share: [`Ranks`] is a sum in space whose particles are in several memories.
//!
//! 1. A rank is the *home* of consecutive particles in the caller's order ([`share`]).
//! 2. For each execution the particles are *cut*: a coarse octree is counted, and each rank owns consecutive leaves of
//!    it, weighted by work that is counted in interactions (`cuts`).
//! 3. Each rank builds the tree of its own particles, sends others the cells that their targets may open, and puts its
//!    *part* of the whole octree together (`part`). The traversal of a single process makes its lists.
//! 4. It asks for the multipoles and bodies that its lists name (`essential`), and executes the stages of a single
//!    process for its own targets (`sums`).
//! 5. The sums go home. The guard looks at a sample of all targets (`guard`), and the driver of a single process
//!    decides what happens next.
//!
//! **The sums have the same bits for any number of ranks and threads**, those of [`evaluate`](crate::evaluate): trees and
//! lists are integers that depend on the particles alone, each target adds its sources in the order of a single process,
//! and sums over particles are those of blocks that lie on one rank each, added in their order.

mod cuts;
mod essential;
mod guard;
mod home;
mod part;
mod store;
mod sums;
mod work;

pub use home::share;
pub use store::store;
pub use sums::Traffic;

use crate::accuracy::{self, Problem};
use crate::comm::{self, Comm};
use crate::cpu::Sum;
use crate::cpu::points::Summed;
use crate::expansion::Expansion;
use crate::guard::{Look, Norms};
use crate::kernel::Pairs;
use crate::math::Real;
use crate::solve::{Evaluation, Solved, Trial, solve};
use crate::tree::Cube;
use crate::{Cancel, Choice, Error, Kept, Method, Settings, Stage, StageTimes};
use home::Home;
use sums::{Planned, Request};

/// One rank of a sum in open space on the cores of several ranks. What it keeps makes the next sum of a run cheaper.
pub struct Ranks<'a> {
    comm: &'a dyn Comm,
    /// The work of each particle at home in the last sum; empty before the first.
    work: Vec<u32>,
    kept: Option<Kept>,
    traffic: Traffic,
}

impl<'a> Ranks<'a> {
    /// This rank.
    pub fn new(comm: &'a dyn Comm) -> Self {
        Ranks { comm, work: vec![], kept: None, traffic: Traffic::default() }
    }

    /// The other ranks.
    pub fn comm(&self) -> &'a dyn Comm {
        self.comm
    }

    /// What the last sum took.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Potential and field of the particles of all ranks at those of this one, as
    /// [`evaluate`](crate::evaluate) gives them: position `[n, 3]` and strength `[n]` are those of
    /// [`share`]. All ranks call it with the same settings.
    ///
    /// # Errors
    /// On all ranks the same: those of [`evaluate`](crate::evaluate); [`Error::Unsupported`] for periodic boxes;
    /// [`Error::Shape`] for a share of another size; [`Error::Cancelled`] if the flag of any rank is set.
    ///
    /// ```
    /// use fmm_core::comm::{Comm, run};
    /// use fmm_core::ranks::{Ranks, share};
    /// use fmm_core::{Settings, StageTimes};
    /// let (position, strength) = ([[0.0; 3], [1.0, 0.0, 0.0]], [1.0, 2.0]);
    /// let potentials = run(3, |comm| {
    ///     let own = share(2, comm.rank(), comm.size());
    ///     let mut times = StageTimes::default();
    ///     let sum = Ranks::new(comm).evaluate(&Settings::default(), &position[own.clone()], &strength[own], &mut times);
    ///     sum.map(|sum| sum.potential)
    /// });
    /// assert_eq!(potentials.expect("no rank aborts"), [Ok(vec![]), Ok(vec![]), Ok(vec![2.0, 1.0])]);
    /// ```
    pub fn evaluate(
        &mut self,
        settings: &Settings,
        position: &[[f64; 3]],
        strength: &[f64],
        times: &mut StageTimes,
    ) -> Result<Evaluation, Error> {
        let (sum, next) = self.evaluate_kept(settings, self.kept, (position, strength), times)?;
        self.kept = next;
        Ok(sum)
    }

    /// The same, beginning with the choice that an earlier sum of a run has `kept`. Returns what the next sum begins with.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluate_kept(
        &mut self,
        settings: &Settings,
        kept: Option<Kept>,
        (position, strength): (&[[f64; 3]], &[f64]),
        times: &mut StageTimes,
    ) -> Result<(Evaluation, Option<Kept>), Error> {
        let comm = self.comm;
        let home = Home::new(comm, position, strength)?;
        let settings = settings.clone().simplified();
        check(&settings)?;
        if self.work.len() != position.len() {
            self.work = vec![1; position.len()];
        }
        let cube = home.cube(comm);
        let problem = times.time_more(Stage::Tree, || home.problem(comm, &cube));
        let mut trial = RankTrial {
            comm,
            settings: &settings,
            home,
            cube,
            problem,
            norms: None,
            work: &mut self.work,
            traffic: Traffic::default(),
            cancel: Cancel::new(),
            times,
        };
        let solved = solve(&settings, kept, &mut trial)?;
        let Solved { choice, mut sums, kept: next } = solved;
        if settings.errors {
            if !choice.is_exact() && trial.norms.is_none() {
                trial.error(&sums, Look::First)?;
            }
            let norms = trial.norms.filter(|_| !choice.is_exact());
            sums.error = sums.prediction_on(comm).calibrated(norms.map_or(0.0, |n| n.of_vectors));
        } else {
            sums.error = vec![];
        }
        self.traffic = trial.traffic;
        let Summed { potential, field, error, coincident_pairs, .. } = sums;
        Ok((Evaluation { potential, field, error, choice, coincident_pairs }, next))
    }
}

/// Refuses what ranks do not sum.
fn check(settings: &Settings) -> Result<(), Error> {
    if settings.boundary.periodic().is_some() || settings.method == Method::Mesh {
        return Err(Error::Unsupported("ranks sum in open space, not in a periodic box".into()));
    }
    Ok(())
}

/// Executes `choice` on all ranks with any expansion and kernel. The sums are those of the particles that a rank owns, in the
/// order of its tree: all ranks together have each particle once.
///
/// # Errors
/// Those of [`Ranks::evaluate`] that are of the particles.
pub fn execute<T: Real, E: Expansion<T, 3>, K: Pairs<3>>(
    comm: &dyn Comm,
    (settings, choice): (&Settings, &Choice),
    (position, strength): (&[[f64; 3]], &[f64]),
    with: impl Fn(&Cube<3>) -> (E, K),
) -> Result<Vec<Sum<3>>, Error> {
    let home = Home::new(comm, position, strength)?;
    let (cube, times) = (home.cube(comm), &mut StageTimes::default());
    let request = Request { settings, choice, home: &home, cube };
    let planned = Planned::new(comm, request, &mut vec![1; position.len()], times);
    let (expansion, kernel) = with(&cube);
    Ok(planned.execute_with(comm, &expansion, &kernel, times))
}

/// A sum on all ranks.
struct RankTrial<'a> {
    comm: &'a dyn Comm,
    settings: &'a Settings,
    home: Home<'a>,
    cube: Cube<3>,
    problem: Problem,
    /// What the guard has found of the last sums.
    norms: Option<Norms>,
    work: &'a mut Vec<u32>,
    traffic: Traffic,
    /// Set on all ranks or on none, when the flag of any rank is.
    cancel: Cancel,
    times: &'a mut StageTimes,
}

impl Trial for RankTrial<'_> {
    type Sums = Summed;

    fn problem(&self) -> Problem {
        self.problem
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    fn execute(&mut self, settings: &Settings, choice: &Choice) -> Result<Summed, Error> {
        let given = self.settings.leaf_size.is_some() || self.settings.uniform.is_some();
        let fitted = || accuracy::fit(self.cube, &self.problem, accuracy::best_leaf(choice), choice.leaf_size);
        let cube = if given { self.cube } else { fitted() };
        let request = Request { settings, choice, home: &self.home, cube };
        let planned = Planned::new(self.comm, request, self.work, self.times);
        let (summed, traffic) = planned.execute(self.comm, request, self.times);
        self.traffic = traffic;
        if comm::sum(self.comm, u64::from(self.times.cancel().is_set())) > 0 {
            self.cancel.set();
        }
        Ok(summed)
    }

    fn looks_closer(&self) -> bool {
        true
    }

    fn error(&mut self, sums: &Summed, look: Look) -> Result<f64, Error> {
        let (comm, settings, home) = (self.comm, self.settings, &self.home);
        let norms = self.times.time(Stage::Guard, || guard::errors(comm, settings, home, sums, look));
        self.norms = Some(norms);
        Ok(norms.judged())
    }

    fn repair(&mut self, sums: &mut Summed, choice: &Choice) -> Result<bool, Error> {
        let Some(norms) = self.norms else { return Ok(false) };
        let (comm, settings, home) = (self.comm, self.settings, &self.home);
        let most = accuracy::repairs(self.problem, choice);
        Ok(self.times.time_more(Stage::Guard, || guard::repair(comm, (settings, home), sums, norms, most)))
    }
}
