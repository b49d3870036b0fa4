//! ONNX, in f64: the map from a sample to the next with derivatives and measurements, and each network
//! by itself.
//!
//! Every value is a column with a row for each point. Functions that onnxruntime has in f32 alone are
//! written in those that it has in f64 (`functions.rs`).

mod functions;
mod protobuf;

use latens::Error;
use latens::model::network::Activation;
use latens::model::tape::{Binary, Tape, Unary};
use latens::model::{Method, System};

use crate::exported::{Exported, Weights};
use crate::generate::{Language, generate};
use protobuf::{Graph, Kind, node, table, tensor};

/// Operations in a file; more are refused.
const MOST_OPERATIONS: usize = 20_000;

/// The map as a file: x, u, t to x_next, dx and y.
pub fn map(exported: &Exported) -> Result<Vec<u8>, Error> {
    let model = &exported.model;
    let (n, m) = (model.states.len(), model.inputs.len());
    let programs = model.system.programs();
    if model.method.is_implicit() {
        return Err(Error::Setting(
            "an ONNX graph has no loop in which an implicit step could be solved; export to c, fmu or js, which do, or fit with an explicit method and enough substeps".into(),
        ));
    }
    let evaluations = model.substeps
        * match model.method {
            Method::Euler => 1,
            Method::SemiImplicitEuler => n,
            Method::Rk4 | Method::Sdirk4 | Method::ImplicitMidpoint => 4,
        };
    let operations = evaluations * programs.derivative.instructions().len();
    if operations > MOST_OPERATIONS {
        return Err(Error::Setting(format!(
            "an ONNX graph has no loop over sub-steps: a sample time of this model takes {operations} operations, and at most {MOST_OPERATIONS} are written"
        )));
    }
    let mut onnx = Onnx::new(exported);
    onnx.graph.inputs.push(table("x", n));
    if m > 0 {
        onnx.graph.inputs.push(table("u", m));
    }
    onnx.graph.inputs.push(table("t", 1));
    onnx.states = (0..n).map(|i| onnx.column("x", i)).collect();
    onnx.inputs = (0..m).map(|i| onnx.column("u", i)).collect();
    onnx.first = onnx.states[0].clone();
    let outputs = onnx.evaluate(programs.measurement);
    onnx.result("y", &outputs);
    let derivative = onnx.evaluate(programs.derivative);
    onnx.result("dx", &derivative);
    if exported.first_order() {
        onnx.graph.inputs.push(table("u_next", m));
        onnx.next_inputs = (0..m).map(|i| onnx.column("u_next", i)).collect();
    }
    let next = onnx.step(exported);
    onnx.result("x_next", &next);
    let name = &exported.names.model;
    Ok(protobuf::model(name, &exported.origin(), &onnx.graph))
}

/// Each network as a file of its own: its name, and rows of arguments to rows of outputs.
pub fn networks(exported: &Exported) -> Vec<(String, Vec<u8>)> {
    let weights = exported.networks();
    let networks = exported.names.networks.iter().zip(&weights).enumerate();
    networks
        .map(|(i, (name, weights))| {
            let mut onnx = Onnx::new(exported);
            onnx.graph
                .inputs
                .push(table("arguments", weights.network.arguments));
            onnx.first = onnx.column("arguments", 0);
            let found = onnx.apply(weights, &format!("n{i}"), "arguments");
            onnx.graph
                .nodes
                .push(node("Identity", &[&found], "outputs", &[]));
            onnx.graph
                .outputs
                .push(table("outputs", weights.network.outputs.len()));
            (
                name.clone(),
                protobuf::model(name, &exported.origin(), &onnx.graph),
            )
        })
        .collect()
}

struct Onnx<'a> {
    exported: &'a Exported<'a>,
    graph: Graph,
    count: usize,
    /// Numbers, by their bits.
    numbers: Vec<(u64, String)>,
    /// Networks and tables whose tensors are in the graph.
    placed: Vec<String>,
    states: Vec<String>,
    inputs: Vec<String>,
    next_inputs: Vec<String>,
    time: String,
    /// A column with as many rows as there are points.
    first: String,
    /// The outputs of each call, side by side.
    calls: Vec<String>,
}

impl<'a> Onnx<'a> {
    fn new(exported: &'a Exported<'a>) -> Self {
        Self {
            exported,
            graph: Graph::default(),
            count: 0,
            numbers: vec![],
            placed: vec![],
            states: vec![],
            inputs: vec![],
            next_inputs: vec![],
            time: "t".into(),
            first: String::new(),
            calls: vec![],
        }
    }

    /// An operation; the name of what it makes.
    fn op(&mut self, op: &str, inputs: &[&str]) -> String {
        self.op_with(op, inputs, &[])
    }

    fn op_with(&mut self, op: &str, inputs: &[&str], attributes: &[(&str, i64)]) -> String {
        self.count += 1;
        let name = format!("v{}", self.count);
        self.graph.nodes.push(node(op, inputs, &name, attributes));
        name
    }

    fn cast(&mut self, a: &str, kind: Kind) -> String {
        self.op_with("Cast", &[a], &[("to", kind as i64)])
    }

    /// Doubles under a name of their own.
    fn place(&mut self, name: &str, shape: &[usize], values: &[f64]) {
        if !self.placed.iter().any(|p| p == name) {
            let raw: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            self.graph
                .tensors
                .push(tensor(name, Kind::Double, shape, &raw));
            self.placed.push(name.into());
        }
    }

    /// A whole number, as a place in a list.
    fn whole(&mut self, i: usize) -> String {
        let name = format!("place{i}");
        if !self.placed.contains(&name) {
            let raw = (i as i64).to_le_bytes();
            self.graph
                .tensors
                .push(tensor(&name, Kind::Int64, &[1], &raw));
            self.placed.push(name.clone());
        }
        name
    }

    /// A column of a table.
    fn column(&mut self, table: &str, i: usize) -> String {
        let place = self.whole(i);
        self.op_with("Gather", &[table, &place], &[("axis", 1)])
    }

    /// A value for every point, where it may be one for all.
    fn full(&mut self, a: &str) -> String {
        if !self.numbers.iter().any(|(_, name)| name == a) {
            return a.into();
        }
        let first = self.first.clone();
        let shape = self.op("Shape", &[&first]);
        self.op("Expand", &[a, &shape])
    }

    /// Values side by side.
    fn beside(&mut self, values: &[String]) -> String {
        let full: Vec<String> = values.iter().map(|v| self.full(v)).collect();
        let full: Vec<&str> = full.iter().map(String::as_str).collect();
        self.op_with("Concat", &full, &[("axis", 1)])
    }

    fn result(&mut self, name: &str, values: &[String]) {
        let together = self.beside(values);
        self.graph
            .nodes
            .push(node("Identity", &[&together], name, &[]));
        self.graph.outputs.push(table(name, values.len()));
    }

    fn evaluate(&mut self, tape: &Tape) -> Vec<String> {
        let system: &System = &self.exported.model.system;
        self.calls = vec![String::new(); system.called().count()];
        generate(tape, system, self)
    }

    /// a + factor b, of each.
    fn moved(&mut self, from: &[String], factor: f64, changes: &[String]) -> Vec<String> {
        let factor = self.number(factor);
        let pairs = from.iter().zip(changes);
        pairs
            .map(|(a, b)| {
                let change = self.op("Mul", &[&factor, b]);
                self.op("Add", &[a, &change])
            })
            .collect()
    }

    /// The derivative at a time after the sample, as a part of the sample time and as a number.
    fn derivative(&mut self, state: &[String], after: f64) -> Vec<String> {
        let (time, inputs) = (self.time.clone(), self.inputs.clone());
        let before = std::mem::replace(&mut self.states, state.to_vec());
        let later = self.number(after);
        self.time = self.op("Add", &[&time, &later]);
        if !self.next_inputs.is_empty() {
            let next = self.next_inputs.clone();
            let change: Vec<String> = next
                .iter()
                .zip(&inputs)
                .map(|(b, a)| self.op("Sub", &[b, a]))
                .collect();
            self.inputs = self.moved(&inputs, after / self.exported.dt, &change);
        }
        let found = self.evaluate(self.exported.model.system.programs().derivative);
        (self.time, self.inputs, self.states) = (time, inputs, before);
        found
    }

    /// The states one sample time later.
    fn step(&mut self, exported: &Exported) -> Vec<String> {
        let model = &exported.model;
        let d = exported.dt / model.substeps as f64;
        let mut x = self.states.clone();
        for i in 0..model.substeps {
            let s = i as f64 * d;
            match model.method {
                Method::Euler => {
                    let f = self.derivative(&x, s);
                    x = self.moved(&x, d, &f);
                }
                Method::SemiImplicitEuler => {
                    for r in (0..x.len()).rev() {
                        let f = self.derivative(&x, s);
                        x[r] = self.moved(&x[r..=r], d, &f[r..=r]).remove(0);
                    }
                }
                Method::Rk4 | Method::Sdirk4 | Method::ImplicitMidpoint => {
                    let (mut sum, mut stage) = (x.clone(), x.clone());
                    for (k, (after, weight)) in [(0.0, 6.0), (0.5, 3.0), (0.5, 3.0), (1.0, 6.0)]
                        .into_iter()
                        .enumerate()
                    {
                        let f = self.derivative(&stage, s + after * d);
                        sum = self.moved(&sum, d / weight, &f);
                        let next = [0.5, 0.5, 1.0, 0.0][k];
                        stage = self.moved(&x, next * d, &f);
                    }
                    x = sum;
                }
            }
        }
        x
    }

    /// A network on arguments that stand side by side.
    fn apply(&mut self, weights: &Weights, prefix: &str, arguments: &str) -> String {
        let (network, scaling) = (weights.network, &weights.network.scaling);
        let (count, outputs) = (network.arguments, network.outputs.len());
        if weights.layers.is_empty() {
            let zero = self.number(0.0);
            return self.beside(&vec![zero; outputs]);
        }
        let named = |part: &str| format!("{prefix}_{part}");
        self.place(&named("center"), &[1, count], &scaling.center);
        self.place(&named("scale"), &[1, count], &scaling.scale);
        self.place(&named("size"), &[1, outputs], &scaling.output);
        let centred = self.op("Sub", &[arguments, &named("center")]);
        let first = self.op("Div", &[&centred, &named("scale")]);
        let mut z = first.clone();
        for (l, layer) in weights.layers.iter().enumerate() {
            let (from, to) = (layer.from, layer.bias.len());
            let transposed = transposed(layer.weights, from);
            let (w, b) = (named(&format!("w{l}")), named(&format!("b{l}")));
            self.place(&w, &[from, to], &transposed);
            self.place(&b, &[1, to], layer.bias);
            let product = self.op("MatMul", &[&z, &w]);
            let sum = self.op("Add", &[&product, &b]);
            z = self.activation(layer.activation, sum);
        }
        if let Some(skip) = weights.skip {
            self.place(&named("skip"), &[count, outputs], &transposed(skip, count));
            let direct = self.op("MatMul", &[&first, &named("skip")]);
            z = self.op("Add", &[&z, &direct]);
        }
        self.op("Mul", &[&z, &named("size")])
    }

    fn activation(&mut self, activation: Activation, a: String) -> String {
        match activation {
            Activation::Tanh => self.op("Tanh", &[&a]),
            Activation::Sigmoid => self.op("Sigmoid", &[&a]),
            Activation::Relu => self.op("Relu", &[&a]),
            Activation::Identity => a,
            Activation::Softplus => self.softplus(&a),
            Activation::Silu => {
                let s = self.op("Sigmoid", &[&a]);
                self.op("Mul", &[&a, &s])
            }
            Activation::Elu => {
                let zero = self.number(0.0);
                let positive = self.op("Less", &[&zero, &a]);
                let negative = self.op("Min", &[&a, &zero]);
                let curved = self.expm1(&negative);
                self.op("Where", &[&positive, &a, &curved])
            }
        }
    }
}

/// Rows of so many columns, column by column.
fn transposed(values: &[f64], columns: usize) -> Vec<f64> {
    let rows = values.len() / columns;
    let places = (0..values.len()).map(|i| i % rows * columns + i / rows);
    places.map(|i| values[i]).collect()
}

impl Language for Onnx<'_> {
    fn number(&mut self, value: f64) -> String {
        let known = self
            .numbers
            .iter()
            .find(|(bits, _)| *bits == value.to_bits());
        if let Some((_, name)) = known {
            return name.clone();
        }
        let name = format!("k{}", self.numbers.len());
        self.place(&name, &[1, 1], &[value]);
        self.numbers.push((value.to_bits(), name.clone()));
        name
    }

    fn time(&mut self) -> String {
        self.time.clone()
    }

    fn state(&mut self, i: usize) -> String {
        self.states[i].clone()
    }

    fn input(&mut self, i: usize) -> String {
        self.inputs[i].clone()
    }

    fn constant(&mut self, i: usize) -> String {
        let value = self.number(self.exported.constants[i]);
        self.full(&value)
    }

    fn unary(&mut self, op: Unary, a: &str) -> String {
        self.function(op, a)
    }

    fn binary(&mut self, op: Binary, a: &str, b: &str) -> String {
        let simple = match op {
            Binary::Add => "Add",
            Binary::Subtract => "Sub",
            Binary::Multiply => "Mul",
            Binary::Divide => "Div",
            Binary::Power | Binary::VaryingPower => "Pow",
            Binary::Less => "Less",
            Binary::LessEqual => "LessOrEqual",
            Binary::Equal | Binary::NotEqual => "Equal",
            Binary::And => "And",
            Binary::Or => "Or",
            Binary::Atan2 => return self.atan2(a, b),
            Binary::Min | Binary::Max => {
                let (small, large) = if op == Binary::Min { (a, b) } else { (b, a) };
                let first = self.op("LessOrEqual", &[small, large]);
                return self.op("Where", &[&first, a, b]);
            }
        };
        match op {
            Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::Power
            | Binary::VaryingPower => self.op(simple, &[a, b]),
            Binary::And | Binary::Or => {
                let (a, b) = (self.cast(a, Kind::Bool), self.cast(b, Kind::Bool));
                let both = self.op(simple, &[&a, &b]);
                self.cast(&both, Kind::Double)
            }
            _ => {
                let mut truth = self.op(simple, &[a, b]);
                if op == Binary::NotEqual {
                    truth = self.op("Not", &[&truth]);
                }
                self.cast(&truth, Kind::Double)
            }
        }
    }

    fn power(&mut self, a: &str, n: i32) -> String {
        let (mut square, mut value) = (a.to_string(), None::<String>);
        let mut rest = n.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                value = Some(match value {
                    None => square.clone(),
                    Some(v) => self.op("Mul", &[&v, &square]),
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.op("Mul", &[&square, &square]);
            }
        }
        let value = value.unwrap_or_else(|| self.number(1.0));
        if n < 0 {
            return self.op("Reciprocal", &[&value]);
        }
        value
    }

    fn select(&mut self, condition: &str, a: &str, b: &str) -> String {
        let condition = self.cast(condition, Kind::Bool);
        self.op("Where", &[&condition, a, b])
    }

    fn lookup(&mut self, table: usize, a: &str, _slope: bool) -> String {
        self.interpolated(table, a)
    }

    fn call(&mut self, call: usize, network: usize, arguments: &[String], _slopes: bool) {
        let together = self.beside(arguments);
        let exported = self.exported;
        let weights = &exported.networks()[network];
        self.calls[call] = self.apply(weights, &format!("n{network}"), &together);
    }

    fn output(&mut self, call: usize, k: usize) -> String {
        let outputs = self.calls[call].clone();
        self.column(&outputs, k)
    }

    fn slope(&mut self, _call: usize, _k: usize, _j: usize, _arguments: usize) -> String {
        unreachable!("the values alone are written")
    }

    fn keep(&mut self, _slot: usize, value: String) -> String {
        value
    }
}
