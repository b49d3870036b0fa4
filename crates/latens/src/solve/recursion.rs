//! Epochs of a recursion: where each pass starts, what it leaves, which one is kept.

use super::alternating::{self, Form};
use super::checkpoint::{Checkpoint, Start};
use super::epoch::{Epoch, Segment};
use super::evidence::Evidence;
use super::prepare::{initial_theta, starting_at};
use super::settings::{Level, Settings, Solver};
use super::{EpochReport, Observer, Problem, joint, measured_error, smooth_all};
use crate::Error;
use crate::estimate::Smoothed;
use crate::linalg::PackedCovariance;
use crate::objective::{Cost, Noise, trajectory_cost};
use crate::record::Record;

/// What a solver has learned.
pub(super) struct Learned {
    pub theta: Vec<f64>,
    pub covariance: PackedCovariance,
    pub smoothed: Vec<Smoothed>,
    /// Under which they were smoothed.
    pub noise: Noise,
    pub reports: Vec<EpochReport>,
    /// Mean of ν²/s at the end: near 1 where the innovations are as large as expected.
    pub consistency: f64,
    /// How many times the misfit says the same, see [`super::newton`]: variances under `noise` are
    /// that much larger.
    pub repetition: f64,
    /// Draws from the posterior of θ, see [`crate::estimate::bands`]; none where its covariance is
    /// not to be trusted.
    pub draws: Vec<Vec<f64>>,
    /// Mean nRMSE of the measured channels in free runs over the training records.
    pub free_run: f64,
    /// Where the solver computes it.
    pub evidence: Option<Evidence>,
    pub checkpoint: Checkpoint,
    /// Whether the observer ended it before its time.
    pub stopped: bool,
}

/// An epoch that may be kept.
struct Kept {
    free_run: f64,
    theta: Vec<f64>,
    covariance: PackedCovariance,
    number: usize,
}

/// Passes a recursion over the records, epoch after epoch.
pub(super) fn run(
    problem: &Problem,
    settings: &Settings,
    mut smoothed: Vec<Smoothed>,
    start: Start,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let (records, noise) = (problem.records, problem.noise);
    let (variance, precision) = (settings.parameter_variance, settings.precision());
    let (prior, mut theta, mut covariance, mut reports) = match start {
        Start::At(theta) => {
            let size = theta.len();
            let covariance = PackedCovariance::scaled_identity(size, variance, precision);
            (theta.clone(), theta, covariance, vec![])
        }
        Start::From(r) => {
            let prior = initial_theta(problem.model, r.seed);
            (
                prior,
                r.theta.to_vec(),
                r.covariance.clone(),
                r.reports.clone(),
            )
        }
    };
    let done = reports.len();
    let mut drift = settings.parameter_drift * settings.anneal.powi(done as i32);
    let mut best = reports.last().map(|report: &EpochReport| Kept {
        free_run: report.free_run,
        theta: theta.clone(),
        covariance: covariance.clone(),
        number: done,
    });
    let mut stopped = false;
    for number in done + 1..=settings.epochs {
        if number > 1 {
            smoothed = smooth_all(problem, &theta, noise, smoothed);
        }
        let segments = cut(records, &smoothed, noise, settings);
        let theta_before = theta.clone();
        let mut epoch = Epoch {
            model: problem.model,
            stepper: problem.stepper,
            settings,
            noise,
            scale: &problem.nominal.scale,
            theta,
            covariance,
            drift,
            number,
            cost: start_cost(problem, &theta_before, &smoothed),
            consistency: (0.0, 0),
            observer,
            stop: false,
        };
        match settings.solver {
            Solver::Alternating => alternating::sweep(&mut epoch, &segments, Form::Corrected)?,
            Solver::AsPrinted => alternating::sweep(&mut epoch, &segments, Form::AsPrinted)?,
            Solver::Joint => joint::sweep(&mut epoch, &segments)?,
            other => unreachable!("{} is no recursion", other.name()),
        }
        let moved = epoch
            .theta
            .iter()
            .zip(&prior)
            .map(|(a, b)| (a - b) * (a - b));
        epoch.cost.prior = 0.5 * moved.sum::<f64>() / variance;
        let (cost, consistency, stop) = (epoch.cost, epoch.consistency, epoch.stop);
        theta = epoch.theta;
        covariance = epoch.covariance;
        drift *= settings.anneal;

        let free_run = if settings.keep_best || number == settings.epochs {
            measured_error(problem, &theta, problem.noise, &smoothed)
        } else {
            f64::NAN
        };
        let report = EpochReport {
            epoch: number,
            cost,
            consistency: consistency.0 / consistency.1.max(1) as f64,
            evidence: None,
            free_run,
            damping: None,
        };
        let better = |b: &Kept| free_run <= b.free_run || b.free_run.is_nan();
        if !settings.keep_best || best.as_ref().is_none_or(better) {
            best = Some(Kept {
                free_run,
                theta: theta.clone(),
                covariance: covariance.clone(),
                number,
            });
        }
        let go_on = observer.epoch(&report) && !stop;
        reports.push(report);
        if !go_on {
            stopped = number < settings.epochs;
            break;
        }
    }
    let mut kept = done;
    if let Some(best) = best {
        (theta, covariance, kept) = (best.theta, best.covariance, best.number);
    }
    let smoothed = smooth_all(problem, &theta, noise, smoothed);
    Ok(Learned {
        covariance,
        noise: noise.clone(),
        free_run: measured_error(problem, &theta, problem.noise, &smoothed),
        theta,
        smoothed,
        consistency: reports.last().map_or(f64::NAN, |r| r.consistency),
        repetition: 1.0,
        reports,
        // every epoch counts the data once more
        draws: vec![],
        evidence: None,
        checkpoint: Checkpoint::Epoch(kept),
        stopped,
    })
}

/// The terms of the first samples, which no step leads to: the starts and their measurements.
fn start_cost(problem: &Problem, theta: &[f64], smoothed: &[Smoothed]) -> Cost {
    let (stepper, n) = (problem.stepper, problem.noise.process.len());
    let mut cost = Cost::default();
    for (record, s) in problem.records.iter().zip(smoothed) {
        let noise = starting_at(stepper, record, problem.noise);
        let start = &s.states[..n];
        cost += trajectory_cost(stepper, record, theta, start, &noise);
    }
    cost
}

/// Cuts the records into as many segments as streams are asked for, each at a smoothed state.
fn cut<'r>(
    records: &'r [Record],
    smoothed: &[Smoothed],
    noise: &Noise,
    settings: &Settings,
) -> Vec<Segment<'r>> {
    let n = noise.process.len();
    let mut segments = Vec::new();
    for (record, s) in records.iter().zip(smoothed) {
        // samples at the joints belong to both neighbours: the step between them is in one
        let steps = record.len() - 1;
        let streams = settings.streams.min(steps);
        for b in 0..streams {
            let (from, to) = (b * steps / streams, (b + 1) * steps / streams);
            let start_variance = match settings.start {
                Level::Variance(_) => noise.start.clone(),
                Level::Relative(_) => (from * n..(from + 1) * n)
                    .map(|i| s.deviations[i].powi(2))
                    .collect(),
            };
            segments.push(Segment {
                record,
                samples: from..to + 1,
                start: s.states[from * n..(from + 1) * n].to_vec(),
                start_variance,
            });
        }
    }
    segments
}
