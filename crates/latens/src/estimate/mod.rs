//! Hidden states from a record: filter, smoother, initial state.

pub mod bands;
pub mod filter;
mod gramian;
pub(crate) mod pass;
pub mod predict;
pub mod region;
mod sensitivity;
pub mod smoother;

pub use filter::StateFilter;
pub use predict::{Prediction, Predictor, Start};
pub use region::Region;
pub use smoother::{Smoothed, Smoother};
