//! Everything that can go wrong, with what to do about it.

use std::path::{Path, PathBuf};

use crate::model::ModelError;
use crate::record::RecordError;

/// An error of the library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mistakes in a model file; shows each with its line.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A record that cannot be read or does not fit the model.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file that cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A solver or a simulation left the numbers that make sense.
    #[error("{0}")]
    Diverged(Divergence),
    /// A setting that makes no sense.
    #[error("{0}")]
    Setting(String),
    /// A run folder that is not one.
    #[error("{}: {message}", path.display())]
    Run { path: PathBuf, message: String },
    /// A sample of a stream that cannot follow the one before it.
    #[error("{0}")]
    Sample(String),
    /// Stopped by the observer (Ctrl-C).
    #[error("stopped")]
    Stopped,
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source,
        }
    }
}

/// Where and how a computation diverged.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// What was running: "simulation", "alternating", …
    pub during: String,
    /// Pass over the record, from 1; none outside of solvers.
    pub epoch: Option<usize>,
    pub step: usize,
    pub time: f64,
    /// What left its range: a state's name, or "θ".
    pub quantity: String,
    pub value: f64,
    /// What to try.
    pub advice: String,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} diverged", self.during)?;
        if let Some(epoch) = self.epoch {
            write!(f, " in epoch {epoch}")?;
        }
        write!(
            f,
            " at step {} (t = {}): {} = {:.3e}; {}",
            self.step, self.time, self.quantity, self.value, self.advice
        )
    }
}
