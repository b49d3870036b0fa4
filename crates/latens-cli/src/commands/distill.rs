//! `latens distill`: formulas in place of a run's networks.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use latens::record::write_atomic;
use latens::{Error, Fit};
use latens_distill::{Distilled, Options, Ranked, Step, Watch, distill};
use latens_report::outputs::DistillOutput;

use crate::failure::Failure;
use crate::{interrupt, text};

const AFTER_HELP: &str = "\
Examples:
  latens distill run                            formulas for the networks of a run
  latens distill run -o formulas                a model file of each, ready for `latens fit`, and their page
  latens distill run --try \"a*v + b*tanh(v/c)\"  a formula of your own among them

Formulas are found from what the posterior of the network allows where training took it. Each of the best
is put in its place and fitted again to the records of the run; from the likeliest of these further ones are
grown, as the records ask for them. The table has what they come to, best first, and says what the data cannot
tell apart. A formula of your own is written in the
arguments of the network (the k-th is also `argk`); other names are constants.

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted (what was fitted by then is shown and
written).";

/// Find formulas for what the networks of a run have learned, and fit each again in their place
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// A run folder that `latens fit` wrote
    run: PathBuf,
    /// Candidates that are fitted again, before others are grown from them
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=100))]
    candidates: u16,
    /// A formula to try beside those that are found; of a run with one network of one output; may be
    /// repeated
    #[arg(long = "try", value_name = "FORMULA")]
    proposed: Vec<String>,
    /// A folder for a model file of each formula, 1.toml is the best, and for their page
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// The page in the folder of model files.
const PAGE_FILE: &str = "report.html";

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let fit = Fit::load(&arguments.run)?;
    let place = arguments.output.as_deref();
    if let Some(place) = place {
        check(place, arguments)?;
    }
    interrupt::install("stopping soon; what was fitted so far will be shown");
    let options = Options {
        candidates: arguments.candidates.into(),
        proposed: arguments.proposed.clone(),
    };
    let watch = Shown {
        is_quiet: arguments.quiet,
    };
    let found = distill(&fit, &options, &watch)?;
    interrupt::writing();
    let files = match place {
        Some(place) => write(place, &fit, &found)?,
        None => vec![],
    };
    let interrupted = found.stopped;
    if arguments.json {
        text::print_json(&DistillOutput {
            run: fit.name.clone(),
            seconds: started.elapsed().as_secs_f64(),
            files,
            found,
        })?;
    } else {
        text::print(&table(&fit, &found, started.elapsed().as_secs_f64(), place))?;
    }
    if interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

/// Whether files that are to be written are there already.
fn check(place: &Path, arguments: &Arguments) -> Result<(), Failure> {
    // how many there will be nobody knows yet
    let numbered = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_number = stem.is_some_and(|stem| stem.parse::<u32>().is_ok());
        is_number && path.extension().is_some_and(|ext| ext == "toml")
    };
    let files = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
    files.sort();
    let existing = files
        .into_iter()
        .find(|path| numbered(path) || path.ends_with(PAGE_FILE));
    match existing {
        Some(path) if !arguments.force => Err(Error::Setting(format!(
            "{} exists; name another folder, or overwrite with ⟦force⟧",
            path.display()
        ))
        .into()),
        _ => Ok(()),
    }
}

/// A model file of each formula, and the page.
fn write(place: &Path, fit: &Fit, found: &Distilled) -> Result<Vec<String>, Failure> {
    let failed = |action: &'static str, path: &Path, source| Error::Io {
        action,
        path: path.into(),
        source,
    };
    std::fs::create_dir_all(place).map_err(|e| failed("make", place, e))?;
    let mut files = vec![];
    for formula in &found.formulas {
        let path = place.join(format!("{}.toml", formula.rank));
        let written = write_atomic(&path, |out| out.write_all(formula.model.as_bytes()));
        written.map_err(|e| failed("write", &path, e))?;
        files.push(path.display().to_string());
    }
    let path = place.join(PAGE_FILE);
    let page = latens_report::formulas::html(fit, found, true);
    let written = write_atomic(&path, |out| out.write_all(page.as_bytes()));
    written.map_err(|e| failed("write", &path, e))?;
    Ok(files)
}

/// Says how far it is.
struct Shown {
    is_quiet: bool,
}

impl Watch for Shown {
    fn step(&self, step: Step) {
        if !self.is_quiet {
            text::note(&step.to_string());
        }
    }

    fn stops(&self) -> bool {
        interrupt::asked()
    }
}

fn table(fit: &Fit, found: &Distilled, seconds: f64, place: Option<&Path>) -> String {
    let error = |e: Option<f64>| e.map_or("–".to_string(), |e| text::error(Some(e)));
    let evidence = |e: Option<f64>| e.map_or("–".to_string(), |e| format!("{e:.0}"));
    let validated = found.network_validation.is_some();
    let mut header = vec!["", "size", "constants", "ln p", "free run"];
    if validated {
        header.push("validation");
    }
    header.push("formula");
    let mut rows: Vec<Vec<String>> = vec![header.into_iter().map(String::from).collect()];
    let mut row = |name: String,
                   size: String,
                   constants: String,
                   reached: [Option<f64>; 3],
                   formula: String| {
        let mut row = vec![
            name,
            size,
            constants,
            evidence(reached[0]),
            error(reached[1]),
        ];
        if validated {
            row.push(error(reached[2]));
        }
        row.push(formula);
        rows.push(row);
    };
    for formula in &found.formulas {
        let reached = [formula.evidence, formula.free_run, formula.validation];
        row(
            formula.rank.to_string(),
            formula.size.to_string(),
            formula.constants.len().to_string(),
            reached,
            shown(formula),
        );
    }
    row(
        "network".into(),
        "–".into(),
        found.network_size.to_string(),
        [
            found.network_evidence,
            found.network_free_run,
            found.network_validation,
        ],
        "as it was learned".into(),
    );
    let sides = [
        text::Side::Left,
        text::Side::Right,
        text::Side::Right,
        text::Side::Right,
        text::Side::Right,
    ];
    let mut sides = sides.to_vec();
    if validated {
        sides.push(text::Side::Right);
    }
    sides.push(text::Side::Left);
    let title = format!(
        "{}: {} in place of its networks, {}\n\n",
        fit.model.name,
        text::count(found.formulas.len(), "formula"),
        text::seconds(seconds)
    );
    let mut out = title + &text::table(0, &sides, &rows);
    out += "\nin short\n";
    for line in &found.verdict {
        out += &format!("  {line}\n");
    }
    if let Some(best) = found.formulas.first() {
        out += "\nformula 1\n";
        for constant in &best.constants {
            let (value, std) = text::uncertain(constant.value, constant.std);
            let unit = if constant.unit.is_empty() {
                String::new()
            } else {
                format!(" {}", constant.unit)
            };
            let skewed = constant.skewed().map(|s| format!(", {s}"));
            let skewed = skewed.unwrap_or_default();
            out += &format!("  {} = {value} ± {std}{unit}{skewed}\n", constant.name);
        }
    }
    if let Some(place) = place {
        out += &format!(
            "\nmodel files written to {}, with their page {PAGE_FILE}\n",
            place.display()
        );
    }
    out
}

/// The formulas of a rank with their values.
fn shown(formula: &Ranked) -> String {
    let expressions = formula.expressions.iter().map(|e| {
        if formula.expressions.len() == 1 {
            e.with_values.clone()
        } else {
            format!("{}.{} = {}", e.network, e.output, e.with_values)
        }
    });
    expressions.collect::<Vec<_>>().join("; ")
}
