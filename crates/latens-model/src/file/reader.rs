//! The sections of a model file.

use toml::de::{DeTable, DeValue};

use super::super::expression::Expr;
use super::super::network::Activation;
use super::values::{Fields, Value};
use super::{
    At, Diagnostic, FitDef, HeldOutDef, Hold, InputDef, LqrDef, MeasurementDef, Method, ModelFile,
    NetworkDef, SimulationDef, Span, StateDef, TableDef, keys,
};
use crate::limits::{STEPS, SUBSTEPS, UNITS};
use crate::settings::SettingsLayer;
use crate::suggest::suggest;

/// Reads a file and collects its mistakes.
pub(crate) struct Reader<'t> {
    pub text: &'t str,
    pub diagnostics: Vec<Diagnostic>,
    /// Whether every section that is there could be read.
    pub complete: bool,
    /// Whether keys of an earlier version are understood.
    pub earlier_keys: bool,
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            diagnostics: vec![],
            complete: true,
            earlier_keys: true,
        }
    }

    pub fn fail(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::new(span, message).help(help));
    }

    pub fn model(&mut self, root: &DeTable<'_>) -> ModelFile {
        self.check_keys(root, "", "the model file");
        self.complete = root.iter().all(|(key, value)| {
            let holds_names = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
            !holds_names || keys("").contains(&key.get_ref().as_ref())
        });
        let root = Fields::of(root);
        let time = self.section(root, "time", "[time]");
        let method = self
            .choice(time, "method", Method::NAMES)
            .unwrap_or_default();
        ModelFile {
            name: self.text(root, "name"),
            description: self.text(root, "description"),
            time_unit: self.text(time, "unit"),
            step: self.positive(time, "step"),
            method,
            substeps: self.count(time, "substeps", SUBSTEPS).unwrap_or(1),
            tolerance: self.tolerance(time, method),
            hold: self.choice(time, "hold", &Hold::NAMES),
            constants: self.named_expressions(root, "constants"),
            inputs: self.entries(root, "inputs", Self::input),
            states: self.entries(root, "states", Self::state),
            expressions: self.named_expressions(root, "expressions"),
            networks: self.entries(root, "networks", Self::network),
            unknowns: self.entries(root, "unknowns", Self::unknown),
            measurements: self.entries(root, "measurements", Self::measurement),
            tables: self.entries(root, "tables", Self::lookup_table),
            truth: self.named_expressions(root, "truth"),
            simulation: self.simulation(root),
            fit: self.fit(root),
            complete: self.complete,
            groups: 0,
        }
    }

    /// `tolerance` of `[time]`, which implicit methods alone have.
    fn tolerance(&mut self, time: Fields, method: Method) -> Option<f64> {
        let range = "from 1e-12 to 0.1";
        let tolerance = self.between(time, "tolerance", range, |v| (1e-12..=0.1).contains(&v))?;
        if !method.is_implicit() {
            let at = time.get("tolerance").map_or(0..0, |v| v.span());
            let message = "an explicit method takes its sub-steps from `substeps`";
            let help = "leave tolerance out, or take method = \"sdirk4\"";
            self.fail(at, message, help);
        }
        Some(tolerance)
    }

    /// `[fit]`: settings of a fit.
    pub fn fit(&mut self, root: Fields) -> FitDef {
        let fields = self.section(root, "fit", "[fit]");
        let mut named = vec![];
        let layer = SettingsLayer::read(self, fields, &mut named);
        if let Some(name) = layer.free.iter().find(|n| layer.fix.contains_key(*n)) {
            let at = fields.get("free").map_or(0..0, |v| v.span());
            let message = format!("`{name}` is fixed and freed");
            self.fail(at, message, "leave it out of one of the two");
        }
        FitDef { layer, named }
    }

    // A definition with a mistake is kept, so that what uses its name is not reported as well.

    /// `u = "V"` or `u = { unit = "V" }`.
    fn input(&mut self, name: At<String>, value: Value) -> InputDef {
        if let DeValue::String(unit) = value.get_ref() {
            return InputDef {
                name,
                unit: unit.to_string(),
                hold: None,
                delay: None,
            };
        }
        let help = "an input is { unit = \"…\" }";
        let fields = self.fields(value, "inputs", "an input", help);
        InputDef {
            unit: self.text(fields, "unit"),
            hold: self.choice(fields, "hold", &Hold::NAMES),
            delay: self.duration(&name, fields, "delay"),
            name,
        }
    }

    fn state(&mut self, name: At<String>, value: Value) -> StateDef {
        let help = "a state is a table with `derivative` and `start`";
        let fields = self.fields(value, "states", "a state", help);
        let derivative = match fields.get("derivative") {
            Some(v) => Some(self.expression(v)),
            None => (!fields.sound).then(|| Expr::invalid(value.span())),
        };
        StateDef {
            name,
            derivative,
            start: self.number(fields, "start"),
            start_deviation: self.start_deviation(fields),
            unit: self.text(fields, "unit"),
            scale: self.positive(fields, "scale"),
            center: self.number(fields, "center"),
        }
    }

    /// Of a start that is given.
    fn start_deviation(&mut self, fields: Fields) -> Option<f64> {
        const KEY: &str = "start_deviation";
        let deviation = self.between(fields, KEY, "zero or more", |d| d >= 0.0)?;
        if fields.get("start").is_none() {
            let span = fields.get(KEY)?.span();
            let help = "say where the state starts with `start`, in the same table";
            self.fail(span, "start_deviation without a start", help);
            return None;
        }
        Some(deviation)
    }

    fn network(&mut self, name: At<String>, value: Value) -> NetworkDef {
        let help = "a network is a table with `layers`";
        let fields = self.fields(value, "networks", "a network", help);
        let mut layers = Vec::new();
        if let Some(v) = fields.get("layers") {
            for layer in self.array(v, "layers are written [\"20 tanh\", \"10 sigmoid\"]") {
                layers.extend(self.layer(layer));
            }
        } else if fields.sound {
            self.fail(
                name.span.clone(),
                format!("network `{}` has no layers", name.value),
                "add layers = [\"20 tanh\", \"20 tanh\"]; the linear output layer is implied",
            );
        }
        let outputs = match fields.get("outputs") {
            None => vec!["output".to_string()],
            Some(v) => self.outputs(&name, v),
        };
        let mut library = Vec::new();
        if let Some(v) = fields.get("library") {
            for term in self.array(v, "terms are written [\"v*abs(v)\", \"exp(-v/c)\"]") {
                library.extend(self.string(term).map(|term| term.value));
            }
        }
        let units = self.units(&outputs, fields);
        NetworkDef {
            name,
            layers,
            outputs,
            library,
            units,
            skip: self.boolean(fields, "skip"),
        }
    }

    /// `unit = "kW"`, or one for each output: `unit = ["N", "N·m"]`.
    fn units(&mut self, outputs: &[String], fields: Fields) -> Vec<String> {
        let Some(value) = fields.get("unit") else {
            return vec![];
        };
        let DeValue::Array(_) = value.get_ref() else {
            return self
                .string(value)
                .map(|unit| unit.value)
                .into_iter()
                .collect();
        };
        let help = "a unit is a text, \"kW\", or a list of one for each output";
        let mut units = Vec::new();
        for unit in self.array(value, help) {
            units.extend(self.string(unit).map(|unit| unit.value));
        }
        if units.len() != outputs.len() {
            let message = format!("{} outputs have {} units", outputs.len(), units.len());
            self.fail(value.span(), message, help);
        }
        units
    }

    fn layer(&mut self, value: Value) -> Option<(usize, Activation)> {
        let text = self.string(value)?;
        let names = Activation::NAMES.map(|(name, _)| name);
        let words: Vec<&str> = text.value.split_whitespace().collect();
        let units = words.first().and_then(|w| w.parse().ok());
        let (Some(units @ 1..), &[_, name]) = (units, &words[..]) else {
            let names = names.join(", ");
            let help = format!("write a number of units and one of {names}: \"20 tanh\"");
            self.fail(text.span, format!("`{}` is not a layer", text.value), help);
            return None;
        };
        if units > UNITS {
            let message = format!("a layer of {units} units is more than can be learned");
            self.fail(text.span, message, format!("it has at most {UNITS}"));
            return None;
        }
        if let Some(&(_, activation)) = Activation::NAMES.iter().find(|(n, _)| *n == name) {
            return Some((units, activation));
        }
        let help = match suggest(name, names) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("one of {}", names.join(", ")),
        };
        let start = text.span.start + self.text[text.span].rfind(name).unwrap_or(0);
        let message = format!("unknown activation `{name}`");
        self.fail(start..start + name.len(), message, help);
        None
    }

    fn outputs(&mut self, network: &At<String>, value: Value) -> Vec<String> {
        let before = self.diagnostics.len();
        let mut outputs: Vec<String> = Vec::new();
        let mut different = true;
        for output in self.array(value, "outputs are names: [\"first\", \"second\"]") {
            if let Some(output) = self.string(output) {
                different &= !outputs.contains(&output.value);
                outputs.push(output.value);
            }
        }
        let read = self.diagnostics.len() == before;
        if read && (outputs.is_empty() || !different) {
            let name = &network.value;
            let message = format!("the outputs of network `{name}` need different names");
            let help = "for example outputs = [\"first\", \"second\"]";
            self.fail(network.span.clone(), message, help);
        }
        outputs
    }

    /// `V = "V"` or `V = { value = "V", unit = "mV" }`.
    fn measurement(&mut self, name: At<String>, value: Value) -> MeasurementDef {
        let DeValue::Table(table) = value.get_ref() else {
            return MeasurementDef {
                name,
                value: self.expression(value),
                unit: String::new(),
                lag: None,
                delay: None,
            };
        };
        let sound = self.check_keys(table, "measurements", "a measurement");
        let fields = Fields::of(table);
        let expression = fields.get("value").map(|v| self.expression(v));
        if sound && expression.is_none() {
            self.fail(
                name.span.clone(),
                format!("measurement `{}` measures nothing", name.value),
                "add value = \"…\", an expression of the states",
            );
        }
        MeasurementDef {
            value: expression.unwrap_or_else(|| Expr::invalid(value.span())),
            unit: self.text(fields, "unit"),
            lag: self.duration(&name, fields, "lag"),
            delay: self.duration(&name, fields, "delay"),
            name,
        }
    }

    fn lookup_table(&mut self, name: At<String>, value: Value) -> TableDef {
        let before = self.diagnostics.len();
        let fields = self.fields(
            value,
            "tables",
            "a table",
            "a table is { x = […], y = […] }",
        );
        let table = TableDef {
            x: self.numbers(fields, "x"),
            y: self.numbers(fields, "y"),
            period: self.positive(fields, "period"),
            name,
        };
        // else what seems to be missing may be what has the mistake
        if self.diagnostics.len() == before {
            self.check_points(&table, fields);
        }
        table
    }

    fn check_points(&mut self, table: &TableDef, fields: Fields) {
        let TableDef { name, x, y, period } = table;
        let (place, name) = (name.span.clone(), &name.value);
        if x.is_empty() || x.len() != y.len() {
            let message = format!("table `{name}` has {} x and {} y values", x.len(), y.len());
            self.fail(place, message, "give as many y as x, at least one");
        } else if let Some(i) = x.windows(2).position(|w| w[1] <= w[0]) {
            let message = format!("x of table `{name}` does not increase at {}", x[i + 1]);
            let place = match fields.get("x").map(|v| v.get_ref()) {
                Some(DeValue::Array(points)) => points[i + 1].span(),
                _ => place,
            };
            self.fail(place, message, "sort the points by x, each x once");
        } else if period.is_some_and(|p| x[x.len() - 1] - x[0] >= p) {
            let message = format!("the points of table `{name}` span a whole period or more");
            let place = fields.get("period").map_or(place, |v| v.span());
            let help = "give one period, without repeating its first point";
            self.fail(place, message, help);
        }
    }

    fn simulation(&mut self, root: Fields) -> SimulationDef {
        let fields = self.section(root, "simulation", "[simulation]");
        let lqr = fields.get("lqr").map(|v| {
            let help = "lqr is { states = { x = 1 }, inputs = { u = 1 } }";
            let lqr = self.fields(v, "simulation.lqr", "lqr", help);
            LqrDef {
                span: v.span(),
                states: self.named_numbers(lqr, "states"),
                inputs: self.named_numbers(lqr, "inputs"),
            }
        });
        let mut held_out = Vec::new();
        if let Some(v) = fields.get("held_out") {
            for entry in self.array(v, "held_out is a list: [[simulation.held_out]]") {
                let help = "write [[simulation.held_out]]";
                let entry = self.fields(entry, "simulation.held_out", "held_out", help);
                held_out.push(HeldOutDef {
                    start: self.named_numbers(entry, "start"),
                    inputs: self.named_expressions(entry, "inputs"),
                });
            }
        }
        SimulationDef {
            steps: self.count(fields, "steps", STEPS),
            inputs: self.named_expressions(fields, "inputs"),
            process_noise: self.named_numbers(fields, "process_noise"),
            lqr,
            held_out,
        }
    }
}
