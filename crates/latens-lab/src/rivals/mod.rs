//! The methods that Latens is compared with, on the same model files and records: NODE, NODE-LSTM,
//! SPINODE, RM and PR-SSM.
//!
//! Each is a file of its own, which says at its head what it does, where it departs from its paper,
//! and what its recipe cannot do where states are hidden. All have exact gradients of their discrete
//! steps, one Adam ([`adam`]), and networks scaled to the records as Latens scales its own:
//! centres and scales come from a smoothing pass with the known equations, which their papers do
//! not have. The hidden start is unknown unless [`Settings::known_start`] gives it away.
//!
//! ```
//! use latens::simulate::{Simulation, simulate};
//! use latens::{Model, Silent};
//! use latens_lab::rivals::{Rival, Settings, fit};
//!
//! let model = Model::builtin("harmonic-oscillator")?;
//! let record = simulate(&model, &Simulation { steps: Some(500), ..Simulation::default() })?;
//! let settings = Settings { iterations: 20, ..Settings::new(Rival::Node) };
//! let outcome = fit(&model, &[record.clone()], &settings, &mut Silent)?;
//! assert_eq!(outcome.runs[0].len(), record.len());
//! # Ok::<(), latens::Error>(())
//! ```

pub mod adam;
mod convolution;
mod gaussian;
pub mod lstm;
pub mod node;
pub mod node_lstm;
pub mod pr_ssm;
pub mod rm;
mod solver;
pub mod spinode;
pub mod windows;
pub mod without_fit;

use latens::fit::learn;
use latens::look::SignalScales;
use latens::numerics::score;
use latens::numerics::step::Stepper;
use latens::record::Record;
use latens::solve::{Observer, PassReport};
use latens::{Error, Model, Trajectory};

pub use solver::RivalSolver;
use windows::Problem;

/// The methods that Latens is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// Neural ODE (Chen et al. 2018).
    Node,
    /// With a memory in place of the network.
    NodeLstm,
    /// Stochastic physics-informed neural ODE.
    Spinode,
    /// With a recognition network for the start.
    Rm,
    /// Probabilistic recurrent state-space model.
    PrSsm,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Node,
        Self::NodeLstm,
        Self::Spinode,
        Self::Rm,
        Self::PrSsm,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::NodeLstm => "node-lstm",
            Self::Spinode => "spinode",
            Self::Rm => "rm",
            Self::PrSsm => "pr-ssm",
        }
    }

    /// Iterations of gradient descent, or passes of a network with memory.
    pub fn iterations(self) -> usize {
        match self {
            Self::NodeLstm => 300,
            Self::PrSsm => 3000,
            Self::Rm => 2500,
            Self::Node | Self::Spinode => 2000,
        }
    }

    /// Whether θ of the model itself is what it learns.
    pub fn learns_theta(self) -> bool {
        !matches!(self, Self::NodeLstm | Self::PrSsm)
    }
}

/// What a rival can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Which one.
    pub method: Rival,
    /// Steps of Adam; for NODE-LSTM passes over the records.
    pub iterations: usize,
    /// Of the random start.
    pub seed: u64,
    /// Adam's learning rate at the beginning.
    pub rate: f64,
    /// Steps of a window, all of a record that is shorter; of the stretch after which NODE-LSTM cuts
    /// backpropagation; of a sub-trajectory of PR-SSM.
    pub window: usize,
    /// Whether the hidden start of each record is given (its truth) instead of learned.
    pub known_start: bool,
    /// NODE-LSTM's stateless variant: its memory is built again at each step, of so many states.
    pub recall: Option<usize>,
}

impl Settings {
    /// The published recipe, as far as it says; else what worked on the harmonic oscillator.
    pub fn new(method: Rival) -> Self {
        let (rate, window) = match method {
            Rival::NodeLstm => (1e-3, node_lstm::SEGMENT_STEPS),
            Rival::Rm => (5e-3, 2500),
            Rival::PrSsm => (0.01, 50),
            _ => (1e-2, 5000),
        };
        Self {
            method,
            iterations: method.iterations(),
            seed: 1,
            rate,
            window,
            known_start: false,
            recall: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        let fail = |message: &str| Err(Error::Setting(message.into()));
        if self.iterations == 0 || self.window == 0 || self.recall == Some(0) {
            return fail(
                "iterations, the length of windows and recalled states must be at least 1",
            );
        }
        if !(self.rate > 0.0 && self.rate.is_finite()) {
            return fail("the learning rate must be positive and finite");
        }
        Ok(())
    }
}

/// What was learned, by kind.
#[derive(Debug, Clone)]
pub enum Learned {
    /// θ of the model itself (NODE, SPINODE).
    Equations(Vec<f64>),
    /// The same, with the network that recognises a start (RM).
    Recognised(Vec<f64>, Box<rm::Recognition>, Vec<f64>),
    /// A stack with memory in place of the model's networks (NODE-LSTM).
    Memory(Box<node_lstm::Hybrid>, Vec<f64>),
    /// Latent states in place of the model's (PR-SSM).
    Latent(Box<pr_ssm::Learned>),
}

/// A rival that has been trained.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The model, its networks scaled.
    pub model: Model,
    pub scales: SignalScales,
    /// Sample time.
    pub dt: f64,
    pub learned: Learned,
    /// The free run over each record from the start that the method itself finds, N × d_x.
    pub runs: Vec<Trajectory>,
    /// SPINODE's g₂ of each row with a network.
    pub diffusion: Vec<f64>,
    pub reports: Vec<PassReport>,
    /// Whether the observer ended it.
    pub stopped: bool,
}

/// Samples of a new record that a start is found on.
const START_SAMPLES: usize = 100;

/// Trains a rival.
///
/// # Errors
/// [`Error::Setting`] for settings, models or records that it cannot take.
pub fn fit(
    model: &Model,
    records: &[Record],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    let (model, scales, dt) = learn::scaled(model, records)?;
    let stepper = Stepper::over(&model, &model.system, dt, records);
    let deviation = windows::deviations(records, model.measurements.len());
    let problem = Problem {
        model: &model,
        stepper: &stepper,
        records,
        scales: &scales,
        deviation: &deviation,
    };
    train(problem, settings, observer)
}

/// Trains a rival on a model whose networks are scaled.
fn train(
    problem: Problem,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Outcome, Error> {
    settings.check()?;
    let Problem {
        model,
        stepper,
        records,
        ..
    } = problem;
    if model.system.parameters() == 0 {
        return Err(Error::Setting(format!(
            "{} has nothing to learn",
            model.name
        )));
    }
    let dt = stepper.dt();
    let simulated = |theta: &[f64], starts: &[Vec<f64>]| -> Vec<Trajectory> {
        let pairs = records.iter().zip(starts);
        pairs
            .map(|(record, start)| score::free_run(stepper, record, theta, start))
            .collect()
    };
    let mut diffusion = vec![];
    let (learned, runs, done) = match settings.method {
        Rival::Spinode => {
            let ((theta, starts, done), spread) = spinode::learn(problem, settings, observer)?;
            diffusion = spread;
            (
                Learned::Equations(theta.clone()),
                simulated(&theta, &starts),
                done,
            )
        }
        Rival::Rm => {
            let (theta, starts, (recognition, weights), done) =
                rm::learn(problem, settings, observer)?;
            let runs = simulated(&theta, &starts);
            (
                Learned::Recognised(theta, Box::new(recognition), weights),
                runs,
                done,
            )
        }
        Rival::NodeLstm => {
            let (hybrid, weights, starts, done) = node_lstm::learn(problem, settings, observer)?;
            let pairs = records.iter().zip(&starts);
            let runs = pairs.map(|(record, start)| hybrid.free_run(&weights, record, start, dt));
            let runs = runs.collect();
            (Learned::Memory(Box::new(hybrid), weights), runs, done)
        }
        Rival::PrSsm => {
            let (latent, done) = pr_ssm::learn(problem, settings, observer)?;
            let runs = records
                .iter()
                .map(|r| latent.free_run(model, r, None))
                .collect();
            (Learned::Latent(Box::new(latent)), runs, done)
        }
        _ => {
            let (theta, starts, done) = node::learn(problem, settings, observer)?;
            (
                Learned::Equations(theta.clone()),
                simulated(&theta, &starts),
                done,
            )
        }
    };
    Ok(Outcome {
        learned,
        runs,
        diffusion,
        reports: done.reports,
        stopped: done.stopped,
        scales: problem.scales.clone(),
        dt,
        model: model.clone(),
    })
}

impl Outcome {
    /// θ of the model, where that is what was learned.
    pub fn theta(&self) -> Option<&[f64]> {
        match &self.learned {
            Learned::Equations(theta) | Learned::Recognised(theta, ..) => Some(theta),
            Learned::Memory(..) | Learned::Latent(_) => None,
        }
    }

    /// A free run over another record, its input replayed: from a state, or from the start that the
    /// method finds in the record's first samples. (NODE and SPINODE train the hidden start on them,
    /// NODE-LSTM likewise, with all else held.)
    pub fn predict(&self, record: &Record, start: Option<&[f64]>) -> Trajectory {
        let stepper = Stepper::over(&self.model, &self.model.system, self.dt, [record]);
        match &self.learned {
            Learned::Latent(latent) => latent.free_run(&self.model, record, start),
            Learned::Recognised(theta, recognition, weights) => {
                let found =
                    start.map_or_else(|| recognition.start(weights, record), <[f64]>::to_vec);
                score::free_run(&stepper, record, theta, &found)
            }
            Learned::Equations(theta) => {
                let found = start.map_or_else(|| self.start(record), <[f64]>::to_vec);
                score::free_run(&stepper, record, theta, &found)
            }
            Learned::Memory(hybrid, weights) => {
                let found = start.map_or_else(|| self.start(record), <[f64]>::to_vec);
                hybrid.free_run(weights, record, &found, self.dt)
            }
        }
    }

    /// The start whose run fits the first samples best, all that was learned held.
    fn start(&self, record: &Record) -> Vec<f64> {
        let first = [record.slice(0..record.len().min(START_SAMPLES + 1))];
        let stepper = Stepper::over(&self.model, &self.model.system, self.dt, &first);
        let deviation = windows::deviations(&first, self.model.measurements.len());
        let problem = Problem {
            model: &self.model,
            stepper: &stepper,
            records: &first,
            scales: &self.scales,
            deviation: &deviation,
        };
        match &self.learned {
            Learned::Memory(hybrid, weights) => node_lstm::start(problem, hybrid, weights),
            _ => node::start(problem, self.theta().unwrap_or(&[])),
        }
    }
}
