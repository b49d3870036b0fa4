//! Latens learns the equations nobody measured.

#[cfg(not(feature = "internals"))]
mod internals_note {}

pub mod error;
pub mod filter;
pub mod fit;
pub mod folder;
pub mod job;
pub mod look;
pub mod numerics;
pub mod record;
pub mod simulate;
pub mod solve;
pub mod text;

pub use latens_model as model;
pub use latens_model::{suggest, systems};

pub use error::{Divergence, Door, Error};
pub use fit::{Fit, Role, Warning};
pub use job::{Job, Outcome, Watch, fit};
pub use latens_model::Model;
pub use latens_model::settings::{Settings, SettingsLayer};
pub use record::{Record, Source};
pub use solve::{Observer, Silent};
