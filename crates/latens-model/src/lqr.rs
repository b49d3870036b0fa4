//! Linear-quadratic regulator: the gain K of u = −K x that minimises ∫ xᵀQx + uᵀRu.
//!
//! The algebraic Riccati equation AᵀP + PA − PBR⁻¹BᵀP + Q = 0 is solved by the sign of its
//! Hamiltonian (Roberts 1980): with H = [A, −BR⁻¹Bᵀ; −Q, −Aᵀ] and W = sign(H), the stable
//! subspace [I; P] satisfies (W + I)[I; P] = 0. The sign comes from Newton's iteration
//! Z ← (cZ + (cZ)⁻¹)/2, c = |det Z|^(−1/2n), which converges quadratically.

use super::small::{identity, multiply, solve, transpose};

/// The gain, m×n row by row, for x' = A x + B u with diagonal weights q ≥ 0 and r > 0.
pub fn gain(a: &[f64], b: &[f64], q: &[f64], r: &[f64], n: usize) -> Result<Vec<f64>, String> {
    let m = r.len();
    let sound = r.iter().all(|&r| r > 0.0) && q.iter().all(|&q| q >= 0.0);
    if m == 0 || !sound {
        return Err("the regulator's weights must not be negative, its inputs' positive".into());
    }
    // B R⁻¹ Bᵀ
    let mut control = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            control[i * n + j] = (0..m).map(|k| b[i * m + k] * b[j * m + k] / r[k]).sum();
        }
    }
    let d = 2 * n;
    let mut z = vec![0.0; d * d];
    for i in 0..n {
        for j in 0..n {
            z[i * d + j] = a[i * n + j];
            z[i * d + n + j] = -control[i * n + j];
            z[(n + i) * d + n + j] = -a[j * n + i];
        }
        z[(n + i) * d + i] = -q[i];
    }
    sign(&mut z, d)?;
    // (W + I)[I; P] = 0: the right columns times P = −(left columns), solved by least squares
    for i in 0..d {
        z[i * d + i] += 1.0;
    }
    let (mut normal, mut right) = (vec![0.0; n * n], vec![0.0; n * n]);
    for row in z.chunks_exact(d) {
        for i in 0..n {
            for j in 0..n {
                normal[i * n + j] += row[n + i] * row[n + j];
                right[i * n + j] -= row[n + i] * row[j];
            }
        }
    }
    solve(&mut normal, &mut right, n).map_err(|_| "the regulator does not exist".to_string())?;
    check(a, &control, q, &right, n)?;
    let mut k = vec![0.0; m * n];
    multiply(&transpose(b, n, m), &right, &mut k, n, n);
    for (row, r) in k.chunks_exact_mut(n).zip(r) {
        row.iter_mut().for_each(|v| *v /= r);
    }
    Ok(k)
}

/// P must be symmetric and solve the Riccati equation: where an unstable mode cannot be reached,
/// what comes out does neither.
fn check(a: &[f64], control: &[f64], q: &[f64], p: &[f64], n: usize) -> Result<(), String> {
    let (mut pa, mut pc, mut pcp) = (vec![0.0; n * n], vec![0.0; n * n], vec![0.0; n * n]);
    multiply(p, a, &mut pa, n, n);
    multiply(p, control, &mut pc, n, n);
    multiply(&pc, p, &mut pcp, n, n);
    let size = pa
        .iter()
        .chain(&pcp)
        .chain(q)
        .fold(0.0, |m: f64, v| m.max(v.abs()));
    for i in 0..n {
        for j in 0..n {
            let weight = if i == j { q[i] } else { 0.0 };
            let residual = pa[i * n + j] + pa[j * n + i] - pcp[i * n + j] + weight;
            let skew = p[i * n + j] - p[j * n + i];
            if residual.abs() > 1e-6 * size || skew.abs() * size.max(1.0) > 1e-6 * size {
                return Err("an unstable mode cannot be reached by the regulator's inputs".into());
            }
        }
    }
    Ok(())
}

/// Z ← sign(Z).
fn sign(z: &mut [f64], d: usize) -> Result<(), String> {
    const ITERATIONS: usize = 100;
    for _ in 0..ITERATIONS {
        let (mut lu, mut inverse) = (z.to_vec(), identity(d));
        solve(&mut lu, &mut inverse, d).map_err(|_| {
            "the linearised system has an eigenvalue on the imaginary axis".to_string()
        })?;
        // after elimination the diagonal holds the pivots, their product is ± det Z
        let log_det: f64 = (0..d).map(|i| lu[i * d + i].abs().ln()).sum();
        let c = (-log_det / d as f64).exp();
        let (mut change, mut size) = (0.0, 0.0);
        for (z, inverse) in z.iter_mut().zip(&inverse) {
            let next = 0.5 * (c * *z + inverse / c);
            change += (next - *z).abs();
            size += next.abs();
            *z = next;
        }
        if change <= 1e-14 * size {
            return Ok(());
        }
    }
    Err("the regulator's Riccati equation did not converge".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_integrator_has_its_closed_form() {
        // x'' = u with weights q₁, q₂, r: K = (√(q₁/r), √(q₂/r + 2√(q₁/r)))
        let (q1, q2, r): (f64, f64, f64) = (4.0, 0.5, 0.1);
        let k = gain(&[0.0, 1.0, 0.0, 0.0], &[0.0, 1.0], &[q1, q2], &[r], 2).unwrap();
        let k1 = (q1 / r).sqrt();
        let k2 = (q2 / r + 2.0 * k1).sqrt();
        assert!(
            (k[0] - k1).abs() < 1e-10 && (k[1] - k2).abs() < 1e-10,
            "{k:?}"
        );
    }

    #[test]
    fn an_uncontrollable_unstable_mode_is_an_error() {
        // A = R diag(1, −1) Rᵀ with B along the stable mode
        for angle in [0.0_f64, 0.3, 0.7, 1.1] {
            let (sin, cos) = angle.sin_cos();
            let a = [
                cos * cos - sin * sin,
                2.0 * sin * cos,
                2.0 * sin * cos,
                sin * sin - cos * cos,
            ];
            assert!(
                gain(&a, &[-sin, cos], &[1.0, 1.0], &[1.0], 2).is_err(),
                "{angle}"
            );
        }
        assert!(gain(&[0.0], &[0.0], &[1.0], &[1.0], 1).is_err());
        assert!(gain(&[1.0], &[1.0], &[1.0], &[0.0], 1).is_err());
    }
}
