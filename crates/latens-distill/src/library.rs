//! The terms that formulas are made of: powers and products, kinks and roots, trigonometric functions of
//! angles, and functions with inner constants at a grid of values (exponentials, sigmoids, saturations, the
//! rate functions of neurons).

use crate::formula::Term;
use crate::samples::Target;

/// Arguments up to which functions with inner constants are also multiplied by other arguments.
pub const FEW_ARGUMENTS: usize = 4;

/// What is known of an argument.
#[derive(Debug, Clone, Copy)]
struct Argument {
    least: f64,
    most: f64,
    is_angle: bool,
}

impl Argument {
    fn crosses_zero(&self) -> bool {
        self.least < 0.0 && self.most > 0.0
    }

    fn is_share(&self) -> bool {
        self.least >= 0.0 && self.most <= 1.0
    }

    fn half_range(&self) -> f64 {
        0.5 * (self.most - self.least)
    }
}

/// The terms for one output of a network, and what a sum of them may be divided by.
pub struct Library {
    /// The constant, and powers and products.
    pub powers: Vec<Term>,
    /// Kinks, roots, trigonometric functions, and the terms of the user.
    pub bent: Vec<Term>,
    /// Functions with inner constants, and their products with other arguments.
    pub curved: Vec<Term>,
    /// Functions ψ of denominators 1 + K ψ.
    pub below: Vec<String>,
}

impl Library {
    /// For a target whose arguments have these units; `proposed` are terms of the user.
    pub fn new(target: &Target, units: &[Option<String>], proposed: &[Term]) -> Self {
        let arguments: Vec<Argument> = (0..units.len())
            .map(|j| {
                let unit = units[j].as_deref();
                Argument {
                    least: target.argument(j).fold(f64::INFINITY, f64::min),
                    most: target.argument(j).fold(f64::NEG_INFINITY, f64::max),
                    is_angle: matches!(unit, Some("rad" | "°" | "deg")),
                }
            })
            .collect();
        let n = arguments.len();
        let mut all = vec![Term::plain("1")];
        all.extend(
            powers(n, if n <= FEW_ARGUMENTS { 3 } else { 2 })
                .into_iter()
                .map(Term::plain),
        );
        let mut plain = vec![];
        let mut curved = vec![];
        let mut below = vec![];
        for (i, argument) in arguments.iter().enumerate() {
            let x = format!("#{}", i + 1);
            let bent = bent(&x, argument);
            let others: Vec<usize> = (0..n).filter(|j| *j != i).collect();
            for text in &bent {
                plain.push(Term::plain(text.clone()));
                for j in &others {
                    plain.push(Term::plain(format!("#{}*{text}", j + 1)));
                    if argument.is_angle {
                        plain.push(Term::plain(format!("#{}^2*{text}", j + 1)));
                    }
                }
            }
            for term in shaped(&x, argument, target.argument(i)) {
                if n <= FEW_ARGUMENTS {
                    for j in &others {
                        let times = |factor: String| Term {
                            text: format!("{factor}*{}", term.text),
                            inner: term.inner.clone(),
                        };
                        curved.push(times(format!("#{}", j + 1)));
                        if arguments[*j].is_share() {
                            curved.push(times(format!("(1 - #{})", j + 1)));
                        }
                    }
                }
                curved.push(term);
            }
            if argument.is_angle {
                below.push(format!("sin({x})^2"));
            }
            below.push(format!("{x}^2"));
            below.push(format!("{x}^4"));
            if argument.least >= 0.0 {
                below.push(x.clone());
            } else {
                below.push(format!("abs({x})"));
            }
        }
        plain.extend(proposed.iter().cloned());
        Self {
            powers: all,
            bent: plain,
            curved,
            below,
        }
    }
}

/// Products of powers up to a degree.
fn powers(n: usize, degree: usize) -> Vec<String> {
    fn add(n: usize, from: usize, left: usize, text: &str, out: &mut Vec<String>) {
        for j in from..n {
            for power in 1..=left {
                let factor = if power == 1 {
                    format!("#{}", j + 1)
                } else {
                    format!("#{}^{power}", j + 1)
                };
                let product = if text.is_empty() {
                    factor
                } else {
                    format!("{text}*{factor}")
                };
                out.push(product.clone());
                add(n, j + 1, left - power, &product, out);
            }
        }
    }
    let mut out = vec![];
    add(n, 0, degree, "", &mut out);
    out
}

/// Functions of one argument without inner constants, that are no powers.
fn bent(x: &str, argument: &Argument) -> Vec<String> {
    let mut texts: Vec<String> = vec![];
    if argument.crosses_zero() {
        for text in [
            "abs(x)",
            "x*abs(x)",
            "sqrt(abs(x))",
            "x*sqrt(abs(x))",
            "sign(x)",
        ] {
            texts.push(text.replace('x', x));
        }
    } else {
        texts.push(format!("sqrt(abs({x}))"));
        texts.push(format!("{x}*sqrt(abs({x}))"));
        if argument.least.abs().min(argument.most.abs()) > 1e-3 * argument.half_range() {
            texts.push(format!("1/{x}"));
            texts.push(format!("log(abs({x}))"));
        }
    }
    if argument.is_angle {
        for function in ["sin(x)", "cos(x)", "sin(x)*cos(x)", "sin(x)^2"] {
            texts.push(function.replace("(x)", &format!("({x})")));
        }
    }
    texts
}

/// Functions of one argument with inner constants, at a grid of values of these.
fn shaped(x: &str, argument: &Argument, values: impl Iterator<Item = f64>) -> Vec<Term> {
    let half = argument.half_range();
    if half.is_nan() || half <= 0.0 {
        return vec![];
    }
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
    let mut terms = vec![];
    let mut push = |text: String, inner: &[f64]| {
        terms.push(Term {
            text,
            inner: inner.to_vec(),
        });
    };
    for part in [0.1, 0.18, 0.32, 0.56, 1.0, 1.8] {
        push(format!("exp({x}/$1)"), &[part * half]);
        push(format!("exp({x}/$1)"), &[-part * half]);
    }
    for centre in [0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95] {
        for width in [0.04, 0.1, 0.25] {
            push(
                format!("sigmoid(({x} - $1)/$2)"),
                &[at(centre), width * half],
            );
        }
    }
    for centre in [0.1, 0.3, 0.5, 0.7, 0.9] {
        for width in [0.1, 0.25, -0.1, -0.25] {
            push(
                format!("linoid(({x} - $1)/$2)"),
                &[at(centre), width * half],
            );
        }
    }
    if argument.crosses_zero() {
        for width in [0.003, 0.01, 0.03, 0.1, 0.3] {
            push(format!("tanh({x}/$1)"), &[width * half]);
        }
    } else if argument.least >= 0.0 {
        for part in [0.1, 0.3, 1.0, 3.0] {
            let k = part * argument.most;
            push(format!("{x}/($1 + {x})"), &[k]);
            push(format!("{x}^2/($1 + {x}^2)"), &[k * k]);
            push(format!("{x}^4/($1 + {x}^4)"), &[k.powi(4)]);
        }
    }
    terms
}
