//! The reduction of a symmetric matrix to a tridiagonal one, by reflections.
//!
//! From the last row up, a reflection I − τ v vᵀ makes all of a row zero left of the entry beside
//! the diagonal, and the rows above it become
//!
//! ```text
//! A ← A − v wᵀ − w vᵀ,     w = p − ½ τ (pᵀv) v,     p = τ A v .
//! ```
//!
//! The rows that are left are always the first ones, in half a matrix row by row: the storage of
//! [`PackedCovariance`](crate::numerics::linalg::PackedCovariance), whose delayed updates serve here as well.
//! A row that is done makes room for its v.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Tridiagonal;
use crate::numerics::linalg::matrix::{Matrix, Target, View};
use crate::numerics::linalg::packed::kernels::{
    DELAY, PendingProduct, RankUpdate, TriangleProduct, row_start,
};
use crate::numerics::linalg::product;
use crate::numerics::linalg::simd::{LANES, Panel, ZERO, axpy, dot, lanes, lanes_mut};

/// Reflections that are multiplied out together.
const BLOCK_REFLECTIONS: usize = 48;
/// Columns that a thread turns in one go.
const STRIP_COLUMNS: usize = 96;
/// A row shorter than this, where the matrix is of order one, is as good as zero.
const ZERO_ROW_LENGTH: f64 = 1e-140;

/// A = H T Hᵀ.
pub struct Reduced {
    pub tridiagonal: Tridiagonal,
    /// v of row m in the first m places of row m.
    reflections: Vec<f64>,
    /// τ of row m; zero where there is nothing to reflect.
    factors: Vec<f64>,
}

/// Reduces an n×n matrix of order one, given by its lower triangle, row by row.
pub fn reduce(arch: Arch, n: usize, packed: Vec<f64>) -> Reduced {
    let panels = n.div_ceil(LANES);
    let mut work = Work {
        packed,
        left: vec![[ZERO; DELAY]; panels],
        right: vec![[ZERO; DELAY]; panels],
        count: 0,
        v: vec![ZERO; panels],
        w: vec![ZERO; panels],
    };
    let mut tridiagonal = Tridiagonal {
        diagonal: vec![0.0; n],
        beside: vec![0.0; n.saturating_sub(1)],
    };
    let mut factors = vec![0.0; n];
    for m in (0..n).rev() {
        arch.dispatch(Row { work: &mut work, m });
        let row = &mut work.packed[row_start(m)..][..=m];
        tridiagonal.diagonal[m] = row[m];
        if m == 0 {
            break;
        }
        let Reflection { beta, tau } = reflection(&mut row[..m]);
        (tridiagonal.beside[m - 1], factors[m]) = (beta, tau);
        if tau != 0.0 {
            work.reflect(arch, m, tau);
        }
    }
    Reduced {
        tridiagonal,
        reflections: work.packed,
        factors,
    }
}

/// A reflection I − τ v vᵀ that turns a row to (0, …, 0, β).
struct Reflection {
    beta: f64,
    tau: f64,
}

/// Puts v in place of the row x that it turns.
fn reflection(x: &mut [f64]) -> Reflection {
    let last = x.len() - 1;
    let rest = x[..last].iter().map(|x| x * x).sum::<f64>().sqrt();
    let before = x[last];
    if rest < ZERO_ROW_LENGTH {
        return Reflection {
            beta: before,
            tau: 0.0,
        };
    }
    let beta = -before.hypot(rest).copysign(before);
    let divisor = before - beta;
    x[..last].iter_mut().for_each(|x| *x /= divisor);
    x[last] = 1.0;
    Reflection {
        beta,
        tau: (beta - before) / beta,
    }
}

/// The matrix on its way: A₀ − L Rᵀ, with v and w in the columns of L and of R in turn.
struct Work {
    packed: Vec<f64>,
    left: Vec<[Panel; DELAY]>,
    right: Vec<[Panel; DELAY]>,
    count: usize,
    v: Vec<Panel>,
    w: Vec<Panel>,
}

impl Work {
    /// Reflects the first m rows and columns by the v that stands in row m.
    fn reflect(&mut self, arch: Arch, m: usize, factor: f64) {
        let panels = m.div_ceil(LANES);
        let row = &self.packed[row_start(m)..][..m];
        let (v, w) = (&mut self.v[..panels], &mut self.w[..panels]);
        for (v, row) in v.iter_mut().zip(row.chunks(LANES)) {
            *v = ZERO;
            v.0[..row.len()].copy_from_slice(row);
        }
        w.fill(ZERO);
        let triangle = &self.packed[..row_start(m)];
        arch.dispatch(TriangleProduct {
            n: m,
            packed: triangle,
            x: v,
            y: w,
        });
        arch.dispatch(PendingProduct {
            left: &self.left[..panels],
            right: &self.right[..panels],
            count: self.count,
            shift: 0.0,
            x: v,
            y: w,
        });
        arch.dispatch(Second { v, w, factor, m });
        let columns = self.left.iter_mut().zip(&mut self.right);
        for ((left, right), (v, w)) in columns.zip(v.iter().zip(w.iter())) {
            (left[self.count], left[self.count + 1]) = (*v, *w);
            (right[self.count], right[self.count + 1]) = (*w, *v);
        }
        self.count += 2;
        if self.count == DELAY {
            arch.dispatch(RankUpdate {
                n: m,
                packed: &mut self.packed[..row_start(m)],
                left: &self.left[..panels],
                right: &self.right[..panels],
                count: self.count,
                shift: 0.0,
                factor: 1.0,
            });
            self.count = 0;
        }
    }
}

/// w ← τ w − ½ τ² (wᵀv) v, zero beyond m.
struct Second<'a> {
    v: &'a [Panel],
    w: &'a mut [Panel],
    factor: f64,
    m: usize,
}

impl WithSimd for Second<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { v, w, factor, m } = self;
        let mut along = 0.0;
        for (v, w) in v.iter().zip(w.iter_mut()) {
            w.0.iter_mut().for_each(|w| *w *= factor);
            along += dot(simd, &v.0, &w.0);
        }
        let minus = -0.5 * factor * along;
        for (v, w) in v.iter().zip(w.iter_mut()) {
            axpy(simd, minus, &v.0, &mut w.0);
        }
        if let (true, Some(last)) = (!m.is_multiple_of(LANES), w.last_mut()) {
            last.0[m % LANES..].fill(0.0);
        }
    }
}

/// Brings row m up to date.
struct Row<'a> {
    work: &'a mut Work,
    m: usize,
}

impl WithSimd for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { work, m } = self;
        let row = &mut work.packed[row_start(m)..][..=m];
        let factors = &work.left[m / LANES][..work.count];
        for (row, columns) in row.chunks_mut(LANES).zip(&work.right) {
            let mut lanes_of_row = ZERO;
            lanes_of_row.0[..row.len()].copy_from_slice(row);
            for (v, sum) in lanes_mut::<S>(&mut lanes_of_row.0).iter_mut().enumerate() {
                for (factor, column) in factors.iter().zip(columns) {
                    let factor = simd.splat_f64s(-factor.0[m % LANES]);
                    *sum = simd.mul_add_f64s(factor, lanes::<S>(&column.0)[v], *sum);
                }
            }
            row.copy_from_slice(&lanes_of_row.0[..row.len()]);
        }
    }
}

impl Reduced {
    /// Z ← H Z: the reflections from the first rows' to the last, a block of them at a time as
    /// I − V T Vᵀ (Schreiber and Van Loan 1989). Columns know nothing of each other: strips of them
    /// are shared out among the threads.
    pub fn turn_back(&self, arch: Arch, z: &mut Matrix) {
        let n = z.columns();
        let blocks: Vec<(Matrix, Matrix)> = (1..n)
            .into_par_iter()
            .step_by(BLOCK_REFLECTIONS)
            .map(|first| self.block(first..n.min(first + BLOCK_REFLECTIONS)))
            .collect();
        let strips = z.data_mut().par_chunks_mut((STRIP_COLUMNS * n).max(1));
        strips.with_max_len(1).for_each(|strip| {
            let columns = strip.len() / n;
            for (v, t) in &blocks {
                let (rows, count) = (v.rows(), v.columns());
                let z = View::columns(strip, n, 0..rows, 0..columns);
                let mut along = Matrix::zeros(count, columns);
                along.add_product(1.0, v.view().transposed(), z);
                let mut turned = Matrix::zeros(count, columns);
                turned.add_product(1.0, t.view(), along.view());
                let target = Target::columns(strip, n, 0..rows, 0..columns);
                product::add(arch, target, -1.0, v.view(), turned.view());
            }
        });
    }

    /// V and T of the reflections of some rows.
    fn block(&self, rows: Range<usize>) -> (Matrix, Matrix) {
        // the reflection of the last row is applied last: it is the leftmost factor
        let reflected = rows.clone().rev().filter(|m| self.factors[*m] != 0.0);
        let reflected: Vec<usize> = reflected.collect();
        let mut v = Matrix::zeros(rows.end - 1, reflected.len());
        for (k, &m) in reflected.iter().enumerate() {
            let row = &self.reflections[row_start(m)..][..m];
            v.column_mut(k)[..m].copy_from_slice(row);
        }
        let mut inner = Matrix::zeros(reflected.len(), reflected.len());
        inner.add_product(1.0, v.view().transposed(), v.view());
        let t = self.triangle(&reflected, &inner);
        (v, t)
    }

    /// T, upper triangular, of the reflections of these rows, whose vectors have the inner products.
    fn triangle(&self, reflected: &[usize], inner: &Matrix) -> Matrix {
        let count = reflected.len();
        let mut t = Matrix::zeros(count, count);
        for (k, &m) in reflected.iter().enumerate() {
            let factor = self.factors[m];
            for i in 0..k {
                let sum: f64 = (i..k).map(|j| t[(i, j)] * inner[(j, k)]).sum();
                t[(i, k)] = -factor * sum;
            }
            t[(k, k)] = factor;
        }
        t
    }
}
