//! What records can tell about a model, before anything is learned from them.
//!
//! The records are smoothed with the known equations alone, every output of a network walking at
//! random. Along that trajectory:
//!
//! - A state is *determined* where the smoother's standard deviation is small beside the state's
//!   scale: all measurements, those before and after included, say where it is.
//! - A state is *seen* where the measurements of a short window say so by themselves. With W the
//!   observability Gramian of the window, [H; H F_x; …] weighted by the noise, and D the scales,
//!   C = (I + D W D)⁻¹ is what is left of a prior as wide as the scales: the root of its diagonal
//!   is 1 where the window says nothing about a state, and 0 where it says all.
//! - States that only act together are found as eigenvectors of S(I + S)⁻¹, with S = D⁻¹ P D⁻¹ the
//!   smoother's covariance, averaged over the record: an eigenvalue of ½ and more is a combination
//!   that is known no better than its scale, all the time.
//! - A network's arguments are *excited* in as many directions as their covariance has.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::noise::RESOLUTION;
use super::prior::PriorSmoothing;
use super::scales::SignalScales;
use super::suspects::Suspect;
use super::trial::Leaving;
use super::{Invariance, Stiffness};
use super::{blind, invariance, mirror, region, roughness, sensors, shift, stiffness, trial};
use crate::described;
use crate::described::{Described, Value};
use crate::filter::{Smoothed, Smoother};
use crate::model::small;
use crate::model::{KnownStart, Model, System};
use crate::numerics::linalg::eigen::Eigen;
use crate::numerics::linalg::matrix::Matrix;
use crate::numerics::objective::Noise;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// A state counts as determined, or seen, where its standard deviation is below this part of its
/// scale …
pub const DETERMINED_SCALE_PART: f64 = 0.3;
/// … and on the whole where that holds over this part of the records.
const MOSTLY_RECORD_PART: f64 = 0.9;
/// Above this part of the scale a state is not determined at all.
const BLIND_SCALE_PART: f64 = 0.8;
/// Members of a combination have at least this part of its largest entry.
const MEMBER_ENTRY_PART: f64 = 0.3;
/// Samples that all windows have together, and how many there are at the most and at the least.
const WINDOWED_SAMPLES: usize = 400_000;
const WINDOW_COUNTS: (usize, usize) = (50, 1000);
/// Samples of a record at which whole covariances are looked at.
const COVARIANCE_SAMPLES: usize = 2000;
/// A direction in which arguments move by less than this, in half ranges, is none: one of them
/// follows from the others. On noisy records, less than the noise over range of the worst channel.
const FOLLOWING_RANGE_PART: f64 = 0.01;
/// Cells of an argument's range.
const CELLS_PER_RANGE: f64 = 10.0;
/// How clearly a signal must tell the samples at which a state is seen from the others.
const TELLING_PART: f64 = 0.9;

/// What records can tell about a model.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// Standard deviation of each channel's noise.
    pub noise: Vec<f64>,
    /// Whether that is an upper bound only, because the channel is not smooth beside the sampling.
    pub noise_at_most: Vec<bool>,
    /// Largest minus smallest value of each channel.
    pub range: Vec<f64>,
    /// Where the model at its guesses leaves the finite numbers, if it does.
    pub leaves: Option<Leaving>,
    /// Where the equations are too stiff for the model's explicit method, if they are.
    pub stiffness: Option<Stiffness>,
    /// Length of a window, in time.
    pub window: f64,
    /// The same in samples.
    pub window_samples: usize,
    /// What the records say about each state.
    pub states: Vec<StateCheck>,
    /// States that the records do not tell apart: only a combination of each group is determined.
    pub together: Vec<Vec<String>>,
    /// States that can be negated together, with the networks that drive them, and nothing that is
    /// measured feels it.
    pub mirrored: Vec<Vec<String>>,
    /// Changes of constants that nothing measured feels.
    pub invariances: Vec<Invariance>,
    /// What the channels show of their sensors.
    pub sensors: Vec<Finding>,
    /// Where the records take each network.
    pub networks: Vec<Coverage>,
    /// The same over time.
    pub moments: Vec<Moment>,
    /// Readings that contradict the others; they were not looked at.
    pub suspects: Vec<Suspect>,
}

described! {
/// What the records say about one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateCheck {
    pub name: String,
    pub unit: String,
    pub center: f64,
    pub scale: f64,
    pub sight: Sight,
    /// Part of the samples at which it is determined.
    pub determined: f64,
    /// Standard deviation over scale: median and largest.
    pub median: f64,
    pub worst: f64,
    /// Part of the windows in which it is seen.
    pub seen: f64,
    /// A signal that tells when.
    pub when: Option<When>,
}
}

/// How well the records show a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// A channel shows it as it is.
    Measured,
    /// Determined over nearly all of the records.
    Well,
    /// Determined over part of them.
    Partly,
    /// Known no better than its scale.
    Undetermined,
    /// Determined but for a constant added to it, which a network that is not known yet makes up for.
    UpToShift,
    /// It acts on what is measured only through a network, which is not known yet.
    ThroughNetwork,
    /// Nothing that is measured depends on it.
    Isolated,
}

impl Described for Sight {
    fn schema() -> Value {
        use Sight::{Isolated, Measured, Partly, ThroughNetwork, Undetermined, UpToShift, Well};
        let all = [
            Measured,
            Well,
            Partly,
            Undetermined,
            UpToShift,
            ThroughNetwork,
            Isolated,
        ];
        serde_json::json!({ "enum": all })
    }
}

described! {
/// A state is seen where this signal is above, or below, a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct When {
    pub signal: String,
    pub unit: String,
    pub above: bool,
    pub level: f64,
}
}

described! {
/// A window of a record, named by its middle.
#[derive(Debug, Clone, Serialize)]
pub struct Moment {
    /// Record, from 0.
    pub record: usize,
    pub time: f64,
    /// Standard deviation over scale of each state, from the whole record.
    pub deviations: Vec<f64>,
    /// The same from the measurements of the window alone; at most 1.
    pub seen: Vec<f64>,
    /// How many times worse the window shows its least seen direction of the states than its best.
    pub condition: f64,
}
}

described! {
/// Where the records take a network.
#[derive(Debug, Clone, Serialize)]
pub struct Coverage {
    pub network: String,
    pub arguments: Vec<String>,
    /// Lowest and highest value of each argument.
    pub ranges: Vec<(f64, f64)>,
    /// Arguments that never move.
    pub still: Vec<String>,
    /// Directions in which the arguments move.
    pub directions: usize,
    /// Arguments that do not move freely of each other, as u and x where u = −Kx.
    pub dependent: Vec<String>,
    /// Standard deviation along each direction, from the least, in half ranges.
    pub spread: Vec<f64>,
    /// Cells visited, of ten for each argument.
    pub cells: usize,
}
}

/// What the looks of a check have in common.
struct Walked<'a> {
    /// The model with what walks as further states, or without.
    model: &'a Model,
    /// Its sizes, and its states along the records.
    scales: &'a SignalScales,
    smoothed: &'a [Smoothed],
    /// Those of the model itself.
    states: &'a [Smoothed],
    /// Under what each record was smoothed.
    noises: Vec<Noise>,
    /// R_y of a window: no channel is better than the solver resolves it.
    variance: Vec<f64>,
    dt: f64,
}

/// Looks at records that were smoothed; the networks of `model` are scaled.
pub fn check(model: &Model, records: &[Record], prior: &PriorSmoothing, dt: f64) -> Check {
    let walking = prior.model(model);
    let known: Vec<KnownStart> = model.known_starts().collect();
    let noises = records.iter().map(|record| {
        let mut noise = prior.noise.clone();
        noise.begin(record, walking.system.direct(), &known);
        noise
    });
    let sizes = prior.all_scales.noise.iter().zip(&prior.all_scales.range);
    let variance = sizes.map(|(noise, range)| noise.max(RESOLUTION * range).powi(2));
    let walked = &Walked {
        variance: variance.collect(),
        model: walking,
        scales: &prior.all_scales,
        noises: noises.collect(),
        smoothed: prior.smoothed(),
        states: &prior.states,
        dt,
    };
    let length = walked.scales.time_constant / walked.dt;
    let longest = records.iter().map(Record::len).max().unwrap_or(1);
    let fewest = 2 * walked.scales.scale.len();
    let window = (length.ceil() as usize).clamp(fewest, longest.max(fewest));
    let by_record = records.par_iter().enumerate().map(|(k, record)| {
        let samples: usize = records.iter().map(Record::len).sum();
        let windows = (WINDOWED_SAMPLES / window).clamp(WINDOW_COUNTS.0, WINDOW_COUNTS.1);
        let share = (windows * record.len()).div_ceil(samples);
        along(model, walked, k, record, window, share)
    });
    let by_record: Vec<Along> = by_record.collect();
    let moments: Vec<Moment> = by_record.iter().flat_map(|a| a.moments.clone()).collect();
    let mut states = states(model, records, walked, &by_record, &moments);
    let outputs = prior.outputs.as_ref();
    for j in outputs.map_or(vec![], |o| shift::shifted(model, o, records, walked.scales)) {
        let state = &mut states[j];
        if matches!(state.sight, Sight::Well | Sight::Partly) {
            // what the smoother is sure of is how its outputs were taken to walk
            (state.sight, state.determined) = (Sight::UpToShift, 0.0);
            (state.median, state.worst) = (state.median.max(1.0), state.worst.max(1.0));
        }
    }
    let leaves = trial::simulate(model, records, prior, dt);
    if leaves.as_ref().is_some_and(|l| l.undefined) {
        // what a smoother says with equations that are no numbers is nothing
        for state in states.iter_mut().filter(|s| s.sight != Sight::Measured) {
            (state.sight, state.determined, state.seen) = (Sight::Undetermined, 0.0, 0.0);
            (state.median, state.worst) = (1.0, 1.0);
        }
    }
    let channels = 0..model.measurements.len();
    let undefined = leaves.as_ref().is_some_and(|l| l.undefined);
    Check {
        invariances: if undefined {
            vec![]
        } else {
            invariance::find(model, records, prior, dt)
        },
        noise_at_most: channels.map(|c| roughness::is_bound(records, c)).collect(),
        stiffness: if undefined {
            None
        } else {
            stiffness::find(model, records, prior, dt)
        },
        leaves,
        noise: walked.scales.noise.clone(),
        range: walked.scales.range.clone(),
        window: window as f64 * walked.dt,
        window_samples: window,
        together: together(model, &states, &by_record),
        mirrored: mirrored(model, records, walked, &states),
        states,
        sensors: [
            sensors::findings(model, records),
            blind::findings(model, records),
        ]
        .concat(),
        networks: networks(model, records, walked),
        moments,
        suspects: vec![],
    }
}

/// What one record says.
struct Along {
    /// Standard deviation over scale, one for each state, sample by sample.
    deviations: Vec<f64>,
    /// The sum of S(I + S)⁻¹ over some samples, and their number.
    folded: Vec<f64>,
    count: f64,
    moments: Vec<Moment>,
}

fn along(
    model: &Model,
    walked: &Walked,
    k: usize,
    record: &Record,
    window: usize,
    windows: usize,
) -> Along {
    let (n, all) = (model.states.len(), walked.scales.scale.len());
    let stepper = Stepper::new(walked.model, &walked.model.system, walked.dt);
    let theta = vec![0.0; walked.model.system.parameters()];
    let smoother = Smoother {
        stepper: &stepper,
        record,
        theta: &theta,
        noise: &walked.noises[k],
    };
    let pass = smoother.forward(&walked.smoothed[k].states);
    let scale = &walked.scales.scale;
    let mut along = Along {
        deviations: vec![f64::INFINITY; record.len() * n],
        folded: vec![0.0; n * n],
        count: 0.0,
        moments: vec![],
    };
    let every = record.len().div_ceil(COVARIANCE_SAMPLES);
    smoother.covariances(&pass, |i, covariance| {
        let s: Vec<f64> = (0..n * n)
            .map(|at| covariance[at / n * all + at % n] / (scale[at / n] * scale[at % n]))
            .collect();
        for j in 0..n {
            let std = s[j * n + j].max(0.0).sqrt();
            along.deviations[i * n + j] = if std.is_nan() { f64::INFINITY } else { std };
        }
        if i % every == 0 {
            // what is no number is not known: S is infinite there, and I + S has no inverse
            let rest = inverse_of_one_plus(&s, n).unwrap_or(vec![0.0; n * n]);
            for (at, sum) in along.folded.iter_mut().enumerate() {
                *sum += f64::from(at / n == at % n) - rest[at];
            }
            along.count += 1.0;
        }
    });
    let last = record.len().saturating_sub(window);
    let starts: Vec<usize> = (0..windows.min(last + 1))
        .map(|w| last * w / windows.min(last + 1).saturating_sub(1).max(1))
        .collect();
    let moment = |&first: &usize| {
        let samples = first..record.len().min(first + window);
        let middle = (samples.start + samples.end) / 2;
        let mut w = smoother.gramian(&pass, samples, &walked.variance);
        for (at, w) in w.iter_mut().enumerate() {
            *w *= scale[at / all] * scale[at % all];
        }
        let rest = inverse_of_one_plus(&w, all).unwrap_or(small::identity(all));
        let seen = Matrix::from_fn(n, n, |i, j| rest[i * all + j]);
        let values = Eigen::new(&seen).values;
        Moment {
            record: k,
            time: record.time[middle],
            deviations: along.deviations[middle * n..(middle + 1) * n].to_vec(),
            seen: (0..n)
                .map(|j| seen[(j, j)].clamp(0.0, 1.0).sqrt())
                .collect(),
            condition: (values[n - 1] / values[0].max(f64::MIN_POSITIVE)).sqrt(),
        }
    };
    along.moments = starts.par_iter().map(moment).collect();
    along
}

/// (I + A)⁻¹; `None` where that is no matrix of numbers.
fn inverse_of_one_plus(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut sum = a.to_vec();
    (0..n).for_each(|i| sum[i * n + i] += 1.0);
    let mut inverse = small::identity(n);
    small::solve(&mut sum, &mut inverse, n).ok()?;
    inverse.iter().all(|v| v.is_finite()).then_some(inverse)
}

fn states(
    model: &Model,
    records: &[Record],
    walked: &Walked,
    by_record: &[Along],
    moments: &[Moment],
) -> Vec<StateCheck> {
    let n = model.states.len();
    // a network's slopes count as a path in the model itself, and not where its outputs are states
    let signals = model.signals();
    let known = signals.as_ref().map_or(&model.system, |(m, _)| &m.system);
    let (felt, felt_for_sure) = (felt(&model.system), felt(known));
    let check_of = |(j, state): (usize, &crate::model::State)| {
        let deviations = by_record
            .iter()
            .flat_map(|a| a.deviations.iter().skip(j).step_by(n));
        let mut deviations: Vec<f64> = deviations.copied().collect();
        deviations.sort_unstable_by(f64::total_cmp);
        let median = deviations[deviations.len() / 2];
        let determined = deviations.partition_point(|d| *d <= DETERMINED_SCALE_PART) as f64
            / deviations.len() as f64;
        let sees = |m: &Moment| m.seen[j] <= DETERMINED_SCALE_PART;
        let seen = moments.iter().filter(|m| sees(m)).count() as f64 / moments.len() as f64;
        let sight = if model.system.direct().contains(&Some(j)) {
            Sight::Measured
        } else if !felt[j] {
            Sight::Isolated
        } else if determined >= MOSTLY_RECORD_PART {
            Sight::Well
        } else if !felt_for_sure[j] {
            Sight::ThroughNetwork
        } else if median >= BLIND_SCALE_PART {
            Sight::Undetermined
        } else {
            Sight::Partly
        };
        let partly = sight != Sight::Measured && seen > 0.0 && seen < MOSTLY_RECORD_PART;
        StateCheck {
            name: state.name.clone(),
            unit: state.unit.clone(),
            center: walked.scales.center[j],
            scale: walked.scales.scale[j],
            sight,
            determined,
            median,
            worst: deviations[deviations.len() - 1],
            seen,
            when: if partly {
                when(model, records, moments, j)
            } else {
                None
            },
        }
    };
    model.states.iter().enumerate().map(check_of).collect()
}

/// Of the states that the records show, those whose sign they do not.
fn mirrored(
    model: &Model,
    records: &[Record],
    walked: &Walked,
    states: &[StateCheck],
) -> Vec<Vec<String>> {
    let shown = |i: &usize| matches!(states[*i].sight, Sight::Well | Sight::Partly);
    let sets = mirror::mirrors(walked.model, model.states.len(), records, walked.scales);
    let shown = sets.into_iter().filter(|set| set.iter().all(shown));
    let named = |set: Vec<usize>| set.iter().map(|&i| states[i].name.clone()).collect();
    shown.map(named).collect()
}

/// The states that some measurement depends on, however many equations are between.
fn felt(system: &System) -> Vec<bool> {
    let mut felt = vec![false; system.states()];
    system
        .measure_pattern()
        .iter()
        .for_each(|&(_, j)| felt[j] = true);
    loop {
        let more = system.pattern().iter().find(|&&(i, j)| felt[i] && !felt[j]);
        match more {
            Some(&(_, j)) => felt[j] = true,
            None => return felt,
        }
    }
}

/// The channel or input whose level best tells when a state is seen, if one does.
fn when(model: &Model, records: &[Record], moments: &[Moment], j: usize) -> Option<When> {
    let (d_u, d_y) = (model.inputs.len(), model.measurements.len());
    let mut best: Option<(f64, When)> = None;
    for c in 0..d_y + d_u {
        let mut values: Vec<(f64, bool)> = vec![];
        for moment in moments {
            let record = &records[moment.record];
            let k = record.time.partition_point(|t| *t < moment.time);
            let value = if c < d_y {
                record.output(k)[c]
            } else {
                record.input(k)[c - d_y]
            };
            if !value.is_nan() {
                values.push((value, moment.seen[j] <= DETERMINED_SCALE_PART));
            }
        }
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let all = values.iter().filter(|v| v.1).count() as f64;
        let none = values.len() as f64 - all;
        let (mut below, mut not_below) = (0.0, 0.0);
        for pair in values.windows(2) {
            if pair[0].1 {
                below += 1.0;
            } else {
                not_below += 1.0;
            }
            if pair[0].0 == pair[1].0 {
                continue;
            }
            let telling = 0.5 * ((all - below) / all + not_below / none);
            let (above, telling) = (telling >= 0.5, telling.max(1.0 - telling));
            if telling >= TELLING_PART && best.as_ref().is_none_or(|(before, _)| telling > *before)
            {
                let signal = if c < d_y {
                    &model.measurements[c]
                } else {
                    &model.inputs[c - d_y]
                };
                let when = When {
                    signal: signal.name.clone(),
                    unit: signal.unit.clone(),
                    above,
                    level: 0.5 * (pair[0].0 + pair[1].0),
                };
                best = Some((telling, when));
            }
        }
    }
    best.map(|(_, when)| when)
}

/// Groups of states of which only combinations are determined.
fn together(model: &Model, states: &[StateCheck], by_record: &[Along]) -> Vec<Vec<String>> {
    let n = model.states.len();
    let open = |j: &usize| {
        let alone = [
            Sight::Measured,
            Sight::Isolated,
            Sight::ThroughNetwork,
            Sight::UpToShift,
        ];
        !alone.contains(&states[*j].sight)
    };
    let open: Vec<usize> = (0..n).filter(open).collect();
    let count: f64 = by_record.iter().map(|a| a.count).sum();
    let mean = |i: usize, j: usize| {
        let sum: f64 = by_record
            .iter()
            .map(|a| a.folded[open[i] * n + open[j]])
            .sum();
        sum / count
    };
    let Eigen { values, vectors } = Eigen::new(&Matrix::from_fn(open.len(), open.len(), mean));
    let blind = BLIND_SCALE_PART * BLIND_SCALE_PART / (1.0 + BLIND_SCALE_PART * BLIND_SCALE_PART);
    let groups = values.iter().enumerate().filter(|(_, v)| **v >= blind);
    let members = groups.map(|(k, _)| {
        let largest = (0..open.len())
            .map(|i| vectors[(i, k)].abs())
            .fold(0.0, f64::max);
        let takes_part = |i: &usize| vectors[(*i, k)].abs() >= MEMBER_ENTRY_PART * largest;
        let members = (0..open.len()).filter(takes_part);
        members
            .map(|i| model.states[open[i]].name.clone())
            .collect()
    });
    // two blind directions of the same states are one sentence
    let mut named: Vec<Vec<String>> = members.filter(|m: &Vec<_>| m.len() > 1).collect();
    named.sort();
    named.dedup();
    named
}

/// Where the arguments of each network go along the records.
fn networks(model: &Model, records: &[Record], walked: &Walked) -> Vec<Coverage> {
    let system = &model.system;
    let sizes = walked.scales.noise.iter().zip(&walked.scales.range);
    let follows = sizes
        .map(|(noise, range)| noise / range)
        .fold(FOLLOWING_RANGE_PART, f64::max);
    let mut met: Vec<Vec<Vec<f64>>> = vec![vec![]; system.networks().len()];
    for (record, smoothed) in records.iter().zip(walked.states) {
        region::met(system, record, &smoothed.states, &mut |_, i, scaled| {
            if scaled.iter().all(|v| v.is_finite()) {
                met[i].push(scaled.to_vec());
            }
        });
    }
    let networks = met.iter().enumerate();
    networks
        .map(|(i, met)| coverage(model, i, met, follows))
        .collect()
}

fn coverage(model: &Model, network: usize, met: &[Vec<f64>], follows: f64) -> Coverage {
    let names = model.arguments(network);
    let network = &model.system.networks()[network];
    let count = (met.len() as f64).max(1.0);
    let mean = |j: usize| met.iter().map(|z| z[j]).sum::<f64>() / count;
    let means: Vec<f64> = (0..network.arguments).map(mean).collect();
    let product = |i: usize, j: usize| {
        let products = met.iter().map(|z| (z[i] - means[i]) * (z[j] - means[j]));
        products.sum::<f64>() / count
    };
    let (moving, still): (Vec<usize>, Vec<usize>) =
        (0..network.arguments).partition(|&j| product(j, j) > 1e-18);
    let covariance = Matrix::from_fn(moving.len(), moving.len(), |i, j| {
        product(moving[i], moving[j])
    });
    let Eigen { values, vectors } = Eigen::new(&covariance);
    let spread: Vec<f64> = values.iter().map(|v| v.max(0.0).sqrt()).collect();
    let flat = spread.iter().filter(|s| **s < follows).count();
    // how much of an argument lies in the directions that do not move
    let in_flat = |i: usize| (0..flat).map(|k| vectors[(i, k)].powi(2)).sum::<f64>();
    let dependent = (0..moving.len()).filter(|&i| in_flat(i) > 0.01);
    let range = |j: usize| {
        let values = met.iter().map(|z| z[j]);
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        let unscaled = |z: f64| network.scaling.center[j] + network.scaling.scale[j] * z;
        (unscaled(low), unscaled(high))
    };
    let cell = |z: &Vec<f64>| -> Vec<i64> {
        let part = |z: &f64| {
            (0.5 * CELLS_PER_RANGE * (z + 1.0))
                .floor()
                .clamp(0.0, CELLS_PER_RANGE - 1.0)
        };
        z.iter().map(|z| part(z) as i64).collect()
    };
    Coverage {
        network: network.name.clone(),
        ranges: (0..network.arguments).map(range).collect(),
        still: still.iter().map(|&j| names[j].clone()).collect(),
        directions: moving.len() - flat,
        dependent: dependent.map(|i| names[moving[i]].clone()).collect(),
        spread,
        cells: met.iter().map(cell).collect::<HashSet<_>>().len(),
        arguments: names,
    }
}
