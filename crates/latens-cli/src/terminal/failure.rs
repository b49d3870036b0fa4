//! How a verb fails: the message on stderr and the exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use latens::record::RecordError;
use latens::suggest::suggest;
use latens::{Door, Error};
use serde_json::json;

use crate::interrupt::INTERRUPTED_EXIT_CODE;
use crate::text;

/// Why a verb did not do what it was asked.
pub enum Failure {
    Library(Error),
    Message(String),
    /// Standard output cannot be written.
    Output(io::Error),
    /// Somebody stopped what was then finished early; all has been said.
    Interrupted,
    /// A fit was written that is not to be trusted; why has been said.
    Distrusted,
}

/// Exit code of a fit that was written, and is not to be trusted.
const DISTRUSTED_EXIT_CODE: u8 = 4;

impl Failure {
    pub fn file(action: &str, path: &Path, source: io::Error) -> Self {
        Self::Message(format!("cannot {action} {}: {source}", path.display()))
    }

    /// Says what went wrong and gives the exit code; with `--json` as an object on standard output too.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            // mistakes in a model file come with their own heading, one each
            Self::Library(Error::Model(e)) => (e.to_string(), 1),
            Self::Library(Error::Stopped) => {
                let message = "stopped before anything was learned; nothing was written";
                (message.into(), INTERRUPTED_EXIT_CODE)
            }
            Self::Interrupted => return ExitCode::from(INTERRUPTED_EXIT_CODE),
            Self::Distrusted => return ExitCode::from(DISTRUSTED_EXIT_CODE),
            Self::Library(e @ Error::Diverged(_)) => (headed(&e.at(Door::CommandLine)), 3),
            Self::Library(e) => (headed(&e.at(Door::CommandLine)), 1),
            Self::Message(message) => (headed(&message), 1),
            // `latens simulate … | head` wants no more, and that is fine
            Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(e) => (headed(&format!("cannot write to standard output: {e}")), 1),
        };
        text::note(&message);
        as_json(&message, code);
        ExitCode::from(code)
    }
}

fn headed(message: &str) -> String {
    format!("error: {message}")
}

/// For programs that read one object: what went wrong, where `--json` was asked for.
fn as_json(message: &str, code: u8) {
    if std::env::args().any(|word| word == "--json") {
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let object = json!({ "error": { "message": message, "exit_code": code } });
        // nobody is left to hear that it failed
        let _ = text::print(&format!("{object:#}\n"));
    }
}

/// The verb that a misspelt one may have been meant to be, where clap has no idea of its own.
fn meant(error: &clap::Error) -> Option<String> {
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return None;
    }
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let program = crate::Program::command();
    let names = program.get_subcommands().map(clap::Command::get_name);
    suggest(verb, names)
}

/// A command line that cannot be understood, or one that asks for help.
pub fn usage(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    let _ = error.print();
    if let Some(close) = meant(error) {
        text::note(&format!("\n  did you mean `latens {close}`?"));
    }
    if code != 0 {
        as_json(error.render().to_string().trim(), code);
    }
    ExitCode::from(code)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Library(error.into())
    }
}
