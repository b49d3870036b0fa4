//! Normal distributions within bounds: the likeliest point, draws, and moments.
//!
//! Few variables, as many as there are constants with bounds; matrices are dense, row by row.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use crate::model::small::{cholesky, identity, solve};

/// The least and the greatest value of a variable; infinite where there is none.
pub type Bounds = (f64, f64);

/// Where a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    Least,
    Most,
}

/// The w for which center + S w is the likeliest point of N(center, S) within bounds: zero for every
/// variable that is free there.
///
/// Murty's principal pivoting: of the variables that are out of bounds, or held by a bound from which
/// they pull away, the first one changes; for a positive definite S that ends. `None` where it does
/// not, for rounding.
pub fn pull(covariance: &[f64], center: &[f64], bounds: &[Bounds]) -> Option<Vec<f64>> {
    let n = center.len();
    let mut places = vec![Place::Free; n];
    for _ in 0..100 * (n + 1) {
        let held: Vec<usize> = (0..n).filter(|&i| places[i] != Place::Free).collect();
        let pairs = held.iter().flat_map(|&i| held.iter().map(move |&j| (i, j)));
        let mut block: Vec<f64> = pairs.map(|(i, j)| covariance[i * n + j]).collect();
        let away = held.iter().map(|&i| match places[i] {
            Place::Least => bounds[i].0 - center[i],
            _ => bounds[i].1 - center[i],
        });
        let mut distances: Vec<f64> = away.collect();
        if !held.is_empty() {
            solve(&mut block, &mut distances, held.len()).ok()?;
        }
        let mut weights = vec![0.0; n];
        held.iter()
            .zip(&distances)
            .for_each(|(&i, w)| weights[i] = *w);
        let wrong = (0..n).find_map(|i| {
            let moved: f64 = (0..n).map(|j| covariance[i * n + j] * weights[j]).sum();
            let next = match places[i] {
                Place::Free if center[i] + moved < bounds[i].0 => Place::Least,
                Place::Free if center[i] + moved > bounds[i].1 => Place::Most,
                Place::Least if weights[i] < 0.0 => Place::Free,
                Place::Most if weights[i] > 0.0 => Place::Free,
                _ => return None,
            };
            Some((i, next))
        });
        match wrong {
            Some((i, next)) => places[i] = next,
            None => return weights.iter().all(|w| w.is_finite()).then_some(weights),
        }
    }
    None
}

/// The increment from a value to another one, kept within bounds to the last bit.
pub fn increment(from: f64, to: f64, (least, most): Bounds) -> f64 {
    let mut step = to.clamp(least, most) - from;
    while from + step < least {
        step = step.next_up();
    }
    while from + step > most {
        step = step.next_down();
    }
    step
}

/// What is left of a normal variable within bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// ln of its probability to be there.
    pub log_mass: f64,
    pub mean: f64,
    pub variance: f64,
}

/// By Simpson's rule, as precise in the tails as in the middle.
pub fn moments(mean: f64, std: f64, bounds: Bounds) -> Moments {
    const PANELS: usize = 2000;
    let (least, most) = ((bounds.0 - mean) / std, (bounds.1 - mean) / std);
    let peak = 0.0_f64.clamp(least, most);
    // beyond this the density is e⁻⁷² of what it is at the peak
    let reach = 12.0_f64.min(72.0 / peak.abs());
    let (from, to) = (least.max(peak - reach), most.min(peak + reach));
    let step = (to - from) / PANELS as f64;
    let mut sums = [0.0; 3];
    for k in 0..=PANELS {
        let z = from + k as f64 * step;
        let weight = match k {
            0 | PANELS => 1.0,
            _ if k % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let density = weight * (0.5 * (peak * peak - z * z)).exp();
        for (power, sum) in sums.iter_mut().enumerate() {
            *sum += density * (z - peak).powi(power as i32);
        }
    }
    let [mass, first, second] = sums;
    let (first, second) = (first / mass, second / mass);
    Moments {
        log_mass: (mass * step / 3.0).ln() - 0.5 * (peak * peak + std::f64::consts::TAU.ln()),
        mean: mean + std * (peak + first),
        variance: std * std * (second - first * first),
    }
}

/// A draw of a standard normal variable within bounds; by rejection, exact in the tails (Robert,
/// *Simulation of truncated normal variables*, 1995).
fn draw(rng: &mut impl Rng, least: f64, most: f64) -> f64 {
    if most < 0.0 {
        return -draw(rng, -most, -least);
    }
    if least <= 0.0 && most - least > 1.0 {
        loop {
            let z: f64 = StandardNormal.sample(rng);
            if (least..=most).contains(&z) {
                return z;
            }
        }
    }
    let rate = 0.5 * (least + (least * least + 4.0).sqrt());
    if least > 0.0 && (most - least) * rate > 1.0 {
        loop {
            let z = least - (1.0 - rng.random::<f64>()).ln() / rate;
            if z <= most && rng.random::<f64>() <= (-0.5 * (z - rate).powi(2)).exp() {
                return z;
            }
        }
    }
    let peak = least.max(0.0);
    loop {
        let z = least + (most - least) * rng.random::<f64>();
        if rng.random::<f64>() <= (0.5 * (peak * peak - z * z)).exp() {
            return z;
        }
    }
}

/// N(mean, S) within bounds.
pub struct Truncated<'a> {
    pub mean: &'a [f64],
    pub covariance: &'a [f64],
    pub bounds: &'a [Bounds],
}

impl Truncated<'_> {
    /// Draws by Gibbs' sampler, from a point within the bounds; `None` where S has no inverse.
    pub fn draws(&self, start: &[f64], count: usize, rng: &mut impl Rng) -> Option<Vec<Vec<f64>>> {
        const SKIPPED_SWEEPS: usize = 200;
        const SWEEPS_PER_DRAW: usize = 10;
        let n = start.len();
        let mut precision = identity(n);
        solve(&mut self.covariance.to_vec(), &mut precision, n).ok()?;
        let sound = |i: usize| precision[i * n + i] > 0.0 && precision[i * n + i].is_finite();
        if !(0..n).all(|i| sound(i) && self.mean[i].is_finite()) {
            return None;
        }
        let mut point = start.to_vec();
        let mut draws = Vec::with_capacity(count);
        for sweep in 0..SKIPPED_SWEEPS + SWEEPS_PER_DRAW * count {
            for i in 0..n {
                let row = &precision[i * n..(i + 1) * n];
                let others = (0..n).filter(|&j| j != i);
                let pull: f64 = others.map(|j| row[j] * (point[j] - self.mean[j])).sum();
                let (mean, std) = (self.mean[i] - pull / row[i], row[i].powf(-0.5));
                let (least, most) = self.bounds[i];
                let z = draw(rng, (least - mean) / std, (most - mean) / std);
                point[i] = (mean + std * z).clamp(least, most);
            }
            if sweep >= SKIPPED_SWEEPS
                && (sweep - SKIPPED_SWEEPS) % SWEEPS_PER_DRAW == SWEEPS_PER_DRAW - 1
            {
                draws.push(point.clone());
            }
        }
        Some(draws)
    }

    /// ln of the probability to be within the bounds, by the sampler of Geweke, Hajivassiliou and Keane:
    /// exact for one variable.
    pub fn log_mass(&self, rng: &mut impl Rng) -> Option<f64> {
        let n = self.mean.len();
        let count = if n == 1 { 1 } else { 300 };
        let mut root = self.covariance.to_vec();
        cholesky(&mut root, n).ok()?;
        let mut logs = Vec::with_capacity(count);
        for _ in 0..count {
            let (mut z, mut log) = (Vec::with_capacity(n), 0.0);
            for (i, (mean, (least, most))) in self.mean.iter().zip(self.bounds).enumerate() {
                let row = &root[i * n..i * n + i];
                let mean = mean
                    + row
                        .iter()
                        .zip(&z)
                        .map(|(l, z): (&f64, &f64)| l * z)
                        .sum::<f64>();
                let std = root[i * n + i];
                log += moments(mean, std, (*least, *most)).log_mass;
                z.push(draw(rng, (least - mean) / std, (most - mean) / std));
            }
            logs.push(log);
        }
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = logs.iter().map(|l| (l - most).exp()).sum::<f64>() / count as f64;
        Some(most + mean.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    /// Half of a normal variable has mean √(2/π) and variance 1 − 2/π; far out, a tail is exponential
    /// with the distance as its rate; without bounds nothing changes.
    #[test]
    fn moments_have_closed_forms() {
        let half = moments(1.0, 2.0, (1.0, f64::INFINITY));
        let pi = std::f64::consts::PI;
        assert!((half.log_mass - 0.5_f64.ln()).abs() < 1e-10);
        assert!((half.mean - 1.0 - 2.0 * (2.0 / pi).sqrt()).abs() < 1e-9);
        assert!((half.variance - 4.0 * (1.0 - 2.0 / pi)).abs() < 1e-9);
        let tail = moments(-1000.0, 1.0, (0.0, f64::INFINITY));
        assert!((tail.mean * 1000.0 - 1.0).abs() < 1e-5);
        assert!((tail.variance * 1e6 - 1.0).abs() < 1e-4);
        let whole = moments(3.0, 0.5, (f64::NEG_INFINITY, f64::INFINITY));
        assert!(whole.log_mass.abs() < 1e-10 && (whole.mean - 3.0).abs() < 1e-12);
        assert!((whole.variance - 0.25).abs() < 1e-10);
        // a flat density between −1 and 1
        assert!((moments(0.0, 100.0, (-1.0, 1.0)).variance - 1.0 / 3.0).abs() < 1e-4);
    }

    /// At the likeliest point within bounds the gradient pulls against every bound that holds, and
    /// vanishes in the other directions: Karush, Kuhn and Tucker.
    #[test]
    fn the_likeliest_point_obeys_its_conditions() {
        let s = [2.0, 1.5, 0.3, 1.5, 2.0, -0.4, 0.3, -0.4, 1.0];
        let bounds = [(0.0, 1.0), (-1.0, 0.5), (-0.2, f64::INFINITY)];
        for center in [
            [2.0, 0.1, 0.0],
            [-1.0, 3.0, -2.0],
            [0.5, 0.0, 1.0],
            [5.0, -9.0, -3.0],
        ] {
            let w = pull(&s, &center, &bounds).unwrap();
            for i in 0..3 {
                let x: f64 = center[i] + (0..3).map(|j| s[3 * i + j] * w[j]).sum::<f64>();
                let (least, most) = bounds[i];
                assert!(x > least - 1e-12 && x < most + 1e-12);
                match w[i] {
                    w if w > 0.0 => assert!((x - least).abs() < 1e-12),
                    w if w < 0.0 => assert!((x - most).abs() < 1e-12),
                    _ => {}
                }
            }
        }
    }

    /// Draws of two correlated variables stay within their bounds and have the moments that numbers of
    /// a rejection sampler have; of one variable, those of the closed form.
    #[test]
    fn draws_are_those_of_the_truncated_distribution() {
        let mut rng = Pcg64::seed_from_u64(3);
        let (s, mean) = ([1.0, 0.8, 0.8, 1.0], [-0.5, 0.2]);
        let bounds = [(0.0, f64::INFINITY), (f64::NEG_INFINITY, 0.3)];
        let truncated = Truncated {
            mean: &mean,
            covariance: &s,
            bounds: &bounds,
        };
        let draws = truncated.draws(&[0.1, 0.1], 20_000, &mut rng).unwrap();
        assert!(draws.iter().all(|d| d[0] >= 0.0 && d[1] <= 0.3));
        let (mut sum, mut kept, tried) = ([0.0; 2], 0.0, 2_000_000);
        for _ in 0..tried {
            let a: f64 = StandardNormal.sample(&mut rng);
            let b: f64 = StandardNormal.sample(&mut rng);
            let x = [mean[0] + a, mean[1] + 0.8 * a + 0.6 * b];
            if x[0] >= 0.0 && x[1] <= 0.3 {
                kept += 1.0;
                (0..2).for_each(|i| sum[i] += x[i]);
            }
        }
        for i in 0..2 {
            let mean = draws.iter().map(|d| d[i]).sum::<f64>() / 20_000.0;
            assert!(
                (mean - sum[i] / kept).abs() < 0.01,
                "{mean} {}",
                sum[i] / kept
            );
        }
        let mass = truncated.log_mass(&mut rng).unwrap().exp();
        assert!(
            (mass / (kept / f64::from(tried)) - 1.0).abs() < 0.1,
            "{mass}"
        );
        for (least, most) in [(3.0, f64::INFINITY), (2.0, 2.1), (-4.0, -3.0), (-0.1, 0.2)] {
            let all: Vec<f64> = (0..20_000).map(|_| draw(&mut rng, least, most)).collect();
            assert!(all.iter().all(|z| (least..=most).contains(z)));
            let expected = moments(0.0, 1.0, (least, most));
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            assert!((mean - expected.mean).abs() < 5.0 * (expected.variance / 2e4).sqrt());
        }
    }
}
