//! `weights.safetensors`: θ by name, and what its numbers refer to.
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `<network>.layer1.weight`, … | units × inputs | the last layer is the linear output |
//! | `<network>.layer1.bias`, … | units | |
//! | `<network>.skip.weight` | outputs × arguments | only with a skip connection |
//! | `<network>.center`, `.scale` | arguments | z₀ = (a − center)/scale |
//! | `<network>.output` | outputs | factor on each output |
//! | `unknowns` | unknown constants | as the solver sees them, centred and of unit size |
//! | `draws` | draws × d_θ | δθ drawn from its posterior, for bands; only where the solver draws |
//! | `covariance` | d_θ (d_θ + 1)/2 | lower triangle of P_θ, row by row; θ is `unknowns`, then the blocks of each network in the order above |
//!
//! All of them are little-endian f64.

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::WEIGHTS;
use crate::Error;
use crate::fit::Fit;
use crate::model::Model;
use crate::model::network::{Network, Scaling};
use crate::numerics::linalg::{PackedCovariance, Precision};

const UNKNOWNS_TENSOR: &str = "unknowns";
const COVARIANCE_TENSOR: &str = "covariance";
const DRAWS_TENSOR: &str = "draws";

/// A part of θ that the file keeps by itself.
struct Block {
    name: String,
    shape: Vec<usize>,
}

/// The blocks of θ, in its order.
fn blocks(model: &Model) -> Vec<Block> {
    let mut blocks = vec![];
    if model.system.unknowns() > 0 {
        blocks.push(Block {
            name: UNKNOWNS_TENSOR.into(),
            shape: vec![model.system.unknowns()],
        });
    }
    for network in model.system.networks() {
        for (name, rows, columns) in network.blocks() {
            let shape = if name.ends_with(".bias") {
                vec![rows]
            } else {
                vec![rows, columns]
            };
            blocks.push(Block {
                name: format!("{}.{name}", network.name),
                shape,
            });
        }
    }
    blocks
}

fn size(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// What is in the file besides the scaling of networks.
pub(super) struct Weights {
    pub theta: Vec<f64>,
    pub covariance: PackedCovariance,
    pub draws: Vec<Vec<f64>>,
}

/// Numbers with a name.
pub(super) struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// The file's bytes.
pub(super) fn encode(fit: &Fit) -> Result<Vec<u8>, Error> {
    let Fit {
        model,
        theta,
        covariance,
        draws,
        ..
    } = fit;
    let mut tensors: Vec<Tensor> = vec![];
    let mut push = |name, shape, values| {
        tensors.push(Tensor {
            name,
            shape,
            values,
        });
    };
    let mut rest = theta.as_slice();
    for Block { name, shape } in blocks(model) {
        let (values, after) = rest.split_at(size(&shape));
        push(name, shape, values.to_vec());
        rest = after;
    }
    for network in model.system.networks() {
        let Scaling {
            center,
            scale,
            output,
        } = &network.scaling;
        for (part, values) in [("center", center), ("scale", scale), ("output", output)] {
            let name = format!("{}.{part}", network.name);
            push(name, vec![values.len()], values.clone());
        }
    }
    let packed = covariance.clone().to_packed();
    push(COVARIANCE_TENSOR.into(), vec![packed.len()], packed);
    if !draws.is_empty() {
        let shape = vec![draws.len(), theta.len()];
        push(DRAWS_TENSOR.into(), shape, draws.concat());
    }
    pack(tensors, WEIGHTS)
}

/// Tensors as a file's bytes; `file` is what an error names.
pub(super) fn pack(tensors: Vec<Tensor>, file: &str) -> Result<Vec<u8>, Error> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|t| t.values.iter().flat_map(|v| v.to_le_bytes()).collect())
        .collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|(tensor, data)| {
            let view = TensorView::new(Dtype::F64, tensor.shape.clone(), data)?;
            Ok((tensor.name.as_str(), view))
        })
        .collect::<Result<Vec<_>, _>>();
    views
        .and_then(|views| serialize(views, None))
        .map_err(|e| Error::io("write", Path::new(file), std::io::Error::other(e)))
}

/// θ, P_θ and draws; sets the scaling of the model's networks.
pub(super) fn decode(
    bytes: &[u8],
    model: &mut Model,
    precision: Precision,
) -> Result<Weights, String> {
    let file = unpack(bytes)?;
    let read = |name: &str, shape: &[usize]| file.exactly(name, shape);
    let mut theta = Vec::with_capacity(model.system.parameters());
    for Block { name, shape } in blocks(model) {
        theta.extend(read(&name, &shape)?);
    }
    let scaling = |network: &Network| {
        let read_part =
            |part: &str, count: usize| read(&format!("{}.{part}", network.name), &[count]);
        let (arguments, outputs) = (network.arguments, network.outputs.len());
        let scale = read_part("scale", arguments)?;
        if let Some(value) = scale.iter().find(|s| **s <= 0.0) {
            let name = &network.name;
            return Err(format!(
                "`{name}.scale` has the value {value}; {REPEAT_ADVICE}"
            ));
        }
        Ok(Scaling {
            center: read_part("center", arguments)?,
            scale,
            output: read_part("output", outputs)?,
        })
    };
    let scalings = model.system.networks().iter().map(scaling);
    let scalings: Vec<Scaling> = scalings.collect::<Result<_, String>>()?;
    for (i, scaling) in scalings.into_iter().enumerate() {
        model.system.set_scaling(i, scaling);
    }
    let n = theta.len();
    let packed = read(COVARIANCE_TENSOR, &[n * (n + 1) / 2])?;
    // the recursions draw none, nor did the first versions of batch
    let draws = match file.view(DRAWS_TENSOR) {
        Ok(view) if n > 0 => {
            let count = view.shape().first().copied().unwrap_or(0);
            let all = read(DRAWS_TENSOR, &[count, n])?;
            all.chunks_exact(n).map(<[f64]>::to_vec).collect()
        }
        _ => Vec::new(),
    };
    Ok(Weights {
        theta,
        covariance: PackedCovariance::from_packed(n, packed, precision),
        draws,
    })
}

/// A file of tensors.
pub(super) struct Tensors<'a>(SafeTensors<'a>);

/// Tensors from a file's bytes.
pub(super) fn unpack(bytes: &[u8]) -> Result<Tensors<'_>, String> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|e| format!("this file is damaged: {e}; {REPEAT_ADVICE}"))?;
    Ok(Tensors(file))
}

/// What to do about a file that is not what was written.
pub(super) const REPEAT_ADVICE: &str = "restore it or repeat the fit";

impl Tensors<'_> {
    /// A tensor of a known shape.
    fn exactly(&self, name: &str, shape: &[usize]) -> Result<Vec<f64>, String> {
        let view = self.view(name)?;
        if view.shape() != shape || view.dtype() != Dtype::F64 {
            return Err(format!(
                "`{name}` is {:?} of shape {:?}, the model needs F64 of shape {shape:?}; {REPEAT_ADVICE}",
                view.dtype(),
                view.shape()
            ));
        }
        self.any(name)
    }

    /// The numbers of a tensor, which must be finite.
    pub(super) fn any(&self, name: &str) -> Result<Vec<f64>, String> {
        let view = self.view(name)?;
        if view.dtype() != Dtype::F64 {
            return Err(format!(
                "`{name}` is {:?}, not F64; {REPEAT_ADVICE}",
                view.dtype()
            ));
        }
        let numbers = view.data().as_chunks::<8>().0.iter();
        let values: Vec<f64> = numbers.map(|b| f64::from_le_bytes(*b)).collect();
        match values.iter().position(|v| !v.is_finite()) {
            Some(i) => Err(format!("`{name}`[{i}] is {}; {REPEAT_ADVICE}", values[i])),
            None => Ok(values),
        }
    }

    fn view(&self, name: &str) -> Result<TensorView<'_>, String> {
        let missing =
            |_| format!("this file has no `{name}`, which the model needs; {REPEAT_ADVICE}");
        self.0.tensor(name).map_err(missing)
    }
}
