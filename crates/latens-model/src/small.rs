//! Dense matrices of a few rows, row by row in slices the caller owns.

use crate::simd::{Loops, dispatch};

/// out = A B, with A n×k and B k×m; zeros of A cost nothing.
pub fn multiply(a: &[f64], b: &[f64], out: &mut [f64], k: usize, m: usize) {
    dispatch(Multiply { a, b, out, k, m });
}

struct Multiply<'a> {
    a: &'a [f64],
    b: &'a [f64],
    out: &'a mut [f64],
    k: usize,
    m: usize,
}

impl Loops for Multiply<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.a.chunks_exact(self.k);
        for (row, out) in rows.zip(self.out.chunks_exact_mut(self.m)) {
            out.fill(0.0);
            for (&x, b) in row.iter().zip(self.b.chunks_exact(self.m)) {
                if x != 0.0 {
                    for (o, y) in out.iter_mut().zip(b) {
                        *o += x * y;
                    }
                }
            }
        }
    }
}

/// P ← F P Fᵀ for n×n matrices; symmetric by construction. `scratch` holds n². Zeros of F cost nothing.
pub fn sandwich(f: &[f64], p: &mut [f64], scratch: &mut [f64], n: usize) {
    dispatch(Sandwich { f, p, scratch, n });
}

struct Sandwich<'a> {
    f: &'a [f64],
    p: &'a mut [f64],
    scratch: &'a mut [f64],
    n: usize,
}

impl Loops for Sandwich<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { f, p, scratch, n } = self;
        Multiply {
            a: f,
            b: p,
            out: scratch,
            k: n,
            m: n,
        }
        .run();
        // (F P)ᵀ, so that the rows of the result are sums of rows
        for i in 1..n {
            for j in 0..i {
                scratch.swap(i * n + j, j * n + i);
            }
        }
        for j in 0..n {
            let out = &mut p[j * n + j..(j + 1) * n];
            out.fill(0.0);
            for (k, &x) in f[j * n..(j + 1) * n].iter().enumerate() {
                if x != 0.0 {
                    for (o, y) in out.iter_mut().zip(&scratch[k * n + j..]) {
                        *o += x * y;
                    }
                }
            }
        }
        for i in 1..n {
            for j in 0..i {
                p[i * n + j] = p[j * n + i];
            }
        }
    }
}

/// The correction of a covariance P, of which the lower triangle stands, by a channel that sees one state:
/// (I − KH) P (I − KH)ᵀ + r K Kᵀ, where each row of P changes by that state's alone.
pub struct SeeingOne<'a> {
    pub covariance: &'a mut [f64],
    pub gain: &'a [f64],
    /// K H.
    pub scaled: &'a [f64],
    /// The row of the state in P.
    pub before: &'a [f64],
    pub state: usize,
    /// Variance of the channel.
    pub variance: f64,
}

impl SeeingOne<'_> {
    /// Corrects the lower triangle.
    pub fn correct(self) {
        dispatch(self);
    }
}

impl Loops for SeeingOne<'_> {
    #[inline(always)]
    fn run(self) {
        let Self {
            gain,
            scaled,
            before,
            state,
            variance,
            ..
        } = self;
        let n = gain.len();
        let kept = 1.0 - scaled[state];
        for (i, row) in self.covariance.chunks_exact_mut(n).enumerate() {
            let (by, k) = (scaled[i], gain[i]);
            let row = &mut row[..=i];
            let entries = row.iter_mut().zip(before).zip(scaled.iter().zip(gain));
            if i == state {
                let seen = before[state] * kept;
                for ((x, _), (scaled, gain)) in entries {
                    *x = *x * kept - scaled * seen + variance * (k * gain);
                }
                row[state] = kept * seen + variance * (k * gain[state]);
            } else {
                let seen = before[i] - by * before[state];
                for ((x, b), (scaled, gain)) in entries {
                    *x = (*x - by * b) - scaled * seen + variance * (k * gain);
                }
                if state < i {
                    row[state] = kept * seen + variance * (k * gain[state]);
                }
            }
        }
    }
}

/// The upper triangle of a symmetric matrix from the lower one.
pub fn mirror(matrix: &mut [f64], n: usize) {
    for i in 1..n {
        for j in 0..i {
            matrix[j * n + i] = matrix[i * n + j];
        }
    }
}

/// Rows ← rows − k seen, with a factor k for each row.
pub fn subtract_outer(rows: &mut [f64], factors: &[f64], seen: &[f64]) {
    dispatch(SubtractOuter {
        rows,
        factors,
        seen,
    });
}

struct SubtractOuter<'a> {
    rows: &'a mut [f64],
    factors: &'a [f64],
    seen: &'a [f64],
}

impl Loops for SubtractOuter<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.rows.chunks_exact_mut(self.seen.len());
        for (row, k) in rows.zip(self.factors) {
            for (m, seen) in row.iter_mut().zip(self.seen) {
                *m -= k * seen;
            }
        }
    }
}

/// aᵀ b.
#[inline]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// The same for long vectors: in running sums side by side, which vectorises.
pub fn dot_long(a: &[f64], b: &[f64]) -> f64 {
    const SUMS: usize = 16;
    let (a, a_rest) = a.as_chunks::<SUMS>();
    let (b, b_rest) = b.as_chunks::<SUMS>();
    let mut sums = [0.0; SUMS];
    for (a, b) in a.iter().zip(b) {
        for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f64>() + dot(a_rest, b_rest)
}

/// out = A x; zeros of A cost nothing.
pub fn apply(a: &[f64], x: &[f64], out: &mut [f64]) {
    for (o, row) in out.iter_mut().zip(a.chunks_exact(x.len())) {
        let terms = row.iter().zip(x).filter(|(a, _)| **a != 0.0);
        *o = terms.map(|(a, x)| a * x).sum();
    }
}

/// out = Aᵀ x, which is A x where A is symmetric, and faster.
pub fn apply_transposed(a: &[f64], x: &[f64], out: &mut [f64]) {
    dispatch(ApplyTransposed { a, x, out });
}

struct ApplyTransposed<'a> {
    a: &'a [f64],
    x: &'a [f64],
    out: &'a mut [f64],
}

impl Loops for ApplyTransposed<'_> {
    #[inline(always)]
    fn run(self) {
        let columns = self.out.len();
        self.out.fill(0.0);
        for (row, &x) in self.a.chunks_exact(columns).zip(self.x) {
            for (o, a) in self.out.iter_mut().zip(row) {
                *o += a * x;
            }
        }
    }
}

/// Solves A X = B in place of B by Gaussian elimination with partial pivoting; A is overwritten.
///
/// `Err(column)` where A is singular to working precision.
pub fn solve(a: &mut [f64], b: &mut [f64], n: usize) -> Result<(), usize> {
    let m = b.len() / n;
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a[i * n + column].abs().total_cmp(&a[j * n + column].abs()))
            .unwrap_or(column);
        let size = a[pivot * n + column].abs();
        if size.is_nan() || size <= 1e-300 {
            return Err(column);
        }
        if pivot != column {
            for j in 0..n {
                a.swap(pivot * n + j, column * n + j);
            }
            for j in 0..m {
                b.swap(pivot * m + j, column * m + j);
            }
        }
        for i in column + 1..n {
            let factor = a[i * n + column] / a[column * n + column];
            if factor != 0.0 {
                for j in column..n {
                    a[i * n + j] -= factor * a[column * n + j];
                }
                for j in 0..m {
                    b[i * m + j] -= factor * b[column * m + j];
                }
            }
        }
    }
    for i in (0..n).rev() {
        for j in 0..m {
            let mut value = b[i * m + j];
            for k in i + 1..n {
                value -= a[i * n + k] * b[k * m + j];
            }
            b[i * m + j] = value / a[i * n + i];
        }
    }
    Ok(())
}

/// L in the lower triangle of A = L Lᵀ; `Err` with the first pivot that is not positive.
pub fn cholesky(a: &mut [f64], n: usize) -> Result<(), usize> {
    for j in 0..n {
        for i in j..n {
            let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - sum;
            if i > j {
                a[i * n + j] = rest / a[j * n + j];
            } else if rest > 0.0 {
                a[j * n + j] = rest.sqrt();
            } else {
                return Err(j);
            }
        }
    }
    Ok(())
}

/// The n×n identity.
pub fn identity(n: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; n * n];
    set_identity(&mut matrix, n);
    matrix
}

/// Overwrites a matrix with the identity.
pub fn set_identity(matrix: &mut [f64], n: usize) {
    matrix.fill(0.0);
    for i in 0..n {
        matrix[i * n + i] = 1.0;
    }
}

/// The transpose of an n×m matrix.
pub fn transpose(a: &[f64], n: usize, m: usize) -> Vec<f64> {
    (0..m)
        .flat_map(|j| (0..n).map(move |i| a[i * m + j]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Skipped zeros and loops in another order change no bit: F P Fᵀ and A x as they are written, on a matrix
    /// with a band of numbers and zeros elsewhere, on every instruction set.
    #[test]
    fn sparse_products_equal_the_plain_ones() {
        for n in [1, 2, 5, 8, 13] {
            let wave = |i: usize| (1.7 * i as f64).sin();
            let band = |i: usize| (i / n).abs_diff(i % n) < 3;
            let f: Vec<f64> = (0..n * n)
                .map(|i| if band(i) { wave(i) } else { 0.0 })
                .collect();
            let root: Vec<f64> = (0..n * n).map(|i| wave(3 * i + 1)).collect();
            let mut p = identity(n);
            let plain = |f: &[f64], p: &[f64]| -> Vec<f64> {
                let at = |e: usize| {
                    let (i, j) = (e / n, e % n);
                    let inner = |k: usize| {
                        (0..n)
                            .map(|m| f[i.max(j) * n + m] * p[m * n + k])
                            .sum::<f64>()
                    };
                    (0..n).map(|k| inner(k) * f[i.min(j) * n + k]).sum()
                };
                (0..n * n).map(at).collect()
            };
            sandwich(&root, &mut p, &mut vec![0.0; n * n], n);
            let expected = plain(&f, &p);
            let products = crate::simd::forced::on_each(|| {
                let mut found = p.clone();
                sandwich(&f, &mut found, &mut vec![0.0; n * n], n);
                found
            });
            assert!(products.iter().all(|found| *found == expected), "{n}");
            let x: Vec<f64> = (0..n).map(|i| wave(5 * i)).collect();
            let (mut sparse, mut symmetric) = (vec![0.0; n], vec![0.0; n]);
            let row = |a: &[f64], i: usize| dot(&a[i * n..(i + 1) * n], &x);
            apply(&f, &x, &mut sparse);
            apply_transposed(&p, &x, &mut symmetric);
            for i in 0..n {
                assert_eq!((sparse[i], symmetric[i]), (row(&f, i), row(&p, i)));
            }
        }
    }
}
