//! Settings as somebody gave them: in a model file's `[fit]` section, or on the command line.
//!
//! What nobody gave is the solver's own. Of several layers each overrides those before it.

use std::collections::BTreeMap;

use super::settings::{Level, Settings, Solver};
use crate::Error;

/// Settings of a fit; `None` where nobody gave one. The names are those of the model file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    pub solver: Option<Solver>,
    pub printed_settings: Option<bool>,
    pub epochs: Option<usize>,
    pub seed: Option<u64>,
    pub starts: Option<usize>,
    pub ensemble: Option<usize>,
    /// The part of each record that validates; no setting of a solver.
    pub validate_tail: Option<f64>,
    pub hidden_noise: Option<f64>,
    pub measurement_noise: Option<f64>,
    pub start_noise: Option<f64>,
    pub process_variance: Variances,
    pub measurement_variance: Variances,
    pub start_variance: Variances,
    pub estimate_noise: Option<bool>,
    pub parameter_variance: Option<f64>,
    pub estimate_prior: Option<bool>,
    pub scale_outputs: Option<bool>,
    pub single_precision: Option<bool>,
    pub streams: Option<usize>,
    pub keep_best: Option<bool>,
    pub known_noise: Option<f64>,
    pub parameter_drift: Option<f64>,
    pub anneal: Option<f64>,
    pub parameter_noise: Option<f64>,
    pub count_state_uncertainty: Option<bool>,
}

/// Variances of all states or channels, and of those with a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Variances {
    pub all: Option<f64>,
    pub of: BTreeMap<String, f64>,
}

impl Variances {
    /// Puts what has a name into `by_name`, where what is said of all leaves nothing; gives the
    /// latter.
    fn onto(&self, by_name: &mut BTreeMap<String, f64>) -> Option<Level> {
        if self.all.is_some() {
            by_name.clear();
        }
        by_name.extend(self.of.clone());
        self.all.map(Level::Variance)
    }
}

fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

impl Given {
    /// The settings that these layers make, the last one first in rank.
    ///
    /// # Errors
    /// [`Error::Setting`] where the paper's settings are asked for with a solver that it has not.
    pub fn settings(layers: &[&Given]) -> Result<Settings, Error> {
        let solver = layers.iter().rev().find_map(|g| g.solver);
        let solver = solver.unwrap_or(Solver::Batch);
        let printed = layers.iter().rev().find_map(|g| g.printed_settings);
        let mut settings = match (printed.unwrap_or(false), solver) {
            (false, _) => Settings::new(solver),
            (true, solver) if solver == Solver::Batch || solver.is_rival() => {
                return Err(Error::Setting("the paper's settings are those of its recursion; add --solver alternating, joint or as-printed".into()));
            }
            (true, _) => Settings::printed(solver),
        };
        layers.iter().for_each(|g| g.onto(&mut settings));
        Ok(settings)
    }

    /// Overrides settings by what was given, but for the solver.
    pub fn onto(&self, s: &mut Settings) {
        set(&mut s.epochs, self.epochs);
        set(&mut s.seed, self.seed);
        set(&mut s.starts, self.starts);
        set(&mut s.ensemble, self.ensemble);
        set(&mut s.streams, self.streams);
        set(&mut s.keep_best, self.keep_best);
        set(&mut s.known, self.known_noise.map(Level::Relative));
        set(&mut s.hidden, self.hidden_noise.map(Level::Relative));
        let measurement = self.measurement_noise.map(Level::Relative);
        set(&mut s.measurement, measurement);
        set(&mut s.start, self.start_noise.map(Level::Relative));
        set(&mut s.parameter_variance, self.parameter_variance);
        set(&mut s.parameter_drift, self.parameter_drift);
        set(&mut s.anneal, self.anneal);
        set(&mut s.parameter_noise, self.parameter_noise);
        set(&mut s.count_state_uncertainty, self.count_state_uncertainty);
        set(&mut s.scale_outputs, self.scale_outputs);
        set(&mut s.single_precision, self.single_precision);
        let process = self.process_variance.onto(&mut s.process_of);
        set(&mut s.known, process);
        set(&mut s.hidden, process);
        let measurement = self.measurement_variance.onto(&mut s.measurement_of);
        set(&mut s.measurement, measurement);
        let start = self.start_variance.onto(&mut s.start_of);
        set(&mut s.start, start);
        set(&mut s.estimate_noise, self.estimate_noise);
        // what somebody knows is not estimated
        s.estimate_prior &= self.parameter_variance.is_none();
        set(&mut s.estimate_prior, self.estimate_prior);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_layer_overrides_an_earlier_one() {
        let by_name = |name: &str, value: f64| Variances {
            all: None,
            of: [(name.to_string(), value)].into(),
        };
        let file = Given {
            solver: Some(Solver::Joint),
            epochs: Some(7),
            seed: Some(3),
            process_variance: by_name("x", 1e-3),
            parameter_variance: Some(0.5),
            ..Given::default()
        };
        let line = Given {
            seed: Some(4),
            ..Given::default()
        };
        let both = Given::settings(&[&file, &line]).unwrap();
        let expected = Settings {
            epochs: 7,
            seed: 4,
            process_of: [("x".to_string(), 1e-3)].into(),
            parameter_variance: 0.5,
            ..Settings::new(Solver::Joint)
        };
        assert_eq!(both, expected);
        // what is said of all states replaces what an earlier layer said of one
        let line = Given {
            solver: Some(Solver::Batch),
            process_variance: Variances {
                all: Some(1e-6),
                of: BTreeMap::new(),
            },
            estimate_prior: Some(true),
            ..Given::default()
        };
        let both = Given::settings(&[&file, &line]).unwrap();
        assert!(both.process_of.is_empty() && both.estimate_prior);
        assert_eq!(both.hidden, Level::Variance(1e-6));
        assert_eq!(both.solver, Solver::Batch);
        // what an earlier layer asked to be estimated and a later one knows is not estimated
        let file = Given {
            estimate_prior: Some(true),
            ..Given::default()
        };
        let line = Given {
            parameter_variance: Some(0.5),
            ..Given::default()
        };
        let both = Given::settings(&[&file, &line]).unwrap();
        assert!(!both.estimate_prior);
    }
}
