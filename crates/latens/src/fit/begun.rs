//! What a fit was begun with: whoever goes on with it goes on with that.

use serde::{Deserialize, Serialize};

use super::facts::{Facts, Role};
use super::learn::Data;
use crate::Error;
use crate::model::Model;
use crate::model::settings::Settings;
use crate::record::{Source, sha256};

/// Model, records and settings of a fit that is on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// What repeats it.
    pub command: String,
    /// The model as the user named it.
    pub model_file: String,
    /// SHA-256 of the model file.
    pub model_sha256: String,
    /// Those that play a part, in their order.
    pub records: Vec<BegunRecord>,
    /// All settings.
    pub settings: Settings,
}

/// A record of a fit that is on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BegunRecord {
    /// As the user named it.
    pub file: String,
    /// What it serves for.
    pub role: Role,
    /// Its length.
    pub samples: usize,
    /// Of what was read.
    pub sha256: String,
    /// The group that it belongs to, where a constant varies by group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Begun {
    /// What a fit was made of.
    pub fn of_facts(facts: &Facts) -> Self {
        // tests played no part
        let records = facts.records.iter().filter(|r| r.role != Role::Test);
        let records = records.map(|record| BegunRecord {
            file: record.file.clone(),
            role: record.role,
            samples: record.samples,
            sha256: record.sha256.clone(),
            group: record.group.clone(),
        });
        Self {
            command: facts.command.clone(),
            model_file: facts.model_file.clone(),
            model_sha256: facts.model_sha256.clone(),
            records: records.collect(),
            settings: facts.settings.clone(),
        }
    }

    /// Whether it is a fit of this model and these records, in this order.
    ///
    /// # Errors
    /// [`Error::Setting`] with what differs.
    pub fn belongs_to(&self, model: &Model, data: Data) -> Result<(), Error> {
        let fail = |message: String| Err(Error::Setting(message));
        if sha256(model.text.as_bytes()) != self.model_sha256 {
            return fail(format!(
                "the fit was made of another model than this ({}): resume with its own model.toml, or fit again",
                self.model_file
            ));
        }
        let now = data.by_role();
        if now.len() != self.records.len() {
            return fail(format!(
                "the fit was made of {} record(s), these are {}: resume with the same, or fit again",
                self.records.len(),
                now.len()
            ));
        }
        for ((role, source), before) in now.into_iter().zip(&self.records) {
            if source.sha256 != before.sha256 {
                return fail(format!(
                    "{} is not what the fit was made of ({}; the checksums differ): resume with the same records in the same order, or fit again",
                    source.file, before.file
                ));
            }
            if source.group != before.group {
                let label = |group: &Option<String>| group.clone().unwrap_or("none".into());
                return fail(format!(
                    "{} was of group {}, now it is of group {}: resume with the same, or fit again",
                    source.file,
                    label(&before.group),
                    label(&source.group)
                ));
            }
            if role != before.role || source.record.len() != before.samples {
                return fail(format!(
                    "{} was used with {} samples to {}, now it is {} samples to {role}: resume with the same, or fit again",
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

impl<'a> Data<'a> {
    /// All of its records, with what they serve for.
    pub fn by_role(self) -> Vec<(Role, &'a Source)> {
        let train = self.train.iter().map(|s| (Role::Train, s));
        let validate = self.validate.iter().map(|s| (Role::Validate, s));
        train.chain(validate).collect()
    }
}
