//! A model put to use on a new record: its states estimated, or its course predicted, with bands,
//! and whether to believe them.

use crate::filter::bands::{Bands, Mode};
use crate::filter::smoother::Smoother;
use crate::look::region::{self, Region};
use crate::model::Model;
use crate::numerics::objective::Noise;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::{Divergence, Error};

/// Part of a prediction that may leave what training visited without a warning.
const TOLERATED: f64 = 0.01;
/// Gauss–Newton steps that find a start.
pub(super) const STEPS: usize = 20;
/// Samples that find a start where nobody says how many, and of a short record this part.
const WARM_UP: usize = 100;
const WARM_UP_PART: usize = 10;
/// Decades by which a record may loosen the process noise, and what its log likelihood must gain.
const LOOSEST: i32 = 10;
const CLEAR: f64 = 3.0;

/// What predictions are made with: a fit, or a run read back.
#[derive(Clone, Copy)]
pub struct Predictor<'a> {
    pub model: &'a Model,
    pub theta: &'a [f64],
    /// Draws of δθ, see [`crate::filter::bands`]; without any, the bands count the start alone.
    pub draws: &'a [Vec<f64>],
    pub noise: &'a Noise,
    /// Factor of the variances that the noise alone would give, see [`crate::fit::Fit`].
    pub variance_inflation: f64,
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
    /// At the state that fits so many first samples; all others are predicted.
    WarmUp(usize),
}

impl Start<'_> {
    /// Samples that find a start where nobody says how many: a hundred, or a tenth of a shorter
    /// record.
    pub fn samples(record: &Record) -> usize {
        (record.len() / WARM_UP_PART).clamp(1, WARM_UP)
    }
}

/// A free run over a record.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The first sample that is predicted: those before it were looked at.
    pub from: usize,
    /// One state per sample from there on, row by row.
    pub states: Vec<f64>,
    /// Standard deviations, likewise: of θ and of the start.
    pub deviations: Vec<f64>,
    /// The measured channels.
    pub outputs: Vec<f64>,
    /// Their standard deviations, without the sensors' own noise.
    pub output_deviations: Vec<f64>,
    /// The part of it on which a network meets arguments unlike any in training.
    pub outside: f64,
}

impl Prediction {
    /// Whether it relies on what nobody has seen.
    pub fn extrapolates(&self) -> bool {
        self.outside > TOLERATED
    }
}

/// The states of a record, estimated with θ fixed.
#[derive(Debug, Clone)]
pub struct Estimated {
    /// One state per sample, row by row.
    pub states: Vec<f64>,
    /// Standard deviations, likewise.
    pub deviations: Vec<f64>,
    /// Mean of ν²/s: near 1 where the innovations are as large as the filter says.
    pub consistency: f64,
}

/// A factor on the standard deviations of the process noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseFactor(pub f64);

impl NoiseFactor {
    pub(super) fn noise(self, noise: &Noise) -> Noise {
        let process = noise.process.iter().map(|q| q * self.0 * self.0);
        Noise {
            process: process.collect(),
            ..noise.clone()
        }
    }

    /// The noise of bands. Looser equations leave misfits that are not correlated; and of few samples
    /// each can but repeat the others.
    fn inflated(self, predictor: &Predictor, samples: usize) -> Noise {
        if self.0 > 1.0 {
self.noise(predictor.noise)
} else {
                (predictor.noise).times(predictor.variance_inflation.min(samples.max(1) as f64))
}
    }
}

impl Predictor<'_> {
    /// Whether a record is one of this model, of its sample time, and longer than its warm-up.
    ///
    /// # Errors
    /// [`Error::Setting`] with what to do.
    pub fn check(&self, record: &Record, warm_up: usize) -> Result<(), Error> {
        let (d_u, d_y) = (self.model.inputs.len(), self.model.measurements.len());
        let fail = |message: String| Err(Error::Setting(format!("{} {message}", record.name)));
        if (record.d_u, record.d_y) != (d_u, d_y) {
            return fail(format!(
                "does not hold the model's {d_u} input(s) and {d_y} measurement(s)"
            ));
        }
        if record.len() < 2 || warm_up >= record.len() {
            return fail(format!(
                "has {} sample(s), and {warm_up} would be taken to find the start; take fewer, or bring a longer record",
                record.len()
            ));
        }
        Ok(())
    }

    /// Predicts a record's states from its inputs, and from its first samples where asked for.
    pub fn predict(&self, record: &Record, start: Start) -> Prediction {
        let system = &self.model.system;
        let stepper = Stepper::over(self.model, system, self.dt, [record]);
        let (from, state, variance) = match start {
            Start::At(state) => {
                let exact = self.scale.iter().map(|s| (1e-9 * s).powi(2));
                (0, state.to_vec(), exact.collect())
            }
            Start::WarmUp(samples) => self.warm_up(&stepper, record, samples.min(record.len() - 1)),
        };
        let mut rest = record.slice(from..record.len());
        rest.outputs.fill(f64::NAN);
        let states = score::free_run(&stepper, &rest, self.theta, &state);
        let noise = Noise {
            start_mean: state,
            start: variance,
            ..self.noise.times(self.variance_inflation)
        };
        let bands = if states.iter().all(|x| x.is_finite()) {
                let smoother = self.smoother(&stepper, &rest, &noise);
                smoother.bands(&states, self.draws, Mode::Filter)
} else {
Bands::endless(rest.len(), system.states(), system.measurements())
};
        Prediction {
            from,
            outputs: score::outputs(&stepper, &rest, self.theta, &states),
            outside: region::outside(system, &rest, &states, self.regions),
            states,
            deviations: bands.states,
            output_deviations: bands.outputs,
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
        let mut first = record.slice(0..samples + 1);
        first.outputs[samples * first.d_y..].fill(f64::NAN);
        let loosened = self.loosened(&first);
        let noise = self.open_start(&first, &loosened.noise(self.noise));
        let smoother = self.smoother(stepper, &first, &noise);
        let (states, _) = smoother.minimise(smoother.filtered(), STEPS);
        let noise = self.open_start(&first, &loosened.inflated(self, samples));
        let smoother = self.smoother(stepper, &first, &noise);
        let bands = smoother.bands(&states, self.draws, Mode::Filter);
        let last = samples * n..(samples + 1) * n;
        let variances = bands.states[last.clone()].iter().map(|d| d * d).collect();
        (samples, states[last].to_vec(), variances)
    }

    /// How much looser than the fit left it the process noise must be for a record, by the likelihood
    /// of its data: of a record that the learned equations do not follow, exact equations would
    /// show states that fit it nowhere. All noise may be larger by a common factor, or a record with
    /// a noisier sensor would ask for looser equations; not smaller, or one without noise would.
    pub fn loosened(&self, record: &Record) -> NoiseFactor {
        let stepper = Stepper::over(self.model, &self.model.system, self.dt, [record]);
        let likelihood = |loosened: NoiseFactor| {
            let noise = self.open_start(record, &loosened.noise(self.noise));
            let smoother = self.smoother(&stepper, record, &noise);
            let states = smoother.kalman();
            let value = states.map_or(f64::NAN, |states| {
                smoother.forward(&states).widened_likelihood()
            });
            if value.is_nan() {
                f64::NEG_INFINITY
            } else {
                value
            }
        };
        let mut best = (NoiseFactor(1.0), likelihood(NoiseFactor(1.0)));
        for decade in 1..=LOOSEST {
            let next = NoiseFactor(10f64.powi(decade));
            let value = likelihood(next);
            if value > best.1 + CLEAR {
                best = (next, value);
            }
        }
        best.0
    }

    /// Estimates a record's states from its measurements; see [`Self::loosened`].
    ///
    /// # Errors
    /// [`Error::Diverged`] where the filter leaves the finite numbers.
    pub fn estimate(
        &self,
        record: &Record,
        mode: Mode,
        loosened: NoiseFactor,
    ) -> Result<Estimated, Error> {
        let stepper = Stepper::over(self.model, &self.model.system, self.dt, [record]);
        let noise = self.open_start(record, &loosened.noise(self.noise));
        let smoother = self.smoother(&stepper, record, &noise);
        let states = match mode {
            Mode::Filter => smoother.kalman().map_err(|(sample, state)| {
                Error::Diverged(Divergence {
                    during: format!("the filter on {}", record.name),
                    pass: None,
                    step: sample,
                    time: record.time[sample],
                    quantity: self.model.states[state].name.clone(),
                    value: f64::NAN,
                    advice: "loosen the process noise, or take the smoother".into(),
                })
            })?,
            Mode::Smoother => smoother.minimise(smoother.filtered(), STEPS).0,
        };
        let consistency = smoother.forward(&states).consistency();
        let noise = self.open_start(record, &loosened.inflated(self, record.len()));
        let smoother = self.smoother(&stepper, record, &noise);
        Ok(Estimated {
            deviations: smoother.bands(&states, self.draws, mode).states,
            consistency,
            states,
        })
    }

    pub(super) fn smoother<'b>(
        &'b self,
        stepper: &'b Stepper<'b>,
        record: &'b Record,
        noise: &'b Noise,
    ) -> Smoother<'b> {
        Smoother {
            stepper,
            record,
            theta: self.theta,
            noise,
        }
    }

    /// The noise under which a start is looked for: nothing is held against it but the data.
    pub(super) fn open_start(&self, record: &Record, noise: &Noise) -> Noise {
        let mut noise = Noise {
            start: self.scale.iter().map(|s| s * s).collect(),
            ..noise.clone()
        };
        noise.show(record, self.model.system.direct());
        noise
    }
}
