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
mod weights;

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

pub use facts::{About, Constant, EpochFacts, Facts, MemberFacts, RecordFacts};
pub use folder::check;
pub use stream::StreamFacts;

use super::Fit;
use crate::Error;
use crate::estimate::stream::State;
use crate::estimate::{Prediction, Predictor, Start, ensemble};
use crate::linalg::PackedCovariance;
use crate::model::Model;
use crate::record::{Record, write_csv_to};

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
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
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
    folder::write(folder.as_ref(), replace, |inside| {
        write(fit, sources, facts, inside)?;
        for (member, about) in fit.members.iter().zip(&facts.ensemble) {
            let inside = inside.join(&about.run);
            fs::create_dir_all(&inside).map_err(|e| Error::io("write", &inside, e))?;
            write(member, sources, &facts.of_member(member, sources), &inside)?;
        }
        Ok(())
    })
}

/// Writes the files of one run.
fn write(fit: &Fit, sources: &[Source], facts: &Facts, inside: &Path) -> Result<(), Error> {
    let Fit {
        model,
        theta,
        covariance,
        draws,
        ..
    } = fit;
    put(inside, model, facts, |path| {
        weights::encode(model, theta, covariance, draws, path)
    })?;
    for (k, (source, estimate)) in sources.iter().zip(&fit.estimates).enumerate() {
        let table = states::table(&fit.model, source.record, estimate)?;
        let name = match sources.len() {
            1 => format!("{STATES}.csv"),
            _ => format!("{STATES}_{}.csv", k + 1),
        };
        put_file(inside, &name, |path| {
            let mut text = Vec::new();
            let written = write_csv_to(&mut text, &table);
            written.map_err(|e| Error::io("write", path, e))?;
            Ok(text)
        })?;
    }
    Ok(())
}

/// The files that every run has.
fn put(
    inside: &Path,
    model: &Model,
    facts: &Facts,
    weights: impl FnOnce(&Path) -> Result<Vec<u8>, Error>,
) -> Result<(), Error> {
    put_file(inside, MODEL, |_| Ok(model.text.as_bytes().to_vec()))?;
    put_file(inside, WEIGHTS, weights)?;
    put_file(inside, FACTS, |path| {
        let json = facts.to_json();
        json.map_err(|e| Error::io("write", path, e.into()))
    })
}

fn put_file(
    inside: &Path,
    name: &str,
    content: impl FnOnce(&Path) -> Result<Vec<u8>, Error>,
) -> Result<(), Error> {
    let path = inside.join(name);
    let bytes = content(&path)?;
    fs::write(&path, bytes).map_err(|e| Error::io("write", &path, e))
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
    let fail = |path: &Path, message: String| {
        Err(Error::Run {
            path: path.into(),
            message,
        })
    };
    if !folder.is_dir() {
        return fail(folder, "there is no such run folder".into());
    }
    let facts_path = folder.join(FACTS);
    if !facts_path.is_file() {
        return fail(
            folder,
            format!("this is no run folder: it has no {FACTS}; `latens fit … -o run` writes one"),
        );
    }
    let read = |path: &Path| fs::read(path).map_err(|e| Error::io("read", path, e));
    let facts = match Facts::from_json(&read(&facts_path)?) {
        Ok(facts) => facts,
        Err(message) => return fail(&facts_path, message),
    };
    let model_path = folder.join(MODEL);
    let text = read(&model_path)?;
    if sha256(&text) != facts.model_sha256 {
        return fail(
            &model_path,
            "this file was changed after the fit, its weights belong to another model; restore it, or fit the changed model into a new folder".into(),
        );
    }
    let text = String::from_utf8_lossy(&text);
    let mut model = Model::from_text(&model_path.display().to_string(), &text)?;
    let weights_path = folder.join(WEIGHTS);
    let bytes = read(&weights_path)?;
    let precision = facts.settings.precision();
    let members = facts.ensemble.iter().map(|m| load(folder.join(&m.run)));
    let members = members.collect::<Result<_, _>>()?;
    let weights = match weights::decode(&bytes, &mut model, precision) {
        Ok(weights) => weights,
        Err(message) => return fail(&weights_path, message),
    };
    let stream = match &facts.stream {
        None => None,
        Some(own) => {
            let path = folder.join(STREAM);
            match stream::decode(&read(&path)?, &model, &weights.theta, own, precision) {
                Ok(state) => Some(state),
                Err(message) => return fail(&path, message),
            }
        }
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
