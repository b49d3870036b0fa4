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

/// A sensor that rounds to steps hides what it measures by up to half of one, also where it repeats its readings and
/// no difference of neighbours shows any noise.
#[test]
fn steps_of_a_sensor_are_noise() {
    let (model, mut record) = simulated("", 1);
    let fine = simulate(&model, &Simulation::default()).unwrap();
    let step = 0.1;
    let rounded = fine.outputs.iter().map(|z| (z / step).round() * step);
    record.outputs = rounded.collect();
    let fit = fitted(&model, record);
    for (constant, truth) in fit.facts.unknowns.iter().zip([1.0, 1.3]) {
        let off = (constant.value - truth) / constant.std;
        assert!(
            off.abs() < 4.0 && constant.std < 0.05,
            "{} {off}",
            constant.name
        );
    }
    let quantised =
        |f: &Finding| matches!(f, Finding::Quantised { step: s, .. } if (s - step).abs() < 1e-9);
    assert!(fit.facts.findings.iter().any(quantised));
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
    let findings = &fit.facts.findings;
    let Some(Finding::Lags { lag: about, .. }) =
        findings.iter().find(|f| matches!(f, Finding::Lags { .. }))
    else {
        panic!("{findings:?}");
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
        later: false,
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

/// A decay driven by a smooth input, for METHOD and HOLD; STEP has two samples in a time constant.
const DRIVEN: &str = r#"
[time]
step = 0.5
method = "METHOD"
[inputs]
u = { HOLD }
[states]
x = { derivative = "-k*x + u", start = 3 }
[unknowns]
k = { guess = 0.7, positive = true }
[measurements]
x = "x"
"#;

fn driven(method: &str, hold: &str) -> String {
    DRIVEN.replace("METHOD", method).replace("HOLD", hold)
}

/// A record of the continuous system: 40 steps of RK4 in a sample, its input sampled.
fn continuous(input: &str) -> Record {
    let text = driven("rk4", "hold = \"first-order\"").replace("step = 0.5", "step = 0.0125");
    let truth = format!(
        "{text}[truth]\nk = 1\n[simulation]\nsteps = 8000\ninputs = {{ u = \"{input}\" }}\n"
    );
    let model = Model::from_text("truth", &truth).unwrap();
    let noise = vec![Some(NoiseLevel::OfRange(NOISE))];
    let simulation = Simulation {
        noise,
        ..Simulation::default()
    };
    let fine = simulate(&model, &simulation).unwrap();
    let every = |values: &[f64]| values.iter().step_by(40).copied().collect::<Vec<f64>>();
    Record {
        time: every(&fine.time),
        inputs: every(&fine.inputs),
        outputs: every(&fine.outputs),
        truth: None,
        ..fine
    }
}

/// What constants take up between the samples is named, and nothing where the file is right.
#[test]
fn what_the_model_does_between_samples_is_named_where_it_matters() {
    let smooth = continuous("sin(0.4*t) + 0.5*cos(0.9*t)");
    let found_by = |method: &str, hold: &str| {
        let model = Model::from_text("driven", &driven(method, hold)).unwrap();
        let fit = fitted(&model, smooth.clone());
        let k = &fit.facts.unknowns[0];
        ((k.value - 1.0).abs() / k.std, fit.facts.findings.clone())
    };
    let (off, findings) = found_by("rk4", "hold = \"first-order\"");
    assert!(off < 3.5 && findings.is_empty(), "{off} {findings:?}");
    let (off, findings) = found_by("euler", "hold = \"first-order\"");
    let told = |f: &Finding| matches!(f, Finding::CoarseSteps { method, .. } if method == "euler");
    assert!(off > 3.5 && findings.iter().any(told), "{off} {findings:?}");
    // where the file says nothing, the record decides, and what it decided is told
    let (off, findings) = found_by("rk4", "");
    let told = |f: &Finding| matches!(f, Finding::MovingInputs { inputs, .. } if inputs == &["u"]);
    assert!(off < 3.5 && findings.iter().any(told), "{off} {findings:?}");
    // somebody who says that it is held is taken at their word
    let (_, findings) = found_by("rk4", "hold = \"zero-order\"");
    let told = |f: &Finding| matches!(f, Finding::HeldInputs { .. });
    assert!(!findings.iter().any(told), "{findings:?}");
}

/// A car, of which the truth is said where it is simulated.
const CAR: &str = r#"
[time]
step = 0.2
[inputs]
F = {}
[states]
s = { derivative = "v", start = 0 }
v = { derivative = "(F - drag*v)/m", start = 5 }
[unknowns]
m = { guess = 2, positive = true }
drag = { guess = 0.1, positive = true }
[measurements]
s = "s"
[truth]
TRUTH
[simulation]
steps = 800
inputs = { F = "2 + 2*sin(0.3*t) + 1.5*cos(0.71*t)" }
process_noise = { v = GUSTS }
"#;

/// A fit to a simulated record of it.
fn car(truth: &str, gusts: f64, seed: u64) -> Fit {
    let text = CAR.replace("TRUTH", truth);
    let model = Model::from_text("car", &text.replace("GUSTS", &gusts.to_string())).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(NOISE))],
        seed,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    fitted(&model, record)
}

/// A car in gusts: what pushes it about is found by the evidence and told, and its constants do not answer for it.
#[test]
fn random_disturbances_are_told_from_noise() {
    let truth = "m = 1.3\ndrag = 0.2";
    // strong gusts carry the car far from where any free run ends
    for (gusts, seed) in [(0.3, 1), (0.2, 3), (1.0, 3)] {
        let gusty = car(truth, gusts, seed);
        let pushes = gusty.facts.findings.iter().find_map(|f| match f {
            Finding::Disturbed { states, .. } => Some(states),
            _ => None,
        });
        let pushes = pushes.unwrap_or_else(|| panic!("seed {seed}: nothing is told"));
        let found = pushes[0].deviation / f64::sqrt(0.2);
        assert_eq!(pushes[0].state, "v");
        assert!(
            (0.5..2.0).contains(&(found / gusts)),
            "seed {seed}: {found}"
        );
        for (constant, truth) in gusty.facts.unknowns.iter().zip([1.3, 0.2]) {
            let off = (constant.value - truth) / constant.std;
            assert!(off.abs() < 4.0, "seed {seed}: {} {off}", constant.name);
        }
    }
    for seed in 1..=3 {
        assert!(
            car(truth, 0.0, seed).facts.disturbed.is_none(),
            "seed {seed}"
        );
    }
}

/// A room whose loss of heat is not linear, as the model has it, errs by little more than the noise; but it errs in the
/// same way whenever it is as warm, which nothing random does.
#[test]
fn a_term_that_is_missing_is_no_random_push() {
    let text = r#"
[time]
step = 0.1
[inputs]
To = {}
Q = {}
[states]
Ta = { derivative = "(g_aw*(Tw - Ta) + Q - g_ao*(Ta - To))/Ca", start = 19 }
Tw = { derivative = "(g_aw*(Ta - Tw) + g_wo*(To - Tw))/Cw", start = 17 }
[unknowns]
Ca = { guess = 1, positive = true }
Cw = { guess = 5, positive = true }
g_aw = { guess = 0.3, positive = true }
g_ao = { guess = 0.1, positive = true }
g_wo = { guess = 0.1, positive = true }
[measurements]
Ta = "Ta"
[truth]
Ta = "(0.6*(Tw - Ta) + Q - 0.04*(Ta - To) - 0.006*(Ta - To)*sqrt(abs(Ta - To)))/0.5"
Tw = "(0.6*(Ta - Tw) + 0.08*(To - Tw))/8"
[simulation]
steps = 1920
inputs = { To = "5 + 6*sin(0.2618*t) + 3*sin(0.037*t)", Q = "1.2 + 1.1*tanh(8*sin(0.21*t)) + 0.5*sin(1.3*t)" }
"#;
    let model = Model::from_text("room", text).unwrap();
    for seed in 1..=2 {
        let simulation = Simulation {
            noise: vec![Some(NoiseLevel::OfRange(NOISE))],
            seed,
            ..Simulation::default()
        };
        let fit = fitted(&model, simulate(&model, &simulation).unwrap());
        assert!(fit.facts.disturbed.is_none(), "seed {seed}");
        let contradicts = fit.facts.findings.iter().any(Finding::contradicts);
        assert!(contradicts, "seed {seed}: {:?}", fit.facts.findings);
    }
}

/// A channel that stands at 0 where the equations say so, as an overflow that is dry, is sound; one whose sensor shows
/// nothing below 0 is not.
#[test]
fn a_channel_stands_where_its_equations_do() {
    let (plain, record) = simulated("", 1);
    let above = Record {
        outputs: record.outputs.iter().map(|z| z.max(0.0)).collect(),
        ..record
    };
    let text = OSCILLATOR.replace("TERM", "");
    let text = text.replace("z = \"z\"", "z = \"0.5*(z + abs(z))\"");
    let overflow = Model::from_text("overflow", &text).unwrap();
    let is_saturated = |fit: &Fit| {
        let mut findings = fit.facts.findings.iter();
        findings.any(|f| matches!(f, Finding::Saturated { .. }))
    };
    assert!(is_saturated(&fitted(&plain, above.clone())));
    assert!(!is_saturated(&fitted(&overflow, above)));
}

/// Rows that a logger has lost while an input moved: nobody knows what drove the states there. The gap is named, by a
/// check and by a fit, and what follows it is no fault of the model.
#[test]
fn a_gap_over_which_an_input_moves_is_named() {
    let (model, whole) = simulated("", 1);
    let lost = 500..800;
    let kept = |k: &usize| !lost.contains(k);
    let rows = |values: &[f64]| -> Vec<f64> {
        let kept = (0..whole.len()).filter(kept);
        kept.map(|k| values[k]).collect()
    };
    let record = Record {
        time: rows(&whole.time),
        inputs: rows(&whole.inputs),
        outputs: rows(&whole.outputs),
        truth: None,
        ..whole.clone()
    };
    let named = |findings: &[Finding]| -> Option<(f64, f64, bool)> {
        findings.iter().find_map(|finding| match finding {
            Finding::UnknownInputs {
                inputs,
                gaps: 1,
                from,
                to,
                contradicts,
                ..
            } if inputs == &["u"] => Some((*from, *to, *contradicts)),
            _ => None,
        })
    };
    let check = latens::check(&model, std::slice::from_ref(&record)).unwrap();
    let (from, to, contradicts) = named(&check.sensors).unwrap();
    assert!((from - 9.98).abs() < 1e-9 && (to - 16.0).abs() < 1e-9 && !contradicts);
    let fit = fitted(&model, record);
    let (.., contradicts) = named(&fit.facts.findings).unwrap();
    assert!(contradicts, "{:?}", fit.facts.findings);
    let blames = |f: &Finding| f.contradicts() && !f.is_of_record();
    assert!(!fit.facts.findings.iter().any(blames));
    assert!(named(&latens::check(&model, &[whole]).unwrap().sensors).is_none());
}
