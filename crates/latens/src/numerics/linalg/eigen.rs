//! Eigenvalues and eigenvectors of symmetric matrices.
//!
//! ```text
//! A = H T Hᵀ        H a product of reflections, T tridiagonal        (reduction)
//! T = Z Λ Zᵀ        by divide and conquer, small parts by rotations  (divide, rotations)
//! V = H Z
//! ```
//!
//! Residual and loss of orthogonality are a few n ε ‖A‖, as LAPACK's. H Z is shared out among the
//! threads by columns; sums do not depend on their number.

mod divide;
mod reduction;
mod rotations;
mod secular;

use super::matrix::Matrix;
use super::packed::kernels::row_start;
use super::simd;

/// A = V Λ Vᵀ.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// Λ, from the least.
    pub values: Vec<f64>,
    /// V, an eigenvector in each column.
    pub vectors: Matrix,
}

impl Eigen {
    /// Of a symmetric matrix, of which the lower triangle is read.
    pub fn new(a: &Matrix) -> Self {
        let n = a.columns();
        let lower = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j)));
        Self::from_packed(n, lower.map(|at| a[at]).collect())
    }

    /// Of a symmetric n×n matrix from its lower triangle, row by row. What is not of numbers has no
    /// numbers as its values and vectors.
    ///
    /// # Panics
    /// If `packed` does not hold `n (n + 1) / 2` numbers.
    pub fn from_packed(n: usize, mut packed: Vec<f64>) -> Self {
        assert_eq!(packed.len(), row_start(n), "length of the packed triangle");
        let size = packed.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        if packed.iter().any(|v| !v.is_finite()) {
            return Self {
                values: vec![f64::NAN; n],
                vectors: Matrix::from_fn(n, n, |_, _| f64::NAN),
            };
        }
        // a power of two, which is exact: squares neither overflow nor vanish
        let scale = if size > 0.0 {
            2f64.powi(size.log2().floor().clamp(-1000.0, 1000.0) as i32)
        } else {
            1.0
        };
        packed.iter_mut().for_each(|v| *v /= scale);
        let arch = simd::arch();
        let mut reduced = reduction::reduce(arch, n, packed);
        let mut vectors = Matrix::zeros(n, n);
        divide::solve(arch, &mut reduced.tridiagonal, &mut vectors);
        reduced.turn_back(arch, &mut vectors);
        let mut values = reduced.tridiagonal.diagonal;
        values.iter_mut().for_each(|v| *v *= scale);
        Self { values, vectors }
    }
}

/// A symmetric tridiagonal matrix.
#[derive(Debug, Clone)]
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Beside the diagonal; one shorter.
    beside: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::linalg::simd::forced;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    /// An orthogonal matrix: the product of two random reflections.
    fn rotation(n: usize, seed: u64) -> Matrix {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
        let mut q = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
        for _ in 0..2 {
            let v: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
            let square: f64 = v.iter().map(|v| v * v).sum();
            for j in 0..n {
                let column = q.column_mut(j);
                let along: f64 = column.iter().zip(&v).map(|(q, v)| q * v).sum();
                let factor = 2.0 * along / square.max(f64::MIN_POSITIVE);
                column
                    .iter_mut()
                    .zip(&v)
                    .for_each(|(q, v)| *q -= factor * v);
            }
        }
        q
    }

    /// Q Λ Qᵀ.
    fn with_values(values: &[f64], seed: u64) -> Matrix {
        let n = values.len();
        let q = rotation(n, seed);
        let scaled = Matrix::from_fn(n, n, |i, j| q[(i, j)] * values[j]);
        let mut a = Matrix::zeros(n, n);
        a.add_product(1.0, scaled.view(), q.view().transposed());
        Matrix::from_fn(n, n, |i, j| a[(i.max(j), i.min(j))])
    }

    /// ‖A V − V Λ‖ ≤ c n ε ‖A‖ and ‖Vᵀ V − I‖ ≤ c n ε, entry by entry, in order, with the trace.
    fn check(a: &Matrix) -> Eigen {
        let n = a.columns();
        let eigen = Eigen::new(a);
        let v = &eigen.vectors;
        let size = a.data().iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let norm = size * (n as f64).sqrt();
        let bound = 4.0 * (n as f64 + 2.0) * f64::EPSILON;
        let mut residual = Matrix::from_fn(n, n, |i, j| -v[(i, j)] * eigen.values[j]);
        residual.add_product(1.0, a.view(), v.view());
        let mut skew = Matrix::from_fn(n, n, |i, j| -f64::from(u8::from(i == j)));
        skew.add_product(1.0, v.view().transposed(), v.view());
        let worst = |m: &Matrix| m.data().iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert!(
            worst(&residual) <= bound * norm,
            "{n}: {:e}",
            worst(&residual)
        );
        assert!(worst(&skew) <= bound, "{n}: {:e}", worst(&skew));
        assert!(eigen.values.is_sorted());
        let trace: f64 = (0..n).map(|i| a[(i, i)]).sum();
        let sum: f64 = eigen.values.iter().sum();
        assert!((trace - sum).abs() <= bound * norm * n as f64);
        forced::assert_equal_bits(|| {
            let eigen = Eigen::new(a);
            [&eigen.values, eigen.vectors.data()].concat()
        });
        eigen
    }

    const SIZES: [usize; 9] = [0, 1, 2, 3, 31, 33, 70, 150, 301];

    #[test]
    fn of_random_matrices() {
        for n in SIZES {
            let mut rng = rand_pcg::Pcg64::seed_from_u64(n as u64);
            let any = Matrix::from_fn(n, n, |_, _| rng.random_range(-1.0..1.0));
            check(&Matrix::from_fn(n, n, |i, j| any[(i, j)] + any[(j, i)]));
        }
    }

    /// Eigenvalues that are known: graded over twenty orders, of low rank, in clusters, all equal,
    /// and tiny or huge as a whole. By Weyl's theorem each is off by no more than the residual.
    #[test]
    fn of_known_values() {
        type Values = fn(usize, usize) -> f64;
        let all: [Values; 7] = [
            |n, i| 10f64.powf(-20.0 * i as f64 / n as f64),
            |n, i| f64::from(u8::from(i * 10 < n)) * (1.0 + i as f64),
            |_, i| (i % 3) as f64 + 1e-13 * i as f64,
            |_, _| 2.0,
            |_, i| if i.is_multiple_of(2) { 1.0 } else { -1.0 },
            |n, i| 1e-290 * 10f64.powf(-10.0 * i as f64 / n as f64),
            |n, i| 1e290 * (0.1 + i as f64 / n as f64),
        ];
        for spectrum in all {
            for n in [1, 2, 33, 131, 260] {
                let mut values: Vec<f64> = (0..n).map(|i| spectrum(n, i)).collect();
                let eigen = check(&with_values(&values, n as u64));
                values.sort_by(f64::total_cmp);
                let size = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                for (eigen, value) in eigen.values.iter().zip(&values) {
                    let bound = 8.0 * (n as f64 + 2.0) * f64::EPSILON * size;
                    assert!((eigen - value).abs() <= bound, "{n}: {eigen:e} {value:e}");
                }
            }
        }
    }

    /// 2 on the diagonal and −1 beside it: λ_k = 4 sin²(kπ/2(n + 1)). And a diagonal matrix.
    #[test]
    fn of_closed_forms() {
        for n in [5, 64, 200] {
            let a = Matrix::from_fn(n, n, |i, j| match i.abs_diff(j) {
                0 => 2.0,
                1 => -1.0,
                _ => 0.0,
            });
            let eigen = check(&a);
            for (k, value) in eigen.values.iter().enumerate() {
                let angle = (k + 1) as f64 * std::f64::consts::PI / (2 * (n + 1)) as f64;
                assert!((value - 4.0 * angle.sin().powi(2)).abs() < 1e-13);
            }
            let entry = |i: usize| ((7 * i) % n) as f64;
            let diagonal = Matrix::from_fn(n, n, |i, j| if i == j { entry(i) } else { 0.0 });
            let eigen = check(&diagonal);
            assert!((0..n).all(|k| (eigen.values[k] - k as f64).abs() < 1e-12));
        }
    }

    #[test]
    fn of_what_is_no_number_are_none() {
        let eigen = Eigen::new(&Matrix::from_fn(3, 3, |i, _| [0.0, f64::NAN, 1.0][i]));
        assert!(eigen.values.iter().all(|v| v.is_nan()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Integers from a few values make ties, zeros and exact deflations.
        #[test]
        fn of_matrices_with_ties(n in 1usize..90, seed: u64, levels in 1i32..4) {
            let mut rng = rand_pcg::Pcg64::seed_from_u64(seed);
            let any = Matrix::from_fn(n, n, |_, _| f64::from(rng.random_range(-levels..=levels)));
            check(&Matrix::from_fn(n, n, |i, j| any[(i.max(j), i.min(j))]));
        }
    }
}
