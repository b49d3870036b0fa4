//! Predict a new record, and adapt a constant that has changed since the fit.
//!
//! `cargo run --release --example 04_predict_and_adapt`

use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::{Error, Model, PredictOptions, Source, fit};

/// A cart on a spring, with friction; `friction` is what the day decides.
fn cart(friction: f64) -> Result<Model, Error> {
    let text = format!(
        r#"
name = "Cart"
[time]
step = 0.02
[inputs]
force = {{}}
[states.q]
derivative = "v"
start = 0
[states.v]
derivative = "force - stiffness*q - friction*v"
start = 0
[unknowns]
stiffness = {{ guess = 3, scale = 1, positive = true }}
friction = {{ guess = 0.5, scale = 0.3, positive = true }}
[measurements]
q = "q"
[truth]
stiffness = 4
friction = {friction}
[simulation]
steps = 800
inputs = {{ force = "sin(t) + sin(2.7*t)" }}
"#
    );
    Ok(Model::from_text("cart.toml", &text)?)
}

fn main() -> Result<(), Error> {
    let noisy = Simulation {
        noise: vec![Some(NoiseLevel::OfRange(0.005))],
        ..Simulation::default()
    };
    let monday = cart(0.4)?;
    let learned = fit(&monday, &[simulate(&monday, &noisy)?])?;
    for constant in learned.constants() {
        println!(
            "{} = {:.4} ± {:.4}",
            constant.name, constant.value, constant.std
        );
    }
    // on Friday the friction is another
    let friday = cart(0.7)?;
    let record = Source::of_record(simulate(&friday, &noisy)?, &friday)?;
    let error = |options: &PredictOptions| -> Result<f64, Error> {
        let predicted = learned.predict(&record, options)?;
        for change in &predicted.facts.adapted {
            println!(
                "{}: {:.3} now {:.3} ± {:.3}",
                change.name, change.before, change.after, change.after_std
            );
        }
        Ok(predicted.facts.record.nrmse["q"].unwrap_or(f64::NAN))
    };
    let as_it_was = PredictOptions {
        warm_up: Some(300),
        ..PredictOptions::default()
    };
    let adapted = PredictOptions {
        adapt: vec!["friction".into()],
        adapt_prior: 0.5,
        ..as_it_was.clone()
    };
    println!(
        "as fitted, a free run errs by {:.2} % of the range",
        100.0 * error(&as_it_was)?
    );
    println!(
        "adapted on 300 samples, by {:.2} %",
        100.0 * error(&adapted)?
    );
    Ok(())
}
