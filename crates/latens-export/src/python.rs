//! Python: one module that needs numpy alone, and takes jax.numpy's and CasADi's values as they are.

use latens::model::Method;
use latens::model::network::Activation;
use latens::model::tape::{Binary, Tape, Unary};

use crate::exported::{Exported, Weights};
use crate::generate::{Function, Language, comparison, function, generate, sign};
use crate::names::{Names, comment, digits, python_text, rows};

const RUNTIME_CODE: &str = include_str!("python/runtime.py");

/// The module.
pub fn module(exported: &Exported) -> String {
    let mut text = head(exported);
    text += RUNTIME_CODE;
    for (name, weights) in exported.names.networks.iter().zip(exported.networks()) {
        text += &network(name, &weights);
    }
    let programs = exported.model.system.programs();
    text += &written("_f", exported, programs.derivative);
    text += &written("_h", exported, programs.measurement);
    text += &step(exported);
    text + INTERFACE_CODE
}

const INTERFACE_CODE: &str = r#"
def _arguments(x, u, t, p):
    """The library, and each argument as a list of its components."""
    L = _library(x, u, t, () if p is None else p)
    x, u, t, p = (L.values(v) for v in (x, u, t, list(CONSTANTS.values()) if p is None else p))
    return L, [x[i] for i in range(len(STATES))], [u[i] for i in range(len(INPUTS))], t, p


def f(x, u=(), t=0.0, p=None):
    """The time derivative of the states; p are other values of CONSTANTS, in their order."""
    L, x, u, t, p = _arguments(x, u, t, p)
    return L.stack(_f(L, x, u, t, p))


def h(x, u=(), t=0.0, p=None):
    """What the sensors show; p as in f."""
    L, x, u, t, p = _arguments(x, u, t, p)
    return L.stack(_h(L, x, u, t, p))
"#;

fn number(value: f64) -> String {
    if value.is_nan() {
        "numpy.nan".into()
    } else if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("({sign}numpy.inf)")
    } else {
        digits(value)
    }
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = values.map(python_text).collect();
    format!("[{}]", texts.join(", "))
}

fn array(values: &[f64]) -> String {
    let all: Vec<String> = values.iter().map(|v| number(*v)).collect();
    format!("numpy.array([{}])", all.join(", "))
}

fn head(exported: &Exported) -> String {
    let model = &exported.model;
    let mut text = format!(
        "# {}.\n#\n# f(x, u, t) is the derivative of the states, step(x, u, t) the states one sample time DT later, \
         h(x, u, t)\n# what is measured. Arguments may be of numpy, jax or CasADi; with numpy, columns of x and u are \
         points apart.\n\nimport numpy\n\n",
        comment(&exported.origin())
    );
    for (name, value) in [
        ("NAME", &model.name),
        ("DESCRIPTION", &model.description),
        ("TIME_UNIT", &model.time_unit),
    ] {
        text += &format!("{name} = {}\n", python_text(value));
    }
    for (kind, listed) in exported.listed() {
        let kind = kind.to_uppercase();
        if kind != "CONSTANT" {
            text += &format!("{kind}S = {}\n", texts(listed.iter().map(|q| q.name)));
        }
        text += &format!("{kind}_UNITS = {}\n", texts(listed.iter().map(|q| q.unit)));
    }
    let constants = model.unknowns.iter().zip(&exported.constants);
    let constants: Vec<String> = constants
        .map(|(u, value)| format!("{}: {}", python_text(&u.name), number(*value)))
        .collect();
    text += &format!(
        "CONSTANTS = {{{}}}\nSTART = {}\nDT = {}\nSUBSTEPS = {}\n",
        constants.join(", "),
        array(&exported.start),
        number(exported.dt),
        model.substeps,
    );
    for (i, curve) in model.system.curves().iter().enumerate() {
        let (mut x, mut y) = (curve.x.clone(), curve.y.clone());
        if let Some(period) = curve.period {
            x.push(x[0] + period);
            y.push(y[0]);
        }
        let period = curve.period.map_or("None".into(), number);
        text += &format!("_TABLE_{i} = ({}, {}, {period})\n", array(&x), array(&y));
    }
    text + "\n\n"
}

/// A function of components that gives a list of them.
fn written(name: &str, exported: &Exported, tape: &Tape) -> String {
    let mut python = Python {
        names: &exported.names,
        lines: vec![],
    };
    let roots = generate(tape, &exported.model.system, &mut python);
    let lines: String = python.lines.iter().map(|l| format!("    {l}\n")).collect();
    format!(
        "def {name}(L, x, u, t, p):\n{lines}    return [{}]\n\n\n",
        roots.join(", ")
    )
}

fn network(name: &str, weights: &Weights) -> String {
    let scaling = &weights.network.scaling;
    let constant = |suffix: &str, value: String| format!("_w_{name}_{suffix} = {value}\n");
    if weights.layers.is_empty() {
        let zeros = vec!["0.0"; weights.network.outputs.len()].join(", ");
        return format!("def _net_{name}(L, a):\n    return [{zeros}]\n\n\n");
    }
    let matrix = |values: &[f64], columns: usize| {
        let rows = rows(values, "    ", number);
        format!("numpy.array([\n{rows},\n]).reshape(-1, {columns})")
    };
    let mut text = constant("CENTER", array(&scaling.center));
    text += &constant("SCALE", array(&scaling.scale));
    text += &constant("OUTPUT", array(&scaling.output));
    let mut body = format!(
        "    first = L.stack([(v - c) / s for v, c, s in zip(a, _w_{name}_CENTER, _w_{name}_SCALE)])\n    z = first\n"
    );
    for (i, layer) in weights.layers.iter().enumerate() {
        text += &constant(&format!("W{i}"), matrix(layer.weights, layer.from));
        text += &constant(&format!("B{i}"), array(layer.bias));
        let dense = format!("L.dense(_w_{name}_W{i}, _w_{name}_B{i}, z)");
        let value = match layer.activation {
            Activation::Tanh => format!("L.tanh({dense})"),
            Activation::Sigmoid => format!("_sigmoid(L, {dense})"),
            Activation::Elu => format!("_elu(L, {dense})"),
            Activation::Softplus => format!("_softplus(L, {dense})"),
            Activation::Relu => format!("_relu(L, {dense})"),
            Activation::Identity => dense,
            Activation::Silu => {
                body += &format!("    z = {dense}\n");
                "z * _sigmoid(L, z)".into()
            }
        };
        body += &format!("    z = {value}\n");
    }
    if let Some(skip) = weights.skip {
        text += &constant("SKIP", matrix(skip, weights.network.arguments));
        body += &format!("    z = z + L.dense(_w_{name}_SKIP, 0.0 * _w_{name}_OUTPUT, first)\n");
    }
    format!(
        "{text}\n\ndef _net_{name}(L, a):\n{body}    return [s * z[k] for k, s in enumerate(_w_{name}_OUTPUT)]\n\n\n"
    )
}

/// One sample time by the model's method.
fn step(exported: &Exported) -> String {
    let model = &exported.model;
    let n = model.states.len();
    let (arguments, about, convert, held) = if exported.first_order() {
        (
            ", u_next=None",
            "\n\n    Inputs go straight to u_next, those of the next sample; without it they are held.\n    ",
            "    if u_next is not None:\n        u_next = [u_next[i] for i in range(len(INPUTS))]\n\n    def held(time):\n        part = (time - t) / DT\n        return u if u_next is None else [a + part * (b - a) for a, b in zip(u, u_next)]\n\n",
            "held({})",
        )
    } else {
        ("", " Inputs are held over it.", "", "u")
    };
    let at = |time: &str| held.replace("{}", time);
    let body = match model.method {
        Method::Euler => format!(
            "        k1 = _f(L, x, {}, s, p)\n        x = [a + d * k for a, k in zip(x, k1)]\n",
            at("s")
        ),
        Method::SemiImplicitEuler => format!(
            "        for r in reversed(range({n})):\n            x[r] = x[r] + d * _f(L, x, {}, s, p)[r]\n",
            at("s")
        ),
        Method::Rk4 => format!(
            "        k1 = _f(L, x, {0}, s, p)\n        \
             k2 = _f(L, [a + 0.5 * d * k for a, k in zip(x, k1)], {1}, s + 0.5 * d, p)\n        \
             k3 = _f(L, [a + 0.5 * d * k for a, k in zip(x, k2)], {1}, s + 0.5 * d, p)\n        \
             k4 = _f(L, [a + d * k for a, k in zip(x, k3)], {2}, s + d, p)\n        \
             x = [a + d * (b + 2.0 * c + 2.0 * e + g) / 6.0 for a, b, c, e, g in zip(x, k1, k2, k3, k4)]\n",
            at("s"),
            at("s + 0.5 * d"),
            at("s + d")
        ),
        Method::Sdirk4 | Method::ImplicitMidpoint => return refused_step(arguments),
    };
    format!(
        "def step(x, u=(), t=0.0{arguments}, p=None):\n    \"\"\"The states one sample time DT later.{about}\"\"\"\n    \
         L, x, u, t, p = _arguments(x, u, t, p)\n{convert}    d = DT / SUBSTEPS\n    for i in range(SUBSTEPS):\n        s = t + i * d\n{body}    \
         return L.stack(x)\n\n"
    )
}

/// An implicit step is no expression of numpy, jax and CasADi alike; each has its own solver for f.
fn refused_step(arguments: &str) -> String {
    format!(
        "def step(x, u=(), t=0.0{arguments}, p=None):\n    \"\"\"The implicit step is not part of this module: \
         it raises with what to do.\"\"\"\n    raise NotImplementedError(\n        \
         \"the model is stepped by an implicit method; integrate f, as by \"\n        \
         \"scipy.integrate.solve_ivp(lambda t, x: f(x, u, t), (t, t + DT), x, method='Radau')\"\n    )\n\n"
    )
}

struct Python<'a> {
    names: &'a Names,
    lines: Vec<String>,
}

impl Python<'_> {
    fn named(&mut self, prefix: &str, name: &str, i: usize) -> String {
        let name = format!("{prefix}_{name}");
        self.lines.push(format!("{name} = {prefix}[{i}]"));
        name
    }
}

impl Language for Python<'_> {
    fn number(&mut self, value: f64) -> String {
        number(value)
    }

    fn time(&mut self) -> String {
        "t".into()
    }

    fn state(&mut self, i: usize) -> String {
        let name = self.names.states[i].clone();
        self.named("x", &name, i)
    }

    fn input(&mut self, i: usize) -> String {
        let name = self.names.inputs[i].clone();
        self.named("u", &name, i)
    }

    fn constant(&mut self, i: usize) -> String {
        let name = self.names.constants[i].clone();
        self.named("p", &name, i)
    }

    fn unary(&mut self, op: Unary, a: &str) -> String {
        match function(op) {
            Some(Function::Common(name)) => format!("L.{name}({a})"),
            Some(Function::Own(name)) => format!("_{name}(L, {a})"),
            None if op == Unary::Not => format!("1.0 * ({a} == 0)"),
            None => format!("-{a}"),
        }
    }

    fn binary(&mut self, op: Binary, a: &str, b: &str) -> String {
        if let Some(sign) = sign(op) {
            return format!("{a} {sign} {b}");
        }
        if let Some(sign) = comparison(op) {
            return format!("1.0 * ({a} {sign} {b})");
        }
        match op {
            Binary::Power | Binary::VaryingPower => format!("{a} ** {b}"),
            Binary::Atan2 => format!("L.atan2({a}, {b})"),
            Binary::Min => format!("L.where({a} <= {b}, {a}, {b})"),
            Binary::Max => format!("L.where({b} <= {a}, {a}, {b})"),
            Binary::And => format!("1.0 * ({a} != 0) * ({b} != 0)"),
            _ => format!("1.0 - 1.0 * ({a} == 0) * ({b} == 0)"),
        }
    }

    fn power(&mut self, a: &str, n: i32) -> String {
        if n < 0 {
            format!("1.0 / {a} ** {}", -n)
        } else {
            format!("{a} ** {n}")
        }
    }

    fn select(&mut self, condition: &str, a: &str, b: &str) -> String {
        format!("L.where({condition} != 0, {a}, {b})")
    }

    fn lookup(&mut self, table: usize, a: &str, _slope: bool) -> String {
        format!("_lookup(L, _TABLE_{table}, {a})")
    }

    fn call(&mut self, call: usize, network: usize, arguments: &[String], _slopes: bool) {
        let name = &self.names.networks[network];
        let arguments = arguments.join(", ");
        self.lines
            .push(format!("c{call} = _net_{name}(L, [{arguments}])"));
    }

    fn output(&mut self, call: usize, k: usize) -> String {
        format!("c{call}[{k}]")
    }

    fn slope(&mut self, _call: usize, _k: usize, _j: usize, _arguments: usize) -> String {
        unreachable!("Python has no derivatives: jax and CasADi bring their own")
    }

    fn keep(&mut self, slot: usize, value: String) -> String {
        self.lines.push(format!("v{slot} = {value}"));
        format!("v{slot}")
    }
}
