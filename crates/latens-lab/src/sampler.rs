//! A long run of a sampler on the posterior of a fit: what its intervals are held against.
//!
//! The posterior is that of the fit under exact equations: the parameters with their prior, the first state of
//! each record with its own, and every reading with the noise that the fit found. A point is simulated from start to
//! end; nothing is linearised, and nothing is known of Newton's method or of eliminated states. Adaptive
//! Metropolis (Haario, Saksman and Tamminen, 2001) in several chains that begin apart.

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

/// The covariance of the steps is that of the samples so far from this many on, and is taken again as often.
const ADAPTS: usize = 500;
/// The part of a chain that is not counted.
const BURN_IN: f64 = 0.3;

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
        let each = self
            .records
            .iter()
            .zip(&self.starts)
            .zip(starts.chunks_exact(states));
        for ((record, (mean, variance)), start) in each {
            cost += half_square(start.iter().zip(mean).map(|(x, m)| x - m), variance);
            let run = score::free_run(&self.stepper, record, theta, start);
            let outputs = score::outputs(&self.stepper, record, theta, &run);
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
    let mut width: Vec<f64> = (0..first.len())
        .map(|i| fit.covariance.variance(i))
        .collect();
    for track in &tracks {
        first.extend(track.free_run.row(0));
        width.extend(track.deviations.row(0).iter().map(|d| d * d));
    }
    let chains: Vec<Vec<Vec<f64>>> = (0..options.chains as u64)
        .into_par_iter()
        .map(|k| chain(&posterior, fit, &first, &width, options, k))
        .collect();
    Ok((0..model.unknowns.len())
        .map(|i| summary(fit, i, &chains))
        .collect())
}

/// The constants' entries of θ along a chain.
fn chain(
    posterior: &Posterior,
    fit: &Fit,
    first: &[f64],
    width: &[f64],
    options: &Options,
    number: u64,
) -> Vec<Vec<f64>> {
    let d = first.len();
    let mut rng = Pcg64::seed_from_u64(options.seed.wrapping_mul(1000).wrapping_add(number));
    let mut at = first.to_vec();
    // apart from each other: at a draw of the fit's own posterior
    if let Some(draw) = fit.draws.get(number as usize) {
        at.iter_mut().zip(draw).for_each(|(x, by)| *x += by);
    }
    let mut cost = posterior.cost(&at);
    let mut factor: Vec<f64> = (0..d * d)
        .map(|k| {
            if k / d == k % d {
                width[k / d].sqrt()
            } else {
                0.0
            }
        })
        .collect();
    // draws of θ know its correlations
    if fit.draws.len() > 2 {
        let p = fit.theta.len();
        let n = fit.draws.len() as f64;
        let mut covariance = vec![0.0; d * d];
        for i in 0..d {
            covariance[i * d + i] = width[i] * 1e-2 + 1e-300;
        }
        for draw in &fit.draws {
            for i in 0..p {
                for j in 0..p {
                    covariance[i * d + j] += draw[i] * draw[j] / n;
                }
            }
        }
        if cholesky(&mut covariance, d).is_ok() {
            factor = covariance;
        }
    }
    let (mut mean, mut square, mut count) = (vec![0.0; d], vec![0.0; d * d], 0.0);
    let mut scale = 0.5 * 2.38 / (d as f64).sqrt();
    let (mut kept, mut accepted) = (Vec::with_capacity(options.steps), 0.0);
    for step in 0..options.steps {
        let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
        let next: Vec<f64> = (0..d)
            .map(|i| at[i] + scale * (0..=i).map(|j| factor[i * d + j] * z[j]).sum::<f64>())
            .collect();
        let next_cost = posterior.cost(&next);
        let u: f64 = rng.random();
        if u.ln() < cost - next_cost {
            (at, cost) = (next, next_cost);
            accepted += 1.0;
        }
        count += 1.0;
        let before: Vec<f64> = at.iter().zip(&mean).map(|(x, m)| x - m).collect();
        mean.iter_mut()
            .zip(&before)
            .for_each(|(m, b)| *m += b / count);
        for i in 0..d {
            for j in 0..d {
                square[i * d + j] += before[i] * (at[j] - mean[j]);
            }
        }
        if (step + 1) % ADAPTS == 0 && (step as f64) < BURN_IN * options.steps as f64 {
            let enough = count > 20.0 * d as f64;
            let rate = accepted / ADAPTS as f64;
            scale *= if rate < 0.15 {
                0.8
            } else if rate > 0.35 {
                1.25
            } else {
                1.0
            };
            accepted = 0.0;
            if enough {
                let mut covariance: Vec<f64> = square.iter().map(|s| s / count).collect();
                (0..d).for_each(|i| covariance[i * d + i] *= 1.0 + 1e-6);
                if cholesky(&mut covariance, d).is_ok() {
                    factor = covariance;
                }
                // what is far back was not yet there
                if step < options.steps / 10 {
                    (mean, square, count) = (at.clone(), vec![0.0; d * d], 1.0);
                }
            }
        }
        kept.push(at[..fit.model.unknowns.len()].to_vec());
    }
    kept.split_off((BURN_IN * options.steps as f64) as usize)
}

fn summary(fit: &Fit, i: usize, chains: &[Vec<Vec<f64>>]) -> SampledConstant {
    let unknown = &fit.model.unknowns[i];
    let own: Vec<Vec<f64>> = chains
        .iter()
        .map(|c| c.iter().map(|t| t[i]).collect())
        .collect();
    let quantile = |values: &[f64], part: f64| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        unknown.value(sorted[(part * (sorted.len() - 1) as f64).round() as usize])
    };
    let all = own.concat();
    let spread = |part: f64| {
        let each: Vec<f64> = own.iter().map(|c| quantile(c, part)).collect();
        let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        0.5 * (most - each.iter().copied().fold(f64::INFINITY, f64::min))
    };
    let moments = |v: &[f64]| latens::numerics::whiteness::mean_and_variance(v);
    let within = own.iter().map(|c| moments(c).1).sum::<f64>() / own.len() as f64;
    SampledConstant {
        name: unknown.name.clone(),
        interval: (quantile(&all, 0.025), quantile(&all, 0.975)),
        median: quantile(&all, 0.5),
        error: spread(0.025).max(spread(0.975)),
        effective: own.iter().map(|c| effective(c)).sum(),
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
