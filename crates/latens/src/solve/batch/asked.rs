//! What Newton's method asks of a record, and what one record answers.
//!
//! A record knows its states; whoever asks knows θ and the noise. The answer is some numbers, and what
//! stays with the record: other states, or a forward pass. Nothing in an answer depends on other
//! records, so that they may live anywhere ([`super::place`]).

use super::newton::PROJECTION_STEPS;
use super::population::RecordStart;
use crate::filter::curvature::Curvature;
use crate::filter::pass::Forward;
use crate::filter::{Smoothed, Smoother, exact_trajectory};
use crate::look::prior::{SMOOTHING_STEPS, starting_at};
use crate::numerics::Trajectory;
use crate::numerics::linalg::normal::NormalEquations;
use crate::numerics::objective::{Cost, Noise, free_run_cost};
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;

/// States follow the data where a reading is worth no more than this: noise alone makes it a half.
const FOLLOWED_READING_COST: f64 = 2.0;

/// A question to all records, under θ and a noise.
#[derive(Debug, Clone)]
pub(in crate::solve) struct Asked {
    pub theta: Vec<f64>,
    /// Without each record's own prior of its start.
    pub noise: Noise,
    pub question: Question,
}

/// What is asked. Where a question makes states or passes, these stay with the records.
#[derive(Debug, Clone)]
pub(in crate::solve) enum Question {
    /// The terms of the objective.
    Cost,
    /// Makes the states that learning starts with.
    Start { noisy: bool, elsewhere: bool },
    /// Makes states under (all but) exact physics, from given ones, or from what the known equations say.
    Exact,
    /// Makes the states that are best for θ.
    Smooth,
    /// Makes the simulation from where the states start, where the objective is lower there; the terms
    /// of the objective.
    Simulate { simulates: bool },
    /// The normal equations of θ with the states eliminated, Σ ln s, ½ Σ ν²/s and the number of
    /// measurements; makes the pass, where it is kept.
    Eliminate { thinning: usize, keep: bool },
    /// How far the equations bend along a step of θ, from states and their pass: b of it, and what the
    /// linear model says of the objective after the step.
    Bend { increment: Vec<f64> },
    /// Makes the states after a step of θ, from states and their pass; what the linear model says of the
    /// objective, and its terms.
    Move {
        before: Vec<f64>,
        increment: Vec<f64>,
        simulates: bool,
    },
    /// Misfits in units of their noise, of all channels of all samples.
    Misfits,
    /// Squares of misfits with what the states may be off by, likewise.
    Squares,
    /// nRMSE of each channel in a free run; not a number where there is none.
    FreeRun,
    /// What the record alone says of the start of a state: mean and variance, or nothing.
    Told { state: usize },
    /// Mean squares of a state, of each sample from the last.
    Along { state: usize },
    /// The log likelihood.
    Likelihood,
    /// Standard deviations of the states, with what draws of θ add.
    Bands { draws: Vec<Vec<f64>> },
    /// The states themselves.
    States,
}

impl Question {
    /// Whether it makes states (`true`) or passes (`false`), if anything.
    pub fn makes(&self) -> Option<bool> {
        match self {
            Self::Start { .. }
            | Self::Exact
            | Self::Smooth
            | Self::Simulate { .. }
            | Self::Move { .. } => Some(true),
            Self::Eliminate { keep, .. } => keep.then_some(false),
            _ => None,
        }
    }
}

/// A record where it lives.
#[derive(Clone, Copy)]
pub(in crate::solve) struct Seat<'a> {
    pub stepper: &'a Stepper<'a>,
    pub record: &'a Record,
    /// What the known equations alone say of its states.
    pub known: &'a Trajectory,
    /// Which of all records it is.
    pub number: usize,
}

/// What stays with a record.
pub(in crate::solve) enum Left {
    States(Trajectory),
    Pass(Box<Forward>),
}

impl Left {
    fn states(&self) -> &Trajectory {
        match self {
            Self::States(states) => states,
            Self::Pass(_) => unreachable!("states were asked for"),
        }
    }

    fn pass(&self) -> &Forward {
        match self {
            Self::Pass(pass) => pass,
            Self::States(_) => unreachable!("a pass was asked for"),
        }
    }
}

/// What a record answers.
#[derive(Default)]
pub(in crate::solve) struct Answer {
    pub numbers: Vec<f64>,
    pub left: Option<Left>,
    pub equations: Option<NormalEquations>,
}

impl Answer {
    fn numbers(numbers: impl Into<Vec<f64>>) -> Self {
        Self {
            numbers: numbers.into(),
            ..Self::default()
        }
    }

    fn states(states: Trajectory) -> Self {
        Self {
            left: Some(Left::States(states)),
            ..Self::default()
        }
    }
}

/// The terms of an objective as numbers.
fn terms(cost: &Cost) -> [f64; 5] {
    [cost.physics, cost.data, cost.drift, cost.start, cost.prior]
}

/// Back from numbers.
pub(super) fn cost(terms: &[f64]) -> Cost {
    Cost {
        physics: terms[0],
        data: terms[1],
        drift: terms[2],
        start: terms[3],
        prior: terms[4],
    }
}

impl Seat<'_> {
    /// The answer of this record; `holdings` is what of it the question is about.
    pub fn answer(&self, asked: &Asked, holdings: &[&Left]) -> Answer {
        let (stepper, record, theta) = (self.stepper, self.record, asked.theta.as_slice());
        let noise = starting_at(stepper, record, &asked.noise);
        let smoother = Smoother {
            stepper,
            record,
            theta,
            noise: &noise,
        };
        let states = || holdings[0].states();
        match &asked.question {
            Question::Cost => Answer::numbers(terms(&smoother.cost(states()))),
            Question::Start { noisy, elsewhere } => {
                Answer::states(self.start(&smoother, *noisy, *elsewhere))
            }
            Question::Exact => {
                let given = holdings.first().map_or(self.known, |left| left.states());
                // under other values of the constants the equations may not be defined there
                let states = if smoother.cost(given).total().is_finite() {
                    given.clone()
                } else {
                    smoother.filtered()
                };
                let from = Smoothed {
                    states,
                    deviations: Trajectory::default(),
                    cost: Cost::default(),
                };
                Answer::states(exact_trajectory(stepper, record, theta, &noise, &from))
            }
            Question::Smooth => {
                Answer::states(smoother.minimise(states().clone(), SMOOTHING_STEPS).0)
            }
            Question::Simulate { simulates } => {
                let states = states();
                let (smoothed, simulation) = rayon::join(
                    || smoother.cost(states),
                    || simulates.then(|| simulated(&smoother, states.row(0))),
                );
                let lower = simulation.filter(|(_, cost)| cost.total() < smoothed.total());
                let (states, cost) = lower.unwrap_or_else(|| (states.clone(), smoothed));
                Answer {
                    numbers: terms(&cost).into(),
                    ..Answer::states(states)
                }
            }
            Question::Eliminate { thinning, keep } => {
                let (equations, pass) = smoother.eliminate(states(), *thinning, self.number);
                let square = pass.half_square(&pass.means);
                Answer {
                    numbers: vec![pass.log_variance(), square, pass.count() as f64],
                    left: keep.then(|| Left::Pass(Box::new(pass))),
                    equations: Some(equations),
                }
            }
            Question::Bend { increment } => {
                let pass = holdings[1].pass();
                let Curvature { mut b, expected } = smoother.curvature(states(), increment, pass);
                b.push(expected);
                Answer::numbers(b)
            }
            Question::Move {
                before,
                increment,
                simulates,
            } => {
                let before = Smoother {
                    theta: before,
                    ..smoother
                };
                let pass = holdings[1].pass();
                let moved = moved(&before, &smoother, states(), pass, increment, *simulates);
                Answer {
                    numbers: [&[moved.expected], &terms(&moved.cost)[..]].concat(),
                    ..Answer::states(moved.states)
                }
            }
            Question::Misfits => {
                let seen = score::outputs(stepper.system(), record, theta, states());
                let channels = noise.measurement.iter().cycle();
                let misfits = record.outputs.iter().zip(seen.as_slice()).zip(channels);
                let misfits = misfits.map(|((y, h), variance)| (y - h) / variance.sqrt());
                Answer::numbers(misfits.collect::<Vec<f64>>())
            }
            Question::Squares => {
                let spread = smoother.seen_variances(&smoother.forward(states()));
                let seen = score::outputs(stepper.system(), record, theta, states());
                let squares = record.outputs.iter().zip(seen.as_slice()).zip(&spread);
                let squares = squares.map(|((y, h), spread)| (y - h) * (y - h) + spread);
                Answer::numbers(squares.collect::<Vec<f64>>())
            }
            Question::FreeRun => {
                let run = score::free_run_along(stepper, record, theta, states());
                let errors = score::channel_nrmse(stepper, record, theta, &run);
                let errors = errors.into_iter().flatten();
                Answer::numbers(errors.collect::<Vec<f64>>())
            }
            Question::Told { state } => {
                let told = RecordStart::of(&smoother, states(), *state).told;
                Answer::numbers(told.map_or(vec![], |told| vec![told.mean, told.variance]))
            }
            Question::Along { state } => {
                let (states, mut squares) = (states(), vec![]);
                let n = states.width();
                smoother.covariances(&smoother.forward(states), |k, p| {
                    squares.push(p[state * n + state] + states.row(k)[*state].powi(2));
                });
                Answer::numbers(squares)
            }
            Question::Likelihood => Answer::numbers([smoother.log_likelihood(states())]),
            Question::Bands { draws } => {
                let plain = Smoothed {
                    states: states().clone(),
                    deviations: Trajectory::default(),
                    cost: Cost::default(),
                };
                Answer::numbers(plain.with_bands(&smoother, draws).deviations.into_vec())
            }
            Question::States => Answer::numbers(states().as_slice()),
        }
    }

    /// Where a record's states start: on what the known physics says alone, or on what the filter says
    /// with the networks as they are, whichever has the lower objective. With noise the networks are
    /// random at first, and an objective under them says nothing of the states: then they are what the
    /// known physics says, brought nearer to the data where it does not follow them, unless that is lost.
    fn start(&self, smoother: &Smoother, noisy: bool, elsewhere: bool) -> Trajectory {
        let readings = self.record.outputs.iter().filter(|y| !y.is_nan()).count() as f64;
        let walked = smoother.cost(self.known);
        let followed = walked.data < FOLLOWED_READING_COST * readings;
        let usable = walked.total().is_finite() && followed != elsewhere;
        if noisy && usable {
            return self.known.clone();
        }
        let known = smoother.minimise(self.known.clone(), SMOOTHING_STEPS);
        let lost = !known.1.total().is_finite();
        if noisy && !lost {
            return known.0;
        }
        let filtered = smoother.minimise(smoother.filtered(), SMOOTHING_STEPS);
        if lost || filtered.1.total() < known.1.total() {
            filtered.0
        } else {
            known.0
        }
    }
}

/// A record after a step of θ.
struct Moved {
    /// What the linear model says of its objective.
    expected: f64,
    /// Its states, brought back to the valley of exact known rows.
    states: Trajectory,
    /// What its objective is.
    cost: Cost,
}

/// A record after a step of θ.
fn moved(
    before: &Smoother,
    next: &Smoother,
    states: &Trajectory,
    pass: &Forward,
    increment: &[f64],
    simulates: bool,
) -> Moved {
    let means = before.shift(states, increment, pass);
    let by = before.increments(pass, &means);
    let (least, expected) = (pass.half_square(&pass.means), pass.half_square(&means));
    let linear = states.moved(1.0, &by.states);
    // what follows the linear step starts where that does: its simulation need not wait for it
    let start = linear.row(0).to_vec();
    let (mut from, mut simulation) = rayon::join(
        || next.followed(linear, || by.driving, least, expected),
        || simulates.then(|| simulated(next, &start)),
    );
    // where the equations bend sharply, the states had better stay for now
    if from.1.total() >= least || from.1.total().is_nan() {
        let still = (states.clone(), next.cost(states));
        let lower = from.1.total() < still.1.total();
        if !lower {
            simulation = simulates.then(|| simulated(next, states.row(0)));
            from = still;
        }
    }
    if let Some(exact) = simulation.filter(|exact| exact.1.total() < from.1.total()) {
        from = exact;
    }
    let (states, cost) = next.projected(from.0, from.1, PROJECTION_STEPS);
    Moved {
        expected,
        states,
        cost,
    }
}

/// The simulation from a start, and the objective there.
///
/// With physics that is all but exact the valley of the objective is as narrow as its curvature is
/// strong: steps of the smoother stick there, while a simulation lies in it.
fn simulated(smoother: &Smoother, start: &[f64]) -> (Trajectory, Cost) {
    let Smoother {
        stepper,
        record,
        theta,
        noise,
    } = smoother;
    let run = score::free_run(stepper, record, theta, start);
    let cost = free_run_cost(stepper, record, theta, &run, noise);
    (run, cost)
}
