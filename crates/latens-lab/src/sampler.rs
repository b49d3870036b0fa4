//! A long run of a sampler on the posterior of a fit: what its intervals are held against.
//!
//! The posterior is that of the fit under exact equations: the parameters with their prior, the first state of
//! each record with its own, and every reading with the noise that the fit found. A point is simulated from start to
//! end; nothing is linearised, and nothing is known of Newton's method or of eliminated states. Metropolis in several
//! chains that begin apart, with steps x ← m + √(1 − β²)(x − m) + β ξ: these leave the normal distribution of ξ as
//! it is (Neal 1999; Cotter and others 2013), so that only what the posterior differs from it is accepted or not. ξ has
//! the covariance of the fit's own draws; that decides how fast the chains move, not where to.

use latens::look::prior::starting_at;
use latens::model::small::cholesky;
use latens::numerics::objective::{data_term, half_square};
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::{Error, Fit, Record};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::Serialize;

/// The length of the steps is chosen again after so many, in the beginning.
const ADAPTATION_STEPS: usize = 100;
/// Draws of the fit that the covariance of the steps is taken from, and how many of them at a time.
const DRAWS: usize = 4000;
const CHUNK_DRAWS: usize = 200;
/// The part of a chain that is not counted.
const BURN_IN_PART: f64 = 0.3;

/// A constant as the sampler has it.
#[derive(Debug, Clone, Serialize)]
pub struct SampledConstant {
    /// Its name.
    pub name: String,
    /// It lies between these with 95 %.
    pub interval: (f64, f64),
    /// Its median.
    pub median: f64,
    /// Half the difference of the chains' ends of the interval, the farthest two: how far it is itself unsure.
    pub error: f64,
    /// Independent samples that the chains are worth.
    pub effective: f64,
    /// Variance of all samples over that within chains, its root: 1 where the chains agree.
    pub r_hat: f64,
}

/// What a sampler is to do.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Chains.
    pub chains: usize,
    /// Steps of each.
    pub steps: usize,
    /// Of the random numbers.
    pub seed: u64,
}

/// −ln of the posterior, but for a constant.
struct Posterior<'a> {
    stepper: Stepper<'a>,
    records: Vec<&'a Record>,
    /// Mean and variance of each record's start.
    starts: Vec<(Vec<f64>, Vec<f64>)>,
    prior: &'a [f64],
    variances: Vec<f64>,
    fit: &'a Fit,
}

impl Posterior<'_> {
    /// At θ followed by the start of each record.
    fn cost(&self, point: &[f64]) -> f64 {
        let (theta, starts) = point.split_at(self.prior.len());
        let unknowns = self.fit.model.unknowns.iter().zip(theta);
        let inside = |(unknown, t): (&latens::model::Unknown, &f64)| {
            let (least, most) = unknown.bounds();
            (least..=most).contains(t)
        };
        if !unknowns.into_iter().all(inside) {
            return f64::INFINITY;
        }
        let mut cost = half_square(theta.iter().copied(), self.prior);
        let states = self.fit.model.states.len();
        let records = self
            .records
            .iter()
            .zip(&self.starts)
            .zip(starts.chunks_exact(states));
        for ((record, (mean, variance)), start) in records {
            cost += half_square(start.iter().zip(mean).map(|(x, m)| x - m), variance);
            let run = score::free_run(&self.stepper, record, theta, start);
            let outputs = score::outputs(self.stepper.system(), record, theta, &run);
            for k in 0..record.len() {
                cost += data_term(record.output(k), outputs.row(k), &self.variances);
            }
        }
        if cost.is_nan() { f64::INFINITY } else { cost }
    }
}

/// Samples the constants of a fit; of several structures that speak together, those of the best.
///
/// # Errors
/// [`Error::Setting`] of a fit that has no prior.
pub fn sample(fit: &Fit, options: &Options) -> Result<Vec<SampledConstant>, Error> {
    let mut members = fit.members.iter();
    let fit = members.find(|m| m.theta == fit.theta).unwrap_or(fit);
    let prior = fit.facts.evidence.as_ref().map_or(&[][..], |e| &e.prior);
    if prior.len() != fit.theta.len() {
        return Err(Error::Setting(format!(
            "{} does not have the prior of its parameters: repeat the fit with batch",
            fit.name
        )));
    }
    let tracks = fit.trained();
    let records: Vec<&Record> = tracks.iter().map(|t| &t.record).collect();
    let (model, facts) = (&fit.model, &fit.facts);
    let stepper = Stepper::over(
        model,
        &model.system,
        facts.sample_time,
        records.iter().copied(),
    );
    let starts = records.iter().map(|record| {
        let noise = starting_at(&stepper, record, &facts.noise);
        (noise.start_mean, noise.start)
    });
    let starts = starts.collect();
    let variances = facts
        .noise
        .measurement
        .iter()
        .map(|v| v * facts.variance_inflation);
    let posterior = Posterior {
        variances: variances.collect(),
        stepper,
        records,
        starts,
        prior,
        fit,
    };
    let mut first = fit.theta.clone();
    tracks.iter().for_each(|t| first.extend(t.free_run.row(0)));
    let factor = joint_factor(fit, first.len())?;
    let chains: Vec<Vec<Vec<f64>>> = (0..options.chains as u64)
        .into_par_iter()
        .map(|k| chain(&posterior, &first, &factor, options, k))
        .collect();
    Ok((0..model.unknowns.len())
        .map(|i| summary(fit, i, &chains))
        .collect())
}

/// L of the covariance L Lᵀ of θ and the starts, as the fit's own draws of both have it.
fn joint_factor(fit: &Fit, d: usize) -> Result<Vec<f64>, Error> {
    let draws = fit.parameter_draws(DRAWS);
    let mut points = vec![];
    for chunk in draws.chunks(CHUNK_DRAWS) {
        let mut batch: Vec<Vec<f64>> = chunk.to_vec();
        for track in fit.trained() {
            let states = fit.drawn_states(track, chunk);
            for (point, drawn) in batch.iter_mut().zip(&states) {
                let differences = drawn.row(0).iter().zip(track.smoothed.row(0));
                point.extend(differences.map(|(x, mean)| x - mean));
            }
        }
        points.extend(batch);
    }
    let n = points.len() as f64;
    let mut covariance = vec![0.0; d * d];
    for point in &points {
        for i in 0..d {
            for j in 0..=i {
                covariance[i * d + j] += point[i] * point[j] / n;
            }
        }
    }
    (0..d).for_each(|i| covariance[i * d + i] *= 1.0 + 1e-9);
    cholesky(&mut covariance, d)
        .map_err(|_| Error::Setting("the draws of this fit are too few to sample from".into()))?;
    Ok(covariance)
}

/// y of L y = x, and its half square.
fn whitened(factor: &[f64], x: &[f64]) -> f64 {
    let d = x.len();
    let mut y = vec![0.0; d];
    for i in 0..d {
        let sum: f64 = (0..i).map(|j| factor[i * d + j] * y[j]).sum();
        y[i] = (x[i] - sum) / factor[i * d + i];
    }
    0.5 * y.iter().map(|v| v * v).sum::<f64>()
}

/// The constants' entries of θ along a chain.
fn chain(
    posterior: &Posterior,
    center: &[f64],
    factor: &[f64],
    options: &Options,
    number: u64,
) -> Vec<Vec<f64>> {
    let d = center.len();
    let mut rng = Pcg64::seed_from_u64(options.seed.wrapping_mul(1000).wrapping_add(number));
    let mut normal = || -> Vec<f64> {
        let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
        let entry = |i: usize| (0..=i).map(|j| factor[i * d + j] * z[j]).sum::<f64>();
        (0..d).map(entry).collect()
    };
    let moved = |by: &[f64]| -> Vec<f64> { center.iter().zip(by).map(|(c, b)| c + b).collect() };
    // the chains begin apart from each other
    let mut at = normal();
    let mut uniform = Pcg64::seed_from_u64(options.seed.wrapping_mul(7777).wrapping_add(number));
    let excess = |by: &[f64]| posterior.cost(&moved(by)) - whitened(factor, by);
    let mut cost = excess(&at);
    let (mut length, mut accepted) = (0.3_f64, 0.0);
    let mut kept = Vec::with_capacity(options.steps);
    let adapts = (BURN_IN_PART * options.steps as f64) as usize;
    for step in 0..options.steps {
        let by = normal();
        let rest = (1.0 - length * length).sqrt();
        let next: Vec<f64> = at
            .iter()
            .zip(&by)
            .map(|(a, b)| rest * a + length * b)
            .collect();
        let next_cost = excess(&next);
        let u: f64 = uniform.random();
        if u.ln() < cost - next_cost || !cost.is_finite() {
            (at, cost) = (next, next_cost);
            accepted += 1.0;
        }
        if (step + 1) % ADAPTATION_STEPS == 0 && step < adapts {
            let factor: f64 = if accepted < 0.25 * ADAPTATION_STEPS as f64 {
                0.8
            } else {
                1.2
            };
            length = (length * factor).min(0.99);
            accepted = 0.0;
        }
        let constants = posterior.fit.model.unknowns.len();
        kept.push(moved(&at)[..constants].to_vec());
    }
    kept.split_off(adapts)
}

fn summary(fit: &Fit, i: usize, chains: &[Vec<Vec<f64>>]) -> SampledConstant {
    let unknown = &fit.model.unknowns[i];
    let values: Vec<Vec<f64>> = chains
        .iter()
        .map(|c| c.iter().map(|t| t[i]).collect())
        .collect();
    let quantile = |values: &[f64], part: f64| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        unknown.value(sorted[(part * (sorted.len() - 1) as f64).round() as usize])
    };
    let all = values.concat();
    let spread = |part: f64| {
        let values: Vec<f64> = values.iter().map(|c| quantile(c, part)).collect();
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        0.5 * (most - values.iter().copied().fold(f64::INFINITY, f64::min))
    };
    let moments = |v: &[f64]| latens::numerics::whiteness::mean_and_variance(v);
    let within = values.iter().map(|c| moments(c).1).sum::<f64>() / values.len() as f64;
    SampledConstant {
        name: unknown.name.clone(),
        interval: (quantile(&all, 0.025), quantile(&all, 0.975)),
        median: quantile(&all, 0.5),
        error: spread(0.025).max(spread(0.975)),
        effective: values.iter().map(|c| effective(c)).sum(),
        r_hat: (moments(&all).1 / within).sqrt(),
    }
}

/// Independent samples that a chain is worth, by the variance of means over batches.
fn effective(values: &[f64]) -> f64 {
    let size = (values.len() as f64).sqrt() as usize;
    let means: Vec<f64> = values
        .chunks_exact(size.max(1))
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let moments = latens::numerics::whiteness::mean_and_variance;
    let (all, of_means) = (moments(values).1, moments(&means).1 * size as f64);
    (values.len() as f64 * all / of_means).min(values.len() as f64)
}
