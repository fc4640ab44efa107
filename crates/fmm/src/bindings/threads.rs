//! The threads that sums run on.
//!
//! A pool belongs to the process that made it: after a fork its threads are missing in the child,
//! which makes a new one. The lock of the pools is taken by a running sum only, so that no other
//! thread holds it during a fork.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::mem;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::forks::Running;

/// Sums of fewer pairs run on the calling thread alone: waking others takes longer than the sum.
const FEWEST_PAIRS: f64 = 3e5;

/// Pools of one process, by the number of threads; 0 is all cores.
struct Pools {
    process: u32,
    pools: BTreeMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { process: 0, pools: BTreeMap::new() });

/// Where a sum runs.
pub enum Threads {
    /// On the threads of a pool.
    Pool(Arc<ThreadPool>),
    /// On the calling thread.
    Calling(&'static ThreadPool),
}

impl Threads {
    /// The largest number of threads that a caller may ask for.
    pub const MOST: usize = 1024;

    /// The threads for a running sum of `pairs` pairs; `None` is all cores.
    ///
    /// # Errors
    /// The system refuses threads.
    pub fn of(_running: &Running, threads: Option<usize>, pairs: f64) -> Result<Threads, ThreadPoolBuildError> {
        if pairs < FEWEST_PAIRS
            && let Some(calling) = calling()
        {
            return Ok(Threads::Calling(calling));
        }
        let threads = threads.unwrap_or(0);
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let process = process::id();
        if pools.process != process {
            // The threads of these pools do not exist in this process. Nothing can stop them in an
            // orderly way.
            mem::forget(mem::take(&mut pools.pools));
            pools.process = process;
        }
        if let Some(pool) = pools.pools.get(&threads) {
            return Ok(Threads::Pool(Arc::clone(pool)));
        }
        let name = |k| format!("nbody-{k}");
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()?);
        pools.pools.insert(threads, Arc::clone(&pool));
        Ok(Threads::Pool(pool))
    }

    /// Runs `work`, whose parallel loops run on these threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self {
            Threads::Pool(pool) => pool.install(work),
            Threads::Calling(pool) => pool.install(work),
        }
    }
}

/// The most threads that become pools of their own. Each of these pools has a few KB that outlive
/// the thread.
const MOST_CALLING: usize = 64;

/// The pool that consists of the calling thread. It survives a fork together with the thread.
fn calling() -> Option<&'static ThreadPool> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HERE: OnceCell<Option<&'static ThreadPool>> = const { OnceCell::new() };
    }
    let make = || {
        if COUNT.fetch_add(1, Relaxed) >= MOST_CALLING {
            return None;
        }
        let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().ok()?;
        Some(&*Box::leak(Box::new(pool)))
    };
    HERE.with(|here| *here.get_or_init(make))
}
