//! The MODEL argument: a file, or the name of a built-in system or of a problem of the gallery.

use std::path::Path;

use latens::suggest::suggest;
use latens::{Error, Model, systems};
use latens_lab::gallery;

use crate::failure::Failure;

/// The names of all models that the program carries.
pub fn names() -> impl Iterator<Item = &'static str> {
    let systems = systems::SYSTEMS.iter().map(|(name, _)| *name);
    systems.chain(gallery::PROBLEMS.iter().map(|problem| problem.name))
}

/// The text of one of them.
pub fn embedded(name: &str) -> Option<&'static str> {
    systems::find(name).or_else(|| Some(gallery::find(name)?.text))
}

/// Reads a model; a file of that name wins over one that the program carries.
pub fn read(argument: &str) -> Result<Model, Failure> {
    let path = Path::new(argument);
    if path.exists() {
        return Ok(Model::from_file(path).map_err(Error::from)?);
    }
    match embedded(argument) {
        Some(text) => Ok(Model::from_text(argument, text).map_err(Error::from)?),
        None => Err(Failure::Message(unknown(argument))),
    }
}

fn unknown(argument: &str) -> String {
    let carried = names().map(str::to_owned);
    let candidates: Vec<String> = carried.chain(files_beside(argument)).collect();
    let hint = match suggest(argument, candidates.iter().map(String::as_str)) {
        Some(close) => format!("did you mean {close}?"),
        None => {
            "`latens systems` lists the built-in ones, `latens init` writes one as a file".into()
        }
    };
    format!("there is no model file {argument} and no built-in system of that name; {hint}")
}

/// The model files in the folder that the argument points into.
fn files_beside(argument: &str) -> Vec<String> {
    let folder = Path::new(argument).parent().unwrap_or(Path::new(""));
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let files = entries.map(|e| folder.join(e.file_name()));
    files
        .filter(|f| f.extension().is_some_and(|e| e == "toml"))
        .map(|f| f.display().to_string())
        .collect()
}
