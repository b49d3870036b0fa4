//! Evaluation of a network, and the reverse sweeps that give its derivatives.

use pulp::{Arch, Simd, WithSimd};

use super::Network;
use crate::simd::{self, axpy, dot};

/// What one evaluation leaves: activations, their slopes, sensitivities of each output.
#[derive(Debug, Clone)]
pub struct Trace {
    pub(super) activations: Vec<f64>,
    slopes: Vec<f64>,
    /// δ of every hidden unit, one run of `hidden` values per output.
    pub(super) sensitivities: Vec<f64>,
    /// ∂(output k)/∂(argument j), row by row.
    pub jacobian: Vec<f64>,
    pub output: Vec<f64>,
    arch: Arch,
}

impl Network {
    /// Memory for one evaluation.
    pub fn trace(&self) -> Trace {
        let (a, h, o) = (self.arguments, self.hidden(), self.outputs.len());
        Trace {
            activations: vec![0.0; a + h],
            slopes: vec![0.0; h],
            sensitivities: vec![0.0; h * o],
            jacobian: vec![0.0; a * o],
            output: vec![0.0; o],
            arch: simd::arch(),
        }
    }

    /// Before [`Network::evaluate`], for every argument.
    pub fn set_argument(&self, trace: &mut Trace, j: usize, value: f64) {
        trace.activations[j] = (value - self.scaling.center[j]) / self.scaling.scale[j];
    }

    /// Value: fills `trace.output`.
    pub fn evaluate(&self, weights: &[f64], trace: &mut Trace) {
        if self.absent {
            return;
        }
        let arch = trace.arch;
        arch.dispatch(Sweep::Value(self, weights, trace));
    }

    #[inline(always)]
    fn forward<S: Simd>(&self, simd: S, weights: &[f64], trace: &mut Trace) {
        let (mut at, mut from, mut width) = (0, 0, self.arguments);
        for &(units, activation) in &self.layers {
            let (done, next) = trace.activations.split_at_mut(from + width);
            let input = &done[from..];
            let bias = &weights[at + width * units..];
            if let [only] = input {
                // no sums: all units at once
                let terms = next.iter_mut().zip(bias).zip(&weights[at..at + units]);
                terms.for_each(|((next, b), w)| *next = b + w * only);
            } else {
                for u in 0..units {
                    let row = &weights[at + u * width..at + (u + 1) * width];
                    next[u] = bias[u] + dot(simd, row, input);
                }
            }
            let slopes = &mut trace.slopes[from + width - self.arguments..][..units];
            activation.apply(simd, &mut next[..units], slopes);
            at += (width + 1) * units;
            from += width;
            width = units;
        }
        let outputs = self.outputs.len();
        let input = &trace.activations[from..];
        let bias = &weights[at + width * outputs..];
        let skip = &weights[at + (width + 1) * outputs..];
        for k in 0..outputs {
            let mut value =
                bias[k] + dot(simd, &weights[at + k * width..at + (k + 1) * width], input);
            if self.skip {
                let row = &skip[k * self.arguments..(k + 1) * self.arguments];
                value += dot(simd, row, &trace.activations[..self.arguments]);
            }
            trace.output[k] = self.scaling.output[k] * value;
        }
    }

    /// After [`Network::evaluate`]: fills `trace.jacobian` and the sensitivities.
    pub fn differentiate(&self, weights: &[f64], trace: &mut Trace) {
        if self.absent {
            return;
        }
        let arch = trace.arch;
        arch.dispatch(Sweep::Slopes(self, weights, trace));
    }

    #[inline(always)]
    fn backward<S: Simd>(&self, simd: S, weights: &[f64], trace: &mut Trace) {
        let (hidden, outputs) = (self.hidden(), self.outputs.len());
        let last_width = self.layers.last().map_or(self.arguments, |l| l.0);
        let skip = self.weights() - usize::from(self.skip) * self.arguments * outputs;
        let last = skip - (last_width + 1) * outputs;
        for k in 0..outputs {
            let out = self.scaling.output[k];
            let jacobian = &mut trace.jacobian[k * self.arguments..(k + 1) * self.arguments];
            jacobian.fill(0.0);
            if self.skip {
                let row = &weights[skip + k * self.arguments..];
                for (j, w) in jacobian.iter_mut().zip(row) {
                    *j = out * w;
                }
            }
            let delta = &mut trace.sensitivities[k * hidden..(k + 1) * hidden];
            // cotangent of the layer below the output, then down layer by layer
            let row = &weights[last + k * last_width..last + (k + 1) * last_width];
            if self.layers.is_empty() {
                for (j, w) in jacobian.iter_mut().zip(row) {
                    *j += out * w;
                }
            } else {
                for (d, w) in delta[hidden - last_width..].iter_mut().zip(row) {
                    *d = out * w;
                }
            }
            let (mut end, mut at) = (hidden, last);
            for (l, &(units, _)) in self.layers.iter().enumerate().rev() {
                let width = if l == 0 {
                    self.arguments
                } else {
                    self.layers[l - 1].0
                };
                let start = end - units;
                at -= (width + 1) * units;
                for (d, slope) in delta[start..end].iter_mut().zip(&trace.slopes[start..end]) {
                    *d *= slope;
                }
                let (below, layer_delta) = delta.split_at_mut(start);
                let below = if l == 0 {
                    &mut *jacobian
                } else {
                    &mut below[start - width..]
                };
                if l > 0 {
                    below.fill(0.0);
                }
                let matrix = &weights[at..at + units * width];
                add_transposed(simd, matrix, &layer_delta[..units], below);
                end = start;
            }
            for (j, s) in jacobian.iter_mut().zip(&self.scaling.scale) {
                *j /= s;
            }
        }
    }

    /// After [`Network::differentiate`]: gradient += factor · ∂(output k)/∂(weights).
    pub fn accumulate_gradient(&self, trace: &Trace, k: usize, factor: f64, gradient: &mut [f64]) {
        if self.absent {
            return;
        }
        let sweep = Sweep::Gradient(self, trace, k, factor, gradient);
        trace.arch.dispatch(sweep);
    }

    #[inline(always)]
    fn outer_products<S: Simd>(
        &self,
        simd: S,
        trace: &Trace,
        k: usize,
        factor: f64,
        gradient: &mut [f64],
    ) {
        let hidden = self.hidden();
        let delta = &trace.sensitivities[k * hidden..(k + 1) * hidden];
        let (mut at, mut from, mut width) = (0, 0, self.arguments);
        for &(units, _) in &self.layers {
            let input = &trace.activations[from..from + width];
            let layer_delta = &delta[from + width - self.arguments..][..units];
            let (matrix, bias) = gradient[at..at + (width + 1) * units].split_at_mut(width * units);
            if let [only] = input {
                for ((w, b), d) in matrix.iter_mut().zip(bias).zip(layer_delta) {
                    let d = factor * d;
                    *w = d.mul_add(*only, *w);
                    *b += d;
                }
            } else {
                for ((row, b), d) in matrix.chunks_exact_mut(width).zip(bias).zip(layer_delta) {
                    let d = factor * d;
                    axpy(simd, d, input, row);
                    *b += d;
                }
            }
            at += (width + 1) * units;
            from += width;
            width = units;
        }
        let outputs = self.outputs.len();
        let d = factor * self.scaling.output[k];
        for (g, z) in gradient[at + k * width..]
            .iter_mut()
            .zip(&trace.activations[from..])
        {
            *g += d * z;
        }
        gradient[at + width * outputs + k] += d;
        if self.skip {
            let at = at + (width + 1) * outputs + k * self.arguments;
            let input = &trace.activations[..self.arguments];
            for (g, z) in gradient[at..].iter_mut().zip(input) {
                *g += d * z;
            }
        }
    }
}

/// What is compiled for each instruction set: plain loops, inlined throughout. (pulp would take
/// closures too, but does not inline them, which leaves them compiled for the baseline.)
enum Sweep<'a> {
    Value(&'a Network, &'a [f64], &'a mut Trace),
    Slopes(&'a Network, &'a [f64], &'a mut Trace),
    Gradient(&'a Network, &'a Trace, usize, f64, &'a mut [f64]),
}

impl WithSimd for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self {
            Sweep::Value(network, weights, trace) => network.forward(simd, weights, trace),
            Sweep::Slopes(network, weights, trace) => network.backward(simd, weights, trace),
            Sweep::Gradient(network, trace, k, factor, gradient) => {
                network.outer_products(simd, trace, k, factor, gradient);
            }
        }
    }
}

/// y += Aᵀ x, for A row by row: a few of its columns after the others, with their sums in
/// registers.
#[inline(always)]
fn add_transposed<S: Simd>(simd: S, a: &[f64], x: &[f64], y: &mut [f64]) {
    let width = y.len();
    if let [only] = y {
        for (x, a) in x.iter().zip(a) {
            *only = x.mul_add(*a, *only);
        }
        return;
    }
    let (vectors, rest) = S::as_mut_simd_f64s(y);
    for (v, y) in vectors.iter_mut().enumerate() {
        let mut sum = *y;
        for (&x, row) in x.iter().zip(a.chunks_exact(width)) {
            let row = S::as_simd_f64s(row).0[v];
            sum = simd.mul_add_f64s(simd.splat_f64s(x), row, sum);
        }
        *y = sum;
    }
    if !rest.is_empty() {
        let mut sum = simd.partial_load_f64s(rest);
        for (&x, row) in x.iter().zip(a.chunks_exact(width)) {
            let row = simd.partial_load_f64s(&row[width - rest.len()..]);
            sum = simd.mul_add_f64s(simd.splat_f64s(x), row, sum);
        }
        simd.partial_store_f64s(rest, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Activation, Scaling};
    use rand::{RngExt, SeedableRng};

    /// Every activation, with and without skip, one and two outputs: against central differences
    /// in the value (the exact oracle for whole models is in `tests/derivatives.rs`).
    #[test]
    fn derivatives_match_the_value() {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(1);
        for (_, activation) in Activation::NAMES {
            for (skip, hidden) in [(false, true), (true, true), (true, false), (false, false)] {
                let network = Network {
                    name: "n".into(),
                    outputs: vec!["a".into(), "b".into()],
                    arguments: 3,
                    layers: if hidden {
                        vec![(5, activation), (4, Activation::Tanh)]
                    } else {
                        vec![]
                    },
                    skip,
                    absent: false,
                    scaling: Scaling {
                        center: vec![0.1, -0.3, 2.0],
                        scale: vec![0.5, 2.0, 1.5],
                        output: vec![3.0, 0.7],
                    },
                };
                let n = network.weights();
                let mut weights: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
                let mut arguments = [0.3, -1.0, 2.5];
                let mut trace = network.trace();
                let run = |w: &[f64], a: &[f64], t: &mut Trace| {
                    for (j, v) in a.iter().enumerate() {
                        network.set_argument(t, j, *v);
                    }
                    network.evaluate(w, t);
                };
                run(&weights, &arguments, &mut trace);
                network.differentiate(&weights, &mut trace);
                let jacobian = trace.jacobian.clone();
                let mut gradient = vec![0.0; n];
                network.accumulate_gradient(&trace, 0, 2.0, &mut gradient);
                network.accumulate_gradient(&trace, 1, -1.0, &mut gradient);
                let h = 1e-5;
                let combined = |t: &Trace| 2.0 * t.output[0] - t.output[1];
                for i in 0..n {
                    let w = weights[i];
                    weights[i] = w + h;
                    run(&weights, &arguments, &mut trace);
                    let up = combined(&trace);
                    weights[i] = w - h;
                    run(&weights, &arguments, &mut trace);
                    let difference = (up - combined(&trace)) / (2.0 * h);
                    weights[i] = w;
                    assert!(
                        (difference - gradient[i]).abs() < 1e-7,
                        "{activation:?} weight {i}"
                    );
                }
                for j in 0..3 {
                    let a = arguments[j];
                    arguments[j] = a + h;
                    run(&weights, &arguments, &mut trace);
                    let up = trace.output.clone();
                    arguments[j] = a - h;
                    run(&weights, &arguments, &mut trace);
                    arguments[j] = a;
                    for k in 0..2 {
                        let difference = (up[k] - trace.output[k]) / (2.0 * h);
                        assert!((difference - jacobian[k * 3 + j]).abs() < 1e-7);
                    }
                }
            }
        }
    }

    /// Widths that fill a vector, exceed it and fall short of it: the order of every sum is the
    /// same, and each multiply–add is rounded once.
    #[test]
    fn all_instruction_sets_give_the_same_bits() {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(2);
        for (_, activation) in Activation::NAMES {
            for units in [1, 4, 7, 8, 13, 20] {
                let network = Network {
                    name: "n".into(),
                    outputs: vec!["a".into(), "b".into()],
                    arguments: 5,
                    layers: vec![(units, activation), (units + 3, Activation::Tanh)],
                    skip: true,
                    absent: false,
                    scaling: Scaling {
                        center: vec![0.1; 5],
                        scale: vec![0.7; 5],
                        output: vec![3.0, 0.7],
                    },
                };
                let n = network.weights();
                let weights: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
                simd::forced::assert_equal_bits(|| {
                    let (mut trace, mut gradient) = (network.trace(), vec![0.0; n]);
                    for j in 0..5 {
                        network.set_argument(&mut trace, j, (j as f64).sin());
                    }
                    network.evaluate(&weights, &mut trace);
                    network.differentiate(&weights, &mut trace);
                    network.accumulate_gradient(&trace, 0, 2.0, &mut gradient);
                    network.accumulate_gradient(&trace, 1, -0.3, &mut gradient);
                    [trace.output, trace.jacobian, gradient].concat()
                });
            }
        }
    }
}
