//! The units of a formula's constants: those with which all its parts have the dimension that they must have.
//!
//! Every part has a unit times powers of units that nobody knows, those of the constants. That two terms are added,
//! or that an exponential is taken, says that some such product has no dimension: in the exponents of these units, a
//! linear equation. The equations have no solution where the formula cannot be one of these quantities.

use std::collections::BTreeMap;

use super::super::expression::{Expr, Kind, Operator, parse};
use super::{DIMENSIONLESS_FUNCTIONS, Unit, parsed, product, shown};

/// A formula in names, and the units that are known.
#[derive(Debug, Clone, Copy)]
pub struct FormulaUnits<'a> {
    /// In the language of equations.
    pub text: &'a str,
    /// Names of what it is a function of, each with its unit where there is one.
    pub arguments: &'a [(String, Option<String>)],
    /// Names of its constants.
    pub constants: &'a [String],
    /// The unit of its value, where there is one.
    pub whole: Option<&'a str>,
}

impl FormulaUnits<'_> {
    /// The unit of each constant, where it follows from the others; `None` where the formula cannot have one
    /// dimension, whatever they are.
    ///
    /// A number in the formula has no unit; where that cannot be, it may have any.
    ///
    /// ```
    /// let arguments = [("v".to_string(), Some("m/s".to_string()))];
    /// let constants = ["a", "b", "c"].map(String::from);
    /// let friction = latens_model::FormulaUnits {
    ///     text: "a*v + b*tanh(v/c)",
    ///     arguments: &arguments,
    ///     constants: &constants,
    ///     whole: Some("N"),
    /// };
    /// let units = friction.of_constants().expect("it has one dimension");
    /// assert_eq!(units, ["N·s/m", "N", "m/s"].map(|unit| Some(unit.to_string())));
    /// let wrong = latens_model::FormulaUnits { text: "a*(v + v^2)", ..friction };
    /// assert!(wrong.of_constants().is_none());
    /// ```
    pub fn of_constants(&self) -> Option<Vec<Option<String>>> {
        self.solved(false).or_else(|| self.solved(true))
    }

    fn solved(&self, any_numbers: bool) -> Option<Vec<Option<String>>> {
        let expr = parse(self.text, 0).ok()?;
        let mut parts = Parts {
            formula: self,
            any_numbers,
            unknown: self.constants.len(),
            named: BTreeMap::new(),
            pure: vec![],
        };
        let value = parts.unit_of(&expr);
        if let Some(whole) = self.whole.and_then(dimension) {
            let whole = Open::known(whole);
            parts.pure.push(value.times(&whole, -1.0));
        }
        let found = solve(&parts.pure, parts.unknown)?;
        let units = self
            .arguments
            .iter()
            .filter_map(|(_, unit)| unit.as_deref());
        let written: Vec<&str> = units.chain(self.whole).collect();
        let constants = found.into_iter().take(self.constants.len());
        Some(
            constants
                .map(|unit| Some(shown(&written, &unit?)))
                .collect(),
        )
    }
}

/// A unit in which angles have no dimension: their functions ask for none.
fn dimension(text: &str) -> Option<Unit> {
    let mut unit = parsed(text)?;
    for angle in ["rad", "°", "deg"] {
        unit.remove(angle);
    }
    Some(unit)
}

/// A unit, times powers of unknown ones.
#[derive(Debug, Clone, Default)]
struct Open {
    known: Unit,
    unknown: BTreeMap<usize, f64>,
}

impl Open {
    fn known(known: Unit) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    fn unknown(unknown: usize) -> Self {
        Self {
            unknown: BTreeMap::from([(unknown, 1.0)]),
            ..Self::default()
        }
    }

    /// self · otherᵖ.
    fn times(&self, other: &Self, power: f64) -> Self {
        let mut unknown = self.unknown.clone();
        for (place, exponent) in &other.unknown {
            *unknown.entry(*place).or_insert(0.0) += power * exponent;
        }
        Self {
            known: product(&self.known, &other.known, power),
            unknown,
        }
    }
}

/// Goes through the parts of a formula.
struct Parts<'f> {
    formula: &'f FormulaUnits<'f>,
    any_numbers: bool,
    /// How many unknown units there are, those of the constants first.
    unknown: usize,
    /// Those of names without a unit.
    named: BTreeMap<String, usize>,
    /// What has no dimension.
    pure: Vec<Open>,
}

impl Parts<'_> {
    fn fresh(&mut self) -> Open {
        self.unknown += 1;
        Open::unknown(self.unknown - 1)
    }

    fn named(&mut self, name: &str) -> Open {
        let mut constants = self.formula.constants.iter();
        if let Some(place) = constants.position(|constant| constant == name) {
            return Open::unknown(place);
        }
        let mut arguments = self.formula.arguments.iter();
        let argument = arguments.find(|(argument, _)| argument == name);
        if let Some(unit) = argument.and_then(|(_, unit)| dimension(unit.as_deref()?)) {
            return Open::known(unit);
        }
        if let Some(place) = self.named.get(name) {
            return Open::unknown(*place);
        }
        self.named.insert(name.into(), self.unknown);
        self.fresh()
    }

    /// Two that are added or compared.
    fn same(&mut self, a: &Open, b: &Open) {
        self.pure.push(a.times(b, -1.0));
    }

    fn unit_of(&mut self, expr: &Expr) -> Open {
        match &expr.kind {
            Kind::Number(value) if *value == 0.0 || self.any_numbers => self.fresh(),
            Kind::Number(_) => Open::default(),
            Kind::Name(name) => self.named(name),
            Kind::Negate(inner) => self.unit_of(inner),
            Kind::Not(inner) => {
                self.unit_of(inner);
                Open::default()
            }
            Kind::Invalid => self.fresh(),
            Kind::Call {
                name, arguments, ..
            } => {
                let given: Vec<Open> = arguments.iter().map(|a| self.unit_of(a)).collect();
                self.call(name, &given)
            }
            Kind::Binary(operator, left, right) => {
                let [a, b] = [left, right].map(|side| self.unit_of(side));
                match operator {
                    Operator::Add | Operator::Subtract => {
                        self.same(&a, &b);
                        a
                    }
                    Operator::Multiply => a.times(&b, 1.0),
                    Operator::Divide => a.times(&b, -1.0),
                    Operator::Power => match constant(right) {
                        Some(power) => Open::default().times(&a, power),
                        None => {
                            self.pure.extend([a, b]);
                            Open::default()
                        }
                    },
                    Operator::Or | Operator::And => Open::default(),
                    _ => {
                        self.same(&a, &b);
                        Open::default()
                    }
                }
            }
        }
    }

    fn call(&mut self, name: &str, given: &[Open]) -> Open {
        let first = given.first().cloned().unwrap_or_default();
        match name {
            "abs" | "max" | "min" | "mod" | "smooth_abs" | "smooth_max" | "smooth_min" => {
                for other in given.iter().skip(1) {
                    self.same(&first, other);
                }
                first
            }
            "sqrt" => Open::default().times(&first, 0.5),
            "square" => Open::default().times(&first, 2.0),
            // of another unit it is the same function and a constant
            "log" | "sign" => Open::default(),
            "smooth_sign" | "atan2" => {
                self.same(&first, &given[given.len() - 1]);
                Open::default()
            }
            "if" if given.len() == 3 => {
                self.same(&given[1], &given[2]);
                given[1].clone()
            }
            _ if given.len() == 1
                && (DIMENSIONLESS_FUNCTIONS.contains(&name)
                    || DIMENSIONLESS_ARGUMENT_FUNCTIONS.contains(&name)) =>
            {
                self.pure.push(first);
                Open::default()
            }
            _ => self.fresh(),
        }
    }
}

/// Functions, beside [`DIMENSIONLESS_FUNCTIONS`], of what has no dimension.
const DIMENSIONLESS_ARGUMENT_FUNCTIONS: [&str; 11] = [
    "acos", "asin", "atan", "cosh", "expm1", "linoid", "log1p", "sinc", "sinh", "softplus", "floor",
];

/// The value of a number, negated or not.
fn constant(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        Kind::Number(value) => Some(*value),
        Kind::Negate(inner) => Some(-constant(inner)?),
        _ => None,
    }
}

/// The unknown units with which all of these have no dimension, where they are determined; `None` where
/// there are none.
fn solve(pure: &[Open], unknown: usize) -> Option<Vec<Option<Unit>>> {
    const NEGLIGIBLE_EXPONENT: f64 = 1e-9;
    let mut rows = pure.to_vec();
    let mut pivots: Vec<Option<usize>> = vec![None; unknown];
    let mut used = 0;
    for (place, pivot) in pivots.iter_mut().enumerate() {
        let at = |row: &Open| row.unknown.get(&place).copied().unwrap_or(0.0);
        let Some(k) = (used..rows.len()).find(|&k| at(&rows[k]).abs() > NEGLIGIBLE_EXPONENT) else {
            continue;
        };
        rows.swap(used, k);
        let pivot_row = Open::default().times(&rows[used], 1.0 / at(&rows[used]));
        for (k, row) in rows.iter_mut().enumerate() {
            if k == used {
                *row = pivot_row.clone();
            } else {
                *row = row.times(&pivot_row, -at(row));
            }
        }
        *pivot = Some(used);
        used += 1;
    }
    let is_nothing = |exponent: &f64| exponent.abs() < NEGLIGIBLE_EXPONENT;
    if rows[used..]
        .iter()
        .any(|row| !row.known.values().all(is_nothing))
    {
        return None;
    }
    let solved = |(place, pivot): (usize, &Option<usize>)| {
        let row = &rows[(*pivot)?];
        let mut others = row.unknown.iter().filter(|(other, _)| **other != place);
        if !others.all(|(_, exponent)| is_nothing(exponent)) {
            return None;
        }
        // exponents of formulas are halves, thirds or quarters at the finest
        let rounded = |exponent: &f64| (-exponent * 12.0).round() / 12.0;
        let unit = row.known.iter().map(|(name, e)| (name.clone(), rounded(e)));
        Some(unit.filter(|(_, e)| *e != 0.0).collect())
    };
    Some(pivots.iter().enumerate().map(solved).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str, constants: &[&str], whole: &str) -> Option<Vec<Option<String>>> {
        let given = [
            ("v", "m/s"),
            ("d", "K"),
            ("phi", "rad"),
            ("w", "rad/s"),
            ("bare", ""),
        ];
        let arguments: Vec<(String, Option<String>)> = given
            .iter()
            .map(|(name, unit)| ((*name).into(), (!unit.is_empty()).then(|| (*unit).into())))
            .collect();
        let constants: Vec<String> = constants.iter().map(|c| (*c).into()).collect();
        let formula = FormulaUnits {
            text,
            arguments: &arguments,
            constants: &constants,
            whole: (!whole.is_empty()).then_some(whole),
        };
        formula.of_constants()
    }

    /// Each unit is what the rest of its term leaves.
    #[test]
    fn constants_have_the_units_that_are_left() {
        let found = |text: &str, constants: &[&str], whole: &str| {
            let found = units(text, constants, whole).expect("it has one dimension");
            found
                .into_iter()
                .map(|unit| unit.unwrap_or("?".into()))
                .collect::<Vec<_>>()
        };
        let case = found("a*d + b*d*sqrt(abs(d))", &["a", "b"], "kW");
        assert_eq!(case, ["kW/K", "kW/K^1.5"]);
        let case = found("a*(1 - bare)*exp(v/c)", &["a", "c"], "1/s");
        assert_eq!(case, ["1/s", "m/s"]);
        let case = found("a*v^2/(k + v^2)", &["a", "k"], "N");
        assert_eq!(case, ["N", "m²/s²"]);
        let case = found(
            "(a*v + b*w^2*sin(phi))/(1 + k*sin(phi)^2)",
            &["a", "b", "k"],
            "m/s²",
        );
        assert_eq!(case, ["1/s", "m", ""]);
        // nothing is said where nothing follows
        assert_eq!(found("a*bare + b", &["a", "b"], "N"), ["?", "N"]);
        assert_eq!(found("a*v", &["a"], ""), ["?"]);
    }

    /// A number may have a unit that nobody wrote, but nothing makes a velocity and its square the same.
    #[test]
    fn what_cannot_be_added_is_found() {
        assert!(units("0.04*v + b", &["b"], "N").is_some());
        for text in [
            "a*(v + v^2)",
            "a*exp(v)",
            "a*v + b*v*tanh(v)",
            "v",
            "if(v > d, a, b)",
        ] {
            assert_eq!(units(text, &["a", "b"], "N"), None, "{text}");
        }
    }
}
