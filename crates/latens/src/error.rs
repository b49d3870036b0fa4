//! Everything that can go wrong, with what to do about it.
//!
//! The library has several doors, and a hint has to name an option as the reader's door does:
//! `--warmup` on the command line, `warmup=` in Python. In a text an option stands as `⟦warmup⟧`, with
//! values by name as `⟦map t=clock⟧`, and [`worded`] turns it into the words of a [`Door`].

use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::{Model, ModelError};
use crate::record::RecordError;
use crate::text;

/// Where somebody uses Latens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The program: an option is `--warmup`.
    CommandLine,
    /// The Python package: an option is `warmup=`.
    Python,
    /// This library: an option is `warmup`.
    Library,
}

/// A text with its options named as a door names them.
///
/// ```
/// use latens::Door;
/// use latens::error::worded;
///
/// let hint = "take more with ⟦warmup⟧";
/// assert_eq!(worded(hint, Door::CommandLine), "take more with --warmup");
/// assert_eq!(worded(hint, Door::Python), "take more with warmup=");
/// ```
pub fn worded(text: &str, door: Door) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('⟦') {
        let Some((option, after)) = after.split_once('⟧') else {
            break;
        };
        out += before;
        out += &match option.split_once(' ') {
            Some((name, values)) => assigned(name, values, door),
            None => named(option, door),
        };
        rest = after;
    }
    out + rest
}

/// An option alone.
fn named(name: &str, door: Door) -> String {
    match door {
        Door::CommandLine => format!("--{}", name.replace('_', "-")),
        Door::Python => format!("{name}="),
        Door::Library => name.into(),
    }
}

/// An option with values by name, a line each: `t=clock`.
fn assigned(name: &str, values: &str, door: Door) -> String {
    let pairs = values.lines().filter_map(|line| line.split_once('='));
    let (option, pairs) = (named(name, door), pairs.collect::<Vec<_>>());
    let assignments = pairs.iter();
    if door == Door::Python {
        let assignments = assignments.map(|(key, value)| format!("{key:?}: {value:?}"));
        return format!("{option}{{{}}}", assignments.collect::<Vec<_>>().join(", "));
    }
    let assignments = assignments.map(|(key, value)| format!("{option} {key}={value}"));
    assignments.collect::<Vec<_>>().join(" ")
}

/// An error of the library.
#[derive(Debug)]
pub enum Error {
    /// Mistakes in a model file; shows each with its line.
    Model(ModelError),
    /// A record that cannot be read or does not fit the model.
    Record(RecordError),
    /// A file that cannot be read or written.
    Io {
        /// What was tried: "read", "write", …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A solver or a simulation left the numbers that make sense.
    Diverged(Divergence),
    /// A setting that makes no sense.
    Setting(String),
    /// A folder that holds no fit.
    Folder {
        /// The folder, or the file inside of it.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The workers of a fit are lost, or none could be started.
    Workers(String),
    /// A sample of a stream that cannot follow the one before it.
    Sample(String),
    /// Stopped by the observer (Ctrl-C).
    Stopped,
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source,
        }
    }

    /// In the words of a door.
    pub fn at(&self, door: Door) -> String {
        let text = match self {
            Self::Model(error) => return error.to_string(),
            Self::Record(error) => error.to_string(),
            Self::Io {
                action,
                path,
                source,
            } => return format!("cannot {action} {}: {source}", path.display()),
            Self::Diverged(divergence) => divergence.to_string(),
            Self::Setting(message) | Self::Sample(message) | Self::Workers(message) => {
                message.clone()
            }
            Self::Folder { path, message } => format!("{}: {message}", path.display()),
            Self::Stopped => "stopped".into(),
        };
        worded(&text, door)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at(Door::Library))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<latens_model::Error> for Error {
    fn from(error: latens_model::Error) -> Self {
        match error {
            latens_model::Error::Read { path, source } => Self::io("read", &path, source),
            latens_model::Error::Mistakes(error) => Self::Model(error),
            other => Self::Setting(other.to_string()),
        }
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// Where and how a computation diverged.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// What was running: "simulation", "alternating", …
    pub during: String,
    /// Pass over the records, from 1; none outside of solvers.
    pub pass: Option<usize>,
    /// Sample of the record.
    pub step: usize,
    /// Its time.
    pub time: f64,
    /// What left its range: a state's name, or "θ".
    pub quantity: String,
    /// Its value.
    pub value: f64,
    /// What to try.
    pub advice: String,
}

/// What to try where a model diverges: of networks only where it has some.
pub fn advice(model: &Model) -> String {
    let mut tries = vec![];
    if !model.unknowns.is_empty() {
        tries.push("guesses nearer to what the constants are");
    }
    if !model.system.networks().is_empty() {
        tries.push("another ⟦seed⟧");
        tries.push("fewer arguments of the networks");
    }
    tries.push("a finer step");
    format!(
        "a check of the model and the record says whether the equations hold at the guesses; else try {}",
        text::list(&tries)
    )
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} diverged", self.during)?;
        if let Some(pass) = self.pass {
            write!(f, " in pass {pass}")?;
        }
        write!(
            f,
            " at step {} (t = {}): {} = {:.3e}; {}",
            self.step, self.time, self.quantity, self.value, self.advice
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No word of networks or constants where there are none.
    #[test]
    fn advice_speaks_of_what_the_model_has() {
        let model = Model::builtin("harmonic-oscillator").unwrap();
        assert!(advice(&model).contains("networks") && !advice(&model).contains("constants"));
        let text = "[states]\nx = { derivative = \"-k*x\" }\n[unknowns]\nk = { guess = 1 }\n[measurements]\nx = \"x\"";
        let model = Model::from_text("decay", text).unwrap();
        assert!(!advice(&model).contains("networks") && advice(&model).contains("constants"));
    }

    #[test]
    fn every_door_names_an_option_in_its_own_way() {
        let hint = "take more with ⟦warm_up⟧, or fewer ⟦starts⟧";
        assert_eq!(
            worded(hint, Door::CommandLine),
            "take more with --warm-up, or fewer --starts"
        );
        assert_eq!(
            worded(hint, Door::Python),
            "take more with warm_up=, or fewer starts="
        );
        let columns = "give ⟦map t=clock\nq=<column>⟧";
        assert_eq!(
            worded(columns, Door::CommandLine),
            "give --map t=clock --map q=<column>"
        );
        assert_eq!(
            worded(columns, Door::Python),
            "give map={\"t\": \"clock\", \"q\": \"<column>\"}"
        );
        assert_eq!(
            Error::Setting(hint.into()).to_string(),
            "take more with warm_up, or fewer starts"
        );
    }
}
