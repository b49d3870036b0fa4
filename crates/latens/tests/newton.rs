//! The whole-record solver on a nonlinear system: its gradient is the objective's, and where it
//! stops there is nothing left to gain.

use latens::estimate::Smoother;
use latens::fit::Fit;
use latens::linalg::normal;
use latens::objective::{Noise, half_square, trajectory_cost};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::{Level, Settings, Silent, Solver, fit};
use latens::step::Stepper;
use latens::{Model, Record, systems};
use rand::{RngExt, SeedableRng};

/// P_θ0.
const PRIOR: f64 = 1.0;

/// A short, noisy record of the oscillator and a small network; all noise is fixed.
fn case() -> (Record, Fit, Noise) {
    let text = systems::find("harmonic-oscillator").unwrap();
    let text = text.replace("[\"20 tanh\", \"20 tanh\"]", "[\"5 tanh\"]");
    let text = text.replace("step = 1e-3", "step = 1e-2");
    let model = Model::from_text("harmonic-oscillator", &text).unwrap();
    let simulation = Simulation {
        steps: Some(400),
        noise: vec![Some(NoiseLevel::Absolute(0.01))],
        seed: 1,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let settings = Settings {
        known: Level::Variance(1e-10),
        hidden: Level::Variance(1e-6),
        measurement: Level::Variance(1e-4),
        start: Level::Variance(1.0),
        parameter_variance: PRIOR,
        estimate_noise: false,
        estimate_prior: false,
        ..Settings::new(Solver::Batch)
    };
    let fit = fit(
        &model,
        std::slice::from_ref(&record),
        &settings,
        &mut Silent,
    )
    .unwrap();
    // a measured state starts at its first measurement
    let mut noise = fit.noise.clone();
    noise.start_mean[0] = record.outputs[0];
    (record, fit, noise)
}

fn directions(size: usize, count: usize) -> Vec<Vec<f64>> {
    let mut rng = rand_pcg::Pcg64::seed_from_u64(5);
    let mut one = |_| -> Vec<f64> {
        let d: Vec<f64> = (0..size).map(|_| rng.random_range(-1.0..1.0)).collect();
        let length = d.iter().map(|x| x * x).sum::<f64>().sqrt();
        d.iter().map(|x| x / length).collect()
    };
    (0..count).map(&mut one).collect()
}

fn moved(from: &[f64], by: f64, along: &[f64]) -> Vec<f64> {
    from.iter().zip(along).map(|(x, d)| x + by * d).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// First and second derivative of L along a line, by central differences.
fn slope_and_curvature(along: impl Fn(f64) -> f64, h: f64) -> (f64, f64) {
    let (low, middle, high) = (along(-h), along(0.0), along(h));
    (
        (high - low) / (2.0 * h),
        (high - 2.0 * middle + low) / (h * h),
    )
}

/// The elimination of the states is exact to first order: b − P⁻¹θ is the steepest descent of the
/// profile objective, min over X of L(X, θ), also far from a minimum.
#[test]
fn eliminated_gradient_is_that_of_the_profile() {
    let (record, fit, noise) = case();
    let stepper = Stepper::new(&fit.model, &fit.model.system, fit.dt);
    let theta = moved(&fit.theta, 0.3, &directions(fit.theta.len(), 1)[0]);
    let on = |theta: &[f64], states: Vec<f64>| {
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta,
            noise: &noise,
        };
        let mut states = states;
        for _ in 0..20 {
            states = smoother.minimise(states, 5).0;
        }
        let prior = half_square(theta.iter().copied(), &vec![PRIOR; theta.len()]);
        let (equations, _) = smoother.eliminate(&states, 1);
        (smoother.cost(&states).total() + prior, equations, states)
    };
    let (_, equations, states) = on(&theta, fit.estimates[0].smoothed.states.clone());
    let descent: Vec<f64> = equations
        .b
        .iter()
        .zip(&theta)
        .map(|(b, t)| b - t / PRIOR)
        .collect();
    for d in directions(theta.len(), 5) {
        let profile = |by: f64| on(&moved(&theta, by, &d), states.clone()).0;
        let (slope, _) = slope_and_curvature(profile, 1e-4);
        let expected = -dot(&descent, &d);
        assert!(expected.abs() > 1.0, "nothing to compare");
        assert!(
            (slope - expected).abs() < 1e-6 * expected.abs(),
            "{slope} {expected}"
        );
    }
}

/// What a direction promises, ½ slope²/curvature, is at most ½ gᵀH⁻¹g, what a Newton step gains.
/// The solver stops when a damped step gains less than a thousandth of L: what an undamped
/// one would gain is then of that size too (0.001 L when this was written), not zero. Where L is
/// that of N noisy samples, N/2, this is N/2000 in units of the log likelihood.
#[test]
fn little_is_left_to_gain_at_the_solution() {
    let (record, fit, noise) = case();
    let stepper = Stepper::new(&fit.model, &fit.model.system, fit.dt);
    let (theta, states) = (&fit.theta, &fit.estimates[0].smoothed.states);
    let prior = vec![PRIOR; theta.len()];
    let on = |theta| Smoother {
        stepper: &stepper,
        record: &record,
        theta,
        noise: &noise,
    };
    let cost = |theta: &[f64], states: &[f64]| {
        let at = trajectory_cost(&stepper, &record, theta, states, &noise);
        at.total() + half_square(theta.iter().copied(), &prior)
    };
    let least = cost(theta, states);
    let (equations, _) = on(theta).eliminate(states, 1);
    let right = equations.b.iter().zip(theta);
    let right: Vec<f64> = right.map(|(b, t)| b - t / PRIOR).collect();
    let factor = equations.factor(&vec![1.0 / PRIOR; theta.len()]).unwrap();
    let promised = 0.5 * dot(&right, &normal::solve(&factor, &right));
    assert!(promised < 3e-3 * least, "{promised} of {least}");

    // θ alone, then states and θ together, the states in steps of the noise
    for d in directions(theta.len(), 20) {
        let line = |by: f64| cost(&moved(theta, by, &d), states);
        let (slope, curvature) = slope_and_curvature(line, 1e-4);
        let promise = 0.5 * slope * slope / curvature;
        assert!(
            curvature > 0.0 && promise < 5e-4 * least,
            "{promise} of {least}"
        );
    }
    for d in directions(theta.len() + states.len(), 20) {
        let (along, across) = d.split_at(theta.len());
        let line = |by: f64| cost(&moved(theta, by, along), &moved(states, 0.01 * by, across));
        let (slope, curvature) = slope_and_curvature(line, 1e-3);
        let promise = 0.5 * slope * slope / curvature;
        assert!(
            curvature > 0.0 && promise < 1e-6 * least,
            "{promise} of {least}"
        );
    }
}
