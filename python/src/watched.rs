//! Work on threads of its own that reports its steps and that Ctrl-C ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use latens::Error;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::pool;

/// How long a signal may wait.
const SIGNAL_WAIT: Duration = Duration::from_millis(50);

/// Passes steps on, a line each.
pub struct Reporter {
    steps: Sender<String>,
    stop: Arc<AtomicBool>,
}

impl Reporter {
    fn send(&self, line: String) {
        // nobody listens any more where the caller has left
        let _ = self.steps.send(line);
    }
}

impl latens_distill::Watch for Reporter {
    fn step(&self, step: latens_distill::Step) {
        self.send(step.to_string());
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl latens_design::Watch for Reporter {
    fn step(&self, step: latens_design::Step) {
        self.send(step.to_string());
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What the work gives, and whether Ctrl-C ended it. `hear` is called with a line for each step.
pub fn run<T: Send + 'static>(
    py: Python,
    hear: Option<&Py<PyAny>>,
    work: impl FnOnce(&Reporter) -> Result<T, Error> + Send + 'static,
) -> PyResult<(T, bool)> {
    let (steps, mut heard) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let reporter = Reporter {
        steps,
        stop: Arc::clone(&stop),
    };
    let pool = pool::with_threads(None).map_err(Failure::from)?;
    let thread = std::thread::spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&reporter))));
        drop(reporter);
        done
    });
    let (mut interrupted, mut failed) = (false, None);
    loop {
        let step;
        (heard, step) = py.detach(move || {
            let step = heard.recv_timeout(SIGNAL_WAIT);
            (heard, step)
        });
        let mut called = Ok(());
        match (step, hear) {
            (Err(RecvTimeoutError::Disconnected), _) => break,
            (Ok(step), Some(hear)) => called = hear.call1(py, (step,)).map(drop),
            _ => {}
        }
        for error in [called, py.check_signals()]
            .into_iter()
            .filter_map(Result::err)
        {
            let pressed = error.is_instance_of::<PyKeyboardInterrupt>(py);
            if interrupted && pressed {
                return Err(error);
            }
            stop.store(true, Ordering::Relaxed);
            if pressed {
                interrupted = true;
            } else {
                failed = failed.or(Some(error));
            }
        }
    }
    let panicked = || PyRuntimeError::new_err("the search failed unexpectedly; please report it");
    let done = py.detach(|| thread.join()).map_err(|_| panicked())?;
    if let Some(error) = failed {
        return Err(error);
    }
    match done.map_err(|_| panicked())? {
        Ok(found) => Ok((found, interrupted)),
        Err(Error::Stopped) if interrupted => Err(PyKeyboardInterrupt::new_err(
            "stopped before anything was found",
        )),
        Err(error) => Err(Failure::from(error).into()),
    }
}
