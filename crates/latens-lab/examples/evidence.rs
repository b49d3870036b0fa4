//! Is it the method or our code? The rivals where they must work, in numbers.
//!
//! `cargo run --release -p latens-lab --example evidence -- [--seeds 3] [--minutes 2] [case …]`
//!
//! - `node`, `node-lstm`, `spinode`: the oscillator with both states measured, the recipe of each.
//! - `rm`: the oscillator of its authors' code: many short records, the position alone measured, with
//!   noise, the force unknown; and records that it never saw.
//! - `pr-ssm`: van der Pol's oscillator with both states measured, against the best linear model of the
//!   same data. (Of the harmonic oscillator a linear model is the truth.)
//! - `partial`: all of them on the model file's own measurements, to compare; `node-partial` one.

use std::time::{Duration, Instant};

use latens::model::small::solve;
use latens::numerics::score;
use latens::record::Record;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens::solve::{Observer, Progress};
use latens::{Model, Trajectory, systems};
use latens_lab::rivals::{Outcome, Rival, Settings, fit, pr_ssm};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const VAN_DER_POL: &str = "\
name = \"Van der Pol\"
[time]
step = 0.01
[states.x]
derivative = \"v\"
start = 1
[states.v]
derivative = \"force(x, v)\"
start = 0
[networks.force]
layers = [\"20 tanh\"]
[measurements]
x = \"x\"
[truth]
v = \"(1 - x^2)*v - x\"
[simulation]
steps = 3000
";

fn main() {
    let (mut seeds, mut minutes, mut cases) = (3, 2.0, Vec::new());
    let (mut system, mut window, mut rate) = ("harmonic-oscillator".to_string(), None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .unwrap_or_else(|| panic!("{argument} needs a value"))
        };
        let number = |v: String| v.parse::<f64>().expect("a number");
        match argument.as_str() {
            "--seeds" => seeds = number(value()) as u64,
            "--minutes" => minutes = number(value()),
            "--system" => system = value(),
            "--window" => window = Some(number(value()) as usize),
            "--rate" => rate = Some(number(value())),
            name => cases.push(name.to_string()),
        }
    }
    let text = systems::find(&system).expect("a built-in system");
    let settings = |method| {
        let defaults = Settings {
            ..Settings::new(method)
        };
        Settings {
            window: window.unwrap_or(defaults.window),
            rate: rate.unwrap_or(defaults.rate),
            ..defaults
        }
    };
    let wanted = |name: &str| cases.is_empty() || cases.iter().any(|c| c == name);
    for seed in 1..=seeds {
        for method in Rival::ALL {
            let settings = Settings {
                seed,
                ..settings(method)
            };
            if wanted(method.name()) && method != Rival::Rm {
                let model = match method {
                    Rival::PrSsm => whole(VAN_DER_POL),
                    _ => whole(text),
                };
                let record = simulate(&model, &Simulation::default()).expect("it simulates");
                if method == Rival::PrSsm {
                    println!("linear model, all states measured: {:.1e}", linear(&record));
                }
                report("all states measured", &model, &[record], &settings, minutes);
            }
            if wanted("rm") && method == Rival::Rm {
                let (model, records, others) = short(text, seed);
                let outcome = report("short noisy records", &model, &records, &settings, minutes);
                let runs: Vec<Trajectory> =
                    others.iter().map(|r| outcome.predict(r, None)).collect();
                println!(
                    "  on 20 records that it never saw: RMSE {:.2e}",
                    rmse(&runs, &others)
                );
            }
            if wanted("partial") || wanted(&format!("{}-partial", method.name())) {
                let model = Model::from_text(&system, text).expect("it compiles");
                let record = simulate(&model, &Simulation::default()).expect("it simulates");
                report(
                    "as in the model file",
                    &model,
                    &[record],
                    &settings,
                    minutes,
                );
            }
        }
    }
}

/// The model with every state measured.
fn whole(text: &str) -> Model {
    let model = Model::from_text("whole", text).expect("it compiles");
    let names = model
        .states
        .iter()
        .map(|s| format!("{0} = \"{0}\"\n", s.name));
    let section: String = names.collect();
    let from = text.find("[measurements]").expect("a section");
    let rest = text[from + 1..]
        .find("\n[")
        .map_or(text.len(), |at| from + 1 + at);
    let text = format!(
        "{}[measurements]\n{section}{}",
        &text[..from],
        &text[rest..]
    );
    Model::from_text("whole", &text).expect("it compiles")
}

/// The set-up of the authors' own code: records of 3 s with 50 samples, starts at random in [−1, 1]²,
/// noise of 0.01 on the position; 72 to learn from, 20 others.
fn short(text: &str, seed: u64) -> (Model, Vec<Record>, Vec<Record>) {
    let model = Model::from_text("short", &text.replace("step = 1e-3", "step = 0.06"));
    let model = model.expect("it compiles");
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut record = |k: u64| {
        let mut start = || rng.random_range(-1.0..1.0);
        let simulation = Simulation {
            steps: Some(50),
            start: vec![(0, start()), (1, start())],
            noise: vec![Some(NoiseLevel::Absolute(0.01))],
            seed: 1000 * seed + k,
            ..Simulation::default()
        };
        simulate(&model, &simulation).expect("it simulates")
    };
    let train = (0..72).map(&mut record).collect();
    let others = (72..92).map(&mut record).collect();
    (model, train, others)
}

/// Root mean square error over all states of all runs.
fn rmse(runs: &[Trajectory], records: &[Record]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (run, record) in runs.iter().zip(records) {
        let truth = record.truth.as_ref().expect("simulated");
        sum += run
            .as_slice()
            .iter()
            .zip(truth)
            .map(|(a, b)| (a - b).powi(2))
            .sum::<f64>();
        count += truth.len() as f64;
    }
    (sum / count).sqrt()
}

/// Ends training at a moment.
struct Until(Instant);

impl Observer for Until {
    fn progress(&mut self, _: &Progress) -> bool {
        Instant::now() < self.0
    }
}

fn report(
    title: &str,
    model: &Model,
    records: &[Record],
    settings: &Settings,
    minutes: f64,
) -> Outcome {
    let started = Instant::now();
    let mut until = Until(started + Duration::from_secs_f64(60.0 * minutes));
    let outcome = fit(model, records, settings, &mut until).expect("it trains");
    let n = model.states.len();
    let mean = |run: &Trajectory, record: &Record| -> Vec<f64> {
        let truth = record.truth.as_ref().expect("simulated");
        (0..n)
            .map(|i| score::nrmse(run.as_slice(), truth, i, n).unwrap_or(f64::NAN))
            .collect()
    };
    let mut errors = vec![0.0; n];
    for (run, record) in outcome.runs.iter().zip(records) {
        for (sum, e) in errors.iter_mut().zip(mean(run, record)) {
            *sum += e / records.len() as f64;
        }
    }
    let last = outcome.reports.last().expect("one look at the least");
    print!(
        "{} seed {}, {title}: nRMSE {} (RMSE {:.2e}), after {} iterations, {:.0} s",
        settings.method.name(),
        settings.seed,
        errors
            .iter()
            .map(|e| format!("{e:.1e}"))
            .collect::<Vec<_>>()
            .join(" "),
        rmse(&outcome.runs, records),
        last.pass,
        started.elapsed().as_secs_f64()
    );
    if settings.method == Rival::PrSsm {
        let aligned = pr_ssm::align(&outcome.runs[0], &records[0]);
        let aligned = aligned.iter().flatten().map(|e| format!("{e:.1e}"));
        print!(", aligned {}", aligned.collect::<Vec<_>>().join(" "));
    }
    let start: Vec<String> = outcome.runs[0]
        .row(0)
        .iter()
        .map(|x| format!("{x:.3}"))
        .collect();
    println!(", start {}", start.join(" "));
    outcome
}

/// Mean nRMSE of the free run of x_{k+1} = A x_k + b, fitted by least squares one step ahead.
fn linear(record: &Record) -> f64 {
    let (n, w) = (record.d_x, record.d_x + 1);
    let (mut normal, mut right) = (vec![0.0; w * w], vec![0.0; w * n]);
    for k in 1..record.len() {
        let row: Vec<f64> = record.output(k - 1).iter().copied().chain([1.0]).collect();
        for a in 0..w {
            for b in 0..w {
                normal[a * w + b] += row[a] * row[b];
            }
            for (i, y) in record.output(k).iter().enumerate() {
                right[a * n + i] += row[a] * y;
            }
        }
    }
    solve(&mut normal, &mut right, w).expect("the data move");
    let mut run = record.output(0).to_vec();
    for k in 1..record.len() {
        let before = run[(k - 1) * n..].to_vec();
        for i in 0..n {
            let terms = before.iter().enumerate().map(|(a, x)| x * right[a * n + i]);
            run.push(terms.sum::<f64>() + right[n * n + i]);
        }
    }
    let truth = record.truth.as_ref().expect("simulated");
    let errors = (0..n).filter_map(|i| score::nrmse(&run, truth, i, n));
    errors.sum::<f64>() / n as f64
}
