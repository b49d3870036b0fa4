//! The extended Kalman filter on a model, one sample at a time.
//!
//! With f_i = f_o(x̂, u, θ), F_x at the sample before and h, H at f_i:
//!
//! ```text
//! x̂⁻ = f_i,   P⁻ = F_x P F_xᵀ + Q_x Δ,   ν = y − h(f_i) − H (x̂ − f_i)     (channel by channel)
//! ```
//!
//! Δ is the gap in sample times. The last term of ν is what the channels before this one have
//! already explained. All that goes forward through samples uses this step: the recursions, the
//! smoother's first trajectory, and the stream.

use super::kalman::StateFilter;
use crate::model::Point;
use crate::model::small::dot;
use crate::numerics::step::{Linearised, Scratch, Span, Stepper};

/// A state this many scales away from any start is lost.
pub const LOST_SCALES: f64 = 1e6;

/// What a channel measured beyond what was foreseen.
#[derive(Debug, Clone, Copy)]
pub struct Innovation {
    /// ν.
    pub value: f64,
    /// s.
    pub variance: f64,
}

/// Mean and covariance of the states on their way through samples.
#[derive(Debug, Clone)]
pub struct ExtendedFilter {
    pub states: StateFilter,
    /// The last step: f_i and its derivatives. Before the first step f_i is the start.
    pub step: Linearised,
    /// The way that the last step went.
    pub span: Span,
    /// H at f_i, row by row.
    pub h_x: Vec<f64>,
    /// h(f_i).
    pub predicted_output: Vec<f64>,
    pub(crate) scratch: Scratch,
}

impl ExtendedFilter {
    /// Starts from a mean and variances.
    pub fn new(stepper: &Stepper, mean: &[f64], variances: &[f64]) -> Self {
        let (n, c) = (mean.len(), stepper.system().measurements());
        let mut step = stepper.linearised();
        step.next.copy_from_slice(mean);
        Self {
            states: StateFilter::new(mean, variances),
            step,
            span: stepper.span(stepper.dt()),
            h_x: vec![0.0; c * n],
            predicted_output: vec![0.0; c],
            scratch: stepper.scratch(),
        }
    }

    /// x̂ ← f_o(x̂), P ← F_x P F_xᵀ + Q_x Δ over a gap, with F_θ where asked for; time, input and θ
    /// are those of `at`, the state is the filter's own.
    pub fn advance(
        &mut self,
        stepper: &Stepper,
        at: Point,
        gap: f64,
        process: &[f64],
        with_theta: bool,
    ) {
        let (state, span) = (&self.states.mean, stepper.span(gap));
        let at = Point { state, ..at };
        stepper.linearise(&mut self.scratch, at, span, with_theta, &mut self.step);
        self.states.predict(&self.step.f_x, process, span.samples);
        self.states.mean.copy_from_slice(&self.step.next);
        self.span = span;
    }

    /// h and H at the prediction; time, input and θ are those of `at`.
    pub fn measure(&mut self, stepper: &Stepper, at: Point) {
        let state = &self.step.next;
        let at = Point { state, ..at };
        let (scratch, h) = (&mut self.scratch.system, &mut self.predicted_output);
        (stepper.system()).linearise_measurement(scratch, at, h, &mut self.h_x);
    }

    /// A state that is no number, or far from `center` in units of its `scale`.
    pub fn lost(&self, center: &[f64], scale: &[f64]) -> Option<usize> {
        let mut states = self.states.mean.iter().zip(center.iter().zip(scale));
        states.position(|(x, (center, scale))| {
            let distance = (x - center).abs();
            distance.is_nan() || distance >= LOST_SCALES * scale
        })
    }

    /// Row H of a channel.
    pub fn row(&self, channel: usize) -> &[f64] {
        let n = self.states.mean.len();
        &self.h_x[channel * n..(channel + 1) * n]
    }

    /// ν of a channel that measured `y`.
    pub fn innovation(&self, channel: usize, y: f64) -> f64 {
        let changes = self.states.mean.iter().zip(&self.step.next);
        let changes = self.row(channel).iter().zip(changes);
        let moved: f64 = changes.map(|(h, (x, f))| h * (x - f)).sum();
        y - self.predicted_output[channel] - moved
    }

    /// H P Hᵀ of a channel: the variance of ν without the sensor's.
    pub fn spread(&self, channel: usize) -> f64 {
        let row = self.row(channel);
        let rows = self.states.covariance.chunks_exact(row.len());
        rows.zip(row).map(|(p, h)| h * dot(p, row)).sum()
    }

    /// Corrects with a channel that measured `y` with variance r; `None` where `y` is NaN.
    pub fn correct(&mut self, channel: usize, y: f64, r: f64) -> Option<Innovation> {
        if y.is_nan() {
            return None;
        }
        let innovation = self.innovation(channel, y);
        let n = self.states.mean.len();
        let row = &self.h_x[channel * n..(channel + 1) * n];
        let s = self.states.correct(row, innovation, r);
        Some(Innovation {
            value: innovation,
            variance: s,
        })
    }
}
