//! Ctrl-C: the first asks a fit to stop, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

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

/// Whether somebody wants to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// From here on a run is being written, in no time: it is not left half-way.
pub fn writing() {
    WRITING.store(true, Ordering::SeqCst);
}
