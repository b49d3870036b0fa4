//! Solvers of the one objective: what to learn from which records, and how the passes go.
//!
//! A fit runs in four parts. (1) A smoothing pass with the networks at zero and loose noise on
//! their rows finds the hidden trajectory from the known physics alone, and with it the scales of
//! everything. (2) The networks get scaled arguments and a random start. (3) Each epoch starts
//! from the smoothed initial states and passes the recursion over the records. (4) The states
//! are smoothed with what was learned, and the free run is scored.

pub mod alternating;
pub mod epoch;
pub mod joint;
pub mod settings;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

pub use settings::{Level, Settings, Solver};

use crate::Error;
use crate::estimate::{Smoothed, Smoother};
use crate::fit::nominal::{self, Nominal};
use crate::fit::{Estimate, Fit};
use crate::linalg::PackedCovariance;
use crate::model::network::Scaling;
use crate::model::{Model, Point};
use crate::objective::{Cost, Noise};
use crate::record::Record;
use crate::score;
use crate::step::Stepper;
use alternating::Form;
use epoch::{Epoch, Segment};

/// How far a fit has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub epoch: usize,
    pub epochs: usize,
    pub step: usize,
    pub steps: usize,
}

/// One pass over the records, in numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EpochReport {
    pub epoch: usize,
    /// The terms of the objective along the pass.
    pub cost: Cost,
    /// Mean of ν²/s: near 1 where the innovations are as large as the filter says.
    pub consistency: f64,
    /// Mean nRMSE of the measured channels in a free run; what `keep_best` goes by.
    pub free_run: f64,
}

/// Watches a fit; `false` stops it.
pub trait Observer {
    /// A few hundred steps have passed.
    fn progress(&mut self, _progress: &Progress) -> bool {
        true
    }
    /// An epoch is over.
    fn epoch(&mut self, _report: &EpochReport) -> bool {
        true
    }
}

/// An observer that only lets things happen.
pub struct Silent;

impl Observer for Silent {}

/// Gauss–Newton steps of a smoothing pass.
const SMOOTHING: usize = 10;
/// Noise of unknown rows while nothing of them is learned, in units of scale·√(Δt/τ).
const RANDOM_WALK: f64 = 1.0;
/// Noise of known rows relative to that.
const KNOWN_ROWS: f64 = 1e-4;

/// Learns θ from the records.
pub fn fit(
    model: &Model,
    records: &[Record],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    settings.check(model)?;
    let dt = sample_time(records)?;
    let mut model = model.clone();
    let (nominal, first) = prepare(&mut model, records, settings, dt);
    let model = model;
    let stepper = Stepper::new(&model, &model.system, dt);
    let noise = settings.noise(&model, &nominal, dt);
    let mut theta = initial_theta(&model, settings.seed);
    let prior = theta.clone();

    let n = theta.len();
    let new_covariance =
        || PackedCovariance::scaled_identity(n, settings.parameter_variance, settings.precision());
    let mut covariance = new_covariance();
    let mut smoothed = first;
    let mut drift = settings.parameter_drift;
    let mut reports = Vec::new();
    let mut best: Option<(f64, Vec<f64>, PackedCovariance)> = None;
    for number in 1..=settings.epochs {
        if number > 1 {
            smoothed = smooth_all(&stepper, records, &theta, &noise, smoothed);
            if settings.reopen {
                covariance = new_covariance();
            }
        }
        let segments = cut(records, &smoothed, &noise, settings);
        let mut epoch = Epoch {
            model: &model,
            stepper: &stepper,
            settings,
            noise: &noise,
            scale: &nominal.scale,
            theta,
            covariance,
            drift,
            number,
            cost: Cost::default(),
            consistency: (0.0, 0),
            observer,
        };
        match settings.solver {
            Solver::Alternating => alternating::sweep(&mut epoch, &segments, Form::Corrected)?,
            Solver::AsPrinted => alternating::sweep(&mut epoch, &segments, Form::AsPrinted)?,
            Solver::Joint => joint::sweep(&mut epoch, &segments)?,
        }
        let distance: f64 = epoch
            .theta
            .iter()
            .zip(&prior)
            .map(|(a, b)| (a - b) * (a - b))
            .sum();
        epoch.cost.prior = 0.5 * distance / settings.parameter_variance;
        let (cost, consistency) = (epoch.cost, epoch.consistency);
        theta = epoch.theta;
        covariance = epoch.covariance;
        drift *= settings.anneal;

        let last = number == settings.epochs;
        let free_run = if settings.keep_best || last {
            measured_error(&stepper, records, &theta, &noise, &smoothed)
        } else {
            f64::NAN
        };
        let report = EpochReport {
            epoch: number,
            cost,
            consistency: consistency.0 / consistency.1.max(1) as f64,
            free_run,
        };
        if settings.keep_best && best.as_ref().is_none_or(|(error, ..)| free_run < *error) {
            best = Some((free_run, theta.clone(), covariance.clone()));
        }
        let go_on = observer.epoch(&report);
        reports.push(report);
        if !go_on {
            break;
        }
    }
    if let Some((_, best_theta, best_covariance)) = best {
        theta = best_theta;
        covariance = best_covariance;
    }
    let smoothed = smooth_all(&stepper, records, &theta, &noise, smoothed);
    let estimates = records
        .iter()
        .zip(smoothed)
        .map(|(record, s)| Estimate::new(&stepper, record, &theta, &noise, s))
        .collect();
    Ok(Fit {
        theta,
        covariance,
        settings: settings.clone(),
        noise,
        nominal,
        reports,
        estimates,
        dt,
        model,
    })
}

/// The sample time that all records share.
fn sample_time(records: &[Record]) -> Result<f64, Error> {
    let Some(first) = records.first() else {
        return Err(Error::Setting("a fit needs at least one record".into()));
    };
    let dt = first.step();
    for record in records {
        if record.len() < 3 {
            return Err(Error::Setting(format!(
                "{} has {} sample(s); a fit needs more",
                record.name,
                record.len()
            )));
        }
        if (record.step() - dt).abs() > Record::STEP_TOLERANCE * dt {
            return Err(Error::Setting(format!(
                "{} has a sample time of {}, {} of {}; resample one of them",
                first.name,
                dt,
                record.name,
                record.step()
            )));
        }
    }
    Ok(dt)
}

/// Random weights, unknown constants at their guess.
pub fn initial_theta(model: &Model, seed: u64) -> Vec<f64> {
    let mut theta = vec![0.0; model.system.parameters()];
    let mut rng = Pcg64::seed_from_u64(seed);
    for (network, range) in model
        .system
        .networks()
        .iter()
        .zip(model.system.weight_ranges())
    {
        network.initialise(&mut theta[range], || rng.random_range(-1.0..1.0));
    }
    theta
}

/// Finds the hidden trajectory from the known physics, and from it the scale of everything.
fn prepare(
    model: &mut Model,
    records: &[Record],
    settings: &Settings,
    dt: f64,
) -> (Nominal, Vec<Smoothed>) {
    let zero = vec![0.0; model.system.parameters()];
    let mut nominal = nominal::nominal(model, records, &zero);
    let loose = Settings {
        known: Level::Relative(RANDOM_WALK * KNOWN_ROWS),
        hidden: Level::Relative(RANDOM_WALK),
        start: Level::Relative(1.0),
        ..settings.clone()
    };
    let walk = |model: &Model, nominal: &Nominal| {
        let stepper = Stepper::new(model, &model.system, dt);
        let noise = loose.noise(model, nominal, dt);
        let each = records.iter().map(|record| {
            let noise = starting_at(&stepper, record, &noise);
            let smoother = Smoother {
                stepper: &stepper,
                record,
                theta: &zero,
                noise: &noise,
            };
            smoother.smooth(smoother.filtered(), SMOOTHING)
        });
        each.collect::<Vec<_>>()
    };
    let rough = walk(model, &nominal);
    nominal::refine(
        model,
        &mut nominal,
        &rough.iter().map(|s| s.states.clone()).collect::<Vec<_>>(),
    );
    let smoothed = walk(model, &nominal);
    nominal::refine(
        model,
        &mut nominal,
        &smoothed
            .iter()
            .map(|s| s.states.clone())
            .collect::<Vec<_>>(),
    );
    scale_networks(model, records, settings, &nominal, &smoothed, dt);
    (nominal, smoothed)
}

/// The prior of a record's start: its own first measurements where a channel shows a state.
fn starting_at(stepper: &Stepper, record: &Record, noise: &Noise) -> Noise {
    let mut noise = noise.clone();
    for (y, direct) in record.output(0).iter().zip(stepper.system().direct()) {
        if let (Some(i), false) = (direct, y.is_nan()) {
            noise.start_mean[*i] = *y;
        }
    }
    noise
}

/// Arguments to order one along the smoothed trajectories; outputs to the rate of their rows.
fn scale_networks(
    model: &mut Model,
    records: &[Record],
    settings: &Settings,
    nominal: &Nominal,
    smoothed: &[Smoothed],
    dt: f64,
) {
    let system = &model.system;
    let n = system.states();
    let zero = vec![0.0; system.parameters()];
    let mut ws = system.workspace();
    let mut ranges: Vec<Vec<(f64, f64)>> = system
        .networks()
        .iter()
        .map(|net| vec![(f64::INFINITY, f64::NEG_INFINITY); net.arguments])
        .collect();
    for (record, s) in records.iter().zip(smoothed) {
        for (k, state) in s.states.chunks_exact(n).enumerate() {
            let at = Point {
                time: record.time[k],
                state,
                input: record.input(k),
                theta: &zero,
            };
            system.visit_arguments(&mut ws, at, |network, values| {
                for ((low, high), v) in ranges[network].iter_mut().zip(values) {
                    *low = low.min(*v);
                    *high = high.max(*v);
                }
            });
        }
    }
    let rate = rates(smoothed, n, dt);
    let scalings: Vec<Scaling> = system
        .networks()
        .iter()
        .enumerate()
        .map(|(i, net)| {
            let (mut center, mut scale) = (vec![], vec![]);
            for &(low, high) in &ranges[i] {
                let (c, s) = ((low + high) / 2.0, (high - low) / 2.0);
                let fine = s.is_finite() && s > 1e-9 * c.abs() && s > 0.0;
                center.push(if c.is_finite() { c } else { 0.0 });
                scale.push(if fine { s } else { 1.0 });
            }
            let output = (0..net.outputs.len())
                .map(|k| {
                    if settings.scale_outputs {
                        output_scale(model, nominal, i, k, &rate)
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
fn rates(smoothed: &[Smoothed], n: usize, dt: f64) -> Vec<f64> {
    (0..n)
        .map(|i| {
            let (mut sum, mut count) = (0.0, 0);
            for s in smoothed {
                let column: Vec<f64> = s.states.iter().skip(i).step_by(n).copied().collect();
                for w in column.windows(2) {
                    sum += ((w[1] - w[0]) / dt).powi(2);
                    count += 1;
                }
            }
            (sum / f64::from(count.max(1))).sqrt()
        })
        .collect()
}

/// The rate of the first row that this output drives, divided by how strongly it drives it.
fn output_scale(model: &Model, nominal: &Nominal, network: usize, k: usize, rate: &[f64]) -> f64 {
    let fallback = 1.0;
    let driven = model.system.rows_driven(network, k, &nominal.center);
    driven
        .into_iter()
        .map(|(row, factor)| rate[row] / factor.abs())
        .find(|v| v.is_finite() && *v > 0.0)
        .unwrap_or(fallback)
}

fn smooth_all(
    stepper: &Stepper,
    records: &[Record],
    theta: &[f64],
    noise: &Noise,
    before: Vec<Smoothed>,
) -> Vec<Smoothed> {
    let each = records.iter().zip(before).map(|(record, before)| {
        let noise = starting_at(stepper, record, noise);
        let smoother = Smoother {
            stepper,
            record,
            theta,
            noise: &noise,
        };
        let next = smoother.smooth(before.states.clone(), SMOOTHING);
        if next.states.iter().all(|x| x.is_finite()) {
            next
        } else {
            before
        }
    });
    each.collect()
}

/// Cuts the records into as many segments as streams are asked for, each at a smoothed state.
fn cut<'r>(
    records: &'r [Record],
    smoothed: &[Smoothed],
    noise: &Noise,
    settings: &Settings,
) -> Vec<Segment<'r>> {
    let n = noise.process.len();
    let mut segments = Vec::new();
    for (record, s) in records.iter().zip(smoothed) {
        // samples at the joints belong to both neighbours: the step between them is in one
        let steps = record.len() - 1;
        let streams = settings.streams.min(steps);
        for b in 0..streams {
            let (from, to) = (b * steps / streams, (b + 1) * steps / streams);
            let start_variance = match settings.start {
                Level::Variance(v) => vec![v; n],
                Level::Relative(_) => (from * n..(from + 1) * n)
                    .map(|i| s.deviations[i].powi(2))
                    .collect(),
            };
            segments.push(Segment {
                record,
                samples: from..to + 1,
                start: s.states[from * n..(from + 1) * n].to_vec(),
                start_variance,
            });
        }
    }
    segments
}

/// Mean nRMSE of the measured channels in free runs of all records.
fn measured_error(
    stepper: &Stepper,
    records: &[Record],
    theta: &[f64],
    noise: &Noise,
    smoothed: &[Smoothed],
) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for (record, s) in records.iter().zip(smoothed) {
        let noise = starting_at(stepper, record, noise);
        let exact = score::exact_trajectory(stepper, record, theta, &noise, s);
        let n = noise.process.len();
        let run = score::free_run(stepper, record, theta, &exact[..n]);
        for error in score::channel_nrmse(stepper, record, theta, &run)
            .into_iter()
            .flatten()
        {
            sum += error;
            count += 1;
        }
    }
    sum / f64::from(count.max(1))
}
