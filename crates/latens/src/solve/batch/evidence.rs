//! How well the data speak for a model as a whole, which directions of θ they determine, and the
//! prior that they ask for.
//!
//! Laplace's approximation at the minimum of the objective, the states and θ integrated out:
//!
//! ```text
//! ln p(y) = −½ Σ ln 2πs − L − ½ ln det(I + P_θ0 A)
//! ```
//!
//! Everything comes from the eigenvalues λ of P_θ0^½ A P_θ0^½, the information that the data have
//! on a direction in units of the prior's: the determinant is Π(1 + λ), the posterior covariance
//! P_θ0^½ V (1 + λ)⁻¹ Vᵀ P_θ0^½. Information below rounding counts as none, so that a direction
//! about which the data are silent keeps its prior uncertainty; a Cholesky factor, which needs
//! something added to exist, would make it look determined.
//!
//! γ = Σ λ/(1 + λ) counts the directions that the data determine. The variance of a network's
//! weights at which the evidence is stationary is Σ θ²/γ over its weights (MacKay, *Bayesian
//! interpolation*, 1992).

use std::ops::Range;

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::described;
use crate::model::Model;
use crate::model::network::Network;
use crate::model::simd;
use crate::numerics::linalg::PackedCovariance;
use crate::numerics::linalg::Precision;
use crate::numerics::linalg::eigen::Eigen;
use crate::numerics::linalg::matrix::Matrix;
use crate::numerics::linalg::normal::NormalEquations;
use crate::numerics::linalg::product;

/// Bounds of the prior variance of weights: scaled weights are of order one.
const VARIANCE_BOUNDS: (f64, f64) = (1e-2, 1e2);
/// The least prior variance of a layer's weights: near it the layer is gone.
const LEAST_LAYER_VARIANCE: f64 = 1e-6;

/// Laplace's approximation at a minimum.
pub(super) struct Laplace {
    /// The posterior of θ.
    pub posterior: Posterior,
    /// What the data say about the model.
    pub evidence: Evidence,
    /// The mean of ν²/s: near 1 where the innovations are as large as the filter says.
    pub consistency: f64,
}

/// Which weights share a prior variance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// All of a network.
    Network,
    /// Those of each layer, biases included: functions that the data do not ask for to bend then need not. By
    /// themselves biases would be worth a variance of zero where the data hardly feel them, and a network that is odd
    /// about wherever its argument was centred determines what it has no reason to.
    Layer,
}

/// A matrix of a network's weights, or the biases of a layer.
struct Block {
    /// Its entries of θ.
    range: Range<usize>,
    /// The number of terms that each of them is summed over.
    terms: usize,
    is_bias: bool,
}

/// The blocks of a network whose weights begin at an entry of θ.
fn blocks(network: &Network, start: usize) -> Vec<Block> {
    let mut at = start;
    let blocks = network.blocks().into_iter();
    let blocks = blocks.map(|(name, rows, columns)| {
        let range = at..at + rows * columns;
        at = range.end;
        Block {
            range,
            terms: columns,
            is_bias: name.ends_with(".bias"),
        }
    });
    blocks.collect()
}

/// For each weight of a model, the number of terms that it is summed with.
pub(super) fn terms(model: &Model) -> Vec<(usize, usize)> {
    let networks = model.system.networks().iter();
    let networks = networks.zip(model.system.weight_ranges());
    let blocks = networks.flat_map(|(network, range)| blocks(network, range.start));
    let terms = blocks.flat_map(|block| block.range.map(move |entry| (entry, block.terms)));
    terms.collect()
}

impl Sharing {
    /// The groups of a model's weights, as entries of θ.
    fn groups(self, model: &Model) -> Vec<Range<usize>> {
        let networks = model.system.networks().iter();
        let networks = networks.zip(model.system.weight_ranges());
        let groups = networks.flat_map(|(network, range)| match self {
            Self::Network => vec![range],
            Self::Layer => {
                let mut layers: Vec<Range<usize>> = vec![];
                for block in blocks(network, range.start) {
                    match layers.last_mut() {
                        Some(layer) if block.is_bias => layer.end = block.range.end,
                        _ => layers.push(block.range),
                    }
                }
                layers
            }
        });
        groups.filter(|group| !group.is_empty()).collect()
    }

    fn bounds(self) -> (f64, f64) {
        match self {
            Self::Network => VARIANCE_BOUNDS,
            Self::Layer => (LEAST_LAYER_VARIANCE, VARIANCE_BOUNDS.1),
        }
    }
}

/// What the data say about a model as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// ln p(y).
    pub log: f64,
    /// γ: how many directions of θ the data determine, of all.
    pub determined: f64,
    pub directions: usize,
    /// The same for each unknown constant and each network by itself.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// The variances of the prior of θ at the end; none in a folder of an earlier version.
    #[serde(default)]
    pub prior: Vec<f64>,
}

described! {
/// A part of θ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Of a constant or a network.
    pub name: String,
    pub determined: f64,
    pub directions: usize,
}
}

/// The posterior of θ around the minimum.
#[derive(Clone)]
pub(super) struct Posterior {
    /// λ.
    values: Vec<f64>,
    /// V.
    vectors: Matrix,
    /// The diagonal of P_θ0^½.
    root: Vec<f64>,
    /// b: how the data pull at θ.
    data: Vec<f64>,
}

impl Posterior {
    /// From the normal equations of θ and the variances of its prior.
    pub fn new(equations: &NormalEquations, prior: &[f64]) -> Self {
        let root: Vec<f64> = prior.iter().map(|p| p.sqrt()).collect();
        let Eigen { values, vectors } = equations.spectrum(&root);
        Self {
            values,
            vectors,
            root,
            data: equations.b.clone(),
        }
    }

    /// How data and prior together pull at an entry of θ: zero at a minimum, but where a bound holds it.
    pub fn pull(&self, i: usize, theta: &[f64]) -> f64 {
        self.data[i] - theta[i] / self.root[i].powi(2)
    }

    /// The standard deviation of an entry of θ before the data.
    pub fn prior_std(&self, i: usize) -> f64 {
        self.root[i]
    }

    /// ½ ln det(I + P_θ0 A): what the width of the posterior takes from ln p(y).
    pub fn volume(&self) -> f64 {
        0.5 * self.values.iter().map(|v| v.ln_1p()).sum::<f64>()
    }

    /// A column of the covariance of θ.
    pub fn column(&self, i: usize) -> Vec<f64> {
        let values = self.values.iter().enumerate();
        let scaled = values.map(|(k, v)| self.root[i] * self.vectors[(i, k)] / (1.0 + v));
        let scaled: Vec<f64> = scaled.collect();
        let row = |j: usize| {
            (0..scaled.len())
                .map(|k| self.vectors[(j, k)] * scaled[k])
                .sum::<f64>()
        };
        (0..scaled.len()).map(|j| self.root[j] * row(j)).collect()
    }

    /// The posterior if the data held so many times less information.
    pub fn inflated(mut self, factor: f64) -> Self {
        self.values.iter_mut().for_each(|v| *v /= factor);
        self.data.iter_mut().for_each(|b| *b /= factor);
        self
    }

    /// The evidence, where `likelihood` is −½ Σ ln 2πs − L.
    pub fn evidence(&self, model: &Model, likelihood: f64) -> Evidence {
        let known = self.values.iter().map(|v| v / (1.0 + v));
        let part = |name: &str, range: Range<usize>| Part {
            name: name.into(),
            directions: range.len(),
            determined: range.map(|i| self.share(i)).sum(),
        };
        let constants = model.unknowns.iter().enumerate();
        let constants = constants.map(|(i, unknown)| part(&unknown.name, i..i + 1));
        let networks = model.system.networks().iter();
        let networks = networks.zip(model.system.weight_ranges());
        let networks = networks.map(|(network, range)| part(&network.name, range));
        Evidence {
            log: likelihood - self.volume(),
            determined: known.sum(),
            directions: self.values.len(),
            parts: constants.chain(networks).collect(),
            prior: self.root.iter().map(|r| r * r).collect(),
        }
    }

    /// The prior variances at which the evidence is stationary, for θ as it is: those of a group
    /// keep their ratios.
    pub fn next_prior(&self, model: &Model, theta: &[f64], sharing: Sharing) -> Vec<f64> {
        let mut next: Vec<f64> = self.root.iter().map(|r| r * r).collect();
        let (least, most) = sharing.bounds();
        for range in sharing.groups(model) {
            let variances = &mut next[range.clone()];
            let square: f64 = theta[range.clone()]
                .iter()
                .zip(&*variances)
                .map(|(t, p)| t * t / p)
                .sum();
            let gamma: f64 = range.clone().map(|i| self.share(i)).sum();
            let mean = variances.iter().sum::<f64>() / variances.len() as f64;
            let factor = (mean * square / gamma.max(1.0)).clamp(least, most) / mean;
            variances.iter_mut().for_each(|p| *p *= factor);
        }
        next
    }

    /// How much of a parameter's prior variance the data have taken away: 1 − C_ii/P_ii.
    fn share(&self, i: usize) -> f64 {
        let values = self.values.iter().enumerate();
        values
            .map(|(k, v)| self.vectors[(i, k)].powi(2) * v / (1.0 + v))
            .sum()
    }

    /// The covariance of θ.
    pub fn covariance(&self, precision: Precision) -> PackedCovariance {
        let n = self.root.len();
        let half = Matrix::from_fn(n, n, |i, k| {
            self.root[i] * self.vectors[(i, k)] / (1.0 + self.values[k]).sqrt()
        });
        let mut full = Matrix::zeros(n, n);
        let (target, other) = (full.part_mut(0..n, 0..n), half.view().transposed());
        product::add_lower(simd::arch(), target, 1.0, half.view(), other);
        let lower = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let packed = lower.map(|(i, j)| full[(i, j)]).collect();
        PackedCovariance::from_packed(n, packed, precision)
    }

    /// Draws of δθ, the same for the same posterior.
    pub fn draws(&self, count: usize) -> Vec<Vec<f64>> {
        let n = self.root.len();
        let mut rng = Pcg64::seed_from_u64(1);
        let mut draw = || {
            let scaled = |v: &f64| {
                let z: f64 = StandardNormal.sample(&mut rng);
                z / (1.0 + v).sqrt()
            };
            let z: Vec<f64> = self.values.iter().map(scaled).collect();
            let row = |i: usize| (0..n).map(|k| self.vectors[(i, k)] * z[k]).sum::<f64>();
            (0..n).map(|i| self.root[i] * row(i)).collect()
        };
        (0..count).map(|_| draw()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Smoother;
    use crate::numerics::Trajectory;
    use crate::numerics::linalg::normal;
    use crate::numerics::objective::{Noise, half_square};
    use crate::numerics::step::Stepper;
    use crate::record::Record;

    /// On a problem linear in states and weights, where the evidence is exact, MacKay's iteration
    /// ends at a variance where it is highest.
    #[test]
    fn the_prior_asked_for_makes_the_evidence_stationary() {
        let text = "[time]\nstep = 0.1\n[inputs]\nu = {}\nw = {}\n\
                    [states.x]\nderivative = \"net(u, w, u*w, u^2) - x\"\n\
                    [measurements]\ny = \"x\"\n[networks.net]\nlayers = []\n";
        let model = Model::from_text("linear", text).unwrap();
        let samples = 80;
        let wave = |k: usize, speed: f64| (speed * k as f64).sin();
        let record = Record {
            name: "waves".into(),
            time: (0..samples).map(|k| k as f64 * 0.1).collect(),
            inputs: (0..samples)
                .flat_map(|k| [wave(k, 0.7), wave(k, 0.31)])
                .collect(),
            outputs: (0..samples)
                .map(|k| wave(k, 0.31) + 0.4 * wave(k, 1.9))
                .collect(),
            truth: None,
            d_u: 2,
            d_y: 1,
            d_x: 1,
            later: false,
        };
        let noise = Noise {
            process: vec![0.01],
            measurement: vec![0.02],
            start_mean: vec![0.0],
            start: vec![1.0],
        };
        let stepper = Stepper::new(&model, &model.system, 0.1);
        let zero = vec![0.0; model.system.parameters()];
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &zero,
            noise: &noise,
        };
        let states = Trajectory::filled(0.0, samples, 1);
        let (equations, pass) = smoother.eliminate(&states, 1, 0);
        let passes = [pass];
        let at = |variance: f64| {
            let prior = vec![variance; zero.len()];
            let factor = equations.factor(&vec![1.0 / variance; zero.len()]).unwrap();
            // one step from zero is the minimum, the states eliminated
            let theta = normal::solve(&factor, &equations.b);
            let means = smoother.shift(&states, &theta, &passes[0]);
            let cost = passes[0].half_square(&means) + half_square(theta.iter().copied(), &prior);
            let posterior = Posterior::new(&equations, &prior);
            // −½ Σ ln 2πs is the same for every prior
            let next = posterior.next_prior(&model, &theta, Sharing::Network)[0];
            (posterior.evidence(&model, -cost), next)
        };
        let mut variance = 1.0;
        for _ in 0..200 {
            variance = at(variance).1;
        }
        let (evidence, next) = at(variance);
        assert!((next / variance - 1.0).abs() < 1e-9, "converged");
        assert!(
            VARIANCE_BOUNDS.0 < variance && variance < VARIANCE_BOUNDS.1,
            "{variance}"
        );
        assert!(evidence.determined > 1.0 && evidence.determined < zero.len() as f64);
        for factor in [0.9, 1.1] {
            assert!(at(factor * variance).0.log < evidence.log, "{factor}");
        }
        let slope = (at(1.001 * variance).0.log - at(variance / 1.001).0.log) / 2e-3;
        assert!(
            slope.abs() < 1e-5,
            "{slope} by the logarithm of the variance"
        );
    }
}
