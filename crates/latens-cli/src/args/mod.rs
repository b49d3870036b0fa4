//! What stands on a command line.

pub mod assignments;
pub mod model;
pub mod output;
pub mod records;
pub mod settings;
