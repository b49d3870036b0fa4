//! The problems: model files by field, and what is made of each: a term as a network, a slight mistake.

use std::collections::BTreeMap;

use latens::{Error, Model};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// A problem: the right model, as `latens init` writes it.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// As it is called on the command line.
    pub name: &'static str,
    /// The field that it is from.
    pub field: &'static str,
    /// The right model's file; its `[truth]` and `[simulation]` make the records.
    pub text: &'static str,
}

macro_rules! problems {
    ($($field:literal: $($name:literal)*;)*) => {
        &[$($(Problem {
            name: $name,
            field: $field,
            text: include_str!(concat!("../../models/gallery/", $name, ".toml")),
        },)*)*]
    };
}

/// All of them, by field.
pub const PROBLEMS: &[Problem] = problems! {
    "drives and machines": "dc-motor" "crane";
    "vehicles": "quarter-car" "ship";
    "energy and buildings": "battery" "building" "heat-exchanger";
    "chemistry": "stirred-reactor";
    "medicine": "glucose-insulin" "two-compartments";
    "biology": "epidemic" "predator-prey" "toggle-switch";
};

/// What is made of the right models.
const VARIANTS: &str = include_str!("../../models/gallery/variants.toml");

/// The problem of a name.
pub fn find(name: &str) -> Option<&'static Problem> {
    PROBLEMS.iter().find(|problem| problem.name == name)
}

/// What is made of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// All equations known, constants unknown.
    Right,
    /// One term is a network.
    Network,
    /// The equations are slightly wrong.
    Wrong,
}

impl Variant {
    /// In the order of a table.
    pub const ALL: [Self; 3] = [Self::Right, Self::Network, Self::Wrong];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Network => "network",
            Self::Wrong => "wrong",
        }
    }
}

/// A part of the problems: defaults are chosen on one and reported on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// The first, the third, … of [`PROBLEMS`].
    Choose,
    /// The others.
    Report,
}

impl Problem {
    /// The part that it belongs to.
    pub fn half(&self) -> Half {
        let place = PROBLEMS.iter().position(|p| p.name == self.name);
        if place.is_some_and(|place| place % 2 == 0) {
            Half::Choose
        } else {
            Half::Report
        }
    }

    /// The right model, which makes the records.
    ///
    /// # Errors
    /// The file is no model.
    pub fn right(&self) -> Result<Model, Error> {
        Ok(Model::from_text(self.name, self.text)?)
    }

    /// The text of a variant's model file; the truth stays with the right model.
    ///
    /// # Errors
    /// The right model is no TOML.
    pub fn variant_text(&self, variant: Variant) -> Result<String, Error> {
        if variant == Variant::Right {
            return Ok(self.text.into());
        }
        let mut file = table(self.name, self.text)?;
        let mut variants = table("variants.toml", VARIANTS)?;
        let variants_of_problem = variants.remove(self.name).and_then(entries);
        let mut changes = variants_of_problem
            .and_then(|mut variants_of_problem| {
                entries(variants_of_problem.remove(variant.name())?)
            })
            .ok_or_else(|| {
                let name = variant.name();
                Error::Setting(format!("variants.toml has no {}.{name}", self.name))
            })?;
        if let Some(Value::String(says)) = changes.remove("says") {
            file.insert("description".into(), Value::String(format!("{says}.")));
        }
        let dropped = changes.remove("drop").and_then(|list| list.try_into().ok());
        let dropped: Vec<String> = dropped.unwrap_or_default();
        dropped.iter().for_each(|path| remove(&mut file, path));
        for section in ["truth", "simulation"] {
            file.remove(section);
        }
        overlay(&mut file, changes);
        let text = toml::to_string(&file);
        text.map_err(|e| Error::Setting(format!("{}: {e}", self.name)))
    }

    /// What a variant is, in a few words.
    pub fn says(&self, variant: Variant) -> String {
        let variants = VARIANTS.parse::<Table>().ok();
        let says = variants.and_then(|all| {
            let changes = all.get(self.name)?.get(variant.name())?;
            Some(changes.get("says")?.as_str()?.to_string())
        });
        says.unwrap_or_else(|| "all equations known, constants unknown".into())
    }

    /// The true values of the unknown constants.
    ///
    /// # Errors
    /// The right model is no TOML.
    pub fn true_constants(&self) -> Result<BTreeMap<String, f64>, Error> {
        let file = table(self.name, self.text)?;
        let truth = file.get("truth").and_then(Value::as_table);
        let number = |value: &Value| {
            let whole = value.as_integer().map(|n| n as f64);
            value.as_float().or(whole)
        };
        let entries = truth.into_iter().flatten();
        Ok(entries
            .filter_map(|(name, value)| Some((name.clone(), number(value)?)))
            .collect())
    }
}

fn table(file: &str, text: &str) -> Result<Table, Error> {
    let parsed = text.parse::<Table>();
    parsed.map_err(|e| Error::Setting(format!("{file}: {e}")))
}

fn entries(value: Value) -> Option<Table> {
    match value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

/// Takes out an entry by its path, `section.name`.
fn remove(file: &mut Table, path: &str) {
    match path.split_once('.') {
        None => drop(file.remove(path)),
        Some((section, rest)) => {
            if let Some(Value::Table(inner)) = file.get_mut(section) {
                remove(inner, rest);
            }
        }
    }
}

/// Lays entries over others: tables are merged, all else is replaced.
fn overlay(file: &mut Table, over: Table) {
    for (name, value) in over {
        match (file.get_mut(&name), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over),
            (_, value) => drop(file.insert(name, value)),
        }
    }
}
