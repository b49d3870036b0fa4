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

use super::asked::{self, Question};
use super::damping::Damping;
use super::evidence::{Laplace, Posterior};
use super::place::{Answers, Held, Placed};
use super::regress::regress;
use crate::error::advice;
use crate::numerics::Entry;
use crate::numerics::bounded::{self, Bounds};
use crate::numerics::linalg::normal::{self, Factor, NormalEquations};
use crate::numerics::objective::{Cost, Noise, half_square};
use crate::numerics::score;
use crate::record::Record;
use crate::solve::{Observer, Progress};
use crate::{Divergence, Error};

/// Gauss–Newton steps of the states alone after each step of θ, at the most.
pub(super) const PROJECTION_STEPS: usize = 2;
/// Noise alone makes an objective of half a unit a measurement: what is left to gain is compared
/// with no more than this.
const NOTABLE_COST: f64 = 100.0;
/// The second-order part of a step, as a part of its length: up to the first the objective falls as the
/// quadratic model says, within some per cent; above the second it is not worth asking.
const GOOD_BEND_RATIO: f64 = 0.1;
const MOST_BEND_RATIO: f64 = 0.3;
/// A step of which the quadratic model says less than this part of a small gain is not taken.
const NO_GAIN_PART: f64 = 0.1;
/// Of no more parameters than this all rows are taken, and steps have a second-order part.
const FEW_PARAMETERS: usize = 100;
/// Rows of A for each parameter on the way to a solution, at the least and at the most. Between these there is one for so
/// many samples: a row of hundreds of parameters costs as much as all else that an elimination does at a few samples.
const FEWEST_ROWS_PER_PARAMETER: usize = 4;
const MOST_ROWS_PER_PARAMETER: usize = 10;
const SAMPLES_PER_ROW: usize = 2;

/// The current point: θ, a trajectory for each record, where the records are, and the objective there.
#[derive(Clone)]
pub(super) struct Iterate {
    pub theta: Vec<f64>,
    pub states: Held,
    pub cost: Cost,
}

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
    problem: &'a Placed<'a>,
    /// Without each record's own prior of its start.
    noise: Noise,
    /// P_θ0.
    prior: &'a [f64],
    /// Whether simulations are tried in place of trajectories.
    simulates: bool,
    /// The entry of θ that stays where it is.
    held: Option<usize>,
}

impl<'a> Newton<'a> {
    pub fn new(problem: &'a Placed<'a>, prior: &'a [f64], noise: &Noise) -> Self {
        Self {
            problem,
            noise: noise.clone(),
            prior,
            simulates: true,
            held: None,
        }
    }

    pub fn problem(&self) -> &'a Placed<'a> {
        self.problem
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

    /// Asks every record under this noise.
    ///
    /// # Errors
    /// Those of workers, here and below.
    pub fn ask(
        &self,
        theta: &[f64],
        question: Question,
        holdings: &[&Held],
    ) -> Result<Answers, Error> {
        self.problem.ask(theta, &self.noise, question, holdings)
    }

    /// Where the search begins.
    ///
    /// Without noise the networks are fitted to what they must have put out: on all records, and
    /// on the first alone, since where the measured states do not tell two hidden ones apart the
    /// records may contradict each other. The objective chooses. Noise would be learned as
    /// dynamics: then the weights stay random, and the loose first stage finds its own way.
    pub fn start(&self, theta: Vec<f64>) -> Result<Iterate, Error> {
        let (model, records) = (self.problem.model, self.problem.records);
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
            let states = self.starts(&theta)?;
            Ok(Iterate {
                cost: self.cost(&theta, &states)?,
                theta,
                states,
            })
        });
        let iterates = iterates.collect::<Result<Vec<_>, Error>>()?.into_iter();
        let total = |iterate: &Iterate| match iterate.cost.total() {
            nan if nan.is_nan() => f64::INFINITY,
            total => total,
        };
        let best = iterates.min_by(|a, b| total(a).total_cmp(&total(b)));
        Ok(best.expect("one at least"))
    }

    /// Where each record's states start.
    pub fn starts(&self, theta: &[f64]) -> Result<Held, Error> {
        let question = Question::Start {
            noisy: self.problem.noisy(),
            elsewhere: self.problem.elsewhere,
        };
        Ok(self.ask(theta, question, &[])?.held())
    }

    /// Each record's states brought to their minimum for θ.
    pub fn smoothed(&self, theta: &[f64], states: &Held) -> Result<Held, Error> {
        Ok(self.ask(theta, Question::Smooth, &[states])?.held())
    }

    /// Newton steps until the objective hardly falls any more.
    pub fn minimise(
        &self,
        iterate: &mut Iterate,
        damping: &mut Damping,
        limits: &Limits,
        counter: &mut Counter,
    ) -> Result<End, Error> {
        self.problem.secure()?;
        let simulates = self.simulates;
        let question = Question::Simulate { simulates };
        let answers = self.ask(&iterate.theta, question, &[&iterate.states])?;
        iterate.cost = self.sum(
            &iterate.theta,
            answers.numbers.iter().map(|c| asked::cost(c)),
        );
        iterate.states = answers.held();
        if !iterate.cost.total().is_finite() {
            return self.lost(iterate, counter.stage);
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
            let (equations, passes) = self.eliminate(iterate, self.thinning(), true)?;
            if !equations.is_finite() {
                return self.lost(iterate, counter.stage);
            }
            let before = iterate.cost.total();
            let small = limits.tolerance * before.min(NOTABLE_COST);
            let least = if self.bends() {
                NO_GAIN_PART * small
            } else {
                f64::NEG_INFINITY
            };
            let stepped = self.step(iterate, &equations, &passes.held(), damping, least)?;
            if iteration == 0 && iterate.cost.total() > limits.hopeless {
                return Ok(End::Hopeless);
            }
            if !stepped {
                break;
            }
            let gain = before - iterate.cost.total();
            calm = if gain < small { calm + 1 } else { 0 };
            if calm == limits.patience {
                break;
            }
        }
        Ok(End::Done)
    }

    /// How far rows of A may be thinned on the way. The gradient stays exact, and neighbouring rows are alike: fits with
    /// four rows for each parameter end where those with ten do. Few parameters have all rows: their product costs next
    /// to nothing, and the last digits of a step matter where the valley of the objective is narrow.
    pub fn thinning(&self) -> usize {
        let parameters = self.problem.model.system.parameters();
        if parameters <= FEW_PARAMETERS {
            return 1;
        }
        let measured = |r: &Record| r.outputs.iter().filter(|y| !y.is_nan()).count();
        let rows: usize = self.problem.records.iter().map(measured).sum();
        let samples: usize = self.problem.records.iter().map(Record::len).sum();
        let enough = (samples / SAMPLES_PER_ROW).clamp(
            FEWEST_ROWS_PER_PARAMETER * parameters,
            MOST_ROWS_PER_PARAMETER * parameters,
        );
        (rows / enough).max(1)
    }

    /// The error of the first state of a trajectory from which the equations leave the finite numbers.
    fn lost<T>(&self, iterate: &Iterate, stage: usize) -> Result<T, Error> {
        let stepper = self.problem.stepper;
        let states = self.problem.states(&iterate.states)?;
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
        for (record, states) in self.problem.records.iter().zip(&states) {
            let next = score::one_step(stepper, record, &iterate.theta, states);
            if let Some(Entry {
                row: step,
                column: state,
            }) = next.first_lost()
            {
                divergence.during = format!("batch on {}", record.name);
                divergence.step = step;
                divergence.time = record.time[step];
                divergence.quantity = self.problem.model.states[state].name.clone();
                divergence.value = next.row(step)[state];
                break;
            }
        }
        Err(Error::Diverged(divergence))
    }

    /// Forward passes over all records: the normal equations of θ; what the way back needs stays with the
    /// records, where it is kept.
    fn eliminate(
        &self,
        iterate: &Iterate,
        thinning: usize,
        keep: bool,
    ) -> Result<(NormalEquations, Answers), Error> {
        let question = Question::Eliminate { thinning, keep };
        let mut answers = self.ask(&iterate.theta, question, &[&iterate.states])?;
        let empty = || NormalEquations::new(iterate.theta.len(), thinning);
        let equations = answers.equations.take().unwrap_or_else(empty);
        Ok((equations, answers))
    }

    /// Laplace's approximation at a minimum.
    pub fn evidence(&self, iterate: &Iterate, thinning: usize) -> Result<Laplace, Error> {
        let (equations, passes) = self.eliminate(iterate, thinning, false)?;
        let passes = passes.numbers.iter();
        let spread: f64 = passes.clone().map(|p| p[0]).sum();
        let squares: f64 = passes.clone().map(|p| 2.0 * p[1]).sum();
        let count: f64 = passes.map(|p| p[2]).sum();
        let posterior = Posterior::new(&equations, self.prior);
        let cost = self.cost(&iterate.theta, &iterate.states)?.total();
        let likelihood = -0.5 * (spread + count * TAU.ln()) - cost;
        let evidence = posterior.evidence(self.problem.model, likelihood);
        Ok(Laplace {
            posterior,
            evidence,
            consistency: squares / count,
        })
    }

    /// One damped step; `false` where none lowers the objective, or none is said to by `least`.
    fn step(
        &self,
        iterate: &mut Iterate,
        equations: &NormalEquations,
        passes: &Held,
        damping: &mut Damping,
        least: f64,
    ) -> Result<bool, Error> {
        let entries = iterate.theta.iter().zip(self.prior);
        let gradient: Vec<f64> = equations
            .b
            .iter()
            .zip(entries)
            .map(|(b, (t, p))| b - t / p)
            .collect();
        let before = iterate.cost.total();
        let (first, mut bends, mut least) = (damping.clone(), self.bends(), least);
        let (mut refused, mut moves) = (false, false);
        while let Some(factor) = damping.factor(equations, self.prior) {
            let increment = normal::solve(&factor, &gradient);
            if damping.predicted(equations, self.prior, &increment, &gradient) < least {
                if refused && !moves {
                    // far from the valley the equations bend along any step: then what the objective
                    // itself says of a straight one
                    (bends, least) = (false, f64::NEG_INFINITY);
                    *damping = first.clone();
                    continue;
                }
                if refused || !damping.lower() {
                    return Ok(false);
                }
                continue;
            }
            let (mut theta, mut increment) = self.within_bounds(&iterate.theta, increment, &factor);
            refused = true;
            let mut bent = None;
            if bends {
                let (b, expected) = self.bend(iterate, passes, &increment)?;
                let bend = normal::solve(&factor, &b);
                let [curved, straight] =
                    [&bend, &increment].map(|step| Damping::length(equations, self.prior, step));
                let ratio = curved / straight;
                if ratio > MOST_BEND_RATIO {
                    damping.enlarge(ratio / GOOD_BEND_RATIO);
                    continue;
                }
                if ratio.is_finite() {
                    let prior = half_square(theta.iter().copied(), self.prior);
                    bent = Some((damping.value, ratio / GOOD_BEND_RATIO, expected + prior));
                    let both = increment.iter().zip(&bend).map(|(d, a)| d + 0.5 * a);
                    (theta, increment) =
                        self.within_bounds(&iterate.theta, both.collect(), &factor);
                }
            }
            let question = Question::Move {
                before: iterate.theta.clone(),
                increment,
                simulates: self.simulates,
            };
            let moved = self.ask(&theta, question, &[&iterate.states, passes])?;
            moves = true;
            let prior = half_square(theta.iter().copied(), self.prior);
            let model = moved.numbers.iter().map(|m| m[0]).sum::<f64>() + prior;
            let model = bent.map_or(model, |(.., expected)| expected);
            let cost = self.sum(&theta, moved.numbers.iter().map(|m| asked::cost(&m[1..])));
            if damping.accept(before - cost.total(), before - model) {
                if let Some((value, factor, _)) = bent {
                    damping.hold(value, factor);
                }
                *iterate = Iterate {
                    theta,
                    states: moved.held(),
                    cost,
                };
                return Ok(true);
            }
        }
        // the next stage is another problem
        *damping = Damping::default();
        Ok(false)
    }

    /// Whether steps have a second-order part: the valley of the objective is narrow and winds where a few
    /// weights have to follow data with noise closely. Many weights have always some that lead down.
    fn bends(&self) -> bool {
        let system = &self.problem.model.system;
        let weights = system.unknowns() < system.parameters();
        self.problem.noisy() && weights && self.prior.len() <= FEW_PARAMETERS
    }

    /// b of how far the equations bend along a step of θ, and what the linear model says of the
    /// objective after it, but for the prior.
    fn bend(
        &self,
        iterate: &Iterate,
        passes: &Held,
        increment: &[f64],
    ) -> Result<(Vec<f64>, f64), Error> {
        let question = Question::Bend {
            increment: increment.to_vec(),
        };
        let answers = self.ask(&iterate.theta, question, &[&iterate.states, passes])?;
        let mut sum = vec![0.0; increment.len() + 1];
        for record in &answers.numbers {
            sum.iter_mut().zip(record).for_each(|(s, r)| *s += r);
        }
        let expected = sum.pop().expect("one more than there are parameters");
        Ok((sum, expected))
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
        let bounded_by: Vec<Bounds> = bounded.iter().map(|&i| bounds[i]).collect();
        if let Some(weights) = bounded::pull(&block, &center, &bounded_by) {
            for (column, weight) in columns.iter().zip(&weights).filter(|(_, w)| **w != 0.0) {
                let entries = increment.iter_mut().zip(column);
                entries.for_each(|(d, c)| *d += weight * c);
            }
            next = moved(&increment);
            // to the last bit
            for ((&i, weight), (least, most)) in bounded.iter().zip(&weights).zip(&bounded_by) {
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

    pub fn cost(&self, theta: &[f64], states: &Held) -> Result<Cost, Error> {
        let answers = self.ask(theta, Question::Cost, &[states])?;
        Ok(self.sum(theta, answers.numbers.iter().map(|c| asked::cost(c))))
    }

    /// The objective of all records, with the prior of θ.
    fn sum(&self, theta: &[f64], costs: impl Iterator<Item = Cost>) -> Cost {
        let mut cost = Cost {
            prior: half_square(theta.iter().copied(), self.prior),
            ..Cost::default()
        };
        costs.for_each(|c| cost += c);
        cost
    }

    /// How many times the misfit repeats itself: the variance of its sums over blocks, in units of
    /// what independent noise R_y would make of it, over the length of block that makes the most.
    ///
    /// 1 for white noise. A misfit of structure, small as it may be, says the same in sample after
    /// sample; taken for independent, thousands of them would make θ look far too certain.
    pub fn variance_inflation(&self, iterate: &Iterate) -> Result<f64, Error> {
        const FEWEST_BLOCKS: usize = 20;
        /// Standard errors above what white noise would give.
        const CLEAR_STANDARD_ERRORS: f64 = 5.0;
        let channels = self.noise.measurement.len();
        let records = self.problem.records.iter();
        let longest = records.map(Record::len).max().unwrap_or(0);
        let lengths = (0..)
            .map(|k| 1usize << k)
            .take_while(|b| b * FEWEST_BLOCKS <= longest);
        let whitened = self.ask(&iterate.theta, Question::Misfits, &[&iterate.states])?;
        let whitened = whitened.numbers;
        let of_blocks = |length: usize| {
            let (mut sum, mut count) = (0.0, 0.0);
            for block in whitened
                .iter()
                .flat_map(|w| w.chunks_exact(length * channels))
            {
                for c in 0..channels {
                    let misfits = block.iter().skip(c).step_by(channels);
                    let misfits = misfits.filter(|e| !e.is_nan());
                    let (total, measured) = misfits.fold((0.0, 0.0), |(t, n), e| (t + e, n + 1.0));
                    if measured > 0.0 {
                        sum += total * total / measured;
                        count += 1.0;
                    }
                }
            }
            // of white noise the mean of `count` squares, each of mean 1 and variance 2
            let mean: f64 = sum / count;
            let clear = mean > 1.0 + CLEAR_STANDARD_ERRORS * (2.0 / count).sqrt();
            if clear { mean } else { 1.0 }
        };
        Ok(lengths.map(of_blocks).fold(1.0, f64::max))
    }

    /// R_y from the misfit by a step of expectation and maximisation: its mean square, with what
    /// the states may yet be off by, for the freedom that θ has used up.
    pub fn noise_found(&self, iterate: &Iterate, determined: f64) -> Result<Vec<f64>, Error> {
        let channels = self.noise.measurement.len();
        let (mut sum, mut count) = (vec![0.0; channels], vec![0.0; channels]);
        let squares = self.ask(&iterate.theta, Question::Squares, &[&iterate.states])?;
        for record in &squares.numbers {
            for (at, square) in record.iter().enumerate().filter(|(_, s)| !s.is_nan()) {
                sum[at % channels] += square;
                count[at % channels] += 1.0;
            }
        }
        let used = determined / count.iter().sum::<f64>();
        let channel_variance = |c: usize| {
            if count[c] > 0.0 {
                sum[c] / count[c] / (1.0 - used).max(0.5)
            } else {
                self.noise.measurement[c]
            }
        };
        Ok((0..channels).map(channel_variance).collect())
    }
}
