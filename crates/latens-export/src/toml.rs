//! A model file without anything to learn: networks are named expressions, their weights and the learned
//! constants are constants. A fit can so be the known part of another model.

use std::fmt::Write;

use latens::Error;
use latens::model::network::Activation;
use latens::model::syntax::{Expr, Kind, ModelFile, Operator, read};
use latens::model::{Hold, Method, Model, limits};

use crate::exported::{Exported, Weights};

/// The file.
pub fn file(exported: &Exported) -> Result<String, Error> {
    let (definitions, _) = read(&exported.model.text);
    if definitions.states.len() != exported.model.states.len() {
        return Err(Error::Setting(
            "a model file without unknowns has no states of its own for lags, delays and constants that vary: choose another target"
                .into(),
        ));
    }
    let simulated = Writer::new(exported, &definitions).file(true)?;
    if Model::from_text("exported", &simulated).is_ok() {
        return Ok(simulated);
    }
    // a regulator of the true equations need not exist for those that were learned
    let text = Writer::new(exported, &definitions).file(false)?;
    match Model::from_text("exported", &text) {
        Ok(_) => Ok(text),
        Err(reason) => Err(Error::Setting(format!(
            "the model language cannot say this fit: {reason}"
        ))),
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

struct Writer<'a> {
    exported: &'a Exported<'a>,
    file: &'a ModelFile,
    networks: Vec<Weights<'a>>,
    /// What the names of each network's parts begin with.
    bases: Vec<String>,
    /// Calls that are written, by network and arguments.
    calls: Vec<(usize, Vec<String>)>,
    constants: String,
    expressions: String,
    names: usize,
}

impl<'a> Writer<'a> {
    fn new(exported: &'a Exported<'a>, file: &'a ModelFile) -> Self {
        let mut taken: Vec<String> = vec![];
        let constants = file.constants.iter().map(|(n, _)| &n.value);
        let inputs = file.inputs.iter().map(|input| &input.name.value);
        let expressions = file.expressions.iter().map(|(n, _)| &n.value);
        let states = file.states.iter().map(|s| &s.name.value);
        let unknowns = file.unknowns.iter().map(|u| &u.name.value);
        let tables = file.tables.iter().map(|t| &t.name.value);
        let all = constants.chain(inputs).chain(expressions).chain(states);
        taken.extend(all.chain(unknowns).chain(tables).cloned());
        let networks = exported.model.system.networks().iter().enumerate();
        let bases = networks.map(|(i, network)| {
            // numbers follow it, and a name has at most 100 characters
            const BASE_LETTERS: usize = 40;
            let mut base = network.name.clone();
            if base.chars().count() > BASE_LETTERS {
                base = format!("network{i}");
            }
            while taken
                .iter()
                .any(|name| name.starts_with(&format!("{base}_")))
            {
                base.push('_');
            }
            taken.push(format!("{base}_"));
            base
        });
        Self {
            bases: bases.collect(),
            exported,
            file,
            networks: exported.networks(),
            calls: vec![],
            constants: String::new(),
            expressions: String::new(),
            names: 0,
        }
    }

    fn file(mut self, simulated: bool) -> Result<String, Error> {
        let (model, file) = (&self.exported.model, self.file);
        let mut text = format!("# {}.\n", crate::names::comment(&self.exported.origin()));
        let _ = writeln!(text, "name = {}", quoted(&model.name));
        let _ = writeln!(
            text,
            "description = {}\n\n[time]",
            quoted(&model.description)
        );
        let method = Method::NAMES.iter().find(|(_, m)| *m == model.method);
        let method = method.map_or("", |m| m.0);
        let _ = writeln!(
            text,
            "unit = {}\nstep = {:?}\nmethod = \"{method}\"\nsubsteps = {}",
            quoted(&model.time_unit),
            self.exported.dt,
            model.substeps
        );
        if let Some(tolerance) = model.tolerance {
            let _ = writeln!(text, "tolerance = {tolerance:?}");
        }
        for (name, expr) in &file.constants {
            let value = self.show(expr, 0);
            self.constant(&name.value, &quoted(&value));
        }
        for (unknown, value) in model.unknowns.iter().zip(&self.exported.constants) {
            self.constant(&unknown.name, &format!("{value:?}"));
        }
        for fixed in &model.fixed {
            self.constant(&fixed.name, &format!("{:?}", fixed.value));
        }
        let mut states = String::new();
        for (state, start) in file.states.iter().zip(&self.exported.start) {
            let derivative = state.derivative.as_ref().map(|e| self.show(e, 0));
            let _ = writeln!(
                states,
                "\n[states.{}]\nderivative = {}\nstart = {start:?}\nunit = {}",
                quoted(&state.name.value),
                quoted(&derivative.unwrap_or_default()),
                quoted(&state.unit)
            );
            let keys = [
                ("start_deviation", state.start_deviation),
                ("scale", state.scale),
                ("center", state.center),
            ];
            for (key, value) in keys {
                if let Some(value) = value {
                    let _ = writeln!(states, "{key} = {value:?}");
                }
            }
        }
        for (name, expr) in &file.expressions {
            let value = self.show(expr, 0);
            self.expression(&name.value, &value);
        }
        let mut measurements = String::new();
        for m in &file.measurements {
            let (name, value, unit) = (&m.name.value, self.show(&m.value, 0), &m.unit);
            let _ = writeln!(
                measurements,
                "{} = {{ value = {}, unit = {} }}",
                quoted(name),
                quoted(&value),
                quoted(unit)
            );
        }
        let simulation = if simulated {
            self.simulation()
        } else {
            String::new()
        };
        if self.names > limits::NAMES {
            return Err(Error::Setting(format!(
                "a model file has at most {} names; with a constant for each weight this one would have {}",
                limits::NAMES,
                self.names
            )));
        }
        if !file.inputs.is_empty() {
            text += "\n[inputs]\n";
            for (input, hold) in file.inputs.iter().zip(&model.hold) {
                let held = Hold::NAMES.iter().find(|(_, h)| h == hold);
                let _ = writeln!(
                    text,
                    "{} = {{ unit = {}, hold = \"{}\" }}",
                    quoted(&input.name.value),
                    quoted(&input.unit),
                    held.map_or("", |h| h.0)
                );
            }
        }
        text += &states;
        for (title, part) in [
            ("expressions", &self.expressions),
            ("measurements", &measurements),
            ("constants", &self.constants),
        ] {
            if !part.is_empty() {
                let _ = write!(text, "\n[{title}]\n{part}");
            }
        }
        for table in &file.tables {
            let (name, x, y) = (quoted(&table.name.value), &table.x, &table.y);
            let _ = writeln!(text, "\n[tables.{name}]\nx = {x:?}\ny = {y:?}");
            if let Some(period) = table.period {
                let _ = writeln!(text, "period = {period:?}");
            }
        }
        Ok(text + &simulation)
    }

    /// What drives the inputs, where the file says it.
    fn simulation(&mut self) -> String {
        let simulation = &self.file.simulation;
        let mut text = String::from("\n[simulation]\n");
        if let Some(steps) = simulation.steps {
            let _ = writeln!(text, "steps = {steps}");
        }
        let mut inputs = String::new();
        for (name, expr) in &simulation.inputs {
            let value = self.show(expr, 0);
            let _ = writeln!(inputs, "{} = {}", quoted(&name.value), quoted(&value));
        }
        if !inputs.is_empty() {
            let _ = write!(text, "\n[simulation.inputs]\n{inputs}");
        }
        if let Some(lqr) = &simulation.lqr {
            for (key, weights) in [("states", &lqr.states), ("inputs", &lqr.inputs)] {
                let _ = writeln!(text, "\n[simulation.lqr.{key}]");
                for (name, value) in weights {
                    let _ = writeln!(text, "{} = {value:?}", quoted(&name.value));
                }
            }
        }
        text
    }

    fn constant(&mut self, name: &str, value: &str) {
        self.names += 1;
        let _ = writeln!(self.constants, "{} = {value}", quoted(name));
    }

    fn expression(&mut self, name: &str, value: &str) {
        self.names += 1;
        let _ = writeln!(self.expressions, "{} = {}", quoted(name), quoted(value));
    }

    /// An expression as text; in brackets where it binds less than `minimum`.
    fn show(&mut self, expr: &Expr, minimum: u8) -> String {
        const MINUS_BINDING: u8 = 13;
        const NOT_BINDING: u8 = 5;
        let (text, binding) = match &expr.kind {
            Kind::Number(value) => (format!("{value:?}"), u8::MAX),
            Kind::Name(name) => (name.clone(), u8::MAX),
            Kind::Negate(a) => (format!("-{}", self.show(a, MINUS_BINDING)), MINUS_BINDING),
            Kind::Not(a) => (format!("not {}", self.show(a, NOT_BINDING)), NOT_BINDING),
            Kind::Binary(..) => self.operations(expr),
            Kind::Call {
                name,
                arguments,
                output,
                ..
            } => {
                let arguments: Vec<String> = arguments.iter().map(|a| self.show(a, 0)).collect();
                let networks = self.exported.model.system.networks();
                let text = match networks.iter().position(|n| n.name == *name) {
                    None => format!("{name}({})", arguments.join(", ")),
                    Some(network) => {
                        let outputs = &networks[network].outputs;
                        let chosen = output.as_ref().map(|(name, _)| name);
                        let k = chosen.and_then(|o| outputs.iter().position(|d| d == o));
                        let call = self.call(network, arguments);
                        format!("{}_{call}_out{}", self.bases[network], k.unwrap_or(0) + 1)
                    }
                };
                (text, u8::MAX)
            }
            Kind::Invalid => (String::new(), u8::MAX),
        };
        if binding < minimum {
            format!("({text})")
        } else {
            text
        }
    }

    /// Infix operations. A sum of many terms is one inside another on its left, taken in a loop, which no
    /// length exhausts.
    fn operations(&mut self, expr: &Expr) -> (String, u8) {
        let Kind::Binary(operator, left, right) = &expr.kind else {
            return (self.show(expr, 0), u8::MAX);
        };
        let (sign, left_least, right_least, binding) = bindings(*operator);
        // operands to the left that need no brackets
        let mut rest = vec![(sign, self.show(right, right_least))];
        let mut first = &**left;
        let mut least = left_least;
        while let Kind::Binary(operator, left, right) = &first.kind {
            let (sign, left_least, right_least, binding) = bindings(*operator);
            if binding < least {
                break;
            }
            rest.push((sign, self.show(right, right_least)));
            first = left;
            least = left_least;
        }
        let mut text = self.show(first, least);
        for (sign, right) in rest.iter().rev() {
            let _ = write!(text, " {sign} {right}");
        }
        (text, binding)
    }

    /// A network at arguments as named expressions; the number of the call.
    fn call(&mut self, network: usize, arguments: Vec<String>) -> usize {
        let call = (network, arguments);
        if let Some(known) = self.calls.iter().position(|c| *c == call) {
            return known + 1;
        }
        self.calls.push(call.clone());
        let number = self.calls.len();
        let base = self.bases[network].clone();
        let is_first = self.calls.iter().filter(|c| c.0 == network).count() == 1;
        let weights = std::mem::take(&mut self.networks);
        if is_first {
            self.weights(&base, &weights[network]);
        }
        self.layers(&base, number, &weights[network], &call.1);
        self.networks = weights;
        number
    }

    fn weights(&mut self, base: &str, weights: &Weights) {
        for (l, layer) in (1..).zip(&weights.layers) {
            for (i, row) in (1..).zip(layer.weights.chunks_exact(layer.from)) {
                for (j, w) in (1..).zip(row) {
                    self.constant(&format!("{base}_w{l}_{i}_{j}"), &format!("{w:?}"));
                }
            }
            for (i, b) in (1..).zip(layer.bias) {
                self.constant(&format!("{base}_b{l}_{i}"), &format!("{b:?}"));
            }
        }
        let arguments = weights.network.arguments;
        for (i, row) in (1..).zip(weights.skip.unwrap_or(&[]).chunks_exact(arguments)) {
            for (j, w) in (1..).zip(row) {
                self.constant(&format!("{base}_d_{i}_{j}"), &format!("{w:?}"));
            }
        }
    }

    fn layers(&mut self, base: &str, call: usize, weights: &Weights, arguments: &[String]) {
        let scaling = &weights.network.scaling;
        let named = |l: usize, i: usize| format!("{base}_{call}_{l}_{i}");
        for (j, argument) in arguments.iter().enumerate() {
            let (center, scale) = (scaling.center[j], scaling.scale[j]);
            let scaled = format!("(({argument}) - ({center:?}))/{scale:?}");
            if !weights.layers.is_empty() {
                self.expression(&named(0, j + 1), &scaled);
            }
        }
        for (l, layer) in (1..).zip(&weights.layers) {
            let is_last = l == weights.layers.len();
            for i in 1..=layer.bias.len() {
                let mut sum = format!("{base}_b{l}_{i}");
                for j in 1..=layer.from {
                    let _ = write!(sum, " + {base}_w{l}_{i}_{j}*{}", named(l - 1, j));
                }
                if !is_last {
                    self.unit(&named(l, i), &sum, layer.activation);
                    continue;
                }
                if weights.skip.is_some() {
                    for j in 1..=arguments.len() {
                        let _ = write!(sum, " + {base}_d_{i}_{j}*{}", named(0, j));
                    }
                }
                let output = format!("{:?}*({sum})", scaling.output[i - 1]);
                self.expression(&format!("{base}_{call}_out{i}"), &output);
            }
        }
        if weights.layers.is_empty() {
            for i in 1..=weights.network.outputs.len() {
                self.expression(&format!("{base}_{call}_out{i}"), "0");
            }
        }
    }

    /// A unit of a layer: its activation of a sum.
    fn unit(&mut self, name: &str, sum: &str, activation: Activation) {
        let inside = format!("{name}_s");
        let value = match activation {
            Activation::Tanh => format!("tanh({sum})"),
            Activation::Sigmoid => format!("sigmoid({sum})"),
            Activation::Softplus => format!("softplus({sum})"),
            Activation::Relu => format!("max({sum}, 0)"),
            Activation::Identity => sum.into(),
            Activation::Silu => format!("{inside}*sigmoid({inside})"),
            Activation::Elu => format!("if({inside} > 0, {inside}, expm1(min({inside}, 0)))"),
        };
        if matches!(activation, Activation::Silu | Activation::Elu) {
            self.expression(&inside, sum);
        }
        self.expression(name, &value);
    }
}

/// An operator's sign, how its operands must bind, and how it binds itself.
fn bindings(operator: Operator) -> (&'static str, u8, u8, u8) {
    match operator {
        Operator::Or => ("or", 1, 2, 1),
        Operator::And => ("and", 3, 4, 3),
        // comparisons are not chained
        Operator::Less => ("<", 8, 8, 7),
        Operator::LessEqual => ("<=", 8, 8, 7),
        Operator::Greater => (">", 8, 8, 7),
        Operator::GreaterEqual => (">=", 8, 8, 7),
        Operator::Equal => ("==", 8, 8, 7),
        Operator::NotEqual => ("!=", 8, 8, 7),
        Operator::Add => ("+", 9, 10, 9),
        Operator::Subtract => ("-", 9, 10, 9),
        Operator::Multiply => ("*", 11, 12, 11),
        Operator::Divide => ("/", 11, 12, 11),
        // from the right
        Operator::Power => ("^", 17, 14, 16),
    }
}
