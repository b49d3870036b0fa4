//! The options of a fit that are settings of its solver.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use latens::Model;
use latens::fit::run::{self, Run};
use latens::solve::given::Variances;
use latens::solve::{Given, Level, Settings, Solver};
use latens::suggest::find;

use crate::assignments::{self, Assignment};
use crate::failure::Failure;

const SOLVER: &str = "Solver";
const NOISE: &str = "Noise of states and measurements";
const PARAMETERS: &str =
    "Learned parameters θ (weights and unknown constants, all scaled to order one)";
const RECURSIONS: &str =
    "What only the recursions read (alternating, joint, as-printed); batch does not";

fn solvers() -> PossibleValuesParser {
    PossibleValuesParser::new(Solver::NAMES.iter().map(|(name, _)| *name))
}

/// A help text with the default behind it, and those of the solvers where it is another.
fn help(solvers: &[Solver], text: &str, value: impl Fn(&Settings) -> String) -> String {
    let of = |solver: Solver| value(&Settings::new(solver));
    let default = of(solvers[0]);
    let others = solvers.iter().filter(|s| of(**s) != default);
    let others: Vec<String> = others.map(|s| format!("{} {}", s.name(), of(*s))).collect();
    match others.is_empty() {
        true => format!("{text} [default: {default}]"),
        false => format!("{text} [default: {default}; {}]", others.join(", ")),
    }
}

/// Solvers that read an option, the one whose default it is first.
const ALL: [Solver; 4] = [
    Solver::Batch,
    Solver::Alternating,
    Solver::Joint,
    Solver::AsPrinted,
];
const WITH_RIVALS: [Solver; 9] = [
    Solver::Batch,
    Solver::Alternating,
    Solver::Joint,
    Solver::AsPrinted,
    Solver::Node,
    Solver::NodeLstm,
    Solver::Spinode,
    Solver::Rm,
    Solver::PrSsm,
];
const RECURSIVE: [Solver; 3] = [Solver::Alternating, Solver::Joint, Solver::AsPrinted];
const ALTERNATING: [Solver; 2] = [Solver::Alternating, Solver::AsPrinted];

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
    /// batch: all states and θ at once by Newton's method, with ever tighter physics; the one for
    /// recorded data. The others pass over the records sample by sample: joint: states and θ in
    /// one filter; alternating: in turn; as-printed: alternating as it stands in the paper. Methods of
    /// others, to compare with: node, spinode, rm; node-lstm and pr-ssm, which leave states and scores
    /// but no run; all these read --epochs and --seed alone [default: batch]
    #[arg(long, value_name = "NAME", value_parser = solvers(), hide_possible_values = true,
          help_heading = SOLVER)]
    solver: Option<String>,
    #[arg(long, value_name = "N", help_heading = SOLVER, value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help = help(&WITH_RIVALS, "Tightening stages of batch at the most (it ends when the physics is exact), passes over the records of the recursions and of node-lstm, steps of gradient descent of node, spinode, rm and pr-ssm", |s| s.epochs.to_string()))]
    epochs: Option<u64>,
    #[arg(long, value_name = "S", help_heading = SOLVER,
          help = help(&ALL, "Seed of the networks' random start; where it fails, batch tries the next two", |s| s.seed.to_string()))]
    seed: Option<u64>,
    #[arg(long, value_name = "K", help_heading = SOLVER, value_parser = clap::value_parser!(u64).range(1..=10_000),
          help = help(&ALL, "Start from K seeds, --seed and those that follow, in parallel, and keep the one whose free run is best: over the validation records where there are any", |s| s.starts.to_string()))]
    starts: Option<u64>,
    #[arg(long, value_name = "K", help_heading = SOLVER, value_parser = clap::value_parser!(u64).range(1..=10_000), conflicts_with = "starts",
          help = help(&ALL, "Fit from K seeds, --seed and those that follow, in parallel, and keep them all: predictions are their median, and bands count how far they are apart", |s| s.ensemble.to_string()))]
    ensemble: Option<u64>,
    /// Start from the paper's settings instead of the solver's own; other options still apply; not
    /// batch, which the paper does not have
    #[arg(long, help_heading = SOLVER)]
    printed_settings: bool,
    /// Start from the settings of an earlier run; other options still apply
    #[arg(long, value_name = "RUN", help_heading = SOLVER, conflicts_with_all = ["solver", "printed_settings"])]
    settings: Option<PathBuf>,

    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help(&ALL, "Process noise of equations that depend on θ: standard deviation per sample, relative to scale·√(Δt/τ), τ the time in which the data move by their scale; batch begins there and tightens it tenfold or √10-fold each stage", |s| level(s.hidden)))]
    hidden_noise: Option<f64>,
    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help(&ALL, "Measurement noise: standard deviation relative to the noise found in each channel", |s| level(s.measurement)))]
    measurement_noise: Option<f64>,
    #[arg(long, value_name = "R", help_heading = NOISE, value_parser = assignments::positive,
          help = help(&ALL, "Uncertainty of the start: standard deviation relative to each state's scale", |s| level(s.start)))]
    start_noise: Option<f64>,
    /// Process noise Q_x as a variance per sample, by state: h=1e-6,V=1e-8, which batch then does
    /// not tighten; or of all states, and batch has one stage
    #[arg(long, value_name = "[STATE=]V", help_heading = NOISE, value_delimiter = ',', value_parser = assignments::variance)]
    process_variance: Vec<Assignment<f64>>,
    /// Measurement noise R_y as a variance, of all channels or by channel: V=0.01; batch then does
    /// not estimate it
    #[arg(long, value_name = "[CHANNEL=]V", help_heading = NOISE, value_delimiter = ',', value_parser = assignments::variance)]
    measurement_variance: Vec<Assignment<f64>>,
    /// Uncertainty P_x0 of the start as a variance, of all states or by state
    #[arg(long, value_name = "[STATE=]V", help_heading = NOISE, value_delimiter = ',', value_parser = assignments::variance)]
    start_variance: Vec<Assignment<f64>>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          hide_possible_values = true, help_heading = NOISE,
          help = help(&[Solver::Batch], "Estimate R_y from what the fit leaves over; batch only, and not of channels that --measurement-variance gives", |s| s.estimate_noise.to_string()))]
    estimate_noise: Option<bool>,

    #[arg(long, value_name = "V", help_heading = PARAMETERS, value_parser = assignments::positive,
          help = help(&ALL, "Variance P_θ0 of θ before the data; given, batch does not estimate it", |s| number(s.parameter_variance)))]
    parameter_variance: Option<f64>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          hide_possible_values = true, help_heading = PARAMETERS,
          help = help(&[Solver::Batch], "Let the evidence choose P_θ0 of each network's weights; batch only, and not after --parameter-variance unless asked for", |s| s.estimate_prior.to_string()))]
    estimate_prior: Option<bool>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          hide_possible_values = true, help_heading = PARAMETERS,
          help = help(&ALL, "Scale network outputs to the rates of the hidden states", |s| s.scale_outputs.to_string()))]
    scale_outputs: Option<bool>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          hide_possible_values = true, help_heading = PARAMETERS,
          help = help(&ALL, "Store P_θ in single precision: half the memory, faster recursions for large networks", |s| s.single_precision.to_string()))]
    single_precision: Option<bool>,

    #[arg(long, value_name = "B", help_heading = RECURSIONS, value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help = help(&RECURSIVE, "Segments of each record that update one θ together, from 1; joint takes 1", |s| s.streams.to_string()))]
    streams: Option<u64>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          hide_possible_values = true, help_heading = RECURSIONS,
          help = help(&RECURSIVE, "Keep the epoch whose free run fits the measurements best, not the last", |s| s.keep_best.to_string()))]
    keep_best: Option<bool>,
    #[arg(long, value_name = "R", help_heading = RECURSIONS, value_parser = assignments::positive,
          help = help(&RECURSIVE, "Process noise of known equations, like --hidden-noise; batch takes a thousandth of that", |s| level(s.known)))]
    known_noise: Option<f64>,
    #[arg(long, value_name = "V", help_heading = RECURSIONS, value_parser = assignments::not_negative,
          help = help(&RECURSIVE, "Variance Q_θ that θ gains per step of all streams, 0 for none", |s| number(s.parameter_drift)))]
    parameter_drift: Option<f64>,
    #[arg(long, value_name = "F", help_heading = RECURSIONS, value_parser = assignments::positive,
          help = help(&RECURSIVE, "Factor on Q_θ after each epoch, at most 1", |s| number(s.anneal)))]
    anneal: Option<f64>,
    #[arg(long, value_name = "C", help_heading = RECURSIONS, value_parser = assignments::positive,
          help = help(&ALTERNATING, "Noise of the θ step, as a multiple of the row's own standard deviation; larger learns slower; not joint", |s| number(s.parameter_noise)))]
    parameter_noise: Option<f64>,
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          hide_possible_values = true, help_heading = RECURSIONS,
          help = help(&ALTERNATING, "Count the uncertainty of the states as noise of the θ step; not joint", |s| s.count_state_uncertainty.to_string()))]
    count_state_uncertainty: Option<bool>,
}

impl Options {
    /// The settings for a model: those of its file, and of the command line over them.
    pub fn settings(&self, model: &Model) -> Result<Settings, Failure> {
        let given = self.given(model)?;
        let settings = match &self.settings {
            Some(folder) => {
                let mut settings = run::load(folder)?.facts.settings;
                given.onto(&mut settings);
                settings
            }
            None => Given::settings(&[&model.fit, &given])?,
        };
        settings.check(model)?;
        Ok(settings)
    }

    /// The settings of a run that goes on: its own, and those of the command line over them.
    pub fn resumed(&self, model: &Model, run: &Run) -> Result<Settings, Failure> {
        let given = self.given(model)?;
        let mut settings = run.facts.settings.clone();
        if let Some(solver) = given.solver {
            settings.solver = solver;
        }
        given.onto(&mut settings);
        settings.check(model)?;
        Ok(settings)
    }

    /// What the command line gives.
    pub fn given(&self, model: &Model) -> Result<Given, Failure> {
        let states: Vec<&str> = model.states.iter().map(|s| s.name.as_str()).collect();
        let channels: Vec<&str> = model.measurements.iter().map(|m| m.name.as_str()).collect();
        let count = |number: Option<u64>| number.map(|n| n as usize);
        let named = |name: &String| Solver::NAMES.iter().find(|(n, _)| n == name);
        Ok(Given {
            solver: self.solver.as_ref().and_then(named).map(|(_, s)| *s),
            printed_settings: self.printed_settings.then_some(true),
            epochs: count(self.epochs),
            seed: self.seed,
            starts: count(self.starts),
            ensemble: count(self.ensemble),
            validate_tail: None,
            hidden_noise: self.hidden_noise,
            measurement_noise: self.measurement_noise,
            start_noise: self.start_noise,
            process_variance: variances(&self.process_variance, &states, "state")?,
            measurement_variance: variances(&self.measurement_variance, &channels, "measurement")?,
            start_variance: variances(&self.start_variance, &states, "state")?,
            estimate_noise: self.estimate_noise,
            parameter_variance: self.parameter_variance,
            estimate_prior: self.estimate_prior,
            scale_outputs: self.scale_outputs,
            single_precision: self.single_precision,
            streams: count(self.streams),
            keep_best: self.keep_best,
            known_noise: self.known_noise,
            parameter_drift: self.parameter_drift,
            anneal: self.anneal,
            parameter_noise: self.parameter_noise,
            count_state_uncertainty: self.count_state_uncertainty,
        })
    }
}

/// What was said of all, and of those with a name.
fn variances(given: &[Assignment<f64>], names: &[&str], what: &str) -> Result<Variances, Failure> {
    let mut variances = Variances::default();
    for Assignment { name, value } in given {
        match name {
            None => variances.all = Some(*value),
            Some(name) => {
                find(name, names, what)?;
                variances.of.insert(name.clone(), *value);
            }
        }
    }
    Ok(variances)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;
    use latens::model::file::KEYS;

    /// A setting that the command line cannot reach would be one that nobody can repeat.
    #[test]
    fn every_setting_has_an_option() {
        let settings = serde_json::to_value(Settings::new(Solver::Batch));
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

    /// Every option is a key of the model file's `[fit]` section, and the other way round.
    #[test]
    fn every_option_has_a_key_in_the_model_file() {
        let command = Options::augment_args(clap::Command::new("fit"));
        let options = command.get_arguments().map(|a| a.get_id().as_str());
        // where settings come from is no setting; a tail is an option of the records
        let mut options: Vec<&str> = options.filter(|o| *o != "settings").collect();
        options.push("validate_tail");
        let section = KEYS.iter().find(|(section, _)| *section == "fit");
        let mut keys = section.unwrap().1.to_vec();
        options.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, options);
    }
}
