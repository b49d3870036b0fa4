//! The paper's method on its synthetic systems: four variants, several seeds, one table.
//!
//! `cargo run --release -p latens-lab --example paper -- [--seeds 5] [--passes N] [system …]`
//!
//! Prints one line a run (free-run mean nRMSE over all states, hidden start unknown) and the
//! table of `docs/paper.md` at the end; runs go side by side on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use latens::simulate::{Simulation, simulate};
use latens::solve::{self, Solver};
use latens::{Job, Model, Role, Settings, Silent, Source, systems};

/// The columns of the table: name and settings.
fn variants() -> Vec<(&'static str, Settings)> {
    let named =
        |name: &str| -> &'static dyn Solver { solve::find(name).expect("one of Latens' own") };
    let printed = |name| named(name).printed_settings().expect("the paper has it");
    vec![
        ("as printed, printed settings", printed("as-printed")),
        ("corrected, printed settings", printed("alternating")),
        (
            "corrected, default settings",
            named("alternating").settings(),
        ),
        ("joint, default settings", named("joint").settings()),
    ]
}

struct Outcome {
    system: String,
    variant: usize,
    seed: u64,
    /// Mean nRMSE, or how the run failed.
    result: Result<f64, String>,
}

fn main() {
    let (mut seeds, mut passes, mut names) = (5, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|v| v.parse().ok());
            value.unwrap_or_else(|| panic!("{argument} needs a number"))
        };
        match argument.as_str() {
            "--seeds" => seeds = number(),
            "--passes" => passes = Some(number()),
            name => names.push(name.to_string()),
        }
    }
    let chosen = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    let models: Vec<(&str, Model)> = systems::SYSTEMS
        .iter()
        .filter(|(name, _)| chosen(name))
        .map(|(name, text)| {
            (
                *name,
                Model::from_text(name, text).expect("embedded models compile"),
            )
        })
        .filter(|(_, model)| model.truth.is_some())
        .collect();
    if models.is_empty() || seeds == 0 {
        println!("nothing to run: name embedded systems that have a truth, and at least one seed");
        return;
    }
    let mut jobs = Vec::new();
    for (m, _) in models.iter().enumerate() {
        for (v, (_, settings)) in variants().into_iter().enumerate() {
            for seed in 1..=seeds as u64 {
                let passes = passes.unwrap_or(settings.passes);
                jobs.push((
                    m,
                    v,
                    Settings {
                        seed,
                        passes,
                        ..settings.clone()
                    },
                ));
            }
        }
    }
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((m, v, settings)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (name, model) = &models[*m];
                    let outcome = run(name, model, *v, settings);
                    outcomes.lock().expect("no thread panics").push(outcome);
                }
            });
        }
    });
    table(&models, &outcomes.into_inner().expect("no thread panics"));
}

fn run(name: &str, model: &Model, variant: usize, settings: &Settings) -> Outcome {
    let started = Instant::now();
    let record = simulate(model, &Simulation::default()).expect("embedded models simulate");
    let mut job = Job::with_settings(model.clone(), settings.clone());
    let source = Source::of_record(record, model).expect("names of embedded models differ");
    job.add(Role::Train, source);
    let result = match job.run(&mut Silent) {
        Ok(outcome) => Ok(outcome.fit.facts.records[0]
            .mean_nrmse
            .unwrap_or(f64::INFINITY)),
        Err(error) => Err(error.to_string()),
    };
    let seconds = started.elapsed().as_secs_f64();
    let shown = match &result {
        Ok(value) => format!("{value:.2e}"),
        Err(error) => error.clone(),
    };
    println!(
        "{name}, {}, seed {}: {shown} ({seconds:.0} s)",
        variants()[variant].0,
        settings.seed
    );
    Outcome {
        system: name.into(),
        variant,
        seed: settings.seed,
        result,
    }
}

fn table(models: &[(&str, Model)], outcomes: &[Outcome]) {
    let names: Vec<&str> = variants().iter().map(|v| v.0).collect();
    println!("\n| system | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(variants().len()));
    for (name, _) in models {
        let mut cells = Vec::new();
        for variant in 0..variants().len() {
            let cell_outcomes: Vec<&Outcome> = outcomes
                .iter()
                .filter(|o| o.system == *name && o.variant == variant)
                .collect();
            let mut values: Vec<f64> = cell_outcomes
                .iter()
                .map(|o| *o.result.as_ref().unwrap_or(&f64::INFINITY))
                .collect();
            values.sort_by(f64::total_cmp);
            let show = |v: f64| {
                if v.is_finite() {
                    format!("{v:.1e}")
                } else {
                    "∞".into()
                }
            };
            let failed: Vec<u64> = cell_outcomes
                .iter()
                .filter(|o| o.result.is_err())
                .map(|o| o.seed)
                .collect();
            let note = if failed.is_empty() {
                String::new()
            } else {
                format!(", diverged: {}", failed.len())
            };
            let (median, worst) = (values[values.len() / 2], values[values.len() - 1]);
            cells.push(format!("{} ({}{note})", show(median), show(worst)));
        }
        println!("| {name} | {} |", cells.join(" | "));
    }
}
