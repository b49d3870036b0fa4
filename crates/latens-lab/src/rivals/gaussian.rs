//! A sparse Gaussian process by inducing points ζ, and exact gradients of what is computed from it.
//!
//! ```text
//! k = σ² exp(−½ Σ_j (ξ_j − ζ_j)²/ℓ_j²),  A = K⁻¹ k(ξ),  q(z) = N(m, diag s)
//! mean = Aᵀm,   var = σ² − kᵀA + Σ A² s + σ_x²
//! KL(q ‖ N(0, K)) = ½ (tr K⁻¹S + mᵀK⁻¹m − P + ln|K| − Σ ln s)
//! ```
//!
//! What depends on ζ, ℓ and σ² through K⁻¹ is collected in an [`Adjoint`], by all points that a process is
//! asked for, and spread over the parameters once.

use std::ops::Range;

use latens::model::small::{cholesky, dot, identity, multiply, solve};

use super::windows::axpy;

/// On K's diagonal.
const JITTER: f64 = 1e-8;

/// Sizes of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub inducing: usize,
    /// Of ξ.
    pub width: usize,
}

/// Places in the parameters of a process: ζ (P × D), m (P), ln s (P), ln ℓ (D), ln σ², ln σ_x².
pub(crate) struct Places {
    pub zeta: Range<usize>,
    pub m: Range<usize>,
    pub s: Range<usize>,
    pub length: Range<usize>,
    pub variance: usize,
    pub noise: usize,
}

impl Shape {
    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.places().noise + 1
    }

    pub fn places(&self) -> Places {
        let (p, w) = (self.inducing, self.width);
        Places {
            zeta: 0..p * w,
            m: p * w..p * (w + 1),
            s: p * (w + 1)..p * (w + 2),
            length: p * (w + 2)..p * (w + 2) + w,
            variance: p * (w + 2) + w,
            noise: p * (w + 2) + w + 1,
        }
    }
}

/// A process with what its parameters alone decide.
pub(crate) struct Process<'p> {
    shape: Shape,
    zeta: &'p [f64],
    m: &'p [f64],
    s: Vec<f64>,
    /// 1/ℓ².
    inverse: Vec<f64>,
    variance: f64,
    noise: f64,
    /// K⁻¹.
    k_inverse: Vec<f64>,
    /// ln |K|.
    log_det: f64,
}

/// Gradients by K⁻¹, and those by σ² and 1/ℓ² that do not pass through it.
pub(crate) struct Adjoint {
    k_inverse: Vec<f64>,
    variance: f64,
    inverse: Vec<f64>,
}

/// σ² exp(−½ Σ (a − b)²/ℓ²).
fn kernel(a: &[f64], b: &[f64], inverse: &[f64], variance: f64) -> f64 {
    let pairs = a.iter().zip(b).zip(inverse);
    let square: f64 = pairs.map(|((a, b), i)| (a - b) * (a - b) * i).sum();
    variance * (-0.5 * square).exp()
}

/// What [`Process::at`] fills in at a point ξ: k(ξ) and A = K⁻¹ k.
#[derive(Clone, Copy)]
pub(crate) struct Kernels<'k> {
    pub k: &'k [f64],
    pub a: &'k [f64],
}

/// The adjoints of a mean and a variance.
#[derive(Clone, Copy)]
pub(crate) struct ByMoments {
    pub mean: f64,
    pub variance: f64,
}

impl<'p> Process<'p> {
    pub fn new(shape: Shape, parameters: &'p [f64]) -> Self {
        let (p, w, at) = (shape.inducing, shape.width, shape.places());
        let zeta = &parameters[at.zeta];
        let lengths = parameters[at.length].iter();
        let inverse: Vec<f64> = lengths.map(|l| (-2.0 * l).exp()).collect();
        let variance = parameters[at.variance].exp();
        let mut k = vec![0.0; p * p];
        for (i, a) in zeta.chunks_exact(w).enumerate() {
            for (j, b) in zeta.chunks_exact(w).enumerate() {
                k[i * p + j] = kernel(a, b, &inverse, variance);
            }
            k[i * p + i] += JITTER;
        }
        let mut factor = k.clone();
        let log_det = match cholesky(&mut factor, p) {
            Ok(()) => 2.0 * (0..p).map(|i| factor[i * p + i].ln()).sum::<f64>(),
            Err(_) => f64::NAN,
        };
        let mut k_inverse = identity(p);
        if solve(&mut k, &mut k_inverse, p).is_err() {
            k_inverse.fill(f64::NAN);
        }
        Self {
            shape,
            zeta,
            m: &parameters[at.m],
            s: parameters[at.s].iter().map(|s| s.exp()).collect(),
            inverse,
            variance,
            noise: parameters[at.noise].exp(),
            k_inverse,
            log_det,
        }
    }

    /// Nothing collected yet.
    pub fn adjoint(&self) -> Adjoint {
        Adjoint {
            k_inverse: vec![0.0; self.k_inverse.len()],
            variance: 0.0,
            inverse: vec![0.0; self.inverse.len()],
        }
    }

    /// Mean and variance at a point; fills in k(ξ) and A = K⁻¹ k.
    pub fn at(&self, point: &[f64], k: &mut [f64], a: &mut [f64]) -> (f64, f64) {
        for (k, zeta) in k.iter_mut().zip(self.zeta.chunks_exact(point.len())) {
            *k = kernel(point, zeta, &self.inverse, self.variance);
        }
        a.fill(0.0);
        // K⁻¹ is symmetric: its rows serve as columns
        for (row, k) in self.k_inverse.chunks_exact(k.len()).zip(k.iter()) {
            axpy(*k, row, a);
        }
        let spread: f64 = a.iter().zip(&self.s).map(|(a, s)| a * a * s).sum();
        // rounding may take the explained part beyond the whole
        let var = (self.variance - dot(k, a)).max(0.0) + spread + self.noise;
        (dot(a, self.m), var)
    }

    /// The adjoint of [`Process::at`], from those of mean and variance: adds to the collected, to the
    /// gradient, and to the adjoint of the point.
    pub fn pull_back(
        &self,
        point: &[f64],
        Kernels { k, a }: Kernels,
        by: ByMoments,
        adjoint: &mut Adjoint,
        gradient: &mut [f64],
        by_point: &mut [f64],
    ) {
        let (by_mean, by_var) = (by.mean, by.variance);
        let (p, w, at) = (self.shape.inducing, self.shape.width, self.shape.places());
        let explained = self.variance - dot(k, a) > 0.0;
        let open = if explained { 1.0 } else { 0.0 };
        let mut by_a = vec![0.0; p];
        for j in 0..p {
            by_a[j] = by_mean * self.m[j] + by_var * (2.0 * a[j] * self.s[j] - open * k[j]);
            gradient[at.m.start + j] += by_mean * a[j];
            gradient[at.s.start + j] += by_var * a[j] * a[j] * self.s[j];
        }
        gradient[at.noise] += by_var * self.noise;
        adjoint.variance += open * by_var;
        let mut by_k = vec![0.0; p];
        for (row, b) in self.k_inverse.chunks_exact(p).zip(&by_a) {
            axpy(*b, row, &mut by_k);
        }
        for (row, b) in adjoint.k_inverse.chunks_exact_mut(p).zip(&by_a) {
            axpy(*b, k, row);
        }
        for j in 0..p {
            let d_k = (by_k[j] - open * by_var * a[j]) * k[j];
            adjoint.variance += d_k / self.variance;
            for l in 0..w {
                let off = point[l] - self.zeta[j * w + l];
                let slope = d_k * off * self.inverse[l];
                by_point[l] -= slope;
                gradient[at.zeta.start + j * w + l] += slope;
                adjoint.inverse[l] -= 0.5 * d_k * off * off;
            }
        }
    }

    /// KL(q ‖ N(0, K)); adds its gradient.
    pub fn divergence(&self, adjoint: &mut Adjoint, gradient: &mut [f64]) -> f64 {
        let (p, at) = (self.shape.inducing, self.shape.places());
        let mut value = -(p as f64) + self.log_det;
        for i in 0..p {
            let row = &self.k_inverse[i * p..(i + 1) * p];
            let along = dot(row, self.m);
            value += row[i] * self.s[i] + self.m[i] * along - self.s[i].ln();
            gradient[at.m.start + i] += along;
            gradient[at.s.start + i] += 0.5 * (row[i] * self.s[i] - 1.0);
            for j in 0..p {
                adjoint.k_inverse[i * p + j] += 0.5 * self.m[i] * self.m[j];
            }
            adjoint.k_inverse[i * p + i] += 0.5 * self.s[i];
        }
        0.5 * value
    }

    /// From gradients by K⁻¹ (and ½ ln|K|) to those by ζ, ℓ and σ²: K̄ = −K⁻¹ B K⁻¹ + ½ K⁻¹.
    pub fn spread(&self, adjoint: &Adjoint, gradient: &mut [f64]) {
        let (p, w, at) = (self.shape.inducing, self.shape.width, self.shape.places());
        let mut product = vec![0.0; p * p];
        let mut by_k = vec![0.0; p * p];
        multiply(&self.k_inverse, &adjoint.k_inverse, &mut product, p, p);
        multiply(&product, &self.k_inverse, &mut by_k, p, p);
        let mut by_variance = adjoint.variance;
        let mut by_inverse = adjoint.inverse.clone();
        for (i, x) in self.zeta.chunks_exact(w).enumerate() {
            for (j, y) in self.zeta.chunks_exact(w).enumerate() {
                let b = 0.5 * self.k_inverse[i * p + j] - by_k[i * p + j];
                let d_k = b * kernel(x, y, &self.inverse, self.variance);
                by_variance += d_k / self.variance;
                for l in 0..w {
                    let off = x[l] - y[l];
                    let slope = d_k * off * self.inverse[l];
                    gradient[at.zeta.start + i * w + l] -= slope;
                    gradient[at.zeta.start + j * w + l] += slope;
                    by_inverse[l] -= 0.5 * d_k * off * off;
                }
            }
        }
        gradient[at.variance] += by_variance * self.variance;
        for l in 0..w {
            gradient[at.length.start + l] -= 2.0 * by_inverse[l] * self.inverse[l];
        }
    }
}
