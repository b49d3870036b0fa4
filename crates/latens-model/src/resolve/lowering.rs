//! Expressions to nodes of the graph.

use super::super::diagnostic::Span;
use super::super::expression::{Expr, Kind, Operator};
use super::super::file::{InputDef, UnknownDef, correction, difference_name, undelayed};
use super::super::graph::{Binary, Graph, Id, Node, Unary};
use super::super::limits::{ARGUMENTS, DEPTH};
use super::functions::{self, FUNCTIONS, FUNCTIONS_ELSEWHERE};
use super::names::{PI, Symbol, TIME};
use super::{Lowering, Place, Variant};
use crate::suggest::suggest;

impl<'a> Lowering<'a> {
    /// The node of an expression; `None` where it has a mistake.
    pub fn lower(&mut self, expr: &'a Expr, place: Place) -> Option<Id> {
        self.depth += 1;
        let node = if self.depth > DEPTH {
            self.too_deep(&expr.span)
        } else {
            self.lower_kind(expr, place)
        };
        self.depth -= 1;
        node
    }

    fn too_deep(&mut self, span: &Span) -> Option<Id> {
        let message = format!(
            "{} has more than {DEPTH} expressions inside each other, with those that it names",
            self.root
        );
        self.fail(span, message, "shorten the chain of [expressions]")
    }

    fn lower_kind(&mut self, expr: &'a Expr, place: Place) -> Option<Id> {
        match &expr.kind {
            Kind::Number(value) => Some(self.graph.constant(*value)),
            Kind::Name(name) => self.name(name, &expr.span, place),
            Kind::Negate(a) => {
                let a = self.lower(a, place)?;
                Some(self.graph.unary(Unary::Negate, a))
            }
            Kind::Not(a) => {
                let a = self.lower(a, place)?;
                Some(self.graph.unary(Unary::Not, a))
            }
            Kind::Binary(..) => self.operations(expr, place),
            Kind::Call {
                name,
                name_span,
                arguments,
                output,
            } => {
                let values = arguments.iter().map(|a| self.lower(a, place)).collect();
                self.call(name, name_span, values, output.as_ref(), place)
            }
            Kind::Invalid => None,
        }
    }

    /// An infix operation. A sum of many terms is one inside another on its left: those are taken in a
    /// loop, which no length exhausts.
    fn operations(&mut self, expr: &'a Expr, place: Place) -> Option<Id> {
        let (mut first, mut rest) = (expr, Vec::new());
        while let Kind::Binary(operator, left, right) = &first.kind {
            rest.push((*operator, &**right));
            first = left;
        }
        let mut sum = self.lower(first, place);
        for (operator, right) in rest.into_iter().rev() {
            // both sides, for the mistakes of both
            let right = self.lower(right, place);
            sum = sum.zip(right).map(|(a, b)| {
                let (operation, a, b) = match operator {
                    Operator::Or => (Binary::Or, a, b),
                    Operator::And => (Binary::And, a, b),
                    Operator::Less => (Binary::Less, a, b),
                    Operator::LessEqual => (Binary::LessEqual, a, b),
                    Operator::Greater => (Binary::Less, b, a),
                    Operator::GreaterEqual => (Binary::LessEqual, b, a),
                    Operator::Equal => (Binary::Equal, a, b),
                    Operator::NotEqual => (Binary::NotEqual, a, b),
                    Operator::Add => (Binary::Add, a, b),
                    Operator::Subtract => (Binary::Subtract, a, b),
                    Operator::Multiply => (Binary::Multiply, a, b),
                    Operator::Divide => (Binary::Divide, a, b),
                    Operator::Power => (Binary::Power, a, b),
                };
                self.graph.binary(operation, a, b)
            });
        }
        sum
    }

    /// A named constant or expression, built once.
    pub fn named(&mut self, name: &'a str, expr: &'a Expr, place: Place) -> Option<Id> {
        if let Some(&done) = self.memo.get(&(name, place)) {
            return done;
        }
        if self.looped.contains(name) {
            return None;
        }
        if let Some(at) = self.stack.iter().position(|n| *n == name) {
            return self.report_loop(self.stack[at..].to_vec());
        }
        self.stack.push(name);
        let id = self.lower(expr, place);
        self.stack.pop();
        self.memo.insert((name, place), id);
        id
    }

    /// Told from its first line in the file, wherever it was entered.
    fn report_loop(&mut self, mut path: Vec<&'a str>) -> Option<Id> {
        self.looped.extend(&path);
        let definitions = self.file.constants.iter().chain(&self.file.expressions);
        let (first, expr) = definitions
            .filter(|(name, _)| path.contains(&name.value.as_str()))
            .min_by_key(|(_, expr)| expr.span.start)?;
        let start = path.iter().position(|name| *name == first.value)?;
        path.rotate_left(start);
        path.push(path[0]);
        let message = format!("algebraic loop: {}", path.join(" → "));
        let help = "nothing may depend on itself; break the loop with a state";
        self.fail(&expr.span, message, help)
    }

    fn name(&mut self, name: &'a str, span: &Span, place: Place) -> Option<Id> {
        self.used.insert(name);
        let file = self.file;
        match (name, self.names.get(name).copied()) {
            (PI, _) => Some(self.graph.constant(std::f64::consts::PI)),
            (TIME, _) if place != Place::Constant => Some(self.graph.leaf(Node::Time)),
            (_, Some(Symbol::Constant(i))) => {
                self.named(name, &file.constants[i].1, Place::Constant)
            }
            (TIME, _) | (_, Some(_)) if place == Place::Constant => {
                let message = format!("`{name}` is not a constant");
                let help = "a constant may use numbers and other constants only";
                self.fail(span, message, help)
            }
            (_, Some(Symbol::Input(_))) if place == Place::Control => {
                let message = format!("the input `{name}` is what this section defines");
                let help = "write inputs as expressions of t, the states and constants";
                self.fail(span, message, help)
            }
            (_, Some(Symbol::Input(i))) => self.input(i),
            (_, Some(Symbol::State(i))) => Some(self.graph.leaf(Node::State(i))),
            (_, Some(Symbol::Expression(i))) => self.named(name, &file.expressions[i].1, place),
            (_, Some(Symbol::Unknown(i))) => self.unknown(i, place),
            (_, None) if name.ends_with('\'') => {
                let bears_name = |input: &InputDef| undelayed(&input.name.value) == name;
                let place = file.inputs.iter().position(bears_name)?;
                Some(self.graph.leaf(Node::Input(place)))
            }
            (_, None) if functions::arguments(name).is_none() => {
                let help = self.name_help(name);
                self.fail(span, format!("unknown name `{name}`"), help)
            }
            (_, None | Some(Symbol::Network(_) | Symbol::Table(_))) => {
                let help = format!("call it with its arguments: {name}(…)");
                self.fail(span, format!("`{name}` is a function"), help)
            }
        }
    }

    /// An input; one that comes late is u − 2 r₂, see [`super::super::file`].
    fn input(&mut self, i: usize) -> Option<Id> {
        let input = &self.file.inputs[i];
        let leaf = self.graph.leaf(Node::Input(i));
        if input.delay.is_none() {
            return Some(leaf);
        }
        let name = correction(&input.name.value);
        let state = self.file.state_names().position(|s| s == name)?;
        let (state, two) = (
            self.graph.leaf(Node::State(state)),
            self.graph.constant(2.0),
        );
        let by = self.graph.binary(Binary::Multiply, two, state);
        Some(self.graph.binary(Binary::Subtract, leaf, by))
    }

    /// p = guess + scale·θ, or p = guess·exp(scale/guess·θ) where it must stay positive; a number where
    /// it is fixed.
    fn unknown(&mut self, i: usize, place: Place) -> Option<Id> {
        let file = self.file;
        let def = &file.unknowns[i];
        let name = &def.name.value;
        if self.variant == Variant::Truth || place == Place::Control {
            if let Some(expr) = file.truth_of(name) {
                return self.named(name, expr, Place::Constant);
            }
            if let Some(value) = def.fixed {
                return Some(self.graph.constant(value));
            }
            let message = format!("the truth section does not say what `{name}` is");
            let help = format!("add {name} = … to [truth]");
            return self.fail(&def.name.span, message, help);
        }
        if let Some(value) = def.fixed {
            return Some(self.graph.constant(value));
        }
        let before = file.unknowns[..i].iter();
        let entry = before.filter(|u| u.fixed.is_none()).count();
        let theta = self.graph.leaf(Node::Theta(entry));
        let difference = self.difference(def);
        if self.variant == Variant::Plain {
            let Some(difference) = difference else {
                return Some(theta);
            };
            return Some(if def.positive {
                let factor = self.graph.unary(Unary::Exp, difference);
                self.graph.binary(Binary::Multiply, theta, factor)
            } else {
                self.graph.binary(Binary::Add, theta, difference)
            });
        }
        let guess = self.graph.constant(def.guess);
        let moved = |graph: &mut Graph, value: Id| match difference {
            Some(difference) => graph.binary(Binary::Add, value, difference),
            None => value,
        };
        if def.positive {
            let ratio = self.graph.constant(def.scale / def.guess);
            let exponent = self.graph.binary(Binary::Multiply, ratio, theta);
            let exponent = moved(&mut self.graph, exponent);
            let factor = self.graph.unary(Unary::Exp, exponent);
            Some(self.graph.binary(Binary::Multiply, guess, factor))
        } else {
            let scale = self.graph.constant(def.scale);
            let offset = self.graph.binary(Binary::Multiply, scale, theta);
            let value = self.graph.binary(Binary::Add, guess, offset);
            Some(moved(&mut self.graph, value))
        }
    }

    /// How a constant which varies differs from its mean: the state that holds it, or what the number of
    /// a record's group chooses from θ.
    fn difference(&mut self, def: &UnknownDef) -> Option<Id> {
        if !def.is_varying() {
            return None;
        }
        if self.file.is_grouped(def) {
            return self.difference_of_group(def);
        }
        let name = difference_name(&def.name.value);
        let state = self.file.state_names().position(|s| s == name)?;
        Some(self.graph.leaf(Node::State(state)))
    }

    /// The sum over groups of [it is this one]·θ, which is zero in a record of group 0. As nested
    /// choices, each derivative by θ would be as long as the whole.
    fn difference_of_group(&mut self, def: &UnknownDef) -> Option<Id> {
        let mut free = self.file.free();
        let place = free.position(|u| u.name.value == def.name.value)?;
        let mut entries = self.file.group_entries().into_iter();
        let (_, entries) = entries.find(|(unknown, _)| *unknown == place)?;
        let group = self.graph.leaf(Node::Input(self.file.inputs.len()));
        let mut chosen = self.graph.constant(0.0);
        for (k, entry) in entries.enumerate() {
            let number = self.graph.constant((k + 1) as f64);
            let selected = self.graph.binary(Binary::Equal, group, number);
            let theta = self.graph.leaf(Node::Theta(entry));
            let share = self.graph.binary(Binary::Multiply, selected, theta);
            chosen = self.graph.binary(Binary::Add, chosen, share);
        }
        let scale = self.graph.constant(def.difference_scale());
        Some(self.graph.binary(Binary::Multiply, scale, chosen))
    }

    fn call(
        &mut self,
        name: &'a str,
        span: &Span,
        values: Vec<Option<Id>>,
        output: Option<&(String, Span)>,
        place: Place,
    ) -> Option<Id> {
        self.used.insert(name);
        let built_in = functions::arguments(name);
        let symbol = self.names.get(name).copied().filter(|_| built_in.is_none());
        let expected = match (symbol, built_in) {
            (Some(Symbol::Network(n)), _) => return self.network(n, span, values, output, place),
            (Some(Symbol::Table(_)), _) => 1,
            (None, Some(n)) => n,
            (None, None) if name != TIME && name != PI => {
                let help = self.function_help(name);
                return self.fail(span, format!("unknown function `{name}`"), help);
            }
            _ => {
                let help = format!("multiply with `*`: {name}*(…)");
                return self.fail(span, format!("`{name}` is not a function"), help);
            }
        };
        if let Some((_, at)) = output {
            let message = format!("`{name}` has one output");
            return self.fail(at, message, "only networks have named outputs");
        }
        if values.len() != expected {
            let plural = if expected == 1 { "" } else { "s" };
            let given = values.len();
            let message = format!("`{name}` takes {expected} argument{plural}, not {given}");
            return self.fail(span, message, functions::signature(name, expected));
        }
        let values: Vec<Id> = values.into_iter().collect::<Option<_>>()?;
        Some(match symbol {
            Some(Symbol::Table(table)) => self.graph.leaf(Node::Lookup(table, values[0])),
            _ => functions::apply(&mut self.graph, name, &values),
        })
    }

    fn network(
        &mut self,
        n: usize,
        span: &Span,
        values: Vec<Option<Id>>,
        output: Option<&(String, Span)>,
        place: Place,
    ) -> Option<Id> {
        let def = &self.file.networks[n];
        let (name, outputs) = (&def.name.value, &def.outputs);
        if !matches!(place, Place::Derivative | Place::Measurement) {
            let message = format!("network `{name}` cannot be called in {}", self.root);
            let help = "networks belong in the derivatives of states and in measurements";
            return self.fail(span, message, help);
        }
        if self.variant == Variant::Truth {
            let message = format!("the truth of {} still calls network `{name}`", self.root);
            let help = "give its true equation in [truth]";
            return self.fail(span, message, help);
        }
        let given = values.len();
        let first = *self.arguments[n].get_or_insert(given);
        if given == 0 || given != first {
            let message = if given == 0 {
                format!("network `{name}` is called without arguments")
            } else {
                format!(
                    "network `{name}` is called with {given} arguments here and {first} elsewhere"
                )
            };
            let help = "pass what the unknown equation can depend on, the same number everywhere; a constant nobody knows belongs in [unknowns]";
            return self.fail(span, message, help);
        }
        if given > ARGUMENTS {
            let message = format!("network `{name}` is called with {given} arguments");
            return self.fail(span, message, format!("it takes at most {ARGUMENTS}"));
        }
        if outputs.is_empty() {
            return None; // reported with its definition
        }
        let k = match output {
            None if outputs.len() == 1 => 0,
            None => {
                let choice: Vec<_> = outputs.iter().map(|o| format!("{name}(…).{o}")).collect();
                let message = format!("network `{name}` has {} outputs", outputs.len());
                let help = format!("choose one: {}", choice.join(" or "));
                return self.fail(span, message, help);
            }
            Some((o, at)) => match outputs.iter().position(|d| d == o) {
                Some(k) => k,
                None => {
                    let help = format!("its outputs: {}", outputs.join(", "));
                    return self.fail(at, format!("network `{name}` has no output `{o}`"), help);
                }
            },
        };
        let values = values.into_iter().collect::<Option<_>>()?;
        // before anything is learned a sensor is what is known of it
        if self.variant == Variant::Signals && place == Place::Measurement {
            return Some(self.graph.constant(0.0));
        }
        let call = self.graph.call(n, values);
        if self.variant != Variant::Signals {
            return Some(self.graph.leaf(Node::Output(call, k)));
        }
        let known = self.signals.iter().position(|s| *s == (call, k));
        let signal = known.unwrap_or(self.signals.len());
        if known.is_none() {
            self.signals.push((call, k));
        }
        Some(
            self.graph
                .leaf(Node::State(self.file.states.len() + signal)),
        )
    }

    /// The names that are functions or are not, in alphabetical order.
    fn known(&self, callable: bool) -> Vec<&'a str> {
        let names = self.names.iter();
        let wanted = names.filter(|(_, s)| s.is_callable() == callable);
        let mut known: Vec<&str> = wanted.map(|(n, _)| *n).collect();
        known.sort_unstable();
        known
    }

    fn name_help(&self, name: &str) -> String {
        match suggest(name, self.known(false).into_iter().chain([PI, TIME])) {
            Some(close) => format!("did you mean `{close}`?"),
            None => {
                "define it in [constants], [inputs], [states], [expressions] or [unknowns]".into()
            }
        }
    }

    fn function_help(&self, name: &str) -> String {
        if let Some((_, help)) = FUNCTIONS_ELSEWHERE.iter().find(|(n, _)| *n == name) {
            return (*help).into();
        }
        let functions = FUNCTIONS.map(|(f, _)| f);
        match suggest(name, self.known(true).into_iter().chain(functions)) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!(
                "define it in [networks] or [tables]; built in are {}",
                functions.join(", ")
            ),
        }
    }
}
