//! What a fit knows of a network: its values where training took it, and how well the data determine
//! them.
//!
//! The values at M points are normal around the network's own, with the covariance J P_θ Jᵀ of the
//! posterior, J their derivative by the weights. Divided by its Cholesky factor they are independent and of
//! variance one: what the data determine well weighs much, what they leave to the prior nothing.

use latens::model::System;
use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::matrix::Matrix;
use latens::{Error, Fit};

/// Points at the most: spread over all that training met, of all records.
const POINTS: usize = 300;
/// What a network cannot say of a formula, as a part of the size of its values.
const FLOOR: f64 = 1e-4;

/// One output of one network: what a formula is to stand for.
pub struct Target {
    /// The network, and which of its outputs.
    pub network: usize,
    pub output: usize,
    /// Its arguments at each point.
    pub points: Vec<Vec<f64>>,
    /// Its value at each point.
    pub values: Vec<f64>,
    /// The same, independent and of variance one.
    pub white: Vec<f64>,
    factor: Factor,
}

impl Target {
    /// All outputs of all networks of a fit.
    ///
    /// # Errors
    /// [`Error::Setting`] where there is no network, or nothing is known of where it was trained.
    pub fn all(fit: &Fit) -> Result<Vec<Self>, Error> {
        let networks = fit.model.system.networks();
        if networks.is_empty() {
            return Err(Error::Setting("this fit has no network: there is nothing to find a formula for; `constants` has its unknown constants".into()));
        }
        let mut found = vec![];
        for (n, network) in networks.iter().enumerate() {
            let region = fit.facts.regions.get(n);
            let Some(region) = region.filter(|r| r.points.len() > 10) else {
                return Err(Error::Setting(format!(
                    "nothing is known of where the network `{}` was trained; fit again with this version",
                    network.name
                )));
            };
            if network.absent {
                return Err(Error::Setting("the data asked for no network, and the fit has none: the known equations alone explain them".into()));
            }
            for output in 0..network.outputs.len() {
                found.push(Self::new(fit, n, output, &region.points)?);
            }
        }
        Ok(found)
    }

    fn new(fit: &Fit, n: usize, output: usize, scaled: &[Vec<f64>]) -> Result<Self, Error> {
        let system: &System = &fit.model.system;
        let network = &system.networks()[n];
        let range = system.weight_ranges()[n].clone();
        let weights = &fit.theta[range.clone()];
        let mut trace = network.trace();
        let (mut points, mut values, mut rows) = (vec![], vec![], vec![]);
        for scaled in scaled.iter().take(POINTS) {
            let scaling = network.scaling.center.iter().zip(&network.scaling.scale);
            let point: Vec<f64> = scaled
                .iter()
                .zip(scaling)
                .map(|(z, (c, s))| c + s * z)
                .collect();
            for (j, value) in point.iter().enumerate() {
                network.set_argument(&mut trace, j, *value);
            }
            network.evaluate(weights, &mut trace);
            network.differentiate(weights, &mut trace);
            let mut row = vec![0.0; weights.len()];
            network.accumulate_gradient(&trace, output, 1.0, &mut row);
            values.push(trace.output[output]);
            points.push(point);
            rows.push(row);
        }
        let (m, d) = (points.len(), weights.len());
        let packed = fit.covariance.clone().to_packed();
        let entry = |i: usize, j: usize| {
            let (i, j) = (i + range.start, j + range.start);
            packed[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)]
        };
        let jacobian = Matrix::from_fn(m, d, |i, j| rows[i][j]);
        let covariance = Matrix::from_fn(d, d, entry);
        let mut half = Matrix::zeros(m, d);
        half.add_product(1.0, jacobian.view(), covariance.view());
        let mut sigma = Matrix::zeros(m, m);
        sigma.add_product(1.0, half.view(), jacobian.view().transposed());
        let size = (values.iter().map(|v| v * v).sum::<f64>() / m as f64).sqrt();
        let least = (FLOOR * size).powi(2);
        let mut factor = None;
        for k in 0..8 {
            let shift = least * 10f64.powi(k) + 1e-300;
            let shifted = Matrix::from_fn(m, m, |i, j| {
                sigma[(i, j)] + if i == j { shift } else { 0.0 }
            });
            factor = Factor::new(shifted);
            if factor.is_some() {
                break;
            }
        }
        let Some(factor) = factor else {
            return Err(Error::Setting(format!(
                "the posterior of the network `{}` is no normal one",
                network.name
            )));
        };
        Ok(Self {
            network: n,
            output,
            white: factor.whiten(&values),
            points,
            values,
            factor,
        })
    }

    /// Values at the points, in units in which those of the network are independent and of variance one.
    pub fn whiten(&self, values: &[f64]) -> Vec<f64> {
        self.factor.whiten(values)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// An argument at all points.
    pub fn argument(&self, j: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        self.points.iter().map(move |p| p[j])
    }
}
