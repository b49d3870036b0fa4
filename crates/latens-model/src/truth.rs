//! The true equations of a model file and how to drive them, to make records from.

use super::diagnostic::Diagnostic;
use super::file::{LqrDef, ModelFile, Named, find};
use super::graph::{Id, Node};
use super::resolve::Equations;
use super::system::System;
use super::tape::{Curve, Networks, Point, Tape};
use crate::lqr;

/// The truth section: a system without networks, and the record to make from it.
#[derive(Debug, Clone)]
pub struct Truth {
    /// The true equations; θ is empty.
    pub system: System,
    /// Length of the record, where the file states it.
    pub steps: Option<usize>,
    /// Standard deviation per square root of time, for each state.
    pub process_noise: Vec<f64>,
    pub controls: Tape,
    /// Inputs without an expression or a controller.
    pub undriven: Vec<String>,
    /// Feedback u = −K x, row by row over the inputs; empty without a controller.
    pub gain: Vec<f64>,
    /// Other experiments with the same equations.
    pub held_out: Vec<HeldOut>,
}

/// Another experiment of the truth section, kept out of training.
#[derive(Debug, Clone)]
pub struct HeldOut {
    /// States that start elsewhere: index and value.
    pub start: Vec<(usize, f64)>,
    pub controls: Tape,
}

impl Truth {
    /// `None` where there is no such controller as the file asks for.
    pub(super) fn build(
        file: &ModelFile,
        mut equations: Equations,
        curves: Vec<Curve>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let simulation = &file.simulation;
        let gain = match &simulation.lqr {
            None => vec![],
            Some(def) => match lqr_gain(file, def, &equations, &curves) {
                Ok(gain) => gain,
                Err(message) => {
                    let help = "the weights of inputs must be positive and the linearised system stabilisable";
                    diagnostics.push(Diagnostic::new(def.span.clone(), message).help(help));
                    return None;
                }
            },
        };
        let mut process_noise = vec![0.0; file.states.len()];
        for (i, deviation) in by_state(file, &simulation.process_noise) {
            process_noise[i] = deviation;
        }
        let zero = equations.graph.constant(0.0);
        let usual = &equations.controls;
        let tape = |controls: &[Option<Id>]| {
            let either = controls
                .iter()
                .zip(usual)
                .map(|(control, usual)| control.or(*usual));
            let roots: Vec<Id> = either.map(|c| c.unwrap_or(zero)).collect();
            Tape::compile(&equations.graph, &roots, &[])
        };
        let held_out = simulation.held_out.iter().zip(&equations.held_out_controls);
        Some(Self {
            steps: simulation.steps,
            process_noise,
            controls: tape(usual),
            undriven: undriven(file, usual),
            gain,
            held_out: held_out
                .map(|(def, controls)| HeldOut {
                    start: by_state(file, &def.start),
                    controls: tape(controls),
                })
                .collect(),
            system: System::compile(equations, file.inputs.len(), 0, vec![], curves),
        })
    }
}

/// Index of each named state, and its number.
fn by_state(file: &ModelFile, numbers: &[Named<f64>]) -> Vec<(usize, f64)> {
    let index = |name: &str| file.state_names().position(|s| s == name);
    let found = numbers.iter().map(|(n, v)| Some((index(&n.value)?, *v)));
    found.flatten().collect()
}

/// Inputs that neither an expression nor the controller drives.
fn undriven(file: &ModelFile, controls: &[Option<Id>]) -> Vec<String> {
    let controlled = |name| {
        let lqr = file.simulation.lqr.as_ref();
        lqr.is_some_and(|l| find(&l.inputs, name).is_some())
    };
    let inputs = file.input_names().zip(controls);
    inputs
        .filter(|(name, control)| control.is_none() && !controlled(name))
        .map(|(name, _)| name.to_string())
        .collect()
}

/// The regulator's gain for the true equations linearised at the origin, m×n.
fn lqr_gain(
    file: &ModelFile,
    def: &LqrDef,
    equations: &Equations,
    curves: &[Curve],
) -> Result<Vec<f64>, String> {
    let (n, m) = (file.states.len(), file.inputs.len());
    let weight = |name| find(&def.states, name).copied().unwrap_or(0.0);
    let q: Vec<f64> = file.state_names().map(weight).collect();
    // inputs without a weight are not the controller's
    let weighted = file.input_names().enumerate();
    let (used, r): (Vec<usize>, Vec<f64>) = weighted
        .filter_map(|(j, name)| Some((j, *find(&def.inputs, name)?)))
        .unzip();
    let by_state: Vec<Node> = (0..n).map(Node::State).collect();
    let by_input: Vec<Node> = used.iter().map(|&j| Node::Input(j)).collect();
    let a = slopes_at_origin(equations, curves, &by_state, m);
    let b = slopes_at_origin(equations, curves, &by_input, m);
    let k = lqr::gain(&a, &b, &q, &r, n)?;
    let mut gain = vec![0.0; m * n];
    for (row, &j) in k.chunks_exact(n).zip(&used) {
        gain[j * n..(j + 1) * n].copy_from_slice(row);
    }
    Ok(gain)
}

/// ∂f/∂(leaves), row by row, at t = 0, x = 0, u = 0.
fn slopes_at_origin(
    equations: &Equations,
    curves: &[Curve],
    leaves: &[Node],
    inputs: usize,
) -> Vec<f64> {
    let mut graph = equations.graph.clone();
    let mut roots = Vec::new();
    for &f in &equations.derivatives {
        for &leaf in leaves {
            let leaf = graph.leaf(leaf);
            roots.push(graph.derivative(f, leaf));
        }
    }
    let tape = Tape::compile(&graph, &roots, &[]);
    let mut slots = tape.slots();
    let environment = Networks {
        networks: &[],
        calls: &[],
        curves,
    };
    let at = Point {
        time: 0.0,
        state: &vec![0.0; equations.derivatives.len()],
        input: &vec![0.0; inputs],
        theta: &[],
    };
    tape.run(&mut slots, &mut [], environment, at);
    (0..roots.len()).map(|i| tape.root(&slots, i)).collect()
}
