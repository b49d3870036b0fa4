//! What is said of a sensor or a model that is wrong, and that nothing is said of those that are right.

use latens::look::check::Sight;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Finding, Fit, Model, Record, Warning};

/// A forced oscillator with two unknown constants; TERM is what a wrong model leaves out.
const OSCILLATOR: &str = r#"
[time]
step = 0.02
method = "rk4"
[inputs]
u = "V"
[states]
z = { derivative = "v", start = 1, unit = "m" }
v = { derivative = "-c*z + k*u", start = 0 }
[unknowns]
c = { guess = 0.8, positive = true }
k = { guess = 1 }
[measurements]
z = "z"
[truth]
v = "-c*z + k*u TERM"
c = 1
k = 1.3
[simulation]
steps = 1500
inputs = { u = "sin(3*t) + 0.7*cos(1.9*t)" }
"#;

/// Noise over range.
const NOISE: f64 = 0.01;

fn simulated(term: &str, seed: u64) -> (Model, Record) {
    let model = Model::from_text("oscillator", &OSCILLATOR.replace("TERM", term)).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(NOISE))],
        seed,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    (model, record)
}

fn fitted(model: &Model, record: Record) -> Fit {
    latens::fit(model, &[record]).unwrap()
}

#[test]
fn right_models_have_no_finding() {
    for seed in 1..=4 {
        let (model, record) = simulated("", seed);
        let fit = fitted(&model, record);
        assert_eq!(fit.facts.findings, [], "seed {seed}");
    }
}

/// The finding's sizes are those that were built in.
#[test]
fn a_sensor_that_drifts_is_named_with_its_drift() {
    let (model, mut record) = simulated("", 1);
    let n = record.len() as f64;
    for (k, y) in record.outputs.iter_mut().enumerate() {
        *y += 0.4 * k as f64 / n;
    }
    let fit = fitted(&model, record);
    let [Finding::Drifts { drift, channel, .. }] = &fit.facts.findings[..] else {
        panic!("{:?}", fit.facts.findings);
    };
    assert_eq!(channel, "z");
    assert!((drift / 0.4 - 1.0).abs() < 0.1, "{drift}");
    let said = fit.facts.findings.iter().any(Finding::contradicts);
    assert!(said, "no verdict may call it right");
}

#[test]
fn a_sensor_that_lags_is_named_with_its_lag() {
    let (model, mut record) = simulated("", 1);
    let lag = 0.2;
    let keep = (-0.02f64 / lag).exp();
    let mut state = record.outputs[0];
    for y in &mut record.outputs {
        state = keep * state + (1.0 - keep) * *y;
        *y = state;
    }
    let fit = fitted(&model, record);
    let found = &fit.facts.findings;
    let Some(Finding::Lags { lag: about, .. }) =
        found.iter().find(|f| matches!(f, Finding::Lags { .. }))
    else {
        panic!("{found:?}");
    };
    assert!((0.5..2.0).contains(&(about / lag)), "{about}");
}

/// A model without the damping that there is: its misfit is no noise, and is said to be none.
#[test]
fn a_missing_term_is_an_error_of_the_model() {
    let (model, record) = simulated("- 0.15*v*v*v", 1);
    let range = 2.0;
    let fit = fitted(&model, record);
    let Some(Finding::Correlated {
        misfit,
        model_error,
        noise,
        ..
    }) = fit.facts.findings.first()
    else {
        panic!("{:?}", fit.facts.findings);
    };
    assert!(
        model_error > noise && misfit >= model_error,
        "{fit:?}",
        fit = fit.facts.findings
    );
    assert!((0.3..3.0).contains(&(noise / (NOISE * range))), "{noise}");
}

/// √ of a negative level: the equation is named with its values, and no state is called determined.
#[test]
fn check_says_which_equation_is_no_number() {
    let text = r#"
[time]
step = 0.1
[inputs]
u = {}
[states]
h = { derivative = "u - c*sqrt(h - 2)", start = 3 }
w = { derivative = "h - w", start = 0 }
[unknowns]
c = { guess = 1, positive = true }
[measurements]
h = "h"
"#;
    let model = Model::from_text("tank", text).unwrap();
    let n = 200;
    let record = Record {
        name: "log".into(),
        time: (0..n).map(|k| 0.1 * k as f64).collect(),
        inputs: vec![1.0; n],
        outputs: (0..n).map(|k| 1.0 + 0.2 * (0.1 * k as f64).sin()).collect(),
        truth: None,
        d_u: 1,
        d_y: 1,
        d_x: 2,
    };
    let check = latens::check(&model, &[record]).unwrap();
    let leaves = check
        .leaves
        .as_ref()
        .expect("it is no number from the first sample on");
    assert_eq!((leaves.state.as_str(), leaves.sample), ("h", 0));
    assert!(
        leaves.operation.as_deref().unwrap().starts_with("sqrt(-"),
        "{leaves:?}"
    );
    assert!(check.states.iter().all(|s| s.sight != Sight::Well));
    let warnings = Warning::of_check(&check);
    assert!(
        matches!(&warnings[..], [Warning::GuessesLeaveNumbers { .. }]),
        "{warnings:?}"
    );
}
