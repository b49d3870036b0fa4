//! The whole-record solver: the closed form where there is one; elsewhere its gradient is the
//! objective's, and where it stops there is little left to gain.

use crate::dense::{DT, LINEAR, dense_linear, model, random_record, uneven};
use crate::fixture::{defaults, fit};
use latens::filter::Smoother;
use latens::fit::Fit;
use latens::model::settings::Level;
use latens::model::small::{cholesky, solve};
use latens::numerics::linalg::normal;
use latens::numerics::objective::{Noise, half_square, trajectory_cost};
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Record, Trajectory, systems};
use latens::{Settings, Silent};
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
        known_noise: Level::Variance(1e-10),
        hidden_noise: Level::Variance(1e-6),
        measurement_noise: Level::Variance(1e-4),
        start_noise: Level::Variance(1.0),
        parameter_variance: PRIOR,
        estimate_noise: false,
        estimate_prior: false,
        ..defaults("batch")
    };
    let fit = fit(
        &model,
        std::slice::from_ref(&record),
        &settings,
        &mut Silent,
    )
    .unwrap();
    // a measured state starts at its first measurement
    let mut noise = fit.facts.noise.clone();
    noise.start_mean[0] = record.outputs[0];
    (record, fit, noise)
}

fn directions(size: usize, count: usize) -> Vec<Vec<f64>> {
    let mut rng = rand_pcg::Pcg64::seed_from_u64(5);
    let mut direction = |_| -> Vec<f64> {
        let d: Vec<f64> = (0..size).map(|_| rng.random_range(-1.0..1.0)).collect();
        let length = d.iter().map(|x| x * x).sum::<f64>().sqrt();
        d.iter().map(|x| x / length).collect()
    };
    (0..count).map(&mut direction).collect()
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
    let stepper = Stepper::new(&fit.model, &fit.model.system, fit.facts.sample_time);
    let theta = moved(&fit.theta, 0.3, &directions(fit.theta.len(), 1)[0]);
    let on = |theta: &[f64], states: Trajectory| {
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
        let (equations, _) = smoother.eliminate(&states, 1, 0);
        (smoother.cost(&states).total() + prior, equations, states)
    };
    let (_, equations, states) = on(&theta, fit.tracks[0].smoothed.clone());
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
    let stepper = Stepper::new(&fit.model, &fit.model.system, fit.facts.sample_time);
    let (theta, states) = (&fit.theta, &fit.tracks[0].smoothed);
    let prior = vec![PRIOR; theta.len()];
    let on = |theta| Smoother {
        stepper: &stepper,
        record: &record,
        theta,
        noise: &noise,
    };
    let cost = |theta: &[f64], states: &Trajectory| {
        let at = trajectory_cost(&stepper, &record, theta, states, &noise);
        at.total() + half_square(theta.iter().copied(), &prior)
    };
    let least = cost(theta, states);
    let (equations, _) = on(theta).eliminate(states, 1, 0);
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
    for d in directions(theta.len() + states.as_slice().len(), 20) {
        let (along, across) = d.split_at(theta.len());
        let across = Trajectory::new(across.to_vec(), states.width());
        let line = |by: f64| cost(&moved(theta, by, along), &states.moved(0.01 * by, &across));
        let (slope, curvature) = slope_and_curvature(line, 1e-3);
        let promise = 0.5 * slope * slope / curvature;
        assert!(
            curvature > 0.0 && promise < 1e-6 * least,
            "{promise} of {least}"
        );
    }
}

/// LINEAR fitted to a record as whole-record Newton does where the user fixes all noise.
fn batch_fit(records: &[Record], prior: f64) -> Fit {
    let variances = |values: [(&str, f64); 2]| values.map(|(n, v)| (n.to_string(), v)).into();
    let settings = Settings {
        // relative levels would be tightened from stage to stage
        known_noise: Level::Variance(0.02),
        hidden_noise: Level::Variance(0.1),
        process_variance: variances([("x", 0.02), ("v", 0.1)]),
        start_variance: variances([("x", 0.5), ("v", 0.7)]),
        measurement_noise: Level::Variance(0.05),
        parameter_variance: prior,
        estimate_noise: false,
        estimate_prior: false,
        ..defaults("batch")
    };
    fit(&model(LINEAR), records, &settings, &mut Silent).unwrap()
}

/// Everything seen twice is half as uncertain: two copies of a record under a prior are one under
/// a prior twice as wide, with half the covariance.
#[test]
fn two_records_count_twice() {
    let record = random_record(&model(LINEAR), 30, 6);
    let mut once = batch_fit(std::slice::from_ref(&record), 6.0);
    let mut twice = batch_fit(&[record.clone(), record], 3.0);
    for (a, b) in once.theta.iter().zip(&twice.theta) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    let (once, twice) = (once.covariance.to_packed(), twice.covariance.to_packed());
    for (a, b) in once.iter().zip(&twice) {
        assert!((a - 2.0 * b).abs() < 1e-9, "{a} {b}");
    }
}

/// Equations that have no derivative where a record begins are an error, not a panic.
#[test]
fn an_infinite_derivative_is_an_error() {
    let text = "[time]\nstep = 0.1\nmethod = \"euler\"\n[states.level]\nderivative = \"flow(level) - a*asin(1 - level/9)\"\n\
        [networks.flow]\nlayers = [\"3 tanh\"]\n[unknowns]\na = { guess = 1 }\n\
        [measurements]\nlevel = \"level\"";
    let tank = Model::from_text("tank", text).unwrap();
    let mut record = random_record(&model(LINEAR), 30, 6);
    record.d_x = 1;
    record.d_u = 0;
    record.inputs.clear();
    record.truth = None;
    for (k, y) in record.outputs.iter_mut().enumerate() {
        *y = 0.01 * (k * k) as f64;
    }
    let settings = defaults("batch");
    let outcome = fit(&tank, &[record], &settings, &mut Silent);
    let message = outcome.map(|_| ()).unwrap_err().to_string();
    assert!(message.contains("derivative"), "{message}");
}

/// On a system that is linear in states and constants together the whole-record solver's θ and
/// states are the maximum-a-posteriori solution of all data at once, and its covariance the
/// posterior's, all noise being the user's and the samples at any distance.
#[test]
fn batch_has_the_closed_form() {
    let mut record = random_record(&model(LINEAR), 30, 6);
    record.outputs[12] = f64::NAN;
    let prior = 3.0;
    for record in [uneven(&record), record] {
        let mut fit = batch_fit(std::slice::from_ref(&record), prior);
        assert!((fit.facts.sample_time - DT).abs() < 1e-12);
        assert_eq!(fit.facts.noise.process, [0.02, 0.1]);
        assert_eq!(fit.facts.noise.measurement, [0.05]);
        assert_eq!(fit.facts.noise.start, [0.5, 0.7]);
        let (z, inverse) = dense_linear(&record, &fit.facts.noise, prior, true).solve();
        let (first, packed) = (z.len() - 2, fit.covariance.to_packed());
        let states = &fit.tracks[0].smoothed;
        for (i, (learned, expected)) in states
            .as_slice()
            .iter()
            .chain(&fit.theta)
            .zip(&z)
            .enumerate()
        {
            assert!(
                (learned - expected).abs() < 1e-8,
                "{i}: {learned} {expected}"
            );
        }
        for i in 0..2 {
            for j in 0..=i {
                let covariance = inverse[(first + i) * z.len() + first + j];
                assert!((packed[i * (i + 1) / 2 + j] - covariance).abs() < 1e-8);
            }
        }
    }
}

/// Of a long record only some rows make up A on the way to θ (here every third), so that a step is not exact even
/// where all is linear. The gradient is: what the whole of A says is left to go, is far
/// below the uncertainty of θ.
#[test]
fn thinning_changes_the_way_and_not_the_solution() {
    let record = random_record(&model(LINEAR), 3000, 6);
    let prior = 3.0;
    let mut fit = batch_fit(std::slice::from_ref(&record), prior);
    let stepper = Stepper::new(&fit.model, &fit.model.system, DT);
    let smoother = Smoother {
        stepper: &stepper,
        record: &record,
        theta: &fit.theta,
        noise: &fit.facts.noise,
    };
    let (equations, _) = smoother.eliminate(&fit.tracks[0].smoothed, 1, 0);
    let factor = equations.factor(&[1.0 / prior; 2]).unwrap();
    let right = equations.b.iter().zip(&fit.theta);
    let right: Vec<f64> = right.map(|(b, t)| b - t / prior).collect();
    let left = normal::solve(&factor, &right);
    let packed = fit.covariance.to_packed();
    for (i, variance) in [packed[0], packed[2]].into_iter().enumerate() {
        assert!(
            left[i].abs() < 0.01 * variance.sqrt(),
            "{left:?} {packed:?}"
        );
    }
}

/// Something random of this variance, and the column of M through which it acts.
struct Chance {
    column: Vec<f64>,
    variance: f64,
}

/// ln N(y; mean, M diag(v) Mᵀ): y is the mean plus what acts by chance.
fn log_density(off: &[f64], sources: &[Chance]) -> f64 {
    let n = off.len();
    let mut covariance = vec![0.0; n * n];
    for Chance { column, variance } in sources {
        for i in 0..n {
            for j in 0..n {
                covariance[i * n + j] += variance * column[i] * column[j];
            }
        }
    }
    let mut solved = off.to_vec();
    solve(&mut covariance.clone(), &mut solved, n).unwrap();
    cholesky(&mut covariance, n).unwrap();
    let log_determinant: f64 = (0..n).map(|i| 2.0 * covariance[i * n + i].ln()).sum();
    let square: f64 = solved.iter().zip(off).map(|(a, b)| a * b).sum();
    -0.5 * (square + log_determinant + n as f64 * std::f64::consts::TAU.ln())
}

/// What LINEAR's sensor shows from a start, with impulses (sample, state, size) and θ.
fn linear_response(
    record: &Record,
    start: [f64; 2],
    impulse: Option<(usize, usize)>,
    [p, g]: [f64; 2],
) -> Vec<f64> {
    let mut state = start;
    let mut outputs = Vec::new();
    for k in 0..record.len() {
        if k > 0 {
            let ([x, v], u) = (state, record.input(k - 1)[0]);
            state = [x + DT * (v + g * u), v + DT * (-x - 0.3 * v + p)];
        }
        if let Some((at, i)) = impulse
            && at == k
        {
            state[i] += 1.0;
        }
        outputs.push(state[0] + 0.1 * state[1]);
    }
    let measured = outputs.into_iter().zip(&record.outputs);
    measured
        .filter(|(_, y)| !y.is_nan())
        .map(|(h, _)| h)
        .collect()
}

/// Laplace's evidence is exact where everything is Gaussian: the density of y as one vector,
/// whose covariance is summed over start, constants, process and measurement noise. γ is d − tr P⁻¹C
/// of the dense posterior.
#[test]
fn evidence_is_the_marginal_likelihood() {
    let mut record = random_record(&model(LINEAR), 30, 8);
    record.outputs[0] = f64::NAN;
    record.outputs[17] = f64::NAN;
    let prior = 0.5;
    let fit = batch_fit(std::slice::from_ref(&record), prior);
    let (noise, none) = (&fit.facts.noise, [0.0; 2]);
    let start = [noise.start_mean[0], noise.start_mean[1]];
    let mean = linear_response(&record, start, None, [0.0, 0.2]);
    let measured = record.outputs.iter().filter(|y| !y.is_nan());
    let off: Vec<f64> = measured.zip(&mean).map(|(y, m)| y - m).collect();
    let mut sources = vec![
        Chance {
            column: linear_response(&record, none, None, [1.0, 0.0]),
            variance: prior,
        },
        Chance {
            column: linear_response(&record, none, None, [0.0, 1.0]),
            variance: prior,
        },
    ];
    for i in 0..2 {
        for k in 0..record.len() {
            let variance = if k == 0 {
                noise.start[i]
            } else {
                noise.process[i]
            };
            sources.push(Chance {
                column: linear_response(&record, none, Some((k, i)), none),
                variance,
            });
        }
    }
    for i in 0..off.len() {
        sources.push(Chance {
            column: (0..off.len()).map(|j| f64::from(i == j)).collect(),
            variance: noise.measurement[0],
        });
    }
    let expected = log_density(&off, &sources);
    let evidence = fit.facts.evidence.unwrap();
    assert!(
        (evidence.log - expected).abs() < 1e-8 * expected.abs(),
        "{} {expected}",
        evidence.log
    );
    let (z, inverse) = dense_linear(&record, noise, prior, true).solve();
    let diagonal = (z.len() - 2..z.len()).map(|i| inverse[i * z.len() + i]);
    let determined = 2.0 - diagonal.map(|c| c / prior).sum::<f64>();
    assert!(
        (evidence.determined - determined).abs() < 1e-8,
        "{}",
        evidence.determined
    );
    assert_eq!(evidence.directions, 2);
}

/// With all but exact physics only simulations are cheap, and those of a pendulum from another start
/// are no linear function of it: steps follow the equations, or they would be shortened to nothing.
#[test]
fn tight_physics_is_no_obstacle_to_the_smoother() {
    let text = "[time]\nstep = 0.02\nmethod = \"rk4\"\n\
                [states.phi]\nderivative = \"w\"\nstart = 2.0\n\
                [states.w]\nderivative = \"-sin(phi)\"\nstart = 0.0\n\
                [measurements]\nphi = \"phi\"\n";
    let model = Model::from_text("pendulum", text).unwrap();
    let stepper = Stepper::new(&model, &model.system, 0.02);
    let simulation = Simulation {
        steps: Some(1500),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let noise = Noise {
        process: vec![1e-14; 2],
        measurement: vec![1e-4],
        start_mean: vec![2.0, 0.0],
        start: vec![1.0; 2],
    };
    let smoother = Smoother {
        stepper: &stepper,
        record: &record,
        theta: &[],
        noise: &noise,
    };
    let elsewhere = score::free_run(&stepper, &record, &[], &[1.85, 0.1]);
    assert!(smoother.cost(&elsewhere).total() > 1e4, "far off");
    let (states, cost) = smoother.minimise(elsewhere, 12);
    assert!(cost.total() < 1e-6, "{cost:?}");
    let truth = [2.0, 0.0];
    for (x, truth) in states.row(0).iter().zip(truth) {
        assert!((x - truth).abs() < 1e-6, "{x} for {truth}");
    }
}
