//! What the pages and figures say of a fit.

mod learned;
mod sentences;
