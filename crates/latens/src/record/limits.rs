//! How much a file of a record may hold. The reference documentation lists these limits.

/// Bytes of a file.
pub const FILE_BYTES: u64 = 1 << 30;
/// Numbers in a table, all its columns together: 400 MB.
pub const VALUES: usize = 50_000_000;
/// Columns of a table.
pub const COLUMNS: usize = 10_000;
/// Sample times between two samples.
pub const GAP: f64 = 100_000.0;
/// Sample times from the first sample to the last, for each sample that there is; a short record may
/// last as long as one gap.
pub const SPARSITY: f64 = 100.0;
/// Sub-steps of the model's method from the first sample to the last.
pub const SUBSTEPS: f64 = 1e9;
/// Names that an error lists.
pub(super) const LISTED_NAMES: usize = 50;
