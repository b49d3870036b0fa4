//! Facts of the mathematics that the recursions and the smoother must reproduce: closed forms of
//! linear problems, solved densely.

use crate::dense::{DT, Dense, LINEAR, dense_linear, model, random_record, uneven};
use crate::fixture::{defaults, fit};
use latens::filter::Smoother;
use latens::numerics::linalg::{PackedCovariance, Precision};
use latens::numerics::objective::{Cost, Noise};
use latens::numerics::step::Stepper;
use latens::solve::recursion::alternating::{self, Form};
use latens::solve::recursion::joint::{self, Joint};
use latens::solve::recursion::sweep::{Pass, Segment};
use latens::{Model, Record, Trajectory};
use latens::{Settings, Silent};

fn noise(model: &Model, process: f64, measurement: f64, start: f64) -> Noise {
    let n = model.states.len();
    Noise {
        process: vec![process; n],
        measurement: vec![measurement; model.measurements.len()],
        start_mean: vec![0.0; n],
        start: vec![start; n],
    }
}

/// Runs `body` with an pass at θ = 0 and P_θ = `prior`·I; returns θ and P_θ.
fn with_pass(
    model: &Model,
    noise: &Noise,
    settings: &Settings,
    prior: f64,
    body: impl FnOnce(&mut Pass),
) -> (Vec<f64>, PackedCovariance) {
    let stepper = Stepper::new(model, &model.system, DT);
    let parameters = model.system.parameters();
    let mut pass = Pass {
        model,
        stepper: &stepper,
        settings,
        noise,
        scale: &vec![1.0; model.states.len()],
        theta: vec![0.0; parameters],
        covariance: PackedCovariance::scaled_identity(parameters, prior, Precision::Double),
        drift: 0.0,
        number: 1,
        cost: Cost::default(),
        consistency: (0.0, 0),
        advice: "",
        observer: &mut Silent,
        stop: false,
    };
    body(&mut pass);
    (pass.theta, pass.covariance)
}

fn segment<'r>(record: &'r Record, noise: &Noise, samples: std::ops::Range<usize>) -> Segment<'r> {
    let start = record.output(samples.start).to_vec();
    let start = if start.len() == noise.start.len() {
        start
    } else {
        noise.start_mean.clone()
    };
    Segment {
        record,
        samples,
        start,
        start_variance: noise.start.clone(),
    }
}

const LINEAR_IN_THETA: &str = "[inputs]\nu = {}\n\
    [states.x]\nderivative = \"a*x + b*u + c\"\n[measurements]\ny = \"x\"\n\
    [unknowns]\na = { guess = 0, scale = 1 }\nb = { guess = 0, scale = 1 }\nc = { guess = 0, scale = 1 }\n";

/// With a model linear in θ, Q_θ = 0 and the state measured, the parameter recursion is
/// recursive least squares: θ and P_θ are those of the regularised regression, in one stream or
/// in several.
#[test]
fn parameter_recursion_is_recursive_least_squares() {
    let model = model(LINEAR_IN_THETA);
    let record = random_record(&model, 60, 1);
    let (q, prior) = (0.3, 2.0);
    let noise = noise(&model, q, 1e-13, 1e-13);
    let settings = Settings {
        count_state_uncertainty: false,
        ..defaults("alternating")
    };
    let mut dense = Dense::new(3);
    for i in 0..3 {
        dense.add(&[(i, 1.0)], 0.0, prior);
    }
    for k in 1..record.len() {
        let (x, u) = (record.output(k - 1)[0], record.input(k - 1)[0]);
        let row = [(0, DT * x), (1, DT * u), (2, DT)];
        dense.add(&row, record.output(k)[0] - x, q);
    }
    let (expected, covariance) = dense.solve();
    for cuts in [vec![(0, 60)], vec![(0, 21), (20, 40), (39, 60)]] {
        let (theta, mut p) = with_pass(&model, &noise, &settings, prior, |pass| {
            let segments: Vec<_> = cuts
                .iter()
                .map(|&(a, b)| segment(&record, &noise, a..b))
                .collect();
            alternating::sweep(pass, &segments, Form::Corrected).unwrap();
        });
        let packed = p.to_packed();
        for i in 0..3 {
            assert!(
                (theta[i] - expected[i]).abs() < 1e-9,
                "{theta:?} {expected:?}"
            );
            for j in 0..=i {
                let got = packed[i * (i + 1) / 2 + j];
                assert!((got - covariance[i * 3 + j]).abs() < 1e-9);
            }
        }
    }
}

const TWO_ROWS: &str = "[inputs]\nu = {}\n\
    [states.x]\nderivative = \"a*y + b*u\"\n[states.y]\nderivative = \"b*x + c\"\n\
    [measurements]\nx = \"x\"\ny = \"y\"\n\
    [unknowns]\na = { guess = 0, scale = 1 }\nb = { guess = 0, scale = 1 }\nc = { guess = 0, scale = 1 }\n";

/// Two unknown rows that share a parameter: the corrected form is the stacked regression, the
/// printed one the literal P − G(Q + FG)Gᵀ, θ + P⁻Fᵀr, computed densely.
#[test]
fn several_rows_are_taken_together() {
    let model = model(TWO_ROWS);
    let record = random_record(&model, 30, 7);
    let (q, prior) = (0.3, 2.0);
    let noise = noise(&model, q, 1e-13, 1e-13);
    let settings = Settings {
        count_state_uncertainty: false,
        ..defaults("alternating")
    };
    let rows = |k: usize| {
        let (x, y, u) = (record.output(k)[0], record.output(k)[1], record.input(k)[0]);
        [[DT * y, DT * u, 0.0], [0.0, DT * x, DT]]
    };
    let run = |form| {
        with_pass(&model, &noise, &settings, prior, |pass| {
            alternating::sweep(pass, &[segment(&record, &noise, 0..30)], form).unwrap();
        })
    };
    let mut dense = Dense::new(3);
    for i in 0..3 {
        dense.add(&[(i, 1.0)], 0.0, prior);
    }
    let (mut theta, mut p) = (
        [0.0; 3],
        [[prior, 0.0, 0.0], [0.0, prior, 0.0], [0.0, 0.0, prior]],
    );
    for k in 1..record.len() {
        let f = rows(k - 1);
        let step: Vec<f64> = (0..2)
            .map(|r| record.output(k)[r] - record.output(k - 1)[r])
            .collect();
        for (row, value) in f.iter().zip(&step) {
            dense.add(&[(0, row[0]), (1, row[1]), (2, row[2])], *value, q);
        }
        // in print
        let apply = |p: &[[f64; 3]; 3], v: &[f64; 3]| -> [f64; 3] {
            std::array::from_fn(|i| (0..3).map(|j| p[i][j] * v[j]).sum())
        };
        let dot = |a: &[f64; 3], b: &[f64; 3]| -> f64 { (0..3).map(|i| a[i] * b[i]).sum() };
        let g = [apply(&p, &f[0]), apply(&p, &f[1])];
        let mut after = p;
        for a in 0..2 {
            for b in 0..2 {
                let s = dot(&f[a], &g[b]) + if a == b { q } else { 0.0 };
                for i in 0..3 {
                    for j in 0..3 {
                        after[i][j] -= g[a][i] * s * g[b][j];
                    }
                }
            }
        }
        let residual: Vec<f64> = (0..2).map(|r| step[r] - dot(&f[r], &theta)).collect();
        p = after;
        for r in 0..2 {
            let gain = apply(&p, &f[r]);
            for i in 0..3 {
                theta[i] += gain[i] * residual[r];
            }
        }
    }
    let (expected, _) = dense.solve();
    let (corrected, _) = run(Form::Corrected);
    let (printed, mut covariance) = run(Form::AsPrinted);
    let packed = covariance.to_packed();
    for i in 0..3 {
        assert!(
            (corrected[i] - expected[i]).abs() < 1e-9,
            "{corrected:?} {expected:?}"
        );
        assert!(
            (printed[i] - theta[i]).abs() < 1e-9,
            "{printed:?} {theta:?}"
        );
        for j in 0..=i {
            assert!((packed[i * (i + 1) / 2 + j] - p[i][j]).abs() < 1e-9);
        }
    }
}

/// On a linear system the joint filter's θ is the maximum-a-posteriori estimate given all data,
/// and its covariance the posterior's; also with channels missing and samples at any distance.
#[test]
fn joint_filter_has_the_closed_form() {
    let model = model(LINEAR);
    let mut record = random_record(&model, 25, 2);
    for k in [3, 4, 11, 24] {
        record.outputs[k] = f64::NAN;
    }
    let noise = Noise {
        process: vec![0.02, 0.1],
        ..noise(&model, 0.1, 0.05, 0.7)
    };
    for record in [uneven(&record), record] {
        let (z, inverse) = dense_linear(&record, &noise, 3.0, false).solve();
        let (theta, mut p) = with_pass(&model, &noise, &defaults("joint"), 3.0, |pass| {
            joint::sweep(pass, &[segment(&record, &noise, 0..25)]).unwrap();
        });
        let (first, packed) = (z.len() - 2, p.to_packed());
        for i in 0..2 {
            let expected = z[first + i];
            assert!((theta[i] - expected).abs() < 1e-10, "{theta:?} {expected}");
            for j in 0..=i {
                let covariance = inverse[(first + i) * z.len() + first + j];
                assert!((packed[i * (i + 1) / 2 + j] - covariance).abs() < 1e-10);
            }
        }
    }
}

/// With θ known the smoother's states are the least-squares trajectory and its deviations the
/// posterior's, in one step, from any start; the filter's last estimate is the same.
#[test]
fn smoother_has_the_closed_form() {
    let model = model(LINEAR);
    let mut record = random_record(&model, 25, 3);
    record.outputs[7] = f64::NAN;
    let noise = Noise {
        process: vec![1e-9, 0.1],
        ..noise(&model, 0.1, 0.05, 0.7)
    };
    for record in [uneven(&record), record] {
        // p and g pinned to their guesses by their prior
        let (z, inverse) = dense_linear(&record, &noise, 1e-14, true).solve();
        let stepper = Stepper::over(&model, &model.system, DT, [&record]);
        let smoother = Smoother {
            stepper: &stepper,
            record: &record,
            theta: &[0.0; 2],
            noise: &noise,
        };
        let far: Vec<f64> = (0..50).map(|i| f64::from(i).sin() * 5.0).collect();
        let far = Trajectory::new(far, 2);
        let filtered = smoother.filtered();
        for start in [far, filtered.clone()] {
            let smoothed = smoother.smooth(start, 3);
            let pairs = (smoothed.states.as_slice().iter()).zip(smoothed.deviations.as_slice());
            for (i, (x, deviation)) in pairs.enumerate() {
                assert!((x - z[i]).abs() < 1e-7, "{i}: {x} {}", z[i]);
                let variance = inverse[i * z.len() + i];
                assert!((deviation * deviation - variance).abs() < 1e-7 * variance.max(1e-3));
            }
        }
        for (state, expected) in filtered.row(24).iter().zip(&z[48..]) {
            assert!(
                (state - expected).abs() < 1e-8,
                "with θ known it is the Kalman filter"
            );
        }
    }
}

/// The paper's appendix: the static joint gain P_θθ F_θᵀ Hᵀ is zero, so θ could not learn. It is,
/// exactly, at every step; but the recurrent cross-covariance is not, from the third step on in
/// a chain of three states.
#[test]
fn static_gain_vanishes_but_the_cross_covariance_does_not() {
    let model = model(
        "[states.a]\nderivative = \"b\"\n[states.b]\nderivative = \"c\"\n\
         [states.c]\nderivative = \"p\"\n[measurements]\ny = \"a\"\n\
         [unknowns]\np = { guess = 0, scale = 1 }\n",
    );
    let record = random_record(&model, 6, 4);
    let noise = noise(&model, 0.01, 0.01, 0.01);
    with_pass(&model, &noise, &defaults("joint"), 1.0, |pass| {
        let mut joint = Joint::new(pass, &segment(&record, &noise, 0..6));
        for tick in 1..6 {
            let before = pass.theta[0];
            joint.predict(pass, tick).unwrap();
            let f_theta = &joint.sweep.filter.step.f_theta;
            assert_eq!(f_theta, &[0.0, 0.0, DT], "only c' depends on p");
            let recurrent = joint.cross.values[0]; // P_aθ, what H picks
            joint.correct(pass, tick).unwrap();
            if tick < 3 {
                assert_eq!(recurrent, 0.0);
                assert_eq!(pass.theta[0], before);
            } else {
                assert!(recurrent.abs() > 1e-6, "step {tick}: {recurrent}");
                assert!(pass.theta[0] != before);
            }
        }
    });
}

/// Twenty thousand steps of the neuron, with some three hundred weights, leave P_θ positive definite.
#[test]
fn covariance_stays_positive_over_a_long_record() {
    let text = latens::systems::find("hodgkin-huxley").unwrap();
    let text = text.replace("\"20 elu\", \"20 tanh\"", "\"10 elu\", \"10 tanh\"");
    let model = Model::from_text("hodgkin-huxley", &text).unwrap();
    assert!((250..350).contains(&model.system.parameters()));
    let simulation = latens::simulate::Simulation {
        steps: Some(20_000),
        ..Default::default()
    };
    let record = latens::simulate::simulate(&model, &simulation).unwrap();
    let settings = Settings {
        passes: 1,
        keep_best: false,
        ..defaults("alternating")
    };
    let mut fit = fit(&model, &[record], &settings, &mut Silent).unwrap();
    let pivot = fit.covariance.smallest_pivot().expect("positive definite");
    assert!(pivot > 0.0);
}

/// A pass that cannot work is an error that names where, not a result with NaN in it.
#[test]
fn divergence_names_step_time_and_state() {
    let model = model(
        "[states.x]\nderivative = \"x^3 + net(x)\"\n[measurements]\ny = \"x\"\n\
         [networks.net]\nlayers = [\"3 tanh\"]\n",
    );
    let mut record = random_record(&model, 200, 5);
    // measured once, then left alone with an equation that blows up
    record.outputs[0] = 3.0;
    record.outputs[1..].fill(f64::NAN);
    let settings = Settings {
        passes: 2,
        ..defaults("alternating")
    };
    let error = fit(&model, &[record], &settings, &mut Silent)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("alternating on random diverged in pass 1 at step"),
        "{error}"
    );
    assert!(error.contains("x = ") && error.contains("t = "), "{error}");
}

/// A user's story without networks: stiffness and damping of an oscillator from its noisy
/// position alone, by every solver.
#[test]
fn unknown_constants_are_found_under_noise() {
    let model = model(
        "method = \"rk4\"\n[inputs]\nu = {}\n[states.x]\nderivative = \"v\"\nstart = 1\n\
         [states.v]\nderivative = \"(u - k*x - c*v)/2\"\nstart = 0\n[measurements]\nx = \"x\"\n\
         [unknowns]\nk = { guess = 5, scale = 3, positive = true }\n\
         c = { guess = 0.5, scale = 0.5, positive = true }\n\
         [truth]\nk = 8\nc = 0.3\n[simulation]\nsteps = 400\ninputs = { u = \"sin(2*t)\" }\n",
    );
    let simulation = latens::simulate::Simulation {
        noise: vec![Some(latens::simulate::NoiseLevel::OfRange(0.01))],
        seed: 1,
        ..Default::default()
    };
    let record = latens::simulate::simulate(&model, &simulation).unwrap();
    for solver in ["alternating", "joint", "batch"] {
        let records = std::slice::from_ref(&record);
        let fit = fit(&model, records, &defaults(solver), &mut Silent).unwrap();
        let value = |i: usize| model.unknowns[i].value(fit.theta[i]);
        let (k, c) = (value(0), value(1));
        assert!(
            (k - 8.0).abs() < 0.2 && (c - 0.3).abs() < 0.1,
            "{solver:?}: {k} {c}"
        );
        let error = fit.facts.records[0].mean_nrmse.unwrap();
        assert!(error < 0.02, "{solver:?}: {error}");
    }
}

/// Records as users have them: two of different length, one channel measured at every tenth
/// sample and not at the first.
#[test]
fn sparse_records_of_different_length_are_learned_from() {
    let text = latens::systems::find("harmonic-oscillator").unwrap();
    let model = Model::from_text("harmonic-oscillator", text).unwrap();
    let simulate = |steps, start: &[(usize, f64)], first: usize, every: usize| {
        let simulation = latens::simulate::Simulation {
            steps: Some(steps),
            start: start.to_vec(),
            ..Default::default()
        };
        let mut record = latens::simulate::simulate(&model, &simulation).unwrap();
        for k in 0..record.len() {
            if k < first || !k.is_multiple_of(every) {
                record.outputs[k] = f64::NAN;
            }
        }
        record
    };
    let records = [
        simulate(5000, &[], 0, 1),
        simulate(3000, &[(0, 0.5), (1, 0.6)], 10, 10),
    ];
    for solver in ["alternating", "joint"] {
        let settings = Settings {
            passes: 3,
            ..defaults(solver)
        };
        let fit = fit(&model, &records, &settings, &mut Silent).unwrap();
        // the second has a tenth of the samples
        for (record, bound) in fit.facts.records.iter().zip([1e-2, 2e-2]) {
            let error = record.mean_nrmse.unwrap();
            assert!(error < bound, "{solver:?}: {error}");
        }
    }
}

/// P_θ stored in f32 gives nearly the same fit as in f64.
#[test]
fn single_precision_storage_hardly_changes_a_fit() {
    let text = latens::systems::find("harmonic-oscillator").unwrap();
    let model = Model::from_text("harmonic-oscillator", text).unwrap();
    let record = latens::simulate::simulate(&model, &Default::default()).unwrap();
    let [double, single] = [false, true].map(|single_precision| {
        let settings = Settings {
            passes: 3,
            single_precision,
            ..defaults("alternating")
        };
        let fit = fit(
            &model,
            std::slice::from_ref(&record),
            &settings,
            &mut Silent,
        )
        .unwrap();
        fit.facts.records[0].mean_nrmse.unwrap()
    });
    assert!(double < 5e-3 && single < 2.0 * double, "{double} {single}");
}
