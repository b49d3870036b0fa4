//! The functions of the language, built from the operations of the graph.

use super::super::graph::{Binary, Graph, Id, Unary};

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

/// Functions that other languages have under another name, and what to write here.
pub(super) const FUNCTIONS_ELSEWHERE: [(&str, &str); 14] = [
    ("arccos", "write acos(x)"),
    ("arcsin", "write asin(x)"),
    ("arctan", "write atan(x)"),
    ("ceil", "write -floor(-x)"),
    ("clamp", "write min(max(x, low), high)"),
    ("clip", "write min(max(x, low), high)"),
    ("heaviside", "write if(x > 0, 1, 0)"),
    ("ln", "the natural logarithm is log(x)"),
    ("log10", "write log(x)/log(10)"),
    ("log2", "write log(x)/log(2)"),
    ("pow", "write x^y"),
    ("relu", "write max(x, 0)"),
    ("sgn", "write sign(x)"),
    ("where", "write if(condition, then, else)"),
];

/// The number of arguments of a built-in function.
pub(super) fn arguments(name: &str) -> Option<usize> {
    let function = FUNCTIONS.iter().find(|(f, _)| *f == name);
    function.map(|&(_, n)| n)
}

/// A function of [`FUNCTIONS`] applied to as many arguments as it takes.
pub(super) fn apply(g: &mut Graph, name: &str, v: &[Id]) -> Id {
    use Binary::{Add, Atan2, Divide, Max, Min, Multiply, Subtract};
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

/// sqrt(x² + w²): |x| rounded off within w.
fn smooth_abs(g: &mut Graph, x: Id, w: Id) -> Id {
    let (xx, ww) = (
        g.binary(Binary::Multiply, x, x),
        g.binary(Binary::Multiply, w, w),
    );
    let sum = g.binary(Binary::Add, xx, ww);
    g.unary(Unary::Sqrt, sum)
}

/// How a function is called, for who called it otherwise.
pub(super) fn signature(name: &str, arguments: usize) -> String {
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
