//! The rivals are what they say: their gradients are those of dual numbers, or of differences
//! where dual numbers are unwieldy; one step teaches a hidden network nothing; seeds repeat; whoever
//! watches can stop them.

use crate::oracle::{At, Number, Oracle, Variant};
use latens::fit::learn;
use latens::look::SignalScales;
use latens::look::prior::initial_theta;
use latens::model::Method;
use latens::numerics::step::Stepper;
use latens::record::Record;
use latens::simulate::{Simulation, simulate};
use latens::solve::{Observer, PassReport, Progress, Silent};
use latens::{Model, systems};
use latens_lab::rivals::adam::Loss;
use latens_lab::rivals::lstm::Stack;
use latens_lab::rivals::node::Windows;
use latens_lab::rivals::node_lstm::{Hybrid, Segments};
use latens_lab::rivals::pr_ssm::{Bound, Size};
use latens_lab::rivals::rm::Recognised;
use latens_lab::rivals::spinode::{Gradients, Moments};
use latens_lab::rivals::windows::{self, Problem, Window};
use latens_lab::rivals::{Rival, Settings, fit};
use num_dual::{Dual64, DualNum};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Two hidden states in a chain, a constant, an input, a measurement through an expression.
const CHAIN: &str = "\
[time]\nstep = 0.1\nmethod = \"euler\"\n[inputs]\nu = {}\n\
[states.x]\nderivative = \"v - 0.1*x\"\nstart = 0.4\n\
[states.v]\nderivative = \"c*net(x, v, w) + u\"\nstart = 0.3\n\
[states.w]\nderivative = \"net(v, w, x) - w\"\nstart = -0.2\n\
[networks.net]\nlayers = [\"4 tanh\", \"3 silu\"]\n[unknowns]\nc = { guess = 0.7, scale = 0.3 }\n\
[measurements]\nx = \"x\"\ny = \"x^2 + 0.3*w\"\n\
[truth]\nc = 0.9\nv = \"c*sin(x) - v + u\"\nw = \"v - w\"\n\
[simulation]\nsteps = 40\ninputs = { u = \"sin(t)\" }\n";

struct Case {
    model: Model,
    scales: SignalScales,
    records: Vec<Record>,
    dt: f64,
    deviation: Vec<f64>,
}

impl Case {
    fn new(text: &str, steps: usize) -> Self {
        let model = Model::from_text("case", text).unwrap_or_else(|e| panic!("{e}"));
        let simulation = Simulation {
            steps: Some(steps),
            ..Simulation::default()
        };
        let records = vec![simulate(&model, &simulation).unwrap()];
        let (model, scales, dt) = learn::scaled(&model, &records).unwrap();
        let deviation = windows::deviations(&records, model.measurements.len());
        Self {
            model,
            scales,
            records,
            dt,
            deviation,
        }
    }

    fn with<T>(&self, look: impl FnOnce(Problem) -> T) -> T {
        let stepper = Stepper::over(&self.model, &self.model.system, self.dt, &self.records);
        look(Problem {
            model: &self.model,
            stepper: &stepper,
            records: &self.records,
            scales: &self.scales,
            deviation: &self.deviation,
        })
    }

    fn oracle(&self) -> Oracle {
        let networks = self.model.system.networks().iter();
        let scaling = networks.map(|n| n.scaling.clone()).collect();
        Oracle::new(&self.model.text, Variant::Learned, scaling)
    }
}

fn embedded(name: &str) -> &'static str {
    systems::find(name).unwrap()
}

fn random(count: usize, size: f64, seed: u64) -> Vec<f64> {
    let mut rng = Pcg64::seed_from_u64(seed);
    (0..count)
        .map(|_| size * rng.random_range(-1.0..1.0))
        .collect()
}

/// Relative to the largest entry.
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    assert!(largest > 0.0);
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f - e).abs() < tolerance * largest,
            "[{i}]: {f:e}, not {e:e} of {largest:e}"
        );
    }
}

/// The derivative of a function of dual numbers by each parameter.
fn dual_gradient(at: &[f64], value: impl Fn(&[Dual64]) -> Dual64) -> (f64, Vec<f64>) {
    let mut point: Vec<Dual64> = at.iter().map(|v| Dual64::from(*v)).collect();
    let (mut gradient, mut result) = (vec![], 0.0);
    for i in 0..at.len() {
        point[i] = Dual64::new(at[i], 1.0);
        let dual = value(&point);
        (result, point[i]) = (dual.re, Dual64::from(at[i]));
        gradient.push(dual.eps);
    }
    (result, gradient)
}

/// ½ w Σ ((h − y)/σ)² along a roll-out in any numbers.
fn rolled_out<D: Number>(
    case: &Case,
    oracle: &Oracle,
    theta: &[D],
    mut state: Vec<D>,
    window: &Window,
    weight: f64,
) -> D {
    let record = &case.records[window.record];
    let mut loss = D::from(0.0);
    for k in window.samples.clone() {
        let at = At {
            time: record.time[k],
            state: state.clone(),
            input: record.input(k).to_vec(),
            theta: theta.to_vec(),
        };
        let outputs = oracle.measure(&at);
        for (c, h) in outputs.iter().enumerate() {
            let residual = (*h - record.output(k)[c]) / case.deviation[c];
            loss += residual * residual * (0.5 * weight);
        }
        if k + 1 < window.samples.end {
            state = oracle.step(&at, case.model.method, case.model.substeps, case.dt);
        }
    }
    loss
}

/// NODE's adjoint against dual numbers through the same windows, by θ and by hidden starts, with
/// Euler and with RK4.
#[test]
fn node_has_the_gradient_of_dual_numbers() {
    for method in [Method::Euler, Method::Rk4] {
        let name = if method == Method::Rk4 {
            "rk4"
        } else {
            "euler"
        };
        let case = Case::new(&CHAIN.replace("euler", name), 40);
        let oracle = case.oracle();
        case.with(|problem| {
            let settings = Settings {
                window: 15,
                ..Settings::new(Rival::Node)
            };
            let mut loss = Windows::new(problem, &settings);
            let p = case.model.system.parameters();
            let point = random(p + loss.starts.parameters(), 0.6, 7);
            let mut gradient = vec![0.0; point.len()];
            let value = loss.gradient(&point, &mut gradient);
            let weight = 1.0 / windows::measurements(&case.records, &loss.windows) as f64;
            // offsets of the two hidden states of each window
            let hidden = [1, 2];
            let expected = dual_gradient(&point, |point| {
                let (theta, offsets) = point.split_at(p);
                let mut sum = Dual64::from(0.0);
                for (w, window) in loss.windows.iter().enumerate() {
                    let k = window.samples.start;
                    let center = &case.scales.center;
                    let mut start: Vec<Dual64> = center.iter().map(|c| Dual64::from(*c)).collect();
                    start[0] = Dual64::from(case.records[0].output(k)[0]);
                    for (slot, &i) in hidden.iter().enumerate() {
                        start[i] += offsets[w * hidden.len() + slot] * case.scales.scale[i];
                    }
                    sum += rolled_out(&case, &oracle, theta, start, window, weight);
                }
                sum
            });
            assert!((value - expected.0).abs() < 1e-12 * value);
            close(&gradient, &expected.1, 1e-10);
        });
    }
}

/// The lower factor of Σ in any numbers.
fn factor<D: Number>(sigma: &[D], n: usize) -> Vec<D> {
    let mut l = vec![D::from(0.0); n * n];
    for j in 0..n {
        for i in j..n {
            let mut rest = sigma[i * n + j];
            for k in 0..j {
                rest -= l[i * n + k] * l[j * n + k];
            }
            l[i * n + j] = if i == j {
                rest.sqrt()
            } else {
                rest / l[j * n + j]
            };
        }
    }
    l
}

/// SPINODE's adjoint through the unscented transform against dual numbers: all 2n points written
/// out, those of the noise too.
#[test]
fn spinode_has_the_gradient_of_dual_numbers() {
    let case = Case::new(CHAIN, 12);
    let oracle = case.oracle();
    let window = Window {
        record: 0,
        samples: 0..13,
    };
    let (n, noisy) = (3, [1, 2]);
    let p = case.model.system.parameters();
    let start = [0.4, 0.2, -0.1];
    let diffusion = [1e-3, 4e-3];
    let point = [random(p, 0.6, 9), diffusion.to_vec(), start.to_vec()].concat();
    let scatter: Vec<f64> = (0..26).map(|i| 1e-3 * f64::from(i)).collect();
    let hidden = case.model.hidden();
    for scatter in [None, Some(&scatter)] {
        let (mut by_theta, mut by_diffusion) = (vec![0.0; p], vec![0.0; 2]);
        let (value, by_start) = case.with(|problem| {
            let mut moments = Moments::new(problem);
            let gradients = Gradients {
                by_theta: &mut by_theta,
                by_diffusion: &mut by_diffusion,
            };
            let value = moments.gradient(
                &point[..p],
                &diffusion,
                &start,
                &window,
                0.3,
                scatter,
                gradients,
            );
            (value, moments.by_start().to_vec())
        });
        let expected = dual_gradient(&point, |point| {
            let (theta, diffusion) = (&point[..p], &point[p..p + 2]);
            let mut mean = point[p + 2..].to_vec();
            let mut sigma = vec![Dual64::from(0.0); n * n];
            for i in 0..n {
                let part = if hidden.contains(&i) { 1e-2 } else { 1e-4 };
                sigma[i * n + i] = Dual64::from((part * case.scales.scale[i]).powi(2));
            }
            let record = &case.records[0];
            let mut loss = Dual64::from(0.0);
            for k in 0..13 {
                let at = |state: Vec<Dual64>| At {
                    time: record.time[k],
                    state,
                    input: record.input(k).to_vec(),
                    theta: theta.to_vec(),
                };
                let jittered: Vec<Dual64> = (0..n * n)
                    .map(|i| {
                        let on_diagonal = i % (n + 1) == 0;
                        let scale = case.scales.scale[i % n];
                        sigma[i] + f64::from(on_diagonal) * 1e-14 * scale * scale
                    })
                    .collect();
                let l = factor(&jittered, n);
                let h = oracle.measure(&at(mean.clone()));
                // the rows of ∂h/∂x: x, and x² + 0.3 w
                let zero = Dual64::from(0.0);
                let rows = [
                    [Dual64::from(1.0), zero, zero],
                    [mean[0] * 2.0, zero, Dual64::from(0.3)],
                ];
                for c in 0..2 {
                    let unit = case.deviation[c];
                    loss += match scatter {
                        None => {
                            let residual = (h[c] - record.output(k)[c]) / unit;
                            residual * residual * 0.15
                        }
                        Some(scatter) => {
                            // the mean is held here: h is linearised, not differentiated twice
                            let row = rows[c].map(|v| Dual64::from(v.re));
                            let mut variance = zero;
                            for j in 0..n {
                                let along: Dual64 = (0..n).map(|i| row[i] * l[i * n + j]).sum();
                                variance += along * along;
                            }
                            let off = (variance - scatter[2 * k + c]) / (unit * unit);
                            off * off * 0.15
                        }
                    };
                }
                if k == 12 {
                    break;
                }
                let count = 2.0 * (n + noisy.len()) as f64;
                let reach = (count / 2.0).sqrt();
                let mut images = vec![];
                for side in [1.0, -1.0] {
                    for j in 0..n {
                        let x = (0..n).map(|i| mean[i] + l[i * n + j] * (side * reach));
                        let x = at(x.collect());
                        images.push(oracle.step(&x, case.model.method, 1, case.dt));
                    }
                    for (r, &i) in noisy.iter().enumerate() {
                        let mut image =
                            oracle.step(&at(mean.clone()), case.model.method, 1, case.dt);
                        image[i] += (diffusion[r] * 2.0 * case.dt).sqrt() * (side * reach);
                        images.push(image);
                    }
                }
                for i in 0..n {
                    mean[i] = images.iter().map(|x| x[i] / count).sum();
                }
                for a in 0..n {
                    for b in 0..n {
                        let images = images.iter();
                        let products = images.map(|x| (x[a] - mean[a]) * (x[b] - mean[b]) / count);
                        sigma[a * n + b] = products.sum();
                    }
                }
            }
            loss
        });
        assert!(
            (value - expected.0).abs() < 1e-10 * value,
            "{value} {}",
            expected.0
        );
        let found = [by_theta, by_diffusion, by_start].concat();
        close(&found, &expected.1, 1e-8);
    }
}

/// One step of an LSTM stack, written again in any numbers.
fn lstm<D: Number>(
    stack: &Stack,
    w: &[D],
    input: &[D],
    h: &mut [Vec<D>],
    c: &mut [Vec<D>],
) -> Vec<D> {
    let one = D::from(1.0);
    let sigmoid = |x: D| one / (one + (-x).exp());
    let mut below = input.to_vec();
    let mut at = 0;
    for (l, &width) in stack.widths.iter().enumerate() {
        let all: Vec<D> = below.iter().chain(&h[l]).copied().collect();
        let bias = at + 4 * width * all.len();
        let gate = |g: usize, j: usize| {
            let row = at + (g * width + j) * all.len();
            let mut sum = w[bias + g * width + j];
            for (i, x) in all.iter().enumerate() {
                sum += w[row + i] * *x;
            }
            sum
        };
        for (j, cell) in c[l].iter_mut().enumerate() {
            let kept = sigmoid(gate(1, j)) * *cell;
            *cell = kept + sigmoid(gate(0, j)) * gate(2, j).tanh();
        }
        let next: Vec<D> = (0..width)
            .map(|j| sigmoid(gate(3, j)) * c[l][j].tanh())
            .collect();
        h[l].clone_from(&next);
        below = next;
        at = bias + 4 * width;
    }
    (0..stack.outputs)
        .map(|k| {
            let mut sum = w[at + stack.outputs * below.len() + k];
            for (i, x) in below.iter().enumerate() {
                sum += w[at + k * below.len() + i] * *x;
            }
            sum
        })
        .collect()
}

/// NODE-LSTM's backpropagation through time against dual numbers, by the constant, the weights and
/// the hidden start; two calls of the network have two outputs.
#[test]
fn node_lstm_has_the_gradient_of_dual_numbers() {
    node_lstm_against_dual_numbers(None);
}

/// The stateless variant, which looks back at three states.
#[test]
fn node_lstm_without_memory_has_the_gradient_of_dual_numbers() {
    node_lstm_against_dual_numbers(Some(3));
}

fn node_lstm_against_dual_numbers(recall: Option<usize>) {
    let text = CHAIN.replace("\"4 tanh\", \"3 silu\"", "\"3 tanh\", \"2 tanh\"");
    let case = Case::new(&text, 12);
    case.with(|problem| {
        let hybrid = Hybrid::new(&problem, recall).unwrap();
        assert_eq!((hybrid.stack.outputs, hybrid.stack.inputs), (2, 4));
        let mut loss = Segments::new(problem, &hybrid, false, 12);
        let point = random(hybrid.parameters() + loss.starts.parameters(), 0.5, 3);
        let mut gradient = vec![0.0; point.len()];
        let value = loss.gradient(&point, &mut gradient);
        let record = &case.records[0];
        let output = case.model.system.networks()[0].scaling.output[0];
        let (low, high) = record
            .inputs
            .iter()
            .fold((f64::MAX, f64::MIN), |(l, h), u| (l.min(*u), h.max(*u)));
        let (center, scale) = (&case.scales.center, &case.scales.scale);
        let expected = dual_gradient(&point, |point| {
            let (parameters, offsets) = point.split_at(hybrid.parameters());
            let c = parameters[0] * 0.3 + 0.7;
            let zero = |h: &usize| vec![Dual64::from(0.0); *h];
            let mut h: Vec<Vec<Dual64>> = hybrid.stack.widths.iter().map(zero).collect();
            let mut cells = h.clone();
            let blank = h.clone();
            let mut met: Vec<Vec<Dual64>> = vec![];
            let mut x = [
                Dual64::from(record.output(0)[0]),
                offsets[0] * scale[1] + center[1],
                offsets[1] * scale[2] + center[2],
            ];
            let mut sum = Dual64::from(0.0);
            for k in 0..13 {
                let outputs = [x[0], x[0] * x[0] + x[2] * 0.3];
                for (j, h) in outputs.iter().enumerate() {
                    let residual = (*h - record.output(k)[j]) / case.deviation[j];
                    sum += residual * residual * (0.5 / 24.0);
                }
                let u = record.input(k)[0];
                let mut input: Vec<Dual64> =
                    (0..3).map(|i| (x[i] - center[i]) / scale[i]).collect();
                input.push(Dual64::from(
                    (u - (low + high) / 2.0) / ((high - low) / 2.0),
                ));
                met.push(input);
                let last = recall.map_or(k, |count| met.len().saturating_sub(count));
                if recall.is_some() {
                    (h, cells) = (blank.clone(), blank.clone());
                }
                let mut a = vec![];
                for input in &met[last..] {
                    a = lstm(&hybrid.stack, &parameters[1..], input, &mut h, &mut cells);
                }
                let slope = [
                    x[1] - x[0] * 0.1,
                    c * a[0] * output + u,
                    a[1] * output - x[2],
                ];
                for i in 0..3 {
                    x[i] += slope[i] * case.dt;
                }
            }
            sum
        });
        assert!(
            (value - expected.0).abs() < 1e-12 * value,
            "{value} {}",
            expected.0
        );
        close(&gradient, &expected.1, 1e-10);
    });
}

/// Central differences of a loss by some of its parameters.
fn differences(loss: &mut dyn FnMut(&[f64]) -> f64, at: &[f64], which: &[usize]) -> Vec<f64> {
    let mut point = at.to_vec();
    let mut slope = |i: usize| {
        let h = 1e-5 * at[i].abs().max(1.0);
        point[i] = at[i] + h;
        let up = loss(&point);
        point[i] = at[i] - h;
        let down = loss(&point);
        point[i] = at[i];
        (up - down) / (2.0 * h)
    };
    which.iter().map(|&i| slope(i)).collect()
}

#[test]
fn rm_has_the_gradient_of_differences() {
    let case = Case::new(CHAIN, 40);
    case.with(|problem| {
        let settings = Settings {
            window: 16,
            ..Settings::new(Rival::Rm)
        };
        let mut loss = Recognised::new(problem, &settings);
        let p = case.model.system.parameters();
        let point = random(p + loss.recognition.weights(), 0.3, 5);
        let mut gradient = vec![0.0; point.len()];
        loss.gradient(&point, &mut gradient);
        let which: Vec<usize> = (0..p).chain((p..point.len()).step_by(97)).collect();
        let found: Vec<f64> = which.iter().map(|&i| gradient[i]).collect();
        let mut ignored = vec![0.0; point.len()];
        let mut value = |point: &[f64]| loss.gradient(point, &mut ignored);
        close(&found, &differences(&mut value, &point, &which), 1e-7);
    });
}

/// The bound of PR-SSM at fixed draws: every kind of parameter, the recognition network included.
#[test]
fn pr_ssm_has_the_gradient_of_differences() {
    let case = Case::new(CHAIN, 40);
    case.with(|problem| {
        let size = Size {
            pieces: 2,
            steps: 12,
            samples: 2,
        };
        let mut bound = Bound::new(problem, size, 1).unwrap();
        let mut point = bound.model.initialise(&mut Pcg64::seed_from_u64(2));
        // wider noise and shorter lengths make every term count, and K well conditioned
        let jolt = random(point.len(), 0.3, 4);
        point.iter_mut().zip(jolt).for_each(|(p, j)| *p += j);
        for d in 0..3 {
            let at = bound.model.process_range(d);
            let length = at.end - 2 - 4;
            point[length..length + 4].iter_mut().for_each(|l| *l -= 1.2);
            point[at.end - 1] = 0.05_f64.ln();
        }
        let mut gradient = vec![0.0; point.len()];
        bound.value_with(11, &point, &mut gradient);
        let which: Vec<usize> = (0..point.len()).step_by(3).collect();
        let found: Vec<f64> = which.iter().map(|&i| gradient[i]).collect();
        let mut ignored = vec![0.0; point.len()];
        let mut value = |point: &[f64]| bound.value_with(11, point, &mut ignored);
        close(&found, &differences(&mut value, &point, &which), 1e-6);
    });
}

/// One step of the measured rows says nothing about the networks of hidden ones: the gradient
/// is zero, not small. Two steps say something. (Cart-pole, retina, yeast, neuron, oscillator: in
/// each a network drives hidden rows alone.)
#[test]
fn one_step_teaches_a_hidden_network_nothing() {
    for (name, text) in systems::SYSTEMS {
        let model = Model::from_text(name, text).unwrap();
        if model.truth.is_none() {
            continue;
        }
        let case = Case::new(text, 60);
        let theta = initial_theta(&case.model, 1);
        case.with(|problem| {
            for steps in [1, 2] {
                let settings = Settings {
                    window: steps,
                    ..Settings::new(Rival::Node)
                };
                let mut loss = Windows::new(problem, &settings);
                let mut point = theta.clone();
                point.resize(theta.len() + loss.starts.parameters(), 0.3);
                let mut gradient = vec![0.0; point.len()];
                let value = loss.gradient(&point, &mut gradient);
                let by_theta = &gradient[..theta.len()];
                assert!(value > 0.0, "{name}: there is something to learn");
                assert_eq!(
                    by_theta.iter().all(|g| *g == 0.0),
                    steps == 1,
                    "{name} NODE {steps}"
                );

                let (mut by_theta, mut ignored) = (vec![0.0; theta.len()], vec![0.0; 7]);
                let mut moments = Moments::new(problem);
                let window = Window {
                    record: 0,
                    samples: 10..11 + steps,
                };
                let start = case.scales.center.clone();
                let still = vec![0.0; 7];
                let gradients = Gradients {
                    by_theta: &mut by_theta,
                    by_diffusion: &mut ignored,
                };
                let value = moments.gradient(&theta, &still, &start, &window, 1.0, None, gradients);
                assert!(value > 0.0);
                assert_eq!(
                    by_theta.iter().all(|g| *g == 0.0),
                    steps == 1,
                    "{name} SPINODE {steps}"
                );
            }
        });
    }
}

fn quick(method: Rival, seed: u64) -> Settings {
    Settings {
        iterations: 4,
        window: 20,
        seed,
        ..Settings::new(method)
    }
}

/// The same seed gives the same bits, another seed others; a record is predicted from any start.
#[test]
fn seeds_repeat() {
    let model = Model::from_text("ho", embedded("harmonic-oscillator")).unwrap();
    let simulation = Simulation {
        steps: Some(300),
        ..Simulation::default()
    };
    let records = [simulate(&model, &simulation).unwrap()];
    for method in Rival::ALL {
        let run = |seed| {
            let outcome = fit(&model, &records, &quick(method, seed), &mut Silent).unwrap();
            assert_eq!(outcome.runs[0].len(), records[0].len());
            assert!(!outcome.stopped && !outcome.reports.is_empty());
            outcome
        };
        let (first, again, other) = (run(1), run(1), run(2));
        let bits = |run: &[f64]| run.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(
            bits(first.runs[0].as_slice()),
            bits(again.runs[0].as_slice()),
            "{}",
            method.name()
        );
        assert_ne!(
            bits(first.runs[0].as_slice()),
            bits(other.runs[0].as_slice()),
            "{}",
            method.name()
        );
        let from = first.predict(&records[0], Some(&[0.5, 0.1]));
        assert!((from.row(0)[0] - 0.5).abs() < 1e-12 && (from.row(0)[1] - 0.1).abs() < 1e-12);
        let found = first.predict(&records[0], None);
        assert!(found.is_finite(), "{}", method.name());
    }
}

/// Stops at the first look.
struct Impatient(usize);

impl Observer for Impatient {
    fn progress(&mut self, _: &Progress) -> bool {
        self.0 += 1;
        false
    }
    fn pass(&mut self, report: &PassReport) -> bool {
        assert!(report.cost.data.is_finite());
        true
    }
}

/// A stop leaves what there is, marked so.
#[test]
fn a_rival_can_be_stopped() {
    let model = Model::from_text("ho", embedded("harmonic-oscillator")).unwrap();
    let simulation = Simulation {
        steps: Some(200),
        ..Simulation::default()
    };
    let records = [simulate(&model, &simulation).unwrap()];
    for method in Rival::ALL {
        let mut observer = Impatient(0);
        let outcome = fit(&model, &records, &quick(method, 1), &mut observer).unwrap();
        assert!(outcome.stopped && observer.0 == 1, "{}", method.name());
        assert_eq!(outcome.reports.len(), 1, "{}", method.name());
    }
}

/// A given hidden start is where the run begins; a trained one moves from the centre.
#[test]
fn the_hidden_start_is_given_or_learned() {
    let model = Model::from_text("ho", embedded("harmonic-oscillator")).unwrap();
    let simulation = Simulation {
        steps: Some(200),
        start: vec![(1, 0.7)],
        ..Simulation::default()
    };
    let records = [simulate(&model, &simulation).unwrap()];
    for method in [Rival::Node, Rival::NodeLstm, Rival::Spinode] {
        let given = Settings {
            known_start: true,
            ..quick(method, 1)
        };
        let given = fit(&model, &records, &given, &mut Silent).unwrap();
        assert_eq!(given.runs[0].row(0)[..], [1.0, 0.7], "{}", method.name());
        let learned = fit(&model, &records, &quick(method, 1), &mut Silent).unwrap();
        assert_ne!(learned.runs[0].row(0)[1], 0.7, "{}", method.name());
        assert_ne!(
            learned.runs[0].row(0)[1],
            learned.scales.center[1],
            "{}",
            method.name()
        );
    }
}

/// Where all states are measured NODE must work: the oscillator at a fifth of its samples. (The whole
/// record, and what the other rivals reach where they must work: `examples/evidence.rs`.)
#[test]
fn node_learns_what_is_measured() {
    let text = embedded("harmonic-oscillator").replace("step = 1e-3", "step = 5e-3");
    let text = text.replace("z = \"z\"", "z = \"z\"\nv = \"v\"");
    let model = Model::from_text("whole", &text).unwrap();
    let simulation = Simulation {
        steps: Some(1000),
        ..Simulation::default()
    };
    let records = [simulate(&model, &simulation).unwrap()];
    let settings = Settings {
        iterations: 400,
        ..Settings::new(Rival::Node)
    };
    let outcome = fit(&model, &records, &settings, &mut Silent).unwrap();
    let truth = records[0].truth.as_ref().unwrap();
    for i in 0..2 {
        let error =
            latens::numerics::score::nrmse(outcome.runs[0].as_slice(), truth, i, 2).unwrap();
        assert!(error < 1e-2, "state {i}: {error:.1e}");
    }
}

/// Every method that is registered, and those that leave no fit.
#[test]
fn a_rival_is_the_same_on_any_number_of_threads() {
    let model = Model::from_text("chain", CHAIN).unwrap();
    let simulation = Simulation {
        steps: Some(60),
        ..Simulation::default()
    };
    let records = [1, 2].map(|seed| {
        let simulation = Simulation {
            seed,
            ..simulation.clone()
        };
        simulate(&model, &simulation).unwrap()
    });
    let on = |threads: usize, rival: Rival| -> Vec<u64> {
        let settings = Settings {
            iterations: 3,
            ..Settings::new(rival)
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let work = || fit(&model, &records, &settings, &mut Silent).unwrap();
        let runs = pool.build().unwrap().install(work).runs;
        let values = runs.iter().flat_map(|run| run.as_slice());
        values.map(|value| value.to_bits()).collect()
    };
    for rival in Rival::ALL {
        assert_eq!(on(1, rival), on(3, rival), "{}", rival.name());
    }
}
