//! How large a model may be: far beyond any that can be learned, and small enough that no file exhausts
//! the machine that reads it. The reference documentation lists them all.

/// Bytes of a model file.
pub const FILE_BYTES: usize = 4 << 20;
/// Names of all kinds: constants, inputs, states, expressions, unknowns, networks, tables, measurements
/// and what the truth, the simulation and held-out experiments say of them.
pub const NAMES: usize = 5_000;
/// Characters of a name.
pub const NAME_LENGTH: usize = 100;
/// States, and likewise inputs and measurements.
pub const STATES: usize = 500;
/// Numbers, names and signs of one expression.
pub const TOKENS: usize = 5_000;
/// Brackets, functions and signs inside each other in one expression.
pub const NESTING: usize = 200;
/// Expressions inside each other in an equation, with those that it names.
pub const DEPTH: usize = 1_000;
/// Operations of all equations, times the states, unknowns and network outputs that they are
/// differentiated by.
pub const DERIVATIVES: usize = 4_000_000;
/// Hidden layers of a network.
pub const LAYERS: usize = 32;
/// Units of a layer.
pub const UNITS: usize = 4_000;
/// Arguments of a network.
pub const ARGUMENTS: usize = 500;
/// Calls of networks, in all equations.
pub const CALLS: usize = 50;
/// Learned parameters: weights and unknown constants. Their covariance takes the square of it.
pub const PARAMETERS: usize = 8_000;
/// Sub-steps between two samples.
pub const SUBSTEPS: usize = 10_000;
/// Steps of a simulation.
pub const STEPS: usize = 10_000_000;
/// Mistakes of a file that are shown.
pub const MISTAKES: usize = 100;
/// Characters of a line that is shown with a mistake.
pub const SHOWN_LINE: usize = 200;
/// Characters of a mistake that are shown.
pub const SHOWN_MESSAGE: usize = 1_000;
/// Held-out experiments.
pub const HELD_OUT: usize = 100;
/// States of a model whose simulation is closed by a linear-quadratic regulator.
pub const REGULATED_STATES: usize = 50;
/// Passes of a solver, and segments of a record.
pub const PASSES: usize = 1_000_000;
/// Starts of a fit, or members of an ensemble.
pub const STARTS: usize = 1_000;
/// A noise, relative to what the data show.
pub const RELATIVE_NOISE: f64 = 1e6;
