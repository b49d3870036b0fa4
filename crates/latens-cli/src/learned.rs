//! `latens simulate RUN`: the learned equations, driven by the inputs of a file.

use std::path::Path;

use latens::estimate::Start;
use latens::fit::run;
use latens::record::Layout;
use latens::simulate::start;
use latens::{Divergence, Error, Record};
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
    let record = inputs(arguments, &run)?;
    run.predictor().check(&record, 0)?;
    let prediction = run.predict(&record, Start::At(&start));
    let n = states.len();
    if let Some(at) = prediction.states.iter().position(|x| !x.is_finite()) {
        return Err(Failure::Library(Error::Diverged(Divergence {
            during: "the simulation".into(),
            epoch: None,
            step: at / n,
            time: record.time[at / n],
            quantity: states[at % n].into(),
            value: prediction.states[at],
            advice: "the learned equations do not hold so far from what they were learned on; start elsewhere, or take a shorter record".into(),
        })));
    }
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

/// The inputs of the file; whatever it holds of measurements is not looked at.
fn inputs(arguments: &Arguments, run: &run::Run) -> Result<Record, Failure> {
    let model = &run.model;
    let layout = Layout {
        measurements: vec![],
        states: vec![],
        time_step: Some(run.facts.sample_time),
        ..model.layout()
    };
    let (n, d_y) = (model.states.len(), model.measurements.len());
    let blind = |record: Record| Record {
        outputs: vec![f64::NAN; record.len() * d_y],
        d_y,
        d_x: n,
        ..record
    };
    match (&arguments.input, model.inputs.is_empty()) {
        (Some(path), _) => Ok(blind(arguments.columns.read(path, &layout)?)),
        (None, true) => {
            let samples = arguments.steps.unwrap_or(1000) as usize + 1;
            let time = (0..samples).map(|k| k as f64 * run.facts.sample_time);
            Ok(blind(Record {
                name: "simulation".into(),
                time: time.collect(),
                inputs: vec![],
                outputs: vec![],
                truth: None,
                d_u: 0,
                d_y: 0,
                d_x: 0,
            }))
        }
        (None, false) => {
            let names: Vec<&str> = model.inputs.iter().map(|u| u.name.as_str()).collect();
            Err(Failure::Message(format!(
                "the model of this run is driven by {}; give a file with --input",
                text::list(&names)
            )))
        }
    }
}
