//! Ctrl-C: the first asks to stop, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::text;

static ASKED: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicBool = AtomicBool::new(false);

/// Exit code of a program that was interrupted, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Takes over Ctrl-C. Where that is not possible, it ends the program as ever. `first` says what
/// the first one does.
pub fn install(first: &'static str) {
    let _ = ctrlc::set_handler(move || {
        if !ASKED.swap(true, Ordering::SeqCst) {
            text::note(&format!("\n{first}; Ctrl-C again stops at once"));
        } else if !WRITING.load(Ordering::SeqCst) {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// Takes over Ctrl-C for a verb that waits for others most of the time: the first finishes and
/// ends the program, in a thread of its own.
pub fn finish_with(finish: impl Fn() -> Result<(), Failure> + Send + Sync + 'static) {
    let finish = Arc::new(finish);
    let _ = ctrlc::set_handler(move || {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED.into());
        }
        let finish = Arc::clone(&finish);
        std::thread::spawn(move || {
            let failed = finish().map_err(Failure::report).is_err();
            std::process::exit(i32::from(failed));
        });
    });
}

/// Whether somebody wants to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// From here on a run is being written, in no time: it is not left half-way.
pub fn writing() {
    WRITING.store(true, Ordering::SeqCst);
}
