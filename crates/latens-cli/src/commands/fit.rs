//! `latens fit`: learns a model's unknowns from records and writes a folder.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use latens::folder::{self, Claim};
use latens::solve::Equipment;
use latens::solve::kept::Checkpoints;
use latens::solve::workers::{Processes, Workers};
use latens::{Door, Error, Fit, Job};
use latens_lab::rivals::without_fit::without_fit;
use latens_report::outputs::FitOutput;
use latens_report::{page, summary, words};

use crate::failure::Failure;
use crate::progress::Display;
use crate::settings::Options;
use crate::{interrupt, model, records, text};

use super::{report, rivals};

const OUTPUT_HEADING: &str = "Output";
const WORK_HEADING: &str = "Work";

const EXAMPLE: &str = "\
Example:
  latens fit slide.toml record.csv -o run
  latens fit slide.toml monday.csv tuesday.csv --test friday.csv --map q=position -o run

`latens fit --help` has every setting, what is written, and the exit codes.";

const AFTER_HELP: &str = "\
Example:
  latens fit slide.toml monday.csv tuesday.csv --test friday.csv --map q=position -o run

The folder holds model.toml, weights.safetensors, fit.json (every setting, seed, checksum and
score), states.csv and report.html, a page to look at. It is written whole or not at all.

Every setting can stand in the [fit] section of the model file, under its name here with _ for -;
the command line overrides it. Ctrl-C, SIGTERM and SIGHUP end a fit after the iteration or pass that
it is in; what it has is written. On its way a fit keeps each stage or pass that is done in
FOLDER.unfinished: --resume FOLDER goes on with a fit that was stopped or killed, and so does the
same command again; what comes of it is the same to the last bit. The folder is gone in the end.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the solver diverged, 4 the fit is written and not to
be trusted (no start worked, a free run is no better than a constant or leaves the finite numbers, or
readings are at fault), 130 interrupted.";

/// Learn a model's networks and unknown constants from records
///
/// Columns of the data are matched to the model's inputs and measurements by name; columns
/// `truth_<state>`, where there are any, serve for scoring only.
#[derive(Args)]
#[command(after_help = EXAMPLE, after_long_help = AFTER_HELP)]
pub struct Arguments {
    /// A model file, or the name of a built-in system
    model: String,
    #[command(flatten)]
    data: records::Files,
    /// Go on with a fit that was stopped or killed, or with more --passes, on the same model and records;
    /// it is replaced by what comes of it, unless -o names another folder. Settings are its own, but for
    /// those given here
    #[arg(long, value_name = "FOLDER", help_heading = OUTPUT_HEADING, conflicts_with = "settings", hide_short_help = true)]
    resume: Option<PathBuf>,
    /// The folder to write [default: run]
    #[arg(short, long, value_name = "FOLDER", help_heading = OUTPUT_HEADING)]
    output: Option<PathBuf>,
    /// Replace the folder if it holds a fit already
    #[arg(long, help_heading = OUTPUT_HEADING)]
    force: bool,
    /// Print one JSON object instead of a table
    #[arg(long, help_heading = OUTPUT_HEADING)]
    json: bool,
    /// Write no report.html
    #[arg(long, help_heading = OUTPUT_HEADING, hide_short_help = true)]
    no_report: bool,
    /// Show no progress
    #[arg(short, long, help_heading = OUTPUT_HEADING, hide_short_help = true)]
    quiet: bool,
    /// Who has the records: processes of this machine, each on one thread, in place of the threads of one;
    /// what comes of it is the same to the last bit, and a process that dies is replaced
    #[arg(long, value_enum, help_heading = WORK_HEADING, hide_short_help = true)]
    backend: Option<Backend>,
    /// How many processes there are; as many as the machine has cores unless given
    #[arg(long, value_name = "N", help_heading = WORK_HEADING, hide_short_help = true, requires = "backend")]
    workers: Option<std::num::NonZeroUsize>,
    #[command(flatten)]
    options: Options,
}

/// Where the records of a fit live, other than in its own process.
#[derive(Clone, Copy, ValueEnum)]
enum Backend {
    Processes,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = model::read(&arguments.model)?;
    let output = arguments.output.as_ref().or(arguments.resume.as_ref());
    let output = output.map_or(Path::new("run"), PathBuf::as_path);
    let in_place = arguments.resume.as_deref().is_some_and(|r| same(r, output));
    let force = arguments.force || in_place;
    let solver = arguments.options.solver(&model)?;
    if let Some(rival) = solver.as_deref().and_then(without_fit) {
        let asked = rivals::Asked {
            rival,
            resumes: arguments.resume.is_some(),
            tests: arguments.data.has_tests(),
            output,
            force,
            quiet: arguments.quiet,
            json: arguments.json,
        };
        return rivals::run(model, &arguments.data, &arguments.options, &asked);
    }
    let mut job = Job::new_unset(model);
    job.model_file.clone_from(&arguments.model);
    job.command = text::command_line();
    if let Some(resumed) = &arguments.resume {
        job.begun = folder::begun(resumed)?;
        if job.begun.is_none() {
            job.resumed = Some(Fit::load(resumed)?);
        }
    }
    let layer = arguments.options.configure(&mut job)?;
    arguments.data.read_into(&mut job)?;
    job.validate_tail(layer.validate_tail)?;
    job.check()?;
    let claim = Claim::new(output)?;
    claim.check(force)?;
    if let (Some(resumed), true) = (&arguments.resume, job.begun.is_some()) {
        if !in_place {
            claim.copy_checkpoints(resumed)?;
        }
        claim.check_checkpoints(&job.model, job.data())?;
    }
    let unfinished = claim.checkpoints(&job.begun(), |error| {
        text::note(&format!(
            "warning: {error}; the fit goes on, but would not outlive a kill"
        ));
    })?;
    if unfinished.goes_on() && !arguments.quiet {
        text::note("going on from the checkpoints of a fit that was not finished");
    }

    interrupt::install("stopping soon; what was learned so far will be written");
    let mut display = Display::new(&job.settings, arguments.quiet)?;
    let workers = arguments.workers()?;
    let equipment = Equipment {
        checkpoints: Checkpoints::new(&unfinished),
        workers: workers.as_ref(),
    };
    let outcome = job.run_with(equipment, &mut display);
    drop(workers);
    display.finish();
    if matches!(outcome, Err(Error::Diverged(_))) {
        // it would diverge again
        claim.forget_checkpoints();
    }
    let mut fit = outcome?.fit;
    interrupt::writing();
    fit.name = output.display().to_string();
    claim.write(&fit, force)?;
    if !fit.facts.stopped {
        claim.forget_checkpoints();
    }
    let page = if arguments.no_report {
        None
    } else {
        let path = output.join(report::PAGE_FILE);
        report::write(&page::html(std::slice::from_ref(&fit)), &path)?;
        Some(path.display().to_string())
    };
    tell(&fit, page.as_deref(), arguments.json)?;
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    if fit.facts.is_distrusted() {
        return Err(Failure::Distrusted);
    }
    Ok(())
}

impl Arguments {
    /// Processes of this program, where they are asked for.
    fn workers(&self) -> Result<Option<Workers>, Failure> {
        let Some(Backend::Processes) = self.backend else {
            return Ok(None);
        };
        let program = std::env::current_exe();
        let program = program.map_err(|e| Failure::file("find", Path::new("latens"), e))?;
        let command = vec![program.display().to_string(), "worker".into()];
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.map_or_else(cores, usize::from);
        Ok(Some(Workers::new(Processes::new(command, workers, 1))))
    }
}

/// Whether two paths are one, there or not.
fn same(a: &Path, b: &Path) -> bool {
    let [a, b] = [a, b].map(|path| {
        path.canonicalize()
            .or_else(|_| std::path::absolute(path))
            .ok()
    });
    a == b
}

/// Says what came of a fit.
fn tell(fit: &Fit, page: Option<&str>, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return text::print_json(&FitOutput {
            run: fit.name.clone(),
            report: page.map(String::from),
            found: summary::found(&fit.model, &fit.facts, Door::CommandLine),
            note: None,
        });
    }
    let table = summary::table(&fit.model, &fit.facts);
    let words = words::summary(&fit.model, &fit.facts).into_iter();
    let words: String = words.map(|line| format!("  {line}\n")).collect();
    let stopped = words::stopped(&fit.facts, &fit.name).map_or(String::new(), |s| s + "\n");
    let folder = &fit.name;
    let with_page = if page.is_some() {
        ", with its page report.html"
    } else {
        ""
    };
    text::print(&format!(
        "{table}\nin short\n{words}\nfit written to {folder}{with_page}\n{stopped}"
    ))
}
