//! MATLAB files: level 4, and level 5 as `-v6` and `-v7` write it.
//!
//! Rules for what becomes a column, chosen so that a file of signals needs no explanation:
//! - a real numeric vector, lying or standing, is a column with its own name;
//! - a real numeric matrix `x` becomes `x_1`, `x_2`, …, samples running along its longer side;
//! - scalars (gains, sampling rates) and everything else (text, structs, cells, complex or sparse
//!   arrays, more than two dimensions) are no signals and are passed over;
//! - lengths may differ: it matters only if a model asks for two columns that do not fit.
//!
//! Read here and not with the `matrw` crate, which panics on a damaged file, silently drops the
//! rest of a truncated one, and does not know level 4.

mod level4;
mod level5;

use super::error::{Fault, RecordError, listed};
use super::limits::VALUES;
use super::table::{Column, Table};

/// Reads a MATLAB file; `source` is the name that errors use.
///
/// # Errors
/// Saved with `-v7.3`, damaged, no MATLAB file, or nothing in it that is a signal.
pub fn parse(source: &str, bytes: &[u8]) -> Result<Table, RecordError> {
    const HDF5_SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
    let file = source.to_owned();
    // Level 5 ends its header of 128 bytes with a version and the letters MI in its byte order.
    let (version, big) = match bytes.get(124..128) {
        Some(&[low, high, b'I', b'M']) => (Some(u16::from_le_bytes([low, high])), false),
        Some(&[high, low, b'M', b'I']) => (Some(u16::from_be_bytes([high, low])), true),
        _ => (None, false),
    };
    if version == Some(0x0200) || bytes.starts_with(HDF5_SIGNATURE) {
        return Err(RecordError::Mat73 { file });
    }
    let variables = match version {
        Some(_) => level5::variables(&bytes[128..], big),
        None => level4::variables(bytes),
    };
    let variables = variables.map_err(|fault| match fault {
        Fault::Damaged(reason) => RecordError::NotMat {
            file: file.clone(),
            reason,
        },
        Fault::TooLarge => RecordError::TooManyValues { file: file.clone() },
    })?;

    let mut columns = Vec::new();
    for variable in &variables {
        variable.push_columns(&mut columns);
    }
    if columns.is_empty() {
        let has = variables
            .iter()
            .map(|v| format!("{} ({})", v.name, v.other.unwrap_or("scalar or empty")));
        let has = listed(&has.collect::<Vec<_>>());
        let has = if has.is_empty() {
            "nothing".into()
        } else {
            has
        };
        return Err(RecordError::MatWithoutSignals { file, has });
    }
    Table::new(source, columns)
}

struct Variable {
    name: String,
    /// What it is if not a real numeric array.
    other: Option<&'static str>,
    rows: usize,
    /// Column by column; empty unless a real numeric array.
    values: Vec<f64>,
}

impl Variable {
    fn push_columns(&self, columns: &mut Vec<Column>) {
        let Self { name, values, .. } = self;
        if values.len() < 2 {
            return;
        }
        let rows = self.rows;
        let others = values.len() / rows;
        if rows == 1 || others == 1 {
            columns.push(Column::new(name, values.clone()));
        } else if rows >= others {
            for (k, column) in values.chunks_exact(rows).enumerate() {
                columns.push(Column::new(format!("{name}_{}", k + 1), column.to_vec()));
            }
        } else {
            for k in 0..rows {
                let row = values.iter().skip(k).step_by(rows).copied().collect();
                columns.push(Column::new(format!("{name}_{}", k + 1), row));
            }
        }
    }
}

/// The unread rest of a file, in its byte order.
struct Bytes<'a> {
    rest: &'a [u8],
    big: bool,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        let word = self.take(4)?.try_into().ok()?;
        Some(if self.big {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        })
    }
}

/// Numbers of any stored type. MATLAB stores doubles in the smallest type that holds them.
fn numbers(code: u32, bytes: &[u8], big: bool) -> Option<Vec<f64>> {
    macro_rules! decode {
        ($t:ty) => {
            bytes
                .as_chunks::<{ size_of::<$t>() }>()
                .0
                .iter()
                .map(|&chunk| {
                    let value = if big {
                        <$t>::from_be_bytes(chunk)
                    } else {
                        <$t>::from_le_bytes(chunk)
                    };
                    value as f64
                })
                .collect()
        };
    }
    Some(match code {
        1 => decode!(i8),
        2 => decode!(u8),
        3 => decode!(i16),
        4 => decode!(u16),
        5 => decode!(i32),
        6 => decode!(u32),
        7 => decode!(f32),
        9 => decode!(f64),
        12 => decode!(i64),
        13 => decode!(u64),
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::testing::dataset;

    pub(super) fn close(a: &[f64], b: &[f64]) -> bool {
        let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-11 * x.abs().max(1e-3);
        a.len() == b.len() && a.iter().zip(b).all(near)
    }

    pub(super) fn values<'a>(table: &'a Table, name: &str) -> &'a [f64] {
        table.values(table.find(name).expect(name)).unwrap()
    }

    /// Files of level 5 as SciPy writes them (`samples/make.py`), as they are and compressed.
    const WRITTEN: [&[u8]; 2] = [
        include_bytes!("mat/samples/signals.mat"),
        include_bytes!("mat/samples/signals-compressed.mat"),
    ];

    #[test]
    fn signals_become_columns_and_the_rest_is_passed_over() {
        for bytes in WRITTEN {
            let table = parse("a.mat", bytes).unwrap();
            let names = table.names().collect::<Vec<_>>();
            let expected = "row counts tall_1 tall_2 wide_1 wide_2 short";
            assert_eq!(names.join(" "), expected);
            assert_eq!(values(&table, "row")[..2], [1.0, -2.5]);
            assert!(values(&table, "row")[2].is_nan());
            assert_eq!(values(&table, "counts"), [1.0, 2.0, 300.0]);
            assert_eq!(values(&table, "tall_2"), [2.0, 4.0, 6.0]);
            assert_eq!(values(&table, "wide_2"), [4.0, 5.0, 6.0]);
            assert_eq!(values(&table, "short"), [7.0, 8.0]);
        }
    }

    #[test]
    fn a_damaged_file_is_an_error_wherever_it_is_cut() {
        for bytes in WRITTEN {
            for cut in 0..bytes.len() {
                match parse("a.mat", &bytes[..cut]) {
                    // A cut between two variables leaves a shorter file, not a damaged one.
                    Ok(table) => assert!(table.columns().len() <= 7),
                    Err(e) => assert!(e.to_string().starts_with("a.mat "), "{e}"),
                }
            }
            for k in 128..bytes.len() {
                let mut bytes = bytes.to_vec();
                bytes[k] ^= 0xff;
                let _ = parse("a.mat", &bytes);
            }
        }
        let message = parse("a.mat", &WRITTEN[0][..250]).unwrap_err().to_string();
        assert_eq!(
            message,
            "a.mat is no readable MATLAB file: it is damaged or cut off after variable rate; save it again with -v7"
        );
    }

    #[test]
    fn a_file_without_signals_says_what_it_holds() {
        let bytes = include_bytes!("mat/samples/no-signals.mat");
        let message = parse("a.mat", bytes).unwrap_err().to_string();
        let start = "a.mat has no real numeric vector or matrix; it holds: data (struct), rate (scalar or empty).";
        assert!(message.starts_with(start), "{message}");
    }

    #[test]
    fn version_7_3_is_told_apart() {
        let mut header = vec![b' '; 124];
        header.extend([0x00, 0x02, b'I', b'M']);
        for bytes in [header, b"\x89HDF\r\n\x1a\n and so on".to_vec()] {
            let message = parse("a.mat", &bytes).unwrap_err().to_string();
            assert!(message.starts_with("a.mat is a MATLAB 7.3 (HDF5) file"));
            assert!(message.contains("'-v7'"), "{message}");
        }
        let message = parse("a.mat", b"t,V\n1,2\n").unwrap_err().to_string();
        assert!(message.contains("does not start as one"), "{message}");
    }

    #[test]
    #[ignore = "needs the data sets"]
    fn the_positioning_system_equals_its_csv() {
        for (mat, csv) in [("DATA_EMPS.mat", "train"), ("DATA_EMPS_PULSES.mat", "test")] {
            let mat = dataset(&format!("emps/{mat}"));
            let csv = dataset(&format!("emps/emps_{csv}.csv"));
            let (mat, csv) = (Table::read(mat).unwrap(), Table::read(csv).unwrap());
            assert!(["kp", "kv", "gtau"].iter().all(|n| mat.find(n).is_none()));
            for (a, b) in [
                ("t", "t"),
                ("vir", "u_vir_V"),
                ("qm", "y_qm_m"),
                ("qg", "ref_qg_m"),
            ] {
                assert_eq!(values(&mat, a).len(), 24_841);
                assert!(close(values(&mat, a), values(&csv, b)), "{a}");
            }
        }
    }
}
