//! The options of a fit that are settings: made from the one table of settings.

use std::fmt::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use latens::model::settings::{Form, Group, Setting, SettingsLayer, TABLE};
use latens::{Fit, Job, Model, job, solve};

use super::assignments::{self, Assignment};
use crate::failure::Failure;

/// Where settings come from that are no single one of them.
const EARLIER_SETTINGS: &str = "settings";

/// What the command line says of settings, as the lines of a `[fit]` section.
#[derive(Debug, Clone, Default)]
pub struct Options {
    section: String,
    /// A folder whose settings are taken.
    earlier: Option<PathBuf>,
}

/// The settings that most people need; all others are in the long help alone.
const SHORT_HELP: [&str; 6] = ["passes", "seed", "starts", "ensemble", "fix", "free"];

fn solvers() -> Vec<&'static str> {
    let names = solve::solvers().into_iter().map(|s| s.name());
    // these leave states and scores, but no fit
    names
        .chain(latens_lab::rivals::without_fit::WITHOUT_FIT)
        .collect()
}

/// What each solver is, the paper's and others' last.
fn about_solvers() -> String {
    let solvers = solve::solvers().into_iter();
    let mut text = String::from("How θ is learned. ");
    for solver in solvers {
        let _ = write!(text, "{}: {}. ", solver.name(), solver.about());
    }
    text + "Methods of others that leave states and scores but no fit: node-lstm, pr-ssm"
}

fn option(setting: &'static Setting) -> Arg {
    let name = setting.key.replace('_', "-");
    let help = match setting.form {
        Form::Solver => about_solvers(),
        _ => setting.help.to_string(),
    };
    let default = setting.default(&solve::defaults());
    let help = match default {
        Some(default) => format!("{help} [default: {default}]"),
        None => help,
    };
    let arg = Arg::new(setting.key)
        .long(name)
        .help(help)
        .value_name(setting.value_name)
        .help_heading(setting.group.heading())
        .hide_short_help(!SHORT_HELP.contains(&setting.key));
    let arg = match setting.alias {
        // an earlier name of the option; the others are of the file
        Some(alias @ ("epochs" | "streams")) => arg.alias(alias),
        _ => arg,
    };
    match setting.form {
        Form::Solver => arg
            .value_parser(PossibleValuesParser::new(solvers()))
            .hide_possible_values(true),
        Form::Count => arg.value_parser(value_parser!(u64).range(1..=1_000_000)),
        Form::Seed => arg.value_parser(value_parser!(u64).range(..=i64::MAX as u64)),
        Form::Flag => arg
            .value_parser(value_parser!(bool))
            .num_args(0..=1)
            .default_missing_value("true")
            .require_equals(true)
            .hide_possible_values(true),
        Form::Positive => arg.value_parser(assignments::positive),
        Form::NotNegative => arg.value_parser(assignments::not_negative),
        Form::Factor => arg.value_parser(assignments::factor),
        Form::Tail => arg
            .value_parser(assignments::tail)
            .conflicts_with("validate"),
        Form::Variances(_) => arg
            .value_parser(assignments::variance)
            .value_delimiter(',')
            .action(ArgAction::Append),
        Form::Values => arg
            .value_parser(assignments::named)
            .value_delimiter(',')
            .action(ArgAction::Append),
        Form::Names(_) => arg.value_delimiter(',').action(ArgAction::Append),
    }
}

/// What was given of a setting, as TOML; nothing where it was not given.
fn given(setting: &Setting, matches: &ArgMatches) -> Option<String> {
    let key = setting.key;
    match setting.form {
        Form::Solver => matches.get_one::<String>(key).map(|v| format!("{v:?}")),
        Form::Count | Form::Seed => matches.get_one::<u64>(key).map(u64::to_string),
        Form::Flag => matches.get_one::<bool>(key).map(bool::to_string),
        Form::Positive | Form::NotNegative | Form::Factor | Form::Tail => {
            matches.get_one::<f64>(key).map(|v| format!("{v:?}"))
        }
        Form::Variances(_) => {
            let all: Vec<&Assignment<f64>> = matches.get_many(key)?.collect();
            let named = all.iter().filter_map(|a| {
                let name = a.name.as_ref()?;
                Some(format!("{name:?} = {:?}", a.value))
            });
            let named: Vec<String> = named.collect();
            let whole = all.iter().rev().find(|a| a.name.is_none());
            let whole = whole.map(|a| format!("\"*\" = {:?}", a.value));
            let entries: Vec<String> = whole.into_iter().chain(named).collect();
            Some(format!("{{ {} }}", entries.join(", ")))
        }
        Form::Values => {
            let all = matches.get_many::<Assignment<f64>>(key)?;
            let pairs = all.filter_map(|a| Some(format!("{:?} = {:?}", a.name.as_ref()?, a.value)));
            Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
        }
        Form::Names(_) => {
            let names = matches.get_many::<String>(key)?;
            Some(format!("{:?}", names.collect::<Vec<_>>()))
        }
    }
}

/// What is fixed and freed, for a verb that takes no other setting.
#[derive(Debug, Clone, Default)]
pub struct Held(Options);

impl Held {
    /// The model as a fit with these options would take it.
    pub fn apply(&self, model: Model) -> Result<Model, Failure> {
        Ok(job::held(&model, &self.0.layer(&model)?)?)
    }
}

fn held() -> impl Iterator<Item = &'static Setting> {
    let holds = |s: &&Setting| matches!(s.form, Form::Values | Form::Names(_));
    TABLE.iter().filter(holds)
}

impl clap::Args for Held {
    fn augment_args(command: Command) -> Command {
        command.args(held().map(|s| option(s).hide_short_help(false)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Held {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut held = Self::default();
        held.update_from_arg_matches(matches)?;
        Ok(held)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.take(held(), matches);
        Ok(())
    }
}

impl clap::Args for Options {
    fn augment_args(command: Command) -> Command {
        let mut settings: Vec<&'static Setting> = TABLE.iter().collect();
        // the solvers, and what only the paper's read, last
        settings.sort_by_key(|s| (s.group == Group::Recursions, s.form == Form::Solver));
        let earlier = Arg::new(EARLIER_SETTINGS)
            .long(EARLIER_SETTINGS)
            .value_name("FOLDER")
            .help("Start from the settings of an earlier fit; other options still apply")
            .help_heading(Group::Common.heading())
            .hide_short_help(true)
            .value_parser(value_parser!(PathBuf))
            .conflicts_with_all(["solver", "printed_settings"]);
        command
            .args(settings.into_iter().map(option))
            .arg(earlier)
            .mut_arg("ensemble", |arg| arg.conflicts_with("starts"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.take(TABLE.iter(), matches);
        self.earlier = matches.get_one::<PathBuf>(EARLIER_SETTINGS).cloned();
        Ok(())
    }
}

impl Options {
    /// Writes down what was given of some settings.
    fn take(&mut self, settings: impl Iterator<Item = &'static Setting>, matches: &ArgMatches) {
        for setting in settings {
            if let Some(value) = given(setting, matches) {
                let _ = writeln!(self.section, "{} = {value}", setting.key);
            }
        }
    }

    /// What the command line gives, for a model.
    pub fn layer(&self, model: &Model) -> Result<SettingsLayer, Failure> {
        let text = format!("[fit]\n{}", self.section);
        Ok(model
            .settings("command line", &text)
            .map_err(latens::Error::from)?)
    }

    /// Gives a job its settings: of the command line, over those of the model's file or of an
    /// earlier fit.
    pub fn configure(&self, job: &mut Job) -> Result<SettingsLayer, Failure> {
        let layer = self.layer(&job.model)?;
        match &self.earlier {
            Some(folder) => {
                job.settings = Fit::load(folder)?.facts.settings;
                layer.onto(&mut job.settings);
                solve::registry::check(&job.settings, &job.model)?;
            }
            None => job.configure(&layer)?,
        }
        Ok(layer)
    }

    /// The solver that is asked for, where one is.
    pub fn solver(&self, model: &Model) -> Result<Option<String>, Failure> {
        Ok(self
            .layer(model)?
            .solver
            .or_else(|| model.fit.solver.clone()))
    }
}
