//! What a solver returns: θ with its covariance, states, scores.

pub mod nominal;
pub mod run;

use crate::estimate::ensemble::{self, Band};
use crate::estimate::{Prediction, Predictor, Region, Smoothed, Start};
use crate::linalg::PackedCovariance;
use crate::model::Model;
use crate::objective::Noise;
use crate::record::Record;
use crate::score;
use crate::solve::checkpoint::Checkpoint;
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
    /// How far it came; what it can be resumed from.
    pub checkpoint: Checkpoint,
    /// Whether the observer ended it before its time.
    pub stopped: bool,
    /// Of an ensemble, all of them by seed. The fit itself then has θ and all that belongs to it of
    /// the best, and the estimates of all together.
    pub members: Vec<Fit>,
}

impl Fit {
    /// Several fits as one; the first is the best, `records` are theirs.
    pub(crate) fn ensemble(mut members: Vec<Fit>, records: &[&Record]) -> Self {
        let mut fit = members[0].clone();
        members.sort_by_key(|m| m.seed);
        let stepper = Stepper::new(&fit.model, &fit.model.system, fit.dt);
        let together = records.iter().enumerate().map(|(k, record)| {
            let own: Vec<&Estimate> = members.iter().map(|m| &m.estimates[k]).collect();
            Estimate::together(&stepper, record, &fit.theta, &own)
        });
        let estimates = together.collect();
        fit.estimates = estimates;
        fit.members = members;
        fit
    }

    /// Predicts a record: an ensemble by all its members.
    pub fn predict(&self, record: &Record, start: Start) -> Prediction {
        let members: Vec<Predictor> = self.members.iter().map(Self::predictor).collect();
        match members.is_empty() {
            true => self.predictor().predict(record, start),
            false => ensemble::predict(&members, record, start),
        }
    }

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
        let one_step = score::one_step(stepper, record, theta, &smoothed.states);
        Self::scored(stepper, record, theta, (smoothed, one_step, free_run))
    }

    /// What the members of an ensemble say together: the median of each run.
    fn together(stepper: &Stepper, record: &Record, theta: &[f64], members: &[&Self]) -> Self {
        let bands = members.iter().map(|m| Band {
            values: &m.smoothed.states,
            deviations: &m.smoothed.deviations,
        });
        let (states, deviations) = ensemble::together(&bands.collect::<Vec<_>>());
        let smoothed = Smoothed {
            states,
            deviations,
            cost: members[0].smoothed.cost,
        };
        let median = |of: fn(&Self) -> &[f64]| {
            let runs: Vec<&[f64]> = members.iter().map(|m| of(m)).collect();
            ensemble::median_run(&runs)
        };
        let (one_step, free_run) = (median(|m| &m.one_step), median(|m| &m.free_run));
        Self::scored(stepper, record, theta, (smoothed, one_step, free_run))
    }

    pub(crate) fn scored(
        stepper: &Stepper,
        record: &Record,
        theta: &[f64],
        (smoothed, one_step, free_run): (Smoothed, Vec<f64>, Vec<f64>),
    ) -> Self {
        let n = stepper.system().states();
        let truth = record.truth.as_deref();
        Self {
            channels: score::channel_nrmse(stepper, record, theta, &free_run),
            states: (0..n)
                .map(|i| score::nrmse(&free_run, truth?, i, n))
                .collect(),
            one_step,
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
