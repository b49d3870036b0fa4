//! Models: a file with the known equations, and the compiled system behind it.
//!
//! The path of a model file is [`file`] (TOML, keys and types) → [`resolve`] (what names mean)
//! → [`graph`] (equations and their derivatives) → [`tape`] (programs) → [`System`].

pub mod diagnostic;
pub mod expression;
pub mod file;
pub mod graph;
pub mod network;
pub mod resolve;
pub mod system;
pub mod tape;

use std::path::Path;

pub use diagnostic::{Diagnostic, ModelError};
pub use file::Method;
pub use system::{System, Workspace};
pub use tape::Point;

use crate::Error;
use crate::linalg::lqr;
use crate::record::Layout;
use file::ModelFile;
use network::{Network, Scaling};
use resolve::Variant;
use tape::{Curve, Tape};

/// The JSON Schema of the model file.
pub const SCHEMA: &str = include_str!("schema.json");

/// A quantity of the model, as a person knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    pub name: String,
    pub unit: String,
}

/// A state of the model.
#[derive(Debug, Clone)]
pub struct State {
    pub name: String,
    pub unit: String,
    /// Where the built-in record starts; a fit never looks at it.
    pub start: Option<f64>,
    /// Rough size and middle, where the file states them.
    pub scale: Option<f64>,
    pub center: Option<f64>,
}

/// An unknown constant p of the model: p = guess + scale·θ, or guess·exp(scale/guess·θ).
#[derive(Debug, Clone)]
pub struct Unknown {
    pub name: String,
    pub unit: String,
    pub guess: f64,
    pub scale: f64,
    pub positive: bool,
}

impl Unknown {
    /// The constant's value at its entry of θ.
    pub fn value(&self, theta: f64) -> f64 {
        if self.positive {
            self.guess * (self.scale / self.guess * theta).exp()
        } else {
            self.guess + self.scale * theta
        }
    }
}

/// A checked model: names, units, and the compiled equations.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub description: String,
    /// The text it was read from.
    pub text: String,
    pub time_unit: String,
    pub step: Option<f64>,
    pub method: Method,
    pub substeps: usize,
    pub states: Vec<State>,
    pub inputs: Vec<Quantity>,
    pub measurements: Vec<Quantity>,
    pub unknowns: Vec<Unknown>,
    /// The equations to learn.
    pub system: System,
    /// The true equations and how to drive them, where the file has them.
    pub truth: Option<Truth>,
}

/// The truth section: a system without networks, and the record to make from it.
#[derive(Debug, Clone)]
pub struct Truth {
    pub system: System,
    pub steps: Option<usize>,
    /// Standard deviation per square root of time, for each state.
    pub process_noise: Vec<f64>,
    pub(crate) controls: Tape,
    /// Inputs without an expression or a controller.
    pub(crate) undriven: Vec<String>,
    /// Feedback u = −K x, row by row over the inputs; empty without a controller.
    pub gain: Vec<f64>,
    pub held_out: Vec<HeldOut>,
}

/// Another experiment of the truth section, kept out of training.
#[derive(Debug, Clone)]
pub struct HeldOut {
    pub start: Vec<(usize, f64)>,
    pub(crate) controls: Tape,
}

impl Model {
    /// Reads a model file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// Reads a model from text; `file` is the name that errors show.
    pub fn from_text(file: &str, text: &str) -> Result<Self, Error> {
        let (definitions, mut diagnostics) = file::read(text);
        let model = Self::build(&definitions, text, &mut diagnostics);
        match model {
            Some(model) if diagnostics.is_empty() => Ok(model),
            _ => Err(ModelError::new(file, text, diagnostics).into()),
        }
    }

    fn build(file: &ModelFile, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Self> {
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
                scaling: Scaling {
                    center: vec![0.0; arguments],
                    scale: vec![1.0; arguments],
                    output: vec![1.0; n.outputs.len()],
                },
            })
            .collect();
        let inputs = file.inputs.len();
        let system = System::compile(
            equations,
            inputs,
            file.unknowns.len(),
            networks,
            curves.clone(),
        );
        let truth = match truth_equations {
            None => None,
            Some(e) => Some(truth(file, e, curves, diagnostics)?),
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
            states: file
                .states
                .iter()
                .map(|s| State {
                    name: s.name.value.clone(),
                    unit: s.unit.clone(),
                    start: s.start,
                    scale: s.scale,
                    center: s.center,
                })
                .collect(),
            inputs: file
                .inputs
                .iter()
                .map(|(n, unit)| quantity(&n.value, unit))
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
                .unknowns
                .iter()
                .map(|u| Unknown {
                    name: u.name.value.clone(),
                    unit: u.unit.clone(),
                    guess: u.guess,
                    scale: u.scale,
                    positive: u.positive,
                })
                .collect(),
            system,
            truth,
        })
    }

    /// What this model asks of a record's columns.
    pub fn layout(&self) -> Layout {
        Layout {
            inputs: self.inputs.iter().map(|q| q.name.clone()).collect(),
            measurements: self.measurements.iter().map(|q| q.name.clone()).collect(),
            states: self.states.iter().map(|s| s.name.clone()).collect(),
            time_step: self.step,
        }
    }

    /// States that no measurement sees directly.
    pub fn hidden(&self) -> Vec<usize> {
        let seen = self.system.measure_pattern();
        (0..self.states.len())
            .filter(|i| !seen.iter().any(|(_, j)| j == i))
            .collect()
    }

    /// Index of a state by name.
    pub fn state_index(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|s| s.name == name)
    }
}

fn truth(
    file: &ModelFile,
    equations: resolve::Equations,
    curves: Vec<Curve>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Truth> {
    let (n, m) = (file.states.len(), file.inputs.len());
    let mut graph = equations.graph.clone();
    let zero = graph.constant(0.0);
    let control_tape = |controls: &[Option<graph::Id>], fallback: &[Option<graph::Id>]| {
        let roots: Vec<graph::Id> = controls
            .iter()
            .zip(fallback)
            .map(|(c, f)| c.or(*f).unwrap_or(zero))
            .collect();
        Tape::compile(&graph, &roots, &[])
    };
    let lqr_inputs = file.simulation.lqr.iter().flat_map(|l| &l.inputs);
    let driven: Vec<&str> = lqr_inputs.map(|(name, _)| name.value.as_str()).collect();
    let undriven = file
        .inputs
        .iter()
        .zip(&equations.controls)
        .filter(|((name, _), c)| c.is_none() && !driven.contains(&name.value.as_str()))
        .map(|((name, _), _)| name.value.clone())
        .collect();
    let controls = control_tape(&equations.controls, &equations.controls);
    let held_out = file
        .simulation
        .held_out
        .iter()
        .zip(&equations.held_out_controls)
        .map(|(h, c)| HeldOut {
            start: h
                .start
                .iter()
                .filter_map(|(name, v)| {
                    Some((
                        file.states
                            .iter()
                            .position(|s| s.name.value == name.value)?,
                        *v,
                    ))
                })
                .collect(),
            controls: control_tape(c, &equations.controls),
        })
        .collect();
    let mut process_noise = vec![0.0; n];
    for (name, v) in &file.simulation.process_noise {
        let i = file
            .states
            .iter()
            .position(|s| s.name.value == name.value)?;
        process_noise[i] = *v;
    }
    let input_graph = equations.graph.clone();
    let derivatives = equations.derivatives.clone();
    let system = System::compile(equations, m, 0, vec![], curves.clone());
    let gain = match &file.simulation.lqr {
        None => vec![],
        Some(def) => {
            let b = input_jacobian(input_graph, &derivatives, &curves, n, m);
            match lqr_gain(file, def, &system, &b) {
                Ok(gain) => gain,
                Err(message) => {
                    diagnostics.push(
                        Diagnostic::new(def.span.clone(), message)
                            .help("the weights of inputs must be positive and the linearised system stabilisable"),
                    );
                    return None;
                }
            }
        }
    };
    Some(Truth {
        system,
        steps: file.simulation.steps,
        process_noise,
        controls,
        undriven,
        gain,
        held_out,
    })
}

/// ∂f/∂u at the origin.
fn input_jacobian(
    mut graph: graph::Graph,
    derivatives: &[graph::Id],
    curves: &[Curve],
    n: usize,
    m: usize,
) -> Vec<f64> {
    let mut roots = Vec::new();
    for &f in derivatives {
        for j in 0..m {
            let leaf = graph.leaf(graph::Node::Input(j));
            roots.push(graph.derivative(f, leaf));
        }
    }
    let tape = Tape::compile(&graph, &roots, &[]);
    let mut slots = tape.slots();
    let (state, input) = (vec![0.0; n], vec![0.0; m]);
    let at = Point {
        time: 0.0,
        state: &state,
        input: &input,
        theta: &[],
    };
    let env = tape::Networks {
        networks: &[],
        calls: &[],
        curves,
    };
    tape.run(&mut slots, &mut [], env, at);
    (0..roots.len()).map(|i| tape.root(&slots, i)).collect()
}

/// The regulator's gain for the true equations linearised at the origin.
fn lqr_gain(
    file: &ModelFile,
    def: &file::LqrDef,
    system: &System,
    b: &[f64],
) -> Result<Vec<f64>, String> {
    let (n, m) = (file.states.len(), file.inputs.len());
    let (state, input) = (vec![0.0; n], vec![0.0; m]);
    let (mut f, mut a) = (vec![0.0; n], vec![0.0; n * n]);
    let at = Point {
        time: 0.0,
        state: &state,
        input: &input,
        theta: &[],
    };
    system.linearise(&mut system.workspace(), at, &mut f, &mut a);
    let weight = |weights: &[(file::At<String>, f64)], name: &str| {
        weights
            .iter()
            .find(|(w, _)| w.value == name)
            .map(|(_, v)| *v)
    };
    let q: Vec<f64> = file
        .states
        .iter()
        .map(|s| weight(&def.states, &s.name.value).unwrap_or(0.0))
        .collect();
    // Inputs without a weight are not the controller's: their columns are left out.
    let used: Vec<usize> = (0..m)
        .filter(|&j| weight(&def.inputs, &file.inputs[j].0.value).is_some())
        .collect();
    let r: Vec<f64> = used
        .iter()
        .filter_map(|&j| weight(&def.inputs, &file.inputs[j].0.value))
        .collect();
    let b_used: Vec<f64> = (0..n)
        .flat_map(|i| used.iter().map(move |&j| b[i * m + j]))
        .collect();
    let k = lqr::gain(&a, &b_used, &q, &r, n)?;
    let mut gain = vec![0.0; m * n];
    for (row, &j) in used.iter().enumerate() {
        gain[j * n..(j + 1) * n].copy_from_slice(&k[row * n..(row + 1) * n]);
    }
    Ok(gain)
}
