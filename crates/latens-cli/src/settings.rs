//! The options of a fit that are settings of its solver.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use latens::Model;
use latens::fit::run;
use latens::solve::{Level, Settings, Solver};

use crate::assignments::{self, Assignment};
use crate::failure::Failure;

const SOLVER: &str = "Solver";
const NOISE: &str = "Noise of states and measurements";
const PARAMETERS: &str =
    "Learned parameters θ (weights and unknown constants, all scaled to order one)";

fn solvers() -> PossibleValuesParser {
    PossibleValuesParser::new(Solver::NAMES.iter().map(|(name, _)| *name))
}

/// A help text with the default of each solver behind it.
fn help(text: &str, value: impl Fn(&Settings) -> String) -> String {
    let all: Vec<(&str, String)> = Solver::NAMES
        .iter()
        .map(|(name, solver)| (*name, value(&Settings::new(*solver))))
        .collect();
    if all.iter().all(|(_, v)| *v == all[0].1) {
        return format!("{text} [default: {}]", all[0].1);
    }
    let each: Vec<String> = all.iter().map(|(n, v)| format!("{n} {v}")).collect();
    format!("{text} [default: {}]", each.join(", "))
}

fn level(level: Level) -> String {
    match level {
        Level::Relative(r) => number(r),
        Level::Variance(v) => format!("a variance of {}", number(v)),
    }
}

fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e4).contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

#[derive(Args)]
pub struct Options {
    /// alternating: states and θ in turn; joint: both together with their cross-covariance;
    /// as-printed: alternating with the paper's θ equations as they stand in print; batch: all
    /// states and θ at once by Newton's method, with ever tighter physics
    #[arg(long, value_name = "NAME", default_value = "alternating", value_parser = solvers(),
          hide_possible_values = true, help_heading = SOLVER)]
    solver: String,
    #[arg(long, value_name = "N", help_heading = SOLVER, value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help = help("Passes over the records, or tightening stages of batch at the most, from 1", |s| s.epochs.to_string()))]
    epochs: Option<u64>,
    #[arg(long, value_name = "S", help_heading = SOLVER,
          help = help("Seed of the networks' random start", |s| s.seed.to_string()))]
    seed: Option<u64>,
    #[arg(long, value_name = "B", help_heading = SOLVER, value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help = help("Segments of each record that update one θ together, from 1; joint and batch take 1", |s| s.streams.to_string()))]
    streams: Option<u64>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true,
        help_heading = SOLVER,
          help = help("Keep the epoch whose free run fits the measurements best, not the last; not batch", |s| s.keep_best.to_string()))]
    keep_best: Option<bool>,
    /// Start from the paper's settings instead of the solver's own; other options still apply
    #[arg(long, help_heading = SOLVER)]
    printed_settings: bool,
    /// Start from the settings of an earlier run; other options still apply
    #[arg(long, value_name = "RUN", help_heading = SOLVER, conflicts_with_all = ["solver", "printed_settings"])]
    settings: Option<PathBuf>,

    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help("Process noise of known equations: standard deviation per sample, relative to scale·√(Δt/τ), τ the time in which the data move by their scale; batch keeps it at a thousandth of the hidden one", |s| level(s.known)))]
    known_noise: Option<f64>,
    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help("The same for equations that depend on θ; batch starts there and tightens it tenfold a stage", |s| level(s.hidden)))]
    hidden_noise: Option<f64>,
    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help("Measurement noise: standard deviation relative to the noise found in each channel", |s| level(s.measurement)))]
    measurement_noise: Option<f64>,
    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help("Uncertainty of the start: standard deviation relative to each state's scale", |s| level(s.start)))]
    start_noise: Option<f64>,
    /// Process noise Q_x as a variance per sample, of all states or by state: h=1e-6,V=1e-8
    #[arg(long, value_name = "[STATE=]V", help_heading = NOISE, value_delimiter = ',', value_parser = assignments::variance)]
    process_variance: Vec<Assignment<f64>>,
    /// Measurement noise R_y as a variance, of all channels or by channel: V=0.01
    #[arg(long, value_name = "[CHANNEL=]V", help_heading = NOISE, value_delimiter = ',', value_parser = assignments::variance)]
    measurement_variance: Vec<Assignment<f64>>,
    /// Uncertainty P_x0 of the start as a variance, of all states or by state
    #[arg(long, value_name = "[STATE=]V", help_heading = NOISE, value_delimiter = ',', value_parser = assignments::variance)]
    start_variance: Vec<Assignment<f64>>,

    #[arg(long, value_name = "V", help_heading = PARAMETERS, value_parser = assignments::positive,
          help = help("Variance P_θ0 of θ before the data", |s| number(s.parameter_variance)))]
    parameter_variance: Option<f64>,
    #[arg(long, value_name = "V", help_heading = PARAMETERS, value_parser = assignments::not_negative,
          help = help("Variance Q_θ that θ gains per step of all streams, 0 for none; not batch", |s| number(s.parameter_drift)))]
    parameter_drift: Option<f64>,
    #[arg(long, value_name = "F", help_heading = PARAMETERS, value_parser = assignments::positive,
          help = help("Factor on Q_θ after each epoch, at most 1; not batch", |s| number(s.anneal)))]
    anneal: Option<f64>,
    #[arg(long, value_name = "C", help_heading = PARAMETERS, value_parser = assignments::positive,
          help = help("Noise of the θ step, as a multiple of the row's own standard deviation; larger learns slower; alternating and as-printed", |s| number(s.parameter_noise)))]
    parameter_noise: Option<f64>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true,
        help_heading = PARAMETERS,
          help = help("Count the uncertainty of the states as noise of the θ step; alternating and as-printed", |s| s.count_state_uncertainty.to_string()))]
    count_state_uncertainty: Option<bool>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true,
        help_heading = PARAMETERS,
          help = help("Scale network outputs to the rates of the hidden states", |s| s.scale_outputs.to_string()))]
    scale_outputs: Option<bool>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true,
        help_heading = PARAMETERS,
          help = help("Store P_θ in single precision: half the memory, faster for large networks", |s| s.single_precision.to_string()))]
    single_precision: Option<bool>,
}

fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

impl Options {
    /// The settings for a model.
    pub fn settings(&self, model: &Model) -> Result<Settings, Failure> {
        let mut s = self.base()?;
        set(&mut s.epochs, self.epochs.map(|n| n as usize));
        set(&mut s.seed, self.seed);
        set(&mut s.streams, self.streams.map(|n| n as usize));
        set(&mut s.keep_best, self.keep_best);
        set(&mut s.known, self.known_noise.map(Level::Relative));
        set(&mut s.hidden, self.hidden_noise.map(Level::Relative));
        set(
            &mut s.measurement,
            self.measurement_noise.map(Level::Relative),
        );
        set(&mut s.start, self.start_noise.map(Level::Relative));
        set(&mut s.parameter_variance, self.parameter_variance);
        set(&mut s.parameter_drift, self.parameter_drift);
        set(&mut s.anneal, self.anneal);
        set(&mut s.parameter_noise, self.parameter_noise);
        set(&mut s.count_state_uncertainty, self.count_state_uncertainty);
        set(&mut s.scale_outputs, self.scale_outputs);
        set(&mut s.single_precision, self.single_precision);
        let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
        let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
        let process = variances(&self.process_variance, &states, "state", &mut s.process_of)?;
        set(&mut s.known, process);
        set(&mut s.hidden, process);
        let channel = "measurement";
        let own = &mut s.measurement_of;
        let measurement = variances(&self.measurement_variance, &channels, channel, own)?;
        set(&mut s.measurement, measurement);
        let start = variances(&self.start_variance, &states, "state", &mut s.start_of)?;
        set(&mut s.start, start);
        s.check(model)?;
        Ok(s)
    }

    fn base(&self) -> Result<Settings, Failure> {
        if let Some(folder) = &self.settings {
            return Ok(run::load(folder)?.facts.settings);
        }
        let named = Solver::NAMES.iter().find(|(n, _)| *n == self.solver);
        let solver = named.map_or(Solver::Alternating, |(_, s)| *s);
        Ok(if self.printed_settings {
            Settings::printed(solver)
        } else {
            Settings::new(solver)
        })
    }
}

/// Puts what has a name into `by_name`; gives what was said of all.
fn variances(
    given: &[Assignment<f64>],
    names: &[&str],
    what: &str,
    by_name: &mut BTreeMap<String, f64>,
) -> Result<Option<Level>, Failure> {
    let mut all = None;
    for Assignment { name, value } in given {
        match name {
            None => all = Some(Level::Variance(*value)),
            Some(name) => {
                assignments::find(name, names, what)?;
                by_name.insert(name.clone(), *value);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    /// A setting that the command line cannot reach would be one that nobody can repeat.
    #[test]
    fn every_setting_has_an_option() {
        let settings = serde_json::to_value(Settings::new(Solver::Alternating));
        let settings = settings.unwrap();
        let command = Options::augment_args(clap::Command::new("fit"));
        let options: Vec<&str> = command
            .get_arguments()
            .map(|a| a.get_id().as_str())
            .collect();
        for field in settings.as_object().unwrap().keys() {
            let option = match field.as_str() {
                "known" | "hidden" | "measurement" | "start" => format!("{field}_noise"),
                "process_of" | "measurement_of" | "start_of" => field.replace("_of", "_variance"),
                _ => field.clone(),
            };
            assert!(options.contains(&option.as_str()), "no --{option}");
        }
    }
}
