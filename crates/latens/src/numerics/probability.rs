//! Probabilities of test statistics, and several tests at once.

use std::f64::consts::FRAC_1_SQRT_2;

use super::whiteness::chi_square_deviations;

/// P(Z > z) of a standard normal variable.
///
/// By the continued fraction in the tail, by the series of the error function in the middle; both to
/// twelve digits at the least.
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    let x = z * FRAC_1_SQRT_2;
    let root = std::f64::consts::PI.sqrt();
    if x < 2.0 {
        // erf x = 2/√π e^(−x²) Σ 2ⁿ x^(2n+1)/(2n+1)!!
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        0.5 - (-x * x).exp() * sum / root
    } else {
        // erfc x = e^(−x²)/√π · 1/(x + ½/(x + 1/(x + ³⁄₂/(x + …))))
        let rest = (1..=80)
            .rev()
            .fold(x, |rest, k| x + 0.5 * f64::from(k) / rest);
        0.5 * (-x * x).exp() / (root * rest)
    }
}

/// P(|Z| > |z|).
pub fn two_sided(z: f64) -> f64 {
    2.0 * normal_tail(z.abs())
}

/// P(X > x) of χ² (Wilson and Hilferty; exact for two degrees of freedom).
pub fn chi_square_tail(x: f64, freedom: f64) -> f64 {
    if freedom == 2.0 {
        return (-0.5 * x).exp();
    }
    normal_tail(chi_square_deviations(x / freedom, freedom))
}

/// The least of several p-values as one: Bonferroni's, right whatever their dependence.
pub fn least(p_values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut least, mut count) = (1.0_f64, 0.0);
    for p in p_values {
        least = least.min(p);
        count += 1.0;
    }
    (count * least).min(1.0)
}

/// P-values for their number (Holm): at most the level's part of sets of true hypotheses has one below
/// it, whatever their dependence.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut most: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        most = most.max(((p_values.len() - rank) as f64 * p_values[i]).min(1.0));
        adjusted[i] = most;
    }
    adjusted
}

/// Skewness and kurtosis of a sample together, against those of normal samples; `effective` are the sizes
/// of independent samples with the same variance of the third and the fourth moment. The p-value
/// (D'Agostino, Anscombe and Glynn); `None` of fewer than 20.
pub fn normality(values: &[f64], effective: [f64; 2]) -> Option<f64> {
    let n = values.len() as f64;
    if n < 20.0 || effective.iter().any(|e| *e < 20.0) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let moment = |power: i32| values.iter().map(|v| (v - mean).powi(power)).sum::<f64>() / n;
    let variance = moment(2);
    if variance <= 0.0 {
        return None;
    }
    let skewness = moment(3) / variance.powf(1.5);
    let kurtosis = moment(4) / variance.powi(2);
    let [n, m] = effective;
    // skewness to normal, Johnson's S_U
    let y = skewness * ((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0))).sqrt();
    let beta = 3.0 * (n * n + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0)
        / ((n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0));
    let w = (2.0 * (beta - 1.0)).sqrt() - 1.0;
    let delta = 1.0 / (0.5 * w.ln()).sqrt();
    let alpha = (2.0 / (w - 1.0)).sqrt();
    let of_skewness = delta * (y / alpha).asinh();
    // kurtosis to normal, by a cube root
    let expected = 3.0 * (m - 1.0) / (m + 1.0);
    let spread = 24.0 * m * (m - 2.0) * (m - 3.0) / ((m + 1.0).powi(2) * (m + 3.0) * (m + 5.0));
    let x = (kurtosis - expected) / spread.sqrt();
    let third = 6.0 * (m * m - 5.0 * m + 2.0) / ((m + 7.0) * (m + 9.0))
        * (6.0 * (m + 3.0) * (m + 5.0) / (m * (m - 2.0) * (m - 3.0))).sqrt();
    let a = 6.0 + 8.0 / third * (2.0 / third + (1.0 + 4.0 / (third * third)).sqrt());
    let ratio = (1.0 - 2.0 / a) / (1.0 + x * (2.0 / (a - 4.0)).sqrt());
    let of_kurtosis = (1.0 - 2.0 / (9.0 * a) - ratio.cbrt()) / (2.0 / (9.0 * a)).sqrt();
    Some(chi_square_tail(
        of_skewness.powi(2) + of_kurtosis.powi(2),
        2.0,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables of the normal distribution, on both sides of where the two expansions meet.
    #[test]
    fn tails_are_those_of_tables() {
        let known = [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (1.959_963_984_540_054, 0.025),
            (2.8, 2.555_130_330_427_932e-3),
            (2.9, 1.865_813_300_384_038e-3),
            (6.0, 9.865_876_450_376_946e-10),
            (-1.0, 0.841_344_746_068_543),
        ];
        for (z, p) in known {
            assert!(
                (normal_tail(z) / p - 1.0).abs() < 1e-12,
                "{z}: {}",
                normal_tail(z)
            );
        }
        // the 95 % point of 20 degrees of freedom
        assert!((chi_square_tail(31.410, 20.0) - 0.05).abs() < 5e-4);
    }

    /// Holm's own example: 0.01, 0.04, 0.03, 0.005 at 5 %.
    #[test]
    fn holm_counts_the_tests() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert!(
            adjusted
                .iter()
                .zip(expected)
                .all(|(a, e)| (a - e).abs() < 1e-15)
        );
    }

    /// SciPy's normaltest of the squares of 0 … 49: p = 0.036590937536.
    #[test]
    fn normality_is_that_of_others() {
        let values: Vec<f64> = (0..50).map(|k| f64::from(k * k)).collect();
        let p = normality(&values, [50.0, 50.0]).unwrap();
        assert!((p / 0.036_590_937_536_167_25 - 1.0).abs() < 1e-6, "{p}");
    }
}
