//! The one objective that every solver minimises.
//!
//! ```text
//! L = ½ Σ ‖x_i − f_o(x_{i−1}, θ_{i−1})‖²_{Q_x⁻¹}          physics
//!   + ½ Σ ‖y_i − h(x_i)‖²_{R_y⁻¹}                         data
//!   + ½ Σ ‖θ_i − θ_{i−1}‖²_{Q_θ⁻¹}                        drift of θ
//!   + ½ ‖x_0 − x̄_0‖²_{P_x0⁻¹} + ½ ‖θ_0 − θ̄‖²_{P_θ0⁻¹}     priors
//! ```
//!
//! All covariances are diagonal. A missing measurement drops its own component at that sample
//! and nothing else.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::model::simd::LANES;
use crate::model::{KnownStart, Point};
use crate::numerics::Trajectory;
use crate::numerics::step::{Departure, LaneScratch, Stepper};
use crate::record::Record;

/// Variances of the state part of the objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Q_x of one sample time, one for each state; over a gap it grows in proportion.
    pub process: Vec<f64>,
    /// R_y, one for each channel.
    pub measurement: Vec<f64>,
    /// x̄_0, one for each state.
    pub start_mean: Vec<f64>,
    /// P_x0, one for each state.
    pub start: Vec<f64>,
}

impl Noise {
    /// All variances times a factor.
    pub fn times(&self, factor: f64) -> Self {
        let scaled = |variances: &[f64]| variances.iter().map(|v| v * factor).collect();
        Self {
            process: scaled(&self.process),
            measurement: scaled(&self.measurement),
            start_mean: self.start_mean.clone(),
            start: scaled(&self.start),
        }
    }

    /// All variances times a factor, but for how constants vary: misfits that repeat themselves say nothing
    /// of that.
    pub fn inflated(&self, stepper: &Stepper, factor: f64) -> Self {
        let mut noise = self.times(factor);
        noise.vary_as(stepper, self);
        noise
    }

    /// The process noise times a factor, but for constants that vary: how fast they walk is no question
    /// of how exact the equations are.
    pub fn tightened(&self, stepper: &Stepper, factor: f64) -> Self {
        let mut noise = self.clone();
        for (i, q) in noise.process.iter_mut().enumerate() {
            if !stepper.varying().contains(&i) {
                *q *= factor;
            }
        }
        noise
    }

    /// Takes over how constants vary.
    pub fn vary_as(&mut self, stepper: &Stepper, other: &Self) {
        for &i in stepper.varying() {
            self.process[i] = other.process[i];
            self.start[i] = other.start[i];
        }
    }

    /// Puts the start where a record begins: where its first measurements show a state, or where it is known to
    /// begin.
    pub fn begin(&mut self, record: &Record, direct: &[Option<usize>], known: &[KnownStart]) {
        show(&mut self.start_mean, record.output(0), direct);
        if !record.later {
            for known in known {
                self.start_mean[known.state] = known.mean;
                self.start[known.state] = known.variance;
            }
        }
    }
}

/// Puts states where the measurements of a sample show them.
pub(crate) fn show(states: &mut [f64], output: &[f64], direct: &[Option<usize>]) {
    for (y, direct) in output.iter().zip(direct) {
        if let (Some(i), false) = (direct, y.is_nan()) {
            states[*i] = *y;
        }
    }
}

/// The terms of the objective.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Defects of the equations.
    pub physics: f64,
    /// Misfits of the measurements.
    pub data: f64,
    /// Changes of θ on the way.
    pub drift: f64,
    /// Prior of the first state.
    pub start: f64,
    /// Prior of θ; its mean is where a recursion starts, and zero for batch.
    pub prior: f64,
}

impl Cost {
    /// L.
    pub fn total(&self) -> f64 {
        self.physics + self.data + self.drift + self.start + self.prior
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.physics += other.physics;
        self.data += other.data;
        self.drift += other.drift;
        self.start += other.start;
        self.prior += other.prior;
    }
}

/// ½ Σ d²/v.
pub fn half_square(difference: impl Iterator<Item = f64>, variance: &[f64]) -> f64 {
    difference.zip(variance).map(|(d, v)| 0.5 * d * d / v).sum()
}

/// The data term of one sample: ½ Σ (y − h)²/R over the channels that were measured.
pub fn data_term(measured: &[f64], predicted: &[f64], variance: &[f64]) -> f64 {
    let residuals = measured.iter().zip(predicted);
    residuals
        .zip(variance)
        .filter(|((y, _), _)| !y.is_nan())
        .map(|((y, h), v)| 0.5 * (y - h) * (y - h) / v)
        .sum()
}

/// The terms of a trajectory of states for a fixed θ.
///
/// Samples are independent of each other here; pieces of fixed length are shared out among the
/// threads and summed in order, so that the result does not depend on how many there are.
pub fn trajectory_cost(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    states: &Trajectory,
    noise: &Noise,
) -> Cost {
    terms(stepper, record, theta, states, noise, false)
}

/// The same of a free run: its defects are zero to the last bit and need not be worked out.
pub fn free_run_cost(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    run: &Trajectory,
    noise: &Noise,
) -> Cost {
    let mut cost = terms(stepper, record, theta, run, noise, true);
    if !run.is_finite() {
        cost.physics = f64::NAN;
    }
    cost
}

fn terms(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    states: &Trajectory,
    noise: &Noise,
    without_defects: bool,
) -> Cost {
    const PIECE_SAMPLES: usize = 128;
    let n = stepper.system().states();
    let samples = states.len();
    let c = stepper.system().measurements();
    let room = || {
        let h = vec![0.0; LANES * c];
        (stepper.lane_scratch(), vec![0.0; LANES * n], h)
    };
    let piece = |(scratch, next, h): &mut (LaneScratch, Vec<f64>, Vec<f64>), piece: usize| {
        let mut cost = Cost::default();
        let end = samples.min((piece + 1) * PIECE_SAMPLES);
        for first in (piece * PIECE_SAMPLES..end).step_by(LANES) {
            let block = first..end.min(first + LANES);
            let points = block.clone().map(|i| record.point(i, states.row(i), theta));
            let points: Vec<Point> = points.collect();
            stepper.measure_lanes(scratch, &points, h);
            let without = usize::from(first == 0);
            let from = |i: usize| Departure {
                at: record.point(i - 1, states.row(i - 1), theta),
                span: stepper.span(record.gap(i - 1)),
            };
            let from: Vec<Departure> = block.clone().skip(without).map(from).collect();
            if !from.is_empty() && !without_defects {
                stepper.advance_lanes(scratch, &from, &mut next[without * n..]);
            }
            for (l, i) in block.enumerate() {
                let (state, h) = (states.row(i), &h[l * c..(l + 1) * c]);
                cost.data += data_term(record.output(i), h, &noise.measurement);
                if i == 0 {
                    let from_mean = state.iter().zip(&noise.start_mean).map(|(x, m)| x - m);
                    cost.start = half_square(from_mean, &noise.start);
                } else if !without_defects {
                    let next = &next[l * n..(l + 1) * n];
                    let defect = state.iter().zip(next).map(|(x, f)| x - f);
                    let span = from[l - without].span;
                    cost.physics += half_square(defect, &noise.process) / span.samples;
                }
            }
            // no number is no number, whatever follows; steps without a solution take the longest
            if cost.physics.is_nan() {
                break;
            }
        }
        cost
    };
    let pieces = (0..samples.div_ceil(PIECE_SAMPLES)).into_par_iter();
    let costs: Vec<Cost> = pieces.map_init(room, piece).collect();
    let mut cost = Cost::default();
    costs.into_iter().for_each(|c| cost += c);
    cost
}
