//! Noise and gaps: 1 % of noise, every third sample missing, and a test record that played no part.
//!
//! `cargo run --release --example 03_noise_and_gaps`

use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Door, Error, Job, Model, Role, Silent, Source};

fn main() -> Result<(), Error> {
    let model = Model::builtin("harmonic-oscillator")?;
    let noisy = |seed: u64, start: f64| {
        simulate(
            &model,
            &Simulation {
                steps: Some(800),
                noise: vec![Some(NoiseLevel::OfRange(0.01))],
                start: vec![(0, start)],
                seed,
                ..Simulation::default()
            },
        )
    };
    let mut record = noisy(1, 1.0)?;
    // a sample that was not taken is NaN
    record
        .outputs
        .iter_mut()
        .step_by(3)
        .for_each(|y| *y = f64::NAN);
    let test = noisy(2, 0.7)?;

    let mut job = Job::new(model.clone())?;
    // an ensemble counts how far several fits are apart
    job.settings.ensemble = 2;
    job.add(Role::Train, Source::of_record(record, &model)?);
    job.add(Role::Test, Source::of_record(test, &model)?);
    let outcome = job.run(&mut Silent)?;

    let facts = &outcome.fit.facts;
    let noise = facts.noise.measurement[0].sqrt() / facts.scales.range[0];
    println!("noise found: {:.2} % of the range", 100.0 * noise);
    for record in &facts.records {
        let hidden = record.mean_nrmse_hidden.unwrap_or(f64::NAN);
        println!(
            "{} ({}): hidden states err by {hidden:.1e} of the range",
            record.file, record.role
        );
    }
    for warning in &outcome.warnings {
        println!("to know: {}", warning.at(Door::Library));
    }
    Ok(())
}
