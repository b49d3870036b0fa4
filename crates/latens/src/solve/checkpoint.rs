//! Where a fit stands: enough, together with θ and P_θ, to go on with it.
//!
//! A fit that was stopped is resumed from what it kept. The states are not part of it: θ and the
//! noise determine them, and smoothing finds them again.

use serde::{Deserialize, Serialize};

use super::EpochReport;
use super::damping::Damping;
use crate::Error;
use crate::fit::run::Run;
use crate::linalg::PackedCovariance;

/// How far what was kept has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checkpoint {
    /// Of a recursion: the epoch that was kept.
    Epoch(usize),
    /// Of batch.
    Stage(Stage),
}

impl Checkpoint {
    /// Passes behind it.
    pub fn passes(&self) -> usize {
        match self {
            Self::Epoch(number) => *number,
            Self::Stage(stage) => stage.stages,
        }
    }
}

/// What batch does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Next {
    /// The next stage.
    Stage,
    /// The iterations that are left of a stage.
    RestOfStage,
    /// The last iterations, at the best stage.
    Refinement,
}

/// The best stage of batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Whole stages behind it.
    pub stages: usize,
    pub next: Next,
    /// Decades by which the process noise is tightened.
    pub tightness: f64,
    /// What stages are compared by; none where it is no number.
    pub merit: Option<f64>,
    /// Directions of θ that the data determine.
    pub determined: f64,
    /// How many times the misfit repeats itself, and so counts as one.
    #[serde(default = "once")]
    pub repetition: f64,
    /// Tightness of the stage with the highest evidence, and that evidence.
    #[serde(default)]
    pub likely: Option<(f64, f64)>,
    /// Tightness of the stage that determines most directions of θ, and how many.
    #[serde(default)]
    pub informative: Option<(f64, f64)>,
    /// P_θ0 as the evidence has it by now.
    pub prior: Vec<f64>,
    pub damping: Damping,
}

fn once() -> f64 {
    1.0
}

impl Stage {
    pub(super) fn merit(&self) -> f64 {
        self.merit.unwrap_or(f64::NEG_INFINITY)
    }
}

/// A start that goes on instead of beginning.
pub(super) struct Resumed<'a> {
    pub seed: u64,
    pub theta: &'a [f64],
    pub covariance: &'a PackedCovariance,
    pub checkpoint: &'a Checkpoint,
    /// Of the passes behind it.
    pub reports: Vec<EpochReport>,
}

/// Where a start begins.
pub(super) enum Start<'a> {
    /// At θ.
    At(Vec<f64>),
    /// Where an earlier fit was.
    From(&'a Resumed<'a>),
}

impl<'a> Resumed<'a> {
    /// The starts that a run kept.
    pub fn of(run: &'a Run) -> Result<Vec<Self>, Error> {
        let runs = match run.members.is_empty() {
            true => std::slice::from_ref(run),
            false => &run.members,
        };
        let one = |run: &'a Run| {
            let checkpoint = run.facts.checkpoint.as_ref().ok_or_else(|| {
                let why = match run.facts.stream {
                    Some(_) => "this is the snapshot of a stream, which `latens stream` goes on with: resume the run that the stream came from",
                    None => "this run was written by a Latens that could not resume",
                };
                Error::Setting(why.into())
            })?;
            let reports = run.facts.epochs.iter().take(checkpoint.passes());
            Ok(Self {
                seed: run.facts.seed,
                theta: &run.theta,
                covariance: &run.covariance,
                checkpoint,
                reports: reports.map(EpochReport::from).collect(),
            })
        };
        runs.iter().map(one).collect()
    }
}
