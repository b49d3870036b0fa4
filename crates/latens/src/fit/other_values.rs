//! Other values of the constants that explain the records nearly as well, as a fit tells of them.

use serde::{Deserialize, Serialize};

use super::facts::Constant;
use crate::described;
use crate::model::Model;
use crate::solve::Elsewhere;
use crate::text;

described! {
/// Other values of the constants that explain the records nearly as well as those that are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherValues {
    /// ln p, less that of the values that are kept.
    pub evidence: f64,
    /// The constants that are elsewhere.
    pub constants: Vec<OtherValue>,
}

/// Another value of a constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherValue {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The other value.
    pub value: f64,
    /// The one that is kept.
    pub kept: f64,
}
}

/// Deviations by which a constant has to be elsewhere.
const ELSEWHERE_DEVIATIONS: f64 = 3.0;
/// ln p that differs by less than this says nothing.
const SAME_LOG_EVIDENCE: f64 = 1.0;

impl OtherValues {
    /// Of a place beside the one whose constants are known.
    pub(super) fn of(model: &Model, kept: &[Constant], place: &Elsewhere) -> Self {
        let entries = model.unknowns.iter().zip(&place.constants);
        let values = entries.map(|(unknown, entry)| unknown.value(*entry));
        let constants = kept.iter().zip(values);
        let elsewhere =
            constants.filter(|(k, value)| (value - k.value).abs() > ELSEWHERE_DEVIATIONS * k.std);
        let constants = elsewhere.map(|(k, value)| OtherValue {
            name: k.name.clone(),
            unit: k.unit.clone(),
            value,
            kept: k.value,
        });
        Self {
            evidence: place.log,
            constants: constants.collect(),
        }
    }

    /// What they are, and what follows from it.
    pub fn words(&self) -> String {
        let values = self.constants.iter().map(|c| {
            let value = text::with_unit(c.value, &c.unit);
            format!("{} = {value} (here {})", c.name, text::number(c.kept))
        });
        let values: Vec<String> = values.collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let well = if self.evidence.abs() < SAME_LOG_EVIDENCE {
            "as well"
        } else {
            "nearly as well"
        };
        let which = if self.evidence > 0.0 {
            "higher"
        } else {
            "lower"
        };
        format!(
            "other values of the constants explain the records {well}: {}, with ln p {:.1} {which}; the deviations know nothing of that: bounds in the model file, a better guess or another record decide",
            text::list(&values),
            self.evidence.abs()
        )
    }
}
