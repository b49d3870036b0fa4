//! Values and derivatives of the equations at a point.

use super::System;
use super::paths::{Path, Through};
use crate::network::{Network, Trace};
use crate::simd::Panel;
use crate::tape::{Networks, Point, Tape, Value};

/// Scratch memory of a [`System`]; one per thread.
#[derive(Debug, Clone)]
pub struct Workspace<V: Value = f64> {
    value: Vec<V>,
    jacobian: Vec<V>,
    full: Vec<V>,
    measure: Vec<V>,
    measure_jacobian: Vec<V>,
    measure_full: Vec<V>,
    arguments: Vec<V>,
    traces: Vec<V::Trace>,
    /// The trace of one of the points side by side.
    lane_traces: Vec<Trace>,
}

/// An equation that is no finite number.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The state whose equation it is.
    pub state: usize,
    /// The function at fault and what it was given.
    pub operation: Option<(String, Vec<f64>)>,
}

impl System {
    /// Scratch memory for this system, at one point or at some side by side.
    pub fn workspace<V: Value>(&self) -> Workspace<V> {
        let networks = || self.calls.iter().map(|&(n, _)| &self.networks[n]);
        Workspace {
            value: self.value.slots(),
            jacobian: self.jacobian.slots(),
            full: self.full.slots(),
            measure: self.measure.slots(),
            measure_jacobian: self.measure_jacobian.slots(),
            measure_full: self.measure_full.slots(),
            arguments: self.arguments.slots(),
            traces: networks().map(V::trace).collect(),
            lane_traces: networks().map(Network::trace).collect(),
        }
    }

    fn env(&self) -> Networks<'_> {
        Networks {
            networks: &self.networks,
            calls: &self.calls,
            curves: &self.curves,
        }
    }

    /// f.
    pub fn derivative<V: Value>(&self, ws: &mut Workspace<V>, at: Point<V>, f: &mut [V]) {
        self.value
            .run(&mut ws.value, &mut ws.traces, self.env(), at);
        for (i, f) in f.iter_mut().enumerate() {
            *f = self.value.root(&ws.value, i);
        }
    }

    /// What the equations work out on their way to f: states and inputs, and their differences, products and functions.
    pub fn intermediates<'w>(&self, ws: &'w mut Workspace, at: Point) -> &'w [f64] {
        self.value
            .run(&mut ws.value, &mut ws.traces, self.env(), at);
        &ws.value[self.value.constants().len()..]
    }

    /// The equation that is no finite number at a point, and the operation at fault where that is
    /// found; `None` where all are finite.
    pub fn fault(&self, ws: &mut Workspace, at: Point) -> Option<Fault> {
        self.value
            .run(&mut ws.value, &mut ws.traces, self.env(), at);
        let finite = |i: &usize| self.value.root(&ws.value, *i).is_finite();
        let state = (0..self.states).find(|i| !finite(i))?;
        Some(Fault {
            state,
            operation: self.value.fault(&ws.value),
        })
    }

    /// f and the entries of ∂f/∂x in the order of [`System::pattern`]; `with_theta` also what
    /// [`System::gradients_of`] needs.
    pub fn linearise_entries<V: Value>(
        &self,
        ws: &mut Workspace<V>,
        at: Point<V>,
        with_theta: bool,
        f: &mut [V],
        entries: &mut [V],
    ) {
        let (tape, slots) = if with_theta {
            (&self.full, &mut ws.full)
        } else {
            (&self.jacobian, &mut ws.jacobian)
        };
        tape.run(slots, &mut ws.traces, self.env(), at);
        let mut roots = (0..).map(|i| tape.root(slots, i));
        f.fill_with(|| roots.next().expect("roots without end"));
        entries.fill_with(|| roots.next().expect("roots without end"));
    }

    /// ∂f/∂θ of [`System::unknown_rows`] at one of the points of [`System::linearise_entries`].
    pub fn gradients_of(&self, ws: &mut Workspace<Panel>, lane: usize, f_theta: &mut [f64]) {
        for (lane_trace, trace) in ws.lane_traces.iter_mut().zip(&ws.traces) {
            lane_trace.take_lane(trace, lane);
        }
        let factor = |root| self.full.root(&ws.full, root).0[lane];
        self.gradients(factor, &ws.lane_traces, &self.paths, f_theta);
    }

    /// h and the entries of ∂h/∂x in the order of [`System::measure_pattern`].
    pub fn linearise_measurement_entries<V: Value>(
        &self,
        ws: &mut Workspace<V>,
        at: Point<V>,
        h: &mut [V],
        entries: &mut [V],
    ) {
        let (tape, slots) = (&self.measure_jacobian, &mut ws.measure_jacobian);
        tape.run(slots, &mut ws.traces, self.env(), at);
        let mut roots = (0..).map(|i| tape.root(slots, i));
        h.fill_with(|| roots.next().expect("roots without end"));
        entries.fill_with(|| roots.next().expect("roots without end"));
    }

    /// f and ∂f/∂x (row by row).
    pub fn linearise(&self, ws: &mut Workspace, at: Point, f: &mut [f64], f_x: &mut [f64]) {
        self.jacobian
            .run(&mut ws.jacobian, &mut ws.traces, self.env(), at);
        self.read(&self.jacobian, &ws.jacobian, f, f_x);
    }

    /// f, ∂f/∂x and ∂f/∂θ; the latter for [`System::unknown_rows`] only, one row after another.
    pub fn linearise_all(
        &self,
        ws: &mut Workspace,
        at: Point,
        f: &mut [f64],
        f_x: &mut [f64],
        f_theta: &mut [f64],
    ) {
        self.full.run(&mut ws.full, &mut ws.traces, self.env(), at);
        self.read(&self.full, &ws.full, f, f_x);
        let factor = |root| self.full.root(&ws.full, root);
        self.gradients(factor, &ws.traces, &self.paths, f_theta);
    }

    fn read(&self, tape: &Tape, slots: &[f64], f: &mut [f64], f_x: &mut [f64]) {
        for (i, f) in f.iter_mut().enumerate() {
            *f = tape.root(slots, i);
        }
        f_x.fill(0.0);
        for (e, &(row, column)) in self.pattern.iter().enumerate() {
            f_x[row * self.states + column] = tape.root(slots, self.states + e);
        }
    }

    /// h.
    pub fn measure<V: Value>(&self, ws: &mut Workspace<V>, at: Point<V>, h: &mut [V]) {
        self.measure
            .run(&mut ws.measure, &mut ws.traces, self.env(), at);
        for (i, h) in h.iter_mut().enumerate() {
            *h = self.measure.root(&ws.measure, i);
        }
    }

    /// h and ∂h/∂x (row by row).
    pub fn linearise_measurement(
        &self,
        ws: &mut Workspace,
        at: Point,
        h: &mut [f64],
        h_x: &mut [f64],
    ) {
        let tape = &self.measure_jacobian;
        tape.run(&mut ws.measure_jacobian, &mut ws.traces, self.env(), at);
        self.read_measurement(tape, &ws.measure_jacobian, h, h_x);
    }

    /// h, ∂h/∂x and ∂h/∂θ; the latter for [`System::unknown_channels`] only, one row after another.
    pub fn linearise_measurement_all(
        &self,
        ws: &mut Workspace,
        at: Point,
        h: &mut [f64],
        h_x: &mut [f64],
        h_theta: &mut [f64],
    ) {
        let tape = &self.measure_full;
        tape.run(&mut ws.measure_full, &mut ws.traces, self.env(), at);
        self.read_measurement(tape, &ws.measure_full, h, h_x);
        let factor = |root| tape.root(&ws.measure_full, root);
        self.gradients(factor, &ws.traces, &self.measure_paths, h_theta);
    }

    fn read_measurement(&self, tape: &Tape, slots: &[f64], h: &mut [f64], h_x: &mut [f64]) {
        for (i, h) in h.iter_mut().enumerate() {
            *h = tape.root(slots, i);
        }
        h_x.fill(0.0);
        for (e, &(row, column)) in self.measure_pattern.iter().enumerate() {
            h_x[row * self.states + column] = tape.root(slots, self.measurements + e);
        }
    }

    /// The rows of f that an output of a network enters, and ∂f/∂output there, at a state with
    /// zero inputs: how large the output must be to matter.
    pub fn rows_driven(
        &self,
        network: usize,
        k: usize,
        state: &[f64],
        theta: &[f64],
    ) -> Vec<(usize, f64)> {
        let input = vec![0.0; self.inputs];
        let mut ws = self.workspace::<f64>();
        let at = Point {
            time: 0.0,
            state,
            input: &input,
            theta,
        };
        self.full.run(&mut ws.full, &mut ws.traces, self.env(), at);
        let mut driven = Vec::new();
        for (&row, paths) in self.unknown_rows.iter().zip(&self.paths) {
            for path in paths {
                if let Through::Output { call, k: output } = path.through
                    && (self.calls[call].0, output) == (network, k)
                {
                    driven.push((row, self.full.root(&ws.full, path.root)));
                }
            }
        }
        driven
    }

    /// The first channel that calls a network.
    pub fn channel_of(&self, network: usize) -> Option<usize> {
        let calls = |path: &Path| match path.through {
            Through::Output { call, .. } => self.calls[call].0 == network,
            Through::Constant(_) => false,
        };
        let mut channels = self.unknown_channels.iter().zip(&self.measure_paths);
        let found = channels.find(|(_, paths)| paths.iter().any(calls));
        found.map(|(channel, _)| *channel)
    }

    /// Shows each call's arguments at a point: `visit(network, values)`.
    pub fn visit_arguments(
        &self,
        ws: &mut Workspace,
        at: Point,
        mut visit: impl FnMut(usize, &[f64]),
    ) {
        self.arguments
            .run(&mut ws.arguments, &mut ws.traces, self.env(), at);
        let mut values = Vec::new();
        let mut root = 0;
        for &(network, _) in &self.calls {
            let n = self.networks[network].arguments;
            values.clear();
            values.extend((root..root + n).map(|r| self.arguments.root(&ws.arguments, r)));
            root += n;
            visit(network, &values);
        }
    }
}
