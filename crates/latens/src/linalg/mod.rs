//! The matrices of this problem: small dense blocks, one large packed covariance, large dense ones.

pub mod cholesky;
pub mod eigen;
pub mod lqr;
pub mod matrix;
pub mod normal;
pub mod packed;
pub mod product;
pub mod simd;
pub mod small;

pub use packed::{PackedCovariance, Precision};
