//! A fit's posterior as tools for samplers want it: draws of the parameters, as many as are asked for, and what
//! each of them says of each reading.
//!
//! For a state-space model the likelihood of a draw of θ is a product of one-step predictions,
//! p(y | θ) = Π p(y_k | y_1 … y_{k−1}, θ), with the states integrated out. Its factors are the pointwise
//! likelihood: they are summed to ln p(y | θ), and under all but exact equations they are what a reading
//! says by itself, because the readings before it only find the start. They are linear in the draw, as the
//! posterior is that it comes from: innovations of the filter along the states of the fit, moved to first order.

use std::f64::consts::TAU;

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::{Fit, Track};
use crate::filter::pass::{Forward, Means};
use crate::filter::smoother::Smoother;
use crate::model::small::cholesky;
use crate::numerics::Trajectory;
use crate::numerics::step::Stepper;

/// Deviations within which a bound shapes a posterior.
const FELT_DEVIATIONS: f64 = 8.0;
/// Draws of a prior within bounds that are tried for each one that is kept.
const TRIES_PER_DRAW: usize = 10_000;

impl Fit {
    /// Draws of δθ from the posterior: so many where it is normal, and those of the fit where a bound cuts it or
    /// its covariance has no factor. None where the solver draws none.
    pub fn parameter_draws(&self, count: usize) -> Vec<Vec<f64>> {
        let n = self.theta.len();
        let felt = |i: usize| {
            let (least, most) = self.model.unknowns[i].bounds();
            let reach = FELT_DEVIATIONS * self.covariance.variance(i).sqrt();
            self.theta[i] - reach < least || self.theta[i] + reach > most
        };
        let cut = (0..self.model.unknowns.len()).any(felt);
        if self.draws.is_empty() || cut || count <= self.draws.len() {
            return self.draws.iter().take(count.max(1)).cloned().collect();
        }
        let packed = self.covariance.clone().to_packed();
        let mut factor = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                factor[i * n + j] = packed[i * (i + 1) / 2 + j];
            }
        }
        if cholesky(&mut factor, n).is_err() {
            return self.draws.clone();
        }
        let mut rng = Pcg64::seed_from_u64(2);
        let mut draw = || -> Vec<f64> {
            let z: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
            let entry = |i: usize| (0..=i).map(|j| factor[i * n + j] * z[j]).sum::<f64>();
            (0..n).map(entry).collect()
        };
        (0..count).map(|_| draw()).collect()
    }

    /// Draws of θ before the data, within the bounds of its constants.
    pub fn prior_draws(&self, count: usize) -> Vec<Vec<f64>> {
        let mut variances = self
            .model
            .prior_variances(self.facts.settings.parameter_variance);
        let known = self.facts.evidence.as_ref().map_or(&[][..], |e| &e.prior);
        if known.len() == variances.len() {
            variances.copy_from_slice(known);
        }
        let mut rng = Pcg64::seed_from_u64(3);
        let mut entry = |i: usize, variance: f64| {
            let mut z = || -> f64 {
                let z: f64 = StandardNormal.sample(&mut rng);
                z * variance.sqrt()
            };
            let Some(unknown) = self.model.unknowns.get(i) else {
                return z();
            };
            let (least, most) = unknown.bounds();
            let mut inside = (0..TRIES_PER_DRAW)
                .map(|_| z())
                .filter(|t| *t >= least && *t <= most);
            inside.next().unwrap_or_else(|| 0.0_f64.clamp(least, most))
        };
        let mut draw = || {
            variances
                .iter()
                .enumerate()
                .map(|(i, v)| entry(i, *v))
                .collect()
        };
        (0..count).map(|_| draw()).collect()
    }

    /// Trajectories of a record of its own from the posterior of the states, one for each draw of δθ.
    pub fn drawn_states(&self, track: &Track, draws: &[Vec<f64>]) -> Vec<Trajectory> {
        let mut predictor = self.predictor();
        predictor.draws = draws;
        predictor.draws(&track.record, &track.smoothed)
    }

    /// ln p of each reading of a record of its own, from those before it, for each draw of δθ: sample by sample
    /// and channel by channel, NaN where nothing was measured.
    pub fn log_likelihood(&self, track: &Track, draws: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let record = &track.record;
        let (predictor, inflation) = (self.predictor(), self.facts.variance_inflation);
        let stepper = Stepper::over(
            &self.model,
            &self.model.system,
            self.facts.sample_time,
            [record],
        );
        let noise = self.facts.noise.inflated(&stepper, inflation);
        let noise = predictor.open_start(record, &noise);
        let base = Smoother {
            stepper: &stepper,
            record,
            theta: &self.theta,
            noise: &noise,
        };
        let pass = base.forward(&track.smoothed);
        let densities = |draw: &Vec<f64>| {
            let means = base.shift(&track.smoothed, draw, &pass);
            pass.log_densities(&means)
        };
        draws.par_iter().map(densities).collect()
    }
}

impl Forward {
    /// −½ (ln 2πs + ν²/s) of each measurement; NaN where there is none.
    fn log_densities(&self, means: &Means) -> Vec<f64> {
        let measurements = means.innovation.iter().zip(self.innovation_variances());
        measurements
            .map(|(v, s)| {
                if *s > 0.0 {
                    -0.5 * ((TAU * s).ln() + v * v / s)
                } else {
                    f64::NAN
                }
            })
            .collect()
    }
}
