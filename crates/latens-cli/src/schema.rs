//! `latens schema`: the JSON Schema of the model file.

use clap::Args;

use crate::failure::Failure;
use crate::text;

/// Print the JSON Schema of the model file, for editors that complete and check it
#[derive(Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments) -> Result<(), Failure> {
    text::print(&format!("{}\n", latens::model::SCHEMA.trim_end()))
}
