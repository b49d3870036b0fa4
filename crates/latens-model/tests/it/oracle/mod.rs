//! A second, plain reading of a model file: it walks the syntax tree over dual numbers.
//!
//! Nothing here is shared with the library but the parser: names, functions, networks, unknown
//! constants, tables and one-step maps are written again from their documentation, so that a
//! derivative which agrees was found twice.

// each test that includes this file uses a part of it
#![allow(dead_code)]

pub mod case;

use latens_model::Method;
use latens_model::network::{Activation, Scaling};
use latens_model::syntax::{self, Expr, Kind, ModelFile, NetworkDef, Operator, TableDef};
use num_dual::{Dual64, DualNum};

/// A number that may carry a derivative.
pub trait Number: DualNum<Primitive = f64> + Copy {}
impl<D: DualNum<Primitive = f64> + Copy> Number for D {}

/// Which equations count: those to learn or the true ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Learned,
    Truth,
}

/// A model file as a function of numbers.
pub struct Oracle {
    file: ModelFile,
    variant: Variant,
    /// Scaling of each network, in the order of the file.
    pub scaling: Vec<Scaling>,
}

/// Where to evaluate.
#[derive(Debug, Clone)]
pub struct At<D> {
    pub time: f64,
    pub state: Vec<D>,
    pub input: Vec<f64>,
    pub theta: Vec<D>,
}

impl At<f64> {
    /// The same point with the derivative by state `j` switched on.
    pub fn by_state(&self, j: usize) -> At<Dual64> {
        self.seeded(Some(j), None)
    }

    /// The same point with the derivative by parameter `j` switched on.
    pub fn by_theta(&self, j: usize) -> At<Dual64> {
        self.seeded(None, Some(j))
    }

    fn seeded(&self, state: Option<usize>, theta: Option<usize>) -> At<Dual64> {
        let dual = |values: &[f64], seed: Option<usize>| {
            let value = |(i, &v)| Dual64::new(v, f64::from(Some(i) == seed));
            values.iter().enumerate().map(value).collect()
        };
        At {
            time: self.time,
            state: dual(&self.state, state),
            input: self.input.clone(),
            theta: dual(&self.theta, theta),
        }
    }
}

impl Oracle {
    pub fn new(text: &str, variant: Variant, scaling: Vec<Scaling>) -> Self {
        let (file, diagnostics) = syntax::read(text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        Self {
            file,
            variant,
            scaling,
        }
    }

    /// x' = f.
    pub fn derivative<D: Number>(&self, at: &At<D>) -> Vec<D> {
        let states = self.file.states.iter();
        states
            .map(|s| {
                let truth = self.truth(&s.name.value);
                let expr = truth.or(s.derivative.as_ref());
                self.value(expr.expect("an equation"), at)
            })
            .collect()
    }

    /// y = h.
    pub fn measure<D: Number>(&self, at: &At<D>) -> Vec<D> {
        let measurements = self.file.measurements.iter();
        measurements
            .map(|m| {
                let name = &m.name.value;
                let state = self.file.states.iter().any(|s| s.name.value == *name);
                let truth = self.truth(name).filter(|_| !state);
                self.value(truth.unwrap_or(&m.value), at)
            })
            .collect()
    }

    /// The one-step map.
    pub fn step<D: Number>(&self, at: &At<D>, method: Method, substeps: usize, dt: f64) -> Vec<D> {
        let h = dt / substeps as f64;
        let mut at = at.clone();
        for _ in 0..substeps {
            at.state = match method {
                Method::Euler => add(&at.state, &self.derivative(&at), h),
                Method::SemiImplicitEuler => {
                    let mut mixed = at.clone();
                    for i in (0..at.state.len()).rev() {
                        let slope = self.derivative(&mixed)[i];
                        mixed.state[i] += slope * h;
                    }
                    mixed.state
                }
                Method::Rk4 => {
                    let stage = |k: &[D], shift: f64| {
                        self.derivative(&At {
                            time: at.time + shift,
                            state: add(&at.state, k, shift),
                            ..at.clone()
                        })
                    };
                    let k1 = self.derivative(&at);
                    let k2 = stage(&k1, h / 2.0);
                    let k3 = stage(&k2, h / 2.0);
                    let k4 = stage(&k3, h);
                    let slope = |i: usize| (k1[i] + (k2[i] + k3[i]) * 2.0 + k4[i]) / 6.0;
                    (0..k1.len()).map(|i| at.state[i] + slope(i) * h).collect()
                }
                Method::Sdirk4 => {
                    let a: [&[f64]; 5] = [
                        &[0.25],
                        &[0.5, 0.25],
                        &[17.0 / 50.0, -1.0 / 25.0, 0.25],
                        &[371.0 / 1360.0, -137.0 / 2720.0, 15.0 / 544.0, 0.25],
                        &[25.0 / 24.0, -49.0 / 48.0, 125.0 / 16.0, -85.0 / 12.0, 0.25],
                    ];
                    let mut slopes: Vec<Vec<D>> = vec![];
                    let mut end = at.state.clone();
                    for row in a {
                        let mut base = at.state.clone();
                        for (a, k) in row.iter().zip(&slopes) {
                            base = add(&base, k, a * h);
                        }
                        let time = at.time + row.iter().sum::<f64>() * h;
                        end = self.implicit(&at, time, &base, 0.25 * h);
                        let slope = |(y, r): (&D, &D)| (*y - *r) / (0.25 * h);
                        slopes.push(end.iter().zip(&base).map(slope).collect());
                    }
                    end
                }
                Method::ImplicitMidpoint => {
                    let middle = self.implicit(&at, at.time + h / 2.0, &at.state, h / 2.0);
                    // as far again: f itself would multiply rounding by the fastest rate
                    let again = |(m, x): (&D, &D)| *m + (*m - *x);
                    middle.iter().zip(&at.state).map(again).collect()
                }
            };
            at.time += h;
        }
        at.state
    }

    /// y = base + length f(y): steps of Newton's method over numbers that carry derivatives, with a
    /// matrix that carries none. Each step past the solution is exact in the derivative too.
    fn implicit<D: Number>(&self, at: &At<D>, time: f64, base: &[D], length: f64) -> Vec<D> {
        let n = base.len();
        let mut there = At { time, ..at.clone() };
        for _ in 0..10 {
            let real = At {
                time,
                state: there.state.iter().map(|v| v.re()).collect(),
                input: at.input.clone(),
                theta: at.theta.iter().map(|v| v.re()).collect(),
            };
            let mut matrix = vec![0.0; n * n];
            for j in 0..n {
                for (i, f) in self.derivative(&real.by_state(j)).iter().enumerate() {
                    matrix[i * n + j] = f64::from(i == j) - length * f.eps;
                }
            }
            let mut inverse = latens_model::small::identity(n);
            latens_model::small::solve(&mut matrix, &mut inverse, n).unwrap();
            let f = self.derivative(&there);
            let residual: Vec<D> = (0..n)
                .map(|i| there.state[i] - base[i] - f[i] * length)
                .collect();
            for i in 0..n {
                for j in 0..n {
                    there.state[i] -= residual[j] * inverse[i * n + j];
                }
            }
        }
        there.state
    }

    fn truth(&self, name: &str) -> Option<&Expr> {
        let mut entries = self.file.truth.iter();
        let found = entries.find(|(n, _)| n.value == name).map(|(_, e)| e);
        found.filter(|_| self.variant == Variant::Truth)
    }

    fn value<D: Number>(&self, expr: &Expr, at: &At<D>) -> D {
        let truth = |condition: bool| D::from(f64::from(condition));
        match &expr.kind {
            Kind::Number(v) => D::from(*v),
            Kind::Name(name) => self.name(name, at),
            Kind::Negate(a) => -self.value(a, at),
            Kind::Not(a) => truth(self.value(a, at).re() == 0.0),
            Kind::Binary(Operator::Power, a, b) => {
                let base = self.value(a, at);
                match self.fixed(b) {
                    Some(n) if n == n.round() => base.powi(n as i32),
                    Some(n) => base.powf(n),
                    None => base.powd(self.value(b, at)),
                }
            }
            Kind::Binary(op, a, b) => {
                let (a, b) = (self.value(a, at), self.value(b, at));
                let (x, y) = (a.re(), b.re());
                match op {
                    Operator::Add => a + b,
                    Operator::Subtract => a - b,
                    Operator::Multiply => a * b,
                    Operator::Divide => a / b,
                    Operator::Power => unreachable!(),
                    Operator::Or => truth(x != 0.0 || y != 0.0),
                    Operator::And => truth(x != 0.0 && y != 0.0),
                    Operator::Less => truth(x < y),
                    Operator::LessEqual => truth(x <= y),
                    Operator::Greater => truth(x > y),
                    Operator::GreaterEqual => truth(x >= y),
                    Operator::Equal => truth(x == y),
                    Operator::NotEqual => truth(x != y),
                }
            }
            Kind::Call {
                name,
                arguments,
                output,
                ..
            } => {
                let networks = &self.file.networks;
                if let Some(n) = networks.iter().position(|n| n.name.value == *name) {
                    let a: Vec<D> = arguments.iter().map(|a| self.value(a, at)).collect();
                    let outputs = self.network(n, &a, &at.theta);
                    let index = |o: &str| networks[n].outputs.iter().position(|p| p == o);
                    return outputs[output
                        .as_ref()
                        .map_or(0, |(o, _)| index(o).expect("output"))];
                }
                if name == "if" {
                    // only the chosen branch is looked at
                    let chosen = if self.value(&arguments[0], at).re() != 0.0 {
                        1
                    } else {
                        2
                    };
                    return self.value(&arguments[chosen], at);
                }
                let a: Vec<D> = arguments.iter().map(|a| self.value(a, at)).collect();
                match self.file.tables.iter().find(|t| t.name.value == *name) {
                    Some(table) => look_up(table, a[0]),
                    None => function(name, &a),
                }
            }
            Kind::Invalid => panic!("the text has a mistake"),
        }
    }

    /// The value of an exponent that is a constant.
    fn fixed(&self, expr: &Expr) -> Option<f64> {
        match &expr.kind {
            Kind::Number(v) => Some(*v),
            Kind::Negate(a) => self.fixed(a).map(|v| -v),
            Kind::Binary(Operator::Divide, a, b) => Some(self.fixed(a)? / self.fixed(b)?),
            Kind::Name(name) => {
                let mut constants = self.file.constants.iter();
                self.fixed(&constants.find(|(n, _)| n.value == *name)?.1)
            }
            _ => None,
        }
    }

    fn name<D: Number>(&self, name: &str, at: &At<D>) -> D {
        let file = &self.file;
        let index =
            |mut names: Box<dyn Iterator<Item = &String> + '_>| names.position(|n| n == name);
        if name == "t" {
            return D::from(at.time);
        }
        if name == "pi" {
            return D::from(std::f64::consts::PI);
        }
        if let Some(i) = index(Box::new(file.states.iter().map(|s| &s.name.value))) {
            return at.state[i];
        }
        if let Some(i) = index(Box::new(file.inputs.iter().map(|s| &s.name.value))) {
            return D::from(at.input[i]);
        }
        if let Some(i) = index(Box::new(file.unknowns.iter().map(|s| &s.name.value))) {
            if let Some(expr) = self.truth(name) {
                return self.value(expr, at);
            }
            let (u, theta) = (&file.unknowns[i], at.theta[i]);
            return if u.positive {
                (theta * (u.scale / u.guess)).exp() * u.guess
            } else {
                theta * u.scale + u.guess
            };
        }
        let mut named = file.constants.iter().chain(&file.expressions);
        let (_, expr) = named.find(|(n, _)| n.value == name).expect("a known name");
        self.value(expr, at)
    }

    /// Forward pass with the weights row by row, then the biases, layer by layer; the skip last.
    fn network<D: Number>(&self, n: usize, arguments: &[D], theta: &[D]) -> Vec<D> {
        let file = &self.file;
        let mut weights = &theta[file.unknowns.len()..];
        for (before, scaling) in file.networks[..n].iter().zip(&self.scaling) {
            weights = &weights[count(before, scaling.center.len())..];
        }
        let (def, scaling) = (&file.networks[n], &self.scaling[n]);
        let scaled: Vec<D> = arguments
            .iter()
            .zip(scaling.center.iter().zip(&scaling.scale))
            .map(|(&a, (&center, &scale))| (a - center) / scale)
            .collect();
        let mut next = |rows: usize, input: &[D], bias: bool| -> Vec<D> {
            let (matrix, rest) = weights.split_at(rows * input.len());
            let (offsets, rest) = rest.split_at(if bias { rows } else { 0 });
            weights = rest;
            let row = |r: usize| {
                let products = input.iter().enumerate();
                let sum: D = products
                    .map(|(j, &z)| matrix[r * input.len() + j] * z)
                    .sum();
                if bias { sum + offsets[r] } else { sum }
            };
            (0..rows).map(row).collect()
        };
        let mut z = scaled.clone();
        for &(units, activation) in &def.layers {
            let sums = next(units, &z, true);
            z = sums.into_iter().map(|s| activate(activation, s)).collect();
        }
        let mut out = next(def.outputs.len(), &z, true);
        if def.skip {
            let direct = next(def.outputs.len(), &scaled, false);
            out.iter_mut().zip(direct).for_each(|(o, d)| *o += d);
        }
        out.iter_mut()
            .zip(&scaling.output)
            .for_each(|(o, &s)| *o *= s);
        out
    }
}

/// Number of weights of a network with so many arguments.
fn count(def: &NetworkDef, arguments: usize) -> usize {
    let mut width = arguments;
    let mut total = if def.skip {
        arguments * def.outputs.len()
    } else {
        0
    };
    for units in def.layers.iter().map(|l| l.0).chain([def.outputs.len()]) {
        total += units * width + units;
        width = units;
    }
    total
}

fn add<D: Number>(x: &[D], k: &[D], h: f64) -> Vec<D> {
    x.iter().zip(k).map(|(&x, &k)| x + k * h).collect()
}

fn activate<D: Number>(activation: Activation, x: D) -> D {
    match activation {
        Activation::Tanh => tanh(x),
        Activation::Sigmoid => function("sigmoid", &[x]),
        Activation::Elu if x.re() > 0.0 => x,
        Activation::Elu => x.exp_m1(),
        Activation::Softplus => function("softplus", &[x]),
        Activation::Silu => x * function("sigmoid", &[x]),
        Activation::Relu if x.re() > 0.0 => x,
        Activation::Relu => D::from(0.0),
        Activation::Identity => x,
    }
}

/// Neither the value near 0 nor the slope far from it may cancel; sinh/cosh loses the slope.
fn tanh<D: Number>(x: D) -> D {
    if x.re() < 0.0 {
        return -tanh(-x);
    }
    let m = (x * -2.0).exp_m1();
    -m / (m + 2.0)
}

/// A function of the language; `if` is not one.
pub fn function<D: Number>(name: &str, a: &[D]) -> D {
    let x = a[0];
    match name {
        "abs" if x.re() < 0.0 => -x,
        "abs" => x,
        "acos" => x.acos(),
        "asin" => x.asin(),
        "atan" => x.atan(),
        "atan2" => x.atan2(a[1]),
        "cos" => x.cos(),
        "cosh" => x.cosh(),
        "exp" => x.exp(),
        "expm1" => x.exp_m1(),
        "floor" => D::from(x.re().floor()),
        "linoid" if x.re().abs() < 0.02 => {
            let s = x * x;
            x / 2.0 + s / 12.0 - s * s / 720.0 + s * s * s / 30240.0 + 1.0
        }
        "linoid" => -x / (-x).exp_m1(),
        "log" => x.ln(),
        "log1p" => x.ln_1p(),
        "max" if x.re() < a[1].re() => a[1],
        "max" => x,
        "min" if x.re() > a[1].re() => a[1],
        "min" => x,
        "mod" => x - a[1] * (x / a[1]).re().floor(),
        "sigmoid" if x.re() < 0.0 => x.exp() / (x.exp() + 1.0),
        "sigmoid" => ((-x).exp() + 1.0).recip(),
        "sign" if x.re() == 0.0 => D::from(0.0),
        "sign" => D::from(x.re().signum()),
        "sin" => x.sin(),
        "sinc" if x.re().abs() < 0.05 => {
            let s = x * x;
            -s / 6.0 + s * s / 120.0 - s * s * s / 5040.0 + 1.0
        }
        "sinc" => x.sin() / x,
        "sinh" => x.sinh(),
        "smooth_abs" => (x * x + a[1] * a[1]).sqrt(),
        "smooth_max" => (x + a[1] + function("smooth_abs", &[x - a[1], a[2]])) / 2.0,
        "smooth_min" => (x + a[1] - function("smooth_abs", &[x - a[1], a[2]])) / 2.0,
        "smooth_sign" => tanh(x / a[1]),
        "softplus" if x.re() > 0.0 => x + (-x).exp().ln_1p(),
        "softplus" => x.exp().ln_1p(),
        "sqrt" => x.sqrt(),
        "square" => x * x,
        "tan" => x.sin() / x.cos(),
        "tanh" => tanh(x),
        _ => panic!("the oracle does not know `{name}`"),
    }
}

/// Straight lines between the points; held beyond the ends, or repeated with the period.
fn look_up<D: Number>(table: &TableDef, at: D) -> D {
    let mut points: Vec<(f64, f64)> = table
        .x
        .iter()
        .copied()
        .zip(table.y.iter().copied())
        .collect();
    let (first, mut x) = (points[0], at);
    if let Some(period) = table.period {
        points.push((first.0 + period, first.1));
        x -= ((x.re() - first.0) / period).floor() * period;
    }
    if x.re() < first.0 {
        return D::from(first.1);
    }
    for w in points.windows(2) {
        if x.re() < w[1].0 {
            return (x - w[0].0) * ((w[1].1 - w[0].1) / (w[1].0 - w[0].0)) + w[0].1;
        }
    }
    D::from(points[points.len() - 1].1)
}
