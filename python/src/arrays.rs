//! Numbers of the library as numpy arrays.

use latens::record::Table;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// Arrays of one and of two dimensions.
pub type Vector<'py> = Bound<'py, PyArray1<f64>>;
pub type Matrix<'py> = Bound<'py, PyArray2<f64>>;

/// Columns by name, in their order.
pub type Columns<'py> = Vec<(String, Vector<'py>)>;

/// The columns of a table.
pub fn columns(py: Python<'_>, table: Table) -> Columns<'_> {
    let columns = table.into_columns().into_iter();
    columns
        .map(|column| (column.name.clone(), column.into_values().into_pyarray(py)))
        .collect()
}

/// Rows of equal width as an array of two dimensions.
pub fn matrix<'py>(py: Python<'py>, values: Vec<f64>, width: usize) -> PyResult<Matrix<'py>> {
    let rows = values.len() / width.max(1);
    values.into_pyarray(py).reshape([rows, width])
}
