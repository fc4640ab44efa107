//! Several GPUs of one process that share the targets of a sum.
//!
//! Every GPU has all bodies and makes their whole tree. It makes the multipoles of its share of the
//! bodies, and the lists of its share of the targets, which divides M2L, pairs and what else lists
//! lead to. Multipoles go to all; sums go to the GPU in whose slice of the caller's order their
//! target is. What choices depend on is summed in parts that do not depend on the shares, and every
//! GPU has all of these, so that each of them makes the same choices. No number depends on where a
//! share ends, so the bits are those of one GPU.
//!
//! A thread drives each GPU. Where they exchange sums they wait for each other; one that fails ends the wait of the others.

mod store;

use std::sync::{Arc, Mutex, PoisonError};

use cust::sys::cuCtxEnablePeerAccess;
use fmm_core::solve::Quantity;
use fmm_core::{Error, Settings, StageTimes, WithHessian};

use crate::inputs::Host;
use crate::shares::{Member, Rendezvous, left};
use crate::view::TEAM;
use crate::{DeviceSums, Gpu, Unavailable, policy};

pub use store::TeamStore;

/// Nanoseconds that a sum takes one GPU from which on several gain.
pub const PAYS: f64 = 5e6;

/// Opens the GPUs of these numbers as a team.
///
/// # Errors
/// Those of [`Gpu::open`]; [`Unavailable::Unlike`] for GPUs of several models, whose bits may
/// differ; [`Unavailable::Driver`] for more GPUs than kernels have places for.
///
/// # Panics
/// Without a number.
pub fn open(ordinals: &[u32]) -> Result<Vec<Gpu>, Unavailable> {
    assert!(!ordinals.is_empty(), "no GPU");
    if ordinals.len() > TEAM {
        return Err(Unavailable::Driver(format!("{} GPUs cannot share sums, {TEAM} at most", ordinals.len())));
    }
    let mut team = ordinals.iter().map(|&ordinal| Gpu::open(ordinal)).collect::<Result<Vec<_>, _>>()?;
    let first = team[0].description().clone();
    if let Some(other) = team.iter().map(Gpu::description).find(|other| other.name != first.name) {
        return Err(Unavailable::Unlike { first: first.name, other: other.name.clone() });
    }
    let contexts = team.iter().map(|gpu| gpu.raw_context().map_err(|e| Unavailable::Driver(e.to_string())));
    let contexts = contexts.collect::<Result<Vec<_>, _>>()?;
    for (index, gpu) in team.iter().enumerate() {
        gpu.enter().map_err(|e| Unavailable::Driver(e.to_string()))?;
        for (&other, _) in contexts.iter().zip(ordinals).filter(|(_, ordinal)| **ordinal != ordinals[index]) {
            // SAFETY: the other context lives as long as its GPU. Where there is no direct access, copies go through the
            // host's memory.
            let _ = unsafe { cuCtxEnablePeerAccess(other as _, 0) };
        }
    }
    if team.len() > 1 {
        let members = Member::all(team.len());
        team.iter_mut().zip(members).for_each(|(gpu, member)| gpu.join(member));
    }
    Ok(team)
}

/// Runs `work` for each of a team's GPUs on a thread of its own; returns the result of each.
///
/// # Errors
/// That of the GPU that failed first by its number, but for those that only waited for another.
fn on_each<M: Send, R: Send>(
    members: &mut [M],
    gpu: impl Fn(&M) -> &Gpu + Sync,
    work: impl Fn(&mut M, usize) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let run = |index: usize, member: &mut M| {
        // Who is done, has failed or panics leaves: nobody is to wait for it.
        struct Leave(Option<Arc<Rendezvous>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                self.0.iter().for_each(|rendezvous| rendezvous.leave());
            }
        }
        let _leave = Leave(gpu(member).member().map(|member| member.rendezvous()));
        work(member, index)
    };
    let Some((first, others)) = members.split_first_mut() else { return Err(left()) };
    gpu(first).member().into_iter().for_each(|member| member.rendezvous().renew());
    let all = std::thread::scope(|scope| {
        let run = &run;
        let spawn = |(k, member)| scope.spawn(move || run(k + 1, member));
        let others: Vec<_> = others.iter_mut().enumerate().map(spawn).collect();
        let mut all = vec![run(0, first)];
        all.extend(
            others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        all
    });
    let reason = all.iter().find_map(|done| done.as_ref().err().filter(|error| **error != left())).cloned();
    reason.map_or_else(|| all.into_iter().collect(), Err)
}

/// A GPU, with the memory and tables of its sums.
pub struct Opened {
    // Dropped in this order: memory before the GPU whose it is.
    /// Of single sums.
    pub sums: DeviceSums,
    /// Perhaps one of a team.
    pub gpu: Gpu,
}

impl Opened {
    /// No sum yet.
    pub fn new(gpu: Gpu) -> Self {
        Opened { sums: DeviceSums::default(), gpu }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Freeing memory needs its GPU; a thread that cannot enter it has lost the memory with it.
        let _ = self.gpu.enter();
    }
}

/// The members of a team that work on sums of `settings` over so many bodies: the first alone where
/// it is expected to take less than `pays` nanoseconds.
fn working<'a, M>(
    members: &'a mut [M],
    gpu: impl Fn(&mut M) -> &mut Gpu,
    (settings, bodies, pays): (&Settings, usize, f64),
) -> &'a mut [M] {
    let alone = policy::least_time(settings, bodies) < pays;
    members.iter_mut().take(1).for_each(|first| gpu(first).work_alone(alone));
    let count = if alone { members.len().min(1) } else { members.len() };
    &mut members[..count]
}

/// [`DeviceSums::evaluate_host`] by all GPUs of a team, or by a single GPU; by the first where it
/// is expected to take less than `pays` nanoseconds, such as [`PAYS`].
///
/// # Errors
/// Those of [`DeviceSums::evaluate_host`].
pub fn evaluate_host(
    team: &mut [Opened],
    pays: f64,
    settings: &Settings,
    host: Host,
    quantity: Quantity,
    times: &mut StageTimes,
) -> Result<WithHessian, Error> {
    let of_first = Mutex::new(times);
    let cancel = of_first.lock().unwrap_or_else(PoisonError::into_inner).cancel().clone();
    let bodies = host.0.len().max(host.2.map_or(0, <[_]>::len));
    let parts = on_each(
        working(team, |opened| &mut opened.gpu, (settings, bodies, pays)),
        |opened| &opened.gpu,
        |Opened { sums, gpu }, index| {
            let own = &mut StageTimes::with_cancel(cancel.clone());
            let sum = sums.evaluate_host(gpu, settings, host, quantity, own);
            if index == 0 {
                of_first.lock().unwrap_or_else(PoisonError::into_inner).merge(own);
            }
            sum
        },
    )?;
    let joined = parts.into_iter().reduce(|mut all, WithHessian { sum, .. }| {
        all.sum.potential.extend(sum.potential);
        all.sum.field.extend(sum.field);
        all
    });
    joined.ok_or_else(left)
}
