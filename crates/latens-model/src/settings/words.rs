//! The table of settings as others read it: JSON Schema, Python, and the documentation.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Form, Setting, Settings, TABLE};
use crate::limits::PASSES;

/// The JSON Schema of the section `[fit]`.
pub fn schema() -> Value {
    let properties = TABLE.iter().map(|setting| {
        let mut entry = form_schema(setting.form);
        entry["title"] = title(setting.key).into();
        entry["description"] = format!("{}.", setting.help).into();
        (setting.key.to_string(), entry)
    });
    json!({
        "title": "Fit",
        "description": "Settings of `latens fit`, under the names of its options; the command line overrides them.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties.collect::<serde_json::Map<_, _>>(),
    })
}

fn form_schema(form: Form) -> Value {
    let positive = json!({ "type": "number", "exclusiveMinimum": 0 });
    match form {
        // any name: solvers register themselves
        Form::Solver => json!({ "type": "string", "examples": ["batch"] }),
        Form::Count => {
            json!({ "type": "integer", "minimum": 1, "maximum": PASSES, "examples": [4] })
        }
        Form::Seed => json!({ "type": "integer", "minimum": 0, "examples": [3] }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Positive => positive,
        Form::NotNegative => json!({ "type": "number", "minimum": 0 }),
        Form::Factor => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Form::Tail => json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5 }),
        Form::Variances(_) => json!({
            "anyOf": [positive, {
                "type": "object",
                "propertyNames": { "$ref": "#/$defs/name" },
                "additionalProperties": positive,
            }],
            "examples": [1e-6, { "h": 1e-6 }],
        }),
        Form::Values => json!({
            "type": "object",
            "propertyNames": { "$ref": "#/$defs/name" },
            "additionalProperties": { "type": "number" },
            "examples": [{ "gain": 0.37 }],
        }),
        Form::Names(_) => json!({
            "type": "array",
            "items": { "$ref": "#/$defs/name" },
            "examples": [["gain"]],
        }),
    }
}

/// `hidden_noise` as a title.
fn title(key: &str) -> String {
    let words = key.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The module `latens/_settings.py`: the keywords of a fit with their types.
pub fn python(solvers: &[&str]) -> String {
    let mut out = String::from(
        "# Made from the table of settings in Rust by `scripts/generate`; do not edit.\n\
         \"\"\"The settings of a fit, as keywords.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from collections.abc import Mapping, Sequence\n\
         from typing import Literal, TypedDict, Union\n\n",
    );
    let names: Vec<String> = solvers
        .iter()
        .map(|name| format!("    \"{name}\",\n"))
        .collect();
    let _ = write!(
        out,
        "Solver = Literal[\n{}]\n\"\"\"The solvers.\"\"\"\n\n\nclass Settings(TypedDict, total=False):\n    \"\"\"What `Model.fit` can be told; see `latens fit --help`.\"\"\"\n",
        names.concat()
    );
    for Setting {
        key, form, help, ..
    } in TABLE
    {
        let kind = match form {
            Form::Solver => "Solver",
            Form::Count | Form::Seed => "int",
            Form::Flag => "bool",
            Form::Positive | Form::NotNegative | Form::Factor | Form::Tail => "float",
            Form::Variances(_) => "Union[float, Mapping[str, float]]",
            Form::Values => "Mapping[str, float]",
            Form::Names(_) => "Sequence[str]",
        };
        let _ = write!(out, "\n    {key}: {kind}\n    \"\"\"{help}.\"\"\"\n");
    }
    out
}

/// The table of the documentation; `defaults` are the settings of solvers, by name.
pub fn markdown(defaults: &[Settings]) -> String {
    let mut out = String::from("| setting | is | default | what it does |\n|---|---|---|---|\n");
    for setting in TABLE {
        let form = match setting.form {
            Form::Solver => "a solver's name",
            Form::Count => "a whole number from 1",
            Form::Seed => "a whole number from 0",
            Form::Flag => "true or false",
            Form::Positive => "a number above 0",
            Form::NotNegative => "a number from 0",
            Form::Factor => "a number above 0, at most 1",
            Form::Tail => "a number above 0, below 0.5",
            Form::Variances(_) => "a variance, or variances by name",
            Form::Values => "values by name",
            Form::Names(_) => "names",
        };
        let default = setting.default(defaults).unwrap_or_else(|| "none".into());
        let _ = writeln!(
            out,
            "| `{}` | {form} | {default} | {} |",
            setting.key, setting.help
        );
    }
    out
}

impl Setting {
    /// Its default in words: the first solver's, and those of others where they differ. `None` where
    /// nothing stands for it.
    pub fn default(&self, defaults: &[Settings]) -> Option<String> {
        let written = |settings: &Settings| {
            let all = serde_json::to_value(settings).ok()?;
            in_words(all.get(self.key)?)
        };
        let first = written(defaults.first()?)?;
        if self.form == Form::Solver {
            return Some(first);
        }
        let others = defaults.iter().filter_map(|settings| {
            let default = written(settings).filter(|default| *default != first)?;
            Some(format!("{} {default}", settings.solver))
        });
        let others: Vec<String> = others.collect();
        Some(if others.is_empty() {
            first
        } else {
            format!("{first}; {}", others.join(", "))
        })
    }
}

fn in_words(value: &Value) -> Option<String> {
    Some(match value {
        Value::Number(n) => number(n.as_f64()?),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        Value::Object(object) => match (object.get("relative"), object.get("variance")) {
            (Some(relative), _) => number(relative.as_f64()?),
            (_, Some(variance)) => format!("a variance of {}", number(variance.as_f64()?)),
            _ => return None,
        },
        _ => return None,
    })
}

fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e4).contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}
