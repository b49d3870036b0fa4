//! Standard deviations of states and outputs that count the uncertainty of θ.
//!
//! To first order a trajectory is x̂(θ̂) + (dx̂/dθ) δθ with δθ ~ N(0, C). Instead of dx̂/dθ, which is
//! as long as the record times θ, some draws of δθ go through the linear passes of the filter or
//! the smoother; their mean square is what θ adds to the variance. The error of a standard
//! deviation is then 1/√(2·[`DRAWS`]), 9 %. Where a record has no measurements the passes simulate,
//! and the same code gives the bands of a free run.

use rayon::prelude::*;

use super::smoother::{Smoothed, Smoother};
use crate::model::small::{apply, dot};
use crate::numerics::Trajectory;

/// Draws of δθ.
pub const DRAWS: usize = 64;
/// Draws that go through one linearisation: their trajectories are kept meanwhile.
const DRAWS_PER_GROUP: usize = 16;

/// What an estimate of a state may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The samples up to its own.
    Filter,
    /// All samples.
    Smoother,
}

/// Standard deviations, one row per sample.
#[derive(Debug, Clone)]
pub struct Bands {
    pub states: Trajectory,
    pub outputs: Trajectory,
}

impl Bands {
    /// Where nothing is known any more.
    pub(crate) fn endless(samples: usize, states: usize, outputs: usize) -> Self {
        Self {
            states: Trajectory::filled(f64::INFINITY, samples, states),
            outputs: Trajectory::filled(f64::INFINITY, samples, outputs),
        }
    }
}

impl Smoother<'_> {
    /// Standard deviations around a trajectory that fits, with what the draws of δθ add.
    pub fn bands(&self, states: &Trajectory, draws: &[Vec<f64>], mode: Mode) -> Bands {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let pass = self.forward(states);
        let channels = system.unknown_channels();
        let height = self.stepper.rows().len() + channels.len();
        let rows = |i: usize| &pass.sight()[i * c * n..(i + 1) * c * n];
        let mut variances = vec![0.0; states.as_slice().len()];
        let mut seen = vec![0.0; self.record.len() * c];
        let mut product = vec![0.0; n];
        let mut take = |i: usize, covariance: &[f64]| {
            for j in 0..n {
                variances[i * n + j] = covariance[j * n + j].max(0.0);
            }
            for (h, seen) in rows(i).chunks_exact(n).zip(&mut seen[i * c..]) {
                apply(covariance, h, &mut product);
                *seen = dot(h, &product).max(0.0);
            }
        };
        match mode {
            Mode::Smoother => self.covariances(&pass, take),
            Mode::Filter => (0..self.record.len()).for_each(|i| take(i, pass.covariance(i, n))),
        }
        let still = match mode {
            Mode::Smoother => self.backward(&pass, &pass.means).into_vec(),
            Mode::Filter => pass.means.mean.clone(),
        };
        for group in draws.chunks(DRAWS_PER_GROUP) {
            let driven = self.driven(states, group, &pass.by_theta);
            let moved: Vec<Vec<f64>> = (0..group.len())
                .into_par_iter()
                .map(|k| {
                    let of_draw = driven.iter().skip(k).step_by(group.len());
                    let means = self.carried(&pass, of_draw.copied());
                    match mode {
                        Mode::Smoother => self.backward(&pass, &means).into_vec(),
                        Mode::Filter => means.mean,
                    }
                })
                .collect();
            for (k, mut moved) in moved.into_iter().enumerate() {
                moved.iter_mut().zip(&still).for_each(|(a, b)| *a -= b);
                for (variance, by) in variances.iter_mut().zip(&moved) {
                    *variance += by * by / draws.len() as f64;
                }
                for (i, by) in moved.chunks_exact(n).enumerate() {
                    for (channel, h) in rows(i).chunks_exact(n).enumerate() {
                        let place = channels.iter().position(|known| *known == channel);
                        let theta = place.map_or(0.0, |place| {
                            let row = i * height + self.stepper.rows().len() + place;
                            driven[row * group.len() + k]
                        });
                        let by = dot(h, by) + theta;
                        seen[i * c + channel] += by.powi(2) / draws.len() as f64;
                    }
                }
            }
        }
        let root = |variances: Vec<f64>, width| {
            Trajectory::new(variances.into_iter().map(f64::sqrt).collect(), width)
        };
        Bands {
            states: root(variances, n),
            outputs: root(seen, c),
        }
    }
}

/// A sum of an entry of θ times a factor and a state.
#[derive(Debug, Clone, Copy)]
pub struct Sum {
    pub entry: usize,
    pub factor: f64,
    pub state: usize,
}

impl Smoother<'_> {
    /// Standard deviations of sums of θ and states, one row per sample: where θ moves, a state that it
    /// is summed with may move against it.
    pub fn sums(&self, states: &Trajectory, draws: &[Vec<f64>], sums: &[Sum]) -> Trajectory {
        let (n, width) = (states.width(), sums.len());
        let pass = self.forward(states);
        let mut variances = Trajectory::filled(0.0, self.record.len(), width);
        self.covariances(&pass, |i, p| {
            for (variance, sum) in variances.row_mut(i).iter_mut().zip(sums) {
                *variance = p[sum.state * n + sum.state].max(0.0);
            }
        });
        let still = self.backward(&pass, &pass.means);
        for group in draws.chunks(DRAWS_PER_GROUP) {
            let driven = self.driven(states, group, &pass.by_theta);
            for (k, draw) in group.iter().enumerate() {
                let of_draw = driven.iter().skip(k).step_by(group.len());
                let moved = self.backward(&pass, &self.carried(&pass, of_draw.copied()));
                for i in 0..self.record.len() {
                    for (variance, sum) in variances.row_mut(i).iter_mut().zip(sums) {
                        let by = moved.row(i)[sum.state] - still.row(i)[sum.state];
                        let by = by + sum.factor * draw[sum.entry];
                        *variance += by * by / draws.len() as f64;
                    }
                }
            }
        }
        let deviations = variances.into_vec().into_iter().map(f64::sqrt);
        Trajectory::new(deviations.collect(), width)
    }
}

impl Smoothed {
    /// The same states with standard deviations that count the uncertainty of θ.
    pub(crate) fn with_bands(self, smoother: &Smoother, draws: &[Vec<f64>]) -> Self {
        let bands = smoother.bands(&self.states, draws, Mode::Smoother);
        Self {
            deviations: bands.states,
            ..self
        }
    }
}
