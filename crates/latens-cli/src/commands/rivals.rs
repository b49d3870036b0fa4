//! `latens fit --solver node-lstm|pr-ssm`: methods of others that put something else in the place of
//! the model's networks, for which a folder has no weights: what they leave is states and scores.

use std::io::Write;
use std::path::Path;

use latens::fit::RecordFacts;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::record::{Column, Layout, Record, Source, Table, write_atomic, write_csv};
use latens::solve::Solver;
use latens::{Job, Model, Role, Trajectory, folder};
use latens_lab::rivals::{self, Outcome, Rival, RivalSolver};
use latens_report::summary;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::progress::Display;
use crate::records::Files;
use crate::settings::Options;
use crate::{interrupt, text};

const SCORES: &str = "scores.json";

/// Their names.
pub const WITHOUT_FIT: [&str; 2] = ["node-lstm", "pr-ssm"];

/// What stands beside the numbers of a method that leaves no weights.
const NO_FIT: &str = "put something else in place of the model file's networks: the folder holds states and scores, and no fit that predict, estimate, simulate or stream could use";

/// The rival of a name, where it is one that leaves no fit.
pub fn without_fit(name: Option<String>) -> Option<Rival> {
    let name = name?;
    let mut all = Rival::ALL.into_iter();
    all.find(|rival| rival.name() == name && !rival.learns_theta())
}

/// What the command line asks of one.
pub struct Asked<'a> {
    pub rival: Rival,
    pub resumes: bool,
    pub tests: bool,
    pub output: &'a Path,
    pub force: bool,
    pub quiet: bool,
    pub json: bool,
}

/// Trains one and writes what it leaves.
pub fn run(model: Model, files: &Files, options: &Options, asked: &Asked) -> Result<(), Failure> {
    refuse(asked)?;
    let name = asked.rival.name();
    let mut job = Job::new_unset(model);
    let layer = options.layer(&job.model)?;
    // it is no solver, but reads a solver's settings
    job.settings = RivalSolver(asked.rival).settings();
    layer.onto(&mut job.settings);
    files.read_into(&mut job)?;
    job.validate_tail(layer.validate_tail)?;
    let settings = rivals::Settings {
        iterations: job.settings.passes,
        seed: job.settings.seed,
        ..rivals::Settings::new(asked.rival)
    };
    interrupt::install("stopping soon; what was learned so far will be written");
    // shown as a solver of its kind is
    let shown = latens::Settings {
        solver: "node".into(),
        ..job.settings.clone()
    };
    let mut display = Display::new(&shown, asked.quiet)?;
    let records: Vec<Record> = job.train.iter().map(|s| s.record.clone()).collect();
    let outcome = rivals::fit(&job.model, &records, &settings, &mut display);
    let seconds = display.seconds();
    display.finish();
    interrupt::writing();
    let sources: Vec<&Source> = job.train.iter().chain(&job.validate).collect();
    report(&outcome?, &sources, name, &job.settings, seconds, asked)?;
    if interrupt::asked() {
        return Err(Failure::Interrupted);
    }
    Ok(())
}

/// Refuses what none of them can do, and a folder that must not be written to.
fn refuse(asked: &Asked) -> Result<(), Failure> {
    let (name, folder) = (asked.rival.name(), asked.output);
    if asked.resumes {
        return Err(Failure::Message(format!(
            "{name} cannot go on with a fit: fit again, with more --passes"
        )));
    }
    if asked.tests {
        return Err(Failure::Message(format!(
            "{name} leaves no fit that a test could be predicted with; give the record to --validate, which is scored"
        )));
    }
    // its folder is replaced, a fit never: the two would lie in one
    match (folder.join(SCORES).is_file(), asked.force) {
        (true, true) => Ok(()),
        (true, false) => Err(Failure::Message(format!(
            "{} holds scores already; choose another folder with -o, or replace them with --force",
            folder.display()
        ))),
        (false, _) => Ok(folder::check(folder, false)?),
    }
}

/// Says and writes what came of one.
fn report(
    outcome: &Outcome,
    sources: &[&Source],
    name: &str,
    settings: &latens::Settings,
    seconds: f64,
    asked: &Asked,
) -> Result<(), Failure> {
    let folder = asked.output;
    let pairs = sources.iter().enumerate();
    let runs: Vec<Trajectory> = pairs
        .map(|(k, source)| match outcome.runs.get(k) {
            Some(run) => run.clone(),
            None => outcome.predict(&source.record, None),
        })
        .collect();
    let trained = outcome.runs.len();
    let each = sources.iter().zip(&runs).enumerate();
    let facts: Vec<RecordFacts> = each
        .map(|(k, (source, run))| {
            let role = if k < trained {
                Role::Train
            } else {
                Role::Validate
            };
            scored(outcome, source, role, run)
        })
        .collect();
    let object = json!({
        "run": folder.display().to_string(),
        "solver": name,
        "seed": settings.seed,
        "seconds": seconds,
        "warnings": [],
        "records": facts,
        "unknowns": [],
        "evidence": null,
        "determined": null,
        "directions": null,
        "parts": null,
        "attempts": [],
        "noise": {},
        "stopped": outcome.stopped,
        "ensemble": [],
        "note": format!("{name} {NO_FIT}"),
    });
    write(outcome, sources, &runs, &object, folder)?;
    if asked.json {
        return text::print(&format!("{object:#}\n"));
    }
    let mut out = format!(
        "{}: {name}, seed {}, {}\n",
        summary::title(&outcome.model),
        settings.seed,
        text::seconds(seconds)
    );
    for record in &facts {
        out += &format!(
            "\n{}, {}\n",
            record.file,
            text::count(record.samples, "sample")
        );
        out += &summary::predicted(&outcome.model, record);
    }
    let folder = folder.display();
    text::print(&format!("{out}\n{name} {NO_FIT}\nwritten to {folder}\n"))
}

fn write(
    outcome: &Outcome,
    sources: &[&Source],
    runs: &[Trajectory],
    object: &Value,
    folder: &Path,
) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::file("write", folder, e))?;
    for (k, (source, run)) in sources.iter().zip(runs).enumerate() {
        let file = match sources.len() {
            1 => "states.csv".into(),
            _ => format!("states_{}.csv", k + 1),
        };
        let table = table(&outcome.model, &source.record, run)?;
        write_csv(folder.join(file), &table)?;
    }
    let shown = format!("{object:#}\n");
    write_atomic(&folder.join(SCORES), |out| out.write_all(shown.as_bytes()))
        .map_err(|e| Failure::file("write", folder, e))
}

/// The scores of a free run.
fn scored(outcome: &Outcome, source: &Source, role: Role, run: &Trajectory) -> RecordFacts {
    let (model, record) = (&outcome.model, &source.record);
    let stepper = Stepper::over(model, &model.system, outcome.dt, [record]);
    let blank = vec![0.0; model.system.parameters()];
    let outputs = score::outputs(&stepper, record, &blank, run);
    RecordFacts::of_free_run(model, source, role, record, &outputs, run)
}

/// A record with the free run over it, under the names that a run's states.csv has.
fn table(model: &Model, record: &Record, run: &Trajectory) -> Result<Table, Failure> {
    let known = record.to_table(&Layout::of(model))?;
    let mut columns = known.columns().to_vec();
    for (i, state) in model.states.iter().enumerate() {
        let name = format!("{}.free_run", state.name);
        columns.push(Column::new(name, run.column(i).collect()));
    }
    Ok(Table::new(&record.name, columns)?)
}
