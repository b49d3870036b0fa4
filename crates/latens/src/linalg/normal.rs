//! Normal equations A = Σ GᵀG, b = Σ Gᵀr, gathered row by row and multiplied in blocks.
//!
//! Rows are collected until a block is full; the block is then one symmetric rank-k product, the
//! kind of work that runs near the machine's peak. Only the lower triangle of A is kept.

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::linalg::solvers::{Llt, Solve};
use faer::{Accum, Mat, Par, Side};

/// Rows of a block: long enough for level-3 work, short enough to stay in the cache.
const BLOCK: usize = 256;

/// A and b, with a block of rows not yet in A.
#[derive(Debug, Clone)]
pub struct NormalEquations {
    a: Mat<f64>,
    pub b: Vec<f64>,
    /// Rows G as columns.
    block: Mat<f64>,
    filled: usize,
}

impl NormalEquations {
    /// Zero, for n unknowns.
    pub fn new(n: usize) -> Self {
        Self {
            a: Mat::zeros(n, n),
            b: vec![0.0; n],
            block: Mat::zeros(n, BLOCK),
            filled: 0,
        }
    }

    /// A ← A + GᵀG, b ← b + Gᵀr.
    pub fn push(&mut self, row: &[f64], residual: f64) {
        self.block
            .col_as_slice_mut(self.filled)
            .copy_from_slice(row);
        for (b, g) in self.b.iter_mut().zip(row) {
            *b += g * residual;
        }
        self.filled += 1;
        if self.filled == BLOCK {
            self.flush();
        }
    }

    /// Brings A up to date.
    pub fn flush(&mut self) {
        let block = self.block.subcols(0, self.filled);
        let lower = BlockStructure::TriangularLower;
        let full = BlockStructure::Rectangular;
        let par = Par::rayon(0);
        matmul(
            &mut self.a,
            lower,
            Accum::Add,
            block,
            full,
            block.transpose(),
            full,
            1.0,
            par,
        );
        self.filled = 0;
    }

    /// A ← A + other's, b likewise; both flushed.
    pub fn add(&mut self, other: &Self) {
        for j in 0..self.b.len() {
            for i in j..self.b.len() {
                self.a[(i, j)] += other.a[(i, j)];
            }
            self.b[j] += other.b[j];
        }
    }

    /// The diagonal of A.
    pub fn diagonal(&self) -> Vec<f64> {
        (0..self.b.len()).map(|i| self.a[(i, i)]).collect()
    }

    /// Cholesky factors of A + diag(shift); `None` where that is not positive definite.
    pub fn factor(&self, shift: &[f64]) -> Option<Llt<f64>> {
        let mut shifted = self.a.clone();
        for (i, s) in shift.iter().enumerate() {
            shifted[(i, i)] += s;
        }
        shifted.llt(Side::Lower).ok()
    }
}

/// x with L Lᵀ x = right.
pub fn solve(factor: &Llt<f64>, right: &[f64]) -> Vec<f64> {
    let mut x = Mat::from_fn(right.len(), 1, |i, _| right[i]);
    factor.solve_in_place(&mut x);
    x.col_as_slice(0).to_vec()
}

/// The lower triangle, row by row, of (L Lᵀ)⁻¹.
pub fn packed_inverse(factor: &Llt<f64>, n: usize) -> Vec<f64> {
    let mut inverse = Mat::<f64>::identity(n, n);
    factor.solve_in_place(&mut inverse);
    (0..n)
        .flat_map(|i| (0..=i).map(move |j| (i, j)))
        .map(|(i, j)| inverse[(i, j)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::small;

    /// Blocks, a partial block and two parts added give the same normal equations as plain sums.
    #[test]
    fn blocks_sum_to_the_plain_normal_equations() {
        let n = 7;
        let row = |k: usize| -> Vec<f64> { (0..n).map(|i| ((k * n + i) as f64).sin()).collect() };
        let residual = |k: usize| (k as f64).cos();
        let (mut first, mut second) = (NormalEquations::new(n), NormalEquations::new(n));
        let (mut a, mut b) = (vec![0.0; n * n], vec![0.0; n]);
        for k in 0..2 * BLOCK + 9 {
            let part = if k < 300 { &mut first } else { &mut second };
            part.push(&row(k), residual(k));
            for i in 0..n {
                b[i] += row(k)[i] * residual(k);
                for j in 0..n {
                    a[i * n + j] += row(k)[i] * row(k)[j];
                }
            }
        }
        first.flush();
        second.flush();
        first.add(&second);
        for i in 0..n {
            a[i * n + i] += 0.5;
        }
        let factor = first.factor(&[0.5; 7]).unwrap();
        let (x, inverse) = (solve(&factor, &first.b), packed_inverse(&factor, n));
        let mut expected = small::identity(n);
        small::solve(&mut a.clone(), &mut b, n).unwrap();
        small::solve(&mut a, &mut expected, n).unwrap();
        for i in 0..n {
            assert!((x[i] - b[i]).abs() < 1e-12);
            for j in 0..=i {
                assert!((inverse[i * (i + 1) / 2 + j] - expected[i * n + j]).abs() < 1e-12);
            }
        }
        assert!(first.factor(&[-1e6; 7]).is_none());
    }
}
