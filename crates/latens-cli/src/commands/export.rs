//! `latens export`: what a run has learned, as code for other tools.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use latens::Fit;
use latens_export::{Target, default_stem, write};
use latens_report::outputs::ExportOutput;

use crate::failure::Failure;
use crate::{records, text};

const AFTER_HELP: &str = "\
Examples:
  latens export run --to c -o neuron.c       neuron.c and neuron.h, with the filter for a controller
  latens export run --to fmu -o neuron.fmu   for Simulink, OpenModelica and other tools (FMI 2.0)
  latens export run --to python              a module for numpy, jax and CasADi

Targets:
  c        one C99 file and its header: derivative, step, outputs, and the filter of `latens stream`
  fmu      a functional mock-up unit, FMI 2.0: model exchange and co-simulation
  fmu3     the same, FMI 3.0
  js       one JavaScript module
  onnx     the map from a sample to the next, and each network by itself, in f64
  python   one module that needs numpy alone, and takes values of jax and CasADi
  toml     a model file with nothing to learn, for another model to build on

The learned constants and weights are in the files, in f64. docs/guide/export.md shows how each is used.

Exit codes: 0 done, 1 error, 2 wrong usage.";

/// Write what a run has learned as code for other tools: C, FMU, ONNX, Python, JavaScript
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// A run folder that `latens fit` wrote
    run: PathBuf,
    /// What to write
    #[arg(long, value_name = "TARGET", value_parser = PossibleValuesParser::new(Target::NAMES.map(|(name, ..)| name)))]
    to: String,
    /// The file to write [default: named like the model, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The group whose constants are written, where a constant varies by group
    #[arg(long, value_name = "LABEL")]
    group: Option<String>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let target = Target::of_name(&arguments.to)?;
    let fit = records::of_group(Fit::load(&arguments.run)?, arguments.group.as_deref())?;
    let default = || PathBuf::from(format!("{}.{}", default_stem(&fit), target.ending()));
    let path = arguments.output.clone().unwrap_or_else(default);
    let written = write(&fit, target, &path, arguments.force)?;
    let files: Vec<String> = written
        .files
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    if arguments.json {
        return text::print_json(&ExportOutput {
            run: fit.name.clone(),
            target: arguments.to.clone(),
            files,
            bytes: written.bytes,
            notes: written.notes,
        });
    }
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let size = written.bytes.div_ceil(1000);
    let mut said = format!("wrote {}, {size} kB\n", text::list(&names));
    for note in &written.notes {
        said += &format!("note: {note}\n");
    }
    text::print(&said)
}
