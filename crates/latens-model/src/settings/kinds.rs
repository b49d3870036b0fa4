//! What may be said of a setting: how each kind is read, and how one layer overrides another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use crate::file::{At, Fields, Reader, Value};
use crate::limits::PASSES;

/// The size of a noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// A variance in the quantity's own unit.
    Variance(f64),
    /// A standard deviation relative to what the data show; see each setting.
    Relative(f64),
}

impl From<f64> for Level {
    /// What somebody gives as a level is relative.
    fn from(size: f64) -> Self {
        Self::Relative(size)
    }
}

/// Variances of all states or channels, and of those with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Variances {
    /// Of all of them.
    pub all: Option<f64>,
    /// By name.
    pub of: BTreeMap<String, f64>,
}

/// What a name in a setting is a name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A state.
    State,
    /// A measurement.
    Channel,
    /// An input.
    Input,
    /// A constant of `[unknowns]`.
    Unknown,
    /// A solver, which the model language does not know.
    Solver,
}

/// What may be said of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The name of a solver.
    Solver,
    /// A whole number from 1.
    Count,
    /// A whole number from 0.
    Seed,
    /// True or false.
    Flag,
    /// A number above zero.
    Positive,
    /// A number that is zero or above.
    NotNegative,
    /// A number above 0 and at most 1.
    Factor,
    /// A number above 0 and below 0.5.
    Tail,
    /// A variance of all, or `{ name = variance }`.
    Variances(Owner),
    /// `{ name = value }`.
    Values,
    /// A list of names.
    Names(Owner),
}

/// The types of a kind of setting.
pub trait Types {
    /// In the settings of a fit.
    type Value;
    /// In a layer.
    type Given;
}

/// A kind of setting.
pub(super) trait Kind: Types {
    const FORM: Form;
    fn read(
        reader: &mut Reader,
        fields: Fields,
        key: &str,
        named: &mut Vec<(Owner, At<String>)>,
    ) -> Self::Given;
    fn apply(given: &Self::Given, value: &mut Self::Value);
}

macro_rules! kind {
    ($kind:ident, $form:expr, $given:ty => $value:ty, $read:expr) => {
        pub struct $kind;
        impl Types for $kind {
            type Value = $value;
            type Given = Option<$given>;
        }
        impl Kind for $kind {
            const FORM: Form = $form;
            fn read(
                reader: &mut Reader,
                fields: Fields,
                key: &str,
                _: &mut Vec<(Owner, At<String>)>,
            ) -> Self::Given {
                let read: fn(&mut Reader, Fields, &str) -> Self::Given = $read;
                read(reader, fields, key)
            }
            fn apply(given: &Self::Given, value: &mut Self::Value) {
                if let Some(given) = given {
                    *value = <$value>::from(given.clone());
                }
            }
        }
    };
}

kind!(Count, Form::Count, usize => usize,
    |r, f, key| r.whole(f, key, 1..=PASSES as u64).map(|n| n as usize));
kind!(Seed, Form::Seed, u64 => u64, |r, f, key| r.whole(f, key, 0..=i64::MAX as u64));
kind!(Flag, Form::Flag, bool => bool, |r, f, key| r.flag(f, key));
kind!(Positive, Form::Positive, f64 => f64, |r, f, key| r.positive(f, key));
kind!(Relative, Form::Positive, f64 => Level, |r, f, key| r.positive(f, key));
kind!(NotNegative, Form::NotNegative, f64 => f64,
    |r, f, key| r.between(f, key, "zero or above", |v| v >= 0.0));
kind!(Factor, Form::Factor, f64 => f64,
    |r, f, key| r.between(f, key, "above 0 and at most 1", |v| v > 0.0 && v <= 1.0));
kind!(Tail, Form::Tail, f64 => f64,
    |r, f, key| r.between(f, key, "above 0 and below 0.5", |v| v > 0.0 && v < 0.5));

/// The name of a solver.
pub struct Name;

impl Types for Name {
    type Value = String;
    type Given = Option<String>;
}

impl Kind for Name {
    const FORM: Form = Form::Solver;
    fn read(
        reader: &mut Reader,
        fields: Fields,
        key: &str,
        named: &mut Vec<(Owner, At<String>)>,
    ) -> Self::Given {
        let name = fields.get(key).and_then(|value| reader.string(value))?;
        named.push((Owner::Solver, name.clone()));
        Some(name.value)
    }
    fn apply(given: &Self::Given, value: &mut Self::Value) {
        if let Some(given) = given {
            value.clone_from(given);
        }
    }
}

/// Values of constants, by name.
pub struct Values;

impl Types for Values {
    type Value = BTreeMap<String, f64>;
    type Given = BTreeMap<String, f64>;
}

impl Kind for Values {
    const FORM: Form = Form::Values;
    fn read(
        reader: &mut Reader,
        fields: Fields,
        key: &str,
        named: &mut Vec<(Owner, At<String>)>,
    ) -> Self::Given {
        let values = reader.named_numbers(fields, key);
        let names = values
            .iter()
            .map(|(name, _)| (Owner::Unknown, name.clone()));
        named.extend(names);
        let values = values.into_iter();
        values.map(|(name, value)| (name.value, value)).collect()
    }
    fn apply(given: &Self::Given, value: &mut Self::Value) {
        value.extend(given.clone());
    }
}

macro_rules! names {
    ($kind:ident, $owner:expr) => {
        pub struct $kind;
        impl Types for $kind {
            type Value = Vec<String>;
            type Given = Vec<String>;
        }
        impl Kind for $kind {
            const FORM: Form = Form::Names($owner);
            fn read(
                reader: &mut Reader,
                fields: Fields,
                key: &str,
                named: &mut Vec<(Owner, At<String>)>,
            ) -> Self::Given {
                let names = read_names(reader, fields, key);
                named.extend(names.iter().map(|name| ($owner, name.clone())));
                names.into_iter().map(|name| name.value).collect()
            }
            fn apply(given: &Self::Given, value: &mut Self::Value) {
                let new = given.iter().filter(|name| !value.contains(name));
                let new: Vec<String> = new.cloned().collect();
                value.extend(new);
            }
        }
    };
}

names!(Constants, Owner::Unknown);
names!(Inputs, Owner::Input);

/// A list of names, with their places.
fn read_names(reader: &mut Reader, fields: Fields, key: &str) -> Vec<At<String>> {
    let Some(value) = fields.get(key) else {
        return vec![];
    };
    let list = reader.array(value, "a list of names: [\"gain\"]");
    list.iter().filter_map(|v| reader.string(v)).collect()
}

macro_rules! variances {
    ($kind:ident, $owner:expr) => {
        pub struct $kind;
        impl Types for $kind {
            type Value = BTreeMap<String, f64>;
            type Given = Variances;
        }
        impl Kind for $kind {
            const FORM: Form = Form::Variances($owner);
            fn read(
                reader: &mut Reader,
                fields: Fields,
                key: &str,
                named: &mut Vec<(Owner, At<String>)>,
            ) -> Self::Given {
                let (variances, names) = read_variances(reader, fields, key);
                named.extend(names.into_iter().map(|name| ($owner, name)));
                variances
            }
            fn apply(given: &Self::Given, value: &mut Self::Value) {
                // what is said of all leaves nothing of what was said of one before
                if given.all.is_some() {
                    value.clear();
                }
                value.extend(given.of.clone());
            }
        }
    };
}

variances!(StateVariances, Owner::State);
variances!(ChannelVariances, Owner::Channel);

/// A variance of everything, or `{ name = variance }`, where `"*"` is everything that has no name of
/// its own; and the names with their places.
fn read_variances(reader: &mut Reader, fields: Fields, key: &str) -> (Variances, Vec<At<String>>) {
    let mut variances = Variances::default();
    let Some(value) = fields.get(key) else {
        return (variances, vec![]);
    };
    if !matches!(value.get_ref(), DeValue::Table(_)) {
        variances.all = reader.positive(fields, key);
        return (variances, vec![]);
    }
    let read = |r: &mut Reader, name: At<String>, v: Value| Some((name, r.above_zero(key, v)?));
    let entries = reader.entries(fields, key, read);
    let mut entries: Vec<(At<String>, f64)> = entries.into_iter().flatten().collect();
    if let Some(all) = entries.iter().position(|(name, _)| name.value == "*") {
        variances.all = Some(entries.remove(all).1);
    }
    let by_name = entries.iter().map(|(name, v)| (name.value.clone(), *v));
    variances.of = by_name.collect();
    (
        variances,
        entries.into_iter().map(|(name, _)| name).collect(),
    )
}
