//! Newton steps on all states and θ at once, with the noise fixed: one stage of batch.
//!
//! For a constant θ the Gauss–Newton system is block-tridiagonal in the states with a border for
//! θ; one forward pass that carries W = ∂x̂/∂θ eliminates the states exactly
//! ([`crate::filter::pass`]), and what is left has the size of θ:
//!
//! ```text
//! (A + P_θ0⁻¹ + λ D) δθ = b − P_θ0⁻¹ θ,   A = Σ GᵀG,  b = Σ Gᵀr
//! ```
//!
//! The passes are then moved by F_θ δθ and smoothed backward for δX. With nearly exact known
//! rows the curvature of f would allow only tiny steps along (δX, δθ); so the states are smoothed
//! again at the new θ before the objective is asked (variable projection). λ follows the ratio of
//! what the objective fell by to what the quadratic model said ([`super::damping`]).
//!
//! An iteration costs O(N (d_y d_θ² + d_x² d_θ)), nearly all of it a symmetric rank-k product.

use std::f64::consts::TAU;

use rayon::prelude::*;

use super::damping::Damping;
use super::evidence::{Evidence, Posterior};
use super::regress::regress;
use crate::error::advice;
use crate::filter::pass::Forward;
use crate::filter::{Smoothed, Smoother};
use crate::look::prior::{SMOOTHING_STEPS, starting_at};
use crate::numerics::Trajectory;
use crate::numerics::bounded::{self, Bounds};
use crate::numerics::linalg::normal::{self, Factor, NormalEquations};
use crate::numerics::objective::{Cost, Noise, free_run_cost, half_square};
use crate::numerics::score;
use crate::record::Record;
use crate::solve::kept::kept;
use crate::solve::{Observer, Problem, Progress};
use crate::{Divergence, Error};

/// Gauss–Newton steps of the states alone after each step of θ.
const PROJECTION: usize = 2;
/// Noise alone makes an objective of half a unit a measurement: what is left to gain is compared
/// with no more than this.
const NOTABLE: f64 = 100.0;
/// Of fewer parameters than this, all rows are taken.
const FEW: usize = 100;
/// Rows of A for each parameter on the way to a solution.
const ROWS: usize = 10;
/// States follow the data where a reading is worth no more than this: noise alone makes it a half.
const FOLLOWED: f64 = 2.0;
/// Records at a time: each has an A of its own until they are summed.
const GROUP: usize = 8;

/// The current point: θ, a trajectory for each record, and the objective there.
#[derive(Clone)]
pub(super) struct Iterate {
    pub theta: Vec<f64>,
    pub states: Vec<Trajectory>,
    pub cost: Cost,
}

kept!(Iterate {
    theta,
    states,
    cost
});

/// When a stage is done.
pub(super) struct Limits {
    /// A gain is small below this fraction of the objective.
    pub tolerance: f64,
    /// So many small gains in a row end it: a strongly damped step gains little anywhere.
    pub patience: usize,
    /// Newton steps at the most.
    pub iterations: usize,
    /// A stage whose first step leaves the objective above this is not worth going on with.
    pub hopeless: f64,
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Hopeless,
    /// By the observer, after so many steps.
    Stopped(usize),
}

/// Where a stage is, for the observer.
pub(super) struct Counter<'o> {
    pub stage: usize,
    pub stages: usize,
    pub observer: &'o mut dyn Observer,
}

/// One stage: fixed noise.
pub(super) struct Newton<'a> {
    problem: &'a Problem<'a>,
    /// With each record's own prior of its start.
    noise: Vec<Noise>,
    /// P_θ0.
    prior: &'a [f64],
    /// Whether simulations are tried in place of trajectories.
    simulates: bool,
    /// The entry of θ that stays where it is.
    held: Option<usize>,
}

impl<'a> Newton<'a> {
    pub fn new(problem: &'a Problem, prior: &'a [f64], noise: &Noise) -> Self {
        let each = problem
            .records
            .iter()
            .map(|r| starting_at(problem.stepper, r, noise));
        Self {
            problem,
            noise: each.collect(),
            prior,
            simulates: true,
            held: None,
        }
    }

    /// The same with an entry of θ held where it is.
    pub fn holding(mut self, entry: usize) -> Self {
        self.held = Some(entry);
        self
    }

    /// The same without simulations: with loose physics and noise the trajectory is what the data
    /// say of the hidden states, and a simulation by networks that have learned nothing yet may
    /// lie on another branch of them.
    pub fn without_simulations(mut self) -> Self {
        self.simulates = false;
        self
    }

    pub fn smoother<'b>(&'b self, theta: &'b [f64], i: usize) -> Smoother<'b> {
        Smoother {
            stepper: self.problem.stepper,
            record: &self.problem.records[i],
            theta,
            noise: &self.noise[i],
        }
    }

    /// Where the search begins.
    ///
    /// Without noise the networks are fitted to what they must have put out: on all records, and
    /// on the first alone, since where the measured states do not tell two hidden ones apart the
    /// records may contradict each other. The objective chooses. Noise would be learned as
    /// dynamics: then the weights stay random, and the loose first stage finds its own way.
    pub fn start(&self, theta: Vec<f64>) -> Iterate {
        let (model, records) = (self.problem.model, self.problem.records);
        let smoothed = self.problem.prior.states.as_slice();
        let thetas = match &self.problem.prior.outputs {
            Some(signals) if !self.problem.noisy() => {
                let on = |records| regress(model, records, signals, theta.clone(), self.prior);
                let mut thetas = vec![on(records)];
                if records.len() > 1 {
                    thetas.push(on(&records[..1]));
                }
                thetas
            }
            _ => vec![theta],
        };
        let iterates = thetas.into_iter().map(|theta| {
            let states = self.starts(&theta, smoothed);
            Iterate {
                cost: self.cost(&theta, &states),
                theta,
                states,
            }
        });
        let total = |iterate: &Iterate| match iterate.cost.total() {
            nan if nan.is_nan() => f64::INFINITY,
            total => total,
        };
        let best = iterates.min_by(|a, b| total(a).total_cmp(&total(b)));
        best.expect("one at least")
    }

    /// Where each record's states start: on what the known physics says alone, or on what the
    /// filter says with the networks as they are, whichever has the lower objective. With noise
    /// the networks are random at first, and an objective under them says nothing of the states:
    /// then they are what the known physics says, brought nearer to the data where it does not
    /// follow them, unless that is lost.
    pub fn starts(&self, theta: &[f64], smoothed: &[Smoothed]) -> Vec<Trajectory> {
        let one = |i: usize| {
            let smoother = self.smoother(theta, i);
            let readings = self.problem.records[i].outputs.iter();
            let readings = readings.filter(|y| !y.is_nan()).count() as f64;
            let walked = smoother.cost(&smoothed[i].states);
            let followed = walked.data < FOLLOWED * readings;
            let found = walked.total().is_finite() && followed != self.problem.elsewhere;
            if self.problem.noisy() && found {
                return smoothed[i].states.clone();
            }
            let known = smoother.minimise(smoothed[i].states.clone(), SMOOTHING_STEPS);
            let lost = !known.1.total().is_finite();
            if self.problem.noisy() && !lost {
                return known.0;
            }
            let filtered = smoother.minimise(smoother.filtered(), SMOOTHING_STEPS);
            if lost || filtered.1.total() < known.1.total() {
                filtered.0
            } else {
                known.0
            }
        };
        (0..smoothed.len()).into_par_iter().map(one).collect()
    }

    /// Each record's states brought to their minimum for θ.
    pub fn smoothed(&self, theta: &[f64], states: Vec<Trajectory>) -> Vec<Trajectory> {
        let one = |(i, states)| self.smoother(theta, i).minimise(states, SMOOTHING_STEPS).0;
        states.into_par_iter().enumerate().map(one).collect()
    }

    /// Newton steps until the objective hardly falls any more.
    pub fn minimise(
        &self,
        iterate: &mut Iterate,
        damping: &mut Damping,
        limits: &Limits,
        counter: &mut Counter,
    ) -> Result<End, Error> {
        for i in 0..iterate.states.len() {
            let own = self.smoother(&iterate.theta, i).cost(&iterate.states[i]);
            let from = (std::mem::take(&mut iterate.states[i]), own);
            let exact = self.simulated(&iterate.theta, i, &from);
            iterate.states[i] = exact.unwrap_or(from).0;
        }
        iterate.cost = self.cost(&iterate.theta, &iterate.states);
        if !iterate.cost.total().is_finite() {
            return Err(self.lost(iterate, counter.stage));
        }
        let mut calm = 0;
        for iteration in 0..limits.iterations {
            let progress = Progress {
                pass: counter.stage + 1,
                passes: counter.stages,
                step: iteration,
                steps: limits.iterations,
            };
            if !counter.observer.progress(&progress) {
                return Ok(End::Stopped(iteration));
            }
            let (equations, passes) = self.eliminate(iterate, self.thinning());
            if !equations.is_finite() {
                return Err(self.lost(iterate, counter.stage));
            }
            let before = iterate.cost.total();
            let stepped = self.step(iterate, &equations, &passes, damping);
            if iteration == 0 && iterate.cost.total() > limits.hopeless {
                return Ok(End::Hopeless);
            }
            if !stepped {
                break;
            }
            let gain = before - iterate.cost.total();
            let little = gain < limits.tolerance * before.min(NOTABLE);
            calm = if little { calm + 1 } else { 0 };
            if calm == limits.patience {
                break;
            }
        }
        Ok(End::Done)
    }

    /// How far rows of A may be thinned on the way: some ten for each parameter are left. The
    /// gradient stays exact, and neighbouring rows are alike: the steps are the same to three
    /// digits.
    pub fn thinning(&self) -> usize {
        let measured = |r: &Record| r.outputs.iter().filter(|y| !y.is_nan()).count();
        let rows: usize = self.problem.records.iter().map(measured).sum();
        let enough = ROWS * self.problem.model.system.parameters().max(FEW);
        (rows / enough).max(1)
    }

    /// The first state of a trajectory from which the equations leave the finite numbers.
    fn lost(&self, iterate: &Iterate, stage: usize) -> Error {
        let stepper = self.problem.stepper;
        let mut divergence = Divergence {
            during: "batch".into(),
            pass: Some(stage + 1),
            step: 0,
            time: 0.0,
            quantity: if iterate.cost.total().is_finite() {
                "a derivative of the equations".into()
            } else {
                "the objective".into()
            },
            value: f64::NAN,
            advice: advice(self.problem.model),
        };
        for (record, states) in self.problem.records.iter().zip(&iterate.states) {
            let next = score::one_step(stepper, record, &iterate.theta, states);
            if let Some((step, state)) = next.lost() {
                divergence.during = format!("batch on {}", record.name);
                divergence.step = step;
                divergence.time = record.time[step];
                divergence.quantity = self.problem.model.states[state].name.clone();
                divergence.value = next.row(step)[state];
                break;
            }
        }
        Error::Diverged(divergence)
    }

    /// Forward passes over all records: the normal equations of θ, and what the way back needs.
    fn eliminate(&self, iterate: &Iterate, thinning: usize) -> (NormalEquations, Vec<Forward>) {
        let one = |&i: &usize| {
            let smoother = self.smoother(&iterate.theta, i);
            smoother.eliminate(&iterate.states[i], thinning, i)
        };
        let records: Vec<usize> = (0..self.problem.records.len()).collect();
        let mut sum = NormalEquations::new(iterate.theta.len(), thinning);
        let mut passes = Vec::with_capacity(records.len());
        for group in records.chunks(GROUP) {
            let (each, own): (Vec<_>, Vec<_>) = group.par_iter().map(one).unzip();
            each.iter().for_each(|equations| sum.add(equations));
            passes.extend(own);
        }
        (sum, passes)
    }

    /// The posterior of θ at a minimum, what the data say about the model there, and the mean of
    /// ν²/s: near 1 where the innovations are as large as the filter says.
    pub fn evidence(&self, iterate: &Iterate, thinning: usize) -> (Posterior, Evidence, f64) {
        let (equations, passes) = self.eliminate(iterate, thinning);
        let spread: f64 = passes.iter().map(Forward::log_variance).sum();
        let squares: f64 = passes.iter().map(|p| 2.0 * p.half_square(&p.means)).sum();
        let count = passes.iter().map(Forward::count).sum::<usize>() as f64;
        let posterior = Posterior::new(&equations, self.prior);
        let cost = self.cost(&iterate.theta, &iterate.states).total();
        let likelihood = -0.5 * (spread + count * TAU.ln()) - cost;
        let evidence = posterior.evidence(self.problem.model, likelihood);
        (posterior, evidence, squares / count)
    }

    /// One damped step; `false` where none lowers the objective.
    fn step(
        &self,
        iterate: &mut Iterate,
        equations: &NormalEquations,
        passes: &[Forward],
        damping: &mut Damping,
    ) -> bool {
        let own = iterate.theta.iter().zip(self.prior);
        let gradient: Vec<f64> = equations
            .b
            .iter()
            .zip(own)
            .map(|(b, (t, p))| b - t / p)
            .collect();
        let before = iterate.cost.total();
        while let Some(factor) = damping.factor(equations, self.prior) {
            let increment = normal::solve(&factor, &gradient);
            let (theta, increment) = self.within_bounds(&iterate.theta, increment, &factor);
            let moved: Vec<(f64, (Trajectory, Cost))> = (0..passes.len())
                .into_par_iter()
                .map(|i| self.moved(iterate, &passes[i], &increment, &theta, i))
                .collect();
            let prior = half_square(theta.iter().copied(), self.prior);
            let model = moved.iter().map(|m| m.0).sum::<f64>() + prior;
            let (states, costs): (Vec<_>, Vec<_>) = moved.into_iter().map(|m| m.1).unzip();
            let cost = sum(costs, prior);
            if damping.accept(before - cost.total(), before - model) {
                *iterate = Iterate {
                    theta,
                    states,
                    cost,
                };
                return true;
            }
        }
        // the next stage is another problem
        *damping = Damping::default();
        false
    }

    /// θ after an increment, and the increment itself: where it would take constants over their bounds,
    /// the one that is best within them by the same quadratic model.
    fn within_bounds(
        &self,
        theta: &[f64],
        mut increment: Vec<f64>,
        factor: &Factor,
    ) -> (Vec<f64>, Vec<f64>) {
        let unknowns = self.problem.model.unknowns.iter();
        let mut bounds: Vec<Bounds> = unknowns.map(|u| u.bounds()).collect();
        if let Some(i) = self.held {
            bounds[i] = (theta[i], theta[i]);
        }
        let moved = |increment: &[f64]| -> Vec<f64> {
            theta.iter().zip(increment).map(|(t, d)| t + d).collect()
        };
        let mut next = moved(&increment);
        let outside = |(t, b): (&f64, &Bounds)| *t < b.0 || *t > b.1;
        if !next.iter().zip(&bounds).any(outside) {
            return (next, increment);
        }
        let bounded: Vec<usize> = (0..bounds.len())
            .filter(|&i| bounds[i].0.is_finite() || bounds[i].1.is_finite())
            .collect();
        let columns = bounded.iter().map(|&i| {
            let mut unit = vec![0.0; theta.len()];
            unit[i] = 1.0;
            normal::solve(factor, &unit)
        });
        let columns: Vec<Vec<f64>> = columns.collect();
        let rows = columns.iter();
        let block: Vec<f64> = rows.flat_map(|c| bounded.iter().map(|&j| c[j])).collect();
        let center: Vec<f64> = bounded.iter().map(|&i| next[i]).collect();
        let own: Vec<Bounds> = bounded.iter().map(|&i| bounds[i]).collect();
        if let Some(weights) = bounded::pull(&block, &center, &own) {
            for (column, weight) in columns.iter().zip(&weights).filter(|(_, w)| **w != 0.0) {
                let each = increment.iter_mut().zip(column);
                each.for_each(|(d, c)| *d += weight * c);
            }
            next = moved(&increment);
            // to the last bit
            for ((&i, weight), (least, most)) in bounded.iter().zip(&weights).zip(&own) {
                if *weight > 0.0 {
                    next[i] = *least;
                } else if *weight < 0.0 {
                    next[i] = *most;
                }
            }
        }
        self.problem.model.keep_bounds(&mut next);
        let increment = next.iter().zip(theta).map(|(n, t)| n - t).collect();
        (next, increment)
    }

    /// What the linear model says of the objective of a record after a step of θ; its states
    /// there, brought back to the valley of exact known rows, and what the objective is indeed.
    fn moved(
        &self,
        iterate: &Iterate,
        pass: &Forward,
        increment: &[f64],
        theta: &[f64],
        i: usize,
    ) -> (f64, (Trajectory, Cost)) {
        let smoother = self.smoother(&iterate.theta, i);
        let states = &iterate.states[i];
        let means = smoother.shift(states, increment, pass);
        let by = smoother.increments(pass, &means);
        let next = self.smoother(theta, i);
        let (before, expected) = (pass.half_square(&pass.means), pass.half_square(&means));
        let linear = states.moved(1.0, &by.states);
        let mut from = next.followed(linear, || by.driving, before, expected);
        // where the equations bend sharply, the states had better stay for now
        if from.1.total() >= before || from.1.total().is_nan() {
            let still = (states.clone(), next.cost(states));
            let lower = from.1.total() < still.1.total();
            from = if lower { from } else { still };
        }
        if let Some(exact) = self.simulated(theta, i, &from) {
            from = exact;
        }
        (expected, next.improve(from.0, from.1, PROJECTION))
    }

    /// The simulation from where a trajectory starts, where the objective is lower there.
    ///
    /// With physics that is all but exact the valley of the objective is as narrow as its
    /// curvature is strong: steps of the smoother stick there, while a simulation lies in it.
    fn simulated(
        &self,
        theta: &[f64],
        i: usize,
        (states, cost): &(Trajectory, Cost),
    ) -> Option<(Trajectory, Cost)> {
        if !self.simulates {
            return None;
        }
        let (stepper, record) = (self.problem.stepper, &self.problem.records[i]);
        let run = score::free_run(stepper, record, theta, states.row(0));
        let own = free_run_cost(stepper, record, theta, &run, &self.noise[i]);
        (own.total() < cost.total()).then_some((run, own))
    }

    pub fn cost(&self, theta: &[f64], states: &[Trajectory]) -> Cost {
        let each: Vec<Cost> = (0..states.len())
            .into_par_iter()
            .map(|i| self.smoother(theta, i).cost(&states[i]))
            .collect();
        sum(each, half_square(theta.iter().copied(), self.prior))
    }

    /// How many times the misfit repeats itself: the variance of its sums over blocks, in units of
    /// what independent noise R_y would make of it, over the length of block that makes the most.
    ///
    /// 1 for white noise. A misfit of structure, small as it may be, says the same in sample after
    /// sample; taken for independent, thousands of them would make θ look far too certain.
    pub fn variance_inflation(&self, iterate: &Iterate) -> f64 {
        const BLOCKS: usize = 20;
        /// Standard errors above what white noise would give.
        const CLEAR: f64 = 5.0;
        let channels = self.noise[0].measurement.len();
        let records = self.problem.records.iter();
        let longest = records.map(Record::len).max().unwrap_or(0);
        let lengths = (0..)
            .map(|k| 1usize << k)
            .take_while(|b| b * BLOCKS <= longest);
        let each = self.problem.records.iter().zip(&iterate.states).enumerate();
        let whitened: Vec<Vec<f64>> = each
            .map(|(i, (record, states))| {
                let seen = score::outputs(self.problem.stepper, record, &iterate.theta, states);
                let own = record.outputs.iter().zip(seen.as_slice()).enumerate();
                own.map(|(at, (y, h))| (y - h) / self.noise[i].measurement[at % channels].sqrt())
                    .collect()
            })
            .collect();
        let of_blocks = |length: usize| {
            let (mut sum, mut count) = (0.0, 0.0);
            for block in whitened
                .iter()
                .flat_map(|w| w.chunks_exact(length * channels))
            {
                for c in 0..channels {
                    let own = block.iter().skip(c).step_by(channels);
                    let own = own.filter(|e| !e.is_nan());
                    let (total, measured) = own.fold((0.0, 0.0), |(t, n), e| (t + e, n + 1.0));
                    if measured > 0.0 {
                        sum += total * total / measured;
                        count += 1.0;
                    }
                }
            }
            // of white noise the mean of `count` squares, each of mean 1 and variance 2
            let mean: f64 = sum / count;
            let clear = mean > 1.0 + CLEAR * (2.0 / count).sqrt();
            if clear { mean } else { 1.0 }
        };
        lengths.map(of_blocks).fold(1.0, f64::max)
    }

    /// R_y from the misfit by a step of expectation and maximisation: its mean square, with what
    /// the states may yet be off by, for the freedom that θ has used up.
    pub fn noise_found(&self, iterate: &Iterate, determined: f64) -> Vec<f64> {
        let channels = self.noise[0].measurement.len();
        let (mut sum, mut count) = (vec![0.0; channels], vec![0.0; channels]);
        for (i, (record, states)) in self.problem.records.iter().zip(&iterate.states).enumerate() {
            let smoother = self.smoother(&iterate.theta, i);
            let spread = smoother.seen_variances(&smoother.forward(states));
            let seen = score::outputs(self.problem.stepper, record, &iterate.theta, states);
            let misfits = record
                .outputs
                .iter()
                .zip(seen.as_slice())
                .map(|(y, h)| y - h);
            for (at, misfit) in misfits.enumerate().filter(|(_, m)| !m.is_nan()) {
                sum[at % channels] += misfit * misfit + spread[at];
                count[at % channels] += 1.0;
            }
        }
        let used = determined / count.iter().sum::<f64>();
        let one = |c: usize| {
            if count[c] > 0.0 {
                sum[c] / count[c] / (1.0 - used).max(0.5)
            } else {
                self.noise[0].measurement[c]
            }
        };
        (0..channels).map(one).collect()
    }
}

/// The objective of all records, with the prior of θ.
fn sum(each: Vec<Cost>, prior: f64) -> Cost {
    let mut cost = Cost {
        prior,
        ..Cost::default()
    };
    each.into_iter().for_each(|c| cost += c);
    cost
}
