//! `latens simulate RUN`: the learned equations, driven by the inputs of a file.

use std::path::Path;

use latens::{Door, Fit};
use latens_report::outputs::{SimulatedFit, Told};

use super::simulate::Arguments;
use crate::failure::Failure;
use crate::{assignments, output, text};

pub fn run(arguments: &Arguments, folder: &Path) -> Result<(), Failure> {
    let fit = arguments.columns.fit_of_group(Fit::load(folder)?)?;
    let names: Vec<&str> = fit.model.unknowns.iter().map(|u| u.name.as_str()).collect();
    let constants = assignments::resolve(&arguments.constants, &names, "unknown constant")?;
    let constants = constants.into_iter().enumerate();
    let constants: Vec<(usize, f64)> = constants.filter_map(|(i, v)| Some((i, v?))).collect();
    let fit = fit.with_constants(&constants)?;
    let model = &fit.model;
    let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
    let given = assignments::resolve(&arguments.start, &states, "state")?;
    let given = given.into_iter().enumerate();
    let given: Vec<(usize, f64)> = given.filter_map(|(i, v)| Some((i, v?))).collect();
    let start = fit.start(&given);
    let driving = match &arguments.input {
        Some(path) => arguments.columns.read(path, &fit.driving())?.record,
        None => fit.undriven(arguments.steps.unwrap_or(1000) as usize + 1)?,
    };
    let simulated = fit.simulate(driving, &start)?;
    simulated.warnings.iter().for_each(text::warning);
    let table = simulated.prediction.table(model, &simulated.record)?;
    output::write(arguments.output.as_deref(), &table)?;
    if arguments.json {
        return text::print_json(&SimulatedFit {
            run: fit.name.clone(),
            warnings: Told::all(&simulated.warnings, Door::CommandLine),
            facts: simulated.facts,
            output: arguments.output.as_ref().map(|p| p.display().to_string()),
            columns: table.names().map(String::from).collect(),
        });
    }
    Ok(())
}
