//! `latens systems`: the built-in systems, and after them the gallery.

use clap::Args;
use latens::Model;
use latens::systems::SYSTEMS;
use latens_lab::gallery::PROBLEMS;
use serde_json::json;

use crate::failure::Failure;
use crate::text::{self, Side};

/// List the built-in systems, and the models of the gallery by field
#[derive(Args)]
pub struct Arguments {
    /// Print a JSON array of the built-in systems instead of a table
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.json {
        let described = SYSTEMS
            .iter()
            .map(|(name, text)| Ok(describe(name, &Model::from_text(name, text)?)))
            .collect::<Result<Vec<_>, latens::Error>>()?;
        return text::print(&format!("{:#}\n", json!(described)));
    }
    text::print(&by_field()?)
}

/// The six, and the gallery by field.
pub fn by_field() -> Result<String, Failure> {
    let six = SYSTEMS
        .iter()
        .map(|(name, text)| ("built-in", *name, *text));
    let gallery = PROBLEMS.iter().map(|p| (p.field, p.name, p.text));
    let mut rows = vec![
        ["name", "system", "measured", "hidden"]
            .map(String::from)
            .to_vec(),
    ];
    let mut before = "";
    for (field, name, text) in six.chain(gallery) {
        if field != before {
            rows.push([field, "", "", ""].map(String::from).to_vec());
            before = field;
        }
        let model = Model::from_text(name, text).map_err(latens::Error::from)?;
        rows.push(vec![
            format!("  {name}"),
            model.name.clone(),
            measured(&model).join(" "),
            hidden(&model).join(" "),
        ]);
    }
    let table = text::table(0, &[Side::Left; 4], &rows);
    Ok(format!(
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
