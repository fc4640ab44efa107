//! The post of a rank: the thread that calls MPI.
//!
//! Messages go from rank to rank without blocking, a header with the length and then pieces whose counts fit 32 bits. While
//! the working thread works, and while messages are on their way, every rank sends every other a sign of life each second; that
//! of the first one says from where a run can go on. A rank that is silent for longer than the patience, because it was stopped or its host has failed, ends all. Processes that
//! die are seen by `mpirun`, which ends the others.

use std::collections::VecDeque;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Source};
use nbody_cli::console::{last_words, remember, tell};
use nbody_cli::signals;

use crate::comm::{Office, Order};

/// Most bytes of a piece, if not said otherwise.
pub const PIECE: u32 = 1 << 22;

/// From one sign of life to the next.
const PULSE: Duration = Duration::from_secs(1);

/// How long the thread sleeps where nothing happens.
const NAP: Duration = Duration::from_micros(50);

/// How often it looks before it sleeps: messages mostly come at once.
const LOOKS: u32 = 200;

/// Most bytes of the last words in a sign of life.
const LONGEST: usize = 2000;

const DATA: i32 = 1;
const ALIVE: i32 = 2;

/// What came of the message that a rank is sending.
#[derive(Default)]
struct Inbox {
    whole: VecDeque<Vec<u8>>,
    part: Option<(usize, Vec<u8>)>,
}

/// MPI, from its beginning to its end.
pub struct Post {
    world: SimpleCommunicator,
    piece: usize,
    patience: Duration,
    inboxes: Vec<Inbox>,
    heard: Vec<Instant>,
    pulse: Instant,
    /// Whether a signal that asks for the end was reported.
    asked: bool,
    // Last, so that MPI ends after all that uses it.
    _universe: Universe,
}

impl Post {
    /// Initializes MPI; none if it cannot be.
    pub fn new(piece: u32, patience: u64) -> Option<Self> {
        let (universe, _) = mpi::initialize_with_threading(Threading::Funneled)?;
        let world = universe.world();
        let size = world.size() as usize;
        Some(Post {
            piece: piece as usize,
            patience: Duration::from_secs(patience),
            inboxes: (0..size).map(|_| Inbox::default()).collect(),
            heard: vec![Instant::now(); size],
            pulse: Instant::now(),
            asked: false,
            world,
            _universe: universe,
        })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// Does what the working thread orders until that has ended.
    pub fn serve(&mut self, office: &Office) {
        let mut looks = 0;
        self.heard.fill(Instant::now());
        loop {
            match office.orders.try_recv() {
                Ok(Order::AllToAll(messages)) => {
                    let received = self.all_to_all(messages);
                    if office.received.send(received).is_err() {
                        return;
                    }
                    looks = 0;
                }
                Ok(Order::Abort(code)) => self.world.abort(code),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => self.rest(&mut looks),
            }
        }
    }

    /// Ends all ranks with this exit code.
    pub fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }

    /// Looks for messages; sleeps a little if there are none.
    fn rest(&mut self, looks: &mut u32) {
        if self.receive() {
            *looks = 0;
        } else {
            *looks += 1;
            if *looks > LOOKS { std::thread::sleep(NAP) } else { std::thread::yield_now() }
        }
        self.show_life();
    }

    fn all_to_all(&mut self, messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let (rank, size) = (self.rank(), self.size());
        let lengths: Vec<[u8; 8]> = messages.iter().map(|m| (m.len() as u64).to_le_bytes()).collect();
        let piece = self.piece;
        // A handle of its own: requests borrow it while this thread goes on.
        let world = SimpleCommunicator::world();
        mpi::request::scope(|scope| {
            let mut sent = vec![];
            for peer in (1..size).map(|k| (rank + k) % size) {
                let to = world.process_at_rank(peer as i32);
                sent.push(to.immediate_send_with_tag(scope, &lengths[peer][..], DATA));
                for part in messages[peer].chunks(piece) {
                    sent.push(to.immediate_send_with_tag(scope, part, DATA));
                }
            }
            let mut looks = 0;
            let complete = |post: &Self| (0..size).all(|r| r == rank || !post.inboxes[r].whole.is_empty());
            while !sent.is_empty() || !complete(self) {
                sent = sent.into_iter().filter_map(|request| request.test().err()).collect();
                self.rest(&mut looks);
            }
        });
        let mut messages = messages;
        let of = |r: usize| {
            if r == rank { Some(std::mem::take(&mut messages[r])) } else { self.inboxes[r].whole.pop_front() }
        };
        (0..size).map(of).map(|message| message.unwrap_or_default()).collect()
    }

    /// Takes a message that has come, one at a time, so that signs of life go out in between. Returns
    /// whether there was one.
    fn receive(&mut self) -> bool {
        let Some(message) = self.world.any_process().immediate_matched_probe() else { return false };
        let (bytes, status) = message.matched_receive_vec::<u8>();
        let from = status.source_rank() as usize;
        self.heard[from] = Instant::now();
        match status.tag() {
            DATA => self.inboxes[from].add(bytes),
            // Should the first rank be lost, the others know its last words.
            _ if from == 0 && bytes.len() > 1 => remember(String::from_utf8_lossy(&bytes[1..]).into_owned()),
            _ => {}
        }
        true
    }

    /// Sends a sign of life when it is due, and ends all if a rank has sent none for too long.
    fn show_life(&mut self) {
        // Where a rank is lost, mpirun asks the others to end, and gives them a second.
        if signals::asked() && !self.asked {
            self.asked = true;
            // One of the first two is left.
            if self.rank() < 2 {
                say_last(self.rank(), "is asked to end");
            }
        }
        if self.pulse.elapsed() < PULSE {
            return;
        }
        // This rank may have been stopped itself: what others have sent meanwhile is there, and is looked at first.
        let late = self.pulse.elapsed() > 2 * PULSE;
        self.pulse = Instant::now();
        if late {
            while self.receive() {}
            self.heard.fill(Instant::now());
        }
        let rank = self.rank();
        let words = if rank == 0 { last_words() } else { String::new() };
        // Never an empty message, whose place in memory MPI could take for a mark of its own.
        let alive = [&[0u8], words.as_bytes().get(..LONGEST).unwrap_or(words.as_bytes())].concat();
        for peer in (0..self.size()).filter(|&peer| peer != rank) {
            // Short enough that it is sent when the call returns.
            self.world.process_at_rank(peer as i32).send_with_tag(&alive[..], ALIVE);
            let silent = self.heard[peer].elapsed();
            if silent > self.patience {
                let seconds = silent.as_secs();
                tell(format_args!(
                    "nbody-mpi: rank {rank}: no sign of life from rank {peer} for {seconds} s; all ranks end"
                ));
                say_last(rank, "ends early");
                self.world.abort(70);
            }
        }
    }
}

/// Prints what the first rank has noted for the case that the work ends in the middle.
pub fn say_last(rank: usize, what: &str) {
    let words = last_words();
    if !words.is_empty() {
        tell(format_args!("nbody-mpi: rank {rank} {what}. {words}"));
    }
}

impl Inbox {
    /// Adds a header or a piece.
    fn add(&mut self, bytes: Vec<u8>) {
        let (length, mut message) = match self.part.take() {
            None => {
                let header = <[u8; 8]>::try_from(&bytes[..]).expect("a header of eight bytes");
                let length = u64::from_le_bytes(header) as usize;
                (length, Vec::with_capacity(length))
            }
            Some((length, mut message)) => {
                message.extend_from_slice(&bytes);
                (length, message)
            }
        };
        if message.len() == length {
            self.whole.push_back(std::mem::take(&mut message));
        } else {
            self.part = Some((length, message));
        }
    }
}
