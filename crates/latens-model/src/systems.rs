//! The embedded systems: the model files of `models/`, by name.

/// (name, text of the model file), in alphabetical order.
pub const SYSTEMS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/systems.rs"));

/// The text of an embedded model file.
///
/// ```
/// assert!(latens_model::systems::find("cart-pole").is_some());
/// assert!(latens_model::systems::find("perpetuum-mobile").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static str> {
    SYSTEMS
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| *text)
}
