//! `latens init`: a built-in system as a model file to start from.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use latens::record::write_atomic;
use latens::suggest::suggest;
use latens::systems::{self, SYSTEMS};

use crate::failure::Failure;
use crate::{output, text};

/// Write the model file of a built-in system, as a starting point
#[derive(Args)]
pub struct Arguments {
    /// A built-in system; `latens systems` lists them
    name: String,
    /// The file to write [default: NAME.toml in the current folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = arguments.name.as_str();
    let Some(model) = systems::find(name) else {
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
    text::note(&format!("wrote {}", path.display()));
    Ok(())
}
