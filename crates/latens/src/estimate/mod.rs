//! Hidden states from a record: filter, smoother, initial state, prediction; and from a stream.

pub mod adapt;
pub mod bands;
mod draws;
pub mod ensemble;
pub mod extended;
pub mod filter;
mod gramian;
pub mod joint;
pub(crate) mod pass;
pub mod predict;
pub mod region;
mod sensitivity;
pub mod smoother;
pub mod stream;
mod table;

pub use adapt::Adapted;
pub use bands::{Bands, Mode};
pub use extended::ExtendedFilter;
pub use filter::StateFilter;
pub use predict::{Estimated, Loosened, Prediction, Predictor, Start};
pub use region::Region;
pub use smoother::{Smoothed, Smoother};
pub use stream::Stream;
