//! `latens simulate`: a record from the true equations of a model.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use latens::record::{write_csv, write_csv_to};
use latens::simulate::{NoiseLevel, Simulation, simulate};

use crate::assignments::{self, Assignment};
use crate::failure::Failure;
use crate::{model, text};

/// Make a record from the [truth] section of a model
///
/// The CSV has a column t, the inputs, the measured channels, and `truth_<state>` for every state.
/// The truth serves for scoring only; a fit never learns from it.
#[derive(Args)]
pub struct Arguments {
    /// A model file, or the name of a built-in system
    model: String,
    /// The CSV file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Number of steps; the record has one sample more [default: the model's, else 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    steps: Option<u64>,
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
    start: Vec<Assignment<f64>>,
    /// Simulate the model's k-th held-out experiment instead, from 1
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    held_out: Option<u64>,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = model::read(&arguments.model)?;
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
    if let Some(path) = arguments.output.as_ref().filter(|p| p.is_file())
        && !arguments.force
    {
        return Err(Failure::Message(format!(
            "{} exists; overwrite it with --force, or choose another file with -o",
            path.display()
        )));
    }
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
                Some(given.map(|(new, own)| new.unwrap_or(*own)).collect())
            }
            _ => None,
        },
        seed: arguments.seed,
        theta: None,
    };
    let record = simulate(&model, &simulation)?;
    let table = record.to_table(&model.layout())?;
    match &arguments.output {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = write_csv_to(&mut out, &table).and_then(|()| out.flush());
            written.map_err(Failure::Output)
        }
        Some(path) => {
            write_csv(path, &table)?;
            text::note(&format!(
                "wrote {}: {} samples of {}",
                path.display(),
                record.len(),
                table.names().collect::<Vec<_>>().join(", ")
            ));
            Ok(())
        }
    }
}
