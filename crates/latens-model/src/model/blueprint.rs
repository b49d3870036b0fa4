//! What a model is made from, so that another process makes the same: its text, what is held of it, and its
//! networks as they are by now.

use std::collections::BTreeMap;

use super::Model;
use super::constants::{Groups, Held};
use crate::Error;
use crate::network::Network;

/// All that [`Model::from_blueprint`] needs.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// What errors call the file.
    pub file: String,
    /// The model file.
    pub text: String,
    /// Constants that are fixed at a value other than in the file.
    pub fix: BTreeMap<String, f64>,
    /// Constants that are learned whatever the file says.
    pub free: Vec<String>,
    /// Inputs that go straight to their next value whatever the file says.
    pub first_order: Vec<String>,
    /// Whether there is one record to learn from.
    pub one_record: bool,
    /// The groups of the records, where anybody says: their labels, or none where there is one alone.
    pub groups: Option<Vec<String>>,
    /// With their structure and their scaling.
    pub networks: Vec<Network>,
}

impl Model {
    /// What this model is made from.
    ///
    /// ```
    /// use latens_model::{Model, network::Structure};
    ///
    /// let model = Model::builtin("harmonic-oscillator")?.simplified(Structure::Linear);
    /// let same = Model::from_blueprint(&model.blueprint())?;
    /// assert_eq!(same.system.parameters(), model.system.parameters());
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    pub fn blueprint(&self) -> Blueprint {
        Blueprint {
            file: self.file.clone(),
            text: self.text.clone(),
            fix: self.held.fix.clone(),
            free: self.held.free.clone(),
            first_order: self.held.first_order.clone(),
            one_record: self.held.one_record,
            groups: match &self.held.groups {
                Groups::Any => None,
                Groups::One => Some(vec![]),
                Groups::Several(labels) => Some(labels.clone()),
            },
            networks: self.system.networks().to_vec(),
        }
    }

    /// The model that a blueprint is of.
    ///
    /// # Errors
    /// None for the blueprint of a model.
    pub fn from_blueprint(blueprint: &Blueprint) -> Result<Self, Error> {
        let file = Self::from_text(&blueprint.file, &blueprint.text)?;
        let held = file.held(Held {
            fix: blueprint.fix.clone(),
            free: blueprint.free.clone(),
            first_order: blueprint.first_order.clone(),
            one_record: blueprint.one_record,
            groups: match &blueprint.groups {
                None => Groups::Any,
                Some(labels) if labels.is_empty() => Groups::One,
                Some(labels) => Groups::Several(labels.clone()),
            },
        })?;
        Ok(Self {
            system: held.system.with_networks(blueprint.networks.clone()),
            ..held
        })
    }
}
