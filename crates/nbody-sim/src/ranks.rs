//! A run of particles that several ranks share.
//!
//! The first rank runs: it reads the scenario, decides when steps and outputs are due, and writes all files. The others
//! [follow] its orders. Each rank moves the particles whose home it is, and sums with the others.
//!
//! The first rank makes or reads all particles of the start, deals them out, and keeps its share alone. Later it has the particles of
//! others in pieces of arrays, on their way to a file ([`Shared`]).

use std::borrow::Cow;
use std::ops::Range;

use fmm::Note;
use fmm_core::comm::{Comm, collected, exchanged, from_first, gathered, sum};
use fmm_core::ranks::share;
use fmm_core::{Error, StageTimes};

use crate::failure::Failure;
use crate::files::rows::Rows;
use crate::files::snapshot::{Field, Layout, Snapshot};
use crate::initial::Initial;
use crate::motion::Motion;
use crate::orders::Order;
use crate::scenario::Scenario;

/// Particles that the first rank deals out to each of the others at once.
const DEALT: usize = 1 << 16;

/// The result of this rank if all ranks have one; else the failure of the first that has none, whose message it alone has.
///
/// # Errors
/// If there is one, on all ranks, with the same code.
pub fn agreed<R>(comm: &dyn Comm, own: Result<R, Failure>) -> Result<R, Failure> {
    let codes = gathered(comm, &[own.as_ref().err().map_or(0, |failure| u64::from(failure.code))]);
    let first = codes.iter().position(|&code| code != 0);
    match (first, own) {
        (None, own) => own,
        (Some(rank), Err(failure)) if rank == comm.rank() => Err(failure),
        (Some(rank), _) => Err(Failure::new(codes[rank] as u8, "")),
    }
}

/// Does what the first rank orders until it ends the run. Errors of the sums are the same on all ranks, and the first reports them.
pub fn follow(comm: &dyn Comm) {
    let (mut motion, mut staged) = (None, None);
    let times = &mut StageTimes::default();
    loop {
        let order = Order::taken(comm);
        match (order, &mut motion, &staged) {
            (Order::End, _, _) => return,
            (Order::Begin, _, _) => motion = taken(comm, &mut |_| {}).ok(),
            (Order::Check(layout), _, Some(staged)) => drop(Shared::check(staged, &layout)),
            (Order::Bounds, _, Some(staged)) => drop(Shared::bounds(staged)),
            (Order::Rows(field, rows), _, Some(staged)) => drop(Shared::floats(staged, field, rows)),
            (Order::Stage(fields), Some(motion), _) => staged = Shared::stage(motion, &fields).ok(),
            (order, Some(motion), _) => {
                staged = None;
                match order {
                    Order::WantPotential(wanted) => motion.want_potential(wanted),
                    Order::Recall(kept) => motion.recall(kept),
                    Order::Refresh => drop(motion.refresh(times)),
                    Order::Step { number, potential } => drop(motion.step(number, potential, times)),
                    Order::Diagnose => drop(motion.totals()),
                    order => unreachable!("{order:?} without a copy"),
                }
            }
            (order, None, _) => unreachable!("{order:?} before there are particles"),
        }
    }
}

/// Hands the particles that the first rank has to all ranks, each its share.
///
/// # Errors
/// Those of [`Motion::new`].
pub fn begin<'a>(
    comm: &'a dyn Comm,
    scenario: &Scenario,
    initial: Initial,
    note: &mut dyn FnMut(Note),
) -> Result<Motion<'a>, Failure> {
    Order::Begin.give(comm);
    let text = scenario.resolved(None, initial.len());
    from_first(comm, text.as_bytes());
    agreed(comm, parsed(text))?;
    let own = dealt(comm, initial);
    agreed(comm, Motion::new(scenario, Some(comm), own, note))
}

/// The share of this rank in what the first hands out.
fn taken<'a>(comm: &'a dyn Comm, note: &mut dyn FnMut(Note)) -> Result<Motion<'a>, Failure> {
    let text = String::from_utf8_lossy(&from_first::<u8>(comm, &[])).into_owned();
    let scenario = agreed(comm, parsed(text))?;
    let own = dealt(comm, Initial::default());
    agreed(comm, Motion::new(&scenario, Some(comm), own, note))
}

/// The scenario of the first rank, which it sends resolved.
fn parsed(text: String) -> Result<Scenario, Failure> {
    Ok(Scenario::parse_resumed("the scenario of the first rank", text, &[])?)
}

/// The share of this rank in the particles of the first, which frees the others. They go in pieces.
fn dealt(comm: &dyn Comm, mut all: Initial) -> Initial {
    let (rank, size) = (comm.rank(), comm.size());
    let count = sum(comm, all.len() as u64) as usize;
    let mut own = Initial::default();
    let most = (0..size).map(|rank| share(count, rank, size).len()).max().unwrap_or(0);
    for start in (0..most).step_by(DEALT) {
        let of = |to: usize| -> Vec<[f64; 8]> {
            let share = share(count, to, size);
            let piece = share.start + start..share.end.min(share.start + start + DEALT);
            if rank == 0 && to > 0 { piece.map(|i| all.row(i)).collect() } else { vec![] }
        };
        let to: Vec<_> = (0..size).map(of).collect();
        exchanged(comm, &to).swap_remove(0).into_iter().for_each(|row| own.push(row));
    }
    if rank > 0 {
        return own;
    }
    all.truncate(share(count, 0, size).len());
    all
}

/// A copy of the particles of all ranks at one time, of which each has those at home. On the first rank it gives the rows
/// of all: it gets those of others when they are asked for.
pub struct Shared<'a> {
    comm: &'a dyn Comm,
    own: Snapshot,
    count: usize,
}

impl<'a> Shared<'a> {
    /// The present state with these fields in addition to those that all snapshots have.
    ///
    /// # Errors
    /// Those of [`Motion::copy`].
    ///
    /// # Panics
    /// Without ranks.
    pub fn stage(motion: &mut Motion<'a>, fields: &[Field]) -> Result<Self, Error> {
        let (comm, count) = (motion.ranks().expect("particles that ranks share"), motion.count());
        if comm.rank() == 0 {
            Order::Stage(fields.to_vec()).give(comm);
        }
        let copied = motion.copy()?()?;
        let mut own = motion.builder().snapshot(copied, fields);
        let first = share(count, comm.rank(), comm.size()).start as u64;
        own.id.iter_mut().for_each(|id| *id += first);
        Ok(Shared { comm, own, count })
    }

    fn give(&self, order: Order) {
        if self.comm.rank() == 0 {
            order.give(self.comm);
        }
    }
}

impl Rows for Shared<'_> {
    fn count(&self) -> usize {
        self.count
    }

    fn has(&self, field: Field) -> bool {
        self.own.has(field)
    }

    fn ids(&self, rows: Range<usize>) -> Cow<'_, [u64]> {
        Cow::Owned((rows.start as u64..rows.end as u64).collect())
    }

    fn floats(&self, field: Field, rows: Range<usize>) -> Cow<'_, [f64]> {
        self.give(Order::Rows(field, rows.clone()));
        let home = share(self.count, self.comm.rank(), self.comm.size());
        let [start, end] = [rows.start, rows.end].map(|row| row.clamp(home.start, home.end) - home.start);
        let width = field.width();
        let own = self.own.floats(field).map_or(&[][..], |(values, _)| &values[start * width..end * width]);
        Cow::Owned(collected(self.comm, own))
    }

    fn check(&self, layout: &Layout) -> Result<(), String> {
        self.give(Order::Check(layout.clone()));
        let wrong = self.own.check(layout).err().unwrap_or_default();
        let all = self.comm.all_gather(wrong.as_bytes());
        let first = all.into_iter().find(|wrong| !wrong.is_empty());
        first.map_or(Ok(()), |wrong| Err(String::from_utf8_lossy(&wrong).into_owned()))
    }

    fn bounds(&self) -> Option<[[f64; 3]; 2]> {
        self.give(Order::Bounds);
        let mut ends = [f64::NEG_INFINITY; 6];
        if let Some([low, high]) = Rows::bounds(&self.own) {
            ends = [-low[0], -low[1], -low[2], high[0], high[1], high[2]];
        }
        self.comm.max(&mut ends);
        let [a, b, c, high @ ..] = ends;
        (self.count > 0).then_some([[-a, -b, -c], high])
    }
}
