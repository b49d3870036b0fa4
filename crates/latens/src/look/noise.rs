//! Q_x, R_y and P_x0: what settings say relative to the data, in the units of the data.

use super::scales::SignalScales;
use crate::model::Model;
use crate::model::settings::{Level, Settings};
use crate::numerics::objective::Noise;

/// Below this fraction of a channel's range noise counts as none, and batch does not ask a channel
/// to be fitted closer: the valley of the objective would be too narrow to walk along.
pub const RESOLUTION: f64 = 1e-4;

/// Q_x, R_y and P_x0 for a model whose quantities have these sizes; `dt` is the sample time.
pub fn noise(settings: &Settings, model: &Model, scales: &SignalScales, dt: f64) -> Noise {
    noise_with(settings, model, scales, dt, model.system.unknown_rows())
}

/// The same with the level of hidden rows on rows of the caller's choice.
pub(super) fn noise_with(
    settings: &Settings,
    model: &Model,
    scales: &SignalScales,
    dt: f64,
    rows: &[usize],
) -> Noise {
    let system = &model.system;
    let per_sample = (dt / scales.time_constant).sqrt();
    let variance = |level: Level, unit: f64| match level {
        Level::Variance(v) => v,
        Level::Relative(r) => (r * unit) * (r * unit),
    };
    let state = |i: usize| model.states[i].name.as_str();
    let process = |i: usize| {
        let level = if rows.contains(&i) {
            settings.hidden_noise
        } else {
            settings.known_noise
        };
        let given = settings.process_variance.get(state(i)).copied();
        let walk = scales.walk.get(i).copied().filter(|q| *q > 0.0);
        given
            .or(walk)
            .unwrap_or(variance(level, scales.scale[i] * per_sample))
    };
    let measurement = |c: usize| {
        let name = &model.measurements[c].name;
        let given = settings.measurement_variance.get(name).copied();
        given.unwrap_or(variance(settings.measurement_noise, scales.noise[c]))
    };
    let start = |i: usize| {
        let given = settings.start_variance.get(state(i)).copied();
        given.unwrap_or(variance(settings.start_noise, scales.scale[i]))
    };
    Noise {
        process: (0..system.states()).map(process).collect(),
        measurement: (0..system.measurements()).map(measurement).collect(),
        start_mean: scales.center.clone(),
        start: (0..system.states()).map(start).collect(),
    }
}
