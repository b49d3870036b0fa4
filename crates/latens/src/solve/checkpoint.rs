//! Where a fit stands: enough, together with θ and P_θ, to go on with it.
//!
//! A fit that was stopped is resumed from what it kept. The states are not part of it: θ and the
//! noise determine them, and smoothing finds them again.

use serde::{Deserialize, Serialize};

use super::PassReport;
use super::batch::damping::Damping;
use crate::model::network::Structure;
use crate::numerics::linalg::PackedCovariance;

/// How far what was kept has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checkpoint {
    /// Of a solver that passes over the records: the pass that was kept.
    #[serde(alias = "epoch")]
    Pass(usize),
    /// Of batch.
    Stage(Stage),
}

impl Checkpoint {
    /// Passes that led to it.
    pub fn passes(&self) -> usize {
        match self {
            Self::Pass(number) => *number,
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
    /// Whole stages that led to it.
    pub stages: usize,
    pub next: Next,
    /// Decades by which the process noise is tightened.
    pub tightness: f64,
    /// What stages are compared by; none where it is no number.
    pub merit: Option<f64>,
    /// Directions of θ that the data determine.
    pub determined: f64,
    /// By how much variances are inflated because misfits are correlated over samples.
    #[serde(default = "once", alias = "repetition")]
    pub variance_inflation: f64,
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
    pub(crate) fn merit(&self) -> f64 {
        self.merit.unwrap_or(f64::NEG_INFINITY)
    }
}

/// A start that goes on instead of beginning.
pub struct Resumed<'a> {
    pub structure: Structure,
    pub seed: u64,
    pub theta: &'a [f64],
    pub covariance: &'a PackedCovariance,
    pub checkpoint: &'a Checkpoint,
    /// Of the passes that led to it.
    pub reports: Vec<PassReport>,
}

/// What an earlier fit left to go on with; nothing where there was none.
#[derive(Default)]
pub struct Earlier<'a> {
    pub starts: Vec<Resumed<'a>>,
    /// Whether it was stopped: then there may be structures that it never came to.
    pub stopped: bool,
}

/// Where a start begins.
pub enum Start<'a> {
    /// At θ.
    At(Vec<f64>),
    /// At θ, which is all but right: there is nothing to find, only to refine.
    Near(Vec<f64>),
    /// Where an earlier fit was.
    From(&'a Resumed<'a>),
}
