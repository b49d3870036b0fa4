//! The program `latens`: a file for each verb ([`commands`]), what stands on its line ([`args`]), and
//! what is said ([`terminal`]).

#![forbid(unsafe_code)]

mod args;
mod commands;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use args::{assignments, model, output, records, settings};
use terminal::failure::{self, Failure};
use terminal::{interrupt, pace, progress, steps, text};

const AFTER_HELP: &str = "\
First steps:
  latens demo                                  learn a neuron's hidden gate, in about a minute
  latens init                                  write a commented model file to fill in
  latens init --list                           finished models of many fields, to start near your own
  latens init harmonic-oscillator              write a finished one, as a starting point
  latens simulate harmonic-oscillator.toml -o record.csv
  latens check harmonic-oscillator.toml record.csv   what the record can tell
  latens fit harmonic-oscillator.toml record.csv -o run
  latens predict run record.csv                what the model does, and how far to trust it
  latens report run                            the page of a fit, run/report.html

Exit codes:
  0  done    1  error    2  wrong usage    3  the solver or simulation diverged
  4  a fit was written, and is not to be trusted: no start worked, a free run is no better than a
     constant or leaves the finite numbers, or readings are at fault
  130  interrupted with Ctrl-C, SIGTERM or SIGHUP (a fit keeps what it has so far; a second one, a
       second or more later, stops at once)";

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
    Demo(commands::demo::Arguments),
    Systems(commands::systems::Arguments),
    Init(commands::init::Arguments),
    Simulate(commands::simulate::Arguments),
    Check(commands::check::Arguments),
    Fit(Box<commands::fit::Arguments>),
    Predict(commands::predict::Arguments),
    Estimate(commands::estimate::Arguments),
    Stream(commands::stream::Arguments),
    Distill(commands::distill::Arguments),
    Design(Box<commands::design::Arguments>),
    Export(commands::export::Arguments),
    Reproduce(commands::reproduce::Arguments),
    Lab(commands::lab::Arguments),
    Compare(commands::compare::Arguments),
    Profile(commands::profile::Arguments),
    Report(commands::report::Arguments),
    Plot(commands::plot::Arguments),
    Data(commands::data::Arguments),
    Schema(commands::schema::Arguments),
    Completions(commands::shell::Completions),
    Man(commands::shell::Man),
    Worker(commands::worker::Arguments),
}

impl Verb {
    /// Whether there is something to finish where somebody interrupts it.
    fn takes_long(&self) -> bool {
        matches!(
            self,
            Self::Demo(_)
                | Self::Fit(_)
                | Self::Compare(_)
                | Self::Profile(_)
                | Self::Distill(_)
                | Self::Design(_)
                | Self::Stream(_)
                | Self::Reproduce(_)
                | Self::Lab(_)
        )
    }
}

fn main() -> ExitCode {
    latens_lab::register();
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(error) => return failure::usage(&error),
    };
    if program.verb.takes_long() {
        interrupt::watch();
    }
    let result = match program.verb {
        Verb::Demo(arguments) => commands::demo::run(&arguments),
        Verb::Systems(arguments) => commands::systems::run(&arguments),
        Verb::Init(arguments) => commands::init::run(&arguments),
        Verb::Simulate(arguments) => commands::simulate::run(&arguments),
        Verb::Check(arguments) => commands::check::run(&arguments),
        Verb::Fit(arguments) => commands::fit::run(&arguments),
        Verb::Predict(arguments) => commands::predict::run(&arguments),
        Verb::Estimate(arguments) => commands::estimate::run(&arguments),
        Verb::Stream(arguments) => commands::stream::run(&arguments),
        Verb::Distill(arguments) => commands::distill::run(&arguments),
        Verb::Design(arguments) => commands::design::run(&arguments),
        Verb::Export(arguments) => commands::export::run(&arguments),
        Verb::Reproduce(arguments) => commands::reproduce::run(&arguments),
        Verb::Lab(arguments) => commands::lab::run(&arguments),
        Verb::Compare(arguments) => commands::compare::run(&arguments),
        Verb::Profile(arguments) => commands::profile::run(&arguments),
        Verb::Report(arguments) => commands::report::run(&arguments),
        Verb::Plot(arguments) => commands::plot::run(&arguments),
        Verb::Data(arguments) => commands::data::run(&arguments),
        Verb::Schema(arguments) => commands::schema::run(&arguments),
        Verb::Completions(arguments) => commands::shell::completions(&arguments),
        Verb::Man(arguments) => commands::shell::man(&arguments),
        Verb::Worker(arguments) => commands::worker::run(&arguments),
    };
    result.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}
