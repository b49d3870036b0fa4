//! What the verbs of the command line print with `--json`, for programs: each a struct, from which come
//! the object and its schema. The facts inside of them are those that Python shows.

use std::collections::BTreeMap;

use latens::described;
use latens::described::{Described, Value};
use latens::fit::{Comparison, Profile, Proof, Relevance, ResidualTest};
use latens::fit::{Constant, EstimateFacts, MemberFacts, PredictionFacts, RecordFacts};
use latens::look::check::{Coverage, Moment, StateCheck};
use latens::look::{Finding, Invariance, Leaving, Stiffness, Suspect};
use latens::model::network::Structure;
use latens::solve::Attempt;
use latens::solve::batch::evidence::Part;
use latens::solve::ladder::Rung;
use latens::{Door, SimulationFacts, Warning};
use latens_design::Designed;
use latens_distill::Distilled;
use serde::Serialize;
use serde_json::json;

/// A warning or a finding: its kind, its numbers, and the same in the words of a door.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Told(Value);

impl Told {
    /// Warnings in the words of a door.
    pub fn all(warnings: &[Warning], door: Door) -> Vec<Self> {
        warnings.iter().map(|w| Self(w.to_json(door))).collect()
    }
}

impl Told {
    /// What sensors and residuals show to be wrong, each with its sentence.
    pub fn findings(findings: &[Finding]) -> Vec<Self> {
        let told = |finding: &Finding| {
            let mut object = json!(finding);
            object["text"] = json!(finding.words());
            Self(object)
        };
        findings.iter().map(told).collect()
    }
}

impl Described for Told {
    fn schema() -> Value {
        json!({
            "description": "A warning or a finding: its kind, its numbers, and the same in words.",
            "type": "object",
            "required": ["kind", "text"],
            "properties": { "kind": { "type": "string" }, "text": { "type": "string" } },
        })
    }
}

/// The schema of what a verb prints; none of one that has no struct here.
pub fn schema(verb: &str) -> Option<Value> {
    Some(match verb {
        "fit" => FitOutput::schema(),
        "predict" => PredictOutput::schema(),
        "estimate" => EstimateOutput::schema(),
        "simulate" => json!({
            "description": "latens simulate",
            "oneOf": [SimulatedModel::schema(), SimulatedFit::schema()],
        }),
        "check" => CheckOutput::schema(),
        "export" => ExportOutput::schema(),
        "compare" => CompareOutput::schema(),
        "profile" => ProfileOutput::schema(),
        "distill" => DistillOutput::schema(),
        "design" => DesignOutput::schema(),
        _ => return None,
    })
}

described! {
/// What was found by a fit.
#[derive(Debug, Clone, Serialize)]
pub struct FitSummary {
    /// What sensors and residuals show to be wrong.
    pub findings: Vec<Told>,
    /// Tests of what is left of the records.
    pub residuals: Vec<ResidualTest>,
    /// What must be known before all else.
    pub alarms: Vec<String>,
    /// How good it is, how far to trust it, what to do next.
    pub verdict: Vec<String>,
    /// The solver.
    pub solver: String,
    /// Of the start that was kept.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
    /// What to know before it is used.
    pub warnings: Vec<Told>,
    /// Readings that contradict the others and were set aside, of all records.
    pub suspects: Vec<Suspect>,
    /// Each record and how well a free run predicts it.
    pub records: Vec<RecordFacts>,
    /// The unknown constants.
    pub unknowns: Vec<Constant>,
    /// Their correlation, row by row.
    pub correlation: Vec<Vec<f64>>,
    /// Those that were not learned: the value of each.
    pub fixed: BTreeMap<String, f64>,
    /// ln p(y), where the solver computes it.
    pub evidence: Option<f64>,
    /// Directions of θ that the data determine.
    pub determined: Option<f64>,
    /// All directions of θ.
    pub directions: Option<usize>,
    /// The same by part of the model.
    pub parts: Option<Vec<Part>>,
    /// Which arguments of networks the data give reason to depend on.
    pub relevance: Vec<Relevance>,
    /// All starts.
    pub attempts: Vec<Attempt>,
    /// The noise of each channel.
    pub noise: BTreeMap<String, ChannelNoise>,
    /// Whether it was stopped before its time.
    pub stopped: bool,
    /// The members of an ensemble.
    pub ensemble: Vec<MemberFacts>,
    /// How much there is of the file's networks.
    pub structure: Structure,
    /// The structures that were tried, where there were several.
    pub rungs: Vec<Rung>,
    /// Whether correlated misfits say that the model is not right.
    pub contradicted: bool,
    /// Whether θ is that of pieces of the records.
    pub in_pieces: bool,
    /// What blocks that were held back have shown.
    pub proof: Option<Proof>,
}

/// The noise of a channel.
#[derive(Debug, Clone, Serialize)]
pub struct ChannelNoise {
    /// Its standard deviation.
    pub std: f64,
    /// The same over the range of the channel.
    pub of_range: f64,
}

/// The noise of a channel, as it is found before a fit.
#[derive(Debug, Clone, Serialize)]
pub struct FoundNoise {
    /// Its standard deviation.
    pub std: f64,
    /// The same over the range of the channel.
    pub of_range: f64,
    /// Whether that is an upper bound only.
    pub at_most: bool,
}

/// latens fit
#[derive(Debug, Clone, Serialize)]
pub struct FitOutput {
    /// The folder.
    pub run: String,
    /// Its page; null with --no-report.
    pub report: Option<String>,
    #[serde(flatten)]
    pub found: FitSummary,
    /// Of a method that leaves no fit: that it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// latens predict
#[derive(Debug, Clone, Serialize)]
pub struct PredictOutput {
    /// The fit.
    pub run: String,
    /// The solver that learned it.
    pub solver: String,
    /// Its seed.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
    /// What to know before predictions are used.
    pub warnings: Vec<Told>,
    /// Each record.
    pub records: Vec<PredictedRecord>,
}

/// A predicted record.
#[derive(Debug, Clone, Serialize)]
pub struct PredictedRecord {
    #[serde(flatten)]
    pub facts: PredictionFacts,
    /// The CSV file.
    pub output: String,
}

/// latens estimate
#[derive(Debug, Clone, Serialize)]
pub struct EstimateOutput {
    /// The fit.
    pub run: String,
    /// `filter` or `smoother`.
    pub mode: String,
    /// How long it took.
    pub seconds: f64,
    /// What to know before estimates are used.
    pub warnings: Vec<Told>,
    /// Each record.
    pub records: Vec<EstimatedRecord>,
}

/// A record whose states were estimated.
#[derive(Debug, Clone, Serialize)]
pub struct EstimatedRecord {
    #[serde(flatten)]
    pub facts: EstimateFacts,
    /// The CSV file.
    pub output: String,
}

/// latens simulate, of a model
#[derive(Debug, Clone, Serialize)]
pub struct SimulatedModel {
    /// The model.
    pub model: String,
    /// Its length.
    pub samples: usize,
    /// Of the noise.
    pub seed: u64,
    /// None here.
    pub warnings: Vec<Told>,
    /// The CSV file.
    pub output: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
}

/// latens simulate, of a fit
#[derive(Debug, Clone, Serialize)]
pub struct SimulatedFit {
    /// The fit.
    pub run: String,
    #[serde(flatten)]
    pub facts: SimulationFacts,
    /// What to know before it is used.
    pub warnings: Vec<Told>,
    /// The CSV file.
    pub output: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
}

/// latens check
#[derive(Debug, Clone, Serialize)]
pub struct CheckOutput {
    /// The model.
    pub model: String,
    /// Each record.
    pub records: Vec<CheckedRecord>,
    /// The noise found in each channel.
    pub noise: BTreeMap<String, FoundNoise>,
    /// Length of a window, in time.
    pub window: f64,
    /// The same in samples.
    pub window_samples: usize,
    /// What the channels show of their sensors.
    pub sensors: Vec<Told>,
    /// Where the model at its guesses leaves the finite numbers, if it does.
    pub leaves: Option<Leaving>,
    /// Where the equations are too stiff for the model's explicit method, if they are.
    pub stiffness: Option<Stiffness>,
    /// What the records say about each state.
    pub states: Vec<StateCheck>,
    /// States that the records do not tell apart.
    pub together: Vec<Vec<String>>,
    /// States that can be negated together, and nothing that is measured feels it.
    pub mirrored: Vec<Vec<String>>,
    /// Changes of constants that nothing measured feels.
    pub invariances: Vec<Invariance>,
    /// Where the records take each network.
    pub networks: Vec<Coverage>,
    /// The same over time.
    pub moments: Vec<Moment>,
    /// Readings that contradict the others.
    pub suspects: Vec<Suspect>,
    /// All of it in words.
    pub verdict: Vec<String>,
    /// What to know before anything is learned.
    pub warnings: Vec<Told>,
}

/// A record that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedRecord {
    /// The file.
    pub file: String,
    /// Its length.
    pub samples: usize,
    /// Its first time.
    pub start: f64,
    /// Its last time.
    pub end: f64,
    /// The median distance of its samples.
    pub step: f64,
    /// The least distance.
    pub least_gap: f64,
    /// The largest distance.
    pub largest_gap: f64,
    /// How many distances are neither the median nor a multiple of it.
    pub irregular: usize,
    /// The columns that serve something.
    pub columns: Vec<ColumnUse>,
    /// Those that serve nothing.
    pub unused: Vec<String>,
}

/// A column of a file and what it serves for.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnUse {
    /// Its name in the file.
    pub column: String,
    /// `time`, `input`, `measurement` or `truth`.
    pub role: String,
    /// Its name in the model.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The lowest value.
    pub lowest: Option<f64>,
    /// The highest value.
    pub highest: Option<f64>,
    /// Empty cells.
    pub missing: usize,
}

/// latens compare
#[derive(Debug, Clone, Serialize)]
pub struct CompareOutput {
    #[serde(flatten)]
    pub found: Comparison,
    /// How long it took.
    pub seconds: f64,
}

/// latens profile
#[derive(Debug, Clone, Serialize)]
pub struct ProfileOutput {
    #[serde(flatten)]
    pub found: Profile,
    /// The figure, where one was asked for.
    pub output: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// latens export
#[derive(Debug, Clone, Serialize)]
pub struct ExportOutput {
    /// The run.
    pub run: String,
    /// What it was exported to.
    pub target: String,
    /// The files that were written, the one that was asked for first.
    pub files: Vec<String>,
    /// Their bytes together.
    pub bytes: usize,
    /// What whoever uses them should know.
    pub notes: Vec<String>,
}

/// latens distill
#[derive(Debug, Clone, Serialize)]
pub struct DistillOutput {
    /// The run.
    pub run: String,
    /// How long it took.
    pub seconds: f64,
    /// The model files that were written, that of the first formula first.
    pub files: Vec<String>,
    /// What was found.
    #[serde(flatten)]
    pub found: Distilled,
}

/// latens design
#[derive(Debug, Clone, Serialize)]
pub struct DesignOutput {
    /// The run.
    pub run: String,
    /// How long it took.
    pub seconds: f64,
    /// The files that were written: the pictures, then the inputs of the best experiments.
    pub files: Vec<String>,
    /// What to do next.
    #[serde(flatten)]
    pub designed: Designed,
}
}
