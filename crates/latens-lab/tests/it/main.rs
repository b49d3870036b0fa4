//! The methods that Latens is compared with: their gradients, and that they learn.

#[path = "../../../latens-model/tests/it/oracle/mod.rs"]
mod oracle;
mod rivals;
