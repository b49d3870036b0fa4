//! `latens._latens`: the library for the Python package around it. Thin on purpose: arrays in and out, errors,
//! the interpreter's lock, progress. What users see is in `latens/*.py`.

mod arrays;
mod design;
mod errors;
mod fit;
mod learn;
mod model;
mod pool;
mod record;
mod stream;
mod watched;
mod workers;

#[pyo3::pymodule]
mod _latens {
    #[pymodule_export]
    use super::fit::{Fit, write_text};
    #[pymodule_export]
    use super::learn::Job;
    #[pymodule_export]
    use super::model::{Model, systems};
    #[pymodule_export]
    use super::record::{Source, Table, instants};
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::workers::{Desk, serve};

    use pyo3::prelude::*;

    /// One with the crates.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        latens_lab::register();
        Ok(())
    }
}
