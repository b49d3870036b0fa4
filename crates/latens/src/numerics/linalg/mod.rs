//! The matrices of this problem: small dense blocks, one large packed covariance, large dense ones.

pub mod cholesky;
pub mod eigen;
pub mod matrix;
pub mod normal;
pub mod packed;
pub mod product;

pub use latens_model::{simd, small};

pub use packed::{PackedCovariance, Precision};
