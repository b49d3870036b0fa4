//! What the measurements had to say that the model had not foreseen.
//!
//! The innovations of the core ([`latens::fit::innovations`]), as the page draws them.

use latens::fit::innovations::normalised;
use latens::fit::{Fit, Track};

/// Lags of the correlations, at the most.
const LAGS: usize = 40;
/// Parts of a record over which ν²/s is averaged.
const PARTS: usize = 60;
/// Bins of the histogram, from −4 to 4, and of an input's range.
pub const BINS: usize = 32;
/// Of a standard normal distribution, 95 % lie within it.
pub const NORMAL_DEVIATIONS: f64 = 1.96;

/// The innovations of one channel over one record.
pub struct Innovations {
    pub channel: String,
    pub unit: String,
    pub count: usize,
    /// Mean of ν²/s: one where the filter knows how wrong it is.
    pub consistency: f64,
    /// Correlation of ν/√s with itself, from lag 1 on.
    pub correlation: Vec<f64>,
    /// Beyond this a correlation is more than chance, once in twenty.
    pub bound: f64,
    /// Part of ν/√s in each bin; the outermost hold what is farther out.
    pub histogram: Vec<f64>,
    /// Time, mean of ν²/s over a part of the record, and how many samples were in it.
    pub parts: Vec<(f64, f64, usize)>,
    /// For each input that moves.
    pub inputs: Vec<Against>,
}

/// The innovations over the values of an input.
pub struct Against {
    pub input: String,
    pub unit: String,
    /// Value of the input, mean and standard deviation of ν/√s over samples with nearly that value.
    pub bins: Vec<[f64; 3]>,
}

impl Innovations {
    /// Part of the lags whose correlation is more than chance; about 0.05 for white innovations.
    pub fn coloured(&self) -> f64 {
        let beyond = self.correlation.iter().filter(|c| c.abs() > self.bound);
        beyond.count() as f64 / self.correlation.len().max(1) as f64
    }

    /// Between what 95 % of means of ν²/s over so many samples lie (Wilson and Hilferty's
    /// approximation of χ²).
    pub fn band(samples: usize) -> [f64; 2] {
        let v = 2.0 / (9.0 * samples.max(1) as f64);
        [-NORMAL_DEVIATIONS, NORMAL_DEVIATIONS].map(|z| (1.0 - v + z * v.sqrt()).max(0.0).powi(3))
    }
}

/// Of every channel; empty where the filter leaves the finite numbers.
pub fn innovations(shown: &Fit, track: &Track) -> Vec<Innovations> {
    let Some(all) = normalised(shown, track) else {
        return vec![];
    };
    let model = &shown.model;
    let channels = model.measurements.iter().zip(all);
    let channels = channels.filter(|(_, innovations)| innovations.len() > 2);
    channels
        .map(|(channel, innovations)| {
            let values: Vec<f64> = innovations.iter().map(|(_, z)| *z).collect();
            let square: f64 = values.iter().map(|z| z * z).sum();
            let inputs = model.inputs.iter().enumerate();
            let inputs = inputs.filter_map(|(j, input)| {
                let bins = against(track, j, &innovations)?;
                Some(Against {
                    input: input.name.clone(),
                    unit: input.unit.clone(),
                    bins,
                })
            });
            Innovations {
                channel: channel.name.clone(),
                unit: channel.unit.clone(),
                count: innovations.len(),
                consistency: square / innovations.len() as f64,
                correlation: correlation(&values),
                bound: NORMAL_DEVIATIONS / (innovations.len() as f64).sqrt(),
                histogram: histogram(&values),
                parts: parts(&track.record.time, &innovations),
                inputs: inputs.collect(),
            }
        })
        .collect()
}

fn correlation(values: &[f64]) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let at = |lag: usize| -> f64 {
        let pairs = values.iter().zip(&values[lag..]);
        pairs.map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let all = at(0);
    let lags = 1..=LAGS.min(values.len() / 4);
    lags.map(|lag| at(lag) / all).collect()
}

fn histogram(values: &[f64]) -> Vec<f64> {
    let mut bins = vec![0.0; BINS];
    for z in values {
        let at = ((z + 4.0) / 8.0 * BINS as f64).clamp(0.0, BINS as f64 - 1.0);
        bins[at as usize] += 1.0 / values.len() as f64;
    }
    bins
}

fn parts(time: &[f64], innovations: &[(usize, f64)]) -> Vec<(f64, f64, usize)> {
    let size = innovations.len().div_ceil(PARTS).max(1);
    let part = |part: &[(usize, f64)]| {
        let square: f64 = part.iter().map(|(_, z)| z * z).sum();
        let middle = part[part.len() / 2].0;
        (time[middle], square / part.len() as f64, part.len())
    };
    innovations.chunks(size).map(part).collect()
}

/// ν/√s over the values of an input; `None` where it never moves.
fn against(track: &Track, input: usize, innovations: &[(usize, f64)]) -> Option<Vec<[f64; 3]>> {
    const CELLS: usize = 20;
    let value = |k: usize| track.record.input(k)[input];
    let values = innovations.iter().map(|(k, _)| value(*k));
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    if high - low <= 1e-9 * high.abs().max(low.abs()) {
        return None;
    }
    let mut cells = vec![(0.0, 0.0, 0.0); CELLS];
    for (k, z) in innovations {
        let at = ((value(*k) - low) / (high - low) * CELLS as f64) as usize;
        let (count, sum, square) = &mut cells[at.min(CELLS - 1)];
        *count += 1.0;
        *sum += z;
        *square += z * z;
    }
    let filled = cells
        .iter()
        .enumerate()
        .filter(|(_, (count, ..))| *count > 4.0);
    let bins = filled.map(|(i, (count, sum, square))| {
        let middle = low + (high - low) * (i as f64 + 0.5) / CELLS as f64;
        let mean = sum / count;
        [middle, mean, (square / count - mean * mean).max(0.0).sqrt()]
    });
    Some(bins.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 95 % band of a mean of squares: χ² tables at 10 and 100 degrees of freedom.
    #[test]
    fn the_band_is_that_of_chi_square() {
        for (samples, low, high) in [(10, 0.3247, 2.0483), (100, 0.7422, 1.2956)] {
            let [l, h] = Innovations::band(samples);
            assert!((l - low).abs() < 3e-3 && (h - high).abs() < 1e-3, "{l} {h}");
        }
    }

    #[test]
    fn a_wave_is_coloured_and_alternation_is_too() {
        let wave: Vec<f64> = (0..400).map(|k| (k as f64 * 0.05).sin()).collect();
        assert!(correlation(&wave)[0] > 0.99);
        let alternating: Vec<f64> = (0..400).map(|k| f64::from(k % 2) - 0.5).collect();
        assert!(correlation(&alternating)[0] < -0.99);
        let total: f64 = histogram(&wave).iter().sum();
        assert!((total - 1.0).abs() < 1e-9);
    }
}
