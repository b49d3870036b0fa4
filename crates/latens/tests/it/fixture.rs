//! What tests of fits share: settings by solver, fits of plain records, and one fit that every
//! test may read.

use std::sync::OnceLock;

use latens::fit::learn::{Data, learn};
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::{self, Equipment, Observer};
use latens::{Error, Fit, Model, Record, Settings, Silent, Source, systems};

/// A solver's own settings.
pub fn defaults(solver: &str) -> Settings {
    solve::find(solver).unwrap().settings()
}

/// Records that are in no file.
pub fn sources(model: &Model, records: &[Record]) -> Vec<Source> {
    let copies = records.iter().cloned();
    copies
        .map(|record| Source::of_record(record, model).unwrap())
        .collect()
}

/// A fit to records, with none to validate.
pub fn fit(
    model: &Model,
    records: &[Record],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let train = sources(model, records);
    let data = Data {
        train: &train,
        validate: &[],
    };
    learn(model, data, settings, Equipment::default(), observer)
}

/// The oscillator with a small network, and a noisy record of it.
pub fn oscillator(start: (f64, f64), noise: f64, seed: u64) -> (Model, Record) {
    let text = systems::find("harmonic-oscillator").unwrap();
    let model = Model::from_text("oscillator", &text.replace("20 tanh", "6 tanh")).unwrap();
    let simulation = Simulation {
        steps: Some(2000),
        start: vec![(0, start.0), (1, start.1)],
        noise: vec![Some(NoiseLevel::OfRange(noise))],
        seed,
        ..Simulation::default()
    };
    let record = simulate(&model, &simulation).unwrap();
    (model, record)
}

/// Batch on a record of the oscillator with noise of a seed.
pub fn fitted_to_noise(seed: u64) -> Fit {
    let (model, record) = oscillator((1.0, 0.0), 0.01, seed);
    fit(&model, &[record], &defaults("batch"), &mut Silent).unwrap()
}

/// The fit to noise of seed 1, for every test that only needs a good fit.
pub fn fitted() -> &'static Fit {
    static FIT: OnceLock<Fit> = OnceLock::new();
    FIT.get_or_init(|| fitted_to_noise(1))
}
