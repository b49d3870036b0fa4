//! The matrices of this problem: small dense blocks, one large packed covariance.

pub mod normal;
pub mod packed;
pub use latens_model::small;

pub use packed::{PackedCovariance, Precision};
