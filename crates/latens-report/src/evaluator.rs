//! A network of a run at any arguments: its outputs, how sure the run is of them, and whether training met
//! the like.

use std::ops::Range;

use latens::fit::Fit;
use latens::model::network::{Network, Trace};
use latens::numerics::linalg::PackedCovariance;

/// The uncertainty of θ.
enum Spread<'a> {
    Draws(&'a [Vec<f64>]),
    Covariance(Box<PackedCovariance>),
}

impl Spread<'_> {
    /// Standard deviation of what has this gradient by some entries of θ.
    fn std(&mut self, range: &Range<usize>, gradient: &[f64]) -> f64 {
        match self {
            Self::Draws(draws) => {
                let along = |draw: &Vec<f64>| -> f64 {
                    let pairs = draw[range.clone()].iter().zip(gradient);
                    pairs.map(|(d, g)| d * g).sum()
                };
                let square: f64 = draws.iter().map(|d| along(d).powi(2)).sum();
                (square / draws.len() as f64).sqrt()
            }
            Self::Covariance(covariance) => {
                let mut whole = vec![0.0; covariance.dim()];
                whole[range.clone()].copy_from_slice(gradient);
                let mut product = vec![0.0; whole.len()];
                covariance.apply(&whole, &mut product);
                let variance: f64 = whole.iter().zip(&product).map(|(g, p)| g * p).sum();
                variance.max(0.0).sqrt()
            }
        }
    }
}

/// A network of a run at any arguments.
pub struct Evaluator<'r> {
    run: &'r Fit,
    place: usize,
    network: &'r Network,
    range: Range<usize>,
    spread: Spread<'r>,
    trace: Trace,
    gradient: Vec<f64>,
}

impl<'r> Evaluator<'r> {
    /// The network at a place among the model's.
    pub fn new(run: &'r Fit, place: usize) -> Self {
        let network = &run.model.system.networks()[place];
        let range = run.model.system.weight_ranges()[place].clone();
        Self {
            spread: if run.draws.is_empty() {
                Spread::Covariance(Box::new(run.covariance.clone()))
            } else {
                Spread::Draws(&run.draws)
            },
            trace: network.trace(),
            gradient: vec![0.0; range.len()],
            run,
            place,
            network,
            range,
        }
    }

    /// Each output with its standard deviation by the uncertainty of θ.
    pub fn at(&mut self, arguments: &[f64]) -> Vec<(f64, f64)> {
        let (network, weights) = (self.network, &self.run.theta[self.range.clone()]);
        for (i, v) in arguments.iter().enumerate() {
            network.set_argument(&mut self.trace, i, *v);
        }
        network.evaluate(weights, &mut self.trace);
        network.differentiate(weights, &mut self.trace);
        let outputs = 0..network.outputs.len();
        let output = |k| {
            self.gradient.fill(0.0);
            network.accumulate_gradient(&self.trace, k, 1.0, &mut self.gradient);
            let std = self.spread.std(&self.range, &self.gradient);
            (self.trace.output[k], std)
        };
        outputs.map(output).collect()
    }

    /// Whether training has met the like of these arguments.
    pub fn visited(&self, arguments: &[f64]) -> bool {
        let scaling = &self.network.scaling;
        let scaled: Vec<f64> = (arguments.iter().zip(&scaling.center).zip(&scaling.scale))
            .map(|((v, c), s)| (v - c) / s)
            .collect();
        let region = self.run.facts.regions.get(self.place);
        region.is_none_or(|r| r.distance(&scaled) <= 1.0)
    }
}
