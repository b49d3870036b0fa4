//! NODE-LSTM: the networks of the model are replaced by one stack of LSTM layers on (x_k, u_k) with
//! a linear head ([`super::lstm`]); its memory runs along the roll-out from zero. In the stateless variant
//! ([`Settings::recall`]) the memory is built again at each step, from zero over the last few of (x, u).
//!
//! ```text
//! ξ = ((x − c)/s, (u − c)/s)                         standardised states and inputs
//! a_k = s_a · stack(ξ_k, memory),   x_{k+1} = f_o(x_k, u_k, a_k)
//! ```
//!
//! Backpropagation through time is cut after [`SEGMENT_STEPS`] steps: states and memory are carried over a
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
//! - Where the stateless variant has not met as many states yet, it takes those that it has met.
//!
//! What it leaves is no network of the model file: it can be simulated, but not written as
//! weights of the model.

use std::collections::VecDeque;

use latens::model::small::apply_transposed;
use latens::model::{Model, Workspace};
use latens::numerics::step::{Linearised, Scratch, Stepper};
use latens::record::Record;
use latens::solve::Observer;
use latens::{Error, Trajectory};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::Settings;
use super::adam::{Descended, Descent, Loss, Plateau};
use super::lstm::{Memory, Moment, Stack};
use super::windows::{LOST_SCALES, Problem, Starts, Window, axpy, channel_error};

/// Steps after which backpropagation is cut.
pub const SEGMENT_STEPS: usize = 150;
/// Longest gradient, as the card has it.
const GRADIENT_LENGTH: f64 = 1.0;

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
    /// States that the memory is built of, again at each step; all of them, on the way, where not given.
    recall: Option<usize>,
}

/// What the stack knows of the roll-out so far.
#[derive(Debug, Clone)]
struct Past {
    memory: Memory,
    /// The last inputs, where the memory is built again.
    inputs: VecDeque<Vec<f64>>,
}

impl Hybrid {
    /// Of a model whose networks are scaled to the records.
    ///
    /// # Errors
    /// [`Error::Setting`] where the model has no network.
    pub fn new(problem: &Problem, recall: Option<usize>) -> Result<Self, Error> {
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
        let (mut center, mut scale) = (problem.scales.center.clone(), problem.scales.scale.clone());
        for j in 0..model.inputs.len() {
            let values = problem
                .records
                .iter()
                .flat_map(|r| r.inputs.iter().skip(j).step_by(r.d_u));
            let found = latens::look::scales::center_and_scale(values.copied());
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
            recall,
        })
    }

    fn past(&self) -> Past {
        Past {
            memory: self.stack.memory(),
            inputs: VecDeque::new(),
        }
    }

    /// What the stack puts out, into the signals after the states; `moments` are the steps it takes.
    fn signals(
        &self,
        weights: &[f64],
        input: Vec<f64>,
        past: &mut Past,
        moments: &mut Vec<Moment>,
        state: &mut [f64],
    ) {
        if let Some(count) = self.recall {
            past.memory = self.stack.memory();
            past.inputs.truncate(count - 1);
        } else {
            past.inputs.clear();
        }
        past.inputs.push_front(input);
        moments.resize_with(past.inputs.len(), Moment::default);
        let mut outputs = vec![];
        for (input, moment) in past.inputs.iter().rev().zip(moments) {
            outputs = self.stack.step(weights, input, &mut past.memory, moment);
        }
        let signals = state[self.states..].iter_mut();
        for (signal, (output, scale)) in signals.zip(outputs.iter().zip(&self.output)) {
            *signal = scale * output;
        }
    }

    /// The adjoint of [`Hybrid::signals`]: adjoints of the inputs, the latest first.
    fn pull_back(
        &self,
        weights: &[f64],
        moments: &[Moment],
        by_signals: &[f64],
        by_memory: &mut Memory,
        gradient: &mut [f64],
    ) -> Vec<Vec<f64>> {
        if self.recall.is_some() {
            *by_memory = self.stack.memory();
        }
        let scaled = by_signals.iter().zip(&self.output).map(|(a, s)| a * s);
        let mut by_outputs: Vec<f64> = scaled.collect();
        let mut by_inputs = Vec::with_capacity(moments.len());
        for moment in moments.iter().rev() {
            by_inputs.push(
                self.stack
                    .pull_back(weights, moment, &by_outputs, by_memory, gradient),
            );
            // what the stack puts out on the way nobody reads
            by_outputs.fill(0.0);
        }
        by_inputs
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
    ) -> Trajectory {
        let stepper = Stepper::over(&self.model, &self.model.system, dt, [record]);
        let (constants, weights) = parameters.split_at(self.model.system.unknowns());
        let theta = self.theta(constants);
        let (n, all) = (self.states, self.model.system.states());
        let mut run = Trajectory::filled(f64::NAN, record.len(), n);
        let (mut past, mut moments) = (self.past(), vec![]);
        let (mut state, mut next) = (vec![0.0; all], vec![0.0; all]);
        state[..n].copy_from_slice(start);
        run.row_mut(0).copy_from_slice(start);
        let mut scratch = stepper.scratch();
        for k in 1..record.len() {
            let input = self.input(record, k - 1, &state);
            self.signals(weights, input, &mut past, &mut moments, &mut state);
            let at = record.point(k - 1, &state, &theta);
            stepper.advance(&mut scratch, at, stepper.span(record.gap(k - 1)), &mut next);
            std::mem::swap(&mut state, &mut next);
            if state[..n].iter().any(|x| !x.is_finite()) {
                break;
            }
            run.row_mut(k).copy_from_slice(&state[..n]);
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

/// The network of each call.
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

/// The roll-out in segments, by the parameters of a [`Hybrid`] and the offsets of the starts after
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
    at: Sample,
    state: Vec<f64>,
    past: Past,
    moments: Vec<Vec<Moment>>,
    states: Vec<f64>,
}

/// A sample of a record, each by its place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sample {
    record: usize,
    sample: usize,
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
            at: Sample::default(),
            state: vec![],
            past: hybrid.past(),
            moments: vec![],
            states: vec![],
            hybrid,
            problem,
        }
    }

    /// Whether the next segment is the first of all.
    pub fn at_the_beginning(&self) -> bool {
        self.at == Sample::default()
    }

    /// The next segment; says whether the pass over all records is over.
    fn segment(&mut self, parameters: &[f64], gradient: &mut [f64]) -> (f64, bool) {
        let (hybrid, p) = (self.hybrid, self.hybrid.parameters());
        let (hybrid_parameters, offsets) = parameters.split_at(p);
        let unknowns = hybrid.model.system.unknowns();
        let (constants, weights) = hybrid_parameters.split_at(unknowns);
        let theta = hybrid.theta(constants);
        let all = hybrid.model.system.states();
        let Sample {
            record: r,
            sample: from,
        } = self.at;
        let record = &self.problem.records[r];
        if from == 0 {
            self.state = self.starts.state(r, offsets);
            self.state.resize(all, 0.0);
            self.past = hybrid.past();
        }
        let to = (from + self.length).min(record.len() - 1);
        self.moments.resize_with(to - from, Vec::new);
        self.states.clear();
        let (mut done, mut lost) = (0, false);
        for k in from..to {
            let input = hybrid.input(record, k, &self.state);
            let moments = &mut self.moments[k - from];
            hybrid.signals(weights, input, &mut self.past, moments, &mut self.state);
            self.states.extend_from_slice(&self.state);
            let at = record.point(k, &self.states[(k - from) * all..], &theta);
            let span = self.stepper.span(record.gap(k));
            self.stepper
                .advance(&mut self.scratch, at, span, &mut self.state);
            let scales = self.problem.scales;
            let sizes = scales.center.iter().zip(&scales.scale);
            let mut off = self
                .state
                .iter()
                .zip(sizes)
                .map(|(x, (c, s))| (x - c).abs() / s);
            done = k + 1 - from;
            if !off.all(|off| off < LOST_SCALES) {
                lost = true;
                done -= 1;
                break;
            }
        }
        self.states.truncate((done + 1) * all);
        if !lost {
            self.states.extend_from_slice(&self.state);
        }
        let loss = self.backward(self.at, done, &theta, weights, gradient);
        self.at = match (
            lost || to == record.len() - 1,
            r + 1 == self.problem.records.len(),
        ) {
            (false, _) => Sample {
                record: r,
                sample: to,
            },
            (true, true) => Sample::default(),
            (true, false) => Sample {
                record: r + 1,
                sample: 0,
            },
        };
        (loss, self.at_the_beginning())
    }

    fn backward(
        &mut self,
        begin: Sample,
        done: usize,
        theta: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
    ) -> f64 {
        let Sample {
            record: r,
            sample: from,
        } = begin;
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
        // what the stack, where it recalls, says of states before the one it stands at
        let mut recalled = vec![0.0; (done + 1) * n];
        let mut loss = 0.0;
        // the first sample of a record is the start's own; others belong to the segment before
        for j in (0..=done).rev() {
            let k = from + j;
            axpy(1.0, &recalled[j * n..(j + 1) * n], &mut adjoint[..n]);
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
            let moments = &self.moments[j - 1];
            let by_inputs =
                hybrid.pull_back(weights, moments, &earlier[n..], &mut by_memory, by_weights);
            // gradients do not pass the cut
            for (by_input, at) in by_inputs.iter().zip((0..j).rev()) {
                for (i, d) in by_input[..n].iter().enumerate() {
                    recalled[at * n + i] += d / hybrid.scale[i];
                }
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
        let (hybrid_parameters, offsets) = parameters.split_at(self.hybrid.parameters());
        let starts = self.first(offsets);
        let dt = self.stepper.dt();
        let pairs = self.problem.records.iter().zip(&starts);
        let runs =
            pairs.map(|(record, start)| self.hybrid.free_run(hybrid_parameters, record, start, dt));
        let runs: Vec<Trajectory> = runs.collect();
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
    let hybrid = Hybrid::new(&problem, settings.recall)?;
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
        passes: settings.iterations,
        steps: segments.sum(),
        rate: settings.rate,
        plateau: Plateau::new(0.5, 10),
        clip: GRADIENT_LENGTH,
    };
    let done = descent.run(&mut loss, parameters, observer)?;
    let (hybrid_parameters, offsets) = done.parameters.split_at(hybrid.parameters());
    let (hybrid_parameters, starts) = (hybrid_parameters.to_vec(), loss.first(offsets));
    drop(loss);
    Ok((hybrid, hybrid_parameters, starts, done))
}

/// The first state of the problem's one record, the stack held.
pub(crate) fn start(problem: Problem, hybrid: &Hybrid, hybrid_parameters: &[f64]) -> Vec<f64> {
    // one segment, or its gradient would miss what comes after
    let mut loss = Segments::new(problem, hybrid, false, problem.records[0].len());
    let count = loss.starts.parameters();
    let found = super::node::offsets(&mut loss, hybrid_parameters, count);
    loss.first(&found).remove(0)
}
