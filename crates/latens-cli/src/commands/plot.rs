//! `latens plot`: a figure of a run, for a paper.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use clap::ValueEnum;
use latens::record::write_atomic;
use latens_report::figures::{self, What};
use latens_report::picture::Form;
use serde_json::json;

use crate::failure::Failure;
use crate::{output, text};

use super::report;

const AFTER_HELP: &str = "\
Examples:
  latens plot run --what states -o states.pdf
  latens plot run --what equation -o equation.svg
  latens plot run-1 run-2 --what convergence -o convergence.png

The ending of the file says its form: .svg, .pdf or .png (three pixels to a unit). Colours are told
apart by colour-blind people, and dashes say the same.

Exit codes: 0 done, 1 error, 2 wrong usage.";

/// Draw a figure of a run, or of several laid over each other, for a paper
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Run folders that `latens fit` wrote
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// What to draw
    #[arg(long, value_enum)]
    what: Figure,
    /// The file to write: .svg, .pdf or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Figure {
    /// Estimate and one-step prediction beside the free run, over the first record
    States,
    /// Each network along the records and along slices through a sample, with bands
    Equation,
    /// The direction of motion, of models with two states
    Field,
    /// Terms of the cost, errors and damping over the stages
    Convergence,
    /// Whiteness, histogram and consistency of the innovations
    Innovations,
    /// Records that played no part: foreseen and measured, and what is left
    Tests,
    /// The unknown constants with their intervals, beside the guesses
    Constants,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.output;
    let form = Form::of(path).ok_or_else(|| {
        Failure::Message(format!(
            "{} is no figure: give a file that ends in .svg, .pdf or .png",
            path.display()
        ))
    })?;
    output::free(path, arguments.force)?;
    let figure = match arguments.what {
        Figure::States => What::States,
        Figure::Equation => What::Equation,
        Figure::Field => What::Field,
        Figure::Convergence => What::Convergence,
        Figure::Innovations => What::Innovations,
        Figure::Tests => What::Tests,
        Figure::Constants => What::Constants,
    };
    let runs = report::load(&arguments.runs)?;
    let drawn = figures::draw(&runs, figure).and_then(|svg| form.encode(&svg));
    let bytes = drawn.map_err(Failure::Message)?;
    let written = write_atomic(path, |out| out.write_all(&bytes));
    written.map_err(|e| Failure::file("write", path, e))?;
    let (shown, size) = (path.display().to_string(), bytes.len());
    if arguments.json {
        let object = json!({ "output": shown, "bytes": size });
        return text::print(&format!("{object:#}\n"));
    }
    text::print(&format!(
        "figure written to {shown}, {} kB\n",
        size.div_ceil(1000)
    ))
}
