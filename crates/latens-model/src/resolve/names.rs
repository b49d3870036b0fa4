//! The names of a file: what each stands for, and mistakes that show without the equations.

use std::collections::HashMap;

use super::super::diagnostic::Diagnostic;
use super::super::expression::is_name_start;
use super::super::file::{At, FitDef, ModelFile};
use super::super::limits::NAME_LENGTH;
use super::functions;
use crate::settings::Owner;
use crate::suggest::suggest;

// names that are always there
pub(super) const TIME: &str = "t";
pub(super) const PI: &str = "pi";

/// What a name stands for, by its index in the file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Symbol {
    Constant(usize),
    Input(usize),
    State(usize),
    Expression(usize),
    Unknown(usize),
    Network(usize),
    Table(usize),
}

impl Symbol {
    fn kind(self) -> &'static str {
        match self {
            Symbol::Constant(_) => "a constant",
            Symbol::Input(_) => "an input",
            Symbol::State(_) => "a state",
            Symbol::Expression(_) => "an expression",
            Symbol::Unknown(_) => "an unknown",
            Symbol::Network(_) => "a network",
            Symbol::Table(_) => "a table",
        }
    }

    pub fn is_callable(self) -> bool {
        matches!(self, Symbol::Network(_) | Symbol::Table(_))
    }
}

/// Every name that equations can use.
pub(super) fn symbols(file: &ModelFile) -> Vec<(&At<String>, Symbol)> {
    fn numbered<'a>(
        names: impl Iterator<Item = &'a At<String>>,
        symbol: fn(usize) -> Symbol,
    ) -> impl Iterator<Item = (&'a At<String>, Symbol)> {
        names.enumerate().map(move |(i, name)| (name, symbol(i)))
    }
    let constants = file.constants.iter().map(|(name, _)| name);
    let inputs = file.inputs.iter().map(|input| &input.name);
    let states = file.states.iter().map(|s| &s.name);
    let expressions = file.expressions.iter().map(|(name, _)| name);
    let unknowns = file.unknowns.iter().map(|u| &u.name);
    let networks = file.networks.iter().map(|n| &n.name);
    let tables = file.tables.iter().map(|t| &t.name);
    numbered(constants, Symbol::Constant)
        .chain(numbered(inputs, Symbol::Input))
        .chain(numbered(states, Symbol::State))
        .chain(numbered(expressions, Symbol::Expression))
        .chain(numbered(unknowns, Symbol::Unknown))
        .chain(numbered(networks, Symbol::Network))
        .chain(numbered(tables, Symbol::Table))
        .collect()
}

/// Checks the names of a file: each once, none reserved, all of a form that expressions can use,
/// and that the sections which speak of states, inputs and unknowns name what there is.
pub fn check_names(file: &ModelFile, diagnostics: &mut Vec<Diagnostic>) {
    check_definitions(file, diagnostics);
    check_references(file, diagnostics);
}

fn check_definitions(file: &ModelFile, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<&str, Symbol> = HashMap::new();
    let measured = |name: &str| file.measurements.iter().any(|m| m.name.value == name);
    let mut all = symbols(file);
    all.sort_by_key(|(name, _)| name.span.start);
    for (at, symbol) in all {
        diagnostics.extend(form_mistake(at));
        let At { value: name, span } = at;
        if let Some(first) = seen.insert(name, symbol) {
            let message = format!("the name `{name}` is taken by {}", first.kind());
            let help = "constants, inputs, states, expressions, unknowns, networks and tables share one set of names";
            diagnostics.push(Diagnostic::new(span.clone(), message).help(help));
        }
        if matches!(symbol, Symbol::Input(_)) && measured(name) {
            let message = format!("`{name}` is an input and a measurement");
            let help = "a column of a record is one or the other: rename the measurement";
            diagnostics.push(Diagnostic::new(span.clone(), message).help(help));
        }
    }
    for m in &file.measurements {
        diagnostics.extend(form_mistake(&m.name));
    }
}

/// What is wrong with a name in itself.
pub(super) fn form_mistake(name: &At<String>) -> Option<Diagnostic> {
    let text = name.value.as_str();
    let starts = text.starts_with(is_name_start);
    let rest = text.chars().all(|c| is_name_start(c) || c.is_ascii_digit());
    let reserved = ["and", "or", "not", TIME, PI].contains(&text)
        || functions::arguments(text).is_some()
        || text.starts_with("truth_");
    let (message, help) = if text.chars().count() > NAME_LENGTH {
        let start: String = text.chars().take(20).collect();
        (
            format!("the name `{start}…` is too long"),
            "a name has at most 100 characters",
        )
    } else if !(starts && rest) {
        (
            format!("`{text}` cannot be used in an equation"),
            "a name is letters, the digits 0 to 9 and _, and does not start with a digit",
        )
    } else if reserved {
        (
            format!("the name `{text}` is reserved"),
            "functions, `t`, `pi`, `and`, `or`, `not` and `truth_…` have a meaning already: choose another name",
        )
    } else {
        return None;
    };
    Some(Diagnostic::new(name.span.clone(), message).help(help))
}

/// Names of states, inputs, unknowns and measurements in the truth, simulation and fit sections.
fn check_references(file: &ModelFile, diagnostics: &mut Vec<Diagnostic>) {
    let simulation = &file.simulation;
    let (lqr, held_out) = (simulation.lqr.iter(), simulation.held_out.iter());
    let unknowns = file.unknowns.iter().map(|u| u.name.value.as_str());
    let measured = file.measurements.iter().map(|m| m.name.value.as_str());
    let learned: Vec<&str> = file.state_names().chain(unknowns).chain(measured).collect();
    let states: Vec<&str> = file.state_names().collect();
    let inputs: Vec<&str> = file.input_names().collect();
    let mut check = |name: &At<String>, known: &[&str], noun: &str| {
        diagnostics.extend(reference_mistake(name, known, noun));
    };
    for (name, _) in &file.truth {
        check(name, &learned, "a state, an unknown or a measurement");
    }
    let starts = held_out.clone().flat_map(|h| &h.start);
    let weights = lqr.clone().flat_map(|l| &l.states);
    for (name, _) in starts.chain(weights).chain(&simulation.process_noise) {
        check(name, &states, "a state");
    }
    for (name, _) in lqr.flat_map(|l| &l.inputs) {
        check(name, &inputs, "an input");
    }
    let controls = held_out.flat_map(|h| &h.inputs).chain(&simulation.inputs);
    for (name, _) in controls {
        check(name, &inputs, "an input");
    }
    let channels = file.measurements.iter();
    let channels: Vec<&str> = channels.map(|m| m.name.value.as_str()).collect();
    let unknowns = file.unknowns.iter();
    let known = Named {
        states: &states,
        inputs: &inputs,
        channels: &channels,
        unknowns: &unknowns.map(|u| u.name.value.as_str()).collect::<Vec<_>>(),
    };
    check_settings(&file.fit, known, diagnostics);
}

/// What settings of a fit may name.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    pub states: &'a [&'a str],
    pub inputs: &'a [&'a str],
    pub channels: &'a [&'a str],
    pub unknowns: &'a [&'a str],
}

/// Names of states, inputs, measurements and unknowns in settings of a fit.
pub fn check_settings(settings: &FitDef, all: Named, diagnostics: &mut Vec<Diagnostic>) {
    for (owner, name) in &settings.named {
        let (known, noun) = match owner {
            Owner::State => (all.states, "a state"),
            Owner::Channel => (all.channels, "a measurement"),
            Owner::Input => (all.inputs, "an input"),
            Owner::Unknown => (all.unknowns, "a constant of [unknowns]"),
            // solvers register themselves: see Model::check_solver
            Owner::Solver => continue,
        };
        diagnostics.extend(reference_mistake(name, known, noun));
    }
}

pub fn reference_mistake(name: &At<String>, known: &[&str], noun: &str) -> Option<Diagnostic> {
    if known.contains(&name.value.as_str()) {
        return None;
    }
    let help = match suggest(&name.value, known.iter().copied()) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => "the model has none".into(),
        None => format!("there are: {}", known.join(", ")),
    };
    let message = format!("`{}` is not {noun}", name.value);
    Some(Diagnostic::new(name.span.clone(), message).help(help))
}
