//! Several GPUs of one process that share the targets of a sum.
//!
//! Every GPU has all bodies, their tree and all multipoles. It makes the lists of its share of the targets alone, which
//! divides M2L, pairs and what else lists lead to, and then copies the sums of the other shares from the other GPUs. From
//! there on all have the same numbers again, so that each of them makes the same choices. No number depends on where a share
//! ends, so the bits are those of one GPU.
//!
//! A thread drives each GPU. Where they exchange sums they wait for each other; one that fails ends the wait of the others.

mod store;

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cust::memory::DeviceCopy;
use cust::sys::{cuCtxEnablePeerAccess, cuMemcpyPeerAsync};
use fmm_core::solve::Quantity;
use fmm_core::{Error, Settings, StageTimes, WithHessian};

use crate::buffer::Buffer;
use crate::device::succeeded;
use crate::inputs::Host;
use crate::{DeviceSums, Gpu, Unavailable};

pub use store::TeamStore;

/// Shares are moved where the slowest GPU takes this much longer than the mean.
const IMBALANCE: f64 = 1.02;

/// What a GPU lets the others know where they meet.
#[derive(Clone, Copy)]
struct Post {
    /// Of the array that is exchanged.
    address: u64,
    /// Of its context.
    context: usize,
    /// Bytes of the array, the same for all: another number would be another sum.
    bytes: usize,
    /// Seconds that its share has taken.
    busy: f64,
}

/// Where the threads of a team wait for each other.
struct Turn {
    posts: Vec<Option<Post>>,
    /// Those of the last meeting.
    last: Vec<Post>,
    meetings: u64,
    broken: bool,
}

struct Meeting {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Meeting {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for all, and returns what each has posted.
    fn meet(&self, index: usize, post: Post) -> Result<Vec<Post>, Error> {
        let mut turn = self.lock();
        turn.posts[index] = Some(post);
        if turn.posts.iter().all(Option::is_some) {
            turn.last = turn.posts.iter_mut().filter_map(Option::take).collect();
            turn.meetings += 1;
            self.changed.notify_all();
        } else {
            let now = turn.meetings;
            let met = self.changed.wait_while(turn, |turn| turn.meetings == now && !turn.broken);
            turn = met.unwrap_or_else(PoisonError::into_inner);
            if turn.meetings == now {
                return Err(left());
            }
        }
        let posts = turn.last.clone();
        if posts.iter().any(|other| other.bytes != post.bytes) {
            return Err(Error::Device("the GPUs do not agree on what they sum".into()));
        }
        Ok(posts)
    }

    /// Ends the wait of the others, now and in all meetings until [`renew`](Meeting::renew).
    fn leave(&self) {
        self.lock().broken = true;
        self.changed.notify_all();
    }

    /// Makes ready for work that all begin together.
    fn renew(&self) {
        let mut turn = self.lock();
        turn.broken = false;
        turn.posts.iter_mut().for_each(|post| *post = None);
    }
}

/// The error of a GPU whose team has ended.
fn left() -> Error {
    Error::Device("another GPU of the team failed".into())
}

/// How a team divides work.
#[derive(Clone, Copy)]
pub(crate) enum Divided {
    /// By what the shares of the last sum have taken.
    ByWork,
    /// In parts that are as equal as can be.
    Evenly,
}

/// A GPU's place in its team.
pub(crate) struct Member {
    meeting: Arc<Meeting>,
    index: usize,
    /// Where each share begins and the last ends, as parts of all targets, in the present sum and in the next.
    /// `[members + 1]`
    bounds: Mutex<[Vec<f64>; 2]>,
    /// When the work on the share of a sum began.
    begun: Mutex<Option<Instant>>,
}

impl Member {
    /// The share of the member `index` of `n` things.
    fn share_of(&self, index: usize, n: usize, divided: Divided) -> Range<usize> {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |k: usize| match divided {
            Divided::ByWork => (bounds[0][k] * n as f64).round() as usize,
            Divided::Evenly => n * k / (bounds[0].len() - 1),
        };
        at(index)..at(index + 1)
    }

    /// The share of this GPU of `n` things.
    pub(crate) fn share(&self, n: usize, divided: Divided) -> Range<usize> {
        self.share_of(self.index, n, divided)
    }

    /// The share of this GPU of `n` targets, as places in the order of their tree. Its time begins now.
    pub(crate) fn begin(&self, n: usize) -> Range<usize> {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds[0] = bounds[1].clone();
        drop(bounds);
        self.share(n, Divided::ByWork)
    }

    /// Copies the shares of the other GPUs into `buffer`, which has as many elements for each of `n` things. After the
    /// first call since [`begin`](Member::begin) the shares of the next sum are what would have taken all the same time.
    pub(crate) fn exchange<T: DeviceCopy + Default>(
        &self,
        gpu: &Gpu,
        buffer: &Buffer<T>,
        n: usize,
        divided: Divided,
    ) -> Result<(), Error> {
        gpu.finish()?;
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let busy = begun.map_or(Duration::ZERO, |begun| begun.elapsed()).as_secs_f64();
        let context = gpu.raw_context()?;
        let bytes = buffer.len() * size_of::<T>();
        let posts = self.meeting.meet(self.index, Post { address: buffer.pointer().as_raw(), context, bytes, busy })?;
        let each = bytes / n.max(1);
        for (index, other) in posts.iter().enumerate().filter(|(index, _)| *index != self.index) {
            let share = self.share_of(index, n, divided);
            let (from, bytes) = ((share.start * each) as u64, share.len() * each);
            let to = buffer.pointer().as_raw() + from;
            if bytes > 0 {
                // SAFETY: both arrays have these bytes, and neither GPU writes them before the next meeting.
                succeeded(unsafe {
                    cuMemcpyPeerAsync(
                        to,
                        context as _,
                        other.address + from,
                        other.context as _,
                        bytes,
                        gpu.stream().as_inner(),
                    )
                })?;
            }
        }
        gpu.finish()?;
        // Nobody goes on while another still reads.
        self.meeting.meet(self.index, Post { address: 0, context, bytes, busy })?;
        if begun.is_some() {
            self.balance(&posts.iter().map(|post| post.busy).collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Moves the bounds of the next sum where shares took these seconds, as if each share's work were spread evenly over it.
    fn balance(&self, busy: &[f64]) {
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds[1] = balanced(&bounds[0], busy);
    }
}

/// Bounds of shares that would all have taken the same time; the same bounds where they nearly did.
fn balanced(bounds: &[f64], busy: &[f64]) -> Vec<f64> {
    let (all, count) = (busy.iter().sum::<f64>(), busy.len());
    let longest = busy.iter().copied().fold(0.0, f64::max);
    if all.is_nan() || all <= 0.0 || longest * count as f64 <= IMBALANCE * all {
        return bounds.to_vec();
    }
    let (mut share, mut before) = (0, 0.0);
    let inner = (1..count).map(|k| {
        let wanted = all * k as f64 / count as f64;
        while share + 1 < count && before + busy[share] < wanted {
            before += busy[share];
            share += 1;
        }
        let part = if busy[share] > 0.0 { (wanted - before) / busy[share] } else { 0.0 };
        bounds[share] + part.clamp(0.0, 1.0) * (bounds[share + 1] - bounds[share])
    });
    [0.0].into_iter().chain(inner).chain([1.0]).collect()
}

/// Opens the GPUs of these numbers as a team.
///
/// # Errors
/// Those of [`Gpu::open`]; [`Unavailable::Unlike`] for GPUs of several models, whose bits may differ.
///
/// # Panics
/// Without a number.
pub fn open(ordinals: &[u32]) -> Result<Vec<Gpu>, Unavailable> {
    assert!(!ordinals.is_empty(), "no GPU");
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
    let count = team.len();
    let turn = Turn { posts: vec![None; count], last: vec![], meetings: 0, broken: false };
    let even: Vec<f64> = (0..=count).map(|k| k as f64 / count as f64).collect();
    let meeting = Arc::new(Meeting { turn: Mutex::new(turn), changed: Condvar::new() });
    for (index, gpu) in team.iter_mut().enumerate().filter(|_| count > 1) {
        gpu.join(Member {
            meeting: meeting.clone(),
            index,
            bounds: Mutex::new([&even, &even].map(Vec::clone)),
            begun: Mutex::new(None),
        });
    }
    Ok(team)
}

/// Runs `work` for each of a team's GPUs on a thread of its own; returns what the first came to.
///
/// # Errors
/// That of the GPU that failed first by its number, but for those that only waited for another.
fn together<M: Send, R: Send>(
    members: &mut [M],
    gpu: impl Fn(&M) -> &Gpu + Sync,
    work: impl Fn(&mut M, usize) -> Result<R, Error> + Sync,
) -> Result<R, Error> {
    let run = |index: usize, member: &mut M| {
        // A panic ends the wait of the others too.
        struct Leave(Option<Arc<Meeting>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                self.0.iter().for_each(|meeting| meeting.leave());
            }
        }
        let mut leave = Leave(gpu(member).member().map(|member| member.meeting.clone()));
        let done = work(member, index);
        if done.is_ok() {
            leave.0 = None;
        }
        done
    };
    let Some((first, others)) = members.split_first_mut() else { return Err(left()) };
    gpu(first).member().into_iter().for_each(|member| member.meeting.renew());
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
    let reason = all.iter().position(|done| done.as_ref().is_err_and(|e| *e != left()));
    let mut all = all.into_iter();
    all.nth(reason.unwrap_or(0)).unwrap_or_else(|| Err(left()))
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

/// [`DeviceSums::evaluate_host`] by all GPUs of a team, or by a single GPU.
///
/// # Errors
/// Those of [`DeviceSums::evaluate_host`].
pub fn evaluate_host(
    team: &mut [Opened],
    settings: &Settings,
    host: Host,
    quantity: Quantity,
    times: &mut StageTimes,
) -> Result<WithHessian, Error> {
    let of_first = Mutex::new(times);
    let cancel = of_first.lock().unwrap_or_else(PoisonError::into_inner).cancel().clone();
    together(
        team,
        |opened| &opened.gpu,
        |Opened { sums, gpu }, index| {
            let own = &mut StageTimes::with_cancel(cancel.clone());
            let sum = sums.evaluate_host(gpu, settings, host, quantity, own);
            if index == 0 {
                of_first.lock().unwrap_or_else(PoisonError::into_inner).merge(own);
            }
            sum
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_move_until_shares_take_the_same_time() {
        // Work of density 3 in the first quarter, 1 in the rest.
        let before = |x: f64| 3.0 * x.min(0.25) + (x - 0.25).max(0.0);
        let mut bounds = vec![0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];
        for _ in 0..12 {
            let busy: Vec<f64> = bounds.windows(2).map(|b| before(b[1]) - before(b[0])).collect();
            bounds = balanced(&bounds, &busy);
        }
        for (bound, wanted) in bounds.iter().zip([0.0, 1.0 / 6.0, 0.5, 1.0]) {
            assert!((bound - wanted).abs() < 0.02, "{bounds:?}");
        }
        assert_eq!(balanced(&bounds, &[1.0, 1.01, 0.99]), bounds, "near enough");
        assert_eq!(balanced(&bounds, &[0.0, 0.0, 0.0]), bounds, "nothing is known");
    }

    #[test]
    fn nobody_waits_for_one_that_left() {
        let turn = Turn { posts: vec![None; 2], last: vec![], meetings: 0, broken: false };
        let meeting = Meeting { turn: Mutex::new(turn), changed: Condvar::new() };
        let post = |bytes| Post { address: 1, context: 2, bytes, busy: 0.0 };
        let of_other = |bytes| {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| meeting.meet(1, post(bytes)).map(|posts| posts.len()));
                let own = meeting.meet(0, post(8)).map(|posts| posts.len());
                (own, other.join().unwrap())
            })
        };
        assert_eq!(of_other(8), (Ok(2), Ok(2)));
        let (own, other) = of_other(16);
        assert!(own.is_err() && own == other, "sums of different lengths");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| meeting.meet(0, post(8)).map(|posts| posts.len()));
            meeting.leave();
            assert_eq!(waits.join().unwrap(), Err(left()));
        });
        meeting.renew();
        assert_eq!(of_other(8), (Ok(2), Ok(2)));
    }
}
