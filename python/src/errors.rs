//! Errors of the library as exceptions of `latens._errors`, with the same words.

use latens::Error;
use latens::model::ModelError;
use latens::record::RecordError;
use pyo3::prelude::*;

/// What a function of this module fails with: an error of the library, or an exception already.
pub enum Failure {
    Library(Error),
    Python(PyErr),
}

/// What a function of this module returns.
pub type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Library(error.into())
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Library(error) => {
                Python::attach(|py| exception(py, &error).unwrap_or_else(|failed| failed))
            }
        }
    }
}

/// A setting that makes no sense.
pub fn setting(message: impl Into<String>) -> Failure {
    Failure::Library(Error::Setting(message.into()))
}

fn exception(py: Python, error: &Error) -> PyResult<PyErr> {
    let class = match error {
        Error::Model(_) => "ModelError",
        Error::Record(_) | Error::Sample(_) => "RecordError",
        Error::Diverged(_) => "Diverged",
        Error::Setting(_) => "SettingError",
        Error::Io { .. } | Error::Run { .. } => "FileError",
        Error::Stopped => "Error",
    };
    let class = py.import("latens._errors")?.getattr(class)?;
    let message = match error {
        Error::Stopped => "stopped before anything was learned".into(),
        error => error.to_string(),
    };
    let exception = class.call1((message,))?;
    if let Error::Model(error) = error {
        let mistakes = mistakes(error);
        let (line, column, ..) = mistakes[0].clone();
        exception.setattr("file", &error.file)?;
        exception.setattr("line", line)?;
        exception.setattr("column", column)?;
        exception.setattr("mistakes", mistakes)?;
    }
    Ok(PyErr::from_value(exception))
}

/// Line, column, message and help of each.
fn mistakes(error: &ModelError) -> Vec<(usize, usize, String, Option<String>)> {
    let each = error.diagnostics.iter().map(|d| {
        let (line, column) = error.position(d.span.start);
        (line, column, d.message.clone(), d.help.clone())
    });
    each.collect()
}
