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
//! `docs/paper.md`; the printed θ equations,
//!
//! ```text
//! P_θ⁻ = P_θ − P_θ F_θᵀ (Q + F_θ P_θ F_θᵀ) F_θ P_θ,   θ̂ ← θ̂ + P_θ⁻ F_θᵀ (x̂ − f_i),
//! ```
//!
//! are kept as the variant `as_printed`. Q of the θ step may be apart from Q_x: it is
//! (c σ_x)² and, where asked for, the variance of x̂ itself, because x̂ − f_i tells as little
//! about θ as x̂ is known.
//!
//! Streams: the record is cut into segments that advance side by side; all rows of a tick are
//! linearised at one θ and then taken in turn, which equals one update with all of them stacked.

use super::epoch::{Epoch, Segment, Sweep};
use crate::Error;
use crate::linalg::small::dot;

/// What the θ step does with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Corrected,
    AsPrinted,
}

/// One pass over all segments, side by side.
pub fn sweep(epoch: &mut Epoch, segments: &[Segment], form: Form) -> Result<(), Error> {
    let parameters = epoch.theta.len();
    let rows = epoch.stepper.rows().to_vec();
    let mut streams: Vec<Sweep> = segments.iter().map(|s| Sweep::new(epoch, s)).collect();
    // F_θ, residual and noise of all rows of a tick
    let mut gradients = vec![0.0; streams.len() * rows.len() * parameters];
    let mut residuals = vec![(0.0, 0.0); streams.len() * rows.len()];
    let (mut linearised_at, mut g) = (epoch.theta.clone(), vec![0.0; parameters]);
    let mut difference = vec![0.0; parameters];
    let ticks = segments.iter().map(|s| s.samples.len()).max().unwrap_or(0);
    for tick in 1..ticks {
        let mut count = 0;
        for stream in &mut streams {
            if tick >= stream.segment.samples.len() {
                continue;
            }
            stream.advance(epoch, tick, true)?;
            stream.correct(epoch, tick)?;
            let n = stream.filter.mean.len();
            let row_gradients = stream.step.f_theta.chunks_exact(parameters);
            for (&row, gradient) in rows.iter().zip(row_gradients) {
                let q = epoch.noise.process[row] * epoch.settings.parameter_noise.powi(2);
                let own = stream.filter.covariance[row * n + row];
                let counted = if epoch.settings.count_state_uncertainty {
                    own
                } else {
                    0.0
                };
                gradients[count * parameters..(count + 1) * parameters].copy_from_slice(gradient);
                residuals[count] = (stream.filter.mean[row] - stream.step.next[row], q + counted);
                count += 1;
            }
        }
        linearised_at.copy_from_slice(&epoch.theta);
        for (gradient, &(residual, q)) in gradients
            .chunks_exact(parameters)
            .zip(&residuals)
            .take(count)
        {
            epoch.covariance.apply(gradient, &mut g);
            let spread = dot(gradient, &g);
            let s = q + spread;
            if !(spread >= 0.0 && s > 0.0 && s.is_finite()) {
                return Err(epoch.indefinite(&streams[0], tick, spread));
            }
            for (d, (a, b)) in difference
                .iter_mut()
                .zip(epoch.theta.iter().zip(&linearised_at))
            {
                *d = a - b;
            }
            // what the rows before this one have already explained
            let residual = residual - dot(gradient, &difference);
            let (weight, factor) = match form {
                Form::Corrected => (1.0 / s, residual / s),
                // P_θ⁻ f = g − g s (fᵀg)
                Form::AsPrinted => (s, residual * (1.0 - s * spread)),
            };
            for (t, g) in epoch.theta.iter_mut().zip(&g) {
                *t += factor * g;
            }
            epoch.covariance.downdate(&g, weight);
        }
        if epoch.drift > 0.0 {
            epoch.covariance.inflate(epoch.drift);
            let moved = epoch
                .theta
                .iter()
                .zip(&linearised_at)
                .map(|(a, b)| (a - b) * (a - b));
            epoch.cost.drift += 0.5 * moved.sum::<f64>() / epoch.drift;
        }
        epoch.tick(tick, ticks, &streams[0])?;
    }
    Ok(())
}
