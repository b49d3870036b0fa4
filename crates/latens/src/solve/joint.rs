//! The joint recursion: one filter on [x; θ] with the cross-covariance kept.
//! Its step is [`crate::estimate::joint`]'s; here are the passes over records.
//!
//! The paper's appendix says that the parameter gain vanishes because F_θᵀHᵀ = 0. That is true
//! only until as many steps have passed as there are links from θ to a sensor: from then on P_θx
//! carries what the measured states say about θ through F_x (a test shows both).

use super::epoch::{Epoch, Segment, Sweep};
use crate::Error;
use crate::estimate::joint::Cross;

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
    pub cross: Cross,
    before: Vec<f64>,
}

impl<'r> Joint<'r> {
    /// Starts a segment: θ and x are independent there.
    pub fn new(epoch: &Epoch, segment: &Segment<'r>) -> Self {
        let (n, p) = (segment.start.len(), epoch.theta.len());
        Self {
            sweep: Sweep::new(epoch, segment),
            cross: Cross::new(n, p, epoch.stepper.rows().len()),
            before: epoch.theta.clone(),
        }
    }

    /// Mean and covariance through one step.
    pub fn predict(&mut self, epoch: &mut Epoch, tick: usize) -> Result<(), Error> {
        self.before.copy_from_slice(&epoch.theta);
        self.sweep.advance(epoch, tick, true)?;
        let (filter, rows) = (&mut self.sweep.filter, epoch.stepper.rows());
        let carried = self.cross.advance(filter, rows, &mut epoch.covariance);
        carried.map_err(|spread| epoch.indefinite(&self.sweep, tick, spread))
    }

    /// All channels of a sample.
    pub fn correct(&mut self, epoch: &mut Epoch, tick: usize) -> Result<(), Error> {
        self.sweep.measure(epoch, tick);
        for c in 0..epoch.noise.measurement.len() {
            let (y, r) = (self.sweep.measured(tick, c), epoch.noise.measurement[c]);
            let (filter, covariance) = (&mut self.sweep.filter, &mut epoch.covariance);
            let corrected = (self.cross).correct(filter, &mut epoch.theta, covariance, (c, y, r));
            self.sweep.count(epoch, tick, c, corrected)?;
        }
        self.sweep.check(epoch, tick)?;
        self.sweep.finish(epoch, tick);
        epoch.drift(&self.before);
        Ok(())
    }
}
