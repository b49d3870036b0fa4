//! The joint recursion: one filter on [x; θ] with the cross-covariance kept.
//! Its step is [`crate::filter::joint`]'s; here are the passes over records.
//!
//! The paper's appendix says that the parameter gain vanishes because F_θᵀHᵀ = 0. That is true
//! only until as many steps have passed as there are links from θ to a sensor: from then on P_θx
//! carries what the measured states say about θ through F_x (a test shows both).

use super::sweep::{Pass, Segment, Sweep};
use crate::Error;
use crate::filter::joint::{Cross, Reading};

/// One pass over the segments, one after another.
pub fn sweep(pass: &mut Pass, segments: &[Segment]) -> Result<(), Error> {
    let total: usize = segments.iter().map(|s| s.samples.len()).sum();
    let mut done = 0;
    for segment in segments {
        let mut joint = Joint::new(pass, segment);
        for tick in 1..segment.samples.len() {
            joint.predict(pass, tick)?;
            joint.correct(pass, tick)?;
            pass.tick(tick, &joint.sweep, done + tick, total)?;
        }
        done += segment.samples.len();
    }
    Ok(())
}

/// The filter on one segment.
pub struct Joint<'r> {
    pub sweep: Sweep<'r>,
    pub cross: Cross,
    before: Vec<f64>,
}

impl<'r> Joint<'r> {
    /// Starts a segment: θ and x are independent there.
    pub fn new(pass: &Pass, segment: &Segment<'r>) -> Self {
        let (n, p) = (segment.start.len(), pass.theta.len());
        Self {
            sweep: Sweep::new(pass, segment),
            cross: Cross::new(n, p, pass.stepper.rows().len()),
            before: pass.theta.clone(),
        }
    }

    /// Mean and covariance through one step.
    pub fn predict(&mut self, pass: &mut Pass, tick: usize) -> Result<(), Error> {
        self.before.copy_from_slice(&pass.theta);
        self.sweep.advance(pass, tick, true)?;
        let (filter, rows) = (&mut self.sweep.filter, pass.stepper.rows());
        let carried = self.cross.advance(filter, rows, &mut pass.covariance);
        carried.map_err(|spread| pass.indefinite(&self.sweep, tick, spread))
    }

    /// All channels of a sample.
    pub fn correct(&mut self, pass: &mut Pass, tick: usize) -> Result<(), Error> {
        self.sweep.measure(pass, tick);
        for c in 0..pass.noise.measurement.len() {
            let reading = Reading {
                channel: c,
                value: self.sweep.measured(tick, c),
                variance: pass.noise.measurement[c],
            };
            let (filter, covariance) = (&mut self.sweep.filter, &mut pass.covariance);
            let corrected = (self.cross).correct(filter, &mut pass.theta, covariance, reading);
            self.sweep.count(pass, tick, c, corrected)?;
        }
        self.sweep.check(pass, tick)?;
        self.sweep.finish(pass, tick);
        pass.drift(&self.before);
        Ok(())
    }
}
