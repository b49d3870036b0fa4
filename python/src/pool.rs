//! Threads that work while Python does something else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use latens::solve::Progress;
use latens::{Error, Observer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::Failure;

/// How long a signal may wait.
const SIGNAL_WAIT: Duration = Duration::from_millis(10);

/// Of a worker; as large as that of a program's main thread.
const STACK_BYTES: usize = 8 << 20;

/// The pool that all calls share, and the process that it is of: a child of `fork` has none of its
/// parent's threads.
static SHARED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

fn build(threads: usize) -> Result<ThreadPool, Error> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let built = builder.stack_size(STACK_BYTES).build();
    built.map_err(|e| Error::Setting(format!("cannot start {threads} threads: {e}")))
}

/// So many threads; without a number the shared ones, as many as there are cores.
pub fn with_threads(threads: Option<usize>) -> Result<Arc<ThreadPool>, Error> {
    if let Some(threads) = threads {
        return Ok(Arc::new(build(threads)?));
    }
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match shared.take() {
        Some((owner, pool)) if owner == process => {
            *shared = Some((owner, Arc::clone(&pool)));
            Ok(pool)
        }
        other => {
            // waiting for threads that are not there would never end
            std::mem::forget(other);
            let pool = Arc::new(build(0)?);
            *shared = Some((process, Arc::clone(&pool)));
            Ok(pool)
        }
    }
}

/// What stops where somebody presses Ctrl-C.
struct Stoppable<'s>(&'s AtomicBool);

impl Observer for Stoppable<'_> {
    fn goes_on(&mut self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    fn progress(&mut self, _: &Progress) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// The same for work that takes long: Ctrl-C ends it.
pub fn watched<T: Send>(
    py: Python,
    task: impl FnOnce(&mut dyn Observer) -> T + Send,
) -> PyResult<T> {
    let pool = with_threads(None).map_err(Failure::from)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| pool.install(|| task(&mut Stoppable(&stop))));
        let mut pressed = None;
        while !worker.is_finished() {
            py.detach(|| std::thread::sleep(SIGNAL_WAIT));
            if let Err(error) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                pressed = Some(error);
            }
        }
        let panicked = || PyRuntimeError::new_err("this failed unexpectedly; please report it");
        let done = worker.join().map_err(|_| panicked())?;
        pressed.map_or(Ok(done), Err)
    })
}

/// Works on the shared threads without the interpreter.
pub fn work<T: Send>(py: Python, task: impl FnOnce() -> T + Send) -> Result<T, Error> {
    py.detach(|| Ok(with_threads(None)?.install(task)))
}
