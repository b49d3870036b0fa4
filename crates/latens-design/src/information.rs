//! What a record would add to what a fit knows, linearised.
//!
//! The posterior of θ has the covariance P = B Bᵀ. A record whose states are eliminated, its start among them, leaves
//! normal equations with the matrix A (the rows of G in [`latens::filter`], in deviations of the noise); with it
//!
//! ```text
//! P' = (P⁻¹ + A)⁻¹ = B (I + Bᵀ A B)⁻¹ Bᵀ ,
//! ```
//!
//! which needs no inverse of P: what the data do not determine has a large variance and what they do a small one, many
//! decades apart. A quantity with the derivative j by θ has the variance ‖Bᵀ j‖² before and ‖R⁻¹ Bᵀ j‖² after, R the
//! Cholesky factor of I + Bᵀ A B.

use latens::Fit;
use latens::Record;
use latens::filter::Smoother;
use latens::numerics::Trajectory;
use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::eigen::Eigen;
use latens::numerics::linalg::matrix::Matrix;
use latens::numerics::linalg::normal::NormalEquations;
use latens::numerics::objective::Noise;
use latens::numerics::step::Stepper;

/// Products that A may take, and rows of it for each direction of θ that are taken in any case: of more, every which
/// one stands for all, since neighbouring samples say nearly the same.
const MOST_PRODUCTS: f64 = 2e9;
const ROWS_A_DIRECTION: usize = 4;

/// What a fit knows of θ.
pub struct Posterior<'f> {
    pub fit: &'f Fit,
    /// B, with P = B Bᵀ.
    root: Matrix,
}

impl<'f> Posterior<'f> {
    /// Of a fit; eigenvalues of P below rounding count as rounding.
    pub fn new(fit: &'f Fit) -> Self {
        let n = fit.theta.len();
        let found = Eigen::from_packed(n, fit.covariance.clone().to_packed());
        let most = found.values.last().copied().unwrap_or(0.0);
        let least = n as f64 * f64::EPSILON * most;
        let mut root = found.vectors;
        for (j, value) in found.values.iter().enumerate() {
            let size = value.max(least).sqrt();
            root.column_mut(j).iter_mut().for_each(|v| *v *= size);
        }
        Self { fit, root }
    }

    /// Bᵀ J, a column for each quantity.
    pub fn reduced(&self, slopes: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(self.root.columns(), slopes.columns());
        out.add_product(1.0, self.root.view().transposed(), slopes.view());
        out
    }

    /// B x.
    pub fn moved(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.root.rows()];
        for (j, x) in x.iter().enumerate() {
            let column = self.root.column(j).iter();
            out.iter_mut().zip(column).for_each(|(o, b)| *o += b * x);
        }
        out
    }

    /// Bᵀ x.
    pub fn seen(&self, x: &[f64]) -> Vec<f64> {
        let products = (0..self.root.columns()).map(|j| {
            let column = self.root.column(j).iter();
            column.zip(x).map(|(b, x)| b * x).sum()
        });
        products.collect()
    }

    /// Bᵀ A B.
    pub fn information(&self, equations: &NormalEquations) -> Matrix {
        let n = self.root.rows();
        let a = Matrix::from_fn(n, n, |i, j| equations.entry(i, j));
        let mut half = Matrix::zeros(n, n);
        half.add_product(1.0, a.view(), self.root.view());
        let mut whole = Matrix::zeros(n, n);
        whole.add_product(1.0, self.root.view().transposed(), half.view());
        whole
    }

    /// What a record would add along a trajectory; `None` where that is no number.
    pub fn with(&self, record: &Record, states: &Trajectory) -> Option<Factor> {
        let fit = self.fit;
        let stepper = Stepper::over(
            &fit.model,
            &fit.model.system,
            fit.facts.sample_time,
            [record],
        );
        let noise = self.noise(&stepper, record);
        let smoother = Smoother {
            stepper: &stepper,
            record,
            theta: &fit.theta,
            noise: &noise,
        };
        let readings = record.outputs.iter().filter(|y| !y.is_nan()).count();
        let d = fit.theta.len().max(1);
        let affordable = (readings as f64 * (d * d) as f64 / MOST_PRODUCTS).ceil() as usize;
        let thinning = affordable.min(readings / (ROWS_A_DIRECTION * d)).max(1);
        let (equations, _) = smoother.eliminate(states, thinning, 0);
        factor(self.information(&equations))
    }

    /// The noise with which a record of the fit's would be fitted: nothing is known of its start, and misfits
    /// that repeat themselves count for less.
    pub fn noise(&self, stepper: &Stepper, record: &Record) -> Noise {
        let fit = self.fit;
        let noise = fit
            .facts
            .noise
            .inflated(stepper, fit.facts.variance_inflation);
        let mut open = fit.predictor().open_start(record, &noise);
        open.vary_as(stepper, &noise);
        open
    }
}

/// The Cholesky factor of I + M.
pub fn factor(mut information: Matrix) -> Option<Factor> {
    let n = information.columns();
    for j in 0..n {
        information[(j, j)] += 1.0;
    }
    Factor::new(information)
}

/// Variances of quantities whose Bᵀ J is given: as they are, or after a record.
pub fn variances(reduced: &Matrix, after: Option<&Factor>) -> Vec<f64> {
    let variances = (0..reduced.columns()).map(|k| {
        let column = reduced.column(k);
        let square = |v: &[f64]| v.iter().map(|x| x * x).sum();
        after.map_or_else(|| square(column), |r| square(&r.whiten(column)))
    });
    variances.collect()
}
