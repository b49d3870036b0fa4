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

mod constant;
mod diagnostic;
mod error;
mod expression;
mod file;
mod graph;
pub mod limits;
mod lqr;
mod model;
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

pub use constant::{Fixed, Prior, Unknown, Varies};
pub use diagnostic::{Diagnostic, ModelError};
pub use error::Error;
pub use file::{Hold, KEYS, Method};
pub use model::{Blueprint, KnownStart, Model, Quantity, State};
pub use system::{Fault, Programs, System, Workspace};
pub use tape::Point;
pub use truth::{HeldOut, Truth};
pub use units::{FormulaUnits, NetworkUnits};

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
