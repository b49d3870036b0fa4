//! `latens lab`: experiments on Latens itself.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use latens::Fit;
use latens_lab::export;
use latens_lab::gallery::{self, Half, Options, Variant};
use latens_lab::host::{self, Host};
use latens_lab::sampler;

use crate::failure::Failure;
use crate::{interrupt, text};

/// Experiments on Latens itself
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    Gallery(GalleryArguments),
    Export(ExportArguments),
    Sample(SampleArguments),
}

const AFTER_HELP: &str = "\
For example, two problems, right and slightly wrong, at one level of noise:
  latens lab gallery --problems crane,battery --variants right,wrong --noise 1 -o two
and all of it:
  latens lab gallery -o gallery

Least squares on the free run is done by SciPy: with python3 on the path, or LATENS_PYTHON, that has numpy and
scipy. Without one, nothing is compared. Its results are kept and not computed again while model and records are
the same. Models, records and cells are in the folder, with table.txt, table.csv and results.json.

Exit codes: 0 done (lost cells are results too), 1 error, 2 wrong usage, 130 interrupted.";

/// Fit problems of many fields with defaults, beside least squares on the free run
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
struct GalleryArguments {
    /// Problems; `latens init --list` names them [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    problems: Vec<String>,
    /// A half of the problems: on one defaults are chosen, on the other they are reported
    #[arg(long, value_enum)]
    half: Option<HalfName>,
    /// Noise of each channel, in percent of its range
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', num_args = 1.., default_values_t = [0.0, 1.0, 5.0], value_parser = not_negative)]
    noise: Vec<f64>,
    /// Models: all equations known, a term as a network, slightly wrong [default: all]
    #[arg(long, value_enum, value_delimiter = ',', num_args = 1..)]
    variants: Vec<VariantName>,
    /// Seeds 1 to N of each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Cells side by side [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// The folder to write
    #[arg(short, long, value_name = "FOLDER", default_value = "gallery")]
    output: PathBuf,
    /// Go on in a folder that has cells already: they are kept, others are added
    #[arg(long)]
    resume: bool,
    /// Leave out least squares
    #[arg(long)]
    alone: bool,
    /// Where results of least squares are kept, to be shared by several galleries [default: in the
    /// folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "alone")]
    least_squares: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

const AFTER_EXPORT_HELP: &str = "\
For example, one system:
  latens lab export --systems hodgkin-huxley -o exports

A cell has the largest deviation of a component at random points, relative to its largest value, and after the
slash that of a free run, over what the equations make of a last digit. C is compiled by cc; JavaScript needs
node and chromium; the others need python3 on the path, or LATENS_PYTHON, with numpy, jax, casadi, onnxruntime and
fmpy. What is not here is told.

Exit codes: 0 done, 1 error, 2 wrong usage.";

/// Run exported fits in the programs that they are for, beside Latens
#[derive(Args)]
#[command(after_help = AFTER_EXPORT_HELP)]
struct ExportArguments {
    /// Systems [default: the built-in ones, and one with every word of the language]
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    systems: Vec<String>,
    /// Random points
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    points: u64,
    /// Steps of the free run
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(20..=9_000))]
    steps: u64,
    /// The folder to write
    #[arg(short, long, value_name = "FOLDER", default_value = "exports")]
    output: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

const AFTER_SAMPLE_HELP: &str = "\
For example, beside latens profile run:
  latens lab sample run --steps 100000

The posterior is that of the fit under exact equations, simulated from start to end at every step: nothing is
linearised. It takes as long as so many simulations of the records, times the chains. Where R̂ is not near 1 the
chains have not met, and their intervals say nothing: weights of networks have several minima, and take far longer
than constants.

Exit codes: 0 done, 1 error, 2 wrong usage.";

/// Sample the posterior of a run's constants with a long Markov chain, to hold its intervals against
#[derive(Args)]
#[command(after_help = AFTER_SAMPLE_HELP)]
struct SampleArguments {
    /// The run folder that `latens fit` wrote
    run: PathBuf,
    /// Steps of each chain
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1000..))]
    steps: u64,
    /// Chains, side by side
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=1000))]
    chains: u64,
    /// Of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

fn sample(arguments: &SampleArguments) -> Result<(), Failure> {
    let fit = Fit::load(&arguments.run)?;
    let options = sampler::Options {
        chains: arguments.chains as usize,
        steps: arguments.steps as usize,
        seed: arguments.seed,
    };
    let found = sampler::sample(&fit, &options)?;
    if arguments.json {
        return text::print_json(&serde_json::json!({ "run": fit.name, "constants": found }));
    }
    let head = ["", "median", "95 %", "±", "effective", "R̂"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(found.iter().map(|c| {
        vec![
            c.name.clone(),
            text::number(c.median),
            format!(
                "{} to {}",
                text::number(c.interval.0),
                text::number(c.interval.1)
            ),
            text::number(c.error),
            format!("{:.0}", c.effective),
            format!("{:.3}", c.r_hat),
        ]
    }));
    let sides = vec![text::Side::Left; head.len()];
    text::print(&text::table(2, &sides, &rows))
}

#[derive(Clone, Copy, ValueEnum)]
enum HalfName {
    Choose,
    Report,
}

#[derive(Clone, Copy, ValueEnum)]
enum VariantName {
    Right,
    Network,
    Wrong,
}

fn not_negative(given: &str) -> Result<f64, String> {
    let number = given.trim_end_matches('%').parse::<f64>();
    let number = number.ok().filter(|x| x.is_finite() && *x >= 0.0);
    number.ok_or_else(|| "a percentage, 0 or more".into())
}

fn at_least_one(given: &str) -> Result<usize, String> {
    let number = given.parse::<usize>().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "a number from 1".into())
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.experiment {
        Experiment::Gallery(arguments) => run_gallery(arguments),
        Experiment::Export(arguments) => run_export(arguments),
        Experiment::Sample(arguments) => sample(arguments),
    }
}

fn run_export(arguments: &ExportArguments) -> Result<(), Failure> {
    if !arguments.quiet {
        host::install(Host {
            note: text::note,
            asked_to_stop: interrupt::asked,
        });
    }
    let done = export::all(&export::Request {
        systems: arguments.systems.clone(),
        points: arguments.points as usize,
        steps: arguments.steps as usize,
        output: arguments.output.clone(),
    })?;
    if arguments.json {
        return text::print(&format!("{:#}\n", done.json));
    }
    text::print(&done.table)
}

fn run_gallery(arguments: &GalleryArguments) -> Result<(), Failure> {
    interrupt::install("stopping; cells that are done are kept, and --resume goes on");
    host::install(Host {
        note: text::note,
        asked_to_stop: interrupt::asked,
    });
    let variants = arguments.variants.iter().map(|variant| match variant {
        VariantName::Right => Variant::Right,
        VariantName::Network => Variant::Network,
        VariantName::Wrong => Variant::Wrong,
    });
    let done = gallery::run(&Options {
        problems: arguments.problems.clone(),
        half: arguments.half.map(|half| match half {
            HalfName::Choose => Half::Choose,
            HalfName::Report => Half::Report,
        }),
        noise: arguments.noise.clone(),
        variants: variants.collect(),
        seeds: arguments.seeds,
        jobs: arguments.jobs,
        output: arguments.output.clone(),
        resume: arguments.resume,
        alone: arguments.alone,
        least_squares: arguments.least_squares.clone(),
        quiet: arguments.quiet,
    })?;
    if arguments.json {
        text::print(&format!("{:#}\n", done.json))?;
    } else {
        let folder = arguments.output.display();
        text::print(&format!(
            "{}\ntables, models, records and cells: {folder}\n",
            done.summary
        ))?;
    }
    if done.stopped {
        return Err(Failure::Interrupted);
    }
    Ok(())
}
