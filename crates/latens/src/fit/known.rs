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

impl Fit {
    /// An output of a network at no more than `most` of the points that training met, of all records and
    /// spread over all that was met; `None` where nothing is known of these.
    pub fn known_output(&self, network: usize, output: usize, most: usize) -> Option<KnownOutput> {
        let system = &self.model.system;
        let range = system.weight_ranges().get(network)?.clone();
        let region = self.facts.regions.get(network)?;
        let network = &system.networks()[network];
        if network.absent || region.points.is_empty() {
            return None;
        }
        let weights = &self.theta[range.clone()];
        let scaled: Vec<Vec<f64>> = region.points.iter().take(most).cloned().collect();
        let mut trace = network.trace();
        let (m, d) = (scaled.len(), weights.len());
        let (mut points, mut values) = (vec![], vec![]);
        let mut rows = Matrix::zeros(d, m);
        for (k, scaled) in scaled.iter().enumerate() {
            let scaling = network.scaling.center.iter().zip(&network.scaling.scale);
            let unscaled = scaled.iter().zip(scaling).map(|(z, (c, s))| c + s * z);
            let point: Vec<f64> = unscaled.collect();
            for (j, value) in point.iter().enumerate() {
                network.set_argument(&mut trace, j, *value);
            }
            network.evaluate(weights, &mut trace);
            network.differentiate(weights, &mut trace);
            network.accumulate_gradient(&trace, output, 1.0, rows.column_mut(k));
            values.push(trace.output[output]);
            points.push(point);
        }
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
            points,
            scaled,
            values,
            covariance,
        })
    }
}
