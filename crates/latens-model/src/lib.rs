//! The model language of Latens: a file with the known equations, and the compiled system that it
//! becomes.
//!
//! ```
//! use latens_model::{Model, Point};
//!
//! let model = Model::from_text("decay.toml", r#"
//!     [states.x]
//!     derivative = "-rate*x"
//!     [unknowns]
//!     rate = { guess = 2, scale = 1 }
//!     [measurements]
//!     x = "x"
//! "#)?;
//! let mut derivative = [0.0];
//! let at = Point { time: 0.0, state: &[3.0], input: &[], theta: &[0.0] };
//! model.system.derivative(&mut model.system.workspace(), at, &mut derivative);
//! assert_eq!(derivative, [-6.0]);
//! # Ok::<(), latens_model::Error>(())
//! ```
//!
//! The path of a model file is `file` (TOML, keys and types) → `resolve` (what names mean) →
//! `graph` (equations and their derivatives) → `tape` (programs) → [`System`]. Mistakes are
//! [`Diagnostic`]s with their places. The section `[fit]` is read into a layer of [`settings`].
//! This crate knows the language and nothing else: no records, no solvers.

#![forbid(unsafe_code)]

mod blueprint;
mod constant;
mod diagnostic;
mod error;
mod expression;
mod file;
mod graph;
pub mod limits;
mod lqr;
pub mod network;
mod resolve;
pub mod settings;
pub mod simd;
pub mod small;
pub mod suggest;
mod system;
pub mod systems;
pub mod tape;
mod truth;
mod units;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

pub use blueprint::Blueprint;
pub use constant::{Fixed, Prior, Unknown, Varies};
pub use diagnostic::{Diagnostic, ModelError};
pub use error::Error;
pub use file::{Hold, KEYS, Method};
pub use system::{Fault, Programs, System, Workspace};
pub use tape::Point;
pub use truth::{HeldOut, Truth};
pub use units::{FormulaUnits, NetworkUnits};

use expression::{Expr, Kind};
use file::{At, ModelFile};
use network::{Network, Scaling, Structure};
use resolve::{Equations, Variant};
use settings::SettingsLayer;
use tape::Curve;

/// The file as it is read, for the tests' own readings of it; no promises.
#[doc(hidden)]
pub mod syntax {
    pub use crate::expression::{Expr, Kind, Operator};
    pub use crate::file::{ModelFile, NetworkDef, TableDef, read};
    pub use crate::resolve::FUNCTIONS;
}

/// The JSON Schema of the model file.
///
/// ```
/// let schema = latens_model::schema();
/// assert!(schema["properties"]["states"].is_object());
/// assert!(schema["properties"]["fit"]["properties"]["seed"].is_object());
/// ```
pub fn schema() -> serde_json::Value {
    let mut schema: serde_json::Value =
        serde_json::from_str(include_str!("schema.json")).expect("the schema is JSON (tested)");
    schema["properties"]["fit"] = settings::schema();
    let methods: Vec<&str> = Method::NAMES.iter().map(|(name, _)| *name).collect();
    schema["properties"]["time"]["properties"]["method"]["enum"] = methods.into();
    schema
}

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
    /// Where the built-in record starts; a fit looks at it only where it is known how well it is known.
    pub start: Option<f64>,
    /// Standard deviation of where records start about `start`, where the file states it.
    pub start_deviation: Option<f64>,
    /// Rough size, where the file states it.
    pub scale: Option<f64>,
    /// Rough middle, where the file states it.
    pub center: Option<f64>,
}

/// Where a state starts in every record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownStart {
    /// Its index.
    pub state: usize,
    /// Where.
    pub mean: f64,
    /// How well that is known.
    pub variance: f64,
}

/// A checked model: names, units, and the compiled equations.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub description: String,
    /// The text it was read from.
    pub text: String,
    pub time_unit: String,
    /// Time between samples, for records without a time column.
    pub step: Option<f64>,
    pub method: Method,
    /// Steps of the method between two samples.
    pub substeps: usize,
    /// What an implicit method lets be wrong in each of its steps, beside a state and its size; with it
    /// the steps are cut as need be.
    pub tolerance: Option<f64>,
    /// What each input of the equations does between samples.
    pub hold: Vec<Hold>,
    /// Whether the file says so, input by input.
    pub hold_is_given: Vec<bool>,
    pub states: Vec<State>,
    pub inputs: Vec<Quantity>,
    pub measurements: Vec<Quantity>,
    /// The constants that are learned; they come first in θ.
    pub unknowns: Vec<Unknown>,
    /// Those of `[unknowns]` whose value is given.
    pub fixed: Vec<Fixed>,
    /// The equations to learn.
    pub system: System,
    /// The true equations and how to drive them, where the file has them.
    pub truth: Option<Truth>,
    /// The settings of a fit that the file gives.
    pub fit: SettingsLayer,
    /// What errors call the file, and where in it the name of a solver stands.
    file: String,
    solver: Option<At<String>>,
    /// What is fixed and freed other than in the file.
    held: Held,
}

/// Constants that are fixed at a value, and those that are free, whatever the file says.
#[derive(Debug, Clone, Default, PartialEq)]
struct Held {
    fix: BTreeMap<String, f64>,
    free: Vec<String>,
    /// Whether there is one record to learn from.
    one_record: bool,
    groups: Groups,
}

/// The groups that records to learn from belong to.
#[derive(Debug, Clone, Default, PartialEq)]
enum Groups {
    /// Nobody says: a constant that varies by group is that of a group which nobody has seen.
    #[default]
    Any,
    One,
    /// Their labels.
    Several(Vec<String>),
}

impl Model {
    /// Reads a model file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let failed = |source| Error::Read {
            path: path.into(),
            source,
        };
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        // a device or a pipe has no length to ask for
        let mut start = file.take(limits::FILE_BYTES as u64 + 1);
        start.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() > limits::FILE_BYTES {
            return Err(too_long(path));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let read = &e.as_bytes()[..e.utf8_error().valid_up_to()];
            let line = read.iter().filter(|b| **b == b'\n').count() + 1;
            let message = format!("line {line} is not UTF-8 text; save the file as UTF-8");
            failed(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                message,
            ))
        })?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// A model that comes with Latens; see [`systems`].
    ///
    /// ```
    /// let model = latens_model::Model::builtin("hodgkin-huxley")?;
    /// assert_eq!(model.hidden(), [3]);
    /// assert_eq!(model.states[3].name, "h");
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unknown`] where there is none of that name.
    pub fn builtin(name: &str) -> Result<Self, Error> {
        match systems::find(name) {
            Some(text) => Self::from_text(name, text),
            None => Err(Error::Unknown { name: name.into() }),
        }
    }

    /// Reads a model from text; `file` is the name that errors show.
    pub fn from_text(file: &str, text: &str) -> Result<Self, Error> {
        if text.len() > limits::FILE_BYTES {
            return Err(too_long(Path::new(file)));
        }
        let (definitions, diagnostics) = file::read(text);
        Self::of(file, definitions, text, diagnostics)
    }

    /// Reads a text of the time when no method meant Euler's; the text of the model names it.
    ///
    /// ```
    /// use latens_model::{Method, Model};
    ///
    /// let text = "[states.x]\nderivative = \"-x\"\n[measurements]\nx = \"x\"";
    /// assert_eq!(Model::from_text("model", text)?.method, Method::Rk4);
    /// let earlier = Model::from_earlier_text("model", text)?;
    /// assert_eq!(earlier.method, Method::Euler);
    /// assert!(earlier.text.starts_with("time.method = \"euler\"\n[states.x]"));
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Model::from_text`], and where there is no place for the method's name.
    pub fn from_earlier_text(file: &str, text: &str) -> Result<Self, Error> {
        match file::with_method(text, "euler") {
            Some(text) => Self::from_text(file, &text),
            None => {
                let mistake = Diagnostic::new(0..0, "no method is named, which meant Euler's")
                    .help("write method = \"euler\" into [time]");
                Err(ModelError::new(file, text, vec![mistake]).into())
            }
        }
    }

    fn of(
        name: &str,
        mut file: ModelFile,
        text: &str,
        mut diagnostics: Vec<Diagnostic>,
    ) -> Result<Self, Error> {
        file.add_sensors();
        file.add_differences();
        let model = Self::build(name, &file, text, &mut diagnostics);
        match model {
            Some(model) if diagnostics.is_empty() => Ok(model),
            _ => Err(ModelError::new(name, text, diagnostics).into()),
        }
    }

    /// The model of the same file with constants of `[unknowns]` fixed at a value, and others learned,
    /// whatever the file says of them.
    ///
    /// ```
    /// use latens_model::Model;
    ///
    /// let text = "[states.x]\nderivative = \"-a*x + b\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1 }\nb = { value = 3, fixed = true }";
    /// let model = Model::from_text("model", text)?;
    /// assert_eq!((model.unknowns[0].name.as_str(), model.fixed[0].value), ("a", 3.0));
    /// let other = model.holding(&[("a".to_string(), 2.5)].into(), &["b".to_string()])?;
    /// assert_eq!((other.unknowns[0].name.as_str(), other.fixed[0].value), ("b", 2.5));
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Constant`] for a name that is not in `[unknowns]`, or a value outside of its bounds.
    pub fn holding(&self, fix: &BTreeMap<String, f64>, free: &[String]) -> Result<Self, Error> {
        self.held(Held {
            fix: fix.clone(),
            free: free.to_vec(),
            ..self.held.clone()
        })
    }

    /// The model for so many records to learn from: of one record nobody can tell how a constant
    /// varies from record to record, and it is an ordinary one.
    ///
    /// ```
    /// use latens_model::Model;
    ///
    /// let text = "[states.x]\nderivative = \"-a*x\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1, varies = \"record\" }";
    /// let model = Model::from_text("model", text)?;
    /// assert_eq!(model.states[1].name, "Δa");
    /// assert_eq!(model.for_records(1)?.states.len(), 1);
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// None where the model was read without one.
    pub fn for_records(&self, records: usize) -> Result<Self, Error> {
        let by_record = |u: &Unknown| u.varies == Some(Varies::Record);
        if records != 1 || !self.unknowns.iter().any(by_record) {
            return Ok(self.clone());
        }
        self.held(Held {
            one_record: true,
            ..self.held.clone()
        })
    }

    /// The model for records of such groups, whose labels differ. With none it is that of a group which
    /// nobody has seen: what varies by group is a state, as what varies by record. With one, what varies
    /// by group is an ordinary constant. With several, θ has how each group differs from the mean, behind
    /// the constants, and the equations have one more input, behind those of the file: the number of a
    /// record's group, from 1.
    ///
    /// ```
    /// use latens_model::Model;
    ///
    /// let text = "[states.x]\nderivative = \"-a*x\"\n[measurements]\nx = \"x\"\n[unknowns]\n\
    ///             a = { guess = 1, varies = \"group\" }";
    /// let model = Model::from_text("model", text)?;
    /// assert_eq!(model.states[1].name, "Δa");
    /// let three = model.for_groups(&["a".into(), "b".into(), "c".into()])?;
    /// assert_eq!((three.system.parameters(), three.system.inputs()), (4, 1));
    /// assert_eq!(three.group_entries(), [(0, 1..4)]);
    /// assert_eq!(three.for_groups(&["b".into()])?.system.parameters(), 1);
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Errors
    /// More groups than θ has room for.
    pub fn for_groups(&self, groups: &[String]) -> Result<Self, Error> {
        if !self.asks_for_groups() {
            return Ok(self.clone());
        }
        let model = self.held(Held {
            groups: match groups {
                [] => Groups::Any,
                [_] => Groups::One,
                several => Groups::Several(several.to_vec()),
            },
            ..self.held.clone()
        })?;
        Ok(Self {
            system: model.system.with_networks_of(&self.system),
            ..model
        })
    }

    /// Whether a constant that is learned varies by group, in the file.
    pub fn asks_for_groups(&self) -> bool {
        self.held.groups != Groups::Any
            || self
                .unknowns
                .iter()
                .any(|u| u.varies == Some(Varies::Group))
    }

    /// The labels of the groups whose differences are in θ.
    pub fn groups(&self) -> &[String] {
        match &self.held.groups {
            Groups::Several(labels) => labels,
            _ => &[],
        }
    }

    /// Constants that vary by group, and the entries of θ with the difference of each group.
    pub fn group_entries(&self) -> Vec<(usize, std::ops::Range<usize>)> {
        let groups = self.groups().len();
        let grouped = self.unknowns.iter().enumerate();
        let grouped = grouped.filter(|(_, u)| u.varies == Some(Varies::Group) && groups > 0);
        let entries = grouped.enumerate().map(|(k, (place, _))| {
            let start = self.unknowns.len() + k * groups;
            (place, start..start + groups)
        });
        entries.collect()
    }

    fn held(&self, held: Held) -> Result<Self, Error> {
        if held == self.held {
            return Ok(self.clone());
        }
        let (mut file, diagnostics) = file::read(&self.text);
        held.apply(&mut file)?;
        let model = Self::of(&self.file, file, &self.text, diagnostics)?;
        Ok(Self { held, ..model })
    }

    /// The constants that vary, and the state that holds how each differs from its mean.
    pub fn varying(&self) -> impl Iterator<Item = (usize, usize)> {
        let varying = self.unknowns.iter().enumerate();
        let varying = varying.filter(|(_, u)| u.varies.is_some());
        varying.filter_map(|(k, u)| Some((k, self.state_index(&file::difference_name(&u.name))?)))
    }

    /// States of which the file says where every record starts. What is known exactly is known to a millionth.
    pub fn known_starts(&self) -> impl Iterator<Item = KnownStart> {
        let states = self.states.iter().enumerate();
        states.filter_map(|(state, s)| {
            let (mean, deviation) = (s.start?, s.start_deviation?);
            let size = s
                .scale
                .unwrap_or(if mean == 0.0 { 1.0 } else { mean.abs() });
            Some(KnownStart {
                state,
                mean,
                variance: deviation.max(1e-6 * size).powi(2),
            })
        })
    }

    /// The file with what is fixed and freed.
    fn definitions(&self) -> (ModelFile, Vec<Diagnostic>) {
        let (mut file, diagnostics) = file::read(&self.text);
        // it was applied to this text before
        let _ = self.held.apply(&mut file);
        file.add_sensors();
        file.add_differences();
        (file, diagnostics)
    }

    /// Moves entries of θ that are outside of their bounds to them.
    pub fn keep_bounds(&self, theta: &mut [f64]) {
        for (unknown, theta) in self.unknowns.iter().zip(theta) {
            if unknown.is_bounded() {
                let (least, most) = unknown.bounds();
                *theta = theta.clamp(least, most);
            }
        }
    }

    /// The variances of θ before the data, where that of weights and rough guesses is given.
    pub fn prior_variances(&self, rough: f64) -> Vec<f64> {
        let mut variances = vec![rough; self.system.parameters()];
        for (unknown, variance) in self.unknowns.iter().zip(&mut variances) {
            *variance = unknown.prior_variance(rough);
        }
        variances
    }

    fn build(
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
                let own = file.inputs.iter().map(|input| input.hold);
                let own = own.map(|hold| hold.or(file.hold).unwrap_or(Hold::ZeroOrder));
                own.chain((file.groups > 0).then_some(Hold::ZeroOrder))
                    .collect()
            },
            hold_is_given: {
                let own = file
                    .inputs
                    .iter()
                    .map(|input| input.hold.or(file.hold).is_some());
                own.chain((file.groups > 0).then_some(true)).collect()
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

    /// Whether the solver that `[fit]` names is one of `known`. The language knows no solvers, so whoever
    /// does asks.
    ///
    /// # Errors
    /// [`Error::Mistakes`] with the line of the name.
    pub fn check_solver(&self, known: &[&str]) -> Result<(), Error> {
        let name = self.solver.as_ref();
        let mistake = name.and_then(|name| resolve::reference_mistake(name, known, "a solver"));
        match mistake {
            Some(mistake) => Err(ModelError::new(&self.file, &self.text, vec![mistake]).into()),
            None => Ok(()),
        }
    }

    /// Reads settings of a fit, a text with a section `[fit]` as it may stand in the file; `name` is
    /// what errors call it.
    pub fn settings(&self, name: &str, text: &str) -> Result<SettingsLayer, Error> {
        let (settings, mut diagnostics) = file::read_settings(text);
        let states: Vec<&str> = self.states.iter().map(|s| s.name.as_str()).collect();
        let channels: Vec<&str> = self.measurements.iter().map(|m| m.name.as_str()).collect();
        let learned = self.unknowns.iter().map(|u| u.name.as_str());
        let fixed = self.fixed.iter().map(|f| f.name.as_str());
        let known = resolve::KnownNames {
            states: &states,
            channels: &channels,
            unknowns: &learned.chain(fixed).collect::<Vec<_>>(),
        };
        resolve::check_settings(&settings, known, &mut diagnostics);
        if diagnostics.is_empty() {
            Ok(settings.layer)
        } else {
            Err(ModelError::new(name, text, diagnostics).into())
        }
    }

    /// The compiled equations, and the tables that they use.
    fn compile(file: &ModelFile, equations: Equations) -> (System, Vec<Curve>) {
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

    /// The model with networks of less structure than the file says; this one's are whole.
    ///
    /// ```
    /// use latens_model::{Model, network::Structure};
    ///
    /// let model = Model::builtin("harmonic-oscillator")?;
    /// let linear = model.simplified(Structure::Linear);
    /// // a factor for each argument, and a constant
    /// assert_eq!(linear.system.parameters(), model.arguments(0).len() + 1);
    /// assert_eq!(model.simplified(Structure::Absent).system.parameters(), 0);
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    pub fn simplified(&self, structure: Structure) -> Self {
        Self {
            system: self.system.simplified(structure),
            ..self.clone()
        }
    }

    /// The model in which each output of a network is a state that nothing drives, after the
    /// states of this one: what the known equations alone can say about it. With the call and
    /// the output of each; `None` without networks.
    pub fn signals(&self) -> Option<(Self, Vec<(usize, usize)>)> {
        let (file, mut diagnostics) = self.definitions();
        let equations = resolve::equations(&file, Variant::Signals, &mut diagnostics)?;
        let signals = equations.signals.clone();
        let mut states = self.states.clone();
        states.extend(signals.iter().map(|_| State {
            name: String::new(),
            unit: String::new(),
            start: None,
            start_deviation: None,
            scale: None,
            center: None,
        }));
        let (system, _) = Self::compile(&file, equations);
        let model = Self {
            states,
            system,
            truth: None,
            ..self.clone()
        };
        (!signals.is_empty()).then_some((model, signals))
    }

    /// The same equations with the unknown constants themselves first in θ, in place of the numbers of
    /// order one that a solver sees.
    ///
    /// ```
    /// use latens_model::{Model, Point};
    ///
    /// let model = Model::builtin("emps")?.plain();
    /// let theta: Vec<f64> = model.unknowns.iter().map(|u| u.guess).collect();
    /// let at = Point { time: 0.0, state: &[0.0, 0.0], input: &[1.0], theta: &theta };
    /// let mut derivative = [0.0; 2];
    /// model.system.derivative(&mut model.system.workspace(), at, &mut derivative);
    /// assert_eq!(derivative, [0.0, 0.37], "gain times one volt");
    /// # Ok::<(), latens_model::Error>(())
    /// ```
    ///
    /// # Panics
    /// Never: the text was compiled before.
    pub fn plain(&self) -> Self {
        let (file, mut diagnostics) = self.definitions();
        let equations = resolve::equations(&file, Variant::Plain, &mut diagnostics);
        let equations = equations.expect("it has been compiled before");
        let (system, _) = Self::compile(&file, equations);
        Self {
            system: system.with_networks_of(&self.system),
            ..self.clone()
        }
    }

    /// The units of what a network is given and of what it puts out, where the file says so or the units of the
    /// equations that it stands in do.
    pub fn units(&self, network: usize) -> NetworkUnits {
        let (file, _) = file::read(&self.text);
        units::of_network(&file, network, self.system.networks()[network].arguments)
    }

    /// What a network is called with, argument by argument, as it stands in the file; where calls
    /// differ, all of them: `v1 | v2`.
    pub fn arguments(&self, network: usize) -> Vec<String> {
        let network = &self.system.networks()[network];
        let (file, _) = file::read(&self.text);
        let mut texts = vec![Vec::<&str>::new(); network.arguments];
        let mut open: Vec<&Expr> = file
            .states
            .iter()
            .filter_map(|s| s.derivative.as_ref())
            .collect();
        open.extend(file.expressions.iter().map(|(_, expr)| expr));
        open.extend(file.measurements.iter().map(|m| &m.value));
        while let Some(expr) = open.pop() {
            match &expr.kind {
                Kind::Call {
                    name, arguments, ..
                } => {
                    if *name == network.name {
                        for (texts, argument) in texts.iter_mut().zip(arguments) {
                            let text = self.text.get(argument.span.clone()).unwrap_or("?");
                            if !texts.contains(&text) {
                                texts.push(text);
                            }
                        }
                    }
                    open.extend(arguments);
                }
                Kind::Negate(inner) | Kind::Not(inner) => open.push(inner),
                Kind::Binary(_, left, right) => open.extend([&**left, &**right]),
                Kind::Number(_) | Kind::Name(_) | Kind::Invalid => {}
            }
        }
        texts.iter().map(|texts| texts.join(" | ")).collect()
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

impl Held {
    fn apply(&self, file: &mut ModelFile) -> Result<(), Error> {
        let fixed = self.fix.iter().map(|(name, value)| (name, Some(*value)));
        let free = self.free.iter().map(|name| (name, None));
        for (name, fixed) in fixed.chain(free) {
            let known: Vec<String> = file.unknowns.iter().map(|u| u.name.value.clone()).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let place = suggest::find(name, &known, "unknown constant");
            let unknown = &mut file.unknowns[place.map_err(Error::Constant)?];
            if let Some(outside) = fixed.and_then(|value| unknown.outside(value)) {
                let message = format!("`{name}` cannot be fixed at {outside}");
                return Err(Error::Constant(message));
            }
            unknown.fixed = fixed;
        }
        for unknown in &mut file.unknowns {
            let ordinary = match unknown.varies {
                Some(Varies::Record) => self.one_record,
                Some(Varies::Group) => self.groups == Groups::One,
                Some(Varies::Slowly) | None => false,
            };
            if ordinary {
                unknown.varies = None;
            }
        }
        if let Groups::Several(labels) = &self.groups {
            file.groups = labels.len();
        }
        Ok(())
    }
}

fn too_long(path: &Path) -> Error {
    let most = limits::FILE_BYTES >> 20;
    let message = format!("it has more than {most} MB; a model file is a short text");
    Error::Read {
        path: path.into(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights of order one.
    fn theta(model: &Model) -> Vec<f64> {
        let wave = |i: usize| ((3 * i + 1) as f64).powi(2).sin();
        (0..model.system.parameters()).map(wave).collect()
    }

    /// With the signals set to what the networks put out, the extended system moves as the learned
    /// one, at any point; the signals themselves stand still.
    fn check_signals(model: &Model, count: usize) {
        let (extended, outputs) = model.signals().unwrap();
        let (system, n) = (&model.system, model.states.len());
        assert_eq!(outputs.len(), count);
        assert_eq!(extended.system.states(), n + count);
        let theta = theta(model);
        let (mut ws, mut extended_ws) = (system.workspace(), extended.system.workspace());
        for k in 0..20 {
            let wave = |i: usize| ((7 * k + i) as f64).powi(2).sin();
            let state: Vec<f64> = (0..n).map(wave).collect();
            let input: Vec<f64> = (n..n + model.inputs.len()).map(wave).collect();
            let mut derivative = vec![0.0; n];
            let at = |state| Point {
                time: 0.3,
                state,
                input: &input,
                theta: &theta,
            };
            system.derivative(&mut ws, at(&state), &mut derivative);
            let mut calls = Vec::new();
            let blank = [state.as_slice(), &vec![0.0; count]].concat();
            extended
                .system
                .visit_arguments(&mut extended_ws, at(&blank), |i, arguments| {
                    let network = &system.networks()[i];
                    let mut trace = network.trace();
                    for (j, value) in arguments.iter().enumerate() {
                        network.set_argument(&mut trace, j, *value);
                    }
                    network.evaluate(&theta[system.weight_ranges()[i].clone()], &mut trace);
                    calls.push(trace.output);
                });
            let put_out = outputs.iter().map(|&(call, k)| calls[call][k]);
            let state: Vec<f64> = state.iter().copied().chain(put_out).collect();
            let mut found = vec![f64::NAN; n + count];
            extended
                .system
                .derivative(&mut extended_ws, at(&state), &mut found);
            for (f, expected) in found.iter().zip(&derivative) {
                assert!((f - expected).abs() < 1e-12 * (1.0 + expected.abs()));
            }
            assert!(found[n..].iter().all(|f| *f == 0.0));
        }
    }

    /// One signal for each output of each call: cart-pole calls a network of two outputs once; one
    /// called twice has two signals, or one where the arguments are the same.
    #[test]
    fn signals_stand_for_the_outputs_of_calls() {
        let model = Model::from_text("cart-pole", systems::find("cart-pole").unwrap()).unwrap();
        check_signals(&model, 2);
        let twice = |second: &str| {
            let text = format!(
                "[states.x]\nderivative = \"y*net(x, 2*y)\"\n\
                 [states.y]\nderivative = \"c - {second}\"\n[unknowns]\nc = {{ guess = 1, scale = 1 }}\n\
                 [measurements]\nx = \"x\"\n[networks.net]\nlayers = [\"4 tanh\"]\n"
            );
            Model::from_text("twice", &text).unwrap()
        };
        check_signals(&twice("net(y, x)"), 2);
        check_signals(&twice("3*net(x, 2*y)^2"), 1);
        let none = "[states.x]\nderivative = \"-c*x\"\n[measurements]\nx = \"x\"\n\
                    [unknowns]\nc = { guess = 1, scale = 1 }\n";
        assert!(Model::from_text("none", none).unwrap().signals().is_none());
    }
}
