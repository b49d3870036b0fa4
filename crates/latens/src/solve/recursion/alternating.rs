//! The alternating recursion (the paper's Theorem 1, corrected).
//!
//! At step i, with f_i = f_o(x̂, u, θ̂), F_x, F_θ at step i−1 and H = ∂h/∂x at f_i:
//!
//! ```text
//! P_x⁻ = F_x P_x F_xᵀ + Q_x,   S = H P_x⁻ Hᵀ + R_y,   K_x = P_x⁻ Hᵀ S⁻¹
//! x̂ ← f_i + K_x (y_i − h(f_i)),   P_x by the Joseph form
//! S_θ = Q + F_θ P_θ F_θᵀ,   K_θ = P_θ F_θᵀ S_θ⁻¹
//! θ̂ ← θ̂ + K_θ (x̂ − f_i),   P_θ ← P_θ − K_θ F_θ P_θ + Q_θ
//! ```
//!
//! Only the unknown rows of F_θ are other than zero and Q is diagonal, so they are taken one
//! after another: O(d_θ²) each, with P_θ read once. Departures from print are in
//! `docs/explain/paper.md`; the printed θ equations,
//!
//! ```text
//! P_θ⁻ = P_θ − P_θ F_θᵀ (Q + F_θ P_θ F_θᵀ) F_θ P_θ,   θ̂ ← θ̂ + P_θ⁻ F_θᵀ (x̂ − f_i),
//! ```
//!
//! are kept as the variant `as_printed`. Q of the θ step may be apart from Q_x: it is
//! (c σ_x)² and, where asked for, the variance of x̂ itself, because x̂ − f_i tells as little
//! about θ as x̂ is known.
//!
//! Segments: the record is cut into segments that advance side by side; all rows of a tick are
//! linearised at one θ and update it together. Q_θ is added once a tick, however many there are.

use super::sweep::{Pass, Segment, Sweep};
use crate::Error;
use crate::filter::ExtendedFilter;
use crate::model::small::{cholesky, dot};

/// What the θ step does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Corrected,
    AsPrinted,
}

/// The rows of F_θ of one tick, over all sweeps.
struct Rows {
    gradients: Vec<f64>,
    /// x̂ − f_i, the variance of its noise, and the sweep it comes from.
    residuals: Vec<(f64, f64, usize)>,
    /// P_θ F_θᵀ, row by row; for the printed form only.
    products: Vec<f64>,
}

/// One pass over all segments, side by side.
pub fn sweep(pass: &mut Pass, segments: &[Segment], form: Form) -> Result<(), Error> {
    let parameters = pass.theta.len();
    let rows = pass.stepper.rows().to_vec();
    let mut sweeps: Vec<Sweep> = segments.iter().map(|s| Sweep::new(pass, s)).collect();
    let most = sweeps.len() * rows.len();
    let mut taken = Rows {
        gradients: vec![0.0; most * parameters],
        residuals: Vec::with_capacity(most),
        products: vec![
            0.0;
            if form == Form::AsPrinted {
                most * parameters
            } else {
                0
            }
        ],
    };
    let mut small = vec![0.0; 3 * most * most];
    let mut before = pass.theta.clone();
    let (mut g, mut difference) = (vec![0.0; parameters], vec![0.0; parameters]);
    let ticks = segments.iter().map(|s| s.samples.len()).max().unwrap_or(0);
    for tick in 1..ticks {
        taken.residuals.clear();
        for (number, sweep) in sweeps.iter_mut().enumerate() {
            if tick >= sweep.segment.samples.len() {
                continue;
            }
            sweep.advance(pass, tick, true)?;
            sweep.correct(pass, tick)?;
            let ExtendedFilter {
                states, step, span, ..
            } = &sweep.filter;
            let n = states.mean.len();
            for (&row, gradient) in rows.iter().zip(step.f_theta.chunks_exact(parameters)) {
                // a row that θ does not reach in this step
                if gradient.iter().all(|g| *g == 0.0) {
                    continue;
                }
                let process = pass.noise.process[row] * span.samples;
                let mut q = process * pass.settings.parameter_noise.powi(2);
                if pass.settings.count_state_uncertainty {
                    q += states.covariance[row * n + row];
                }
                let at = taken.residuals.len() * parameters;
                taken.gradients[at..at + parameters].copy_from_slice(gradient);
                let residual = states.mean[row] - step.next[row];
                taken.residuals.push((residual, q, number));
            }
        }
        before.copy_from_slice(&pass.theta);
        let outcome = match form {
            Form::Corrected => corrected(pass, &taken, &before, &mut g, &mut difference),
            Form::AsPrinted => printed(pass, &mut taken, &mut small, &mut g),
        };
        if let Err((sweep, spread)) = outcome {
            return Err(pass.indefinite(&sweeps[sweep], tick, spread));
        }
        pass.drift(&before);
        pass.tick(tick, &sweeps[0], tick, ticks)?;
    }
    Ok(())
}

/// The rows one after another, each with what those before it have left to explain: with a
/// diagonal Q that is the update with all of them stacked. `Err`: (sweep, F_θ P_θ F_θᵀ) of a row
/// at which P_θ is no covariance any more.
fn corrected(
    pass: &mut Pass,
    rows: &Rows,
    linearised_at: &[f64],
    g: &mut [f64],
    difference: &mut [f64],
) -> Result<(), (usize, f64)> {
    let gradients = rows.gradients.chunks_exact(pass.theta.len());
    for (gradient, &(residual, q, sweep)) in gradients.zip(&rows.residuals) {
        pass.covariance.apply(gradient, g);
        let spread = dot(gradient, g);
        let s = q + spread;
        if !(spread >= 0.0 && s > 0.0 && s.is_finite()) {
            return Err((sweep, spread));
        }
        for (d, (a, b)) in difference
            .iter_mut()
            .zip(pass.theta.iter().zip(linearised_at))
        {
            *d = a - b;
        }
        let factor = (residual - dot(gradient, difference)) / s;
        for (t, g) in pass.theta.iter_mut().zip(g.iter()) {
            *t += factor * g;
        }
        pass.covariance.downdate(g, 1.0 / s);
    }
    Ok(())
}

/// All rows at once, as in print: with G = P_θ F_θᵀ, M = F_θ G and S = Q + M,
/// θ ← θ + G (r − S M r) and P_θ ← P_θ − G S Gᵀ, the latter by the columns of G L, S = L Lᵀ.
fn printed(
    pass: &mut Pass,
    rows: &mut Rows,
    small: &mut [f64],
    column: &mut [f64],
) -> Result<(), (usize, f64)> {
    let (p, count) = (pass.theta.len(), rows.residuals.len());
    let gradient = |r: usize| r * p..(r + 1) * p;
    for r in 0..count {
        pass.covariance.apply(
            &rows.gradients[gradient(r)],
            &mut rows.products[gradient(r)],
        );
    }
    let (m, rest) = small.split_at_mut(count * count);
    let (s, rest) = rest.split_at_mut(count * count);
    let factor = &mut rest[..count];
    for i in 0..count {
        for j in 0..count {
            m[i * count + j] = dot(&rows.gradients[gradient(i)], &rows.products[gradient(j)]);
        }
        let (_, q, sweep) = rows.residuals[i];
        let spread = m[i * count + i];
        if !(spread >= 0.0 && (q + spread).is_finite()) {
            return Err((sweep, spread));
        }
    }
    s.copy_from_slice(m);
    for i in 0..count {
        s[i * count + i] += rows.residuals[i].1;
    }
    // r − S (M r)
    let seen = |i: usize| -> f64 {
        (0..count)
            .map(|j| m[i * count + j] * rows.residuals[j].0)
            .sum()
    };
    for (i, f) in factor.iter_mut().enumerate() {
        let back: f64 = (0..count).map(|k| s[i * count + k] * seen(k)).sum();
        *f = rows.residuals[i].0 - back;
    }
    for (r, f) in factor.iter().enumerate() {
        for (t, g) in pass.theta.iter_mut().zip(&rows.products[gradient(r)]) {
            *t += f * g;
        }
    }
    cholesky(s, count).map_err(|i| (rows.residuals[i].2, s[i * count + i]))?;
    for j in 0..count {
        column.fill(0.0);
        for i in j..count {
            for (c, g) in column.iter_mut().zip(&rows.products[gradient(i)]) {
                *c += s[i * count + j] * g;
            }
        }
        pass.covariance.downdate(column, 1.0);
    }
    Ok(())
}
