//! `latens demo`: fits a built-in system and tells what came of it.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::fit::Start;
use latens::folder::Claim;
use latens::model::Point;
use latens::numerics::score;
use latens::record::{Record, Source};
use latens::simulate::{Simulation, simulate};
use latens::solve::BUILT_IN_SOLVERS;
use latens::{Fit, Job, Model, Role, Settings, systems};
use latens_report::page;

use crate::failure::Failure;
use crate::progress::Display;
use crate::text::{self, Side};
use crate::{interrupt, model};

use super::report;

/// Rows of the table that compares the learned equation with the true one.
const TABLE_POINTS: usize = 6;

const CLOSING_WORDS: &str =
    "  A model trained on one trajectory knows the equation along that trajectory, and guesses
  elsewhere. Records from other starts, or under other inputs, teach it the rest; keep one back
  with --validate to see how far to trust it.
";

/// Learn what nobody measured, and compare it with the truth: about a minute
///
/// Simulates a system, hides from the solver what no sensor would see, learns the unknown
/// equation, and compares both with the truth. By default it is Hodgkin and Huxley's neuron, whose
/// gate h is hidden.
#[derive(Args)]
pub struct Arguments {
    /// A built-in system, or a model file with a [truth] section
    #[arg(default_value = "hodgkin-huxley")]
    model: String,
    /// Tightening stages at the most
    #[arg(long, value_name = "N", alias = "epochs", default_value_t = BUILT_IN_SOLVERS[0].settings().passes as u64, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    passes: u64,
    /// Seed of the network's random start
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The run folder to write, with its page report.html; one of an earlier demo is replaced
    #[arg(short, long, value_name = "FOLDER", default_value = "latens-demo")]
    output: PathBuf,
    /// Write no run folder and no page
    #[arg(long)]
    no_report: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = model::read(&arguments.model)?;
    let record = simulate(&model, &Simulation::default())?;
    let replace = earlier(&arguments.output);
    let claim = if arguments.no_report {
        None
    } else {
        let claim = Claim::new(&arguments.output)?;
        claim.check(replace)?;
        Some(claim)
    };
    text::print(&setting(&model, &record))?;

    let settings = Settings {
        passes: arguments.passes as usize,
        seed: arguments.seed,
        ..BUILT_IN_SOLVERS[0].settings()
    };
    let mut job = Job::with_settings(model, settings);
    job.model_file.clone_from(&arguments.model);
    job.command = text::command_line();
    // nobody brought this record: it is in states.csv, and `latens simulate` makes it again
    let source = Source {
        file: "simulated".into(),
        ..Source::of_record(record, &job.model)?
    };
    job.add(Role::Train, source);
    job.check()?;
    interrupt::install("stopping");
    let mut display = Display::new(&job.settings, false)?;
    let outcome = job.run(&mut display);
    display.finish();
    let mut fit = outcome?.fit;
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    let record = &job.train[0].record;
    text::print(&result(&fit, record))?;
    text::print(&equation(&fit, record))?;
    text::print(&other_start(&fit)?)?;
    let page = match claim {
        None => None,
        Some(claim) => {
            fit.name = arguments.output.display().to_string();
            claim.write(&fit, replace)?;
            let path = arguments.output.join(report::PAGE_FILE);
            report::write(&page::html(std::slice::from_ref(&fit)), &path)?;
            Some(path)
        }
    };
    text::print(&next(&arguments.model, page.as_deref()))
}

/// Whether a folder holds what a demo wrote.
fn earlier(folder: &Path) -> bool {
    Fit::load(folder).is_ok_and(|fit| fit.facts.command.starts_with("latens demo"))
}

/// What to try next.
fn next(model: &str, page: Option<&Path>) -> String {
    let init = match systems::find(model) {
        Some(_) => format!("  latens init {model}  writes this model as a file to change\n"),
        None => String::new(),
    };
    let page = page.map_or(String::new(), |page| {
        format!(
            "  {} shows all of this; it opens in any browser\n",
            page.display()
        )
    });
    format!("\nYour turn\n{page}{init}  latens fit --help  says how to bring your own record\n")
}

fn names<'m>(model: &'m Model, states: &[usize]) -> Vec<&'m str> {
    states
        .iter()
        .map(|&i| model.states[i].name.as_str())
        .collect()
}

/// The text of an equation in the model file.
fn written(model: &Model, section: &str, state: &str) -> Option<String> {
    let file: toml::Table = model.text.parse().ok()?;
    let entry = file.get(section)?.get(state)?;
    let expression = match section {
        "states" => entry.get("derivative")?,
        _ => entry,
    };
    Some(match expression.as_str() {
        Some(text) => text.into(),
        None => expression.to_string(),
    })
}

/// States whose equation has something to learn.
fn unknown_rows(model: &Model) -> &[usize] {
    model.system.unknown_rows()
}

/// What is known, what is not, and what was measured.
fn setting(model: &Model, record: &Record) -> String {
    let mut known = String::new();
    let mut unknown = String::new();
    for (i, state) in model.states.iter().enumerate() {
        let equation = written(model, "states", &state.name).unwrap_or_default();
        let line = format!("  {}' = {equation}\n", state.name);
        if unknown_rows(model).contains(&i) {
            unknown += &line;
        } else {
            known += &line;
        }
    }
    let networks = model.system.networks().iter();
    for network in networks {
        unknown += &format!(
            "  where {} is a network of {} weights, at random for now\n",
            network.name,
            network.weights()
        );
    }
    for constant in &model.unknowns {
        unknown += &format!(
            "  where {} is a constant, guessed as {}\n",
            constant.name,
            text::number(constant.guess)
        );
    }
    let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
    let unit = match model.time_unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let duration = record.time.last().copied().unwrap_or(0.0) - record.time[0];
    format!(
        "{}\n{}\n\nWhat is known\n{known}\nWhat is not\n{unknown}\nWhat was measured\n  {}, {} samples over {}{unit} of simulation; nobody measured {}\n\n",
        model.name,
        model.description,
        text::list(&channels),
        record.len(),
        text::number(duration),
        text::list(&names(model, &model.hidden())),
    )
}

/// Errors of the hidden states and of the free run.
fn result(fit: &Fit, record: &Record) -> String {
    let (model, track) = (&fit.model, &fit.tracks[0]);
    let n = model.states.len();
    let mut out = format!(
        "\nWhat was learned in {}\n",
        text::seconds(fit.facts.seconds)
    );
    let truth = record.truth.as_deref().unwrap_or(&[]);
    for i in model.hidden() {
        if let Some(error) = score::nrmse(track.smoothed.as_slice(), truth, i, n) {
            out += &format!(
                "  {}, which no sensor saw, was found to {} of its range\n",
                model.states[i].name,
                part(error)
            );
        }
    }
    let free: Vec<String> = model
        .states
        .iter()
        .enumerate()
        .filter_map(|(i, state)| {
            let error = score::nrmse(track.free_run.as_slice(), truth, i, n)?;
            Some(format!("{} {}", state.name, part(error)))
        })
        .collect();
    out += &format!(
        "  simulated from its start without looking at the data again, the model errs by\n  {} of the range\n",
        free.join(", ")
    );
    out
}

/// An error as a part of a range.
fn part(error: f64) -> String {
    if error.is_finite() {
        text::percent(error)
    } else {
        "(diverged)".into()
    }
}

/// The learned equations beside the true ones, along the record.
fn equation(fit: &Fit, record: &Record) -> String {
    let model = &fit.model;
    let (Some(truth), rows) = (&model.truth, unknown_rows(model)) else {
        return String::new();
    };
    let mut out = String::from("\nWhat it learned, beside the truth that it never saw\n");
    for name in names(model, rows) {
        let equation = written(model, "truth", name);
        let equation = equation.or_else(|| written(model, "states", name));
        out += &format!("  {name}' = {}\n", equation.unwrap_or_default());
    }
    let quantities = model.states.iter().map(|s| &s.name);
    let mut header: Vec<String> = quantities
        .chain(model.inputs.iter().map(|i| &i.name))
        .cloned()
        .collect();
    for name in names(model, rows) {
        header.extend([format!("true {name}'"), format!("learned {name}'")]);
    }
    let mut table = vec![header];
    let (mut learned_ws, mut true_ws) = (model.system.workspace(), truth.system.workspace());
    let n = model.states.len();
    let (mut learned, mut actual) = (vec![0.0; n], vec![0.0; n]);
    for point in 0..TABLE_POINTS {
        let k = point * (record.len() - 1) / (TABLE_POINTS - 1);
        let state = record.truth(k).unwrap_or(&[]);
        let at = Point {
            time: record.time[k],
            state,
            input: record.input(k),
            theta: &fit.theta,
        };
        model.system.derivative(&mut learned_ws, at, &mut learned);
        truth
            .system
            .derivative(&mut true_ws, Point { theta: &[], ..at }, &mut actual);
        let mut cells: Vec<String> = state
            .iter()
            .chain(at.input)
            .map(|x| text::number(*x))
            .collect();
        for &row in rows {
            cells.extend([text::number(actual[row]), text::number(learned[row])]);
        }
        table.push(cells);
    }
    let sides = vec![Side::Right; table[0].len()];
    out + &text::table(2, &sides, &table)
}

/// How the model does from a start that was not in its record.
fn other_start(fit: &Fit) -> Result<String, Failure> {
    let model = &fit.model;
    if model.truth.as_ref().is_none_or(|t| t.held_out.is_empty()) {
        return Ok(String::new());
    }
    let simulation = Simulation {
        held_out: Some(0),
        ..Simulation::default()
    };
    let record = simulate(model, &simulation)?;
    let (Some(truth), Some(start)) = (&record.truth, record.truth(0)) else {
        return Ok(String::new());
    };
    let prediction = fit.free_run(&record, Start::At(start));
    let place: Vec<String> = model
        .states
        .iter()
        .zip(start)
        .map(|(s, x)| format!("{} = {}", s.name, text::number(*x)))
        .collect();
    let errors: Vec<String> = model
        .states
        .iter()
        .enumerate()
        .filter_map(|(i, s)| {
            let states = prediction.states.as_slice();
            let error = score::nrmse(states, truth, i, model.states.len())?;
            Some(format!("{} {}", s.name, part(error)))
        })
        .collect();
    let off = prediction.states.as_slice().iter().zip(truth);
    let inside = off.zip(prediction.deviations.as_slice());
    let inside = inside.filter(|((x, t), std)| (*x - *t).abs() <= 1.96 * **std);
    let inside = inside.count() as f64 / truth.len() as f64;
    let outside = if prediction.extrapolates() {
        format!(
            "  Warning: on {} of this run the network meets values unlike any in training\n",
            text::percent(prediction.outside)
        )
    } else {
        String::new()
    };
    Ok(format!(
        "\nFrom another start, which is not in its record ({}),\n  the model errs by {} of the range\n  {} of the run lies in its own 95 % bands\n{outside}{CLOSING_WORDS}",
        place.join(", "),
        errors.join(", "),
        text::percent(inside)
    ))
}
