//! What whole-record Newton reaches: the record it was given, records it never saw, noise.
//!
//! `cargo run --release -p latens-lab --example whole_record -- [options] [system …]`
//!
//! - `--seeds 5`            seeds 1 to n
//! - `--noise 0.01`         measurement noise, as a fraction of each channel's range
//! - `--records 5`          train on five trajectories instead of the one
//! - `--arguments true`     networks see only what the true equation depends on
//! - `--missing 0.3`        samples missing at random, as a fraction: their cells are empty
//! - `--rows true`          whole rows are missing instead
//! - `--slow 10`            the first channel is measured at every tenth sample only
//! - `--solver batch`       any solver
//!
//! One line a run. Everything is mean nRMSE over the states: the free run over the first training
//! record from the estimated start, and each held-out experiment (from its true start; for the
//! cart-pole in closed loop; for Hodgkin–Huxley from the state found in the first 100 samples).

use std::time::Instant;

use latens::filter::Smoother;
use latens::fit::Fit;
use latens::fit::Start;
use latens::fit::learn::{Data, learn};
use latens::numerics::objective::Noise;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::record::Record;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::Equipment;
use latens::{Model, Settings, Source, Trajectory, solve, systems};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Starts of further training records, and text that replaces text in the model file for each.
struct Further {
    system: &'static str,
    starts: [&'static [f64]; 4],
    /// The network's call in the file, with all arguments and with the true ones.
    arguments: [(&'static str, &'static str); 2],
}

const FURTHER: [Further; 5] = [
    Further {
        system: "harmonic-oscillator",
        starts: [&[0.5, 0.8], &[-0.6, 0.3], &[0.1, -0.5], &[-0.9, -0.7]],
        arguments: [("acceleration(z, v)", "acceleration(z)"), ("", "")],
    },
    Further {
        system: "cart-pole",
        starts: [
            &[0.3, 0.1, -0.25, 0.0],
            &[-0.4, 0.0, 0.15, 0.3],
            &[0.2, -0.5, 0.05, -0.2],
            &[0.5, 0.4, -0.1, 0.1],
        ],
        arguments: [
            (
                "acceleration(z, z_dot, phi, phi_dot, u).cart",
                "acceleration(phi, phi_dot, u).cart",
            ),
            (
                "acceleration(z, z_dot, phi, phi_dot, u).pole",
                "acceleration(phi, phi_dot, u).pole",
            ),
        ],
    },
    Further {
        system: "yeast-glycolysis",
        starts: [
            &[1.6, 0.3, 0.07, 0.16, 0.10, 2.0, 0.10],
            &[0.8, 0.15, 0.04, 0.09, 0.06, 3.1, 0.06],
            &[1.3, 0.25, 0.06, 0.20, 0.09, 3.3, 0.05],
            &[0.9, 0.40, 0.03, 0.13, 0.11, 1.7, 0.12],
        ],
        arguments: [
            (
                "production(x1, x2, x3, x4, x5, x6, x7)",
                "production(x3, x4, x5, x6, x7)",
            ),
            ("", ""),
        ],
    },
    Further {
        system: "hodgkin-huxley",
        starts: [
            &[-70.0, 0.5, 0.2, 0.3],
            &[-30.0, 0.35, 0.6, 0.7],
            &[20.0, 0.6, 0.8, 0.5],
            &[-60.0, 0.7, 0.4, 0.15],
        ],
        arguments: [("gate(V, n, m, h)", "gate(V, h)"), ("", "")],
    },
    Further {
        system: "retinal-circulation",
        starts: [
            &[38.0, 34.0, 27.0, 16.8],
            &[31.0, 29.0, 25.5, 15.8],
            &[42.0, 37.0, 28.0, 17.3],
            &[46.0, 40.0, 29.5, 17.8],
        ],
        arguments: [("venous(P2, P4, P5)", "venous(P4, P5)"), ("", "")],
    },
];

/// What drives each further record: a few sines on the cart's force, other currents.
fn drive(system: &str, text: &str, k: usize) -> String {
    match system {
        "cart-pole" => {
            let sines: Vec<String> = (0..4)
                .map(|i| {
                    let (w, phase) = (
                        2.0 + 3.1 * i as f64 + 0.7 * k as f64,
                        1.3 * (k * (i + 1)) as f64,
                    );
                    format!("1.5*sin({w}*t + {phase})")
                })
                .collect();
            text.replace(
                "[simulation.lqr]",
                &format!(
                    "[simulation.inputs]\nu = \"{}\"\n[simulation.lqr]",
                    sines.join(" + ")
                ),
            )
        }
        "hodgkin-huxley" => {
            text.replace("I = 10\n", &format!("I = {}\n", [5.0, 7.5, 13.0, 16.0][k]))
        }
        _ => text.into(),
    }
}

struct Options {
    seeds: u64,
    noise: f64,
    records: usize,
    narrow: bool,
    missing: f64,
    rows: bool,
    slow: usize,
    solver: String,
    passes: Option<usize>,
    steps: Option<usize>,
    verbose: bool,
}

fn main() {
    let mut options = Options {
        seeds: 5,
        noise: 0.0,
        records: 1,
        narrow: false,
        missing: 0.0,
        rows: false,
        slow: 1,
        solver: "batch".into(),
        passes: None,
        steps: None,
        verbose: false,
    };
    let (mut names, mut only) = (Vec::new(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .unwrap_or_else(|| panic!("{argument} needs a value"))
        };
        let number = |v: String| v.parse::<f64>().expect("a number");
        match argument.as_str() {
            "--seeds" => options.seeds = number(value()) as u64,
            "--seed" => only = Some(number(value()) as u64),
            "--noise" => options.noise = number(value()),
            "--records" => options.records = number(value()) as usize,
            "--arguments" => options.narrow = value() == "true",
            "--missing" => options.missing = number(value()),
            "--rows" => options.rows = value() == "true",
            "--slow" => options.slow = number(value()) as usize,
            "--passes" => options.passes = Some(number(value()) as usize),
            "--steps" => options.steps = Some(number(value()) as usize),
            "--verbose" => options.verbose = true,
            "--solver" => options.solver = value(),
            name => names.push(name.to_string()),
        }
    }
    let systems: Vec<&Further> = FURTHER
        .iter()
        .filter(|f| names.is_empty() || names.iter().any(|n| n == f.system))
        .collect();
    for further in systems {
        let seeds = only.map_or(1..=options.seeds, |s| s..=s);
        for seed in seeds {
            run(further, &options, seed);
        }
    }
}

fn model_of(further: &Further, text: &str, narrow: bool) -> Model {
    let mut text = text.to_string();
    if narrow {
        for (all, fewer) in further.arguments.iter().filter(|a| !a.0.is_empty()) {
            assert!(text.contains(all), "{all}");
            text = text.replace(all, fewer);
        }
    }
    Model::from_text(further.system, &text).expect("the model compiles")
}

fn run(further: &Further, options: &Options, seed: u64) {
    let text = systems::find(further.system).expect("an embedded system");
    let model = model_of(further, text, options.narrow);
    let noise = (options.noise > 0.0).then_some(NoiseLevel::OfRange(options.noise));
    let records: Vec<Record> = (0..options.records)
        .map(|k| {
            let (driven, start) = match k.checked_sub(1) {
                None => (model.clone(), vec![]),
                Some(k) => (
                    model_of(further, &drive(further.system, text, k), options.narrow),
                    further.starts[k].iter().copied().enumerate().collect(),
                ),
            };
            let simulation = Simulation {
                start,
                steps: options.steps,
                noise: vec![noise; model.measurements.len()],
                seed: 1000 * seed + k as u64,
                ..Simulation::default()
            };
            let record = simulate(&driven, &simulation).expect("the records simulate");
            gappy(record, options, 1000 * seed + k as u64)
        })
        .collect();
    let mut settings = Settings {
        seed,
        ..solve::find(&options.solver).expect("a solver").settings()
    };
    settings.passes = options.passes.unwrap_or(settings.passes);
    let started = Instant::now();
    struct Loud(Instant, bool);
    impl solve::Observer for Loud {
        fn pass(&mut self, report: &solve::PassReport) -> bool {
            if self.1 {
                eprintln!("  {:.1} s {report:?}", self.0.elapsed().as_secs_f64());
            }
            true
        }
    }
    let sources = records.iter().cloned();
    let sources = sources.map(|r| Source::of_record(r, &model).expect("names differ"));
    let sources: Vec<Source> = sources.collect();
    let data = Data {
        train: &sources,
        validate: &[],
    };
    let mut loud = Loud(started, options.verbose);
    let fitted = learn(&model, data, &settings, Equipment::default(), &mut loud);
    let seconds = started.elapsed().as_secs_f64();
    match fitted {
        Err(error) => println!("{} seed {seed}: {error}", further.system),
        Ok(fit) => report(further, options, seed, &fit, &records, seconds),
    }
}

/// The record with samples missing at random and its first channel at a lower rate.
fn gappy(mut record: Record, options: &Options, seed: u64) -> Record {
    let mut rng = Pcg64::seed_from_u64(seed);
    let (n, c) = (record.len(), record.d_y);
    for k in (0..n).filter(|k| !k.is_multiple_of(options.slow)) {
        record.outputs[k * c] = f64::NAN;
    }
    let kept: Vec<usize> = (0..n)
        .filter(|_| rng.random::<f64>() >= options.missing)
        .collect();
    if !options.rows {
        let missing = (0..n).filter(|k| kept.binary_search(k).is_err());
        missing.for_each(|k| record.outputs[k * c..(k + 1) * c].fill(f64::NAN));
        return record;
    }
    let kept_rows = |values: &[f64], width: usize| -> Vec<f64> {
        let rows = kept.iter().map(|k| &values[k * width..(k + 1) * width]);
        rows.flatten().copied().collect()
    };
    Record {
        time: kept_rows(&record.time, 1),
        inputs: kept_rows(&record.inputs, record.d_u),
        outputs: kept_rows(&record.outputs, c),
        truth: record.truth.as_ref().map(|t| kept_rows(t, record.d_x)),
        ..record
    }
}

fn report(
    further: &Further,
    options: &Options,
    seed: u64,
    fit: &Fit,
    records: &[Record],
    seconds: f64,
) {
    let model = &fit.model;
    let n = model.states.len();
    let mean = |states: &[f64], truth: &[f64]| -> f64 {
        let errors: Vec<f64> = (0..n)
            .filter_map(|i| score::nrmse(states, truth, i, n))
            .collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    };
    let (mut hidden, mut inside, mut count) = (0.0, 0.0, 0.0);
    let hidden_states = model.hidden();
    for (record, e) in records.iter().zip(&fit.tracks) {
        let truth = record.truth.as_ref().expect("simulated");
        for &i in &hidden_states {
            hidden += score::nrmse(e.smoothed.as_slice(), truth, i, n).unwrap_or(f64::NAN);
            for (at, t) in truth.iter().enumerate().skip(i).step_by(n) {
                let off = (e.smoothed.as_slice()[at] - t).abs();
                inside += f64::from(off < 1.96 * e.deviations.as_slice()[at]);
                count += 1.0;
            }
        }
    }
    hidden /= (hidden_states.len() * records.len()) as f64;
    let floor = floor(fit, records);
    let rms = (fit.theta.iter().map(|t| t * t).sum::<f64>() / fit.theta.len() as f64).sqrt();
    let held_out = held_out(further, options, fit, &mean);
    println!(
        "{} seed {seed}: free run {:.1e}, smoothed hidden {hidden:.1e} (floor {floor:.1e}, 95 % bands hold {:.2}), held out {}, weights {rms:.2}, {seconds:.1} s",
        further.system,
        fit.facts.records[0].mean_nrmse.unwrap_or(f64::NAN),
        inside / count,
        held_out
            .iter()
            .map(|(e, inside, outside)| format!(
                "{e:.1e} ({inside:.2} in bands, {outside:.2} outside)"
            ))
            .collect::<Vec<_>>()
            .join(" "),
    );
}

/// Mean nRMSE of the hidden states in a smoother that knows the true equations and starts from the
/// truth: what the noise alone costs.
fn floor(fit: &Fit, records: &[Record]) -> f64 {
    let (model, n) = (&fit.model, fit.model.states.len());
    let truth = model.truth.as_ref().expect("the systems have a truth");
    let stepper = Stepper::new(model, &truth.system, fit.facts.sample_time);
    let hidden = model.hidden();
    let mut sum = 0.0;
    for record in records {
        let mut noise = fit.facts.noise.clone();
        noise.begin(record, truth.system.direct(), &[]);
        let known = record.truth.as_ref().expect("simulated");
        // from loose to exact physics, whatever the fit's own: straight to the exact minimum the
        // curvature is too strong
        let mut states = Trajectory::new(known.clone(), n);
        for decade in -1..=7 {
            let level = |scale: &f64| (scale * 10f64.powi(-decade)).powi(2) * 1e-4;
            let noise = Noise {
                process: fit.facts.scales.scale.iter().map(level).collect(),
                ..noise.clone()
            };
            let smoother = Smoother {
                stepper: &stepper,
                record,
                theta: &[],
                noise: &noise,
            };
            states = smoother.minimise(states, 20).0;
        }
        let errors = hidden
            .iter()
            .filter_map(|&i| score::nrmse(states.as_slice(), known, i, n));
        sum += errors.sum::<f64>() / hidden.len() as f64;
    }
    sum / records.len() as f64
}

fn held_out(
    further: &Further,
    options: &Options,
    fit: &Fit,
    mean: &dyn Fn(&[f64], &[f64]) -> f64,
) -> Vec<(f64, f64, f64)> {
    let model = &fit.model;
    let n = model.states.len();
    let count = model.truth.as_ref().map_or(0, |t| t.held_out.len());
    let scores = |i: usize| -> (f64, f64, f64) {
        let experiment = Simulation {
            held_out: Some(i),
            steps: options.steps,
            ..Simulation::default()
        };
        let record = simulate(model, &experiment).expect("held-out experiments simulate");
        let truth = record.truth.as_ref().expect("simulated");
        let predicted = |start: Start| {
            let p = fit.predictor().predict(&record, start);
            let truth = &truth[p.from * n..];
            let inside = p
                .states
                .as_slice()
                .iter()
                .zip(truth)
                .zip(p.deviations.as_slice());
            let inside = inside
                .filter(|((x, t), d)| (*x - *t).abs() <= 1.96 * **d)
                .count();
            (
                mean(p.states.as_slice(), truth),
                inside as f64 / truth.len() as f64,
                p.outside,
            )
        };
        match further.system {
            "cart-pole" => {
                let learned = Simulation {
                    theta: Some(fit.theta.clone()),
                    ..experiment
                };
                let error = match simulate(model, &learned) {
                    Ok(run) => mean(run.truth.as_ref().expect("states"), truth),
                    Err(_) => f64::INFINITY,
                };
                // bands and region of the replayed input
                (
                    error,
                    predicted(Start::At(&truth[..n])).1,
                    predicted(Start::At(&truth[..n])).2,
                )
            }
            "hodgkin-huxley" => predicted(Start::WarmUp(100)),
            _ => predicted(Start::At(&truth[..n])),
        }
    };
    (0..count).map(scores).collect()
}
