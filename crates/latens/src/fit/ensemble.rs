//! Several models of one system, taken together.
//!
//! Members of an ensemble are different minima: between them nothing is linear, so each simulates
//! for itself, with bands of its own. Together they say the median of what they say, sample by
//! sample, and the variance of a mixture: the mean of their variances, and how far they are apart.
//! Members of unequal weight, as structures between which the evidence hardly decides, say the
//! weighted mean. Evidence is itself known to some units of ln p only, so in the variance their
//! weights are more alike ([`softened`]).

use super::predict::{Prediction, Predictor, Start};
use crate::numerics::Trajectory;
use crate::record::Record;

/// A member of an ensemble, or something of its; of the weights only the ratios count.
pub struct Weighted<T> {
    pub weight: f64,
    pub value: T,
}

/// A run of values with their standard deviations.
pub struct Band<'a> {
    /// Of its member; only the ratios count.
    pub weight: f64,
    pub values: &'a Trajectory,
    pub deviations: &'a Trajectory,
}

/// The median of several runs, and standard deviations that count how far they are apart.
///
/// Where a run has left the finite numbers the deviation is infinite; where half of them have, so
/// has the median.
pub fn together(members: &[Band]) -> (Trajectory, Trajectory) {
    let count = members.len() as f64;
    let weights = unequal(&members.iter().map(|m| m.weight).collect::<Vec<_>>());
    let weights = weights.map(|weights| {
        let soft = softened(&weights);
        (weights, soft)
    });
    let mut values_there = Vec::with_capacity(members.len());
    let first = members[0].values;
    let bands = (0..first.as_slice().len()).map(|i| {
        let square = |v: f64| v * v;
        let at = |values: &Trajectory| values.as_slice()[i];
        if let Some((weights, soft)) = &weights {
            let mean = mean(members.iter().map(|m| at(m.values)).zip(weights));
            let spread = |m: &Band| square(at(m.deviations)) + square(at(m.values) - mean);
            let variance = members.iter().zip(soft).map(|(m, w)| w * spread(m));
            let deviation = variance.sum::<f64>().sqrt();
            let lost = deviation.is_nan();
            return (mean, if lost { f64::INFINITY } else { deviation });
        }
        values_there.clear();
        values_there.extend(members.iter().map(|m| at(m.values)));
        let middle = median(&mut values_there);
        let variance: f64 = members.iter().map(|m| square(at(m.deviations))).sum();
        let apart: f64 = values_there.iter().map(|v| square(v - middle)).sum();
        // of so few, the spread around their own middle is too small by one in their number
        let deviation = (variance / count + apart / (count - 1.0).max(1.0)).sqrt();
        let lost = deviation.is_nan();
        (middle, if lost { f64::INFINITY } else { deviation })
    });
    let (values, deviations): (Vec<f64>, Vec<f64>) = bands.unzip();
    let width = first.width();
    (
        Trajectory::new(values, width),
        Trajectory::new(deviations, width),
    )
}

/// Weights of sum one, where they differ.
fn unequal(weights: &[f64]) -> Option<Vec<f64>> {
    let sum: f64 = weights.iter().sum();
    let differ = weights.iter().any(|w| (w - weights[0]).abs() > 1e-9 * sum);
    differ.then(|| weights.iter().map(|w| w / sum).collect())
}

/// Weights as if differences of ln p were this many times smaller.
pub fn softened(weights: &[f64]) -> Vec<f64> {
    const SOFTENING_FACTOR: f64 = 5.0;
    let powers = weights.iter().map(|w| w.powf(1.0 / SOFTENING_FACTOR));
    let sum: f64 = powers.clone().sum();
    powers.map(|w| w / sum).collect()
}

/// The weighted mean of what is finite, where that has most of the weight.
fn mean<'w>(values: impl Iterator<Item = (f64, &'w f64)>) -> f64 {
    let finite = values.filter(|(value, _)| value.is_finite());
    let (sum, weight) = finite.fold((0.0, 0.0), |(s, t), (v, w)| (s + w * v, t + w));
    if weight > 0.5 { sum / weight } else { f64::NAN }
}

/// The median of runs, sample by sample; of unequal weights, the weighted mean.
pub fn common_run(runs: &[Weighted<&Trajectory>]) -> Trajectory {
    let weights = unequal(&runs.iter().map(|r| r.weight).collect::<Vec<_>>());
    let mut values_there = Vec::with_capacity(runs.len());
    let first = runs[0].value;
    let values = (0..first.as_slice().len()).map(|i| {
        let values = runs.iter().map(|r| r.value.as_slice()[i]);
        match &weights {
            Some(weights) => mean(values.zip(weights)),
            None => {
                values_there.clear();
                values_there.extend(values);
                median(&mut values_there)
            }
        }
    });
    Trajectory::new(values.collect(), first.width())
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
pub fn predict(members: &[Weighted<Predictor>], record: &Record, start: Start) -> Prediction {
    let predictions = members.iter().map(|m| m.value.predict(record, start));
    let predictions: Vec<Prediction> = predictions.collect();
    let weighted = || members.iter().map(|m| m.weight).zip(&predictions);
    let states = weighted().map(|(weight, p)| Band {
        weight,
        values: &p.states,
        deviations: &p.deviations,
    });
    let outputs = weighted().map(|(weight, p)| Band {
        weight,
        values: &p.outputs,
        deviations: &p.output_deviations,
    });
    let (states, deviations) = together(&states.collect::<Vec<_>>());
    let (outputs, output_deviations) = together(&outputs.collect::<Vec<_>>());
    Prediction {
        from: predictions[0].from,
        states,
        deviations,
        outputs,
        output_deviations,
        // one that has seen no more than this must guess, whatever the others do
        outside: predictions.iter().map(|p| p.outside).fold(0.0, f64::max),
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
            .map(|(values, deviations)| Band {
                weight: 1.0,
                values,
                deviations,
            })
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

    /// Two structures 5 units of ln p apart say nearly what the likelier says; in the band the other
    /// counts as if it were one unit away. One that is lost takes its band along, not the mean.
    #[test]
    fn what_evidence_hardly_decides_widens_bands() {
        let single = |value| Trajectory::filled(value, 1, 1);
        let (likely, other, lost) = (single(1.0), single(2.0), single(f64::NAN));
        let deviations = &single(0.0);
        let band = |weight: f64, values| Band {
            weight,
            values,
            deviations,
        };
        let less = (-5.0_f64).exp();
        let (middle, spread) = together(&[band(1.0, &likely), band(less, &other)]);
        let mean = (1.0 + 2.0 * less) / (1.0 + less);
        assert!((middle.row(0)[0] - mean).abs() < 1e-12);
        let soft = (-1.0_f64).exp() / (1.0 + (-1.0_f64).exp());
        let variance = (1.0 - soft) * (mean - 1.0).powi(2) + soft * (2.0 - mean).powi(2);
        assert!((spread.row(0)[0] - variance.sqrt()).abs() < 1e-12);
        let (middle, spread) = together(&[band(1.0, &likely), band(less, &lost)]);
        assert_eq!((middle.row(0)[0], spread.row(0)[0]), (1.0, f64::INFINITY));
    }

    #[test]
    fn a_member_that_left_the_numbers_widens_the_band_without_end() {
        let single = |value| Trajectory::filled(value, 1, 1);
        let (low, lost, high) = (single(1.0), single(f64::NAN), single(3.0));
        let deviations = &single(0.1);
        let band = |values| Band {
            weight: 1.0,
            values,
            deviations,
        };
        let (middle, spread) = together(&[band(&low), band(&lost), band(&high)]);
        assert_eq!((middle.row(0)[0], spread.row(0)[0]), (3.0, f64::INFINITY));
        let (middle, _) = together(&[band(&low), band(&lost)]);
        assert!(middle.row(0)[0].is_nan());
    }
}
