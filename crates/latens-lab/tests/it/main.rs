//! The methods that Latens is compared with: their gradients, and that they learn; and the gallery.

mod export;
mod gallery;
#[path = "../../../latens-model/tests/it/oracle/mod.rs"]
mod oracle;
mod rivals;
mod sampler;
