//! How a fit is shown: one page that opens from disk, and figures for papers.
//!
//! [`page::html`] makes the page of a fit, from memory or from its folder, letter for letter the same;
//! [`figures::draw`] makes one figure, [`picture`] its file.
//!
//! What both doors, the command line and Python, say in the same words is here too: [`summary`] of a
//! fit, and [`mod@check`] of records.
//!
//! Figures that stand still are drawn here, as SVG, for the page and for papers alike
//! ([`plot`]). The states over time are drawn by the page itself, so that they can be zoomed.

#![forbid(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links)]

pub mod base64;
mod beside;
pub mod check;
pub mod colours;
pub mod comparison;
mod constants;
pub mod design;
mod embedded;
pub mod equation;
pub mod evaluator;
pub mod field;
pub mod figures;
mod foreseen;
pub mod formulas;
pub mod innovations;
mod learned;
pub mod outputs;
pub mod page;
pub mod panels;
pub mod picture;
mod play;
pub mod plot;
pub mod profiles;
mod residuals;
mod scale;
mod shapes;
pub mod summary;
pub mod tables;
pub mod thin;
mod truth;
pub mod verdict;
pub mod words;
