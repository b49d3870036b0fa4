//! Hidden states from a record: filter, smoother, initial state.

pub mod filter;
pub(crate) mod pass;
pub mod smoother;

pub use filter::StateFilter;
pub use smoother::{Smoothed, Smoother};
