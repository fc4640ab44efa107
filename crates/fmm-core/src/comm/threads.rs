//! Ranks as threads of one process.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Comm;

/// One of several ranks that are threads: see [`run`].
pub struct Threads {
    rank: usize,
    shared: Arc<Shared>,
}

/// What the ranks share.
struct Shared {
    size: usize,
    /// Message k of rank r to rank k, until that has taken it. `[size][size]`
    boxes: Vec<Mutex<Vec<Vec<u8>>>>,
    meeting: Mutex<Meeting>,
    changed: Condvar,
}

/// The ranks that wait for the others.
#[derive(Default)]
struct Meeting {
    here: usize,
    /// How often all were here.
    times: u64,
    /// The exit code with which a rank has ended early.
    ended: Option<i32>,
}

/// What the thread of a rank unwinds with when a rank has ended all, with the exit code.
struct Ended(i32);

/// The exit code of a rank that panics.
const PANIC: i32 = 70;

/// Runs `work` on `size` ranks, each a thread, and returns what it gives on each, by rank.
///
/// # Errors
/// The exit code with which a rank has [aborted](Comm::abort); no rank waits for it any longer.
///
/// # Panics
/// If a rank does: with its message, after all others have ended.
pub fn run<R: Send>(size: usize, work: impl Fn(&Threads) -> R + Sync) -> Result<Vec<R>, i32> {
    let shared = Arc::new(Shared {
        size,
        boxes: (0..size).map(|_| Mutex::default()).collect(),
        meeting: Mutex::default(),
        changed: Condvar::new(),
    });
    let of_rank = |rank: usize| {
        let comm = Threads { rank, shared: shared.clone() };
        let result = catch_unwind(AssertUnwindSafe(|| work(&comm)));
        if let Err(payload) = &result
            && !payload.is::<Ended>()
        {
            comm.end(PANIC);
        }
        result
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || of_rank(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(Err)).collect()
    });
    let (mut results, mut code) = (vec![], None);
    for end in ended {
        match end {
            Ok(result) => results.push(result),
            Err(payload) => match payload.downcast::<Ended>() {
                Ok(ended) => code = Some(ended.0),
                Err(payload) => resume_unwind(payload),
            },
        }
    }
    code.map_or(Ok(results), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// Ends all ranks that wait, now or later.
    fn end(&self, code: i32) {
        lock(&self.shared.meeting).ended.get_or_insert(code);
        self.shared.changed.notify_all();
    }
}

impl Comm for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn sum(&self, values: &mut [u64]) {
        let all = self.all_gather(bytemuck::cast_slice(values));
        values.fill(0);
        for message in all {
            values.iter_mut().zip(super::values::<u64>(&message)).for_each(|(sum, value)| *sum += value);
        }
    }

    fn max(&self, values: &mut [f64]) {
        for message in self.all_gather(bytemuck::cast_slice(values)) {
            values.iter_mut().zip(super::values::<f64>(&message)).for_each(|(max, value)| *max = max.max(value));
        }
    }

    fn all_gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.all_to_all(vec![own.to_vec(); self.size()])
    }

    fn all_to_all(&self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        assert_eq!(messages.len(), self.size(), "one message a rank");
        *lock(&self.shared.boxes[self.rank]) = messages;
        self.barrier();
        let received = self.shared.boxes.iter().map(|from| std::mem::take(&mut lock(from)[self.rank])).collect();
        self.barrier();
        received
    }

    fn barrier(&self) {
        let Shared { size, meeting, changed, .. } = &*self.shared;
        let mut here = lock(meeting);
        let times = here.times;
        here.here += 1;
        if here.here == *size {
            here.here = 0;
            here.times += 1;
            changed.notify_all();
        }
        while here.times == times && here.ended.is_none() {
            here = changed.wait(here).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(code) = here.ended {
            drop(here);
            resume_unwind(Box::new(Ended(code)));
        }
    }

    fn abort(&self, code: i32) -> ! {
        self.end(code);
        resume_unwind(Box::new(Ended(code)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{before, exchanged, gathered};

    #[test]
    fn messages_reach_their_ranks_in_order() {
        for size in [1, 2, 5] {
            let all = run(size, |comm| {
                let me = comm.rank() as u64;
                let to: Vec<Vec<u64>> = (0..size).map(|k| vec![me; (me as usize + k) % 3]).collect();
                let received = exchanged(comm, &to);
                for (from, values) in received.iter().enumerate() {
                    assert_eq!(values, &vec![from as u64; (from + comm.rank()) % 3]);
                }
                let (mut sums, mut largest) = ([me, 1], [-(me as f64)]);
                comm.sum(&mut sums);
                comm.max(&mut largest);
                assert_eq!((sums, largest), ([(0..size as u64).sum(), size as u64], [0.0]));
                assert_eq!(gathered(comm, &vec![me; comm.rank()]).len(), (0..size).sum::<usize>());
                before(comm, comm.rank() + 1)
            });
            let sums = |n: usize| n * (n + 1) / 2;
            let expected: Vec<_> = (0..size).map(|r| [sums(r), sums(size)]).collect();
            assert_eq!(all, Ok(expected));
        }
    }

    #[test]
    fn a_rank_that_aborts_ends_those_that_wait() {
        let ended = run(4, |comm| {
            if comm.rank() == 2 {
                comm.abort(65);
            }
            loop {
                comm.barrier();
            }
        });
        assert_eq!(ended, Err::<Vec<()>, i32>(65));
    }

    #[test]
    fn a_rank_that_panics_ends_those_that_wait_and_its_message_is_kept() {
        let ended = catch_unwind(|| {
            run(3, |comm| {
                assert!(comm.rank() != 1, "rank 1 is out");
                comm.barrier();
            })
        });
        let payload = ended.expect_err("a panic");
        assert!(payload.downcast_ref::<&str>().is_some_and(|m| m.contains("rank 1 is out")));
    }
}
