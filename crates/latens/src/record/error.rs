//! Everything that can be wrong with a record, in words that say where and what to do next.

use std::fmt;
use std::io;

use super::limits::{COLUMNS, LISTED_NAMES, VALUES};

/// A place among the rows: a physical line where the source is text, else a sample.
/// Both count from 1, as editors and MATLAB do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Line of a text file, counting blank lines and comments.
    Line(usize),
    /// Sample of a binary file or of a table that never was a file.
    Sample(usize),
    /// Line that is a JSON object.
    Object(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(n) | Self::Object(n) => write!(f, "line {n}"),
            Self::Sample(n) => write!(f, "sample {n}"),
        }
    }
}

/// One value of a table, as an error names it: file, line and column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The file the table came from.
    pub file: String,
    /// Line or sample.
    pub place: Place,
    /// Number of the column, from 1.
    pub column: usize,
    /// Name of the column.
    pub name: String,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            place,
            column,
            name,
        } = self;
        match place {
            Place::Line(_) => write!(f, "{file}: {place}, column {column} ({name})"),
            Place::Object(_) => write!(f, "{file}: {place}, member {name}"),
            // The order of variables in a MATLAB file means nothing to its owner.
            Place::Sample(_) => write!(f, "{file}: {place} of {name}"),
        }
    }
}

/// A column that the model needs and the file lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The model's name for it.
    pub name: String,
    /// `input` or `measurement`.
    pub role: &'static str,
    /// The column of the file that may be meant.
    pub suggestion: Option<String>,
}

/// Why a file of numbers cannot be read.
pub(super) enum Fault {
    /// It is not what its kind says.
    Damaged(String),
    /// It holds more numbers than are read.
    TooLarge,
}

/// What can be wrong with a record or the file it is read from.
// The fields are the numbers and names of the message.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be opened or read.
    #[error("cannot read {file}: {source}")]
    Read { file: String, source: io::Error },
    /// The file cannot be written; what stood there before is untouched.
    #[error("cannot write {file}: {source}")]
    Write { file: String, source: io::Error },
    /// No reader for this extension.
    #[error(
        "{file}: cannot read files of this kind; supported are .csv, .tsv and .txt (text with a header line), .parquet and .mat (MATLAB, up to -v7)"
    )]
    Unsupported { file: String },

    /// More bytes than are read.
    #[error(
        "{file} has more than 1 GB, which is the most that is read; cut it into several records"
    )]
    TooLarge { file: String },
    /// More numbers than are read.
    #[error(
        "{file} has more than {VALUES} numbers, which is the most that is read; leave out columns that nobody needs, or cut it into several records"
    )]
    TooManyValues { file: String },
    /// More columns than are read.
    #[error(
        "{file} has {columns} columns or more, of at most {COLUMNS}; leave out those that nobody needs"
    )]
    TooManyColumns { file: String, columns: usize },
    /// Bytes that are no text.
    #[error("{file}: line {line} is not UTF-8 text; save the file with UTF-8 encoding")]
    NotUtf8 { file: String, line: usize },
    /// Nothing but blank lines and comments.
    #[error("{file} is empty; the first line must name the columns")]
    NoHeader { file: String },
    /// Numbers where the names should be.
    #[error(
        "{file}: line {line} holds numbers where the names of the columns should be; add a header line such as t,u,y (a line that starts with # is a comment, not a header)"
    )]
    HeaderOfNumbers { file: String, line: usize },
    /// A column without a name.
    #[error(
        "{file}: line {line}, column {column}: the header has no name for this column; name it or remove the column"
    )]
    EmptyName {
        file: String,
        line: usize,
        column: usize,
    },
    /// Two columns with one name.
    #[error("{at}: columns {first} and {second} are both named '{name}'; rename one")]
    DuplicateName {
        at: String,
        name: String,
        first: usize,
        second: usize,
    },
    /// A row with more or fewer cells than the header.
    #[error(
        "{file}: line {line} has {cells} cells, the header has {header}; leave a cell empty where a value is missing"
    )]
    Ragged {
        file: String,
        line: usize,
        cells: usize,
        header: usize,
    },
    /// A quoted cell that does not end.
    #[error("{file}: line {line}: a quoted cell is not closed, or text follows its closing quote")]
    Quote { file: String, line: usize },
    /// A line that should be an object.
    #[error(
        "{file}: line {line} is not a JSON object: {reason}; the first line was one, so all must be"
    )]
    NotAnObject {
        file: String,
        line: usize,
        reason: String,
    },
    /// A header and nothing below it.
    #[error("{file} has no data rows below its header")]
    NoRows { file: String },
    /// Text where a number is needed.
    #[error("{at}: '{text}' is not a number; {}", number_hint(.text))]
    NotANumber { at: Cell, text: String },
    /// An infinite value in a column that the model uses.
    #[error("{at}: the value is infinite; leave the cell empty (NaN) if it was not measured")]
    Infinite { at: Cell },

    /// Damaged, compressed in a way that is not built in, or no Parquet file at all.
    #[error(
        "{file} is no readable Parquet file: {reason}; write it again, compressed with snappy, gzip or not at all"
    )]
    NotParquet { file: String, reason: String },
    /// Saved with `-v7.3`.
    #[error(
        "{file} is a MATLAB 7.3 (HDF5) file, which cannot be read; in MATLAB: save('name.mat', …, '-v7')"
    )]
    Mat73 { file: String },
    /// Damaged, or no MATLAB file at all.
    #[error("{file} is no readable MATLAB file: {reason}; save it again with -v7")]
    NotMat { file: String, reason: String },
    /// A MATLAB file without signals.
    #[error(
        "{file} has no real numeric vector or matrix; it holds: {has}. Save the signals as plain variables, e.g. u = data.u; save('name.mat', 'u', …, '-v7')"
    )]
    MatWithoutSignals { file: String, has: String },

    /// A mapping that is not `name=column`.
    #[error(
        "'{text}' is not a mapping; write name=column, the model's name first, e.g. V=voltage_mV"
    )]
    MappingSyntax { text: String },
    /// The same name mapped twice.
    #[error("'{name}' is mapped twice, to '{first}' and to '{second}'; keep one")]
    MappedTwice {
        name: String,
        first: String,
        second: String,
    },
    /// A mapping for a name that the model does not have.
    #[error("the mapping {name}={column} names nothing in the model{}; the model's names are: {}", did_you_mean(.suggestion), .known.join(", "))]
    MappingUnknownName {
        name: String,
        column: String,
        suggestion: Option<String>,
        known: Vec<String>,
    },
    /// A mapping to a column that the file does not have.
    #[error("the mapping {name}={column} names a column that {file} does not have{}; it has: {}", did_you_mean(.suggestion), listed(.columns))]
    MappingUnknownColumn {
        file: String,
        name: String,
        column: String,
        suggestion: Option<String>,
        columns: Vec<String>,
    },
    /// Columns that the model needs and the file lacks, all of them.
    #[error("{}", missing_columns(.file, .missing, .columns))]
    MissingColumns {
        file: String,
        missing: Vec<Missing>,
        columns: Vec<String>,
    },
    /// Columns of different length, which only MATLAB files can have.
    #[error(
        "{file}: {first} has {first_len} values and {second} has {second_len}; the signals of one record must have the same length"
    )]
    Lengths {
        file: String,
        first: String,
        first_len: usize,
        second: String,
        second_len: usize,
    },
    /// Fewer than two samples.
    #[error("{file} has {samples} sample(s); a record needs at least 2")]
    TooShort { file: String, samples: usize },

    /// Neither times nor a step.
    #[error(
        "{file} has no time column (t or time) and no step is known; name the column with ⟦map t=<column>⟧ or give the step with ⟦step⟧"
    )]
    NoTime { file: String },
    /// A column that looks like the times, and nobody says that it is or is not.
    #[error(
        "{file} has no time column (t or time), and '{column}' looks like one whose rows are not {step} apart: take it with ⟦map t={column}⟧, or count steps of {step} with ⟦map t=⟧"
    )]
    ClockLeft {
        file: String,
        column: String,
        step: f64,
    },
    /// A step that is no step.
    #[error("a step of {step} makes no sense; give a positive number")]
    BadStep { step: f64 },
    /// A step given beside a time column that contradicts it.
    #[error(
        "{file}: the step given is {given}, but the time column '{column}' has a step of {measured}; drop ⟦step⟧, or ignore the column with ⟦map t=⟧"
    )]
    StepConflict {
        file: String,
        given: f64,
        column: String,
        measured: f64,
    },
    /// A sample without a time.
    #[error(
        "{at}: the time is missing; every sample needs one, or ignore the column with ⟦map t=⟧ and give ⟦step⟧"
    )]
    TimeMissing { at: Cell },
    /// Dates for a model whose time has a unit that is not one of time.
    #[error(
        "{file}: column '{column}' holds dates, and the model counts time in '{unit}', which is no unit that they can be turned into; use ns, µs, ms, s, min, h, d, week or year in the model, or ignore the column with ⟦map t=⟧ and give ⟦step⟧"
    )]
    DatesInUnit {
        file: String,
        column: String,
        unit: String,
    },
    /// A date that is written unlike those before it, or whose day may be its month.
    #[error(
        "{at}: the date '{text}' can be read in two ways, or not as those before it; write all as 2026-11-16 10:33:40"
    )]
    DateUnclear { at: Cell, text: String },
    /// A time that does not follow the one before it.
    #[error("{at}: time {value} follows {previous}; times must increase from sample to sample")]
    TimeOrder { at: Cell, previous: f64, value: f64 },
    /// An input that is not known at some sample.
    #[error(
        "{at}: the input is missing; an input must be known at every sample: fill the gap or cut the record there"
    )]
    InputMissing { at: Cell },
    /// A record without the label of its group.
    #[error("{at}: the label of the group is missing; write it into every row")]
    GroupMissing { at: Cell },
    /// A record of two groups.
    #[error(
        "{at}: the group is '{}' here and '{}' before; a record belongs to one group: cut the file where the label changes", .labels.1, .labels.0
    )]
    GroupsMixed {
        at: Cell,
        labels: Box<(String, String)>,
    },
    /// A label that is no name.
    #[error("{at}: the label of the group has more than 100 characters; shorten it")]
    LabelLength { at: Cell },
    /// A measurement that was never taken.
    #[error(
        "{file}: measurement {name} has no value in the whole file (column '{column}'); map it to another column or remove it from the model"
    )]
    MeasurementEmpty {
        file: String,
        name: String,
        column: String,
    },
}

fn number_hint(text: &str) -> &'static str {
    if text.contains(',') && text.replace(',', ".").parse::<f64>().is_ok() {
        "write a decimal point, not a comma"
    } else if text.parse::<f64>().is_ok() {
        "the cells before it are dates: write it as these"
    } else {
        "leave the cell empty where there is no value"
    }
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    match suggestion {
        Some(name) => format!(" (did you mean {name}?)"),
        None => String::new(),
    }
}

/// Names, as many as a person reads.
pub(super) fn listed(names: &[String]) -> String {
    let some = names.iter().take(LISTED_NAMES);
    // nobody chose a name of this length
    let some = some.map(|name| name.chars().take(LISTED_NAMES).collect::<String>());
    let some = some.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED_NAMES) {
        0 => some,
        more => format!("{some} and {more} more"),
    }
}

fn missing_columns(file: &str, missing: &[Missing], columns: &[String]) -> String {
    let wanted: Vec<_> = missing
        .iter()
        .map(|m| format!("{} {}{}", m.role, m.name, did_you_mean(&m.suggestion)))
        .collect();
    let example = missing.iter().map(|m| match &m.suggestion {
        Some(column) => format!("{}={column}", m.name),
        None => format!("{}=<column>", m.name),
    });
    format!(
        "{file} has no column for {}; it has: {}. Say which column is meant: ⟦map {}⟧",
        wanted.join(", "),
        listed(columns),
        example.collect::<Vec<_>>().join("\n")
    )
}
