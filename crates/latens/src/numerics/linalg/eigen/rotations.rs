//! Eigenvalues of small tridiagonal matrices by implicit QL steps: rotations with Wilkinson's shift
//! chase the entries beside the diagonal to zero, and turn the vectors along.

use super::Tridiagonal;
use crate::numerics::linalg::matrix::Matrix;

/// Steps for one eigenvalue at the most; two or three are usual.
const MOST_STEPS: usize = 60;

/// Eigenvalues in place of the diagonal, from the least; their vectors.
pub fn solve(t: &mut Tridiagonal) -> Matrix {
    let n = t.diagonal.len();
    let mut z = Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
    for l in 0..n {
        for _ in 0..MOST_STEPS {
            let m = (l..n - 1).find(|&m| is_cut(t, m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            step(t, l, m, &mut z);
        }
    }
    sort(t, z)
}

/// Whether the entry beside the diagonal after m is as good as zero.
fn is_cut(t: &Tridiagonal, m: usize) -> bool {
    let size = t.diagonal[m].abs() + t.diagonal[m + 1].abs();
    t.beside[m].abs() <= f64::EPSILON * size || t.beside[m] == 0.0
}

/// One step on rows l to m.
fn step(t: &mut Tridiagonal, l: usize, m: usize, z: &mut Matrix) {
    let (d, e) = (&mut t.diagonal, &mut t.beside);
    if m < e.len() {
        e[m] = 0.0;
    }
    let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let r = g.hypot(1.0);
    g = d[m] - d[l] + e[l] / (g + r.copysign(g));
    let (mut sin, mut cos, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (sin * e[i], cos * e[i]);
        let r = f.hypot(g);
        if i + 1 < m {
            e[i + 1] = r;
        }
        if r == 0.0 {
            // the matrix falls apart here; go on with what is left
            d[i + 1] -= p;
            return;
        }
        (sin, cos) = (f / r, g / r);
        g = d[i + 1] - p;
        let r = (d[i] - g) * sin + 2.0 * cos * b;
        p = sin * r;
        d[i + 1] = g + p;
        g = cos * r - b;
        let n = z.rows();
        let (left, right) = z.data_mut()[i * n..(i + 2) * n].split_at_mut(n);
        for (x, y) in left.iter_mut().zip(right) {
            (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
        }
    }
    d[l] -= p;
    e[l] = g;
}

/// From the least.
fn sort(t: &mut Tridiagonal, z: Matrix) -> Matrix {
    let n = t.diagonal.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| t.diagonal[i].total_cmp(&t.diagonal[j]));
    t.diagonal = order.iter().map(|&i| t.diagonal[i]).collect();
    Matrix::from_fn(n, n, |i, j| z[(i, order[j])])
}
