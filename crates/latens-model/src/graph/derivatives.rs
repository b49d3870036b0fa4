//! The derivative of a node, which is again a node.

use super::{Binary, Graph, Id, Node, Unary};

/// The arguments of a function of two, or their derivatives.
struct Operands {
    a: Id,
    b: Id,
}

impl Graph {
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
                let slopes = Operands { a: da, b: db };
                self.binary_derivative(op, node, Operands { a, b }, slopes)
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
        operands: Operands,
        slopes: Operands,
    ) -> Id {
        use Binary::*;
        let Operands { a, b } = operands;
        let Operands { a: da, b: db } = slopes;
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
            Power | VaryingPower => {
                // b a^(b−1) a' + a^b ln(a) b'; the second term only where the exponent varies, and none at a = 0
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
                let slope = self.unless_zero(a, slope);
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

#[cfg(test)]
mod tests {
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
}
