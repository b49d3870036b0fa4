//! Small dense networks: value, derivative by argument and by weight, without allocation.
//!
//! ```text
//! z₀ = (a − centre)/scale              the arguments, scaled to order one
//! z_l = φ_l(W_l z_{l−1} + b_l)         hidden layers
//! o = s ∘ (W_L z_{L−1} + b_L + D z₀)   linear output; D only with a skip connection
//! ```
//!
//! One reverse sweep per output gives the sensitivities δ_l = ∂o_k/∂(W_l z_{l−1} + b_l); they
//! hold the derivative by the arguments, W₁ᵀδ₁/scale, and by every weight, δ_l ⊗ z_{l−1}.

mod activation;
mod lanes;
mod sweeps;

pub use activation::Activation;
pub use lanes::LaneTrace;
use std::fmt;
pub use sweeps::Trace;

use serde::{Deserialize, Serialize};

/// Centre and scale of the arguments, scale of the outputs. Not learned: set once, before a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// One for each argument.
    pub center: Vec<f64>,
    /// One for each argument.
    pub scale: Vec<f64>,
    /// One for each output.
    pub output: Vec<f64>,
}

/// Shape of a network; its weights are a slice of θ.
#[derive(Debug, Clone)]
pub struct Network {
    pub name: String,
    pub outputs: Vec<String>,
    /// Number of arguments.
    pub arguments: usize,
    /// Units and nonlinearity of each hidden layer.
    pub layers: Vec<(usize, Activation)>,
    /// Whether the arguments also enter the output directly, through D.
    pub skip: bool,
    /// Whether there is nothing of it: it puts out zero and has no weights.
    pub absent: bool,
    pub scaling: Scaling,
}

/// How much of a network there is: what the file says, or less where the data ask for no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// Nothing: it puts out zero.
    Absent,
    /// A linear function of its arguments.
    Linear,
    /// A linear function, and one hidden layer of few units.
    Few,
    /// What the file says.
    Whole,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("without networks"),
            Self::Linear => f.write_str("networks as linear functions"),
            Self::Few => write!(
                f,
                "networks of {} units beside linear ones",
                Self::FEW_UNITS
            ),
            Self::Whole => f.write_str("networks as the file has them"),
        }
    }
}

impl Structure {
    /// Units of [`Structure::Few`].
    const FEW_UNITS: usize = 5;

    /// A network of this structure, of one that is whole.
    pub(crate) fn applied_to(self, whole: &Network) -> Network {
        let (layers, skip) = match self {
            Self::Absent | Self::Linear => (vec![], false),
            Self::Few => {
                let first = whole.layers.first();
                let activation = first.map_or(Activation::Tanh, |layer| layer.1);
                (vec![(Self::FEW_UNITS, activation)], true)
            }
            Self::Whole => (whole.layers.clone(), whole.skip),
        };
        Network {
            layers,
            skip,
            absent: self == Self::Absent,
            ..whole.clone()
        }
    }
}

impl Network {
    fn hidden(&self) -> usize {
        self.layers.iter().map(|l| l.0).sum()
    }

    /// Widths of all layers from the arguments to the output.
    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![self.arguments];
        widths.extend(self.layers.iter().map(|l| l.0));
        widths.push(self.outputs.len());
        widths
    }

    /// Number of weights.
    pub fn weights(&self) -> usize {
        if self.absent {
            return 0;
        }
        let (mut count, mut width) = (0, self.arguments);
        for &(units, _) in &self.layers {
            count += (width + 1) * units;
            width = units;
        }
        count += (width + 1) * self.outputs.len();
        count + usize::from(self.skip) * self.arguments * self.outputs.len()
    }

    /// (name, rows, columns) of each block of weights, in their order in θ; biases have one column.
    pub fn blocks(&self) -> Vec<(String, usize, usize)> {
        if self.absent {
            return vec![];
        }
        let widths = self.widths();
        let mut blocks = Vec::new();
        for (l, w) in widths.windows(2).enumerate() {
            blocks.push((format!("layer{}.weight", l + 1), w[1], w[0]));
            blocks.push((format!("layer{}.bias", l + 1), w[1], 1));
        }
        if self.skip {
            blocks.push(("skip.weight".into(), self.outputs.len(), self.arguments));
        }
        blocks
    }

    /// A random start: Glorot's uniform weights, a small last layer, zero biases.
    ///
    /// The small last layer makes the first network nearly zero, so that a solver starts from
    /// the known equations; `uniform` gives numbers in [−1, 1).
    pub fn initialise(&self, weights: &mut [f64], mut uniform: impl FnMut() -> f64) {
        const LAST_LAYER_FACTOR: f64 = 0.1;
        if self.absent {
            return;
        }
        let widths = self.widths();
        let mut at = 0;
        weights.fill(0.0);
        for (l, w) in widths.windows(2).enumerate() {
            let last = l + 2 == widths.len();
            let bound =
                (6.0 / (w[0] + w[1]) as f64).sqrt() * if last { LAST_LAYER_FACTOR } else { 1.0 };
            for value in &mut weights[at..at + w[0] * w[1]] {
                *value = bound * uniform();
            }
            at += (w[0] + 1) * w[1];
        }
    }

    /// Makes a random start one of sharp bends, all over the range of the arguments: functions with
    /// steps or kinks are hard to reach from smooth ones.
    pub fn sharpen(&self, weights: &mut [f64], mut uniform: impl FnMut() -> f64) {
        const SHARPENING_FACTOR: f64 = 4.0;
        if self.absent {
            return;
        }
        let (arguments, units) = (self.widths()[0], self.widths()[1]);
        let bound = (6.0 / (arguments + units) as f64).sqrt();
        let (first, rest) = weights.split_at_mut(arguments * units);
        first.iter_mut().for_each(|w| *w *= SHARPENING_FACTOR);
        rest[..units].fill_with(|| SHARPENING_FACTOR * bound * uniform());
    }
}
