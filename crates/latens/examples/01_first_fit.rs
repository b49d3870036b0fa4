//! A first fit: an oscillator whose position is measured, and whose velocity nobody saw.
//!
//! `cargo run --release --example 01_first_fit`

use latens::simulate::{Simulation, simulate};
use latens::{Error, Model, fit};

fn main() -> Result<(), Error> {
    // a model file with the known equations, and a network where knowledge ends
    let model = Model::builtin("harmonic-oscillator")?;
    println!("{}", model.text);

    // in place of a measurement: a record from the true equations, which are in the file too
    let simulation = Simulation {
        steps: Some(1000),
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation)?;

    let learned = fit(&model, &[record])?;
    let scores = &learned.facts.records[0];
    for (name, error) in &scores.nrmse {
        let error = error.unwrap_or(f64::INFINITY);
        println!("{name}: a free run errs by {:.1e} of the range", error);
    }
    // the states over time, those that no sensor saw included, with standard deviations
    let track = &learned.tracks[0];
    for (i, state) in learned.model.states.iter().enumerate() {
        let last = track.smoothed.column(i).last().unwrap_or(f64::NAN);
        let std = track.deviations.column(i).last().unwrap_or(f64::NAN);
        println!("{} at the end: {last:.4} ± {std:.1e}", state.name);
    }
    Ok(())
}
