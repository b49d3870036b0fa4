//! A stack of LSTM layers with a linear head, and its adjoint.
//!
//! ```text
//! (i, f, g, o) = W [ξ; h] + b                        each layer on the one below it
//! c ← σ(f) c + σ(i) tanh(g),   h ← σ(o) tanh(c)
//! outputs = V h + v
//! ```

use latens::model::small::{dot, dot_long};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::windows::axpy;

/// Shape of the stack; its weights are layer by layer W (4h × (in + h)), b (4h), then V, v.
#[derive(Debug, Clone)]
pub struct Stack {
    pub inputs: usize,
    pub widths: Vec<usize>,
    pub outputs: usize,
}

/// Values of one step that the backward pass needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Moment {
    /// Input of each layer with the memory before it, its gates after their nonlinearity, its cell
    /// before and after, tanh of the latter.
    layers: Vec<Layer>,
    /// Output of the last layer.
    top: Vec<f64>,
}

#[derive(Debug, Clone, Default)]
struct Layer {
    input: Vec<f64>,
    gates: Vec<f64>,
    before: Vec<f64>,
    squashed: Vec<f64>,
}

/// h and c of each layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    h: Vec<Vec<f64>>,
    c: Vec<Vec<f64>>,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Stack {
    /// Number of weights.
    pub fn weights(&self) -> usize {
        let (mut count, mut below) = (0, self.inputs);
        for &h in &self.widths {
            count += 4 * h * (below + h + 1);
            below = h;
        }
        count + self.outputs * (below + 1)
    }

    /// Glorot's uniform weights, biases of the forget gates at one, a small head.
    pub fn initialise(&self, rng: &mut Pcg64) -> Vec<f64> {
        let mut weights = Vec::with_capacity(self.weights());
        let mut below = self.inputs;
        for &h in &self.widths {
            let bound = (6.0 / (below + 2 * h) as f64).sqrt();
            weights.extend((0..4 * h * (below + h)).map(|_| bound * rng.random_range(-1.0..1.0)));
            weights.extend((0..4 * h).map(|g| f64::from(g / h == 1)));
            below = h;
        }
        let bound = 0.1 * (6.0 / (below + self.outputs) as f64).sqrt();
        weights.extend((0..self.outputs * below).map(|_| bound * rng.random_range(-1.0..1.0)));
        weights.resize(self.weights(), 0.0);
        weights
    }

    /// Memory at zero.
    pub fn memory(&self) -> Memory {
        let zero: Vec<Vec<f64>> = self.widths.iter().map(|h| vec![0.0; *h]).collect();
        Memory {
            h: zero.clone(),
            c: zero,
        }
    }

    /// One step: moves the memory, gives the outputs.
    pub(crate) fn step(
        &self,
        weights: &[f64],
        input: &[f64],
        memory: &mut Memory,
        m: &mut Moment,
    ) -> Vec<f64> {
        m.layers.resize_with(self.widths.len(), Layer::default);
        let mut at = 0;
        let mut below = input.to_vec();
        for (l, &h) in self.widths.iter().enumerate() {
            let layer = &mut m.layers[l];
            layer.input.clear();
            layer.input.extend(below.iter().chain(&memory.h[l]));
            let width = layer.input.len();
            let (w, rest) = weights[at..].split_at(4 * h * width);
            let bias = &rest[..4 * h];
            at += 4 * h * (width + 1);
            layer.gates.clear();
            let rows = w.chunks_exact(width).zip(bias);
            let sums = rows.map(|(row, b)| b + dot_long(row, &layer.input));
            layer.gates.extend(sums);
            for (g, gate) in layer.gates.iter_mut().enumerate() {
                *gate = match g / h {
                    2 => gate.tanh(),
                    _ => sigmoid(*gate),
                };
            }
            layer.before.clone_from(&memory.c[l]);
            layer.squashed.clear();
            for j in 0..h {
                let gates = &layer.gates;
                let c = gates[h + j] * layer.before[j] + gates[j] * gates[2 * h + j];
                memory.c[l][j] = c;
                layer.squashed.push(c.tanh());
                memory.h[l][j] = gates[3 * h + j] * layer.squashed[j];
            }
            below.clone_from(&memory.h[l]);
        }
        m.top.clone_from(&below);
        let (head, bias) = weights[at..].split_at(self.outputs * below.len());
        let rows = head.chunks_exact(below.len()).zip(bias);
        rows.map(|(row, b)| b + dot(row, &below)).collect()
    }

    /// The adjoint of a step: from that of the outputs and of the memory after it, to the gradient,
    /// the memory before it, and the input (returned).
    pub(crate) fn pull_back(
        &self,
        weights: &[f64],
        m: &Moment,
        by_outputs: &[f64],
        by_memory: &mut Memory,
        gradient: &mut [f64],
    ) -> Vec<f64> {
        let last = *self.widths.last().unwrap_or(&self.inputs);
        let mut at = self.weights() - self.outputs * (last + 1);
        let mut above = vec![0.0; last];
        for (k, d) in by_outputs.iter().enumerate() {
            axpy(*d, &weights[at + k * last..at + (k + 1) * last], &mut above);
            axpy(
                *d,
                &m.top,
                &mut gradient[at + k * last..at + (k + 1) * last],
            );
            gradient[at + self.outputs * last + k] += d;
        }
        for (l, &h) in self.widths.iter().enumerate().rev() {
            let layer = &m.layers[l];
            let width = layer.input.len();
            at -= 4 * h * (width + 1);
            let mut by_gates = vec![0.0; 4 * h];
            for j in 0..h {
                let d_h = above[j] + by_memory.h[l][j];
                let (i, f) = (layer.gates[j], layer.gates[h + j]);
                let (g, o) = (layer.gates[2 * h + j], layer.gates[3 * h + j]);
                let t = layer.squashed[j];
                let d_c = by_memory.c[l][j] + d_h * o * (1.0 - t * t);
                by_gates[j] = d_c * g * i * (1.0 - i);
                by_gates[h + j] = d_c * layer.before[j] * f * (1.0 - f);
                by_gates[2 * h + j] = d_c * i * (1.0 - g * g);
                by_gates[3 * h + j] = d_h * t * o * (1.0 - o);
                by_memory.c[l][j] = d_c * f;
            }
            let mut by_input = vec![0.0; width];
            for (r, d) in by_gates.iter().enumerate() {
                let row = at + r * width..at + (r + 1) * width;
                axpy(*d, &weights[row.clone()], &mut by_input);
                axpy(*d, &layer.input, &mut gradient[row]);
                gradient[at + 4 * h * width + r] += d;
            }
            by_memory.h[l].copy_from_slice(&by_input[width - h..]);
            by_input.truncate(width - h);
            above = by_input;
        }
        above
    }
}
