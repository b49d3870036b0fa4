//! The model file: TOML to definitions with places, every mistake collected.
//!
//! This layer knows keys and types; what names mean is resolved in [`super::resolve`].

mod reader;
mod sensor;
mod unknown;
mod values;

use std::ops::Range;

use toml::de::DeTable;

use super::diagnostic::{Diagnostic, Span};
use super::expression::Expr;
use super::network::Activation;
use crate::constant::{Prior, Varies};
use crate::settings::{Owner, SettingsLayer, TABLE};
pub(crate) use reader::Reader;
pub(crate) use sensor::{correction, undelayed};
pub(crate) use unknown::difference_name;
pub(crate) use values::{Fields, Value};

/// A name or value with its place.
#[derive(Debug, Clone)]
pub struct At<T> {
    pub value: T,
    pub span: Span,
}

/// What a name stands for: `name = …`.
pub type Named<T> = (At<String>, T);

/// Declares the integration methods, each with its name in `[time] method`.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $name:literal,)*) => {
        /// How a step of the record is integrated.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Method {
            $($(#[$doc])* $method,)*
        }

        impl Method {
            /// As written in `[time] method`.
            pub const NAMES: &[(&'static str, Method)] = &[$(($name, Method::$method),)*];
        }
    };
}

methods! {
    /// x + Δ f(x).
    Euler = "euler",
    /// One state after another, each with the states already advanced.
    SemiImplicitEuler = "semi-implicit-euler",
    /// The classical Runge–Kutta scheme: the default, because measured systems do not take steps.
    #[default]
    Rk4 = "rk4",
    /// A diagonally implicit Runge–Kutta method of fourth order, L-stable.
    Sdirk4 = "sdirk4",
    /// x + Δ f of the middle between both ends, A-stable.
    ImplicitMidpoint = "implicit-midpoint",
}

impl Method {
    /// Whether a step is solved for, so that equations may be much faster than it.
    pub fn is_implicit(self) -> bool {
        matches!(self, Self::Sdirk4 | Self::ImplicitMidpoint)
    }
}

/// What an input does between samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// It keeps its value until the next sample.
    ZeroOrder,
    /// It goes straight to its next value.
    FirstOrder,
}

impl Hold {
    /// As written in `[time] hold`.
    pub const NAMES: [(&'static str, Hold); 2] = [
        ("zero-order", Hold::ZeroOrder),
        ("first-order", Hold::FirstOrder),
    ];
}

/// An entry of `[states]`.
#[derive(Debug, Clone)]
pub struct StateDef {
    pub name: At<String>,
    /// `None` where the key is missing; text with a mistake is an invalid expression.
    pub derivative: Option<Expr>,
    pub start: Option<f64>,
    pub start_deviation: Option<f64>,
    pub unit: String,
    pub scale: Option<f64>,
    pub center: Option<f64>,
}

/// An entry of `[networks]`.
#[derive(Debug, Clone)]
pub struct NetworkDef {
    pub name: At<String>,
    /// Units and nonlinearity of each hidden layer; the linear output layer is implied.
    pub layers: Vec<(usize, Activation)>,
    pub outputs: Vec<String>,
    /// Terms of formulas that may stand for it.
    pub library: Vec<String>,
    /// Of its outputs, or one for all; none where the file gives none.
    pub units: Vec<String>,
    pub skip: bool,
}

/// An entry of `[unknowns]`.
#[derive(Debug, Clone)]
pub struct UnknownDef {
    pub name: At<String>,
    pub guess: f64,
    pub scale: f64,
    pub positive: bool,
    /// Infinite where there is none.
    pub min: f64,
    pub max: f64,
    pub prior: Prior,
    /// Its value, where that is not learned.
    pub fixed: Option<f64>,
    pub varies: Option<Varies>,
    pub unit: String,
}

/// An entry of `[inputs]`.
#[derive(Debug, Clone)]
pub struct InputDef {
    pub name: At<String>,
    pub unit: String,
    /// `None` where it is that of `[time]`.
    pub hold: Option<Hold>,
    pub delay: Option<Box<Duration>>,
}

/// An entry of `[measurements]`.
#[derive(Debug, Clone)]
pub struct MeasurementDef {
    pub name: At<String>,
    pub value: Expr,
    pub unit: String,
    pub lag: Option<Box<Duration>>,
    pub delay: Option<Box<Duration>>,
}

/// A lag or a delay: a number, or a constant that is learned.
#[derive(Debug, Clone)]
pub enum Duration {
    Known(At<f64>),
    Unknown(UnknownDef),
}

/// An entry of `[tables]`: a piecewise-linear function.
#[derive(Debug, Clone)]
pub struct TableDef {
    pub name: At<String>,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub period: Option<f64>,
}

/// Weights of a linear-quadratic regulator that closes the loop in simulation.
#[derive(Debug, Clone)]
pub struct LqrDef {
    pub span: Span,
    pub states: Vec<Named<f64>>,
    pub inputs: Vec<Named<f64>>,
}

/// Another start or input of the simulation, kept out of training.
#[derive(Debug, Clone, Default)]
pub struct HeldOutDef {
    pub start: Vec<Named<f64>>,
    pub inputs: Vec<Named<Expr>>,
}

/// `[simulation]`: how to make a record from the truth.
#[derive(Debug, Clone, Default)]
pub struct SimulationDef {
    pub steps: Option<usize>,
    pub inputs: Vec<Named<Expr>>,
    pub process_noise: Vec<Named<f64>>,
    pub lqr: Option<LqrDef>,
    pub held_out: Vec<HeldOutDef>,
}

/// `[fit]`: settings of a fit, and the names in them with their places.
#[derive(Debug, Clone, Default)]
pub struct FitDef {
    pub layer: SettingsLayer,
    pub named: Vec<(Owner, At<String>)>,
}

impl FitDef {
    /// The solver that it names.
    pub fn solver(&self) -> Option<&At<String>> {
        let named = self.named.iter().find(|(owner, _)| *owner == Owner::Solver);
        named.map(|(_, name)| name)
    }
}

/// A model file as written.
#[derive(Debug, Clone)]
pub struct ModelFile {
    pub name: String,
    pub description: String,
    pub time_unit: String,
    pub step: Option<f64>,
    pub method: Method,
    pub substeps: usize,
    pub tolerance: Option<f64>,
    /// `None` where the file does not say.
    pub hold: Option<Hold>,
    pub constants: Vec<Named<Expr>>,
    pub inputs: Vec<InputDef>,
    pub states: Vec<StateDef>,
    pub expressions: Vec<Named<Expr>>,
    pub networks: Vec<NetworkDef>,
    pub unknowns: Vec<UnknownDef>,
    pub measurements: Vec<MeasurementDef>,
    pub tables: Vec<TableDef>,
    /// True derivatives of states and values of unknowns.
    pub truth: Vec<Named<Expr>>,
    pub simulation: SimulationDef,
    pub fit: FitDef,
    /// Whether every section could be read. Where not, names may be missing through no fault of
    /// the equations that use them.
    pub complete: bool,
    /// Groups of the records to learn from, where their differences are entries of θ; none is written
    /// in a file.
    pub groups: usize,
}

impl ModelFile {
    pub(super) fn state_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.states.iter().map(|s| s.name.value.as_str())
    }

    pub(super) fn input_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.inputs.iter().map(|input| input.name.value.as_str())
    }

    /// The unknowns that are learned, in the order of their entries of θ.
    pub(super) fn free(&self) -> impl Iterator<Item = &UnknownDef> {
        self.unknowns.iter().filter(|u| u.fixed.is_none())
    }

    /// Whether θ has the difference of each group from the mean of a constant.
    pub(super) fn is_grouped(&self, unknown: &UnknownDef) -> bool {
        self.groups > 0 && unknown.is_varying() && unknown.varies == Some(Varies::Group)
    }

    /// Constants whose groups' differences are entries of θ, by their place among the learned ones, and
    /// those entries: after all constants, before the weights.
    pub(super) fn group_entries(&self) -> Vec<(usize, Range<usize>)> {
        let first = self.free().count();
        let grouped = self.free().enumerate().filter(|(_, u)| self.is_grouped(u));
        let entries = grouped.enumerate().map(|(k, (place, _))| {
            let start = first + k * self.groups;
            (place, start..start + self.groups)
        });
        entries.collect()
    }

    /// Inputs of the equations: those of the file, and the number of a record's group.
    pub(super) fn driven_by(&self) -> usize {
        self.inputs.len() + usize::from(self.groups > 0)
    }

    /// Entries of θ that are no weights.
    pub(super) fn constant_entries(&self) -> usize {
        let groups = self.group_entries();
        groups
            .last()
            .map_or(self.free().count(), |(_, range)| range.end)
    }

    /// Adds the states that hold how constants which vary differ from their means, after all others.
    pub(super) fn add_differences(&mut self) {
        let varying = self.unknowns.iter().filter(|u| u.is_varying());
        let varying = varying.filter(|u| !self.is_grouped(u));
        // those of groups last: a model whose groups are known has the same states before them
        let (groups, others): (Vec<_>, Vec<_>) =
            varying.partition(|u| u.varies == Some(Varies::Group));
        let varying = others.into_iter().chain(groups);
        let states: Vec<StateDef> = varying.map(UnknownDef::difference).collect();
        self.states.extend(states);
    }

    /// The entry of the truth section for a measurement that has not the name of its state.
    pub(super) fn truth_of_measurement(&self, name: &str) -> Option<&Expr> {
        let state = self.state_names().any(|state| state == name);
        self.truth_of(name).filter(|_| !state)
    }

    /// The entry of the truth section for a state or an unknown.
    pub(super) fn truth_of(&self, name: &str) -> Option<&Expr> {
        find(&self.truth, name)
    }
}

/// What `name` stands for.
pub(super) fn find<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a T> {
    let entry = entries.iter().find(|(n, _)| n.value == name);
    entry.map(|(_, value)| value)
}

/// Keys of each section but `[fit]`, whose keys are the settings; the JSON Schema holds the same
/// (tested).
pub const KEYS: [(&str, &[&str]); 11] = [
    (
        "",
        &[
            "name",
            "description",
            "time",
            "constants",
            "inputs",
            "states",
            "expressions",
            "networks",
            "unknowns",
            "measurements",
            "tables",
            "truth",
            "simulation",
            "fit",
        ],
    ),
    (
        "time",
        &["unit", "step", "method", "substeps", "tolerance", "hold"],
    ),
    ("inputs", &["unit", "hold", "delay"]),
    (
        "states",
        &[
            "derivative",
            "start",
            "start_deviation",
            "unit",
            "scale",
            "center",
        ],
    ),
    (
        "networks",
        &["layers", "library", "outputs", "skip", "unit"],
    ),
    (
        "unknowns",
        &[
            "guess", "scale", "positive", "min", "max", "value", "prior", "fixed", "varies", "unit",
        ],
    ),
    ("measurements", &["value", "unit", "lag", "delay"]),
    ("tables", &["x", "y", "period"]),
    (
        "simulation",
        &["steps", "inputs", "process_noise", "lqr", "held_out"],
    ),
    ("simulation.lqr", &["states", "inputs"]),
    ("simulation.held_out", &["start", "inputs"]),
];

/// Keys of `[fit]` as version 0.1 had them, and as they are: such files, and the folders that hold
/// one, are still read.
const EARLIER_KEYS: [(&str, &str); 2] = [("epochs", "passes"), ("streams", "segments")];

fn keys(section: &str) -> Vec<&'static str> {
    match section {
        "fit" => TABLE.iter().map(|setting| setting.key).collect(),
        _ => {
            let known = KEYS.iter().find(|(s, _)| *s == section);
            known.map_or(vec![], |(_, keys)| keys.to_vec())
        }
    }
}

const SEE_EXAMPLES: &str = "see the examples written by `latens init`";

/// Reads `text`; a file with mistakes gives whatever could be read, and all of them.
pub fn read(text: &str) -> (ModelFile, Vec<Diagnostic>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader::new(text);
    let mut file = reader.model(document.get_ref());
    let mut diagnostics = reader.diagnostics;
    if text.trim().is_empty() {
        file.complete = false;
        diagnostics = vec![Diagnostic::new(0..0, "the file is empty").help(SEE_EXAMPLES)];
    } else if !errors.is_empty() {
        // what was read of such a file is not what was meant
        file.complete = false;
        diagnostics = toml_mistakes(errors);
    }
    (file, diagnostics)
}

/// The text with this method written out where it names none; `None` where there is no place for it.
pub fn with_method(text: &str, method: &str) -> Option<String> {
    let named = |text: &str| {
        let document: toml::Table = text.parse().ok()?;
        let method = document.get("time").and_then(|time| time.get("method"));
        Some(method.is_some())
    };
    if named(text)? {
        return Some(text.to_string());
    }
    let entry = format!("method = \"{method}\"");
    let header = text
        .lines()
        .find(|line| line.trim_start().starts_with("[time]"));
    let below = header.map(|header| text.replacen(header, &format!("{header}\n{entry}"), 1));
    let inline = text.replacen("time = {", &format!("time = {{ {entry},"), 1);
    let dotted = format!("time.{entry}\n{text}");
    let mut forms = below.into_iter().chain([inline, dotted]);
    forms.find(|text| named(text) == Some(true))
}

/// Reads a text that is a `[fit]` section alone. Such a text is of today: earlier keys are mistakes.
pub fn read_settings(text: &str) -> (FitDef, Vec<Diagnostic>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader::new(text);
    reader.earlier_keys = false;
    let settings = reader.fit(Fields::of(document.get_ref()));
    if errors.is_empty() {
        (settings, reader.diagnostics)
    } else {
        (settings, toml_mistakes(errors))
    }
}

/// The mistakes of a file that is no TOML, up to the first that makes the rest unreadable.
fn toml_mistakes(mut errors: Vec<toml::de::Error>) -> Vec<Diagnostic> {
    errors.sort_by_key(|e| e.span().map_or(0, |s| s.start));
    let mut mistakes = Vec::new();
    for e in errors {
        let (message, place) = (e.message().to_string(), e.span().unwrap_or(0..0));
        let (help, local) = if message.starts_with("string values must be quoted") {
            ("write equations and text in quotes: \"-k*x\"", true)
        } else if message.starts_with("duplicate key") {
            ("a section or name stands once: merge the two", true)
        } else {
            (SEE_EXAMPLES, false)
        };
        mistakes.push(Diagnostic::new(place, format!("not valid TOML: {message}")).help(help));
        if !local {
            break;
        }
    }
    mistakes
}
