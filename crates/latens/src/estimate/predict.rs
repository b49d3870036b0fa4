//! A new record, predicted: a free run with bands, and whether to believe it.

use super::region::{self, Region};
use super::smoother::Smoother;
use crate::model::Model;
use crate::objective::Noise;
use crate::record::Record;
use crate::score;
use crate::step::Stepper;

/// Part of a prediction that may leave what training visited without a warning.
const TOLERATED: f64 = 0.01;
/// Gauss–Newton steps that find a start.
const STEPS: usize = 20;

/// What predictions are made with.
#[derive(Clone, Copy)]
pub struct Predictor<'a> {
    pub model: &'a Model,
    pub theta: &'a [f64],
    /// Draws of δθ, see [`super::bands`]; without any, the bands count the start alone.
    pub draws: &'a [Vec<f64>],
    pub noise: &'a Noise,
    /// Factor of the variances that the noise alone would give, see [`crate::fit::Fit`].
    pub repetition: f64,
    /// Size of each state.
    pub scale: &'a [f64],
    pub regions: &'a [Region],
    pub dt: f64,
}

/// Where a prediction starts.
#[derive(Debug, Clone, Copy)]
pub enum Start<'a> {
    /// At a known state, at the record's first sample.
    At(&'a [f64]),
    /// At the state that fits the first samples; it predicts from the last of them on.
    WarmUp(usize),
}

/// A free run over a record.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The sample at which it starts.
    pub from: usize,
    /// One state per sample from there on, row by row.
    pub states: Vec<f64>,
    /// Standard deviations, likewise: of θ and of the start.
    pub deviations: Vec<f64>,
    /// The part of it on which a network meets arguments unlike any in training.
    pub outside: f64,
}

impl Prediction {
    /// Whether it relies on what nobody has seen.
    pub fn extrapolates(&self) -> bool {
        self.outside > TOLERATED
    }
}

impl Predictor<'_> {
    /// Predicts a record's states from its inputs, and from its first samples where asked for.
    pub fn predict(&self, record: &Record, start: Start) -> Prediction {
        let system = &self.model.system;
        let stepper = Stepper::new(self.model, system, self.dt);
        let n = system.states();
        let (from, state, variance) = match start {
            Start::At(state) => {
                let exact = self.scale.iter().map(|s| (1e-9 * s).powi(2));
                (0, state.to_vec(), exact.collect())
            }
            Start::WarmUp(samples) => self.warm_up(&stepper, record, samples.min(record.len() - 1)),
        };
        let mut rest = record.slice(from..record.len());
        let states = score::free_run(&stepper, &rest, self.theta, &state);
        rest.outputs.fill(f64::NAN);
        let noise = Noise {
            start_mean: state,
            start: variance,
            ..self.noise.times(self.repetition)
        };
        let smoother = Smoother {
            stepper: &stepper,
            record: &rest,
            theta: self.theta,
            noise: &noise,
        };
        let finite = states.iter().all(|x| x.is_finite());
        let deviations = if finite {
            smoother.bands(&states, self.draws)
        } else {
            vec![f64::INFINITY; rest.len() * n]
        };
        let outside = region::outside(system, &rest, &states, self.regions);
        Prediction {
            from,
            states,
            deviations,
            outside,
        }
    }

    /// The sample, state and variances after some samples of a record. Their correlations, with
    /// each other and with θ, are left out.
    fn warm_up(
        &self,
        stepper: &Stepper,
        record: &Record,
        samples: usize,
    ) -> (usize, Vec<f64>, Vec<f64>) {
        let n = self.scale.len();
        let first = record.slice(0..samples + 1);
        let mut noise = Noise {
            start: self.scale.iter().map(|s| s * s).collect(),
            ..self.noise.times(self.repetition)
        };
        noise.show(&first, self.model.system.direct());
        let smoother = Smoother {
            stepper,
            record: &first,
            theta: self.theta,
            noise: &noise,
        };
        let smoothed = smoother.smooth(smoother.filtered(), STEPS);
        let deviations = smoother.bands(&smoothed.states, self.draws);
        let last = samples * n..(samples + 1) * n;
        let variances = deviations[last.clone()].iter().map(|d| d * d).collect();
        (samples, smoothed.states[last].to_vec(), variances)
    }
}
