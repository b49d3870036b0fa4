//! A plain table of named columns: what a file holds, before a model asks for any of it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::error::{Cell, Place, RecordError};
use super::limits::FILE_BYTES;
use super::source::sha256;
use super::{csv, mat, parquet};

/// One named signal; its values may be somebody else's, as `&[f64]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Column<V = Vec<f64>> {
    /// The name in the file.
    pub name: String,
    /// The values; NaN where the cell is empty or holds text.
    pub(super) values: V,
    /// Row and content of the first cell that holds text.
    ///
    /// Logs carry columns of dates and labels that no model asks for; the text is a fault only
    /// when somebody reads the column.
    pub(super) text: Option<(usize, String)>,
    /// Whether the values are instants, in seconds from the first.
    pub(super) instants: bool,
    /// What its cells say, for a source of text.
    pub(super) label: Option<Label>,
}

/// What the cells of a column say as text, where the source is text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Label {
    /// The first cell.
    first: String,
    /// The first row that says something else, and what.
    other: Option<(usize, String)>,
}

impl<V: AsRef<[f64]>> Column<V> {
    /// A column of numbers, NaN where there is no value.
    pub fn new(name: impl Into<String>, values: V) -> Self {
        Self {
            name: name.into(),
            values,
            text: None,
            instants: false,
            label: None,
        }
    }

    /// Takes the text of a cell that belongs in a row.
    pub(super) fn say(&mut self, row: usize, cell: &str) {
        let shown = || cell.chars().take(LABEL_LENGTH + 1).collect();
        match &mut self.label {
            None => {
                let (first, other) = (shown(), None);
                self.label = Some(Label { first, other });
            }
            Some(label) if label.other.is_none() && !is_label(cell, &label.first) => {
                label.other = Some((row, shown()));
            }
            Some(_) => {}
        }
    }

    /// A column of instants, in seconds from some moment; as times they become the model's unit.
    pub fn of_instants(name: impl Into<String>, seconds: V) -> Self {
        Self {
            instants: true,
            ..Self::new(name, seconds)
        }
    }

    /// Number of values. In a MATLAB file it may differ from column to column.
    pub fn len(&self) -> usize {
        self.values.as_ref().len()
    }

    /// The values, NaN where there is none.
    pub fn into_values(self) -> V {
        self.values
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.as_ref().is_empty()
    }
}

/// A table of named columns and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<V = Vec<f64>> {
    /// The file as the user named it; errors begin with it.
    pub source: String,
    columns: Vec<Column<V>>,
    /// Physical line of each row; empty where rows are not lines of a text.
    lines: Vec<u32>,
    /// Of the bytes it was read from.
    checksum: Option<String>,
}

impl Table {
    /// A table read from text, whose reader has checked the names.
    pub(super) fn from_text(source: &str, columns: Vec<Column>, lines: Vec<u32>) -> Self {
        Self {
            source: source.to_owned(),
            columns,
            lines,
            checksum: None,
        }
    }

    /// Reads a file; its extension says how. `-` is the standard input, a text table.
    ///
    /// # Errors
    /// The file cannot be read, is of no supported kind, or is not what its extension says.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        // before it is read: it may be large
        let (parse, whole) = if path == Path::new(STANDARD_INPUT) {
            (csv::parse as Parse, at_most(io::stdin().lock()))
        } else {
            (parser(path)?, read_whole(path))
        };
        match whole {
            Ok(Some(bytes)) => Ok(Self {
                checksum: Some(sha256(&bytes)),
                ..parse(&file, &bytes)?
            }),
            Ok(None) => Err(RecordError::TooLarge { file }),
            Err(source) => Err(RecordError::Read { file, source }),
        }
    }

    /// Reads the bytes of a file; the extension of its name, which errors show, says how.
    ///
    /// ```
    /// let table = latens::record::Table::from_bytes("a.csv", b"t,V\n0,1\n0.1,2\n")?;
    /// assert!(table.names().eq(["t", "V"]));
    /// # Ok::<(), latens::record::RecordError>(())
    /// ```
    ///
    /// # Errors
    /// They are of no supported kind, or not what the extension says.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, RecordError> {
        parser(Path::new(name))?(name, bytes)
    }

    /// Reads the bytes of a CSV file; `source` is the name that errors show.
    ///
    /// # Errors
    /// They are no CSV.
    pub fn from_csv(source: &str, bytes: &[u8]) -> Result<Self, RecordError> {
        csv::parse(source, bytes)
    }
}

/// The name of the standard input among files.
pub const STANDARD_INPUT: &str = "-";

type Parse = fn(&str, &[u8]) -> Result<Table, RecordError>;

/// What reads files of a name.
fn parser(path: &Path) -> Result<Parse, RecordError> {
    let extension = path.extension().map(|e| e.to_ascii_lowercase());
    match extension.as_ref().and_then(|e| e.to_str()) {
        Some("csv" | "tsv" | "txt") => Ok(csv::parse),
        Some("mat") => Ok(mat::parse),
        Some("parquet") => Ok(parquet::parse),
        _ => Err(RecordError::Unsupported {
            file: path.display().to_string(),
        }),
    }
}

/// The bytes of a file; `None` where it is too large, or has no end.
fn read_whole(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = fs::File::open(path)?;
    // what is no file tells no length
    let length = file.metadata()?.len();
    if length > FILE_BYTES {
        return Ok(None);
    }
    at_most(file)
}

/// All bytes, unless they are too many.
fn at_most(from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= FILE_BYTES).then_some(bytes))
}

impl<V: AsRef<[f64]>> Table<V> {
    /// A table from columns in memory. The names must differ.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`].
    pub fn new(source: impl Into<String>, columns: Vec<Column<V>>) -> Result<Self, RecordError> {
        let source = source.into();
        check_names(&source, columns.iter().map(|c| c.name.as_str()))?;
        Ok(Self {
            source,
            columns,
            lines: Vec::new(),
            checksum: None,
        })
    }

    /// SHA-256 of the bytes that it was read from; none where it is in no file.
    pub fn checksum(&self) -> Option<&str> {
        self.checksum.as_deref()
    }

    /// The columns in the order of the file.
    pub fn columns(&self) -> &[Column<V>] {
        &self.columns
    }

    /// The columns alone.
    pub fn into_columns(self) -> Vec<Column<V>> {
        self.columns
    }

    /// The names of the columns in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|c| c.name.as_str())
    }

    /// Index of the column with this name, letter for letter.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The values of a column, NaN where there is none.
    ///
    /// # Errors
    /// [`RecordError::NotANumber`] with the first cell of the column that holds text.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn values(&self, column: usize) -> Result<&[f64], RecordError> {
        match &self.columns[column].text {
            None => Ok(self.columns[column].values.as_ref()),
            Some((row, text)) => Err(RecordError::NotANumber {
                at: self.cell(column, *row),
                text: text.clone(),
            }),
        }
    }

    /// The one thing that all cells of a column say: the label of a group, as text or as a number.
    ///
    /// # Errors
    /// Two labels, or none, with the place; one that is too long.
    pub fn label(&self, column: usize) -> Result<String, RecordError> {
        let missing = |row| RecordError::GroupMissing {
            at: self.cell(column, row),
        };
        let mixed = |row, first: String, second: String| RecordError::GroupsMixed {
            at: self.cell(column, row),
            labels: Box::new((first, second)),
        };
        if let Some(Label { first, other }) = &self.columns[column].label {
            return match other {
                _ if first.is_empty() => Err(missing(0)),
                Some((row, cell)) if cell.is_empty() => Err(missing(*row)),
                Some((row, cell)) => Err(mixed(*row, first.clone(), cell.clone())),
                None if first.chars().count() > LABEL_LENGTH => Err(RecordError::LabelLength {
                    at: self.cell(column, 0),
                }),
                None => Ok(first.clone()),
            };
        }
        let values = self.values(column)?;
        if let Some(row) = values.iter().position(|v| v.is_nan()) {
            return Err(missing(row));
        }
        let first = *values.first().ok_or_else(|| missing(0))?;
        match values.iter().position(|v| *v != first) {
            Some(row) => Err(mixed(row, first.to_string(), values[row].to_string())),
            None => Ok(first.to_string()),
        }
    }

    /// The instants of a column of dates, in seconds from the first; `None` where it holds no dates.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn instants(&self, column: usize) -> Option<&[f64]> {
        let column = &self.columns[column];
        column.instants.then(|| column.values.as_ref())
    }

    /// Where a row (from 0) stands in the source.
    pub fn place(&self, row: usize) -> Place {
        match self.lines.get(row) {
            Some(&line) => Place::Line(line as usize),
            None => Place::Sample(row + 1),
        }
    }

    /// Names a value in an error.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn cell(&self, column: usize, row: usize) -> Cell {
        Cell {
            file: self.source.clone(),
            place: self.place(row),
            column: column + 1,
            name: self.columns[column].name.clone(),
        }
    }
}

/// Characters of a label.
const LABEL_LENGTH: usize = 100;

/// Whether a cell says what a label says, as far as that is kept.
fn is_label(cell: &str, label: &str) -> bool {
    let kept = || cell.chars().take(LABEL_LENGTH + 1);
    cell == label || (cell.len() > label.len() && kept().eq(label.chars()))
}

/// Two columns of one name would make the choice between them an accident.
pub(super) fn check_names<'a>(
    at: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), RecordError> {
    let mut seen = std::collections::HashMap::new();
    for (k, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, k) {
            return Err(RecordError::DuplicateName {
                at: at.to_owned(),
                name: name.to_owned(),
                first: first + 1,
                second: k + 1,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_chooses_the_reader() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.csv", "a.CSV", "a.txt", "a.tsv"] {
            let path = folder.path().join(name);
            fs::write(&path, "t\tV\n0\t1\n").unwrap();
            let table = Table::read(&path).unwrap();
            assert_eq!(table.names().collect::<Vec<_>>(), ["t", "V"]);
            assert_eq!(table.source, path.display().to_string());
        }
        let path = folder.path().join("a.mat");
        fs::write(&path, "t,V\n0,1\n").unwrap();
        assert!(matches!(
            Table::read(&path),
            Err(RecordError::NotMat { .. })
        ));
    }

    #[test]
    fn an_unknown_kind_lists_what_can_be_read() {
        let message = Table::read("a.xlsx").unwrap_err().to_string();
        assert!(message.starts_with("a.xlsx: cannot read files of this kind"));
        for kind in [".csv", ".tsv", ".txt", ".mat", ".parquet"] {
            assert!(message.contains(kind), "{message}");
        }
        assert!(matches!(
            Table::read("README"),
            Err(RecordError::Unsupported { .. })
        ));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let message = Table::read("no/such.csv").unwrap_err().to_string();
        assert!(
            message.starts_with("cannot read no/such.csv: "),
            "{message}"
        );
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let columns = ["a", "b", "a"].map(|n| Column::new(n, vec![0.0])).to_vec();
        assert_eq!(
            Table::new("memory", columns).unwrap_err().to_string(),
            "memory: columns 1 and 3 are both named 'a'; rename one"
        );
    }
}
