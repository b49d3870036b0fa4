//! `latens simulate`: a record from the true equations of a model, or from those of a run.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::record::Layout;
use latens::simulate::{NoiseLevel, Simulation, simulate};
use latens_report::outputs::SimulatedModel;

use crate::assignments::{self, Assignment};
use crate::failure::Failure;
use crate::{model, output, records, text};

use super::learned;

const AFTER_HELP: &str = "\
Examples:
  latens simulate harmonic-oscillator --noise 1% -o record.csv
  latens simulate run --input planned.csv --start q=0,v=0 -o planned-run.csv
  latens simulate run --input planned.csv --constants gain=1.2 -o what-if.csv

With the folder of a fit in place of a model, the learned equations are driven by the inputs of a file, from
where the fit started in its own record, or --start; no measurements are needed. The CSV then has t, the inputs, and
<state>.predicted and .std, <channel>.output and .output_std.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the simulation diverged.";

/// Make a record from the [truth] section of a model, or simulate what a run has learned
///
/// The CSV of a model has a column t, the inputs, the measured channels, and `truth_<state>` for every
/// state. The truth serves for scoring only; a fit never learns from it.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// A model file, the name of a built-in system, or a run folder
    model: String,
    /// The CSV file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object on standard output; the record goes to the file
    #[arg(long, requires = "output")]
    pub json: bool,
    /// The file whose inputs drive a run
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["steps", "noise", "process_noise", "held_out"])]
    pub input: Option<PathBuf>,
    #[command(flatten)]
    pub columns: records::Columns,
    /// Number of steps; the record has one sample more [default: the model's, else 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub steps: Option<u64>,
    /// Measurement noise as a standard deviation: 0.1 in each channel's unit, 1% of each channel's
    /// range, or by channel V=0.5,n=1% [default: none]
    #[arg(long, value_name = "[CHANNEL=]σ", value_delimiter = ',', value_parser = assignments::noise)]
    noise: Vec<Assignment<NoiseLevel>>,
    /// Process noise as a standard deviation per √time: 0.1 for every state, or by state h=0.01
    /// [default: the model's, else none]
    #[arg(long, value_name = "[STATE=]σ", value_delimiter = ',', value_parser = assignments::size)]
    process_noise: Vec<Assignment<f64>>,
    /// Start values that replace the model's: x=1,v=-0.5
    #[arg(long, value_name = "STATE=VALUE", value_delimiter = ',', value_parser = assignments::named)]
    pub start: Vec<Assignment<f64>>,
    /// Values of unknown constants in place of what a run has learned: k=2,c=0.1
    #[arg(long, value_name = "CONSTANT=VALUE", value_delimiter = ',', value_parser = assignments::named)]
    pub constants: Vec<Assignment<f64>>,
    /// Simulate the model's k-th held-out experiment instead, from 1
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    held_out: Option<u64>,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        output::free(path, arguments.force)?;
    }
    let folder = Path::new(&arguments.model);
    if folder.is_dir() {
        return learned::run(arguments, folder);
    }
    if arguments.input.is_some() {
        return Err(Failure::Message(format!(
            "--input drives a fit, and {} is no folder of one; a model is driven by its [simulation] section",
            arguments.model
        )));
    }
    if !arguments.constants.is_empty() {
        return Err(Failure::Message(format!(
            "--constants changes what a fit has learned, and {} is no folder of one; a model is simulated with the constants of its [truth] section",
            arguments.model
        )));
    }
    let model = model::read(&arguments.model)?;
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
    let start = assignments::resolve(&arguments.start, &states, "state")?;
    let process = assignments::resolve(&arguments.process_noise, &states, "state")?;
    let simulation = Simulation {
        steps: arguments.steps.map(|n| n as usize),
        start: start
            .into_iter()
            .enumerate()
            .filter_map(|(i, value)| Some((i, value?)))
            .collect(),
        held_out: arguments.held_out.map(|k| k as usize - 1),
        noise: assignments::resolve(&arguments.noise, &channels, "measurement")?,
        process_noise: match (&model.truth, process.iter().any(Option::is_some)) {
            (Some(truth), true) => {
                let given = process.iter().zip(&truth.process_noise);
                Some(given.map(|(new, usual)| new.unwrap_or(*usual)).collect())
            }
            _ => None,
        },
        seed: arguments.seed,
        theta: None,
    };
    let record = simulate(&model, &simulation)?;
    let table = record.to_table(&Layout::of(&model))?;
    output::write(arguments.output.as_deref(), &table)?;
    if arguments.json {
        return text::print_json(&SimulatedModel {
            model: arguments.model.clone(),
            samples: record.len(),
            seed: arguments.seed,
            warnings: vec![],
            output: arguments.output.as_ref().map(|p| p.display().to_string()),
            columns: table.names().map(String::from).collect(),
        });
    }
    Ok(())
}
