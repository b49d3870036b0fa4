//! What a Parquet file claims of itself, against what it is.
//!
//! The reader of the `parquet` crate takes the sizes in a file at their word: it asks for the memory
//! before it looks at the bytes, unpacks without an end, and follows nested groups on the stack. None of
//! these can be caught once they happen, so every description in the file (the footer, the header of
//! each page) is walked here first.
//!
//! They are structs of Thrift's compact protocol: fields with a number and a type, integers as
//! zigzag varints.

use std::io::{Read, sink};

use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use super::super::error::Fault;
use super::super::limits::{COLUMNS, VALUES};

/// Bytes of the footer: descriptions of columns and row groups.
const FOOTER_BYTES: usize = 8 << 20;
/// Groups of columns inside each other.
const MOST_NESTED_GROUPS: usize = 32;
/// Bytes of what is unpacked, for all columns together: strings are longer than numbers.
const UNPACKED_BYTES: usize = 16 * VALUES;

/// Times that snappy can make a page smaller, and some: three bytes stand for 64.
const SNAPPY_RATIO: usize = 64;

/// Encodings of bytes that say how many they are a second time, inside of what is packed.
const DELTA_LENGTH_ENCODINGS: [i64; 2] = [6, 7];

/// A value of a description, as far as it matters here.
enum Thrift {
    Number(i64),
    List(Vec<Thrift>),
    Fields(Vec<(i64, Thrift)>),
    Other,
}

impl Thrift {
    fn field(&self, number: i64) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.iter().find(|(n, _)| *n == number).map(|(_, v)| v),
            _ => None,
        }
    }

    fn number(&self, field: i64) -> Option<i64> {
        match self.field(field)? {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// Reads descriptions; `None` where the bytes are none.
struct Walker<'a> {
    rest: &'a [u8],
}

impl Walker<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    fn skip(&mut self, bytes: u64) -> Option<Thrift> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        Some(Thrift::Other)
    }

    fn fields(&mut self, depth: usize) -> Option<Thrift> {
        let (mut fields, mut number) = (Vec::new(), 0_i64);
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(Thrift::Fields(fields));
            }
            number = match head >> 4 {
                0 => self.integer()?,
                difference => number.checked_add(i64::from(difference))?,
            };
            // in a field, true and false are types of their own
            let value = match head & 0x0f {
                1 | 2 => Thrift::Other,
                kind => self.value(kind, depth)?,
            };
            fields.push((number, value));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<Thrift> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.integer().map(Thrift::Number),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let size = match head >> 4 {
                    15 => self.varint()?,
                    few => u64::from(few),
                };
                // each takes a byte at least
                if size > self.rest.len() as u64 {
                    return None;
                }
                let values = (0..size).map(|_| self.value(head & 0x0f, depth));
                values.collect::<Option<_>>().map(Thrift::List)
            }
            11 => match self.varint()? {
                0 => Some(Thrift::Other),
                size => {
                    let kinds = self.byte()?;
                    for _ in 0..size {
                        self.value(kinds >> 4, depth)?;
                        self.value(kinds & 0x0f, depth)?;
                    }
                    Some(Thrift::Other)
                }
            },
            12 => self.fields(depth),
            _ => None,
        }
    }
}

/// Deepest description of the format, and some.
const DEEPEST_NESTING: usize = 20;

/// Checks the description of the whole file.
pub(super) fn check_footer(bytes: &[u8]) -> Result<(), String> {
    let damaged = || "its footer is damaged".to_owned();
    let Some((content, end)) = bytes.split_last_chunk::<8>() else {
        return Err(damaged());
    };
    let [a, b, c, d, ..] = *end;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > FOOTER_BYTES {
        return Err(format!(
            "its footer has {length} bytes, of at most {FOOTER_BYTES}"
        ));
    }
    let start = content.len().checked_sub(length).ok_or_else(damaged)?;
    let mut walker = Walker {
        rest: &content[start..],
    };
    let footer = walker.fields(DEEPEST_NESTING).ok_or_else(damaged)?;
    let Some(Thrift::List(schema)) = footer.field(2) else {
        return Err(damaged());
    };
    if schema.len() > COLUMNS {
        let count = schema.len();
        return Err(format!("it has {count} columns, of at most {COLUMNS}"));
    }
    // a group says how many of those that follow are in it
    let mut open: Vec<usize> = vec![1];
    for (place, element) in schema.iter().enumerate() {
        while open.last() == Some(&0) {
            open.pop();
        }
        let left = open.last_mut().ok_or_else(damaged)?;
        *left -= 1;
        let children = usize::try_from(element.number(5).unwrap_or(0)).map_err(|_| damaged())?;
        if children > schema.len() - place - 1 {
            return Err(damaged());
        }
        if children > 0 {
            open.push(children);
        }
        if open.len() > MOST_NESTED_GROUPS {
            return Err(format!(
                "its columns are nested more than {MOST_NESTED_GROUPS} deep"
            ));
        }
    }
    Ok(())
}

/// Checks the rows and the header of every page; gives which columns can be unpacked, by row group.
pub(super) fn check_pages(bytes: &[u8], file: &ParquetMetaData) -> Result<Vec<Vec<bool>>, Fault> {
    let (mut unpacked, mut values) = (0, 0_usize);
    let mut readable = Vec::new();
    for group in file.row_groups() {
        let rows = usize::try_from(group.num_rows());
        let count = group.num_rows();
        let rows = rows.map_err(|_| Fault::Damaged(format!("a row group has {count} rows")))?;
        values = values.saturating_add(rows.saturating_mul(group.num_columns()));
        if values > VALUES {
            return Err(Fault::TooLarge);
        }
        let columns = group.columns().iter();
        let checked = columns.map(|column| check_column(bytes, column, &mut unpacked));
        readable.push(checked.collect::<Result<_, _>>()?);
    }
    Ok(readable)
}

fn check_column(
    bytes: &[u8],
    column: &ColumnChunkMetaData,
    unpacked: &mut usize,
) -> Result<bool, Fault> {
    let damaged = || Fault::Damaged(format!("column {} is damaged", column.column_path()));
    let [data, dictionary] = [
        Some(column.data_page_offset()),
        column.dictionary_page_offset(),
    ];
    let start = dictionary.filter(|at| *at > 0).or(data);
    let start = start.and_then(|at| usize::try_from(at).ok());
    let size = usize::try_from(column.compressed_size()).ok();
    let end = start.zip(size).and_then(|(at, size)| at.checked_add(size));
    let pages = start.zip(end).and_then(|(at, end)| bytes.get(at..end));
    let mut walker = Walker {
        rest: pages.ok_or_else(damaged)?,
    };
    let mut readable = true;
    while !walker.rest.is_empty() {
        let header = walker.fields(DEEPEST_NESTING).ok_or_else(damaged)?;
        let size = |field| usize::try_from(header.number(field)?).ok();
        let (whole, packed) = size(2).zip(size(3)).ok_or_else(damaged)?;
        let content = walker.rest.get(..packed).ok_or_else(damaged)?;
        walker.rest = &walker.rest[packed..];
        *unpacked = unpacked.saturating_add(whole);
        if *unpacked > UNPACKED_BYTES {
            return Err(Fault::TooLarge);
        }
        // pages of data, of a dictionary, and of data in the second version
        for (field, encoding) in [(5, 2), (7, 2), (8, 4)] {
            let Some(page) = header.field(field) else {
                continue;
            };
            let count = page.number(1).and_then(|n| usize::try_from(n).ok());
            let count = count.filter(|n| *n <= VALUES).ok_or_else(damaged)?;
            // a dictionary has each of its values, of a byte or more
            if field == 7 && count > whole {
                return Err(damaged());
            }
            let encoding = page.number(encoding).ok_or_else(damaged)?;
            readable &= !DELTA_LENGTH_ENCODINGS.contains(&encoding);
        }
        if column.compression() == Compression::SNAPPY && whole > SNAPPY_RATIO * packed {
            return Err(damaged());
        }
        if matches!(column.compression(), Compression::GZIP(_)) {
            // the second version leaves the levels as they are, before what is packed
            let levels = header.field(8).map_or(Some(0), |page| {
                let [first, second] = [5, 6].map(|field| page.number(field).unwrap_or(0));
                usize::try_from(first.checked_add(second)?).ok()
            });
            let packed = levels.and_then(|n| content.get(n..)).ok_or_else(damaged)?;
            let mut decoder = MultiGzDecoder::new(packed).take(whole as u64 + 1);
            // what is no gzip is found by whoever reads it
            if std::io::copy(&mut decoder, &mut sink()).is_ok_and(|n| n > whole as u64) {
                return Err(damaged());
            }
        }
    }
    Ok(readable)
}
