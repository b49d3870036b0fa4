//! One Gauss–Newton pass over a record: the filter on the increments, forward; the backward
//! pass of Bryson and Frazier; and, where asked for, the elimination of the states
//! ([`super::sensitivity`]).
//!
//! At a given trajectory the samples' linearisations have nothing to do with each other: they
//! are shared out among the threads, a block of samples at a time. Only the filter goes from
//! sample to sample; it works on one block while the next is linearised, and the one before goes into the
//! normal equations. Nothing depends on the number of threads, not even the rounding.

use std::ops::Range;

use rayon::prelude::*;

use super::extended::Innovation;
use super::kalman::StateFilter;
use super::sensitivity::{Coefficients, Sensitivity};
use super::smoother::Smoother;
use crate::model::simd::LANES;
use crate::model::small::{apply, apply_transposed, dot, multiply, sandwich, transpose};
use crate::model::{Point, Workspace};
use crate::numerics::Trajectory;
use crate::numerics::linalg::normal::NormalEquations;
use crate::numerics::step::{Departure, LaneScratch, Linearised};

/// Samples of a block. F_θ is kept for three of them, so it should not be long; a long one wakes
/// the threads less often. Measured on Hodgkin–Huxley, 128 to 512 differ by a few per cent.
const BLOCK_SAMPLES: usize = 256;
/// Samples that a thread linearises in one go.
pub(super) const PIECE_SAMPLES: usize = 32;

/// What the forward pass leaves for the backward one.
pub struct Forward {
    pub means: Means,
    covariance: Vec<f64>,
    pub(crate) f_x: Vec<f64>,
    /// Of each sample's channels: row H, gain K, variance s of the innovation (0 where missing).
    pub(crate) h: Vec<f64>,
    pub(crate) gain: Vec<f64>,
    pub(crate) variance: Vec<f64>,
    /// Of each sample the rows of F_θ and H_θ, where they are kept.
    pub(crate) by_theta: Vec<f64>,
}

/// What of a forward pass depends on θ to first order: means m and innovations ν.
pub struct Means {
    pub(crate) mean: Vec<f64>,
    pub(crate) innovation: Vec<f64>,
}

/// Derivatives of the linearised objective, with the states eliminated.
pub(crate) struct Costates {
    /// π, by the defect of each step.
    pub arrival: Vec<f64>,
    /// By the misfit of each channel; 0 where missing.
    pub channel: Vec<f64>,
}

/// What a channel of a sample did to the states.
pub(crate) struct Correction<'a> {
    /// Its row of H.
    pub h: &'a [f64],
    /// Its column of K.
    pub gain: &'a [f64],
    pub innovation: Innovation,
}

/// A step of the states.
pub(crate) struct Increments {
    /// δX.
    pub states: Trajectory,
    /// x_i − f_o(x_{i−1}) after it, were f_o linear: −Q_x π, which needs no difference of numbers
    /// that are nearly equal.
    pub driving: Trajectory,
}

impl Means {
    pub(crate) fn zero(samples: usize, n: usize, c: usize) -> Self {
        Self {
            mean: vec![0.0; samples * n],
            innovation: vec![0.0; samples * c],
        }
    }
}

impl Forward {
    /// ½ Σ ν²/s: the least value of the linearised objective, for its own means or shifted ones.
    pub fn half_square(&self, means: &Means) -> f64 {
        let terms = means.innovation.iter().zip(&self.variance);
        let terms = terms.filter(|(_, s)| **s > 0.0);
        terms.map(|(v, s)| 0.5 * v * v / s).sum()
    }

    /// Number of measurements.
    pub fn count(&self) -> usize {
        self.variance.iter().filter(|s| **s > 0.0).count()
    }

    /// s of each channel at each sample; 0 where it was not measured.
    pub(crate) fn innovation_variances(&self) -> &[f64] {
        &self.variance
    }

    /// Σ ln s.
    pub fn log_variance(&self) -> f64 {
        let terms = self.variance.iter().filter(|s| **s > 0.0);
        terms.map(|s| s.ln()).sum()
    }

    /// Mean of ν²/s: near 1 where the innovations are as large as the filter says; NaN without any.
    pub fn consistency(&self) -> f64 {
        2.0 * self.half_square(&self.means) / self.count() as f64
    }

    /// Log likelihood, but for a constant, where all variances may be larger by a common factor
    /// κ ≥ 1, at the best of them: −½ (Σ ln s + N ln κ + Σ ν²/(κ s)).
    pub fn widened_likelihood(&self) -> f64 {
        let (count, consistency) = (self.count() as f64, self.consistency());
        let factor = consistency.max(1.0);
        -0.5 * (self.log_variance() + count * (factor.ln() + consistency / factor))
    }

    /// The filter's mean at a sample, as an increment.
    pub(crate) fn mean(&self, i: usize, n: usize) -> &[f64] {
        &self.means.mean[i * n..(i + 1) * n]
    }

    /// The filter's covariance at a sample.
    pub(crate) fn covariance(&self, i: usize, n: usize) -> &[f64] {
        &self.covariance[i * n * n..(i + 1) * n * n]
    }

    /// H of all channels at the samples, row by row.
    pub(crate) fn sight(&self) -> &[f64] {
        &self.h
    }

    /// F_x of the step to a sample.
    pub(crate) fn step(&self, i: usize, n: usize) -> &[f64] {
        &self.f_x[i * n * n..(i + 1) * n * n]
    }

    /// What a channel of a sample did; s is 0 where it was not measured.
    pub(crate) fn correction(&self, at: usize, n: usize) -> Correction<'_> {
        let row = at * n..(at + 1) * n;
        Correction {
            h: &self.h[row.clone()],
            gain: &self.gain[row],
            innovation: Innovation {
                value: self.means.innovation[at],
                variance: self.variance[at],
            },
        }
    }

    fn new(samples: usize, n: usize, c: usize) -> Self {
        Self {
            means: Means::zero(samples, n, c),
            covariance: vec![0.0; samples * n * n],
            f_x: vec![0.0; samples * n * n],
            h: vec![0.0; samples * c * n],
            gain: vec![0.0; samples * c * n],
            variance: vec![0.0; samples * c],
            by_theta: vec![],
        }
    }

    fn blocks(&mut self, n: usize, c: usize) -> Vec<Block<'_>> {
        let mut mean = self.means.mean.chunks_mut(BLOCK_SAMPLES * n);
        let mut innovation = self.means.innovation.chunks_mut(BLOCK_SAMPLES * c);
        let mut covariance = self.covariance.chunks_mut(BLOCK_SAMPLES * n * n);
        let mut f_x = self.f_x.chunks_mut(BLOCK_SAMPLES * n * n);
        let mut h = self.h.chunks_mut(BLOCK_SAMPLES * c * n);
        let mut gain = self.gain.chunks_mut(BLOCK_SAMPLES * c * n);
        let mut variance = self.variance.chunks_mut(BLOCK_SAMPLES * c);
        let block = |first| {
            Some(Block {
                first,
                mean: mean.next()?,
                innovation: innovation.next()?,
                covariance: covariance.next()?,
                f_x: f_x.next()?,
                h: h.next()?,
                gain: gain.next()?,
                variance: variance.next()?,
            })
        };
        (0..).step_by(BLOCK_SAMPLES).map_while(block).collect()
    }
}

/// The samples from `first` on of a forward pass. Between linearisation and filter, the means
/// hold the defects and the innovations the residuals.
struct Block<'a> {
    first: usize,
    mean: &'a mut [f64],
    innovation: &'a mut [f64],
    covariance: &'a mut [f64],
    f_x: &'a mut [f64],
    h: &'a mut [f64],
    gain: &'a mut [f64],
    variance: &'a mut [f64],
}

/// Which rows stand in A.
#[derive(Clone, Copy)]
struct Rows {
    thinning: usize,
    phase: usize,
}

/// What a thread needs to linearise samples.
struct Room {
    scratch: LaneScratch,
    h: Vec<f64>,
    /// For H_θ, where it is asked for and a channel depends on θ.
    alone: Option<Workspace<f64>>,
}

impl Smoother<'_> {
    /// The filter on the increments at a trajectory.
    #[doc(hidden)]
    pub fn forward(&self, states: &Trajectory) -> Forward {
        self.sweep(states, None)
    }

    /// The same, with the normal equations of θ that are left when the states are eliminated; of
    /// A, every `thinning`-th measurement of each channel only, times as much, counted from
    /// `phase`: records too short for one each then take turns.
    #[doc(hidden)]
    pub fn eliminate(
        &self,
        states: &Trajectory,
        thinning: usize,
        phase: usize,
    ) -> (NormalEquations, Forward) {
        let mut equations = NormalEquations::new(self.theta.len(), thinning);
        let rows = Rows { thinning, phase };
        let pass = self.sweep(states, Some((&mut equations, rows)));
        equations.flush();
        (equations, pass)
    }

    fn sweep(
        &self,
        states: &Trajectory,
        equations: Option<(&mut NormalEquations, Rows)>,
    ) -> Forward {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let mut pass = Forward::new(self.record.len(), n, c);
        let from_mean = self.noise.start_mean.iter().zip(states.row(0));
        let from_mean: Vec<f64> = from_mean.map(|(m, x)| m - x).collect();
        let mut filter = StateFilter::new(&from_mean, &self.noise.start);
        let with_theta = equations.is_some();
        let kept_width = if with_theta { self.kept_width() } else { 0 };
        let mut by_theta = Vec::with_capacity(self.record.len() * kept_width);
        let rows = equations.as_ref().map(|(_, rows)| *rows);
        let mut counts = vec![rows.map_or(0, |rows| rows.phase); c];
        let channels = system.unknown_channels().len();
        let mut elimination = equations
            .map(|(equations, _)| (Sensitivity::new(n, channels, self.theta.len()), equations));
        let coefficients = || rows.map(|rows| Coefficients::new(n, channels, rows.thinning));
        let (mut coefficients, mut coefficients_before) = (coefficients(), coefficients());
        let linearised = || -> Vec<Linearised> {
            let mut step = self.stepper.linearised();
            if !with_theta {
                (step.f_theta, step.h_theta) = (Vec::new(), Vec::new());
            }
            vec![step; BLOCK_SAMPLES.min(self.record.len())]
        };
        let (mut steps, mut next_steps) = (linearised(), linearised());
        let mut steps_before = if with_theta { linearised() } else { Vec::new() };
        let pieces = BLOCK_SAMPLES.min(self.record.len()).div_ceil(PIECE_SAMPLES);
        let mut rooms: Vec<Room> = (0..pieces).map(|_| self.room(with_theta)).collect();
        let mut propagate = |coefficients: &Option<Coefficients>, steps: &[Linearised]| {
            if let (Some((sensitivity, equations)), Some(coefficients)) =
                (&mut elimination, coefficients)
            {
                let steps = &steps[..coefficients.len()];
                sensitivity.propagate(coefficients, steps, self.stepper.rows(), equations);
            }
        };
        let mut blocks = pass.blocks(n, c);
        let mut rest = blocks.as_mut_slice();
        if let Some(first) = rest.first_mut() {
            self.linearise_block(states, with_theta, first, &mut steps, &mut rooms);
        }
        while let Some((block, later)) = rest.split_first_mut() {
            if let (Some(coefficients), Some(before)) = (&mut coefficients, &coefficients_before) {
                coefficients.follow(before);
            }
            if kept_width > 0 {
                let steps = steps[..block.mean.len() / n].iter();
                let rows = steps.flat_map(|step| [&step.f_theta, &step.h_theta]);
                rows.for_each(|rows| by_theta.extend_from_slice(rows));
            }
            let on = || self.filter(&mut filter, block, coefficients.as_mut(), &mut counts);
            let ahead = || {
                if let Some(next) = later.first_mut() {
                    let steps = &mut next_steps;
                    self.linearise_block(states, with_theta, next, steps, &mut rooms);
                }
            };
            rayon::join(
                || propagate(&coefficients_before, &steps_before),
                || rayon::join(on, ahead),
            );
            std::mem::swap(&mut coefficients, &mut coefficients_before);
            if with_theta {
                std::mem::swap(&mut steps, &mut steps_before);
            }
            std::mem::swap(&mut steps, &mut next_steps);
            rest = later;
        }
        propagate(&coefficients_before, &steps_before);
        pass.by_theta = by_theta;
        pass
    }

    fn room(&self, with_theta: bool) -> Room {
        let system = self.stepper.system();
        let h_theta = with_theta && !system.unknown_channels().is_empty();
        Room {
            scratch: self.stepper.lane_scratch(),
            h: vec![0.0; LANES * system.measurements()],
            alone: h_theta.then(|| system.workspace()),
        }
    }

    /// f_o and h with their derivatives at the samples of a block; each piece of it has its own room.
    fn linearise_block(
        &self,
        states: &Trajectory,
        with_theta: bool,
        block: &mut Block,
        steps: &mut [Linearised],
        rooms: &mut [Room],
    ) {
        let (system, record) = (self.stepper.system(), self.record);
        let (n, c) = (system.states(), system.measurements());
        (block.mean.par_chunks_mut(PIECE_SAMPLES * n))
            .zip(block.innovation.par_chunks_mut(PIECE_SAMPLES * c))
            .zip(block.f_x.par_chunks_mut(PIECE_SAMPLES * n * n))
            .zip(block.h.par_chunks_mut(PIECE_SAMPLES * c * n))
            .zip(steps.par_chunks_mut(PIECE_SAMPLES))
            .zip(rooms)
            .enumerate()
            .for_each(|(piece, (parts, room))| {
                let ((((defects, residuals), f_x), h_x), steps) = parts;
                let Room { scratch, h, alone } = room;
                let first = block.first + piece * PIECE_SAMPLES;
                let groups = (defects.chunks_mut(LANES * n))
                    .zip(residuals.chunks_mut(LANES * c))
                    .zip(f_x.chunks_mut(LANES * n * n))
                    .zip(h_x.chunks_mut(LANES * c * n))
                    .zip(steps.chunks_mut(LANES));
                for (k, ((((defects, residuals), f_x), h_x), steps)) in groups.enumerate() {
                    let first = first + k * LANES;
                    let samples = first..first + defects.len() / n;
                    // nothing leads to the first sample of a record
                    let without = usize::from(first == 0);
                    let from = self.departures(states, samples.start + without..samples.end);
                    let stepped = &mut steps[without..];
                    if !from.is_empty() {
                        self.stepper
                            .linearise_lanes(scratch, &from, with_theta, stepped);
                    }
                    let arrived = (without..).zip(samples.clone().skip(without));
                    for (s, i) in arrived {
                        f_x[s * n * n..(s + 1) * n * n].copy_from_slice(&steps[s].f_x);
                        let defect = defects[s * n..(s + 1) * n].iter_mut();
                        for (d, (f, x)) in defect.zip(steps[s].next.iter().zip(states.row(i))) {
                            *d = f - x;
                        }
                    }
                    let points: Vec<Point> = samples
                        .clone()
                        .map(|i| self.point(i, states.row(i)))
                        .collect();
                    self.stepper
                        .linearise_measurement_lanes(scratch, &points, h, h_x);
                    if let Some(ws) = alone {
                        let rows = h.chunks_exact_mut(c).zip(h_x.chunks_exact_mut(c * n));
                        for ((at, (h, h_x)), step) in points.iter().zip(rows).zip(steps) {
                            let h_theta = &mut step.h_theta;
                            system.linearise_measurement_all(ws, *at, h, h_x, h_theta);
                        }
                    }
                    let measured = samples.flat_map(|i| record.output(i));
                    for (r, (y, h)) in residuals.iter_mut().zip(measured.zip(&*h)) {
                        *r = y - h;
                    }
                }
            });
    }

    /// The ways that lead to some samples.
    pub(crate) fn departures<'b>(
        &'b self,
        states: &'b Trajectory,
        to: Range<usize>,
    ) -> Vec<Departure<'b>> {
        let from = |i: usize| Departure {
            at: self.point(i - 1, states.row(i - 1)),
            span: self.stepper.span(self.record.gap(i - 1)),
        };
        to.map(from).collect()
    }

    /// The filter over a block, from where it was left; where asked for, also what a sensitivity needs.
    /// `counts` are the measurements so far of each channel.
    fn filter(
        &self,
        filter: &mut StateFilter,
        block: &mut Block,
        mut coefficients: Option<&mut Coefficients>,
        counts: &mut [usize],
    ) {
        let (n, c) = (filter.mean.len(), self.noise.measurement.len());
        let channels = self.stepper.system().unknown_channels();
        let mut moved = vec![0.0; n];
        for s in 0..block.mean.len() / n {
            let i = block.first + s;
            let f_x = &block.f_x[s * n * n..(s + 1) * n * n];
            if i > 0 {
                apply(f_x, &filter.mean, &mut moved);
                let defect = &block.mean[s * n..(s + 1) * n];
                for (m, (x, d)) in filter.mean.iter_mut().zip(moved.iter().zip(defect)) {
                    *m = x + d;
                }
                let span = self.stepper.span(self.record.gap(i - 1));
                filter.predict(f_x, &self.noise.process, span.samples);
            }
            if let Some(coefficients) = &mut coefficients {
                coefficients.advance(f_x);
            }
            let measured = self.record.output(i).iter().enumerate();
            for (k, _) in measured.filter(|(_, y)| !y.is_nan()) {
                let at = s * c + k;
                let row = &block.h[at * n..(at + 1) * n];
                let innovation = block.innovation[at] - dot(row, &filter.mean);
                let variance = filter.correct_lower(row, innovation, self.noise.measurement[k]);
                if let Some(coefficients) = &mut coefficients {
                    let place = channels.iter().position(|c| *c == k);
                    let innovation = Innovation {
                        value: innovation,
                        variance,
                    };
                    coefficients.correct(row, place, &filter.gain, innovation, counts[k]);
                }
                counts[k] += 1;
                block.gain[at * n..(at + 1) * n].copy_from_slice(&filter.gain);
                block.innovation[at] = innovation;
                block.variance[at] = variance;
            }
            filter.mirror();
            block.mean[s * n..(s + 1) * n].copy_from_slice(&filter.mean);
            block.covariance[s * n * n..(s + 1) * n * n].copy_from_slice(&filter.covariance);
        }
    }

    /// The increments δX.
    #[doc(hidden)]
    pub fn backward(&self, forward: &Forward, means: &Means) -> Trajectory {
        self.increments(forward, means).states
    }

    /// The same with the defects that they leave.
    pub(crate) fn increments(&self, forward: &Forward, means: &Means) -> Increments {
        let (n, c) = (
            self.stepper.system().states(),
            self.stepper.system().measurements(),
        );
        let mut increments = vec![0.0; means.mean.len()];
        let mut driving = vec![0.0; means.mean.len()];
        let (mut costate, mut moved) = (vec![0.0; n], vec![0.0; n]);
        for i in (0..self.record.len()).rev() {
            apply_transposed(
                &forward.covariance[i * n * n..(i + 1) * n * n],
                &costate,
                &mut moved,
            );
            for j in 0..n {
                increments[i * n + j] = means.mean[i * n + j] - moved[j];
            }
            for at in (i * c..(i + 1) * c)
                .rev()
                .filter(|&at| forward.variance[at] > 0.0)
            {
                let (h, gain) = (
                    &forward.h[at * n..(at + 1) * n],
                    &forward.gain[at * n..(at + 1) * n],
                );
                let factor = dot(gain, &costate) + means.innovation[at] / forward.variance[at];
                for (p, h) in costate.iter_mut().zip(h) {
                    *p -= factor * h;
                }
            }
            if i > 0 {
                let samples = self.stepper.span(self.record.gap(i - 1)).samples;
                let row = driving[i * n..(i + 1) * n].iter_mut();
                for (w, (q, p)) in row.zip(self.noise.process.iter().zip(&costate)) {
                    *w = -q * samples * p;
                }
            }
            apply_transposed(
                &forward.f_x[i * n * n..(i + 1) * n * n],
                &costate,
                &mut moved,
            );
            costate.copy_from_slice(&moved);
        }
        Increments {
            states: Trajectory::new(increments, n),
            driving: Trajectory::new(driving, n),
        }
    }

    /// What the objective says of the defects and misfits that lead to means.
    pub(crate) fn costates(&self, forward: &Forward, means: &Means) -> Costates {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let mut arrival = vec![0.0; means.mean.len()];
        let mut channel = vec![0.0; means.innovation.len()];
        let (mut costate, mut moved) = (vec![0.0; n], vec![0.0; n]);
        for i in (0..self.record.len()).rev() {
            for at in (i * c..(i + 1) * c).rev() {
                let Correction {
                    h,
                    gain,
                    innovation: Innovation { variance, .. },
                } = forward.correction(at, n);
                if variance > 0.0 {
                    channel[at] = dot(gain, &costate) + means.innovation[at] / variance;
                    let pulled = costate.iter_mut().zip(h);
                    pulled.for_each(|(p, h)| *p -= channel[at] * h);
                }
            }
            arrival[i * n..(i + 1) * n].copy_from_slice(&costate);
            apply_transposed(forward.step(i, n), &costate, &mut moved);
            costate.copy_from_slice(&moved);
        }
        Costates { arrival, channel }
    }

    /// Standard deviations of the smoothed states.
    pub(crate) fn deviations(&self, forward: &Forward) -> Trajectory {
        let n = self.stepper.system().states();
        let mut deviations = Trajectory::filled(0.0, self.record.len(), n);
        self.covariances(forward, |i, p| {
            for (j, deviation) in deviations.row_mut(i).iter_mut().enumerate() {
                *deviation = p[j * n + j].max(0.0).sqrt();
            }
        });
        deviations
    }

    /// H P Hᵀ of the smoothed states, of each channel of each sample; 0 where missing.
    pub(crate) fn seen_variances(&self, forward: &Forward) -> Vec<f64> {
        let system = self.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        let (mut seen, mut moved) = (vec![0.0; forward.variance.len()], vec![0.0; n]);
        self.covariances(forward, |i, p| {
            for at in (i * c..(i + 1) * c).filter(|&at| forward.variance[at] > 0.0) {
                let h = &forward.h[at * n..(at + 1) * n];
                apply_transposed(p, h, &mut moved);
                seen[at] = dot(h, &moved).max(0.0);
            }
        });
        seen
    }

    /// The covariance P − P Λ P of each smoothed state, from the last sample on.
    pub(crate) fn covariances(&self, forward: &Forward, mut take: impl FnMut(usize, &[f64])) {
        let (n, c) = (
            self.stepper.system().states(),
            self.stepper.system().measurements(),
        );
        let mut lambda = vec![0.0; n * n];
        let (mut scratch, mut product) = (vec![0.0; n * n], vec![0.0; n * n]);
        let mut moved = vec![0.0; n];
        for i in (0..self.record.len()).rev() {
            let p = forward.covariance(i, n);
            multiply(p, &lambda, &mut scratch, n, n);
            multiply(&scratch, p, &mut product, n, n);
            for (product, p) in product.iter_mut().zip(p) {
                *product = p - *product;
            }
            take(i, &product);
            for at in (i * c..(i + 1) * c)
                .rev()
                .filter(|&at| forward.variance[at] > 0.0)
            {
                back_through_channel(&mut lambda, &forward.correction(at, n), &mut moved);
            }
            let f_t = transpose(&forward.f_x[i * n * n..(i + 1) * n * n], n, n);
            sandwich(&f_t, &mut lambda, &mut scratch, n);
        }
    }
}

/// Λ ← (I − KH)ᵀ Λ (I − KH) + HᵀH/s: one side after the other, each a change of the rows or columns that the
/// channel sees.
fn back_through_channel(lambda: &mut [f64], correction: &Correction, moved: &mut [f64]) {
    let Correction {
        h,
        gain,
        innovation: Innovation { variance, .. },
    } = correction;
    let n = h.len();
    let seen = || (0..n).filter(|&j| h[j] != 0.0);
    apply(lambda, gain, moved);
    for (row, by) in lambda.chunks_exact_mut(n).zip(&*moved) {
        seen().for_each(|j| row[j] -= by * h[j]);
    }
    apply_transposed(lambda, gain, moved);
    for a in seen() {
        let row = &mut lambda[a * n..(a + 1) * n];
        row.iter_mut()
            .zip(&*moved)
            .for_each(|(l, by)| *l -= h[a] * by);
        seen().for_each(|b| row[b] += h[a] * h[b] / variance);
    }
}
