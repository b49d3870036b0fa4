//! What a solver returns: θ with its covariance, states, scores.

pub mod nominal;
pub mod run;

use crate::estimate::{Predictor, Region, Smoothed};
use crate::linalg::PackedCovariance;
use crate::model::Model;
use crate::objective::Noise;
use crate::record::Record;
use crate::score;
use crate::solve::evidence::Evidence;
use crate::solve::{Attempt, EpochReport, Settings};
use crate::step::Stepper;
use nominal::Nominal;

/// A fitted model.
#[derive(Debug, Clone)]
pub struct Fit {
    /// The model, its networks scaled.
    pub model: Model,
    pub theta: Vec<f64>,
    /// P_θ.
    pub covariance: PackedCovariance,
    pub settings: Settings,
    /// Of the start that was kept.
    pub seed: u64,
    /// All starts.
    pub attempts: Vec<Attempt>,
    pub noise: Noise,
    /// Where the solver computes it.
    pub evidence: Option<Evidence>,
    /// Draws of δθ from its posterior, see [`crate::estimate::bands`]; batch only.
    pub draws: Vec<Vec<f64>>,
    /// How many times the misfit says the same: variances under `noise` are that much larger, those
    /// of the draws already are. 1 for white noise.
    pub repetition: f64,
    /// What each network met in training.
    pub regions: Vec<Region>,
    pub nominal: Nominal,
    pub reports: Vec<EpochReport>,
    /// One for each record: those learned from, then those that validated.
    pub estimates: Vec<Estimate>,
    /// How many were learned from.
    pub trained: usize,
    /// Sample time.
    pub dt: f64,
}

impl Fit {
    /// What predictions of other records are made with.
    pub fn predictor(&self) -> Predictor<'_> {
        Predictor {
            model: &self.model,
            theta: &self.theta,
            draws: &self.draws,
            noise: &self.noise,
            repetition: self.repetition,
            scale: &self.nominal.scale,
            regions: &self.regions,
            dt: self.dt,
        }
    }
}

/// What a fit says about one record.
#[derive(Debug, Clone)]
pub struct Estimate {
    pub smoothed: Smoothed,
    /// Free run from the estimated start, the input replayed.
    pub free_run: Vec<f64>,
    pub one_step: Vec<f64>,
    /// nRMSE of the free run: each measured channel, each state whose truth is known.
    pub channels: Vec<Option<f64>>,
    pub states: Vec<Option<f64>>,
}

impl Estimate {
    pub(crate) fn new(
        stepper: &Stepper,
        record: &Record,
        theta: &[f64],
        noise: &Noise,
        smoothed: Smoothed,
    ) -> Self {
        let n = stepper.system().states();
        let exact = score::exact_trajectory(stepper, record, theta, noise, &smoothed);
        let free_run = score::free_run(stepper, record, theta, &exact[..n]);
        let truth = record.truth.as_deref();
        Self {
            one_step: score::one_step(stepper, record, theta, &smoothed.states),
            channels: score::channel_nrmse(stepper, record, theta, &free_run),
            states: (0..n)
                .map(|i| score::nrmse(&free_run, truth?, i, n))
                .collect(),
            free_run,
            smoothed,
        }
    }

    /// Mean nRMSE over the states whose truth is known.
    pub fn mean(&self) -> Option<f64> {
        let known: Vec<f64> = self.states.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}
