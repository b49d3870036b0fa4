//! Bands of hidden states under noise.

use crate::fixture::{defaults, fit};
use latens::Silent;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Settings, systems};

/// The band x̂ ± 1.96 σ of a state that nobody measured must hold the truth as often as it says:
/// over several noises 0.88 to 1 of all samples, for scales 0.95, and not by being far too wide. It
/// has to count the uncertainty of θ: with θ taken for exact, the hidden velocity seems known far
/// better than it is, and the band holds the truth at 0.34 of the samples.
#[test]
fn bands_of_the_hidden_state_hold_the_truth() {
    let text = systems::find("harmonic-oscillator").unwrap();
    let model = Model::from_text("harmonic-oscillator", text).unwrap();
    let (mut inside, mut samples) = (0, 0);
    let (mut said, mut actual) = (0.0, 0.0);
    let mut coverages = Vec::new();
    for seed in 1..=6 {
        let simulation = Simulation {
            steps: Some(2000),
            noise: vec![Some(NoiseLevel::OfRange(0.01))],
            seed,
            ..Simulation::default()
        };
        let record = simulate(&model, &simulation).unwrap();
        let truth = record.truth.clone().unwrap();
        let fit = fit(
            &model,
            std::slice::from_ref(&record),
            &Settings {
                // one structure: bands of several together are wider than the draws of one
                simplify: false,
                ..defaults("batch")
            },
            &mut Silent,
        )
        .unwrap();
        let noise = fit.facts.noise.measurement[0].sqrt() / fit.facts.scales.range[0];
        assert!((0.0085..0.0115).contains(&noise), "R_y is found: {noise}");
        let track = &fit.tracks[0];
        // drawn trajectories scatter as widely as the band
        let drawn = fit.predictor().draws(&record, &track.smoothed);
        let square = |k: usize| -> f64 {
            let squares = drawn
                .iter()
                .map(|d| (d.as_slice()[k] - track.smoothed.as_slice()[k]).powi(2));
            squares.sum::<f64>() / drawn.len() as f64
        };
        let count = track.smoothed.as_slice().len();
        let parts = (0..count).map(|k| square(k) / track.deviations.as_slice()[k].powi(2));
        let width = parts.sum::<f64>() / count as f64;
        assert!((0.8..1.25).contains(&width), "{width}");
        let hidden =
            |values: &[f64]| -> Vec<f64> { values.iter().skip(1).step_by(2).copied().collect() };
        let (states, deviations) = (
            hidden(track.smoothed.as_slice()),
            hidden(track.deviations.as_slice()),
        );
        said += deviations.iter().map(|d| d * d).sum::<f64>();
        let off = hidden(&truth);
        let off = off.iter().zip(&states).map(|(v, x)| (v - x) * (v - x));
        actual += off.sum::<f64>();
        let held = hidden(&truth)
            .iter()
            .zip(states.iter().zip(&deviations))
            .filter(|(v, (x, d))| (*v - *x).abs() < 1.96 * *d)
            .count();
        coverages.push(held as f64 / states.len() as f64);
        inside += held;
        samples += states.len();
    }
    let coverage = inside as f64 / samples as f64;
    assert!(
        (0.88..=1.0).contains(&coverage),
        "{coverage}: {coverages:?}"
    );
    let ratio = (said / actual).sqrt();
    assert!((0.7..3.0).contains(&ratio), "{ratio}");
}
