//! What every estimate is made of: matrices, one-step maps, the objective, free runs and scores.

pub mod bounded;
pub mod linalg;
pub mod objective;
pub mod probability;
pub mod score;
pub mod step;
mod trajectory;
pub mod whiteness;

pub use trajectory::{Entry, Trajectory};
