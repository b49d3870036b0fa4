//! A compiled system: derivatives f, measurements h, and their exact Jacobians.

mod evaluate;
mod paths;

pub use evaluate::{Fault, Workspace};

use super::graph::{Graph, Id, Node};
use super::network::{Network, Scaling, Structure};
use super::resolve::Equations;
use super::tape::{Curve, Tape};
use paths::{Learned, Path, Through};

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
        let joined = |values: &[Id], more: &[Id]| [values, more].concat();
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
            jacobian: Tape::compile(graph, &joined(&equations.derivatives, &slopes), &[]),
            full: Tape::compile(graph, &learned.roots, &learned.calls),
            measure: Tape::compile(graph, &equations.measurements, &[]),
            measure_jacobian: Tape::compile(
                graph,
                &joined(&equations.measurements, &measure_slopes),
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
        system.networks = networks
            .map(|network| structure.applied_to(network))
            .collect();
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
