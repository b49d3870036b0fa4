//! `latens init`: a model file to start from, a commented template or a built-in system.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use latens::record::write_atomic;
use latens::suggest::suggest;
use latens::systems::{self, SYSTEMS};

use crate::failure::Failure;
use crate::{output, text};

/// Write a model file to start from: a commented template, or a built-in system
#[derive(Args)]
pub struct Arguments {
    /// A built-in system; `latens systems` lists them [default: a commented template]
    name: Option<String>,
    /// The file to write [default: NAME.toml, or model.toml for the template, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

/// What somebody fills in.
const TEMPLATE: &str = include_str!("template.toml");

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (name, found) = match &arguments.name {
        None => ("model", Some(TEMPLATE)),
        Some(name) => (name.as_str(), systems::find(name)),
    };
    let Some(model) = found else {
        let names = || SYSTEMS.iter().map(|(n, _)| *n);
        let hint = match suggest(name, names()) {
            Some(close) => format!("did you mean {close}?"),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(Failure::Message(format!(
            "there is no built-in system `{name}`; {hint}"
        )));
    };
    let default = || PathBuf::from(format!("{name}.toml"));
    let path = arguments.output.clone().unwrap_or_else(default);
    output::free(&path, arguments.force)?;
    write_atomic(&path, |file| file.write_all(model.as_bytes()))
        .map_err(|e| Failure::file("write", &path, e))?;
    let shown = path.display();
    text::note(&format!(
        "wrote {shown}; `latens simulate {shown} -o record.csv` makes data to try it on"
    ));
    Ok(())
}
