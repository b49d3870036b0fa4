//! Intervals of profiles beside a long run of a sampler on the same posterior.

use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Model, Silent, fit, profile};
use latens_lab::sampler::{Options, sample};

/// A spring with two unknown constants, of which one enters by its logarithm: the ends of the profile's
/// intervals are those of the samples within a tenth of their width, and within what the sampler is itself unsure of.
#[test]
fn profiles_agree_with_a_sampler() {
    let text = "[time]\nstep = 0.1\n[states.z]\nderivative = \"v\"\nstart = 1\n[states.v]\n\
                derivative = \"-k*z - d*v\"\nstart = 0\n[measurements]\nz = \"z\"\n[unknowns]\n\
                k = { guess = 2, scale = 1, positive = true }\nd = { guess = 0.1, scale = 0.2 }\n\
                [truth]\nk = 3\nd = 0.2\n[simulation]\nsteps = 80\n";
    let model = Model::from_text("spring", text).unwrap();
    let simulation = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.05))],
        seed: 3,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    let fit = fit(&model, &[record]).unwrap();
    let profiles = profile(&fit, &[], &mut Silent).unwrap();
    let options = Options {
        chains: 4,
        steps: 20_000,
        seed: 1,
    };
    let sampled = sample(&fit, &options).unwrap();
    for (profiled, chains) in profiles.constants.iter().zip(&sampled) {
        let width = chains.interval.1 - chains.interval.0;
        assert!(chains.r_hat < 1.05, "{chains:?}");
        for (end, sampled) in [
            (profiled.from, chains.interval.0),
            (profiled.to, chains.interval.1),
        ] {
            let off = (end.unwrap() - sampled).abs();
            assert!(off < 0.1 * width + chains.error, "{profiled:?} {chains:?}");
        }
    }
}
