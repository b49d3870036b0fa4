//! From the definitions of a file to names, units and compiled equations.

use super::constants::Held;
use super::{Model, Quantity, State};
use crate::constant::{Fixed, Unknown};
use crate::diagnostic::Diagnostic;
use crate::file::{Hold, ModelFile};
use crate::network::{Network, Scaling};
use crate::resolve::{self, Equations, Variant};
use crate::system::System;
use crate::tape::Curve;
use crate::truth::Truth;

impl Model {
    pub(super) fn build(
        name: &str,
        file: &ModelFile,
        text: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        if !file.complete {
            return None;
        }
        // first: what follows takes time and memory with the number of names
        if !resolve::check_file(file, diagnostics) {
            return None;
        }
        resolve::check_names(file, diagnostics);
        let equations = resolve::equations(file, Variant::Learned, diagnostics);
        let truth_equations =
            if file.truth.is_empty() && !(file.networks.is_empty() && file.unknowns.is_empty()) {
                None
            } else {
                resolve::equations(file, Variant::Truth, diagnostics)
            };
        if !diagnostics.is_empty() {
            return None;
        }
        let equations = equations?;
        let (system, curves) = Self::compile(file, equations);
        resolve::check_parameters(system.parameters(), diagnostics);
        let truth = match truth_equations {
            None => None,
            Some(e) => Some(Truth::build(file, e, curves, diagnostics)?),
        };
        let quantity = |name: &str, unit: &str| Quantity {
            name: name.into(),
            unit: unit.into(),
        };
        let state_unit = |name: &str| {
            let state = file.states.iter().find(|s| s.name.value == name);
            state.map_or("", |s| s.unit.as_str())
        };
        Some(Self {
            name: file.name.clone(),
            description: file.description.clone(),
            text: text.into(),
            time_unit: file.time_unit.clone(),
            step: file.step,
            method: file.method,
            substeps: file.substeps,
            tolerance: file.tolerance,
            hold: {
                let holds = file.inputs.iter().map(|input| input.hold);
                let holds = holds.map(|hold| hold.or(file.hold).unwrap_or(Hold::ZeroOrder));
                holds
                    .chain((file.groups > 0).then_some(Hold::ZeroOrder))
                    .collect()
            },
            hold_is_given: {
                let given = file
                    .inputs
                    .iter()
                    .map(|input| input.hold.or(file.hold).is_some());
                given.chain((file.groups > 0).then_some(true)).collect()
            },
            states: file
                .states
                .iter()
                .map(|s| State {
                    name: s.name.value.clone(),
                    unit: s.unit.clone(),
                    start: s.start,
                    start_deviation: s.start_deviation,
                    scale: s.scale,
                    center: s.center,
                })
                .collect(),
            inputs: file
                .inputs
                .iter()
                .map(|input| quantity(&input.name.value, &input.unit))
                .collect(),
            measurements: file
                .measurements
                .iter()
                .map(|m| {
                    // a measurement named like its state has the state's unit
                    let unit = if m.unit.is_empty() {
                        state_unit(&m.name.value)
                    } else {
                        &m.unit
                    };
                    quantity(&m.name.value, unit)
                })
                .collect(),
            unknowns: file
                .free()
                .map(|u| Unknown {
                    name: u.name.value.clone(),
                    unit: u.unit.clone(),
                    guess: u.guess,
                    scale: u.scale,
                    positive: u.positive,
                    min: u.min,
                    max: u.max,
                    prior: u.prior,
                    varies: u.varies,
                })
                .collect(),
            fixed: file
                .unknowns
                .iter()
                .filter_map(|u| {
                    Some(Fixed {
                        name: u.name.value.clone(),
                        unit: u.unit.clone(),
                        value: u.fixed?,
                    })
                })
                .collect(),
            held: Held::default(),
            system,
            truth,
            fit: file.fit.layer.clone(),
            file: name.into(),
            solver: file.fit.solver().cloned(),
        })
    }

    /// The compiled equations, and the tables that they use.
    pub(super) fn compile(file: &ModelFile, equations: Equations) -> (System, Vec<Curve>) {
        let curves: Vec<Curve> = file
            .tables
            .iter()
            .map(|t| Curve {
                x: t.x.clone(),
                y: t.y.clone(),
                period: t.period,
            })
            .collect();
        let networks = file
            .networks
            .iter()
            .zip(&equations.arguments)
            .map(|(n, &arguments)| Network {
                name: n.name.value.clone(),
                outputs: n.outputs.clone(),
                arguments,
                layers: n.layers.clone(),
                skip: n.skip,
                absent: false,
                scaling: Scaling {
                    center: vec![0.0; arguments],
                    scale: vec![1.0; arguments],
                    output: vec![1.0; n.outputs.len()],
                },
            })
            .collect();
        let system = System::compile(
            equations,
            file.driven_by(),
            file.constant_entries(),
            networks,
            curves.clone(),
        );
        (system, curves)
    }
}
