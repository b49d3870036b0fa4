//! How constants vary: the spread of a population, the pace of a walk.
//!
//! The smoother says of each record how its own value differs from the mean, ẑ ± √P, under a
//! population of variance s². What the data alone say of it is m ± √v with
//!
//! ```text
//! 1/v = 1/P − 1/s²,   m/v = ẑ/P
//! ```
//!
//! and m is a draw from N(μ, s² + v). The s² for which all of them are most likely, with μ integrated
//! out (restricted likelihood: three records say less of a spread than thirty), is found from these
//! numbers alone, without another pass. The pace of a walk is that under which the data are most
//! likely, linearised at the smoothed trajectory.
//!
//! Records of one group share their value, so that no record alone says it: the differences of groups
//! are entries of θ, and their spread is the variance of their prior. Of their posterior C, ẑ under a
//! population of variance s², all else integrated out, the data alone have said
//!
//! ```text
//! S = C⁻¹ − I/s²,   h = C⁻¹ ẑ
//! ```
//!
//! and 2 ln p(y | s²) = Σ h²s²/(1 + s²λ) − ln(1 + s²λ), over the eigenvalues λ of S, but for a constant. Where
//! the mean is all but free this is the restricted likelihood above.

use super::asked::Question;
use super::newton::{Iterate, Newton};
use super::place::Placed;
use crate::Error;
use crate::filter::Smoother;
use crate::model::Varies;
use crate::numerics::Trajectory;
use crate::numerics::linalg::eigen::Eigen;
use crate::numerics::linalg::matrix::Matrix;
use crate::numerics::objective::Noise;

/// A spread below this part of the scale of a constant is none.
pub const LEAST_SPREAD_PART: f64 = 1e-3;
/// Factors by which the pace of a walk is looked for, coarse ones first, in variances.
const PACE_FACTORS: [f64; 4] = [100.0, 10.0, 3.0, 1.5];
/// Moves by one factor at the most.
const MOST_MOVES: usize = 6;
/// Nothing has changed where ln s² has changed by less.
const SETTLED_LOG_CHANGE: f64 = 0.02;

/// What the data alone say of one record's difference from the mean.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    pub mean: f64,
    pub variance: f64,
}

/// The start of a state in a record that was smoothed.
pub struct RecordStart {
    /// What the data alone say of it, if anything.
    pub told: Option<Told>,
    /// The variance that is left there.
    pub variance: f64,
}

impl RecordStart {
    pub fn of(smoother: &Smoother, states: &Trajectory, state: usize) -> Self {
        let (n, spread) = (states.width(), smoother.noise.start[state]);
        let mut variance = spread;
        smoother.covariances(&smoother.forward(states), |k, p| {
            if k == 0 {
                variance = p[state * n + state];
            }
        });
        Self {
            told: Told::by(states.row(0)[state], variance, spread),
            variance,
        }
    }
}

impl Told {
    /// From what is known under a population of variance `spread`; `None` where the data say nothing.
    fn by(mean: f64, variance: f64, spread: f64) -> Option<Self> {
        let information = 1.0 / variance - 1.0 / spread;
        (information * spread > 1e-9).then(|| Self {
            mean: mean / (variance * information),
            variance: 1.0 / information,
        })
    }
}

/// Twice the restricted log likelihood of a population's variance, but for a constant.
fn likelihood(told: &[Told], spread: f64) -> f64 {
    let weights = told.iter().map(|t| 1.0 / (spread + t.variance));
    let total: f64 = weights.clone().sum();
    let middle = told.iter().zip(weights.clone());
    let middle = middle.map(|(t, w)| w * t.mean).sum::<f64>() / total;
    let misfit = told.iter().zip(weights.clone());
    let misfit: f64 = misfit.map(|(t, w)| w * (t.mean - middle).powi(2)).sum();
    weights.map(f64::ln).sum::<f64>() - total.ln() - misfit
}

/// A most likely variance, with the interval in which it lies with 95 %, by the likelihood.
#[derive(Debug, Clone, Copy)]
pub struct LikelyVariance {
    pub best: f64,
    pub low: f64,
    pub high: f64,
}

/// The most likely variance of a population, at least `least`.
pub fn spread(told: &[Told], least: f64) -> LikelyVariance {
    if told.len() < 2 {
        return LikelyVariance {
            best: least,
            low: least,
            high: f64::INFINITY,
        };
    }
    most_likely(least, |spread| likelihood(told, spread))
}

/// The same of groups, whose differences have such a covariance and such means under a population of
/// variance `assumed`.
pub fn spread_of_groups(
    covariance: &Matrix,
    means: &[f64],
    assumed: f64,
    least: f64,
) -> LikelyVariance {
    /// Below this part of the population's, information is rounding.
    const LEAST_INFORMATION: f64 = 1e-9;
    let Eigen { values, vectors } = Eigen::new(covariance);
    let told = values.iter().enumerate().filter_map(|(k, variance)| {
        let information = 1.0 / variance - 1.0 / assumed;
        let mean: f64 = means
            .iter()
            .zip(vectors.column(k))
            .map(|(m, v)| m * v)
            .sum();
        (information * assumed > LEAST_INFORMATION).then_some((information, mean / variance))
    });
    let told: Vec<(f64, f64)> = told.collect();
    most_likely(least, |spread| {
        let terms = told.iter().map(|(information, pull)| {
            let known = spread * information;
            pull * pull * spread / (1.0 + known) - known.ln_1p()
        });
        terms.sum()
    })
}

/// Where twice a log likelihood of a variance is highest, and where it is not clearly lower.
fn most_likely(least: f64, likelihood: impl Fn(f64) -> f64) -> LikelyVariance {
    /// Step of ln s², and the decades that are looked at.
    const LOG_STEP: f64 = 0.02;
    const DECADES: f64 = 12.0;
    /// The χ² of one degree of freedom is above this with 5 %: where twice the log likelihood is lower by no more.
    const LIKELY_DROP: f64 = 3.84;
    let steps = (DECADES * 10f64.ln() / LOG_STEP) as usize;
    let looked_at = (0..steps).map(|k| least * (k as f64 * LOG_STEP).exp());
    let values: Vec<(f64, f64)> = looked_at.map(|s| (s, likelihood(s))).collect();
    let best = values.iter().copied();
    let best = best.fold((least, f64::NEG_INFINITY), |best, next| {
        if next.1 > best.1 { next } else { best }
    });
    let likely = |v: &&(f64, f64)| v.1 > best.1 - LIKELY_DROP;
    let low = values.iter().find(likely).map_or(least, |v| v.0);
    let high = values.iter().rfind(likely).map_or(f64::INFINITY, |v| v.0);
    LikelyVariance {
        best: best.0,
        low,
        high,
    }
}

/// Spread and pace of all that varies, as the records ask for at an iterate; whether any has changed.
///
/// # Errors
/// Those of workers.
pub(super) fn settle(
    problem: &Placed,
    prior: &mut [f64],
    iterate: &Iterate,
    variance_inflation: f64,
    noise: &mut Noise,
) -> Result<bool, Error> {
    let before = noise.clone();
    let groups = settle_groups(
        problem,
        prior,
        iterate,
        &noise.inflated(problem.stepper, variance_inflation),
    )?;
    let prior = &*prior;
    let inflated = |noise: &Noise| noise.inflated(problem.stepper, variance_inflation);
    for (unknown, state) in problem.model.varying() {
        let unknown = &problem.model.unknowns[unknown];
        let least = (LEAST_SPREAD_PART * unknown.difference_scale()).powi(2);
        if unknown.varies == Some(Varies::Slowly) {
            noise.process[state] = pace(problem, prior, iterate, &inflated(noise), state)?;
            let along = along(problem, prior, iterate, &inflated(noise), state)?;
            noise.start[state] = along.max(least);
        } else {
            let newton = Newton::new(problem, prior, &inflated(noise));
            let question = Question::Told { state };
            let answers = newton.ask(&iterate.theta, question, &[&iterate.states])?;
            let told = answers.numbers.iter().filter_map(|told| match told[..] {
                [mean, variance] => Some(Told { mean, variance }),
                _ => None,
            });
            noise.start[state] = spread(&told.collect::<Vec<Told>>(), least).best;
        }
    }
    let changed = |before: &[f64], after: &[f64]| {
        let mut pairs = before.iter().zip(after);
        pairs.any(|(b, a)| (a / b).ln().abs() > SETTLED_LOG_CHANGE)
    };
    Ok(groups || changed(&before.start, &noise.start) || changed(&before.process, &noise.process))
}

/// The prior of how groups differ, as their records ask for at an iterate; whether it has changed.
fn settle_groups(
    problem: &Placed,
    prior: &mut [f64],
    iterate: &Iterate,
    noise: &Noise,
) -> Result<bool, Error> {
    let unknowns = problem.model.group_entries();
    if unknowns.is_empty() {
        return Ok(false);
    }
    let newton = Newton::new(problem, prior, noise);
    let posterior = newton.evidence(iterate, newton.thinning())?.posterior;
    let mut changed = false;
    for (_, entries) in unknowns {
        let columns: Vec<Vec<f64>> = entries.clone().map(|i| posterior.column(i)).collect();
        // where the step to the minimum leads, which is near
        let mean = |(column, i): (&Vec<f64>, usize)| {
            let pull = column.iter().enumerate();
            let step: f64 = pull
                .map(|(j, c)| c * posterior.pull(j, &iterate.theta))
                .sum();
            iterate.theta[i] + step
        };
        let means: Vec<f64> = columns.iter().zip(entries.clone()).map(mean).collect();
        let count = entries.len();
        let covariance = Matrix::from_fn(count, count, |i, j| columns[j][entries.start + i]);
        let assumed = prior[entries.start];
        let least = LEAST_SPREAD_PART * LEAST_SPREAD_PART;
        let spread = spread_of_groups(&covariance, &means, assumed, least).best;
        changed |= (spread / assumed).ln().abs() > SETTLED_LOG_CHANGE;
        prior[entries].fill(spread);
    }
    Ok(changed)
}

/// The mean square of a state that walks, over all samples: where another record may begin.
fn along(
    problem: &Placed,
    prior: &[f64],
    iterate: &Iterate,
    noise: &Noise,
    state: usize,
) -> Result<f64, Error> {
    let newton = Newton::new(problem, prior, noise);
    let squares = newton.ask(
        &iterate.theta,
        Question::Along { state },
        &[&iterate.states],
    )?;
    let (mut sum, mut count) = (0.0, 0.0);
    for square in squares.all() {
        sum += square;
        count += 1.0;
    }
    Ok(sum / count)
}

/// The variance by which a state walks in a sample under which the data are most likely.
fn pace(
    problem: &Placed,
    prior: &[f64],
    iterate: &Iterate,
    noise: &Noise,
    state: usize,
) -> Result<f64, Error> {
    let likelihood = |walk: f64| {
        let mut noise = noise.clone();
        noise.process[state] = walk;
        let newton = Newton::new(problem, prior, &noise);
        let likelihoods = newton.ask(&iterate.theta, Question::Likelihood, &[&iterate.states])?;
        Ok::<f64, Error>(likelihoods.all().sum())
    };
    let mut walk = noise.process[state];
    let mut best = likelihood(walk)?;
    for factor in PACE_FACTORS {
        for step in [factor, 1.0 / factor] {
            let mut moves = 0;
            while moves < MOST_MOVES {
                let value = likelihood(walk * step)?;
                if value.is_nan() || value <= best {
                    break;
                }
                (walk, best, moves) = (walk * step, value, moves + 1);
            }
            if moves > 0 {
                break;
            }
        }
    }
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws of a normal number by Box and Muller, from a sequence that fills the square evenly.
    fn normal(k: usize) -> f64 {
        let (a, b) = (
            (k as f64 * 2f64.sqrt()).fract(),
            (k as f64 * 3f64.sqrt()).fract(),
        );
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Where all records say equally much, the restricted likelihood has the closed form
    /// s² = Σ(m − m̄)²/(R − 1) − v, or nothing where that is negative; what the smoother shrinks
    /// under any assumed spread leads to the same.
    #[test]
    fn the_spread_is_that_of_an_analysis_of_variance() {
        for (count, variance) in [(4, 0.3), (12, 0.02), (40, 1.0)] {
            let means: Vec<f64> = (1..=count).map(|k| 2.0 * normal(k)).collect();
            let middle = means.iter().sum::<f64>() / count as f64;
            let square: f64 = means.iter().map(|m| (m - middle).powi(2)).sum();
            let expected = square / (count - 1) as f64 - variance;
            let assumed = 5.0;
            let told = means.iter().map(|m| {
                let left = 1.0 / (1.0 / variance + 1.0 / assumed);
                Told::by(m * left / variance, left, assumed).unwrap()
            });
            let told: Vec<Told> = told.collect();
            let LikelyVariance { best, low, high } = spread(&told, 1e-6);
            assert!((best / expected - 1.0).abs() < 0.02, "{best} {expected}");
            assert!(low < best && best < high);
        }
        let same: Vec<Told> = (0..9)
            .map(|_| Told {
                mean: 0.7,
                variance: 0.1,
            })
            .collect();
        assert_eq!(spread(&same, 1e-6).best, 1e-6);
    }

    /// Groups whose differences are learned with their mean, which is free: where all say equally much, the
    /// likelihood has the same closed form, and leads there from any assumed spread.
    #[test]
    fn the_spread_of_groups_is_that_of_an_analysis_of_variance() {
        for (count, variance, assumed) in [(3, 0.3, 5.0), (8, 0.02, 0.4), (20, 1.0, 2.0)] {
            let told: Vec<f64> = (1..=count).map(|k| 2.0 * normal(k)).collect();
            let middle = told.iter().sum::<f64>() / count as f64;
            let square: f64 = told.iter().map(|m| (m - middle).powi(2)).sum();
            let expected = square / (count - 1) as f64 - variance;
            // of the mean nothing is known before: of the differences only those from their middle are told
            let kept = 1.0 / (1.0 / variance + 1.0 / assumed);
            let part = 1.0 / count as f64;
            let covariance = Matrix::from_fn(count, count, |i, j| {
                let unit = f64::from(u8::from(i == j));
                kept * (unit - part) + assumed * part
            });
            let means = told.iter().map(|m| (m - middle) * kept / variance);
            let means: Vec<f64> = means.collect();
            let LikelyVariance { best, low, high } =
                spread_of_groups(&covariance, &means, assumed, 1e-6);
            assert!((best / expected - 1.0).abs() < 0.02, "{best} {expected}");
            assert!(low < best && best < high);
            let together = vec![0.0; count];
            assert_eq!(
                spread_of_groups(&covariance, &together, assumed, 1e-6).best,
                1e-6
            );
        }
    }

    /// A prior that the data do not move tells nothing.
    #[test]
    fn data_that_say_nothing_are_left_out() {
        assert!(Told::by(0.0, 2.0, 2.0).is_none());
        assert!(Told::by(0.1, 0.5, 2.0).is_some());
    }
}
