//! Ctrl-C, SIGTERM and SIGHUP: the first asks to stop, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::text;

/// Exit code of a program that was interrupted, as shells have it.
pub const INTERRUPTED_EXIT_CODE: u8 = 130;

/// Signals closer than this are one: `timeout -s INT` sends two, and a terminal that closes sends
/// SIGHUP beside the shell's.
const SAME_SIGNAL_TIME: Duration = Duration::from_secs(1);

/// When the first came.
static ASKED: OnceLock<Instant> = OnceLock::new();
static WRITING: AtomicBool = AtomicBool::new(false);
static FIRST: Mutex<First> = Mutex::new(First::Ends);

/// What the first one does.
#[derive(Clone)]
enum First {
    /// It ends the program: nothing is under way yet.
    Ends,
    /// It says this, and somebody looks at [`asked`].
    Asks(&'static str),
    /// It finishes what is under way and ends the program.
    Finishes(Arc<dyn Fn() -> Result<(), Failure> + Send + Sync>),
}

/// Hears signals from here on, in a thread of its own. Other threads must not have begun: they would
/// end the program where a signal meets them.
#[cfg(unix)]
pub fn watch() {
    use nix::sys::signal::{SigSet, Signal};
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    if !hangup_is_ignored() {
        signals.add(Signal::SIGHUP);
    }
    if signals.thread_block().is_ok() {
        std::thread::spawn(move || {
            while signals.wait().is_ok() {
                heard();
            }
        });
    }
}

/// Whether the program was started by `nohup`, and is to outlive its terminal.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(not(unix))]
pub fn watch() {
    let _ = ctrlc::set_handler(heard);
}

fn heard() {
    let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if matches!(first, First::Ends) {
        std::process::exit(INTERRUPTED_EXIT_CODE.into());
    }
    if let Some(asked) = ASKED.get() {
        if asked.elapsed() > SAME_SIGNAL_TIME && !WRITING.load(Ordering::SeqCst) {
            std::process::exit(INTERRUPTED_EXIT_CODE.into());
        }
        return;
    }
    let _ = ASKED.set(Instant::now());
    match first {
        First::Ends => {}
        First::Asks(words) => text::note(&format!("\n{words}; Ctrl-C again stops at once")),
        First::Finishes(finish) => {
            std::thread::spawn(move || {
                let failed = finish().map_err(Failure::report).is_err();
                std::process::exit(i32::from(failed));
            });
        }
    }
}

fn set(first: First) {
    *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = first;
}

/// From here on the first signal asks to stop; `words` say what that does.
pub fn install(words: &'static str) {
    set(First::Asks(words));
}

/// For a verb that waits for others most of the time: the first signal finishes and ends the program,
/// in a thread of its own.
pub fn finish_with(finish: impl Fn() -> Result<(), Failure> + Send + Sync + 'static) {
    set(First::Finishes(Arc::new(finish)));
}

/// Whether somebody wants to stop.
pub fn asked() -> bool {
    ASKED.get().is_some()
}

/// From here on a run is being written, in no time: it is not left half-way.
pub fn writing() {
    WRITING.store(true, Ordering::SeqCst);
}
