//! Predictions of other records: their bands, and what they say of where nobody looked.

use crate::fixture::{fitted, fitted_to_noise, oscillator};
use latens::fit::Fit;
use latens::fit::Start;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Record, Trajectory};

/// The bands of a free run are linear in δθ: free runs of models drawn a thousand times closer
/// spread a thousandth as much. (Drawn at full width they leave the linear range: directions of
/// the weights about which the data are silent are as uncertain as before them.)
#[test]
fn bands_are_the_linear_spread_of_free_runs() {
    const DRAW_PART: f64 = 1e-3;
    let fit = fitted();
    let (_, record) = oscillator((0.9, 0.1), 0.0, 1);
    let start = record.truth(0).unwrap();
    let prediction = fit.predictor().predict(&record, Start::At(start));
    let stepper = Stepper::new(&fit.model, &fit.model.system, fit.facts.sample_time);
    let run = |draw: &Vec<f64>| {
        let moved = fit.theta.iter().zip(draw).map(|(t, d)| t + DRAW_PART * d);
        score::free_run(&stepper, &record, &moved.collect::<Vec<f64>>(), start)
    };
    let runs: Vec<Trajectory> = fit.draws.iter().map(run).collect();
    for at in (200..4000).step_by(101) {
        let spread = rms(runs
            .iter()
            .map(|run| run.as_slice()[at] - prediction.states.as_slice()[at]))
            / DRAW_PART;
        let ratio = prediction.deviations.as_slice()[at] / spread;
        assert!((0.9..1.1).contains(&ratio), "{at}: {ratio}");
    }
}

/// What the bands are for: fits of the same system from other noise differ by no more than they
/// say, and not by far less.
#[test]
fn fits_from_other_noise_differ_as_the_bands_say() {
    let fits: Vec<Fit> = (1..=8).map(fitted_to_noise).collect();
    let (_, record) = oscillator((1.0, 0.0), 0.0, 1);
    let start = Start::At(record.truth(0).unwrap());
    let predictions: Vec<_> = fits
        .iter()
        .map(|f| f.predictor().predict(&record, start))
        .collect();
    let truth = record.truth.as_ref().unwrap();
    let actual = rms(predictions
        .iter()
        .flat_map(|p| p.states.as_slice().iter().zip(truth).map(|(x, t)| x - t)));
    let said = rms(predictions
        .iter()
        .flat_map(|p| p.deviations.as_slice().iter().copied()));
    assert!(
        (1.0 / 1.5..6.0).contains(&(said / actual)),
        "said {said}, actual {actual}"
    );
}

fn rms(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(s, n), v| (s + v * v, n + 1.0));
    (sum / count).sqrt()
}

/// A model trained on one circle warns on another, and not on its own.
#[test]
fn a_prediction_that_leaves_what_training_met_says_so() {
    let fit = fitted();
    let (_, trained) = oscillator((1.0, 0.0), 0.0, 1);
    let (_, other) = oscillator((0.3, -0.4), 0.0, 1);
    let predict = |record: &Record| {
        let start = Start::At(record.truth(0).unwrap());
        fit.predictor().predict(record, start)
    };
    assert!(
        !predict(&trained).extrapolates(),
        "{}",
        predict(&trained).outside
    );
    assert!(predict(&other).extrapolates());
    assert!(predict(&other).outside > 0.9);
}

/// The state that fits the first samples is found, with its uncertainty, and predicts the rest.
#[test]
fn a_warm_up_finds_the_hidden_start() {
    let fit = fitted();
    let (_, record) = oscillator((1.0, 0.0), 0.01, 1);
    let prediction = fit.predictor().predict(&record, Start::WarmUp(400));
    assert_eq!(prediction.from, 400);
    assert_eq!(prediction.states.len(), record.len() - 400);
    let truth = &record.truth.as_ref().unwrap()[800..];
    let error = score::nrmse(prediction.states.as_slice(), truth, 1, 2).unwrap();
    assert!(error < 0.02, "{error}");
    let inside = prediction
        .states
        .as_slice()
        .iter()
        .zip(truth)
        .zip(prediction.deviations.as_slice());
    let inside = inside
        .filter(|((x, t), d)| (*x - *t).abs() < 3.0 * **d)
        .count();
    assert!(inside as f64 > 0.9 * truth.len() as f64, "{inside}");
}

/// Whatever comes after the first samples is predicted, never looked at.
#[test]
fn a_prediction_does_not_look_ahead() {
    let fit = fitted();
    let (_, record) = oscillator((1.0, 0.0), 0.01, 1);
    let mut other = record.clone();
    other.outputs[400..].iter_mut().for_each(|y| *y += 1.0);
    let [a, b] = [&record, &other].map(|r| fit.predictor().predict(r, Start::WarmUp(400)));
    assert_eq!(a.states, b.states);
    assert_eq!(a.deviations, b.deviations);
}

/// A velocity that brakes; its size is said, or not.
fn brake(size: &str) -> Model {
    let text = format!(
        "[time]\nstep = 0.1\n[states]\nq = {{ derivative = \"v\", start = 0 }}\n\
         v = {{ derivative = \"-k*v\", start = 20{size} }}\n[measurements]\nq = \"q\"\n\
         [unknowns]\nk = {{ guess = 1, scale = 0.5, positive = true }}\n[truth]\nk = 0.5\n\
         [simulation]\nsteps = 100\n"
    );
    Model::from_text("brake", &text).unwrap()
}

/// A record may begin anywhere training went, whatever a file says of the rough size of a state; where it says
/// nothing, the prior of a start is the scale that training has shown.
#[test]
fn a_record_may_begin_wherever_training_went() {
    let record = |start: f64, seed: u64| {
        let simulation = Simulation {
            start: vec![(1, start)],
            noise: vec![Some(NoiseLevel::OfRange(0.003))],
            seed,
            ..Simulation::default()
        };
        simulate(&brake(""), &simulation).unwrap()
    };
    let new = record(3.0, 2);
    for size in [
        "",
        ", scale = 0.1",
        ", scale = 0.1, center = 0",
        ", center = 500",
    ] {
        let fit = latens::fit(&brake(size), &[record(20.0, 1)]).unwrap();
        let made = fit.predictor().predict(&new, Start::WarmUp(10));
        let (v, std) = (made.states.row(0)[1], made.deviations.row(0)[1]);
        let truth = new.truth(made.from).unwrap()[1];
        assert!(
            (v - truth).abs() < 3.0 * std && std < 1.0,
            "{size}: {v} ± {std}, true {truth}"
        );
        let open = fit.predictor().open_start(&new, &fit.facts.noise);
        let scales = &fit.facts.scales;
        if size.is_empty() {
            assert_eq!(open.start, [0, 1].map(|i| scales.scale[i].powi(2)));
        }
        let stream = fit.stream_setting();
        assert!(
            stream.noise.start[1].sqrt() > 8.0,
            "{size}: {:?}",
            stream.noise.start
        );
        let saved = Fit::from_files(&fit.to_files().unwrap(), "run").unwrap();
        let again = saved.predictor().predict(&new, Start::WarmUp(10));
        assert_eq!(made.states, again.states);
    }
}
