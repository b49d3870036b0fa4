//! The constants of a formula, by Levenberg and Marquardt's least squares on the white values of a network.

use latens::numerics::linalg::cholesky::Factor;
use latens::numerics::linalg::matrix::Matrix;

use crate::formula::{Compiled, Formula};
use crate::samples::Target;

/// Steps at the most, and the relative gain below which there is no further one.
const STEPS: usize = 60;
const LEAST_GAIN: f64 = 1e-7;

/// A formula whose constants are the best ones.
#[derive(Debug, Clone)]
pub struct Refined {
    /// With those constants.
    pub formula: Formula,
    /// Sum of the squares of what it leaves of the white values.
    pub misfit: f64,
    /// How large each constant may be: a factor makes its term as large as the network, an inner constant is
    /// of its own size.
    pub scales: Vec<f64>,
    /// Root mean square of what it leaves of the values, over theirs.
    pub error: f64,
    /// The lower, the better: misfit, and constants counted.
    pub score: f64,
}

/// χ² where the formula is within the posterior, the logarithm of its size where it is far outside: there
/// the network's own error is the larger one. Each constant costs ½ ln M, as in Schwarz's criterion.
pub fn score(misfit: f64, points: usize, constants: usize) -> f64 {
    let m = points as f64;
    m * (misfit / m).ln_1p() + constants as f64 * m.ln()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The best constants near those that it has; `None` where it leaves the finite numbers.
pub fn refine(target: &Target, formula: &Formula) -> Option<Refined> {
    let count = formula.constants.len();
    let arguments = target.points.first()?.len();
    let compiled = Compiled::new(&[&formula.text], arguments, count).ok()?;
    let residual = |values: &[f64]| -> Option<Vec<f64>> {
        let white = target.whiten(values);
        let left: Vec<f64> = target
            .white
            .iter()
            .zip(&white)
            .map(|(y, f)| y - f)
            .collect();
        left.iter().all(|r| r.is_finite()).then_some(left)
    };
    let mut constants = formula.constants.clone();
    let (mut values, mut slopes) = compiled.slopes(&target.points, &constants);
    let mut left = residual(&values)?;
    let mut misfit = dot(&left, &left);
    let mut damping = 1e-4;
    for _ in 0..STEPS {
        let white: Vec<Vec<f64>> = slopes.iter().map(|s| target.whiten(s)).collect();
        if white.iter().flatten().any(|v| !v.is_finite()) {
            return None;
        }
        let gram = Matrix::from_fn(count, count, |i, j| dot(&white[i], &white[j]));
        let size: Vec<f64> = (0..count)
            .map(|i| gram[(i, i)].sqrt().max(1e-150))
            .collect();
        let pull: Vec<f64> = white.iter().map(|w| dot(w, &left)).collect();
        let scaled = |shift: f64| {
            let matrix = Matrix::from_fn(count, count, |i, j| {
                gram[(i, j)] / (size[i] * size[j]) + if i == j { shift } else { 0.0 }
            });
            Factor::new(matrix)
        };
        let mut gained = false;
        for _ in 0..12 {
            let right: Vec<f64> = pull.iter().zip(&size).map(|(p, s)| p / s).collect();
            let step = scaled(damping).map(|factor| factor.solve(&right));
            let next: Option<Vec<f64>> = step.map(|step| {
                let entries = constants.iter().zip(step.iter().zip(&size));
                entries.map(|(c, (d, s))| c + d / s).collect()
            });
            let tried = next.and_then(|next| {
                let (values, slopes) = compiled.slopes(&target.points, &next);
                let left = residual(&values)?;
                Some((dot(&left, &left), next, left, slopes, values))
            });
            match tried {
                Some((better, next, r, s, v)) if better < misfit => {
                    gained = misfit - better > LEAST_GAIN * misfit;
                    (misfit, constants, left, slopes, values) = (better, next, r, s, v);
                    damping = (damping * 0.1_f64).max(1e-12);
                    break;
                }
                _ => damping *= 10.0,
            }
        }
        if !gained {
            break;
        }
    }
    let formula = formula.at(&constants);
    let left: Vec<f64> = target
        .values
        .iter()
        .zip(&values)
        .map(|(y, f)| y - f)
        .collect();
    let size = dot(&target.values, &target.values);
    Some(Refined {
        score: score(misfit, target.count(), count),
        scales: scales(target, &formula, &slopes),
        error: (dot(&left, &left) / size).sqrt(),
        formula,
        misfit,
    })
}

/// See [`Refined::scales`].
pub(crate) fn scales(target: &Target, formula: &Formula, slopes: &[Vec<f64>]) -> Vec<f64> {
    let size = |values: &[f64]| (dot(values, values) / values.len() as f64).sqrt();
    let network = size(&target.values);
    let mut inner = vec![true; formula.constants.len()];
    let mut at = 0;
    for term in &formula.terms {
        inner[at] = false;
        at += 1 + term.inner.len();
    }
    let entries = formula.constants.iter().zip(slopes).zip(inner);
    entries
        .map(|((constant, slope), inner)| {
            let as_large = network / size(slope);
            let magnitude = constant.abs();
            let scale = if inner && magnitude > 0.0 {
                magnitude
            } else {
                as_large
            };
            if scale.is_finite() && scale > 0.0 {
                scale
            } else {
                1.0
            }
        })
        .collect()
}
