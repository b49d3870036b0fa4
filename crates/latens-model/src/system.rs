//! A compiled system: derivatives f, measurements h, and their exact Jacobians.

use super::graph::{Graph, Id, Node};
use super::network::{Network, Scaling, Structure, Trace};
use super::resolve::Equations;
use super::simd::Panel;
use super::tape::{Curve, Networks, Point, Tape, Value};

/// The equations x' = f(t, x, u; θ), y = h(t, x, u; θ), ready to evaluate.
///
/// θ holds the unknown constants first, then the weights of each network. Only some rows of f and of h
/// depend on it; [`System::unknown_rows`] and [`System::unknown_channels`] list them, and derivatives
/// by θ are given for those rows alone.
#[derive(Debug, Clone)]
pub struct System {
    states: usize,
    inputs: usize,
    measurements: usize,
    unknowns: usize,
    parameters: usize,
    networks: Vec<Network>,
    /// Network of each call and where its weights start in θ.
    calls: Vec<(usize, usize)>,
    curves: Vec<Curve>,
    unknown_rows: Vec<usize>,
    unknown_channels: Vec<usize>,
    network_rows: Vec<usize>,
    value: Tape,
    jacobian: Tape,
    full: Tape,
    measure: Tape,
    measure_jacobian: Tape,
    measure_full: Tape,
    arguments: Tape,
    /// (row, column) of the entries of ∂f/∂x that are not zero, and of ∂h/∂x.
    pattern: Vec<(usize, usize)>,
    measure_pattern: Vec<(usize, usize)>,
    /// The state that a channel shows as it is, if any.
    direct: Vec<Option<usize>>,
    /// For each unknown row, what θ acts through; the same for each unknown channel.
    paths: Vec<Vec<Path>>,
    measure_paths: Vec<Vec<Path>>,
}

/// The programs of a system, for whoever writes them in another language.
#[derive(Debug, Clone, Copy)]
pub struct Programs<'a> {
    /// f.
    pub derivative: &'a Tape,
    /// f, then the entries of ∂f/∂x in the order of [`System::pattern`].
    pub linearised: &'a Tape,
    /// h.
    pub measurement: &'a Tape,
    /// h, then the entries of ∂h/∂x in the order of [`System::measure_pattern`].
    pub linearised_measurement: &'a Tape,
}

/// One way in which θ enters a row: its root in the full tape is the factor.
#[derive(Debug, Clone, Copy)]
struct Path {
    root: usize,
    through: Through,
}

#[derive(Debug, Clone, Copy)]
enum Through {
    Constant(usize),
    Output { call: usize, k: usize },
}

/// What a program needs that gives values, slopes and what θ does to them.
struct Learned {
    roots: Vec<Id>,
    /// Calls whose weights have gradients in it.
    calls: Vec<usize>,
    /// Rows that θ enters, and how.
    paths: Vec<(usize, Vec<Path>)>,
}

impl Learned {
    fn of(graph: &mut Graph, values: &[Id], slopes: &[Id]) -> Self {
        // leaves through which θ acts: unknown constants and the outputs of networks
        let mut leaves: Vec<(Id, Through)> = Vec::new();
        for id in graph.reachable(values) {
            match graph.node(id) {
                Node::Theta(i) => leaves.push((id, Through::Constant(i))),
                Node::Output(call, k) => leaves.push((id, Through::Output { call, k })),
                _ => {}
            }
        }
        let mut roots = [values, slopes].concat();
        let (mut calls, mut paths) = (vec![], vec![]);
        for (row, &value) in values.iter().enumerate() {
            let mut own = vec![];
            for &(leaf, through) in &leaves {
                let factor = graph.derivative(value, leaf);
                if graph.value(factor) == Some(0.0) {
                    continue;
                }
                own.push(Path {
                    root: roots.len(),
                    through,
                });
                roots.push(factor);
                if let Through::Output { call, .. } = through {
                    calls.push(call);
                }
            }
            if !own.is_empty() {
                paths.push((row, own));
            }
        }
        calls.sort_unstable();
        calls.dedup();
        Self {
            roots,
            calls,
            paths,
        }
    }
}

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
    own: Vec<Trace>,
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
    pub(crate) fn compile(
        mut equations: Equations,
        inputs: usize,
        unknowns: usize,
        networks: Vec<Network>,
        curves: Vec<Curve>,
    ) -> Self {
        let graph = &mut equations.graph;
        let states = equations.derivatives.len();
        let calls: Vec<(usize, usize)> = graph.calls().iter().map(|c| (c.network, 0)).collect();

        let (slopes, pattern) = entries(graph, &equations.derivatives, states);
        let (measure_slopes, measure_pattern) = entries(graph, &equations.measurements, states);

        let learned = Learned::of(graph, &equations.derivatives, &slopes);
        let measured = Learned::of(graph, &equations.measurements, &measure_slopes);
        let calls_network = |p: &&(usize, Vec<Path>)| {
            p.1.iter()
                .any(|p| matches!(p.through, Through::Output { .. }))
        };
        let network_rows = learned.paths.iter().filter(calls_network);
        let network_rows = network_rows.map(|(row, _)| *row).collect();
        let (unknown_rows, paths) = learned.paths.into_iter().unzip();
        let (unknown_channels, measure_paths) = measured.paths.into_iter().unzip();
        let direct = equations
            .measurements
            .iter()
            .map(|&id| match graph.node(id) {
                Node::State(i) => Some(i),
                _ => None,
            })
            .collect();
        let with = |values: &[Id], more: &[Id]| [values, more].concat();
        let call_arguments: Vec<Id> = graph
            .calls()
            .iter()
            .flat_map(|c| c.arguments.clone())
            .collect();
        let mut system = Self {
            states,
            inputs,
            measurements: equations.measurements.len(),
            unknowns,
            parameters: 0,
            calls,
            curves,
            unknown_rows,
            unknown_channels,
            network_rows,
            value: Tape::compile(graph, &equations.derivatives, &[]),
            jacobian: Tape::compile(graph, &with(&equations.derivatives, &slopes), &[]),
            full: Tape::compile(graph, &learned.roots, &learned.calls),
            measure: Tape::compile(graph, &equations.measurements, &[]),
            measure_jacobian: Tape::compile(
                graph,
                &with(&equations.measurements, &measure_slopes),
                &[],
            ),
            measure_full: Tape::compile(graph, &measured.roots, &measured.calls),
            arguments: Tape::compile(graph, &call_arguments, &[]),
            pattern,
            measure_pattern,
            direct,
            paths,
            measure_paths,
            networks,
        };
        system.lay_out();
        system
    }

    /// Where the weights of each network lie in θ.
    fn lay_out(&mut self) {
        let ranges = self.weight_ranges();
        for (network, start) in &mut self.calls {
            *start = ranges[*network].start;
        }
        self.parameters = ranges.last().map_or(self.unknowns, |r| r.end);
    }

    /// The same equations with networks of less structure; these are whole.
    pub fn simplified(&self, structure: Structure) -> Self {
        let mut system = self.clone();
        let networks = self.networks.iter();
        system.networks = networks.map(|network| structure.of(network)).collect();
        system.lay_out();
        system
    }

    /// These equations with the networks of another system of the same model.
    pub(crate) fn with_networks_of(self, other: &Self) -> Self {
        self.with_networks(other.networks.clone())
    }

    /// These equations with other networks of the same arguments and outputs.
    pub(crate) fn with_networks(mut self, networks: Vec<Network>) -> Self {
        self.networks = networks;
        self.lay_out();
        self
    }

    /// Number of states.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of measured channels.
    pub fn measurements(&self) -> usize {
        self.measurements
    }

    /// Length of θ.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Number of unknown constants; they come first in θ.
    pub fn unknowns(&self) -> usize {
        self.unknowns
    }

    /// The networks, with their scaling.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    pub fn curves(&self) -> &[Curve] {
        &self.curves
    }

    /// The network of each call.
    pub fn called(&self) -> impl Iterator<Item = usize> + '_ {
        self.calls.iter().map(|(network, _)| *network)
    }

    /// The programs that its functions run.
    pub fn programs(&self) -> Programs<'_> {
        Programs {
            derivative: &self.value,
            linearised: &self.jacobian,
            measurement: &self.measure,
            linearised_measurement: &self.measure_jacobian,
        }
    }

    /// θ's range of each network's weights, in the order of [`System::networks`].
    pub fn weight_ranges(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = self.unknowns;
        self.networks
            .iter()
            .map(|n| {
                let range = start..start + n.weights();
                start = range.end;
                range
            })
            .collect()
    }

    /// Sets how a network's arguments and outputs are scaled; its weights mean something else then.
    pub fn set_scaling(&mut self, network: usize, scaling: Scaling) {
        self.networks[network].scaling = scaling;
    }

    /// States whose equation depends on θ.
    pub fn unknown_rows(&self) -> &[usize] {
        &self.unknown_rows
    }

    /// Channels that depend on θ: those of sensors that are not known altogether.
    pub fn unknown_channels(&self) -> &[usize] {
        &self.unknown_channels
    }

    /// States whose equation calls a network: those of unknown shape, not only of unknown size.
    pub fn network_rows(&self) -> &[usize] {
        &self.network_rows
    }

    /// (row, column) of the entries of ∂f/∂x that can be other than zero.
    pub fn pattern(&self) -> &[(usize, usize)] {
        &self.pattern
    }

    /// (channel, state) of the entries of ∂h/∂x that can be other than zero.
    pub fn measure_pattern(&self) -> &[(usize, usize)] {
        &self.measure_pattern
    }

    /// For each channel, the state that it shows as it is (not through an expression).
    pub fn direct(&self) -> &[Option<usize>] {
        &self.direct
    }

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
            own: networks().map(Network::trace).collect(),
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
        for (own, trace) in ws.own.iter_mut().zip(&ws.traces) {
            own.take_lane(trace, lane);
        }
        let factor = |root| self.full.root(&ws.full, root).0[lane];
        self.gradients(factor, &ws.own, &self.paths, f_theta);
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

    /// The derivatives by θ of rows that it enters by these paths, one row after another.
    fn gradients(
        &self,
        factor: impl Fn(usize) -> f64,
        traces: &[Trace],
        paths: &[Vec<Path>],
        by_theta: &mut [f64],
    ) {
        by_theta.fill(0.0);
        let rows = by_theta.chunks_exact_mut(self.parameters.max(1));
        for (row, paths) in rows.zip(paths) {
            for path in paths {
                let factor = factor(path.root);
                match path.through {
                    Through::Constant(i) => row[i] += factor,
                    Through::Output { call, k } => {
                        let (network, offset) = self.calls[call];
                        let network = &self.networks[network];
                        let gradient = &mut row[offset..offset + network.weights()];
                        network.accumulate_gradient(&traces[call], k, factor, gradient);
                    }
                }
            }
        }
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

/// The derivatives of `rows` by each state that are not identically zero, and their places.
fn entries(graph: &mut Graph, rows: &[Id], states: usize) -> (Vec<Id>, Vec<(usize, usize)>) {
    let (mut ids, mut places) = (Vec::new(), Vec::new());
    for (i, &row) in rows.iter().enumerate() {
        for j in 0..states {
            let leaf = graph.leaf(Node::State(j));
            let d = graph.derivative(row, leaf);
            if graph.value(d) != Some(0.0) {
                ids.push(d);
                places.push((i, j));
            }
        }
    }
    (ids, places)
}
