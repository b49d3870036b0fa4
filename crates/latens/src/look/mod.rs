//! Before anything is learned: how large things are, where the known equations alone put the hidden
//! states, and what the records can tell.

pub mod blind;
pub mod check;
pub mod finding;
pub mod invariance;
pub mod mirror;
pub mod noise;
pub mod prior;
pub mod region;
pub mod roughness;
pub mod sampling;
pub mod scales;
pub mod sensors;
mod shift;
pub mod sight;
pub mod stiffness;
pub mod suspects;
pub mod trial;

pub use check::{Check, DETERMINED_SCALE_PART};
pub use finding::{Companion, Finding};
pub use invariance::Invariance;
pub use noise::{RESOLUTION, noise};
pub use prior::{PriorSmoothing, smooth_with_known_equations};
pub use region::Region;
pub use scales::SignalScales;
pub use stiffness::Stiffness;
pub use suspects::Suspect;
pub use trial::Leaving;
