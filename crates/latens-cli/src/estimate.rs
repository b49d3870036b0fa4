//! `latens estimate`: the states of new records, with what a run has learned.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use latens::estimate::{Estimated, Loosened, Mode};
use latens::fit::run::Run;
use latens::record::write_csv;
use latens::score::named::{Scores, state_scores};
use latens::{Record, score};
use latens_report::warnings;
use serde_json::json;

use crate::failure::Failure;
use crate::text::Side;
use crate::{assignments, data, output, summary, text};

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
    data: data::Use,
    /// Let each estimate look at the whole record (smoother); else only at the past (filter)
    #[arg(long)]
    smooth: bool,
    /// Factor on the standard deviation of the process noise, as the fit left it [default: the power of
    /// ten, from 1 on, that the likelihood of the record asks for]
    #[arg(long, value_name = "FACTOR", value_parser = assignments::positive)]
    loosen: Option<f64>,
    /// The CSV file to write; for several records _1, _2, … is put behind its name
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
    let (run, folder) = arguments.data.run()?;
    let model = &run.model;
    let paths = output::each(&arguments.output, arguments.data.count(), arguments.force)?;
    let records = arguments.data.read(model)?;
    let mode = match arguments.smooth {
        true => Mode::Smoother,
        false => Mode::Filter,
    };
    let predictor = run.predictor();
    for (_, record) in &records {
        predictor.check(record, 0)?;
    }
    let (mut out, mut objects, mut warnings) = (String::new(), vec![], vec![]);
    for ((file, record), path) in records.iter().zip(&paths) {
        let loosened = match arguments.loosen {
            Some(factor) => Loosened(factor),
            None => predictor.loosened(record),
        };
        let estimated = predictor.estimate(record, mode, loosened)?;
        write_csv(path, &estimated.table(model, record, mode)?)?;
        let source = data::source(file, record)?;
        let asked = arguments.loosen.is_some();
        let said = warnings::of_estimate(&run, &source.file, &estimated, (loosened, asked));
        warnings.extend(said);
        let [rmse, nrmse] = [score::rmse, score::nrmse]
            .map(|measure| state_scores(model, record, &estimated.states, measure));
        out += &format!(
            "\n{}, {}, consistency {}\n{}",
            source.file,
            text::count(record.len(), "sample"),
            text::number(estimated.consistency),
            table(&run, record, &estimated, &nrmse)
        );
        objects.push(json!({
            "file": source.file,
            "role": run.role(&source.sha256),
            "samples": record.len(),
            "loosened": loosened.0,
            "consistency": Some(estimated.consistency).filter(|c| c.is_finite()),
            "rmse": rmse,
            "nrmse": nrmse,
            "output": path.display().to_string(),
        }));
    }
    for warning in &warnings {
        text::note(&format!("warning: {warning}"));
    }
    let how = match mode {
        Mode::Filter => "filter",
        Mode::Smoother => "smoother",
    };
    if arguments.json {
        let object = json!({
            "run": folder,
            "mode": how,
            "seconds": clock.elapsed().as_secs_f64(),
            "warnings": warnings,
            "records": objects,
        });
        return text::print(&format!("{object:#}\n"));
    }
    text::print(&format!(
        "{}: {how} by {folder}\n{out}  (std: root mean square of the standard deviations; nRMSE: against the truth, where the record has it)\n\nwritten to {}\n",
        summary::title(model),
        output::names(&paths)
    ))
}

/// Each state's mean band, and its error where the truth is known.
fn table(run: &Run, record: &Record, estimated: &Estimated, nrmse: &Scores) -> String {
    let (model, n) = (&run.model, run.model.states.len());
    let mut rows = vec![["", "", "", "std", "nRMSE"].map(String::from).to_vec()];
    for (i, state) in model.states.iter().enumerate() {
        let own = estimated.deviations.iter().skip(i).step_by(n);
        let square: f64 = own.map(|std| std * std).sum();
        let error = nrmse.get(&format!("truth_{}", state.name));
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
