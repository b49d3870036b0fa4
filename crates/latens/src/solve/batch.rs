//! Whole-record Newton: all states of all records and θ at once.
//!
//! The paper holds this unfeasible. For a constant θ the Gauss–Newton system is block-tridiagonal
//! in the states with a border for θ; one forward pass that carries W = ∂x̂/∂θ eliminates the
//! states exactly ([`crate::estimate::pass`]), and what is left has the size of θ:
//!
//! ```text
//! (A + P_θ0⁻¹ + λ diag(A + P_θ0⁻¹)) δθ = b + P_θ0⁻¹(θ̄ − θ),   A = Σ GᵀG,  b = Σ Gᵀr
//! ```
//!
//! The passes are then moved by F_θ δθ and smoothed backward for δX. A step is taken where the
//! true objective decreases (lengths 1, ½, ¼, 0.1), else λ grows.
//!
//! Continuation in Q_x makes it robust: with loose hidden rows the smoother finds the hidden
//! trajectory without simulating anything; every stage divides their standard deviation by ten,
//! until the physics is all but exact and the same objective is the error of a free run.
//!
//! An iteration costs O(N (d_y d_θ² + d_x² d_θ)), nearly all of it a symmetric rank-k product.

use rayon::prelude::*;

use super::prepare::starting_at;
use super::recursion::{self, Learned};
use super::settings::{Level, Settings, Solver};
use super::{EpochReport, Observer, Problem, Progress, free_run_error, smooth_all};
use crate::estimate::pass::{Forward, Sensitivity};
use crate::estimate::{Smoothed, Smoother};
use crate::linalg::PackedCovariance;
use crate::linalg::normal::{self, NormalEquations};
use crate::objective::{Cost, Noise};
use crate::score;
use crate::{Divergence, Error};

/// Noise of known rows relative to the hidden rows'.
const KNOWN: f64 = 1e-3;
/// Stages after which the process noise is not tightened any more: below, it is rounding.
const TIGHTEST: usize = 12;
/// Newton steps of a stage at the most.
const ITERATIONS: usize = 15;
/// A stage is done when a step lowers the objective by less than this fraction.
const TOLERANCE: f64 = 1e-3;
/// A channel is not asked to be fitted closer than this fraction of its range: noise-free
/// records would otherwise make the valley of the objective too narrow to walk along.
const RESOLUTION: f64 = 1e-4;
/// The physics is exact enough when the defects are less than this fraction of the misfit, or
/// when a tenfold tightening changes the error of the free run by less than that fraction.
const EXACT: f64 = 0.02;
/// Levenberg–Marquardt damping: first value, and where it gives up.
const DAMPING: f64 = 1e-3;
const DAMPING_LIMIT: f64 = 1e8;

/// The current point: θ, a trajectory for each record, and the objective there.
struct Iterate {
    theta: Vec<f64>,
    states: Vec<Vec<f64>>,
    cost: Cost,
}

/// Learns by whole-record Newton, from the smoothed states of the known physics.
pub(super) fn run(
    problem: &Problem,
    settings: &Settings,
    smoothed: Vec<Smoothed>,
    theta: Vec<f64>,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let (theta, smoothed) = regress(problem, settings, smoothed, theta, observer)?;
    let dt = problem.stepper.dt();
    let first = match settings.hidden {
        Level::Relative(level) => level,
        Level::Variance(_) => unreachable!("Settings::check refuses it"),
    };
    let mut iterate = Iterate {
        theta,
        states: smoothed.iter().map(|s| s.states.clone()).collect(),
        cost: Cost::default(),
    };
    let mut reports: Vec<EpochReport> = Vec::new();
    let mut noise = problem.noise.clone();
    for stage in 0..settings.epochs {
        let level = first * 10f64.powi(-(stage.min(TIGHTEST) as i32));
        let staged = Settings {
            hidden: Level::Relative(level),
            known: Level::Relative(level * KNOWN),
            ..settings.clone()
        };
        noise = staged.noise(problem.model, problem.nominal, dt);
        for (r, range) in noise.measurement.iter_mut().zip(&problem.nominal.range) {
            *r = r.max((RESOLUTION * range).powi(2));
        }
        let newton = Newton::new(problem, settings, &noise);
        newton.minimise(&mut iterate, (stage, settings.epochs), observer)?;
        let report = EpochReport {
            epoch: stage + 1,
            cost: iterate.cost,
            consistency: f64::NAN,
            free_run: free_run_error(problem, &iterate.theta, &iterate.states),
        };
        let go_on = observer.epoch(&report);
        let settled = reports.last().is_some_and(|before| {
            (report.free_run - before.free_run).abs() < EXACT * before.free_run
        });
        let exact = report.cost.physics < EXACT * report.cost.data;
        reports.push(report);
        if !go_on || (stage > 1 && (exact || settled)) {
            break;
        }
    }
    let newton = Newton::new(problem, settings, &noise);
    let (equations, _) = newton.eliminate(&iterate);
    let covariance = newton.posterior(&equations, settings)?;
    let before = smoothed
        .into_iter()
        .zip(&iterate.states)
        .map(|(s, states)| Smoothed {
            states: states.clone(),
            ..s
        })
        .collect();
    let smoothed = smooth_all(problem, &iterate.theta, &noise, before);
    Ok(Learned {
        theta: iterate.theta,
        covariance,
        smoothed,
        noise,
        reports,
    })
}

/// A first θ: one pass of the alternating recursion regresses the networks on the increments of
/// the hidden states, each weighted by how well it is known.
fn regress(
    problem: &Problem,
    settings: &Settings,
    smoothed: Vec<Smoothed>,
    theta: Vec<f64>,
    observer: &mut dyn Observer,
) -> Result<(Vec<f64>, Vec<Smoothed>), Error> {
    let usual = Settings::new(Solver::Alternating);
    let start = Settings {
        solver: usual.solver,
        epochs: 1,
        keep_best: false,
        known: usual.known,
        hidden: usual.hidden,
        parameter_variance: usual.parameter_variance,
        parameter_drift: usual.parameter_drift,
        ..settings.clone()
    };
    let noise = start.noise(problem.model, problem.nominal, problem.stepper.dt());
    let first = Problem {
        noise: &noise,
        ..*problem
    };
    struct Quiet<'o>(&'o mut dyn Observer);
    impl Observer for Quiet<'_> {
        fn progress(&mut self, progress: &Progress) -> bool {
            self.0.progress(progress)
        }
    }
    let walk = smoothed.clone();
    match recursion::run(
        &first,
        &start,
        smoothed,
        theta.clone(),
        &mut Quiet(observer),
    ) {
        Ok(learned) => Ok((learned.theta, learned.smoothed)),
        // a start from random weights is worse, but a start
        Err(Error::Diverged(_)) => Ok((theta, walk)),
        Err(error) => Err(error),
    }
}

/// One stage: fixed noise.
struct Newton<'a> {
    problem: &'a Problem<'a>,
    /// With each record's own prior of its start.
    noise: Vec<Noise>,
    prior: f64,
}

impl<'a> Newton<'a> {
    fn new(problem: &'a Problem, settings: &Settings, noise: &Noise) -> Self {
        let each = problem
            .records
            .iter()
            .map(|r| starting_at(problem.stepper, r, noise));
        Self {
            problem,
            noise: each.collect(),
            prior: settings.parameter_variance,
        }
    }

    fn smoother<'b>(&'b self, theta: &'b [f64], i: usize) -> Smoother<'b> {
        Smoother {
            stepper: self.problem.stepper,
            record: &self.problem.records[i],
            theta,
            noise: &self.noise[i],
        }
    }

    /// Newton steps until the objective hardly falls any more.
    fn minimise(
        &self,
        iterate: &mut Iterate,
        (stage, stages): (usize, usize),
        observer: &mut dyn Observer,
    ) -> Result<(), Error> {
        let mut damping = DAMPING;
        iterate.cost = self.cost(&iterate.theta, &iterate.states);
        if !iterate.cost.total().is_finite() {
            return Err(self.lost(iterate, stage));
        }
        for iteration in 0..ITERATIONS {
            let progress = Progress {
                epoch: stage + 1,
                epochs: stages,
                step: iteration,
                steps: ITERATIONS,
            };
            if !observer.progress(&progress) {
                return Err(Error::Stopped);
            }
            let (equations, passes) = self.eliminate(iterate);
            let before = iterate.cost.total();
            if !self.step(iterate, &equations, &passes, &mut damping) {
                break;
            }
            if before - iterate.cost.total() < TOLERANCE * before {
                break;
            }
        }
        Ok(())
    }

    /// The first state of a trajectory from which the equations leave the finite numbers.
    fn lost(&self, iterate: &Iterate, stage: usize) -> Error {
        let (stepper, n) = (self.problem.stepper, self.problem.nominal.scale.len());
        let mut divergence = Divergence {
            during: "batch".into(),
            epoch: Some(stage + 1),
            step: 0,
            time: 0.0,
            quantity: "the objective".into(),
            value: iterate.cost.total(),
            advice: "try another --seed, or fewer arguments of the networks".into(),
        };
        for (record, states) in self.problem.records.iter().zip(&iterate.states) {
            let next = score::one_step(stepper, record, &iterate.theta, states);
            if let Some(at) = next.iter().position(|x| !x.is_finite()) {
                divergence.during = format!("batch on {}", record.name);
                divergence.step = at / n;
                divergence.time = record.time[at / n];
                divergence.quantity = self.problem.model.states[at % n].name.clone();
                divergence.value = next[at];
                break;
            }
        }
        Error::Diverged(divergence)
    }

    /// Forward passes over all records: the normal equations of θ, and what the way back needs.
    fn eliminate(&self, iterate: &Iterate) -> (NormalEquations, Vec<Forward>) {
        let parameters = iterate.theta.len();
        let one = |i: usize| {
            let mut equations = NormalEquations::new(parameters);
            let mut scratch = self.problem.stepper.scratch();
            let mut sink = |row: &[f64], residual: f64| equations.push(row, residual);
            let states = self.problem.nominal.scale.len();
            let mut sensitivity = Sensitivity::new(states, parameters, &mut sink);
            let smoother = self.smoother(&iterate.theta, i);
            let pass = smoother.forward(&mut scratch, &iterate.states[i], Some(&mut sensitivity));
            equations.flush();
            (equations, pass)
        };
        let records = 0..self.problem.records.len();
        let (each, passes): (Vec<_>, Vec<_>) = records.into_par_iter().map(one).unzip();
        let mut sum = NormalEquations::new(parameters);
        each.iter().for_each(|equations| sum.add(equations));
        (sum, passes)
    }

    /// One damped step; `false` where none lowers the objective.
    fn step(
        &self,
        iterate: &mut Iterate,
        equations: &NormalEquations,
        passes: &[Forward],
        damping: &mut f64,
    ) -> bool {
        let precision = 1.0 / self.prior;
        let right: Vec<f64> = equations
            .b
            .iter()
            .zip(&iterate.theta)
            .map(|(b, t)| b - precision * t)
            .collect();
        let diagonal = equations.diagonal();
        while *damping < DAMPING_LIMIT {
            let shift: Vec<f64> = diagonal
                .iter()
                .map(|d| precision + *damping * (d + precision))
                .collect();
            if let Some(factor) = equations.factor(&shift) {
                let increment = normal::solve(&factor, &right);
                let moves: Vec<Vec<f64>> = (0..passes.len())
                    .into_par_iter()
                    .map(|i| {
                        let smoother = self.smoother(&iterate.theta, i);
                        let (mut pass, states) = (passes[i].clone(), &iterate.states[i]);
                        let mut scratch = self.problem.stepper.scratch();
                        smoother.shift(&mut scratch, states, &increment, &mut pass);
                        smoother.backward(&pass)
                    })
                    .collect();
                if self.search(iterate, &increment, &moves) {
                    *damping = (*damping / 10.0).max(1e-12);
                    return true;
                }
            }
            *damping *= 10.0;
        }
        false
    }

    /// Takes the first step length that lowers the objective.
    fn search(&self, iterate: &mut Iterate, increment: &[f64], moves: &[Vec<f64>]) -> bool {
        let along = |from: &[f64], by: &[f64], length: f64| -> Vec<f64> {
            from.iter().zip(by).map(|(x, d)| x + length * d).collect()
        };
        for length in [1.0, 0.5, 0.25, 0.1] {
            let theta = along(&iterate.theta, increment, length);
            let states: Vec<Vec<f64>> = iterate
                .states
                .iter()
                .zip(moves)
                .map(|(x, d)| along(x, d, length))
                .collect();
            let cost = self.cost(&theta, &states);
            if cost.total() < iterate.cost.total() {
                *iterate = Iterate {
                    theta,
                    states,
                    cost,
                };
                return true;
            }
        }
        false
    }

    fn cost(&self, theta: &[f64], states: &[Vec<f64>]) -> Cost {
        let each: Vec<Cost> = (0..states.len())
            .into_par_iter()
            .map(|i| {
                let mut scratch = self.problem.stepper.scratch();
                self.smoother(theta, i).cost(&mut scratch, &states[i])
            })
            .collect();
        let mut cost = Cost::default();
        each.into_iter().for_each(|c| cost += c);
        cost.prior = 0.5 * theta.iter().map(|t| t * t).sum::<f64>() / self.prior;
        cost
    }

    /// The posterior covariance (A + P_θ0⁻¹)⁻¹.
    fn posterior(
        &self,
        equations: &NormalEquations,
        settings: &Settings,
    ) -> Result<PackedCovariance, Error> {
        let n = equations.b.len();
        // A is summed in rounded numbers: its zero eigenvalues come out as ±1e-16 of the largest
        let largest = equations.diagonal().into_iter().fold(0.0, f64::max);
        let factor = (-16..-6)
            .find_map(|e| {
                let rounding = if e > -16 {
                    largest * 10f64.powi(e)
                } else {
                    0.0
                };
                equations.factor(&vec![1.0 / self.prior + rounding; n])
            })
            .ok_or_else(|| Error::Setting("the posterior of θ is not positive definite".into()))?;
        let packed = normal::packed_inverse(&factor, n);
        Ok(PackedCovariance::from_packed(
            n,
            packed,
            settings.precision(),
        ))
    }
}
