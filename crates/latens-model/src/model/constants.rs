//! Constants that are fixed, freed, or ordinary where the file lets them vary; and the groups of records
//! that they vary by.

use std::collections::BTreeMap;

use super::Model;
use crate::constant::{Unknown, Varies};
use crate::error::Error;
use crate::file::{self, Hold, ModelFile};
use crate::settings::Settings;
use crate::suggest;

/// What holds whatever the file says: constants that are fixed at a value, and others that are free.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Held {
    pub(super) fix: BTreeMap<String, f64>,
    pub(super) free: Vec<String>,
    /// Inputs that go straight to their next value.
    pub(super) first_order: Vec<String>,
    /// Whether there is one record to learn from.
    pub(super) one_record: bool,
    pub(super) groups: Groups,
}

/// The groups that records to learn from belong to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Groups {
    /// Nobody says: a constant that varies by group is that of a group which nobody has seen.
    #[default]
    Any,
    One,
    /// Their labels.
    Several(Vec<String>),
}

impl Model {
    /// The model as a fit with these settings takes it: constants of `[unknowns]` fixed at a value and others
    /// learned, inputs that go straight to their next value, whatever the file says of them.
    ///
    /// ```
    /// use latens_model::Model;
    /// use latens_model::settings::Settings;
    ///
    /// let text = "[states.x]\nderivative = \"-a*x + b\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1 }\nb = { value = 3, fixed = true }";
    /// let model = Model::from_text("model", text)?;
    /// assert_eq!((model.unknowns[0].name.as_str(), model.fixed[0].value), ("a", 3.0));
    /// let mut settings = Settings::default();
    /// settings.fix.insert("a".into(), 2.5);
    /// settings.free.push("b".into());
    /// let other = model.for_settings(&settings)?;
    /// assert_eq!((other.unknowns[0].name.as_str(), other.fixed[0].value), ("b", 2.5));
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that the model does not have, or a value outside of its bounds.
    pub fn for_settings(&self, settings: &Settings) -> Result<Self, Error> {
        self.held(Held {
            fix: settings.fix.clone(),
            free: settings.free.clone(),
            first_order: settings.first_order.clone(),
            ..self.held.clone()
        })
    }

    /// The model for so many records to learn from: of one record nobody can tell how a constant
    /// varies from record to record, and it is an ordinary one.
    ///
    /// ```
    /// use latens_model::Model;
    ///
    /// let text = "[states.x]\nderivative = \"-a*x\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1, varies = \"record\" }";
    /// let model = Model::from_text("model", text)?;
    /// assert_eq!(model.states[1].name, "Δa");
    /// assert_eq!(model.for_records(1)?.states.len(), 1);
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// None where the model was read without one.
    pub fn for_records(&self, records: usize) -> Result<Self, Error> {
        let by_record = |u: &Unknown| u.varies == Some(Varies::Record);
        if records != 1 || !self.unknowns.iter().any(by_record) {
            return Ok(self.clone());
        }
        self.held(Held {
            one_record: true,
            ..self.held.clone()
        })
    }

    /// The model for records of such groups, whose labels differ. With none it is that of a group which
    /// nobody has seen: what varies by group is a state, as what varies by record. With one, what varies
    /// by group is an ordinary constant. With several, θ has how each group differs from the mean, after
    /// the constants, and the equations have one more input, after those of the file: the number of a
    /// record's group, from 1.
    ///
    /// ```
    /// use latens_model::Model;
    ///
    /// let text = "[states.x]\nderivative = \"-a*x\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1, varies = \"group\" }";
    /// let model = Model::from_text("model", text)?;
    /// assert_eq!(model.states[1].name, "Δa");
    /// let three = model.for_groups(&["a".into(), "b".into(), "c".into()])?;
    /// assert_eq!((three.system.parameters(), three.system.inputs()), (4, 1));
    /// assert_eq!(three.group_entries(), [(0, 1..4)]);
    /// assert_eq!(three.for_groups(&["b".into()])?.system.parameters(), 1);
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// More groups than θ has room for.
    pub fn for_groups(&self, groups: &[String]) -> Result<Self, Error> {
        if !self.asks_for_groups() {
            return Ok(self.clone());
        }
        let model = self.held(Held {
            groups: match groups {
                [] => Groups::Any,
                [_] => Groups::One,
                several => Groups::Several(several.to_vec()),
            },
            ..self.held.clone()
        })?;
        Ok(Self {
            system: model.system.with_networks_of(&self.system),
            ..model
        })
    }

    /// Whether a constant that is learned varies by group, in the file.
    pub fn asks_for_groups(&self) -> bool {
        self.held.groups != Groups::Any
            || self
                .unknowns
                .iter()
                .any(|u| u.varies == Some(Varies::Group))
    }

    /// The labels of the groups whose differences are in θ.
    pub fn groups(&self) -> &[String] {
        match &self.held.groups {
            Groups::Several(labels) => labels,
            _ => &[],
        }
    }

    /// Constants that vary by group, and the entries of θ with the difference of each group.
    pub fn group_entries(&self) -> Vec<(usize, std::ops::Range<usize>)> {
        let groups = self.groups().len();
        let grouped = self.unknowns.iter().enumerate();
        let grouped = grouped.filter(|(_, u)| u.varies == Some(Varies::Group) && groups > 0);
        let entries = grouped.enumerate().map(|(k, (place, _))| {
            let start = self.unknowns.len() + k * groups;
            (place, start..start + groups)
        });
        entries.collect()
    }

    pub(super) fn held(&self, held: Held) -> Result<Self, Error> {
        if held == self.held {
            return Ok(self.clone());
        }
        let (mut file, diagnostics) = file::read(&self.text);
        held.apply(&mut file)?;
        let model = Self::from_definitions(&self.file, file, &self.text, diagnostics)?;
        Ok(Self { held, ..model })
    }

    /// The constants that vary, and the state that holds how each differs from its mean.
    pub fn varying(&self) -> impl Iterator<Item = (usize, usize)> {
        let varying = self.unknowns.iter().enumerate();
        let varying = varying.filter(|(_, u)| u.varies.is_some());
        varying.filter_map(|(k, u)| Some((k, self.state_index(&file::difference_name(&u.name))?)))
    }
}

impl Held {
    pub(super) fn apply(&self, file: &mut ModelFile) -> Result<(), Error> {
        let fixed = self.fix.iter().map(|(name, value)| (name, Some(*value)));
        let free = self.free.iter().map(|name| (name, None));
        for (name, fixed) in fixed.chain(free) {
            let known: Vec<String> = file.unknowns.iter().map(|u| u.name.value.clone()).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let place = suggest::find(name, &known, "unknown constant");
            let unknown = &mut file.unknowns[place.map_err(Error::Setting)?];
            if let Some(outside) = fixed.and_then(|value| unknown.outside(value)) {
                let message = format!("`{name}` cannot be fixed at {outside}");
                return Err(Error::Setting(message));
            }
            unknown.fixed = fixed;
        }
        for name in &self.first_order {
            let known: Vec<String> = file.input_names().map(str::to_string).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let place = suggest::find(name, &known, "input").map_err(Error::Setting)?;
            file.inputs[place].hold = Some(Hold::FirstOrder);
        }
        for unknown in &mut file.unknowns {
            let ordinary = match unknown.varies {
                Some(Varies::Record) => self.one_record,
                Some(Varies::Group) => self.groups == Groups::One,
                Some(Varies::Slowly) | None => false,
            };
            if ordinary {
                unknown.varies = None;
            }
        }
        if let Groups::Several(labels) = &self.groups {
            file.groups = labels.len();
        }
        Ok(())
    }
}
