//! `latens schema`: the JSON Schema of the model file, and of what the verbs print with `--json`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text;

const OUTPUTS: &str = include_str!("../outputs.json");
const MODEL: &str = "model";
/// Verbs whose output has a schema; `$defs` of [`OUTPUTS`].
const VERBS: [&str; 6] = ["fit", "predict", "estimate", "simulate", "stream", "report"];

/// Print a JSON Schema: of the model file, for editors that complete and check it, or of what a verb
/// prints with --json
#[derive(Args)]
pub struct Arguments {
    /// The model file, or the verb
    #[arg(default_value = MODEL, value_parser = what())]
    what: String,
}

fn what() -> PossibleValuesParser {
    PossibleValuesParser::new([MODEL].into_iter().chain(VERBS))
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.what.as_str() {
        MODEL => text::print(&format!("{:#}\n", latens::model::schema())),
        verb => text::print(&format!("{:#}\n", output(verb))),
    }
}

/// The schema of what a verb prints.
fn output(verb: &str) -> Value {
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
            assert!(output(verb)["$defs"][verb].is_object(), "{verb}");
        }
    }
}
