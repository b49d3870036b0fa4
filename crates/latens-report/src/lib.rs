//! Whether to believe a run: one page that opens from disk, and figures for papers.
//!
//! A run folder is all that is looked at: its `states.csv` holds the records too. [`Fit::load`]
//! reads it, [`page::html`] makes the page, [`figures::draw`] one figure.
//!
//! What both doors, the command line and Python, say in the same words is here too: [`summary`] of a fit,
//! [`mod@check`] of records, and [`warnings`].
//!
//! Figures that stand still are drawn here, as SVG, for the page and for papers alike
//! ([`plot`]); [`picture`] makes PNG and PDF of them. The states over time are drawn by the page
//! itself, so that they can be zoomed.

pub mod base64;
pub mod check;
pub mod colours;
pub mod equation;
pub mod evaluator;
pub mod field;
pub mod figures;
pub mod innovations;
pub mod page;
pub mod panels;
pub mod picture;
pub mod plot;
mod residuals;
mod scale;
pub mod summary;
pub mod tables;
pub mod thin;
pub mod verdict;
pub mod words;
