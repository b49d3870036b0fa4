//! `latens completions` and `latens man`: what a shell and `man` want to know.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::{Program, text};

const COMPLETIONS_HELP: &str = "\
Examples:
  latens completions bash > /usr/share/bash-completion/completions/latens
  latens completions zsh > ~/.zfunc/_latens
  latens completions fish > ~/.config/fish/completions/latens.fish
  latens completions powershell >> $PROFILE";

/// Print the completions of a shell
#[derive(Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub struct Completions {
    /// bash, zsh, fish, powershell or elvish
    shell: Shell,
}

/// Print the manual page: of the program, or of one verb
#[derive(Args)]
#[command(after_help = "Example:\n  latens man fit | man -l -")]
pub struct Man {
    /// The verb
    verb: Option<String>,
}

pub fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut script = vec![];
    clap_complete::generate(
        arguments.shell,
        &mut Program::command(),
        "latens",
        &mut script,
    );
    text::print(&String::from_utf8_lossy(&script))
}

pub fn man(arguments: &Man) -> Result<(), Failure> {
    let mut program = Program::command();
    program.build();
    let command = match &arguments.verb {
        None => program,
        Some(verb) => {
            let names: Vec<&str> = program.get_subcommands().map(|c| c.get_name()).collect();
            let place = latens::suggest::find(verb, &names, "verb").map_err(Failure::Message)?;
            let found = program.get_subcommands().nth(place);
            found.cloned().unwrap_or(program)
        }
    };
    let mut page = vec![];
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(Failure::Output)?;
    text::print(&String::from_utf8_lossy(&page))
}
