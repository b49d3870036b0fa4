//! What a fit knows of a network's function: its values where training took it, and their posterior.

use super::Fit;
use crate::numerics::linalg::matrix::Matrix;

/// An output of a network at points that training met.
pub struct KnownOutput {
    /// Its arguments at each point.
    pub points: Vec<Vec<f64>>,
    /// The same in the network's own scale.
    pub scaled: Vec<Vec<f64>>,
    /// Its value at each point.
    pub values: Vec<f64>,
    /// Their covariance J P_θ Jᵀ, J their derivative by the weights.
    pub covariance: Matrix,
}

/// An output of a network at points.
pub struct Slopes {
    /// Its arguments at each point.
    pub points: Vec<Vec<f64>>,
    /// Its value at each point.
    pub values: Vec<f64>,
    /// J: the derivative by the weights of the network, a column for each point.
    pub slopes: Matrix,
}

impl Fit {
    /// An output of a network at no more than `most` of the points that training met, of all records and
    /// spread over all that was met; `None` where nothing is known of these.
    pub fn known_output(&self, place: usize, output: usize, most: usize) -> Option<KnownOutput> {
        let system = &self.model.system;
        let range = system.weight_ranges().get(place)?.clone();
        let region = self.facts.regions.get(place)?;
        let network = &system.networks()[place];
        if network.absent || region.points.is_empty() {
            return None;
        }
        let scaled: Vec<Vec<f64>> = region.points.iter().take(most).cloned().collect();
        let at = self.network_slopes(place, output, &scaled);
        let (m, d, rows) = (scaled.len(), range.len(), &at.slopes);
        let packed = self.covariance.clone().to_packed();
        let of_weights = Matrix::from_fn(d, d, |i, j| {
            let (i, j) = (i + range.start, j + range.start);
            packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)]
        });
        let mut half = Matrix::zeros(d, m);
        half.add_product(1.0, of_weights.view(), rows.view());
        let mut covariance = Matrix::zeros(m, m);
        covariance.add_product(1.0, rows.view().transposed(), half.view());
        Some(KnownOutput {
            points: at.points,
            scaled,
            values: at.values,
            covariance,
        })
    }

    /// An output of a network at points in its own scale, with its derivative by the weights.
    pub fn network_slopes(&self, place: usize, output: usize, scaled: &[Vec<f64>]) -> Slopes {
        let system = &self.model.system;
        let network = &system.networks()[place];
        let weights = &self.theta[system.weight_ranges()[place].clone()];
        let mut trace = network.trace();
        let (mut points, mut values) = (vec![], vec![]);
        let mut slopes = Matrix::zeros(weights.len(), scaled.len());
        for (k, scaled) in scaled.iter().enumerate() {
            let scaling = network.scaling.center.iter().zip(&network.scaling.scale);
            let unscaled = scaled.iter().zip(scaling).map(|(z, (c, s))| c + s * z);
            let point: Vec<f64> = unscaled.collect();
            for (j, value) in point.iter().enumerate() {
                network.set_argument(&mut trace, j, *value);
            }
            network.evaluate(weights, &mut trace);
            network.differentiate(weights, &mut trace);
            network.accumulate_gradient(&trace, output, 1.0, slopes.column_mut(k));
            values.push(trace.output[output]);
            points.push(point);
        }
        Slopes {
            points,
            values,
            slopes,
        }
    }
}
