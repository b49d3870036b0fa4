//! Models from files, texts and the built-in systems.

use std::io::Read;
use std::path::Path;

use super::Model;
use crate::diagnostic::{Diagnostic, ModelError};
use crate::error::Error;
use crate::file::{self, ModelFile};
use crate::{limits, systems};

impl Model {
    /// Reads a model file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |source| Error::Read {
            path: path.into(),
            source,
        };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        // a device or a pipe has no length to ask for
        let mut start = file.take(limits::FILE_BYTES as u64 + 1);
        start.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() > limits::FILE_BYTES {
            return Err(too_long(path));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let read = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = read.iter().filter(|b| **b == b'\n').count() + 1;
            let message = format!("line {line} is not UTF-8 text; save the file as UTF-8");
            failed(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                message,
            ))
        })?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// A model that comes with Latens; see [`systems`].
    ///
    /// ```
    /// let model = latens_model::Model::builtin("hodgkin-huxley")?;
    /// assert_eq!(model.hidden(), [3]);
    /// assert_eq!(model.states[3].name, "h");
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unknown`] where there is none of that name.
    pub fn builtin(name: &str) -> Result<Self, Error> {
        match systems::find(name) {
            Some(text) => Self::from_text(name, text),
            None => Err(Error::Unknown { name: name.into() }),
        }
    }

    /// Reads a model from text; `file` is the name that errors show.
    pub fn from_text(file: &str, text: &str) -> Result<Self, Error> {
        if text.len() > limits::FILE_BYTES {
            return Err(too_long(Path::new(file)));
        }
        let (definitions, diagnostics) = file::read(text);
        Self::from_definitions(file, definitions, text, diagnostics)
    }

    /// Reads a text of the time when no method meant Euler's; the text of the model names it.
    ///
    /// ```
    /// use latens_model::{Method, Model};
    ///
    /// let text = "[states.x]\nderivative = \"-x\"\n[measurements]\nx = \"x\"";
    /// assert_eq!(Model::from_text("model", text)?.method, Method::Rk4);
    /// let earlier = Model::from_earlier_text("model", text)?;
    /// assert_eq!(earlier.method, Method::Euler);
    /// assert!(earlier.text.starts_with("time.method = \"euler\"\n[states.x]"));
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Model::from_text`], and where there is no place for the method's name.
    pub fn from_earlier_text(file: &str, text: &str) -> Result<Self, Error> {
        match file::with_method(text, "euler") {
            Some(text) => Self::from_text(file, &text),
            None => {
                let mistake = Diagnostic::new(0..0, "no method is named, which meant Euler's")
                    .help("write method = \"euler\" into [time]");
                Err(ModelError::new(file, text, vec![mistake]).into())
            }
        }
    }

    pub(super) fn from_definitions(
        name: &str,
        mut file: ModelFile,
        text: &str,
        mut diagnostics: Vec<Diagnostic>,
    ) -> Result<Self, Error> {
        file.add_sensors();
        file.add_differences();
        let model = Self::build(name, &file, text, &mut diagnostics);
        match model {
            Some(model) if diagnostics.is_empty() => Ok(model),
            _ => Err(ModelError::new(name, text, diagnostics).into()),
        }
    }

    /// The file with what is fixed and freed.
    pub(super) fn definitions(&self) -> (ModelFile, Vec<Diagnostic>) {
        let (mut file, diagnostics) = file::read(&self.text);
        // it was applied to this text before
        let _ = self.held.apply(&mut file);
        file.add_sensors();
        file.add_differences();
        (file, diagnostics)
    }
}

fn too_long(path: &Path) -> Error {
    let most = limits::FILE_BYTES >> 20;
    let message = format!("it has more than {most} MB; a model file is a short text");
    Error::Read {
        path: path.into(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, message),
    }
}
