//! What the measurements had to say that the model had not foreseen.
//!
//! A filter with the learned θ and the noise of the fit passes over the record; each measurement is
//! compared with what it predicts from those before. ν/√s is then white, normal and of variance one,
//! if model and noise are right.

use super::{Fit, Track};
use crate::filter::ExtendedFilter;
use crate::numerics::step::Stepper;

/// Sample and ν/√s of each measurement, channel by channel; `None` where the filter leaves the finite
/// numbers.
pub fn normalised(fit: &Fit, track: &Track) -> Option<Vec<Vec<(usize, f64)>>> {
    let (model, record, noise) = (&fit.model, &track.record, &fit.facts.noise);
    let stepper = Stepper::over(model, &model.system, fit.facts.sample_time, [record]);
    let variances = track.deviations.row(0).iter().map(|d| d.powi(2));
    let variances: Vec<f64> = variances
        .map(|v| if v.is_finite() { v } else { 0.0 })
        .collect();
    let mut filter = ExtendedFilter::new(&stepper, track.smoothed.row(0), &variances);
    let mut innovations = vec![vec![]; model.measurements.len()];
    for k in 0..record.len() {
        if k > 0 {
            let at = record.point(k - 1, &[], &fit.theta);
            filter.advance(&stepper, at, record.gap(k - 1), &noise.process, false);
        }
        if filter.states.mean.iter().any(|x| !x.is_finite()) {
            return None;
        }
        filter.measure(&stepper, record.point(k, &[], &fit.theta));
        for (channel, y) in record.output(k).iter().enumerate() {
            let corrected = filter.correct(channel, *y, noise.measurement[channel]);
            // the first sample has had its part in the start
            if let Some(innovation) = corrected.filter(|_| k > 0) {
                innovations[channel].push((k, innovation.value / innovation.variance.sqrt()));
            }
        }
    }
    Some(innovations)
}
