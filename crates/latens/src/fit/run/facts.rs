//! `fit.json`: all that is known about a fit besides its weights.
//!
//! A score is compared with a column of the record and carries that column's name: a channel's
//! name for what was measured, `truth_<state>` for a state whose truth is known. `null` stands
//! for a free run that diverged.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::stream::StreamFacts;
use super::{ENSEMBLE, Source, role, sha256};
use crate::check::DETERMINED;
use crate::estimate::{Prediction, Predictor, Region};
use crate::fit::nominal::Nominal;
use crate::fit::{Estimate, Fit};
use crate::linalg::PackedCovariance;
use crate::model::{Model, Unknown};
use crate::objective::{Cost, Noise};
use crate::score;
use crate::score::named::{Scores, channel_scores, finite, state_scores};
use crate::solve::checkpoint::Checkpoint;
use crate::solve::evidence::Evidence;
use crate::solve::{Attempt, EpochReport, Settings, Solver};
use crate::step::Stepper;

/// Version of the folder's layout.
const FORMAT: u32 = 1;

/// What only the program that ran the fit knows.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The model as the user named it: a file or an embedded system.
    pub model_file: String,
    /// The command line that repeats the fit.
    pub command: String,
    pub seconds: f64,
    pub threads: usize,
    pub warnings: Vec<String>,
}

/// The content of `fit.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Version of the folder's layout.
    pub format: u32,
    /// Version of Latens that wrote it.
    pub version: String,
    pub command: String,
    pub model: String,
    pub model_file: String,
    pub model_sha256: String,
    pub solver: Solver,
    /// Of the start that was kept.
    pub seed: u64,
    /// All starts.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// What the data say about the model as a whole, where the solver computes it.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// Every setting; with them and the records, a fit repeats bit for bit.
    pub settings: Settings,
    pub sample_time: f64,
    pub seconds: f64,
    pub threads: usize,
    pub warnings: Vec<String>,
    pub records: Vec<RecordFacts>,
    pub unknowns: Vec<Constant>,
    /// What each network met in training.
    #[serde(default)]
    pub regions: Vec<Region>,
    pub noise: Noise,
    /// Variances under `noise` are this much larger, see [`Fit`].
    #[serde(default = "one")]
    pub repetition: f64,
    pub nominal: Nominal,
    pub epochs: Vec<EpochFacts>,
    /// Whether it was stopped before its time.
    #[serde(default)]
    pub stopped: bool,
    /// What it can be resumed from.
    #[serde(default)]
    pub checkpoint: Option<Checkpoint>,
    /// The members of an ensemble; the scores of `records` are then those of all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ensemble: Vec<MemberFacts>,
    /// Where a snapshot of a stream stands; absent in any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamFacts>,
}

/// One member of an ensemble: its run inside the folder, and its scores by record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemberFacts {
    pub seed: u64,
    pub run: String,
    /// nRMSE of the free run over each record, as in [`RecordFacts`].
    pub nrmse: Vec<Scores>,
    pub mean_nrmse: Vec<Option<f64>>,
}

/// One record and how well the fit predicts it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordFacts {
    pub file: String,
    pub sha256: String,
    /// What it served for: `train`, `validate` or `test`.
    pub role: String,
    pub samples: usize,
    /// Samples that the scores are taken over.
    pub scored: usize,
    /// Root mean square error of the free run, each channel in its own unit.
    pub rmse: Scores,
    /// The same divided by the range of the column, and for every state whose truth is known.
    pub nrmse: Scores,
    /// Likewise for predictions over one sample; empty for a test.
    pub nrmse_one_step: Scores,
    /// Likewise for the smoothed states, where the truth is known; empty for a test.
    pub nrmse_smoothed: Scores,
    /// Mean nRMSE of the free run over the states whose truth is known; over the hidden ones.
    pub mean_nrmse: Option<f64>,
    pub mean_nrmse_hidden: Option<f64>,
    /// Of each hidden state, the part of the record on which it is poorly determined: its
    /// standard deviation is above [`DETERMINED`] of its scale.
    #[serde(default)]
    pub poorly_determined: BTreeMap<String, f64>,
}

fn one() -> f64 {
    1.0
}

/// An unknown constant as it was learned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Constant {
    pub name: String,
    pub unit: String,
    pub value: f64,
    /// Standard deviation.
    pub std: f64,
}

impl Constant {
    /// A constant at its entry of θ and the variance of that.
    pub fn new(unknown: &Unknown, theta: f64, variance: f64) -> Self {
        Self {
            name: unknown.name.clone(),
            unit: unknown.unit.clone(),
            value: unknown.value(theta),
            std: unknown.slope(theta).abs() * variance.max(0.0).sqrt(),
        }
    }
}

/// One epoch; `free_run` is NaN (`null` in the file) where it was not scored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EpochFacts {
    pub epoch: usize,
    #[serde(deserialize_with = "null_is_nan")]
    pub physics: f64,
    #[serde(deserialize_with = "null_is_nan")]
    pub data: f64,
    #[serde(deserialize_with = "null_is_nan")]
    pub drift: f64,
    #[serde(deserialize_with = "null_is_nan")]
    pub start: f64,
    #[serde(deserialize_with = "null_is_nan")]
    pub prior: f64,
    #[serde(deserialize_with = "null_is_nan")]
    pub consistency: f64,
    /// ln p(y), where the solver computes it.
    #[serde(default)]
    pub evidence: Option<f64>,
    #[serde(deserialize_with = "null_is_nan")]
    pub free_run: f64,
    /// λ of the last Newton step, where the solver takes such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
}

fn null_is_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

impl From<&EpochReport> for EpochFacts {
    fn from(report: &EpochReport) -> Self {
        let Cost {
            physics,
            data,
            drift,
            start,
            prior,
        } = report.cost;
        Self {
            epoch: report.epoch,
            physics,
            data,
            drift,
            start,
            prior,
            consistency: report.consistency,
            evidence: report.evidence,
            free_run: report.free_run,
            damping: report.damping,
        }
    }
}

impl From<&EpochFacts> for EpochReport {
    fn from(facts: &EpochFacts) -> Self {
        Self {
            epoch: facts.epoch,
            cost: Cost {
                physics: facts.physics,
                data: facts.data,
                drift: facts.drift,
                start: facts.start,
                prior: facts.prior,
            },
            consistency: facts.consistency,
            evidence: facts.evidence,
            free_run: facts.free_run,
            damping: facts.damping,
        }
    }
}

impl Facts {
    /// Collects them; `sources` are the records of the fit, in its order.
    pub fn new(fit: &Fit, sources: &[Source], about: About) -> Self {
        let stepper = Stepper::new(&fit.model, &fit.model.system, fit.dt);
        let pairs = sources.iter().zip(&fit.estimates);
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            command: about.command,
            model: fit.model.name.clone(),
            model_file: about.model_file,
            model_sha256: sha256(fit.model.text.as_bytes()),
            solver: fit.settings.solver,
            seed: fit.seed,
            attempts: fit.attempts.clone(),
            evidence: fit.evidence.clone(),
            settings: fit.settings.clone(),
            sample_time: fit.dt,
            seconds: about.seconds,
            threads: about.threads,
            warnings: about.warnings,
            records: pairs
                .enumerate()
                .map(|(k, (source, estimate))| RecordFacts {
                    role: role(k, fit.trained).into(),
                    ..record_facts(fit, &stepper, source, estimate)
                })
                .collect(),
            unknowns: constants(&fit.model, &fit.theta, &fit.covariance),
            regions: fit.regions.clone(),
            noise: fit.noise.clone(),
            repetition: fit.repetition,
            nominal: fit.nominal.clone(),
            epochs: fit.reports.iter().map(EpochFacts::from).collect(),
            stopped: fit.stopped,
            checkpoint: Some(fit.checkpoint.clone()),
            ensemble: member_facts(fit, &stepper, sources),
            stream: None,
        }
    }

    /// Those of a member of the ensemble that these are of.
    pub(super) fn of_member(&self, member: &Fit, sources: &[Source]) -> Self {
        let about = About {
            model_file: self.model_file.clone(),
            command: self.command.clone(),
            seconds: self.seconds,
            threads: self.threads,
            warnings: vec![],
        };
        Self::new(member, sources, about)
    }

    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    pub(super) fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let damaged = |e| format!("this file is damaged: {e}; restore it or repeat the fit");
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(damaged)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return Err(format!(
                    "this file has format {format}, this Latens reads format {FORMAT}; use the version that wrote it"
                ));
            }
            None => {
                return Err("this file has no `format`: it was not written by latens fit".into());
            }
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

/// The members with their scores.
fn member_facts(fit: &Fit, stepper: &Stepper, sources: &[Source]) -> Vec<MemberFacts> {
    let one = |(k, member): (usize, &Fit)| {
        let pairs = sources.iter().zip(&member.estimates);
        let each = pairs.map(|(source, estimate)| record_facts(member, stepper, source, estimate));
        let scores = each.map(|record| (record.nrmse, record.mean_nrmse));
        let (nrmse, mean_nrmse) = scores.unzip();
        MemberFacts {
            seed: member.seed,
            run: format!("{ENSEMBLE}/{}", k + 1),
            nrmse,
            mean_nrmse,
        }
    };
    fit.members.iter().enumerate().map(one).collect()
}

/// Values and standard deviations of the unknown constants.
pub(super) fn constants(
    model: &Model,
    theta: &[f64],
    covariance: &PackedCovariance,
) -> Vec<Constant> {
    let each = model.unknowns.iter().zip(theta).enumerate();
    each.map(|(i, (unknown, &theta))| Constant::new(unknown, theta, covariance.variance(i)))
        .collect()
}

fn record_facts(fit: &Fit, stepper: &Stepper, source: &Source, estimate: &Estimate) -> RecordFacts {
    let (model, record) = (&fit.model, source.record);
    let outputs = |states: &[f64]| score::outputs(stepper, record, &fit.theta, states);
    let free_run = outputs(&estimate.free_run);
    let mut nrmse = channel_scores(model, record, &free_run, score::nrmse);
    nrmse.extend(state_scores(
        model,
        record,
        &estimate.free_run,
        score::nrmse,
    ));
    let one_step = outputs(&estimate.one_step);
    let mut nrmse_one_step = channel_scores(model, record, &one_step, score::nrmse);
    nrmse_one_step.extend(state_scores(
        model,
        record,
        &estimate.one_step,
        score::nrmse,
    ));
    let (mean_nrmse, mean_nrmse_hidden) = means(model, &nrmse);
    RecordFacts {
        file: source.file.clone(),
        sha256: source.sha256.clone(),
        role: String::new(),
        samples: record.len(),
        scored: record.len(),
        rmse: channel_scores(model, record, &free_run, score::rmse),
        nrmse,
        nrmse_one_step,
        nrmse_smoothed: state_scores(model, record, &estimate.smoothed.states, score::nrmse),
        mean_nrmse,
        mean_nrmse_hidden,
        poorly_determined: poorly_determined(
            model,
            &fit.nominal.scale,
            &estimate.smoothed.deviations,
        ),
    }
}

/// Of each hidden state, the part of its deviations that are above [`DETERMINED`] of its scale.
fn poorly_determined(model: &Model, scale: &[f64], deviations: &[f64]) -> BTreeMap<String, f64> {
    let n = model.states.len();
    let part = |i: usize| {
        let own = deviations.iter().skip(i).step_by(n);
        let count = own.clone().count() as f64;
        // a deviation that is no number is not a small one
        let small = own.filter(|std| **std <= DETERMINED * scale[i]);
        1.0 - small.count() as f64 / count
    };
    let hidden = model.hidden().into_iter();
    hidden
        .map(|i| (model.states[i].name.clone(), part(i)))
        .collect()
}

impl RecordFacts {
    /// Of a record that played no part in the fit: how well a prediction of it did, over the samples
    /// that it predicts.
    pub fn tested(predictor: &Predictor, source: &Source, prediction: &Prediction) -> Self {
        let (model, record) = (predictor.model, source.record);
        let rest = record.slice(prediction.from..record.len());
        let mut nrmse = channel_scores(model, &rest, &prediction.outputs, score::nrmse);
        nrmse.extend(state_scores(model, &rest, &prediction.states, score::nrmse));
        let (mean_nrmse, mean_nrmse_hidden) = means(model, &nrmse);
        Self {
            file: source.file.clone(),
            sha256: source.sha256.clone(),
            role: "test".into(),
            samples: record.len(),
            scored: rest.len(),
            rmse: channel_scores(model, &rest, &prediction.outputs, score::rmse),
            nrmse,
            nrmse_one_step: Scores::new(),
            nrmse_smoothed: Scores::new(),
            mean_nrmse,
            mean_nrmse_hidden,
            poorly_determined: poorly_determined(model, predictor.scale, &prediction.deviations),
        }
    }
}

/// Mean nRMSE over the states whose truth is known, and over the hidden ones; none where a state
/// diverged.
fn means(model: &Model, nrmse: &Scores) -> (Option<f64>, Option<f64>) {
    let mean = |states: &[usize]| {
        let names = states
            .iter()
            .map(|&i| format!("truth_{}", model.states[i].name));
        let known: Vec<f64> = names
            .filter_map(|name| nrmse.get(&name))
            .map(|error| error.unwrap_or(f64::INFINITY))
            .collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        finite(mean)
    };
    let all: Vec<usize> = (0..model.states.len()).collect();
    (mean(&all), mean(&model.hidden()))
}
