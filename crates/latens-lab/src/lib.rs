//! What Latens is compared with, and the experiments that its evidence rests on.
//!
//! [`rivals`] are the methods of others: three of them learn the model's own θ and register as solvers
//! ([`register`]), two put something else in its place. [`reproduce`] runs the paper's comparison,
//! [`gallery`] fits problems of many fields, right, with a network and slightly wrong,
//! [`sampler`] samples a posterior, to hold intervals against. The core knows
//! nothing of this crate.

#![forbid(unsafe_code)]

pub mod export;
mod files;
pub mod gallery;
pub mod generate;
pub mod host;
pub mod reproduce;
pub mod rivals;
pub mod sampler;

use latens::solve;
use rivals::{Rival, RivalSolver};

/// Adds the rivals that learn the model's own θ to the solvers.
pub fn register() {
    static SOLVERS: [RivalSolver; 3] = [
        RivalSolver(Rival::Node),
        RivalSolver(Rival::Spinode),
        RivalSolver(Rival::Rm),
    ];
    SOLVERS.iter().for_each(|solver| solve::register(solver));
}
