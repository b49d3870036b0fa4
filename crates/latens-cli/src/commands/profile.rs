//! `latens profile`: how far the data let a constant go, with all else refitted.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use latens::Fit;
use latens::record::write_atomic;
use latens_report::outputs::ProfileOutput;
use latens_report::picture::Form;
use latens_report::{comparison, profiles, summary};

use crate::failure::Failure;
use crate::steps::Steps;
use crate::{interrupt, output, text};

const AFTER_HELP: &str = "\
Examples:
  latens profile run
  latens profile run gain offset -o profile.svg

A constant is held at one value after another, and everything else is fitted again: other constants,
networks and states. Where the objective has risen by 1.92, the interval of 95 % ends. It is printed beside
the linear one, which stands on the curvature at the minimum alone. An interval is open where the
bound of a constant comes first, or where the objective does not rise: then the data do not
determine it on that side. The ending of the figure says its form: .svg, .pdf or .png.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the equations leave the finite numbers, 130 interrupted
(sides that are done are shown).";

/// Profile the unknown constants of a run: their intervals with all else refitted
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The run folder that `latens fit` wrote
    run: PathBuf,
    /// The constants [default: all]
    #[arg(value_name = "CONSTANT")]
    constants: Vec<String>,
    /// A figure to write: .svg, .pdf or .png
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let clock = Instant::now();
    let form = match &arguments.output {
        None => None,
        Some(path) => {
            output::free(path, arguments.force)?;
            Some(Form::of(path).ok_or_else(|| {
                Failure::Message(format!(
                    "{} is no figure: give a file that ends in .svg, .pdf or .png",
                    path.display()
                ))
            })?)
        }
    };
    let fit = Fit::load(&arguments.run)?;
    interrupt::install("stopping soon; what is done will be shown");
    let mut steps = Steps::new("sides of profiles", arguments.quiet);
    let found = latens::profile(&fit, &arguments.constants, &mut steps);
    steps.finish();
    let found = found?;
    if let (Some(path), Some(form)) = (&arguments.output, form) {
        let bytes = form
            .encode(&profiles::draw(&found))
            .map_err(Failure::Message)?;
        let written = write_atomic(path, |out| out.write_all(&bytes));
        written.map_err(|e| Failure::file("write", path, e))?;
    }
    let shown = arguments.output.as_ref().map(|p| p.display().to_string());
    if arguments.json {
        text::print_json(&ProfileOutput {
            found,
            output: shown,
            seconds: clock.elapsed().as_secs_f64(),
        })?;
    } else {
        let figure = shown.map_or(String::new(), |path| {
            format!("\nfigure written to {path}\n")
        });
        text::print(&format!(
            "{}: profiles of constants of {}\n\n{}{figure}",
            summary::title(&fit.model),
            fit.name,
            comparison::profiles(&found)
        ))?;
    }
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    Ok(())
}
