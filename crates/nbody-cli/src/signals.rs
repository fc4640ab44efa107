//! Ctrl-C and SIGTERM: the first asks the run to end after its step, the second ends the process at once. SIGHUP, sent
//! when a terminal closes, asks as well, but not under `nohup`. And SIGXFSZ, which would end the process where a file
//! reaches the limit of `ulimit -f`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use nbody_sim::failure::Failure;

/// Makes writing past the limit of file sizes an error of the call that writes, as on a full disk.
pub fn outlive_limits() {
    // Any handler does. Where there can be none the signal ends the process, and files are whole all the same.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Ends the process at once, as a signal does: nothing is dropped, and no thread is waited for.
pub fn exit(code: u8) -> ! {
    signal_hook::low_level::exit(code.into())
}

/// The flag of the first [`Stop`].
static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether a signal has come since the process listens.
pub fn asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}

/// Whether the run was asked to end.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Starts to listen. Files are renamed into place when complete, so that an end at once leaves none half written.
    pub fn install() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let cannot =
            |signal| move |e: std::io::Error| Failure::new(70, format!("cannot listen to signal {signal}: {e}"));
        for signal in [SIGINT, SIGTERM] {
            // In this order the first signal only raises the flag and the second finds it raised.
            flag::register_conditional_shutdown(signal, 75, asked.clone())
                .and_then(|_| flag::register(signal, asked.clone()))
                .map_err(cannot(signal))?;
        }
        if !is_ignored(SIGHUP) {
            // It never ends the process at once: sessions that close send it next to SIGTERM, and shells once more.
            flag::register(SIGHUP, asked.clone()).map_err(cannot(SIGHUP))?;
        }
        let _ = ASKED.set(asked.clone());
        Ok(Stop(asked))
    }

    /// Has a thread call `answer` when the first signal comes. Without threads there is none.
    pub fn announce(&self, answer: impl FnOnce() + Send + 'static) {
        let asking = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(SIGHUP));
        let Ok(mut signals) = Signals::new(asking) else { return };
        let begun = self.requested();
        let listen = move || {
            if begun || signals.forever().next().is_some() {
                answer();
            }
        };
        let _ = thread::Builder::new().name("signals".into()).spawn(listen);
    }

    /// Whether a signal came.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether the process was started with this signal ignored. Where the system does not say, the answer is yes, so that
/// the signal keeps its effect.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}
