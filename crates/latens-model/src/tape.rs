//! Programs: the part of a graph that some roots need, as a straight line of operations.
//!
//! Evaluation allocates nothing: values live in slots that the caller keeps between calls.

use super::graph::{Graph, Id, Node};
use super::network::{LaneTrace, Network, Trace};
use super::simd::{LANES, Panel};

pub use super::graph::{Binary, Unary};

/// A piecewise-linear curve; constant beyond its ends, or periodic.
#[derive(Debug, Clone)]
pub struct Curve {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub period: Option<f64>,
}

impl Curve {
    /// Value and slope.
    pub fn evaluate(&self, at: f64) -> (f64, f64) {
        let (x, y, n) = (&self.x, &self.y, self.x.len());
        let at = match self.period {
            Some(p) => x[0] + (at - x[0]).rem_euclid(p),
            None => at,
        };
        let i = x.partition_point(|&v| v <= at);
        let ((x0, y0), (x1, y1)) = if i == 0 {
            return (y[0], 0.0);
        } else if i < n {
            ((x[i - 1], y[i - 1]), (x[i], y[i]))
        } else if let Some(p) = self.period {
            ((x[n - 1], y[n - 1]), (x[0] + p, y[0]))
        } else {
            return (y[n - 1], 0.0);
        };
        let slope = (y1 - y0) / (x1 - x0);
        (y0 + slope * (at - x0), slope)
    }
}

/// Where a program finds its variables: a point, or some points side by side.
#[derive(Debug, Clone, Copy)]
pub struct Point<'a, V = f64> {
    pub time: V,
    pub state: &'a [V],
    /// Of this sample; those of the following samples may come after it.
    pub input: &'a [V],
    pub theta: &'a [f64],
}

/// What a slot of a program holds: a number, or one for each of some points side by side. The arithmetic
/// of a point is the same either way, operation by operation.
pub trait Value: Copy + Default {
    /// What a network leaves.
    type Trace;

    /// The same number everywhere.
    fn splat(value: f64) -> Self;
    /// A function of each number.
    fn map(self, f: impl Fn(f64) -> f64) -> Self;
    /// A function of each number and another.
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self;
    /// The first where `self` is not 0, else the second.
    fn select(self, first: Self, second: Self) -> Self;
    /// Memory for a call.
    fn trace(network: &Network) -> Self::Trace;
    /// An argument of a call.
    fn set_argument(network: &Network, trace: &mut Self::Trace, j: usize, value: Self);
    /// A call.
    fn evaluate(network: &Network, weights: &[f64], trace: &mut Self::Trace);
    /// Its derivatives.
    fn differentiate(network: &Network, weights: &[f64], trace: &mut Self::Trace);
    /// An output of a call.
    fn output(trace: &Self::Trace, k: usize) -> Self;
    /// An entry of ∂(output)/∂(argument).
    fn slope(trace: &Self::Trace, entry: usize) -> Self;
}

impl Value for f64 {
    type Trace = Trace;

    fn splat(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        f(self)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        f(self, other)
    }

    #[inline(always)]
    fn select(self, first: Self, second: Self) -> Self {
        if self != 0.0 { first } else { second }
    }

    fn trace(network: &Network) -> Trace {
        network.trace()
    }

    fn set_argument(network: &Network, trace: &mut Trace, j: usize, value: f64) {
        network.set_argument(trace, j, value);
    }

    fn evaluate(network: &Network, weights: &[f64], trace: &mut Trace) {
        network.evaluate(weights, trace);
    }

    fn differentiate(network: &Network, weights: &[f64], trace: &mut Trace) {
        network.differentiate(weights, trace);
    }

    fn output(trace: &Trace, k: usize) -> f64 {
        trace.output[k]
    }

    fn slope(trace: &Trace, entry: usize) -> f64 {
        trace.jacobian[entry]
    }
}

impl Value for Panel {
    type Trace = LaneTrace;

    fn splat(value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self(self.0.map(f))
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self(std::array::from_fn(|l| f(self.0[l], other.0[l])))
    }

    #[inline(always)]
    fn select(self, first: Self, second: Self) -> Self {
        Self(std::array::from_fn(|l| {
            self.0[l].select(first.0[l], second.0[l])
        }))
    }

    fn trace(network: &Network) -> LaneTrace {
        network.lane_trace()
    }

    fn set_argument(network: &Network, trace: &mut LaneTrace, j: usize, value: Self) {
        network.set_lane_argument(trace, j, value);
    }

    fn evaluate(network: &Network, weights: &[f64], trace: &mut LaneTrace) {
        network.evaluate_lanes(weights, trace);
    }

    fn differentiate(network: &Network, weights: &[f64], trace: &mut LaneTrace) {
        network.differentiate_lanes(weights, trace);
    }

    fn output(trace: &LaneTrace, k: usize) -> Self {
        trace.output[k]
    }

    fn slope(trace: &LaneTrace, entry: usize) -> Self {
        trace.jacobian[entry]
    }
}

/// One operation of a program; what it works on are slots.
#[derive(Debug, Clone, Copy)]
pub enum Instruction {
    /// The time.
    Time,
    /// A state.
    State(usize),
    /// An input.
    Input(usize),
    /// An entry of θ.
    Theta(usize),
    /// A function of a slot.
    Unary(Unary, usize),
    /// A function of two slots.
    Binary(Binary, usize, usize),
    /// An integer power of a slot.
    Powi(usize, i32),
    /// The second slot where the first is not 0, else the third.
    Select(usize, usize, usize),
    /// A table's value at a slot.
    Lookup(usize, usize),
    /// A table's slope at a slot.
    LookupSlope(usize, usize),
    /// Evaluates a call's network, then reads the output.
    Evaluate(usize, usize),
    /// An output of a call that is evaluated.
    Output(usize, usize),
    /// Differentiates a call's network, then reads the slope.
    Differentiate(usize, usize, usize),
    /// ∂(output)/∂(argument) of a call that is differentiated: call, output, argument.
    Slope(usize, usize, usize),
}

/// A compiled program. Slot i < `constants.len()` is a constant, the rest are results in order.
#[derive(Debug, Clone)]
pub struct Tape {
    constants: Vec<f64>,
    instructions: Vec<Instruction>,
    /// Slots of each call's arguments.
    arguments: Vec<Vec<usize>>,
    /// Calls whose derivatives are wanted though no slope is read: F_θ alone needs them.
    differentiate: Vec<usize>,
    /// Slot of each root.
    roots: Vec<usize>,
}

/// What the networks of a system look like to a program.
#[derive(Clone, Copy)]
pub struct Networks<'a> {
    pub networks: &'a [Network],
    /// Network of each call and where its weights start in θ.
    pub calls: &'a [(usize, usize)],
    pub curves: &'a [Curve],
}

impl Tape {
    /// Compiles what `roots` need; `gradients` are calls that must also be differentiated.
    pub fn compile(graph: &Graph, roots: &[Id], gradients: &[usize]) -> Self {
        let mut wanted = roots.to_vec();
        for &c in gradients {
            wanted.extend(&graph.calls()[c].arguments);
        }
        let order = graph.reachable(&wanted);
        let (constants, rest): (Vec<Id>, Vec<Id>) =
            order.into_iter().partition(|&id| graph.value(id).is_some());
        let mut slot = vec![usize::MAX; rest.iter().chain(&constants).max().map_or(0, |m| m + 1)];
        for (s, &id) in constants.iter().chain(&rest).enumerate() {
            slot[id] = s;
        }
        let calls = graph.calls();
        let (mut evaluated, mut differentiated) =
            (vec![false; calls.len()], vec![false; calls.len()]);
        let mut instructions = Vec::with_capacity(rest.len());
        for &id in &rest {
            instructions.push(match graph.node(id) {
                Node::Constant(_) => unreachable!("constants are apart"),
                Node::Time => Instruction::Time,
                Node::State(i) => Instruction::State(i),
                Node::Input(i) => Instruction::Input(i),
                Node::Theta(i) => Instruction::Theta(i),
                Node::Unary(op, a) => Instruction::Unary(op, slot[a]),
                Node::Binary(op, a, b) => Instruction::Binary(op, slot[a], slot[b]),
                Node::Powi(a, n) => Instruction::Powi(slot[a], n),
                Node::Select(c, a, b) => Instruction::Select(slot[c], slot[a], slot[b]),
                Node::Lookup(t, a) => Instruction::Lookup(t, slot[a]),
                Node::LookupSlope(t, a) => Instruction::LookupSlope(t, slot[a]),
                Node::Output(c, k) if !std::mem::replace(&mut evaluated[c], true) => {
                    Instruction::Evaluate(c, k)
                }
                Node::Output(c, k) => Instruction::Output(c, k),
                Node::Slope(c, k, j) if !std::mem::replace(&mut differentiated[c], true) => {
                    Instruction::Differentiate(c, k, j)
                }
                Node::Slope(c, k, j) => Instruction::Slope(c, k, j),
            });
        }
        let arguments = calls
            .iter()
            .map(|c| {
                c.arguments
                    .iter()
                    .map(|&a| slot.get(a).copied().unwrap_or(usize::MAX))
                    .collect()
            })
            .collect();
        Self {
            constants: constants.iter().filter_map(|&id| graph.value(id)).collect(),
            instructions,
            arguments,
            differentiate: gradients
                .iter()
                .copied()
                .filter(|&c| !differentiated[c])
                .collect(),
            roots: roots.iter().map(|&r| slot[r]).collect(),
        }
    }

    /// The numbers in the first slots.
    pub fn constants(&self) -> &[f64] {
        &self.constants
    }

    /// What fills the slots after the constants, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Slots of a call's arguments.
    pub fn arguments(&self, call: usize) -> &[usize] {
        &self.arguments[call]
    }

    /// Slot of each root.
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Fresh slots, constants filled in.
    pub fn slots<V: Value>(&self) -> Vec<V> {
        let mut slots: Vec<V> = self.constants.iter().map(|c| V::splat(*c)).collect();
        slots.resize(slots.len() + self.instructions.len(), V::default());
        slots
    }

    /// Value of root i after [`Tape::run`].
    #[inline]
    pub fn root<V: Copy>(&self, slots: &[V], i: usize) -> V {
        slots[self.roots[i]]
    }

    /// The first operation that made something that is no finite number of finite ones, after
    /// [`Tape::run`]: its function and what it was given.
    pub fn fault(&self, slots: &[f64]) -> Option<(String, Vec<f64>)> {
        let base = self.constants.len();
        self.instructions
            .iter()
            .enumerate()
            .find_map(|(i, instruction)| {
                if slots[base + i].is_finite() {
                    return None;
                }
                let (name, given) = match *instruction {
                    Instruction::Unary(op, a) => (format!("{op:?}").to_lowercase(), vec![slots[a]]),
                    Instruction::Binary(Binary::VaryingPower, a, b) => {
                        ("power".into(), vec![slots[a], slots[b]])
                    }
                    Instruction::Binary(op, a, b) => {
                        (format!("{op:?}").to_lowercase(), vec![slots[a], slots[b]])
                    }
                    Instruction::Powi(a, n) => ("power".into(), vec![slots[a], f64::from(n)]),
                    _ => return None,
                };
                given.iter().all(|v| v.is_finite()).then_some((name, given))
            })
    }

    /// Evaluates everything at a point, or at some side by side.
    pub fn run<V: Value>(
        &self,
        slots: &mut [V],
        traces: &mut [V::Trace],
        env: Networks,
        at: Point<V>,
    ) {
        let base = self.constants.len();
        let weights = |call: usize| {
            let (network, offset) = env.calls[call];
            let network = &env.networks[network];
            (network, &at.theta[offset..offset + network.weights()])
        };
        for (i, instruction) in self.instructions.iter().enumerate() {
            let value = match *instruction {
                Instruction::Time => at.time,
                Instruction::State(i) => at.state[i],
                Instruction::Input(i) => at.input[i],
                Instruction::Theta(i) => V::splat(at.theta[i]),
                Instruction::Unary(op, a) => slots[a].map(|x| op.evaluate(x)),
                Instruction::Binary(op, a, b) => slots[a].zip(slots[b], |x, y| op.evaluate(x, y)),
                Instruction::Powi(a, 2) => slots[a].map(|x| x * x),
                Instruction::Powi(a, n) => slots[a].map(|x| x.powi(n)),
                Instruction::Select(c, a, b) => slots[c].select(slots[a], slots[b]),
                Instruction::Lookup(t, a) => slots[a].map(|x| env.curves[t].evaluate(x).0),
                Instruction::LookupSlope(t, a) => slots[a].map(|x| env.curves[t].evaluate(x).1),
                Instruction::Evaluate(c, k) => {
                    let (network, weights) = weights(c);
                    for (j, &slot) in self.arguments[c].iter().enumerate() {
                        V::set_argument(network, &mut traces[c], j, slots[slot]);
                    }
                    V::evaluate(network, weights, &mut traces[c]);
                    V::output(&traces[c], k)
                }
                Instruction::Output(c, k) => V::output(&traces[c], k),
                Instruction::Differentiate(c, k, j) => {
                    let (network, weights) = weights(c);
                    V::differentiate(network, weights, &mut traces[c]);
                    V::slope(&traces[c], k * network.arguments + j)
                }
                Instruction::Slope(c, k, j) => {
                    let arguments = env.networks[env.calls[c].0].arguments;
                    V::slope(&traces[c], k * arguments + j)
                }
            };
            slots[base + i] = value;
        }
        for &c in &self.differentiate {
            let (network, weights) = weights(c);
            V::differentiate(network, weights, &mut traces[c]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_hold_their_ends_or_repeat() {
        let mut curve = Curve {
            x: vec![1.0, 2.0, 4.0],
            y: vec![10.0, 20.0, 0.0],
            period: None,
        };
        assert_eq!(curve.evaluate(0.0), (10.0, 0.0));
        assert_eq!(curve.evaluate(1.5), (15.0, 10.0));
        assert_eq!(curve.evaluate(3.0), (10.0, -10.0));
        assert_eq!(curve.evaluate(9.0), (0.0, 0.0));
        curve.period = Some(5.0); // from 4 on back up to 10 at 6, which is 1 again
        assert_eq!(curve.evaluate(5.0), (5.0, 5.0));
        assert_eq!(curve.evaluate(6.5), (15.0, 10.0));
        assert_eq!(curve.evaluate(-3.5), (15.0, 10.0));
    }
}
