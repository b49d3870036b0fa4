//! The `[fit]` section: settings of `latens fit`, under the names of its options.

use toml::de::DeValue;

use super::reader::Reader;
use super::values::{Fields, Value};
use super::{FitDef, Named};
use crate::solve::Solver;
use crate::solve::given::{Given, Variances};

/// Passes, starts or streams that nobody means.
const MANY: u64 = 1_000_000;

impl Reader<'_> {
    pub(super) fn fit(&mut self, root: Fields) -> FitDef {
        let f = self.section(root, "fit", "[fit]");
        let mut count = |key| self.whole(f, key, 1..=MANY).map(|n| n as usize);
        let (epochs, starts) = (count("epochs"), count("starts"));
        let (ensemble, streams) = (count("ensemble"), count("streams"));
        let mut named = [vec![], vec![], vec![]];
        let [process, measurement, start] = &mut named;
        let given = Given {
            epochs,
            starts,
            ensemble,
            streams,
            solver: self.choice(f, "solver", &Solver::NAMES),
            printed_settings: self.flag(f, "printed_settings"),
            seed: self.whole(f, "seed", 0..=i64::MAX as u64),
            validate_tail: self.between(f, "validate_tail", "above 0 and below 0.5", |v| {
                v > 0.0 && v < 0.5
            }),
            hidden_noise: self.positive(f, "hidden_noise"),
            measurement_noise: self.positive(f, "measurement_noise"),
            start_noise: self.positive(f, "start_noise"),
            process_variance: self.variances(f, "process_variance", process),
            measurement_variance: self.variances(f, "measurement_variance", measurement),
            start_variance: self.variances(f, "start_variance", start),
            estimate_noise: self.flag(f, "estimate_noise"),
            parameter_variance: self.positive(f, "parameter_variance"),
            estimate_prior: self.flag(f, "estimate_prior"),
            scale_outputs: self.flag(f, "scale_outputs"),
            single_precision: self.flag(f, "single_precision"),
            keep_best: self.flag(f, "keep_best"),
            known_noise: self.positive(f, "known_noise"),
            parameter_drift: self.between(f, "parameter_drift", "zero or above", |v| v >= 0.0),
            anneal: self.between(f, "anneal", "above 0 and at most 1", |v| {
                v > 0.0 && v <= 1.0
            }),
            parameter_noise: self.positive(f, "parameter_noise"),
            count_state_uncertainty: self.flag(f, "count_state_uncertainty"),
        };
        let [process, measurement, start] = named;
        FitDef {
            given,
            states: process.into_iter().chain(start).collect(),
            measurements: measurement,
        }
    }

    /// A variance of everything, or `{ name = variance }`; the names, with their places, go to
    /// `named`.
    fn variances(&mut self, fields: Fields, key: &str, named: &mut Vec<Named<f64>>) -> Variances {
        let Some(value) = fields.get(key) else {
            return Variances::default();
        };
        if !matches!(value.get_ref(), DeValue::Table(_)) {
            return Variances {
                all: self.positive(fields, key),
                ..Variances::default()
            };
        }
        let read = |r: &mut Self, name, v: Value| Some((name, r.above_zero(key, v)?));
        let entries = self.entries(fields, key, read);
        named.extend(entries.into_iter().flatten());
        let of = named.iter().map(|(name, v)| (name.value.clone(), *v));
        Variances {
            all: None,
            of: of.collect(),
        }
    }
}
