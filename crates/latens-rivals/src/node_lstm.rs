//! NODE-LSTM: the networks of the model are replaced by one stack of LSTM layers on (x_k, u_k) with
//! a linear head; its memory runs along the roll-out from zero.
//!
//! ```text
//! ξ = ((x − c)/s, (u − c)/s)                         standardised states and inputs
//! (i, f, g, o) = W [ξ; h] + b                        each layer on the one below it
//! c ← σ(f) c + σ(i) tanh(g),   h ← σ(o) tanh(c)
//! a_k = s_a (V h + v),   x_{k+1} = f_o(x_k, u_k, a_k)
//! ```
//!
//! Backpropagation through time is cut after [`SEGMENT`] steps: states and memory are carried over a
//! cut, their gradients are not, and Adam takes a step at each. Layers are as wide as those of the
//! network that the stack replaces. Gradients are exact within a segment.
//!
//! Departures and open choices:
//! - What the networks put out is held over a step of the integrator, because the memory moves once
//!   a sample. With Euler, one step per sample, that is what a network does as well.
//! - Where a network is called twice, or there are several, the stack has an output for each.
//! - Hidden starts as for NODE: trained with the weights (their gradient comes from the first
//!   segment alone), or given.
//! - A roll-out that is lost ends its pass; the next pass begins at the start again.
//! - The stateless variant of the card, which re-runs the stack on the last five states, is not built.
//!
//! What it leaves behind is no network of the model file: it can be simulated, but not written as
//! weights of the model.

use latens::Error;
use latens::linalg::small::apply_transposed;
use latens::model::{Model, Workspace};
use latens::record::Record;
use latens::solve::Observer;
use latens::step::{Linearised, Scratch, Stepper};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::Settings;
use crate::adam::{Descended, Descent, Loss, Plateau};
use crate::windows::{Problem, Starts, Window, axpy, channel_error};

/// Steps after which backpropagation is cut.
pub const SEGMENT: usize = 150;
/// Longest gradient, as the card has it.
const CLIP: f64 = 1.0;
/// States this many scales from their centre are lost.
const LOST: f64 = 1e3;

/// Shape of the stack; its weights are layer by layer W (4h × (in + h)), b (4h), then V, v.
#[derive(Debug, Clone)]
pub struct Stack {
    pub inputs: usize,
    pub widths: Vec<usize>,
    pub outputs: usize,
}

/// Values of one step that the backward pass needs.
#[derive(Debug, Clone, Default)]
struct Moment {
    /// Input of each layer with the memory before it, its gates behind their nonlinearity, its cell
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
    fn step(
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
            let sums = rows.map(|(row, b)| b + latens::linalg::small::dot_long(row, &layer.input));
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
        rows.map(|(row, b)| b + latens::linalg::small::dot(row, &below))
            .collect()
    }

    /// The adjoint of a step: from that of the outputs and of the memory after it, to the gradient,
    /// the memory before it, and the input (returned).
    fn pull_back(
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

/// The system with its networks as signals, and the stack that makes them.
#[derive(Debug, Clone)]
pub struct Hybrid {
    /// Outputs of networks are its last states.
    model: Model,
    pub stack: Stack,
    /// Centre and scale of states, then of inputs.
    center: Vec<f64>,
    scale: Vec<f64>,
    /// Scale of each signal.
    output: Vec<f64>,
    states: usize,
}

impl Hybrid {
    /// Of a model whose networks are scaled to the records.
    ///
    /// # Errors
    /// [`Error::Setting`] where the model has no network.
    pub fn new(problem: &Problem) -> Result<Self, Error> {
        let model = problem.model;
        let (extended, signals) = model.signals().ok_or_else(|| {
            Error::Setting("node-lstm replaces networks, and this model calls none".into())
        })?;
        let calls = call_networks(model);
        let networks = model.system.networks();
        let output = |&(call, k): &(usize, usize)| networks[calls[call]].scaling.output[k];
        let widths = networks
            .iter()
            .map(|n| n.layers.iter().map(|l| l.0).collect());
        let widths: Vec<Vec<usize>> = widths.collect();
        let widths = widths.into_iter().max_by_key(Vec::len).unwrap_or_default();
        let (mut center, mut scale) = (
            problem.nominal.center.clone(),
            problem.nominal.scale.clone(),
        );
        for j in 0..model.inputs.len() {
            let values = problem
                .records
                .iter()
                .flat_map(|r| r.inputs.iter().skip(j).step_by(r.d_u));
            let found = latens::fit::nominal::center_and_scale(values.copied());
            let (c, s) = found.unwrap_or((0.0, 1.0));
            center.push(c);
            scale.push(if s > 0.0 { s } else { 1.0 });
        }
        Ok(Self {
            stack: Stack {
                inputs: center.len(),
                widths,
                outputs: signals.len(),
            },
            output: signals.iter().map(output).collect(),
            states: model.states.len(),
            model: extended,
            center,
            scale,
        })
    }

    /// Parameters: unknown constants, then the stack's weights.
    pub fn parameters(&self) -> usize {
        self.model.system.unknowns() + self.stack.weights()
    }

    /// The input of the stack.
    fn input(&self, record: &Record, k: usize, state: &[f64]) -> Vec<f64> {
        let values = state[..self.states].iter().chain(record.input(k));
        let sizes = self.center.iter().zip(&self.scale);
        values.zip(sizes).map(|(v, (c, s))| (v - c) / s).collect()
    }

    /// A free run over a record from a start.
    pub fn free_run(
        &self,
        parameters: &[f64],
        record: &Record,
        start: &[f64],
        dt: f64,
    ) -> Vec<f64> {
        let stepper = Stepper::over(&self.model, &self.model.system, dt, [record]);
        let (constants, weights) = parameters.split_at(self.model.system.unknowns());
        let theta = self.theta(constants);
        let (n, all) = (self.states, self.model.system.states());
        let mut run = vec![f64::NAN; record.len() * n];
        let (mut memory, mut moment) = (self.stack.memory(), Moment::default());
        let (mut state, mut next) = (vec![0.0; all], vec![0.0; all]);
        state[..n].copy_from_slice(start);
        run[..n].copy_from_slice(start);
        let mut scratch = stepper.scratch();
        for k in 1..record.len() {
            let input = self.input(record, k - 1, &state);
            let outputs = self.stack.step(weights, &input, &mut memory, &mut moment);
            for (s, (o, scale)) in state[n..].iter_mut().zip(outputs.iter().zip(&self.output)) {
                *s = scale * o;
            }
            let at = record.point(k - 1, &state, &theta);
            stepper.advance(&mut scratch, at, stepper.span(record.gap(k - 1)), &mut next);
            std::mem::swap(&mut state, &mut next);
            if state[..n].iter().any(|x| !x.is_finite()) {
                break;
            }
            run[k * n..(k + 1) * n].copy_from_slice(&state[..n]);
        }
        run
    }

    /// θ of the extended system: its networks are gone, its constants are there.
    fn theta(&self, constants: &[f64]) -> Vec<f64> {
        let mut theta = vec![0.0; self.model.system.parameters()];
        theta[..constants.len()].copy_from_slice(constants);
        theta
    }
}

/// The network behind each call.
fn call_networks(model: &Model) -> Vec<usize> {
    let (state, theta) = (
        vec![0.0; model.states.len()],
        vec![0.0; model.system.parameters()],
    );
    let input = vec![0.0; 2 * model.inputs.len()];
    let at = latens::model::Point {
        time: 0.0,
        state: &state,
        input: &input,
        theta: &theta,
    };
    let mut networks = Vec::new();
    let mut workspace = model.system.workspace();
    model
        .system
        .visit_arguments(&mut workspace, at, |network, _| networks.push(network));
    networks
}

/// The roll-out in segments, by the parameters of a [`Hybrid`] and the offsets of the starts behind
/// them.
pub struct Segments<'a> {
    problem: Problem<'a>,
    hybrid: &'a Hybrid,
    pub starts: Starts,
    stepper: Stepper<'a>,
    scratch: Scratch,
    step: Linearised,
    workspace: Workspace,
    /// Steps of a segment.
    length: usize,
    /// Record and sample where the next segment begins; states and memory there.
    at: (usize, usize),
    state: Vec<f64>,
    memory: Memory,
    moments: Vec<Moment>,
    states: Vec<f64>,
}

impl<'a> Segments<'a> {
    pub fn new(problem: Problem<'a>, hybrid: &'a Hybrid, known_start: bool, length: usize) -> Self {
        let whole = |(record, r): (usize, &Record)| Window {
            record,
            samples: 0..r.len(),
        };
        let whole: Vec<Window> = problem.records.iter().enumerate().map(whole).collect();
        let (model, dt) = (&hybrid.model, problem.stepper.dt());
        let stepper = Stepper::over(model, &model.system, dt, problem.records);
        Self {
            starts: Starts::new(&problem, &whole, known_start),
            scratch: stepper.scratch(),
            step: stepper.linearised(),
            workspace: problem.model.system.workspace(),
            stepper,
            length,
            at: (0, 0),
            state: vec![],
            memory: hybrid.stack.memory(),
            moments: vec![],
            states: vec![],
            hybrid,
            problem,
        }
    }

    /// Whether the next segment is the first of all.
    pub fn at_the_beginning(&self) -> bool {
        self.at == (0, 0)
    }

    /// The next segment; says whether the pass over all records is over.
    fn segment(&mut self, parameters: &[f64], gradient: &mut [f64]) -> (f64, bool) {
        let (hybrid, p) = (self.hybrid, self.hybrid.parameters());
        let (own, offsets) = parameters.split_at(p);
        let unknowns = hybrid.model.system.unknowns();
        let (constants, weights) = own.split_at(unknowns);
        let theta = hybrid.theta(constants);
        let (n, all) = (hybrid.states, hybrid.model.system.states());
        let (r, from) = self.at;
        let record = &self.problem.records[r];
        if from == 0 {
            self.state = self.starts.state(r, offsets);
            self.state.resize(all, 0.0);
            self.memory = hybrid.stack.memory();
        }
        let to = (from + self.length).min(record.len() - 1);
        self.moments.resize_with(to - from, Moment::default);
        self.states.clear();
        let (mut done, mut lost) = (0, false);
        for k in from..to {
            let input = hybrid.input(record, k, &self.state);
            let moment = &mut self.moments[k - from];
            let outputs = hybrid.stack.step(weights, &input, &mut self.memory, moment);
            for (s, (o, scale)) in self.state[n..]
                .iter_mut()
                .zip(outputs.iter().zip(&hybrid.output))
            {
                *s = scale * o;
            }
            self.states.extend_from_slice(&self.state);
            let at = record.point(k, &self.states[(k - from) * all..], &theta);
            let span = self.stepper.span(record.gap(k));
            self.stepper
                .advance(&mut self.scratch, at, span, &mut self.state);
            let nominal = self.problem.nominal;
            let sizes = nominal.center.iter().zip(&nominal.scale);
            let mut off = self
                .state
                .iter()
                .zip(sizes)
                .map(|(x, (c, s))| (x - c).abs() / s);
            done = k + 1 - from;
            if !off.all(|off| off < LOST) {
                lost = true;
                done -= 1;
                break;
            }
        }
        self.states.truncate((done + 1) * all);
        if !lost {
            self.states.extend_from_slice(&self.state);
        }
        let loss = self.backward((r, from), done, &theta, weights, gradient);
        self.at = match (
            lost || to == record.len() - 1,
            r + 1 == self.problem.records.len(),
        ) {
            (false, _) => (r, to),
            (true, true) => (0, 0),
            (true, false) => (r + 1, 0),
        };
        (loss, self.at_the_beginning())
    }

    fn backward(
        &mut self,
        (r, from): (usize, usize),
        done: usize,
        theta: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
    ) -> f64 {
        let hybrid = self.hybrid;
        let (n, all) = (hybrid.states, hybrid.model.system.states());
        let unknowns = hybrid.model.system.unknowns();
        let (by_own, by_offsets) = gradient.split_at_mut(hybrid.parameters());
        let (by_constants, by_weights) = by_own.split_at_mut(unknowns);
        let record = &self.problem.records[r];
        let channels = record.d_y;
        let weight = 1.0 / (done.max(1) * channels.max(1)) as f64;
        let (mut h, mut h_x) = (vec![0.0; channels], vec![0.0; channels * n]);
        let mut adjoint = vec![0.0; all];
        let mut by_memory = hybrid.stack.memory();
        let mut loss = 0.0;
        // the first sample of a record is the start's own; others belong to the segment before
        for j in (0..=done).rev() {
            let k = from + j;
            if j > 0 || from == 0 {
                let state = &self.states[j * all..j * all + n];
                let at = record.point(k, state, &[]);
                let system = &self.problem.model.system;
                system.linearise_measurement(&mut self.workspace, at, &mut h, &mut h_x);
                for (c, y) in record
                    .output(k)
                    .iter()
                    .enumerate()
                    .filter(|(_, y)| !y.is_nan())
                {
                    let deviation = self.problem.deviation[c];
                    let residual = (h[c] - y) / deviation;
                    loss += 0.5 * weight * residual * residual;
                    axpy(
                        weight * residual / deviation,
                        &h_x[c * n..(c + 1) * n],
                        &mut adjoint[..n],
                    );
                }
            }
            if j == 0 {
                break;
            }
            let before = &self.states[(j - 1) * all..j * all];
            let at = record.point(k - 1, before, theta);
            let span = self.stepper.span(record.gap(k - 1));
            self.stepper
                .linearise(&mut self.scratch, at, span, true, &mut self.step);
            let rows = self.step.f_theta.chunks_exact(theta.len().max(1));
            for (row, &i) in rows.zip(self.stepper.rows()) {
                axpy(adjoint[i], &row[..unknowns], by_constants);
            }
            // signals do not outlive the step: the next one sets them again
            adjoint[n..].fill(0.0);
            let mut earlier = vec![0.0; all];
            apply_transposed(&self.step.f_x, &adjoint, &mut earlier);
            let outputs = earlier[n..].iter().zip(&hybrid.output).map(|(a, s)| a * s);
            let outputs: Vec<f64> = outputs.collect();
            let moment = &self.moments[j - 1];
            let by_input =
                hybrid
                    .stack
                    .pull_back(weights, moment, &outputs, &mut by_memory, by_weights);
            for (i, d) in by_input[..n].iter().enumerate() {
                earlier[i] += d / hybrid.scale[i];
            }
            adjoint = earlier;
        }
        if from == 0 {
            self.starts.pull_back(r, &adjoint[..n], by_offsets);
        }
        loss
    }

    /// The first state of each record.
    pub fn first(&self, offsets: &[f64]) -> Vec<Vec<f64>> {
        (0..self.problem.records.len())
            .map(|r| self.starts.state(r, offsets))
            .collect()
    }
}

impl Loss for Segments<'_> {
    fn gradient(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        self.segment(parameters, gradient).0
    }

    fn free_run(&mut self, parameters: &[f64]) -> f64 {
        let (own, offsets) = parameters.split_at(self.hybrid.parameters());
        let starts = self.first(offsets);
        let dt = self.stepper.dt();
        let pairs = self.problem.records.iter().zip(&starts);
        let runs = pairs.map(|(record, start)| self.hybrid.free_run(own, record, start, dt));
        let runs: Vec<Vec<f64>> = runs.collect();
        let blank = vec![0.0; self.problem.model.system.parameters()];
        channel_error(&self.problem, &blank, &runs)
    }
}

/// What was learned: the parameters of the hybrid, and the first state of each record.
pub(crate) type Learned = (Hybrid, Vec<f64>, Vec<Vec<f64>>, Descended);

/// Learns the stack; `settings.iterations` are passes over the records.
pub(crate) fn learn(
    problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let hybrid = Hybrid::new(&problem)?;
    let mut loss = Segments::new(problem, &hybrid, settings.known_start, settings.window);
    let mut rng = Pcg64::seed_from_u64(settings.seed);
    let mut parameters = vec![0.0; hybrid.model.system.unknowns()];
    parameters.extend(hybrid.stack.initialise(&mut rng));
    parameters.resize(parameters.len() + loss.starts.parameters(), 0.0);
    let segments = problem
        .records
        .iter()
        .map(|r| (r.len() - 1).div_ceil(settings.window));
    let descent = Descent {
        epochs: settings.iterations,
        steps: segments.sum(),
        rate: settings.rate,
        plateau: Plateau::new(0.5, 10),
        clip: CLIP,
    };
    let done = descent.run(&mut loss, parameters, observer)?;
    let (own, offsets) = done.parameters.split_at(hybrid.parameters());
    let (own, starts) = (own.to_vec(), loss.first(offsets));
    drop(loss);
    Ok((hybrid, own, starts, done))
}

/// The first state of the problem's one record, the stack held.
pub(crate) fn start(problem: Problem, hybrid: &Hybrid, own: &[f64]) -> Vec<f64> {
    // one segment, or its gradient would miss what comes behind
    let mut loss = Segments::new(problem, hybrid, false, problem.records[0].len());
    let count = loss.starts.parameters();
    let found = crate::node::offsets(&mut loss, own, count);
    loss.first(&found).remove(0)
}
