//! Before anything is learned: the hidden trajectory from the known physics, and all scales.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::noise::noise_with;
use super::scales::{self, SignalScales};
use crate::Error;
use crate::filter::{Smoothed, Smoother};
use crate::model::Model;
use crate::model::network::Scaling;
use crate::model::settings::{Level, Settings};
use crate::numerics::objective::Noise;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// Noise of unknown rows while nothing of them is learned, in units of scale·√(Δt/τ): the
/// likelihood of the data chooses. Noise-free records want it loose, noisy ones tight, or the
/// hidden states follow the noise.
const RANDOM_WALKS: [f64; 4] = [1.0, 0.1, 0.01, 0.001];
/// The same for outputs of networks, which drive the hidden states smoothly.
const SIGNAL_WALKS: [f64; 4] = [10.0, 1.0, 0.1, 0.01];
/// Noise of known rows relative to that.
const KNOWN_ROW_FACTOR: f64 = 1e-4;
/// Gauss–Newton steps of a smoothing pass.
pub const SMOOTHING_STEPS: usize = 10;

/// Where the hidden states start, in scales from their centres: where the measured states do not
/// tell two hidden ones apart, the start decides which is found, and the likelihood between them.
const START_OFFSETS: [f64; 3] = [0.0, -1.0, 1.0];
/// How far from there they may be.
const NEARBY_SCALES: f64 = 0.1;

/// Random weights, unknown constants at their guess.
pub fn initial_theta(model: &Model, seed: u64) -> Vec<f64> {
    random_theta(model, seed, false)
}

/// The same; networks with sharp bends where `sharp`.
pub fn random_theta(model: &Model, seed: u64, sharp: bool) -> Vec<f64> {
    let mut theta = vec![0.0; model.system.parameters()];
    let mut rng = Pcg64::seed_from_u64(seed);
    for (network, range) in model
        .system
        .networks()
        .iter()
        .zip(model.system.weight_ranges())
    {
        let weights = &mut theta[range];
        network.initialise(weights, || rng.random_range(-1.0..1.0));
        if sharp {
            network.sharpen(weights, || rng.random_range(-1.0..1.0));
        }
    }
    theta
}

/// What networks put out along the records, as far as the known equations tell.
pub struct NetworkOutputs {
    /// The model with these outputs as further states.
    pub model: Model,
    /// Call and output of each.
    pub outputs: Vec<(usize, usize)>,
    /// Its states, outputs included.
    pub smoothed: Vec<Smoothed>,
}

/// Records smoothed with the known equations alone.
pub struct PriorSmoothing {
    /// Sizes of the model's states.
    pub scales: SignalScales,
    /// The states of each record.
    pub states: Vec<Smoothed>,
    /// The outputs of the networks too, where these walk.
    pub outputs: Option<NetworkOutputs>,
    /// Sizes of all that was smoothed, outputs of networks included where they walk.
    pub all_scales: SignalScales,
    /// Under which all was smoothed.
    pub noise: Noise,
}

impl PriorSmoothing {
    /// The model that was smoothed: the outputs of its networks are states where these walk.
    pub fn model<'a>(&'a self, model: &'a Model) -> &'a Model {
        self.outputs.as_ref().map_or(model, |o| &o.model)
    }

    /// The states of that model.
    pub fn smoothed(&self) -> &[Smoothed] {
        self.outputs.as_ref().map_or(&self.states, |o| &o.smoothed)
    }
}

/// What may walk at random while nothing is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walking {
    /// The rows with networks.
    Rows,
    /// The outputs of the networks: hidden states then move smoothly, which tells a hidden state that
    /// passes a point where the measured ones do not feel it from one that turns back there.
    Outputs,
}

/// Finds the hidden trajectory from the known physics, and from it the scale of everything; scales
/// the networks of the model by it. Asks `stop` on the way, many times a second.
///
/// # Errors
/// [`Error::Stopped`] where `stop` said so.
pub fn smooth_with_known_equations(
    model: &mut Model,
    records: &[Record],
    settings: &Settings,
    walking: Walking,
    dt: f64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<PriorSmoothing, Error> {
    let n = model.states.len();
    let outputs = match walking {
        Walking::Outputs => model.signals(),
        Walking::Rows => None,
    };
    let walking = outputs.as_ref().map_or(&*model, |(model, _)| model);
    let Walk {
        scales: all_scales,
        noise,
        smoothed,
        ..
    } = walks(walking, records, settings, dt, n, stop)?;
    let mut scales = all_scales.clone();
    let narrowed = |s: &Smoothed| Smoothed {
        states: s.states.narrowed(n),
        deviations: s.deviations.narrowed(n),
        cost: s.cost,
    };
    let states: Vec<Smoothed> = smoothed.iter().map(narrowed).collect();
    scales.center.truncate(n);
    scales.scale.truncate(n);
    scales.spread.truncate(n);
    scales.certain.truncate(n);
    scales.walk.truncate(n);
    scale_networks(model, records, settings, &scales, &states, dt);
    let outputs = outputs.map(|(model, outputs)| NetworkOutputs {
        model,
        outputs,
        smoothed,
    });
    Ok(PriorSmoothing {
        scales,
        states,
        outputs,
        all_scales,
        noise,
    })
}

/// A random walk, and the sizes of everything along it.
struct Walk {
    /// The log likelihood of the data.
    likelihood: f64,
    scales: SignalScales,
    noise: Noise,
    smoothed: Vec<Smoothed>,
}

/// The random walk that the data favour.
///
/// Every level of the walk is taken to its end under the sizes that it finds itself, from every
/// start: a level chosen under other sizes than those that it then runs with is another walk.
fn walks(
    model: &Model,
    records: &[Record],
    settings: &Settings,
    dt: f64,
    states: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Walk, Error> {
    let zero = vec![0.0; model.system.parameters()];
    let first_scales = scales::estimate(model, records, &zero);
    // what walks: outputs of networks; else rows of unknown shape; else those with constants
    let signals: Vec<usize> = (states..model.states.len()).collect();
    let candidates = [
        signals.as_slice(),
        model.system.network_rows(),
        model.system.unknown_rows(),
    ];
    let rows = candidates.into_iter().find(|r| !r.is_empty());
    let rows = rows.unwrap_or_default();
    let levels = if signals.is_empty() {
        RANDOM_WALKS
    } else {
        SIGNAL_WALKS
    };
    let offsets = if signals.is_empty() {
        &START_OFFSETS[..1]
    } else {
        &START_OFFSETS
    };
    let briefly = First {
        rows,
        offsets: &START_OFFSETS[..1],
        iterations: 3,
        stop,
    };
    let to_the_end = First {
        rows,
        offsets,
        iterations: SMOOTHING_STEPS,
        stop,
    };
    let walked = |level: f64, scales: &SignalScales, first: &First| {
        let noise = loose(settings, model, scales, dt, level, rows);
        let (likelihood, smoothed) = walk(model, records, &noise, scales, dt, first);
        let likelihood = if likelihood.is_nan() {
            f64::NEG_INFINITY
        } else {
            likelihood
        };
        Walk {
            likelihood,
            scales: scales.clone(),
            noise,
            smoothed,
        }
    };
    let walks = levels.into_iter().flat_map(|level| {
        let brief = walked(level, &first_scales, &briefly);
        let mut scales = first_scales.clone();
        let states = brief.smoothed.iter().map(|s| &s.states);
        scales::refine(model, &mut scales, states);
        [walked(level, &scales, &to_the_end), brief]
    });
    let best = walks.reduce(|best, next| {
        if next.likelihood > best.likelihood {
            next
        } else {
            best
        }
    });
    let mut best = best.expect("one level at least");
    if stop() {
        return Err(Error::Stopped);
    }
    let states = best.smoothed.iter().map(|s| &s.states);
    scales::refine(model, &mut best.scales, states);
    Ok(best)
}

/// The noise of a random walk of some rows, the others all but exact.
fn loose(
    settings: &Settings,
    model: &Model,
    scales: &SignalScales,
    dt: f64,
    level: f64,
    rows: &[usize],
) -> Noise {
    let loose = Settings {
        known_noise: Level::Relative(level * KNOWN_ROW_FACTOR),
        hidden_noise: Level::Relative(level),
        start_noise: Level::Relative(1.0),
        ..settings.clone()
    };
    noise_with(&loose, model, scales, dt, rows)
}

/// How records are smoothed before anything is learned.
struct First<'a> {
    /// What walks at random.
    rows: &'a [usize],
    /// Where the hidden states start, in scales from their centres.
    offsets: &'a [f64],
    /// Gauss–Newton steps.
    iterations: usize,
    /// Whether somebody wants to stop.
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// The records smoothed with networks at zero and their rows as random walks, and the log
/// likelihood of the data.
fn walk(
    model: &Model,
    records: &[Record],
    noise: &Noise,
    scales: &SignalScales,
    dt: f64,
    first: &First,
) -> (f64, Vec<Smoothed>) {
    let First {
        rows,
        offsets,
        iterations,
        stop,
    } = *first;
    let stepper = Stepper::over(model, &model.system, dt, records).stopped_by(stop);
    let zero = vec![0.0; model.system.parameters()];
    let mut hidden = model.hidden();
    let known = |i: &usize| stepper.known_starts().iter().any(|known| known.state == *i);
    hidden.retain(|i| !rows.contains(i) && !known(i));
    let smoothed_record = |record: &Record| {
        let noise = starting_at(&stepper, record, noise);
        let smoother = Smoother {
            stepper: &stepper,
            record,
            theta: &zero,
            noise: &noise,
        };
        let from = |offset: &f64| {
            let start = elsewhere(&hidden, scales, &noise, *offset);
            let filter = Smoother {
                noise: &start,
                ..smoother
            };
            let smoothed = smoother.smooth(filter.filtered(), iterations);
            (smoother.log_likelihood(&smoothed.states), smoothed)
        };
        let all: Vec<_> = offsets.par_iter().map(from).collect();
        let better = |a: &(f64, _), b: &(f64, _)| a.0 > b.0 || b.0.is_nan();
        let best = all
            .into_iter()
            .reduce(|a, b| if better(&b, &a) { b } else { a });
        best.expect("one start at least")
    };
    let all: Vec<_> = records.par_iter().map(smoothed_record).collect();
    let likelihood = all.iter().map(|(l, _)| l).sum();
    let smoothed = all.into_iter().map(|(_, s)| s).collect();
    (likelihood, smoothed)
}

/// The same prior with the hidden states' start elsewhere.
fn elsewhere(hidden: &[usize], scales: &SignalScales, noise: &Noise, offset: f64) -> Noise {
    let mut noise = noise.clone();
    if offset != 0.0 {
        for &i in hidden {
            noise.start_mean[i] += offset * scales.scale[i];
            noise.start[i] = (NEARBY_SCALES * scales.scale[i]).powi(2);
        }
    }
    noise
}

/// The prior of a record's start: its own first measurements where a channel shows a state, and what the file
/// knows of it.
pub fn starting_at(stepper: &Stepper, record: &Record, noise: &Noise) -> Noise {
    let mut noise = noise.clone();
    noise.begin(record, stepper.system().direct(), stepper.known_starts());
    noise
}

/// Arguments to order one along the smoothed trajectories; outputs to the rate of their rows.
fn scale_networks(
    model: &mut Model,
    records: &[Record],
    settings: &Settings,
    scales: &SignalScales,
    smoothed: &[Smoothed],
    dt: f64,
) {
    let system = &model.system;
    let zero = vec![0.0; system.parameters()];
    let mut ws = system.workspace();
    let mut ranges: Vec<Vec<(f64, f64)>> = system
        .networks()
        .iter()
        .map(|net| vec![(f64::INFINITY, f64::NEG_INFINITY); net.arguments])
        .collect();
    for (record, s) in records.iter().zip(smoothed) {
        for (k, state) in s.states.rows().enumerate() {
            let at = record.point(k, state, &zero);
            system.visit_arguments(&mut ws, at, |network, values| {
                for ((low, high), v) in ranges[network].iter_mut().zip(values) {
                    *low = low.min(*v);
                    *high = high.max(*v);
                }
            });
        }
    }
    let rate = rates(&Stepper::new(model, system, dt), records, smoothed);
    let scalings: Vec<Scaling> = system
        .networks()
        .iter()
        .enumerate()
        .map(|(i, net)| {
            let (mut center, mut scale) = (vec![], vec![]);
            for &(low, high) in &ranges[i] {
                let (c, s) = ((low + high) / 2.0, (high - low) / 2.0);
                let (c, s) = if s.is_finite() {
                    (c, scales::usable(c, s))
                } else {
                    (0.0, 1.0)
                };
                center.push(c);
                scale.push(s);
            }
            let output = (0..net.outputs.len())
                .map(|k| {
                    if settings.scale_outputs {
                        output_scale(model, scales, i, k, &rate)
                    } else {
                        1.0
                    }
                })
                .collect();
            Scaling {
                center,
                scale,
                output,
            }
        })
        .collect();
    for (i, scaling) in scalings.into_iter().enumerate() {
        model.system.set_scaling(i, scaling);
    }
}

/// Root mean square rate of each state along smoothed trajectories.
fn rates(stepper: &Stepper, records: &[Record], smoothed: &[Smoothed]) -> Vec<f64> {
    let n = stepper.system().states();
    (0..n)
        .map(|i| {
            let (mut sum, mut count) = (0.0, 0);
            for (record, s) in records.iter().zip(smoothed) {
                let column: Vec<f64> = s.states.column(i).collect();
                for (w, gap) in column.windows(2).zip(record.gaps()) {
                    let time = stepper.span(gap).samples * stepper.dt();
                    sum += ((w[1] - w[0]) / time).powi(2);
                    count += 1;
                }
            }
            (sum / f64::from(count.max(1))).sqrt()
        })
        .collect()
}

/// The rate of the first row that this output drives, divided by how strongly it drives it.
fn output_scale(
    model: &Model,
    scales: &SignalScales,
    network: usize,
    k: usize,
    rate: &[f64],
) -> f64 {
    let channel = model.system.channel_of(network);
    let fallback = channel.map_or(1.0, |channel| 0.5 * scales.range[channel]);
    let zero = vec![0.0; model.system.parameters()];
    let driven = model.system.rows_driven(network, k, &scales.center, &zero);
    driven
        .into_iter()
        .map(|(row, factor)| rate[row] / factor.abs())
        .find(|v| v.is_finite() && *v > 0.0)
        .unwrap_or(fallback)
}
