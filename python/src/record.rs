//! Tables of a file or of arrays, and the record that a model takes from them.

use std::path::PathBuf;

use latens::Record;
use latens::fit::run;
use latens::record::{self, Columns, Layout, Mapping};
use latens_report::check;
use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;

use crate::errors::{Result, setting};
use crate::fit::Fit;
use crate::model::Model;

/// A file, before a model asks for any of it.
#[pyclass(frozen, module = "latens._latens")]
pub struct Table {
    table: record::Table,
    sha256: String,
}

#[pymethods]
impl Table {
    #[staticmethod]
    fn read(py: Python, path: PathBuf) -> Result<Self> {
        py.detach(|| {
            Ok(Self {
                table: record::Table::read(&path)?,
                sha256: run::checksum(&path)?,
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

    #[getter]
    fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The numbers of a column; text in it is an error.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyArray1<f64>>> {
        let names: Vec<&str> = self.table.names().collect();
        let at = latens::suggest::find(name, &names, "column")?;
        Ok(self.table.values(at)?.to_pyarray(py))
    }

    fn __len__(&self) -> usize {
        self.table.columns().first().map_or(0, record::Column::len)
    }
}

/// Columns with a name each, the memory of numpy.
type Arrays<'py> = Vec<(String, PyReadonlyArray1<'py, f64>)>;

/// What a model takes from a table: the library's record, and where it came from. Made for one call.
#[pyclass(module = "latens._latens")]
pub struct Source {
    pub file: String,
    pub sha256: String,
    pub record: Record,
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
        let layout = model.0.layout();
        py.detach(|| {
            let (file, sha256) = (table.table.source.clone(), table.sha256.clone());
            Self::new(&table.table, &layout, (file, sha256), &map, step)
        })
    }

    /// From arrays for a model; `origin` is the file that they once were, and its checksum.
    #[staticmethod]
    fn of_arrays(
        model: &Model,
        name: &str,
        arrays: Arrays,
        step: Option<f64>,
        origin: Option<(String, String)>,
    ) -> Result<Self> {
        let mut source = Self::borrowed(&model.0.layout(), name, &arrays, step)?;
        if let Some((file, sha256)) = origin {
            (source.file, source.sha256) = (file, sha256);
        }
        Ok(source)
    }

    /// The inputs of a file, to drive what was learned.
    #[staticmethod]
    fn driving_table(
        fit: &Fit,
        table: &Table,
        map: Vec<String>,
        step: Option<f64>,
    ) -> Result<Self> {
        let about = (table.table.source.clone(), table.sha256.clone());
        Self::new(&table.table, &fit.shown.run.driving(), about, &map, step)
    }

    /// The inputs among arrays, to drive what was learned.
    #[staticmethod]
    fn driving_arrays(fit: &Fit, name: &str, arrays: Arrays, step: Option<f64>) -> Result<Self> {
        Self::borrowed(&fit.shown.run.driving(), name, &arrays, step)
    }

    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    #[getter]
    fn sha256(&self) -> &str {
        &self.sha256
    }

    fn __len__(&self) -> usize {
        self.record.len()
    }
}

impl Source {
    fn new<V: AsRef<[f64]>>(
        table: &record::Table<V>,
        layout: &Layout,
        (file, sha256): (String, String),
        map: &[String],
        step: Option<f64>,
    ) -> Result<Self> {
        let mapping = Mapping::parse(map)?;
        let columns = Columns::find(table, layout, &mapping)?;
        Ok(Self {
            file,
            sha256,
            record: Record::from_table(table, layout, &mapping, step)?,
            names: table.names().map(String::from).collect(),
            columns,
        })
    }

    /// A record that a fit has kept.
    pub fn of_record(
        model: &latens::Model,
        record: Record,
        (file, sha256): (String, String),
    ) -> Result<Self> {
        let layout = model.layout();
        let table = record.to_table(&layout)?;
        Ok(Self {
            file,
            sha256,
            columns: Columns::find(&table, &layout, &Mapping::default())?,
            names: table.names().map(String::from).collect(),
            record,
        })
    }

    /// The numbers are copied once, from numpy's memory to the rows of the record.
    fn borrowed(layout: &Layout, name: &str, arrays: &Arrays, step: Option<f64>) -> Result<Self> {
        let mut columns = vec![];
        for (name, array) in arrays {
            let values = array.as_slice();
            let values = values.map_err(|_| setting(format!("{name} is not contiguous")))?;
            columns.push(record::Column::new(name, values));
        }
        let table = record::Table::new(name, columns)?;
        let about = (name.to_owned(), run::table_sha256(&table)?);
        let source = Self::new(&table, layout, about, &[], step)?;
        // a name in memory is no path
        let record = Record {
            name: name.into(),
            ..source.record
        };
        Ok(Self { record, ..source })
    }

    /// As the library's check has it.
    pub fn checked(&self) -> check::Source {
        let (record, names) = (self.record.clone(), self.names.clone());
        check::Source::new(self.file.clone(), record, names, self.columns.clone())
    }

    /// The record without another copy; an empty one is left.
    pub fn take(&mut self) -> Record {
        let left = self.record.slice(0..0);
        std::mem::replace(&mut self.record, left)
    }

    /// As the library has it.
    pub fn source(&self) -> run::Source<'_> {
        run::Source {
            file: self.file.clone(),
            sha256: self.sha256.clone(),
            record: &self.record,
        }
    }
}
