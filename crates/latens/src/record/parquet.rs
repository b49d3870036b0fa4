//! Parquet files: columns as data frames are stored.
//!
//! Numbers of every width, decimals and booleans (0 and 1); a null is NaN. Instants and times of
//! day count in seconds from the first of their column: since 1970, nanoseconds would not fit a
//! double. As times they become the model's unit. Other columns (text, lists) may stand beside them and are a
//! fault only when a model asks for them.

mod claims;

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use bytes::Bytes;
use half::f16;
use parquet::basic::{ConvertedType, LogicalType, SortOrder, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::error::{Fault, RecordError};
use super::table::{Column, Table};

/// Rows that are unpacked at a time.
const BATCH_ROWS: usize = 65_536;

/// Reads a Parquet file; `source` is the name that errors use.
///
/// # Errors
/// Damaged, too large, or compressed in a way that is not built in.
pub fn parse(source: &str, bytes: &[u8]) -> Result<Table, RecordError> {
    let file = source.to_owned();
    let columns = contained(|| columns(bytes)).map_err(|fault| match fault {
        Fault::Damaged(reason) => RecordError::NotParquet { file, reason },
        Fault::TooLarge => RecordError::TooManyValues { file },
    })?;
    Table::new(source, columns)
}

/// What a reader says, or that it panicked: the `parquet` crate takes some damage for a mistake of the
/// program.
fn contained<T>(read: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    QUIET.set(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    QUIET.set(false);
    read.unwrap_or_else(|_| Err(Fault::Damaged("it is damaged".into())))
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Self {
        Self::Damaged(error.to_string())
    }
}

fn columns(bytes: &[u8]) -> Result<Vec<Column>, Fault> {
    claims::check_footer(bytes).map_err(Fault::Damaged)?;
    let file = SerializedFileReader::new(Bytes::copy_from_slice(bytes))?;
    let readable = claims::check_pages(bytes, file.metadata())?;
    let schema = file.metadata().file_metadata().schema_descr();
    let mut columns = Vec::new();
    for (k, about) in schema.columns().iter().enumerate() {
        let mut column = Column::new(about.path().string(), Vec::new());
        column.instants = ticks(about).is_some();
        let mut first = None;
        for (place, readable) in readable.iter().enumerate() {
            let group = file.get_row_group(place)?;
            let rows = group.metadata().num_rows() as usize;
            if about.max_rep_level() > 0 {
                other(&mut column, "a list", rows);
            } else if !readable[k] {
                other(&mut column, "bytes", rows);
            } else {
                let reader = group.get_column_reader(k)?;
                read(reader, about, rows, &mut first, &mut column)?;
            }
        }
        columns.push(column);
    }
    Ok(columns)
}

/// One column of one row group; `first` is the column's first instant.
fn read(
    reader: ColumnReader,
    about: &ColumnDescriptor,
    rows: usize,
    first: &mut Option<i64>,
    column: &mut Column,
) -> Result<(), ParquetError> {
    let logical = about.logical_type_ref();
    let unsigned = about.sort_order() == SortOrder::UNSIGNED;
    let decimal = about.converted_type() == ConvertedType::DECIMAL;
    let unit = if decimal {
        10f64.powi(about.type_scale())
    } else {
        1.0
    };
    let ticks = ticks(about);
    let mut integer = |value: i64| match ticks {
        Some(ticks) => value.wrapping_sub(*first.get_or_insert(value)) as f64 / ticks,
        None => value as f64 / unit,
    };
    let values = &mut column.values;
    match reader {
        ColumnReader::BoolColumnReader(r) => append(r, about, rows, values, |v| f64::from(*v)),
        ColumnReader::FloatColumnReader(r) => append(r, about, rows, values, |v| f64::from(*v)),
        ColumnReader::DoubleColumnReader(r) => append(r, about, rows, values, |v| *v),
        ColumnReader::Int32ColumnReader(r) => append(r, about, rows, values, |v| {
            if unsigned {
                f64::from(v.cast_unsigned())
            } else {
                integer(i64::from(*v))
            }
        }),
        ColumnReader::Int64ColumnReader(r) => append(r, about, rows, values, |v| {
            if unsigned {
                v.cast_unsigned() as f64
            } else {
                integer(*v)
            }
        }),
        ColumnReader::FixedLenByteArrayColumnReader(r)
            if logical == Some(&LogicalType::Float16) =>
        {
            append(r, about, rows, values, |v| match v.data() {
                &[low, high] => f16::from_le_bytes([low, high]).to_f64(),
                _ => f64::NAN,
            })
        }
        ColumnReader::ByteArrayColumnReader(r) => {
            let (start, mut text) = (values.len(), None);
            let mut row = start;
            let mut rest = Vec::new();
            let mut said: Vec<Said> = vec![];
            let mut count = 0;
            append(r, about, rows, &mut rest, |v| {
                let shown = || String::from_utf8_lossy(v.data()).chars().take(40).collect();
                text.get_or_insert_with(shown);
                // the first, and the first that says something else
                if said.len() < 2 && said.first().is_none_or(|first| first.bytes != v.data()) {
                    said.push(Said {
                        place: count,
                        bytes: v.data().to_vec(),
                    });
                }
                count += 1;
                1.0
            })?;
            row += rest.iter().position(|v| !v.is_nan()).unwrap_or(0);
            values.resize(start + rest.len(), f64::NAN);
            if let (Some(text), None) = (text, &column.text) {
                column.text = Some((row, text));
            }
            say(column, start, &rest, &said);
            Ok(())
        }
        _ => {
            other(column, "bytes", rows);
            Ok(())
        }
    }
}

/// What a cell of a column of text says.
struct Said {
    /// Its place among those that are not empty.
    place: usize,
    bytes: Vec<u8>,
}

/// Keeps what the cells of a column of text say: the first two that differ.
fn say(column: &mut Column, start: usize, cells: &[f64], said: &[Said]) {
    let filled = (0..cells.len()).filter(|&k| !cells[k].is_nan());
    let filled: Vec<usize> = filled.collect();
    let texts = said.iter().map(|s| (filled[s.place], s.bytes.as_slice()));
    let empty = cells.iter().position(|v| v.is_nan());
    let mut all: Vec<(usize, &[u8])> = texts.chain(empty.map(|k| (k, &[][..]))).collect();
    all.sort_unstable();
    for (row, bytes) in all {
        column.say(start + row, String::from_utf8_lossy(bytes).trim());
    }
}

/// A column that holds no numbers.
fn other(column: &mut Column, kind: &str, rows: usize) {
    column.text.get_or_insert((0, kind.to_owned()));
    column.values.resize(column.values.len() + rows, f64::NAN);
}

/// Ticks of a second, where the column is one of instants, dates or times of day.
fn ticks(about: &ColumnDescriptor) -> Option<f64> {
    match about.logical_type_ref() {
        Some(LogicalType::Timestamp(time) | LogicalType::Time(time)) => Some(match time.unit {
            TimeUnit::MILLIS => 1e3,
            TimeUnit::MICROS => 1e6,
            TimeUnit::NANOS => 1e9,
        }),
        _ => match about.converted_type() {
            ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIME_MILLIS => Some(1e3),
            ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS => Some(1e6),
            ConvertedType::DATE => Some(1.0 / 86_400.0),
            _ => None,
        },
    }
}

/// Appends a column's values as numbers, NaN for null.
fn append<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    about: &ColumnDescriptor,
    rows: usize,
    out: &mut Vec<f64>,
    mut number: impl FnMut(&T::T) -> f64,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let present = about.max_def_level();
    let mut left = rows;
    while left > 0 {
        values.clear();
        levels.clear();
        let nullable = (present > 0).then_some(&mut levels);
        let batch = left.min(BATCH_ROWS);
        let (records, _, _) = reader.read_records(batch, nullable, None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::General(format!(
                "column {} ends {left} rows early",
                about.name()
            )));
        }
        let mut taken = values.iter();
        for row in 0..records {
            // without a level the column has no nulls
            let null = levels.get(row).is_some_and(|level| *level < present);
            let value = if null { None } else { taken.next() };
            out.push(value.map_or(f64::NAN, &mut number));
        }
        left -= records;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type,
    };
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;
    use crate::record::testing::names;
    use crate::record::{Layout, Mapping, Record};

    const SCHEMA: &str = "message log {
        required int64 when (TIMESTAMP(NANOS, true));
        optional double V; optional float I; required int32 level (INTEGER(8, true));
        required int32 wide (INTEGER(32, false)); required int64 price (DECIMAL(10, 2));
        required boolean on; optional binary label (STRING);
        required fixed_len_byte_array(2) small (FLOAT16);
        repeated double many;
    }";

    /// A file of two row groups with a column of every kind; the second V of each is null.
    fn file(compression: Compression) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = WriterProperties::builder().set_compression(compression);
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
        for group in 0..2i64 {
            let mut rows = writer.next_row_group().unwrap();
            macro_rules! write {
                ($kind:ty, $values:expr, $levels:expr, $repeated:expr) => {
                    let mut column = rows.next_column().unwrap().unwrap();
                    let typed = column.typed::<$kind>();
                    typed.write_batch(&$values, $levels, $repeated).unwrap();
                    column.close().unwrap();
                };
            }
            let second = 1_700_000_000_000_000_000 + 2 * group * 10_000_000;
            let half = |v: f32| FixedLenByteArray::from(f16::from_f32(v).to_le_bytes().to_vec());
            write!(Int64Type, [second, second + 10_000_000], None, None);
            write!(DoubleType, [-65.5], Some(&[1, 0]), None);
            write!(FloatType, [0.5, 1.5], Some(&[1, 1]), None);
            write!(Int32Type, [-3, 4], None, None);
            write!(Int32Type, [-1, 7], None, None);
            write!(Int64Type, [1234, -5], None, None);
            write!(BoolType, [true, false], None, None);
            write!(
                ByteArrayType,
                [ByteArray::from("start")],
                Some(&[0, 1]),
                None
            );
            write!(FixedLenByteArrayType, [half(0.25), half(-2.0)], None, None);
            write!(
                DoubleType,
                [1.0, 2.0, 3.0],
                Some(&[1, 1, 1]),
                Some(&[0, 1, 0])
            );
            rows.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    #[test]
    fn columns_of_every_kind_are_read() {
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
        ] {
            let table = parse("a.parquet", &file(compression)).unwrap();
            let column = |name| table.values(table.find(name).unwrap()).unwrap();
            assert_eq!(column("when"), [0.0, 0.01, 0.02, 0.03]);
            assert_eq!(column("I"), [0.5, 1.5, 0.5, 1.5]);
            assert_eq!(column("level"), [-3.0, 4.0, -3.0, 4.0]);
            assert_eq!(column("wide"), [4294967295.0, 7.0, 4294967295.0, 7.0]);
            assert_eq!(column("price"), [12.34, -0.05, 12.34, -0.05]);
            assert_eq!(column("on"), [1.0, 0.0, 1.0, 0.0]);
            assert_eq!(column("small"), [0.25, -2.0, 0.25, -2.0]);
            let v = column("V");
            assert!(v[0] == -65.5 && v[1].is_nan() && v[2] == -65.5 && v[3].is_nan());
        }
    }

    #[test]
    fn a_record_comes_from_it_and_its_faults_name_the_sample() {
        let table = parse("a.parquet", &file(Compression::SNAPPY)).unwrap();
        let read = |input: &str| {
            let layout = Layout {
                inputs: names(input),
                measurements: names("V"),
                states: vec![],
                ..Layout::default()
            };
            let mapping = Mapping::parse(["t=when"]).unwrap();
            Record::from_table(&table, &layout, &mapping, None).map_err(|e| e.to_string())
        };
        let record = read("I").unwrap();
        assert_eq!(record.time, [0.0, 0.01, 0.02, 0.03]);
        assert!(record.output(1)[0].is_nan());
        let label = read("label").unwrap_err();
        assert!(
            label.starts_with("a.parquet: sample 2 of label: 'start' is not a number"),
            "{label}"
        );
        assert!(read("many").unwrap_err().contains("'a list'"));
    }

    /// Every byte turned, and every length cut: a table or an error, whatever the file then claims. The
    /// reader of the crate panics on some of them.
    #[test]
    fn a_damaged_file_is_a_table_or_an_error() {
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
        ] {
            let whole = file(compression);
            let mut errors = 0;
            for k in 0..whole.len() {
                for change in [0xff, 0x01, 0x80] {
                    let mut bytes = whole.clone();
                    bytes[k] ^= change;
                    errors += usize::from(parse("a.parquet", &bytes).is_err());
                }
                assert!(parse("a.parquet", &whole[..k]).is_err());
            }
            assert!(errors > whole.len() / 3, "{errors}");
        }
        let panics = contained(|| -> Result<(), Fault> { panic!("as the crate does") });
        assert!(matches!(panics, Err(Fault::Damaged(_))));
    }

    #[test]
    fn what_is_no_parquet_file_is_said() {
        let whole = file(Compression::SNAPPY);
        for bytes in [&b"t,V\n0,1\n"[..], &whole[..whole.len() / 2], &[]] {
            let message = parse("a.parquet", bytes).unwrap_err().to_string();
            assert!(message.starts_with("a.parquet is no readable Parquet file: "));
        }
    }
}
