//! Formulas from networks.

mod searching;
mod whole;
