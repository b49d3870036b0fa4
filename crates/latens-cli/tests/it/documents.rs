//! What the documents show works: model files compile, commands run.

use std::path::Path;

use crate::program::Place;
use latens::Model;

/// A fenced block of a document: its language, first line number and text.
struct Block {
    language: String,
    line: usize,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut found: Vec<Block> = vec![];
    let mut inside = false;
    for (k, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), inside) {
            (Some(_), true) => inside = false,
            (Some(language), false) => {
                inside = true;
                found.push(Block {
                    language: language.trim().into(),
                    line: k + 2,
                    text: String::new(),
                });
            }
            (None, true) => {
                let block = found.last_mut().unwrap();
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    found
}

#[test]
fn every_model_in_the_documents_compiles() {
    for document in [
        "README.md",
        "docs/reference/model-file.md",
        "docs/reference/settings.md",
    ] {
        let models: Vec<Block> = blocks(document)
            .into_iter()
            .filter(|b| b.language == "toml")
            .collect();
        assert!(!models.is_empty(), "{document} shows no model");
        for block in models {
            let place = format!("{document}, from line {}", block.line);
            if let Err(error) = Model::from_text(&place, &block.text) {
                panic!("{error}");
            }
        }
    }
}

/// A model block whose first line is `# name.toml` is written to that file, then every line of a
/// shell block that starts with `latens` is run, in the order of the document.
#[test]
fn the_commands_of_the_readme_run() {
    let place = Place::new();
    let mut run = 0;
    for block in blocks("README.md") {
        let first = block.text.lines().next().unwrap_or("");
        match (block.language.as_str(), first.strip_prefix("# ")) {
            ("toml", Some(file)) => place.write(file, &block.text),
            ("sh", _) => {
                for line in block.text.lines() {
                    if let Some(arguments) = line.strip_prefix("latens ") {
                        let command = arguments.split('#').next().unwrap_or("");
                        place.succeeds(command);
                        run += 1;
                    }
                }
            }
            _ => {}
        }
    }
    assert!(run > 0, "README.md shows no command");
}

#[test]
fn the_reference_names_every_function_and_activation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/model-file.md");
    let text = std::fs::read_to_string(path).unwrap();
    for (name, _) in latens::model::syntax::FUNCTIONS {
        assert!(text.contains(&format!("`{name}(")), "{name} is missing");
    }
    for (name, _) in latens::model::network::Activation::NAMES {
        assert!(text.contains(&format!("| `{name}` |")), "{name} is missing");
    }
    for (name, _) in latens::model::Method::NAMES {
        assert!(text.contains(&format!("`\"{name}\"`")), "{name} is missing");
    }
}
