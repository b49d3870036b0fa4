//! The recognition network of PR-SSM: where a trajectory starts, from its first samples.
//!
//! Filters with ReLU along time, maxima of pairs, a dense layer to mean and log deviation of each latent
//! state.

use latens::model::small::dot;
use rand::RngExt;
use rand_pcg::Pcg64;

use super::windows::axpy;

/// Samples that it sees.
pub(crate) const SEEN_SAMPLES: usize = 16;
/// Filters, samples under each, and what is left of each after the pool.
const FILTERS: usize = 5;
const FILTER_WIDTH: usize = 3;
const POOLED_SAMPLES: usize = (SEEN_SAMPLES - FILTER_WIDTH).div_ceil(2);
/// Inputs of the dense layer.
const DENSE_INPUTS: usize = FILTERS * POOLED_SAMPLES;

/// Shape of the network; its weights are filters, their biases, the dense layer, its biases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convolution {
    /// Signals in a sample.
    pub signals: usize,
    pub latent: usize,
}

/// A signal's value: by sample, after the first, and by signal.
pub(crate) type Signals<'s> = &'s dyn Fn(usize, usize) -> f64;

impl Convolution {
    /// Number of weights.
    pub fn weights(&self) -> usize {
        self.dense() + 2 * self.latent * (DENSE_INPUTS + 1)
    }

    /// Where the filters' biases begin, and where the dense layer does.
    fn bias(&self) -> usize {
        FILTERS * FILTER_WIDTH * self.signals
    }

    fn dense(&self) -> usize {
        self.bias() + FILTERS
    }

    /// Glorot's uniform weights; deviations begin at a tenth.
    pub fn initialise(&self, weights: &mut [f64], rng: &mut Pcg64) {
        let bound = (6.0 / (FILTER_WIDTH * self.signals + FILTERS) as f64).sqrt();
        weights[..self.bias()].fill_with(|| bound * rng.random_range(-1.0..1.0));
        let bound = (6.0 / (DENSE_INPUTS + self.latent) as f64).sqrt();
        let means = self.dense()..self.dense() + self.latent * DENSE_INPUTS;
        weights[means].fill_with(|| bound * rng.random_range(-1.0..1.0));
        let last = self.weights() - self.latent;
        weights[last..].fill(0.1_f64.ln());
    }

    /// A filter at a sample.
    fn filtered(&self, weights: &[f64], signals: Signals, f: usize, t: usize) -> f64 {
        let width = FILTER_WIDTH * self.signals;
        let filter = &weights[f * width..(f + 1) * width];
        let taps = filter.iter().enumerate();
        let terms = taps.map(|(i, w)| w * signals(t + i / self.signals, i % self.signals));
        terms.fold(weights[self.bias() + f], |sum, term| sum + term)
    }

    /// Means and log deviations, and what the pool left.
    pub fn recognise(&self, weights: &[f64], signals: Signals) -> (Vec<f64>, Vec<f64>) {
        let pooled_at = |k: usize| {
            let at = |t: usize| {
                self.filtered(weights, signals, k / POOLED_SAMPLES, t)
                    .max(0.0)
            };
            at(2 * (k % POOLED_SAMPLES)).max(at(2 * (k % POOLED_SAMPLES) + 1))
        };
        let pooled: Vec<f64> = (0..DENSE_INPUTS).map(pooled_at).collect();
        let (rows, biases) = weights[self.dense()..].split_at(2 * self.latent * DENSE_INPUTS);
        let rows = rows.chunks_exact(DENSE_INPUTS).zip(biases);
        let out = rows.map(|(row, b)| b + dot(row, &pooled)).collect();
        (out, pooled)
    }

    /// The adjoint of [`Convolution::recognise`].
    pub fn pull_back(
        &self,
        weights: &[f64],
        signals: Signals,
        pooled: &[f64],
        by_out: &[f64],
        gradient: &mut [f64],
    ) {
        let (bias, dense, width) = (self.bias(), self.dense(), FILTER_WIDTH * self.signals);
        let mut by_pooled = vec![0.0; DENSE_INPUTS];
        for (k, d) in by_out.iter().enumerate() {
            let row = dense + k * DENSE_INPUTS..dense + (k + 1) * DENSE_INPUTS;
            axpy(*d, &weights[row.clone()], &mut by_pooled);
            axpy(*d, pooled, &mut gradient[row]);
            gradient[dense + by_out.len() * DENSE_INPUTS + k] += d;
        }
        for (k, d) in by_pooled.into_iter().enumerate() {
            if d == 0.0 || pooled[k] <= 0.0 {
                continue;
            }
            let (f, t) = (k / POOLED_SAMPLES, 2 * (k % POOLED_SAMPLES));
            let at = |t: usize| self.filtered(weights, signals, f, t);
            let t = if at(t) >= at(t + 1) { t } else { t + 1 };
            for i in 0..width {
                gradient[f * width + i] += d * signals(t + i / self.signals, i % self.signals);
            }
            gradient[bias + f] += d;
        }
    }
}
