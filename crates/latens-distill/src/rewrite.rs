//! A model file in which formulas stand for networks: the user's own text, with the calls replaced, the
//! networks gone and the constants of the formulas among the unknown ones.

use std::fmt::Write;

use latens::Error;
use latens::model::Model;
use latens::model::syntax::{Expr, Kind, ModelFile, read};

use crate::formula::Formula;

/// A formula for an output of a network.
pub struct Replacement<'a> {
    /// Of which network.
    pub network: &'a str,
    /// Which output.
    pub output: &'a str,
    /// What stands for it.
    pub formula: &'a Formula,
    /// Names of its constants in the file.
    pub names: Vec<String>,
    /// How large each may be.
    pub scales: &'a [f64],
    /// The unit of each, where it follows from those of the arguments and of the output.
    pub units: Vec<Option<String>>,
}

/// The text of a model with formulas for all its networks.
///
/// # Errors
/// [`Error::Setting`] where the file is written in a way that cannot be edited.
pub fn rewrite(model: &Model, replacements: &[Replacement]) -> Result<String, Error> {
    let (file, _) = read(&model.text);
    let mut edits: Vec<(std::ops::Range<usize>, String)> = vec![];
    let derivatives = file.states.iter().filter_map(|s| s.derivative.as_ref());
    let expressions = file.expressions.iter().map(|(_, e)| e);
    let measured = file.measurements.iter().map(|m| &m.value);
    for expr in derivatives.chain(expressions).chain(measured) {
        find(expr, model, replacements, &file, &mut edits);
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut text = String::new();
    let mut at = 0;
    for (range, replacement) in edits {
        text += &model.text[at..range.start];
        text += &replacement;
        at = range.end;
    }
    text += &model.text[at..];
    let text = with_unknowns(&without_networks(&text, &file), replacements);
    match Model::from_text("formula", &text) {
        Ok(model) if model.system.networks().is_empty() => Ok(text),
        Ok(_) => Err(Error::Setting("a network of the model file could not be taken out; write each in a section [networks.NAME] of its own".into())),
        Err(reason) => Err(Error::Setting(format!(
            "the model file with a formula in place of the network is not a model: {reason}"
        ))),
    }
}

/// The calls of networks in an expression, outermost first.
fn find(
    expr: &Expr,
    model: &Model,
    replacements: &[Replacement],
    file: &ModelFile,
    edits: &mut Vec<(std::ops::Range<usize>, String)>,
) {
    match &expr.kind {
        Kind::Call {
            name, arguments, ..
        } => {
            if file.networks.iter().any(|n| n.name.value == *name) {
                let text = written(expr, model, replacements, file);
                edits.push((expr.span.clone(), text));
            } else {
                for argument in arguments {
                    find(argument, model, replacements, file, edits);
                }
            }
        }
        Kind::Negate(a) | Kind::Not(a) => find(a, model, replacements, file, edits),
        Kind::Binary(_, a, b) => {
            find(a, model, replacements, file, edits);
            find(b, model, replacements, file, edits);
        }
        Kind::Number(_) | Kind::Name(_) | Kind::Invalid => {}
    }
}

/// The formula for a call, with the arguments of the call, in which there may be further calls.
fn written(expr: &Expr, model: &Model, replacements: &[Replacement], file: &ModelFile) -> String {
    let Kind::Call {
        name,
        arguments,
        output,
        ..
    } = &expr.kind
    else {
        return String::new();
    };
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| {
            let mut inner = vec![];
            find(argument, model, replacements, file, &mut inner);
            inner.sort_by_key(|(range, _)| range.start);
            let (mut text, mut at) = (String::new(), argument.span.start);
            for (range, replacement) in inner {
                text += &model.text[at..range.start];
                text += &replacement;
                at = range.end;
            }
            text + &model.text[at..argument.span.end]
        })
        .collect();
    let replacement = replacements.iter().find(|r| {
        let same = output.as_ref().is_none_or(|(o, _)| o == r.output);
        r.network == name && same
    });
    replacement.map_or(String::new(), |replacement| {
        format!(
            "({})",
            replacement.formula.shown(&arguments, &replacement.names)
        )
    })
}

/// The text without the sections of networks.
fn without_networks(text: &str, file: &ModelFile) -> String {
    let mut out = String::new();
    let mut section = String::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if bare.starts_with('[') {
            let name = bare.split(']').next().unwrap_or("");
            section = name.replace(['[', '"', '\'', ' '], "");
        }
        let of_network = section.starts_with("networks.");
        let key = bare.split(['=', '.']).next().unwrap_or("").trim();
        let inline = section == "networks"
            && (bare == "[networks]" || file.networks.iter().any(|n| n.name.value == key));
        let comment_after = of_network && bare.starts_with('#');
        if (!of_network && !inline) || comment_after {
            out += line;
        }
    }
    out
}

/// The text with the constants of formulas among the unknown ones.
fn with_unknowns(text: &str, replacements: &[Replacement]) -> String {
    let mut entries = String::new();
    for replacement in replacements {
        let values = replacement.formula.constants.iter().zip(replacement.scales);
        let names = replacement.names.iter().zip(&replacement.units);
        for ((name, unit), (value, scale)) in names.zip(values) {
            let (guess, scale) = (number(*value, 6), number(*scale, 2));
            let _ = write!(entries, "{name} = {{ guess = {guess}, scale = {scale}");
            if let Some(unit) = unit.as_ref().filter(|unit| !unit.is_empty()) {
                let _ = write!(entries, ", unit = \"{unit}\"");
            }
            entries += " }\n";
        }
    }
    if entries.is_empty() {
        return text.into();
    }
    let header = |line: &str| line.split('#').next().unwrap_or("").trim() == "[unknowns]";
    if !text.lines().any(header) {
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{gap}\n[unknowns]\n{entries}");
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        out += line;
        if header(line) {
            if !line.ends_with('\n') {
                out.push('\n');
            }
            out += &entries;
        }
    }
    out
}

/// A number with so many digits.
fn number(value: f64, digits: usize) -> String {
    let short = format!("{value:.*e}", digits - 1);
    let rounded: f64 = short.parse().unwrap_or(value);
    if rounded == 0.0 {
        return "0.0".into();
    }
    let plain = format!("{rounded}");
    let plain = if plain.contains(['.', 'e']) {
        plain
    } else {
        plain + ".0"
    };
    if plain.len() <= 10 {
        plain
    } else {
        format!("{rounded:e}")
    }
}
