//! What the rivals that roll equations out have in common: windows of the records, where each
//! starts, and the exact discrete adjoint of a roll-out.
//!
//! ```text
//! x_{k+1} = f_o(x_k, u_k, θ),   ℓ = w Σ_k ½ ‖(h(x_k) − y_k)/σ‖²
//! λ_k = F_xᵀ λ_{k+1} + ∂ℓ_k/∂x_k,   ∇θ = Σ F_θᵀ λ_{k+1},   ∇x_0 = λ_0
//! ```
//!
//! The forward pass keeps the states alone; the backward pass linearises again where they were.

use std::ops::Range;

use latens::Trajectory;
use latens::look::RESOLUTION;
use latens::look::scales::SignalScales;
use latens::model::small::apply_transposed;
use latens::model::{Model, Workspace};
use latens::numerics::score;
use latens::numerics::step::{Linearised, Scratch, Stepper};
use latens::record::Record;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// What a rival is given: the records, and the model scaled to them.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    pub model: &'a Model,
    pub stepper: &'a Stepper<'a>,
    pub records: &'a [Record],
    pub scales: &'a SignalScales,
    /// Standard deviation of each channel: losses are standardised by it.
    pub deviation: &'a [f64],
}

/// Some samples of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub record: usize,
    pub samples: Range<usize>,
}

/// Cuts records into windows of so many steps (the last of a record may be shorter), each `stride`
/// after the one before it.
pub fn cut(records: &[Record], steps: usize, stride: usize) -> Vec<Window> {
    let mut windows = Vec::new();
    for (record, r) in records.iter().enumerate() {
        let last = r.len() - 1;
        let mut from = 0;
        loop {
            let to = (from + steps).min(last);
            windows.push(Window {
                record,
                samples: from..to + 1,
            });
            if to == last {
                break;
            }
            from += stride;
        }
    }
    windows
}

/// Standard deviation of each channel over records; 1 where it never moves.
pub fn deviations(records: &[Record], channels: usize) -> Vec<f64> {
    let deviation = |c: usize| {
        let values = || {
            let readings = records
                .iter()
                .flat_map(|r| r.outputs.iter().skip(c).step_by(r.d_y));
            readings.filter(|y| !y.is_nan())
        };
        let count = values().count().max(1) as f64;
        let mean = values().sum::<f64>() / count;
        let square = values().map(|y| (y - mean).powi(2)).sum::<f64>() / count;
        if square > 0.0 { square.sqrt() } else { 1.0 }
    };
    (0..channels).map(deviation).collect()
}

/// Takes windows in turn, in a new random order each time all have been taken.
#[derive(Debug, Clone)]
pub struct Batches {
    order: Vec<usize>,
    at: usize,
    rng: Pcg64,
}

impl Batches {
    pub fn new(windows: usize, rng: Pcg64) -> Self {
        Self {
            order: (0..windows).collect(),
            at: windows,
            rng,
        }
    }

    /// The next so many windows, or all where there are not more.
    pub fn next(&mut self, size: usize) -> Vec<usize> {
        if size >= self.order.len() {
            return (0..self.order.len()).collect();
        }
        if self.at + size > self.order.len() {
            self.order.shuffle(&mut self.rng);
            self.at = 0;
        }
        self.at += size;
        self.order[self.at - size..self.at].to_vec()
    }
}

/// Where windows start: measured states where the first sample shows them, hidden ones at their
/// centre plus a trainable offset in units of their scale.
#[derive(Debug, Clone)]
pub struct Starts {
    /// States with an offset.
    rows: Vec<usize>,
    scale: Vec<f64>,
    /// States without their offsets, one run of d_x values per window.
    base: Vec<f64>,
    /// Windows whose start is given.
    fixed: Vec<bool>,
}

impl Starts {
    /// With `known`, windows at the beginning of a record start at its truth, and are not trained.
    pub fn new(problem: &Problem, windows: &[Window], known: bool) -> Self {
        let (scales, system) = (problem.scales, &problem.model.system);
        let n = system.states();
        // a start that is measured with noise is as unknown as a hidden one
        let exact = |c: usize| scales.noise[c] <= RESOLUTION * scales.range[c];
        let shown = |i: usize| {
            let channels = system.direct().iter().enumerate();
            channels.into_iter().any(|(c, d)| *d == Some(i) && exact(c))
        };
        let mut base = Vec::with_capacity(windows.len() * n);
        let mut fixed = Vec::with_capacity(windows.len());
        for window in windows {
            let (record, k) = (&problem.records[window.record], window.samples.start);
            let truth = record
                .truth(k)
                .filter(|t| known && k == 0 && t.iter().all(|x| x.is_finite()));
            fixed.push(truth.is_some());
            let mut state = scales.center.clone();
            for (y, direct) in record.output(k).iter().zip(system.direct()) {
                if let (Some(i), false) = (direct, y.is_nan()) {
                    state[*i] = *y;
                }
            }
            base.extend_from_slice(truth.unwrap_or(&state));
        }
        Self {
            rows: (0..n).filter(|i| !shown(*i)).collect(),
            scale: scales.scale.clone(),
            base,
            fixed,
        }
    }

    /// Number of offsets.
    pub fn parameters(&self) -> usize {
        self.rows.len() * self.fixed.len()
    }

    /// The start of a window.
    pub fn state(&self, window: usize, offsets: &[f64]) -> Vec<f64> {
        let (n, r) = (self.scale.len(), self.rows.len());
        let mut state = self.base[window * n..(window + 1) * n].to_vec();
        for (&i, offset) in self.rows.iter().zip(&offsets[window * r..]) {
            state[i] += self.scale[i] * offset;
        }
        state
    }

    /// Adds what a window's start contributes to the gradient by the offsets.
    pub fn pull_back(&self, window: usize, by_state: &[f64], gradient: &mut [f64]) {
        if self.fixed[window] {
            return;
        }
        let r = self.rows.len();
        for (g, &i) in gradient[window * r..].iter_mut().zip(&self.rows) {
            *g += self.scale[i] * by_state[i];
        }
    }
}

/// States this many scales from their centre are lost; a roll-out ends there.
pub(crate) const LOST_SCALES: f64 = 1e3;

/// A roll-out and its adjoint; one per thread.
pub struct Rollout<'a> {
    problem: Problem<'a>,
    scratch: Scratch,
    workspace: Workspace,
    step: Linearised,
    h: Vec<f64>,
    h_x: Vec<f64>,
    states: Vec<f64>,
    adjoint: Vec<f64>,
    before: Vec<f64>,
}

impl<'a> Rollout<'a> {
    pub fn new(problem: Problem<'a>) -> Self {
        let system = problem.stepper.system();
        let (n, c) = (system.states(), system.measurements());
        Self {
            problem,
            scratch: problem.stepper.scratch(),
            workspace: system.workspace(),
            step: problem.stepper.linearised(),
            h: vec![0.0; c],
            h_x: vec![0.0; c * n],
            states: Vec::new(),
            adjoint: vec![0.0; n],
            before: vec![0.0; n],
        }
    }

    /// ∂ℓ/∂x_0 of the last window that was pulled back.
    pub fn by_start(&self) -> &[f64] {
        &self.adjoint
    }

    /// Rolls out over a window; gives the samples before the states were lost.
    fn run(&mut self, theta: &[f64], start: &[f64], window: &Window) -> usize {
        let Problem {
            stepper,
            records,
            scales,
            ..
        } = self.problem;
        let (record, n) = (&records[window.record], start.len());
        self.states.clear();
        self.states.extend_from_slice(start);
        for (j, k) in window.samples.clone().skip(1).enumerate() {
            self.states.resize((j + 2) * n, 0.0);
            let (done, next) = self.states.split_at_mut((j + 1) * n);
            let at = record.point(k - 1, &done[j * n..], theta);
            let span = stepper.span(record.gap(k - 1));
            stepper.advance(&mut self.scratch, at, span, next);
            let sizes = scales.center.iter().zip(&scales.scale);
            let mut off = next.iter().zip(sizes).map(|(x, (c, s))| (x - c).abs() / s);
            // a NaN is not within bounds either
            if !off.all(|off| off < LOST_SCALES) {
                return j + 1;
            }
        }
        window.samples.len()
    }

    /// The loss of a window from `start` with weight `w`; adds its gradient by θ, and leaves that by
    /// the start in [`Rollout::by_start`].
    pub fn gradient(
        &mut self,
        theta: &[f64],
        start: &[f64],
        window: &Window,
        weight: f64,
        gradient: &mut [f64],
    ) -> f64 {
        let samples = self.run(theta, start, window);
        let Problem {
            stepper,
            records,
            deviation,
            ..
        } = self.problem;
        let (record, n) = (&records[window.record], start.len());
        let parameters = theta.len().max(1);
        let mut loss = 0.0;
        self.adjoint.fill(0.0);
        for j in (0..samples).rev() {
            let k = window.samples.start + j;
            let state = &self.states[j * n..(j + 1) * n];
            let at = record.point(k, state, theta);
            let system = stepper.system();
            system.linearise_measurement(&mut self.workspace, at, &mut self.h, &mut self.h_x);
            for (c, y) in record.output(k).iter().enumerate() {
                if y.is_nan() {
                    continue;
                }
                let residual = (self.h[c] - y) / deviation[c];
                loss += 0.5 * weight * residual * residual;
                let slope = weight * residual / deviation[c];
                let row = &self.h_x[c * n..(c + 1) * n];
                for (a, h) in self.adjoint.iter_mut().zip(row) {
                    *a += slope * h;
                }
            }
            if j == 0 {
                break;
            }
            let from = &self.states[(j - 1) * n..j * n];
            let at = record.point(k - 1, from, theta);
            let span = stepper.span(record.gap(k - 1));
            stepper.linearise(&mut self.scratch, at, span, true, &mut self.step);
            let rows = self.step.f_theta.chunks_exact(parameters);
            for (row, &i) in rows.zip(stepper.rows()) {
                axpy(self.adjoint[i], row, gradient);
            }
            self.before.copy_from_slice(&self.adjoint);
            apply_transposed(&self.step.f_x, &self.before, &mut self.adjoint);
        }
        loss
    }
}

/// y += a x.
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    if a != 0.0 {
        for (y, x) in y.iter_mut().zip(x) {
            *y += a * x;
        }
    }
}

/// Mean nRMSE of the measured channels in free runs over the records; infinite where one is lost.
pub fn channel_error(problem: &Problem, theta: &[f64], runs: &[Trajectory]) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (record, run) in problem.records.iter().zip(runs) {
        let errors = score::channel_nrmse(problem.stepper, record, theta, run);
        for error in errors.into_iter().flatten() {
            sum += error;
            count += 1.0;
        }
    }
    sum / count
}

/// The same of θ, from these starts.
pub fn free_run_error(problem: &Problem, theta: &[f64], starts: &[Vec<f64>]) -> f64 {
    let pairs = problem.records.iter().zip(starts);
    let runs = pairs.map(|(record, start)| score::free_run(problem.stepper, record, theta, start));
    channel_error(problem, theta, &runs.collect::<Vec<_>>())
}

/// Number of measurements in windows.
pub fn measurements(records: &[Record], windows: &[Window]) -> usize {
    let taken = |w: &Window| {
        let record = &records[w.record];
        let outputs = &record.outputs[w.samples.start * record.d_y..w.samples.end * record.d_y];
        outputs.iter().filter(|y| !y.is_nan()).count()
    };
    windows.iter().map(taken).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn record(samples: usize) -> Record {
        Record {
            name: "r".into(),
            time: (0..samples).map(|k| k as f64).collect(),
            inputs: vec![],
            outputs: (0..samples).map(|k| k as f64).collect(),
            truth: None,
            d_u: 0,
            d_y: 1,
            d_x: 1,
            later: false,
        }
    }

    /// Every step is in a window; joints belong to both neighbours.
    #[test]
    fn windows_cover_the_record() {
        let records = [record(101), record(26)];
        let windows = cut(&records, 40, 40);
        let shown: Vec<_> = windows
            .iter()
            .map(|w| (w.record, w.samples.clone()))
            .collect();
        assert_eq!(shown, [(0, 0..41), (0, 40..81), (0, 80..101), (1, 0..26)]);
        assert_eq!(cut(&records[..1], 100, 50).len(), 1);
        assert_eq!(cut(&records[..1], 50, 25).len(), 3);
        assert_eq!(measurements(&records, &windows), 41 + 41 + 21 + 26);
    }

    /// Each window is taken once before any is taken again, in an order that the seed fixes.
    #[test]
    fn batches_take_every_window() {
        let take = |seed| {
            let mut batches = Batches::new(9, Pcg64::seed_from_u64(seed));
            (0..6).map(|_| batches.next(3)).collect::<Vec<_>>()
        };
        let batch = take(1);
        for turn in batch.chunks(3) {
            let mut all = turn.concat();
            all.sort_unstable();
            assert_eq!(all, (0..9).collect::<Vec<_>>());
        }
        assert_eq!(batch, take(1));
        assert_ne!(batch, take(2));
    }
}
