//! Equations that are not defined everywhere: searches leave their domain, and come back.

use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Record};

/// A gene that its protein holds down, of which only the protein is measured. The guesses are three times off, and that
/// of the exponent is a whole number: of a negative base the power is a number there, and nowhere near.
const GENE: &str = r#"
[time]
step = 1
[inputs]
u = ""
[states]
m = { derivative = "u*alpha/(1 + (p/K)^h) - dm*m", start = 0.5 }
p = { derivative = "0.4*m - dp*p", start = 0.3 }
[unknowns]
alpha = { guess = 6, scale = 6, positive = true }
K = { guess = 1, scale = 1, positive = true }
h = { guess = 9, scale = 9, positive = true }
dm = { guess = 0.6, scale = 0.6, positive = true }
dp = { guess = 0.15, scale = 0.15, positive = true }
[measurements]
p = "p"
[truth]
alpha = 2
K = 3
h = 3
dm = 0.2
dp = 0.05
[simulation]
steps = 120
inputs = { u = "1 + 0.9*sin(t/7)" }
"#;

fn simulated(text: &str, noise: f64, seed: u64) -> (Model, Record) {
    let model = Model::from_text("model", text).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::Absolute(noise))],
        seed,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    (model, record)
}

#[test]
fn guesses_at_which_a_power_has_a_wider_domain_end_no_fit() {
    let (model, record) = simulated(GENE, 0.03, 3);
    let fit = latens::fit(&model, &[record]).unwrap();
    for (constant, truth) in fit.facts.unknowns.iter().zip([2.0, 3.0, 3.0, 0.2, 0.05]) {
        let off = (constant.value - truth) / constant.std;
        assert!(off.abs() < 4.0, "{} {off}", constant.name);
    }
}

/// x^h by h is 0 at x = 0, where its formula has the logarithm of 0.
#[test]
fn a_power_of_zero_has_derivatives() {
    let text = GENE.replace("start = 0.3", "start = 0");
    let (model, mut record) = simulated(&text, 1e-9, 1);
    record.outputs[0] = 0.0;
    let fit = latens::fit(&model, &[record]).unwrap();
    assert!((fit.facts.unknowns[2].value - 3.0).abs() < 0.1);
}

/// Readings of a nearly empty tank below zero, where the root of its outflow is no number.
#[test]
fn readings_outside_of_the_domain_end_no_fit() {
    let text = "[time]\nstep = 0.5\n[inputs]\nu = \"\"\n[states]\n\
        x = { derivative = \"u - c*sqrt(x)\", start = 0.04 }\n\
        [unknowns]\nc = { guess = 0.3, positive = true }\n[measurements]\nx = \"x\"\n\
        [truth]\nc = 0.2\n[simulation]\nsteps = 100\ninputs = { u = \"0.04 + 0.02*sin(t/5)\" }\n";
    let (model, record) = simulated(text, 0.05, 2);
    assert!(record.outputs.iter().any(|x| *x < 0.0));
    let fit = latens::fit(&model, &[record]).unwrap();
    let constant = &fit.facts.unknowns[0];
    assert!((constant.value - 0.2).abs() < 4.0 * constant.std);
}
