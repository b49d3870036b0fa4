//! How good a model is: the free run and its errors.

pub mod named;

use crate::model::System;
use crate::numerics::Trajectory;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// States of a free run from `start`, one per sample; the input is the record's, replayed.
///
/// Stops where a state leaves the finite numbers; the rest is NaN.
pub fn free_run(stepper: &Stepper, record: &Record, theta: &[f64], start: &[f64]) -> Trajectory {
    run(stepper, record, theta, start, |_, _| {})
}

/// The same from the start of a trajectory; constants that vary go as they do in it.
pub fn free_run_along(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    states: &Trajectory,
) -> Trajectory {
    let varying = stepper.varying();
    run(stepper, record, theta, states.row(0), |k, state| {
        for &i in varying {
            state[i] = states.row(k)[i];
        }
    })
}

/// The same where each step ends off by what `driving` has for its sample.
pub fn driven_run(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    start: &[f64],
    driving: &Trajectory,
) -> Trajectory {
    let by = |k: usize, state: &mut [f64]| {
        for (x, w) in state.iter_mut().zip(driving.row(k)) {
            *x += w;
        }
    };
    run(stepper, record, theta, start, by)
}

fn run(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    start: &[f64],
    drive: impl Fn(usize, &mut [f64]),
) -> Trajectory {
    let n = start.len();
    let mut states = Trajectory::filled(f64::NAN, record.len(), n);
    let mut scratch = stepper.scratch();
    states.row_mut(0).copy_from_slice(start);
    for k in 1..record.len() {
        let (done, rest) = states.as_mut_slice().split_at_mut(k * n);
        let at = record.point(k - 1, &done[(k - 1) * n..], theta);
        let span = stepper.span(record.gap(k - 1));
        stepper.advance(&mut scratch, at, span, &mut rest[..n]);
        drive(k, &mut rest[..n]);
        if rest[..n].iter().any(|x| !x.is_finite()) {
            rest[..n].fill(f64::NAN);
            break;
        }
    }
    states
}

/// One-step predictions f_o(x̂_{k−1}), one per sample; the first is the estimate itself.
pub fn one_step(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    states: &Trajectory,
) -> Trajectory {
    let mut predicted = states.clone();
    let mut scratch = stepper.scratch();
    for k in 1..record.len() {
        let at = record.point(k - 1, states.row(k - 1), theta);
        let span = stepper.span(record.gap(k - 1));
        stepper.advance(&mut scratch, at, span, predicted.row_mut(k));
    }
    predicted
}

/// Root mean square error of one column in its own unit, over the samples whose truth is known;
/// infinite where the prediction is not finite, `None` where the truth is nowhere known.
pub fn rmse(predicted: &[f64], truth: &[f64], column: usize, columns: usize) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0usize);
    let pairs = predicted.iter().skip(column).step_by(columns);
    for (p, t) in pairs.zip(truth.iter().skip(column).step_by(columns)) {
        if !t.is_nan() {
            sum += (p - t) * (p - t);
            count += 1;
        }
    }
    let value = (sum / count as f64).sqrt();
    (count > 0).then_some(if value.is_nan() { f64::INFINITY } else { value })
}

/// [`rmse`] divided by max − min of the truth; `None` also where the truth never moves.
pub fn nrmse(predicted: &[f64], truth: &[f64], column: usize, columns: usize) -> Option<f64> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for t in truth.iter().skip(column).step_by(columns) {
        low = low.min(*t);
        high = high.max(*t);
    }
    let error = rmse(predicted, truth, column, columns)?;
    (high > low).then(|| error / (high - low))
}

/// The measured channels in a run of states, one row per sample.
pub fn outputs(system: &System, record: &Record, theta: &[f64], states: &Trajectory) -> Trajectory {
    let mut ws = system.workspace();
    let mut outputs = Trajectory::filled(f64::NAN, record.len(), system.measurements());
    for (k, state) in states.rows().enumerate() {
        let at = record.point(k, state, theta);
        system.measure(&mut ws, at, outputs.row_mut(k));
    }
    outputs
}

/// nRMSE of each measured channel in a run of states.
pub fn channel_nrmse(
    stepper: &Stepper,
    record: &Record,
    theta: &[f64],
    states: &Trajectory,
) -> Vec<Option<f64>> {
    let c = stepper.system().measurements();
    let outputs = outputs(stepper.system(), record, theta, states);
    (0..c)
        .map(|j| nrmse(outputs.as_slice(), &record.outputs, j, c))
        .collect()
}
