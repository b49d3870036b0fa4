//! Errors of the library as exceptions of `latens._errors`, in the words of Python.

use latens::model::{ModelError, suggest};
use latens::record::RecordError;
use latens::{Door, Error};
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

impl From<latens::model::Error> for Failure {
    fn from(error: latens::model::Error) -> Self {
        Self::Library(error.into())
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

/// The place of a name among others; `noun` says what it is a name of.
pub fn place(name: &str, names: &[&str], noun: &str) -> Result<usize> {
    suggest::find(name, names, noun).map_err(setting)
}

/// Values by name as values by place.
pub fn places<T: Copy>(
    given: &[(String, T)],
    names: &[&str],
    noun: &str,
) -> Result<Vec<(usize, T)>> {
    let pairs = given.iter();
    pairs
        .map(|(name, value)| Ok((place(name, names, noun)?, *value)))
        .collect()
}

fn exception(py: Python, error: &Error) -> PyResult<PyErr> {
    let class = match error {
        Error::Model(_) => "ModelError",
        Error::Record(_) | Error::Sample(_) => "RecordError",
        Error::Diverged(_) => "Diverged",
        Error::Setting(_) => "SettingError",
        Error::Io { .. } | Error::Folder { .. } => "FileError",
        Error::Stopped | Error::Workers(_) => "Error",
    };
    let class = py.import("latens._errors")?.getattr(class)?;
    let message = match error {
        Error::Stopped => "stopped before anything was learned".into(),
        error => error.at(Door::Python),
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
    let rows = error.diagnostics.iter().map(|d| {
        let (line, column) = error.position(d.span.start);
        (line, column, d.message.clone(), d.help.clone())
    });
    rows.collect()
}
