//! The model language: what it says, what it refuses, and its derivatives against an oracle.

mod derivatives;
mod equation_errors;
mod expressions;
mod limits;
mod mistakes;
mod model_errors;
mod oracle;
mod schema;
mod sensors;
