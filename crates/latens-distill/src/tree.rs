//! Expressions as trees, which can be changed at any place.

use std::fmt::Write;

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unary {
    /// Its absolute value.
    Abs,
    /// The exponential.
    Exp,
    /// The logarithm of the absolute value.
    Log,
    /// The root of the absolute value.
    Sqrt,
    /// The hyperbolic tangent.
    Tanh,
}

/// What joins two values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Binary {
    /// Their sum.
    Add,
    /// Their difference.
    Subtract,
    /// Their product.
    Multiply,
    /// Their quotient.
    Divide,
}

/// All of them.
pub const UNARY: [Unary; 5] = [Unary::Abs, Unary::Exp, Unary::Log, Unary::Sqrt, Unary::Tanh];
/// All of them.
pub const BINARY: [Binary; 4] = [
    Binary::Add,
    Binary::Subtract,
    Binary::Multiply,
    Binary::Divide,
];

/// An expression in arguments and constants.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// The argument at this place.
    Argument(usize),
    /// A constant with its value.
    Constant(f64),
    /// A function.
    Unary(Unary, Box<Tree>),
    /// Two parts.
    Binary(Binary, Box<Tree>, Box<Tree>),
}

impl Tree {
    /// Nodes in it.
    pub fn size(&self) -> usize {
        match self {
            Self::Argument(_) | Self::Constant(_) => 1,
            Self::Unary(_, a) => 1 + a.size(),
            Self::Binary(_, a, b) => 1 + a.size() + b.size(),
        }
    }

    /// Its value at a point.
    pub fn value(&self, point: &[f64]) -> f64 {
        match self {
            Self::Argument(j) => point[*j],
            Self::Constant(value) => *value,
            Self::Unary(function, a) => {
                let a = a.value(point);
                match function {
                    Unary::Abs => a.abs(),
                    Unary::Exp => a.exp(),
                    Unary::Log => a.abs().ln(),
                    Unary::Sqrt => a.abs().sqrt(),
                    Unary::Tanh => a.tanh(),
                }
            }
            Self::Binary(operator, a, b) => {
                let (a, b) = (a.value(point), b.value(point));
                match operator {
                    Binary::Add => a + b,
                    Binary::Subtract => a - b,
                    Binary::Multiply => a * b,
                    Binary::Divide => a / b,
                }
            }
        }
    }

    /// Whether it depends on an argument.
    pub fn has(&self, argument: usize) -> bool {
        match self {
            Self::Argument(j) => *j == argument,
            Self::Constant(_) => false,
            Self::Unary(_, a) => a.has(argument),
            Self::Binary(_, a, b) => a.has(argument) || b.has(argument),
        }
    }

    fn is_constant(&self) -> bool {
        match self {
            Self::Argument(_) => false,
            Self::Constant(_) => true,
            Self::Unary(_, a) => a.is_constant(),
            Self::Binary(_, a, b) => a.is_constant() && b.is_constant(),
        }
    }

    /// With each part that depends on nothing as one constant.
    pub fn folded(self) -> Self {
        if self.is_constant() {
            return Self::Constant(self.value(&[]));
        }
        match self {
            Self::Unary(function, a) => Self::Unary(function, Box::new(a.folded())),
            Self::Binary(operator, a, b) => {
                Self::Binary(operator, Box::new(a.folded()), Box::new(b.folded()))
            }
            leaf => leaf,
        }
    }

    /// The part at a place, counted from the root, each before its own parts.
    pub fn part(&mut self, place: usize) -> &mut Self {
        if place == 0 {
            return self;
        }
        match self {
            Self::Argument(_) | Self::Constant(_) => self,
            Self::Unary(_, a) => a.part(place - 1),
            Self::Binary(_, a, b) => {
                let first = a.size();
                if place <= first {
                    a.part(place - 1)
                } else {
                    b.part(place - 1 - first)
                }
            }
        }
    }

    /// Its constants, from left to right.
    pub fn constants(&mut self) -> Vec<&mut f64> {
        match self {
            Self::Argument(_) => vec![],
            Self::Constant(value) => vec![value],
            Self::Unary(_, a) => a.constants(),
            Self::Binary(_, a, b) => {
                let mut all = a.constants();
                all.extend(b.constants());
                all
            }
        }
    }

    /// As a term of a formula: `#1` for arguments, `$1` for constants, and the values of these.
    pub fn term(&self) -> crate::formula::Term {
        let (mut text, mut inner) = (String::new(), vec![]);
        self.write(&mut text, &mut inner, Place::Alone);
        crate::formula::Term { text, inner }
    }

    fn write(&self, text: &mut String, inner: &mut Vec<f64>, place: Place) {
        match self {
            Self::Argument(j) => {
                let _ = write!(text, "#{}", j + 1);
            }
            Self::Constant(value) => {
                inner.push(*value);
                let _ = write!(text, "${}", inner.len());
            }
            Self::Unary(function, a) => {
                let (before, after) = match function {
                    Unary::Abs => ("abs(", ")"),
                    Unary::Exp => ("exp(", ")"),
                    Unary::Log => ("log(abs(", "))"),
                    Unary::Sqrt => ("sqrt(abs(", "))"),
                    Unary::Tanh => ("tanh(", ")"),
                };
                *text += before;
                a.write(text, inner, Place::Alone);
                *text += after;
            }
            Self::Binary(operator, a, b) => {
                let (sign, left, right) = match operator {
                    Binary::Add => (" + ", Place::Alone, Place::Alone),
                    Binary::Subtract => (" - ", Place::Alone, Place::Factor),
                    Binary::Multiply => ("*", Place::Factor, Place::Factor),
                    Binary::Divide => ("/", Place::Factor, Place::Below),
                };
                let is_sum = matches!(operator, Binary::Add | Binary::Subtract);
                let wrapped = match place {
                    Place::Alone => false,
                    Place::Factor => is_sum,
                    Place::Below => true,
                };
                if wrapped {
                    text.push('(');
                }
                a.write(text, inner, left);
                *text += sign;
                b.write(text, inner, right);
                if wrapped {
                    text.push(')');
                }
            }
        }
    }
}

/// Where a part stands, which decides about brackets.
#[derive(Clone, Copy)]
enum Place {
    Alone,
    Factor,
    Below,
}
