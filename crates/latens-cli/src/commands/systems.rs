//! `latens systems`: the built-in systems.

use clap::Args;
use latens::Model;
use latens::systems::SYSTEMS;
use serde_json::json;

use crate::failure::Failure;
use crate::text::{self, Side};

/// List the built-in systems
#[derive(Args)]
pub struct Arguments {
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let models = SYSTEMS
        .iter()
        .map(|(name, text)| Ok((*name, Model::from_text(name, text)?)))
        .collect::<Result<Vec<_>, latens::Error>>()?;
    if arguments.json {
        let all: Vec<_> = models.iter().map(|(name, m)| describe(name, m)).collect();
        return text::print(&format!("{:#}\n", json!(all)));
    }
    let mut rows = vec![
        ["name", "system", "measured", "hidden"]
            .map(String::from)
            .to_vec(),
    ];
    for (name, model) in &models {
        rows.push(vec![
            (*name).into(),
            model.name.clone(),
            measured(model).join(" "),
            hidden(model).join(" "),
        ]);
    }
    let table = text::table(0, &[Side::Left; 4], &rows);
    text::print(&format!(
        "{table}\nlatens init NAME writes one as a model file; latens simulate NAME makes a record of it.\n"
    ))
}

fn measured(model: &Model) -> Vec<&str> {
    model.measurements.iter().map(|m| m.name.as_str()).collect()
}

fn hidden(model: &Model) -> Vec<&str> {
    let states = model.hidden().into_iter();
    states.map(|i| model.states[i].name.as_str()).collect()
}

fn describe(name: &str, model: &Model) -> serde_json::Value {
    json!({
        "name": name,
        "title": model.name,
        "description": model.description,
        "inputs": model.inputs.iter().map(|q| &q.name).collect::<Vec<_>>(),
        "states": model.states.iter().map(|s| &s.name).collect::<Vec<_>>(),
        "measured": measured(model),
        "hidden": hidden(model),
        "parameters": model.system.parameters(),
        "simulates": model.truth.is_some(),
    })
}
