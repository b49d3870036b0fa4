//! What the names of a model file mean: definitions to a graph of equations.

use std::collections::{HashMap, HashSet};

use super::diagnostic::{Diagnostic, Span};
use super::expression::{Expr, Kind, Operator};
use super::file::{At, ModelFile};
use super::graph::{Binary, Graph, Id, Node, Unary};
use crate::suggest::suggest;

/// Functions and their number of arguments.
pub const FUNCTIONS: [(&str, usize); 31] = [
    ("abs", 1),
    ("acos", 1),
    ("asin", 1),
    ("atan", 1),
    ("atan2", 2),
    ("cos", 1),
    ("cosh", 1),
    ("exp", 1),
    ("expm1", 1),
    ("floor", 1),
    ("if", 3),
    ("linoid", 1),
    ("log", 1),
    ("log1p", 1),
    ("max", 2),
    ("min", 2),
    ("mod", 2),
    ("sigmoid", 1),
    ("sign", 1),
    ("sin", 1),
    ("sinc", 1),
    ("sinh", 1),
    ("smooth_abs", 2),
    ("smooth_max", 3),
    ("smooth_min", 3),
    ("smooth_sign", 2),
    ("softplus", 1),
    ("sqrt", 1),
    ("square", 1),
    ("tan", 1),
    ("tanh", 1),
];

/// Names that are always there.
const TIME: &str = "t";
const PI: &str = "pi";

/// Which equations a system is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Networks and unknown constants where knowledge ends.
    Learned,
    /// The equations of the truth section, for simulation and scoring.
    Truth,
}

/// The equations of one variant.
#[derive(Debug)]
pub struct Equations {
    pub graph: Graph,
    pub derivatives: Vec<Id>,
    pub measurements: Vec<Id>,
    /// What the simulation section feeds into each input, in the order of the inputs.
    pub controls: Vec<Option<Id>>,
    pub held_out_controls: Vec<Vec<Option<Id>>>,
    /// Number of arguments of each network.
    pub arguments: Vec<usize>,
}

/// What may stand in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Constant,
    Derivative,
    Measurement,
    Control,
}

#[derive(Debug, Clone, Copy)]
enum Symbol {
    Constant(usize),
    Input(usize),
    State(usize),
    Expression(usize),
    Unknown(usize),
    Network(usize),
    Table(usize),
}

/// Checks the names of a file: each once, none reserved, all of a form that expressions can use.
pub fn check_names(file: &ModelFile, diagnostics: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    let measured = |name: &str| file.measurements.iter().any(|m| m.name.value == name);
    for (name, symbol) in symbols(file) {
        check_form(name, diagnostics);
        if seen.insert(&name.value, name.span.clone()).is_some() {
            diagnostics.push(
                Diagnostic::new(name.span.clone(), format!("the name `{}` is taken", name.value))
                    .help("constants, inputs, states, expressions, unknowns, networks and tables share one set of names"),
            );
        }
        if matches!(symbol, Symbol::Input(_)) && measured(&name.value) {
            diagnostics.push(
                Diagnostic::new(
                    name.span.clone(),
                    format!("`{}` is an input and a measurement", name.value),
                )
                .help("a column of a record is one or the other: rename the measurement"),
            );
        }
    }
    for m in &file.measurements {
        check_form(&m.name, diagnostics);
    }
}

fn check_form(name: &At<String>, diagnostics: &mut Vec<Diagnostic>) {
    let text = name.value.as_str();
    let starts = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let rest = text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let reserved =
        ["and", "or", "not", TIME, PI].contains(&text) || FUNCTIONS.iter().any(|(f, _)| *f == text);
    if !(starts && rest) {
        diagnostics.push(
            Diagnostic::new(
                name.span.clone(),
                format!("`{text}` cannot be used in an equation"),
            )
            .help("a name is letters, digits and _, and does not start with a digit"),
        );
    } else if reserved || text.starts_with("truth_") {
        diagnostics.push(
            Diagnostic::new(name.span.clone(), format!("the name `{text}` is reserved"))
                .help("functions, `t`, `pi`, `and`, `or`, `not` and `truth_…` have a meaning already: choose another name"),
        );
    }
}

fn symbols(file: &ModelFile) -> Vec<(&At<String>, Symbol)> {
    let mut all = Vec::new();
    all.extend(
        file.constants
            .iter()
            .enumerate()
            .map(|(i, c)| (&c.0, Symbol::Constant(i))),
    );
    all.extend(
        file.inputs
            .iter()
            .enumerate()
            .map(|(i, c)| (&c.0, Symbol::Input(i))),
    );
    all.extend(
        file.states
            .iter()
            .enumerate()
            .map(|(i, s)| (&s.name, Symbol::State(i))),
    );
    all.extend(
        file.expressions
            .iter()
            .enumerate()
            .map(|(i, e)| (&e.0, Symbol::Expression(i))),
    );
    all.extend(
        file.unknowns
            .iter()
            .enumerate()
            .map(|(i, u)| (&u.name, Symbol::Unknown(i))),
    );
    all.extend(
        file.networks
            .iter()
            .enumerate()
            .map(|(i, n)| (&n.name, Symbol::Network(i))),
    );
    all.extend(
        file.tables
            .iter()
            .enumerate()
            .map(|(i, t)| (&t.name, Symbol::Table(i))),
    );
    all
}

/// Builds the equations of a variant; mistakes go to `diagnostics`.
pub fn equations(
    file: &ModelFile,
    variant: Variant,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Equations> {
    let before = diagnostics.len();
    let mut lowering = Lowering {
        file,
        variant,
        graph: Graph::default(),
        names: symbols(file)
            .into_iter()
            .map(|(n, s)| (n.value.as_str(), s))
            .collect(),
        memo: HashMap::new(),
        stack: Vec::new(),
        arguments: vec![None; file.networks.len()],
        diagnostics,
    };
    let derivatives = lowering.derivatives();
    let measurements = lowering.measurements();
    let controls = lowering.controls(&file.simulation.inputs);
    let held_out_controls = file
        .simulation
        .held_out
        .iter()
        .map(|h| lowering.controls(&h.inputs))
        .collect();
    lowering.check_unused();
    let (graph, arguments) = (lowering.graph, lowering.arguments);
    (diagnostics.len() == before).then(|| Equations {
        graph,
        derivatives,
        measurements,
        controls,
        held_out_controls,
        arguments: arguments
            .into_iter()
            .map(|a| a.map_or(0, |(n, _)| n))
            .collect(),
    })
}

struct Lowering<'a> {
    file: &'a ModelFile,
    variant: Variant,
    graph: Graph,
    names: HashMap<&'a str, Symbol>,
    /// Named constants and expressions that are done; `None` where they have a mistake.
    memo: HashMap<&'a str, Option<Id>>,
    /// Named expressions being built: a name that comes up again is a loop.
    stack: Vec<&'a str>,
    /// Number of arguments of each network and where it was first called.
    arguments: Vec<Option<(usize, Span)>>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Lowering<'a> {
    fn fail(&mut self, span: &Span, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::new(span.clone(), message).help(help));
    }

    fn derivatives(&mut self) -> Vec<Id> {
        let mut ids = Vec::new();
        for state in &self.file.states {
            let truth = self
                .file
                .truth
                .iter()
                .find(|(n, _)| n.value == state.name.value);
            let expr = match (self.variant, truth) {
                (Variant::Truth, Some((_, expr))) => Some(expr),
                _ => state.derivative.as_ref(),
            };
            match expr {
                Some(expr) => ids.extend(self.lower(expr, Place::Derivative)),
                None if self.variant == Variant::Learned => self.fail(
                    &state.name.span,
                    format!("state `{}` has no equation", state.name.value),
                    "add derivative = \"…\"; where nobody knows it, call a network: \"net(x, v)\"",
                ),
                None => {}
            }
        }
        if self.file.states.is_empty() {
            self.fail(
                &(0..0),
                "the model has no states",
                "add [states.x] with derivative = \"…\"",
            );
        }
        for (name, _) in &self.file.truth {
            let states = self.file.states.iter().map(|s| s.name.value.as_str());
            let unknowns = self.file.unknowns.iter().map(|u| u.name.value.as_str());
            self.check_reference(name, states.chain(unknowns), "a state or an unknown");
        }
        ids
    }

    fn measurements(&mut self) -> Vec<Id> {
        let mut ids = Vec::new();
        for m in &self.file.measurements {
            let Some(id) = self.lower(&m.value, Place::Measurement) else {
                continue;
            };
            let sees_state = self
                .graph
                .reachable(&[id])
                .iter()
                .any(|&n| matches!(self.graph.node(n), Node::State(_)));
            if !sees_state {
                self.fail(
                    &m.value.span,
                    format!("measurement `{}` depends on no state", m.name.value),
                    "a measurement is an expression of the states, for example \"V\"",
                );
            }
            ids.push(id);
        }
        if self.file.measurements.is_empty() {
            self.fail(
                &(0..0),
                "the model measures nothing",
                "add [measurements] with what the sensors see, for example V = \"V\"",
            );
        }
        ids
    }

    fn controls(&mut self, inputs: &'a [(At<String>, Expr)]) -> Vec<Option<Id>> {
        let names: Vec<&str> = self
            .file
            .inputs
            .iter()
            .map(|i| i.0.value.as_str())
            .collect();
        for (name, _) in inputs {
            self.check_reference(name, names.iter().copied(), "an input");
        }
        names
            .iter()
            .map(|n| {
                let (_, expr) = inputs.iter().find(|(i, _)| i.value == *n)?;
                self.lower(expr, Place::Control)
            })
            .collect()
    }

    fn check_reference<'b>(
        &mut self,
        name: &At<String>,
        known: impl Iterator<Item = &'b str> + Clone,
        what: &str,
    ) {
        if known.clone().any(|k| k == name.value) {
            return;
        }
        let help = match suggest(&name.value, known.clone()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("there are: {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.fail(&name.span, format!("`{}` is not {what}", name.value), help);
    }

    fn check_unused(&mut self) {
        let sim = &self.file.simulation;
        let states: Vec<&str> = self
            .file
            .states
            .iter()
            .map(|s| s.name.value.as_str())
            .collect();
        let inputs: Vec<&str> = self
            .file
            .inputs
            .iter()
            .map(|i| i.0.value.as_str())
            .collect();
        let lqr = sim.lqr.iter();
        let state_names = lqr
            .clone()
            .flat_map(|l| &l.states)
            .chain(&sim.process_noise);
        for (name, _) in state_names.chain(sim.held_out.iter().flat_map(|h| &h.start)) {
            self.check_reference(name, states.iter().copied(), "a state");
        }
        for (name, _) in lqr.flat_map(|l| &l.inputs) {
            self.check_reference(name, inputs.iter().copied(), "an input");
        }
        // Constants and expressions that nothing uses are still checked.
        for (name, expr) in &self.file.constants {
            self.named(&name.value, expr, Place::Constant);
        }
        for (name, expr) in &self.file.expressions {
            self.named(&name.value, expr, Place::Derivative);
        }
        if self.variant == Variant::Truth {
            return;
        }
        for (network, calls) in self.file.networks.iter().zip(self.arguments.clone()) {
            if calls.is_none() {
                self.fail(
                    &network.name.span,
                    format!("network `{}` is never called", network.name.value),
                    "call it in an equation, or remove it",
                );
            }
            let mut seen = HashSet::new();
            let outputs = &network.outputs;
            if outputs.is_empty() || !outputs.iter().all(|o| seen.insert(o)) {
                self.fail(
                    &network.name.span,
                    format!(
                        "the outputs of network `{}` need different names",
                        network.name.value
                    ),
                    "for example outputs = [\"first\", \"second\"]",
                );
            }
        }
    }

    /// A named constant or expression, built once.
    fn named(&mut self, name: &'a str, expr: &'a Expr, place: Place) -> Option<Id> {
        if let Some(&done) = self.memo.get(name) {
            return done;
        }
        if let Some(at) = self.stack.iter().position(|n| *n == name) {
            let mut path: Vec<&str> = self.stack[at..].to_vec();
            path.push(name);
            let message = format!("algebraic loop: {}", path.join(" → "));
            self.fail(
                &expr.span,
                message,
                "no expression may depend on itself; break the loop with a state",
            );
            return None;
        }
        self.stack.push(name);
        let id = self.lower(expr, place);
        self.stack.pop();
        self.memo.insert(name, id);
        id
    }

    fn lower(&mut self, expr: &'a Expr, place: Place) -> Option<Id> {
        match &expr.kind {
            Kind::Number(value) => Some(self.graph.constant(*value)),
            Kind::Name(name) => self.name(name, &expr.span, place),
            Kind::Negate(a) => {
                let a = self.lower(a, place)?;
                Some(self.graph.unary(Unary::Negate, a))
            }
            Kind::Not(a) => {
                let a = self.lower(a, place)?;
                Some(self.graph.unary(Unary::Not, a))
            }
            Kind::Binary(op, a, b) => {
                let (a, b) = (self.lower(a, place), self.lower(b, place));
                let (a, b) = (a?, b?);
                let (op, a, b) = match op {
                    Operator::Or => (Binary::Or, a, b),
                    Operator::And => (Binary::And, a, b),
                    Operator::Less => (Binary::Less, a, b),
                    Operator::LessEqual => (Binary::LessEqual, a, b),
                    Operator::Greater => (Binary::Less, b, a),
                    Operator::GreaterEqual => (Binary::LessEqual, b, a),
                    Operator::Equal => (Binary::Equal, a, b),
                    Operator::NotEqual => (Binary::NotEqual, a, b),
                    Operator::Add => (Binary::Add, a, b),
                    Operator::Subtract => (Binary::Subtract, a, b),
                    Operator::Multiply => (Binary::Multiply, a, b),
                    Operator::Divide => (Binary::Divide, a, b),
                    Operator::Power => (Binary::Power, a, b),
                };
                Some(self.graph.binary(op, a, b))
            }
            Kind::Call {
                name,
                name_span,
                arguments,
                output,
            } => self.call(name, name_span, arguments, output.as_ref(), place),
        }
    }

    fn name(&mut self, name: &'a str, span: &Span, place: Place) -> Option<Id> {
        let file = self.file;
        match (name, self.names.get(name).copied()) {
            (PI, _) => return Some(self.graph.constant(std::f64::consts::PI)),
            (TIME, _) if place != Place::Constant => return Some(self.graph.leaf(Node::Time)),
            (_, Some(Symbol::Constant(i))) => {
                return self.named(name, &file.constants[i].1, Place::Constant);
            }
            (_, Some(symbol)) if place == Place::Constant => {
                let _ = symbol;
                self.fail(
                    span,
                    format!("`{name}` is not a constant"),
                    "a constant may use numbers and other constants only",
                );
            }
            (_, Some(Symbol::Input(i))) if place == Place::Control => {
                let _ = i;
                self.fail(
                    span,
                    format!("the input `{name}` is what this section defines"),
                    "write inputs as expressions of t, the states and constants",
                );
            }
            (_, Some(Symbol::Input(i))) => return Some(self.graph.leaf(Node::Input(i))),
            (_, Some(Symbol::State(i))) => return Some(self.graph.leaf(Node::State(i))),
            (_, Some(Symbol::Expression(i))) => {
                return self.named(name, &file.expressions[i].1, place);
            }
            (_, Some(Symbol::Unknown(i))) => return self.unknown(i, span, place),
            (_, Some(Symbol::Network(_) | Symbol::Table(_))) => {
                self.fail(
                    span,
                    format!("`{name}` is a function"),
                    format!("call it with its arguments: {name}(…)"),
                );
            }
            (_, None) => {
                let help = self.suggestion(name);
                self.fail(span, format!("unknown name `{name}`"), help);
            }
        }
        None
    }

    /// p = guess + scale·θ, or p = guess·exp(scale/guess·θ) where it must stay positive.
    fn unknown(&mut self, i: usize, span: &Span, place: Place) -> Option<Id> {
        let file = self.file;
        let def = &file.unknowns[i];
        if self.variant == Variant::Truth || place == Place::Control {
            if let Some((_, expr)) = file.truth.iter().find(|(n, _)| n.value == def.name.value) {
                return self.lower(expr, Place::Constant);
            }
            let message = format!(
                "the truth section does not say what `{}` is",
                def.name.value
            );
            self.fail(
                span,
                message,
                format!("add {} = … to [truth]", def.name.value),
            );
            return None;
        }
        if place == Place::Measurement {
            self.fail(
                span,
                format!(
                    "the unknown `{}` cannot stand in a measurement",
                    def.name.value
                ),
                "make it a state with derivative = \"0\": its value is then estimated",
            );
            return None;
        }
        let theta = self.graph.leaf(Node::Theta(i));
        let guess = self.graph.constant(def.guess);
        if def.positive {
            let ratio = self.graph.constant(def.scale / def.guess);
            let exponent = self.graph.binary(Binary::Multiply, ratio, theta);
            let factor = self.graph.unary(Unary::Exp, exponent);
            Some(self.graph.binary(Binary::Multiply, guess, factor))
        } else {
            let scale = self.graph.constant(def.scale);
            let offset = self.graph.binary(Binary::Multiply, scale, theta);
            Some(self.graph.binary(Binary::Add, guess, offset))
        }
    }

    fn suggestion(&self, name: &str) -> String {
        let functions = FUNCTIONS.iter().map(|(f, _)| *f);
        let mut known: Vec<&str> = self.names.keys().copied().collect();
        known.sort_unstable();
        match suggest(name, known.into_iter().chain(functions).chain([PI, TIME])) {
            Some(close) => format!("did you mean `{close}`?"),
            None => {
                "define it in [constants], [inputs], [states], [expressions] or [unknowns]".into()
            }
        }
    }

    fn call(
        &mut self,
        name: &'a str,
        span: &Span,
        arguments: &'a [Expr],
        output: Option<&'a (String, Span)>,
        place: Place,
    ) -> Option<Id> {
        let values: Vec<Option<Id>> = arguments.iter().map(|a| self.lower(a, place)).collect();
        let symbol = self.names.get(name).copied();
        if let Some(Symbol::Network(n)) = symbol {
            return self.network(n, span, values, output, place);
        }
        if let Some((_, at)) = output {
            self.fail(
                at,
                format!("`{name}` has one output"),
                "only networks have named outputs",
            );
            return None;
        }
        let expected = match symbol {
            Some(Symbol::Table(_)) => 1,
            None => match FUNCTIONS.iter().find(|(f, _)| *f == name) {
                Some(&(_, n)) => n,
                None => {
                    let help = self.suggestion(name);
                    self.fail(span, format!("unknown function `{name}`"), help);
                    return None;
                }
            },
            Some(_) => {
                self.fail(
                    span,
                    format!("`{name}` is not a function"),
                    format!("multiply with `*`: {name}*(…)"),
                );
                return None;
            }
        };
        if values.len() != expected {
            let message = format!(
                "`{name}` takes {expected} argument(s), not {}",
                values.len()
            );
            self.fail(span, message, signature(name, expected));
            return None;
        }
        let v: Vec<Id> = values.into_iter().collect::<Option<_>>()?;
        Some(match symbol {
            Some(Symbol::Table(table)) => self.graph.leaf(Node::Lookup(table, v[0])),
            _ => self.function(name, &v),
        })
    }

    fn network(
        &mut self,
        n: usize,
        span: &Span,
        values: Vec<Option<Id>>,
        output: Option<&(String, Span)>,
        place: Place,
    ) -> Option<Id> {
        let def = &self.file.networks[n];
        let name = &def.name.value;
        if self.variant == Variant::Truth {
            self.fail(
                span,
                format!("the truth still calls network `{name}`"),
                "give the true equation of this state in [truth]",
            );
            return None;
        }
        if place != Place::Derivative {
            self.fail(
                span,
                format!("network `{name}` cannot be called here"),
                "networks belong in the derivatives of states",
            );
            return None;
        }
        let first = self.arguments[n]
            .get_or_insert((values.len(), span.clone()))
            .0;
        if values.is_empty() || values.len() != first {
            let message = if values.is_empty() {
                format!("network `{name}` is called without arguments")
            } else {
                format!(
                    "network `{name}` is called with {} arguments here and {first} elsewhere",
                    values.len()
                )
            };
            self.fail(span, message, "pass what the unknown equation can depend on, the same number everywhere; a constant nobody knows belongs in [unknowns]");
            return None;
        }
        let k = match output {
            None if def.outputs.len() == 1 => 0,
            None => {
                let help = format!("choose one: {name}(…).{}", def.outputs[0]);
                self.fail(
                    span,
                    format!("network `{name}` has {} outputs", def.outputs.len()),
                    help,
                );
                return None;
            }
            Some((o, at)) => match def.outputs.iter().position(|d| d == o) {
                Some(k) => k,
                None => {
                    let help = format!("its outputs: {}", def.outputs.join(", "));
                    self.fail(at, format!("network `{name}` has no output `{o}`"), help);
                    return None;
                }
            },
        };
        let values = values.into_iter().collect::<Option<_>>()?;
        let call = self.graph.call(n, values);
        Some(self.graph.leaf(Node::Output(call, k)))
    }

    fn function(&mut self, name: &str, v: &[Id]) -> Id {
        use Binary::{Add, Atan2, Divide, Max, Min, Multiply, Subtract};
        let g = &mut self.graph;
        let unary = match name {
            "abs" => Unary::Abs,
            "acos" => Unary::Acos,
            "asin" => Unary::Asin,
            "atan" => Unary::Atan,
            "cos" => Unary::Cos,
            "cosh" => Unary::Cosh,
            "exp" => Unary::Exp,
            "expm1" => Unary::Expm1,
            "floor" => Unary::Floor,
            "linoid" => Unary::Linoid,
            "log" => Unary::Log,
            "log1p" => Unary::Log1p,
            "sigmoid" => Unary::Sigmoid,
            "sign" => Unary::Sign,
            "sin" => Unary::Sin,
            "sinc" => Unary::Sinc,
            "sinh" => Unary::Sinh,
            "softplus" => Unary::Softplus,
            "sqrt" => Unary::Sqrt,
            "tan" => Unary::Tan,
            "tanh" => Unary::Tanh,
            "if" => return g.select(v[0], v[1], v[2]),
            "min" => return g.binary(Min, v[0], v[1]),
            "max" => return g.binary(Max, v[0], v[1]),
            "atan2" => return g.binary(Atan2, v[0], v[1]),
            "square" => return g.binary(Multiply, v[0], v[0]),
            "mod" => {
                let quotient = g.binary(Divide, v[0], v[1]);
                let whole = g.unary(Unary::Floor, quotient);
                let product = g.binary(Multiply, v[1], whole);
                return g.binary(Subtract, v[0], product);
            }
            "smooth_sign" => {
                let ratio = g.binary(Divide, v[0], v[1]);
                return g.unary(Unary::Tanh, ratio);
            }
            "smooth_abs" => return smooth_abs(g, v[0], v[1]),
            "smooth_max" | "smooth_min" => {
                let sum = g.binary(Add, v[0], v[1]);
                let difference = g.binary(Subtract, v[0], v[1]);
                let distance = smooth_abs(g, difference, v[2]);
                let op = if name == "smooth_max" { Add } else { Subtract };
                let twice = g.binary(op, sum, distance);
                let half = g.constant(0.5);
                return g.binary(Multiply, half, twice);
            }
            _ => unreachable!("{name} is listed in FUNCTIONS"),
        };
        g.unary(unary, v[0])
    }
}

/// sqrt(x² + w²): |x| rounded off within w.
fn smooth_abs(g: &mut Graph, x: Id, w: Id) -> Id {
    let (xx, ww) = (
        g.binary(Binary::Multiply, x, x),
        g.binary(Binary::Multiply, w, w),
    );
    let sum = g.binary(Binary::Add, xx, ww);
    g.unary(Unary::Sqrt, sum)
}

fn signature(name: &str, arguments: usize) -> String {
    match name {
        "if" => "write if(condition, then, else)".into(),
        "smooth_sign" | "smooth_abs" => format!("write {name}(x, width)"),
        "smooth_min" | "smooth_max" => format!("write {name}(a, b, width)"),
        _ => format!(
            "write {name}({})",
            ["x", "y", "z"][..arguments.min(3)].join(", ")
        ),
    }
}
