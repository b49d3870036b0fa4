//! The units of what networks are given and put out, as far as those that the file gives determine them.
//!
//! A network stands in an equation whose other parts have units: as a term of a sum it has the unit of the
//! others, as a factor what is left of the whole. A number without a unit may stand for anything (`2*v` with 2
//! per second), so that nothing follows across one. Where two places say different things, nothing is said.

mod formula;

use std::collections::BTreeMap;

pub use formula::FormulaUnits;

use super::expression::{Expr, Kind, Operator};
use super::file::ModelFile;

/// Units that a network's calls agree on; `None` where nothing says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkUnits {
    /// Of what it is given.
    pub arguments: Vec<Option<String>>,
    /// Of what it puts out.
    pub outputs: Vec<Option<String>>,
}

/// Of a network of a file, which is called with so many arguments.
pub(crate) fn of_network(file: &ModelFile, network: usize, arguments: usize) -> NetworkUnits {
    let def = &file.networks[network];
    let given = |k: usize| def.units.get(k).or(def.units.first());
    let mut calls = Calls {
        file,
        network: &def.name.value,
        outputs: &def.outputs,
        found: vec![vec![]; def.outputs.len()],
        arguments: vec![vec![]; arguments],
        depth: 0,
    };
    calls.everywhere();
    let outputs = calls.found.iter().enumerate().map(|(k, found)| {
        let shown = || Some(shown(&written(file), &agreed(found)?));
        given(k).cloned().or_else(shown)
    });
    let arguments = calls.arguments.iter();
    NetworkUnits {
        outputs: outputs.collect(),
        arguments: arguments
            .map(|found| Some(shown(&written(file), &agreed(found)?)))
            .collect(),
    }
}

/// A product of powers of names; empty where there is no dimension.
type Unit = BTreeMap<String, f64>;

/// What all places say.
fn agreed(found: &[Option<Unit>]) -> Option<Unit> {
    let first = found.first()?.as_ref()?;
    let same = found.iter().all(|unit| unit.as_ref() == Some(first));
    same.then(|| first.clone())
}

/// The calls of a network, and the units of where they stand.
struct Calls<'f> {
    file: &'f ModelFile,
    network: &'f str,
    outputs: &'f [String],
    /// Of each output, at each call.
    found: Vec<Vec<Option<Unit>>>,
    /// Of each argument, at each call.
    arguments: Vec<Vec<Option<Unit>>>,
    /// Names that are being looked into: expressions may not use themselves, but a file may have mistakes.
    depth: usize,
}

impl Calls<'_> {
    fn everywhere(&mut self) {
        let file = self.file;
        let time = parsed(&file.time_unit);
        for state in &file.states {
            let rate = time.as_ref().map(|time| {
                let unit = parsed(&state.unit).unwrap_or_default();
                product(&unit, time, -1.0)
            });
            if let Some(derivative) = &state.derivative {
                self.visit(derivative, rate);
            }
        }
        for measurement in &file.measurements {
            self.visit(&measurement.value, parsed(&measurement.unit));
        }
    }

    /// Looks for calls in an expression whose unit is known, or not.
    fn visit(&mut self, expr: &Expr, whole: Option<Unit>) {
        match &expr.kind {
            Kind::Number(_) | Kind::Invalid => {}
            Kind::Name(name) => {
                let mut expressions = self.file.expressions.iter();
                let found = expressions.find(|(n, _)| n.value == *name);
                if let (Some((_, definition)), true) = (found, self.depth < DEPTH) {
                    self.depth += 1;
                    self.visit(definition, whole);
                    self.depth -= 1;
                }
            }
            Kind::Negate(inner) => self.visit(inner, whole),
            Kind::Not(inner) => self.visit(inner, None),
            Kind::Call {
                name,
                arguments,
                output,
                ..
            } => {
                if name == self.network {
                    let output = output.as_ref().map(|(name, _)| name);
                    let place = self.outputs.iter().position(|o| Some(o) == output);
                    self.found[place.unwrap_or(0)].push(whole.clone());
                    for (k, argument) in arguments.iter().enumerate() {
                        let unit = self.unit(argument);
                        self.arguments[k].push(unit);
                    }
                }
                let kept = UNIT_KEEPING_FUNCTIONS.contains(&name.as_str());
                for argument in arguments {
                    self.visit(argument, whole.clone().filter(|_| kept));
                }
            }
            Kind::Binary(operator, left, right) => {
                let [of_left, of_right] = [left, right].map(|side| self.unit(side));
                let (to_left, to_right) = match operator {
                    Operator::Add | Operator::Subtract => {
                        let of_left = together(whole.clone(), of_left);
                        let of_right = together(whole, of_right);
                        (of_right, of_left)
                    }
                    Operator::Multiply => (
                        times(whole.as_ref(), of_right.as_ref(), -1.0),
                        times(whole.as_ref(), of_left.as_ref(), -1.0),
                    ),
                    Operator::Divide => (
                        times(whole.as_ref(), of_right.as_ref(), 1.0),
                        times(of_left.as_ref(), whole.as_ref(), -1.0),
                    ),
                    _ => (None, None),
                };
                self.visit(left, to_left);
                self.visit(right, to_right);
            }
        }
    }

    /// The unit of an expression, where its parts say so.
    fn unit(&mut self, expr: &Expr) -> Option<Unit> {
        match &expr.kind {
            Kind::Number(_) | Kind::Invalid | Kind::Not(_) => None,
            Kind::Negate(inner) => self.unit(inner),
            Kind::Name(name) => self.named(name),
            Kind::Call {
                name, arguments, ..
            } if UNIT_KEEPING_FUNCTIONS.contains(&name.as_str()) => {
                arguments.iter().find_map(|argument| self.unit(argument))
            }
            Kind::Call { name, .. } => DIMENSIONLESS_FUNCTIONS
                .contains(&name.as_str())
                .then(Unit::new),
            Kind::Binary(operator, left, right) => {
                let [of_left, of_right] = [left, right].map(|side| self.unit(side));
                match operator {
                    Operator::Add | Operator::Subtract => together(of_left, of_right),
                    Operator::Multiply => times(of_left.as_ref(), of_right.as_ref(), 1.0),
                    Operator::Divide => times(of_left.as_ref(), of_right.as_ref(), -1.0),
                    Operator::Power => match right.kind {
                        Kind::Number(power) if power.abs() < 9.0 => {
                            Some(product(&Unit::new(), &of_left?, power))
                        }
                        _ => None,
                    },
                    _ => None,
                }
            }
        }
    }

    fn named(&mut self, name: &str) -> Option<Unit> {
        let file = self.file;
        let states = file.states.iter().map(|s| (&s.name.value, &s.unit));
        let inputs = file.inputs.iter().map(|u| (&u.name.value, &u.unit));
        let unknowns = file.unknowns.iter().map(|u| (&u.name.value, &u.unit));
        let mut given = states.chain(inputs).chain(unknowns);
        if let Some((_, unit)) = given.find(|(n, _)| *n == name) {
            return parsed(unit);
        }
        if name == "t" {
            return parsed(&file.time_unit);
        }
        let definition = file.expressions.iter().find(|(n, _)| n.value == name)?;
        if self.depth == DEPTH {
            return None;
        }
        self.depth += 1;
        let unit = self.unit(&definition.1);
        self.depth -= 1;
        unit
    }
}

/// Expressions within expressions.
const DEPTH: usize = 50;
/// Functions whose value has the unit of what they are given.
const UNIT_KEEPING_FUNCTIONS: [&str; 3] = ["abs", "max", "min"];
/// Functions whose value has no dimension.
const DIMENSIONLESS_FUNCTIONS: [&str; 8] =
    ["exp", "sin", "cos", "tan", "tanh", "sigmoid", "sign", "log"];

/// Of two that have to be the same: the one that is known; nothing where they differ.
fn together(a: Option<Unit>, b: Option<Unit>) -> Option<Unit> {
    match (a, b) {
        (Some(a), Some(b)) => (a == b).then_some(a),
        (a, b) => a.or(b),
    }
}

fn times(a: Option<&Unit>, b: Option<&Unit>, power: f64) -> Option<Unit> {
    Some(product(a?, b?, power))
}

/// a·bᵖ.
fn product(a: &Unit, b: &Unit, power: f64) -> Unit {
    let mut unit = a.clone();
    for (name, exponent) in b {
        *unit.entry(name.clone()).or_insert(0.0) += power * exponent;
    }
    unit.retain(|_, exponent| *exponent != 0.0);
    unit
}

/// A unit as people write it: `kWh/K`, `m/s²`, `m s^-2`, `1/(min·mM)`; `None` where nothing is written, or
/// where it can be read in two ways, such as `W/m²K`.
fn parsed(text: &str) -> Option<Unit> {
    let mut unit = Unit::new();
    let text = text.trim();
    let mut rest = text;
    let (mut sign, mut within) = (1.0, false);
    // whether a factor has just ended without anything between it and the next
    let mut adjacent = false;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '(' if sign < 0.0 && !within => (within, adjacent) = (true, false),
            ')' if within => (within, sign, adjacent) = (false, 1.0, true),
            '/' if !within => (sign, adjacent) = (-1.0, false),
            '*' | '·' | '⋅' | ' ' => adjacent = false,
            '1' | '-' | '–' if !adjacent => {}
            _ if c.is_alphabetic() || matches!(c, '°' | '%' | '\'') => {
                let named = |c: char| c.is_alphabetic() || matches!(c, '°' | '%' | '\'');
                let end = rest.find(|c| !named(c)).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                let (exponent, after) = exponent(after)?;
                if adjacent {
                    return None;
                }
                for (name, power) in plain(name) {
                    unit = product(&unit, &Unit::from([(name.into(), power)]), sign * exponent);
                }
                // a stroke is for the next factor alone, but for one in brackets
                sign = if within { sign } else { 1.0 };
                adjacent = true;
                rest = after;
                continue;
            }
            _ => return None,
        }
        rest = after;
    }
    (!text.is_empty() && !within).then_some(unit)
}

/// The exponent after a name, and what follows it; after `^` it may be a decimal.
fn exponent(text: &str) -> Option<(f64, &str)> {
    const RAISED_DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = text.strip_prefix('^');
    let mut rest = raised.unwrap_or(text);
    let (mut value, mut sign, mut any) = (0.0, 1.0, false);
    if let Some(after) = rest.strip_prefix('⁻').or_else(|| rest.strip_prefix('-')) {
        (sign, rest) = (-1.0, after);
    }
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (decimal, after) = rest.split_at(end.unwrap_or(rest.len()));
    if raised.is_some() && decimal.contains('.') {
        let value: f64 = decimal.parse().ok()?;
        return Some((sign * value, after));
    }
    while let Some(c) = rest.chars().next() {
        let small = RAISED_DIGITS.iter().position(|r| *r == c);
        let Some(digit) = small.or(c.to_digit(10).map(|d| d as usize)) else {
            break;
        };
        value = value * 10.0 + digit as f64;
        if value > 99.0 {
            return None;
        }
        (rest, any) = (&rest[c.len_utf8()..], true);
    }
    if any {
        Some((sign * value, rest))
    } else if sign < 0.0 || raised.is_some() {
        None
    } else {
        Some((1.0, rest))
    }
}

/// What a name is made of: a difference of degrees is one of kelvins, and an hour of a power is a product.
fn plain(name: &str) -> Vec<(&str, f64)> {
    match name {
        "°C" | "degC" => vec![("K", 1.0)],
        "Wh" | "kWh" | "MWh" | "Ah" | "mAh" => vec![(&name[..name.len() - 1], 1.0), ("h", 1.0)],
        _ => vec![(name, 1.0)],
    }
}

/// The units that a file has, as it writes them.
fn written(file: &ModelFile) -> Vec<&str> {
    let states = file.states.iter().map(|s| s.unit.as_str());
    let inputs = file.inputs.iter().map(|u| u.unit.as_str());
    let unknowns = file.unknowns.iter().map(|u| u.unit.as_str());
    states.chain(inputs).chain(unknowns).collect()
}

/// As somebody has written it, where it is among these; else its names with their exponents.
fn shown(written: &[&str], unit: &Unit) -> String {
    let mut given = written.iter();
    if let Some(text) = given.find(|text| parsed(text).as_ref() == Some(unit)) {
        return (*text).to_string();
    }
    let side = |sign: f64| {
        let factors = unit.iter().filter(|(_, e)| e.signum() == sign);
        let factors = factors.map(|(name, exponent)| format!("{name}{}", raised(exponent.abs())));
        factors.collect::<Vec<_>>()
    };
    let (above, below) = (side(1.0), side(-1.0));
    let over = if above.is_empty() {
        "1".into()
    } else {
        above.join("·")
    };
    match below.as_slice() {
        [] if above.is_empty() => String::new(),
        [] => over,
        [unit] => format!("{over}/{unit}"),
        several => format!("{over}/({})", several.join("·")),
    }
}

fn raised(exponent: f64) -> String {
    let digit = |c: char| match c {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        // the others follow each other
        c => char::from_u32('⁰' as u32 + c as u32 - '0' as u32).unwrap_or(c),
    };
    if exponent == 1.0 {
        String::new()
    } else if exponent.fract() == 0.0 {
        exponent.to_string().chars().map(digit).collect()
    } else {
        format!("^{exponent}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read;

    fn units(text: &str) -> NetworkUnits {
        let (file, mistakes) = read(text);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        of_network(&file, 0, 1)
    }

    fn output(equation: &str, more: &str) -> Option<String> {
        let text = format!(
            "[time]\nunit = \"s\"\n[inputs]\nF = \"N\"\nb = \"\"\n[states.x]\nderivative = \"v\"\nunit = \"m\"\n\
             [states.v]\nderivative = \"{equation}\"\nunit = \"m/s\"\n[networks.net]\nlayers = []\n{more}\n\
             [unknowns]\nmass = {{ guess = 1, unit = \"N·s²/m\" }}\nbare = {{ guess = 1 }}\n[measurements]\nx = \"x\"\n"
        );
        units(&text).outputs[0].clone()
    }

    /// The unit is what makes the equation one of the same dimension on both sides.
    #[test]
    fn the_equation_says_what_a_network_is() {
        for (equation, expected) in [
            ("net(v)", "m/s²"),
            ("-net(v) + 3", "m/s²"),
            ("(F - net(v))/mass", "N"),
            ("(net(v)*v + F)/mass", "N·s/m"),
            ("F/net(v)", "N·s²/m"),
            ("max(F, net(v))/mass", "N"),
        ] {
            assert_eq!(
                output(equation, "").as_deref(),
                Some(expected),
                "{equation}"
            );
        }
    }

    /// Nothing follows across a number or a constant without a unit, nor from places that disagree.
    #[test]
    fn nothing_is_guessed() {
        for equation in [
            "2*net(v)",
            "net(v)*bare",
            "net(v)^2",
            "tanh(net(v))",
            "net(v) + F*net(v)/mass",
            "(F*v - net(v)*b)/mass",
        ] {
            assert_eq!(output(equation, ""), None, "{equation}");
        }
        assert_eq!(output("2*net(v)", "unit = \"1/s\"").as_deref(), Some("1/s"));
    }

    /// The heat loss of a room is a power, of a difference of temperatures.
    #[test]
    fn degrees_and_hours_of_power_are_understood() {
        let text = "[time]\nunit = \"h\"\n[inputs]\nTo = \"°C\"\n[states.Ta]\n\
                    derivative = \"(g*(To - Ta) - loss(Ta - To))/Ca\"\nunit = \"°C\"\n[networks.loss]\nlayers = []\n\
                    [unknowns]\nCa = { guess = 1, unit = \"kWh/K\" }\ng = { guess = 1, unit = \"kW/K\" }\n\
                    [measurements]\nTa = \"Ta\"\n";
        let found = units(text);
        assert_eq!(found.outputs[0].as_deref(), Some("kW"));
        assert_eq!(found.arguments[0].as_deref(), Some("°C"));
    }

    #[test]
    fn units_are_read_as_people_write_them() {
        for (a, b) in [
            ("m/s²", "m·s^-2"),
            ("m/s/s", "m s⁻²"),
            ("1/(min·mM)", "1/min/mM"),
            ("kWh", "kW h"),
            ("µA/cm²", "µA/cm2"),
            ("kW/K^1.5", "kW K^-1.5"),
        ] {
            assert_eq!(parsed(a), parsed(b), "{a} {b}");
            assert!(parsed(a).is_some(), "{a}");
        }
        for text in ["", "W/m²K", "?", "m/(s", "m^"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(parsed("-"), Some(Unit::new()));
    }
}
