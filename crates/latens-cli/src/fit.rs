//! `latens fit`: learns a model's unknowns from records and writes a run folder.

use std::path::{Path, PathBuf};

use clap::Args;
use latens::fit::run::{self, About, Facts};
use latens::solve;
use latens_report::{warnings, words};
use latens_rivals::Trained;

use crate::failure::Failure;
use crate::progress::Display;
use crate::settings::Options;
use crate::{data, interrupt, model, report, rivals, summary, text};

const OUTPUT: &str = "Output";

const AFTER_HELP: &str = "\
The run folder holds model.toml, weights.safetensors, fit.json (every setting, seed, checksum and
score), states.csv and report.html, a page to look at. It is written whole or not at all.

Every setting can stand in the [fit] section of the model file, under its name here with _ for -;
the command line overrides it. Ctrl-C ends a fit after the iteration or epoch that it is in and
writes what it has; --resume goes on with it.

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
    /// Go on with a run that was stopped, or with more --epochs, on the same model and records; the
    /// run is replaced by what comes of it, unless -o names another folder. Settings are the run's,
    /// but for those given here; of several --starts the kept one goes on
    #[arg(long, value_name = "RUN", help_heading = OUTPUT, conflicts_with = "settings")]
    resume: Option<PathBuf>,
    /// The run folder to write [default: run]
    #[arg(short, long, value_name = "FOLDER", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Replace the folder if it holds a run already
    #[arg(long, help_heading = OUTPUT)]
    force: bool,
    /// Print one JSON object instead of a table
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Write no report.html
    #[arg(long, help_heading = OUTPUT)]
    no_report: bool,
    /// Show no progress
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    options: Options,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = model::read(&arguments.model)?;
    let records = arguments.data.read(&model)?;
    let sources = records.sources()?;
    let resumed = arguments.resume.as_ref().map(run::load).transpose()?;
    let settings = match &resumed {
        Some(run) => {
            run.belongs_to(&model, &sources, records.data().train.len())?;
            arguments.options.resumed(&model, run)?
        }
        None => arguments.options.settings(&model)?,
    };
    let output = arguments.output.as_ref().or(arguments.resume.as_ref());
    let output = output.map_or(Path::new("run"), PathBuf::as_path);
    let force = arguments.force || arguments.resume.as_deref() == Some(output);
    if settings.solver.is_rival() {
        let asked = (resumed.is_some(), !records.tests.is_empty());
        rivals::check(&settings, asked, output, force)?;
    } else {
        run::check(output, force)?;
    }
    let mut said = records.step_warnings(&model);
    for warning in &said {
        text::note(&format!("warning: {warning}"));
    }

    interrupt::install("stopping soon; what was learned so far will be written");
    let mut display = Display::new(&settings, arguments.quiet);
    let data = records.data();
    let trained = match &resumed {
        _ if settings.solver.is_rival() => {
            latens_rivals::train(&model, data, &settings, &mut display)
        }
        Some(run) => solve::resume(run, data, &settings, &mut display).map(Trained::from),
        None => solve::fit_validated(&model, data, &settings, &mut display).map(Trained::from),
    };
    let seconds = display.seconds();
    display.finish();
    let trained = trained?;
    said.append(&mut display.warnings);
    let fit = match trained {
        Trained::Fit(fit) => *fit,
        Trained::Other(outcome) => {
            interrupt::writing();
            let about = (seconds, said);
            rivals::report(&outcome, &sources, &settings, about, output, arguments.json)?;
            return interrupted();
        }
    };

    let mut facts = Facts::new(
        &fit,
        &sources,
        About {
            model_file: arguments.model.clone(),
            command: text::command_line(),
            seconds,
            threads: settings.solver.threads(),
            warnings: vec![],
        },
    );
    let doubts = records.test(&fit, &mut facts)?;
    for warning in warnings::of_fit(&fit, &facts, &records.each(), doubts) {
        text::note(&format!("warning: {warning}"));
        said.push(warning);
    }
    facts.warnings = said;
    interrupt::writing();
    run::save(&fit, &sources, &facts, output, force)?;
    let page = match arguments.no_report {
        true => None,
        false => Some(report::of_folder(output)?.display().to_string()),
    };

    let folder = output.display().to_string();
    if arguments.json {
        let object = summary::json(&fit.model, &facts, &folder, page.as_deref());
        text::print(&format!("{object:#}\n"))?;
    } else {
        let table = summary::table(&fit.model, &facts);
        let words = words::summary(&fit.model, &facts).into_iter();
        let words: String = words.map(|line| format!("  {line}\n")).collect();
        let stopped = words::stopped(&facts, &folder).map_or(String::new(), |s| s + "\n");
        text::print(&format!(
            "{table}\nin short\n{words}\nrun written to {folder}{}\n{stopped}",
            page.map_or("", |_| ", with its page report.html")
        ))?;
    }
    interrupted()
}

/// Whether somebody ended what was then written all the same.
fn interrupted() -> Result<(), Failure> {
    match interrupt::asked() {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}
