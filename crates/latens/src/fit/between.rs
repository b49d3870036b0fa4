//! What the model takes for granted between the samples: how far its steps go, and what inputs do.
//!
//! A simulation with shorter steps, or with inputs that go straight to their next value, differs from that of the
//! fit. Where the difference is more than the noise could hide over the whole record, constants and hidden states
//! have taken it up, and their deviations do not count it. A file with a truth of its own simulates its records by
//! the same steps: nothing is said of those. What inputs do the records may decide: where the file says nothing of
//! inputs that go on moving, and it matters, both are learned.

use super::other_values::OtherValues;
use super::{Fit, Role, Track};
use crate::look::Finding;
use crate::model::{Hold, Method, Model};
use crate::numerics::Trajectory;
use crate::numerics::score::{self, named};
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::solve::Elsewhere;

/// Shorter steps are so many times shorter.
const STEP_DIVISOR: usize = 4;
/// The difference, in deviations of the noise over the whole record, that the data tell …
const TOLD_DEVIATIONS: f64 = 5.0;
/// … and as a part of the range, that matters.
const MATERIAL_RANGE_PART: f64 = 1e-3;
/// An input goes on moving where it changes from more than this part of the samples to the next: a generator of steps
/// repeats its values.
const MOVING_PART: f64 = 0.5;

/// Fits whose ln p differ by less than this are not told apart: odds below twenty to one.
const TOLD_LOG_EVIDENCE: f64 = 3.0;
/// Of two models that the records contradict one is better where its free runs err by less than this factor.
const CLEARLY_LESS_ERROR_RATIO: f64 = 0.95;

/// Inputs that a fit has held over each sample, although they go on moving and the file does not say so.
pub(super) struct MovingInputs {
    pub inputs: Vec<String>,
    file: String,
    moved: Moved,
}

/// The inputs of a fit that may rather go straight to their next values, where evidence can decide it.
pub(super) fn moving_inputs(fit: &Fit) -> Option<MovingInputs> {
    if fit.model.truth.is_some() || fit.facts.stopped || fit.facts.evidence.is_none() {
        return None;
    }
    let mut trained = fit.trained().into_iter();
    trained.find_map(|track| held_inputs(fit, track))
}

/// Of a fit with inputs held and one with inputs that go straight to their next values, the one that the records ask
/// for; the first where they do not tell.
pub(super) fn decided(mut held: Fit, mut moving: Fit, inputs: MovingInputs) -> Fit {
    let log = |fit: &Fit| {
        fit.facts
            .evidence
            .as_ref()
            .map_or(f64::NEG_INFINITY, |e| e.log)
    };
    let error = |fit: &Fit| {
        let trained = fit.facts.records.iter().filter(|r| r.role == Role::Train);
        named::mean(trained.map(|r| &r.nrmse)).unwrap_or(f64::INFINITY)
    };
    let gain = log(&moving) - log(&held);
    let asked_for = match (held.facts.contradicted, moving.facts.contradicted) {
        (false, false) => gain > 0.0,
        (true, true) => error(&moving) < CLEARLY_LESS_ERROR_RATIO * error(&held),
        (contradicted, _) => contradicted,
    };
    let explained = !held.facts.contradicted && !moving.facts.contradicted;
    let undecided = explained && gain.abs() < TOLD_LOG_EVIDENCE;
    if moving.facts.stopped || !asked_for {
        if undecided {
            tell_of(&mut held, &moving, gain);
        }
        return held;
    }
    if undecided {
        tell_of(&mut moving, &held, -gain);
    }
    let finding = Finding::MovingInputs {
        file: inputs.file,
        channel: inputs.moved.channel,
        inputs: inputs.inputs,
        of_noise: inputs.moved.of_noise,
        of_range: inputs.moved.of_range,
        gain: explained.then_some(gain),
    };
    for facts in moving.all_facts() {
        facts.findings.push(finding.clone());
    }
    moving
}

/// Tells of the constants of another fit, whose ln p is higher by `gain`, where they are others.
fn tell_of(fit: &mut Fit, other: &Fit, gain: f64) {
    let place = Elsewhere {
        log: gain,
        constants: other.theta[..other.model.unknowns.len()].to_vec(),
    };
    let values = OtherValues::of(&fit.model, &fit.facts.unknowns, &place);
    if !values.constants.is_empty() {
        fit.facts.other_values.push(values);
    }
}

/// What of it matters, for the first record where it does. Of a fit that the data contradict, only what would follow
/// them better.
pub(super) fn findings(fit: &Fit) -> Vec<Finding> {
    if fit.model.truth.is_some() {
        return vec![];
    }
    let first =
        |finding: &dyn Fn(&Track) -> Option<Finding>| fit.trained().into_iter().find_map(finding);
    let told = |moved: &Moved| !fit.facts.contradicted || moved.is_closer;
    let steps = first(&|track| coarse_steps(fit, track, told));
    let hold = first(&|track| {
        let inputs = held_inputs(fit, track).filter(|inputs| told(&inputs.moved))?;
        Some(Finding::HeldInputs {
            file: inputs.file,
            channel: inputs.moved.channel,
            inputs: inputs.inputs,
            of_noise: inputs.moved.of_noise,
            of_range: inputs.moved.of_range,
        })
    });
    steps.into_iter().chain(hold).collect()
}

fn coarse_steps(fit: &Fit, track: &Track, told: impl Fn(&Moved) -> bool) -> Option<Finding> {
    let mut finer = fit.model.clone();
    if !finer.method.is_implicit() {
        finer.method = Method::Rk4;
    }
    finer.substeps *= STEP_DIVISOR;
    let moved = moved(fit, track, &finer).filter(told)?;
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

/// Inputs that the model holds without the file's saying so, and that go on moving.
fn held_inputs(fit: &Fit, track: &Track) -> Option<MovingInputs> {
    let mut moving = fit.model.clone();
    let mut inputs = vec![];
    for (k, input) in fit.model.inputs.iter().enumerate() {
        let held = fit.model.hold[k] == Hold::ZeroOrder && !fit.model.hold_is_given[k];
        if held && goes_on_moving(&track.record, k) {
            moving.hold[k] = Hold::FirstOrder;
            inputs.push(input.name.clone());
        }
    }
    if inputs.is_empty() {
        return None;
    }
    Some(MovingInputs {
        inputs,
        file: fit.facts_of(track).file.clone(),
        moved: moved(fit, track, &moving)?,
    })
}

/// Whether an input goes on moving, for the most part of the time that it moves at all.
fn goes_on_moving(record: &Record, input: usize) -> bool {
    let values: Vec<f64> = (0..record.len()).map(|k| record.input(k)[input]).collect();
    let moves: Vec<bool> = values.windows(2).map(|w| w[1] != w[0]).collect();
    let starts = moves.windows(2).filter(|m| m[0] || m[1]).count() as f64;
    let goes_on = moves.windows(2).filter(|m| m[0] && m[1]).count() as f64;
    goes_on > MOVING_PART * starts
}

/// How far a simulation is from that of the fit, on the channel where it is farthest.
struct Moved {
    channel: String,
    /// Root mean square, in deviations of the noise.
    of_noise: f64,
    of_range: f64,
    /// Whether it is closer to the record.
    is_closer: bool,
}

/// How far the simulation of another model is from that of the fit, where that matters.
fn moved(fit: &Fit, track: &Track, other: &Model) -> Option<Moved> {
    let record = &track.record;
    let run = |model: &Model| {
        let stepper = Stepper::over(model, &model.system, fit.facts.sample_time, [record]);
        let states = score::free_run(&stepper, record, &fit.theta, track.free_run.row(0));
        score::outputs(stepper.system(), record, &fit.theta, &states)
    };
    let (fitted, other) = (run(&fit.model), run(other));
    let noise = &fit.facts.noise.measurement;
    let misfit = |run: &Trajectory| -> f64 {
        let readings = record.outputs.iter().zip(run.as_slice());
        let taken = readings
            .zip(noise.iter().cycle())
            .filter(|((y, _), _)| y.is_finite());
        taken.map(|((y, p), noise)| (y - p).powi(2) / noise).sum()
    };
    let is_closer = misfit(&other) < misfit(&fitted);
    let channels = fit.model.measurements.iter().enumerate();
    let channels = channels.map(|(c, channel)| {
        let squares = fitted
            .column(c)
            .zip(other.column(c))
            .map(|(a, b)| (a - b).powi(2));
        let rms = (squares.sum::<f64>() / record.len() as f64).sqrt();
        Moved {
            channel: channel.name.clone(),
            of_noise: rms / noise[c].sqrt(),
            of_range: rms / fit.facts.scales.range[c],
            is_closer,
        }
    });
    let most = channels.max_by(|a, b| a.of_noise.total_cmp(&b.of_noise))?;
    let told = most.of_noise * (record.len() as f64).sqrt();
    (told.is_finite() && told > TOLD_DEVIATIONS && most.of_range > MATERIAL_RANGE_PART)
        .then_some(most)
}
