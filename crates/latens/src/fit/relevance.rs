//! Which arguments of a network the data give reason to depend on.
//!
//! What a fit knows of a function are its values f at points that training met, with their posterior
//! covariance Σ. How likely they are under all smooth functions of some of the arguments is the evidence of a
//! Gaussian process, at its best length and size:
//!
//! ```text
//! ln p(f | arguments A) = max over ℓ, a of  ln N(f; 0, a² K_A(ℓ) + Σ)
//! ```
//!
//! An argument without which f is as likely is left out, the least needed first; those that stay are needed given each
//! other. Weights alone would not do: a network whose arguments follow from each other along the record uses
//! all of them, and the derivative at its own weights knows of no other way.

use serde::{Deserialize, Serialize};

use super::Fit;
use super::known::KnownOutput;
use crate::described;
use crate::numerics::linalg::cholesky::Factor;
use crate::numerics::linalg::matrix::Matrix;

/// Points at the most.
const MOST_POINTS: usize = 120;
/// What a network cannot say of a function, as a part of the size of its values.
const VALUE_FLOOR_PART: f64 = 1e-4;
/// Lengths, in the scale of the arguments, and sizes, in that of the values, that are tried.
const LENGTH_SCALES: [f64; 5] = [0.5, 1.0, 2.0, 4.0, 8.0];
const VALUE_SIZES: [f64; 3] = [1.0, 10.0, 100.0];
/// ln p that an argument has to add for the data to give reason for it.
const REASON_LOG_EVIDENCE: f64 = 3.0;

described! {
/// Whether the data give reason for a network to depend on an argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relevance {
    /// The network.
    pub network: String,
    /// The argument, as it stands in the model file.
    pub argument: String,
    /// Whether they do. Arguments for which there is no reason can be left out all together.
    pub needed: bool,
    /// ln p with it less ln p without it: given the arguments that are needed and, for one that is not,
    /// those that were left out after it.
    pub evidence: f64,
}
}

/// Of all networks; none of one whose posterior is not to be trusted.
pub(super) fn relevance(fit: &Fit) -> Vec<Relevance> {
    if fit.draws.is_empty() || fit.facts.evidence.is_none() {
        return vec![];
    }
    let networks = fit.model.system.networks().iter().enumerate();
    let relevances = networks.flat_map(|(n, network)| {
        let outputs = 0..network.outputs.len();
        let known: Option<Vec<Function>> = outputs
            .map(|k| fit.known_output(n, k, MOST_POINTS).and_then(Function::new))
            .collect();
        let Some(known) = known else { return vec![] };
        let texts = fit.model.arguments(n);
        let needs = needed(&known, network.arguments).into_iter().zip(texts);
        let named = needs.map(|(need, argument)| Relevance {
            network: network.name.clone(),
            argument,
            needed: need.is_needed,
            evidence: need.evidence,
        });
        named.collect()
    });
    relevances.collect()
}

/// An output, its values of size one.
struct Function {
    points: Vec<Vec<f64>>,
    values: Vec<f64>,
    covariance: Matrix,
}

impl Function {
    fn new(known: KnownOutput) -> Option<Self> {
        let m = known.values.len() as f64;
        let size = (known.values.iter().map(|v| v * v).sum::<f64>() / m).sqrt();
        let usable = size.is_finite() && size > 0.0;
        let mut covariance = known.covariance;
        covariance
            .data_mut()
            .iter_mut()
            .for_each(|v| *v /= size * size);
        usable.then(|| Self {
            points: known.scaled,
            values: known.values.iter().map(|v| v / size).collect(),
            covariance,
        })
    }

    /// ln p(f | arguments), up to what is the same for all.
    fn evidence(&self, arguments: &[usize]) -> f64 {
        let m = self.values.len();
        let square = |i: usize, k: usize| -> f64 {
            let (a, b) = (&self.points[i], &self.points[k]);
            arguments.iter().map(|&j| (a[j] - b[j]).powi(2)).sum()
        };
        let product = |i: usize, k: usize| -> f64 {
            let (a, b) = (&self.points[i], &self.points[k]);
            arguments.iter().map(|&j| a[j] * b[j]).sum()
        };
        let mut best = f64::NEG_INFINITY;
        for length in LENGTH_SCALES {
            for size in VALUE_SIZES {
                let matrix = Matrix::from_fn(m, m, |i, k| {
                    if k > i {
                        return 0.0;
                    }
                    let bent = (-0.5 * square(i, k) / (length * length)).exp();
                    let floor = if i == k {
                        VALUE_FLOOR_PART * VALUE_FLOOR_PART
                    } else {
                        0.0
                    };
                    size * size * bent + 1.0 + product(i, k) + self.covariance[(i, k)] + floor
                });
                if let Some(factor) = Factor::new(matrix) {
                    let white = factor.whiten(&self.values);
                    let misfit: f64 = white.iter().map(|v| v * v).sum();
                    best = best.max(-0.5 * (misfit + factor.log_determinant()));
                }
            }
        }
        best
    }
}

/// Whether an argument is needed, and the ln p that it adds.
#[derive(Debug, Clone)]
struct Need {
    is_needed: bool,
    evidence: f64,
}

/// The need of each argument.
fn needed(functions: &[Function], count: usize) -> Vec<Need> {
    let evidence =
        |arguments: &[usize]| functions.iter().map(|f| f.evidence(arguments)).sum::<f64>();
    let mut kept: Vec<usize> = (0..count).collect();
    let undecided = Need {
        is_needed: true,
        evidence: 0.0,
    };
    let mut needs = vec![undecided; count];
    let mut whole = evidence(&kept);
    while !kept.is_empty() {
        let without = |j: usize| -> f64 {
            let rest: Vec<usize> = kept.iter().copied().filter(|i| *i != j).collect();
            evidence(&rest)
        };
        let evidences: Vec<(usize, f64)> = kept.iter().map(|&j| (j, without(j))).collect();
        for &(j, without) in &evidences {
            needs[j].evidence = whole - without;
        }
        let least = evidences.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let Some(&(j, without)) = least else { break };
        if whole - without >= REASON_LOG_EVIDENCE {
            break;
        }
        needs[j] = Need {
            is_needed: false,
            evidence: whole - without,
        };
        kept.retain(|i| *i != j);
        whole = without;
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(points: Vec<Vec<f64>>, f: impl Fn(&[f64]) -> f64, variance: f64) -> Function {
        let m = points.len();
        Function {
            values: points.iter().map(|p| f(p)).collect(),
            points,
            covariance: Matrix::from_fn(m, m, |i, k| if i == k { variance } else { 0.0 }),
        }
    }

    /// Points that fill a cube.
    fn spread(count: usize) -> Vec<Vec<f64>> {
        let wave = |k: usize, j: f64| ((k + 1) as f64 * (1.3 + j)).sin();
        (0..count)
            .map(|k| vec![wave(k, 0.1), wave(k, 0.77), wave(k, 1.31)])
            .collect()
    }

    /// What a function depends on is needed, and nothing else, where the points fill the space.
    #[test]
    fn an_argument_that_does_nothing_is_not_needed() {
        let bent = function(spread(60), |x| x[0] * x[0] - x[2] + 0.5 * x[0] * x[2], 1e-6);
        let needs = needed(&[bent], 3);
        assert_eq!(
            needs.iter().map(|n| n.is_needed).collect::<Vec<_>>(),
            [true, false, true]
        );
        assert!(
            needs[0].evidence > 20.0 && needs[2].evidence > 20.0,
            "{needs:?}"
        );
    }

    /// Along a line two arguments follow from each other: one of them is left out, whichever the function
    /// was made of, and the other is needed.
    #[test]
    fn of_two_that_follow_from_each_other_one_is_needed() {
        let line = (0..60).map(|k| {
            let t = f64::from(k) / 30.0 - 1.0;
            vec![t, -t]
        });
        let needs = needed(
            &[function(line.collect(), |x| x[0] + x[0].powi(3), 1e-6)],
            2,
        );
        assert_eq!(needs.iter().filter(|n| n.is_needed).count(), 1, "{needs:?}");
    }

    /// Where the posterior allows a constant, there is reason for nothing.
    #[test]
    fn what_the_data_leave_open_gives_no_reason() {
        let needs = needed(&[function(spread(60), |x| 0.3 * x[0], 10.0)], 3);
        assert!(needs.iter().all(|n| !n.is_needed), "{needs:?}");
    }
}
