//! Before anything is learned: the hidden trajectory from the known physics, and all scales.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::SMOOTHING;
use super::settings::{Level, Settings};
use crate::estimate::{Smoothed, Smoother};
use crate::fit::nominal::{self, Nominal};
use crate::model::Model;
use crate::model::network::Scaling;
use crate::objective::Noise;
use crate::record::Record;
use crate::step::Stepper;

/// Noise of unknown rows while nothing of them is learned, in units of scale·√(Δt/τ): the
/// likelihood of the data chooses. Noise-free records want it loose, noisy ones tight, or the
/// hidden states follow the noise.
const RANDOM_WALKS: [f64; 4] = [1.0, 0.1, 0.01, 0.001];
/// Noise of known rows relative to that.
const KNOWN_ROWS: f64 = 1e-4;

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
pub(super) fn prepare(
    model: &mut Model,
    records: &[Record],
    settings: &Settings,
    dt: f64,
) -> (Nominal, Vec<Smoothed>) {
    let zero = vec![0.0; model.system.parameters()];
    let mut nominal = nominal::nominal(model, records, &zero);
    let walks = RANDOM_WALKS.map(|level| walk(model, records, settings, &nominal, dt, level, 3));
    let likelihood = |i: usize| {
        if walks[i].0.is_nan() {
            f64::NEG_INFINITY
        } else {
            walks[i].0
        }
    };
    let best = (0..walks.len())
        .max_by(|&a, &b| likelihood(a).total_cmp(&likelihood(b)))
        .unwrap_or(0);
    nominal::refine(model, &mut nominal, &walks[best].1);
    let level = RANDOM_WALKS[best];
    let (_, smoothed) = walk(model, records, settings, &nominal, dt, level, SMOOTHING);
    nominal::refine(model, &mut nominal, &smoothed);
    scale_networks(model, records, settings, &nominal, &smoothed, dt);
    (nominal, smoothed)
}

/// The records smoothed with networks at zero and their rows as random walks, and the log
/// likelihood of the data.
fn walk(
    model: &Model,
    records: &[Record],
    settings: &Settings,
    nominal: &Nominal,
    dt: f64,
    level: f64,
    iterations: usize,
) -> (f64, Vec<Smoothed>) {
    let stepper = Stepper::new(model, &model.system, dt);
    let zero = vec![0.0; model.system.parameters()];
    let loose = Settings {
        known: Level::Relative(level * KNOWN_ROWS),
        hidden: Level::Relative(level),
        start: Level::Relative(1.0),
        ..settings.clone()
    };
    // rows of unknown shape walk; where only constants are unknown, their rows do
    let rows = match model.system.network_rows() {
        [] => model.system.unknown_rows(),
        rows => rows,
    };
    let noise = loose.noise_with(model, nominal, dt, rows);
    let mut likelihood = 0.0;
    let smoothed = records
        .iter()
        .map(|record| {
            let noise = starting_at(&stepper, record, &noise);
            let smoother = Smoother {
                stepper: &stepper,
                record,
                theta: &zero,
                noise: &noise,
            };
            let smoothed = smoother.smooth(smoother.filtered(), iterations);
            likelihood += smoother.log_likelihood(&smoothed.states);
            smoothed
        })
        .collect();
    (likelihood, smoothed)
}

/// The prior of a record's start: its own first measurements where a channel shows a state.
pub(super) fn starting_at(stepper: &Stepper, record: &Record, noise: &Noise) -> Noise {
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
            let at = record.point(k, state, &zero);
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
