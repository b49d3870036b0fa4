//! Whether what differences of a channel take for noise is noise.
//!
//! Differences of order m cancel polynomials of degree m − 1. Of white noise every order gives the same
//! standard deviation; of a signal that is not smooth beside the sampling each order leaves less than
//! the one before. While orders still fall, the estimate is an upper bound.

use super::scales::{Sample, measured};
use crate::numerics::whiteness::{NORMAL_MEDIAN, median};
use crate::record::Record;

/// Orders that are compared: the one that noise is told from, and one above it.
const DIFFERENCE_ORDERS: [usize; 2] = [4, 6];
/// The higher order gives less than this part of the lower one.
const FALLING_RATIO: f64 = 0.8;
/// Fewest differences, for medians that are sure enough of that.
const FEWEST_DIFFERENCES: usize = 100;

/// Whether the noise of a channel as fourth differences tell it is an upper bound only.
pub fn is_bound(records: &[Record], c: usize) -> bool {
    let [lower, higher] = DIFFERENCE_ORDERS.map(|order| deviation(records, c, order));
    match (lower, higher) {
        (Some(lower), Some(higher)) => higher < FALLING_RATIO * lower,
        _ => false,
    }
}

/// Standard deviation of the noise from differences of an order.
fn deviation(records: &[Record], c: usize, order: usize) -> Option<f64> {
    let mut differences = vec![];
    for record in records {
        for window in measured(record, c).windows(order + 1) {
            differences.push(difference(window).abs());
        }
    }
    let enough = differences.len() >= FEWEST_DIFFERENCES;
    median(differences)
        .filter(|_| enough)
        .map(|m| m / NORMAL_MEDIAN)
}

/// The divided difference of samples whose weights have squares that add up to one.
fn difference(window: &[Sample]) -> f64 {
    let step = (window[window.len() - 1].time - window[0].time) / (window.len() - 1) as f64;
    let (mut sum, mut square) = (0.0, 0.0);
    for (j, Sample { time, value }) in window.iter().enumerate() {
        let others = window.iter().enumerate().filter(|(i, _)| *i != j);
        let weight: f64 = others
            .map(|(_, other)| step / (time - other.time))
            .product();
        sum += weight * value;
        square += weight * weight;
    }
    sum / square.sqrt()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_pcg::Pcg64;

    use super::*;

    fn record(values: impl Iterator<Item = f64>) -> Record {
        let outputs: Vec<f64> = values.collect();
        Record {
            name: "record".into(),
            time: (0..outputs.len()).map(|k| 0.1 * k as f64).collect(),
            inputs: vec![],
            outputs,
            truth: None,
            d_u: 0,
            d_y: 1,
            d_x: 1,
            later: false,
        }
    }

    /// Noise is noise at every order; waves without noise, fast beside the sampling, are not.
    #[test]
    fn a_fast_signal_is_not_called_noise() {
        let mut rng = Pcg64::seed_from_u64(1);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let noisy = (0..1000).map(|k| (0.05 * k as f64).sin() + 0.01 * normal());
        assert!(!is_bound(&[record(noisy)], 0));
        let fast = (0..1000).map(|k| {
            let t = k as f64;
            (0.4 * t).sin() + (0.53 * t + 1.0).sin() + 0.5 * (0.71 * t).cos()
        });
        assert!(is_bound(&[record(fast)], 0));
    }
}
