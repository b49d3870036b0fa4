//! `latens predict`: a run's free run over new records, from the state that their first samples show.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use latens::fit::{PredictOptions, PredictionFacts};
use latens::record::{Record, write_csv};
use latens::{Door, Fit, Role};
use latens_report::outputs::{PredictOutput, PredictedRecord, Told};
use latens_report::summary;

use crate::failure::Failure;
use crate::text::Side;
use crate::{assignments, output, records, text};

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
    data: records::Use,
    #[command(flatten)]
    warm_up: records::WarmUp,
    /// Unknown constants to estimate again on the first samples: --adapt friction,gain
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    adapt: Vec<String>,
    /// How far an adapted constant may have changed since the fit: a standard deviation as a part of
    /// its value (of its `scale` in the model file where that is larger); 0 takes the fit's
    /// covariance alone
    #[arg(long, value_name = "PART", default_value_t = 0.1, requires = "adapt",
          value_parser = assignments::not_negative)]
    adapt_prior: f64,
    /// The CSV file to write; for several records _1, _2, … is added to its name
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
    let fit = arguments.data.fit()?;
    let options = PredictOptions {
        warm_up: arguments.warm_up.given(),
        adapt: arguments.adapt.clone(),
        adapt_prior: arguments.adapt_prior,
    };
    let adapts = !fit.constant_places(&options.adapt)?.is_empty();
    let paths = output::for_records(&arguments.output, arguments.data.count(), arguments.force)?;
    let sources = arguments.data.read(&fit.model)?;
    for source in &sources {
        let warm_up = arguments.warm_up.of(&source.record);
        fit.predictor().check(&source.record, warm_up)?;
    }
    let mut warnings = fit.warnings_of_use(adapts);
    let (mut out, mut objects) = (String::new(), vec![]);
    for (source, path) in sources.iter().zip(&paths) {
        let predicted = fit.predict(source, &options)?;
        warnings.extend(predicted.warnings);
        let table = predicted.prediction.table(&fit.model, &source.record)?;
        write_csv(path, &table)?;
        out += &shown(&fit, &predicted.facts, &source.record);
        objects.push(PredictedRecord {
            facts: predicted.facts,
            output: path.display().to_string(),
        });
    }
    warnings.iter().for_each(text::warning);
    if arguments.json {
        return text::print_json(&PredictOutput {
            run: fit.name,
            solver: fit.facts.solver,
            seed: fit.facts.seed,
            seconds: clock.elapsed().as_secs_f64(),
            warnings: Told::all(&warnings, Door::CommandLine),
            records: objects,
        });
    }
    text::print(&format!(
        "{}: predicted by {}\n{out}\nwritten to {}\n",
        summary::title(&fit.model),
        fit.name,
        output::names(&paths)
    ))
}

fn shown(fit: &Fit, facts: &PredictionFacts, record: &Record) -> String {
    let scores = &facts.record;
    let mut out = format!(
        "\n{}, {}{}\n",
        scores.file,
        summary::predicted_part(scores),
        match scores.role {
            Role::Train => "; the fit learned from this file",
            Role::Validate => "; the fit chose by this file",
            Role::Test => "",
        }
    );
    out += &summary::predicted(&fit.model, scores);
    if !facts.adapted.is_empty() {
        let samples = text::count(record.len() - scores.scored, "sample");
        out += &format!("  adapted on the first {samples}\n");
        let rows = facts.adapted.iter().map(|c| {
            let (before, std) = text::uncertain(c.before, c.before_std);
            let (after, after_std) = text::uncertain(c.after, c.after_std);
            vec![
                c.name.clone(),
                format!("{before} ± {std}"),
                "now".into(),
                format!("{after} ± {after_std}"),
                c.unit.clone(),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        out += &text::table(4, &[Side::Left; 5], &rows);
    }
    out
}
