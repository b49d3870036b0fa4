//! Dense matrices of a few rows, row by row in slices the caller owns.

/// out = A B, with A n×k and B k×m.
pub fn multiply(a: &[f64], b: &[f64], out: &mut [f64], k: usize, m: usize) {
    for (row, out) in a.chunks_exact(k).zip(out.chunks_exact_mut(m)) {
        out.fill(0.0);
        for (&x, b) in row.iter().zip(b.chunks_exact(m)) {
            if x != 0.0 {
                for (o, y) in out.iter_mut().zip(b) {
                    *o += x * y;
                }
            }
        }
    }
}

/// P ← F P Fᵀ for n×n matrices; symmetric by construction. `scratch` holds n².
pub fn sandwich(f: &[f64], p: &mut [f64], scratch: &mut [f64], n: usize) {
    multiply(f, p, scratch, n, n);
    for i in 0..n {
        for j in 0..=i {
            let value = dot(&scratch[i * n..(i + 1) * n], &f[j * n..(j + 1) * n]);
            p[i * n + j] = value;
            p[j * n + i] = value;
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

/// out = A x.
pub fn apply(a: &[f64], x: &[f64], out: &mut [f64]) {
    for (o, row) in out.iter_mut().zip(a.chunks_exact(x.len())) {
        *o = dot(row, x);
    }
}

/// out = Aᵀ x.
pub fn apply_transposed(a: &[f64], x: &[f64], out: &mut [f64]) {
    let columns = out.len();
    out.fill(0.0);
    for (row, &x) in a.chunks_exact(columns).zip(x) {
        for (o, a) in out.iter_mut().zip(row) {
            *o += a * x;
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
