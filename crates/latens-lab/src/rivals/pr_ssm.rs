//! PR-SSM (Doerr et al. 2018): a state-space model of Gaussian processes, learned by doubly stochastic
//! variational inference. It does not use the known equations.
//!
//! ```text
//! x_{t+1,d} = x_{t,d} + GP_d(x_t, u_t) + noise,   y_t = x_t[:d_y] + noise
//! sample = x_d + mean + ε √var                       of GP_d at (x_t, u_t), by inducing points
//! bound = Σ log N(y_t; x_t[:d_y], σ_y²) − Σ_d KL(q(z_d) ‖ N(0, K))
//! ```
//!
//! (The authors' code multiplies ε by the variance; here it is the root.) Sub-trajectories start
//! where a recognition network puts them: 5 filters of width 3 with ReLU over the first 16 samples of
//! (y, u), maxima of pairs, a dense layer to mean and log deviation of x_0. Gradients are exact,
//! those of K⁻¹ and of the KL term included (`tests/rivals.rs`).
//!
//! Departures and open choices:
//! - 10 samples of each sub-trajectory, not 50: the gradient is as unbiased, in a fifth of the time.
//! - The likelihood of the sub-trajectories counts for that of the whole record.
//! - A step of the model is as many samples that fifty make a time constant of the record (but 250
//!   steps the record at the least): at the sample times of these records fifty steps of one sample
//!   would show next to nothing of the dynamics. Between steps the run is interpolated.
//! - Adam begins at 0.01, not 0.1: at 0.1 it does no better than a linear model even where all states
//!   are measured.
//! - Gradients are clipped; parameters that must be positive are logarithms.
//! - The run that is scored is that of the means, from the recognised start.
//!
//! Its latent states have no names. The first d_y are the channels; the others are put beside the
//! hidden states in their order, in units of their scales, because a comparison must have some
//! order. [`align`] gives the best affine image of the latent states beside it.

use std::ops::Range;

use latens::look::scales::center_and_scale;
use latens::model::Model;
use latens::model::small::{dot, solve};
use latens::numerics::score;
use latens::record::Record;
use latens::solve::Observer;
use latens::{Error, Trajectory};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use super::Settings;
use super::adam::{Descended, Descent, Loss, Plateau};
use super::convolution::{Convolution, SEEN_SAMPLES};
use super::gaussian::{Adjoint, ByMoments, Kernels, Process, Shape};
use super::windows::{Problem, axpy};

/// Samples of each sub-trajectory.
const SAMPLES: usize = 10;
/// Inducing points of each process.
const INDUCING_POINTS: usize = 20;
const GRADIENT_LENGTH: f64 = 1e3;
/// Steps of the model in a time constant of the record; steps of a record at the least.
const STEPS_A_TIME_CONSTANT: f64 = 50.0;
const LEAST_STEPS: usize = 250;

/// Sizes of one iteration.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Sub-trajectories, their steps, and samples of each.
    pub pieces: usize,
    pub steps: usize,
    pub samples: usize,
}

/// Shape of the model; its parameters are one vector.
///
/// A process for each latent state, then ln σ_y² of each channel, and the recognition network.
#[derive(Debug, Clone)]
pub struct PrSsm {
    latent: usize,
    channels: usize,
    inputs: usize,
    /// Samples in a step.
    pub stride: usize,
    /// Standardisation: channels, inputs.
    y: Vec<Scale>,
    u: Vec<Scale>,
}

/// By what a signal is standardised.
#[derive(Debug, Clone, Copy)]
struct Scale {
    center: f64,
    scale: f64,
}

/// Where a sub-trajectory begins.
#[derive(Clone, Copy)]
struct Piece {
    record: usize,
    /// A step of it.
    from: usize,
}

/// What sub-trajectories add to.
struct Collected<'c> {
    gradient: &'c mut [f64],
    adjoints: &'c mut [Adjoint],
}

/// A record in the model's terms.
#[derive(Debug, Clone)]
struct Series {
    y: Vec<f64>,
    u: Vec<f64>,
    len: usize,
}

impl PrSsm {
    /// Of a problem; `stride` samples a step.
    fn new(problem: &Problem, stride: usize) -> Self {
        let model = problem.model;
        let scale = |width: usize, pick: fn(&Record) -> &[f64], j: usize| {
            let values = problem
                .records
                .iter()
                .flat_map(|r| pick(r).iter().skip(j).step_by(width));
            let values: Vec<f64> = values.copied().filter(|v| !v.is_nan()).collect();
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            let deviation = (square / values.len().max(1) as f64).sqrt();
            Scale {
                center: mean,
                scale: if deviation > 0.0 { deviation } else { 1.0 },
            }
        };
        let (c, i) = (model.measurements.len(), model.inputs.len());
        Self {
            latent: model.states.len().max(c),
            channels: c,
            inputs: i,
            stride,
            y: (0..c).map(|j| scale(c, |r| &r.outputs, j)).collect(),
            u: (0..i).map(|j| scale(i, |r| &r.inputs, j)).collect(),
        }
    }

    /// Of a process of (x, u).
    fn shape(&self) -> Shape {
        Shape {
            inducing: INDUCING_POINTS,
            width: self.latent + self.inputs,
        }
    }

    /// Where a process stands in the parameters.
    pub fn process_range(&self, d: usize) -> Range<usize> {
        let size = self.shape().parameters();
        d * size..(d + 1) * size
    }

    fn processes<'p>(&self, parameters: &'p [f64]) -> Vec<Process<'p>> {
        let process = |d| Process::new(self.shape(), &parameters[self.process_range(d)]);
        (0..self.latent).map(process).collect()
    }

    /// Where ln σ_y² begins, and where the recognition network does.
    fn tail(&self) -> (usize, usize) {
        let noise = self.process_range(self.latent).start;
        (noise, noise + self.channels)
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.tail().1 + self.recognition().weights()
    }

    /// The published start.
    pub fn initialise(&self, rng: &mut Pcg64) -> Vec<f64> {
        let mut parameters = vec![0.0; self.parameters()];
        for d in 0..self.latent {
            let process = &mut parameters[self.process_range(d)];
            let at = self.shape().places();
            process[at.zeta].fill_with(|| rng.random_range(-2.0..2.0));
            process[at.m].fill_with(|| 0.05 * rng.random_range(-1.0..1.0));
            process[at.s].fill(0.01_f64.powi(2).ln());
            process[at.length].fill(2.0_f64.ln());
            process[at.variance] = 0.5_f64.powi(2).ln();
            process[at.noise] = 0.002_f64.powi(2).ln();
        }
        let (_, net) = self.tail();
        self.recognition().initialise(&mut parameters[net..], rng);
        parameters
    }

    fn series(&self, record: &Record) -> Series {
        let kept: Vec<usize> = (0..record.len()).step_by(self.stride).collect();
        let scaled = |row: &[f64], sizes: &[Scale]| -> Vec<f64> {
            row.iter()
                .zip(sizes)
                .map(|(v, size)| (v - size.center) / size.scale)
                .collect()
        };
        Series {
            y: kept
                .iter()
                .flat_map(|&k| scaled(record.output(k), &self.y))
                .collect(),
            u: kept
                .iter()
                .flat_map(|&k| scaled(record.input(k), &self.u))
                .collect(),
            len: kept.len(),
        }
    }

    fn recognition(&self) -> Convolution {
        Convolution {
            signals: self.channels + self.inputs,
            latent: self.latent,
        }
    }

    /// (y, u) at a step; a sample that was not taken counts as the mean.
    fn sample(&self, series: &Series, t: usize, j: usize) -> f64 {
        let value = match j.checked_sub(self.channels) {
            None => series.y[t * self.channels + j],
            Some(j) => series.u[t * self.inputs + j],
        };
        if value.is_nan() { 0.0 } else { value }
    }

    /// The run of the means from the recognised start, or from `start` (latent), as latent states.
    fn run(&self, parameters: &[f64], series: &Series, start: Option<&[f64]>) -> Vec<f64> {
        let processes = self.processes(parameters);
        let n = self.latent;
        let mut run = vec![f64::NAN; series.len * n];
        let weights = &parameters[self.tail().1..];
        let first = |t: usize, j: usize| self.sample(series, t, j);
        let recognised = self.recognition().recognise(weights, &first).0;
        run[..n].copy_from_slice(start.unwrap_or(&recognised[..n]));
        let (mut k, mut a) = (vec![0.0; INDUCING_POINTS], vec![0.0; INDUCING_POINTS]);
        let mut point = vec![0.0; self.shape().width];
        for t in 1..series.len {
            let (done, next) = run.split_at_mut(t * n);
            let state = &done[(t - 1) * n..];
            point[..n].copy_from_slice(state);
            point[n..].copy_from_slice(&series.u[(t - 1) * self.inputs..t * self.inputs]);
            for (d, process) in processes.iter().enumerate() {
                next[d] = state[d] + process.at(&point, &mut k, &mut a).0;
            }
            if next[..n].iter().any(|x| !x.is_finite()) {
                next[..n].fill(f64::NAN);
                break;
            }
        }
        run
    }

    /// Latent states as a run over a record's samples: channels in their units where a state is
    /// shown by one, the others in units of the states' scales.
    fn free_run(
        &self,
        model: &Model,
        sizes: &[Scale],
        parameters: &[f64],
        record: &Record,
        start: Option<&[f64]>,
    ) -> Trajectory {
        let (n, latent) = (model.states.len(), self.latent);
        let order = self.order(model);
        let start = start.map(|state| {
            let mut first = vec![0.0; latent];
            for (i, &d) in order.iter().enumerate() {
                let Scale { center, scale } = self.scale(d, sizes[i]);
                first[d] = (state[i] - center) / scale;
            }
            first
        });
        let series = self.series(record);
        let run = self.run(parameters, &series, start.as_deref());
        let mut states = Trajectory::filled(f64::NAN, record.len(), n);
        for k in 0..record.len() {
            let (t, part) = (
                k / self.stride,
                (k % self.stride) as f64 / self.stride as f64,
            );
            for (i, &d) in order.iter().enumerate() {
                let Scale { center, scale } = self.scale(d, sizes[i]);
                let value = run[t * latent + d];
                let next = run.get((t + 1) * latent + d).copied().unwrap_or(value);
                states.row_mut(k)[i] = center + scale * (value + part * (next - value));
            }
        }
        states
    }

    fn scale(&self, d: usize, of_state: Scale) -> Scale {
        self.y.get(d).copied().unwrap_or(of_state)
    }

    /// The latent state beside each state: its channel, or the next that is left.
    fn order(&self, model: &Model) -> Vec<usize> {
        let direct = model.system.direct();
        let mut free = (self.channels..self.latent).chain(0..self.channels);
        let latent = |i: usize| {
            let shown = direct.iter().position(|d| *d == Some(i));
            shown.or_else(|| free.next()).unwrap_or(0)
        };
        (0..model.states.len()).map(latent).collect()
    }
}

/// The negative bound of some sub-trajectories.
pub struct Bound<'a> {
    problem: Problem<'a>,
    pub model: PrSsm,
    series: Vec<Series>,
    sizes: Vec<Scale>,
    size: Size,
    rng: Pcg64,
}

impl<'a> Bound<'a> {
    /// # Errors
    /// [`Error::Setting`] where records are too short for recognition.
    pub fn new(problem: Problem<'a>, size: Size, seed: u64) -> Result<Self, Error> {
        let shortest = problem.records.iter().map(Record::len).min().unwrap_or(0);
        let constant = problem.scales.time_constant / problem.stepper.dt();
        let stride = (constant / STEPS_A_TIME_CONSTANT).round() as usize;
        let stride = stride.clamp(1, (shortest / LEAST_STEPS).max(1));
        let model = PrSsm::new(&problem, stride);
        let series: Vec<Series> = problem.records.iter().map(|r| model.series(r)).collect();
        let shortest = series.iter().map(|s| s.len).min().unwrap_or(0);
        if shortest < SEEN_SAMPLES + 2 {
            return Err(Error::Setting(format!(
                "pr-ssm needs at least {} samples",
                SEEN_SAMPLES + 2
            )));
        }
        let sizes = problem.scales.center.iter().zip(&problem.scales.scale);
        Ok(Self {
            sizes: sizes
                .map(|(&center, &scale)| Scale { center, scale })
                .collect(),
            size: Size {
                steps: size.steps.min(shortest - 1),
                ..size
            },
            rng: Pcg64::seed_from_u64(seed),
            model,
            series,
            problem,
        })
    }

    /// One sub-trajectory's sample: adds to the gradient, gives −log likelihood times `weight`.
    fn piece(
        &mut self,
        parameters: &[f64],
        processes: &[Process],
        Piece { record: r, from }: Piece,
        weight: f64,
        collected: Collected,
    ) -> f64 {
        let Collected { gradient, adjoints } = collected;
        let Self {
            model,
            series,
            size,
            rng,
            ..
        } = self;
        let (series, steps) = (&series[r], size.steps);
        let (n, p, w) = (model.latent, INDUCING_POINTS, model.shape().width);
        let (noise_at, net) = model.tail();
        let seen = |t: usize, j: usize| model.sample(series, from + t, j);
        let (start, pooled) = model.recognition().recognise(&parameters[net..], &seen);
        let mut noise = || -> f64 { StandardNormal.sample(rng) };
        let first: Vec<f64> = (0..n).map(|_| noise()).collect();
        let mut points = vec![0.0; (steps + 1) * w];
        for d in 0..n {
            points[d] = start[d] + start[n + d].exp() * first[d];
        }
        let (mut ks, mut weights) = (vec![0.0; steps * n * p], vec![0.0; steps * n * p]);
        let (mut roots, mut draws) = (vec![0.0; steps * n], vec![0.0; steps * n]);
        for t in 0..steps {
            let (done, next) = points.split_at_mut((t + 1) * w);
            let point = &mut done[t * w..];
            point[n..].copy_from_slice(&series.u[(from + t) * (w - n)..(from + t + 1) * (w - n)]);
            for (d, process) in processes.iter().enumerate() {
                let at = (t * n + d) * p..(t * n + d + 1) * p;
                let (k, a) = (&mut ks[at.clone()], &mut weights[at]);
                let (mean, var) = process.at(point, k, a);
                let (root, draw) = (var.sqrt(), noise());
                (roots[t * n + d], draws[t * n + d]) = (root, draw);
                next[d] = point[d] + mean + draw * root;
            }
        }
        // backward
        let mut loss = 0.0;
        let (mut adjoint, mut earlier) = (vec![0.0; w], vec![0.0; w]);
        for t in (0..=steps).rev() {
            for c in 0..model.channels {
                let y = series.y[(from + t) * model.channels + c];
                if y.is_nan() {
                    continue;
                }
                let log = parameters[noise_at + c];
                let (precision, off) = ((-log).exp(), points[t * w + c] - y);
                let square = off * off * precision;
                loss += 0.5 * weight * (square + log + (2.0 * std::f64::consts::PI).ln());
                adjoint[c] += weight * off * precision;
                gradient[noise_at + c] += 0.5 * weight * (1.0 - square);
            }
            if t == 0 {
                break;
            }
            let point = &points[(t - 1) * w..t * w];
            earlier.fill(0.0);
            for (d, process) in processes.iter().enumerate() {
                let i = (t - 1) * n + d;
                let kernels = Kernels {
                    k: &ks[i * p..(i + 1) * p],
                    a: &weights[i * p..(i + 1) * p],
                };
                let by = ByMoments {
                    mean: adjoint[d],
                    variance: adjoint[d] * draws[i] / (2.0 * roots[i]),
                };
                earlier[d] += by.mean;
                let by_process = &mut gradient[model.process_range(d)];
                process.pull_back(
                    point,
                    kernels,
                    by,
                    &mut adjoints[d],
                    by_process,
                    &mut earlier,
                );
            }
            earlier[n..].fill(0.0);
            std::mem::swap(&mut adjoint, &mut earlier);
        }
        let by_out: Vec<f64> = (0..2 * n)
            .map(|i| match i.checked_sub(n) {
                None => adjoint[i],
                Some(d) => adjoint[d] * first[d] * start[n + d].exp(),
            })
            .collect();
        let recognition = model.recognition();
        let (weights, gradient) = (&parameters[net..], &mut gradient[net..]);
        recognition.pull_back(weights, &seen, &pooled, &by_out, gradient);
        loss
    }

    /// −bound at fixed draws: what a test differentiates.
    pub fn value_with(&mut self, seed: u64, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        self.rng = Pcg64::seed_from_u64(seed);
        self.gradient(parameters, gradient)
    }
}

impl Loss for Bound<'_> {
    fn gradient(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let model = self.model.clone();
        let processes = model.processes(parameters);
        let mut adjoints: Vec<Adjoint> = processes.iter().map(Process::adjoint).collect();
        let total: usize = self.series.iter().map(|s| s.len).sum();
        let Size {
            pieces,
            steps,
            samples,
        } = self.size;
        let weight = total as f64 / (pieces * (steps + 1) * samples) as f64;
        let mut loss = 0.0;
        for _ in 0..pieces {
            let r = self.rng.random_range(0..self.series.len());
            // recognition looks at SEEN_SAMPLES samples, however few are rolled out
            let last = self.series[r].len - (steps + 1).max(SEEN_SAMPLES);
            let from = self.rng.random_range(0..=last);
            for _ in 0..samples {
                let collected = Collected {
                    gradient: &mut *gradient,
                    adjoints: &mut adjoints,
                };
                loss += self.piece(
                    parameters,
                    &processes,
                    Piece { record: r, from },
                    weight,
                    collected,
                );
            }
        }
        for (d, (process, adjoint)) in processes.iter().zip(&mut adjoints).enumerate() {
            let gradient = &mut gradient[model.process_range(d)];
            loss += process.divergence(adjoint, gradient);
            process.spread(adjoint, gradient);
        }
        loss
    }

    fn free_run(&mut self, parameters: &[f64]) -> f64 {
        let model = self.problem.model;
        let runs = self.problem.records.iter().map(|record| {
            self.model
                .free_run(model, &self.sizes, parameters, record, None)
        });
        let runs: Vec<Trajectory> = runs.collect();
        let blank = vec![0.0; model.system.parameters()];
        super::windows::channel_error(&self.problem, &blank, &runs)
    }
}

/// Learned parameters with the model that they are of.
#[derive(Debug, Clone)]
pub struct Learned {
    pub model: PrSsm,
    pub parameters: Vec<f64>,
    /// Centre and scale of each state.
    sizes: Vec<Scale>,
}

impl Learned {
    /// A free run over a record: from the recognised start, or from a state.
    pub fn free_run(&self, model: &Model, record: &Record, start: Option<&[f64]>) -> Trajectory {
        self.model
            .free_run(model, &self.sizes, &self.parameters, record, start)
    }
}

/// Learns the processes.
pub(crate) fn learn(
    problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<(Learned, Descended), Error> {
    let size = Size {
        pieces: 10,
        steps: settings.window,
        samples: SAMPLES,
    };
    let mut bound = Bound::new(problem, size, settings.seed)?;
    let mut rng = Pcg64::seed_from_u64(settings.seed);
    let parameters = bound.model.initialise(&mut rng);
    let descent = Descent {
        passes: settings.iterations,
        steps: 1,
        rate: settings.rate,
        plateau: Plateau::new(0.5, 10),
        clip: GRADIENT_LENGTH,
    };
    let done = descent.run(&mut bound, parameters, observer)?;
    let learned = Learned {
        model: bound.model,
        parameters: done.parameters.clone(),
        sizes: bound.sizes,
    };
    Ok((learned, done))
}

/// nRMSE of each state where all of a run's states, mapped affinely in the way that fits the truth
/// best, stand for it; `None` where its truth is not known or never moves.
pub fn align(run: &Trajectory, record: &Record) -> Vec<Option<f64>> {
    let n = record.d_x;
    let Some(truth) = &record.truth else {
        return vec![None; n];
    };
    let rows = || run.rows().zip(truth.chunks_exact(n));
    (0..n)
        .map(|i| {
            center_and_scale(truth.iter().skip(i).step_by(n).copied())?;
            let w = n + 1;
            let (mut normal, mut right) = (vec![0.0; w * w], vec![0.0; w]);
            for (x, t) in rows().filter(|(x, t)| x.iter().all(|v| v.is_finite()) && !t[i].is_nan())
            {
                let row: Vec<f64> = x.iter().copied().chain([1.0]).collect();
                for a in 0..w {
                    axpy(row[a], &row, &mut normal[a * w..(a + 1) * w]);
                    right[a] += row[a] * t[i];
                }
            }
            for a in 0..w {
                normal[a * w + a] *= 1.0 + 1e-12;
            }
            solve(&mut normal, &mut right, w).ok()?;
            let mapped = run.rows().map(|x| dot(x, &right[..n]) + right[n]);
            let mapped: Vec<f64> = mapped.collect();
            let truth_values: Vec<f64> = truth.iter().skip(i).step_by(n).copied().collect();
            score::nrmse(&mapped, &truth_values, 0, 1)
        })
        .collect()
}
