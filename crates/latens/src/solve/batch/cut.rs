//! The posterior of constants that have bounds: a normal one, cut at them.
//!
//! With H the curvature of the objective at its minimum within the bounds and g the pull that is left
//! there, which is zero but where a bound holds a constant, the posterior of δ = θ − θ̂ is
//!
//! ```text
//! p(δ) ∝ exp(gᵀδ − ½ δᵀHδ)  within the bounds,    the normal one with mean C g and C = H⁻¹, cut
//! ```
//!
//! The few constants near a bound are drawn by themselves; all others follow them as in the normal
//! distribution, δ_r ← δ_r + C_rb C_bb⁻¹ (new δ_b − δ_b), which is exact.

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::evidence::Posterior;
use crate::model::Model;
use crate::model::small::{apply, identity, solve};
use crate::numerics::bounded::{Bounds, Truncated, increment, moments};
use crate::numerics::linalg::{PackedCovariance, Precision};

/// Deviations beyond which a bound is not felt.
const FELT_DEVIATIONS: f64 = 8.0;
/// Draws that the moments and the interval of a constant are taken from.
const DRAWS: usize = 10_000;

/// What is left of a posterior within bounds.
pub(super) struct Cut {
    pub draws: Vec<Vec<f64>>,
    pub covariance: PackedCovariance,
    /// Of each constant, the entries of θ between which it lies with 95 %, where a bound is felt.
    pub intervals: Vec<Option<(f64, f64)>>,
    /// Of each constant with bounds, how much of what is left of its prior variance within them the data
    /// have taken away.
    pub determined: Vec<Option<f64>>,
    /// What the bounds add to ln p(y).
    pub log: f64,
}

/// The posterior around θ with its draws, cut at the bounds of the model's constants.
pub(super) fn cut(
    posterior: &Posterior,
    model: &Model,
    theta: &[f64],
    draws: Vec<Vec<f64>>,
    precision: Precision,
) -> Cut {
    let mut all = Cut {
        covariance: posterior.covariance(precision),
        intervals: vec![None; model.unknowns.len()],
        determined: vec![None; model.unknowns.len()],
        log: 0.0,
        draws,
    };
    let bounds: Vec<Bounds> = model.unknowns.iter().map(|u| u.bounds()).collect();
    let finite = |b: &Bounds| b.0.is_finite() || b.1.is_finite();
    if !bounds.iter().any(finite) {
        return all;
    }
    let held = |i: usize| theta[i] == bounds[i].0 || theta[i] == bounds[i].1;
    let columns: Vec<Vec<f64>> = (0..bounds.len()).map(|i| posterior.column(i)).collect();
    let mut shift = vec![0.0; theta.len()];
    for i in (0..bounds.len()).filter(|&i| held(i)) {
        let pull = posterior.pull(i, theta);
        all.log += 0.5 * pull * shift_of(&columns[i], pull, &mut shift, i);
    }
    let felt = |&i: &usize| {
        let (mean, std) = (theta[i] + shift[i], columns[i][i].sqrt());
        mean - FELT_DEVIATIONS * std < bounds[i].0 || mean + FELT_DEVIATIONS * std > bounds[i].1
    };
    let near: Vec<usize> = (0..bounds.len()).filter(felt).collect();
    // as they are, but within the bounds, where there is nothing to invert
    all.within(&near, &bounds, theta, &columns, &shift);
    for (i, bound) in bounds.iter().enumerate().filter(|(_, b)| finite(b)) {
        let prior = moments(0.0, posterior.prior_std(i), *bound);
        let left = all.covariance.variance(i) / prior.variance;
        all.determined[i] = Some((1.0 - left).clamp(0.0, 1.0));
        all.log -= prior.log_mass;
    }
    for draw in &mut all.draws {
        for (i, bound) in bounds.iter().enumerate().filter(|(_, b)| finite(b)) {
            draw[i] = increment(theta[i], theta[i] + draw[i], *bound);
        }
    }
    all
}

/// Adds what a pull at one entry of θ makes of the mean; gives what it makes of that entry, with what
/// pulls before it have made of it counted twice, as in gᵀCg.
fn shift_of(column: &[f64], pull: f64, shift: &mut [f64], i: usize) -> f64 {
    let before = shift[i];
    shift
        .iter_mut()
        .zip(column)
        .for_each(|(s, c)| *s += pull * c);
    before + shift[i]
}

impl Cut {
    fn within(
        &mut self,
        near: &[usize],
        bounds: &[Bounds],
        theta: &[f64],
        columns: &[Vec<f64>],
        shift: &[f64],
    ) -> Option<()> {
        let k = near.len();
        if k == 0 {
            return Some(());
        }
        let pairs = near.iter().flat_map(|&i| near.iter().map(move |&j| (i, j)));
        let covariance: Vec<f64> = pairs.map(|(i, j)| columns[i][j]).collect();
        let near_bounds: Vec<Bounds> = near.iter().map(|&i| bounds[i]).collect();
        let mean: Vec<f64> = near.iter().map(|&i| theta[i] + shift[i]).collect();
        let start: Vec<f64> = near.iter().map(|&i| theta[i]).collect();
        let truncated = Truncated {
            mean: &mean,
            covariance: &covariance,
            bounds: &near_bounds,
        };
        let mut rng = Pcg64::seed_from_u64(1);
        let points = truncated.draws(&start, DRAWS, &mut rng)?;
        self.log += truncated.log_mass(&mut rng)?;
        // C_bb⁻¹, and with it how all others follow
        let mut inverse = identity(k);
        solve(&mut covariance.clone(), &mut inverse, k).ok()?;
        let follow = |by: &[f64]| {
            let mut weights = vec![0.0; k];
            apply(&inverse, by, &mut weights);
            let entry = |r: usize| {
                near.iter()
                    .zip(&weights)
                    .map(|(&i, w)| columns[i][r] * w)
                    .sum()
            };
            (0..theta.len()).map(entry).collect::<Vec<f64>>()
        };
        // far from each other in the chain
        let chosen = points.iter().step_by(DRAWS / self.draws.len().max(1));
        for (draw, point) in self.draws.iter_mut().zip(chosen) {
            let shifts = near.iter().zip(point).zip(&mean);
            let by: Vec<f64> = shifts.map(|((&i, x), m)| x - m - draw[i]).collect();
            let moved = follow(&by);
            for (d, (m, s)) in draw.iter_mut().zip(moved.iter().zip(shift)) {
                *d += m + s;
            }
        }
        for (place, &i) in near.iter().enumerate() {
            let mut values: Vec<f64> = points.iter().map(|p| p[place]).collect();
            values.sort_by(f64::total_cmp);
            let at = |part: f64| values[(part * (DRAWS - 1) as f64) as usize];
            self.intervals[i] = Some(if theta[i] == bounds[i].0 {
                (theta[i], at(0.95))
            } else if theta[i] == bounds[i].1 {
                (at(0.05), theta[i])
            } else {
                (at(0.025), at(0.975))
            });
        }
        self.covariance = narrowed(self.covariance.clone(), &points, &covariance, k, follow);
        Some(())
    }
}

/// C + K (S − C_bb) Kᵀ: the covariance when that of the cut constants is S, the draws' own.
fn narrowed(
    mut before: PackedCovariance,
    points: &[Vec<f64>],
    covariance: &[f64],
    k: usize,
    follow: impl Fn(&[f64]) -> Vec<f64>,
) -> PackedCovariance {
    let count = points.len() as f64;
    let mean: Vec<f64> = (0..k)
        .map(|a| points.iter().map(|p| p[a]).sum::<f64>() / count)
        .collect();
    let change = |a: usize, b: usize| {
        let changes = points.iter().map(|p| (p[a] - mean[a]) * (p[b] - mean[b]));
        changes.sum::<f64>() / count - covariance[a * k + b]
    };
    let gains: Vec<Vec<f64>> = (0..k)
        .map(|a| follow(&identity(k)[a * k..(a + 1) * k]))
        .collect();
    let (n, precision) = (before.dim(), before.precision());
    let mut packed = before.to_packed();
    for a in 0..k {
        for b in 0..k {
            let change = change(a, b);
            for i in 0..n {
                for j in 0..=i {
                    packed[i * (i + 1) / 2 + j] += gains[a][i] * change * gains[b][j];
                }
            }
        }
    }
    PackedCovariance::from_packed(n, packed, precision)
}
