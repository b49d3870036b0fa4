//! `latens predict`: a run's free run over new records, from the state that their first samples show.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use latens::Record;
use latens::fit::run::{Change, Predicted, RecordFacts, Run};
use latens::record::write_csv;
use latens_report::warnings;
use serde_json::json;

use crate::failure::Failure;
use crate::text::Side;
use crate::{assignments, data, output, summary, text};

const AFTER_HELP: &str = "\
Example:
  latens predict run new.csv --warmup 200
  latens predict run new.csv --warmup 6000 --adapt friction

The CSV has the record from its first predicted sample on, and beside it <state>.predicted and .std,
<channel>.output and .output_std. Standard deviations count what the fit left open of θ and what the
first samples leave open of the start; the noise of the sensors is not in them.

Adapting: the named constants are estimated again on the first samples, everything else stays as it was
fitted. They are held to the fit by its own covariance of them, plus a change between records of
--adapt-prior times their value: how well the fit knew a constant in its own records says nothing about
how far it has changed since.

Exit codes: 0 done, 1 error, 2 wrong usage.";

/// Predict new records with a run: find the start in their first samples, then run free
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    data: data::Use,
    #[command(flatten)]
    warm_up: data::WarmUp,
    /// Unknown constants to estimate again on the first samples: --adapt friction,gain
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    adapt: Vec<String>,
    /// How far an adapted constant may have changed since the fit: a standard deviation as a part of
    /// its value (of its `scale` in the model file where that is larger); 0 takes the fit's
    /// covariance alone
    #[arg(long, value_name = "PART", default_value_t = 0.1, requires = "adapt",
          value_parser = assignments::not_negative)]
    adapt_prior: f64,
    /// The CSV file to write; for several records _1, _2, … is put behind its name
    #[arg(short, long, value_name = "FILE", default_value = "prediction.csv")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let clock = Instant::now();
    let (run, folder) = arguments.data.run()?;
    let model = &run.model;
    let constants = run.constants(&arguments.adapt)?;
    let paths = output::each(&arguments.output, arguments.data.count(), arguments.force)?;
    let records = arguments.data.read(model)?;
    for (_, record) in &records {
        run.predictor()
            .check(record, arguments.warm_up.of(record))?;
    }
    let mut said = warnings::of_run(&run, &folder, !constants.is_empty());
    let (mut out, mut objects) = (String::new(), vec![]);
    for ((file, record), path) in records.iter().zip(&paths) {
        let warm_up = arguments.warm_up.of(record);
        let source = data::source(file, record)?;
        let adapt = (constants.as_slice(), arguments.adapt_prior);
        let Predicted {
            prediction,
            facts,
            changes,
            doubts,
        } = run.predicted(&source, warm_up, adapt)?;
        said.extend(doubts);
        write_csv(path, &prediction.table(model, record)?)?;
        out += &shown(&run, &facts, &changes, record);
        objects.push(object(&facts, warm_up, prediction.outside, &changes, path));
    }
    for warning in &said {
        text::note(&format!("warning: {warning}"));
    }
    if arguments.json {
        let object = json!({
            "run": folder,
            "solver": run.facts.solver.name(),
            "seed": run.facts.seed,
            "seconds": clock.elapsed().as_secs_f64(),
            "warnings": said,
            "records": objects,
        });
        return text::print(&format!("{object:#}\n"));
    }
    text::print(&format!(
        "{}: predicted by {folder}\n{out}\nwritten to {}\n",
        summary::title(model),
        output::names(&paths)
    ))
}

fn shown(run: &Run, facts: &RecordFacts, changes: &[Change], record: &Record) -> String {
    let mut out = format!(
        "\n{}, {}{}\n",
        facts.file,
        summary::predicted_part(facts),
        match facts.role.as_str() {
            "train" => "; the fit learned from this file",
            "validate" => "; the fit chose by this file",
            _ => "",
        }
    );
    out += &summary::predicted(&run.model, facts);
    if !changes.is_empty() {
        let samples = text::count(record.len() - facts.scored, "sample");
        out += &format!("  adapted on the first {samples}\n");
        let rows: Vec<Vec<String>> = changes
            .iter()
            .map(|c| {
                let (before, std) = text::uncertain(c.before.value, c.before.std);
                let (after, after_std) = text::uncertain(c.after.value, c.after.std);
                vec![
                    c.before.name.clone(),
                    format!("{before} ± {std}"),
                    "now".into(),
                    format!("{after} ± {after_std}"),
                    c.before.unit.clone(),
                ]
            })
            .collect();
        out += &text::table(4, &[Side::Left; 5], &rows);
    }
    out
}

fn object(
    facts: &RecordFacts,
    warm_up: usize,
    outside: f64,
    changes: &[Change],
    path: &std::path::Path,
) -> serde_json::Value {
    let mut object = summary::record_json(facts);
    let changes: Vec<_> = changes
        .iter()
        .map(|c| {
            json!({
                "name": c.before.name,
                "unit": c.before.unit,
                "before": c.before.value,
                "before_std": c.before.std,
                "after": c.after.value,
                "after_std": c.after.std,
            })
        })
        .collect();
    object["warmup"] = json!(warm_up);
    object["outside"] = json!(outside);
    object["adapted"] = json!(changes);
    object["output"] = json!(path.display().to_string());
    object
}
