//! `latens design`: which experiment next.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use latens::record::{Column, Layout, Table, write_atomic, write_csv};
use latens::{Error, Fit, Model};
use latens_design::plan::{Family, Space, range};
use latens_design::{Designed, Experiment, Options, Outcome, Step, Watch, design};
use latens_report::design::figure;
use latens_report::outputs::DesignOutput;
use latens_report::picture::Form;

use crate::failure::Failure;
use crate::{interrupt, model, records, text};

/// Experiments in the table, and those whose inputs are written.
const SHOWN_EXPERIMENTS: usize = 10;
const WRITTEN_EXPERIMENTS: usize = 3;

const AFTER_HELP: &str = "\
Examples:
  latens design run --start x=0..2 --start v=-1..1
  latens design run --input u=step:0..5 --input u=sweep:-5..5 -o next
  latens design run --start x=0..2 --measure x --measure x,v --every 1,10
  latens design run --input u=sine:-1..1 --for drag
  latens design run --input u=sine:-1..1 --for-record planned.csv
  latens design run --start x=0..2 --between formulas/1.toml formulas/2.toml
  latens design run --start phi=-0.3..0.3 --feedback \"u=3.2*z - 74*phi\"

Each experiment is simulated with what the run has learned, and what its record would add to the posterior is
computed to first order. The table has the best first: what it would leave of each uncertainty, as a part of what
that is now. The true equations play no part, and where an experiment leads a network outside of what training
has seen, the column `outside` says how much of it.

Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted (what was looked at by then is shown and written).";

/// Which experiment next: what it would tell of the learned functions, of constants, of a prediction, or
/// between formulas
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// A run folder that `latens fit` wrote
    run: PathBuf,
    /// The range that a state may start in; may be repeated. Other states start as in the first record
    #[arg(long, value_name = "STATE=LOW..HIGH", allow_hyphen_values = true)]
    start: Vec<String>,
    /// What an input may do: u=step:0..1, u=sine:0..1 or u=sweep:0..1, or a file whose inputs are replayed; may be
    /// repeated, for alternatives too [default: the inputs of the first record]
    #[arg(long, value_name = "INPUT=FAMILY:LOW..HIGH")]
    input: Vec<String>,
    /// What a regulator adds to an input, a formula of the states: "u=-3*x - v"; may be repeated
    #[arg(long, value_name = "INPUT=FORMULA")]
    feedback: Vec<String>,
    /// Channels that may be measured; may be repeated, for alternatives [default: all]
    #[arg(long, value_name = "CHANNEL,…")]
    measure: Vec<String>,
    /// Every which sample may be measured: 1,10 compares both [default: 1]
    #[arg(long, value_name = "K", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    every: Vec<u32>,
    /// Samples of a record [default: as many as the first record has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    samples: Option<u32>,
    /// A constant that is to be known better; may be repeated
    #[arg(long = "for", value_name = "CONSTANT")]
    constants: Vec<String>,
    /// A record whose free run is to be foreseen better
    #[arg(long = "for-record", value_name = "FILE")]
    prediction: Option<PathBuf>,
    /// Formulas to tell apart: model files, or a folder of them as `latens distill -o` writes
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    between: Vec<PathBuf>,
    /// Starts and inputs to look at
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    candidates: u16,
    /// Of the starts and inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder for the picture and the inputs of the best three experiments
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    columns: records::Columns,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let fit = Fit::load(&arguments.run)?;
    let options = arguments.options(&fit)?;
    let place = arguments.output.as_deref();
    if let Some(place) = place {
        check(place, arguments.force)?;
    }
    interrupt::install("stopping soon; what was looked at so far will be shown");
    let watch = Shown {
        is_quiet: arguments.quiet,
    };
    let outcome = design(&fit, &options, &watch)?;
    interrupt::writing();
    let files = match place {
        Some(place) => write(place, &fit, &outcome)?,
        None => vec![],
    };
    let designed = outcome.designed;
    let (interrupted, seconds) = (designed.stopped, started.elapsed().as_secs_f64());
    if arguments.json {
        text::print_json(&DesignOutput {
            run: fit.name.clone(),
            seconds,
            files,
            designed,
        })?;
    } else {
        text::print(&table(&fit, &designed, &options, seconds, &files))?;
    }
    if interrupted {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

impl Arguments {
    fn options(&self, fit: &Fit) -> Result<Options, Failure> {
        let mut space = Space {
            count: self.candidates.into(),
            seed: self.seed,
            every: self.every.iter().map(|k| *k as usize).collect(),
            samples: self.samples.map(|n| n as usize),
            ..Space::default()
        };
        for text in &self.start {
            let (name, ends) = assigned(text, "a start is written x=0..2")?;
            space.start.push((name, range(&ends)?));
        }
        for text in &self.input {
            if let Ok((name, family)) = assigned(text, "") {
                space.inputs.push((name, Family::parse(&family)?));
            } else {
                let driving = self.columns.read(Path::new(text), &fit.driving())?;
                space.replayed.push(driving.record);
            }
        }
        for text in &self.feedback {
            space
                .feedback
                .push(assigned(text, "a regulator is written u=-3*x - v")?);
        }
        for text in &self.measure {
            let names = text.split(',').map(|name| name.trim().to_owned());
            space.measured.push(names.collect());
        }
        let prediction = self.prediction.as_ref();
        let prediction = prediction.map(|path| self.columns.read(path, &Layout::of(&fit.model)));
        Ok(Options {
            space,
            constants: self.constants.clone(),
            prediction: prediction.transpose()?.map(|source| source.record),
            between: formulas(&self.between)?,
        })
    }
}

/// `NAME=REST`.
fn assigned(text: &str, expected: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('=');
    let parts = parts.filter(|(name, rest)| !name.trim().is_empty() && !rest.trim().is_empty());
    let (name, rest) = parts
        .ok_or_else(|| Failure::Message(format!("`{text}` has no name and value: {expected}")))?;
    Ok((name.trim().to_owned(), rest.trim().to_owned()))
}

/// The models of files and of folders, each with the name of its file.
fn formulas(paths: &[PathBuf]) -> Result<Vec<Model>, Failure> {
    let mut files = vec![];
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = (1..).map(|k: usize| path.join(format!("{k}.toml")));
        let before = files.len();
        files.extend(found.take_while(|file| file.exists()));
        if files.len() == before {
            return Err(Failure::Message(format!(
                "{} has no 1.toml: name model files, or a folder that `latens distill -o` wrote",
                path.display()
            )));
        }
    }
    let models = files.iter().map(|file| {
        let mut model = model::read(&file.display().to_string())?;
        model.name = file.display().to_string();
        Ok(model)
    });
    models.collect()
}

fn paths(place: &Path) -> Vec<PathBuf> {
    let names = ["design.svg".to_owned(), "design.png".to_owned()].into_iter();
    let names = names.chain((1..=WRITTEN_EXPERIMENTS).map(|rank| format!("{rank}.csv")));
    names.map(|name| place.join(name)).collect()
}

/// Whether files that are to be written are there already.
fn check(place: &Path, force: bool) -> Result<(), Failure> {
    match paths(place).into_iter().find(|path| path.exists()) {
        Some(path) if !force => Err(Error::Setting(format!(
            "{} exists; name another folder, or overwrite with ⟦force⟧",
            path.display()
        ))
        .into()),
        _ => Ok(()),
    }
}

/// The picture, and times, inputs and foreseen states of the best experiments.
fn write(place: &Path, fit: &Fit, outcome: &Outcome) -> Result<Vec<String>, Failure> {
    std::fs::create_dir_all(place).map_err(|e| Failure::file("make", place, e))?;
    let svg = figure(fit, outcome);
    let mut files = vec![];
    for path in paths(place) {
        if let Some(form) = Form::of(&path) {
            let bytes = form.encode(&svg).map_err(Failure::Message)?;
            let written = write_atomic(&path, |out| out.write_all(&bytes));
            written.map_err(|e| Failure::file("write", &path, e))?;
        } else {
            // the first after the two pictures is that of the best
            let Some(run) = outcome.runs.get(files.len() - 2) else {
                continue;
            };
            let mut columns = vec![Column::new("t", run.record.time.clone())];
            for (i, input) in fit.model.inputs.iter().enumerate() {
                columns.push(Column::new(
                    input.name.clone(),
                    run.record.input_column(i).collect(),
                ));
            }
            for (i, state) in fit.model.states.iter().enumerate() {
                let name = format!("{}.predicted", state.name);
                columns.push(Column::new(name, run.states.column(i).collect()));
            }
            write_csv(&path, &Table::new("experiment", columns)?)?;
        }
        files.push(path.display().to_string());
    }
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

fn table(
    fit: &Fit,
    designed: &Designed,
    options: &Options,
    seconds: f64,
    files: &[String],
) -> String {
    let mut out = String::new();
    for line in &designed.verdict {
        out += &format!("{line}\n");
    }
    out += &format!(
        "\n{}: {} looked at, {}; what each would leave of an uncertainty\n\n",
        fit.model.name,
        text::count(designed.experiments.len(), "experiment"),
        text::seconds(seconds)
    );
    let by_formulas = designed.by == "formulas";
    let mut header = vec![String::new()];
    header.extend(designed.goals.iter().map(|g| g.name.clone()));
    let mut sides = vec![text::Side::Left];
    sides.extend(designed.goals.iter().map(|_| text::Side::Right));
    if by_formulas {
        header.push("ln p apart".into());
        sides.push(text::Side::Right);
    }
    header.extend(["outside".into(), "experiment".into()]);
    sides.extend([text::Side::Right, text::Side::Left]);
    let mut rows = vec![header];
    for experiment in designed.experiments.iter().take(SHOWN_EXPERIMENTS) {
        let mut row = vec![experiment.rank.to_string()];
        row.extend(experiment.left.iter().map(|l| text::percent(*l)));
        if by_formulas {
            let apart = experiment.apart;
            row.push(apart.map_or("–".into(), |a| format!("{a:.1}")));
        }
        row.push(if experiment.outside > 0.0 {
            text::percent(experiment.outside)
        } else {
            "0 %".into()
        });
        row.push(shown(experiment, options));
        rows.push(row);
    }
    if !designed.repeated.is_empty() {
        let mut row = vec!["again".to_owned()];
        row.extend(designed.repeated.iter().map(|l| text::percent(*l)));
        if by_formulas {
            row.push("–".into());
        }
        row.extend(["0 %".into(), "the first record once more".into()]);
        rows.push(row);
    }
    out += &text::table(0, &sides, &rows);
    if !files.is_empty() {
        out += &format!("\nwritten: {}\n", files.join(", "));
    }
    out
}

/// What is different from one experiment to the next.
fn shown(experiment: &Experiment, options: &Options) -> String {
    let stated = options.space.start.iter().map(|(name, _)| name);
    let starts = stated.filter_map(|name| {
        let value = experiment.start.get(name)?;
        Some(format!("{name} = {}", latens::text::number(*value)))
    });
    let mut parts: Vec<String> = starts.collect();
    parts.extend(
        experiment
            .inputs
            .iter()
            .map(|(u, words)| format!("{u}: {words}")),
    );
    if options.space.measured.len() > 1 {
        parts.push(experiment.measured.join(" and "));
    }
    if options.space.every.len() > 1 {
        parts.push(format!("every {}", experiment.every));
    }
    parts.join(", ")
}
