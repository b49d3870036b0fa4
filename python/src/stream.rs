//! Streams: samples as they come.

use std::path::PathBuf;

use latens::Error;
use latens::fit::stream::{Outcome, Sample};
use latens::folder::Files;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use self_cell::self_cell;

use crate::errors::Result;
use crate::fit::{bytes, save};
use crate::learn::UNSAVED_NAME;
use crate::model::Model;

type Running<'r> = latens::fit::stream::Stream<'r>;

self_cell!(
    /// A stream with the fit that it borrows from.
    struct Session {
        owner: latens::Fit,
        #[not_covariant]
        dependent: Running,
    }
);

/// An online estimator.
#[pyclass(module = "latens._latens")]
pub struct Stream {
    session: Session,
    learn: bool,
}

/// What one sample did: time, states with their standard deviations, innovations, consistency, whether
/// the states started again.
type Step = (f64, Vec<f64>, Vec<f64>, Vec<f64>, f64, bool);

impl Stream {
    pub fn of_fit(
        fit: latens::Fit,
        learn: Option<bool>,
        forget: Option<f64>,
        gate: Option<f64>,
    ) -> Result<Self> {
        let mut options = fit.stream_options();
        options.learn = learn.unwrap_or(options.learn);
        options.forget = forget.or(options.forget);
        options.gate = gate.unwrap_or(options.gate);
        Ok(Self {
            session: Session::try_new(fit, |fit| fit.stream(options))?,
            learn: options.learn,
        })
    }

    /// The fit as the stream has left it.
    fn adapted(&self) -> latens::Fit {
        let with = |fit: &latens::Fit, stream: &Running<'_>| fit.adapted(stream.state());
        self.session.with_dependent(with)
    }
}

#[pymethods]
impl Stream {
    /// From the files of a snapshot.
    #[staticmethod]
    fn of_files(files: Files) -> Result<Self> {
        Self::of_fit(
            latens::Fit::from_files(&files, UNSAVED_NAME)?,
            None,
            None,
            None,
        )
    }

    fn to_files<'py>(&self, py: Python<'py>) -> Result<Vec<(String, Bound<'py, PyBytes>)>> {
        Ok(bytes(py, self.adapted().to_files()?))
    }

    /// Writes a snapshot, the folder of a fit.
    fn save(&self, folder: PathBuf, force: bool) -> Result<()> {
        save(&self.adapted(), folder, force)
    }

    #[getter]
    fn model(&self) -> Model {
        Model(self.session.borrow_owner().model.clone())
    }

    #[getter]
    fn learn(&self) -> bool {
        self.learn
    }

    /// Takes a sample; NaN where nothing was measured.
    fn step(&mut self, output: Vec<f64>, input: Vec<f64>, time: Option<f64>) -> Result<Step> {
        let sample = Sample {
            time,
            input: &input,
            output: &output,
        };
        let take =
            |_: &latens::Fit, stream: &mut Running<'_>| -> std::result::Result<Step, Error> {
                let Outcome {
                    consistency,
                    restarted,
                    ..
                } = stream.step(sample)?;
                let n = stream.states().len();
                Ok((
                    stream.progress().time,
                    stream.states().to_vec(),
                    (0..n).map(|i| stream.deviation(i)).collect(),
                    stream.innovations().to_vec(),
                    consistency,
                    restarted,
                ))
            };
        Ok(self.session.with_dependent_mut(take)?)
    }

    /// A sample was lost, and nobody knows its time.
    fn lose(&mut self) {
        self.session.with_dependent_mut(|_, stream| stream.lose());
    }

    /// Samples so far, those beyond the gate, restarts, and the mean consistency.
    #[getter]
    fn progress(&self) -> (u64, u64, u64, f64) {
        self.session.with_dependent(|_, stream| {
            let p = stream.progress();
            (p.samples, p.limited, p.restarts, p.consistency())
        })
    }

    /// Name, value and standard deviation of the unknown constants as they are now.
    #[getter]
    fn unknowns(&self) -> Vec<(String, f64, f64)> {
        self.session.with_dependent(|fit, stream| {
            let pairs = fit.model.unknowns.iter().zip(stream.theta()).enumerate();
            let rows = pairs.map(|(i, (unknown, &theta))| {
                let variance = stream.covariance().variance(i);
                let (value, std) = unknown.value_and_std(theta, variance);
                (unknown.name.clone(), value, std)
            });
            rows.collect()
        })
    }
}
