//! The one generator: a program of the compiled system, operation by operation, in a language.
//!
//! A [`Language`] says how a number, a variable or an operation is written. Whatever it answers stands for
//! the value in later operations: an expression or a name in a text, a tensor's name in a graph.

use latens::model::System;
use latens::model::tape::{Binary, Instruction, Tape, Unary};

/// How a language writes what a program is made of.
pub trait Language {
    /// A number, as an operand.
    fn number(&mut self, value: f64) -> String;
    /// The time.
    fn time(&mut self) -> String;
    /// A state, by its place.
    fn state(&mut self, i: usize) -> String;
    /// An input, by its place.
    fn input(&mut self, i: usize) -> String;
    /// A learned constant, by its place.
    fn constant(&mut self, i: usize) -> String;
    /// A function of one operand.
    fn unary(&mut self, op: Unary, a: &str) -> String;
    /// A function of two operands.
    fn binary(&mut self, op: Binary, a: &str, b: &str) -> String;
    /// An integer power.
    fn power(&mut self, a: &str, n: i32) -> String;
    /// `a` where the condition is not 0, else `b`.
    fn select(&mut self, condition: &str, a: &str, b: &str) -> String;
    /// A table's value, or its slope.
    fn lookup(&mut self, table: usize, a: &str, slope: bool) -> String;
    /// Applies a network, with its derivatives where these are read.
    fn call(&mut self, call: usize, network: usize, arguments: &[String], slopes: bool);
    /// An output of a call.
    fn output(&mut self, call: usize, k: usize) -> String;
    /// ∂(output k)/∂(argument j) of a call, with the number of its network's arguments.
    fn slope(&mut self, call: usize, k: usize, j: usize, arguments: usize) -> String;
    /// Gives a value a name, so that it is computed once.
    fn keep(&mut self, slot: usize, value: String) -> String;
}

/// The function of an operation with one operand that is no sign: under its common name, or under the
/// model language's where libraries have none.
pub enum Function {
    /// exp, sin, abs, …
    Common(&'static str),
    /// sigmoid, linoid, …
    Own(&'static str),
}

/// The name of a function; `None` of `-` and `not`.
pub fn function(op: Unary) -> Option<Function> {
    use Function::{Common, Own};
    Some(match op {
        Unary::Negate | Unary::Not => return None,
        Unary::Exp => Common("exp"),
        Unary::Expm1 => Common("expm1"),
        Unary::Log => Common("log"),
        Unary::Log1p => Common("log1p"),
        Unary::Sqrt => Common("sqrt"),
        Unary::Sin => Common("sin"),
        Unary::Cos => Common("cos"),
        Unary::Tan => Common("tan"),
        Unary::Asin => Common("asin"),
        Unary::Acos => Common("acos"),
        Unary::Atan => Common("atan"),
        Unary::Sinh => Common("sinh"),
        Unary::Cosh => Common("cosh"),
        Unary::Tanh => Common("tanh"),
        Unary::Abs => Common("abs"),
        Unary::Sign => Common("sign"),
        Unary::Floor => Common("floor"),
        Unary::Sigmoid => Own("sigmoid"),
        Unary::Softplus => Own("softplus"),
        Unary::Linoid => Own("linoid"),
        Unary::LinoidSlope => Own("linoid_slope"),
        Unary::Sinc => Own("sinc"),
        Unary::SincSlope => Own("sinc_slope"),
    })
}

/// The sign of an operation that every language writes between its operands.
pub fn sign(op: Binary) -> Option<&'static str> {
    match op {
        Binary::Add => Some("+"),
        Binary::Subtract => Some("-"),
        Binary::Multiply => Some("*"),
        Binary::Divide => Some("/"),
        _ => None,
    }
}

/// The sign of a comparison, likewise.
pub fn comparison(op: Binary) -> Option<&'static str> {
    match op {
        Binary::Less => Some("<"),
        Binary::LessEqual => Some("<="),
        Binary::Equal => Some("=="),
        Binary::NotEqual => Some("!="),
        _ => None,
    }
}

/// Writes a program; returns what its roots are called.
pub fn generate(tape: &Tape, system: &System, language: &mut impl Language) -> Vec<String> {
    let called: Vec<usize> = system.called().collect();
    let base = tape.constants().len();
    let mut slots: Vec<String> = tape
        .constants()
        .iter()
        .map(|value| language.number(*value))
        .collect();
    let reads_slopes = |call: usize| {
        tape.instructions().iter().any(|i| match *i {
            Instruction::Differentiate(c, ..) | Instruction::Slope(c, ..) => c == call,
            _ => false,
        })
    };
    for (i, instruction) in tape.instructions().iter().enumerate() {
        let (mut named, s) = (true, &slots);
        let value = match *instruction {
            Instruction::Time => language.time(),
            Instruction::State(i) => language.state(i),
            Instruction::Input(i) => language.input(i),
            Instruction::Theta(i) => language.constant(i),
            Instruction::Unary(op, a) => {
                named = false;
                language.unary(op, &s[a])
            }
            Instruction::Binary(op, a, b) => {
                named = false;
                language.binary(op, &s[a], &s[b])
            }
            Instruction::Powi(a, n) => {
                named = false;
                language.power(&s[a], n)
            }
            Instruction::Select(c, a, b) => {
                named = false;
                language.select(&s[c], &s[a], &s[b])
            }
            Instruction::Lookup(table, a) => {
                named = false;
                language.lookup(table, &s[a], false)
            }
            Instruction::LookupSlope(table, a) => {
                named = false;
                language.lookup(table, &s[a], true)
            }
            Instruction::Evaluate(call, k) => {
                let slots = tape.arguments(call).iter();
                let arguments: Vec<String> = slots.map(|a| s[*a].clone()).collect();
                language.call(call, called[call], &arguments, reads_slopes(call));
                language.output(call, k)
            }
            Instruction::Output(call, k) => language.output(call, k),
            Instruction::Differentiate(call, k, j) | Instruction::Slope(call, k, j) => {
                let arguments = system.networks()[called[call]].arguments;
                language.slope(call, k, j, arguments)
            }
        };
        slots.push(if named {
            value
        } else {
            language.keep(base + i, value)
        });
    }
    tape.roots().iter().map(|r| slots[*r].clone()).collect()
}

/// Whether a program looks into a table.
pub fn uses_table(tape: &Tape, table: usize) -> bool {
    tape.instructions().iter().any(|i| match *i {
        Instruction::Lookup(t, _) | Instruction::LookupSlope(t, _) => t == table,
        _ => false,
    })
}
