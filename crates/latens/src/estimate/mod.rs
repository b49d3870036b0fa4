//! Hidden states from a record: filter, smoother, initial state, prediction.

pub mod adapt;
pub mod bands;
pub mod ensemble;
pub mod filter;
mod gramian;
pub(crate) mod pass;
pub mod predict;
pub mod region;
mod sensitivity;
pub mod smoother;
mod table;

pub use adapt::Adapted;
pub use bands::{Bands, Mode};
pub use filter::StateFilter;
pub use predict::{Estimated, Loosened, Prediction, Predictor, Start};
pub use region::Region;
pub use smoother::{Smoothed, Smoother};
