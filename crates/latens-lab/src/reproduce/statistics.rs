//! Order statistics over seeds, and Wilcoxon's signed-rank test.

/// A value at a part of the ordered ones, between neighbours in proportion; infinite ones count as
/// the largest. NaN of none.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = part * last as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    if low == high {
        low
    } else {
        low + (at - at.floor()) * (high - low)
    }
}

/// What Wilcoxon's test says of paired differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wilcoxon {
    /// Pairs that differ.
    pub pairs: usize,
    /// Sum of the ranks of the positive differences.
    pub positive: f64,
    /// Two-sided probability of a sum as extreme where neither is better.
    pub p: f64,
}

/// Pairs up to which the distribution is counted out; above, it is taken as normal.
const EXACT_PAIRS: usize = 30;

/// Tests differences; those that are zero say nothing and are left out, infinite ones are the
/// largest. Ties share their ranks.
pub fn wilcoxon(differences: &[f64]) -> Wilcoxon {
    let mut nonzero: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|d| *d != 0.0 && !d.is_nan())
        .collect();
    nonzero.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // ranks times two, so that shared ones are whole
    let mut ranks = vec![0_usize; nonzero.len()];
    let (mut from, mut ties) = (0, 0.0);
    while from < nonzero.len() {
        let same = nonzero[from..]
            .iter()
            .take_while(|d| d.abs() == nonzero[from].abs())
            .count();
        ranks[from..from + same].fill(2 * from + same + 1);
        let t = same as f64;
        ties += t * t * t - t;
        from += same;
    }
    let signed = nonzero.iter().zip(&ranks);
    let positive: usize = signed.filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    let n = nonzero.len() as f64;
    let p = match nonzero.len() {
        0 => 1.0,
        count if count <= EXACT_PAIRS => counted(&ranks, positive),
        _ => {
            let mean = n * (n + 1.0) / 4.0;
            let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
            let off = ((positive as f64 / 2.0 - mean).abs() - 0.5).max(0.0);
            tail(off / variance.sqrt())
        }
    };
    Wilcoxon {
        pairs: nonzero.len(),
        positive: positive as f64 / 2.0,
        p,
    }
}

/// Of all ways to give signs to the ranks, the part whose sum is as far from the middle.
fn counted(ranks: &[usize], positive: usize) -> f64 {
    let whole: usize = ranks.iter().sum();
    let mut ways = vec![0.0; whole + 1];
    ways[0] = 1.0;
    for &rank in ranks {
        for sum in (rank..=whole).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let off = |sum: usize| (2 * sum).abs_diff(whole);
    let extreme = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| off(*sum) >= off(positive));
    let extreme: f64 = extreme.map(|(_, ways)| ways).sum();
    extreme / 2f64.powi(ranks.len() as i32)
}

/// Both tails of the normal distribution beyond z, to 1e-7 of the whole (Abramowitz and Stegun
/// 7.1.26 for the error function).
fn tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    series * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|p| quantile(&values, p)),
            [1.0, 1.75, 2.5, 4.0]
        );
        assert_eq!(
            quantile(&[1.0, f64::INFINITY, f64::INFINITY], 0.5),
            f64::INFINITY
        );
        assert!(quantile(&[], 0.5).is_nan());
    }

    /// Depression scores in thousandths (Hollander and Wolfe 1973, p. 29): T = 40, one-sided 0.01953; tables' critical
    /// values; a brute-force count with ties.
    #[test]
    fn the_test_gives_published_values() {
        let x = [1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300];
        let y = [878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290];
        let pairs = x.iter().zip(y);
        let differences: Vec<f64> = pairs.map(|(x, y)| f64::from(x - y)).collect();
        let found = wilcoxon(&differences);
        assert_eq!((found.pairs, found.positive), (9, 40.0));
        assert!((found.p - 2.0 * 0.019_531_25).abs() < 1e-12, "{}", found.p);
        // five of five: two of 32 ways; six of six: two of 64
        assert_eq!(wilcoxon(&[1.0, 2.0, 3.0, 4.0, 5.0]).p, 2.0 / 32.0);
        assert_eq!(
            wilcoxon(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]).p,
            2.0 / 64.0
        );
        // n = 10: the tables' two-sided 5 % value is 8
        let ranks = |small: &[usize]| -> Vec<f64> {
            (1..=10)
                .map(|r| {
                    if small.contains(&r) {
                        -(r as f64)
                    } else {
                        r as f64
                    }
                })
                .collect()
        };
        assert!(wilcoxon(&ranks(&[8])).p < 0.05 && wilcoxon(&ranks(&[9])).p > 0.05);
        assert_eq!(wilcoxon(&[0.0, 0.0]).p, 1.0);
        let tied: [f64; 6] = [1.0, -1.0, 2.0, 2.0, -3.0, f64::INFINITY];
        let ranks = [1.5, 1.5, 3.5, 3.5, 5.0, 6.0];
        let sum = |signs: u32| {
            (0..6)
                .filter(|i| signs >> i & 1 == 1)
                .map(|i| ranks[i])
                .sum::<f64>()
        };
        let seen: f64 = 1.5 + 3.5 + 3.5 + 6.0;
        let extreme = (0..64).filter(|s| (sum(*s) - 10.5).abs() >= (seen - 10.5).abs());
        let found = wilcoxon(&tied);
        assert_eq!(
            (found.positive, found.p),
            (seen, extreme.count() as f64 / 64.0)
        );
    }

    /// Where both are at hand, the normal distribution is near the count.
    #[test]
    fn many_pairs_are_nearly_normal() {
        let many: Vec<f64> = (1..=31)
            .map(|r| f64::from(r) * if r % 3 == 0 { -1.0 } else { 1.0 })
            .collect();
        let ranks: Vec<usize> = (1..=31).map(|r| 2 * r).collect();
        let found = wilcoxon(&many);
        let exact = counted(&ranks, (2.0 * found.positive) as usize);
        assert!(
            (found.p - exact).abs() < 0.01 * exact.max(0.05),
            "{} {exact}",
            found.p
        );
        assert!((tail(1.959_964) - 0.05).abs() < 1e-6);
    }
}
