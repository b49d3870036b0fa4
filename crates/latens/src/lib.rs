pub mod error;
pub mod estimate;
pub mod fit;
pub mod linalg;
pub mod model;
pub mod objective;
pub mod record;
pub mod score;
pub mod simulate;
pub mod solve;
pub mod step;
mod suggest;
pub mod systems;

pub use error::{Divergence, Error};
pub use model::Model;
pub use record::Record;
