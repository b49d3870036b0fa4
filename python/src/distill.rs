//! Formulas for a fit's networks, on threads of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use latens::Error;
use latens_distill::{Options, Step, Watch};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::pool;

/// How long a signal may wait.
const SIGNALS: Duration = Duration::from_millis(50);

struct Reporter {
    steps: Sender<Step>,
    stop: Arc<AtomicBool>,
}

impl Watch for Reporter {
    fn step(&self, step: Step) {
        // nobody listens any more where the caller has left
        let _ = self.steps.send(step);
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What was found, as JSON, and whether Ctrl-C ended it. `hear` is called with a line for each step.
pub fn run(
    py: Python,
    fit: latens::Fit,
    options: Options,
    hear: Option<&Py<PyAny>>,
) -> PyResult<(String, bool)> {
    let (steps, mut heard) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let reporter = Reporter {
        steps,
        stop: Arc::clone(&stop),
    };
    let pool = pool::of(None).map_err(Failure::from)?;
    let thread = std::thread::spawn(move || {
        let work = || latens_distill::distill(&fit, &options, &reporter);
        let done = catch_unwind(AssertUnwindSafe(|| pool.install(work)));
        drop(reporter);
        done
    });
    let (mut interrupted, mut failed) = (false, None);
    loop {
        let step;
        (heard, step) = py.detach(move || {
            let step = heard.recv_timeout(SIGNALS);
            (heard, step)
        });
        let mut called = Ok(());
        match (step, hear) {
            (Err(RecvTimeoutError::Disconnected), _) => break,
            (Ok(step), Some(hear)) => called = hear.call1(py, (step.to_string(),)).map(drop),
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
        Ok(found) => Ok((serde_json::json!(found).to_string(), interrupted)),
        Err(Error::Stopped) if interrupted => Err(PyKeyboardInterrupt::new_err(
            "stopped before any formula was fitted",
        )),
        Err(error) => Err(Failure::from(error).into()),
    }
}
