//! `latens fit --solver node|node-lstm|spinode|rm|pr-ssm`: methods of others, to compare with.
//!
//! NODE, SPINODE and RM learn the model file's own networks: their run is one like any other, but
//! for bands, which they say nothing of. NODE-LSTM and PR-SSM put something else in their place, for
//! which a run folder has no weights: what they leave is a folder of states and scores.

use std::io::Write;
use std::path::Path;

use latens::fit::run::{self, RecordFacts, Source};
use latens::record::{Column, Record, Table, write_atomic, write_csv};
use latens::score::named::{channel_scores, state_scores};
use latens::solve::Settings;
use latens::step::Stepper;
use latens::{Model, score};
use latens_rivals::{LEAVES_NO_RUN, Outcome, refuse};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{summary, text};

const SCORES: &str = "scores.json";

/// What stands beside the numbers of a method that leaves no weights.
const NO_RUN: &str = "put something else in place of the model file's networks: the folder holds states and scores, and is no run that predict, estimate, simulate or stream could use";

/// Says and writes what a rival without θ came to.
pub fn report(
    outcome: &Outcome,
    sources: &[Source],
    settings: &Settings,
    (seconds, warnings): (f64, Vec<String>),
    folder: &Path,
    as_json: bool,
) -> Result<(), Failure> {
    let pairs = sources.iter().enumerate();
    let runs: Vec<Vec<f64>> = pairs
        .map(|(k, source)| match outcome.runs.get(k) {
            Some(run) => run.clone(),
            None => outcome.predict(source.record, None),
        })
        .collect();
    let trained = outcome.runs.len();
    let each = sources.iter().zip(&runs).enumerate();
    let facts: Vec<RecordFacts> = each
        .map(|(k, (source, run))| {
            let role = if k < trained { "train" } else { "validate" };
            scored(outcome, source, role, run)
        })
        .collect();
    let name = settings.solver.name();
    let object = json!({
        "run": folder.display().to_string(),
        "solver": name,
        "seed": settings.seed,
        "seconds": seconds,
        "warnings": warnings,
        "records": facts.iter().map(summary::record_json).collect::<Vec<Value>>(),
        "unknowns": [],
        "evidence": null,
        "determined": null,
        "directions": null,
        "parts": null,
        "attempts": [],
        "noise": {},
        "stopped": outcome.stopped,
        "ensemble": [],
        "note": format!("{name} {NO_RUN}"),
    });
    std::fs::create_dir_all(folder).map_err(|e| Failure::file("write", folder, e))?;
    for (k, (source, run)) in sources.iter().zip(&runs).enumerate() {
        let file = match sources.len() {
            1 => "states.csv".into(),
            _ => format!("states_{}.csv", k + 1),
        };
        write_csv(
            folder.join(file),
            &table(&outcome.model, source.record, run)?,
        )?;
    }
    let shown = format!("{object:#}\n");
    write_atomic(&folder.join(SCORES), |out| out.write_all(shown.as_bytes()))
        .map_err(|e| Failure::file("write", folder, e))?;
    if as_json {
        return text::print(&shown);
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
    text::print(&format!("{out}\n{name} {NO_RUN}\nwritten to {folder}\n"))
}

/// The scores of a free run.
fn scored(outcome: &Outcome, source: &Source, role: &str, run: &[f64]) -> RecordFacts {
    let (model, record) = (&outcome.model, source.record);
    let stepper = Stepper::over(model, &model.system, outcome.dt, [record]);
    let blank = vec![0.0; model.system.parameters()];
    let outputs = score::outputs(&stepper, record, &blank, run);
    let mut nrmse = channel_scores(model, record, &outputs, score::nrmse);
    let states = state_scores(model, record, run, score::nrmse);
    let mean = |wanted: &[usize]| {
        let names = wanted
            .iter()
            .map(|&i| format!("truth_{}", model.states[i].name));
        let known: Vec<f64> = names
            .filter_map(|n| states.get(&n))
            .map(|e| e.unwrap_or(f64::INFINITY))
            .collect();
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        mean.is_finite().then_some(mean)
    };
    let all: Vec<usize> = (0..model.states.len()).collect();
    let (mean_nrmse, mean_nrmse_hidden) = (mean(&all), mean(&model.hidden()));
    nrmse.extend(states);
    RecordFacts {
        file: source.file.clone(),
        sha256: source.sha256.clone(),
        role: role.into(),
        samples: record.len(),
        scored: record.len(),
        rmse: channel_scores(model, record, &outputs, score::rmse),
        nrmse,
        nrmse_one_step: Default::default(),
        nrmse_smoothed: Default::default(),
        mean_nrmse,
        mean_nrmse_hidden,
        poorly_determined: Default::default(),
    }
}

/// A record with the free run over it, under the names that a run's states.csv has.
fn table(model: &Model, record: &Record, run: &[f64]) -> Result<Table, Failure> {
    let known = record.to_table(&model.layout())?;
    let mut columns = known.columns().to_vec();
    for (i, state) in model.states.iter().enumerate() {
        let own = run.iter().skip(i).step_by(model.states.len()).copied();
        columns.push(Column::new(
            format!("{}.free_run", state.name),
            own.collect(),
        ));
    }
    Ok(Table::new(&record.name, columns)?)
}

/// Refuses what no rival can do, and a folder that must not be written to.
pub fn check(
    settings: &Settings,
    (resumed, tests): (bool, bool),
    folder: &Path,
    force: bool,
) -> Result<(), Failure> {
    refuse(settings.solver, resumed, tests)?;
    let own = folder.join(SCORES).is_file();
    match LEAVES_NO_RUN.contains(&settings.solver) {
        // its folder is replaced, a run never: the two would lie in one
        true if own && force => Ok(()),
        true if own => Err(Failure::Message(format!(
            "{} holds scores already; choose another folder with -o, or replace them with --force",
            folder.display()
        ))),
        true => Ok(run::check(folder, false)?),
        false => Ok(run::check(folder, force)?),
    }
}
