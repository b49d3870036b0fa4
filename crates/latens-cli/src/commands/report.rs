//! `latens report`: a run as a page to look at.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use latens::Fit;
use latens::record::write_atomic;
use latens_report::{page, verdict};
use serde_json::json;

use crate::failure::Failure;
use crate::{output, text};

/// The page's name in a run folder.
pub const PAGE_FILE: &str = "report.html";

const AFTER_HELP: &str = "\
Examples:
  latens report run                       writes run/report.html
  latens report run-1 run-2 -o both.html  lays two runs over each other

The page is one file that asks no host for anything: verdict, states over time, the learned
equation, innovations, convergence, identifiability, scores, and the command that repeats the run.
All of it comes from the run folder; the data files need not be there any more. docs/guide/report.md
says how to read it.

Exit codes: 0 done, 1 error, 2 wrong usage.";

/// Show a run as a page that opens in any browser; several runs laid over each other
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Run folders that `latens fit` wrote; the first says which records are shown
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The HTML file to write [default: report.html in the run folder; comparison.html for several]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists; a run's own report.html is made again in any case
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let clock = Instant::now();
    let path = match (&arguments.output, arguments.runs.as_slice()) {
        (Some(path), _) => path.clone(),
        (None, [folder]) => folder.join(PAGE_FILE),
        (None, _) => "comparison.html".into(),
    };
    let replaces_page = arguments.output.is_none() && arguments.runs.len() == 1;
    output::free(&path, replaces_page || arguments.force)?;
    if replaces_page && path.is_symlink() {
        return Err(Failure::Message(format!(
            "{} is a link, and a page is written into the run alone; remove it, or choose another file with -o",
            path.display()
        )));
    }
    let runs = load(&arguments.runs)?;
    let html = page::html(&runs);
    write(&html, &path)?;
    let bytes = html.len();
    let shown = path.display();
    if arguments.json {
        let first = runs.iter().map(|run| {
            let found = verdict::of_run(run);
            json!({ "run": run.name, "alarms": found.alarms, "verdict": found.sentences })
        });
        let object = json!({
            "output": shown.to_string(),
            "bytes": bytes,
            "seconds": clock.elapsed().as_secs_f64(),
            "runs": first.collect::<Vec<_>>(),
        });
        return text::print(&format!("{object:#}\n"));
    }
    text::print(&format!("page written to {shown}, {} kB\n", bytes / 1000))
}

/// The runs in their folders.
pub fn load(folders: &[PathBuf]) -> Result<Vec<Fit>, Failure> {
    let fits = folders.iter().map(Fit::load);
    Ok(fits.collect::<Result<_, _>>()?)
}

/// Writes a page whole, or not at all.
pub fn write(html: &str, path: &Path) -> Result<(), Failure> {
    let written = write_atomic(path, |out| out.write_all(html.as_bytes()));
    written.map_err(|e| Failure::file("write", path, e))
}
