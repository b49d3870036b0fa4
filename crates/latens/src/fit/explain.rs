//! What would explain a misfit that the parameters cannot.
//!
//! With r the residuals of a free run, J their sensitivity to θ and to the start, and g a candidate (the
//! rate of the output for a lag of its sensor, time for a drift, an input, a state), r⊥ and g⊥ are what
//! J leaves of them: least squares on J and g together give g the factor
//!
//! ```text
//! β = g⊥·r / g⊥·g⊥        and explain        (g⊥·r)² / (g⊥·g⊥)        of r⊥·r⊥ .
//! ```
//!
//! What a change of θ imitates is therefore not taken for a fault of the sensor, nor the reverse.

use rayon::prelude::*;

use crate::model::Model;
use crate::numerics::Trajectory;
use crate::numerics::linalg::cholesky::Factor;
use crate::numerics::linalg::matrix::Matrix;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// Added to the unit diagonal of the normal equations: directions of θ that the record hardly shows
/// count as shown.
const DIAGONAL_RIDGE: f64 = 1e-7;
/// Entries of J at the most; longer records are thinned.
const MOST_ENTRIES: usize = 1_000_000;
/// Steps of least squares at the most, and the gain below which there is no further one.
const REFIT_STEPS: usize = 15;
const REFIT_GAIN: f64 = 1e-3;

/// A signal that may explain a misfit.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Candidate {
    /// The negative rate of the output: a sensor that lags.
    Lag,
    /// Time, from 0 at the first sample to 1 at the last: a drift, of a sensor that was right at first.
    Time,
    /// A signal by name, so many samples before.
    Signal(String, usize),
}

/// How well a candidate explains the misfit of a channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Explanation {
    pub candidate: Candidate,
    /// β.
    pub factor: f64,
    /// The part of the sum of squares of what J leaves of the channel's misfit.
    pub explained: f64,
}

/// What explains the misfit of a channel.
pub(super) struct Explained {
    /// Best first.
    pub best: Vec<Explanation>,
    /// Root mean square of the misfit to which the same equations come from here by least squares on
    /// the free run.
    pub reachable: f64,
    /// The residuals there.
    pub left: Vec<f64>,
}

/// A free run over a record, which its misfits are explained along.
#[derive(Clone)]
pub(super) struct FreeRun<'a> {
    pub model: &'a Model,
    pub stepper: &'a Stepper<'a>,
    pub record: &'a Record,
    pub theta: Vec<f64>,
    pub states: Trajectory,
}

/// The rows of least squares, and the weight of each channel.
struct Rows {
    places: Vec<Place>,
    weights: Vec<f64>,
}

/// A reading.
#[derive(Clone, Copy)]
struct Place {
    sample: usize,
    channel: usize,
}

/// A candidate's values at all samples.
struct Signal {
    candidate: Candidate,
    values: Vec<f64>,
}

/// A free run after least squares, and the factor of a candidate.
struct Refit<'a> {
    run: FreeRun<'a>,
    factor: f64,
    /// Sum of the weighted squares of what is left, all channels and the one that is explained.
    squares: f64,
    channel_squares: f64,
    /// Weighted residuals.
    left: Vec<f64>,
    /// The candidate in the rows; empty without one.
    column: Vec<f64>,
}

impl<'a> FreeRun<'a> {
    pub fn outputs(&self) -> Trajectory {
        score::outputs(
            self.stepper.system(),
            self.record,
            &self.theta,
            &self.states,
        )
    }

    /// What explains the misfit of channel `c`; signals are looked at up to `lags` samples before.
    /// `None` where the free run or its sensitivity leaves the finite numbers.
    pub fn explain(&self, c: usize, lags: usize) -> Option<Explained> {
        let rows = self.rows()?;
        let count = rows.places.iter().filter(|p| p.channel == c).count() as f64;
        let base = self.refit(c, &rows, None)?;
        let outputs = base.run.outputs();
        let left = base.run.residuals(&rows, &outputs);
        let projection = Projection::new(base.run.sensitivities(&rows)?)?;
        let rest = projection.rest(&left);
        let after = rows.squares_of(c, &rest);
        let explanation = |Signal { candidate, values }: Signal| {
            let column = rows.column(c, &values);
            let size = dot(&column, &column);
            let beyond = projection.rest(&column);
            let square = dot(&beyond, &beyond);
            let product = dot(&beyond, &rest);
            // of a candidate that J imitates nothing is left but rounding
            (square > 1e-6 * size).then(|| Explanation {
                candidate,
                factor: product / square,
                explained: (product * product / square / after).min(1.0),
            })
        };
        let candidates = base.run.candidates(c, &outputs, lags);
        let mut best: Vec<Explanation> =
            candidates.into_par_iter().filter_map(explanation).collect();
        // faults of a sensor are few: what they explain is found to the end, not to first order
        for explanation in &mut best {
            let candidate = &explanation.candidate;
            if matches!(candidate, Candidate::Lag | Candidate::Time)
                && let Some(refit) = base.run.refit(c, &rows, Some(candidate))
            {
                explanation.factor = refit.factor;
                explanation.explained =
                    (1.0 - refit.channel_squares / base.channel_squares).clamp(0.0, 1.0);
            }
        }
        best.retain(|e| e.explained.is_finite());
        best.sort_by(|a, b| b.explained.total_cmp(&a.explained));
        let measured = self.record.outputs.iter().skip(c).step_by(self.record.d_y);
        let pairs = measured.zip(outputs.column(c));
        let left = pairs.filter(|(y, _)| y.is_finite()).map(|(y, p)| y - p);
        Some(Explained {
            left: left.collect(),
            best,
            reachable: (base.channel_squares / count).sqrt() / rows.weights[c],
        })
    }

    /// The rows of least squares, weighted by the misfits as they are.
    fn rows(&self) -> Option<Rows> {
        let (record, d_y) = (self.record, self.record.d_y);
        let columns = self.theta.len() + self.model.states.len();
        let thinning = (record.outputs.len() * columns)
            .div_ceil(MOST_ENTRIES)
            .max(1);
        let places: Vec<Place> = (0..record.len())
            .step_by(thinning)
            .flat_map(|sample| (0..d_y).map(move |channel| Place { sample, channel }))
            .filter(|p| record.output(p.sample)[p.channel].is_finite())
            .collect();
        let unweighted = Rows {
            weights: vec![1.0; d_y],
            places,
        };
        let residuals = self.residuals(&unweighted, &self.outputs());
        let weight = |j: usize| {
            let count = unweighted.places.iter().filter(|p| p.channel == j).count();
            let square = unweighted.squares_of(j, &residuals) / count as f64;
            if square > 0.0 {
                1.0 / square.sqrt()
            } else {
                0.0
            }
        };
        let finite = residuals.iter().all(|r| r.is_finite());
        finite.then(|| Rows {
            weights: (0..d_y).map(weight).collect(),
            places: unweighted.places.clone(),
        })
    }

    /// Weighted residuals.
    fn residuals(&self, rows: &Rows, outputs: &Trajectory) -> Vec<f64> {
        let weighted = |&Place { sample, channel }: &Place| {
            let read = self.record.output(sample)[channel];
            rows.weights[channel] * (read - outputs.row(sample)[channel])
        };
        rows.places.iter().map(weighted).collect()
    }

    /// Least squares on the free run from here, over θ, the start and the factor of a candidate
    /// (Levenberg and Marquardt).
    fn refit(&self, c: usize, rows: &Rows, candidate: Option<&Candidate>) -> Option<Refit<'a>> {
        let (p, n) = (self.theta.len(), self.model.states.len());
        let refitted = |run: FreeRun<'a>, factor: f64| -> Option<Refit<'a>> {
            let outputs = run.outputs();
            let signal = candidate.and_then(|wanted| {
                let all = run.candidates(c, &outputs, 0);
                all.into_iter().find(|signal| signal.candidate == *wanted)
            });
            let column = signal.map_or(vec![], |signal| rows.column(c, &signal.values));
            let mut left = run.residuals(rows, &outputs);
            left.iter_mut()
                .zip(&column)
                .for_each(|(r, g)| *r -= factor * g);
            let squares = dot(&left, &left);
            let refit = Refit {
                channel_squares: rows.squares_of(c, &left),
                run,
                factor,
                squares,
                left,
                column,
            };
            squares.is_finite().then_some(refit)
        };
        let mut best = refitted(self.clone(), 0.0)?;
        let mut damping = 1e-3;
        for _ in 0..REFIT_STEPS {
            let mut sensitivities = best.run.sensitivities(rows)?;
            if candidate.is_some() {
                sensitivities = with_column(&sensitivities, &best.column);
            }
            let before = best.squares;
            let columns = Columns::new(sensitivities);
            while damping < 1e6 {
                let Some(step) = columns.step(&best.left, damping) else {
                    damping *= 10.0;
                    continue;
                };
                let mut run = best.run.clone();
                run.theta.iter_mut().zip(&step).for_each(|(x, d)| *x += d);
                let start: Vec<f64> = (0..n).map(|i| run.states.row(0)[i] + step[p + i]).collect();
                run.states = score::free_run(run.stepper, run.record, &run.theta, &start);
                let factor = best.factor + step.get(p + n).unwrap_or(&0.0);
                match refitted(run, factor) {
                    Some(better) if better.squares < best.squares => {
                        best = better;
                        damping *= 0.1;
                        break;
                    }
                    _ => damping *= 10.0,
                }
            }
            if best.squares > (1.0 - REFIT_GAIN) * before {
                break;
            }
        }
        Some(best)
    }

    /// Candidates, each with its value at every sample.
    fn candidates(&self, c: usize, outputs: &Trajectory, lags: usize) -> Vec<Signal> {
        let (record, model) = (self.record, self.model);
        let n = record.len();
        let time = &record.time;
        let output: Vec<f64> = outputs.column(c).collect();
        let rate = |k: usize| {
            let (a, b) = (k.saturating_sub(1), (k + 1).min(n - 1));
            (output[b] - output[a]) / (time[b] - time[a])
        };
        let duration = time[n - 1] - time[0];
        let mut candidates = vec![
            Signal {
                candidate: Candidate::Lag,
                values: (0..n).map(|k| -rate(k)).collect(),
            },
            Signal {
                candidate: Candidate::Time,
                values: time.iter().map(|t| (t - time[0]) / duration).collect(),
            },
        ];
        let mut signal = |name: String, values: Vec<f64>| {
            let mean = values.iter().sum::<f64>() / n as f64;
            let about: Vec<f64> = values.iter().map(|v| v - mean).collect();
            let mut lag = 0;
            while lag <= lags {
                let before = |k: usize| about[k.saturating_sub(lag)];
                candidates.push(Signal {
                    candidate: Candidate::Signal(name.clone(), lag),
                    values: (0..n).map(before).collect(),
                });
                lag = (2 * lag).max(1);
            }
            let squares = about.iter().map(|v| v * v).collect();
            candidates.push(Signal {
                candidate: Candidate::Signal(format!("the square of {name}"), 0),
                values: squares,
            });
        };
        for (j, input) in model.inputs.iter().enumerate() {
            let values = record.inputs.iter().skip(j).step_by(record.d_u);
            signal(input.name.clone(), values.copied().collect());
        }
        for (i, state) in model.states.iter().enumerate() {
            signal(state.name.clone(), self.states.column(i).collect());
        }
        candidates
    }

    /// J, weighted: ∂y/∂θ and ∂y/∂x_0 along the free run.
    fn sensitivities(&self, rows: &Rows) -> Option<Matrix> {
        let (rows, weights) = (&rows.places, &rows.weights);
        let (record, stepper, system) = (self.record, self.stepper, self.stepper.system());
        let (n, p, d_y) = (system.states(), self.theta.len(), record.d_y);
        let width = p + n;
        let mut sensitivities = Matrix::zeros(rows.len(), width);
        let (mut scratch, mut ws, mut step) =
            (stepper.scratch(), system.workspace(), stepper.linearised());
        let (mut h, mut h_x) = (vec![0.0; d_y], vec![0.0; d_y * n]);
        // S = ∂x/∂(θ, x_0), row by row
        let mut s = vec![0.0; n * width];
        (0..n).for_each(|i| s[i * width + p + i] = 1.0);
        let mut next = vec![0.0; n * width];
        let mut row = 0;
        for k in 0..record.len() {
            let at = record.point(k, self.states.row(k), &self.theta);
            if rows.get(row).is_some_and(|place| place.sample == k) {
                system.linearise_measurement(&mut ws, at, &mut h, &mut h_x);
            }
            while let Some(&Place { channel: j, .. }) = rows.get(row).filter(|r| r.sample == k) {
                for column in 0..width {
                    let seen = (0..n).map(|i| h_x[j * n + i] * s[i * width + column]);
                    sensitivities[(row, column)] = weights[j] * seen.sum::<f64>();
                }
                row += 1;
            }
            if k + 1 < record.len() {
                let span = stepper.span(record.gap(k));
                stepper.linearise(&mut scratch, at, span, true, &mut step);
                next.fill(0.0);
                for i in 0..n {
                    let target = &mut next[i * width..(i + 1) * width];
                    for l in 0..n {
                        let f = step.f_x[i * n + l];
                        if f != 0.0 {
                            let from = &s[l * width..(l + 1) * width];
                            target.iter_mut().zip(from).for_each(|(t, v)| *t += f * v);
                        }
                    }
                }
                for (row, f_theta) in stepper
                    .rows()
                    .iter()
                    .zip(step.f_theta.chunks_exact(p.max(1)))
                {
                    let target = &mut next[row * width..row * width + p];
                    target.iter_mut().zip(f_theta).for_each(|(t, v)| *t += v);
                }
                std::mem::swap(&mut s, &mut next);
            }
        }
        sensitivities
            .data()
            .iter()
            .all(|v| v.is_finite())
            .then_some(sensitivities)
    }
}

impl Rows {
    /// The sum of squares of the rows of a channel.
    fn squares_of(&self, c: usize, values: &[f64]) -> f64 {
        let rows = self.places.iter().zip(values);
        let rows = rows.filter(|(place, _)| place.channel == c);
        rows.map(|(_, v)| v * v).sum()
    }

    /// A signal in the rows of a channel.
    fn column(&self, c: usize, signal: &[f64]) -> Vec<f64> {
        let weighted = |place: &Place| {
            if place.channel == c {
                signal[place.sample] * self.weights[c]
            } else {
                0.0
            }
        };
        self.places.iter().map(weighted).collect()
    }
}

/// A matrix with one more column.
fn with_column(matrix: &Matrix, column: &[f64]) -> Matrix {
    let mut wider = Matrix::zeros(matrix.rows(), matrix.columns() + 1);
    let (first, last) = wider.data_mut().split_at_mut(matrix.data().len());
    first.copy_from_slice(matrix.data());
    last.copy_from_slice(column);
    wider
}

/// Least squares on the columns of a matrix, each of them of size one.
struct Columns {
    columns: Matrix,
    sizes: Vec<f64>,
    normal: Matrix,
}

impl Columns {
    fn new(mut columns: Matrix) -> Self {
        let p = columns.columns();
        let mut sizes = vec![1.0; p];
        for (j, size) in sizes.iter_mut().enumerate() {
            let length = dot(columns.column(j), columns.column(j)).sqrt();
            if length > 0.0 {
                columns.column_mut(j).iter_mut().for_each(|v| *v /= length);
                *size = length;
            }
        }
        let below = |j: usize| -> Vec<f64> {
            (j..p)
                .map(|i| dot(columns.column(i), columns.column(j)))
                .collect()
        };
        let products: Vec<Vec<f64>> = (0..p).into_par_iter().map(below).collect();
        let normal = Matrix::from_fn(p, p, |i, j| products[i.min(j)][i.max(j) - i.min(j)]);
        Self {
            columns,
            sizes,
            normal,
        }
    }

    fn factor(&self, ridge: f64) -> Option<Factor> {
        let mut normal = self.normal.clone();
        (0..normal.columns()).for_each(|i| normal[(i, i)] += ridge);
        Factor::new(normal)
    }

    /// Jᵀ v.
    fn products(&self, values: &[f64]) -> Vec<f64> {
        (0..self.sizes.len())
            .map(|j| dot(self.columns.column(j), values))
            .collect()
    }

    /// The damped step that lowers what is left.
    fn step(&self, left: &[f64], damping: f64) -> Option<Vec<f64>> {
        let mut step = self
            .factor(DIAGONAL_RIDGE.max(damping))?
            .solve(&self.products(left));
        step.iter_mut()
            .zip(&self.sizes)
            .for_each(|(x, size)| *x /= size);
        step.iter().all(|x| x.is_finite()).then_some(step)
    }
}

/// What the columns of a matrix leave of a vector.
struct Projection {
    columns: Columns,
    factor: Factor,
}

impl Projection {
    fn new(matrix: Matrix) -> Option<Self> {
        let columns = Columns::new(matrix);
        Some(Self {
            factor: columns.factor(DIAGONAL_RIDGE)?,
            columns,
        })
    }

    fn rest(&self, values: &[f64]) -> Vec<f64> {
        let x = self.factor.solve(&self.columns.products(values));
        let mut rest = values.to_vec();
        for (j, x) in x.iter().enumerate() {
            let column = self.columns.columns.column(j);
            rest.iter_mut().zip(column).for_each(|(r, v)| *r -= x * v);
        }
        rest
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
