//! What a fit promises for records that it never saw, tried on blocks of its own that were held
//! back.
//!
//! Bands count what the data leave open *if the model is right*. Where misfits show that it is
//! not, each half of the records is predicted by what is learned from the other, and the bands of
//! the fit become as wide as the errors seen there. The same trial says how such a model is best started: at
//! the state that the last measurements show, or at the one whose simulation fits all of the
//! first samples, which the model's own errors move less.

use serde::{Deserialize, Serialize};

use super::Fit;
use super::predict::{Predictor, Start};
use crate::Error;
use crate::described;
use crate::record::Record;
use crate::solve::{self, Observer, Problem, Quiet, Solver};

/// Samples of a record below which no block of it is held back.
const FEWEST_SAMPLES_OF_HALF: usize = 100;
/// The simulation's start has to be better by this factor.
const CLEARLY_BETTER_ERROR_RATIO: f64 = 0.95;

described! {
/// What blocks that were held back have shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Mean nRMSE of the measured channels on them.
    pub error: f64,
    /// By how much the standard deviations of predictions are widened.
    pub widening: f64,
    /// Whether a prediction starts on the simulation that fits the first samples.
    pub exact_start: bool,
}
}

/// Predicts each half of the records by what is learned from the other; `None` where they are too
/// short, or nothing comes of it.
pub(super) fn held_back(
    solver: &dyn Solver,
    problem: &Problem,
    fit: &Fit,
    observer: &mut dyn Observer,
) -> Result<Option<Proof>, Error> {
    if problem
        .records
        .iter()
        .any(|r| r.len() < 2 * FEWEST_SAMPLES_OF_HALF)
    {
        return Ok(None);
    }
    let halves = solve::halves(problem);
    let mut trials = [Trial::default(), Trial::default()];
    for half in 0..2 {
        let fold = Problem {
            in_pieces: Some(fit.facts.in_pieces),
            ..halves[half].of(problem)
        };
        let start = fold.start_of_half(&fit.theta, fit.facts.seed);
        let mut quiet = Quiet::new(observer, solve::Trial::Halves);
        let learned = match solve::kept::learn(solver, &fold, start, &mut quiet) {
            Ok(learned) if !learned.stopped => learned,
            Ok(_) | Err(Error::Diverged(_) | Error::Stopped) => return Ok(None),
            Err(error) => return Err(error),
        };
        for record in &halves[1 - half].records {
            for (exact_start, trial) in [false, true].into_iter().zip(&mut trials) {
                let promised = Predictor {
                    exact_start,
                    ..fit.predictor()
                };
                let blind = Predictor {
                    theta: &learned.theta,
                    draws: &[],
                    noise: &learned.noise,
                    variance_inflation: learned.variance_inflation,
                    ..promised
                };
                trial.add(&promised, &blind, record);
            }
        }
    }
    let errors = trials.each_ref().map(Trial::error);
    let exact_start = errors[1] < CLEARLY_BETTER_ERROR_RATIO * errors[0];
    let trial = &trials[usize::from(exact_start)];
    let widening = (trial.surprise / trial.count).sqrt().max(1.0);
    Ok(trial.error().is_finite().then(|| Proof {
        error: trial.error(),
        widening,
        exact_start,
    }))
}

/// Predictions of blocks from one kind of start.
#[derive(Default)]
struct Trial {
    /// Sum of ((y − h)/range)².
    square: f64,
    /// Sum of (y − h)²/(σ² + R).
    surprise: f64,
    count: f64,
}

impl Trial {
    fn error(&self) -> f64 {
        (self.square / self.count).sqrt()
    }

    /// A block that `blind` has not seen, and what `promised` says of its own errors there.
    fn add(&mut self, promised: &Predictor, blind: &Predictor, record: &Record) {
        let start = Start::WarmUp(Start::samples(record));
        let made = blind.predict(record, start);
        let promise = promised.predict(record, start);
        for k in made.from..record.len() {
            let (outputs, deviations) = (&made.outputs, &promise.output_deviations);
            let row = k - made.from;
            for (c, y) in record.output(k).iter().enumerate() {
                if y.is_nan() {
                    continue;
                }
                let off = y - outputs.row(row)[c];
                let variance = deviations.row(row)[c].powi(2) + promised.noise.measurement[c];
                self.square += (off / promised.range[c]).powi(2);
                self.surprise += off * off / variance;
                self.count += 1.0;
            }
        }
    }
}
