//! Latens learns the equations nobody measured.
//!
//! You know part of a system's equations and measure part of its states. A [`Model`] states what is
//! known and calls a network where knowledge ends; a [`Record`] holds what the sensors saw. [`fit()`]
//! gives back the hidden states, the hidden equation, and a model to simulate.
//!
//! # A first fit
//!
//! The position of an oscillator is measured; its velocity is not, nor is it known what drives it:
//!
//! ```
//! use latens::simulate::{Simulation, simulate};
//! use latens::{Model, fit};
//!
//! let model = Model::builtin("harmonic-oscillator")?;
//! let record = simulate(&model, &Simulation { steps: Some(400), ..Simulation::default() })?;
//! let learned = fit(&model, &[record])?;
//!
//! // no sensor saw the velocity; its error against the truth, over its range
//! let error = learned.facts.records[0].mean_nrmse_hidden.unwrap();
//! assert!(error < 1e-3, "{error}");
//! # Ok::<(), latens::Error>(())
//! ```
//!
//! # A model of your own
//!
//! A model is a file, or a text. Mistakes in it are shown where they stand:
//!
//! ```
//! use latens::Model;
//!
//! let mistake = Model::from_text("slide.toml", r#"
//!     [states.q]
//!     derivative = "v"
//!     [states.v]
//!     derivative = "gain*u - fricton(v)"
//!     [inputs]
//!     u = { unit = "V" }
//!     [networks.friction]
//!     layers = ["10 tanh"]
//!     [unknowns]
//!     gain = { guess = 0.3, scale = 0.1, positive = true }
//!     [measurements]
//!     q = "q"
//! "#).unwrap_err();
//! assert!(mistake.to_string().contains("did you mean `friction`?"));
//! ```
//!
//! # Data of your own
//!
//! [`Record::read`] takes CSV, Parquet and MATLAB files whose columns have the names of the model's
//! inputs and measurements; an empty cell is a sample that was not taken:
//!
//! ```
//! # let place = tempfile::tempdir().unwrap();
//! # let path = place.path().join("record.csv");
//! use latens::{Model, Record};
//!
//! std::fs::write(&path, "t,z\n0,1.0\n0.01,0.99\n0.02,\n0.03,0.97\n").unwrap();
//! let record = Record::read(&path, &Model::builtin("harmonic-oscillator")?)?;
//! assert_eq!(record.len(), 4);
//! assert!(record.output(2)[0].is_nan());
//! # Ok::<(), latens::Error>(())
//! ```
//!
//! # More than one record, and settings
//!
//! A [`Job`] has records by role ([`Role`]) and all settings; [`fit()`] is its short form. Whoever wants
//! to see how far it is, or to stop it, brings an [`Observer`]:
//!
//! ```
//! # use latens::simulate::{Simulation, simulate};
//! use latens::{Job, Model, Role, Silent, Source};
//!
//! let model = Model::builtin("harmonic-oscillator")?;
//! # let (first, other) = (Simulation { steps: Some(300), ..Simulation::default() }, Simulation { steps: Some(200), start: vec![(0, 0.5)], ..Simulation::default() });
//! # let (monday, friday) = (simulate(&model, &first)?, simulate(&model, &other)?);
//! let mut job = Job::new(model)?;
//! job.settings.seed = 7;
//! job.settings.passes = 3;
//! job.add(Role::Train, Source::of_record(monday, &job.model)?);
//! job.add(Role::Test, Source::of_record(friday, &job.model)?);
//! let outcome = job.run(&mut Silent)?;
//! assert_eq!(outcome.fit.facts.records[1].role, Role::Test);
//! # Ok::<(), latens::Error>(())
//! ```
//!
//! # Using what was learned
//!
//! A [`Fit`] predicts, estimates, simulates and follows a stream, each with standard deviations, and with
//! [`Warning`]s where it should not be trusted. It is kept in a folder, and read back bit for bit:
//!
//! ```
//! # let place = tempfile::tempdir().unwrap();
//! # let folder = place.path().join("run");
//! # let fit = latens::example_fit();
//! use latens::Fit;
//!
//! fit.save(&folder)?;
//! let again = Fit::load(&folder)?;
//! assert_eq!(again.theta, fit.theta);
//! # Ok::<(), latens::Error>(())
//! ```
//!
//! # A solver of your own
//!
//! The default solver, `batch`, is Newton's method on the whole record. Another is an implementation of
//! [`Solver`] and a call of [`register`]; `examples/06_own_solver.rs` has one. Progress, several starts,
//! scores, folders and reports come with it.
//!
//! The library neither prints nor exits: it returns [`Error`]s that say what to do. The layers, from the
//! bottom: record, numerics, filter, look, solve, fit, folder, job; none uses one above it. Only this
//! page is the public face; the feature `internals` opens the rest, without promises.

#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "internals"), allow(dead_code, unused_imports))]
#![cfg_attr(not(feature = "internals"), warn(missing_docs))]
#![allow(rustdoc::private_intra_doc_links)]

// modules that are public with the feature `internals` and private without it; each says at its head
// what it is
// before the others, which use its macro
#[cfg(feature = "internals")]
pub mod described;
#[cfg(not(feature = "internals"))]
mod described;

#[cfg(feature = "internals")]
pub mod error;
#[cfg(not(feature = "internals"))]
mod error;
#[cfg(feature = "internals")]
pub mod filter;
#[cfg(not(feature = "internals"))]
mod filter;
#[cfg(feature = "internals")]
pub mod fit;
#[cfg(not(feature = "internals"))]
mod fit;
#[cfg(feature = "internals")]
pub mod folder;
#[cfg(not(feature = "internals"))]
mod folder;
#[cfg(feature = "internals")]
pub mod job;
#[cfg(not(feature = "internals"))]
mod job;
#[cfg(feature = "internals")]
pub mod look;
#[cfg(not(feature = "internals"))]
mod look;
#[cfg(feature = "internals")]
pub mod numerics;
#[cfg(not(feature = "internals"))]
mod numerics;
#[cfg(feature = "internals")]
pub mod solve;
#[cfg(not(feature = "internals"))]
mod solve;
#[cfg(feature = "internals")]
pub mod text;
#[cfg(not(feature = "internals"))]
mod text;

pub mod record;
pub mod simulate;

#[cfg(feature = "internals")]
pub use latens_model as model;
#[cfg(not(feature = "internals"))]
use latens_model as model;
pub use latens_model::{suggest, systems};

pub use error::{Divergence, Door, Error};
pub use fit::compare::{CompareOptions, Compared, Comparison, Difference, Strength, compare};
pub use fit::diagnosis::{ResidualTest, Test};
pub use fit::facts::{BoundName, Constant, Facts, RecordFacts, Role};
pub use fit::predict::{Prediction, Start};
pub use fit::profile::{ConstantProfile, Open, Profile, ProfilePoint, profile};
pub use fit::using::{
    Change, EstimateFacts, EstimateOptions, Estimation, PredictOptions, Predicted, PredictionFacts,
    Simulated, SimulationFacts,
};
pub use fit::warning::Warning;
pub use fit::{Fit, Track};
pub use job::{Job, Outcome, Watch, fit};
pub use latens_model::Model;
pub use latens_model::settings::{Level, Settings, SettingsLayer};
pub use look::check::Check;
pub use look::invariance::{Invariance, Move};
pub use look::{Companion, Finding, Leaving, Stiffness};
pub use numerics::Trajectory;
pub use record::{Record, Source};
pub use solve::{
    Learned, Observer, PassReport, Problem, Progress, Silent, Solver, find, register, solvers,
};

/// Online estimates: samples as they come.
pub mod stream {
    pub use crate::fit::stream::{Options, Outcome, Progress, Sample, State, Stream};
}

/// What else a solver of one's own needs: where it starts, and what it reports.
pub mod solver {
    pub use crate::numerics::objective::{Cost, Noise};
    pub use crate::solve::checkpoint::{Checkpoint, Start};
}

/// A fit that outlives its process: what it has come to is kept on its way to a folder.
///
/// ```
/// use latens::unfinished::{Checkpoints, Claim};
///
/// # let place = tempfile::tempdir().unwrap();
/// # let mut job = latens::Job::new(latens::Model::builtin("harmonic-oscillator")?)?;
/// # job.settings.passes = 1;
/// # let record = latens::example_fit().tracks[0].record.clone();
/// # job.add(latens::Role::Train, latens::Source::of_record(record, &job.model)?);
/// # let folder = place.path().join("run");
/// let claim = Claim::new(&folder)?; // no other process writes this folder until it is dropped
/// let unfinished = claim.checkpoints(&job.begun(), |error| eprintln!("{error}"))?;
/// let outcome = job.run_with(Checkpoints::new(&unfinished).into(), &mut latens::Silent)?;
/// claim.write(&outcome.fit, false)?;
/// claim.forget_checkpoints();
/// # Ok::<(), latens::Error>(())
/// ```
pub mod unfinished {
    pub use crate::fit::begun::{Begun, BegunRecord};
    pub use crate::folder::{Claim, Unfinished, begun};
    pub use crate::solve::kept::{Checkpoints, Keep};
}

/// Looks at records before anything is learned from them.
///
/// ```
/// let fit = latens::example_fit();
/// let check = latens::check(&fit.model, &[fit.tracks[0].record.clone()])?;
/// assert!(check.states[1].determined > 0.9, "the velocity follows from the position");
/// # Ok::<(), latens::Error>(())
/// ```
///
/// # Errors
/// [`Error::Setting`] where the records do not fit the model.
pub fn check(model: &Model, records: &[Record]) -> Result<Check, Error> {
    fit::learn::check(model, records)
}

/// A small fit, for the examples of this documentation.
#[doc(hidden)]
pub fn example_fit() -> Fit {
    use simulate::{Simulation, simulate};
    static FIT: std::sync::OnceLock<Fit> = std::sync::OnceLock::new();
    FIT.get_or_init(|| {
        let model = Model::builtin("harmonic-oscillator").expect("an embedded model");
        let simulation = Simulation {
            steps: Some(300),
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).expect("it simulates");
        fit(&model, &[record]).expect("it learns")
    })
    .clone()
}
