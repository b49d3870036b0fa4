//! The model file: TOML to definitions with places, every mistake collected.
//!
//! This layer knows keys and types; what names mean is resolved in [`super::resolve`].

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Span};
use super::expression::{self, Expr};
use super::network::Activation;
use crate::suggest::suggest;

/// A name or value with its place.
#[derive(Debug, Clone)]
pub struct At<T> {
    pub value: T,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Euler,
    SemiImplicitEuler,
    Rk4,
}

impl Method {
    pub const NAMES: [(&'static str, Method); 3] = [
        ("euler", Method::Euler),
        ("semi-implicit-euler", Method::SemiImplicitEuler),
        ("rk4", Method::Rk4),
    ];
}

#[derive(Debug, Clone)]
pub struct StateDef {
    pub name: At<String>,
    pub derivative: Option<Expr>,
    pub start: Option<f64>,
    pub unit: String,
    pub scale: Option<f64>,
    pub center: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct NetworkDef {
    pub name: At<String>,
    pub layers: Vec<(usize, Activation)>,
    pub outputs: Vec<String>,
    pub skip: bool,
}

#[derive(Debug, Clone)]
pub struct UnknownDef {
    pub name: At<String>,
    pub guess: f64,
    pub scale: f64,
    pub positive: bool,
    pub unit: String,
}

#[derive(Debug, Clone)]
pub struct MeasurementDef {
    pub name: At<String>,
    pub value: Expr,
    pub unit: String,
}

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
    pub states: Vec<(At<String>, f64)>,
    pub inputs: Vec<(At<String>, f64)>,
}

/// Another start or input of the simulation, kept out of training.
#[derive(Debug, Clone, Default)]
pub struct HeldOutDef {
    pub start: Vec<(At<String>, f64)>,
    pub inputs: Vec<(At<String>, Expr)>,
}

#[derive(Debug, Clone, Default)]
pub struct SimulationDef {
    pub steps: Option<usize>,
    pub inputs: Vec<(At<String>, Expr)>,
    pub process_noise: Vec<(At<String>, f64)>,
    pub lqr: Option<LqrDef>,
    pub held_out: Vec<HeldOutDef>,
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
    pub constants: Vec<(At<String>, Expr)>,
    pub inputs: Vec<(At<String>, String)>,
    pub states: Vec<StateDef>,
    pub expressions: Vec<(At<String>, Expr)>,
    pub networks: Vec<NetworkDef>,
    pub unknowns: Vec<UnknownDef>,
    pub measurements: Vec<MeasurementDef>,
    pub tables: Vec<TableDef>,
    pub truth: Vec<(At<String>, Expr)>,
    pub simulation: SimulationDef,
}

/// Keys of each section; the JSON Schema holds the same (tested).
pub(crate) const KEYS: [(&str, &[&str]); 9] = [
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
        ],
    ),
    ("time", &["unit", "step", "method", "substeps"]),
    ("inputs", &["unit"]),
    (
        "states",
        &["derivative", "start", "unit", "scale", "center"],
    ),
    ("networks", &["layers", "outputs", "skip"]),
    ("unknowns", &["guess", "scale", "positive", "unit"]),
    ("measurements", &["value", "unit"]),
    ("tables", &["x", "y", "period"]),
    (
        "simulation",
        &["steps", "inputs", "process_noise", "lqr", "held_out"],
    ),
];

fn keys(section: &str) -> &'static [&'static str] {
    KEYS.iter()
        .find(|(s, _)| *s == section)
        .map_or(&[], |(_, k)| k)
}

type Value<'a, 'i> = &'a Spanned<DeValue<'i>>;

/// Reads `text`; a file with mistakes gives whatever could be read, and all of them.
pub fn read(text: &str) -> (ModelFile, Vec<Diagnostic>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        text,
        diagnostics: errors
            .iter()
            .map(|e| {
                Diagnostic::new(
                    e.span().unwrap_or(0..0),
                    format!("not valid TOML: {}", e.message()),
                )
                .help("see the examples written by `latens init`")
            })
            .collect(),
    };
    let file = reader.model(document.get_ref());
    (file, reader.diagnostics)
}

struct Reader<'t> {
    text: &'t str,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn fail(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::new(span, message).help(help));
    }

    fn model(&mut self, root: &DeTable<'_>) -> ModelFile {
        self.check_keys(root, keys(""), "the model file");
        let empty = DeTable::new();
        let time = self.section(root, "time").unwrap_or(&empty);
        self.check_keys(time, keys("time"), "[time]");
        let substeps = self.count(time, "substeps").unwrap_or(1);
        let step = self.positive(time, "step");
        let method = self
            .choice(time, "method", &Method::NAMES)
            .unwrap_or(Method::Euler);
        ModelFile {
            name: self.text_of(root, "name"),
            description: self.text_of(root, "description"),
            time_unit: self.text_of(time, "unit"),
            step,
            method,
            substeps,
            constants: self.named_expressions(root, "constants"),
            inputs: self.entries(root, "inputs", |r, name, value| {
                let unit = match value.get_ref() {
                    DeValue::String(s) => s.to_string(),
                    _ => {
                        let table = r.table(value, "an input is { unit = \"…\" }")?;
                        r.check_keys(table, keys("inputs"), "an input");
                        r.text_of(table, "unit")
                    }
                };
                Some((name, unit))
            }),
            states: self.entries(root, "states", Self::state),
            expressions: self.named_expressions(root, "expressions"),
            networks: self.entries(root, "networks", Self::network),
            unknowns: self.entries(root, "unknowns", Self::unknown),
            measurements: self.entries(root, "measurements", Self::measurement),
            tables: self.entries(root, "tables", Self::lookup_table),
            truth: self.named_expressions(root, "truth"),
            simulation: self.simulation(root),
        }
    }

    fn state(&mut self, name: At<String>, value: Value) -> Option<StateDef> {
        let table = self.table(value, "a state is a table with `derivative` and `start`")?;
        self.check_keys(table, keys("states"), "a state");
        Some(StateDef {
            derivative: table.get("derivative").and_then(|v| self.expression(v)),
            start: self.number(table, "start"),
            unit: self.text_of(table, "unit"),
            scale: self.positive(table, "scale"),
            center: self.number(table, "center"),
            name,
        })
    }

    fn network(&mut self, name: At<String>, value: Value) -> Option<NetworkDef> {
        let table = self.table(value, "a network is a table with `layers`")?;
        self.check_keys(table, keys("networks"), "a network");
        let mut layers = Vec::new();
        match table.get("layers") {
            None => self.fail(
                name.span.clone(),
                format!("network `{}` has no layers", name.value),
                "add layers = [\"20 tanh\", \"20 tanh\"]; the linear output layer is implied",
            ),
            Some(v) => {
                for layer in self.array(v, "layers are written [\"20 tanh\", \"10 sigmoid\"]") {
                    layers.extend(self.layer(layer));
                }
            }
        }
        let outputs = match table.get("outputs") {
            None => vec!["output".to_string()],
            Some(v) => self
                .array(v, "outputs are names: [\"first\", \"second\"]")
                .iter()
                .filter_map(|o| self.string(o).map(|s| s.value))
                .collect(),
        };
        let skip = self.boolean(table, "skip");
        Some(NetworkDef {
            name,
            layers,
            outputs,
            skip,
        })
    }

    fn layer(&mut self, value: Value) -> Option<(usize, Activation)> {
        let text = self.string(value)?;
        let mut words = text.value.split_whitespace();
        let units = words
            .next()
            .and_then(|w| w.parse::<usize>().ok())
            .filter(|&u| u > 0);
        let name = words.next().unwrap_or("");
        let activation = Activation::NAMES.iter().find(|(n, _)| *n == name);
        match (units, activation, words.next()) {
            (Some(units), Some(&(_, activation)), None) => Some((units, activation)),
            _ => {
                let names: Vec<_> = Activation::NAMES.iter().map(|(n, _)| *n).collect();
                self.fail(
                    text.span,
                    format!("`{}` is not a layer", text.value),
                    format!(
                        "write a number of units and one of {}: \"20 tanh\"",
                        names.join(", ")
                    ),
                );
                None
            }
        }
    }

    fn unknown(&mut self, name: At<String>, value: Value) -> Option<UnknownDef> {
        let table = self.table(value, "an unknown is { guess = 90, scale = 10 }")?;
        self.check_keys(table, keys("unknowns"), "an unknown");
        let Some(guess) = self.number(table, "guess") else {
            self.fail(
                name.span.clone(),
                format!("unknown `{}` has no guess", name.value),
                "give a rough value: guess = 90",
            );
            return None;
        };
        let positive = self.boolean(table, "positive");
        if positive && guess <= 0.0 {
            let message = format!(
                "unknown `{}` is positive but its guess is {guess}",
                name.value
            );
            self.fail(name.span.clone(), message, "guess a positive value");
            return None;
        }
        let fallback = if guess == 0.0 { 1.0 } else { guess.abs() };
        Some(UnknownDef {
            guess,
            scale: self.positive(table, "scale").unwrap_or(fallback),
            positive,
            unit: self.text_of(table, "unit"),
            name,
        })
    }

    fn measurement(&mut self, name: At<String>, value: Value) -> Option<MeasurementDef> {
        let (expression, unit) = match value.get_ref() {
            DeValue::Table(table) => {
                self.check_keys(table, keys("measurements"), "a measurement");
                let Some(v) = table.get("value") else {
                    self.fail(
                        name.span.clone(),
                        format!("measurement `{}` measures nothing", name.value),
                        "add value = \"…\", an expression of the states",
                    );
                    return None;
                };
                (self.expression(v)?, self.text_of(table, "unit"))
            }
            _ => (self.expression(value)?, String::new()),
        };
        Some(MeasurementDef {
            name,
            value: expression,
            unit,
        })
    }

    fn lookup_table(&mut self, name: At<String>, value: Value) -> Option<TableDef> {
        let table = self.table(value, "a table is { x = […], y = […] }")?;
        self.check_keys(table, keys("tables"), "a table");
        let (x, y) = (self.numbers(table, "x"), self.numbers(table, "y"));
        let period = self.positive(table, "period");
        let span = name.span.clone();
        if x.is_empty() || x.len() != y.len() {
            let message = format!(
                "table `{}` has {} x and {} y values",
                name.value,
                x.len(),
                y.len()
            );
            self.fail(span, message, "give as many y as x, at least one");
            return None;
        }
        if let Some(i) = x.windows(2).position(|w| w[1] <= w[0]) {
            let message = format!(
                "x of table `{}` does not increase at {}",
                name.value,
                x[i + 1]
            );
            self.fail(span, message, "sort the points by x, each x once");
            return None;
        }
        if period.is_some_and(|p| x[x.len() - 1] - x[0] >= p) {
            let message = format!(
                "the points of table `{}` span a whole period or more",
                name.value
            );
            self.fail(
                span,
                message,
                "give one period, without repeating its first point",
            );
            return None;
        }
        Some(TableDef { name, x, y, period })
    }

    fn simulation(&mut self, root: &DeTable<'_>) -> SimulationDef {
        let Some(table) = self.section(root, "simulation") else {
            return SimulationDef::default();
        };
        self.check_keys(table, keys("simulation"), "[simulation]");
        let lqr = table.get("lqr").and_then(|v| {
            let lqr = self.table(v, "lqr is { states = { x = 1 }, inputs = { u = 1 } }")?;
            self.check_keys(lqr, &["states", "inputs"], "lqr");
            Some(LqrDef {
                span: v.span(),
                states: self.named_numbers(lqr, "states"),
                inputs: self.named_numbers(lqr, "inputs"),
            })
        });
        let held_out = match table.get("held_out") {
            None => vec![],
            Some(v) => self
                .array(v, "held_out is a list: [[simulation.held_out]]")
                .iter()
                .filter_map(|entry| {
                    let t = self.table(entry, "write [[simulation.held_out]]")?;
                    self.check_keys(t, &["start", "inputs"], "held_out");
                    Some(HeldOutDef {
                        start: self.named_numbers(t, "start"),
                        inputs: self.named_expressions(t, "inputs"),
                    })
                })
                .collect(),
        };
        SimulationDef {
            steps: self.count(table, "steps"),
            inputs: self.named_expressions(table, "inputs"),
            process_noise: self.named_numbers(table, "process_noise"),
            lqr,
            held_out,
        }
    }

    // ---- the elements ----

    fn check_keys(&mut self, table: &DeTable<'_>, known: &[&str], place: &str) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let help = match suggest(name, known.iter().copied()) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None => format!("known here: {}", known.join(", ")),
                };
                self.fail(key.span(), format!("{place} has no key `{name}`"), help);
            }
        }
    }

    fn section<'a, 'i>(&mut self, parent: &'a DeTable<'i>, key: &str) -> Option<&'a DeTable<'i>> {
        self.table(parent.get(key)?, &format!("write [{key}]"))
    }

    fn table<'a, 'i>(&mut self, value: Value<'a, 'i>, help: &str) -> Option<&'a DeTable<'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.fail(value.span(), "expected a table", help);
                None
            }
        }
    }

    fn array<'a, 'i>(&mut self, value: Value<'a, 'i>, help: &str) -> &'a [Spanned<DeValue<'i>>] {
        match value.get_ref() {
            DeValue::Array(array) => array,
            _ => {
                self.fail(value.span(), "expected a list", help);
                &[]
            }
        }
    }

    /// Every `name = …` of a section, in the order of the file.
    fn entries<'a, 'i, T>(
        &mut self,
        parent: &'a DeTable<'i>,
        section: &str,
        mut read: impl FnMut(&mut Self, At<String>, Value<'a, 'i>) -> Option<T>,
    ) -> Vec<T> {
        let Some(table) = self.section(parent, section) else {
            return vec![];
        };
        let mut entries = Vec::new();
        for (key, value) in table {
            let name = At {
                value: key.get_ref().to_string(),
                span: key.span(),
            };
            entries.extend(read(self, name, value));
        }
        entries
    }

    fn named_expressions(
        &mut self,
        parent: &DeTable<'_>,
        section: &str,
    ) -> Vec<(At<String>, Expr)> {
        self.entries(parent, section, |r, name, value| {
            Some((name, r.expression(value)?))
        })
    }

    fn named_numbers(&mut self, parent: &DeTable<'_>, section: &str) -> Vec<(At<String>, f64)> {
        self.entries(parent, section, |r, name, value| {
            Some((name, r.as_number(value)?))
        })
    }

    fn string(&mut self, value: Value) -> Option<At<String>> {
        match value.get_ref() {
            DeValue::String(s) => Some(At {
                value: s.to_string(),
                span: value.span(),
            }),
            _ => {
                self.fail(
                    value.span(),
                    "expected text in quotes",
                    "put it between \"…\"",
                );
                None
            }
        }
    }

    fn text_of(&mut self, table: &DeTable<'_>, key: &str) -> String {
        table
            .get(key)
            .and_then(|v| self.string(v))
            .map_or(String::new(), |s| s.value)
    }

    fn choice<T: Copy>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        names: &[(&str, T)],
    ) -> Option<T> {
        let text = self.string(table.get(key)?)?;
        let found = names
            .iter()
            .find(|(n, _)| *n == text.value)
            .map(|(_, v)| *v);
        if found.is_none() {
            let names: Vec<_> = names.iter().map(|(n, _)| *n).collect();
            let message = format!("`{}` is not a {key}", text.value);
            self.fail(text.span, message, format!("one of {}", names.join(", ")));
        }
        found
    }

    fn as_number(&mut self, value: Value) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Float(f) => f.as_str().parse().ok(),
            DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix())
                .ok()
                .map(|i| i as f64),
            _ => None,
        };
        let number = number.filter(|n: &f64| n.is_finite());
        if number.is_none() {
            self.fail(
                value.span(),
                "expected a finite number",
                "write it without quotes",
            );
        }
        number
    }

    fn number(&mut self, table: &DeTable<'_>, key: &str) -> Option<f64> {
        self.as_number(table.get(key)?)
    }

    fn positive(&mut self, table: &DeTable<'_>, key: &str) -> Option<f64> {
        let value = table.get(key)?;
        let number = self.as_number(value)?;
        if number <= 0.0 {
            self.fail(
                value.span(),
                format!("{key} must be positive"),
                "give a value above zero",
            );
            return None;
        }
        Some(number)
    }

    fn numbers(&mut self, table: &DeTable<'_>, key: &str) -> Vec<f64> {
        let Some(value) = table.get(key) else {
            return vec![];
        };
        let list = self.array(value, "a list of numbers: [0.0, 0.5, 1.0]");
        list.iter().filter_map(|v| self.as_number(v)).collect()
    }

    fn count(&mut self, table: &DeTable<'_>, key: &str) -> Option<usize> {
        let value = table.get(key)?;
        let number = self.as_number(value)?;
        if number < 1.0 || number != number.round() {
            self.fail(
                value.span(),
                format!("{key} must be a whole number from 1"),
                "for example 1",
            );
            return None;
        }
        Some(number as usize)
    }

    fn boolean(&mut self, table: &DeTable<'_>, key: &str) -> bool {
        match table.get(key).map(|v| (v.get_ref(), v.span())) {
            None => false,
            Some((DeValue::Boolean(b), _)) => *b,
            Some((_, span)) => {
                self.fail(
                    span,
                    format!("{key} is true or false"),
                    "write it without quotes",
                );
                false
            }
        }
    }

    /// An equation in quotes, or a plain number.
    fn expression(&mut self, value: Value) -> Option<Expr> {
        let span = value.span();
        if let DeValue::Float(_) | DeValue::Integer(_) = value.get_ref() {
            let number = self.as_number(value)?;
            return Some(Expr {
                kind: expression::Kind::Number(number),
                span,
            });
        }
        let text = self.string(value)?.value;
        // The text's own place: behind the quotes. A string with escapes is pointed at as a whole.
        let raw = &self.text[span.clone()];
        let inside = raw.find(&text).filter(|_| !text.is_empty());
        match expression::parse(&text, inside.map_or(span.start, |i| span.start + i)) {
            Ok(expr) => Some(expr),
            Err(mut diagnostic) => {
                if inside.is_none() {
                    diagnostic.span = span;
                }
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }
}
