//! Random expressions: what is written as text, parsed and compiled equals the tree it was
//! written from, in value and derivative.

use std::fmt;

use crate::oracle::{Number, function};
use latens_model::Model;
use latens_model::Point;
use num_dual::Dual64;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const NAMES: [&str; 5] = ["x", "y", "z", "u", "t"];

#[derive(Debug, Clone)]
enum Tree {
    Number(f64),
    /// Index into [`NAMES`].
    Name(usize),
    Negate(Box<Tree>),
    /// One of `+ - * /`.
    Binary(char, Box<Tree>, Box<Tree>),
    Power(Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
    /// `if(a < b, c, d)`.
    If(Box<[Tree; 4]>),
}

use Tree::{Binary, Call, If, Name, Negate, Power};

impl Tree {
    fn evaluate<D: Number>(&self, at: &[D; 5]) -> D {
        match self {
            Tree::Number(v) => D::from(*v),
            Name(i) => at[*i],
            Negate(a) => -a.evaluate(at),
            Binary(op, a, b) => {
                let (a, b) = (a.evaluate(at), b.evaluate(at));
                match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }
            }
            Power(a, b) => match **b {
                Tree::Number(n) => a.evaluate(at).powi(n as i32),
                _ => a.evaluate(at).powd(b.evaluate(at)),
            },
            Call(name, arguments) => {
                let values: Vec<D> = arguments.iter().map(|a| a.evaluate(at)).collect();
                function(name, &values)
            }
            If(parts) => {
                let [a, b, then, otherwise] = &**parts;
                let chosen = a.evaluate(at).re() < b.evaluate(at).re();
                (if chosen { then } else { otherwise }).evaluate(at)
            }
        }
    }

    /// Binding strength, as mathematics has it.
    fn strength(&self) -> u8 {
        match self {
            Binary('+' | '-', ..) => 1,
            Binary(..) => 2,
            Tree::Number(v) if *v < 0.0 => 3,
            Negate(_) => 3,
            Power(..) => 4,
            _ => 5,
        }
    }
}

/// With as few brackets as will do.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracket = |f: &mut fmt::Formatter<'_>, tree: &Tree, needed: bool| {
            if needed {
                write!(f, "({tree})")
            } else {
                write!(f, "{tree}")
            }
        };
        match self {
            Tree::Number(v) => write!(f, "{v}"),
            Name(i) => write!(f, "{}", NAMES[*i]),
            Negate(a) => {
                write!(f, "-")?;
                bracket(f, a, a.strength() < 3)
            }
            Binary(op, a, b) => {
                bracket(f, a, a.strength() < self.strength())?;
                write!(f, " {op} ")?;
                // these operators associate to the left, so an equal on the right needs brackets
                bracket(f, b, b.strength() <= self.strength())
            }
            Power(a, b) => {
                bracket(f, a, a.strength() <= 4)?;
                write!(f, "^")?;
                bracket(f, b, b.strength() < 3)
            }
            Call(name, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(Tree::to_string).collect();
                write!(f, "{name}({})", arguments.join(", "))
            }
            If(p) => write!(f, "if({} < {}, {}, {})", p[0], p[1], p[2], p[3]),
        }
    }
}

fn binary(op: char, a: Tree, b: Tree) -> Tree {
    Binary(op, Box::new(a), Box::new(b))
}

/// 1 + a², for functions of positive arguments only.
fn above_one(a: Tree) -> Tree {
    binary(
        '+',
        Tree::Number(1.0),
        Power(Box::new(a), Box::new(Tree::Number(2.0))),
    )
}

/// 0.9·tanh(a), for functions on (−1, 1).
fn below_one(a: Tree) -> Tree {
    binary('*', Tree::Number(0.9), Call("tanh", vec![a]))
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        3 => (0..NAMES.len()).prop_map(Name),
        1 => (-20..20_i32).prop_map(|v| Tree::Number(f64::from(v) / 8.0)),
    ];
    leaf.prop_recursive(5, 40, 4, |tree| {
        let operand = tree.clone();
        let operands = (tree.clone(), tree.clone());
        prop_oneof![
            4 => (prop::sample::select(vec!['+', '-', '*']), operands.clone())
                .prop_map(|(op, (a, b))| binary(op, a, b)),
            1 => operands.clone().prop_map(|(a, b)| binary('/', a, above_one(b))),
            1 => operand.clone().prop_map(|a| Negate(Box::new(a))),
            // the same twice: what compiles to one node must count twice
            1 => (prop::sample::select(vec!['+', '-', '*']), operand.clone())
                .prop_map(|(op, a)| binary(op, a.clone(), a)),
            2 => (prop::sample::select(SMOOTH.to_vec()), operand.clone())
                .prop_map(|(name, a)| Call(name, vec![a])),
            1 => (prop::sample::select(vec!["log", "sqrt"]), operand.clone())
                .prop_map(|(name, a)| Call(name, vec![above_one(a)])),
            1 => (prop::sample::select(vec!["exp", "expm1", "sinh", "cosh", "tan", "asin", "acos"]), operand.clone())
                .prop_map(|(name, a)| Call(name, vec![below_one(a)])),
            1 => (-3..4_i32, operand.clone()).prop_map(|(n, a)| {
                let base = if n < 0 { above_one(a) } else { a };
                Power(Box::new(base), Box::new(Tree::Number(f64::from(n))))
            }),
            1 => operands.clone().prop_map(|(a, b)| Power(Box::new(above_one(a)), Box::new(below_one(b)))),
            // powers of powers, which associate to the right
            1 => operands.clone().prop_map(|(a, b)| {
                let square = Power(Box::new(below_one(b)), Box::new(Tree::Number(2.0)));
                Power(Box::new(above_one(a)), Box::new(square))
            }),
            1 => (prop::sample::select(vec!["min", "max"]), operands.clone())
                .prop_map(|(name, (a, b))| Call(name, vec![a, b])),
            1 => operands.clone().prop_map(|(a, b)| Call("atan2", vec![a, above_one(b)])),
            1 => operands.clone().prop_map(|(a, b)| Call("mod", vec![a, above_one(b)])),
            1 => (prop::sample::select(vec!["smooth_min", "smooth_max"]), operands)
                .prop_map(|(name, (a, b))| Call(name, vec![a, b, Tree::Number(0.25)])),
            1 => [tree.clone(), tree.clone(), tree.clone(), tree].prop_map(|p| If(Box::new(p))),
        ]
    })
}

/// Functions that take any argument.
const SMOOTH: [&str; 9] = [
    "sin", "cos", "tanh", "atan", "sigmoid", "softplus", "linoid", "sinc", "abs",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn compiled_text_equals_the_tree(
        tree in trees(),
        at in prop::array::uniform5(-1.5..1.5_f64),
    ) {
        // once as it is, once by name, once both: the third shares every node with the others
        let text = format!(
            "[inputs]\nu = \"\"\n[expressions]\ne = \"{tree}\"\n[measurements]\nm = \"x\"\n\
             [states]\nx = {{ derivative = \"{tree}\" }}\ny = {{ derivative = \"e\" }}\n\
             z = {{ derivative = \"e + ({tree})\" }}\n"
        );
        let model = Model::from_text("random.toml", &text)
            .map_err(|e| TestCaseError::fail(e.to_string()))?;
        let point = Point { time: at[4], state: &at[..3], input: &at[3..4], theta: &[] };
        let (mut f, mut f_x) = ([0.0; 3], [0.0; 9]);
        model.system.linearise(&mut model.system.workspace(), point, &mut f, &mut f_x);

        let close = |compiled: f64, expected: f64| {
            compiled == expected || (compiled - expected).abs() < 1e-12 + 1e-10 * expected.abs()
        };
        let value = tree.evaluate(&at);
        prop_assert!(value.is_finite(), "{tree} = {value}");
        prop_assert!(close(f[0], value), "{tree}: {} against {value}", f[0]);
        prop_assert_eq!(f[1], f[0]);
        prop_assert_eq!(f[2], 2.0 * f[0]);
        for j in 0..3 {
            let mut seeded = at.map(Dual64::from);
            seeded[j].eps = 1.0;
            let slope = tree.evaluate(&seeded).eps;
            prop_assert!(close(f_x[j], slope), "∂({tree})/∂{}: {} against {slope}", NAMES[j], f_x[j]);
            prop_assert_eq!(f_x[3 + j], f_x[j]);
            prop_assert!(close(f_x[6 + j], 2.0 * slope));
        }
    }
}
