//! Standard deviations of states that count the uncertainty of θ.
//!
//! To first order a trajectory is x̂(θ̂) + (dx̂/dθ) δθ with δθ ~ N(0, C). Instead of dx̂/dθ, which is
//! as long as the record times θ, some draws of δθ go through the linear passes of the smoother;
//! their mean square is what θ adds to the variance. The error of a standard deviation is then
//! 1/√(2·[`DRAWS`]), 9 %. Where a record has no measurements the passes simulate, and the same
//! code gives the bands of a free run.

use rayon::prelude::*;

use super::smoother::{Smoothed, Smoother};

/// Draws of δθ.
pub const DRAWS: usize = 64;
/// Draws that go through one linearisation: their trajectories are kept meanwhile.
const GROUP: usize = 16;

impl Smoother<'_> {
    /// Standard deviations of the states around a trajectory that fits, with what the draws of δθ
    /// add.
    pub fn bands(&self, states: &[f64], draws: &[Vec<f64>]) -> Vec<f64> {
        let pass = self.forward(states);
        let alone = self.deviations(&pass);
        let still = self.backward(&pass, &pass.means);
        let mut square = vec![0.0; states.len()];
        for group in draws.chunks(GROUP) {
            let driven = self.driven(states, group);
            let moved: Vec<Vec<f64>> = (0..group.len())
                .into_par_iter()
                .map(|k| {
                    let own = driven.iter().skip(k).step_by(group.len());
                    self.backward(&pass, &self.carried(&pass, own.copied()))
                })
                .collect();
            for moved in moved {
                for ((s, a), b) in square.iter_mut().zip(&moved).zip(&still) {
                    *s += (a - b) * (a - b) / draws.len() as f64;
                }
            }
        }
        let both = alone.iter().zip(&square);
        both.map(|(own, theta)| own.hypot(theta.sqrt())).collect()
    }
}

impl Smoothed {
    /// The same states with standard deviations that count the uncertainty of θ.
    pub(crate) fn with_bands(self, smoother: &Smoother, draws: &[Vec<f64>]) -> Self {
        Self {
            deviations: smoother.bands(&self.states, draws),
            ..self
        }
    }
}
