//! What is said on a terminal, and how a verb ends.

pub mod failure;
pub mod interrupt;
pub mod pace;
pub mod progress;
pub mod steps;
pub mod text;
