//! A run put to use on one record: predicted, with what to think of it, or simulated.

use super::{Constant, RecordFacts, Run, Source};
use crate::estimate::adapt::Prior;
use crate::estimate::{Adapted, Prediction, Start};
use crate::record::{Layout, Record};
use crate::suggest;
use crate::{Divergence, Error};

/// A predicted record.
#[derive(Debug, Clone)]
pub struct Predicted {
    pub prediction: Prediction,
    /// Its scores.
    pub facts: RecordFacts,
    /// The constants that were adapted before.
    pub changes: Vec<Change>,
    /// Reasons not to believe it.
    pub doubts: Vec<String>,
}

/// An adapted constant, before and after.
#[derive(Debug, Clone)]
pub struct Change {
    pub before: Constant,
    pub after: Constant,
}

impl Run {
    /// Entries of θ of named constants.
    ///
    /// # Errors
    /// [`Error::Setting`] where there is none of that name.
    pub fn constants(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        let known: Vec<&str> = self
            .model
            .unknowns
            .iter()
            .map(|u| u.name.as_str())
            .collect();
        if known.is_empty() && !names.is_empty() {
            return Err(Error::Setting(
                "the model of this run has no unknown constants to adapt; add some to [unknowns] and fit again".into(),
            ));
        }
        let found = names.iter();
        let mut found = found
            .map(|name| suggest::find(name.trim(), &known, "unknown constant"))
            .collect::<Result<Vec<usize>, Error>>()?;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Predicts a record from the state that its first samples show, after some constants were
    /// estimated again on them; `part` is how far these may have changed, see [`Prior::new`].
    ///
    /// # Errors
    /// Those of [`crate::estimate::Predictor::check`] and [`crate::estimate::Predictor::adapt`].
    pub fn predicted(
        &self,
        source: &Source,
        warm_up: usize,
        (constants, part): (&[usize], f64),
    ) -> Result<Predicted, Error> {
        let (model, record, own) = (&self.model, source.record, self.predictor());
        own.check(record, warm_up)?;
        let mut adapted = None;
        if !constants.is_empty() {
            let prior = Prior::new(model, &self.theta, &self.covariance, constants, part);
            adapted = Some(own.adapt(record, warm_up, &prior)?);
        }
        let changes = adapted.as_ref().map(|a| self.changes(constants, a));
        let start = Start::WarmUp(warm_up);
        let (predictor, prediction) = match &adapted {
            None => (own, self.predict(record, start)),
            Some(adapted) => {
                let predictor = adapted.predictor(own);
                (predictor, predictor.predict(record, start))
            }
        };
        Ok(Predicted {
            facts: RecordFacts {
                role: self.role(&source.sha256).into(),
                ..RecordFacts::tested(&predictor, source, &prediction)
            },
            changes: changes.unwrap_or_default(),
            doubts: self.facts.doubts(model, &source.file, &prediction),
            prediction,
        })
    }

    fn changes(&self, constants: &[usize], adapted: &Adapted) -> Vec<Change> {
        let n = constants.len();
        let each = constants.iter().enumerate();
        each.map(|(k, &i)| Change {
            before: self.facts.unknowns[i].clone(),
            after: Constant::new(
                &self.model.unknowns[i],
                adapted.theta[i],
                adapted.covariance[k * n + k],
            ),
        })
        .collect()
    }

    /// What a simulation asks of a table: the inputs, and nothing of what was measured.
    pub fn driving(&self) -> Layout {
        Layout {
            measurements: vec![],
            states: vec![],
            time_step: Some(self.facts.sample_time),
            ..self.model.layout()
        }
    }

    /// Follows the learned equations from a state; `driving` has the inputs, see [`Self::driving`].
    /// Gives the record that was driven over, in which nothing is measured, too.
    ///
    /// # Errors
    /// [`Error::Diverged`] where the states leave the finite numbers.
    pub fn simulated(&self, driving: Record, start: &[f64]) -> Result<(Record, Prediction), Error> {
        let (model, n) = (&self.model, self.model.states.len());
        let d_y = model.measurements.len();
        let record = Record {
            outputs: vec![f64::NAN; driving.len() * d_y],
            d_y,
            d_x: n,
            ..driving
        };
        self.predictor().check(&record, 0)?;
        let prediction = self.predict(&record, Start::At(start));
        match prediction.states.iter().position(|x| !x.is_finite()) {
            None => Ok((record, prediction)),
            Some(at) => Err(Error::Diverged(Divergence {
                during: "the simulation".into(),
                epoch: None,
                step: at / n,
                time: record.time[at / n],
                quantity: model.states[at % n].name.clone(),
                value: prediction.states[at],
                advice: "the learned equations do not hold so far from what they were learned on; start elsewhere, or take a shorter record".into(),
            })),
        }
    }

    /// So many samples, one sample time apart, for a model that nothing drives.
    ///
    /// # Errors
    /// [`Error::Setting`] where something does.
    pub fn undriven(&self, samples: usize) -> Result<Record, Error> {
        let names: Vec<&str> = self.model.inputs.iter().map(|u| u.name.as_str()).collect();
        if !names.is_empty() {
            return Err(Error::Setting(format!(
                "the model of this run is driven by {}; give a file with --input",
                names.join(", ")
            )));
        }
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
        })
    }
}
