//! `latens check`: what records can tell about a model, before anything is learned from them.

use clap::Args;
use latens::Door;
use latens::record::Layout;
use latens_report::check::{Checked, Source};

use crate::failure::Failure;
use crate::{model, records, settings, text};

const AFTER_HELP: &str = "\
Example:
  latens check slide.toml log.csv --map q=position

A hidden state is determined where its standard deviation, with the networks' outputs unknown, is
below 30 % of its scale; it is seen where the measurements of a short window alone say as much.
`latens fit` makes the same check first and shows its warnings.

Exit codes: 0 done, warnings or not; 1 the data cannot be used; 2 wrong usage.";

/// Show what records can tell about a model, before anything is learned
///
/// Columns found, ranges, gaps and noise; which hidden states the measurements determine, and
/// when; how much of its arguments each network meets.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// A model file, or the name of a built-in system
    model: String,
    #[command(flatten)]
    tables: records::Tables,
    #[command(flatten)]
    held: settings::Held,
    /// Print one JSON object with all numbers instead of tables
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = arguments.held.apply(model::read(&arguments.model)?)?;
    let layout = Layout::of(&model);
    let mut sources = vec![];
    for path in &arguments.tables.data {
        let (record, table, columns) = arguments.tables.columns.open(path, &layout)?;
        let names = table.names().map(String::from).collect();
        sources.push(Source::new(table.source, record, names, columns));
    }
    let found = Checked::new(&model, sources)?;
    let door = Door::CommandLine;
    if arguments.json {
        return text::print_json(&found.output(&model, door));
    }
    text::print(&found.text(&model, door))
}
