//! Whether the experiment that `latens design` proposes is better than one taken at random.
//!
//! `cargo run --release -p latens-design --example study -- [--seed 1] [--random 10] [--candidates 32] [system …]`
//!
//! A system is learned from its own record. A second record is taken from the true equations: that which the design
//! proposes, then so many random ones of the same space. After each the model is learned again from both
//! records; the errors are those of the model file's held-out experiment and of further starts of the space, as means over
//! the states of the error of a free run over the range (for the cart-pole in closed loop).

use std::time::Instant;

use latens::fit::Start;
use latens::model::Model;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::simulate::{Simulation, simulate};
use latens::{Error, Fit, Job, Record, Role, Silent, Source, systems};
use latens_design::plan::{Family, Feedback, Setup, Space};
use latens_design::{Options, Unwatched, design};

struct Case {
    system: &'static str,
    start: &'static [(&'static str, [f64; 2])],
    inputs: &'static [(&'static str, Family)],
}

const CASES: [Case; 2] = [
    Case {
        system: "yeast-glycolysis",
        start: &[
            ("x1", [0.8, 1.6]),
            ("x2", [0.15, 0.4]),
            ("x3", [0.03, 0.07]),
            ("x4", [0.09, 0.2]),
            ("x5", [0.06, 0.11]),
            ("x6", [1.7, 3.3]),
            ("x7", [0.05, 0.12]),
        ],
        inputs: &[],
    },
    Case {
        system: "cart-pole",
        start: &[
            ("z", [-0.5, 0.5]),
            ("z_dot", [-0.5, 0.5]),
            ("phi", [-0.3, 0.3]),
            ("phi_dot", [-0.3, 0.3]),
        ],
        inputs: &[
            ("u", Family::Sine([-3.0, 3.0])),
            ("u", Family::Step([-3.0, 3.0])),
        ],
    },
];

struct Asked {
    seed: u64,
    random: usize,
    candidates: usize,
}

fn main() {
    let mut asked = Asked {
        seed: 1,
        random: 10,
        candidates: 32,
    };
    let mut names = vec![];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|v| v.parse::<u64>().ok());
            value.unwrap_or_else(|| panic!("{argument} needs a whole number"))
        };
        match argument.as_str() {
            "--seed" => asked.seed = number(),
            "--random" => asked.random = number() as usize,
            "--candidates" => asked.candidates = number() as usize,
            _ => names.push(argument),
        }
    }
    let wanted = |c: &&Case| names.is_empty() || names.iter().any(|n| n == c.system);
    for case in CASES.iter().filter(wanted) {
        if let Err(error) = study(case, &asked) {
            println!("{}: {error}", case.system);
        }
    }
}

fn study(case: &Case, asked: &Asked) -> Result<(), Error> {
    let text = systems::find(case.system).expect("an embedded system");
    let model = Model::from_text(case.system, text)?;
    let first = simulate(&model, &Simulation::default())?;
    let started = Instant::now();
    let fit = learned(&model, &[&first], asked.seed)?;
    let space = |count: usize, seed: u64| Space {
        start: case
            .start
            .iter()
            .map(|(n, r)| ((*n).to_owned(), *r))
            .collect(),
        inputs: case
            .inputs
            .iter()
            .map(|(n, f)| ((*n).to_owned(), f.clone()))
            .collect(),
        feedback: regulator(&model),
        count,
        seed,
        ..Space::default()
    };
    let feedback = Feedback::new(&model, &regulator(&model))?;
    let further = space(8, 77).setups(&fit)?;
    let held_out: Vec<Record> = further
        .iter()
        .map(|s| taken(&model, s, &feedback))
        .collect();
    let say = |title: &str, fit: &Fit| {
        let held_out_error = held_out_error(&model, fit);
        let others: Vec<f64> = held_out
            .iter()
            .zip(&further)
            .map(|(r, s)| error(fit, r, s, &feedback))
            .collect();
        let other = median(&others);
        println!(
            "{} {title}: held out {held_out_error:.2e}, further starts {other:.2e} (median of {})",
            case.system,
            others.len()
        );
        (held_out_error, other)
    };
    say("one record", &fit);
    eprintln!("{:.0} s", started.elapsed().as_secs_f64());
    let options = Options {
        space: space(asked.candidates, asked.seed),
        ..Options::default()
    };
    let started_design = Instant::now();
    let outcome = design(&fit, &options, &Unwatched)?;
    for line in &outcome.designed.verdict {
        println!("  {line}");
    }
    let left = outcome
        .designed
        .experiments
        .iter()
        .map(|e| format!("{:.2}", e.left[0]));
    println!(
        "  left {}, {:.0} s",
        left.collect::<Vec<_>>().join(" "),
        started_design.elapsed().as_secs_f64()
    );
    let best = &outcome.designed.experiments[0];
    let setups = options.space.setups(&fit)?;
    let is_best = |s: &&Setup| {
        let names = model.states.iter().zip(&s.start);
        names
            .into_iter()
            .all(|(state, v)| best.start[&state.name] == *v)
    };
    let chosen = setups
        .iter()
        .find(is_best)
        .expect("the best is one of them");
    let second = taken(&model, chosen, &feedback);
    let designed = say(
        "designed",
        &learned(&model, &[&first, &second], asked.seed)?,
    );
    let mut random = vec![];
    for (k, setup) in space(asked.random, 1000 + asked.seed)
        .setups(&fit)?
        .iter()
        .enumerate()
    {
        let second = taken(&model, setup, &feedback);
        match learned(&model, &[&first, &second], asked.seed) {
            Ok(fit) => random.push(say(&format!("random {}", k + 1), &fit)),
            Err(error) => {
                println!("{} random {}: {error}", case.system, k + 1);
                random.push((f64::INFINITY, f64::INFINITY));
            }
        }
    }
    let median_of =
        |which: fn(&(f64, f64)) -> f64| median(&random.iter().map(which).collect::<Vec<_>>());
    println!(
        "{}: designed over the median of random ones: held out {:.2}, further starts {:.2}; {:.0} s in all",
        case.system,
        designed.0 / median_of(|r| r.0),
        designed.1 / median_of(|r| r.1),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn learned(model: &Model, records: &[&Record], seed: u64) -> Result<Fit, Error> {
    let mut job = Job::new(model.clone())?;
    job.settings.seed = seed;
    for record in records {
        job.add(Role::Train, Source::of_record((*record).clone(), model)?);
    }
    Ok(job.run(&mut Silent)?.fit)
}

/// The regulator of the model file, which whoever runs the plant knows.
fn regulator(model: &Model) -> Vec<(String, String)> {
    let gain = model.truth.as_ref().map_or([].as_slice(), |t| &t.gain);
    if gain.is_empty() {
        return vec![];
    }
    let rows = model.inputs.iter().zip(gain.chunks(model.states.len()));
    let formula = |row: &[f64]| {
        let terms = model.states.iter().zip(row);
        let terms = terms.map(|(s, k)| format!("({:e})*{}", -k, s.name));
        terms.collect::<Vec<_>>().join(" + ")
    };
    rows.map(|(u, row)| (u.name.clone(), formula(row)))
        .collect()
}

/// The record of the true equations.
fn taken(model: &Model, setup: &Setup, feedback: &Feedback) -> Record {
    let truth = model.truth.as_ref().expect("the systems have a truth");
    let stepper = Stepper::new(model, &truth.system, model.step.expect("a step"));
    let run = setup.run_with(&stepper, &[], feedback);
    let run = run.expect("the true equations stay finite");
    Record {
        truth: Some(run.states.into_vec()),
        ..run.record
    }
}

fn mean_error(model: &Model, states: &[f64], truth: &[f64]) -> f64 {
    let n = model.states.len();
    let errors: Vec<f64> = (0..n)
        .filter_map(|i| score::nrmse(states, truth, i, n))
        .collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

/// A free run from the true start, with the regulator where there is one.
fn error(fit: &Fit, record: &Record, setup: &Setup, feedback: &Feedback) -> f64 {
    let truth = record.truth.as_ref().expect("simulated");
    let run = setup.run(fit, feedback);
    run.map_or(f64::INFINITY, |run| {
        mean_error(&fit.model, run.states.as_slice(), truth)
    })
}

fn held_out_error(model: &Model, fit: &Fit) -> f64 {
    let experiment = Simulation {
        held_out: Some(0),
        ..Simulation::default()
    };
    let record = simulate(model, &experiment).expect("held-out experiments simulate");
    let truth = record.truth.as_ref().expect("simulated");
    if model.truth.as_ref().is_some_and(|t| t.gain.is_empty()) {
        let predicted = fit
            .predictor()
            .predict(&record, Start::At(&truth[..model.states.len()]));
        return mean_error(model, predicted.states.as_slice(), truth);
    }
    // the model of the fit has the scales of its networks
    let learned = Simulation {
        theta: Some(fit.theta.clone()),
        ..experiment
    };
    let run = simulate(&fit.model, &learned);
    run.map_or(f64::INFINITY, |run| {
        mean_error(model, &run.truth.expect("states"), truth)
    })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 {
        sorted[n / 2]
    } else {
        0.5 * (sorted[n / 2 - 1] + sorted[n / 2])
    }
}
