//! What the names of a model file mean: definitions to a graph of equations.
//!
//! [`check_names`] looks at the names alone; [`equations`] then builds every equation of a variant
//! of the model. The files below: what a name stands for, how an expression becomes nodes of the
//! graph, and the built-in functions.

mod functions;
mod limits;
mod lowering;
mod names;

use std::collections::{HashMap, HashSet};

use super::diagnostic::{Diagnostic, Span};
use super::expression::{Expr, Kind};
use super::file::{self, At, ModelFile, Named};
use super::graph::{Graph, Id, Node};
use names::{Symbol, form_mistake, symbols};

pub use functions::FUNCTIONS;
pub use limits::{check_file, check_parameters};
pub use names::{Named as KnownNames, check_names, check_settings, reference_mistake};

/// Which equations a system is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Networks and unknown constants where knowledge ends.
    Learned,
    /// The same with θ of the unknown constants themselves.
    Plain,
    /// The same with each output of a network as one more state, which nothing drives.
    Signals,
    /// The equations of the truth section, for simulation and scoring.
    Truth,
}

/// The equations of one variant.
#[derive(Debug)]
pub struct Equations {
    /// What the other fields point into.
    pub graph: Graph,
    /// f, in the order of the states.
    pub derivatives: Vec<Id>,
    /// h, in the order of the measurements.
    pub measurements: Vec<Id>,
    /// What the simulation section feeds into each input, in the order of the inputs.
    pub controls: Vec<Option<Id>>,
    /// The same for each held-out experiment.
    pub held_out_controls: Vec<Vec<Option<Id>>>,
    /// Number of arguments of each network.
    pub arguments: Vec<usize>,
    /// Call and output of each further state of [`Variant::Signals`].
    pub signals: Vec<(usize, usize)>,
}

/// Builds the equations of a variant; mistakes go to `diagnostics`.
pub fn equations(
    file: &ModelFile,
    variant: Variant,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Equations> {
    let before = diagnostics.len();
    let names = symbols(file).into_iter();
    let mut lowering = Lowering {
        file,
        variant,
        graph: Graph::default(),
        names: names.map(|(n, s)| (n.value.as_str(), s)).collect(),
        memo: HashMap::new(),
        stack: Vec::new(),
        looped: HashSet::new(),
        used: HashSet::new(),
        root: String::new(),
        arguments: vec![None; file.networks.len()],
        signals: Vec::new(),
        depth: 0,
        diagnostics,
    };
    // first, so that a constant's mistake is its own and not that of an equation that uses it
    lowering.constants();
    let mut derivatives = lowering.derivatives();
    let still = lowering.graph.constant(0.0);
    derivatives.extend(lowering.signals.iter().map(|_| still));
    let measurements = lowering.measurements();
    let used = lowering.used.clone();
    let held_out = file.simulation.held_out.iter();
    let equations = Equations {
        derivatives,
        measurements,
        controls: lowering.controls(&file.simulation.inputs),
        held_out_controls: held_out.map(|h| lowering.controls(&h.inputs)).collect(),
        arguments: lowering.arguments.iter().map(|a| a.unwrap_or(0)).collect(),
        signals: lowering.signals.clone(),
        graph: lowering.graph.clone(),
    };
    // expressions that the truth has no use for may call networks
    if variant == Variant::Learned {
        lowering.check_unused(&used);
    }
    limits::check_equations(file, &equations, diagnostics);
    (diagnostics.len() == before).then_some(equations)
}

/// Where an expression stands, and so what it may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Constant,
    Derivative,
    Measurement,
    Control,
}

struct Lowering<'a> {
    file: &'a ModelFile,
    variant: Variant,
    graph: Graph,
    names: HashMap<&'a str, Symbol>,
    /// Named constants and expressions that are done; `None` where they have a mistake.
    /// By place too: what a derivative may use, a measurement may not.
    memo: HashMap<(&'a str, Place), Option<Id>>,
    /// Named expressions being built: a name that comes up again is a loop.
    stack: Vec<&'a str>,
    /// Names in a loop that is reported.
    looped: HashSet<&'a str>,
    /// Names that came up, rightly or not.
    used: HashSet<&'a str>,
    /// Whose equation is being built, for messages: "state `h`".
    root: String,
    /// Number of arguments of each network, by its first call.
    arguments: Vec<Option<usize>>,
    signals: Vec<(usize, usize)>,
    /// Expressions inside each other, those that are named included.
    depth: usize,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Lowering<'a> {
    /// Reports a mistake; there is no node then.
    fn fail(
        &mut self,
        span: &Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Option<Id> {
        self.diagnostics
            .push(Diagnostic::new(span.clone(), message).help(help));
        None
    }

    fn constants(&mut self) {
        for (name, expr) in &self.file.constants {
            self.root = format!("constant `{}`", name.value);
            self.named(&name.value, expr, Place::Constant);
        }
    }

    fn derivatives(&mut self) -> Vec<Id> {
        let mut ids = Vec::new();
        for state in &self.file.states {
            let At { value: name, span } = &state.name;
            let truth = self.file.truth_of(name);
            let truth = truth.filter(|_| self.variant == Variant::Truth);
            self.root = format!("state `{name}`");
            match truth.or(state.derivative.as_ref()) {
                Some(expr) => ids.extend(self.lower(expr, Place::Derivative)),
                None if self.variant == Variant::Learned => {
                    let message = format!("state `{name}` has no equation");
                    let help = "add derivative = \"…\"; where nobody knows it, call a network: \"net(x, v)\"";
                    self.fail(span, message, help);
                }
                None => {}
            }
        }
        if self.file.states.is_empty() {
            let help = "add [states.x] with derivative = \"…\"";
            self.fail(&(0..0), "the model has no states", help);
        }
        ids
    }

    fn measurements(&mut self) -> Vec<Id> {
        let mut ids = Vec::new();
        for m in &self.file.measurements {
            self.root = format!("measurement `{}`", m.name.value);
            let truth = self.file.truth_of_measurement(&m.name.value);
            let truth = truth.filter(|_| self.variant == Variant::Truth);
            let Some(id) = self.lower(truth.unwrap_or(&m.value), Place::Measurement) else {
                continue;
            };
            let needed = self.graph.reachable(&[id]);
            let is_state = |&n: &Id| matches!(self.graph.node(n), Node::State(_));
            if !needed.iter().any(is_state) && !self.file.states.is_empty() {
                let message = format!("measurement `{}` depends on no state", m.name.value);
                let help = "a measurement is an expression of the states, for example \"V\"";
                self.fail(&m.value.span, message, help);
            }
            ids.push(id);
        }
        if self.file.measurements.is_empty() {
            let help = "add [measurements] with what the sensors see, for example V = \"V\"";
            self.fail(&(0..0), "the model measures nothing", help);
        }
        ids
    }

    /// What drives each input of the model, where `inputs` says it.
    fn controls(&mut self, inputs: &'a [Named<Expr>]) -> Vec<Option<Id>> {
        let names = self.file.input_names();
        let control = |name| {
            let expr = file::find(inputs, name)?;
            self.root = format!("input `{name}`");
            self.lower(expr, Place::Control)
        };
        names.map(control).collect()
    }

    /// Networks and unknowns that no equation names are mistakes; expressions that none uses are
    /// still checked.
    fn check_unused(&mut self, used: &HashSet<&str>) {
        let file = self.file;
        for (name, expr) in &file.expressions {
            self.root = format!("expression `{}`", name.value);
            self.named(&name.value, expr, Place::Derivative);
        }
        // the name may stand where it could not be read
        let mut equations = file
            .states
            .iter()
            .filter_map(|s| s.derivative.as_ref())
            .chain(file.expressions.iter().map(|(_, e)| e));
        if equations.any(|e| matches!(e.kind, Kind::Invalid)) || !self.looped.is_empty() {
            return;
        }
        let networks = file
            .networks
            .iter()
            .map(|n| (&n.name, "network", "call", "called"));
        let unknowns = file
            .unknowns
            .iter()
            .map(|u| (&u.name, "unknown", "use", "used"));
        for (name, kind, verb, done) in networks.chain(unknowns) {
            if !used.contains(name.value.as_str()) && form_mistake(name).is_none() {
                let message = format!("{kind} `{}` is never {done}", name.value);
                let help = format!(
                    "{verb} it in the derivative of a state or in a measurement, or remove it"
                );
                self.fail(&name.span, message, help);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_uses_is_checked_and_leaves_no_trace() {
        let text = "[networks.f]\nlayers = []\n[expressions]\nidle = \"f(2*x)\"\n\
                    [states.x]\nderivative = \"f(x)\"\n[measurements]\ny = \"x\"\n";
        let (file, mut diagnostics) = file::read(text);
        let equations = equations(&file, Variant::Learned, &mut diagnostics).unwrap();
        assert_eq!(equations.graph.calls().len(), 1);
        let (file, _) = file::read(&text.replace("f(2*x)", "f(x, x)"));
        assert!(super::equations(&file, Variant::Learned, &mut diagnostics).is_none());
        assert!(
            diagnostics[0]
                .message
                .contains("2 arguments here and 1 elsewhere")
        );
    }
}
