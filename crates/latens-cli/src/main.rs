//! The program `latens`: one file per verb, and what they share.

mod assignments;
mod check;
mod data;
mod datasets;
mod demo;
mod estimate;
mod failure;
mod fit;
mod init;
mod interrupt;
mod learned;
mod model;
mod output;
mod pace;
mod plot;
mod predict;
mod progress;
mod report;
mod reproduce;
mod rivals;
mod schema;
mod settings;
mod simulate;
mod stream;
mod systems;
mod text;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;
use latens_report::{sight, summary};

const AFTER_HELP: &str = "\
First steps:
  latens demo                                  learn a neuron's hidden gate, in about a minute
  latens init harmonic-oscillator              write its model file here, as a starting point
  latens simulate harmonic-oscillator.toml -o record.csv
  latens check harmonic-oscillator.toml record.csv   what the record can tell
  latens fit harmonic-oscillator.toml record.csv -o run
  latens predict run record.csv                what the model does, and how far to trust it
  latens report run                            the page of a fit, run/report.html

Exit codes:
  0  done    1  error    2  wrong usage    3  the solver or simulation diverged
  130  interrupted with Ctrl-C (a fit keeps what it has so far; a second Ctrl-C stops at once)";

/// Learns the equations nobody measured: hidden states and unknown dynamics from partial
/// measurements.
#[derive(Parser)]
#[command(name = "latens", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Demo(demo::Arguments),
    Systems(systems::Arguments),
    Init(init::Arguments),
    Simulate(simulate::Arguments),
    Check(check::Arguments),
    Fit(Box<fit::Arguments>),
    Predict(predict::Arguments),
    Estimate(estimate::Arguments),
    Stream(stream::Arguments),
    Reproduce(reproduce::Arguments),
    Report(report::Arguments),
    Plot(plot::Arguments),
    Data(datasets::Arguments),
    Schema(schema::Arguments),
}

fn main() -> ExitCode {
    let result = match Program::parse().verb {
        Verb::Demo(arguments) => demo::run(&arguments),
        Verb::Systems(arguments) => systems::run(&arguments),
        Verb::Init(arguments) => init::run(&arguments),
        Verb::Simulate(arguments) => simulate::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Fit(arguments) => fit::run(&arguments),
        Verb::Predict(arguments) => predict::run(&arguments),
        Verb::Estimate(arguments) => estimate::run(&arguments),
        Verb::Stream(arguments) => stream::run(&arguments),
        Verb::Reproduce(arguments) => reproduce::run(&arguments),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Plot(arguments) => plot::run(&arguments),
        Verb::Data(arguments) => datasets::run(&arguments),
        Verb::Schema(arguments) => schema::run(&arguments),
    };
    result.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}
