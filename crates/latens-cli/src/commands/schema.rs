//! `latens schema`: the JSON Schema of the model file, and of what the verbs print with `--json`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use latens_report::outputs;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text;

const OUTPUTS: &str = include_str!("../outputs.json");
const MODEL_SUBJECT: &str = "model";
/// Verbs whose output has a schema: those of [`outputs`], and `$defs` of [`OUTPUTS`].
const VERBS: [&str; 12] = [
    "fit", "predict", "estimate", "simulate", "check", "stream", "export", "distill", "design",
    "compare", "profile", "report",
];

/// Print a JSON Schema: of the model file, for editors that complete and check it, or of what a verb
/// prints with --json
#[derive(Args)]
pub struct Arguments {
    /// The model file, or the verb
    #[arg(default_value = MODEL_SUBJECT, value_parser = subjects())]
    what: String,
}

fn subjects() -> PossibleValuesParser {
    PossibleValuesParser::new([MODEL_SUBJECT].into_iter().chain(VERBS))
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.what.as_str() {
        MODEL_SUBJECT => text::print(&format!("{:#}\n", latens::model::schema())),
        verb => text::print(&format!("{:#}\n", output(verb))),
    }
}

/// The schema of what a verb prints.
fn output(verb: &str) -> Value {
    if let Some(mut schema) = outputs::schema(verb) {
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        schema["title"] = json!(format!("latens {verb} --json"));
        return schema;
    }
    let mut schema: Value = serde_json::from_str(OUTPUTS).unwrap_or_default();
    schema["title"] = json!(format!("latens {verb} --json"));
    schema["$ref"] = json!(format!("#/$defs/{verb}"));
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_schema() {
        for verb in VERBS {
            let schema = output(verb);
            let is_listed = outputs::schema(verb).is_some();
            assert!(is_listed || schema["$defs"][verb].is_object(), "{verb}");
        }
    }
}
