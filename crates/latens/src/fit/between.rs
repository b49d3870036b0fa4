//! What the model takes for granted between the samples: how far its steps go, and what inputs do.
//!
//! A simulation with shorter steps, or with inputs that go straight to their next value, differs from that of the
//! fit. Where the difference is more than the noise could hide over the whole record, constants and hidden states
//! have taken it up, and their deviations do not count it. A file with a truth of its own simulates its records by
//! the same steps: nothing is said of those.

use super::{Fit, Track};
use crate::look::Finding;
use crate::model::{Hold, Method, Model};
use crate::numerics::step::Stepper;
use crate::numerics::{Trajectory, score};
use crate::record::Record;

/// Shorter steps are so many times shorter.
const STEP_DIVISOR: usize = 4;
/// The difference, in deviations of the noise over the whole record, that the data tell …
const TOLD_DEVIATIONS: f64 = 5.0;
/// … and as a part of the range, that matters.
const MATERIAL_RANGE_PART: f64 = 1e-3;
/// An input is smooth where its changes differ from one sample to the next by less than this part of themselves.
const SMOOTH_BEND_PART: f64 = 0.5;

/// What of it matters, for the first record where it does.
pub(super) fn findings(fit: &Fit) -> Vec<Finding> {
    if fit.model.truth.is_some() {
        return vec![];
    }
    let first =
        |finding: &dyn Fn(&Track) -> Option<Finding>| fit.trained().into_iter().find_map(finding);
    let steps = first(&|track| coarse_steps(fit, track));
    let hold = first(&|track| held_inputs(fit, track));
    steps.into_iter().chain(hold).collect()
}

fn coarse_steps(fit: &Fit, track: &Track) -> Option<Finding> {
    let mut finer = fit.model.clone();
    if !finer.method.is_implicit() {
        finer.method = Method::Rk4;
    }
    finer.substeps *= STEP_DIVISOR;
    let moved = moved(fit, track, &finer)?;
    let names = Method::NAMES.iter();
    let name = names.clone().find(|(_, m)| *m == fit.model.method)?.0;
    Some(Finding::CoarseSteps {
        file: fit.facts_of(track).file.clone(),
        channel: moved.channel,
        method: name.into(),
        of_noise: moved.of_noise,
        of_range: moved.of_range,
        substeps: finer.substeps,
    })
}

/// Inputs that the model holds without the file's saying so, and that move smoothly.
fn held_inputs(fit: &Fit, track: &Track) -> Option<Finding> {
    let mut moving = fit.model.clone();
    let mut inputs = vec![];
    for (k, input) in fit.model.inputs.iter().enumerate() {
        let held = fit.model.hold[k] == Hold::ZeroOrder && !fit.model.hold_is_given[k];
        if held && is_smooth(&track.record, k) {
            moving.hold[k] = Hold::FirstOrder;
            inputs.push(input.name.clone());
        }
    }
    if inputs.is_empty() {
        return None;
    }
    let moved = moved(fit, track, &moving)?;
    Some(Finding::HeldInputs {
        file: fit.facts_of(track).file.clone(),
        channel: moved.channel,
        inputs,
        of_noise: moved.of_noise,
        of_range: moved.of_range,
    })
}

/// Whether an input goes on as it went, for the most part.
fn is_smooth(record: &Record, input: usize) -> bool {
    let values: Vec<f64> = (0..record.len()).map(|k| record.input(k)[input]).collect();
    let changes: Vec<f64> = values.windows(2).map(|w| w[1] - w[0]).collect();
    let all: f64 = changes.iter().map(|c| c.abs()).sum();
    let bends: f64 = changes.windows(2).map(|w| (w[1] - w[0]).abs()).sum();
    all > 0.0 && bends < SMOOTH_BEND_PART * all
}

/// How far a simulation is from that of the fit, on the channel where it is farthest.
struct Moved {
    channel: String,
    /// Root mean square, in deviations of the noise.
    of_noise: f64,
    of_range: f64,
}

/// How far the simulation of another model is from that of the fit, where that matters. Of a fit that the data
/// contradict, only where the other follows them better.
fn moved(fit: &Fit, track: &Track, other: &Model) -> Option<Moved> {
    let record = &track.record;
    let run = |model: &Model| {
        let stepper = Stepper::over(model, &model.system, fit.facts.sample_time, [record]);
        let states = score::free_run(&stepper, record, &fit.theta, track.free_run.row(0));
        score::outputs(&stepper, record, &fit.theta, &states)
    };
    let (fitted, other) = (run(&fit.model), run(other));
    let misfit = |run: &Trajectory| -> f64 {
        let pairs = record.outputs.iter().zip(run.as_slice());
        let taken = pairs.filter(|(y, _)| y.is_finite());
        taken.map(|(y, p)| (y - p).powi(2)).sum()
    };
    if fit.facts.contradicted && misfit(&other) > misfit(&fitted) {
        return None;
    }
    let channels = fit.model.measurements.iter().enumerate();
    let channels = channels.map(|(c, channel)| {
        let squares = fitted
            .column(c)
            .zip(other.column(c))
            .map(|(a, b)| (a - b).powi(2));
        let rms = (squares.sum::<f64>() / record.len() as f64).sqrt();
        Moved {
            channel: channel.name.clone(),
            of_noise: rms / fit.facts.noise.measurement[c].sqrt(),
            of_range: rms / fit.facts.scales.range[c],
        }
    });
    let most = channels.max_by(|a, b| a.of_noise.total_cmp(&b.of_noise))?;
    let told = most.of_noise * (record.len() as f64).sqrt();
    (told.is_finite() && told > TOLD_DEVIATIONS && most.of_range > MATERIAL_RANGE_PART)
        .then_some(most)
}
