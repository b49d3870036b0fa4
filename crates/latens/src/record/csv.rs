//! Text tables: a header line with names, then one line of numbers per sample.
//!
//! Read line by line here and not with the `csv` crate: that crate reports the position before
//! the blank lines and comments it skips, and one line early after CRLF, while the errors of
//! this reader must name the line that an editor shows. In return a quoted cell may not span
//! lines, which no number and no sensible name does.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use super::atomic::write_atomic;
use super::error::RecordError;
use super::instant::Dates;
use super::limits::{COLUMNS, VALUES};
use super::table::{Column, Table, check_names};

/// Reads a text table; `source` is the name that errors use.
///
/// The delimiter is the one of `,` `;` tab that is most frequent in the header. Empty cells, `NA`
/// and `NaN` in any case are NaN. Blank lines and lines that start with `#` are skipped, spaces
/// around cells are dropped, a byte-order mark and CRLF are understood.
///
/// # Errors
/// Not UTF-8, no header or no data, a nameless or doubly named column, a row whose number of
/// cells is not the header's, a quoted cell without end. Text in a column of numbers is reported
/// only when the column is used, see [`Table::values`].
pub fn parse(source: &str, bytes: &[u8]) -> Result<Table, RecordError> {
    let file = || source.to_owned();
    let text = std::str::from_utf8(bytes).map_err(|e| RecordError::NotUtf8 {
        file: file(),
        line: 1 + bytes[..e.valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count(),
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = (1..).zip(
        text.split('\n')
            .map(|row| row.strip_suffix('\r').unwrap_or(row)),
    );

    let (line, header) = rows
        .find(|(_, row)| !is_skipped(row, None))
        .ok_or_else(|| RecordError::NoHeader { file: file() })?;
    let delimiter = delimiter(header);
    let names = header_names(source, line, header, delimiter)?;
    let header_cells = cells(header, delimiter).count();

    let mut columns: Vec<_> = names
        .iter()
        .map(|name| Column::new(name.as_ref(), Vec::new()))
        .collect();
    let mut dates: Vec<Option<Dates>> = vec![None; columns.len()];
    let mut lines = Vec::new();
    for (line, row) in rows.filter(|(_, row)| !is_skipped(row, Some(delimiter))) {
        let (mut count, mut too_many) = (0, false);
        for cell in cells(row, delimiter) {
            let cell = cell.ok_or_else(|| RecordError::Quote { file: file(), line })?;
            match (columns.get_mut(count), dates.get_mut(count)) {
                (Some(column), Some(dates)) => push(column, dates, &cell),
                // a delimiter at the end of all lines, as some programs write it
                _ if cell.is_empty() && count < header_cells => {}
                _ => too_many = true,
            }
            count += 1;
        }
        if too_many || count < columns.len() {
            return Err(RecordError::Ragged {
                file: file(),
                line,
                cells: count,
                header: columns.len(),
            });
        }
        lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        if lines.len() * columns.len() > VALUES {
            return Err(RecordError::TooManyValues { file: file() });
        }
    }
    if lines.is_empty() {
        return Err(RecordError::NoRows { file: file() });
    }
    for (column, dates) in columns.iter_mut().zip(dates) {
        if let Some(seconds) = dates.and_then(Dates::seconds) {
            (column.values, column.instants) = (seconds, true);
        }
    }
    Ok(Table::from_text(source, columns, lines))
}

/// The names in a header line, each once; delimiters at its end are no columns.
pub(super) fn header_names<'h>(
    source: &str,
    line: usize,
    header: &'h str,
    delimiter: char,
) -> Result<Vec<Cow<'h, str>>, RecordError> {
    let file = || source.to_owned();
    let mut names = cells(header, delimiter)
        .take(COLUMNS + 1)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| RecordError::Quote { file: file(), line })?;
    let named = names.iter().rposition(|name| !name.is_empty());
    names.truncate(named.map_or(1, |last| last + 1));
    if names.len() > COLUMNS {
        let (file, columns) = (file(), names.len());
        return Err(RecordError::TooManyColumns { file, columns });
    }
    if let Some(column) = names.iter().position(|name| name.is_empty()) {
        let column = column + 1;
        let file = file();
        return Err(RecordError::EmptyName { file, line, column });
    }
    // In quotes a number is a name.
    if !header.contains('"') && names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err(RecordError::HeaderOfNumbers { file: file(), line });
    }
    check_names(
        &format!("{source}: line {line}"),
        names.iter().map(|n| n.as_ref()),
    )?;
    Ok(names)
}

/// A comment or a blank line; tabs alone are a row of empty cells where tabs are delimiters.
pub(super) fn is_skipped(row: &str, delimiter: Option<char>) -> bool {
    let start = row.trim_start_matches(|c: char| c.is_whitespace() && Some(c) != delimiter);
    start.is_empty() || start.starts_with('#')
}

/// Takes a cell: a number, a date where all before it are dates, or text.
fn push(column: &mut Column, dates: &mut Option<Dates>, cell: &str) {
    let value = number(cell);
    let row = column.len();
    column.say(row, cell);
    if value.is_none() && column.text.is_none() {
        let text = cell.chars().take(40).collect();
        column.text = Some((row, text));
        if column.values.iter().all(|v| v.is_nan()) {
            *dates = Dates::begin(row, cell);
        }
    } else if let Some(before) = dates
        && !before.push(cell)
    {
        // the first cell that is none is the fault
        *dates = None;
        column.text = Some((row, cell.chars().take(40).collect()));
    }
    column.values.push(value.unwrap_or(f64::NAN));
}

/// The number in a cell, NaN where there is none; `None` for text.
pub(super) fn number(cell: &str) -> Option<f64> {
    match cell.parse::<f64>() {
        // One NaN for all, so that equal files give equal bits.
        Ok(v) if v.is_nan() => Some(f64::NAN),
        Ok(v) => Some(v),
        Err(_) => (cell.is_empty() || cell == "NA").then_some(f64::NAN),
    }
}

pub(super) fn delimiter(header: &str) -> char {
    let count = |d: char| {
        let mut quoted = false;
        let outside = header.chars().filter(|&c| {
            quoted ^= c == '"';
            c == d && !quoted
        });
        outside.count()
    };
    // The last of equals wins, so the comma stands last.
    ['\t', ';', ',']
        .into_iter()
        .max_by_key(|&d| count(d))
        .unwrap_or(',')
}

/// The cells of a line without the spaces around them; `None` for a broken quote.
pub(super) fn cells(row: &str, delimiter: char) -> impl Iterator<Item = Option<Cow<'_, str>>> {
    let quotes = row.contains('"');
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        if quotes && let Some(quoted) = text.trim_start_matches(' ').strip_prefix('"') {
            return Some(unquote(quoted, delimiter).map(|(cell, tail)| {
                rest = tail;
                Cow::Owned(cell)
            }));
        }
        let (cell, tail) = split(text, delimiter);
        rest = tail;
        Some(Some(Cow::Borrowed(cell.trim())))
    })
}

fn split(text: &str, delimiter: char) -> (&str, Option<&str>) {
    match text.split_once(delimiter) {
        Some((cell, rest)) => (cell, Some(rest)),
        None => (text, None),
    }
}

/// Splits a cell, its opening quote gone, from the rest of the line; `""` stands for one quote.
fn unquote(mut text: &str, delimiter: char) -> Option<(String, Option<&str>)> {
    let mut cell = String::new();
    loop {
        let (inside, after) = text.split_once('"')?;
        cell.push_str(inside);
        let Some(more) = after.strip_prefix('"') else {
            let (gap, rest) = split(after, delimiter);
            return gap.trim().is_empty().then_some((cell, rest));
        };
        cell.push('"');
        text = more;
    }
}

/// Writes a table that [`Table::read`] reads back bit for bit: the shortest digits that give the same
/// number, an empty cell for NaN.
///
/// # Errors
/// Those of the writer; `InvalidInput` for columns of different length or a name that could not
/// be read back (empty, or with a line break).
pub fn write(out: &mut impl Write, table: &Table) -> io::Result<()> {
    let columns = table.columns();
    let invalid = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    let rows = columns.first().map_or(0, Column::len);
    if columns.iter().any(|c| c.len() != rows) {
        return invalid("the columns have different lengths");
    }
    if table
        .names()
        .any(|n| n.is_empty() || n.contains(['\n', '\r']))
    {
        return invalid("a column name is empty or has a line break");
    }
    for (k, name) in table.names().enumerate() {
        let comma = if k > 0 { "," } else { "" };
        let special = name.contains([',', ';', '\t', '"', '#']) || name.trim() != name;
        if special || name.parse::<f64>().is_ok() {
            write!(out, "{comma}\"{}\"", name.replace('"', "\"\""))?;
        } else {
            write!(out, "{comma}{name}")?;
        }
    }
    writeln!(out)?;
    for row in 0..rows {
        for (k, column) in columns.iter().enumerate() {
            if k > 0 {
                out.write_all(b",")?;
            }
            let value = column.values[row];
            // A line that is empty altogether would be taken for a blank one.
            if value.is_nan() && columns.len() == 1 {
                out.write_all(b"NaN")?;
            }
            write_number(out, value)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes the shortest digits that give the same number back, nothing for NaN.
///
/// # Errors
/// Those of the writer.
pub fn write_number(out: &mut impl Write, value: f64) -> io::Result<()> {
    if value.is_nan() {
        Ok(())
    } else if value == 0.0 || (1e-5..1e16).contains(&value.abs()) {
        write!(out, "{value}")
    } else {
        write!(out, "{value:e}")
    }
}

/// Writes a table to a file, whole or not at all.
///
/// # Errors
/// [`RecordError::Write`].
pub fn write_csv(path: impl AsRef<Path>, table: &Table) -> Result<(), RecordError> {
    let path = path.as_ref();
    write_atomic(path, |out| write(out, table)).map_err(|source| RecordError::Write {
        file: path.display().to_string(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(text: &str, k: usize) -> Vec<f64> {
        let table = parse("a.csv", text.as_bytes()).unwrap();
        table.values(k).unwrap().to_vec()
    }

    fn error(text: impl AsRef<[u8]>) -> String {
        match parse("a.csv", text.as_ref()) {
            Err(e) => e.to_string(),
            Ok(table) => (0..table.columns().len())
                .find_map(|k| table.values(k).err())
                .expect("an error")
                .to_string(),
        }
    }

    #[test]
    fn reads_what_programs_write() {
        let plain = "t,V\n0,-65\n0.01,1e-3\n";
        for text in [
            "\u{feff}t,V\r\n0,-65\r\n0.01,1e-3\r\n",
            "t;V\n0;-65\n0.01;1e-3",
            "t\tV\n0\t-65\n0.01\t1e-3\n",
            "# made by a logger\n\n t , V \n  # units: s, mV\n 0 , -65 \n   \n+.01, 0.001\n\n",
            "\"t\",\"V\"\n\"0\", \"-65\" \n\"0.01\",1E-3\n",
            "t,V,\n0,-65,\n0.01,1e-3,\n",
            "t;V;;\n0;-65;;\n0.01;1e-3;\n",
        ] {
            let table = parse("a.csv", text.as_bytes()).unwrap();
            assert_eq!(table.names().collect::<Vec<_>>(), ["t", "V"], "{text}");
            for k in 0..2 {
                assert_eq!(table.values(k).unwrap(), column(plain, k), "{text}");
            }
        }
    }

    #[test]
    fn names_in_quotes_may_hold_anything() {
        assert_eq!(column("\"1\"\n2\n", 0), [2.0]);
        let table = parse("a.csv", b"\"I; a, \"\"b\"\"\",V\n1,2\n").unwrap();
        assert_eq!(table.names().collect::<Vec<_>>(), ["I; a, \"b\"", "V"]);
    }

    #[test]
    fn what_was_not_measured_is_nan() {
        let values = column("V,x\n,1\nNaN,1\nnan,1\nNA,1\n -nan ,1\n3,1\n", 0);
        assert!(
            values[..5]
                .iter()
                .all(|v| v.to_bits() == f64::NAN.to_bits())
        );
        assert_eq!(values[5], 3.0);
        assert!(column("a\tb\n\t\n1\t\n", 1).iter().all(|v| v.is_nan()));
        assert_eq!(column("a\tb\n\t\"2\"\n", 1), [2.0]);
    }

    #[test]
    fn errors_name_the_line_an_editor_shows() {
        // Line 1 is a comment, line 4 is blank.
        let top = "# log\r\nt,I,V\r\n0,1,2\r\n\r\n";
        assert_eq!(
            error(format!("{top}0.1,1,2\r\n0.2,1\r\n")),
            "a.csv: line 6 has 2 cells, the header has 3; leave a cell empty where a value is missing"
        );
        assert_eq!(
            error(format!("{top}0.1,1,2,\r\n")),
            "a.csv: line 5 has 4 cells, the header has 3; leave a cell empty where a value is missing"
        );
        assert_eq!(
            error(format!(
                "{top}0.1,1,2\r\n0.2,1,3\r\n0.3,1,abc\r\n0.4,1,def\r\n"
            )),
            "a.csv: line 7, column 3 (V): 'abc' is not a number; leave the cell empty where there is no value"
        );
        assert_eq!(
            error("t;V\n0;1,5\n"),
            "a.csv: line 2, column 2 (V): '1,5' is not a number; write a decimal point, not a comma"
        );
        assert_eq!(
            error("# log\nt,V,t\n0,1,2\n"),
            "a.csv: line 2: columns 1 and 3 are both named 't'; rename one"
        );
        assert_eq!(
            error("t,,V\n0,1,2\n"),
            "a.csv: line 1, column 2: the header has no name for this column; name it or remove the column"
        );
        assert_eq!(error("t,V\n\n"), "a.csv has no data rows below its header");
        assert_eq!(
            error("t,V,\n0,1,2\n"),
            "a.csv: line 2 has 3 cells, the header has 2; leave a cell empty where a value is missing"
        );
        assert!(error("\n# only this\n").starts_with("a.csv is empty"));
        assert!(error("0,1\n1,2\n").starts_with("a.csv: line 1 holds numbers"));
        assert!(error("t,V\n0,\"1\n").starts_with("a.csv: line 2: a quoted cell"));
        assert_eq!(
            error(b"t,V\n0,1\n0.1,\xb5\n"),
            "a.csv: line 3 is not UTF-8 text; save the file with UTF-8 encoding"
        );
    }

    #[test]
    fn text_in_one_column_leaves_the_others_readable() {
        let table = parse("a.csv", b"t,label\n0,start\n1,stop\n").unwrap();
        assert_eq!(table.values(0).unwrap(), [0.0, 1.0]);
        assert!(table.values(1).is_err());
    }

    #[test]
    fn a_table_that_could_not_be_read_back_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        for columns in [
            vec![Column::new("a", vec![1.0]), Column::new("b", vec![])],
            vec![Column::new("a\nb", vec![1.0])],
            vec![Column::new("", vec![1.0])],
        ] {
            let table = Table::new("memory", columns).unwrap();
            let message = write_csv(&path, &table).unwrap_err().to_string();
            assert!(message.starts_with("cannot write "), "{message}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn writing_and_reading_keeps_every_bit(
            values in (1usize..4, 1usize..20).prop_flat_map(|(k, n)| {
                let number = any::<u64>().prop_map(|bits| match f64::from_bits(bits) {
                    v if v.is_finite() => v,
                    _ => f64::NAN,
                });
                prop::collection::vec(prop::collection::vec(number, n), k)
            }),
            name in "[ -~]{0,6}[a-z\"#,]",
        ) {
            let columns = values.iter().enumerate();
            let columns = columns.map(|(k, v)| Column::new(format!("{name}{k}"), v.clone()));
            let table = Table::new("a.csv", columns.collect()).unwrap();
            let mut text = Vec::new();
            write(&mut text, &table).unwrap();
            let back = parse("a.csv", &text).unwrap();
            prop_assert!(back.names().eq(table.names()));
            for (k, column) in values.iter().enumerate() {
                let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(back.values(k).unwrap()), bits(column));
            }
        }
    }
}
