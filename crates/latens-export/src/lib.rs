//! What was learned, where it is used: a [`Fit`] as code for other tools.
//!
//! All of it comes from one generator ([`generate()`]), which writes the programs of the compiled system in
//! a language, with the learned constants and weights in them, in f64.
//!
//! ```
//! use latens_export::{Target, export};
//!
//! let fit = latens::example_fit();
//! let export = export(&fit, Target::Python, "oscillator")?;
//! assert_eq!(export.files[0].name, "oscillator.py");
//! # Ok::<(), latens::Error>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![allow(rustdoc::private_intra_doc_links)]

mod c;
mod exported;
mod fmu;
mod generate;
mod js;
mod names;
mod onnx;
mod python;
mod toml;
mod zip;

use std::io::Write;
use std::path::{Path, PathBuf};

use latens::record::write_atomic;
use latens::{Error, Fit};

use exported::Exported;
pub use fmu::Fmi;
#[doc(inline)]
pub use generate::{Language, generate};

/// What a fit is exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A module for numpy, jax and CasADi.
    Python,
    /// A model file with nothing to learn.
    Toml,
    /// A C99 file and its header.
    C,
    /// A functional mock-up unit of a version of the standard.
    Fmu(Fmi),
    /// A JavaScript module.
    Js,
    /// ONNX graphs.
    Onnx,
}

impl Target {
    /// Its name in commands, and the ending of its file.
    pub const NAMES: [(&'static str, Target, &'static str); 7] = [
        ("c", Target::C, "c"),
        ("fmu", Target::Fmu(Fmi::Two), "fmu"),
        ("fmu3", Target::Fmu(Fmi::Three), "fmu"),
        ("js", Target::Js, "js"),
        ("onnx", Target::Onnx, "onnx"),
        ("python", Target::Python, "py"),
        ("toml", Target::Toml, "toml"),
    ];

    /// The target of a name.
    ///
    /// # Errors
    /// [`Error::Setting`] with the names that there are.
    pub fn of_name(name: &str) -> Result<Self, Error> {
        let row = Self::NAMES.iter().find(|(known, ..)| *known == name);
        row.map(|(_, target, _)| *target).ok_or_else(|| {
            let names = Self::NAMES.map(|(name, ..)| name);
            Error::Setting(format!(
                "there is no target `{name}`; there are {}",
                names.join(", ")
            ))
        })
    }

    /// The target whose files end like this one.
    ///
    /// # Errors
    /// [`Error::Setting`] with the endings that there are.
    pub fn of_path(path: &Path) -> Result<Self, Error> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let row = Self::NAMES.iter().find(|(.., known)| *known == ending);
        row.map(|(_, target, _)| *target).ok_or_else(|| {
            Error::Setting(format!(
                "the ending of {} says no target: give a file that ends in .c, .fmu, .js, .onnx, .py or .toml",
                path.display()
            ))
        })
    }

    /// The ending of its file.
    pub fn ending(self) -> &'static str {
        let row = Self::NAMES.iter().find(|(_, target, _)| *target == self);
        row.map_or("", |(.., ending)| ending)
    }
}

/// A file to write.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What came of an export.
#[derive(Debug, Clone)]
pub struct Export {
    /// The first is the one that was asked for, the others go beside it.
    pub files: Vec<File>,
    /// What whoever uses it should know.
    pub notes: Vec<String>,
}

/// What an export has written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The files, the one that was asked for first.
    pub files: Vec<PathBuf>,
    /// Their bytes together.
    pub bytes: usize,
    /// What whoever uses them should know.
    pub notes: Vec<String>,
}

/// Exports a fit to a file, and others beside it; each is written whole or not at all.
///
/// # Errors
/// Those of [`export`]; [`Error::Setting`] where a file exists and is not to be replaced, [`Error::Io`]
/// where one cannot be written.
pub fn write(fit: &Fit, target: Target, path: &Path, replace: bool) -> Result<Written, Error> {
    let stem = path.file_stem().and_then(|s| s.to_str()).ok_or_else(|| {
        Error::Setting(format!("{} does not name a file to write", path.display()))
    })?;
    let exported = export(fit, target, stem)?;
    let paths = exported.files.iter().enumerate().map(|(i, file)| match i {
        0 => path.to_path_buf(),
        _ => path.with_file_name(&file.name),
    });
    let paths: Vec<PathBuf> = paths.collect();
    if let Some(exists) = paths.iter().find(|p| p.exists() && !replace) {
        return Err(Error::Setting(format!(
            "{} exists; overwrite it with ⟦force⟧, or choose another file",
            exists.display()
        )));
    }
    for (path, file) in paths.iter().zip(&exported.files) {
        let written = write_atomic(path, |out| out.write_all(&file.bytes));
        written.map_err(|source| Error::Io {
            action: "write",
            path: path.clone(),
            source,
        })?;
    }
    Ok(Written {
        files: paths,
        bytes: exported.files.iter().map(|f| f.bytes.len()).sum(),
        notes: exported.notes,
    })
}

/// What was learned as an expression of JavaScript, for a page: its value is an object with what the module of
/// [`Target::Js`] exports. No text of a model ends the element that it stands in.
///
/// ```
/// let script = latens_export::script(&latens::example_fit());
/// assert!(script.starts_with("(() => {") && script.ends_with("})()"));
/// ```
pub fn script(fit: &Fit) -> String {
    js::expression(&Exported::new(fit))
}

/// The name of the file where nobody gives one: that of the model, in letters that every tool takes.
pub fn default_stem(fit: &Fit) -> String {
    names::Names::of(&fit.model).model
}

/// A fit as the files of a target; `stem` is their name without its ending.
///
/// # Errors
/// [`Error::Setting`] with the reason, where the target cannot say what the model says; [`Error::Io`]
/// where a library could not be compiled.
pub fn export(fit: &Fit, target: Target, stem: &str) -> Result<Export, Error> {
    let quotes = |c: char| c.is_control() || c == '"' || c == '\\';
    if stem.is_empty() || stem.contains(quotes) {
        return Err(Error::Setting(format!(
            "{stem:?} cannot be the name of a file of code; take letters and digits"
        )));
    }
    let holds = &fit.model.hold;
    if holds.windows(2).any(|pair| pair[0] != pair[1]) && target != Target::Toml {
        return Err(Error::Setting(
            "inputs that are held in different ways can be exported to toml alone".into(),
        ));
    }
    let exported = Exported::new(fit);
    let mut notes = vec![];
    if !fit.members.is_empty() {
        notes.push(format!(
            "this is the best of {} members; what the ensemble predicts together is the median of all",
            fit.members.len()
        ));
    }
    let name = format!("{stem}.{}", target.ending());
    let first = |bytes: Vec<u8>| File { name, bytes };
    let files = match target {
        Target::Python => vec![first(python::module(&exported).into_bytes())],
        Target::Js => vec![first(js::module(&exported).into_bytes())],
        Target::Toml => vec![first(toml::file(&exported)?.into_bytes())],
        Target::Onnx => {
            let networks = onnx::networks(&exported).into_iter();
            let networks = networks.map(|(network, bytes)| File {
                name: format!("{stem}.{network}.onnx"),
                bytes,
            });
            [first(onnx::map(&exported)?)]
                .into_iter()
                .chain(networks)
                .collect()
        }
        Target::C => {
            let header = format!("{stem}.h");
            let source = c::source(&exported, &header);
            let header = File {
                bytes: c::header(&exported).into_bytes(),
                name: header,
            };
            vec![first(source.into_bytes()), header]
        }
        Target::Fmu(version) => {
            let (bytes, is_compiled) = fmu::unit(&exported, version)?;
            if !is_compiled {
                notes.push(
                    "there is no C compiler here: the unit has sources and no library".into(),
                );
            }
            if exported.first_order() {
                notes.push(
                    "model exchange alone: co-simulation holds inputs over a step, and the model was learned \
                     with inputs that go straight to their next value"
                        .into(),
                );
            }
            vec![first(bytes)]
        }
    };
    Ok(Export { files, notes })
}
