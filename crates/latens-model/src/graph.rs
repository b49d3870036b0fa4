//! Equations as a graph in which equal subexpressions are one node, and its derivatives.
//!
//! Nodes are interned: building the same expression twice gives the same node, so a compiled
//! program evaluates it once. The derivative of a node is again a node, by the rules of the
//! calculus; what a system's Jacobian shares with its value is therefore shared in the program.

use std::collections::HashMap;

/// Index of a node. Arguments always come before what uses them.
pub type Id = usize;

/// Functions of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    Negate,
    Not,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Sigmoid,
    Softplus,
    Abs,
    Sign,
    Floor,
    /// x/(1 − e^(−x)), with its limit 1 at 0.
    Linoid,
    /// Its derivative.
    LinoidSlope,
    /// sin(x)/x, with its limit 1 at 0.
    Sinc,
    /// Its derivative.
    SincSlope,
}

/// Functions of two arguments. Comparisons and logic give 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Atan2,
    Min,
    Max,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

/// One operation of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A number, by its bits so that nodes can be compared.
    Constant(u64),
    Time,
    State(usize),
    Input(usize),
    /// A learned constant, as the solver sees it: centred and of unit size.
    Theta(usize),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// Integer power.
    Powi(Id, i32),
    /// `if(condition, then, else)`; only the chosen value counts.
    Select(Id, Id, Id),
    /// A table's value at an argument.
    Lookup(usize, Id),
    /// A table's slope there.
    LookupSlope(usize, Id),
    /// Output k of a network call.
    Output(usize, usize),
    /// ∂(output k)/∂(argument j) of a network call.
    Slope(usize, usize, usize),
}

/// A network applied to arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    pub network: usize,
    pub arguments: Vec<Id>,
}

/// The interned expressions of one system.
#[derive(Debug, Default, Clone)]
pub struct Graph {
    nodes: Vec<Node>,
    calls: Vec<Call>,
    index: HashMap<Node, Id>,
    call_index: HashMap<Call, usize>,
    derivatives: HashMap<(Id, Id), Id>,
}

impl Graph {
    /// The operation of a node.
    pub fn node(&self, id: Id) -> Node {
        self.nodes[id]
    }

    /// Every network call, each once.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The value of a node that is a constant.
    pub fn value(&self, id: Id) -> Option<f64> {
        match self.nodes[id] {
            Node::Constant(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// A node that is not simplified: time, a state, an input, θ, a table's value or a network's output.
    pub fn leaf(&mut self, node: Node) -> Id {
        self.intern(node)
    }

    /// A number.
    pub fn constant(&mut self, value: f64) -> Id {
        // −0 and 0 are one node: no equation tells them apart.
        let value = if value == 0.0 { 0.0 } else { value };
        self.intern(Node::Constant(value.to_bits()))
    }

    /// Index of a network call; the same arguments give the same call.
    pub fn call(&mut self, network: usize, arguments: Vec<Id>) -> usize {
        let call = Call { network, arguments };
        if let Some(&c) = self.call_index.get(&call) {
            return c;
        }
        self.calls.push(call.clone());
        self.call_index.insert(call, self.calls.len() - 1);
        self.calls.len() - 1
    }

    fn intern(&mut self, node: Node) -> Id {
        *self.index.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    /// Operations and arguments of all equations.
    pub fn size(&self) -> usize {
        let arguments = self.calls.iter().map(|call| call.arguments.len());
        self.nodes.len() + arguments.sum::<usize>()
    }

    /// op(a), simplified where the result is known.
    pub fn unary(&mut self, op: Unary, a: Id) -> Id {
        if let Some(v) = self.value(a) {
            return self.constant(op.evaluate(v));
        }
        match (op, self.nodes[a]) {
            (Unary::Negate, Node::Unary(Unary::Negate, inner)) => inner,
            _ => self.intern(Node::Unary(op, a)),
        }
    }

    /// a op b, simplified: constants folded, neutral elements dropped, 0·x = 0.
    pub fn binary(&mut self, op: Binary, a: Id, b: Id) -> Id {
        use Binary::*;
        let (va, vb) = (self.value(a), self.value(b));
        if let (Some(x), Some(y)) = (va, vb) {
            return self.constant(op.evaluate(x, y));
        }
        match (op, va, vb) {
            (Add, Some(0.0), _) => b,
            (Add | Subtract, _, Some(0.0)) => a,
            (Subtract, Some(0.0), _) => self.unary(Unary::Negate, b),
            (Multiply, Some(0.0), _) | (Divide, Some(0.0), _) => self.constant(0.0),
            (Multiply, _, Some(0.0)) => self.constant(0.0),
            (Multiply, Some(1.0), _) => b,
            (Multiply | Divide, _, Some(1.0)) => a,
            (Multiply, Some(-1.0), _) => self.unary(Unary::Negate, b),
            (Multiply, _, Some(-1.0)) => self.unary(Unary::Negate, a),
            (Subtract, ..) if a == b => self.constant(0.0),
            (Power, _, Some(y)) if y == y.round() && y.abs() <= 64.0 => self.powi(a, y as i32),
            // a commutative pair is one node whichever way it is written
            (Add | Multiply, ..) if a > b => self.intern(Node::Binary(op, b, a)),
            _ => self.intern(Node::Binary(op, a, b)),
        }
    }

    fn powi(&mut self, a: Id, n: i32) -> Id {
        match n {
            0 => self.constant(1.0),
            1 => a,
            _ => self.intern(Node::Powi(a, n)),
        }
    }

    /// `if(condition, then, otherwise)`.
    pub fn select(&mut self, condition: Id, then: Id, otherwise: Id) -> Id {
        match self.value(condition) {
            Some(v) if v != 0.0 => then,
            Some(_) => otherwise,
            None if then == otherwise => then,
            None => self.intern(Node::Select(condition, then, otherwise)),
        }
    }

    fn add(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Add, a, b)
    }

    fn subtract(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Subtract, a, b)
    }

    fn multiply(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Multiply, a, b)
    }

    fn divide(&mut self, a: Id, b: Id) -> Id {
        self.binary(Binary::Divide, a, b)
    }

    /// What a node depends on directly.
    pub fn arguments(&self, id: Id) -> Vec<Id> {
        match self.nodes[id] {
            Node::Constant(_) | Node::Time | Node::State(_) | Node::Input(_) | Node::Theta(_) => {
                vec![]
            }
            Node::Unary(_, a) | Node::Powi(a, _) | Node::Lookup(_, a) | Node::LookupSlope(_, a) => {
                vec![a]
            }
            Node::Binary(_, a, b) => vec![a, b],
            Node::Select(c, a, b) => vec![c, a, b],
            Node::Output(c, _) | Node::Slope(c, ..) => self.calls[c].arguments.clone(),
        }
    }

    /// All that `roots` need, in an order in which arguments come first.
    pub fn reachable(&self, roots: &[Id]) -> Vec<Id> {
        let mut seen = vec![false; self.nodes.len()];
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut seen[id], true) {
                stack.extend(self.arguments(id));
            }
        }
        (0..seen.len()).filter(|&i| seen[i]).collect()
    }

    /// ∂(node)/∂(leaf), where a leaf is a state, a learned constant or a network's output.
    ///
    /// With an output as the leaf, the other networks' outputs that depend on it count through
    /// their slopes: networks may feed networks.
    pub fn derivative(&mut self, node: Id, leaf: Id) -> Id {
        // the arguments first, on a stack of our own: equations may be deeper than a thread's
        let mut open = vec![node];
        while let Some(&last) = open.last() {
            if self.known_derivative(last, leaf).is_some() {
                open.pop();
                continue;
            }
            let before = open.len();
            for argument in self.arguments(last).into_iter().rev() {
                if self.known_derivative(argument, leaf).is_none() {
                    open.push(argument);
                }
            }
            if open.len() == before {
                let d = self.differentiate(last, leaf);
                self.derivatives.insert((last, leaf), d);
                open.pop();
            }
        }
        self.known_derivative(node, leaf)
            .expect("it was found just now")
    }

    /// A derivative that is trivial, or was found before.
    fn known_derivative(&mut self, node: Id, leaf: Id) -> Option<Id> {
        if node == leaf {
            return Some(self.constant(1.0));
        }
        if node < leaf {
            return Some(self.constant(0.0)); // arguments come first: it cannot depend on the leaf
        }
        self.derivatives.get(&(node, leaf)).copied()
    }

    fn differentiate(&mut self, node: Id, leaf: Id) -> Id {
        let zero = self.constant(0.0);
        match self.nodes[node] {
            Node::Constant(_) | Node::Time | Node::State(_) | Node::Input(_) | Node::Theta(_) => {
                zero
            }
            Node::Unary(op, a) => {
                let da = self.derivative(a, leaf);
                if da == zero {
                    return zero;
                }
                let slope = self.unary_slope(op, node, a);
                self.multiply(slope, da)
            }
            Node::Powi(a, n) => {
                let da = self.derivative(a, leaf);
                if da == zero {
                    return zero;
                }
                let (n_node, lower) = (self.constant(f64::from(n)), self.powi(a, n - 1));
                let slope = self.multiply(n_node, lower);
                self.multiply(slope, da)
            }
            Node::Binary(op, a, b) => {
                let (da, db) = (self.derivative(a, leaf), self.derivative(b, leaf));
                if da == zero && db == zero {
                    return zero;
                }
                self.binary_derivative(op, node, (a, b), (da, db))
            }
            Node::Select(c, a, b) => {
                let (da, db) = (self.derivative(a, leaf), self.derivative(b, leaf));
                self.select(c, da, db)
            }
            Node::Lookup(table, a) => {
                let da = self.derivative(a, leaf);
                if da == zero {
                    return zero;
                }
                let slope = self.intern(Node::LookupSlope(table, a));
                self.multiply(slope, da)
            }
            Node::LookupSlope(..) => zero,
            Node::Output(call, k) => {
                let mut sum = zero;
                for (j, a) in self.calls[call].arguments.clone().into_iter().enumerate() {
                    let da = self.derivative(a, leaf);
                    if da != zero {
                        let slope = self.intern(Node::Slope(call, k, j));
                        let term = self.multiply(slope, da);
                        sum = self.add(sum, term);
                    }
                }
                sum
            }
            Node::Slope(..) => unreachable!("equations hold values; only derivatives hold slopes"),
        }
    }

    fn unary_slope(&mut self, op: Unary, node: Id, a: Id) -> Id {
        use Unary::*;
        let one = self.constant(1.0);
        match op {
            Negate => self.constant(-1.0),
            Not | Sign | Floor => self.constant(0.0),
            Exp => node,
            Expm1 => self.add(node, one),
            Log => self.divide(one, a),
            Log1p => {
                let b = self.add(one, a);
                self.divide(one, b)
            }
            Sqrt => {
                let half = self.constant(0.5);
                let slope = self.divide(half, node);
                self.unless_zero(node, slope)
            }
            Sin => self.unary(Cos, a),
            Cos => {
                let s = self.unary(Sin, a);
                self.unary(Negate, s)
            }
            Tan => {
                let square = self.powi(node, 2);
                self.add(one, square)
            }
            Asin | Acos => {
                let square = self.powi(a, 2);
                let rest = self.subtract(one, square);
                let root = self.unary(Sqrt, rest);
                let sign = self.constant(if op == Asin { 1.0 } else { -1.0 });
                self.divide(sign, root)
            }
            Atan => {
                let square = self.powi(a, 2);
                let sum = self.add(one, square);
                self.divide(one, sum)
            }
            Sinh => self.unary(Cosh, a),
            Cosh => self.unary(Sinh, a),
            Tanh => {
                let square = self.powi(node, 2);
                self.subtract(one, square)
            }
            Sigmoid => {
                let rest = self.subtract(one, node);
                self.multiply(node, rest)
            }
            Softplus => self.unary(Sigmoid, a),
            Abs => self.unary(Sign, a),
            Linoid => self.unary(LinoidSlope, a),
            Sinc => self.unary(SincSlope, a),
            LinoidSlope | SincSlope => unreachable!("only derivatives hold slopes"),
        }
    }

    /// A slope, and 0 where `a` is 0: √|x| has no slope there, and sign(x)·∞ is no number.
    fn unless_zero(&mut self, a: Id, slope: Id) -> Id {
        let zero = self.constant(0.0);
        let condition = self.binary(Binary::NotEqual, a, zero);
        self.select(condition, slope, zero)
    }

    fn binary_derivative(
        &mut self,
        op: Binary,
        node: Id,
        (a, b): (Id, Id),
        (da, db): (Id, Id),
    ) -> Id {
        use Binary::*;
        match op {
            Add => self.add(da, db),
            Subtract => self.subtract(da, db),
            Multiply => {
                let (left, right) = (self.multiply(da, b), self.multiply(a, db));
                self.add(left, right)
            }
            Divide => {
                // (a/b)' = (a' − (a/b) b')/b
                let product = self.multiply(node, db);
                let numerator = self.subtract(da, product);
                self.divide(numerator, b)
            }
            Power => {
                // b a^(b−1) a' + a^b ln(a) b'; the second term only where the exponent varies
                let one = self.constant(1.0);
                let lower = self.subtract(b, one);
                let power = self.binary(Power, a, lower);
                let mut slope = self.multiply(b, power);
                if self.value(b).is_some_and(|b| 0.0 < b && b < 1.0) {
                    slope = self.unless_zero(a, slope);
                }
                let left = self.multiply(slope, da);
                if self.value(db) == Some(0.0) {
                    return left;
                }
                let log = self.unary(Unary::Log, a);
                let slope = self.multiply(node, log);
                let right = self.multiply(slope, db);
                self.add(left, right)
            }
            Atan2 => {
                let (x, y) = (self.multiply(b, da), self.multiply(a, db));
                let numerator = self.subtract(x, y);
                let (aa, bb) = (self.powi(a, 2), self.powi(b, 2));
                let square = self.add(aa, bb);
                self.divide(numerator, square)
            }
            Min => {
                let condition = self.binary(LessEqual, a, b);
                self.select(condition, da, db)
            }
            Max => {
                let condition = self.binary(LessEqual, b, a);
                self.select(condition, da, db)
            }
            Less | LessEqual | Equal | NotEqual | And | Or => self.constant(0.0),
        }
    }
}

impl Unary {
    #[inline]
    pub fn evaluate(self, x: f64) -> f64 {
        match self {
            Unary::Negate => -x,
            Unary::Not => f64::from(x == 0.0),
            Unary::Exp => x.exp(),
            Unary::Expm1 => x.exp_m1(),
            Unary::Log => x.ln(),
            Unary::Log1p => x.ln_1p(),
            Unary::Sqrt => x.sqrt(),
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Tan => x.tan(),
            Unary::Asin => x.asin(),
            Unary::Acos => x.acos(),
            Unary::Atan => x.atan(),
            Unary::Sinh => x.sinh(),
            Unary::Cosh => x.cosh(),
            Unary::Tanh => x.tanh(),
            Unary::Sigmoid => sigmoid(x),
            Unary::Softplus => softplus(x),
            Unary::Abs => x.abs(),
            Unary::Sign if x == 0.0 => 0.0,
            Unary::Sign => x.signum(),
            Unary::Floor => x.floor(),
            Unary::Linoid => linoid(x),
            Unary::LinoidSlope => linoid_slope(x),
            Unary::Sinc => sinc(x),
            Unary::SincSlope => sinc_slope(x),
        }
    }
}

impl Binary {
    #[inline]
    pub fn evaluate(self, x: f64, y: f64) -> f64 {
        match self {
            Binary::Add => x + y,
            Binary::Subtract => x - y,
            Binary::Multiply => x * y,
            Binary::Divide => x / y,
            Binary::Power => x.powf(y),
            Binary::Atan2 => x.atan2(y),
            Binary::Min => {
                if x <= y {
                    x
                } else {
                    y
                }
            }
            Binary::Max => {
                if y <= x {
                    x
                } else {
                    y
                }
            }
            Binary::Less => f64::from(x < y),
            Binary::LessEqual => f64::from(x <= y),
            Binary::Equal => f64::from(x == y),
            Binary::NotEqual => f64::from(x != y),
            Binary::And => f64::from(x != 0.0 && y != 0.0),
            Binary::Or => f64::from(x != 0.0 || y != 0.0),
        }
    }
}

/// 1/(1 + e^(−x)) without overflow.
#[inline]
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// ln(1 + e^x) without overflow.
#[inline]
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn linoid(x: f64) -> f64 {
    if x.abs() < 1e-5 {
        1.0 + x / 2.0 + x * x / 12.0
    } else {
        -x / (-x).exp_m1()
    }
}

/// d/dx x/(1 − e^(−x)) = (1 − L·e^(−x))/(1 − e^(−x)), L the value; its series near 0, where the
/// quotient cancels.
fn linoid_slope(x: f64) -> f64 {
    if x.abs() < 0.05 {
        let s = x * x;
        0.5 + x * (1.0 / 6.0 - s * (1.0 / 180.0 - s * (1.0 / 5040.0 - s / 151_200.0)))
    } else if x > 0.0 {
        let e = (-x).exp();
        (1.0 - linoid(x) * e) / -(-x).exp_m1()
    } else {
        // multiplied through by e^x: no overflow for large negative x
        let e = x.exp();
        (e - linoid(x)) / x.exp_m1()
    }
}

fn sinc(x: f64) -> f64 {
    if x.abs() < 1e-4 {
        1.0 - x * x / 6.0
    } else {
        x.sin() / x
    }
}

fn sinc_slope(x: f64) -> f64 {
    if x.abs() < 0.05 {
        let s = x * x;
        -x * (1.0 / 3.0 - s * (1.0 / 30.0 - s * (1.0 / 840.0 - s / 45_360.0)))
    } else {
        (x.cos() - sinc(x)) / x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_expressions_are_one_node() {
        let mut g = Graph::default();
        let (x, y) = (g.leaf(Node::State(0)), g.leaf(Node::State(1)));
        let a = g.binary(Binary::Multiply, x, y);
        let b = g.binary(Binary::Multiply, y, x);
        assert_eq!(a, b);
        let d = g.derivative(a, x);
        assert_eq!(d, y, "∂(xy)/∂x is y itself, not a copy");
    }

    /// √|x| and |x|^0.3 have no slope at 0: then it is 0, a number; beside it the slope is the closed form's.
    #[test]
    fn roots_have_a_number_for_a_slope_at_zero() {
        for (root, exponent) in [("sqrt(abs(x))", 0.5), ("abs(x)^0.3", 0.3)] {
            let text = format!(
                "[time]\nstep = 1\n[states.x]\nderivative = \"{root}\"\n[measurements]\nx = \"x\"\n"
            );
            let system = crate::Model::from_text("root", &text).unwrap().system;
            let mut ws = system.workspace();
            let mut slope = |x: f64| {
                let (mut f, mut f_x) = ([0.0], [0.0]);
                let at = crate::Point {
                    time: 0.0,
                    state: &[x],
                    input: &[],
                    theta: &[],
                };
                system.linearise(&mut ws, at, &mut f, &mut f_x);
                f_x[0]
            };
            assert_eq!(slope(0.0), 0.0);
            for x in [1e-12f64, -1e-3, 2.0] {
                let expected = exponent * x.abs().powf(exponent - 1.0) * x.signum();
                assert!((slope(x) / expected - 1.0).abs() < 1e-12, "{root} at {x}");
            }
        }
    }

    /// Closed forms in extended precision by halving: f(x) from its defining identity.
    #[test]
    fn safe_functions_are_smooth_through_zero() {
        // x/(1−e^−x) − x/2 is even; its derivative is therefore odd about 1/2
        for x in [
            1e-9, 1e-6, 9.9e-6, 1.01e-5, 1e-3, 0.049, 0.051, 0.7, 3.0, 40.0,
        ] {
            assert!((linoid(x) - x / 2.0 - (linoid(-x) + x / 2.0)).abs() < 1e-13 * linoid(x));
            assert!((linoid_slope(x) + linoid_slope(-x) - 1.0).abs() < 1e-13);
            assert!((sinc(x) - sinc(-x)).abs() == 0.0);
            assert!((sinc_slope(x) + sinc_slope(-x)).abs() < 1e-15);
        }
        for (low, high) in [(0.05 - 1e-12, 0.05 + 1e-12), (1e-5 - 1e-17, 1e-5 + 1e-17)] {
            assert!((linoid_slope(low) - linoid_slope(high)).abs() < 1e-12);
            assert!((linoid(low) - linoid(high)).abs() < 2e-12);
            assert!((sinc_slope(low) - sinc_slope(high)).abs() < 1e-11);
        }
        assert_eq!(linoid(-800.0), 0.0);
        assert_eq!(linoid(800.0), 800.0);
        assert_eq!(linoid_slope(800.0), 1.0);
        assert!(linoid_slope(-800.0).abs() < 1e-300);
    }
}
