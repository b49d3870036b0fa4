//! Why there is no model.

use std::path::PathBuf;

use crate::ModelError;

/// Why a model file gives no model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// No model of that name comes with Latens.
    #[error("no model `{name}` comes with Latens")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A setting does not go with the model; says why.
    #[error("{0}")]
    Setting(String),
    /// The file has mistakes; shows each with its line.
    #[error(transparent)]
    Mistakes(#[from] ModelError),
}
