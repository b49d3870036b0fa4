//! One Gauss–Newton pass over a record: the filter on the increments, forward; the backward
//! pass of Bryson and Frazier; and, where asked for, the sensitivity of the increments to θ.
//!
//! ```text
//! W⁻ = F_x W + F_θ       G = s^(−½) H W⁻       r = s^(−½) ν       W = (I − K H) W⁻
//! ```
//!
//! With them the states are eliminated exactly: the Gauss–Newton system of states and θ together
//! reduces to (Σ GᵀG) δθ = Σ Gᵀr. W is d_x × d_θ and lives for one step only; its rows G go to
//! the caller as they come.

use super::filter::StateFilter;
use super::smoother::Smoother;
use crate::linalg::small::{apply, apply_transposed, dot, multiply, sandwich, transpose};
use crate::step::{Linearised, Scratch};

/// What the forward pass leaves for the backward one.
#[derive(Clone)]
pub(crate) struct Forward {
    mean: Vec<f64>,
    covariance: Vec<f64>,
    f_x: Vec<f64>,
    /// Of each sample's channels: row H, gain K, innovation ν, variance s (0 where missing).
    h: Vec<f64>,
    gain: Vec<f64>,
    pub(crate) innovation: Vec<f64>,
    pub(crate) variance: Vec<f64>,
}

/// ∂(increment)/∂θ along a forward pass.
pub(crate) struct Sensitivity<'s> {
    w: Vec<f64>,
    next: Vec<f64>,
    seen: Vec<f64>,
    parameters: usize,
    /// Takes each whitened row G with its residual r.
    sink: &'s mut dyn FnMut(&[f64], f64),
}

impl<'s> Sensitivity<'s> {
    /// W = 0: at the start the states do not depend on θ.
    pub fn new(states: usize, parameters: usize, sink: &'s mut dyn FnMut(&[f64], f64)) -> Self {
        Self {
            w: vec![0.0; states * parameters],
            next: vec![0.0; states * parameters],
            seen: vec![0.0; parameters],
            parameters,
            sink,
        }
    }

    /// W ← F_x W + F_θ.
    fn advance(&mut self, step: &Linearised, rows: &[usize]) {
        let (p, n) = (self.parameters, step.next.len());
        for (i, target) in self.next.chunks_exact_mut(p).enumerate() {
            match rows.iter().position(|&r| r == i) {
                Some(r) => target.copy_from_slice(&step.f_theta[r * p..(r + 1) * p]),
                None => target.fill(0.0),
            }
            for (j, source) in self.w.chunks_exact(p).enumerate() {
                let factor = step.f_x[i * n + j];
                if factor != 0.0 {
                    for (t, s) in target.iter_mut().zip(source) {
                        *t += factor * s;
                    }
                }
            }
        }
        std::mem::swap(&mut self.w, &mut self.next);
    }

    /// Hands over G and r of a channel, then W ← (I − K H) W.
    fn correct(&mut self, h: &[f64], gain: &[f64], innovation: f64, s: f64) {
        let p = self.parameters;
        self.seen.fill(0.0);
        for (h, w) in h.iter().zip(self.w.chunks_exact(p)) {
            if *h != 0.0 {
                for (t, s) in self.seen.iter_mut().zip(w) {
                    *t += h * s;
                }
            }
        }
        for (k, w) in gain.iter().zip(self.w.chunks_exact_mut(p)) {
            for (t, s) in w.iter_mut().zip(&self.seen) {
                *t -= k * s;
            }
        }
        let root = s.sqrt();
        self.seen.iter_mut().for_each(|v| *v /= root);
        (self.sink)(&self.seen, innovation / root);
    }
}

impl Smoother<'_> {
    /// The filter on the increments at a trajectory; with `sensitivity`, also their derivative by θ.
    pub(crate) fn forward(
        &self,
        scratch: &mut Scratch,
        states: &[f64],
        mut sensitivity: Option<&mut Sensitivity>,
    ) -> Forward {
        let (system, record) = (self.stepper.system(), self.record);
        let (n, c, samples) = (system.states(), system.measurements(), record.len());
        let mut pass = Forward {
            mean: vec![0.0; samples * n],
            covariance: vec![0.0; samples * n * n],
            f_x: vec![0.0; samples * n * n],
            h: vec![0.0; samples * c * n],
            gain: vec![0.0; samples * c * n],
            innovation: vec![0.0; samples * c],
            variance: vec![0.0; samples * c],
        };
        let from_mean: Vec<f64> = self
            .noise
            .start_mean
            .iter()
            .zip(states)
            .map(|(m, x)| m - x)
            .collect();
        let mut filter = StateFilter::new(&from_mean, &self.noise.start);
        let mut step = self.stepper.linearised();
        let mut h = vec![0.0; c];
        let mut moved = vec![0.0; n];
        for i in 0..samples {
            let state = &states[i * n..(i + 1) * n];
            if i > 0 {
                let (before, with_theta) = (&states[(i - 1) * n..i * n], sensitivity.is_some());
                self.linearise(scratch, i - 1, before, with_theta, &mut step);
                if let Some(sensitivity) = &mut sensitivity {
                    sensitivity.advance(&step, self.stepper.rows());
                }
                apply(&step.f_x, &filter.mean, &mut moved);
                for (j, m) in filter.mean.iter_mut().enumerate() {
                    *m = moved[j] + step.next[j] - state[j];
                }
                filter.predict(&step.f_x, &self.noise.process);
                pass.f_x[i * n * n..(i + 1) * n * n].copy_from_slice(&step.f_x);
            }
            let h_x = &mut pass.h[i * c * n..(i + 1) * c * n];
            system.linearise_measurement(&mut scratch.system, self.point(i, state), &mut h, h_x);
            for (k, y) in record
                .output(i)
                .iter()
                .enumerate()
                .filter(|(_, y)| !y.is_nan())
            {
                let row = &h_x[k * n..(k + 1) * n];
                let innovation = y - h[k] - dot(row, &filter.mean);
                let s = filter.correct(row, innovation, self.noise.measurement[k]);
                if let Some(sensitivity) = &mut sensitivity {
                    sensitivity.correct(row, &filter.gain, innovation, s);
                }
                let at = i * c + k;
                pass.gain[at * n..(at + 1) * n].copy_from_slice(&filter.gain);
                pass.innovation[at] = innovation;
                pass.variance[at] = s;
            }
            pass.mean[i * n..(i + 1) * n].copy_from_slice(&filter.mean);
            pass.covariance[i * n * n..(i + 1) * n * n].copy_from_slice(&filter.covariance);
        }
        pass
    }

    /// Moves the means of a forward pass to where θ has changed by `increment`: the defects grow
    /// by F_θ δθ, gains and covariances stay.
    pub(crate) fn shift(
        &self,
        scratch: &mut Scratch,
        states: &[f64],
        increment: &[f64],
        pass: &mut Forward,
    ) {
        let (system, record) = (self.stepper.system(), self.record);
        let (n, c, p) = (system.states(), system.measurements(), increment.len());
        let mut step = self.stepper.linearised();
        let (mut change, mut moved) = (vec![0.0; n], vec![0.0; n]);
        for i in 0..record.len() {
            if i > 0 {
                let before = &states[(i - 1) * n..i * n];
                self.linearise(scratch, i - 1, before, true, &mut step);
                apply(&step.f_x, &change, &mut moved);
                for (&row, gradient) in self.stepper.rows().iter().zip(step.f_theta.chunks_exact(p))
                {
                    moved[row] += dot(gradient, increment);
                }
                change.copy_from_slice(&moved);
            }
            for at in (i * c..(i + 1) * c).filter(|&at| pass.variance[at] > 0.0) {
                let seen = dot(&pass.h[at * n..(at + 1) * n], &change);
                pass.innovation[at] -= seen;
                for (x, k) in change.iter_mut().zip(&pass.gain[at * n..(at + 1) * n]) {
                    *x -= k * seen;
                }
            }
            for (m, x) in pass.mean[i * n..(i + 1) * n].iter_mut().zip(&change) {
                *m += x;
            }
        }
    }

    /// The increments δX.
    pub(crate) fn backward(&self, forward: &Forward) -> Vec<f64> {
        let (n, c) = (
            self.stepper.system().states(),
            self.stepper.system().measurements(),
        );
        let mut increments = vec![0.0; forward.mean.len()];
        let (mut costate, mut moved) = (vec![0.0; n], vec![0.0; n]);
        for i in (0..self.record.len()).rev() {
            apply(
                &forward.covariance[i * n * n..(i + 1) * n * n],
                &costate,
                &mut moved,
            );
            for j in 0..n {
                increments[i * n + j] = forward.mean[i * n + j] - moved[j];
            }
            for at in (i * c..(i + 1) * c)
                .rev()
                .filter(|&at| forward.variance[at] > 0.0)
            {
                let (h, gain) = (
                    &forward.h[at * n..(at + 1) * n],
                    &forward.gain[at * n..(at + 1) * n],
                );
                let factor = dot(gain, &costate) + forward.innovation[at] / forward.variance[at];
                for (p, h) in costate.iter_mut().zip(h) {
                    *p -= factor * h;
                }
            }
            apply_transposed(
                &forward.f_x[i * n * n..(i + 1) * n * n],
                &costate,
                &mut moved,
            );
            costate.copy_from_slice(&moved);
        }
        increments
    }

    /// Standard deviations: the root of the diagonal of P − P Λ P.
    pub(crate) fn deviations(&self, forward: &Forward) -> Vec<f64> {
        let (n, c) = (
            self.stepper.system().states(),
            self.stepper.system().measurements(),
        );
        let mut deviations = vec![0.0; forward.mean.len()];
        let mut lambda = vec![0.0; n * n];
        let (mut scratch, mut product) = (vec![0.0; n * n], vec![0.0; n * n]);
        let mut shrink = vec![0.0; n * n];
        for i in (0..self.record.len()).rev() {
            let p = &forward.covariance[i * n * n..(i + 1) * n * n];
            multiply(p, &lambda, &mut scratch, n, n);
            multiply(&scratch, p, &mut product, n, n);
            for j in 0..n {
                deviations[i * n + j] = (p[j * n + j] - product[j * n + j]).max(0.0).sqrt();
            }
            for at in (i * c..(i + 1) * c)
                .rev()
                .filter(|&at| forward.variance[at] > 0.0)
            {
                let (h, gain) = (
                    &forward.h[at * n..(at + 1) * n],
                    &forward.gain[at * n..(at + 1) * n],
                );
                // Λ ← (I − KH)ᵀ Λ (I − KH) + HᵀH/s, with the transpose of I − KH built directly
                for a in 0..n {
                    for b in 0..n {
                        shrink[a * n + b] = f64::from(a == b) - h[a] * gain[b];
                    }
                }
                sandwich(&shrink, &mut lambda, &mut scratch, n);
                for a in 0..n {
                    for b in 0..n {
                        lambda[a * n + b] += h[a] * h[b] / forward.variance[at];
                    }
                }
            }
            let f_t = transpose(&forward.f_x[i * n * n..(i + 1) * n * n], n, n);
            sandwich(&f_t, &mut lambda, &mut scratch, n);
        }
        deviations
    }
}
