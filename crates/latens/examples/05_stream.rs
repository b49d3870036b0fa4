//! A stream: states from samples as they come, and a model that goes on learning.
//!
//! `cargo run --release --example 05_stream`

use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::stream::{Options, Sample};
use latens::{Error, Model, fit};

fn main() -> Result<(), Error> {
    let model = Model::builtin("harmonic-oscillator")?;
    let noisy = |seed: u64| Simulation {
        steps: Some(600),
        noise: vec![Some(NoiseLevel::OfRange(0.005))],
        seed,
        ..Simulation::default()
    };
    let learned = fit(&model, &[simulate(&model, &noisy(1))?])?;

    let later = simulate(&model, &noisy(2))?;
    let options = Options {
        learn: true,
        ..Options::default()
    };
    let mut stream = learned.stream(options)?;
    for k in 0..later.len() {
        let outcome = stream.step(Sample {
            time: Some(later.time[k]),
            input: later.input(k),
            output: later.output(k),
        })?;
        if k % 150 == 0 {
            println!(
                "t = {:.2}: position {:.3}, velocity {:.3} ± {:.3}, consistency {:.2}",
                later.time[k],
                stream.states()[0],
                stream.states()[1],
                stream.deviation(1),
                outcome.consistency
            );
        }
    }
    // a snapshot is a fit as any other, and a stream goes on from it bit for bit
    let snapshot = learned.adapted(stream.state());
    println!(
        "{} samples taken",
        snapshot.facts.stream.map_or(0, |s| s.progress.samples)
    );
    Ok(())
}
