//! Numbers of the library as numpy arrays.

use latens::record::{Column, Table};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// Columns by name, in their order.
pub type Columns<'py> = Vec<(String, Bound<'py, PyArray1<f64>>)>;

/// The columns of a table.
pub fn columns(py: Python<'_>, table: Table) -> Columns<'_> {
    let each = table.into_columns().into_iter();
    each.map(|column| {
        let (name, values) = parts(column);
        (name, values.into_pyarray(py))
    })
    .collect()
}

fn parts(column: Column) -> (String, Vec<f64>) {
    (column.name.clone(), column.into_values())
}

/// Rows of equal width as an array of two dimensions.
pub fn matrix<'py>(
    py: Python<'py>,
    values: Vec<f64>,
    width: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let rows = values.len() / width.max(1);
    values.into_pyarray(py).reshape([rows, width])
}
