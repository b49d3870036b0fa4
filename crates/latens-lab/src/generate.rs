//! Files of the repository that are made from the one table of settings.

use std::path::Path;
use std::{fs, io};

use latens::{model::settings, solve};

/// A file that is not written by hand.
#[derive(Debug)]
pub struct Generated {
    /// Where it stands in the repository.
    pub path: &'static str,
    /// Its content.
    pub text: String,
}

/// The page of the settings; its table stands between two marks.
const SETTINGS_PAGE: &str = "docs/reference/settings.md";
const TABLE_BEGIN: &str = "<!-- table -->\n";
const TABLE_END: &str = "<!-- /table -->";

/// The keywords of Python, and the page of the settings in a repository.
///
/// # Errors
/// The page cannot be read, or has no marks.
pub fn generated(root: &Path) -> io::Result<[Generated; 2]> {
    crate::register();
    let solvers = solve::solvers();
    let names: Vec<&str> = solvers.iter().map(|solver| solver.name()).collect();
    let page = fs::read_to_string(root.join(SETTINGS_PAGE))?;
    let parts = page
        .split_once(TABLE_BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(TABLE_END)?.1)));
    let (before, after) = parts
        .ok_or_else(|| io::Error::other(format!("{SETTINGS_PAGE} has no place for its table")))?;
    let table = settings::markdown(&solve::defaults());
    Ok([
        Generated {
            path: "python/latens/_settings.py",
            text: settings::python(&names),
        },
        Generated {
            path: SETTINGS_PAGE,
            text: [before, TABLE_BEGIN, &table, TABLE_END, after].concat(),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_what_the_table_gives() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for Generated { path, text } in generated(root).unwrap() {
            let found = fs::read_to_string(root.join(path)).unwrap_or_default();
            assert!(found == text, "{path} is old: run scripts/generate");
        }
    }
}
