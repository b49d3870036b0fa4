//! What the recursions share: one pass over the record, its segments and its bookkeeping.

use super::settings::{Settings, Solver};
use super::{Observer, Progress};
use crate::estimate::StateFilter;
use crate::linalg::PackedCovariance;
use crate::model::Model;
use crate::objective::{Cost, Noise, data_term, half_square};
use crate::record::Record;
use crate::step::{Linearised, Scratch, Span, Stepper};
use crate::{Divergence, Error};

/// A piece of a record, and the state from which it starts.
#[derive(Debug, Clone)]
pub struct Segment<'r> {
    pub record: &'r Record,
    pub samples: std::ops::Range<usize>,
    pub start: Vec<f64>,
    /// Its variances.
    pub start_variance: Vec<f64>,
}

/// θ and all that one pass changes.
pub struct Epoch<'e> {
    pub model: &'e Model,
    pub stepper: &'e Stepper<'e>,
    pub settings: &'e Settings,
    pub noise: &'e Noise,
    /// Size of each state: far outside, a pass has diverged.
    pub scale: &'e [f64],
    pub theta: Vec<f64>,
    pub covariance: PackedCovariance,
    /// Q_θ of this epoch.
    pub drift: f64,
    pub number: usize,
    pub cost: Cost,
    /// Sum and number of ν²/s: their ratio is near 1 where the noise is what it is said to be.
    pub consistency: (f64, usize),
    pub observer: &'e mut dyn Observer,
    /// Whether the observer wants this epoch to be the last.
    pub stop: bool,
}

/// A state this many scales away from any start is lost.
const LOST: f64 = 1e6;
/// Steps between two looks at the observer.
const REPORT: usize = 500;

impl Epoch<'_> {
    /// P_θ ← P_θ + Q_θ, and the cost of θ's way since `before`.
    pub fn drift(&mut self, before: &[f64]) {
        if self.drift > 0.0 {
            self.covariance.inflate(self.drift);
            let moved = self
                .theta
                .iter()
                .zip(before)
                .map(|(a, b)| (a - b) * (a - b));
            self.cost.drift += 0.5 * moved.sum::<f64>() / self.drift;
        }
    }

    /// Checks θ at a tick of a segment and reports progress (done, of). An epoch that the observer
    /// wants to stop is gone through with: half of one has seen half of the record.
    pub fn tick(
        &mut self,
        tick: usize,
        at: &Sweep,
        (done, of): (usize, usize),
    ) -> Result<(), Error> {
        if let Some(i) = self.theta.iter().position(|t| !t.is_finite()) {
            return Err(self.diverged(at, tick, format!("θ[{i}]"), self.theta[i]));
        }
        if done.is_multiple_of(REPORT) {
            let progress = Progress {
                epoch: self.number,
                epochs: self.settings.epochs,
                step: done,
                steps: of,
            };
            self.stop |= !self.observer.progress(&progress);
        }
        Ok(())
    }

    fn diverged(&self, at: &Sweep, tick: usize, quantity: String, value: f64) -> Error {
        let step = at.segment.samples.start + tick;
        Error::Diverged(Divergence {
            during: format!(
                "{} on {}",
                self.settings.solver.name(),
                at.segment.record.name
            ),
            epoch: Some(self.number),
            step,
            time: at.segment.record.time[step],
            quantity,
            value,
            advice: match self.settings.solver {
                Solver::Alternating => "lower --parameter-variance or raise --parameter-noise",
                _ => "lower --parameter-variance",
            }
            .into(),
        })
    }

    /// P_θ is no covariance any more.
    pub fn indefinite(&self, at: &Sweep, tick: usize, spread: f64) -> Error {
        self.diverged(at, tick, "F_θ P_θ F_θᵀ".into(), spread)
    }
}

/// The state filter on its way through a segment.
pub struct Sweep<'r> {
    pub segment: Segment<'r>,
    pub filter: StateFilter,
    pub step: Linearised,
    /// The way that the last step went.
    pub span: Span,
    pub h_x: Vec<f64>,
    /// h(f_i).
    pub predicted_output: Vec<f64>,
    scratch: Scratch,
    output: Vec<f64>,
}

impl<'r> Sweep<'r> {
    pub fn new(epoch: &Epoch, segment: &Segment<'r>) -> Self {
        let (n, c) = (segment.start.len(), epoch.model.measurements.len());
        Self {
            segment: segment.clone(),
            filter: StateFilter::new(&segment.start, &segment.start_variance),
            step: epoch.stepper.linearised(),
            span: epoch.stepper.span(epoch.stepper.dt()),
            h_x: vec![0.0; c * n],
            predicted_output: vec![0.0; c],
            scratch: epoch.stepper.scratch(),
            output: vec![0.0; c],
        }
    }

    /// x̂ ← f_o(x̂), P_x ← F_x P_x F_xᵀ + Q_x, with F_θ where asked for.
    pub fn advance(&mut self, epoch: &Epoch, tick: usize, with_theta: bool) -> Result<(), Error> {
        let (record, k) = (self.segment.record, self.segment.samples.start + tick - 1);
        let at = record.point(k, &self.filter.mean, &epoch.theta);
        let span = epoch.stepper.span(record.gap(k));
        epoch
            .stepper
            .linearise(&mut self.scratch, at, span, with_theta, &mut self.step);
        let process = &epoch.noise.process;
        self.filter.predict(&self.step.f_x, process, span.samples);
        self.span = span;
        self.filter.mean.copy_from_slice(&self.step.next);
        self.check(epoch, tick)
    }

    pub(super) fn check(&self, epoch: &Epoch, tick: usize) -> Result<(), Error> {
        for (i, x) in self.filter.mean.iter().enumerate() {
            let distance = (x - epoch.noise.start_mean[i]).abs();
            if distance.is_nan() || distance >= LOST * epoch.scale[i] {
                return Err(epoch.diverged(self, tick, epoch.model.states[i].name.clone(), *x));
            }
        }
        Ok(())
    }

    /// h and H at the prediction.
    pub fn measure(&mut self, epoch: &Epoch, tick: usize) {
        let (record, k) = (self.segment.record, self.segment.samples.start + tick);
        let at = record.point(k, &self.step.next, &epoch.theta);
        let system = epoch.stepper.system();
        let h = &mut self.predicted_output;
        system.linearise_measurement(&mut self.scratch.system, at, h, &mut self.h_x);
    }

    /// Corrects with one channel; `None` where it was not measured, else (ν, s).
    pub fn correct_channel(
        &mut self,
        epoch: &mut Epoch,
        tick: usize,
        c: usize,
    ) -> Result<Option<(f64, f64)>, Error> {
        let n = self.filter.mean.len();
        let k = self.segment.samples.start + tick;
        let y = self.segment.record.output(k)[c];
        if y.is_nan() {
            return Ok(None);
        }
        let row = &self.h_x[c * n..(c + 1) * n];
        // the channels before this one have moved the mean: H (x̂ − f_i) is already explained
        let moved: f64 = (0..n)
            .map(|j| row[j] * (self.filter.mean[j] - self.step.next[j]))
            .sum();
        let innovation = y - self.predicted_output[c] - moved;
        let s = self
            .filter
            .correct(row, innovation, epoch.noise.measurement[c]);
        if !(s > 0.0 && s.is_finite()) {
            let name = format!("variance of {}", epoch.model.measurements[c].name);
            return Err(epoch.diverged(self, tick, name, s));
        }
        epoch.consistency.0 += innovation * innovation / s;
        epoch.consistency.1 += 1;
        Ok(Some((innovation, s)))
    }

    /// All channels of a sample, for a recursion whose θ does not wait for them.
    pub fn correct(&mut self, epoch: &mut Epoch, tick: usize) -> Result<(), Error> {
        self.measure(epoch, tick);
        for c in 0..self.predicted_output.len() {
            self.correct_channel(epoch, tick, c)?;
        }
        self.check(epoch, tick)?;
        self.finish(epoch, tick);
        Ok(())
    }

    /// Adds this sample's terms of the objective.
    pub fn finish(&mut self, epoch: &mut Epoch, tick: usize) {
        let (record, k) = (self.segment.record, self.segment.samples.start + tick);
        let at = record.point(k, &self.filter.mean, &epoch.theta);
        epoch
            .stepper
            .system()
            .measure(&mut self.scratch.system, at, &mut self.output);
        epoch.cost.data += data_term(record.output(k), &self.output, &epoch.noise.measurement);
        let defect = self
            .filter
            .mean
            .iter()
            .zip(&self.step.next)
            .map(|(x, f)| x - f);
        epoch.cost.physics += half_square(defect, &epoch.noise.process) / self.span.samples;
    }
}
