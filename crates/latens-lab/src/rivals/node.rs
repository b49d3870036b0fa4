//! NODE (Chen et al. 2018): the equations with their networks are rolled out and fitted to what was
//! measured; the gradient is the exact discrete adjoint of the roll-out ([`super::windows`]).
//!
//! Departures from the paper, and what the recipe leaves open here:
//! - The known equations stay as they are; only the calls of networks are learned (a hybrid NODE).
//! - The integrator is the model's own, at the data's step: the adjoint is that of the discrete
//!   steps, not of a continuous equation solved backward.
//! - The paper measures all states. Here a hidden state's start is unknown: it is trained, one for
//!   each window, from the centre of its range ([`Starts`]); or given ([`Settings::known_start`]),
//!   for the window at the beginning of a record, which is the only one whose start an experiment
//!   could know.
//! - Residuals are standardised channel by channel, or a channel in millivolts would outweigh
//!   all others. Gradients are clipped, or one bad roll-out would spoil Adam's second moments for
//!   a thousand steps.
//! - The parameters whose free run fits the measurements best are kept, not the last ones.
//! - Adam begins at 1e-2, not 1e-3, and is halved on a plateau; windows are 5000 steps long, which is
//!   the whole record of most systems. Both were tuned on the built-in systems (DESIGN.md).
//!
//! What it cannot do: a window of one step gives the network of a hidden row no gradient at all
//! (`tests/rivals.rs` shows exactly zero), and one of few steps hardly any.

use latens::Error;
use latens::look::prior::initial_theta;
use latens::solve::Observer;
use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::Settings;
use super::adam::{Descended, Descent, Loss, Plateau};
use super::windows::{self, Batches, Problem, Rollout, Starts, Window};

/// Steps of all windows together in one iteration, about.
pub(crate) const BATCH_STEPS: usize = 5000;
/// Longest gradient.
pub(crate) const GRADIENT_LENGTH: f64 = 10.0;

/// The loss of windows, by θ and by the offsets of their starts after it.
pub struct Windows<'a> {
    problem: Problem<'a>,
    pub windows: Vec<Window>,
    pub starts: Starts,
    batches: Batches,
    /// Windows of an iteration.
    size: usize,
    rollout: Rollout<'a>,
}

impl<'a> Windows<'a> {
    pub fn new(problem: Problem<'a>, settings: &Settings) -> Self {
        let longest = problem.records.iter().map(|r| r.len()).max().unwrap_or(1);
        let steps = settings.window.min(longest);
        let windows = windows::cut(problem.records, steps, steps);
        Self {
            starts: Starts::new(&problem, &windows, settings.known_start),
            batches: Batches::new(windows.len(), Pcg64::seed_from_u64(settings.seed)),
            size: (BATCH_STEPS / steps).max(1),
            rollout: Rollout::new(problem),
            windows,
            problem,
        }
    }

    /// The first state of each record.
    pub fn first(&self, offsets: &[f64]) -> Vec<Vec<f64>> {
        let windows = self.windows.iter().enumerate();
        let first = windows.filter(|(_, w)| w.samples.start == 0);
        first.map(|(k, _)| self.starts.state(k, offsets)).collect()
    }
}

impl Loss for Windows<'_> {
    fn gradient(&mut self, parameters: &[f64], gradient: &mut [f64]) -> f64 {
        gradient.fill(0.0);
        let p = self.problem.model.system.parameters();
        let (theta, offsets) = parameters.split_at(p);
        let (by_theta, by_offsets) = gradient.split_at_mut(p);
        let batch = self.batches.next(self.size);
        let windows: Vec<Window> = batch.iter().map(|&k| self.windows[k].clone()).collect();
        let count = windows::measurements(self.problem.records, &windows).max(1);
        let weight = 1.0 / count as f64;
        let mut loss = 0.0;
        for (&k, window) in batch.iter().zip(&windows) {
            let start = self.starts.state(k, offsets);
            let rollout = &mut self.rollout;
            loss += rollout.gradient(theta, &start, window, weight, by_theta);
            self.starts.pull_back(k, rollout.by_start(), by_offsets);
        }
        loss
    }

    fn free_run(&mut self, parameters: &[f64]) -> f64 {
        let p = self.problem.model.system.parameters();
        let (theta, offsets) = parameters.split_at(p);
        windows::free_run_error(&self.problem, theta, &self.first(offsets))
    }
}

/// How NODE goes down its loss, and SPINODE with it.
pub(crate) fn descent(settings: &Settings) -> Descent {
    Descent {
        passes: settings.iterations,
        steps: 1,
        rate: settings.rate,
        plateau: Plateau::new(0.5, 10),
        clip: GRADIENT_LENGTH,
    }
}

/// θ and the first state of each record.
pub(crate) type Learned = (Vec<f64>, Vec<Vec<f64>>, Descended);

/// Learns θ.
pub(crate) fn learn(
    problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let mut loss = Windows::new(problem, settings);
    let mut parameters = initial_theta(problem.model, settings.seed);
    parameters.resize(parameters.len() + loss.starts.parameters(), 0.0);
    let done = descent(settings).run(&mut loss, parameters, observer)?;
    let (theta, offsets) = done.parameters.split_at(problem.model.system.parameters());
    Ok((theta.to_vec(), loss.first(offsets), done.clone()))
}

/// Steps and rate of Adam for the start of a new record.
pub(crate) const START: (usize, f64) = (500, 0.02);

/// A loss by the offsets of one start alone.
pub(crate) struct Held<'l> {
    pub loss: &'l mut dyn Loss,
    pub held: Vec<f64>,
}

impl Loss for Held<'_> {
    fn gradient(&mut self, offsets: &[f64], gradient: &mut [f64]) -> f64 {
        let p = self.held.len();
        let all = [self.held.as_slice(), offsets].concat();
        let mut whole = vec![0.0; all.len()];
        let loss = self.loss.gradient(&all, &mut whole);
        gradient.copy_from_slice(&whole[p..]);
        loss
    }

    fn free_run(&mut self, offsets: &[f64]) -> f64 {
        let all = [self.held.as_slice(), offsets].concat();
        self.loss.free_run(&all)
    }
}

/// The offsets that fit best while all else is held.
pub(crate) fn offsets(loss: &mut dyn Loss, held: &[f64], count: usize) -> Vec<f64> {
    let mut loss = Held {
        loss,
        held: held.to_vec(),
    };
    let descent = Descent {
        passes: START.0,
        steps: 1,
        rate: START.1,
        plateau: Plateau::new(0.5, 2),
        clip: GRADIENT_LENGTH,
    };
    let found = descent.run(&mut loss, vec![0.0; count], &mut latens::solve::Silent);
    found.map_or(vec![0.0; count], |d| d.parameters)
}

/// The first state of the problem's one record, θ held.
pub(crate) fn start(problem: Problem, theta: &[f64]) -> Vec<f64> {
    let settings = Settings {
        window: problem.records[0].len(),
        ..Settings::new(super::Rival::Node)
    };
    let mut loss = Windows::new(problem, &settings);
    let count = loss.starts.parameters();
    let found = offsets(&mut loss, theta, count);
    loss.first(&found).remove(0)
}
