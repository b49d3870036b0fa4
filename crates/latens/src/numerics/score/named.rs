//! Errors by name of the column they were taken against: a channel's name for what was measured,
//! `truth_<state>` for a state whose truth is known.

use std::collections::BTreeMap;

use crate::model::Model;
use crate::numerics::Trajectory;
use crate::record::Record;

/// An error for each column; `None` for a run that diverged.
pub type Scores = BTreeMap<String, Option<f64>>;

/// [`super::rmse`] or [`super::nrmse`].
pub type Measure = fn(&[f64], &[f64], usize, usize) -> Option<f64>;

/// An error per channel of a run of outputs.
pub fn channel_scores(
    model: &Model,
    record: &Record,
    outputs: &Trajectory,
    measure: Measure,
) -> Scores {
    let channels = model.measurements.iter().enumerate();
    channels
        .filter_map(|(j, channel)| {
            let error = measure(outputs.as_slice(), &record.outputs, j, record.d_y)?;
            Some((channel.name.clone(), finite(error)))
        })
        .collect()
}

/// An error per state whose truth is known.
pub fn state_scores(
    model: &Model,
    record: &Record,
    states: &Trajectory,
    measure: Measure,
) -> Scores {
    let Some(truth) = &record.truth else {
        return Scores::new();
    };
    let numbered = model.states.iter().enumerate();
    numbered
        .filter_map(|(i, state)| {
            let error = measure(states.as_slice(), truth, i, record.d_x)?;
            Some((format!("truth_{}", state.name), finite(error)))
        })
        .collect()
}

/// The mean over columns and records; infinite where a run diverged, `None` without any.
pub fn mean<'a>(scores: impl Iterator<Item = &'a Scores>) -> Option<f64> {
    let errors: Vec<f64> = scores
        .flat_map(Scores::values)
        .map(|error| error.unwrap_or(f64::INFINITY))
        .collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (!errors.is_empty()).then_some(mean)
}

pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
