//! Several starts of the whole-record solver.

use crate::fixture::{defaults, fit};
use latens::model::network::Structure;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::Trial;
use latens::{Error, Model, Record, systems};
use latens::{Observer, Progress, Settings, Silent};

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Of two starts one is kept, the one whose free run errs less; and running beside another
/// changes nothing: it is what its seed gives alone, to the last bit.
#[test]
fn of_two_starts_the_better_is_kept() {
    let text = systems::find("harmonic-oscillator").unwrap();
    let text = text.replace("[\"20 tanh\", \"20 tanh\"]", "[\"5 tanh\"]");
    let model = Model::from_text("harmonic-oscillator", &text).unwrap();
    let simulation = Simulation {
        steps: Some(1000),
        noise: vec![Some(NoiseLevel::OfRange(0.01))],
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let run = |starts: usize, seed: u64| {
        let settings = Settings {
            passes: 3,
            starts,
            seed,
            // one structure: else each seed is tried with simpler ones too
            simplify: false,
            ..defaults("batch")
        };
        let records = std::slice::from_ref(&record);
        fit(&model, records, &settings, &mut Silent).unwrap()
    };
    let both = run(2, 4);
    assert_eq!(
        both.facts
            .attempts
            .iter()
            .map(|a| a.seed)
            .collect::<Vec<_>>(),
        [4, 5]
    );
    let (kept, left): (Vec<_>, Vec<_>) = both.facts.attempts.iter().partition(|a| a.kept);
    assert_eq!((kept.len(), left.len()), (1, 1));
    assert!(kept[0].failure.is_none() && kept[0].error < left[0].error);
    assert_eq!(both.facts.seed, kept[0].seed);
    for attempt in &both.facts.attempts {
        let alone = run(1, attempt.seed);
        assert_eq!(
            alone.facts.attempts[0].error.to_bits(),
            attempt.error.to_bits()
        );
        if attempt.kept {
            assert_eq!(bits(&alone.theta), bits(&both.theta));
            let [alone, both] = [&alone, &both].map(|f| &f.tracks[0].smoothed);
            assert_eq!(bits(alone.as_slice()), bits(both.as_slice()));
        }
    }
}

/// Where no seed can work, the error of the first is what the user gets.
#[test]
fn divergence_of_every_start_is_an_error() {
    let model = Model::from_text(
        "test.toml",
        "[time]\nstep = 0.1\n[states.x]\nderivative = \"exp(x^4) + net(x)\"\n\
         [measurements]\ny = \"x\"\n[networks.net]\nlayers = [\"3 tanh\"]\n",
    )
    .unwrap();
    let record = Record {
        name: "runaway".into(),
        time: (0..50).map(|k| f64::from(k) * 0.1).collect(),
        inputs: vec![],
        outputs: (0..50).map(|k| 100.0 + f64::from(k)).collect(),
        truth: None,
        d_u: 0,
        d_y: 1,
        d_x: 1,
        later: false,
    };
    for starts in [1, 2] {
        let settings = Settings {
            starts,
            ..defaults("batch")
        };
        let records = std::slice::from_ref(&record);
        match fit(&model, records, &settings, &mut Silent) {
            Err(Error::Diverged(at)) => {
                assert_eq!((at.step, at.quantity.as_str()), (1, "x"));
                assert_eq!(at.during, "batch on runaway");
            }
            other => panic!("{:?}", other.map(|f| f.facts.attempts)),
        }
    }
}

/// Counts what is learned beside the fit itself, and Newton's steps.
#[derive(Default)]
struct Trials {
    seeds: usize,
    steps: usize,
}

impl Observer for Trials {
    fn trying(&mut self, trial: Option<Trial>) {
        self.seeds += usize::from(matches!(trial, Some(Trial::Seed(_))));
    }

    fn progress(&mut self, _progress: &Progress) -> bool {
        self.steps += 1;
        true
    }
}

/// A few units that explain the data down to the noise leave nothing open: the file's network begins
/// at what they do, no other seed is tried, and no stage crawls along its valley to the limit of steps.
#[test]
fn what_is_certain_is_not_looked_for_again() {
    let text = "[time]\nstep = 0.02\nmethod = \"rk4\"\n[inputs]\nu = \"N\"\n\
        [states.q]\nderivative = \"v\"\nstart = 0\n[states.v]\nderivative = \"u - 25*q - friction(v)\"\nstart = 0\n\
        [networks.friction]\nlayers = [\"8 tanh\"]\n[measurements]\nq = \"q\"\n\
        [truth]\nv = \"u - 25*q - 0.2*v - 0.5*tanh(v/0.5)\"\n\
        [simulation]\nsteps = 1000\ninputs = { u = \"20*sin(1.5*t) + 15*sin(4*t) + 10*sin(7*t)\" }\n";
    let model = Model::from_text("mass", text).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.001))],
        seed: 1,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let mut trials = Trials::default();
    let fit = fit(&model, &[record], &defaults("batch"), &mut trials).unwrap();
    let rungs: Vec<_> = fit.facts.rungs.iter().map(|r| r.structure).collect();
    assert_eq!(rungs, [Structure::Linear, Structure::Few, Structure::Whole]);
    assert_eq!(trials.seeds, 0);
    assert!(trials.steps < 250, "{} steps", trials.steps);
    let hidden = fit.facts.records[0].mean_nrmse_hidden.unwrap();
    assert!(hidden < 5e-4, "{hidden}");
}

/// Guesses and random weights may leave the states far from anything that the equations can follow: there
/// they bend along any step, and the objective itself has to say which one helps.
#[test]
fn a_start_far_from_the_valley_gets_there() {
    let text = r#"
[time]
step = 0.1
method = "rk4"
[inputs]
D = "1/h"
[states]
X = { derivative = "mu(S)*X - D*X", start = 0.5 }
S = { derivative = "D*(10 - S) - mu(S)*X/Y", start = 5 }
[networks.mu]
layers = ["8 tanh"]
[unknowns]
Y = { guess = 0.25, scale = 0.25, positive = true }
[measurements]
S = "S"
[truth]
X = "0.5*S/(1.5 + S)*X - D*X"
S = "D*(10 - S) - 0.5*S/(1.5 + S)*X/Y"
Y = 0.45
[simulation]
steps = 400
inputs = { D = "0.2 + 0.1*sin(0.5*t)" }
"#;
    let model = Model::from_text("bioreactor", text).unwrap();
    for seed in 1..=3 {
        let simulation = Simulation {
            noise: vec![Some(NoiseLevel::OfRange(0.02))],
            seed,
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).unwrap();
        let settings = Settings {
            simplify: false,
            seed,
            ..defaults("batch")
        };
        let fit = fit(&model, &[record], &settings, &mut Silent).unwrap();
        let error = fit.facts.records[0].nrmse["S"].unwrap();
        assert!(error < 0.03, "seed {seed}: {error}");
    }
}

/// A tank that begins empty: √|h| has no derivative there, and the record says exactly 0.
#[test]
fn a_tank_may_begin_empty() {
    let text = r#"
[time]
step = 0.1
method = "rk4"
[inputs]
q = "l/min"
[states]
h = { derivative = "(q - k*sqrt(abs(h)))/A", start = 0 }
[unknowns]
k = { guess = 1, positive = true }
A = { guess = 1, positive = true }
[measurements]
h = "h"
[truth]
k = 0.9
A = 2.5
[simulation]
steps = 300
inputs = { q = "if(t < 1, 0, 2 + 0.8*sin(0.5*t))" }
"#;
    let model = Model::from_text("tank", text).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.01))],
        seed: 1,
        ..Simulation::default()
    };
    let mut record = simulate(&model, &simulation).unwrap();
    record.outputs[..10].fill(0.0);
    let fit = fit(&model, &[record], &defaults("batch"), &mut Silent).unwrap();
    for (constant, truth) in fit.facts.unknowns.iter().zip([0.9, 2.5]) {
        let off = (constant.value - truth) / constant.std;
        assert!(off.abs() < 4.0, "{} {off}", constant.name);
    }
}
