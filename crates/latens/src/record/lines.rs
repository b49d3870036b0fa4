//! Samples as they come, one a line: a text table with its header, or JSON objects.
//!
//! Names are found as in a whole file ([`super::Layout`], [`Mapping`]). What tells the two kinds
//! apart is the first line: an object starts with `{`. In an object a measurement may be absent or
//! `null` where a table has an empty cell. Dates are counted from 1970, in the model's unit of time.

use super::csv::{cells, delimiter, header_names, is_skipped, number};
use super::error::{Cell, Place, RecordError};
use super::instant;
use super::layout::{Required, check_mapping, required};
use super::sampling::time_column;
use super::table::{Column, Table};
use super::{Layout, Mapping};
use serde_json::Value;

/// How samples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Comma-separated, after a header.
    Csv,
    /// An object a line.
    JsonLines,
}

/// A line's numbers, on the model's terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// Where the line has one.
    pub time: Option<f64>,
    /// One for each input.
    pub inputs: Vec<f64>,
    /// NaN where nothing was measured.
    pub outputs: Vec<f64>,
}

/// Reads lines, one after another.
pub struct Lines {
    source: String,
    layout: Layout,
    mapping: Mapping,
    columns: Option<Columns>,
    line: usize,
    values: Vec<f64>,
    row: Row,
}

/// Where a line has what.
struct Columns {
    kind: Kind,
    delimiter: char,
    /// Names of all columns; of an object, of those that are asked for.
    names: Vec<String>,
    used: Vec<bool>,
    time: Option<usize>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Seconds of the model's unit of time, where it is one.
    unit: Option<f64>,
    /// Cells of the header, those without a name at its end included.
    cells: usize,
}

impl Columns {
    /// A date in the column of the times.
    fn date(&self, column: usize, text: &str) -> Option<f64> {
        let unit = self.unit.filter(|_| self.time == Some(column))?;
        Some(instant::parse(text)? as f64 / (1e9 * unit))
    }
}

impl Lines {
    /// `source` is the name that errors use.
    pub fn new(source: &str, layout: Layout, mapping: Mapping) -> Self {
        Self {
            source: source.into(),
            layout,
            mapping,
            columns: None,
            line: 0,
            values: vec![],
            row: Row::default(),
        }
    }

    /// How samples are written; not known before the first line.
    pub fn kind(&self) -> Option<Kind> {
        self.columns.as_ref().map(|c| c.kind)
    }

    /// Whether the last sample had a time of its own.
    pub fn timed(&self) -> bool {
        self.row.time.is_some()
    }

    /// The last sample.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Number of the last line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Takes the next line, with or without its end; whether it holds a sample, which is then the
    /// [`row`](Self::row), or is a header, a comment, a blank line.
    ///
    /// # Errors
    /// What is wrong with this line; before [`Lines::kind`] is known, with all that will follow.
    pub fn read(&mut self, bytes: &[u8]) -> Result<bool, RecordError> {
        self.line += 1;
        let (file, line) = (self.source.clone(), self.line);
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Err(RecordError::NotUtf8 { file, line });
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.trim_end_matches(['\n', '\r']);
        let known = self.columns.as_ref();
        if is_skipped(text, known.map(|c| c.delimiter)) {
            return Ok(false);
        }
        let Some(columns) = known else {
            let object = text.trim_start().starts_with('{');
            self.columns = Some(if object {
                self.keys()?
            } else {
                self.header(text)?
            });
            self.line -= usize::from(object);
            return if object { self.read(bytes) } else { Ok(false) };
        };
        self.values.clear();
        let file_line = FileLine { file: &file, line };
        match columns.kind {
            Kind::Csv => cells_of(text, columns, file_line, &mut self.values)?,
            Kind::JsonLines => members_of(text, columns, file_line, &mut self.values)?,
        }
        let at = |column: usize| cell(columns, column, file_line);
        let time = columns.time.filter(|&k| !self.values[k].is_nan());
        if let (Some(k), None, Kind::Csv) = (columns.time, time, columns.kind) {
            return Err(RecordError::TimeMissing { at: at(k) });
        }
        if let Some(&k) = columns.inputs.iter().find(|&&k| self.values[k].is_nan()) {
            return Err(RecordError::InputMissing { at: at(k) });
        }
        let fill = |to: &mut Vec<f64>, from: &[usize]| {
            to.clear();
            to.extend(from.iter().map(|&k| self.values[k]));
        };
        self.row.time = time.map(|k| self.values[k]);
        fill(&mut self.row.inputs, &columns.inputs);
        fill(&mut self.row.outputs, &columns.outputs);
        Ok(true)
    }

    fn header(&self, text: &str) -> Result<Columns, RecordError> {
        let delimiter = delimiter(text);
        let names = header_names(&self.source, self.line, text, delimiter)?;
        let columns = names.iter().map(|n| Column::new(n.as_ref(), vec![]));
        let table = Table::new(&self.source, columns.collect())?;
        check_mapping(&table, &self.layout, &self.mapping)?;
        let Required {
            inputs,
            measurements: outputs,
        } = required(&table, &self.layout, &self.mapping)?;
        let used = |k: usize| inputs.contains(&k) || outputs.contains(&k);
        let time = match self.mapping.get("t") {
            Some("") => None,
            Some(column) => table.find(column),
            None => time_column(&table, used),
        };
        Ok(Columns {
            kind: Kind::Csv,
            delimiter,
            cells: cells(text, delimiter).count(),
            used: (0..names.len())
                .map(|k| used(k) || time == Some(k))
                .collect(),
            names: table.names().map(str::to_owned).collect(),
            time,
            inputs,
            outputs,
            unit: instant::seconds(&self.layout.time_unit),
        })
    }

    /// The members that an object is asked for: inputs, measurements, time.
    fn keys(&self) -> Result<Columns, RecordError> {
        // an object has whatever it has: only the model's side of a mapping can be wrong
        let given = self.mapping.pairs().iter().filter(|(_, c)| !c.is_empty());
        let mut given: Vec<&str> = given.map(|(_, c)| c.as_str()).collect();
        given.sort_unstable();
        given.dedup();
        let given = given.into_iter().map(|c| Column::new(c, vec![]));
        let table = Table::new(&self.source, given.collect())?;
        check_mapping(&table, &self.layout, &self.mapping)?;
        let (d_u, d_y) = (self.layout.inputs.len(), self.layout.measurements.len());
        let channels = self.layout.inputs.iter().chain(&self.layout.measurements);
        let mut names: Vec<String> = channels
            .map(|name| self.mapping.get(name).unwrap_or(name).to_owned())
            .collect();
        let time = match self.mapping.get("t") {
            Some("") => None,
            Some(key) => Some(key),
            None => ["t", "time"]
                .into_iter()
                .find(|t| names.iter().all(|n| n != t)),
        };
        names.extend(time.map(str::to_owned));
        Ok(Columns {
            kind: Kind::JsonLines,
            delimiter: '\n',
            cells: names.len(),
            used: vec![true; names.len()],
            time: time.map(|_| d_u + d_y),
            names,
            inputs: (0..d_u).collect(),
            outputs: (d_u..d_u + d_y).collect(),
            unit: instant::seconds(&self.layout.time_unit),
        })
    }
}

/// A line of a file.
#[derive(Clone, Copy)]
struct FileLine<'a> {
    file: &'a str,
    line: usize,
}

fn cell(columns: &Columns, column: usize, at: FileLine) -> Cell {
    Cell {
        file: at.file.into(),
        place: match columns.kind {
            Kind::Csv => Place::Line(at.line),
            Kind::JsonLines => Place::Object(at.line),
        },
        column: column + 1,
        name: columns.names[column].clone(),
    }
}

/// The numbers of a row of a table; NaN in columns that nobody asks for.
fn cells_of(
    text: &str,
    columns: &Columns,
    at: FileLine,
    values: &mut Vec<f64>,
) -> Result<(), RecordError> {
    let FileLine { file, line } = at;
    for (k, content) in cells(text, columns.delimiter).enumerate() {
        let Some(content) = content else {
            let file = file.into();
            return Err(RecordError::Quote { file, line });
        };
        if k >= columns.names.len() && k < columns.cells && content.is_empty() {
            continue;
        }
        values.push(match columns.used.get(k) {
            Some(true) => match number(&content).or_else(|| columns.date(k, &content)) {
                Some(value) => finite(value, columns, k, at)?,
                None => return Err(not_a_number(&content, columns, k, at)),
            },
            _ => f64::NAN,
        });
    }
    if values.len() != columns.names.len() {
        return Err(RecordError::Ragged {
            file: file.into(),
            line,
            cells: values.len(),
            header: columns.names.len(),
        });
    }
    Ok(())
}

/// The numbers of an object.
fn members_of(
    text: &str,
    columns: &Columns,
    at: FileLine,
    values: &mut Vec<f64>,
) -> Result<(), RecordError> {
    let object: serde_json::Map<String, Value> = serde_json::from_str(text).map_err(|e| {
        let (file, line) = (at.file.into(), at.line);
        // the parser sees one line and calls it the first
        let reason = e.to_string().replace(" at line 1 column", " at column");
        RecordError::NotAnObject { file, line, reason }
    })?;
    for (k, name) in columns.names.iter().enumerate() {
        values.push(match object.get(name) {
            None | Some(Value::Null) => f64::NAN,
            Some(value) => match value.as_f64().or_else(|| columns.date(k, value.as_str()?)) {
                Some(value) => finite(value, columns, k, at)?,
                None => return Err(not_a_number(&value.to_string(), columns, k, at)),
            },
        });
    }
    Ok(())
}

fn finite(value: f64, columns: &Columns, k: usize, at: FileLine) -> Result<f64, RecordError> {
    if value.is_infinite() {
        let at = cell(columns, k, at);
        return Err(RecordError::Infinite { at });
    }
    Ok(value)
}

fn not_a_number(text: &str, columns: &Columns, k: usize, at: FileLine) -> RecordError {
    RecordError::NotANumber {
        at: cell(columns, k, at),
        text: text.chars().take(40).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::names;

    fn lines(mapping: &[&str]) -> Lines {
        let layout = Layout {
            inputs: names("I"),
            measurements: names("V n"),
            states: names("V n h"),
            ..Layout::default()
        };
        Lines::new("stdin", layout, Mapping::parse(mapping).unwrap())
    }

    /// All lines: rows as text, errors as their message.
    fn read(mapping: &[&str], text: &str) -> Vec<String> {
        let mut lines = lines(mapping);
        let answers =
            text.split_inclusive('\n')
                .filter_map(|line| match lines.read(line.as_bytes()) {
                    Ok(false) => None,
                    Ok(true) => {
                        let r = lines.row();
                        Some(format!("{:?} {:?} {:?}", r.time, r.inputs, r.outputs))
                    }
                    Err(e) => Some(e.to_string()),
                });
        answers.collect()
    }

    #[test]
    fn a_table_and_objects_say_the_same() {
        let expected = [
            "Some(0.5) [10.0] [-65.0, NaN]",
            "Some(0.6) [9.0] [NaN, 0.25]",
        ];
        let table = "# log\n\nt,n,note,V,I\n0.5,,warm,-65,10\n\n0.6,0.25,,NaN,9";
        assert_eq!(read(&[], table), expected);
        let objects = "{\"t\": 0.5, \"I\": 10, \"V\": -65.0}\r\n\n\
                       {\"t\": 0.6, \"I\": 9, \"V\": null, \"n\": 0.25, \"note\": \"x\"}\n";
        assert_eq!(read(&[], objects), expected);
    }

    #[test]
    fn names_are_mapped_and_times_ignored() {
        let map = ["V=voltage", "t="];
        let table = "t;I;voltage;n\n0;1;2;3\n";
        assert_eq!(read(&map, table), ["None [1.0] [2.0, 3.0]"]);
        let object = "{\"t\": 0, \"I\": 1, \"voltage\": 2, \"n\": 3}";
        assert_eq!(read(&map, object), ["None [1.0] [2.0, 3.0]"]);
        let wrong = read(&["U=voltage"], object);
        assert!(
            wrong[0].starts_with("the mapping U=voltage names nothing"),
            "{wrong:?}"
        );
    }

    #[test]
    fn a_broken_line_names_itself_and_the_next_is_read() {
        let table = "t,I,V,n\n0,1,2\n0,,2,3\n0,1,high,3\n0,1,inf,3\n,1,2,3\n0,1,\"2,3\n0,1,2,3\n";
        let starts = [
            "stdin: line 2 has 3 cells, the header has 4",
            "stdin: line 3, column 2 (I): the input is missing",
            "stdin: line 4, column 3 (V): 'high' is not a number",
            "stdin: line 5, column 3 (V): the value is infinite",
            "stdin: line 6, column 1 (t): the time is missing",
            "stdin: line 7: a quoted cell is not closed",
            "Some(0.0) [1.0] [2.0, 3.0]",
        ];
        let got = read(&[], table);
        assert_eq!(got.len(), starts.len(), "{got:#?}");
        for (got, start) in got.iter().zip(starts) {
            assert!(got.starts_with(start), "{got}");
        }
        let objects = "{\"I\": 1}\n{\"I\": 1, \"V\": \"x\"}\n[1]\n{\"I\": 1\n{}\n";
        let starts = [
            "None [1.0] [NaN, NaN]",
            "stdin: line 2, member V: '\"x\"' is not a number",
            "stdin: line 3 is not a JSON object",
            "stdin: line 4 is not a JSON object: EOF while parsing an object at column",
            "stdin: line 5, member I: the input is missing",
        ];
        let got = read(&[], objects);
        for (got, start) in got.iter().zip(starts) {
            assert!(got.starts_with(start), "{got}");
        }
    }

    #[test]
    fn without_its_columns_nothing_can_be_read() {
        let mut lines = lines(&[]);
        let error = lines.read(b"t,I,voltage\n").unwrap_err().to_string();
        assert!(
            error.starts_with("stdin has no column for measurement V"),
            "{error}"
        );
        assert!(lines.kind().is_none());
    }
}
