//! `latens fit`: learns a model's unknowns from records and writes a run folder.

use std::path::PathBuf;

use clap::Args;
use latens::fit::run::{self, About, Facts};
use latens::record::Record;
use latens::{Error, Model, solve};

use crate::failure::Failure;
use crate::progress::Display;
use crate::settings::Options;
use crate::{data, interrupt, model, summary, text, words};

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
    #[command(flatten)]
    data: data::Files,
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
    let records = arguments.data.read(&model)?;
    run::check(&arguments.output, arguments.force)?;
    let mut warnings = records.step_warnings(&model);
    for warning in &warnings {
        text::note(&format!("warning: {warning}"));
    }

    interrupt::install();
    let mut display = Display::new(&settings, arguments.quiet);
    let fit = solve::fit_validated(&model, records.data(), &settings, &mut display);
    let seconds = display.seconds();
    display.finish();
    let fit = fit?;
    warnings.append(&mut display.warnings);
    if interrupt::asked() {
        return Err(Error::Stopped.into());
    }

    let sources = records.sources()?;
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
    let doubts = records.test(&fit, &mut facts)?;
    let poor = score_warnings(&model, &facts, &records);
    let poor = poor.into_iter().chain(doubts);
    for warning in poor.chain(start_warning(&facts)) {
        text::note(&format!("warning: {warning}"));
        warnings.push(warning);
    }
    facts.warnings = warnings;
    run::save(&fit, &sources, &facts, &arguments.output, arguments.force)?;

    let folder = arguments.output.display().to_string();
    if arguments.json {
        let object = summary::json(&fit.model, &facts, &folder);
        return text::print(&format!("{object:#}\n"));
    }
    let table = summary::table(&fit.model, &facts);
    let words = words::summary(&fit, &facts);
    text::print(&format!("{table}\n{words}\nrun written to {folder}\n"))
}

/// Records that the fitted model cannot follow: worse than the mean of what was measured.
fn score_warnings(model: &Model, facts: &Facts, records: &data::Records) -> Vec<String> {
    let mut warnings = vec![];
    let tests: Vec<Record> = records.tests.iter().map(data::Test::predicted).collect();
    for (facts, record) in facts.records.iter().zip(records.all.iter().chain(&tests)) {
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
                "the free run over {}{} predicts {} no better than a constant would: do not trust this model, however good its smoothed states look",
                facts.file,
                match facts.role.as_str() {
                    "validate" => " (validation)",
                    "test" => " (test)",
                    _ => "",
                },
                text::list(&lost)
            ));
        }
    }
    warnings
}

/// No start worked, and the least bad is what there is.
fn start_warning(facts: &Facts) -> Option<String> {
    let kept = facts.attempts.iter().find(|a| a.kept)?;
    let why = kept.failure.as_ref()?;
    let tried = text::count(facts.attempts.len(), "start");
    Some(format!(
        "{tried} tried, none worked ({why}): the model or the data may be wrong; check units, signs and columns, or try --starts 8"
    ))
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
