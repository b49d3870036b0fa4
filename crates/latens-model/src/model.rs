//! A checked model: what a file says, with the compiled equations.

mod blueprint;
mod build;
mod constants;
mod networks;
mod read;
mod variants;

pub use blueprint::Blueprint;

use crate::constant::{Fixed, Unknown};
use crate::diagnostic::ModelError;
use crate::error::Error;
use crate::file::{self, At, Hold, Method};
use crate::resolve;
use crate::settings::SettingsLayer;
use crate::system::System;
use crate::truth::Truth;
use constants::Held;

/// A quantity of the model, as a person knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    pub name: String,
    pub unit: String,
}

/// A state of the model.
#[derive(Debug, Clone)]
pub struct State {
    pub name: String,
    pub unit: String,
    /// Where the built-in record starts; a fit looks at it only where it is known how well it is known.
    pub start: Option<f64>,
    /// Standard deviation of where records start about `start`, where the file states it.
    pub start_deviation: Option<f64>,
    /// Rough size, where the file states it.
    pub scale: Option<f64>,
    /// Rough middle, where the file states it.
    pub center: Option<f64>,
}

/// Where a state starts in every record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownStart {
    /// Its index.
    pub state: usize,
    /// Where.
    pub mean: f64,
    /// How well that is known.
    pub variance: f64,
}

/// A checked model: names, units, and the compiled equations.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub description: String,
    /// The text it was read from.
    pub text: String,
    pub time_unit: String,
    /// Time between samples, for records without a time column.
    pub step: Option<f64>,
    pub method: Method,
    /// Steps of the method between two samples.
    pub substeps: usize,
    /// What an implicit method lets be wrong in each of its steps, beside a state and its size; with it
    /// the steps are cut as need be.
    pub tolerance: Option<f64>,
    /// What each input of the equations does between samples.
    pub hold: Vec<Hold>,
    /// Whether the file says so, input by input.
    pub hold_is_given: Vec<bool>,
    pub states: Vec<State>,
    pub inputs: Vec<Quantity>,
    pub measurements: Vec<Quantity>,
    /// The constants that are learned; they come first in θ.
    pub unknowns: Vec<Unknown>,
    /// Those of `[unknowns]` whose value is given.
    pub fixed: Vec<Fixed>,
    /// The equations to learn.
    pub system: System,
    /// The true equations and how to drive them, where the file has them.
    pub truth: Option<Truth>,
    /// The settings of a fit that the file gives.
    pub fit: SettingsLayer,
    /// What errors call the file, and where in it the name of a solver stands.
    file: String,
    solver: Option<At<String>>,
    /// What is fixed and freed other than in the file.
    held: Held,
}

impl Model {
    /// States of which the file says where every record starts. What is known exactly is known to a millionth.
    pub fn known_starts(&self) -> impl Iterator<Item = KnownStart> {
        let states = self.states.iter().enumerate();
        states.filter_map(|(state, s)| {
            let (mean, deviation) = (s.start?, s.start_deviation?);
            let size = s
                .scale
                .unwrap_or(if mean == 0.0 { 1.0 } else { mean.abs() });
            Some(KnownStart {
                state,
                mean,
                variance: deviation.max(1e-6 * size).powi(2),
            })
        })
    }

    /// Moves entries of θ that are outside of their bounds to them.
    pub fn keep_bounds(&self, theta: &mut [f64]) {
        for (unknown, theta) in self.unknowns.iter().zip(theta) {
            if unknown.is_bounded() {
                let (least, most) = unknown.bounds();
                *theta = theta.clamp(least, most);
            }
        }
    }

    /// The variances of θ before the data, where that of weights and rough guesses is given.
    pub fn prior_variances(&self, rough: f64) -> Vec<f64> {
        let mut variances = vec![rough; self.system.parameters()];
        for (unknown, variance) in self.unknowns.iter().zip(&mut variances) {
            *variance = unknown.prior_variance(rough);
        }
        variances
    }

    /// Whether the solver that `[fit]` names is one of `known`. The language knows no solvers, so whoever
    /// does asks.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with the line of the name.
    pub fn check_solver(&self, known: &[&str]) -> Result<(), Error> {
        let name = self.solver.as_ref();
        let mistake = name.and_then(|name| resolve::reference_mistake(name, known, "a solver"));
        match mistake {
            Some(mistake) => Err(ModelError::new(&self.file, &self.text, vec![mistake]).into()),
            None => Ok(()),
        }
    }

    /// Reads settings of a fit, a text with a section `[fit]` as it may stand in the file; `name` is
    /// what errors call it.
    pub fn settings(&self, name: &str, text: &str) -> Result<SettingsLayer, Error> {
        let (settings, mut diagnostics) = file::read_settings(text);
        let states: Vec<&str> = self.states.iter().map(|s| s.name.as_str()).collect();
        let inputs: Vec<&str> = self.inputs.iter().map(|i| i.name.as_str()).collect();
        let channels: Vec<&str> = self.measurements.iter().map(|m| m.name.as_str()).collect();
        let learned = self.unknowns.iter().map(|u| u.name.as_str());
        let fixed = self.fixed.iter().map(|f| f.name.as_str());
        let known = resolve::KnownNames {
            states: &states,
            inputs: &inputs,
            channels: &channels,
            unknowns: &learned.chain(fixed).collect::<Vec<_>>(),
        };
        resolve::check_settings(&settings, known, &mut diagnostics);
        if diagnostics.is_empty() {
            Ok(settings.layer)
        } else {
            Err(ModelError::new(name, text, diagnostics).into())
        }
    }

    /// States that no measurement sees directly.
    pub fn hidden(&self) -> Vec<usize> {
        let seen = self.system.measure_pattern();
        (0..self.states.len())
            .filter(|i| !seen.iter().any(|(_, j)| j == i))
            .collect()
    }

    /// Index of a state by name.
    pub fn state_index(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|s| s.name == name)
    }
}
