//! Tables of a file or of arrays, and the record that a model takes from them.

use std::path::PathBuf;

use latens::Record;
use latens::record::{self, Columns, Layout, Mapping, table_sha256};
use latens_report::check;
use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;

use crate::errors::{Result, place, setting};
use crate::fit::Fit;
use crate::model::Model;

/// A file, before a model asks for any of it.
#[pyclass(frozen, module = "latens._latens")]
pub struct Table {
    table: record::Table,
}

#[pymethods]
impl Table {
    #[staticmethod]
    fn read(py: Python, path: PathBuf) -> Result<Self> {
        py.detach(|| {
            Ok(Self {
                table: record::Table::read(&path)?,
            })
        })
    }

    #[getter]
    fn file(&self) -> &str {
        &self.table.source
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.table.names().collect()
    }

    /// Of the bytes that were read.
    #[getter]
    fn sha256(&self) -> &str {
        self.table.checksum().unwrap_or_default()
    }

    /// The numbers of a column; text in it is an error.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyArray1<f64>>> {
        let names: Vec<&str> = self.table.names().collect();
        let at = place(name, &names, "column")?;
        Ok(self.table.values(at)?.to_pyarray(py))
    }

    /// The instants of a column of dates, in seconds from the first; none where it is no such column.
    fn instants<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> Result<Option<Bound<'py, PyArray1<f64>>>> {
        let names: Vec<&str> = self.table.names().collect();
        let at = place(name, &names, "column")?;
        Ok(self
            .table
            .instants(at)
            .map(|seconds| seconds.to_pyarray(py)))
    }

    fn __len__(&self) -> usize {
        self.table.columns().first().map_or(0, record::Column::len)
    }
}

/// Dates in seconds from the first; none where they are not understood.
#[pyfunction]
pub fn instants<'py>(py: Python<'py>, cells: Vec<String>) -> Option<Bound<'py, PyArray1<f64>>> {
    let seconds = record::instants(cells.iter().map(String::as_str))?;
    Some(seconds.to_pyarray(py))
}

/// Columns with a name each, the memory of numpy.
type Arrays<'py> = Vec<(String, PyReadonlyArray1<'py, f64>)>;

/// What a model takes from a table: the library's record, and where it came from. Made for one call.
#[pyclass(module = "latens._latens")]
pub struct Source {
    pub source: latens::Source,
    /// All columns of the table, and those that serve.
    names: Vec<String>,
    columns: Columns,
}

#[pymethods]
impl Source {
    /// From a file for a model; `map` has `name=column`.
    #[staticmethod]
    fn of_table(
        py: Python,
        model: &Model,
        table: &Table,
        map: Vec<String>,
        step: Option<f64>,
    ) -> Result<Self> {
        let layout = Layout::of(&model.0);
        py.detach(|| Self::read(&table.table, &layout, &map, step))
    }

    /// From arrays for a model; where the times are `dated` they are seconds. `origin` is the file that
    /// they once were, and its checksum.
    #[staticmethod]
    fn of_arrays(
        model: &Model,
        name: &str,
        arrays: Arrays,
        step: Option<f64>,
        dated: bool,
        origin: Option<(String, String)>,
    ) -> Result<Self> {
        let mut record = Self::borrowed(&Layout::of(&model.0), name, &arrays, step, dated)?;
        if let Some((file, sha256)) = origin {
            (record.source.file, record.source.sha256) = (file, sha256);
        }
        Ok(record)
    }

    /// The inputs of a file, to drive what was learned.
    #[staticmethod]
    fn driving_table(
        fit: &Fit,
        table: &Table,
        map: Vec<String>,
        step: Option<f64>,
    ) -> Result<Self> {
        Self::read(&table.table, &fit.0.driving(), &map, step)
    }

    /// The inputs among arrays, to drive what was learned.
    #[staticmethod]
    fn driving_arrays(
        fit: &Fit,
        name: &str,
        arrays: Arrays,
        step: Option<f64>,
        dated: bool,
    ) -> Result<Self> {
        Self::borrowed(&fit.0.driving(), name, &arrays, step, dated)
    }

    #[getter]
    fn file(&self) -> &str {
        &self.source.file
    }

    #[getter]
    fn sha256(&self) -> &str {
        &self.source.sha256
    }

    #[getter]
    fn group(&self) -> Option<&str> {
        self.source.group.as_deref()
    }

    /// The label of its group, whatever the table says.
    #[setter]
    fn set_group(&mut self, label: Option<String>) {
        self.source.group = label;
    }

    fn __len__(&self) -> usize {
        self.source.record.len()
    }
}

impl Source {
    /// From a file.
    fn read(
        table: &record::Table,
        layout: &Layout,
        map: &[String],
        step: Option<f64>,
    ) -> Result<Self> {
        let mapping = Mapping::parse(map)?;
        Ok(Self {
            columns: Columns::find(table, layout, &mapping)?,
            names: table.names().map(String::from).collect(),
            source: latens::Source::of_table(table, layout, &mapping, step)?,
        })
    }

    /// A record that a fit has kept.
    pub fn kept(fit: &latens::Fit, track: usize) -> Result<Self> {
        let (layout, track) = (Layout::of(&fit.model), &fit.tracks[track]);
        let table = track.record.to_table(&layout)?;
        Ok(Self {
            columns: Columns::find(&table, &layout, &Mapping::default())?,
            names: table.names().map(String::from).collect(),
            source: fit.source(track),
        })
    }

    /// The numbers are copied once, from numpy's memory to the rows of the record.
    fn borrowed(
        layout: &Layout,
        name: &str,
        arrays: &Arrays,
        step: Option<f64>,
        dated: bool,
    ) -> Result<Self> {
        let mut columns = vec![];
        for (name, array) in arrays {
            let values = array.as_slice();
            let values = values.map_err(|_| setting(format!("{name} is not contiguous")))?;
            columns.push(if dated && name == "t" {
                record::Column::of_instants(name, values)
            } else {
                record::Column::new(name, values)
            });
        }
        let (table, mapping) = (record::Table::new(name, columns)?, Mapping::default());
        let record = Record::from_table(&table, layout, &mapping, step)?;
        Ok(Self {
            columns: Columns::find(&table, layout, &mapping)?,
            names: table.names().map(String::from).collect(),
            source: latens::Source {
                file: name.into(),
                sha256: table_sha256(&table)?,
                // a name in memory is no path
                record: Record {
                    name: name.into(),
                    ..record
                },
                group: None,
            },
        })
    }

    /// As the library's check has it.
    pub fn checked(&self) -> check::Source {
        let (record, names) = (self.source.record.clone(), self.names.clone());
        check::Source::new(
            self.source.file.clone(),
            record,
            names,
            self.columns.clone(),
        )
    }

    /// The source without another copy; one of an empty record is left.
    pub fn take(&mut self) -> latens::Source {
        let left = latens::Source {
            file: self.source.file.clone(),
            sha256: self.source.sha256.clone(),
            record: self.source.record.slice(0..0),
            group: self.source.group.clone(),
        };
        std::mem::replace(&mut self.source, left)
    }
}
