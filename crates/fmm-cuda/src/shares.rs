//! How the GPUs of a team divide sums, and where their threads wait for each other.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fmm_core::Error;

use crate::view::BOUNDS;

/// Shares are moved where the slowest GPU takes this much longer than the mean.
const IMBALANCE: f64 = 1.02;

/// Targets of a chunk at least, and the most chunks. Samples are drawn chunk by chunk: their bits
/// depend on these and not on the device. Each chunk is in one share.
const CHUNK: usize = 2048;
pub(crate) const MOST_CHUNKS: usize = 1024;

/// How many chunks `n` targets have; `n k / chunks` is the first target of chunk k.
pub(crate) fn chunks_of(n: usize) -> usize {
    (n / CHUNK).clamp(1, MOST_CHUNKS)
}

/// Bounds of shares as kernels take them: the last again to the end.
pub(crate) fn for_kernels(bounds: &[usize]) -> [u32; BOUNDS] {
    std::array::from_fn(|k| bounds[k.min(bounds.len() - 1)] as u32)
}

/// What a GPU lets the others know where they meet.
#[derive(Clone, Copy)]
pub(crate) struct Post {
    /// Of the array that is exchanged.
    pub address: u64,
    /// Of its context.
    pub context: usize,
    /// What is exchanged, and its bytes: the same for all.
    what: (&'static str, usize),
    /// Seconds that its share has taken.
    busy: f64,
}

/// How an array is divided: the bytes that the GPU of this number has right.
pub(crate) type Parts<'a> = &'a dyn Fn(usize) -> Vec<Range<usize>>;

/// What is pulled from the GPU of this number: places here, and the pieces that come there, in
/// bytes.
pub(crate) type Pieces<'a> = &'a dyn Fn(usize) -> Vec<(usize, Range<usize>)>;

/// Where the threads of a team wait for each other.
struct Turn {
    posts: Vec<Option<Post>>,
    /// Those of the last meeting.
    last: Vec<Post>,
    /// Numbers of each for the others.
    numbers: Vec<Vec<f64>>,
    meetings: u64,
    broken: bool,
}

pub(crate) struct Rendezvous {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Rendezvous {
    /// Of so many.
    fn of(count: usize) -> Self {
        let turn =
            Turn { posts: vec![None; count], last: vec![], numbers: vec![vec![]; count], meetings: 0, broken: false };
        Rendezvous { turn: Mutex::new(turn), changed: Condvar::new() }
    }

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
        if posts.iter().any(|other| other.what != post.what) {
            return Err(Error::Device("the GPUs do not agree on what they sum".into()));
        }
        Ok(posts)
    }

    /// Ends the wait of the others, now and in all meetings until [`renew`](Rendezvous::renew).
    pub(crate) fn leave(&self) {
        self.lock().broken = true;
        self.changed.notify_all();
    }

    /// Makes ready for work that all begin together.
    pub(crate) fn renew(&self) {
        let mut turn = self.lock();
        turn.broken = false;
        turn.posts.iter_mut().for_each(|post| *post = None);
    }
}

/// The error of a GPU whose team has ended.
pub(crate) fn left() -> Error {
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
    rendezvous: Arc<Rendezvous>,
    index: usize,
    /// Where each share begins and the last ends, as parts of all targets, in the present sum and in the next.
    /// `[members + 1]`
    bounds: Mutex<[Vec<f64>; 2]>,
    work: Mutex<Work>,
}

/// What is known of the time that the share of a sum takes.
#[derive(Default)]
struct Work {
    begun: Option<Instant>,
    /// For others, since then.
    waited: Duration,
    /// All but that, once it is done, until the others know.
    took: Option<Duration>,
}

impl Member {
    /// Places for so many, whose shares are equal.
    pub(crate) fn all(count: usize) -> Vec<Member> {
        let even: Vec<f64> = (0..=count).map(|k| k as f64 / count as f64).collect();
        let rendezvous = Arc::new(Rendezvous::of(count));
        let place = |index| Member {
            rendezvous: rendezvous.clone(),
            index,
            bounds: Mutex::new([&even, &even].map(Vec::clone)),
            work: Mutex::default(),
        };
        (0..count).map(place).collect()
    }

    /// Where the team meets.
    pub(crate) fn rendezvous(&self) -> Arc<Rendezvous> {
        self.rendezvous.clone()
    }

    /// Its number in the team.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The first chunk of each share of `n` things, and the end of the last share. `[members + 1]`
    fn chunk_bounds(&self, n: usize) -> Vec<usize> {
        let bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds[0].iter().map(|bound| (bound * chunks_of(n) as f64).round() as usize).collect()
    }

    /// Where the shares of `n` things begin, and where the last ends. `[members + 1]`
    pub(crate) fn bounds(&self, n: usize, divided: Divided) -> Vec<usize> {
        let chunks = self.chunk_bounds(n);
        let at = |(k, chunk): (usize, &usize)| match divided {
            Divided::ByWork => chunk * n / chunks_of(n),
            Divided::Evenly => n * k / (chunks.len() - 1),
        };
        chunks.iter().enumerate().map(at).collect()
    }

    /// The chunks of `n` things that are in the share of this GPU.
    pub(crate) fn chunks(&self, n: usize) -> Range<usize> {
        let bounds = self.chunk_bounds(n);
        bounds[self.index]..bounds[self.index + 1]
    }

    /// The share of this GPU of `n` things.
    pub(crate) fn share(&self, n: usize, divided: Divided) -> Range<usize> {
        let bounds = self.bounds(n, divided);
        bounds[self.index]..bounds[self.index + 1]
    }

    /// The numbers of all GPUs, of which this one has `own`.
    pub(crate) fn gathered(&self, own: Vec<f64>) -> Result<Vec<Vec<f64>>, Error> {
        self.rendezvous.lock().numbers[self.index] = own;
        self.meet(("numbers", 0), 0, 0)?;
        let all = self.rendezvous.lock().numbers.clone();
        // Nobody puts others there while one still reads.
        self.meet(("numbers", 0), 0, 0)?;
        Ok(all)
    }

    /// The share of this GPU of `n` targets, as places in the order of their tree. Its time begins now.
    pub(crate) fn begin(&self, n: usize) -> Range<usize> {
        *self.work() = Work { begun: Some(Instant::now()), ..Work::default() };
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        bounds[0] = bounds[1].clone();
        drop(bounds);
        self.share(n, Divided::ByWork)
    }

    /// Says that the share of a sum is done. The next shares follow these times, less the time that
    /// each GPU waited.
    pub(crate) fn end(&self) {
        let mut work = self.work();
        work.took = work.begun.take().map(|begun| begun.elapsed().saturating_sub(work.waited));
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the other GPUs and returns what each has posted. `what` is exchanged, so many bytes at `address`.
    pub(crate) fn meet(&self, what: (&'static str, usize), address: u64, context: usize) -> Result<Vec<Post>, Error> {
        let (came, took) = (Instant::now(), self.work().took.take());
        let busy = took.map_or(0.0, |took| took.as_secs_f64());
        let posts = self.rendezvous.meet(self.index, Post { address, context, what, busy })?;
        self.work().waited += came.elapsed();
        if took.is_some() {
            self.balance(&posts.iter().map(|post| post.busy).collect::<Vec<_>>());
        }
        Ok(posts)
    }

    /// Whether all GPUs say yes.
    pub(crate) fn agree(&self, yes: bool) -> Result<bool, Error> {
        let posts = self.meet(("agreement", 0), u64::from(yes), 0)?;
        Ok(posts.iter().all(|post| post.address == 1))
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
    fn shares_are_whole_chunks_and_all_of_it() {
        let members = Member::all(4);
        for member in &members {
            member.bounds.lock().unwrap()[0] = vec![0.0, 0.13, 0.13, 0.7771, 1.0];
        }
        for n in [0, 1, 3, 2047, 5000, 100_003, 3_000_000] {
            let mut reached = 0;
            for member in &members {
                let (share, chunks) = (member.share(n, Divided::ByWork), member.chunks(n));
                assert_eq!(share.start, reached, "{n}");
                assert_eq!(share, chunks.start * n / chunks_of(n)..chunks.end * n / chunks_of(n), "{n}");
                reached = share.end;
            }
            assert_eq!(reached, n);
        }
        assert_eq!(members[1].share(100_003, Divided::ByWork).len(), 0, "an empty share");
        assert_eq!(members[2].share(10, Divided::Evenly), 5..7);
    }

    #[test]
    fn nobody_waits_for_one_that_left() {
        let rendezvous = Rendezvous::of(2);
        let post = |bytes| Post { address: 1, context: 2, what: ("", bytes), busy: 0.0 };
        let of_other = |bytes| {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| rendezvous.meet(1, post(bytes)).map(|posts| posts.len()));
                let own = rendezvous.meet(0, post(8)).map(|posts| posts.len());
                (own, other.join().unwrap())
            })
        };
        assert_eq!(of_other(8), (Ok(2), Ok(2)));
        let (own, other) = of_other(16);
        assert!(own.is_err() && own == other, "sums of different lengths");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| rendezvous.meet(0, post(8)).map(|posts| posts.len()));
            rendezvous.leave();
            assert_eq!(waits.join().unwrap(), Err(left()));
        });
        rendezvous.renew();
        assert_eq!(of_other(8), (Ok(2), Ok(2)));
    }
}
