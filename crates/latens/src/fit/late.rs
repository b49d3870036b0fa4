//! Whether an input acts late, or a sensor shows the past: the same thing seen from two ends.
//!
//! Where y is z through a sensor with time constant τ, and ż = f(z) + k u, then y follows the same
//! equation with u through that lag. The smoothed states then miss the learned equations by defects
//! k (F_τ u − u), F_τ being the lag. Defects are regressed on the inputs, the states and their powers,
//! which stand for what a change of θ could do, and on F_τ u over a grid of τ.

use super::Track;
use crate::model::Model;
use crate::numerics::linalg::cholesky::Factor;
use crate::numerics::linalg::matrix::Matrix;

/// Part of the squares of the defects that a lag must explain, beside what the equations could.
const EXPLAINED_SQUARES_PART: f64 = 0.6;
/// The factors of F_τ u and of u cancel up to this part.
const CANCELLED_FACTOR_PART: f64 = 0.5;
/// From one time constant to the next.
const LAG_GRID_RATIO: f64 = 1.3;
/// Added to the unit diagonal of the normal equations.
const DIAGONAL_RIDGE: f64 = 1e-10;
/// Samples at the most.
const MOST_SAMPLES: usize = 5000;

/// An input that acts late, or is seen late.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Late {
    pub input: String,
    /// Time constant.
    pub lag: f64,
    /// The part of the defects' squares that it explains.
    pub explained: f64,
}

/// The input of which a lag explains the defects of a smoothed trajectory.
pub(super) fn input(model: &Model, track: &Track) -> Option<Late> {
    let record = &track.record;
    let n = model.states.len();
    let samples = record.len().min(MOST_SAMPLES);
    let column = |matrix: &[f64], width: usize, j: usize| -> Vec<f64> {
        matrix
            .chunks_exact(width)
            .take(samples - 1)
            .map(|row| row[j])
            .collect()
    };
    let mut known = vec![vec![1.0; samples - 1]];
    for i in 0..n {
        let x = column(track.smoothed.as_slice(), n, i);
        let (low, high) = (
            x.iter().copied().fold(f64::INFINITY, f64::min),
            x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        let about =
            |v: &f64| (v - 0.5 * (low + high)) / (0.5 * (high - low)).max(f64::MIN_POSITIVE);
        for power in 1..=3 {
            known.push(x.iter().map(|v| about(v).powi(power)).collect());
        }
    }
    let mut best: Option<Late> = None;
    for row in model.system.unknown_rows() {
        let defects: Vec<f64> = (1..samples)
            .map(|k| {
                (track.smoothed.row(k)[*row] - track.one_step.row(k)[*row]) / record.gap(k - 1)
            })
            .collect();
        for (j, name) in model.inputs.iter().enumerate() {
            let inputs = (0..model.inputs.len()).filter(|i| *i != j);
            let mut columns = known.clone();
            columns.extend(inputs.map(|i| column(&record.inputs, record.d_u, i)));
            columns.push(column(&record.inputs, record.d_u, j));
            let Some(without_lag) = regress(&columns, &defects) else {
                continue;
            };
            let duration = record.time[samples - 1] - record.time[0];
            let mut lag = record.step();
            while lag < 0.1 * duration {
                let late = lagged(
                    &record.time[..samples - 1],
                    &columns[columns.len() - 1],
                    lag,
                );
                columns.push(late);
                if let Some(Regression { left, factors }) = regress(&columns, &defects) {
                    let explained = 1.0 - left / without_lag.left;
                    let [now, then] = [factors[factors.len() - 2], factors[factors.len() - 1]];
                    let shifted =
                        now * then < 0.0 && (now + then).abs() < CANCELLED_FACTOR_PART * then.abs();
                    let better = best.as_ref().is_none_or(|b| explained > b.explained);
                    if shifted && explained >= EXPLAINED_SQUARES_PART && better {
                        best = Some(Late {
                            input: name.name.clone(),
                            lag,
                            explained,
                        });
                    }
                }
                columns.pop();
                lag *= LAG_GRID_RATIO;
            }
        }
    }
    best
}

/// A signal through a first-order lag.
fn lagged(time: &[f64], signal: &[f64], lag: f64) -> Vec<f64> {
    let mut state = signal[0];
    let mut late = vec![state];
    for k in 1..signal.len() {
        let keep = (-(time[k] - time[k - 1]) / lag).exp();
        state = keep * state + (1.0 - keep) * signal[k - 1];
        late.push(state);
    }
    late
}

/// What least squares leave of the sum of squares, and the factors.
struct Regression {
    left: f64,
    factors: Vec<f64>,
}

/// Least squares; `None` where they leave the finite numbers.
fn regress(columns: &[Vec<f64>], values: &[f64]) -> Option<Regression> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let sizes: Vec<f64> = columns
        .iter()
        .map(|c| dot(c, c).sqrt().max(f64::MIN_POSITIVE))
        .collect();
    let p = columns.len();
    let normal = Matrix::from_fn(p, p, |i, j| {
        dot(&columns[i], &columns[j]) / (sizes[i] * sizes[j])
            + if i == j { DIAGONAL_RIDGE } else { 0.0 }
    });
    let right: Vec<f64> = (0..p)
        .map(|i| dot(&columns[i], values) / sizes[i])
        .collect();
    let mut factors = Factor::new(normal)?.solve(&right);
    factors
        .iter_mut()
        .zip(&sizes)
        .for_each(|(x, size)| *x /= size);
    let mut left = values.to_vec();
    for (x, column) in factors.iter().zip(columns) {
        left.iter_mut().zip(column).for_each(|(l, v)| *l -= x * v);
    }
    let square = dot(&left, &left);
    (square.is_finite() && square > 0.0).then_some(Regression {
        left: square,
        factors,
    })
}
