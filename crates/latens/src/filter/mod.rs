//! The states of a record with θ fixed: filters forward, smoothers back, and what they leave open.

pub mod bands;
pub(crate) mod curvature;
pub mod exact;
pub mod extended;
mod gramian;
pub mod joint;
pub mod kalman;
pub mod pass;
mod sensitivity;
mod shift;
pub mod smoother;

pub use bands::{Bands, Mode};
pub use exact::exact_trajectory;
pub use extended::{ExtendedFilter, Innovation};
pub use kalman::StateFilter;
pub use smoother::{Smoothed, Smoother};
