//! Several models of one system, taken together.
//!
//! Members of an ensemble are different minima: between them nothing is linear, so each simulates
//! for itself, with bands of its own. Together they say the median of what they say, sample by
//! sample, and the variance of a mixture: the mean of their variances, and how far they are apart.

use super::predict::{Prediction, Predictor, Start};
use crate::numerics::Trajectory;
use crate::record::Record;

/// A run of values with their standard deviations.
pub struct Band<'a> {
    pub values: &'a Trajectory,
    pub deviations: &'a Trajectory,
}

/// The median of several runs, and standard deviations that count how far they are apart.
///
/// Where a run has left the finite numbers the deviation is infinite; where half of them have, so
/// has the median.
pub fn together(members: &[Band]) -> (Trajectory, Trajectory) {
    let count = members.len() as f64;
    let mut own = Vec::with_capacity(members.len());
    let first = members[0].values;
    let each = (0..first.as_slice().len()).map(|i| {
        own.clear();
        own.extend(members.iter().map(|m| m.values.as_slice()[i]));
        let middle = median(&mut own);
        let square = |v: f64| v * v;
        let variance: f64 = members.iter().map(|m| square(m.deviations.as_slice()[i])).sum();
        let apart: f64 = own.iter().map(|v| square(v - middle)).sum();
        // of so few, the spread around their own middle is too small by one in their number
        let deviation = (variance / count + apart / (count - 1.0).max(1.0)).sqrt();
        let lost = deviation.is_nan();
        (middle, if lost { f64::INFINITY } else { deviation })
    });
    let (values, deviations): (Vec<f64>, Vec<f64>) = each.unzip();
    let width = first.width();
    (Trajectory::new(values, width), Trajectory::new(deviations, width))
}

/// The median of several runs alone.
pub fn median_run(runs: &[&Trajectory]) -> Trajectory {
    let mut own = Vec::with_capacity(runs.len());
    let values = (0..runs[0].as_slice().len()).map(|i| {
        own.clear();
        own.extend(runs.iter().map(|r| r.as_slice()[i]));
        median(&mut own)
    });
    Trajectory::new(values.collect(), runs[0].width())
}

/// The middle of some values, those that are no numbers counted as beyond all others.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
f64::midpoint(values[half - 1], values[half])
} else {
values[half]
}
}

/// A record predicted by all members: each from its own start, simulated by itself.
pub fn predict(members: &[Predictor], record: &Record, start: Start) -> Prediction {
    let each: Vec<Prediction> = members.iter().map(|m| m.predict(record, start)).collect();
    let states = each.iter().map(|p| Band {
        values: &p.states,
        deviations: &p.deviations,
    });
    let outputs = each.iter().map(|p| Band {
        values: &p.outputs,
        deviations: &p.output_deviations,
    });
    let (states, deviations) = together(&states.collect::<Vec<_>>());
    let (outputs, output_deviations) = together(&outputs.collect::<Vec<_>>());
    Prediction {
        from: each[0].from,
        states,
        deviations,
        outputs,
        output_deviations,
        // one that has seen no more than this must guess, whatever the others do
        outside: each.iter().map(|p| p.outside).fold(0.0, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_variance_of_a_mixture() {
        let pair = |a, b| Trajectory::new(vec![a, b], 1);
        let values = [pair(1.0, 0.0), pair(2.0, 0.0), pair(6.0, 0.0)];
        let spreads = [pair(0.3, 0.0), pair(0.4, 0.0), pair(0.0, 0.0)];
        let bands = values.iter().zip(&spreads);
        let members: Vec<Band> = bands
            .map(|(values, deviations)| Band { values, deviations })
            .collect();
        let (middle, deviations) = together(&members);
        assert_eq!(middle.as_slice(), [2.0, 0.0]);
        let expected = ((0.09 + 0.16) / 3.0 + (1.0 + 16.0) / 2.0_f64).sqrt();
        assert!((deviations.row(0)[0] - expected).abs() < 1e-15);
        assert_eq!(deviations.row(1), [0.0]);
        // of two it is the mean, with the unbiased variance between them
        let (middle, deviations) = together(&members[..2]);
        assert_eq!(middle.row(0), [1.5]);
        assert!((deviations.row(0)[0] - (0.125 + 0.5_f64).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn a_member_that_left_the_numbers_widens_the_band_without_end() {
        let single = |value| Trajectory::filled(value, 1, 1);
        let (low, lost, high) = (single(1.0), single(f64::NAN), single(3.0));
        let deviations = &single(0.1);
        let band = |values| Band { values, deviations };
        let (middle, spread) = together(&[band(&low), band(&lost), band(&high)]);
        assert_eq!((middle.row(0)[0], spread.row(0)[0]), (3.0, f64::INFINITY));
        let (middle, _) = together(&[band(&low), band(&lost)]);
        assert!(middle.row(0)[0].is_nan());
    }
}
