//! The ranks of MPI as the working thread of one of them sees them: every call is an order to the main thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use fmm_core::comm::{Comm, values};

/// What the working thread wants of the main thread.
pub enum Order {
    /// Message k to rank k; those to this rank are wanted.
    AllToAll(Vec<Vec<u8>>),
    /// The end of all ranks, with this exit code.
    Abort(i32),
}

/// The working thread's end.
pub struct Mpi {
    rank: usize,
    size: usize,
    main: Mutex<Main>,
}

/// The ways to the main thread and back.
struct Main {
    order: Sender<Order>,
    received: Receiver<Vec<Vec<u8>>>,
}

/// The main thread's end.
pub struct Office {
    /// Closed when the working thread has ended.
    pub orders: Receiver<Order>,
    /// The messages that were wanted.
    pub received: Sender<Vec<Vec<u8>>>,
}

/// The two ends of this rank.
pub fn pair(rank: usize, size: usize) -> (Mpi, Office) {
    let ((order, orders), (send, received)) = (channel(), channel());
    (Mpi { rank, size, main: Mutex::new(Main { order, received }) }, Office { orders, received: send })
}

impl Mpi {
    /// Waits for the main thread to end the process.
    fn wait(&self) -> ! {
        loop {
            std::thread::park();
        }
    }
}

/// Panics on the rank and at the exchange that NBODY_TEST_PANIC names, as RANK:EXCHANGE.
#[cfg(feature = "faults")]
fn fault(rank: usize) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static EXCHANGES: AtomicU64 = AtomicU64::new(0);
    let here = format!("{rank}:{}", EXCHANGES.fetch_add(1, Ordering::Relaxed));
    assert!(std::env::var("NBODY_TEST_PANIC").ok() != Some(here), "a panic that was asked for");
}

impl Comm for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, sums: &mut [u64]) {
        let all = self.all_gather(&sums.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>());
        sums.fill(0);
        for message in all {
            sums.iter_mut().zip(values::<u64>(&message)).for_each(|(sum, value)| *sum += value);
        }
    }

    fn max(&self, largest: &mut [f64]) {
        let own: Vec<u8> = largest.iter().flat_map(|v| v.to_ne_bytes()).collect();
        for message in self.all_gather(&own) {
            largest.iter_mut().zip(values::<f64>(&message)).for_each(|(max, value)| *max = max.max(value));
        }
    }

    fn all_gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.all_to_all(vec![own.to_vec(); self.size])
    }

    fn all_to_all(&self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        assert_eq!(messages.len(), self.size, "one message a rank");
        #[cfg(feature = "faults")]
        fault(self.rank);
        let main = self.main.lock().unwrap_or_else(PoisonError::into_inner);
        match main.order.send(Order::AllToAll(messages)).map(|()| main.received.recv()) {
            Ok(Ok(received)) => received,
            _ => self.wait(),
        }
    }

    fn barrier(&self) {
        self.all_gather(&[]);
    }

    fn abort(&self, code: i32) -> ! {
        // If the main thread is gone, so is the process.
        let _ = self.main.lock().unwrap_or_else(PoisonError::into_inner).order.send(Order::Abort(code));
        self.wait()
    }
}
