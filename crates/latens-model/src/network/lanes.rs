//! A network at [`LANES`] points side by side: a lane is a point.
//!
//! Where points do not depend on each other, as samples of a known trajectory do not, every operation of
//! one is done for all of them, and no sum runs across a register. Each lane adds up in the order in which
//! [`Network::evaluate`] and [`Network::differentiate`] do, so that a point has the same bits either way.

use pulp::{Arch, Simd, WithSimd};

use super::{Network, Trace};
use crate::simd::{self, LANES, Panel, ZERO};

/// What one evaluation leaves, of each point.
#[derive(Debug, Clone)]
pub struct LaneTrace {
    activations: Vec<Panel>,
    slopes: Vec<Panel>,
    sensitivities: Vec<Panel>,
    /// ∂(output k)/∂(argument j), row by row.
    pub jacobian: Vec<Panel>,
    pub output: Vec<Panel>,
    arch: Arch,
}

impl Trace {
    /// What [`Network::accumulate_gradient`] needs of one of the points.
    pub(crate) fn take_lane(&mut self, lanes: &LaneTrace, lane: usize) {
        let take = |to: &mut [f64], from: &[Panel]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.0[lane];
            }
        };
        take(&mut self.activations, &lanes.activations);
        take(&mut self.sensitivities, &lanes.sensitivities);
    }
}

impl Network {
    /// Memory for one evaluation at some points.
    pub fn lane_trace(&self) -> LaneTrace {
        let (a, h, o) = (self.arguments, self.hidden(), self.outputs.len());
        LaneTrace {
            activations: vec![ZERO; a + h],
            slopes: vec![ZERO; h],
            sensitivities: vec![ZERO; h * o],
            jacobian: vec![ZERO; a * o],
            output: vec![ZERO; o],
            arch: simd::arch(),
        }
    }

    /// Before [`Network::evaluate_lanes`], for every argument.
    pub fn set_lane_argument(&self, trace: &mut LaneTrace, j: usize, value: Panel) {
        let (center, scale) = (self.scaling.center[j], self.scaling.scale[j]);
        trace.activations[j] = Panel(value.0.map(|v| (v - center) / scale));
    }

    /// Values: fills `trace.output`.
    pub fn evaluate_lanes(&self, weights: &[f64], trace: &mut LaneTrace) {
        if !self.absent {
            let arch = trace.arch;
            arch.dispatch(Sweep::Value(self, weights, trace));
        }
    }

    /// After [`Network::evaluate_lanes`]: fills `trace.jacobian` and the sensitivities.
    pub fn differentiate_lanes(&self, weights: &[f64], trace: &mut LaneTrace) {
        if !self.absent {
            let arch = trace.arch;
            arch.dispatch(Sweep::Slopes(self, weights, trace));
        }
    }

    #[inline(always)]
    fn forward_lanes<S: Simd>(&self, simd: S, weights: &[f64], trace: &mut LaneTrace) {
        let (mut at, mut from, mut width) = (0, 0, self.arguments);
        for &(units, activation) in &self.layers {
            let (done, next) = trace.activations.split_at_mut(from + width);
            let bias = &weights[at + width * units..];
            for u in 0..units {
                let row = &weights[at + u * width..at + (u + 1) * width];
                next[u] = biased(simd, bias[u], row, &done[from..]);
            }
            let slopes = &mut trace.slopes[from + width - self.arguments..][..units];
            for (value, slope) in next.iter_mut().zip(slopes) {
                activation.apply(simd, &mut value.0, &mut slope.0);
            }
            at += (width + 1) * units;
            from += width;
            width = units;
        }
        let outputs = self.outputs.len();
        let bias = &weights[at + width * outputs..];
        let skip = &weights[at + (width + 1) * outputs..];
        for k in 0..outputs {
            let row = &weights[at + k * width..at + (k + 1) * width];
            let mut value = biased(simd, bias[k], row, &trace.activations[from..]);
            if self.skip {
                let row = &skip[k * self.arguments..(k + 1) * self.arguments];
                let direct = dot(simd, row, &trace.activations[..self.arguments]);
                value = Panel(std::array::from_fn(|l| value.0[l] + direct.0[l]));
            }
            let scale = self.scaling.output[k];
            trace.output[k] = Panel(value.0.map(|v| scale * v));
        }
    }

    #[inline(always)]
    fn backward_lanes<S: Simd>(&self, simd: S, weights: &[f64], trace: &mut LaneTrace) {
        let (hidden, outputs) = (self.hidden(), self.outputs.len());
        let last_width = self.layers.last().map_or(self.arguments, |l| l.0);
        let skip = self.weights() - usize::from(self.skip) * self.arguments * outputs;
        let last = skip - (last_width + 1) * outputs;
        for k in 0..outputs {
            let out = self.scaling.output[k];
            let jacobian = &mut trace.jacobian[k * self.arguments..(k + 1) * self.arguments];
            jacobian.fill(ZERO);
            if self.skip {
                let row = &weights[skip + k * self.arguments..];
                for (j, w) in jacobian.iter_mut().zip(row) {
                    *j = Panel([out * w; LANES]);
                }
            }
            let delta = &mut trace.sensitivities[k * hidden..(k + 1) * hidden];
            let row = &weights[last + k * last_width..last + (k + 1) * last_width];
            if self.layers.is_empty() {
                for (j, w) in jacobian.iter_mut().zip(row) {
                    *j = Panel(j.0.map(|j| j + out * w));
                }
            } else {
                for (d, w) in delta[hidden - last_width..].iter_mut().zip(row) {
                    *d = Panel([out * w; LANES]);
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
                    *d = Panel(std::array::from_fn(|l| d.0[l] * slope.0[l]));
                }
                let (below, layer_delta) = delta.split_at_mut(start);
                let below = if l == 0 {
                    &mut *jacobian
                } else {
                    &mut below[start - width..]
                };
                if l > 0 {
                    below.fill(ZERO);
                }
                let matrix = &weights[at..at + units * width];
                add_transposed(simd, matrix, &layer_delta[..units], below);
                end = start;
            }
            for (j, s) in jacobian.iter_mut().zip(&self.scaling.scale) {
                *j = Panel(j.0.map(|j| j / s));
            }
        }
    }
}

enum Sweep<'a> {
    Value(&'a Network, &'a [f64], &'a mut LaneTrace),
    Slopes(&'a Network, &'a [f64], &'a mut LaneTrace),
}

impl WithSimd for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self {
            Sweep::Value(network, weights, trace) => network.forward_lanes(simd, weights, trace),
            Sweep::Slopes(network, weights, trace) => network.backward_lanes(simd, weights, trace),
        }
    }
}

#[inline(always)]
fn biased<S: Simd>(simd: S, bias: f64, weights: &[f64], input: &[Panel]) -> Panel {
    let sum = dot(simd, weights, input);
    Panel(sum.0.map(|s| bias + s))
}

/// Σ weight · input in each lane, in the order of [`simd::dot`]: eight running sums, the first terms of which are
/// those left over at the end, added up as [`simd::sum`] does.
#[inline(always)]
fn dot<S: Simd>(simd: S, weights: &[f64], input: &[Panel]) -> Panel {
    let (chunks, rest) = weights.as_chunks::<LANES>();
    let (inputs, input_rest) = input[..weights.len()].as_chunks::<LANES>();
    let sums_used = weights.len().min(LANES);
    let mut out = ZERO;
    for v in 0..LANES / S::F64_LANES {
        let at = |panel: &Panel| simd::lanes::<S>(&panel.0)[v];
        let mut sums = [simd.splat_f64s(0.0); LANES];
        for (sum, (w, x)) in sums.iter_mut().zip(rest.iter().zip(input_rest)) {
            *sum = simd.mul_f64s(simd.splat_f64s(*w), at(x));
        }
        for (weights, inputs) in chunks.iter().zip(inputs) {
            for (sum, (w, x)) in sums.iter_mut().zip(weights.iter().zip(inputs)) {
                *sum = simd.mul_add_f64s(simd.splat_f64s(*w), at(x), *sum);
            }
        }
        for half in [4, 2, 1] {
            for i in (0..half).filter(|i| i + half < sums_used) {
                sums[i] = simd.add_f64s(sums[i], sums[i + half]);
            }
        }
        simd::lanes_mut::<S>(&mut out.0)[v] = sums[0];
    }
    out
}

/// y += Aᵀ x in each lane, for A row by row.
#[inline(always)]
fn add_transposed<S: Simd>(simd: S, a: &[f64], x: &[Panel], y: &mut [Panel]) {
    let width = y.len();
    for (j, y) in y.iter_mut().enumerate() {
        for (v, y) in simd::lanes_mut::<S>(&mut y.0).iter_mut().enumerate() {
            let mut sum = *y;
            for (x, row) in x.iter().zip(a.chunks_exact(width)) {
                let x = simd::lanes::<S>(&x.0)[v];
                sum = simd.mul_add_f64s(x, simd.splat_f64s(row[j]), sum);
            }
            *y = sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Activation, Scaling};
    use rand::{RngExt, SeedableRng};

    /// A point does not know its neighbours: values, slopes and gradients have the bits that it has alone, for
    /// widths below, at and above a register, on every instruction set.
    #[test]
    fn a_lane_has_the_bits_of_its_point_alone() {
        let mut rng = rand_pcg::Pcg64::seed_from_u64(3);
        for (arguments, units, skip) in [(1, 10, false), (3, 20, true), (9, 8, true), (5, 1, false)]
        {
            let network = Network {
                name: "n".into(),
                outputs: vec!["a".into(), "b".into()],
                arguments,
                layers: vec![(units, Activation::Elu), (units + 3, Activation::Tanh)],
                skip,
                absent: false,
                scaling: Scaling {
                    center: vec![0.1; arguments],
                    scale: vec![0.7; arguments],
                    output: vec![3.0, 0.7],
                },
            };
            let count = network.weights();
            let weights: Vec<f64> = (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
            let points: Vec<Panel> = (0..arguments)
                .map(|_| Panel(std::array::from_fn(|_| rng.random_range(-2.0..2.0))))
                .collect();
            let found = simd::forced::on_each(|| {
                let mut lanes = network.lane_trace();
                for (j, value) in points.iter().enumerate() {
                    network.set_lane_argument(&mut lanes, j, *value);
                }
                network.evaluate_lanes(&weights, &mut lanes);
                network.differentiate_lanes(&weights, &mut lanes);
                for lane in 0..LANES {
                    let (mut alone, mut taken) = (network.trace(), network.trace());
                    for (j, value) in points.iter().enumerate() {
                        network.set_argument(&mut alone, j, value.0[lane]);
                    }
                    network.evaluate(&weights, &mut alone);
                    network.differentiate(&weights, &mut alone);
                    taken.take_lane(&lanes, lane);
                    let in_lane =
                        |panels: &[Panel]| panels.iter().map(|p| p.0[lane]).collect::<Vec<_>>();
                    assert_eq!(in_lane(&lanes.output), alone.output);
                    assert_eq!(in_lane(&lanes.jacobian), alone.jacobian);
                    assert_eq!(taken.activations, alone.activations);
                    assert_eq!(taken.sensitivities, alone.sensitivities);
                }
                lanes.output
            });
            assert!(found.iter().all(|f| *f == found[0]));
        }
    }
}
