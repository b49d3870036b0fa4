//! Latens learns the equations nobody measured.
//!
//! You know part of a system's equations and measure part of its states. A [`Model`] states what
//! is known and calls a network where knowledge ends; a [`Record`] holds what the sensors saw.
//! [`solve::fit`] gives back the hidden states, the hidden equation, and a model to simulate.
//!
//! ```
//! use latens::simulate::{Simulation, simulate};
//! use latens::solve::{Settings, Silent, Solver, fit};
//! use latens::{Model, systems};
//!
//! // the position of an oscillator is measured; its velocity is not, nor what drives it
//! let text = systems::find("harmonic-oscillator").unwrap();
//! let model = Model::from_text("harmonic-oscillator", text)?;
//! let record = simulate(&model, &Simulation { steps: Some(1000), ..Simulation::default() })?;
//!
//! let settings = Settings { epochs: 3, ..Settings::new(Solver::Alternating) };
//! let fit = fit(&model, &[record], &settings, &mut Silent)?;
//! let error = fit.estimates[0].mean().unwrap();
//! assert!(error < 0.05, "free run, mean nRMSE over both states: {error}");
//! # Ok::<(), latens::Error>(())
//! ```
//!
//! The way of the data:
//!
//! - [`model`]: model files, equations, exact derivatives, networks; [`systems`]: the embedded ones
//! - [`record`]: CSV and MATLAB files, columns matched by name, missing values
//! - [`step`]: one-step maps with their derivatives; [`simulate`]: records from the truth
//! - [`objective`]: the one cost; [`linalg`]: the matrices of this problem
//! - [`estimate`]: filter and smoother of the states, predictions of new records, adapted constants;
//!   [`mod@check`]: what a record can tell
//! - [`score`]: free runs and their errors; [`solve`]: the solvers; [`mod@fit`]: what they return
//!
//! The library neither prints nor exits: it returns [`Error`]s that say what to do, and reports
//! progress to an [`solve::Observer`].

pub mod check;
pub mod error;
pub mod estimate;
pub mod fit;
pub mod linalg;
pub mod model;
pub mod objective;
pub mod record;
pub mod score;
pub mod simulate;
pub mod solve;
pub mod step;
pub mod suggest;
pub mod systems;

pub use error::{Divergence, Error};
pub use model::Model;
pub use record::Record;
