//! `latens estimate`: the states of new records, with what a run has learned.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use latens::fit::{EstimateOptions, Estimation};
use latens::record::{Record, write_csv};
use latens::{Door, Fit};
use latens_report::outputs::{EstimateOutput, EstimatedRecord, Told};
use latens_report::summary;

use crate::failure::Failure;
use crate::text::Side;
use crate::{assignments, output, records, text};

const AFTER_HELP: &str = "\
Examples:
  latens estimate run new.csv
  latens estimate run new.csv --smooth -o smoothed.csv

The CSV has the record and beside it, for each state, <state>.filtered (or .smoothed) and <state>.std, its
standard deviation, in which the uncertainty of θ counts.

The consistency is the mean of ν²/s, the squared surprise at each measurement over what the filter
expected; far from 1 the bands are wrong. A fit takes its equations for all but exact. Where a record does not
follow them so closely, the process noise is loosened by what the likelihood of the whole record asks for,
and a warning says so; --loosen 1 keeps the fit's.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 the filter diverged.";

/// Estimate the hidden states of new records with a run
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    data: records::Use,
    /// Let each estimate look at the whole record (smoother); else only at the past (filter)
    #[arg(long)]
    smooth: bool,
    /// Factor on the standard deviation of the process noise, as the fit left it [default: the power of
    /// ten, from 1 on, that the likelihood of the record asks for]
    #[arg(long, value_name = "FACTOR", value_parser = assignments::positive)]
    loosen: Option<f64>,
    /// The CSV file to write; for several records _1, _2, … is added to its name
    #[arg(short, long, value_name = "FILE", default_value = "estimate.csv")]
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
    let paths = output::for_records(&arguments.output, arguments.data.count(), arguments.force)?;
    let sources = arguments.data.read(&fit.model)?;
    for source in &sources {
        fit.predictor().check(&source.record, 0)?;
    }
    let options = EstimateOptions {
        smooth: arguments.smooth,
        loosen: arguments.loosen,
    };
    let (mut out, mut objects, mut warnings) = (String::new(), vec![], vec![]);
    for (source, path) in sources.iter().zip(&paths) {
        let found = fit.estimate(source, &options)?;
        write_csv(path, &found.table(&fit, &source.record)?)?;
        out += &format!(
            "\n{}, {}, consistency {}\n{}",
            source.file,
            text::count(source.record.len(), "sample"),
            text::number(found.estimated.consistency),
            table(&fit, &source.record, &found)
        );
        objects.push(EstimatedRecord {
            facts: found.facts,
            output: path.display().to_string(),
        });
        warnings.extend(found.warnings);
    }
    warnings.iter().for_each(text::warning);
    let mode = if arguments.smooth {
        "smoother"
    } else {
        "filter"
    };
    if arguments.json {
        return text::print_json(&EstimateOutput {
            run: fit.name,
            mode: mode.into(),
            seconds: clock.elapsed().as_secs_f64(),
            warnings: Told::all(&warnings, Door::CommandLine),
            records: objects,
        });
    }
    text::print(&format!(
        "{}: {mode} by {}\n{out}  (std: root mean square of the standard deviations; nRMSE: against the truth, where the record has it)\n\nwritten to {}\n",
        summary::title(&fit.model),
        fit.name,
        output::names(&paths)
    ))
}

/// Each state's mean band, and its error where the truth is known.
fn table(fit: &Fit, record: &Record, found: &Estimation) -> String {
    let model = &fit.model;
    let mut rows = vec![["", "", "", "std", "nRMSE"].map(String::from).to_vec()];
    for (i, state) in model.states.iter().enumerate() {
        let deviations = found.estimated.deviations.column(i);
        let square: f64 = deviations.map(|std| std * std).sum();
        let error = found.facts.nrmse.get(&format!("truth_{}", state.name));
        rows.push(vec![
            state.name.clone(),
            state.unit.clone(),
            summary::kind(model, i).into(),
            text::number((square / record.len() as f64).sqrt()),
            error.map_or(String::new(), |e| text::error(*e)),
        ]);
    }
    let mut sides = vec![Side::Left; 3];
    sides.extend([Side::Right; 2]);
    text::table(2, &sides, &rows)
}
