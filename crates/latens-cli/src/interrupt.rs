//! Ctrl-C: the first asks a fit to stop, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::text;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Exit code of a program that was interrupted, as shells have it.
const INTERRUPTED: i32 = 130;

/// Takes over Ctrl-C. Where that is not possible, it ends the program as ever.
pub fn install() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(INTERRUPTED);
        }
        text::note("\nstopping at the next opportunity; Ctrl-C again stops at once");
    });
}

/// Whether somebody wants to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
