//! `latens fit`: learns a model's unknowns from records and writes a run folder.

use std::path::PathBuf;

use clap::Args;
use latens::fit::run::{self, About, Facts, Source};
use latens::record::{Mapping, Record, Table};
use latens::{Error, Model, solve};

use crate::failure::Failure;
use crate::progress::Display;
use crate::settings::Options;
use crate::{assignments, interrupt, model, summary, text};

const DATA: &str = "Data";
const OUTPUT: &str = "Output";

const AFTER_HELP: &str = "\
The run folder holds model.toml, weights.safetensors, fit.json (every setting, seed, checksum and
score) and states.csv. It is written whole or not at all.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the solver diverged, 130 interrupted with Ctrl-C.";

/// Learn a model's networks and unknown constants from records
///
/// Columns of the data are matched to the model's inputs and measurements by name; columns
/// `truth_<state>`, where there are any, serve for scoring only.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// A model file, or the name of a built-in system
    model: String,
    /// Records: .csv, .tsv, .txt with a header line, or .mat (MATLAB, up to -v7); each file is one
    /// experiment
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Which column stands for a name of the model: --map q=y_qm_m; `t=` alone ignores the file's
    /// times; may be repeated
    #[arg(long, value_name = "NAME=COLUMN", help_heading = DATA)]
    map: Vec<String>,
    /// Time between samples, for files without a time column [default: the model's step]
    #[arg(long, value_name = "DT", help_heading = DATA, value_parser = assignments::positive)]
    step: Option<f64>,
    /// The run folder to write
    #[arg(short, long, value_name = "FOLDER", default_value = "run", help_heading = OUTPUT)]
    output: PathBuf,
    /// Replace the folder if it holds a run already
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
    /// Print one JSON object instead of a table
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Show no progress
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    options: Options,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = model::read(&arguments.model)?;
    let settings = arguments.options.settings(&model)?;
    let records = read(arguments, &model)?;
    run::check(&arguments.output, arguments.force)?;
    let mut warnings = step_warnings(arguments, &model, &records);
    for warning in &warnings {
        text::note(&format!("warning: {warning}"));
    }

    interrupt::install();
    let mut display = Display::new(settings.epochs, arguments.quiet);
    let fit = solve::fit(&model, &records, &settings, &mut display);
    let seconds = display.seconds();
    display.finish();
    let fit = fit?;
    if interrupt::asked() {
        return Err(Error::Stopped.into());
    }

    let sources = arguments
        .data
        .iter()
        .zip(&records)
        .map(|(path, record)| {
            Ok(Source {
                file: path.display().to_string(),
                sha256: run::checksum(path)?,
                record,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut facts = Facts::new(
        &fit,
        &sources,
        About {
            model_file: arguments.model.clone(),
            command: command_line(),
            seconds,
            threads: settings.solver.threads(),
            warnings: vec![],
        },
    );
    for warning in score_warnings(&model, &facts, &records) {
        text::note(&format!("warning: {warning}"));
        warnings.push(warning);
    }
    facts.warnings = warnings;
    run::save(&fit, &sources, &facts, &arguments.output, arguments.force)?;

    let folder = arguments.output.display().to_string();
    if arguments.json {
        return text::print(&format!("{:#}\n", summary::json(&facts, &folder)));
    }
    let table = summary::table(&fit.model, &facts);
    text::print(&format!("{table}\nrun written to {folder}\n"))
}

fn read(arguments: &Arguments, model: &Model) -> Result<Vec<Record>, Failure> {
    let mapping = Mapping::parse(&arguments.map)?;
    let layout = model.layout();
    let each = arguments.data.iter().map(|path| {
        let table = Table::read(path)?;
        Ok(Record::from_table(
            &table,
            &layout,
            &mapping,
            arguments.step,
        )?)
    });
    each.collect()
}

/// Records whose step is not the one that the model states.
fn step_warnings(arguments: &Arguments, model: &Model, records: &[Record]) -> Vec<String> {
    let Some(step) = model.step else {
        return vec![];
    };
    let differs =
        |r: &&(&PathBuf, &Record)| (r.1.step() - step).abs() > Record::STEP_TOLERANCE * step;
    let pairs: Vec<_> = arguments.data.iter().zip(records).collect();
    let each = pairs.iter().filter(differs).map(|(path, record)| {
        format!(
            "{} has a step of {}, the model one of {}; the record's is used",
            path.display(),
            text::number(record.step()),
            text::number(step)
        )
    });
    each.collect()
}

/// Records that the fitted model cannot follow: worse than the mean of what was measured.
fn score_warnings(model: &Model, facts: &Facts, records: &[Record]) -> Vec<String> {
    let mut warnings = vec![];
    for (facts, record) in facts.records.iter().zip(records) {
        let lost: Vec<&str> = model
            .measurements
            .iter()
            .enumerate()
            .filter(|(j, channel)| match facts.rmse.get(&channel.name) {
                Some(Some(error)) => *error >= deviation(record, *j),
                diverged => diverged.is_some(),
            })
            .map(|(_, channel)| channel.name.as_str())
            .collect();
        if !lost.is_empty() {
            warnings.push(format!(
                "the free run over {} predicts {} no better than a constant would: do not trust this model, however good its smoothed states look",
                facts.file,
                text::list(&lost)
            ));
        }
    }
    warnings
}

/// Standard deviation of a channel.
fn deviation(record: &Record, channel: usize) -> f64 {
    let values = || {
        let own = record.outputs.iter().skip(channel).step_by(record.d_y);
        own.filter(|v| !v.is_nan())
    };
    let count = values().count() as f64;
    let mean = values().sum::<f64>() / count;
    (values().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The command as it was given, in a form that a shell takes.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain = |c: char| c.is_alphanumeric() || "-_=./,:%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    format!("latens {}", words.collect::<Vec<_>>().join(" "))
}
