//! The joint step: one filter on [x; θ] with the cross-covariance kept.
//!
//! ```text
//! P_xx⁻ = F_x P_xx F_xᵀ + F_x P_xθ F_θᵀ + F_θ P_θx F_xᵀ + F_θ P_θθ F_θᵀ + Q_x Δ
//! P_θx⁻ = P_θx F_xᵀ + P_θθ F_θᵀ,   P_θθ⁻ = P_θθ + Q_θ
//! s = H P_xx⁻ Hᵀ + r,   [K_x; K_θ] = [P_xx⁻; P_θx⁻] Hᵀ/s      (channel by channel)
//! [x̂; θ̂] ← [f_i; θ̂] + [K_x; K_θ] ν,   P ← P⁻ − K s Kᵀ
//! ```
//!
//! The state part is an [`ExtendedFilter`]; [`Cross`] adds what couples it to θ.

use super::extended::{ExtendedFilter, Innovation};
use crate::model::small::dot;
use crate::numerics::linalg::PackedCovariance;

/// P_xθ and the room to carry it.
#[derive(Debug, Clone)]
pub struct Cross {
    /// P_xθ, one row of d_θ for each state.
    pub values: Vec<f64>,
    next: Vec<f64>,
    /// P_θθ f for each unknown row.
    product: Vec<f64>,
    /// The unknown rows that θ reaches in the step at hand.
    reached: Vec<usize>,
    g: Vec<f64>,
}

/// What a channel measured.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Which channel.
    pub channel: usize,
    /// NaN where nothing was measured.
    pub value: f64,
    /// R_y.
    pub variance: f64,
}

impl Cross {
    /// States and θ are independent; `rows` of the states depend on θ.
    pub fn new(states: usize, parameters: usize, rows: usize) -> Self {
        Self {
            values: vec![0.0; states * parameters],
            next: vec![0.0; states * parameters],
            product: vec![0.0; rows * parameters],
            reached: Vec::with_capacity(rows),
            g: vec![0.0; parameters],
        }
    }

    /// What θ adds to a step that `filter` has just made, with F_θ in these rows.
    ///
    /// # Errors
    /// F_θ P_θ F_θᵀ of a row, where it is negative: P_θ is no covariance any more.
    pub fn advance(
        &mut self,
        filter: &mut ExtendedFilter,
        rows: &[usize],
        covariance: &mut PackedCovariance,
    ) -> Result<(), f64> {
        let (n, p) = (filter.states.mean.len(), covariance.dim());
        let (f_x, f_theta) = (&filter.step.f_x, &filter.step.f_theta);
        let row = |r: usize| r * p..(r + 1) * p;
        self.reached.clear();
        for r in 0..rows.len() {
            let (gradient, product) = (&f_theta[row(r)], &mut self.product[row(r)]);
            if gradient.iter().all(|g| *g == 0.0) {
                continue;
            }
            self.reached.push(r);
            covariance.apply(gradient, product);
            let spread = dot(product, gradient);
            if spread.is_nan() || spread < 0.0 {
                return Err(spread);
            }
        }
        // F_x P_xθ
        for (i, target) in self.next.chunks_exact_mut(p).enumerate() {
            target.fill(0.0);
            for (k, source) in self.values.chunks_exact(p).enumerate() {
                let factor = f_x[i * n + k];
                if factor != 0.0 {
                    for (t, s) in target.iter_mut().zip(source) {
                        *t += factor * s;
                    }
                }
            }
        }
        // P_xx gains F_x P_xθ F_θᵀ, its transpose, and F_θ P_θθ F_θᵀ
        let covariance = &mut filter.states.covariance;
        for &r in &self.reached {
            let (j, gradient) = (rows[r], &f_theta[row(r)]);
            for i in 0..n {
                let value = dot(&self.next[row(i)], gradient);
                covariance[i * n + j] += value;
                covariance[j * n + i] += value;
            }
            for &q in &self.reached {
                covariance[rows[q] * n + j] += dot(&self.product[row(q)], gradient);
            }
        }
        for i in 0..n {
            for j in 0..i {
                let mean = 0.5 * (covariance[i * n + j] + covariance[j * n + i]);
                covariance[i * n + j] = mean;
                covariance[j * n + i] = mean;
            }
        }
        for &r in &self.reached {
            let product = &self.product[row(r)];
            for (t, s) in self.next[row(rows[r])].iter_mut().zip(product) {
                *t += s;
            }
        }
        std::mem::swap(&mut self.values, &mut self.next);
        Ok(())
    }

    /// Corrects states and θ with a reading; `None` where nothing was measured. θ stays as it is where s
    /// is no variance.
    pub fn correct(
        &mut self,
        filter: &mut ExtendedFilter,
        theta: &mut [f64],
        covariance: &mut PackedCovariance,
        reading: Reading,
    ) -> Option<Innovation> {
        let Reading {
            channel,
            value: y,
            variance: r,
        } = reading;
        let p = theta.len();
        self.g.fill(0.0);
        for (h, cross) in filter.row(channel).iter().zip(self.values.chunks_exact(p)) {
            if *h != 0.0 {
                for (g, c) in self.g.iter_mut().zip(cross) {
                    *g += h * c;
                }
            }
        }
        let innovation = filter.correct(channel, y, r)?;
        let s = innovation.variance;
        if !(s > 0.0 && s.is_finite()) {
            return Some(innovation);
        }
        for (t, g) in theta.iter_mut().zip(&self.g) {
            *t += g * innovation.value / s;
        }
        // P_xθ ← P_xθ − K_x (H P_xθ); P_θθ ← P_θθ − g gᵀ/s
        for (k, cross) in (filter.states.gain.iter()).zip(self.values.chunks_exact_mut(p)) {
            for (c, g) in cross.iter_mut().zip(&self.g) {
                *c -= k * g;
            }
        }
        covariance.downdate(&self.g, 1.0 / s);
        Some(innovation)
    }
}
