//! How a verb fails: the message on stderr and the exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use latens::record::RecordError;
use latens::{Door, Error};

use crate::interrupt::INTERRUPTED;
use crate::text;

/// Why a verb did not do what it was asked.
pub enum Failure {
    Library(Error),
    Message(String),
    /// Standard output cannot be written.
    Output(io::Error),
    /// Somebody stopped what was then finished early; all has been said.
    Interrupted,
}

impl Failure {
    pub fn file(action: &str, path: &Path, source: io::Error) -> Self {
        Self::Message(format!("cannot {action} {}: {source}", path.display()))
    }

    /// Says what went wrong and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (message, code) = match self {
            // mistakes in a model file come with their own heading, one each
            Self::Library(Error::Model(e)) => (e.to_string(), 1),
            Self::Library(Error::Stopped) => {
                let message = "stopped before anything was learned; nothing was written";
                (message.into(), INTERRUPTED)
            }
            Self::Interrupted => return ExitCode::from(INTERRUPTED),
            Self::Library(e @ Error::Diverged(_)) => {
                (format!("error: {}", e.at(Door::CommandLine)), 3)
            }
            Self::Library(e) => (format!("error: {}", e.at(Door::CommandLine)), 1),
            Self::Message(message) => (format!("error: {message}"), 1),
            // `latens simulate … | head` wants no more, and that is fine
            Self::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Output(e) => (format!("error: cannot write to standard output: {e}"), 1),
        };
        text::note(&message);
        ExitCode::from(code)
    }
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
