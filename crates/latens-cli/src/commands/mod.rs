//! The verbs, a file each.

pub mod check;
pub mod compare;
pub mod data;
pub mod demo;
pub mod design;
pub mod distill;
pub mod estimate;
pub mod export;
pub mod fit;
pub mod init;
pub mod lab;
mod learned;
pub mod plot;
pub mod predict;
pub mod profile;
pub mod report;
pub mod reproduce;
pub mod rivals;
pub mod schema;
pub mod shell;
pub mod simulate;
pub mod stream;
pub mod systems;
pub mod worker;
