//! Cholesky factors L Lᵀ of positive definite matrices, and solutions with them.
//!
//! A range of columns is halved: the left half is factored, its product subtracted from the right
//! half, the right half factored. All but ranges of a few columns is then matrix product, whose
//! columns are shared out among the threads.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::matrix::{Matrix, Target, View};
use super::product;
use super::simd::{self, axpy, dot};

/// Columns that are factored one by one.
const NARROW_COLUMNS: usize = 16;
/// Columns from which a product is subtracted at once, below their first row.
const STRIP_COLUMNS: usize = 48;

/// L, lower triangular, of a positive definite L Lᵀ.
#[derive(Debug, Clone)]
pub struct Factor(Matrix);

impl Factor {
    /// Of a matrix of which the lower triangle is read; `None` where it is not positive definite.
    pub fn new(mut a: Matrix) -> Option<Self> {
        let n = a.columns();
        // on a thread of the pool, from which sharing out costs little
        rayon::scope(|_| factor(simd::arch(), a.data_mut(), n, 0..n))?;
        Some(Self(a))
    }

    /// x with L Lᵀ x = right.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = right.to_vec();
        simd::arch().dispatch(Substitution {
            l: &self.0,
            x: &mut x,
        });
        x
    }

    /// ln det L Lᵀ.
    pub fn log_determinant(&self) -> f64 {
        let diagonal = (0..self.0.columns()).map(|j| self.0[(j, j)]);
        2.0 * diagonal.map(f64::ln).sum::<f64>()
    }

    /// z with L z = right: of variance one where that of `right` is L Lᵀ.
    pub fn whiten(&self, right: &[f64]) -> Vec<f64> {
        let mut z = right.to_vec();
        for j in 0..z.len() {
            let column = &self.0.column(j)[j..];
            let (done, rest) = z[j..].split_at_mut(1);
            done[0] /= column[0];
            let value = done[0];
            let rows = rest.iter_mut().zip(&column[1..]);
            rows.for_each(|(z, l)| *z -= value * l);
        }
        z
    }

    /// x with Lᵀ x = z: of variance (L Lᵀ)⁻¹ where that of `z` is one.
    pub fn draw(&self, z: &[f64]) -> Vec<f64> {
        let mut x = z.to_vec();
        for j in (0..x.len()).rev() {
            let column = &self.0.column(j)[j..];
            let known: f64 = column[1..]
                .iter()
                .zip(&x[j + 1..])
                .map(|(l, x)| l * x)
                .sum();
            x[j] = (x[j] - known) / column[0];
        }
        x
    }
}

/// Factors these columns of an n×n matrix, those before having been subtracted from them.
fn factor(arch: Arch, l: &mut [f64], n: usize, columns: Range<usize>) -> Option<()> {
    let Range { start, end } = columns;
    if columns.len() <= NARROW_COLUMNS {
        return arch.dispatch(Narrow {
            columns: &mut l[start * n..end * n],
            n,
            start,
        });
    }
    let middle = start + (columns.len() / 2).next_multiple_of(NARROW_COLUMNS);
    factor(arch, l, n, start..middle)?;
    let (done, rest) = l.split_at_mut(middle * n);
    let strips = rest[..(end - middle) * n].par_chunks_mut(STRIP_COLUMNS * n);
    let strips = strips.enumerate().with_max_len(1);
    strips.for_each(|(k, strip)| {
        let first = middle + k * STRIP_COLUMNS;
        let strip_columns = first..end.min(first + STRIP_COLUMNS);
        let target = Target::columns(strip, n, first..n, 0..strip_columns.len());
        let left = View::columns(done, n, first..n, start..middle);
        let right = View::columns(done, n, strip_columns, start..middle).transposed();
        product::add(arch, target, -1.0, left, right);
    });
    factor(arch, l, n, middle..end)
}

/// A few columns of L, the first with its diagonal in row `start`.
struct Narrow<'a> {
    columns: &'a mut [f64],
    n: usize,
    start: usize,
}

impl WithSimd for Narrow<'_> {
    type Output = Option<()>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<()> {
        let Self { columns, n, start } = self;
        for j in 0..columns.len() / n.max(1) {
            let (done, column) = columns.split_at_mut(j * n);
            let (diagonal, column) = (start + j, &mut column[start + j..n]);
            for before in done.chunks_exact(n) {
                let before = &before[diagonal..];
                axpy(simd, -before[0], before, column);
            }
            let pivot = column[0];
            if pivot.is_nan() || pivot <= 0.0 {
                return None;
            }
            let root = pivot.sqrt();
            column.iter_mut().for_each(|v| *v /= root);
            column[0] = root;
        }
        Some(())
    }
}

/// x ← (L Lᵀ)⁻¹ x.
struct Substitution<'a> {
    l: &'a Matrix,
    x: &'a mut [f64],
}

impl WithSimd for Substitution<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { l, x } = self;
        let n = x.len();
        for j in 0..n {
            let column = &l.column(j)[j..];
            let (pivot, rest) = x[j..].split_at_mut(1);
            pivot[0] /= column[0];
            axpy(simd, -pivot[0], &column[1..], rest);
        }
        for j in (0..n).rev() {
            let column = &l.column(j)[j..];
            x[j] = (x[j] - dot(simd, &column[1..], &x[j + 1..])) / column[0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::linalg::simd::forced;

    /// B Bᵀ + I, with B of waves: eigenvalues of 1 and more.
    fn definite(n: usize) -> Matrix {
        let b = Matrix::from_fn(n, n, |i, j| ((i * n + j) as f64).powf(1.2).sin());
        let mut a = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
        a.add_product(1.0, b.view(), b.view().transposed());
        a
    }

    /// L Lᵀ is A and the solution solves: both within the bound of Higham (*Accuracy and Stability*,
    /// theorem 10.3), n ε for each entry in units of the diagonal, which is about n here.
    #[test]
    fn factors_multiply_back_and_solve() {
        for n in [0, 1, 2, 15, 16, 17, 40, 131, 300] {
            let a = definite(n);
            let factor = Factor::new(a.clone()).unwrap();
            let l = Matrix::from_fn(n, n, |i, j| if i >= j { factor.0[(i, j)] } else { 0.0 });
            let mut rest = a.clone();
            rest.add_product(-1.0, l.view(), l.view().transposed());
            let bound = 4.0 * (n * n) as f64 * f64::EPSILON;
            assert!(rest.data().iter().all(|r| r.abs() <= bound), "{n}");
            let right: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
            let x = factor.solve(&right);
            for i in 0..n {
                let left: f64 = (0..n).map(|j| a[(i, j)] * x[j]).sum();
                let size: f64 = x.iter().map(|x| x.abs()).sum();
                assert!((left - right[i]).abs() <= bound * (1.0 + size), "{n}");
            }
            // Lᵀ after L: both halves of the solution
            let halves = factor.draw(&factor.whiten(&right));
            let size = x.iter().fold(1.0f64, |m, x| m.max(x.abs()));
            let apart = halves.iter().zip(&x).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) <= bound * size, "{n}");
            forced::assert_equal_bits(|| {
                let factor = Factor::new(a.clone()).unwrap();
                let lower = |j: usize| factor.0.column(j)[j..].to_vec();
                let l: Vec<f64> = (0..n).flat_map(lower).collect();
                [l, factor.solve(&right)].concat()
            });
        }
    }

    /// One eigenvalue below zero, anywhere, is found.
    #[test]
    fn what_is_not_definite_has_no_factor() {
        for at in [0, 15, 16, 40, 99] {
            let mut a = definite(100);
            a[(at, at)] = -1.0;
            assert!(Factor::new(a).is_none());
        }
        assert!(Factor::new(Matrix::from_fn(3, 3, |_, _| f64::NAN)).is_none());
    }
}
