//! Threads that work while Python does something else.

use std::sync::{Arc, Mutex, PoisonError};

use latens::Error;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Of a worker; as large as that of a program's main thread.
const STACK: usize = 8 << 20;

/// The pool that all calls share, and the process that it is of: a child of `fork` has none of its
/// parent's threads.
static SHARED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

fn build(threads: usize) -> Result<ThreadPool, Error> {
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let built = builder.stack_size(STACK).build();
    built.map_err(|e| Error::Setting(format!("cannot start {threads} threads: {e}")))
}

/// So many threads; without a number the shared ones, as many as there are cores.
pub fn of(threads: Option<usize>) -> Result<Arc<ThreadPool>, Error> {
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

/// Works on the shared threads without the interpreter.
pub fn work<T: Send>(py: Python, task: impl FnOnce() -> T + Send) -> Result<T, Error> {
    py.detach(|| Ok(of(None)?.install(task)))
}
