//! `latens compare`: which of several models of the same data is the better one.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use latens::{CompareOptions, Door, Fit};
use latens_report::comparison;
use latens_report::outputs::CompareOutput;

use super::report;
use crate::failure::Failure;
use crate::steps::Steps;
use crate::{interrupt, text};

const AFTER_HELP: &str = "\
Examples:
  latens compare with-friction without-friction
  latens compare run-1 run-2 run-3 --folds 5

All of it comes from the run folders. The runs must have learned from the same readings in the same
units; where they have not, it is said why they cannot be compared.

ln p(y) is compared with the noise of the sensors integrated out, so that no model gains by the noise
that it found. A difference of 3 is worth mentioning, 5 is strong, 10 leaves no doubt; below 3 two models
cannot be told apart. docs/guide/compare.md explains the columns.

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted (blocks that were held back are left out).";

/// Say which of several models of the same data is the better one, and how sure that is
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Run folders that `latens fit` wrote, two or more
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Fit each model so many times again, each time without a block of the data, or without records where
    /// there are as many, and predict what was held back
    #[arg(long, value_name = "K", default_value_t = 0, hide_default_value = true)]
    folds: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let clock = Instant::now();
    let fits = report::load(&arguments.runs)?;
    let fits: Vec<&Fit> = fits.iter().collect();
    let options = CompareOptions {
        folds: arguments.folds,
    };
    interrupt::install("stopping soon; what needs no refit will be shown");
    let mut steps = Steps::new("comparing", arguments.quiet || arguments.folds == 0);
    let found = latens::compare(&fits, options, &mut steps);
    steps.finish();
    let found = found?.at(Door::CommandLine);
    if arguments.json {
        text::print_json(&CompareOutput {
            found,
            seconds: clock.elapsed().as_secs_f64(),
        })?;
    } else {
        text::print(&comparison::table(&found))?;
    }
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    Ok(())
}
