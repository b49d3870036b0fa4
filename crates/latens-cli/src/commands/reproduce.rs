//! `latens reproduce`: the paper's evidence, all methods on all systems, from one command.

use std::path::PathBuf;

use clap::Args;
use latens_lab::host::{self, Host};
use latens_lab::reproduce::{self, Options};
use serde_json::json;

use crate::failure::Failure;
use crate::{interrupt, text};

const AFTER_HELP: &str = "\
For example, the paper's first system, in under three minutes on two cores:
  latens reproduce --systems harmonic-oscillator --seeds 1 -o oscillator
and the whole evidence, an hour and a half of processor time:
  latens reproduce --seeds 3 --budget 1 -o evidence

Each cell is trained on one thread, for --budget minutes at the most, from an unknown hidden start (unless
its method says otherwise), and scored by the free run of what it learned. A grid that was stopped goes on
with --resume; whatever is done is in reproduce.html, a page that opens in any browser, in table.md,
table.csv and results.json, and in figures as SVG with the data that it was drawn from.

Exit codes: 0 done (diverged cells are results too), 1 error, 2 wrong usage, 130 interrupted.";

/// Run the paper's comparison: all methods on all systems, with seeds and statistics
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Built-in systems; emps needs its data set in shared/datasets above this folder, or in
    /// LATENS_DATASETS [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    systems: Vec<String>,
    /// as-printed, alternating, joint, batch, node, node-lstm, spinode, rm, pr-ssm; and
    /// node-true-start, node-lstm-true-start, spinode-true-start, which are told the hidden start,
    /// and node-lstm-stateless, whose memory is the last five states
    /// [default: the first nine]
    #[arg(long, value_name = "NAME", value_delimiter = ',', num_args = 1..)]
    methods: Vec<String>,
    /// Seeds 1 to N of each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Minutes of processor time that a cell may train; it is then scored as it is
    #[arg(long, value_name = "MINUTES", default_value_t = 0.6, value_parser = crate::assignments::positive)]
    budget: f64,
    /// The folder to write
    #[arg(short, long, value_name = "FOLDER", default_value = "reproduced")]
    output: PathBuf,
    /// Go on in a folder that has cells already: they are kept, others are added
    #[arg(long)]
    resume: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    interrupt::install("stopping; cells that are done are kept, and --resume goes on");
    host::install(Host {
        note: text::note,
        asked_to_stop: interrupt::asked,
    });
    let done = reproduce::run(&Options {
        systems: arguments.systems.clone(),
        methods: arguments.methods.clone(),
        seeds: arguments.seeds,
        budget: arguments.budget,
        output: arguments.output.clone(),
        resume: arguments.resume,
        quiet: arguments.quiet,
    })?;
    let (folder, page) = (arguments.output.display(), done.page.display());
    if arguments.json {
        let object = json!({
            "folder": folder.to_string(),
            "page": page.to_string(),
            "stopped": done.stopped,
            "results": done.scores,
        });
        text::print(&format!("{object:#}\n"))?;
    } else {
        let summary = &done.summary;
        text::print(&format!(
            "{summary}\npage with all figures: {page}\ntables, results, figures and their data: {folder}\n"
        ))?;
    }
    if done.stopped {
        return Err(Failure::Interrupted);
    }
    Ok(())
}
