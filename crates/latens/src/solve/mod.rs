//! Solvers of the one objective.
//!
//! A [`Solver`] learns θ from a [`Problem`]: records with the states that the known physics finds in
//! them, and the sizes of everything. It is one file and one line of registration: the four of
//! Latens stand in [`BUILT_IN_SOLVERS`], others call [`register`]. Several starts, ensembles, stopping and
//! resuming are common to all ([`starts`]).

pub mod batch;
mod bytes;
pub mod checkpoint;
mod elsewhere;
pub mod kept;
pub mod ladder;
pub mod recursion;
pub mod registry;
pub mod starts;
pub mod workers;

use std::fmt;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::filter::{Smoothed, Smoother, exact_trajectory};
use crate::look::prior::{SMOOTHING_STEPS, Walking, random_theta, starting_at};
use crate::look::{Check, PriorSmoothing, RESOLUTION, SignalScales, Suspect};
use crate::model::Model;
use crate::model::network::Structure;
use crate::model::settings::Settings;
use crate::numerics::Trajectory;
use crate::numerics::linalg::{PackedCovariance, Precision};
use crate::numerics::objective::{Cost, Noise};
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;
use batch::evidence::Evidence;
use checkpoint::{Checkpoint, Start};
pub use elsewhere::Elsewhere;
use kept::Checkpoints;
pub use registry::{BUILT_IN_SOLVERS, defaults, find, register, resolve, same_solver, solvers};
pub use starts::Attempt;
use workers::Workers;

/// How θ is learned.
pub trait Solver: Sync {
    /// Its name on the command line, in Python and in files.
    fn name(&self) -> &'static str;

    /// What it does, for a help text: part of a sentence.
    fn about(&self) -> &'static str;

    /// Its own settings; [`Settings::default`] with what differs.
    fn settings(&self) -> Settings;

    /// The settings of the paper for it, where the paper has any.
    fn printed_settings(&self) -> Option<Settings> {
        None
    }

    /// What it calls one of its passes.
    fn pass(&self) -> &'static str {
        "pass"
    }

    /// Whether it ends by itself, so that `passes` is a bound and not a number.
    fn converges(&self) -> bool {
        false
    }

    /// Whether it works on several threads.
    fn is_parallel(&self) -> bool {
        false
    }

    /// Whether workers may have its records.
    fn takes_workers(&self) -> bool {
        false
    }

    /// Whether a fit of it can be gone on with.
    fn resumes(&self) -> bool {
        true
    }

    /// Whether no constant leaves its bounds, on the way and at the end.
    fn keeps_bounds(&self) -> bool {
        false
    }

    /// Whether it learns how constants vary, and what is unknown of sensors.
    fn learns_sensors(&self) -> bool {
        false
    }

    /// Seeds that are tried one after another until one works.
    fn tries(&self) -> u64 {
        1
    }

    /// What walks at random while the records are smoothed before it learns.
    fn walking(&self) -> Walking {
        Walking::Rows
    }

    /// Refuses settings that it cannot take.
    ///
    /// # Errors
    /// [`Error::Setting`] with what to do.
    fn check(&self, _settings: &Settings) -> Result<(), Error> {
        Ok(())
    }

    /// Learns θ from a start.
    ///
    /// # Errors
    /// [`Error::Diverged`], or [`Error::Stopped`] where the observer ends it before it has anything.
    fn learn(
        &self,
        problem: &Problem,
        start: Start,
        observer: &mut dyn Observer,
    ) -> Result<Learned, Error>;
}

/// How far a fit has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The pass that is under way, from 1.
    pub pass: usize,
    /// Passes in all, or at the most.
    pub passes: usize,
    /// Steps of this pass that are done.
    pub step: usize,
    /// Steps of this pass.
    pub steps: usize,
}

/// One pass over the records, in numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PassReport {
    /// Which one, from 1.
    pub pass: usize,
    /// The terms of the objective along the pass.
    pub cost: Cost,
    /// Mean of ν²/s: near 1 where the innovations are as large as the filter says.
    pub consistency: f64,
    /// ln p(y), where the solver computes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f64>,
    /// Mean nRMSE of the measured channels in a free run; what `keep_best` goes by.
    pub free_run: f64,
    /// The same over the validation records, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// λ of the last Newton step, where the solver takes such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
}

/// Watches a fit. `false` stops it, after the Newton step or the pass that it is in; it then gives
/// what it has so far, marked as stopped, or [`Error::Stopped`] where that is nothing.
pub trait Observer: Send {
    /// The records have been looked at; nothing is learned yet.
    fn checked(&mut self, _check: &Check) {}
    /// What was learned contradicts other readings than were set aside: it is learned again, without
    /// these.
    fn again(&mut self, _suspects: &[Suspect]) {}
    /// A trial begins; `None` where it is over.
    fn trying(&mut self, _trial: Option<Trial>) {}
    /// Whether to go on, asked several times a second while nothing is learned yet.
    fn goes_on(&mut self) -> bool {
        true
    }
    /// A few hundred steps have passed.
    fn progress(&mut self, _progress: &Progress) -> bool {
        true
    }
    /// A pass is over.
    fn pass(&mut self, _report: &PassReport) -> bool {
        true
    }
}

/// What is learned beside the fit itself, to decide something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Another structure of the networks.
    Structure(Structure),
    /// Other values of the constants.
    Constants,
    /// Another seed.
    Seed(u64),
    /// Records without noise as if they had some.
    AsIfNoisy,
    /// Pieces of the records, each from a start of its own.
    Pieces,
    /// Halves of the records are predicted by what is learned from the others.
    Halves,
    /// Inputs that go straight to their next values over a sample.
    MovingInputs,
    /// A fold of so many that is held back in a comparison.
    Fold(usize, usize),
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Structure(structure) => structure.fmt(f),
            Self::Constants => f.write_str("other values of the constants"),
            Self::Seed(seed) => write!(f, "seed {seed}"),
            Self::AsIfNoisy => f.write_str("as if there were noise"),
            Self::Pieces => f.write_str("pieces of the records"),
            Self::Halves => f.write_str("halves held back"),
            Self::MovingInputs => f.write_str("inputs that move between samples"),
            Self::Fold(fold, folds) => write!(f, "fold {fold} of {folds} held back"),
        }
    }
}

/// An observer that is asked whether to go on, and hears of no passes: those of a trial.
pub struct Quiet<'o>(&'o mut dyn Observer);

impl<'o> Quiet<'o> {
    /// Says that the trial begins; that it is over is said at the end of this.
    pub fn new(observer: &'o mut dyn Observer, trial: Trial) -> Self {
        observer.trying(Some(trial));
        Self(observer)
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        self.0.trying(None);
    }
}

impl Observer for Quiet<'_> {
    fn goes_on(&mut self) -> bool {
        self.0.goes_on()
    }

    fn progress(&mut self, progress: &Progress) -> bool {
        self.0.progress(progress)
    }
}

/// An observer that several threads ask whether to go on, as often as they like.
pub struct Asking<'o> {
    stopped: AtomicBool,
    /// When it was asked last.
    observer: Mutex<(Instant, &'o mut dyn Observer)>,
}

impl<'o> Asking<'o> {
    /// It is asked no more often than this.
    const INTERVAL: Duration = Duration::from_millis(50);

    /// Of an observer.
    pub fn new(observer: &'o mut dyn Observer) -> Self {
        Self {
            stopped: AtomicBool::new(false),
            observer: Mutex::new((Instant::now(), observer)),
        }
    }

    /// Whether it does not want to go on.
    pub fn is_stopped(&self) -> bool {
        // whoever finds it being asked hears of it the next time
        if let Ok(mut asked) = self.observer.try_lock()
            && asked.0.elapsed() >= Self::INTERVAL
            && !self.stopped.load(Ordering::Relaxed)
        {
            asked.0 = Instant::now();
            let stopped = !asked.1.goes_on();
            self.stopped.store(stopped, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }
}

/// An observer that only lets things happen.
pub struct Silent;

impl Observer for Silent {}

/// What a solver is given.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// Its networks are scaled.
    pub model: &'a Model,
    /// The settings of this fit.
    pub settings: &'a Settings,
    /// Learned from.
    pub records: &'a [Record],
    /// Never learned from: they choose between stages, and between starts.
    pub validate: &'a [Record],
    /// The one-step map over all of them.
    pub stepper: &'a Stepper<'a>,
    /// Sizes of states and channels.
    pub scales: &'a SignalScales,
    /// What the known equations alone say of the records.
    pub prior: &'a PriorSmoothing,
    /// Q_x, R_y and P_x0 that the settings come to.
    pub noise: &'a Noise,
    /// The unknown constants' entries of θ to begin with; where there are none, their guesses.
    pub constants: &'a [f64],
    /// Whether networks start with sharp bends.
    pub sharp: bool,
    /// Whether with noise the states start where they would not by themselves: on what the known
    /// physics says where that does not follow the data, and brought nearer to them where it does.
    pub elsewhere: bool,
    /// Whether a model that the data contradict is learned from pieces of the records; where nobody
    /// says, halves that are held back decide.
    pub in_pieces: Option<bool>,
    /// Where what comes of it is kept on the way.
    pub checkpoints: Checkpoints<'a>,
    /// Who has the records, where that is not this process.
    pub workers: Option<&'a Workers>,
}

/// What a fit works with; nothing of it changes what comes of it.
#[derive(Clone, Copy, Default)]
pub struct Equipment<'a> {
    /// Where what comes of it is kept on the way.
    pub checkpoints: Checkpoints<'a>,
    /// Who has the records; without any, this process.
    pub workers: Option<&'a Workers>,
}

impl<'a> From<Checkpoints<'a>> for Equipment<'a> {
    fn from(checkpoints: Checkpoints<'a>) -> Self {
        Self {
            checkpoints,
            ..Self::default()
        }
    }
}

/// Pieces of the records of a problem.
pub struct Pieces {
    pub records: Vec<Record>,
    /// What the known equations alone say of them.
    pub prior: PriorSmoothing,
}

impl Pieces {
    /// The problem of these pieces alone.
    pub fn of<'a>(&'a self, problem: &Problem<'a>) -> Problem<'a> {
        Problem {
            records: &self.records,
            validate: &[],
            prior: &self.prior,
            ..*problem
        }
    }
}

/// The first and the second half of every record.
pub fn halves(problem: &Problem) -> [Pieces; 2] {
    [0, 1].map(|half| {
        problem.cut(|record| {
            let (middle, end) = (record.len() / 2, record.len());
            vec![if half == 0 { 0..middle } else { middle..end }]
        })
    })
}

/// What a solver has learned.
#[derive(Debug, Clone)]
pub struct Learned {
    /// θ̂.
    pub theta: Vec<f64>,
    /// P_θ.
    pub covariance: PackedCovariance,
    /// The states of each record that was learned from.
    pub smoothed: Vec<Smoothed>,
    /// Under which they were smoothed.
    pub noise: Noise,
    /// Of every pass.
    pub reports: Vec<PassReport>,
    /// Mean of ν²/s at the end: near 1 where the innovations are as large as expected.
    pub consistency: f64,
    /// Variances under `noise` are this much larger, because misfits are correlated over samples.
    pub variance_inflation: f64,
    /// Draws from the posterior of θ, see [`crate::filter::bands`]; none where its covariance is
    /// not to be trusted.
    pub draws: Vec<Vec<f64>>,
    /// Of each constant, the entries of θ between which it lies with 95 %, where those are not what its
    /// variance says because of a bound; empty where there is none.
    pub intervals: Vec<Option<(f64, f64)>>,
    /// Mean nRMSE of the measured channels in free runs over the training records.
    pub free_run: f64,
    /// The free run over each training record, where the solver has a start of its own for it.
    pub free_runs: Option<Vec<Trajectory>>,
    /// Whether misfits that are correlated over samples say that the model is not right.
    pub contradicted: bool,
    /// Whether θ is that of pieces of the records, each from a start of its own.
    pub in_pieces: bool,
    /// By how much ln p is higher under the process noise that the data ask for than under equations that hold
    /// exactly; `None` where they ask for none.
    pub disturbed: Option<f64>,
    /// Where the solver computes it.
    pub evidence: Option<Evidence>,
    /// How far it came; what it can be resumed from.
    pub checkpoint: Checkpoint,
    /// Whether the observer ended it before its time.
    pub stopped: bool,
}

impl Learned {
    /// What a method has learned that says nothing but θ: the states are smoothed with it, its
    /// covariance is the prior's. `free_runs` are those that the method itself starts.
    pub fn of_theta(
        problem: &Problem,
        theta: Vec<f64>,
        reports: Vec<PassReport>,
        free_runs: Option<Vec<Trajectory>>,
    ) -> Self {
        let (settings, noise) = (problem.settings, problem.noise);
        let smooth = |record: &Record| {
            let noise = starting_at(problem.stepper, record, &problem.open_start(noise));
            let smoother = Smoother {
                stepper: problem.stepper,
                record,
                theta: &theta,
                noise: &noise,
            };
            smoother.smooth(smoother.filtered(), SMOOTHING_STEPS)
        };
        let variances = problem.model.prior_variances(settings.parameter_variance);
        Self {
            covariance: PackedCovariance::from_diagonal(&variances, precision(settings)),
            intervals: vec![],
            smoothed: problem.records.iter().map(smooth).collect(),
            noise: noise.clone(),
            free_run: reports.last().map_or(f64::NAN, |r| r.free_run),
            free_runs,
            contradicted: false,
            in_pieces: false,
            disturbed: None,
            consistency: f64::NAN,
            variance_inflation: 1.0,
            draws: vec![],
            evidence: None,
            checkpoint: Checkpoint::Pass(reports.last().map_or(0, |r| r.pass)),
            theta,
            reports,
            stopped: false,
        }
    }
}

/// The storage of P_θ.
pub fn precision(settings: &Settings) -> Precision {
    if settings.single_precision {
        Precision::Single
    } else {
        Precision::Double
    }
}

impl Problem<'_> {
    /// θ to begin with: random weights, constants at their guess or where they are known to be.
    pub fn initial_theta(&self, seed: u64) -> Vec<f64> {
        let mut theta = random_theta(self.model, seed, self.sharp);
        theta[..self.constants.len()].copy_from_slice(self.constants);
        theta
    }

    /// Where half of the records begin: at what all of them have led to. But without noise, weights
    /// that fit all to the last digit are a narrow place, and half of the records leads elsewhere.
    pub fn start_of_half(&self, theta: &[f64], seed: u64) -> Start<'static> {
        if self.noisy() || theta.len() == self.model.system.unknowns() {
            Start::Near(theta.to_vec())
        } else {
            Start::At(self.initial_theta(seed))
        }
    }

    /// The same problem with networks of less structure.
    pub fn simplified<T>(&self, structure: Structure, then: impl FnOnce(&Problem) -> T) -> T {
        if structure == Structure::Whole {
            return then(self);
        }
        let model = self.model.simplified(structure);
        let records = self.records.iter().chain(self.validate);
        let stepper = Stepper::over(&model, &model.system, self.stepper.dt(), records);
        then(&Problem {
            model: &model,
            stepper: &stepper,
            ..*self
        })
    }

    /// Pieces of every record, with what the known equations say of them.
    pub fn cut(&self, pieces: impl Fn(&Record) -> Vec<Range<usize>>) -> Pieces {
        let (mut records, mut states) = (vec![], vec![]);
        for (record, smoothed) in self.records.iter().zip(&self.prior.states) {
            for samples in pieces(record) {
                states.push(smoothed.slice(samples.clone()));
                records.push(record.slice(samples));
            }
        }
        let prior = PriorSmoothing {
            scales: self.prior.scales.clone(),
            states,
            outputs: None,
            all_scales: self.prior.all_scales.clone(),
            noise: self.prior.noise.clone(),
        };
        Pieces { records, prior }
    }

    /// Whether any channel is noisy, not only rounded: near the resolution noise still decides.
    pub fn noisy(&self) -> bool {
        let channels = self.scales.noise.iter().zip(&self.scales.range);
        channels
            .into_iter()
            .any(|(noise, range)| *noise > 0.5 * RESOLUTION * range)
    }

    /// The variance that a channel's noise counts as at the least.
    pub fn resolution(&self, channel: usize) -> f64 {
        (RESOLUTION * self.scales.range[channel]).powi(2)
    }

    /// A record that θ was not learned from, smoothed with it; the deviations are left out.
    pub fn smoothed_with(&self, theta: &[f64], noise: &Noise, record: &Record) -> Smoothed {
        let noise = starting_at(self.stepper, record, &self.open_start(noise));
        let smoother = Smoother {
            stepper: self.stepper,
            record,
            theta,
            noise: &noise,
        };
        let (states, cost) = smoother.minimise(smoother.filtered(), SMOOTHING_STEPS);
        Smoothed {
            deviations: Trajectory::default(),
            states,
            cost,
        }
    }

    /// Mean nRMSE of the measured channels in free runs over the training records, from the best
    /// starts under exact physics: what a θ is worth.
    pub fn error(&self, theta: &[f64]) -> f64 {
        let records = self.records.iter();
        let smoothed = records.map(|r| self.smoothed_with(theta, self.noise, r));
        let smoothed: Vec<Smoothed> = smoothed.collect();
        self.measured_error(theta, self.noise, &smoothed)
    }

    /// Mean nRMSE of the measured channels in free runs over the validation records; `None`
    /// without any.
    pub fn validation_error(&self, theta: &[f64], noise: &Noise) -> Option<f64> {
        let validation = Problem {
            records: self.validate,
            ..*self
        };
        let smoothed = self
            .validate
            .iter()
            .map(|r| self.smoothed_with(theta, noise, r));
        let smoothed: Vec<Smoothed> = smoothed.collect();
        (!smoothed.is_empty()).then(|| validation.measured_error(theta, noise, &smoothed))
    }

    /// The noise under which a start is looked for: nothing is held against it but the data.
    pub fn open_start(&self, noise: &Noise) -> Noise {
        let mut open = Noise {
            start: self.scales.start_variances(),
            ..noise.clone()
        };
        open.vary_as(self.stepper, noise);
        open
    }

    /// Smooths every record with θ, each from its trajectory so far.
    pub fn smooth_all(&self, theta: &[f64], noise: &Noise, before: Vec<Smoothed>) -> Vec<Smoothed> {
        let stepper = self.stepper;
        let smoothed = self.records.iter().zip(before).map(|(record, before)| {
            let noise = starting_at(stepper, record, noise);
            let smoother = Smoother {
                stepper,
                record,
                theta,
                noise: &noise,
            };
            let next = smoother.smooth(before.states.clone(), SMOOTHING_STEPS);
            if next.states.is_finite() {
                next
            } else {
                before
            }
        });
        smoothed.collect()
    }

    /// Mean nRMSE of the measured channels in free runs from the best starts under exact physics.
    pub fn measured_error(&self, theta: &[f64], noise: &Noise, smoothed: &[Smoothed]) -> f64 {
        let (stepper, open) = (self.stepper, self.open_start(noise));
        let exact = |(record, s): (&Record, &Smoothed)| {
            let noise = starting_at(stepper, record, &open);
            exact_trajectory(stepper, record, theta, &noise, s)
        };
        let states: Vec<_> = self.records.iter().zip(smoothed).map(exact).collect();
        self.free_run_error(theta, &states)
    }

    /// Mean nRMSE of the measured channels in free runs from the starts of trajectories; NaN where
    /// no channel can be scored.
    pub fn free_run_error(&self, theta: &[f64], states: &[Trajectory]) -> f64 {
        let stepper = self.stepper;
        let (mut sum, mut count) = (0.0, 0.0);
        for (record, states) in self.records.iter().zip(states) {
            let run = score::free_run_along(stepper, record, theta, states);
            let errors = score::channel_nrmse(stepper, record, theta, &run);
            for error in errors.into_iter().flatten() {
                sum += error;
                count += 1.0;
            }
        }
        sum / count
    }
}
