//! A fit put to use on one record: predicted, estimated or simulated, with what to think of it.

use serde::{Deserialize, Serialize};

use super::adapt::Prior;
use super::suspects::refuse;
use super::{
    Adapted, Constant, Estimated, Fit, NoiseFactor, Prediction, RecordFacts, Role, Start, Warning,
};
use crate::described;
use crate::filter::Mode;
use crate::look::Suspect;
use crate::look::suspects::{Finding, without};
use crate::model::suggest;
use crate::numerics::Entry;
use crate::numerics::score;
use crate::numerics::score::named::{Scores, state_scores};
use crate::record::{Layout, Record, RecordError, Source, Table};
use crate::simulate::check_steps;
use crate::{Divergence, Error};

/// How a record is predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictOptions {
    /// First samples of the record, which show where it starts and are not scored; where nobody says,
    /// [`Start::samples`].
    pub warm_up: Option<usize>,
    /// Unknown constants to estimate again on them.
    pub adapt: Vec<String>,
    /// How far these may have changed since the fit, as a part of their value; see [`Prior::new`].
    pub adapt_prior: f64,
}

impl Default for PredictOptions {
    fn default() -> Self {
        Self {
            warm_up: None,
            adapt: vec![],
            adapt_prior: 0.1,
        }
    }
}

/// A predicted record.
#[derive(Debug, Clone)]
pub struct Predicted {
    /// The free run.
    pub prediction: Prediction,
    /// Its scores.
    pub facts: PredictionFacts,
    /// Reasons not to trust it.
    pub warnings: Vec<Warning>,
}

described! {
/// The scores of a predicted record: what `--json` and Python show of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PredictionFacts {
    /// The record, and the scores over the samples that were predicted.
    #[serde(flatten)]
    pub record: RecordFacts,
    /// Samples that showed where it starts.
    pub warmup: usize,
    /// The part on which a network meets arguments unlike any in training.
    pub outside: f64,
    /// The constants that were adapted before.
    pub adapted: Vec<Change>,
    /// Readings that contradict the others: they play no part in the start, and are not scored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Suspect>,
}
}

described! {
/// An adapted constant, before and after.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// As the fit left it.
    pub before: f64,
    /// Its standard deviation then.
    pub before_std: f64,
    /// On this record.
    pub after: f64,
    /// Its standard deviation now.
    pub after_std: f64,
}
}

/// How the states of a record are estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EstimateOptions {
    /// Whether each estimate may look at the whole record, and not at the past alone.
    pub smooth: bool,
    /// Factor on the process noise, as the fit left it; where nobody says, what the likelihood asks
    /// for.
    pub loosen: Option<f64>,
}

/// The estimated states of a record.
#[derive(Debug, Clone)]
pub struct Estimation {
    /// The states, with deviations.
    pub estimated: Estimated,
    /// What they were allowed to look at.
    pub mode: Mode,
    /// Their scores.
    pub facts: EstimateFacts,
    /// Reasons not to trust them.
    pub warnings: Vec<Warning>,
}

impl Estimation {
    /// The record and beside it the states.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`] where a name serves as both input and measurement.
    pub fn table(&self, fit: &Fit, record: &Record) -> Result<Table, RecordError> {
        self.estimated.table(&fit.model, record, self.mode)
    }
}

described! {
/// The scores of estimated states: what `--json` and Python show of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EstimateFacts {
    /// The file.
    pub file: String,
    /// What it served for in the fit.
    pub role: Role,
    /// Its length.
    pub samples: usize,
    /// Samples that the scores are taken over.
    pub scored: usize,
    /// Factor on the process noise.
    pub loosened: f64,
    /// Mean of ν²/s, near 1 where innovations are as large as the filter says.
    pub consistency: Option<f64>,
    /// Root mean square error of each state whose truth is known.
    pub rmse: Scores,
    /// The same over its range.
    pub nrmse: Scores,
    /// Readings that contradict the others, and were set aside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Suspect>,
}
}

/// A simulated record.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// What was driven over; nothing is measured in it.
    pub record: Record,
    /// The free run.
    pub prediction: Prediction,
    /// What `--json` and Python show of it.
    pub facts: SimulationFacts,
    /// Reasons not to trust it.
    pub warnings: Vec<Warning>,
}

described! {
/// What is known of a simulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulationFacts {
    /// Its length.
    pub samples: usize,
    /// The part on which a network meets arguments unlike any in training.
    pub outside: f64,
}
}

impl Fit {
    /// Entries of θ of named constants.
    ///
    /// # Errors
    /// [`Error::Setting`] where there is none of that name.
    pub fn constant_places(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        let unknowns = self.model.unknowns.iter();
        let known: Vec<&str> = unknowns.map(|u| u.name.as_str()).collect();
        if known.is_empty() && !names.is_empty() {
            return Err(Error::Setting(
                "the model of this fit has no unknown constants to adapt; add some to [unknowns] and fit again".into(),
            ));
        }
        let mut places = names
            .iter()
            .map(|name| suggest::find(name.trim(), &known, "unknown constant"))
            .collect::<Result<Vec<usize>, String>>()
            .map_err(Error::Setting)?;
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    /// Predicts a record from the state that its first samples show, after some constants were
    /// estimated again on them.
    ///
    /// ```
    /// use latens::simulate::{Simulation, simulate};
    /// use latens::{PredictOptions, Source};
    ///
    /// let fit = latens::example_fit();
    /// let other = Simulation { steps: Some(200), start: vec![(0, 0.8)], ..Simulation::default() };
    /// let record = Source::of_record(simulate(&fit.model, &other)?, &fit.model)?;
    /// let predicted = fit.predict(&record, &PredictOptions::default())?;
    /// assert_eq!(predicted.facts.warmup, 20);
    /// assert!(predicted.facts.record.nrmse["z"].unwrap() < 0.1);
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] for a record that is none of this model's, or constants that it has not.
    pub fn predict(&self, source: &Source, options: &PredictOptions) -> Result<Predicted, Error> {
        if !self.model.groups().is_empty() {
            let fit = self.for_group(source.group.as_deref())?;
            let mut predicted = fit.predict(&fit.sized(source), options)?;
            let prediction = &mut predicted.prediction;
            prediction.states = self.own_states(&prediction.states);
            prediction.deviations = self.own_states(&prediction.deviations);
            predicted.warnings.extend(self.new_group(source));
            return Ok(predicted);
        }
        let constants = self.constant_places(&options.adapt)?;
        let (model, record, predictor) = (&self.model, &source.record, self.predictor());
        let warm_up = options.warm_up.unwrap_or(Start::samples(record));
        predictor.check(record, warm_up)?;
        let start = Start::WarmUp(warm_up);
        let suspects = self.suspects_to_predict(record, start);
        refuse(model, record, &source.file, &suspects, 1)?;
        let used = &without(record, &suspects);
        let adapted = if constants.is_empty() {
            None
        } else {
            let (theta, covariance) = (&self.theta, &self.covariance);
            let prior = Prior::new(model, theta, covariance, &constants, options.adapt_prior);
            Some(predictor.adapt(used, warm_up, &prior)?)
        };
        let (predictor, prediction) = match &adapted {
            None => (predictor, self.free_run(used, start)),
            Some(adapted) => {
                let predictor = adapted.predictor(predictor);
                (predictor, predictor.predict(used, start))
            }
        };
        let suspects = self.suspects_of_prediction(record, suspects, &prediction);
        let scored = &Source {
            record: without(record, &suspects),
            ..source.clone()
        };
        let suspects = suspects
            .iter()
            .map(|f| f.named(model, record, &source.file, 1));
        let suspects: Vec<Suspect> = suspects.collect();
        let mut warnings = Warning::of_suspects(&suspects);
        warnings.extend(Warning::of_prediction(
            &self.facts,
            model,
            &source.file,
            &prediction,
        ));
        warnings.extend(Warning::of_foreseen(
            &self.facts,
            model,
            scored,
            &prediction,
        ));
        let changes = adapted.as_ref().map(|a| self.changes(&constants, a));
        Ok(Predicted {
            facts: PredictionFacts {
                record: RecordFacts {
                    role: self.role(&source.sha256),
                    ..RecordFacts::tested(&predictor, scored, &prediction)
                },
                warmup: warm_up,
                outside: prediction.outside,
                adapted: changes.unwrap_or_default(),
                suspects,
            },
            warnings,
            prediction,
        })
    }

    fn changes(&self, constants: &[usize], adapted: &Adapted) -> Vec<Change> {
        let n = constants.len();
        let constants = constants.iter().enumerate();
        constants
            .map(|(k, &i)| {
                let before = &self.facts.unknowns[i];
                let variance = adapted.covariance[k * n + k];
                let rough = self.facts.settings.parameter_variance;
                let after =
                    Constant::new(&self.model.unknowns[i], adapted.theta[i], variance, rough);
                Change {
                    name: before.name.clone(),
                    unit: before.unit.clone(),
                    before: before.value,
                    before_std: before.std,
                    after: after.value,
                    after_std: after.std,
                }
            })
            .collect()
    }

    /// What to know before this fit predicts; `adapts` says whether constants are adapted.
    pub fn warnings_of_use(&self, adapts: bool) -> Vec<Warning> {
        Warning::of_use(self, adapts)
    }

    /// Estimates the states of a record with all its measurements.
    ///
    /// ```
    /// use latens::{EstimateOptions, Source};
    ///
    /// let fit = latens::example_fit();
    /// let record = Source::of_record(fit.tracks[0].record.clone(), &fit.model)?;
    /// let smoothed = fit.estimate(&record, &EstimateOptions { smooth: true, loosen: None })?;
    /// assert!(smoothed.facts.nrmse["truth_v"].unwrap() < 0.05);
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] for a record that is none of this model's, [`Error::Diverged`] where the
    /// filter leaves the finite numbers.
    pub fn estimate(
        &self,
        source: &Source,
        options: &EstimateOptions,
    ) -> Result<Estimation, Error> {
        if options.loosen.is_some_and(|f| !(f > 0.0 && f.is_finite())) {
            let message = "a factor on the process noise is above zero";
            return Err(Error::Setting(message.into()));
        }
        if !self.model.groups().is_empty() {
            let fit = self.for_group(source.group.as_deref())?;
            let mut estimate = fit.estimate(&fit.sized(source), options)?;
            let estimated = &mut estimate.estimated;
            estimated.states = self.own_states(&estimated.states);
            estimated.deviations = self.own_states(&estimated.deviations);
            estimate.warnings.extend(self.new_group(source));
            return Ok(estimate);
        }
        let (model, predictor) = (&self.model, self.predictor());
        predictor.check(&source.record, 0)?;
        let suspects = self.suspects_to_estimate(&source.record);
        refuse(model, &source.record, &source.file, &suspects, 1)?;
        let record = &without(&source.record, &suspects);
        let named = |f: &Finding| f.named(model, &source.record, &source.file, 1);
        let suspects: Vec<Suspect> = suspects.iter().map(named).collect();
        let mode = if options.smooth {
            Mode::Smoother
        } else {
            Mode::Filter
        };
        let factor = options
            .loosen
            .map_or_else(|| predictor.loosened(record), NoiseFactor);
        let estimated = predictor.estimate(record, mode, factor)?;
        let looser = options.loosen.is_none() && factor.0 > 1.0;
        let looser = looser.then(|| Warning::Loosened {
            file: source.file.clone(),
            factor: factor.0,
        });
        let surprise = Warning::of_surprise(self, &source.file, estimated.consistency);
        let mut warnings = Warning::of_suspects(&suspects);
        warnings.extend(looser.into_iter().chain(surprise));
        let scores = |measure| state_scores(model, record, &estimated.states, measure);
        Ok(Estimation {
            mode,
            facts: EstimateFacts {
                file: source.file.clone(),
                role: self.role(&source.sha256),
                samples: record.len(),
                scored: record.len(),
                loosened: factor.0,
                consistency: Some(estimated.consistency).filter(|c| c.is_finite()),
                rmse: scores(score::rmse),
                nrmse: scores(score::nrmse),
                suspects,
            },
            warnings,
            estimated,
        })
    }

    /// What a simulation asks of a table: the inputs, and nothing of what was measured.
    pub fn driving(&self) -> Layout {
        Layout {
            measurements: vec![],
            states: vec![],
            time_step: Some(self.facts.sample_time),
            ..Layout::of(&self.model)
        }
    }

    /// Where a simulation starts: at the start that the fit found in its first record, with what
    /// somebody says otherwise of some states.
    pub fn start(&self, given: &[(usize, f64)]) -> Vec<f64> {
        let simulated = self.tracks.first().map(|track| track.free_run.row(0));
        let states = self.model.states.iter().zip(&self.facts.scales.center);
        let stated = || {
            states
                .map(|(s, center)| s.start.unwrap_or(*center))
                .collect()
        };
        let mut start = simulated.map_or_else(stated, <[f64]>::to_vec);
        for (i, value) in given {
            start[*i] = *value;
        }
        start
    }

    /// The same fit with other values of some constants, which are then known: no draw moves them. What else
    /// was learned stays as it is, as where a part of a plant is exchanged.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value that the model file does not allow.
    pub fn with_constants(&self, given: &[(usize, f64)]) -> Result<Self, Error> {
        let mut changed = self.clone();
        for &(i, value) in given {
            let unknown = &self.model.unknowns[i];
            let name = &unknown.name;
            let is_allowed = value >= unknown.min && value <= unknown.max;
            if !is_allowed || (unknown.positive && value <= 0.0) {
                return Err(Error::Setting(format!(
                    "{name} = {value} is a value that the model file does not allow; take one within its bounds"
                )));
            }
            changed
                .members
                .iter_mut()
                .for_each(|m| m.set_constant(name, value));
            changed.set_constant(name, value);
        }
        Ok(changed)
    }

    fn set_constant(&mut self, name: &str, value: f64) {
        let unknowns = &self.model.unknowns;
        if let Some(i) = unknowns.iter().position(|u| u.name == name) {
            self.theta[i] = unknowns[i].entry(value);
            self.draws.iter_mut().for_each(|draw| draw[i] = 0.0);
        }
    }

    /// Follows the learned equations from a state; `driving` has the inputs, see [`Self::driving`].
    ///
    /// ```
    /// let fit = latens::example_fit();
    /// let start = fit.start(&[(0, 0.5)]);
    /// let simulated = fit.simulate(fit.undriven(50)?, &start)?;
    /// assert_eq!(simulated.prediction.states.row(0)[0], 0.5);
    /// # Ok::<(), latens::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Diverged`] where the states leave the finite numbers.
    pub fn simulate(&self, driving: Record, start: &[f64]) -> Result<Simulated, Error> {
        self.refuse_groups("simulate")?;
        let (model, n) = (&self.model, self.model.states.len());
        let d_y = model.measurements.len();
        let record = Record {
            outputs: vec![f64::NAN; driving.len() * d_y],
            d_y,
            d_x: n,
            ..driving
        };
        self.predictor().check(&record, 0)?;
        let prediction = self.free_run(&record, Start::At(start));
        if let Some(Entry {
            row: step,
            column: state,
        }) = prediction.states.first_lost()
        {
            return Err(Error::Diverged(Divergence {
                during: "the simulation".into(),
                pass: None,
                step,
                time: record.time[step],
                quantity: model.states[state].name.clone(),
                value: prediction.states.row(step)[state],
                advice: "the learned equations do not hold so far from what they were learned on; start elsewhere, or take a shorter record".into(),
            }));
        }
        Ok(Simulated {
            facts: SimulationFacts {
                samples: record.len(),
                outside: prediction.outside,
            },
            warnings: Warning::of_prediction(&self.facts, model, &record.name, &prediction),
            record,
            prediction,
        })
    }

    /// So many samples, one sample time apart, for a model that nothing drives.
    ///
    /// # Errors
    /// [`Error::Setting`] where something does.
    pub fn undriven(&self, samples: usize) -> Result<Record, Error> {
        let names: Vec<&str> = self.model.inputs.iter().map(|u| u.name.as_str()).collect();
        if !names.is_empty() {
            return Err(Error::Setting(format!(
                "the model of this fit is driven by {}; give a file with ⟦input⟧",
                names.join(", ")
            )));
        }
        check_steps(&self.model, samples)?;
        let time = (0..samples).map(|k| k as f64 * self.facts.sample_time);
        Ok(Record {
            name: "simulation".into(),
            time: time.collect(),
            inputs: vec![],
            outputs: vec![],
            truth: None,
            d_u: 0,
            d_y: 0,
            d_x: 0,
            later: false,
        })
    }
}
