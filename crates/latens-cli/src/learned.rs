//! `latens simulate RUN`: the learned equations, driven by the inputs of a file.

use std::path::Path;

use latens::fit::run;
use latens::simulate::start;
use serde_json::json;

use crate::failure::Failure;
use crate::simulate::Arguments;
use crate::{assignments, output, text};

pub fn run(arguments: &Arguments, folder: &Path) -> Result<(), Failure> {
    let run = run::load(folder)?;
    let model = &run.model;
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let given = assignments::resolve(&arguments.start, &states, "state")?;
    let given = given.into_iter().enumerate();
    let given: Vec<(usize, f64)> = given.filter_map(|(i, v)| Some((i, v?))).collect();
    let start = start(model, &given)?;
    let driving = match &arguments.input {
        Some(path) => arguments.columns.read(path, &run.driving())?,
        None => run.undriven(arguments.steps.unwrap_or(1000) as usize + 1)?,
    };
    let (record, prediction) = run.simulated(driving, &start)?;
    let file = record.name.clone();
    let warnings = run.facts.doubts(model, &file, &prediction);
    for warning in &warnings {
        text::note(&format!("warning: {warning}"));
    }
    let table = prediction.table(model, &record)?;
    output::write(arguments.output.as_deref(), &table)?;
    if arguments.json {
        let object = json!({
            "run": folder.display().to_string(),
            "samples": record.len(),
            "outside": prediction.outside,
            "warnings": warnings,
            "output": arguments.output.as_ref().map(|p| p.display().to_string()),
            "columns": table.names().collect::<Vec<_>>(),
        });
        return text::print(&format!("{object:#}\n"));
    }
    Ok(())
}
