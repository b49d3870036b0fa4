//! Reasons not to believe a prediction, in words.

use super::{Facts, RecordFacts, Source};
use crate::Error;
use crate::check::DETERMINED;
use crate::estimate::{Prediction, Start};
use crate::fit::Fit;
use crate::model::Model;
use crate::record::Record;

/// Whether anything is left of a test behind its warm-up: what would only come out after the fit.
///
/// # Errors
/// [`Error::Setting`].
pub fn check_test(file: &str, record: &Record, warm_up: usize) -> Result<(), Error> {
    if warm_up < record.len() {
        return Ok(());
    }
    Err(Error::Setting(format!(
        "{file} has {} samples, and --warmup takes {warm_up}: nothing is left to predict",
        record.len()
    )))
}

impl Facts {
    /// Why a prediction of a file may be wrong: it leaves the finite numbers, or what training
    /// visited; its start is not known; or its bands are wider than what training left unexplained,
    /// so that what training did not determine decides it.
    pub fn doubts(&self, model: &Model, file: &str, prediction: &Prediction) -> Vec<String> {
        let n = model.states.len();
        if let Some(at) = prediction.states.iter().position(|x| !x.is_finite()) {
            return vec![format!(
                "the free run over {file} leaves the finite numbers in {} after {} samples",
                model.states[at % n].name,
                at / n
            )];
        }
        let mut doubts = vec![];
        if prediction.extrapolates() {
            doubts.push(format!(
                "on {:.0} % of {file} a network meets values unlike any in training: the model guesses there",
                (100.0 * prediction.outside).max(1.0)
            ));
        }
        let start = prediction.deviations.iter().zip(&self.nominal.scale);
        let unknown: Vec<&str> = start
            .zip(&model.states)
            .filter(|((std, scale), _)| **std > DETERMINED * **scale)
            .map(|(_, state)| state.name.as_str())
            .collect();
        if !unknown.is_empty() {
            doubts.push(format!(
                "the first {} samples of {file} do not determine {}: the prediction starts from a guess; take more with --warmup",
                prediction.from,
                unknown.join(", ")
            ));
        }
        let c = model.measurements.len();
        for (k, channel) in model.measurements.iter().enumerate() {
            let own = prediction.output_deviations.iter().skip(k).step_by(c);
            let (sum, count) = own.fold((0.0, 0.0), |(s, n), std| (s + std * std, n + 1.0));
            let (spread, left) = (
                f64::sqrt(sum / count),
                self.left_unexplained(k, &channel.name),
            );
            if spread > left {
                // a band that the data do not determine is known to its order of magnitude
                doubts.push(format!(
                    "the bands of {} over {file} spread to {spread:.0e}{}, training left {left:.1e}: what training did not determine decides this prediction",
                    channel.name,
                    match channel.unit.as_str() {
                        "" => String::new(),
                        unit => format!(" {unit}"),
                    }
                ));
            }
        }
        doubts
    }

    /// Predicts a record that played no part in the fit and adds its scores; gives the doubts about
    /// them.
    pub fn test(&mut self, fit: &Fit, source: &Source, warm_up: usize) -> Vec<String> {
        let prediction = fit.predict(source.record, Start::WarmUp(warm_up));
        let mut doubts = vec![];
        if self.records.iter().any(|r| r.sha256 == source.sha256) {
            doubts.push(format!(
                "{} has played a part already: as a test it says nothing",
                source.file
            ));
        }
        doubts.extend(self.doubts(&fit.model, &source.file, &prediction));
        let tested = RecordFacts::tested(&fit.predictor(), source, &prediction);
        self.records.push(tested);
        doubts
    }

    /// The error of the free runs over the training records, and at least the noise.
    fn left_unexplained(&self, channel: usize, name: &str) -> f64 {
        let trained = self.records.iter().filter(|r| r.role == "train");
        let error = |r: &RecordFacts| r.rmse.get(name).copied().flatten();
        let noise = self.noise.measurement[channel].sqrt();
        trained.filter_map(error).fold(noise, f64::max)
    }
}
