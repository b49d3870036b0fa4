//! JavaScript: one module without dependencies, for a file of its own or inside of a page.

use latens::model::Method;
use latens::model::network::Activation;
use latens::model::tape::{Binary, Tape, Unary};
use latens::numerics::step::{Estimate, Tableau, WHOLE_STEPS_TOLERANCE, sizes, tableau};

use crate::exported::{Exported, Weights};
use crate::generate::{Function, Language, comparison, function, generate, sign};
use crate::names::{Names, comment, digits, rows, script_text};

const RUNTIME_CODE: &str = include_str!("js/runtime.js");
const IMPLICIT_CODE: &str = include_str!("js/implicit.js");

const INTERFACE_CODE: &str = "
/** Time derivatives of the states; p are other values of the constants, in their order. */
function f(x, u = [], t = 0, p = learned) {
  return derivative(x, u, t, p);
}

/** What the sensors show; p as in f. */
function h(x, u = [], t = 0, p = learned) {
  return measure(x, u, t, p);
}
";

/// What it offers.
const INTERFACE_NAMES: &str = "name, description, timeUnit, states, inputs, outputs, constants, learned, start, dt, weights, f, h, step, asked";

/// The module.
pub fn module(exported: &Exported) -> String {
    format!("{}\nexport {{ {INTERFACE_NAMES} }};\n", body(exported))
}

/// The same as an expression, for a page: what the module exports is the object that it yields.
pub fn expression(exported: &Exported) -> String {
    // texts in quotes have no such characters; a name in a comment may
    let body = body(exported).replace("</", "< /").replace("<!", "< !");
    format!("(() => {{\n{body}\nreturn {{ {INTERFACE_NAMES} }};\n}})()")
}

fn body(exported: &Exported) -> String {
    let mut text = head(exported);
    text += RUNTIME_CODE;
    let mut listed = vec![];
    for (name, weights) in exported.names.networks.iter().zip(exported.networks()) {
        let (code, arrays) = network(name, &weights);
        text += &code;
        listed.push(format!("[{}]", arrays.join(", ")));
    }
    text += &format!(
        "/** The weights of each network, in the order of the fit's parameters; what is written here is used. */\n\
         const weights = [{}];\n\n",
        listed.join(", ")
    );
    let programs = exported.model.system.programs();
    text += &written("derivative", exported, programs.derivative, Yields::Values);
    text += &written("measure", exported, programs.measurement, Yields::Values);
    text +=
        "/** What each call of a network is asked at: the network's place, and its arguments. */\n";
    text += &written("asked", exported, programs.derivative, Yields::Calls);
    text += INTERFACE_CODE;
    if let Some(tableau) = tableau(exported.model.method) {
        text += &IMPLICIT_CODE.replace("@CONSTANTS@", &solver(exported, tableau));
    }
    text + &step(exported)
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("({sign}Infinity)")
    } else {
        digits(value)
    }
}

fn array(values: &[f64]) -> String {
    if values.is_empty() {
        return "[]".into();
    }
    format!("[\n{}\n]", rows(values, "  ", number))
}

fn head(exported: &Exported) -> String {
    let model = &exported.model;
    let mut text = format!(
        "// {}.\n//\n// f(x, u, t) are the derivatives of the states, step(x, u, t) the states one sample time dt later,\n\
         // h(x, u, t, p) what is measured. x, u and what comes back are arrays.\n\n",
        comment(&exported.origin())
    );
    for (name, value) in [
        ("name", &model.name),
        ("description", &model.description),
        ("timeUnit", &model.time_unit),
    ] {
        text += &format!("const {name} = {};\n", script_text(value));
    }
    for (kind, listed) in exported.listed() {
        let objects: Vec<String> = listed
            .iter()
            .map(|q| {
                let (name, unit) = (script_text(q.name), script_text(q.unit));
                format!("{{ name: {name}, unit: {unit} }}")
            })
            .collect();
        text += &format!("const {kind}s = [{}];\n", objects.join(", "));
    }
    text += &format!(
        "/** The learned values of the constants. */\nconst learned = {};\n\
         /** Where the fit found its first record to begin. */\nconst start = {};\n\
         const dt = {};\nconst substeps = {};\n",
        array(&exported.constants),
        array(&exported.start),
        number(exported.dt),
        model.substeps
    );
    for (i, curve) in model.system.curves().iter().enumerate() {
        text += &format!(
            "const table{i} = {{ x: {}, y: {}, period: {} }};\n",
            array(&curve.x),
            array(&curve.y),
            number(curve.period.unwrap_or(0.0))
        );
    }
    text + "\n"
}

/// What a written function gives back.
#[derive(PartialEq)]
enum Yields {
    Values,
    Calls,
}

fn written(name: &str, exported: &Exported, tape: &Tape, yields: Yields) -> String {
    let mut script = Script {
        names: &exported.names,
        lines: vec![],
        calls: vec![],
    };
    let mut roots = generate(tape, &exported.model.system, &mut script);
    if yields == Yields::Calls {
        roots = script.calls;
    }
    let lines: String = script.lines.iter().map(|l| format!("  {l}\n")).collect();
    format!(
        "function {name}(x, u, t, p) {{\n{lines}  return [{}];\n}}\n\n",
        roots.join(", ")
    )
}

/// A network as a function, and the names of its weights in their order.
fn network(name: &str, weights: &Weights) -> (String, Vec<String>) {
    let (network, scaling) = (weights.network, &weights.network.scaling);
    if weights.layers.is_empty() {
        let zeros = vec!["0"; network.outputs.len()].join(", ");
        let text = format!("function network_{name}() {{\n  return [{zeros}];\n}}\n\n");
        return (text, vec![]);
    }
    let mut text = String::new();
    let mut constant = |suffix: &str, values: &[f64]| {
        text += &format!("const weights_{name}_{suffix} = {};\n", array(values));
        format!("weights_{name}_{suffix}")
    };
    let center = constant("center", &scaling.center);
    let scale = constant("scale", &scaling.scale);
    let size = constant("size", &scaling.output);
    let mut arrays = vec![];
    let mut body = format!(
        "  const first = a.map((v, j) => (v - {center}[j]) / {scale}[j]);\n  let z = first;\n"
    );
    for (i, layer) in weights.layers.iter().enumerate() {
        let w = constant(&format!("w{i}"), layer.weights);
        let b = constant(&format!("b{i}"), layer.bias);
        body += &format!("  z = dense({w}, {b}, z);\n");
        arrays.extend([w, b]);
        let function = match layer.activation {
            Activation::Tanh => "Math.tanh",
            Activation::Sigmoid => "sigmoid",
            Activation::Elu => "elu",
            Activation::Softplus => "softplus",
            Activation::Silu => "silu",
            Activation::Relu => "relu",
            Activation::Identity => continue,
        };
        body += &format!("  z = z.map((v) => {function}(v));\n");
    }
    if let Some(skip) = weights.skip {
        let direct = constant("direct", skip);
        body += &format!("  z = dense({direct}, z, first);\n");
        arrays.push(direct);
    }
    let function = format!(
        "{text}\nfunction network_{name}(a) {{\n{body}  return z.map((v, k) => {size}[k] * v);\n}}\n\n"
    );
    (function, arrays)
}

/// The numbers of an implicit method.
fn solver(exported: &Exported, tableau: &Tableau) -> String {
    let list = |values: &[f64]| {
        let numbers: Vec<String> = values.iter().map(|v| number(*v)).collect();
        format!("[{}]", numbers.join(", "))
    };
    let lower: Vec<String> = tableau.lower.iter().map(|row| list(row)).collect();
    let errors = match tableau.error {
        Estimate::Embedded(weights) => list(weights),
        Estimate::Halves => "undefined".into(),
    };
    format!(
        "{{\n  gamma: {},\n  nodes: {},\n  lower: [{}],\n  weights: {},\n  errors: {errors},\n  \
         tolerance: {},\n  sizes: {},\n  iterations: {},\n  converged: {},\n  finest: {},\n  attempts: {},\n  \
         halvings: {},\n  doubled: {},\n  roomToDouble: {},\n}}",
        number(tableau.gamma),
        list(tableau.nodes),
        lower.join(", "),
        list(tableau.weights),
        number(exported.model.tolerance.unwrap_or(0.0)),
        list(&sizes(&exported.model)),
        Tableau::MOST_ITERATIONS,
        number(Tableau::CONVERGED_STEP_RATIO),
        Tableau::MOST_HALVED_LEVELS,
        Tableau::MOST_ATTEMPTS,
        Tableau::MOST_HALVINGS,
        number(tableau.error.doubled()),
        number(Tableau::DOUBLING_ERROR_PART),
    )
}

fn step(exported: &Exported) -> String {
    let (hold, held) = if exported.first_order() {
        (
            "Inputs go straight to uNext, those of the next sample; without it they are held.",
            "(time) => (uNext ? u.map((a, i) => a + ((time - t) / (steps * length)) * (uNext[i] - a)) : u)",
        )
    } else {
        ("Inputs are held over it.", "() => u")
    };
    let body = match exported.model.method {
        Method::Euler => {
            "    const k = derivative(x, held(s), s, p);\n    x = x.map((a, i) => a + d * k[i]);\n"
        }
        Method::SemiImplicitEuler => {
            "    x = x.slice();\n    for (let r = x.length - 1; r >= 0; r--) x[r] += d * derivative(x, held(s), s, p)[r];\n"
        }
        Method::Rk4 => {
            "    let sum = x;\n    let k = x.map(() => 0);\n    \
             for (const [shift, weight] of [[0, 1 / 6], [0.5, 1 / 3], [0.5, 1 / 3], [1, 1 / 6]]) {\n      \
             const stage = x.map((a, i) => a + shift * d * k[i]);\n      \
             k = derivative(stage, held(s + shift * d), s + shift * d, p);\n      \
             sum = sum.map((a, i) => a + weight * d * k[i]);\n    }\n    x = sum;\n"
        }
        Method::Sdirk4 | Method::ImplicitMidpoint => "    x = walk(x, held, s, d, p);\n",
    };
    let whole = number(WHOLE_STEPS_TOLERANCE);
    format!(
        "\n/** The states one sample time later, or after a gap, which is taken in as many steps as fit it. {hold} */\n\
         function step(x, u = [], t = 0, uNext = undefined, p = learned, gap = dt) {{\n  \
         const steps = Math.max(Math.round(gap / dt), 1);\n  \
         const length = Math.abs(gap / dt - steps) <= {whole} ? dt : gap / steps;\n  \
         const held = {held};\n  const d = length / substeps;\n  \
         for (let i = 0; i < steps * substeps; i++) {{\n    \
         const s = t + i * d;\n{body}  }}\n  return x;\n}}\n"
    )
}

struct Script<'a> {
    names: &'a Names,
    lines: Vec<String>,
    /// The network of each call with its arguments.
    calls: Vec<String>,
}

impl Script<'_> {
    fn named(&mut self, prefix: &str, name: &str, i: usize) -> String {
        let name = format!("{prefix}_{name}");
        self.lines.push(format!("const {name} = {prefix}[{i}];"));
        name
    }
}

impl Language for Script<'_> {
    fn number(&mut self, value: f64) -> String {
        number(value)
    }

    fn time(&mut self) -> String {
        "t".into()
    }

    fn state(&mut self, i: usize) -> String {
        self.named("x", &self.names.states[i], i)
    }

    fn input(&mut self, i: usize) -> String {
        self.named("u", &self.names.inputs[i], i)
    }

    fn constant(&mut self, i: usize) -> String {
        self.named("p", &self.names.constants[i], i)
    }

    fn unary(&mut self, op: Unary, a: &str) -> String {
        match function(op) {
            Some(Function::Common(name)) => format!("Math.{name}({a})"),
            Some(Function::Own(name)) => format!("{name}({a})"),
            None if op == Unary::Not => format!("{a} === 0 ? 1 : 0"),
            None => format!("-{a}"),
        }
    }

    fn binary(&mut self, op: Binary, a: &str, b: &str) -> String {
        if let Some(sign) = sign(op) {
            return format!("{a} {sign} {b}");
        }
        if let Some(sign) = comparison(op) {
            return format!("{a} {sign} {b} ? 1 : 0");
        }
        match op {
            Binary::Power | Binary::VaryingPower => format!("{a} ** {b}"),
            Binary::Atan2 => format!("Math.atan2({a}, {b})"),
            Binary::Min => format!("{a} <= {b} ? {a} : {b}"),
            Binary::Max => format!("{b} <= {a} ? {a} : {b}"),
            Binary::And => format!("{a} !== 0 && {b} !== 0 ? 1 : 0"),
            _ => format!("{a} !== 0 || {b} !== 0 ? 1 : 0"),
        }
    }

    fn power(&mut self, a: &str, n: i32) -> String {
        format!("power({a}, {n})")
    }

    fn select(&mut self, condition: &str, a: &str, b: &str) -> String {
        format!("{condition} !== 0 ? {a} : {b}")
    }

    fn lookup(&mut self, table: usize, a: &str, _slope: bool) -> String {
        format!("lookup(table{table}, {a})")
    }

    fn call(&mut self, call: usize, network: usize, arguments: &[String], _slopes: bool) {
        let name = &self.names.networks[network];
        let arguments = arguments.join(", ");
        self.calls.push(format!("[{network}, [{arguments}]]"));
        self.lines
            .push(format!("const c{call} = network_{name}([{arguments}]);"));
    }

    fn output(&mut self, call: usize, k: usize) -> String {
        format!("c{call}[{k}]")
    }

    fn slope(&mut self, _call: usize, _k: usize, _j: usize, _arguments: usize) -> String {
        unreachable!("the values alone are written")
    }

    fn keep(&mut self, slot: usize, value: String) -> String {
        self.lines.push(format!("const v{slot} = {value};"));
        format!("v{slot}")
    }
}
