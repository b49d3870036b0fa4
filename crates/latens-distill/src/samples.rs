//! What a fit knows of a network: its values where training took it, and how well the data determine
//! them.
//!
//! The values at M points are normal around the network's own, with the covariance J P_θ Jᵀ of the
//! posterior, J their derivative by the weights. Divided by its Cholesky factor they are independent and of
//! variance one: what the data determine well weighs much, what they leave to the prior nothing.

use latens::fit::known::KnownOutput;
use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::matrix::Matrix;
use latens::{Error, Fit};

/// Points at the most: spread over all that training met, of all records.
const POINTS: usize = 300;
/// What a network cannot say of a formula, as a part of the size of its values.
const DEVIATION_FLOOR: f64 = 1e-4;

/// One output of one network: what a formula is to stand for.
pub struct Target {
    /// The network, and which of its outputs.
    pub network: usize,
    pub output: usize,
    /// Its arguments at each point.
    pub points: Vec<Vec<f64>>,
    /// Its value at each point.
    pub values: Vec<f64>,
    /// Its standard deviation there.
    pub std: Vec<f64>,
    /// The values, independent and of variance one.
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
            if network.absent {
                return Err(Error::Setting("the data asked for no network, and the fit has none: the known equations alone explain them".into()));
            }
            for output in 0..network.outputs.len() {
                found.push(Self::new(fit, n, output)?);
            }
        }
        Ok(found)
    }

    fn new(fit: &Fit, network: usize, output: usize) -> Result<Self, Error> {
        let name = &fit.model.system.networks()[network].name;
        let known = fit.known_output(network, output, POINTS);
        let known = known.ok_or_else(|| {
            Error::Setting(format!(
                "nothing is known of where the network `{name}` was trained; fit again with this version"
            ))
        })?;
        let target = Self::of(network, output, known);
        target.ok_or_else(|| {
            Error::Setting(format!(
                "the posterior of the network `{name}` is no normal one"
            ))
        })
    }

    /// Of what is known of an output; `None` where its covariance is none.
    pub fn of(network: usize, output: usize, known: KnownOutput) -> Option<Self> {
        let KnownOutput {
            points,
            values,
            covariance,
            ..
        } = known;
        let m = points.len();
        let size = (values.iter().map(|v| v * v).sum::<f64>() / m as f64).sqrt();
        let least = (DEVIATION_FLOOR * size).powi(2);
        // rounding may have taken more of the covariance than the floor
        let factor = (0..8).find_map(|k| {
            let shift = least * 10f64.powi(k) + f64::MIN_POSITIVE;
            Factor::new(Matrix::from_fn(m, m, |i, j| {
                covariance[(i, j)] + if i == j { shift } else { 0.0 }
            }))
        })?;
        Some(Self {
            network,
            output,
            std: (0..m).map(|k| covariance[(k, k)].max(0.0).sqrt()).collect(),
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
    pub fn count(&self) -> usize {
        self.points.len()
    }

    /// An argument at all points.
    pub fn argument(&self, j: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        self.points.iter().map(move |p| p[j])
    }
}
