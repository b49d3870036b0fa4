//! `stream.safetensors`: the filter of a stream, beside the θ and P_θ that it has come to.
//!
//! A snapshot is a folder as any other; the scores in its `fit.json` are still those of the fit.
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `mean`, `input` | states, inputs | x̂ and u of the last sample |
//! | `spread` | states × states | P_x |
//! | `cross` | states × d_θ | P_xθ; no rows without learning |
//! | `triangle`, `pending`, `factor` | d_θ (d_θ + 1)/2, k × d_θ, 2 | P_θ with the updates that wait, see [`crate::numerics::linalg::packed`] |

use super::STREAM;
use super::weights::{Tensor, pack, unpack};
use crate::Error;
use crate::fit::facts::StreamFacts;
use crate::fit::stream::State;
use crate::model::Model;
use crate::numerics::linalg::packed::Parts;
use crate::numerics::linalg::{PackedCovariance, Precision};

pub(super) fn encode(state: &State) -> Result<Vec<u8>, Error> {
    let (n, p) = (state.mean.len(), state.theta.len());
    let parts = state.covariance.parts();
    let rows = |values: &[f64], width: usize| vec![values.len() / width.max(1), width];
    let tensor = |name: &str, shape, values| Tensor {
        name: name.into(),
        shape,
        values,
    };
    let tensors = vec![
        tensor("mean", vec![n], state.mean.clone()),
        tensor("spread", vec![n, n], state.spread.clone()),
        tensor("cross", rows(&state.cross, p), state.cross.clone()),
        tensor("input", vec![state.input.len()], state.input.clone()),
        tensor("triangle", vec![parts.triangle.len()], parts.triangle),
        tensor("pending", rows(&parts.pending, p), parts.pending),
        tensor("factor", vec![2], vec![parts.factor, parts.shift]),
    ];
    pack(tensors, STREAM)
}

/// The state in a snapshot; θ is in `weights.safetensors`.
pub(super) fn decode(
    bytes: &[u8],
    model: &Model,
    theta: &[f64],
    facts: &StreamFacts,
    precision: Precision,
) -> Result<State, String> {
    let file = unpack(bytes)?;
    let damaged =
        "this file does not belong to the run; restore it, or go on from the run that it came from";
    let read = |name: &str| file.any(name);
    let (n, p) = (model.states.len(), theta.len());
    let (mean, spread, cross) = (read("mean")?, read("spread")?, read("cross")?);
    let (input, factor) = (read("input")?, read("factor")?);
    let fits = mean.len() == n
        && spread.len() == n * n
        && [0, n * p].contains(&cross.len())
        && input.len() == model.inputs.len()
        && factor.len() == 2
        && factor[0] > 0.0
        && (0..n).all(|i| spread[i * n + i] >= 0.0)
        && facts.progress.time.is_finite();
    if !fits {
        return Err(damaged.into());
    }
    let parts = Parts {
        triangle: read("triangle")?,
        pending: read("pending")?,
        factor: factor[0],
        shift: factor[1],
    };
    let covariance = PackedCovariance::from_parts(p, parts, precision).ok_or(damaged)?;
    Ok(State {
        options: facts.options,
        progress: facts.progress,
        theta: theta.to_vec(),
        covariance,
        mean,
        spread,
        cross,
        input,
    })
}
