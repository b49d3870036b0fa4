//! Workers of a fit: processes that Rust starts, or whatever a Python object leads to.

use std::sync::{Arc, Mutex, PoisonError};

use latens::solve::workers::{self, Fleet, Line, Processes, Workers};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::ThreadPool;

use crate::errors::Failure;
use crate::pool;

/// Who has the records of a fit.
#[derive(FromPyObject)]
pub enum Backend {
    /// A command, how many processes, and how many threads of each.
    Processes(Vec<String>, usize, usize),
    /// Has `wanted()` and `start(waits)`, which gives something with `send`, `receive` and `close`, or nothing.
    Fleet(Py<PyAny>),
}

impl Backend {
    pub fn workers(self) -> Workers {
        match self {
            Self::Processes(command, count, threads) => {
                Workers::new(Processes::new(command, count, threads))
            }
            Self::Fleet(object) => Workers::new(OfPython(object)),
        }
    }
}

struct OfPython(Py<PyAny>);
struct PythonLine(Py<PyAny>);

/// What an exception says, in a line.
fn said(error: PyErr) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_string()
}

fn died(error: PyErr) -> String {
    format!("has died: {}", said(error))
}

impl Fleet for OfPython {
    fn wanted(&self) -> usize {
        let wanted = Python::attach(|py| self.0.call_method0(py, "wanted")?.extract(py));
        wanted.unwrap_or(1)
    }

    fn start(&self, waits: bool) -> Result<Option<Box<dyn Line>>, String> {
        Python::attach(|py| {
            let started = self.0.call_method1(py, "start", (waits,)).map_err(said)?;
            let line = (!started.is_none(py)).then(|| PythonLine(started));
            Ok(line.map(|line| Box::new(line) as Box<dyn Line>))
        })
    }
}

impl Line for PythonLine {
    fn send(&mut self, request: &[u8]) -> Result<(), String> {
        Python::attach(|py| {
            let sent = self
                .0
                .call_method1(py, "send", (PyBytes::new(py, request),));
            sent.map(drop).map_err(died)
        })
    }

    fn receive(&mut self) -> Result<Vec<u8>, String> {
        Python::attach(|py| {
            let answer = self.0.call_method0(py, "receive").map_err(died)?;
            let bytes = answer.bind(py).cast::<PyBytes>();
            let bytes = bytes.map_err(|_| "has answered no bytes".to_string())?;
            Ok(bytes.as_bytes().to_vec())
        })
    }
}

impl Drop for PythonLine {
    fn drop(&mut self) {
        // nobody is left to hear of it
        let _ = Python::try_attach(|py| self.0.call_method0(py, "close").map(drop));
    }
}

/// The records that a worker has.
#[pyclass(module = "latens._latens")]
pub struct Desk {
    desk: Mutex<workers::Desk>,
    pool: Arc<ThreadPool>,
}

#[pymethods]
impl Desk {
    #[new]
    fn new(threads: usize) -> Result<Self, Failure> {
        Ok(Self {
            desk: Mutex::default(),
            pool: pool::with_threads(Some(threads))?,
        })
    }

    /// The answer to a request of a fit.
    fn handle<'py>(&self, py: Python<'py>, request: &[u8]) -> Bound<'py, PyBytes> {
        let answer = py.detach(|| {
            let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            let desk: &mut workers::Desk = &mut desk;
            self.pool.install(|| desk.handle(request))
        });
        PyBytes::new(py, &answer)
    }
}

/// Answers requests on standard input until there are no more.
#[pyfunction]
pub fn serve(py: Python) -> PyResult<()> {
    let served = py.detach(|| workers::serve(std::io::stdin().lock(), std::io::stdout().lock()));
    served.map_err(|error| PyOSError::new_err(error.to_string()))
}
