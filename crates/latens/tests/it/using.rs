//! A model used on new records, where everything is linear and the closed form is known.

use crate::dense::{DT, LINEAR, dense_linear, model, random_record};
use latens::filter::Mode;
use latens::fit::adapt::Prior;
use latens::fit::{NoiseFactor, Predictor};
use latens::model::small::{cholesky, identity, solve};
use latens::numerics::linalg::{PackedCovariance, Precision};
use latens::numerics::objective::Noise;
use latens::{Model, Record};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

const SCALES: [f64; 2] = [0.9, 0.8];

fn noise() -> Noise {
    Noise {
        process: vec![0.02, 0.1],
        measurement: vec![0.05],
        start_mean: vec![0.1, -0.2],
        start: SCALES.map(|s| s * s).to_vec(),
    }
}

fn predictor<'a>(
    model: &'a Model,
    noise: &'a Noise,
    theta: &'a [f64],
    draws: &'a [Vec<f64>],
) -> Predictor<'a> {
    Predictor {
        model,
        theta,
        draws,
        noise,
        variance_inflation: 1.0,
        center: &noise.start_mean,
        scale: &SCALES,
        spread: &[],
        regions: &[],
        dt: DT,
        range: &[1e3],
        exact_start: false,
        widening: 1.0,
    }
}

/// LINEAR with p and g pinned: mean and variance of each state, given the samples.
fn pinned(record: &Record, theta: &[f64; 2]) -> Vec<(f64, f64)> {
    let n = 2 * record.len();
    let mut dense = dense_linear(record, &noise(), 1e9, true);
    for (k, value) in theta.iter().enumerate() {
        dense.add(&[(n + k, 1.0)], *value, 1e-13);
    }
    let (z, inverse) = dense.solve();
    (0..n).map(|i| (z[i], inverse[i * z.len() + i])).collect()
}

/// The filter's estimate at a sample is the least-squares state of the samples up to it, the
/// smoother's that of all, each with the posterior's deviation; also with samples missing.
#[test]
fn estimates_have_the_closed_form() {
    let (model, noise, theta) = (model(LINEAR), noise(), [0.3, -0.4]);
    let mut record = random_record(&model, 30, 5);
    record.outputs[0] = f64::NAN;
    record.outputs[11] = f64::NAN;
    let predictor = predictor(&model, &noise, &theta, &[]);
    let estimate = |mode| predictor.estimate(&record, mode, NoiseFactor(1.0)).unwrap();
    let (filter, smoother) = (estimate(Mode::Filter), estimate(Mode::Smoother));
    for k in 1..record.len() {
        let of_past = pinned(&record.slice(0..k + 1), &theta);
        let of_all = pinned(&record, &theta);
        for i in 2 * k..2 * k + 2 {
            for (estimated, (x, variance)) in [(&filter, of_past[i]), (&smoother, of_all[i])] {
                let (estimate, deviation) = (
                    estimated.states.as_slice()[i],
                    estimated.deviations.as_slice()[i],
                );
                assert!((estimate - x).abs() < 1e-7, "{i}: {estimate} {x}");
                assert!(
                    (deviation * deviation - variance).abs() < 1e-7 * variance,
                    "{i}"
                );
            }
        }
    }
}

/// What θ adds to the variance of an estimate is how far the estimate itself moves with θ.
#[test]
fn bands_of_the_filter_count_theta() {
    let (model, noise, theta) = (model(LINEAR), noise(), [0.3, -0.4]);
    let record = random_record(&model, 30, 5);
    let std = 0.7;
    // mean squares of the draws are std² in each direction
    let draws = [vec![std * 2f64.sqrt(), 0.0], vec![0.0, std * 2f64.sqrt()]];
    let run = |theta: &[f64], draws: &[Vec<f64>], mode| {
        let predictor = predictor(&model, &noise, theta, draws);
        predictor.estimate(&record, mode, NoiseFactor(1.0)).unwrap()
    };
    for mode in [Mode::Filter, Mode::Smoother] {
        let (alone, with) = (run(&theta, &[], mode), run(&theta, &draws, mode));
        let moved = [[0.3 + std, -0.4], [0.3, -0.4 + std]].map(|t| run(&t, &[], mode).states);
        for i in 0..alone.states.as_slice().len() {
            let by: f64 = moved
                .iter()
                .map(|m| (m.as_slice()[i] - alone.states.as_slice()[i]).powi(2))
                .sum();
            let expected = (alone.deviations.as_slice()[i].powi(2) + by).sqrt();
            assert!(
                (with.deviations.as_slice()[i] - expected).abs() < 1e-9,
                "{mode:?} {i}"
            );
        }
    }
}

/// With white noise of the size that the filter assumes, nothing is loosened and the surprise is 1;
/// with states that are driven ten times as hard, the process noise is. A noisier sensor is only
/// that, and a record without any noise asks for nothing.
#[test]
fn process_noise_is_loosened_where_the_record_asks_for_it() {
    let (model, noise, theta) = (model(LINEAR), noise(), [0.3, -0.4]);
    let mut rng = rand_pcg::Pcg64::seed_from_u64(4);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let mut record = random_record(&model, 2000, 5);
    let mut simulate = |factor: f64, sensor: f64| {
        let mut x = noise.start_mean.clone();
        for k in 0..record.len() {
            record.outputs[k] = x[0] + 0.1 * x[1] + sensor * 0.05f64.sqrt() * normal();
            let u = record.inputs[k];
            let rates = [x[1] + (0.2 - 0.4) * u, -x[0] - 0.3 * x[1] + 0.3];
            for i in 0..2 {
                x[i] += DT * rates[i] + factor * noise.process[i].sqrt() * normal();
            }
        }
        record.clone()
    };
    let predictor = predictor(&model, &noise, &theta, &[]);
    for (factor, sensor, expected, surprise) in [
        (1.0, 1.0, 1.0, 1.0),
        (10.0, 1.0, 10.0, 1.0),
        (3.0, 3.0, 1.0, 9.0),
        (0.0, 0.0, 1.0, 0.0),
    ] {
        let record = simulate(factor, sensor);
        let loosened = predictor.loosened(&record);
        assert_eq!(loosened, NoiseFactor(expected), "{factor} {sensor}");
        let estimated = predictor.estimate(&record, Mode::Filter, loosened).unwrap();
        let off = (estimated.consistency - surprise).abs();
        assert!(
            off < 0.1 * f64::max(surprise, 1.0),
            "{}",
            estimated.consistency
        );
    }
}

/// Adapting constants of a linear system is the Bayesian update: the posterior of all states and
/// these constants given the first samples, the others known; with C + D as their prior.
#[test]
fn adapting_has_the_closed_form() {
    let (model, noise, theta) = (model(LINEAR), noise(), [0.3, -0.4]);
    let record = random_record(&model, 40, 8);
    let first = record.slice(0..25);
    let covariance = PackedCovariance::from_packed(2, vec![0.5, 0.2, 0.4], Precision::Double);
    for constants in [vec![0], vec![1], vec![0, 1]] {
        let prior = Prior::new(&model, &theta, &covariance, &constants, 0.2);
        let n = constants.len();
        // both guesses are within their scale, 1: the change is 0.2 of that
        assert!((prior.covariance()[0] - [0.5, 0.4][constants[0]] - 0.04).abs() < 1e-12);
        let predictor = predictor(&model, &noise, &theta, &[]);
        let adapted = predictor.adapt(&record, 25, &prior).unwrap();

        let at = 2 * first.len();
        let mut dense = dense_linear(&first, &noise, 1e12, true);
        for k in (0..2).filter(|k| !constants.contains(k)) {
            dense.add(&[(at + k, 1.0)], theta[k], 1e-13);
            assert_eq!(adapted.theta[k], theta[k]);
        }
        let mut root = identity(n);
        solve(&mut prior.covariance(), &mut root, n).unwrap();
        cholesky(&mut root, n).unwrap();
        for column in 0..n {
            let row: Vec<(usize, f64)> = (column..n)
                .map(|i| (at + constants[i], root[i * n + column]))
                .collect();
            let mean = (column..n).map(|i| root[i * n + column] * theta[constants[i]]);
            dense.add(&row, mean.sum(), 1.0);
        }
        let (z, inverse) = dense.solve();
        for (a, &i) in constants.iter().enumerate() {
            let (value, expected) = (adapted.theta[i], z[at + i]);
            assert!((value - expected).abs() < 1e-6, "{value} {expected}");
            for (b, &j) in constants.iter().enumerate() {
                let expected = inverse[(at + i) * z.len() + at + j];
                let value = adapted.covariance[a * n + b];
                assert!((value - expected).abs() < 1e-6, "{value} {expected}");
            }
        }
    }
}

/// Draws of θ after an adaptation spread as its posterior says; what was not adapted stays.
#[test]
fn draws_follow_the_adaptation() {
    let (model, noise, theta) = (model(LINEAR), noise(), [0.3, -0.4]);
    let record = random_record(&model, 40, 8);
    let mut rng = rand_pcg::Pcg64::seed_from_u64(2);
    let draws: Vec<Vec<f64>> = (0..4000)
        .map(|_| {
            let z: f64 = StandardNormal.sample(&mut rng);
            vec![0.5f64.sqrt() * z, 0.0]
        })
        .collect();
    let covariance = PackedCovariance::from_packed(2, vec![0.5, 0.0, 0.4], Precision::Double);
    let prior = Prior::new(&model, &theta, &covariance, &[0], 0.5);
    let predictor = predictor(&model, &noise, &theta, &draws);
    let adapted = predictor.adapt(&record, 25, &prior).unwrap();
    let square: f64 = adapted.draws.iter().map(|d| d[0] * d[0]).sum();
    let ratio = square / 4000.0 / adapted.covariance[0];
    assert!((ratio - 1.0).abs() < 0.07, "{ratio}");
    assert!(adapted.covariance[0] < 0.5 * 0.75);
    assert!(adapted.draws.iter().all(|d| d[1] == 0.0));
}
