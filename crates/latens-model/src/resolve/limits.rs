//! Models that are larger than any that can be learned: they are refused before they take the time and
//! the memory that they would need. See [`crate::limits`].

use super::super::diagnostic::{Diagnostic, Span};
use super::super::file::ModelFile;
use super::super::limits::{
    CALLS, DERIVATIVES, HELD_OUT, LAYERS, NAMES, PARAMETERS, REGULATED_STATES, STATES,
};
use super::Equations;

/// Whether a file has no more of anything than there may be.
pub fn check_file(file: &ModelFile, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let before = diagnostics.len();
    let simulation = &file.simulation;
    let held_out = simulation.held_out.iter();
    let names = [
        file.constants.len(),
        file.inputs.len(),
        file.states.len(),
        file.expressions.len(),
        file.unknowns.len(),
        file.networks.len(),
        file.tables.len(),
        file.measurements.len(),
        file.truth.len(),
        simulation.inputs.len(),
        simulation.process_noise.len(),
        file.networks.iter().map(|n| n.outputs.len()).sum(),
        held_out.map(|h| h.start.len() + h.inputs.len()).sum(),
    ];
    let regulated = simulation.lqr.as_ref().map_or(0, |_| file.states.len());
    let layers = file.networks.iter().map(|n| n.layers.len()).max();
    for (count, most, noun) in [
        (names.iter().sum(), NAMES, "names"),
        (file.states.len(), STATES, "states"),
        (file.inputs.len(), STATES, "inputs"),
        (file.measurements.len(), STATES, "measurements"),
        (simulation.held_out.len(), HELD_OUT, "held-out experiments"),
        (regulated, REGULATED_STATES, "states beside a regulator"),
        (layers.unwrap_or(0), LAYERS, "layers in a network"),
    ] {
        refuse(count, most, noun, diagnostics);
    }
    diagnostics.len() == before
}

/// Refuses equations whose derivatives are too many.
pub fn check_equations(file: &ModelFile, equations: &Equations, diagnostics: &mut Vec<Diagnostic>) {
    let graph = &equations.graph;
    refuse(graph.calls().len(), CALLS, "calls of networks", diagnostics);
    let outputs = |call: usize| file.networks[graph.calls()[call].network].outputs.len();
    let leaves = equations.derivatives.len()
        + file.unknowns.len()
        + (0..graph.calls().len()).map(outputs).sum::<usize>();
    let derivatives = graph.size().saturating_mul(leaves);
    let noun = "derivatives (operations times states, unknowns and network outputs)";
    refuse(derivatives, DERIVATIVES, noun, diagnostics);
}

/// Refuses a system that is larger than can be learned.
pub fn check_parameters(parameters: usize, diagnostics: &mut Vec<Diagnostic>) {
    let noun = "learned parameters (weights and unknown constants)";
    refuse(parameters, PARAMETERS, noun, diagnostics);
}

fn refuse(count: usize, most: usize, noun: &str, diagnostics: &mut Vec<Diagnostic>) {
    const FILE_START: Span = 0..0;
    if count > most {
        let message = format!("the model has {count} {noun}");
        let mistake =
            Diagnostic::new(FILE_START, message).help(format!("it may have at most {most}"));
        diagnostics.push(mistake);
    }
}
