//! What Python asks of `latens-design`, and what it gets.

use std::collections::BTreeMap;

use latens::{Error, Fit, Model, Record};
use latens_design::plan::{Family, Space, range};
use latens_design::{Options, Outcome};
use latens_report::design::figure;
use serde::Deserialize;
use serde_json::json;

use crate::errors::{Failure, Result};

/// Experiments whose run is handed out.
const SHOWN_RUNS: usize = 3;

/// The keywords of `fit.design` that are plain values.
#[derive(Deserialize)]
struct Asked {
    start: Vec<(String, [f64; 2])>,
    inputs: Vec<(String, String)>,
    feedback: Vec<(String, String)>,
    measured: Vec<Vec<String>>,
    every: Vec<usize>,
    samples: Option<usize>,
    constants: Vec<String>,
    candidates: usize,
    seed: u64,
}

/// The options of a call.
pub fn options(asked: &str, prediction: Option<Record>, between: Vec<Model>) -> Result<Options> {
    let asked: Asked = serde_json::from_str(asked).map_err(|e| {
        Failure::from(Error::Setting(format!(
            "what was asked for is not understood: {e}"
        )))
    })?;
    let mut space = Space {
        feedback: asked.feedback,
        measured: asked.measured,
        every: asked.every,
        samples: asked.samples,
        count: asked.candidates,
        seed: asked.seed,
        ..Space::default()
    };
    for (name, [low, high]) in asked.start {
        space.start.push((name, range(&format!("{low}..{high}"))?));
    }
    for (name, family) in asked.inputs {
        space.inputs.push((name, Family::parse(&family)?));
    }
    Ok(Options {
        space,
        constants: asked.constants,
        prediction,
        between,
    })
}

/// What was found as JSON, with times, inputs and foreseen states of the best experiments; and the picture.
pub fn shown(fit: &Fit, outcome: &Outcome) -> (String, String) {
    let runs = outcome.runs.iter().take(SHOWN_RUNS).map(|run| {
        let mut columns = BTreeMap::from([("t".to_owned(), run.record.time.clone())]);
        for (i, input) in fit.model.inputs.iter().enumerate() {
            columns.insert(input.name.clone(), run.record.input_column(i).collect());
        }
        for (i, state) in fit.model.states.iter().enumerate() {
            let name = format!("{}.predicted", state.name);
            columns.insert(name, run.states.column(i).collect());
        }
        columns
    });
    let mut found = json!(outcome.designed);
    found["runs"] = json!(runs.collect::<Vec<_>>());
    (found.to_string(), figure(fit, outcome))
}
