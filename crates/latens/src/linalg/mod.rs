//! The matrices of this problem: small dense blocks, one large packed covariance.

pub mod lqr;
pub mod normal;
pub mod packed;
pub mod small;

pub use packed::{PackedCovariance, Precision};
