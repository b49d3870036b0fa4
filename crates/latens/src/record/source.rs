//! A record with where it came from: the file as the user named it, and the checksum of what was
//! read.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::{Layout, Mapping, Record, RecordError, Table};
use crate::model::Model;

/// A record and where it came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file as the user named it, or what else to call the record.
    pub file: String,
    /// Of the bytes that were read, or of the numbers of a record that is in no file.
    pub sha256: String,
    /// What was measured.
    pub record: Record,
    /// The label of the group that it belongs to, where a constant of the model varies by group.
    pub group: Option<String>,
}

impl Source {
    /// A record that is in no file.
    ///
    /// # Errors
    /// [`RecordError::DuplicateName`] where a name of the model serves twice.
    pub fn of_record(record: Record, model: &Model) -> Result<Self, RecordError> {
        let table = record.to_table(&Layout::of(model))?;
        Ok(Self {
            file: record.name.clone(),
            sha256: table_sha256(&table)?,
            record,
            group: None,
        })
    }

    /// A record from a table that was read.
    ///
    /// # Errors
    /// The table does not fit the layout.
    pub fn of_table(
        table: &Table,
        layout: &Layout,
        mapping: &Mapping,
        step: Option<f64>,
    ) -> Result<Self, RecordError> {
        let record = Record::from_table(table, layout, mapping, step)?;
        let sha256 = match table.checksum() {
            Some(checksum) => checksum.to_string(),
            None => table_sha256(table)?,
        };
        Ok(Self {
            file: table.source.clone(),
            sha256,
            record,
            group: layout.group_of(table, mapping)?,
        })
    }
}

impl Record {
    /// Reads a file for a model, whose names its columns have.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold what the model needs.
    pub fn read(path: impl AsRef<Path>, model: &Model) -> Result<Self, RecordError> {
        let table = Table::read(path)?;
        Self::from_table(&table, &Layout::of(model), &Mapping::default(), None)
    }
}

/// SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of the names and numbers of a table that is no file.
///
/// # Errors
/// [`RecordError::NotANumber`] where a column holds text.
pub fn table_sha256<V: AsRef<[f64]>>(table: &Table<V>) -> Result<String, RecordError> {
    let mut hash = Sha256::new();
    for (k, name) in table.names().enumerate() {
        hash.update(name.as_bytes());
        for values in table.values(k)?.chunks(1024) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            hash.update(bytes);
        }
    }
    Ok(hexadecimal(&hash.finalize()))
}
