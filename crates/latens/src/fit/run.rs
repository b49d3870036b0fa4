//! A run: a fit as a folder that can be looked into, loaded and repeated.
//!
//! ```text
//! run/model.toml            the model file, letter for letter
//!     weights.safetensors   θ by network and layer, the scaling of the networks, P_θ, draws of δθ
//!     fit.json              every setting, seed, version, checksum and score: see [`Facts`]
//!     states.csv            the states over time (states_1.csv, … for several records)
//!     ensemble/1, …         the members of an ensemble, each a run
//!     stream.safetensors    only in the snapshot of a stream: the filter, see [`Run::stream`]
//! ```
//!
//! [`save`] writes the folder whole or not at all; [`load`] gives back θ, scaling, covariance
//! and draws bit for bit, so that a run predicts what its fit did. Fitting the same records again with the settings in `fit.json` gives the same
//! bits on one machine.

mod doubts;
mod facts;
mod folder;
mod states;
mod stream;
mod using;
mod weights;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

pub use doubts::check_test;
pub use facts::{About, Constant, EpochFacts, Facts, MemberFacts, RecordFacts};
pub use folder::check;
pub use stream::StreamFacts;
pub use using::{Change, Predicted};

use super::Fit;
use crate::Error;
use crate::estimate::stream::State;
use crate::estimate::{Prediction, Predictor, Start, ensemble};
use crate::linalg::PackedCovariance;
use crate::model::Model;
use crate::record::{Record, Table, write_csv_to};

const MODEL: &str = "model.toml";
const WEIGHTS: &str = "weights.safetensors";
const FACTS: &str = "fit.json";
const STATES: &str = "states";
const STREAM: &str = "stream.safetensors";
const ENSEMBLE: &str = "ensemble";

/// A record and the file that it came from.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    /// The file as the user named it.
    pub file: String,
    /// Of the file's bytes, see [`checksum`].
    pub sha256: String,
    pub record: &'a Record,
}

/// A run read back from its folder.
#[derive(Debug, Clone)]
pub struct Run {
    /// The model, its networks scaled as in the fit.
    pub model: Model,
    pub theta: Vec<f64>,
    /// P_θ.
    pub covariance: PackedCovariance,
    /// Draws of δθ, see [`crate::estimate::bands`]; none of the recursions' and of old runs.
    pub draws: Vec<Vec<f64>>,
    pub facts: Facts,
    /// Of an ensemble, all of them.
    pub members: Vec<Run>,
    /// Where a stream goes on, for a snapshot of one.
    pub stream: Option<State>,
}

impl Run {
    /// What predictions of other records are made with: what [`Fit::predictor`] gives.
    pub fn predictor(&self) -> Predictor<'_> {
        Predictor {
            model: &self.model,
            theta: &self.theta,
            draws: &self.draws,
            noise: &self.facts.noise,
            repetition: self.facts.repetition,
            scale: &self.facts.nominal.scale,
            regions: &self.facts.regions,
            dt: self.facts.sample_time,
        }
    }

    /// Predicts a record: an ensemble by all its members.
    pub fn predict(&self, record: &Record, start: Start) -> Prediction {
        let members: Vec<Predictor> = self.members.iter().map(Self::predictor).collect();
        match members.is_empty() {
            true => self.predictor().predict(record, start),
            false => ensemble::predict(&members, record, start),
        }
    }

    /// What a file with this checksum served for in the fit; `test` where it played no part.
    pub fn role(&self, sha256: &str) -> &str {
        let own = self.facts.records.iter().find(|r| r.sha256 == sha256);
        own.map_or("test", |r| r.role.as_str())
    }

    /// Whether the run was fitted to this model and these records, in this order, of which the
    /// first `trained` are learned from.
    ///
    /// # Errors
    /// [`Error::Setting`] with what differs.
    pub fn belongs_to(
        &self,
        model: &Model,
        sources: &[Source],
        trained: usize,
    ) -> Result<(), Error> {
        let fail = |message: String| Err(Error::Setting(message));
        if sha256(model.text.as_bytes()) != self.facts.model_sha256 {
            return fail(format!(
                "the run was fitted to another model than this ({}): resume with the run's own model.toml, or fit anew",
                self.facts.model_file
            ));
        }
        // tests played no part
        let before = self.facts.records.iter().filter(|r| r.role != "test");
        let before: Vec<&RecordFacts> = before.collect();
        if sources.len() != before.len() {
            let (then, now) = (before.len(), sources.len());
            return fail(format!(
                "the run was fitted to {then} record(s), these are {now}: resume with the same, or fit anew"
            ));
        }
        for (k, (source, before)) in sources.iter().zip(before).enumerate() {
            let role = role(k, trained);
            if source.sha256 != before.sha256 {
                return fail(format!(
                    "{} is not what the run was fitted to ({}; the checksums differ): resume with the same records in the same order, or fit anew",
                    source.file, before.file
                ));
            }
            if role != before.role || source.record.len() != before.samples {
                return fail(format!(
                    "{} was used with {} samples to {}, now it is {} samples to {role}: resume with the same, or fit anew",
                    source.file,
                    before.samples,
                    before.role,
                    source.record.len()
                ));
            }
        }
        Ok(())
    }
}

/// SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of the names and numbers of a table that is no file.
pub fn table_sha256<V: AsRef<[f64]>>(table: &Table<V>) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for (k, name) in table.names().enumerate() {
        hash.update(name.as_bytes());
        for values in table.values(k)?.chunks(1024) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            hash.update(bytes);
        }
    }
    Ok(hexadecimal(&hash.finalize()))
}

/// SHA-256 of a file.
///
/// # Errors
/// [`Error::Io`].
pub fn checksum(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|e| Error::io("read", path, e))?;
    Ok(sha256(&bytes))
}

/// The files of a run by their path inside the folder: a run that is in no folder.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Takes the files of a run one by one.
type Sink<'s> = dyn FnMut(String, Vec<u8>) -> Result<(), Error> + 's;

/// Writes a run folder; `sources` are the records of the fit, in its order.
///
/// An existing folder is replaced only where `replace` is set and it is a run; see [`check`].
///
/// # Errors
/// [`Error::Run`] where the folder must not be replaced, [`Error::Io`] where it cannot be written.
pub fn save(
    fit: &Fit,
    sources: &[Source],
    facts: &Facts,
    folder: impl AsRef<Path>,
    replace: bool,
) -> Result<(), Error> {
    folder::write(folder.as_ref(), replace, |put| {
        each_file(fit, sources, facts, put)
    })
}

/// The files that [`save`] writes.
///
/// # Errors
/// [`Error::Record`] where a name of the model serves twice.
pub fn files(fit: &Fit, sources: &[Source], facts: &Facts) -> Result<Files, Error> {
    collected(|put| each_file(fit, sources, facts, put))
}

/// Writes a run that is in memory, as [`save`] does.
///
/// # Errors
/// Those of [`save`].
pub fn save_files(files: &Files, folder: impl AsRef<Path>, replace: bool) -> Result<(), Error> {
    folder::write(folder.as_ref(), replace, |put| {
        let mut each = files.iter();
        each.try_for_each(|(name, bytes)| put(name.clone(), bytes.clone()))
    })
}

/// Reads all files of a run folder, and no others.
///
/// # Errors
/// [`Error::Io`].
pub fn load_files(folder: impl AsRef<Path>) -> Result<Files, Error> {
    folder::read(folder.as_ref())
}

fn collected(each: impl FnOnce(&mut Sink) -> Result<(), Error>) -> Result<Files, Error> {
    let mut files = Files::new();
    each(&mut |name, bytes| {
        files.insert(name, bytes);
        Ok(())
    })?;
    Ok(files)
}

fn each_file(fit: &Fit, sources: &[Source], facts: &Facts, put: &mut Sink) -> Result<(), Error> {
    of_fit(fit, sources, facts, put)?;
    for (member, about) in fit.members.iter().zip(&facts.ensemble) {
        let facts = facts.of_member(member, sources);
        of_fit(member, sources, &facts, &mut |name, bytes| {
            put(format!("{}/{name}", about.run), bytes)
        })?;
    }
    Ok(())
}

/// The files of one run.
fn of_fit(fit: &Fit, sources: &[Source], facts: &Facts, put: &mut Sink) -> Result<(), Error> {
    of_any(
        &fit.model,
        facts,
        (&fit.theta, &fit.covariance, &fit.draws),
        put,
    )?;
    for (k, (source, estimate)) in sources.iter().zip(&fit.estimates).enumerate() {
        let table = states::table(&fit.model, source.record, estimate)?;
        let (name, mut text) = (states_file(k, sources.len()), Vec::new());
        let written = write_csv_to(&mut text, &table);
        written.map_err(|e| Error::io("write", Path::new(&name), e))?;
        put(name, text)?;
    }
    Ok(())
}

/// The files that every run has.
fn of_any(
    model: &Model,
    facts: &Facts,
    (theta, covariance, draws): (&[f64], &PackedCovariance, &[Vec<f64>]),
    put: &mut Sink,
) -> Result<(), Error> {
    put(MODEL.into(), model.text.as_bytes().to_vec())?;
    let weights = weights::encode(model, theta, covariance, draws, Path::new(WEIGHTS))?;
    put(WEIGHTS.into(), weights)?;
    let json = facts.to_json();
    let json = json.map_err(|e| Error::io("write", Path::new(FACTS), e.into()))?;
    put(FACTS.into(), json)
}

/// The file with the states of the record at a place.
pub fn states_file(place: usize, records: usize) -> String {
    match records {
        1 => format!("{STATES}.csv"),
        _ => format!("{STATES}_{}.csv", place + 1),
    }
}

/// What the record at a place serves for.
fn role(k: usize, trained: usize) -> &'static str {
    if k < trained { "train" } else { "validate" }
}

/// Reads a run folder.
///
/// # Errors
/// [`Error::Run`] where it is none, a file is damaged, or its files do not belong together;
/// [`Error::Io`] where a file cannot be read.
pub fn load(folder: impl AsRef<Path>) -> Result<Run, Error> {
    let folder = folder.as_ref();
    let fail = |message: String| {
        Err(Error::Run {
            path: folder.into(),
            message,
        })
    };
    if !folder.is_dir() {
        return fail("there is no such run folder".into());
    }
    if !folder.join(FACTS).is_file() {
        return fail(format!(
            "this is no run folder: it has no {FACTS}; `latens fit … -o run` writes one"
        ));
    }
    decode(folder, &|name| {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|e| Error::io("read", &path, e))?;
        Ok(Cow::Owned(bytes))
    })
}

/// A run from its files; `name` is what errors call its folder.
///
/// # Errors
/// Those of [`load`].
pub fn from_files(files: &Files, name: impl AsRef<Path>) -> Result<Run, Error> {
    let folder = name.as_ref();
    decode(folder, &|name| match files.get(name) {
        Some(bytes) => Ok(Cow::Borrowed(bytes.as_slice())),
        None => {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            Err(Error::io("read", &folder.join(name), missing))
        }
    })
}

/// Gives the bytes of a file of a run.
type Read<'f> = dyn Fn(&str) -> Result<Cow<'f, [u8]>, Error> + 'f;

fn decode(folder: &Path, read: &Read) -> Result<Run, Error> {
    let fail = |name: &str, message: String| {
        Err(Error::Run {
            path: folder.join(name),
            message,
        })
    };
    let facts = match Facts::from_json(&read(FACTS)?) {
        Ok(facts) => facts,
        Err(message) => return fail(FACTS, message),
    };
    let text = read(MODEL)?;
    if sha256(&text) != facts.model_sha256 {
        return fail(
            MODEL,
            "this file was changed after the fit, its weights belong to another model; restore it, or fit the changed model into a new folder".into(),
        );
    }
    let text = String::from_utf8_lossy(&text);
    let mut model = Model::from_text(&folder.join(MODEL).display().to_string(), &text)?;
    let bytes = read(WEIGHTS)?;
    let precision = facts.settings.precision();
    let members = facts.ensemble.iter().map(|m| {
        let inside = |name: &str| read(&format!("{}/{name}", m.run));
        decode(&folder.join(&m.run), &inside)
    });
    let members = members.collect::<Result<_, _>>()?;
    let weights = match weights::decode(&bytes, &mut model, precision) {
        Ok(weights) => weights,
        Err(message) => return fail(WEIGHTS, message),
    };
    let stream = match &facts.stream {
        None => None,
        Some(own) => match stream::decode(&read(STREAM)?, &model, &weights.theta, own, precision) {
            Ok(state) => Some(state),
            Err(message) => return fail(STREAM, message),
        },
    };
    Ok(Run {
        model,
        theta: weights.theta,
        covariance: weights.covariance,
        draws: weights.draws,
        facts,
        members,
        stream,
    })
}

#[cfg(test)]
mod tests;
