//! What is made from the one table of settings: a file, and a part of a page.

use latens::{model::settings, solve};

/// A file, or a part of one, that is not written by hand.
#[derive(Debug)]
pub struct Generated {
    /// Where the file stands in the repository.
    pub path: &'static str,
    /// Its content, or that of the part.
    pub text: String,
    /// The lines that the part stands between, where it is not the whole file.
    pub between: Option<(&'static str, &'static str)>,
}

impl Generated {
    /// The file as it should be, given the file as it is; `None` where the part has no place in it.
    pub fn file(&self, found: &str) -> Option<String> {
        let Some((start, end)) = self.between else {
            return Some(self.text.clone());
        };
        let (before, rest) = found.split_once(start)?;
        let (_, after) = rest.split_once(end)?;
        Some(format!("{before}{start}\n{}{end}{after}", self.text))
    }
}

/// The keywords of Python, and the table in the page of the settings.
pub fn generated() -> [Generated; 2] {
    crate::register();
    let solvers = solve::solvers();
    let names: Vec<&str> = solvers.iter().map(|solver| solver.name()).collect();
    [
        Generated {
            path: "python/latens/_settings.py",
            text: settings::python(&names),
            between: None,
        },
        Generated {
            path: "docs/reference/settings.md",
            text: settings::markdown(&solve::defaults()),
            between: Some(("<!-- table -->", "<!-- /table -->")),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_what_the_table_gives() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for made in generated() {
            let path = made.path;
            let found = std::fs::read_to_string(format!("{root}/{path}")).unwrap_or_default();
            assert!(
                made.file(&found).as_ref() == Some(&found),
                "{path} is old: run scripts/generate"
            );
        }
    }

    #[test]
    fn a_part_leaves_the_rest_of_a_page_alone() {
        let part = Generated {
            path: "page.md",
            text: "new\n".into(),
            between: Some(("<a>", "</a>")),
        };
        let page = part.file("before\n<a>\nold\n</a>\nafter\n");
        assert_eq!(page.as_deref(), Some("before\n<a>\nnew\n</a>\nafter\n"));
        assert_eq!(part.file("nothing"), None);
    }
}
