//! A first θ for batch: networks fitted to what they must have put out.
//!
//! The known equations alone tell, with an uncertainty, what a network put out along the records
//! ([`NetworkOutputs`]). Fitting it to that is plain regression by Levenberg–Marquardt,
//! each sample weighted by how well it is known.

use rayon::prelude::*;

use super::damping::Damping;
use super::stages::first_prior;
use crate::look::prior::NetworkOutputs;
use crate::model::Model;
use crate::model::network::Trace;
use crate::numerics::linalg::normal::{self, NormalEquations};
use crate::numerics::objective::half_square;
use crate::record::Record;
use crate::solve::{Learned, Problem};

/// Steps at the most, and the relative decrease that ends them before.
const MOST_STEPS: usize = 60;
/// Of fewer parameters than this a step costs little, and more are taken.
const CHEAP_PARAMETERS: usize = 300;
const LEAST_DECREASE: f64 = 1e-3;
/// Samples for each parameter.
const SAMPLES_PER_PARAMETER: usize = 10;
/// Of so many examples every third row enters A; the gradient is exact.
const ROWS_THINNED: usize = 3;
const MANY_EXAMPLES: usize = 1000;
/// Examples whose rows are kept at once, and those that a thread takes in one go.
const BLOCK_EXAMPLES: usize = 256;
const PIECE_EXAMPLES: usize = 32;
/// An output is not asked to be fitted closer than this fraction of its scale.
const FINEST_OUTPUT_PART: f64 = 3e-3;
/// Nor that of another network closer than this.
const IMITATED_OUTPUT_PART: f64 = 1e-4;
const IMITATION_DECREASE: f64 = 1e-4;

/// Arguments and outputs of one call at one sample.
struct Example {
    network: usize,
    arguments: Vec<f64>,
    targets: Vec<Target>,
}

/// What an output is to be.
struct Target {
    output: usize,
    value: f64,
    deviation: f64,
}

/// Steps at the most, and the relative decrease that ends them before.
struct Descent {
    steps: usize,
    tolerance: f64,
}

/// θ that fits the networks to the signals, from `theta` and under a prior of zero mean.
pub(super) fn regress(
    model: &Model,
    records: &[Record],
    signals: &NetworkOutputs,
    theta: Vec<f64>,
    prior: &[f64],
) -> Vec<f64> {
    let examples = examples(model, records, signals, theta.len());
    let limits = Descent {
        steps: MOST_STEPS,
        tolerance: LEAST_DECREASE,
    };
    descend(model, &examples, theta, prior, &limits)
}

/// θ that fits the networks to examples.
fn descend(
    model: &Model,
    examples: &[Example],
    mut theta: Vec<f64>,
    prior: &[f64],
    limits: &Descent,
) -> Vec<f64> {
    let regression = Regression {
        model,
        examples,
        prior,
    };
    let (mut damping, mut cost) = (Damping::default(), regression.cost(&theta));
    for _ in 0..limits.steps {
        let equations = regression.equations(&theta);
        let right: Vec<f64> = (0..theta.len())
            .map(|i| equations.b[i] - theta[i] / prior[i])
            .collect();
        let before = cost;
        while let Some(factor) = damping.factor(&equations, prior) {
            let increment = normal::solve(&factor, &right);
            let next: Vec<f64> = theta.iter().zip(&increment).map(|(t, d)| t + d).collect();
            let next_cost = regression.cost(&next);
            let predicted = damping.predicted(&equations, prior, &increment, &right);
            if damping.accept(cost - next_cost, predicted) {
                (theta, cost) = (next, next_cost);
                break;
            }
        }
        if before - cost < limits.tolerance * before {
            break;
        }
    }
    theta
}

/// θ whose networks do what those of another structure do along the states that these have led to.
pub(in crate::solve) fn imitate(
    problem: &Problem,
    simpler: &Model,
    learned: &Learned,
    mut theta: Vec<f64>,
) -> Vec<f64> {
    let model = problem.model;
    let constants = model.system.unknowns();
    theta[..constants].copy_from_slice(&learned.theta[..constants]);
    let (networks, ranges) = (simpler.system.networks(), simpler.system.weight_ranges());
    let mut traces: Vec<Trace> = networks.iter().map(|n| n.trace()).collect();
    let mut ws = simpler.system.workspace();
    let samples: usize = problem.records.iter().map(Record::len).sum();
    let every = (samples / (SAMPLES_PER_PARAMETER * theta.len())).max(1);
    let mut examples = Vec::new();
    for (record, smoothed) in problem.records.iter().zip(&learned.smoothed) {
        for k in (0..record.len()).step_by(every) {
            let at = record.point(k, smoothed.states.row(k), &learned.theta);
            simpler
                .system
                .visit_arguments(&mut ws, at, |network, arguments| {
                    let (imitated, trace) = (&networks[network], &mut traces[network]);
                    for (j, value) in arguments.iter().enumerate() {
                        imitated.set_argument(trace, j, *value);
                    }
                    imitated.evaluate(&learned.theta[ranges[network].clone()], trace);
                    let scales = imitated
                        .scaling
                        .output
                        .iter()
                        .map(|scale| IMITATED_OUTPUT_PART * scale);
                    let targets = trace.output.iter().zip(scales).enumerate();
                    examples.push(Example {
                        network,
                        arguments: arguments.to_vec(),
                        targets: targets
                            .map(|(output, (value, deviation))| Target {
                                output,
                                value: *value,
                                deviation,
                            })
                            .collect(),
                    });
                });
        }
    }
    let prior = first_prior(problem, problem.settings);
    let limits = Descent {
        steps: MOST_STEPS * (CHEAP_PARAMETERS / theta.len()).max(1),
        tolerance: IMITATION_DECREASE,
    };
    descend(model, &examples, theta, &prior, &limits)
}

struct Regression<'a> {
    model: &'a Model,
    examples: &'a [Example],
    prior: &'a [f64],
}

impl Regression<'_> {
    /// Shows some examples with their networks evaluated: `visit(example, weights' start, trace)`.
    fn visit_examples(
        &self,
        examples: &[Example],
        theta: &[f64],
        gradients: bool,
        mut visit: impl FnMut(&Example, usize, &Trace),
    ) {
        let networks = self.model.system.networks();
        let ranges = self.model.system.weight_ranges();
        let mut traces: Vec<Trace> = networks.iter().map(|n| n.trace()).collect();
        for example in examples {
            let (network, range) = (&networks[example.network], &ranges[example.network]);
            let trace = &mut traces[example.network];
            for (j, value) in example.arguments.iter().enumerate() {
                network.set_argument(trace, j, *value);
            }
            network.evaluate(&theta[range.clone()], trace);
            if gradients {
                network.differentiate(&theta[range.clone()], trace);
            }
            visit(example, range.start, trace);
        }
    }

    fn cost(&self, theta: &[f64]) -> f64 {
        let pieces = self.examples.par_chunks(PIECE_EXAMPLES).map(|piece| {
            let mut squares = Vec::new();
            self.visit_examples(piece, theta, false, |example, _, trace| {
                for target in &example.targets {
                    let off = (target.value - trace.output[target.output]) / target.deviation;
                    squares.push(0.5 * off * off);
                }
            });
            squares
        });
        let prior = half_square(theta.iter().copied(), self.prior);
        let pieces: Vec<Vec<f64>> = pieces.collect();
        pieces
            .iter()
            .flatten()
            .fold(prior, |cost, square| cost + square)
    }

    fn equations(&self, theta: &[f64]) -> NormalEquations {
        let thinning = if self.examples.len() > MANY_EXAMPLES {
            ROWS_THINNED
        } else {
            1
        };
        let mut equations = NormalEquations::new(theta.len(), thinning);
        let (mut rows, mut off, mut count) = (Vec::new(), Vec::new(), 0);
        for examples in self.examples.chunks(BLOCK_EXAMPLES) {
            self.rows(examples, theta, &mut rows, &mut off);
            equations.push(count, &rows, &off);
            count += off.len();
        }
        equations.flush();
        equations
    }

    /// The rows of some examples, one after another, and what their targets are off by.
    fn rows(&self, examples: &[Example], theta: &[f64], rows: &mut Vec<f64>, off: &mut Vec<f64>) {
        let (networks, p) = (self.model.system.networks(), theta.len());
        let targets = |examples: &[Example]| examples.iter().map(|e| e.targets.len()).sum();
        let count: usize = targets(examples);
        rows.clear();
        rows.resize(count * p, 0.0);
        off.clear();
        off.resize(count, 0.0);
        let (mut rows, mut off) = (rows.as_mut_slice(), off.as_mut_slice());
        let pieces = examples.chunks(PIECE_EXAMPLES).map(|piece| {
            let count: usize = targets(piece);
            let piece_rows = rows
                .split_off_mut(..count * p)
                .expect("room for each target");
            let piece_off = off.split_off_mut(..count).expect("room for each target");
            (piece, piece_rows, piece_off)
        });
        let pieces: Vec<_> = pieces.collect();
        pieces.into_par_iter().for_each(|(piece, rows, off)| {
            let mut room = rows.chunks_exact_mut(p).zip(off);
            self.visit_examples(piece, theta, true, |example, start, trace| {
                let network = &networks[example.network];
                for (target, (row, off)) in example.targets.iter().zip(&mut room) {
                    let weights = &mut row[start..start + network.weights()];
                    let (output, deviation) = (target.output, target.deviation);
                    network.accumulate_gradient(trace, output, 1.0 / deviation, weights);
                    *off = (target.value - trace.output[output]) / deviation;
                }
            });
        });
    }
}

/// Some samples of the signals, evenly over the records.
fn examples(
    model: &Model,
    records: &[Record],
    signals: &NetworkOutputs,
    parameters: usize,
) -> Vec<Example> {
    let system = &signals.model.system;
    let zero = vec![0.0; parameters];
    let mut ws = system.workspace();
    let samples: usize = records.iter().map(Record::len).sum();
    let every = (samples / (SAMPLES_PER_PARAMETER * parameters)).max(1);
    let first = model.states.len();
    let mut examples = Vec::new();
    for (record, smoothed) in records.iter().zip(&signals.smoothed) {
        for k in (0..record.len()).step_by(every) {
            let state = smoothed.states.row(k);
            let deviations = smoothed.deviations.row(k);
            let mut call = 0;
            system.visit_arguments(
                &mut ws,
                record.point(k, state, &zero),
                |network, arguments| {
                    let scaling = &model.system.networks()[network].scaling;
                    let outputs = signals.outputs.iter().enumerate();
                    let targets = outputs
                        .filter(|(_, (c, _))| *c == call)
                        .map(|(i, &(_, output))| {
                            let floor = FINEST_OUTPUT_PART * scaling.output[output];
                            Target {
                                output,
                                value: state[first + i],
                                deviation: deviations[first + i].hypot(floor),
                            }
                        })
                        .collect();
                    examples.push(Example {
                        network,
                        arguments: arguments.to_vec(),
                        targets,
                    });
                    call += 1;
                },
            );
        }
    }
    examples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Smoothed;
    use crate::look::prior::initial_theta;
    use crate::numerics::Trajectory;
    use crate::numerics::objective::Cost;

    struct Point {
        x: f64,
        value: f64,
        deviation: f64,
    }

    /// x' = net(x) and what the network must have put out at each x, and how well that is known.
    fn case(layers: &str, points: &[Point]) -> (Model, Record, NetworkOutputs) {
        let text = format!(
            "[time]\nstep = 0.1\n[states.x]\nderivative = \"net(x)\"\n\
             [measurements]\ny = \"x\"\n[networks.net]\nlayers = {layers}\n"
        );
        let model = Model::from_text("regression", &text).unwrap();
        let record = Record {
            name: "points".into(),
            time: (0..points.len()).map(|k| k as f64 * 0.1).collect(),
            inputs: vec![],
            outputs: points.iter().map(|p| p.x).collect(),
            truth: None,
            d_u: 0,
            d_y: 1,
            d_x: 1,
            later: false,
        };
        let smoothed = Smoothed {
            states: Trajectory::new(points.iter().flat_map(|p| [p.x, p.value]).collect(), 2),
            deviations: Trajectory::new(
                points.iter().flat_map(|p| [0.0, p.deviation]).collect(),
                2,
            ),
            cost: Cost::default(),
        };
        let (signals, outputs) = model.signals().unwrap();
        let signals = NetworkOutputs {
            model: signals,
            outputs,
            smoothed: vec![smoothed],
        };
        (model, record, signals)
    }

    fn output(model: &Model, theta: &[f64], x: f64) -> f64 {
        let network = &model.system.networks()[0];
        let mut trace = network.trace();
        network.set_argument(&mut trace, 0, x);
        network.evaluate(theta, &mut trace);
        trace.output[0]
    }

    fn fitted(
        model: &Model,
        record: &Record,
        signals: &NetworkOutputs,
        seed: u64,
        prior: f64,
    ) -> Vec<f64> {
        let theta = initial_theta(model, seed);
        let prior = vec![prior; theta.len()];
        regress(model, std::slice::from_ref(record), signals, theta, &prior)
    }

    /// A smooth function is found from its values, to about the resolution asked for.
    #[test]
    fn a_smooth_function_is_found() {
        let truth = |x: f64| (2.0 * x).sin() + 0.3 * x;
        let points: Vec<_> = (0..200).map(|k| f64::from(k) / 100.0 - 1.0).collect();
        let exact = points.iter().map(|&x| Point {
            x,
            value: truth(x),
            deviation: 0.0,
        });
        let exact: Vec<Point> = exact.collect();
        let (model, record, signals) = case("[\"8 tanh\"]", &exact);
        for seed in 1..=3 {
            let theta = fitted(&model, &record, &signals, seed, 10.0);
            let off = points
                .iter()
                .map(|&x| (output(&model, &theta, x) - truth(x)).abs());
            let off = off.fold(0.0, f64::max);
            assert!(off < 3.0 * FINEST_OUTPUT_PART, "seed {seed}: {off}");
        }
    }

    /// Two groups contradict each other at every x: the mean that is found is weighted by how well
    /// each is known.
    #[test]
    fn what_is_known_less_counts_less() {
        let pairs = (0..18).map(|k| (k / 2, k % 2));
        let points: Vec<_> = pairs
            .map(|(k, group)| {
                let (value, deviation) = [(1.0, 0.1), (-1.0, 0.2)][group as usize];
                Point {
                    x: f64::from(k) / 9.0,
                    value,
                    deviation,
                }
            })
            .collect();
        let (model, record, signals) = case("[]", &points);
        let theta = fitted(&model, &record, &signals, 1, 1e6);
        // weights 1/0.01 and 1/0.04
        for x in [0.0, 0.5, 0.9] {
            let value = output(&model, &theta, x);
            assert!((value - 0.6).abs() < 1e-2, "{value}");
        }
    }
}
