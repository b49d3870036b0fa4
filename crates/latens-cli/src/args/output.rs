//! Files that a verb writes: where, and never over another unasked.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use latens::record::{Column, Table, write_csv, write_csv_to};

use crate::failure::Failure;
use crate::text;

/// Refuses a file that exists.
pub fn free(path: &Path, force: bool) -> Result<(), Failure> {
    if path.exists() && !force {
        Err(Failure::Message(format!(
            "{} exists; overwrite it with --force, or choose another file with -o",
            path.display()
        )))
    } else {
        Ok(())
    }
}

/// A file for each of several records: `name.csv`, or `name_1.csv`, `name_2.csv`, ….
pub fn for_records(path: &Path, count: usize, force: bool) -> Result<Vec<PathBuf>, Failure> {
    let numbered = |k: usize| {
        let mut name = path.file_stem().unwrap_or_default().to_os_string();
        name.push(format!("_{k}"));
        if let Some(extension) = path.extension() {
            name.push(".");
            name.push(extension);
        }
        path.with_file_name(name)
    };
    let paths: Vec<PathBuf> = match count {
        1 => vec![path.into()],
        _ => (1..=count).map(numbered).collect(),
    };
    paths.iter().try_for_each(|p| free(p, force))?;
    Ok(paths)
}

/// The files in a row, for people.
pub fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    text::list(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Writes a table to a file, or to standard output.
pub fn write(path: Option<&Path>, table: &Table) -> Result<(), Failure> {
    match path {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = write_csv_to(&mut out, table).and_then(|()| out.flush());
            written.map_err(Failure::Output)
        }
        Some(path) => {
            write_csv(path, table)?;
            text::note(&format!(
                "wrote {}: {} samples of {}",
                path.display(),
                table.columns().first().map_or(0, Column::len),
                table.names().collect::<Vec<_>>().join(", ")
            ));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_records_have_numbered_files() {
        let file_names = |name: &str, count| {
            let paths = for_records(Path::new(name), count, true).unwrap_or_default();
            let shown = paths.iter().map(|p| p.display().to_string());
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(file_names("out/a.csv", 1), "out/a.csv");
        assert_eq!(file_names("out/a.b.csv", 2), "out/a.b_1.csv out/a.b_2.csv");
        assert_eq!(file_names("a", 2), "a_1 a_2");
    }
}
