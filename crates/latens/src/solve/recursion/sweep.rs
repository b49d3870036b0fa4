//! What the recursions share: one pass over the record, its segments and its bookkeeping.

use crate::filter::{ExtendedFilter, Innovation};
use crate::model::Model;
use crate::model::settings::Settings;
use crate::numerics::linalg::PackedCovariance;
use crate::numerics::objective::{Cost, Noise, data_term, half_square};
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::solve::{Observer, Progress};
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
pub struct Pass<'e> {
    pub model: &'e Model,
    pub stepper: &'e Stepper<'e>,
    pub settings: &'e Settings,
    pub noise: &'e Noise,
    /// Size of each state: far outside, a pass has diverged.
    pub scale: &'e [f64],
    pub theta: Vec<f64>,
    pub covariance: PackedCovariance,
    /// Q_θ of this pass.
    pub drift: f64,
    pub number: usize,
    pub cost: Cost,
    /// Sum and number of ν²/s: their ratio is near 1 where the noise is what it is said to be.
    pub consistency: (f64, usize),
    /// What to try where it diverges.
    pub advice: &'static str,
    pub observer: &'e mut dyn Observer,
    /// Whether the observer wants this pass to be the last.
    pub stop: bool,
}

/// Steps between two looks at the observer.
const REPORT_STEPS: usize = 500;

impl Pass<'_> {
    /// Bounds are kept, P_θ ← P_θ + Q_θ, and the cost of θ's way since `before`.
    pub fn drift(&mut self, before: &[f64]) {
        self.model.keep_bounds(&mut self.theta);
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

    /// Checks θ at a tick of a segment and reports progress (done, of). A pass that the observer
    /// wants to stop is gone through with: half of one has seen half of the record.
    pub fn tick(
        &mut self,
        tick: usize,
        at: &Sweep,
        done: usize,
        steps: usize,
    ) -> Result<(), Error> {
        if let Some(i) = self.theta.iter().position(|t| !t.is_finite()) {
            return Err(self.diverged(at, tick, format!("θ[{i}]"), self.theta[i]));
        }
        if done.is_multiple_of(REPORT_STEPS) {
            let progress = Progress {
                pass: self.number,
                passes: self.settings.passes,
                step: done,
                steps,
            };
            self.stop |= !self.observer.progress(&progress);
        }
        Ok(())
    }

    fn diverged(&self, at: &Sweep, tick: usize, quantity: String, value: f64) -> Error {
        let step = at.segment.samples.start + tick;
        Error::Diverged(Divergence {
            during: format!("{} on {}", self.settings.solver, at.segment.record.name),
            pass: Some(self.number),
            step,
            time: at.segment.record.time[step],
            quantity,
            value,
            advice: self.advice.into(),
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
    pub filter: ExtendedFilter,
    output: Vec<f64>,
}

impl<'r> Sweep<'r> {
    pub fn new(pass: &Pass, segment: &Segment<'r>) -> Self {
        let (start, variance) = (&segment.start, &segment.start_variance);
        Self {
            segment: segment.clone(),
            filter: ExtendedFilter::new(pass.stepper, start, variance),
            output: vec![0.0; pass.model.measurements.len()],
        }
    }

    /// x̂ ← f_o(x̂), P_x ← F_x P_x F_xᵀ + Q_x, with F_θ where asked for.
    pub fn advance(&mut self, pass: &Pass, tick: usize, with_theta: bool) -> Result<(), Error> {
        let (record, k) = (self.segment.record, self.segment.samples.start + tick - 1);
        let at = record.point(k, &[], &pass.theta);
        let (stepper, process) = (pass.stepper, &pass.noise.process);
        (self.filter).advance(stepper, at, record.gap(k), process, with_theta);
        self.check(pass, tick)
    }

    pub(super) fn check(&self, pass: &Pass, tick: usize) -> Result<(), Error> {
        match self.filter.lost(&pass.noise.start_mean, pass.scale) {
            Some(i) => {
                let (name, value) = (&pass.model.states[i].name, self.filter.states.mean[i]);
                Err(pass.diverged(self, tick, name.clone(), value))
            }
            None => Ok(()),
        }
    }

    /// h and H at the prediction.
    pub fn measure(&mut self, pass: &Pass, tick: usize) {
        let (record, k) = (self.segment.record, self.segment.samples.start + tick);
        let at = record.point(k, &[], &pass.theta);
        self.filter.measure(pass.stepper, at);
    }

    /// What a channel measured; NaN where it did not.
    pub fn measured(&self, tick: usize, c: usize) -> f64 {
        (self.segment.record).output(self.segment.samples.start + tick)[c]
    }

    /// Counts a channel's innovation, and stops where s is no variance.
    pub fn count(
        &self,
        pass: &mut Pass,
        tick: usize,
        c: usize,
        corrected: Option<Innovation>,
    ) -> Result<(), Error> {
        let Some(Innovation {
            value: innovation,
            variance: s,
        }) = corrected
        else {
            return Ok(());
        };
        if !(s > 0.0 && s.is_finite()) {
            let name = format!("variance of {}", pass.model.measurements[c].name);
            return Err(pass.diverged(self, tick, name, s));
        }
        pass.consistency.0 += innovation * innovation / s;
        pass.consistency.1 += 1;
        Ok(())
    }

    /// All channels of a sample, for a recursion whose θ does not wait for them.
    pub fn correct(&mut self, pass: &mut Pass, tick: usize) -> Result<(), Error> {
        self.measure(pass, tick);
        for c in 0..pass.noise.measurement.len() {
            let y = self.measured(tick, c);
            let corrected = self.filter.correct(c, y, pass.noise.measurement[c]);
            self.count(pass, tick, c, corrected)?;
        }
        self.check(pass, tick)?;
        self.finish(pass, tick);
        Ok(())
    }

    /// Adds this sample's terms of the objective.
    pub fn finish(&mut self, pass: &mut Pass, tick: usize) {
        let (record, k) = (self.segment.record, self.segment.samples.start + tick);
        let filter = &mut self.filter;
        let at = record.point(k, &filter.states.mean, &pass.theta);
        let scratch = &mut filter.scratch.system;
        (pass.stepper.system()).measure(scratch, at, &mut self.output);
        pass.cost.data += data_term(record.output(k), &self.output, &pass.noise.measurement);
        let defect = filter.states.mean.iter().zip(&filter.step.next);
        let defect = defect.map(|(x, f)| x - f);
        pass.cost.physics += half_square(defect, &pass.noise.process) / filter.span.samples;
    }
}
