//! Equations as a graph in which equal subexpressions are one node, and its derivatives.
//!
//! Nodes are interned: building the same expression twice gives the same node, so a compiled
//! program evaluates it once. The derivative of a node is again a node, by the rules of the
//! calculus; what a system's Jacobian shares with its value is therefore shared in the program.

mod derivatives;
mod functions;

use std::collections::HashMap;

pub use functions::{Binary, Unary};
#[cfg(test)]
pub use functions::{sigmoid, softplus};

/// Index of a node. Arguments always come before what uses them.
pub type Id = usize;

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
            (Power, _, None) => self.intern(Node::Binary(VaryingPower, a, b)),
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
}
