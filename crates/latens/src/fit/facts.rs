//! `fit.json`: all that is known about a fit besides its weights.
//!
//! A score is compared with a column of the record and carries that column's name: a channel's
//! name for what was measured, `truth_<state>` for a state whose truth is known. `null` stands
//! for a free run that diverged.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::other_values::OtherValues;
use super::stream::{Options, Progress};
use super::{Fit, Prediction, Predictor, Proof, Relevance, ResidualTest, Track, Warning};
use crate::described;
use crate::described::{Described, Value};
use crate::look::check::Sight;
use crate::look::{DETERMINED_SCALE_PART, Finding, Region, SignalScales, Suspect};
use crate::model::network::Structure;
use crate::model::settings::Settings;
use crate::model::{Model, Unknown, Varies};
use crate::numerics::Trajectory;
use crate::numerics::bounded;
use crate::numerics::linalg::PackedCovariance;
use crate::numerics::objective::{Cost, Noise};
use crate::numerics::score;
use crate::numerics::score::named::{Scores, channel_scores, finite, state_scores};
use crate::record::{Record, Source, sha256};
use crate::solve::batch::evidence::Evidence;
use crate::solve::checkpoint::Checkpoint;
use crate::solve::ladder::Rung;
use crate::solve::{Attempt, Learned, PassReport, Problem};
use crate::text;

/// Version of the folder's layout. The first had no checksums, in the first two a model without a method was
/// one of Euler's; both are still read.
const FORMAT: u32 = 3;

/// The folder of a member of an ensemble, inside of the fit's.
pub fn member_folder(place: usize) -> String {
    format!("ensemble/{}", place + 1)
}

/// What a record serves for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is learned from.
    Train,
    /// It is never learned from, but chooses between stages and between starts.
    Validate,
    /// It plays no part.
    Test,
}

impl Described for Role {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Train, Self::Validate, Self::Test] })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Validate => "validate",
            Self::Test => "test",
        })
    }
}

/// Where a snapshot of a stream stands: `stream` in `fit.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StreamFacts {
    /// How the stream was run.
    pub options: Options,
    /// How far it came.
    pub progress: Progress,
}

/// The content of `fit.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    /// Version of the folder's layout.
    pub format: u32,
    /// Version of Latens that wrote it.
    pub version: String,
    /// What repeats the fit: a command line, or a call.
    pub command: String,
    /// The model's name.
    pub model: String,
    /// The model as the user named it: a file or an embedded system.
    pub model_file: String,
    /// Of the model file.
    pub model_sha256: String,
    /// Its name.
    pub solver: String,
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
    /// The step of the fit.
    pub sample_time: f64,
    /// How long it took.
    pub seconds: f64,
    /// On so many threads.
    pub threads: usize,
    /// What to know before it is used.
    pub warnings: Vec<Warning>,
    /// Readings that contradict the others and were set aside, of all records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Suspect>,
    /// Each record and how well the fit predicts it.
    pub records: Vec<RecordFacts>,
    /// What sensors and residuals show to be wrong.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Tests of what is left of the records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<ResidualTest>,
    /// The unknown constants as they were learned.
    pub unknowns: Vec<Constant>,
    /// Their correlation, row by row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub correlation: Vec<Vec<f64>>,
    /// What each network met in training.
    #[serde(default)]
    pub regions: Vec<Region>,
    /// Which arguments of networks the data give reason to depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relevance: Vec<Relevance>,
    /// Q_x, R_y and P_x0 as they were at the end.
    pub noise: Noise,
    /// Variances under `noise` are this much larger, because misfits are correlated over samples;
    /// 1 for white noise.
    #[serde(default = "factor_one", alias = "repetition")]
    pub variance_inflation: f64,
    /// Sizes of states and channels.
    #[serde(alias = "nominal")]
    pub scales: SignalScales,
    /// Each pass of the solver.
    #[serde(alias = "epochs")]
    pub passes: Vec<PassFacts>,
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
    /// What blocks that were held back have shown, where misfits say that the model is not right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Whether misfits that are correlated over samples say that the model is not right.
    #[serde(default)]
    pub contradicted: bool,
    /// Whether θ is that of pieces of the records, each from a start of its own: they predicted
    /// what was held back better than the whole records.
    #[serde(default)]
    pub in_pieces: bool,
    /// By how much ln p is higher under the process noise in `noise` than under equations that hold exactly, where
    /// the data ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<f64>,
    /// How much there is of the file's networks.
    #[serde(default = "whole")]
    pub structure: Structure,
    /// The structures that were tried, where there were several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rungs: Vec<Rung>,
    /// Other values of the constants that explain the records nearly as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_values: Vec<OtherValues>,
    /// The group whose fit it is, see [`Fit::for_group`]; none of what was learned from several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

fn whole() -> Structure {
    Structure::Whole
}

described! {
/// One member of an ensemble: its run inside the folder, and its scores by record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Its seed.
    pub seed: u64,
    /// Its part in what they say together; an equal one where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Its folder inside of the fit's.
    pub run: String,
    /// nRMSE of the free run over each record, as in [`RecordFacts`].
    pub nrmse: Vec<Scores>,
    pub mean_nrmse: Vec<Option<f64>>,
}
}

described! {
/// One record and how well the fit predicts it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordFacts {
    /// The file as the user named it.
    pub file: String,
    /// Of what was read.
    pub sha256: String,
    /// What it served for.
    pub role: Role,
    /// The group that it belongs to, where a constant varies by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its length.
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
    /// Mean nRMSE of the free run over the states whose truth is known.
    pub mean_nrmse: Option<f64>,
    /// The same over the hidden ones.
    pub mean_nrmse_hidden: Option<f64>,
    /// Of each hidden state, the part of the record on which it is poorly determined: its
    /// standard deviation is above [`DETERMINED_SCALE_PART`] of its scale.
    #[serde(default)]
    pub poorly_determined: BTreeMap<String, f64>,
}
}

fn factor_one() -> f64 {
    1.0
}

described! {
/// An unknown constant as it was learned.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// What was found.
    pub value: f64,
    /// Standard deviation.
    pub std: f64,
    /// It lies between these with 95 %.
    #[serde(default)]
    pub interval: Option<(f64, f64)>,
    /// The bound of the model file at which it ended: its best value would be beyond.
    #[serde(default)]
    pub bound: Option<BoundName>,
    /// The part of its prior variance that the data have left: 1 where they say nothing of it.
    #[serde(default)]
    pub prior_share: Option<f64>,
    /// Why no data of this kind determine it by itself, where that is so.
    #[serde(default)]
    pub undetermined: Option<String>,
    /// How it varies, where it does; the value is then the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
}
}

described! {
/// How a constant varies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Population {
    /// `record`: each record has its own value; `group`: those of a group share one; `slowly`: it walks
    /// within a record.
    pub varies: Varies,
    /// Whether spread and pace are parts of its value, as of what must stay positive; else in its unit.
    pub relative: bool,
    /// Standard deviation of its values about the mean.
    pub spread: f64,
    /// The spread lies between these with 95 %, by its likelihood, where the records say so much.
    pub spread_interval: Option<(f64, f64)>,
    /// Standard deviation of what it walks by in a unit of time; 0 where it does not walk.
    pub pace: f64,
    /// Its value in each record that was learned from, or in each group of them.
    pub records: Vec<OwnValue>,
}
}

described! {
/// The value of a constant in one record, or in those of one group.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OwnValue {
    /// The record, or the label of the group.
    pub file: String,
    /// The records of the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What was found; of what walks, at the middle of the record.
    pub value: f64,
    /// Standard deviation.
    pub std: f64,
    /// Least and greatest value along the record.
    pub range: (f64, f64),
    /// How much of it is the population's and not the record's: 1 where the record says nothing of it.
    pub shrinkage: f64,
}
}

impl Population {
    /// In words, how far the values are apart; `unit` is that of the constant.
    pub fn words(&self, unit: &str) -> String {
        let size = |v: f64| {
            if self.relative {
                text::percent(v)
            } else {
                text::number(v)
            }
        };
        let unit = match unit {
            "" => String::new(),
            _ if self.relative => String::new(),
            unit => format!(" {unit}"),
        };
        let spread = size(self.spread);
        let units = format!("{}s", self.of());
        match (self.varies, self.spread_interval) {
            (Varies::Slowly, _) => format!(
                "the mean of what varies slowly, by {spread}{unit} about it and {}{unit} in a unit of time",
                size(self.pace)
            ),
            (_, None) => {
                format!("the mean over {units}, which differ by {spread}{unit}")
            }
            (_, Some((low, high))) => format!(
                "the mean over {units}, which differ by {spread}{unit} (95 %: {} … {})",
                size(low),
                size(high)
            ),
        }
    }

    /// What has a value of its own.
    pub fn of(&self) -> &'static str {
        if self.varies == Varies::Group {
            "group"
        } else {
            "record"
        }
    }
}

impl Described for Varies {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Record, Self::Group, Self::Slowly] })
    }
}

/// A bound of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundName {
    /// Its least value.
    Min,
    /// Its greatest value.
    Max,
}

impl Described for BoundName {
    fn schema() -> Value {
        serde_json::json!({ "enum": [Self::Min, Self::Max] })
    }
}

impl fmt::Display for BoundName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Min => "min",
            Self::Max => "max",
        })
    }
}

/// Standard deviations within which a normal variable lies with 95 %.
pub(super) const NORMAL_95_DEVIATIONS: f64 = 1.959_963_984_540_054;

/// Where more of a constant's variance than this is that of its prior, it is prior and not data.
pub const PRIOR_SHARE: f64 = 0.5;

impl Constant {
    /// A constant at its entry of θ and the variance of that; `rough` is the prior variance of a rough
    /// guess.
    pub fn new(unknown: &Unknown, theta: f64, variance: f64, rough: f64) -> Self {
        let (value, std) = unknown.value_and_std(theta, variance);
        let reach = NORMAL_95_DEVIATIONS * variance.max(0.0).sqrt();
        let bounds = unknown.bounds();
        let bound = match theta {
            least if least == bounds.0 => Some(BoundName::Min),
            most if most == bounds.1 => Some(BoundName::Max),
            _ => None,
        };
        let mut prior = unknown.prior_variance(rough);
        if unknown.is_bounded() {
            prior = bounded::moments(0.0, prior.sqrt(), bounds).variance;
        }
        Self {
            name: unknown.name.clone(),
            unit: unknown.unit.clone(),
            // not what rounding makes of it
            value: match bound {
                Some(BoundName::Min) => unknown.min,
                Some(BoundName::Max) => unknown.max,
                None => value,
            },
            std,
            interval: Some((unknown.value(theta - reach), unknown.value(theta + reach)))
                .filter(|(from, to)| from.is_finite() && to.is_finite()),
            bound,
            prior_share: Some((variance / prior).clamp(0.0, 1.0)),
            undetermined: None,
            population: None,
        }
    }

    /// Between which values it lies with 95 %, in words, where one side of that reaches much farther than the other: a
    /// standard deviation alone would mislead.
    pub fn skewed(&self) -> Option<String> {
        /// How many times farther.
        const SKEWED_SIDES_RATIO: f64 = 1.5;
        // of one at a bound the remark says it
        let (from, to) = self.interval.filter(|_| self.bound.is_none())?;
        let (below, above) = (self.value - from, to - self.value);
        let skewed = below.max(above) > SKEWED_SIDES_RATIO * below.min(above);
        let shown = |end: f64| text::uncertain(end, self.std).0;
        skewed.then(|| format!("95 % within {} to {}", shown(from), shown(to)))
    }

    /// What must be known of it beside its value, in words.
    pub fn remark(&self) -> Option<String> {
        let bound = self.bound.map(|bound| {
            let beyond = match bound {
                BoundName::Min => "less",
                BoundName::Max => "more",
            };
            let (from, to) = self.interval.unwrap_or((self.value, self.value));
            let (from, to) = (text::number(from), text::number(to));
            format!("at its {bound}, the data ask for {beyond}; 95 % within {from} to {to}")
        });
        let prior = self.prior_share.filter(|share| *share > PRIOR_SHARE);
        let prior = prior.map(|share| format!("{} prior, not data", text::percent(share)));
        let undetermined = self.undetermined.clone();
        let varies = self.population.as_ref().map(|p| p.words(&self.unit));
        let remarks = [varies, bound, undetermined, prior].into_iter().flatten();
        let remarks: Vec<String> = remarks.collect();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

/// One pass; `free_run` is NaN (`null` in the file) where it was not scored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PassFacts {
    /// Which one, from 1.
    #[serde(alias = "epoch")]
    pub pass: usize,
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
    /// The same over the validation records, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// λ of the last Newton step, where the solver takes such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
}

fn null_is_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

impl From<&PassReport> for PassFacts {
    fn from(report: &PassReport) -> Self {
        let Cost {
            physics,
            data,
            drift,
            start,
            prior,
        } = report.cost;
        Self {
            pass: report.pass,
            physics,
            data,
            drift,
            start,
            prior,
            consistency: report.consistency,
            evidence: report.evidence,
            free_run: report.free_run,
            validation: report.validation,
            damping: report.damping,
        }
    }
}

impl From<&PassFacts> for PassReport {
    fn from(facts: &PassFacts) -> Self {
        Self {
            pass: facts.pass,
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
            validation: facts.validation,
            damping: facts.damping,
        }
    }
}

impl Facts {
    /// Takes what the first look has shown to be open: constants that are not determined by themselves say
    /// so, and a state that nothing measured feels counts as determined nowhere.
    pub(crate) fn told(&mut self, warnings: &[Warning]) {
        for warning in warnings {
            match warning {
                Warning::NothingFeels { change } => {
                    for constant in &mut self.unknowns {
                        let remark = change.remark(&constant.name);
                        constant.undetermined = constant.undetermined.take().or(remark);
                    }
                }
                Warning::PoorlySeen { state } if state.sight == Sight::Isolated => {
                    let records = self.records.iter_mut();
                    let open = records.filter_map(|r| r.poorly_determined.get_mut(&state.name));
                    open.for_each(|part| *part = 1.0);
                }
                _ => {}
            }
        }
    }

    /// Whether a doubt of the look before the fit is none any more: a state that the known equations alone
    /// leave open, and which is determined along all records with what was learned.
    pub(crate) fn has_answered(&self, warning: &Warning) -> bool {
        /// The part of a record that may stay open.
        const OPEN_SAMPLES_PART: f64 = 0.05;
        let Warning::PoorlySeen { state } = warning else {
            return false;
        };
        let records = self.records.iter();
        let mut open = records.filter_map(|r| r.poorly_determined.get(&state.name));
        let looked_at = matches!(state.sight, Sight::Partly | Sight::Undetermined);
        looked_at && open.all(|part| *part < OPEN_SAMPLES_PART)
    }

    /// Whether the fit is not to be trusted: no start worked, a free run is no better than a constant or
    /// leaves the finite numbers, or the readings of a channel are at fault.
    pub fn is_distrusted(&self) -> bool {
        let mut at_fault = self.findings.iter().filter(|f| f.is_of_channel());
        self.warnings.iter().any(Warning::is_distrust) || at_fault.any(Finding::contradicts)
    }

    /// Of what was learned from a problem; of its records, and of who asked, nothing yet.
    pub(super) fn learned(
        problem: &Problem,
        learned: &Learned,
        seed: u64,
        regions: Vec<Region>,
    ) -> Self {
        let (model, settings) = (problem.model, problem.settings);
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            command: String::new(),
            model: model.name.clone(),
            model_file: String::new(),
            model_sha256: sha256(model.text.as_bytes()),
            solver: settings.solver.clone(),
            seed,
            attempts: vec![],
            evidence: learned.evidence.clone(),
            settings: settings.clone(),
            sample_time: problem.stepper.dt(),
            seconds: 0.0,
            threads: 1,
            warnings: vec![],
            suspects: vec![],
            records: vec![],
            findings: vec![],
            residuals: vec![],
            unknowns: constants(
                model,
                settings,
                learned.theta.as_slice(),
                &learned.covariance,
            )
            .into_iter()
            .enumerate()
            .map(|(i, constant)| match learned.intervals.get(i) {
                Some(Some((from, to))) => Constant {
                    interval: Some((model.unknowns[i].value(*from), model.unknowns[i].value(*to))),
                    ..constant
                },
                _ => constant,
            })
            .collect(),
            correlation: correlation(model.unknowns.len(), &learned.covariance),
            regions,
            relevance: vec![],
            noise: learned.noise.clone(),
            variance_inflation: learned.variance_inflation,
            scales: problem.scales.clone(),
            passes: learned.reports.iter().map(PassFacts::from).collect(),
            stopped: learned.stopped,
            checkpoint: Some(learned.checkpoint.clone()),
            ensemble: vec![],
            stream: None,
            proof: None,
            contradicted: learned.contradicted,
            in_pieces: learned.in_pieces,
            disturbed: learned.disturbed,
            structure: Structure::Whole,
            rungs: vec![],
            other_values: vec![],
            group: None,
        }
    }

    /// By how much the deviations of predictions are wider than they would be of a model that is
    /// right; `None` where nothing is known to contradict it.
    pub fn widening(&self) -> Option<f64> {
        let inflated = self.variance_inflation.sqrt();
        let widening = self.proof.map_or(inflated, |proof| proof.widening);
        self.contradicted.then_some(widening)
    }

    /// Whether the folder has checksums of its files.
    pub(crate) fn has_checksums(&self) -> bool {
        self.format >= 2
    }

    /// Whether a model file without a method is one of Euler's, as it was before the third format.
    pub(crate) fn means_euler(&self) -> bool {
        self.format < 3
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        // whatever it was read from
        let current = Self {
            format: FORMAT,
            ..self.clone()
        };
        let mut text = serde_json::to_vec_pretty(&current)?;
        text.push(b'\n');
        Ok(text)
    }

    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let damaged = |e| format!("this file is damaged: {e}; restore it or repeat the fit");
        // alone, whatever the rest is
        #[derive(Deserialize)]
        struct Layout {
            format: Option<u64>,
        }
        let layout: Layout = serde_json::from_slice(bytes).map_err(damaged)?;
        match layout.format {
            Some(format) if (1..=u64::from(FORMAT)).contains(&format) => {}
            Some(format) => {
                return Err(format!(
                    "this file has format {format}, this Latens reads formats 1 to {FORMAT}; use the version that wrote it"
                ));
            }
            None => {
                return Err("this file has no `format`: it was not written by latens fit".into());
            }
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

/// Values and standard deviations of the unknown constants.
pub(crate) fn constants(
    model: &Model,
    settings: &Settings,
    theta: &[f64],
    covariance: &PackedCovariance,
) -> Vec<Constant> {
    let rough = settings.parameter_variance;
    let constants = model.unknowns.iter().zip(theta).enumerate();
    constants
        .map(|(i, (unknown, &theta))| Constant::new(unknown, theta, covariance.variance(i), rough))
        .collect()
}

/// The correlation of the unknown constants, which is that of their entries of θ.
pub(super) fn correlation(count: usize, covariance: &PackedCovariance) -> Vec<Vec<f64>> {
    let packed = covariance.clone().to_packed();
    let entry = |i: usize, j: usize| packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
    let correlation = |i: usize, j: usize| {
        let ratio = entry(i, j) / (entry(i, i) * entry(j, j)).sqrt();
        if i == j || !ratio.is_finite() {
            f64::from(u8::from(i == j))
        } else {
            ratio.clamp(-1.0, 1.0)
        }
    };
    let row = |i: usize| (0..count).map(|j| correlation(i, j)).collect();
    (0..count).map(row).collect()
}

/// Constants that trade off.
pub struct Trading<'a> {
    pub names: Vec<&'a str>,
    /// The size of the weakest of their strong correlations.
    pub weakest: f64,
}

/// Groups of constants that trade off.
pub fn trading(facts: &Facts) -> Vec<Trading<'_>> {
    const STRONG_CORRELATION: f64 = 0.95;
    let count = facts.correlation.len().min(facts.unknowns.len());
    let mut group: Vec<usize> = (0..count).collect();
    for i in 0..count {
        for j in 0..i {
            if facts.correlation[i][j].abs() >= STRONG_CORRELATION {
                let (from, to) = (group[i].max(group[j]), group[i].min(group[j]));
                group
                    .iter_mut()
                    .filter(|g| **g == from)
                    .for_each(|g| *g = to);
            }
        }
    }
    let members = |g: usize| -> Vec<usize> { (0..count).filter(|&i| group[i] == g).collect() };
    let groups = (0..count).map(members).filter(|m| m.len() > 1);
    let named = groups.map(|members| {
        let pairs = members
            .iter()
            .flat_map(|&i| members.iter().map(move |&j| (i, j)));
        let strong = pairs
            .map(|(i, j)| facts.correlation[i][j].abs())
            .filter(|r| *r >= STRONG_CORRELATION);
        let names = members.iter().map(|&i| facts.unknowns[i].name.as_str());
        Trading {
            names: names.collect(),
            weakest: strong.fold(1.0, f64::min),
        }
    });
    named.collect()
}

/// What a fit says of a record of its own.
pub(super) fn of_track(fit: &Fit, source: &Source, role: Role, track: &Track) -> RecordFacts {
    let (model, record) = (&fit.model, &source.record);
    let outputs = |states: &Trajectory| score::outputs(&model.system, record, &fit.theta, states);
    let scored = |states: &Trajectory| {
        let mut scores = channel_scores(model, record, &outputs(states), score::nrmse);
        scores.extend(state_scores(model, record, states, score::nrmse));
        scores
    };
    let (free_run, states) = (outputs(&track.free_run), &track.free_run);
    RecordFacts {
        nrmse_one_step: scored(&track.one_step),
        nrmse_smoothed: state_scores(model, record, &track.smoothed, score::nrmse),
        poorly_determined: poorly_determined(model, &fit.facts.scales.scale, &track.deviations),
        ..RecordFacts::of_free_run(model, source, role, record, &free_run, states)
    }
}

/// Of each hidden state, the part of its deviations that are above [`DETERMINED_SCALE_PART`] of its scale.
fn poorly_determined(
    model: &Model,
    scale: &[f64],
    deviations: &Trajectory,
) -> BTreeMap<String, f64> {
    let part = |i: usize| {
        let column = deviations.column(i);
        let count = column.clone().count() as f64;
        // a deviation that is no number is not a small one
        let small = column.filter(|std| *std <= DETERMINED_SCALE_PART * scale[i]);
        1.0 - small.count() as f64 / count
    };
    let varying: Vec<usize> = model.varying().map(|(_, state)| state).collect();
    let hidden = model.hidden().into_iter();
    hidden
        .filter(|i| !varying.contains(i))
        .map(|i| (model.states[i].name.clone(), part(i)))
        .collect()
}

impl RecordFacts {
    /// Of a record that played no part in the fit: how well a prediction of it did, over the samples
    /// that it predicts.
    pub fn tested(predictor: &Predictor, source: &Source, prediction: &Prediction) -> Self {
        let (model, record) = (predictor.model, &source.record);
        let rest = record.slice(prediction.from..record.len());
        let (outputs, states) = (&prediction.outputs, &prediction.states);
        Self {
            poorly_determined: poorly_determined(model, predictor.scale, &prediction.deviations),
            ..Self::of_free_run(model, source, Role::Test, &rest, outputs, states)
        }
    }

    /// The scores of a free run, states and outputs, over the samples of `scored`; nothing else yet.
    pub fn of_free_run(
        model: &Model,
        source: &Source,
        role: Role,
        scored: &Record,
        outputs: &Trajectory,
        states: &Trajectory,
    ) -> Self {
        let mut nrmse = channel_scores(model, scored, outputs, score::nrmse);
        nrmse.extend(state_scores(model, scored, states, score::nrmse));
        let (mean_nrmse, mean_nrmse_hidden) = means(model, &nrmse);
        Self {
            file: source.file.clone(),
            sha256: source.sha256.clone(),
            role,
            group: source.group.clone(),
            samples: source.record.len(),
            scored: scored.len(),
            rmse: channel_scores(model, scored, outputs, score::rmse),
            nrmse,
            nrmse_one_step: Scores::new(),
            nrmse_smoothed: Scores::new(),
            mean_nrmse,
            mean_nrmse_hidden,
            poorly_determined: BTreeMap::new(),
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
