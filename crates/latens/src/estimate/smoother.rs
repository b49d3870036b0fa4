//! The trajectory that minimises the objective for a fixed θ: Gauss–Newton over all states.
//!
//! At the current trajectory X, with defects d_i = f_o(x_{i−1}) − x_i and residuals
//! e_i = y_i − h(x_i), the increments obey δx_i = F_x δx_{i−1} + d_i + w, e_i = H δx_i + v.
//! A Kalman filter on the increments and the backward pass of Bryson and Frazier solve this
//! linear problem exactly, without an inverse of P⁻, so that Q_x may be nearly singular:
//!
//! ```text
//! π_N = 0;  δx_i = m_i − P_i π_i
//! back through a channel: π ← (I − K H)ᵀ π − Hᵀν/s;  back through a step: π ← F_xᵀ π
//! ```
//!
//! The covariance of a smoothed state is P − P Λ P, with Λ carried along with π.
//! The step is shortened until the true objective decreases.

use super::filter::StateFilter;
use crate::linalg::small::{apply, apply_transposed, dot, multiply, sandwich, transpose};
use crate::model::Point;
use crate::objective::{Cost, Noise, trajectory_cost};
use crate::record::Record;
use crate::step::{Linearised, Scratch, Stepper};

/// Smoothed states of one record.
#[derive(Debug, Clone)]
pub struct Smoothed {
    /// One state per sample, row by row.
    pub states: Vec<f64>,
    /// Standard deviations, likewise.
    pub deviations: Vec<f64>,
    pub cost: Cost,
    /// Gauss–Newton steps taken.
    pub iterations: usize,
}

/// Smooths one record with θ fixed.
pub struct Smoother<'a> {
    pub stepper: &'a Stepper<'a>,
    pub record: &'a Record,
    pub theta: &'a [f64],
    pub noise: &'a Noise,
}

/// What the forward pass leaves for the backward one.
struct Forward {
    mean: Vec<f64>,
    covariance: Vec<f64>,
    f_x: Vec<f64>,
    /// Of each sample's channels: row H, gain K, innovation ν, variance s (0 where missing).
    h: Vec<f64>,
    gain: Vec<f64>,
    innovation: Vec<f64>,
    variance: Vec<f64>,
}

impl Smoother<'_> {
    /// The extended Kalman filter's estimates: a first trajectory.
    ///
    /// Where it leaves the finite numbers, the measured values with `start_mean` elsewhere.
    pub fn filtered(&self) -> Vec<f64> {
        let (system, record) = (self.stepper.system(), self.record);
        let (n, c) = (system.states(), system.measurements());
        let mut filter = StateFilter::new(&self.noise.start_mean, &self.noise.start);
        let (mut scratch, mut step) = (self.stepper.scratch(), self.stepper.linearised());
        let (mut h, mut h_x) = (vec![0.0; c], vec![0.0; c * n]);
        let mut states = Vec::with_capacity(record.len() * n);
        let mut predicted = vec![0.0; n];
        for i in 0..record.len() {
            if i > 0 {
                self.linearise(&mut scratch, i - 1, &filter.mean, &mut step);
                filter.predict(&step.f_x, &self.noise.process);
                filter.mean.copy_from_slice(&step.next);
            }
            predicted.copy_from_slice(&filter.mean);
            let at = self.point(i, &predicted);
            system.linearise_measurement(&mut scratch.system, at, &mut h, &mut h_x);
            for (k, y) in record
                .output(i)
                .iter()
                .enumerate()
                .filter(|(_, y)| !y.is_nan())
            {
                let row = &h_x[k * n..(k + 1) * n];
                let moved: f64 = row
                    .iter()
                    .zip(&filter.mean)
                    .zip(&predicted)
                    .map(|((h, x), p)| h * (x - p))
                    .sum();
                filter.correct(row, y - h[k] - moved, self.noise.measurement[k]);
            }
            if filter.mean.iter().any(|x| !x.is_finite()) {
                return self.measured();
            }
            states.extend_from_slice(&filter.mean);
        }
        states
    }

    /// The measured values, held where missing, with `start_mean` for what no channel shows.
    fn measured(&self) -> Vec<f64> {
        let n = self.stepper.system().states();
        let mut current = self.noise.start_mean.clone();
        let mut states = Vec::with_capacity(self.record.len() * n);
        for i in 0..self.record.len() {
            for (y, direct) in self
                .record
                .output(i)
                .iter()
                .zip(self.stepper.system().direct())
            {
                if let (Some(state), false) = (direct, y.is_nan()) {
                    current[*state] = *y;
                }
            }
            states.extend_from_slice(&current);
        }
        states
    }

    /// Minimises the objective from a trajectory and adds the standard deviations.
    ///
    /// Never fails: the best trajectory found is returned, with its cost, which is not finite
    /// only if the start's was not.
    pub fn smooth(&self, start: Vec<f64>, iterations: usize) -> Smoothed {
        let mut scratch = self.stepper.scratch();
        let (states, cost, taken) = self.minimise(&mut scratch, start, iterations);
        let deviations = self.deviations(&self.forward(&mut scratch, &states));
        Smoothed {
            states,
            deviations,
            cost,
            iterations: taken,
        }
    }

    /// The same without the deviations: states, cost, and the Gauss–Newton steps taken.
    pub fn minimise(
        &self,
        scratch: &mut Scratch,
        start: Vec<f64>,
        iterations: usize,
    ) -> (Vec<f64>, Cost, usize) {
        const TOLERANCE: f64 = 1e-6;
        let mut states = start;
        let mut cost = self.cost(scratch, &states);
        for taken in 0..iterations {
            let increments = self.backward(&self.forward(scratch, &states));
            let Some((next, next_cost)) = self.search(scratch, &states, &increments, &cost) else {
                return (states, cost, taken);
            };
            let decrease = cost.total() - next_cost.total();
            states = next;
            cost = next_cost;
            if decrease < TOLERANCE * cost.total() {
                return (states, cost, taken + 1);
            }
        }
        (states, cost, iterations)
    }

    /// The first of the step lengths 1, ½, ¼, 0.1 that lowers the true objective.
    fn search(
        &self,
        scratch: &mut Scratch,
        states: &[f64],
        increments: &[f64],
        cost: &Cost,
    ) -> Option<(Vec<f64>, Cost)> {
        [1.0, 0.5, 0.25, 0.1].into_iter().find_map(|length| {
            let next: Vec<f64> = states
                .iter()
                .zip(increments)
                .map(|(x, d)| x + length * d)
                .collect();
            let next_cost = self.cost(scratch, &next);
            let better = next_cost.total() < cost.total()
                || (next_cost.total().is_finite() && !cost.total().is_finite());
            better.then_some((next, next_cost))
        })
    }

    fn cost(&self, scratch: &mut Scratch, states: &[f64]) -> Cost {
        trajectory_cost(
            self.stepper,
            scratch,
            self.record,
            self.theta,
            states,
            self.noise,
        )
    }

    fn point<'b>(&'b self, i: usize, state: &'b [f64]) -> Point<'b> {
        Point {
            time: self.record.time[i],
            state,
            input: self.record.input(i),
            theta: self.theta,
        }
    }

    fn linearise(&self, scratch: &mut Scratch, i: usize, state: &[f64], out: &mut Linearised) {
        let at = Point {
            time: self.record.time[i],
            state,
            input: self.record.input(i),
            theta: self.theta,
        };
        self.stepper.linearise(scratch, at, false, out);
    }

    fn forward(&self, scratch: &mut Scratch, states: &[f64]) -> Forward {
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
                self.linearise(scratch, i - 1, &states[(i - 1) * n..i * n], &mut step);
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

    /// The increments δX.
    fn backward(&self, forward: &Forward) -> Vec<f64> {
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
    fn deviations(&self, forward: &Forward) -> Vec<f64> {
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
