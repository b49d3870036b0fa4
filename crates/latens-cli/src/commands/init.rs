//! `latens init`: a model file to start from, a commented template, a built-in system or a problem of the
//! gallery.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use latens::record::write_atomic;
use latens::suggest::suggest;

use crate::commands::systems;
use crate::failure::Failure;
use crate::{model, output, text};

/// Write a model file to start from: a commented template, or a finished model of some field
#[derive(Args)]
pub struct Arguments {
    /// A built-in system or a problem of the gallery; --list names them [default: a commented
    /// template]
    name: Option<String>,
    /// List what there is, by field
    #[arg(long, conflicts_with_all = ["name", "output", "force"])]
    list: bool,
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
    if arguments.list {
        return text::print(&systems::by_field()?);
    }
    let (name, found) = match &arguments.name {
        None => ("model", Some(TEMPLATE)),
        Some(name) => (name.as_str(), model::embedded(name)),
    };
    let Some(model) = found else {
        let hint = match suggest(name, model::names()) {
            Some(close) => format!("did you mean {close}?"),
            None => "`latens init --list` has what there is".into(),
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
    let more = match arguments.name {
        None => "\n`latens init --list` has finished models of many fields",
        Some(_) => "",
    };
    text::note(&format!(
        "wrote {shown}; `latens simulate {shown} -o record.csv` makes data to try it on{more}"
    ));
    Ok(())
}
