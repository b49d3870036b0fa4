//! Dense matrices, column by column, and views of parts of them.

use std::ops::{Index, IndexMut, Range};

use super::product;
use super::simd;

/// A dense matrix, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    data: Vec<f64>,
    rows: usize,
    columns: usize,
}

impl Matrix {
    /// All zero.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self {
            data: vec![0.0; rows * columns],
            rows,
            columns,
        }
    }

    /// From its entries.
    pub fn from_fn(
        rows: usize,
        columns: usize,
        mut entry: impl FnMut(usize, usize) -> f64,
    ) -> Self {
        let mut new = Self::zeros(rows, columns);
        for j in 0..columns {
            for i in 0..rows {
                new[(i, j)] = entry(i, j);
            }
        }
        new
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All entries, column by column.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// The same, to write to.
    pub fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// Column j.
    pub fn column(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Column j, to write to.
    pub fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// A part of the matrix.
    pub fn part(&self, rows: Range<usize>, columns: Range<usize>) -> View<'_> {
        View::columns(&self.data, self.rows, rows, columns)
    }

    /// The whole matrix as a view.
    pub fn view(&self) -> View<'_> {
        self.part(0..self.rows, 0..self.columns)
    }

    /// A part of the matrix, to write to.
    pub fn part_mut(&mut self, rows: Range<usize>, columns: Range<usize>) -> Target<'_> {
        Target::columns(&mut self.data, self.rows, rows, columns)
    }

    /// self + factor · left · right, in place.
    pub fn add_product(&mut self, factor: f64, left: View, right: View) {
        let (rows, columns) = (self.rows, self.columns);
        let target = self.part_mut(0..rows, 0..columns);
        product::add(simd::arch(), target, factor, left, right);
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[j * self.rows + i]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[j * self.rows + i]
    }
}

/// Numbers of another's memory as a matrix.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// From the first entry on.
    pub data: &'a [f64],
    pub rows: usize,
    pub columns: usize,
    /// From a row to the next.
    pub row_step: usize,
    /// From a column to the next.
    pub column_step: usize,
}

impl<'a> View<'a> {
    /// A part of what stands column by column, `stride` numbers apart.
    pub fn columns(
        data: &'a [f64],
        stride: usize,
        rows: Range<usize>,
        columns: Range<usize>,
    ) -> Self {
        Self {
            data: data
                .get(columns.start * stride + rows.start..)
                .unwrap_or(&[]),
            rows: rows.len(),
            columns: columns.len(),
            row_step: 1,
            column_step: stride,
        }
    }

    /// The transpose.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }
}

/// A part of another's matrix to write to, column by column.
#[derive(Debug)]
pub struct Target<'a> {
    /// From the first entry on.
    pub data: &'a mut [f64],
    pub rows: usize,
    pub columns: usize,
    /// From a column to the next.
    pub stride: usize,
}

impl<'a> Target<'a> {
    /// A part of what stands column by column, `stride` numbers apart.
    pub fn columns(
        data: &'a mut [f64],
        stride: usize,
        rows: Range<usize>,
        columns: Range<usize>,
    ) -> Self {
        let from = columns.start * stride + rows.start;
        Self {
            data: data.get_mut(from..).unwrap_or_default(),
            rows: rows.len(),
            columns: columns.len(),
            stride,
        }
    }
}
