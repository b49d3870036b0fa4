//! The joint recursion: one filter on [x; θ] with the cross-covariance kept.
//!
//! ```text
//! P_xx⁻ = F_x P_xx F_xᵀ + F_x P_xθ F_θᵀ + F_θ P_θx F_xᵀ + F_θ P_θθ F_θᵀ + Q_x
//! P_θx⁻ = P_θx F_xᵀ + P_θθ F_θᵀ,   P_θθ⁻ = P_θθ + Q_θ
//! s = H P_xx⁻ Hᵀ + r,   [K_x; K_θ] = [P_xx⁻; P_θx⁻] Hᵀ/s      (channel by channel)
//! [x̂; θ̂] ← [f_i; θ̂] + [K_x; K_θ] ν,   P ← P⁻ − K s Kᵀ
//! ```
//!
//! The paper's appendix says that the parameter gain vanishes because F_θᵀHᵀ = 0. That is true
//! only until as many steps have passed as there are links from θ to a sensor: from then on P_θx
//! carries what the measured states say about θ through F_x (a test shows both).

use super::epoch::{Epoch, Segment, Sweep};
use crate::Error;
use crate::linalg::small::dot;

/// One pass over the segments, one after another.
pub fn sweep(epoch: &mut Epoch, segments: &[Segment]) -> Result<(), Error> {
    let total: usize = segments.iter().map(|s| s.samples.len()).sum();
    let mut done = 0;
    for segment in segments {
        let mut joint = Joint::new(epoch, segment);
        for tick in 1..segment.samples.len() {
            joint.predict(epoch, tick)?;
            joint.correct(epoch, tick)?;
            epoch.tick(tick, &joint.sweep, (done + tick, total))?;
        }
        done += segment.samples.len();
    }
    Ok(())
}

/// The filter on one segment.
pub struct Joint<'r> {
    pub sweep: Sweep<'r>,
    /// P_xθ, one row of d_θ for each state.
    pub cross: Vec<f64>,
    next_cross: Vec<f64>,
    /// P_θθ f for each unknown row.
    product: Vec<f64>,
    g: Vec<f64>,
    before: Vec<f64>,
}

impl<'r> Joint<'r> {
    /// Starts a segment: θ and x are independent there.
    pub fn new(epoch: &Epoch, segment: &Segment<'r>) -> Self {
        let (n, p) = (segment.start.len(), epoch.theta.len());
        Self {
            sweep: Sweep::new(epoch, segment),
            cross: vec![0.0; n * p],
            next_cross: vec![0.0; n * p],
            product: vec![0.0; epoch.stepper.rows().len() * p],
            g: vec![0.0; p],
            before: epoch.theta.clone(),
        }
    }

    /// Mean and covariance through one step.
    pub fn predict(&mut self, epoch: &mut Epoch, tick: usize) -> Result<(), Error> {
        let (n, p) = (self.sweep.filter.mean.len(), epoch.theta.len());
        self.before.copy_from_slice(&epoch.theta);
        self.sweep.advance(epoch, tick, true)?;
        let (f_x, f_theta) = (&self.sweep.step.f_x, &self.sweep.step.f_theta);
        let rows = epoch.stepper.rows();
        for (gradient, product) in f_theta
            .chunks_exact(p)
            .zip(self.product.chunks_exact_mut(p))
        {
            // a row that θ does not reach in this step
            if gradient.iter().all(|g| *g == 0.0) {
                product.fill(0.0);
                continue;
            }
            epoch.covariance.apply(gradient, product);
            let spread = dot(product, gradient);
            if spread.is_nan() || spread < 0.0 {
                return Err(epoch.indefinite(&self.sweep, tick, spread));
            }
        }
        // F_x P_xθ
        for (i, target) in self.next_cross.chunks_exact_mut(p).enumerate() {
            target.fill(0.0);
            for (k, source) in self.cross.chunks_exact(p).enumerate() {
                let factor = f_x[i * n + k];
                if factor != 0.0 {
                    for (t, s) in target.iter_mut().zip(source) {
                        *t += factor * s;
                    }
                }
            }
        }
        // P_xx gains F_x P_xθ F_θᵀ, its transpose, and F_θ P_θθ F_θᵀ
        let covariance = &mut self.sweep.filter.covariance;
        for (&j, gradient) in rows.iter().zip(f_theta.chunks_exact(p)) {
            for i in 0..n {
                let value = dot(&self.next_cross[i * p..(i + 1) * p], gradient);
                covariance[i * n + j] += value;
                covariance[j * n + i] += value;
            }
            for (&i, product) in rows.iter().zip(self.product.chunks_exact(p)) {
                covariance[i * n + j] += dot(product, gradient);
            }
        }
        for i in 0..n {
            for j in 0..i {
                let mean = 0.5 * (covariance[i * n + j] + covariance[j * n + i]);
                covariance[i * n + j] = mean;
                covariance[j * n + i] = mean;
            }
        }
        for (&j, product) in rows.iter().zip(self.product.chunks_exact(p)) {
            for (t, s) in self.next_cross[j * p..(j + 1) * p].iter_mut().zip(product) {
                *t += s;
            }
        }
        std::mem::swap(&mut self.cross, &mut self.next_cross);
        Ok(())
    }

    /// All channels of a sample.
    pub fn correct(&mut self, epoch: &mut Epoch, tick: usize) -> Result<(), Error> {
        let (n, p) = (self.sweep.filter.mean.len(), epoch.theta.len());
        self.sweep.measure(epoch, tick);
        for c in 0..self.sweep.predicted_output.len() {
            self.g.fill(0.0);
            let row = &self.sweep.h_x[c * n..(c + 1) * n];
            for (h, cross) in row.iter().zip(self.cross.chunks_exact(p)) {
                if *h != 0.0 {
                    for (g, c) in self.g.iter_mut().zip(cross) {
                        *g += h * c;
                    }
                }
            }
            let Some((innovation, s)) = self.sweep.correct_channel(epoch, tick, c)? else {
                continue;
            };
            for (t, g) in epoch.theta.iter_mut().zip(&self.g) {
                *t += g * innovation / s;
            }
            // P_xθ ← P_xθ − K_x (H P_xθ); P_θθ ← P_θθ − g gᵀ/s
            for (k, cross) in self
                .sweep
                .filter
                .gain
                .iter()
                .zip(self.cross.chunks_exact_mut(p))
            {
                for (c, g) in cross.iter_mut().zip(&self.g) {
                    *c -= k * g;
                }
            }
            epoch.covariance.downdate(&self.g, 1.0 / s);
        }
        self.sweep.check(epoch, tick)?;
        self.sweep.finish(epoch, tick);
        epoch.drift(&self.before);
        Ok(())
    }
}
