//! `latens reproduce`: the paper's evidence, all methods on all systems, from one command.
//!
//! Each cell of the grid, a method on a system with a seed, is a file in `cells`, written whole when
//! it is done. So a grid can be killed at any moment and gone on with, and tables and figures are
//! made from the files alone.

mod cell;
mod cost;
mod drawings;
mod figures;
mod grid;
mod page;
mod paper;
mod statistics;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use latens::record::Layout;
use latens::record::{Mapping, Record, Table};
use latens::simulate::{Simulation, simulate};
use latens::{Model, systems};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::files::{file_error, unknown, write_file, write_json};
use crate::host;
use cell::{Cell, Method, System};
use drawings::Drawn;
use latens::Error;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Built-in systems; all where none is named.
    pub systems: Vec<String>,
    /// Methods; the nine of the paper's table where none is named.
    pub methods: Vec<String>,
    /// Seeds 1 to N of each.
    pub seeds: u64,
    /// Minutes of processor time that a cell may train.
    pub budget: f64,
    /// The folder to write.
    pub output: PathBuf,
    /// Whether to go on in a folder that has cells already.
    pub resume: bool,
    /// Whether to say nothing on the way.
    pub quiet: bool,
}

/// What came of it.
pub struct Reproduced {
    /// The tables, for people.
    pub summary: String,
    /// The page.
    pub page: PathBuf,
    /// The scores of every cell.
    pub scores: Vec<serde_json::Value>,
    /// Whether somebody stopped it.
    pub stopped: bool,
}

/// What all cells of a folder have in common: else they would not compare.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Terms {
    version: String,
    budget: f64,
}

/// EMPS as the paper has it, which knows nothing of the slide's friction; the built-in model does.
const EMPS: (&str, &str) = (
    "emps",
    include_str!("../../models/emps-paper/emps-paper.toml"),
);
const TERMS_FILE: &str = "terms.json";
const CELLS_FOLDER: &str = "cells";
const PAGE_FILE: &str = "reproduce.html";

/// Runs the comparison, or goes on with it.
///
/// # Errors
/// Names that there are not, a folder that holds something else, files that cannot be written.
pub fn run(options: &Options) -> Result<Reproduced, Error> {
    let methods = methods(&options.methods)?;
    let systems = chosen_systems(&options.systems)?;
    let folder = &options.output;
    let terms = prepare(folder, options)?;
    let jobs = grid::jobs(&systems, &methods, options.seeds);
    grid::run(&systems, jobs, folder, 60.0 * options.budget, options.quiet)?;
    // beside the cells a cost would be that of a shared memory, so it is measured after them
    if !host::asked() {
        cost::write(&methods, folder, options.quiet)?;
    }
    let cells = cells(folder)?;
    let systems = with_earlier(systems, &cells);
    let constants = systems.iter();
    let constants = constants.filter_map(|s| Some((s.name.clone(), cell::constant(s)?)));
    let constants: tables::Constants = constants.collect();
    let summary = tables::write(&cells, &constants, folder)?;
    figures::write(&systems, &cells, folder)?;
    let drawn = systems.iter().map(|s| Drawn::new(s, &cells));
    let drawn: Vec<Drawn> = drawn.collect::<Result<_, _>>()?;
    let cost = drawings::cost(folder)?;
    drawings::write(&drawn, &cost, folder)?;
    let page = folder.join(PAGE_FILE);
    let figures = page::Figures {
        drawn: &drawn,
        cost: &cost,
    };
    let html = page::html(&cells, &constants, figures, &terms, !host::asked());
    write_file(&page, &html)?;
    Ok(Reproduced {
        summary,
        page,
        scores: cells.iter().map(|c| json!(c.score)).collect(),
        stopped: host::asked(),
    })
}

/// The methods asked for.
fn methods(names: &[String]) -> Result<Vec<Method>, Error> {
    if names.is_empty() {
        return Ok(Method::TABLE.to_vec());
    }
    let known = Method::all();
    let method = |name: &String| {
        // the paper's own table has an underscore
        let name = name.replace('_', "-");
        known
            .iter()
            .find(|m| m.name() == name)
            .copied()
            .ok_or_else(|| {
                let all: Vec<String> = known.iter().map(|m| m.name()).collect();
                unknown("method", &name, &all)
            })
    };
    names.iter().map(method).collect()
}

/// The systems asked for, each with its record.
fn chosen_systems(names: &[String]) -> Result<Vec<System>, Error> {
    let all: Vec<String> = systems::SYSTEMS
        .iter()
        .map(|(name, _)| (*name).into())
        .collect();
    if let Some(name) = names.iter().find(|n| !all.contains(n)) {
        return Err(unknown("system", name, &all));
    }
    let mut chosen = vec![];
    for (name, text) in systems::SYSTEMS {
        let asked = names.iter().any(|n| n == name);
        if !names.is_empty() && !asked {
            continue;
        }
        let text = if *name == EMPS.0 { EMPS.1 } else { text };
        let model = Model::from_text(name, text)?;
        if model.truth.is_some() {
            let record = simulate(&model, &Simulation::default())?;
            chosen.push(System {
                name: (*name).into(),
                model,
                record,
                test: None,
            });
            continue;
        }
        match (measured(name, &model)?, asked) {
            (Some((record, test)), _) => chosen.push(System {
                name: (*name).into(),
                model,
                record,
                test: Some(test),
            }),
            (None, true) => {
                return Err(Error::Setting(format!(
                    "{name} is real data, and there is no shared/datasets/{name} above this folder; set LATENS_DATASETS to the folder that holds {name}"
                )));
            }
            (None, false) => {
                host::note(&format!(
                    "warning: {name} is left out: its data set is not at hand (see LATENS_DATASETS)"
                ));
            }
        }
    }
    Ok(chosen)
}

/// The training and test record of a system that has no truth, where they are at hand.
fn measured(name: &str, model: &Model) -> Result<Option<(Record, Record)>, Error> {
    let given = std::env::var_os("LATENS_DATASETS").map(PathBuf::from);
    let directory = std::env::current_dir().unwrap_or_default();
    let above = directory.ancestors().map(|a| a.join("shared/datasets"));
    let folders: Vec<PathBuf> = given.into_iter().chain(above).collect();
    let find = |part: &str| {
        let files = folders
            .iter()
            .map(|f| f.join(name).join(format!("{name}_{part}.csv")));
        files.into_iter().find(|f| f.is_file())
    };
    let (Some(train), Some(test)) = (find("train"), find("test")) else {
        return Ok(None);
    };
    // the publisher's names of position and voltage
    let columns = ["q=y_qm_m", "u=u_vir_V"].map(String::from);
    let mapping = Mapping::parse(&columns)?;
    let read = |path: &Path| -> Result<Record, Error> {
        let table = Table::read(path)?;
        Ok(Record::from_table(
            &table,
            &Layout::of(model),
            &mapping,
            None,
        )?)
    };
    Ok(Some((read(&train)?, read(&test)?)))
}

/// Makes the folder, or finds out whether it can be gone on with.
fn prepare(folder: &Path, options: &Options) -> Result<Terms, Error> {
    let terms = Terms {
        version: env!("CARGO_PKG_VERSION").into(),
        budget: options.budget,
    };
    let (path, shown) = (folder.join(TERMS_FILE), folder.display());
    if path.is_file() {
        if !options.resume {
            return Err(Error::Setting(format!(
                "{shown} holds a grid already; go on with it by --resume, or choose another folder with -o"
            )));
        }
        let before = std::fs::read(&path).map_err(|e| file_error("read", &path, e))?;
        let before: Terms = serde_json::from_slice(&before)
            .map_err(|e| Error::Setting(format!("{} is damaged: {e}", path.display())))?;
        if before != terms {
            return Err(Error::Setting(format!(
                "the cells of {shown} had --budget {} under version {}: resume with the same, or choose another folder",
                before.budget, before.version
            )));
        }
        return Ok(terms);
    }
    let filled = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if filled {
        return Err(Error::Setting(format!(
            "{shown} exists and holds something else; choose another folder with -o"
        )));
    }
    let cells = folder.join(CELLS_FOLDER);
    std::fs::create_dir_all(&cells).map_err(|e| file_error("write", &cells, e))?;
    write_json(&path, &terms)?;
    Ok(terms)
}

/// Adds the systems that cells of an earlier call are of; without its data set a system has a table
/// but no figures.
fn with_earlier(mut systems: Vec<System>, cells: &[Cell]) -> Vec<System> {
    for name in tables::distinct(cells.iter().map(|c| c.score.system.as_str())) {
        if systems.iter().any(|s| s.name == name) {
            continue;
        }
        match chosen_systems(&[name.into()]) {
            Ok(found) => systems.extend(found),
            Err(_) => host::note(&format!(
                "warning: no figures of {name}: its data set is not at hand any more"
            )),
        }
    }
    systems
}

/// All cells that are done, in the order of systems, methods and seeds.
fn cells(folder: &Path) -> Result<Vec<Cell>, Error> {
    let path = folder.join(CELLS_FOLDER);
    let entries = std::fs::read_dir(&path).map_err(|e| file_error("read", &path, e))?;
    let files: BTreeSet<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    let mut cells = vec![];
    for file in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "json"))
    {
        let bytes = std::fs::read(file).map_err(|e| file_error("read", file, e))?;
        let cell: Cell = serde_json::from_slice(&bytes).map_err(|e| {
            let file = file.display();
            Error::Setting(format!("{file} is damaged: {e}; delete it and --resume"))
        })?;
        cells.push(cell);
    }
    let order = |c: &Cell| {
        let system = systems::SYSTEMS
            .iter()
            .position(|(n, _)| *n == c.score.system);
        let method = Method::all()
            .iter()
            .position(|m| m.name() == c.score.method);
        (system, method, c.score.seed)
    };
    cells.sort_by_key(order);
    Ok(cells)
}
