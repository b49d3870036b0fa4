//! How large things are: centre and scale of every state, noise of every channel, from the data.
//!
//! A measured state has the middle and half the range of its channel (of several, or through an
//! expression, what it would be if it alone made the channel). A hidden state has what the file
//! says, or a rough size from the known equations: what it would take to move a
//! measured state as fast as the record ever does, rate of x_i divided by |∂f_i/∂x_j|. The smoother
//! replaces that guess by the trajectory itself ([`refine`]).

use serde::{Deserialize, Serialize};

use super::sensors;
use crate::model::{Model, Point, Varies};
use crate::numerics::Trajectory;
use crate::numerics::step::WHOLE_STEPS_TOLERANCE;
use crate::record::Record;

/// Centre and scale of the states, noise of the channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignalScales {
    pub center: Vec<f64>,
    pub scale: Vec<f64>,
    /// Of states of which the file says how large they are or about what: how far from its centre each has
    /// proved to go. 0 of all others, which go as far as their scale.
    #[serde(default)]
    pub spread: Vec<f64>,
    /// Whether the scale was measured or stated, not guessed from the equations.
    pub certain: Vec<bool>,
    /// Standard deviation of each channel's noise; never below 1e-6 of its range.
    pub noise: Vec<f64>,
    /// Largest minus smallest value of each channel.
    pub range: Vec<f64>,
    /// Of states that hold how a constant differs from its mean, the variance by which they walk in one
    /// sample time; 0 for all others.
    #[serde(default)]
    pub walk: Vec<f64>,
    /// τ: the time in which the fastest channel moves by its scale.
    pub time_constant: f64,
}

impl SignalScales {
    /// How far from its centre a record may begin: as far as others went, whatever a file says of a rough size.
    pub fn start_deviation(&self, state: usize) -> f64 {
        let spread = self.spread.get(state).copied().unwrap_or(0.0);
        self.scale[state].max(spread)
    }

    /// Variances of a start of which nothing else is known.
    pub fn start_variances(&self) -> Vec<f64> {
        let states = 0..self.scale.len();
        states.map(|i| self.start_deviation(i).powi(2)).collect()
    }
}

/// Below this fraction of a channel's range, noise is not told apart from none.
const NOISE_FLOOR: f64 = 1e-6;
/// Points of a record at which the equations are looked at.
const MOST_POINTS: usize = 200;
/// Samples this many times as far apart as most say little of a rate.
const FAR_DISTANCES: f64 = 1.5;
/// A state has no slope at a point where the equations are so much steeper nearer to it, distances in scales.
const NEAR_SCALES: f64 = 1e-4;
const NEARER_SCALES: f64 = 1e-6;
const STEEPER_FACTOR: f64 = 5.0;

/// Centre and half range of the finite values; `None` where there are none.
pub fn center_and_scale(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for v in values.filter(|v| v.is_finite()) {
        low = low.min(v);
        high = high.max(v);
    }
    (low <= high).then(|| ((low + high) / 2.0, (high - low) / 2.0))
}

/// A scale that can be divided by: a signal that never moves has the size of its value, or 1.
pub(crate) fn usable(center: f64, scale: f64) -> f64 {
    if scale > 1e-12 * center.abs() && scale > 0.0 {
        scale
    } else if center != 0.0 {
        center.abs()
    } else {
        1.0
    }
}

/// Values of one channel over all records.
fn channel(records: &[Record], c: usize) -> impl Iterator<Item = f64> + Clone + '_ {
    records
        .iter()
        .flat_map(move |r| r.outputs.iter().skip(c).step_by(r.d_y).copied())
}

/// Looks at the records and the known equations; θ is where networks are zero.
pub fn estimate(model: &Model, records: &[Record], theta: &[f64]) -> SignalScales {
    let system = &model.system;
    let n = system.states();
    let mut scales = SignalScales {
        center: model
            .states
            .iter()
            .map(|s| {
                s.center
                    .or(s.start.filter(|_| s.start_deviation.is_some()))
                    .unwrap_or(0.0)
            })
            .collect(),
        scale: model
            .states
            .iter()
            .map(|s| s.scale.unwrap_or(f64::NAN))
            .collect(),
        spread: vec![0.0; n],
        certain: model.states.iter().map(|s| s.scale.is_some()).collect(),
        noise: (0..system.measurements())
            .map(|c| noise(records, c))
            .collect(),
        range: (0..system.measurements())
            .map(|c| range(records, c))
            .collect(),
        walk: first_walks(model, records),
        time_constant: f64::INFINITY,
    };
    leave_corners(model, records, theta, &mut scales);
    let mut rate = vec![f64::NAN; n];
    let seen = mean_sight(model, records, &scales);
    for (c, direct) in system.direct().iter().enumerate() {
        let Some((center, scale)) = center_and_scale(channel(records, c)) else {
            continue;
        };
        let scale = usable(center, scale);
        let (typical, fastest) = rates(records, c, scales.noise[c])
            .map_or((f64::NAN, f64::NAN), |r| (r.root_mean_square, r.largest));
        scales.time_constant = scales.time_constant.min(scale / typical);
        for j in (0..n).filter(|&j| seen[c * n + j] > 0.0) {
            // what x_j would be if it alone made the channel
            let (alone_scale, alone_rate) = (scale / seen[c * n + j], fastest / seen[c * n + j]);
            if *direct == Some(j) {
                scales.center[j] = model.states[j].center.unwrap_or(center);
                scales.certain[j] = true;
            }
            if model.states[j].scale.is_none() {
                scales.scale[j] = scales.scale[j].min(alone_scale);
            }
            rate[j] = rate[j].min(alone_rate);
        }
    }
    if !scales.time_constant.is_finite() || scales.time_constant <= 0.0 {
        scales.time_constant = 1.0;
    }
    guess_hidden(model, records, theta, &mut scales, &mut rate);
    scales
}

/// How fast constants walk before anything is learned: what varies slowly by its scale within a record,
/// what varies by record not at all, but for rounding.
fn first_walks(model: &Model, records: &[Record]) -> Vec<f64> {
    const STILL_WALK: f64 = 1e-8;
    let samples: usize = records.iter().map(Record::len).sum();
    let length = samples as f64 / records.len() as f64;
    let mut walks = vec![0.0; model.states.len()];
    for (unknown, state) in model.varying() {
        let unknown = &model.unknowns[unknown];
        let in_a_sample = match unknown.varies {
            Some(Varies::Slowly) => 1.0 / length.sqrt(),
            _ => STILL_WALK,
        };
        walks[state] = (in_a_sample * unknown.difference_scale()).powi(2);
    }
    walks
}

/// A value of a channel, and when it was taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub time: f64,
    pub value: f64,
}

/// A channel's samples, those not taken left out.
pub(super) fn measured(record: &Record, c: usize) -> Vec<Sample> {
    let all = (0..record.len()).map(|k| Sample {
        time: record.time[k],
        value: record.output(k)[c],
    });
    all.filter(|s| s.value.is_finite()).collect()
}

/// How fast a channel moves, in changes per time.
struct Rates {
    root_mean_square: f64,
    largest: f64,
}

/// How fast a channel moves; `None` where fewer than two samples were taken.
///
/// Between neighbouring samples noise of deviation σ alone makes changes of 2σ² in the mean
/// square. The distance is doubled until the signal's own change stands out from that. Pairs much
/// further apart than most, over a gap, are left out: their change is not a rate.
fn rates(records: &[Record], c: usize, noise: f64) -> Option<Rates> {
    let samples: Vec<_> = records.iter().map(|r| measured(r, c)).collect();
    let longest = samples.iter().map(Vec::len).max().unwrap_or(0);
    let mut lag = 1;
    while lag < longest {
        let (mut square, mut largest, mut duration, mut count) = (0.0, 0.0, 0.0, 0.0);
        let far = FAR_DISTANCES * typical_distance(&samples, lag);
        for samples in &samples {
            let pairs = samples.iter().zip(samples.iter().skip(lag));
            for (from, to) in pairs.filter(|(from, to)| to.time - from.time < far) {
                let change = to.value - from.value;
                square += change * change;
                largest = f64::max(largest, change.abs());
                duration += to.time - from.time;
                count += 1.0;
            }
        }
        let (mean_square, duration) = (square / count, duration / count);
        let by_noise = 2.0 * noise * noise;
        if mean_square > 4.0 * by_noise || 4 * lag > longest {
            let signal_square = (mean_square - by_noise).max(0.25 * mean_square);
            return Some(Rates {
                root_mean_square: signal_square.sqrt() / duration,
                largest: largest / duration,
            });
        }
        lag *= 2;
    }
    None
}

/// The median time between samples that are `lag` apart.
fn typical_distance(samples: &[Vec<Sample>], lag: usize) -> f64 {
    let apart = |s: &'_ Vec<Sample>| -> Vec<f64> {
        let pairs = s.iter().zip(s.iter().skip(lag));
        pairs.map(|(from, to)| to.time - from.time).collect()
    };
    let mut all: Vec<f64> = samples.iter().flat_map(apart).collect();
    let middle = all.len() / 2;
    *all.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Moves hidden states that are taken to lie about zero to one side of it, where the equations have no derivative
/// there, as √|h| has none: a filter that begins at such a corner gets nowhere.
fn leave_corners(model: &Model, records: &[Record], theta: &[f64], scales: &mut SignalScales) {
    let hidden = model.hidden().into_iter();
    let open: Vec<usize> = hidden
        .filter(|&j| model.states[j].center.is_none())
        .collect();
    let moved = |scales: &SignalScales, set: &[usize], by: f64| {
        let mut moved = scales.clone();
        for &j in set {
            moved.center[j] += by * model.states[j].scale.unwrap_or(1.0);
        }
        moved
    };
    let is_smooth = |scales: &SignalScales| is_differentiable(model, records, theta, scales);
    let is_corner = |scales: &SignalScales, set: &[usize]| {
        let slopes = |by| mean_slopes(model, records, theta, &moved(scales, set, by));
        let mut both = slopes(NEAR_SCALES).into_iter().zip(slopes(NEARER_SCALES));
        !is_smooth(scales) || both.any(|(near, nearer)| nearer > STEEPER_FACTOR * near)
    };
    let singles = open.iter().map(|j| vec![*j]);
    for set in singles.chain([open.clone()]) {
        if is_corner(scales, &set) {
            let mut sides = [1.0, -1.0]
                .into_iter()
                .map(|side| moved(scales, &set, side));
            if let Some(aside) = sides.find(is_smooth) {
                *scales = aside;
            }
        }
    }
}

/// Whether the equations have derivatives somewhere along the records, hidden states at their centres.
fn is_differentiable(
    model: &Model,
    records: &[Record],
    theta: &[f64],
    scales: &SignalScales,
) -> bool {
    let system = &model.system;
    let n = system.states();
    let (mut ws, mut f, mut finite) = (system.workspace(), vec![0.0; n], false);
    mean_square(model, records, theta, scales, n * n, |at, f_x| {
        system.linearise(&mut ws, at, &mut f, f_x);
        finite |= f.iter().chain(&*f_x).all(|v| v.is_finite());
    });
    finite
}

/// Scales of hidden states from the rows that they drive, one link of the chain after another.
fn guess_hidden(
    model: &Model,
    records: &[Record],
    theta: &[f64],
    scales: &mut SignalScales,
    rate: &mut [f64],
) {
    let system = &model.system;
    let n = system.states();
    while scales.scale.iter().any(|s| s.is_nan()) {
        let slopes = mean_slopes(model, records, theta, scales);
        let mut guessed = None;
        for j in (0..n).filter(|&j| scales.scale[j].is_nan()) {
            let guess = (0..n)
                .filter(|&i| i != j && rate[i] > 0.0 && slopes[i * n + j] > 0.0)
                .map(|i| (rate[i] / slopes[i * n + j], rate[i] / scales.scale[i]))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            if let Some(guess) = guess {
                guessed = Some((j, guess));
                break;
            }
        }
        match guessed {
            Some((j, (scale, speed))) => {
                scales.scale[j] = scale;
                rate[j] = scale * speed;
            }
            // nothing that is measured feels these states: any size is as good as another
            None => scales
                .scale
                .iter_mut()
                .filter(|s| s.is_nan())
                .for_each(|s| *s = 1.0),
        }
    }
}

/// Root mean square of each ∂h_c/∂x_j along the records, hidden states at their centres.
fn mean_sight(model: &Model, records: &[Record], scales: &SignalScales) -> Vec<f64> {
    let system = &model.system;
    let (n, c) = (system.states(), system.measurements());
    let (mut ws, mut h) = (system.workspace(), vec![0.0; c]);
    let theta = vec![0.0; system.parameters()];
    mean_square(model, records, &theta, scales, c * n, |at, h_x| {
        system.linearise_measurement(&mut ws, at, &mut h, h_x);
    })
}

/// Root mean square of each ∂f_i/∂x_j along the records, hidden states at their centres.
fn mean_slopes(
    model: &Model,
    records: &[Record],
    theta: &[f64],
    scales: &SignalScales,
) -> Vec<f64> {
    let system = &model.system;
    let n = system.states();
    let (mut ws, mut f) = (system.workspace(), vec![0.0; n]);
    mean_square(model, records, theta, scales, n * n, |at, f_x| {
        system.linearise(&mut ws, at, &mut f, f_x);
    })
}

/// Root mean square of a matrix at some points of the records, entry by entry.
fn mean_square(
    model: &Model,
    records: &[Record],
    theta: &[f64],
    scales: &SignalScales,
    size: usize,
    mut evaluate: impl FnMut(Point, &mut [f64]),
) -> Vec<f64> {
    let (mut matrix, mut sum) = (vec![0.0; size], vec![0.0; size]);
    let mut count = 0;
    for record in records {
        for k in (0..record.len()).step_by(record.len().div_ceil(MOST_POINTS).max(1)) {
            let mut state = scales.center.clone();
            for (y, direct) in record.output(k).iter().zip(model.system.direct()) {
                if let (Some(i), true) = (direct, y.is_finite()) {
                    state[*i] = *y;
                }
            }
            let at = record.point(k, &state, theta);
            evaluate(at, &mut matrix);
            if matrix.iter().all(|v| v.is_finite()) {
                sum.iter_mut().zip(&matrix).for_each(|(s, v)| *s += v * v);
                count += 1;
            }
        }
    }
    sum.iter()
        .map(|s| (s / f64::from(count.max(1))).sqrt())
        .collect()
}

/// Largest minus smallest value of a channel.
fn range(records: &[Record], c: usize) -> f64 {
    center_and_scale(channel(records, c)).map_or(1.0, |(m, s)| 2.0 * usable(m, s))
}

/// Noise of a channel from its fourth differences.
///
/// They cancel any cubic, so that a smooth signal leaves nothing; of white noise of variance σ²
/// they have 70 σ². The median is not moved by spikes. Of samples at unequal distances, divided
/// differences do the same.
fn noise(records: &[Record], c: usize) -> f64 {
    let samples: Vec<_> = records.iter().map(|r| measured(r, c)).collect();
    let readings = samples.iter().map(|s| s.iter().map(|s| s.value).collect());
    let readings: Vec<Vec<f64>> = readings.collect();
    let rounding = sensors::rounding_noise(&readings);
    difference_noise(&samples)
        .max(rounding)
        .max(NOISE_FLOOR * range(records, c))
}

/// The same of samples, down to nothing.
pub(super) fn difference_noise(records: &[Vec<Sample>]) -> f64 {
    let mut differences = Vec::new();
    for samples in records {
        for w in samples.windows(5) {
            let weights = difference(&[w[0].time, w[1].time, w[2].time, w[3].time, w[4].time]);
            let terms = weights.iter().zip(w).map(|(weight, s)| weight * s.value);
            differences.push(terms.sum::<f64>().abs());
        }
    }
    if differences.is_empty() {
        return 0.0;
    }
    let middle = differences.len() / 2;
    let median = *differences.select_nth_unstable_by(middle, f64::total_cmp).1;
    // the median of |N(0, 1)| is 0.6745
    median / 0.6745 / 70f64.sqrt()
}

/// The weights of values at these times that cancel any cubic; the sum of their squares is 70.
fn difference(times: &[f64; 5]) -> [f64; 5] {
    let step = (times[4] - times[0]) / 4.0;
    let even = |t: &[f64]| (t[1] - t[0] - step).abs() <= WHOLE_STEPS_TOLERANCE * step;
    if times.windows(2).all(even) {
        return [1.0, -4.0, 6.0, -4.0, 1.0];
    }
    let mut weights = [1.0; 5];
    for (j, weight) in weights.iter_mut().enumerate() {
        for other in (0..5).filter(|&i| i != j) {
            *weight /= (times[j] - times[other]) / step;
        }
    }
    let square: f64 = weights.iter().map(|w| w * w).sum();
    weights.map(|w| w * (70.0 / square).sqrt())
}

/// Takes centre, scale and spread of the states from smoothed trajectories.
pub fn refine<'t>(
    model: &Model,
    scales: &mut SignalScales,
    trajectories: impl IntoIterator<Item = &'t Trajectory> + Clone,
) {
    let n = model.states.len();
    // none in what an earlier version wrote
    scales.spread.resize(n, 0.0);
    for i in 0..n {
        let trajectories = trajectories.clone().into_iter();
        let values = trajectories.flat_map(|states| states.column(i));
        let shown = model.system.direct().contains(&Some(i));
        let Some((center, scale)) = center_and_scale(values) else {
            continue;
        };
        let state = &model.states[i];
        if !shown {
            scales.center[i] = state.center.unwrap_or(center);
            if !scales.certain[i] {
                scales.scale[i] = usable(center, scale);
            }
        }
        let varies = model.varying().any(|(_, varying)| varying == i);
        if !varies && (state.scale.is_some() || state.center.is_some()) {
            scales.spread[i] = (center - scales.center[i]).abs() + scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{NoiseLevel, Simulation, simulate};
    use crate::systems;

    /// A channel measured at every tenth sample has the noise and the pace of the whole one, and a
    /// state seen through `1000*x` its own scale.
    #[test]
    fn sparse_and_scaled_channels_are_understood() {
        let text = systems::find("harmonic-oscillator").unwrap();
        let simulation = Simulation {
            noise: vec![Some(NoiseLevel::OfRange(0.01))],
            seed: 3,
            ..Simulation::default()
        };
        let look = |text: &str, every: usize| {
            let model = Model::from_text("ho", text).unwrap();
            let mut record = simulate(&model, &simulation).unwrap();
            for k in 0..record.len() {
                if !k.is_multiple_of(every) {
                    record.outputs[k] = f64::NAN;
                }
            }
            estimate(&model, &[record], &vec![0.0; model.system.parameters()])
        };
        let whole = look(text, 1);
        let sparse = look(text, 10);
        assert!((sparse.noise[0] / whole.noise[0] - 1.0).abs() < 0.2);
        assert!((sparse.time_constant / whole.time_constant - 1.0).abs() < 0.2);
        assert!((sparse.scale[1] / whole.scale[1] - 1.0).abs() < 0.9);
        let scaled = look(&text.replace("z = \"z\"", "z = \"1000*z\""), 1);
        for i in 0..2 {
            assert!((scaled.scale[i] / whole.scale[i] - 1.0).abs() < 0.2, "{i}");
        }
    }

    /// Divided differences cancel a cubic at any times, and leave the noise its size.
    #[test]
    fn differences_cancel_cubics_at_any_times() {
        for times in [[0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 0.2, 1.9, 2.0, 3.5]] {
            let weights = difference(&times);
            for power in 0..4 {
                let terms = weights.iter().zip(&times);
                let sum: f64 = terms.map(|(w, t)| w * t.powi(power)).sum();
                assert!(sum.abs() < 1e-12, "{times:?}: {sum}");
            }
            let square: f64 = weights.iter().map(|w| w * w).sum();
            assert!((square - 70.0).abs() < 1e-12);
        }
    }

    /// Samples missing at random neither look like noise nor hide it.
    #[test]
    fn missing_samples_are_no_noise() {
        use rand::{RngExt, SeedableRng};
        let model = Model::from_text("ho", systems::find("harmonic-oscillator").unwrap()).unwrap();
        for sigma in [0.0, 1e-2] {
            let simulation = Simulation {
                noise: vec![Some(NoiseLevel::Absolute(sigma))],
                ..Simulation::default()
            };
            let mut record = simulate(&model, &simulation).unwrap();
            let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
            for y in &mut record.outputs {
                if rng.random::<f64>() < 0.3 {
                    *y = f64::NAN;
                }
            }
            let estimated = noise(&[record], 0);
            assert!(
                (estimated - sigma).abs() < 0.1 * sigma + 1e-5,
                "{estimated} of {sigma}"
            );
        }
    }

    #[test]
    fn noise_is_found_and_none_is_not_invented() {
        let model = Model::from_text("ho", systems::find("harmonic-oscillator").unwrap()).unwrap();
        for sigma in [1e-4, 1e-2, 0.1] {
            let simulation = Simulation {
                noise: vec![Some(NoiseLevel::Absolute(sigma))],
                seed: 3,
                ..Simulation::default()
            };
            let record = simulate(&model, &simulation).unwrap();
            let estimated = noise(&[record], 0);
            assert!(
                (estimated / sigma - 1.0).abs() < 0.1,
                "{estimated} of {sigma}"
            );
        }
        let clean = simulate(&model, &Simulation::default()).unwrap();
        assert!(noise(&[clean], 0) < 1e-5);
    }

    /// The rough size of what nobody measures is within a decade, for every embedded truth.
    #[test]
    fn hidden_scales_are_of_the_right_order() {
        for (name, text) in systems::SYSTEMS {
            let model = Model::from_text(name, text).unwrap();
            if model.truth.is_none() {
                continue;
            }
            let record = simulate(&model, &Simulation::default()).unwrap();
            let theta = vec![0.0; model.system.parameters()];
            let n = model.states.len();
            let truth = record.truth.clone().unwrap();
            let scales = estimate(&model, &[record], &theta);
            for i in model.hidden() {
                let values = truth.iter().skip(i).step_by(n).copied();
                let (center, scale) = center_and_scale(values).unwrap();
                let size = scale + center.abs();
                let ratio = scales.scale[i] / size;
                assert!(
                    (0.05..20.0).contains(&ratio),
                    "{name} {}: {ratio}",
                    model.states[i].name
                );
            }
        }
    }
}
