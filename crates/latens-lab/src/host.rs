//! What the program that runs an experiment lends it: somebody to tell, and whether to stop.

use std::sync::OnceLock;

/// What the program lends.
#[derive(Clone, Copy)]
pub struct Host {
    /// Says a line to whoever watches.
    pub note: fn(&str),
    /// Whether somebody wants to stop.
    pub asked_to_stop: fn() -> bool,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Once, before an experiment; without it nothing is said, and nobody stops.
pub fn install(host: Host) {
    let _ = HOST.set(host);
}

pub(crate) fn note(line: &str) {
    if let Some(host) = HOST.get() {
        (host.note)(line);
    }
}

pub(crate) fn asked() -> bool {
    HOST.get().is_some_and(|host| (host.asked_to_stop)())
}
