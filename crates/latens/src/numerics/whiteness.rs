//! Whether a sequence is white, and if not, over how many samples it is correlated.
//!
//! Sums over blocks of B neighbours of white values of variance σ² have variance Bσ². With S_b the
//! sum over block b, Σ S_b²/(Bσ²) over m blocks is χ² with m degrees of freedom; correlation makes
//! it larger. Blocks of 2, 4, 8, … samples are looked at, so that what is slow is found where single
//! lags of the autocorrelation drown in noise. With ρ̄ the mean correlation of two samples of a
//! block,
//!
//! ```text
//! E S²/(Bσ²) = 1 + (B − 1) ρ̄ .
//! ```
//!
//! That what was fitted takes some of the sum away makes the test milder, never sharper.

/// Fewest blocks that say anything, and fewest values.
const FEWEST_BLOCKS: usize = 8;
const FEWEST_VALUES: usize = 32;
/// A scale counts for the size of the correlation from this many deviations of its sum on.
const NOTABLE_DEVIATIONS: f64 = 3.0;
/// Lags of the portmanteau test.
const MOST_LAGS: usize = 20;
/// Standard deviations of chance from which a sequence is correlated: white ones are so once in a hundred thousand
/// times. Few values cannot come so far; where neighbours share most of the variance, once in four thousand will do.
const CLEAR_DEVIATIONS: f64 = 4.7;
const CLEAR_DEVIATIONS_OF_FEW: f64 = 3.5;
const MOST_OF_VARIANCE: f64 = 0.5;
/// The correlated part of a misfit matters from this part of it on.
const MATERIAL_MISFIT_PART: f64 = 0.15;

/// How a sequence is correlated with itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Colour {
    /// By how many standard deviations of chance the block sums are too large, on the worst scale.
    pub deviations: f64,
    /// Part of the variance that neighbours share.
    pub shared: f64,
    /// Over so many samples.
    pub samples: usize,
}

impl Colour {
    /// Whether it is more than chance, and matters.
    pub fn is_clear(&self) -> bool {
        let mostly = self.shared > MOST_OF_VARIANCE && self.deviations > CLEAR_DEVIATIONS_OF_FEW;
        let material = self.shared.sqrt() > MATERIAL_MISFIT_PART;
        material && (mostly || self.deviations > CLEAR_DEVIATIONS)
    }
}

/// Of a sequence about its mean; `None` where it is too short or never moves.
pub fn colour(values: &[f64]) -> Option<Colour> {
    let (_, variance) = mean_and_variance(values);
    // what it is compared with is zero, not the mean: a bias is not white either
    let square = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
    if values.len() < FEWEST_VALUES || !square.is_finite() || variance <= 0.0 {
        return None;
    }
    let mut colour = Colour {
        deviations: f64::NEG_INFINITY,
        shared: 0.0,
        samples: 1,
    };
    let mut scales = vec![];
    for Blocks {
        size,
        blocks,
        ratio,
    } in block_sums(values)
    {
        let deviations = chi_square_deviations(ratio, blocks);
        colour.deviations = colour.deviations.max(deviations);
        let shared = ((ratio - 1.0) / (size as f64 - 1.0)).clamp(0.0, 1.0);
        scales.push((size, shared, deviations));
    }
    let notable = scales.iter().filter(|s| s.2 > NOTABLE_DEVIATIONS);
    colour.shared = notable.clone().map(|s| s.1).fold(0.0, f64::max);
    let wide = notable.filter(|s| s.1 >= 0.5 * colour.shared).map(|s| s.0);
    colour.samples = wide.max().unwrap_or(1);
    Some(colour)
}

/// Sums over blocks of one size.
pub struct Blocks {
    /// Samples of a block.
    pub size: usize,
    /// Their number m.
    pub blocks: f64,
    /// Σ S²/(Bσ² m): χ² over its m degrees of freedom, where the sequence is white.
    pub ratio: f64,
}

/// Sums over blocks of 2, 4, 8, … samples, while there are enough of them.
pub fn block_sums(values: &[f64]) -> Vec<Blocks> {
    let square = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
    let mut all = vec![];
    let mut size = 2;
    while values.len() / size >= FEWEST_BLOCKS {
        let sums = values.chunks_exact(size).map(|b| b.iter().sum::<f64>());
        let blocks = (values.len() / size) as f64;
        let ratio = sums.map(|s| s * s).sum::<f64>() / (size as f64 * square * blocks);
        all.push(Blocks {
            size,
            blocks,
            ratio,
        });
        size *= 2;
    }
    all
}

/// Whether nothing tells a sequence from white noise: neither its block sums nor the correlations of
/// neighbours (Ljung and Box).
pub fn is_white(values: &[f64]) -> bool {
    let (mean, variance) = mean_and_variance(values);
    let n = values.len() as f64;
    let about: Vec<f64> = values.iter().map(|v| v - mean).collect();
    let Some(colour) = colour(&about) else {
        return false;
    };
    let lags = MOST_LAGS.min(values.len() / 4);
    let q = (1..=lags).map(|lag| {
        let pairs = about.iter().zip(&about[lag..]);
        let rho = pairs.map(|(a, b)| a * b).sum::<f64>() / (n * variance);
        rho * rho / (n - lag as f64)
    });
    let q = n * (n + 2.0) * q.sum::<f64>();
    let lags = lags as f64;
    colour.deviations < NOTABLE_DEVIATIONS
        && chi_square_deviations(q / lags, lags) < NOTABLE_DEVIATIONS
}

/// Legendre's polynomials of the rank of a signal's values, a line and two curves, whatever their distribution; `None`
/// where it does not move.
pub fn curves(signal: &[f64]) -> Option<[Vec<f64>; 3]> {
    let mut order: Vec<usize> = (0..signal.len()).collect();
    order.sort_by(|&a, &b| signal[a].total_cmp(&signal[b]));
    if signal[*order.first()?] == signal[*order.last()?] {
        return None;
    }
    let mut rank = vec![0.0; signal.len()];
    for (r, &i) in order.iter().enumerate() {
        rank[i] = (2.0 * r as f64 + 1.0) / signal.len() as f64 - 1.0;
    }
    let curves: [fn(f64) -> f64; 3] = [|x| x, |x| 1.5 * x * x - 0.5, |x| 2.5 * x.powi(3) - 1.5 * x];
    Some(curves.map(|curve| rank.iter().map(|x| curve(*x)).collect()))
}

/// How many standard deviations of a normal variable a χ² over its degrees of freedom is worth
/// (Wilson and Hilferty).
pub fn chi_square_deviations(ratio: f64, freedom: f64) -> f64 {
    let v = 2.0 / (9.0 * freedom);
    (ratio.cbrt() - (1.0 - v)) / v.sqrt()
}

/// Mean and variance.
pub fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

/// Standard deviation of the white part, from fourth differences: they cancel what is smooth.
pub fn rough_deviation(values: &[f64]) -> f64 {
    let weights = [1.0, -4.0, 6.0, -4.0, 1.0];
    let differences = values.windows(5).map(|w| {
        let sum: f64 = w.iter().zip(weights).map(|(v, weight)| v * weight).sum();
        sum.abs()
    });
    median(differences.collect()).map_or(0.0, |m| m / NORMAL_MEDIAN / 70f64.sqrt())
}

/// The median of |N(0, 1)|.
pub const NORMAL_MEDIAN: f64 = 0.6745;

/// The middle value; `None` where there is none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_pcg::Pcg64;

    use super::*;

    fn white(seed: u64, n: usize) -> Vec<f64> {
        let mut rng = Pcg64::seed_from_u64(seed);
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    /// Of a thousand white sequences of several lengths none is called coloured at the level that
    /// findings ask for.
    #[test]
    fn white_noise_is_white() {
        let mut worst = f64::NEG_INFINITY;
        for seed in 0..1000 {
            let n = [64, 201, 1638, 5001][seed as usize % 4];
            worst = worst.max(colour(&white(seed, n)).unwrap().deviations);
        }
        assert!(worst < CLEAR_DEVIATIONS, "{worst}");
        let clear = (0..4000).filter(|&s| colour(&white(s, 45)).unwrap().is_clear());
        assert_eq!(clear.count(), 0);
        let called = (0..1000).filter(|&s| !is_white(&white(s, 201))).count();
        assert!(called < 20, "{called}");
    }

    /// AR(1) has correlation a^k: neighbours share nearly all of it, and it reaches over 1/(1 − a).
    #[test]
    fn an_autoregression_is_found_with_its_length() {
        for (a, low, high) in [(0.9f64, 4, 32), (0.99, 32, 256)] {
            let mut state = 0.0;
            let values: Vec<f64> = white(1, 8000)
                .into_iter()
                .map(|e| {
                    state = a * state + (1.0 - a * a).sqrt() * e;
                    state
                })
                .collect();
            let colour = colour(&values).unwrap();
            assert!(colour.deviations > 20.0, "{colour:?}");
            // of a few dozen values too, though less surely
            let short = super::colour(&values[..64]).unwrap();
            assert!(short.is_clear(), "{short:?}");
            assert!((low..=high).contains(&colour.samples), "{a}: {colour:?}");
            assert!(colour.shared > 0.8, "{colour:?}");
        }
    }

    /// A wave with a sixteenth of the noise's variance, which no single lag shows.
    #[test]
    fn a_slow_wave_under_noise_is_found() {
        let mut values = white(3, 1638);
        for (k, v) in values.iter_mut().enumerate() {
            *v += 0.25 * 2f64.sqrt() * (k as f64 * 0.02).sin();
        }
        let colour = colour(&values).unwrap();
        assert!(colour.deviations > 4.7, "{colour:?}");
        assert!((0.15..0.4).contains(&colour.shared.sqrt()), "{colour:?}");
    }

    /// χ² tables: 18.31 at 10 and 124.3 at 100 degrees of freedom are the 95 % points, 1.645.
    #[test]
    fn deviations_are_those_of_chi_square() {
        for (x, freedom) in [(18.307, 10.0), (124.342, 100.0)] {
            let z = chi_square_deviations(x / freedom, freedom);
            assert!((z - 1.645).abs() < 0.01, "{z}");
        }
    }
}
