//! Files of the repository that are made from the one table of settings.

use latens::{model::settings, solve};

/// A file that is not written by hand.
#[derive(Debug)]
pub struct Generated {
    /// Where it stands in the repository.
    pub path: &'static str,
    /// Its content.
    pub text: String,
}

const HEADING: &str = "\
<!-- Made from the table of settings in Rust by `scripts/generate`; do not edit. -->
# Settings of a fit

One name for each, everywhere: a key of `[fit]` in the model file, a keyword of `Model.fit` in Python,
and with `-` for `_` an option of `latens fit`. The call or the command line overrides the file. The default
is batch's; where another solver's differs, it stands behind it.

";

/// The keywords of Python, and the page of the settings.
pub fn generated() -> [Generated; 2] {
    crate::register();
    let solvers = solve::solvers();
    let names: Vec<&str> = solvers.iter().map(|solver| solver.name()).collect();
    [
        Generated {
            path: "python/latens/_settings.py",
            text: settings::python(&names),
        },
        Generated {
            path: "docs/reference/settings.md",
            text: HEADING.to_string() + &settings::markdown(&solve::defaults()),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_what_the_table_gives() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for Generated { path, text } in generated() {
            let found = std::fs::read_to_string(format!("{root}/{path}")).unwrap_or_default();
            assert!(found == text, "{path} is old: run scripts/generate");
        }
    }
}
