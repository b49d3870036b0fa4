//! A model put to use on a new record: its states estimated, or its course predicted, with bands,
//! and how far to trust them.

use crate::filter::bands::{Bands, Mode};
use crate::filter::exact_trajectory;
use crate::filter::smoother::{Smoothed, Smoother};
use crate::look::region::{self, Region};
use crate::look::sampling::check_duration;
use crate::model::{KnownStart, Model};
use crate::numerics::Trajectory;
use crate::numerics::objective::Noise;
use crate::numerics::score;
use crate::numerics::step::Stepper;
use crate::record::Record;
use crate::{Divergence, Error};

/// Part of a prediction that may leave what training visited without a warning.
const TOLERATED_OUTSIDE_PART: f64 = 0.01;
/// Gauss–Newton steps that find a start.
pub(super) const START_STEPS: usize = 20;
/// Samples that find a start where nobody says how many, and of a short record this part.
const WARM_UP_SAMPLES: usize = 100;
const WARM_UP_DIVISOR: usize = 10;
/// Decades by which a record may loosen the process noise, and what its log likelihood must gain.
const LOOSEST_DECADES: i32 = 10;
const CLEAR_LOG_LIKELIHOOD: f64 = 3.0;

/// Factor on the process noise under which a simulation's start is uncertain.
const EXACT_START_FACTOR: f64 = 1e-6;

/// The samples of a record that were looked at before it is predicted, and the one after them.
struct LookedAt {
    states: Trajectory,
    /// That of their bands.
    noise: Noise,
    /// Whether it is another than the free run's.
    loosened: bool,
}

/// A record without its measurements from a sample on.
fn unmeasured(mut record: Record, from: usize) -> Record {
    record.outputs[from * record.d_y..].fill(f64::NAN);
    record
}

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
    /// The middle of each state: where a record may start that was not learned from.
    pub center: &'a [f64],
    /// Size of each state.
    pub scale: &'a [f64],
    /// How far from its middle each went where that may be farther than its size; empty where nobody knows.
    pub spread: &'a [f64],
    pub regions: &'a [Region],
    pub dt: f64,
    /// Of each channel over the records learned from.
    pub range: &'a [f64],
    /// Whether a prediction starts on the simulation that fits the first samples.
    pub exact_start: bool,
    /// Factor on the standard deviations of predictions, see [`crate::fit::Proof`].
    pub widening: f64,
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
        (record.len() / WARM_UP_DIVISOR).clamp(1, WARM_UP_SAMPLES)
    }
}

/// A free run over a record.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The first sample that is predicted: those before it were looked at.
    pub from: usize,
    /// One state per sample from there on.
    pub states: Trajectory,
    /// Standard deviations, likewise: of θ and of the start.
    pub deviations: Trajectory,
    /// The measured channels.
    pub outputs: Trajectory,
    /// Their standard deviations, without the sensors' own noise.
    pub output_deviations: Trajectory,
    /// The part of it on which a network meets arguments unlike any in training.
    pub outside: f64,
}

impl Prediction {
    /// Whether it relies on what nobody has seen.
    pub fn extrapolates(&self) -> bool {
        self.outside > TOLERATED_OUTSIDE_PART
    }
}

/// The states of a record, estimated with θ fixed.
#[derive(Debug, Clone)]
pub struct Estimated {
    /// One state per sample.
    pub states: Trajectory,
    /// Standard deviations, likewise.
    pub deviations: Trajectory,
    /// Mean of ν²/s: near 1 where the innovations are as large as the filter says.
    pub consistency: f64,
}

/// A factor on the standard deviations of the process noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseFactor(pub f64);

impl NoiseFactor {
    pub(super) fn noise(self, stepper: &Stepper, noise: &Noise) -> Noise {
        noise.tightened(stepper, self.0 * self.0)
    }

    /// The noise of bands. Looser equations leave misfits that are not correlated; and of few samples
    /// each can but repeat the others.
    fn inflated(self, stepper: &Stepper, predictor: &Predictor, samples: usize) -> Noise {
        if self.0 > 1.0 {
            self.noise(stepper, predictor.noise)
        } else {
            let most = samples.max(1) as f64;
            (predictor.noise).inflated(stepper, predictor.variance_inflation.min(most))
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
        check_duration(self.model, record, self.dt)
    }

    /// Predicts a record's states from its inputs, and from its first samples where asked for.
    pub fn predict(&self, record: &Record, start: Start) -> Prediction {
        let system = &self.model.system;
        let stepper = Stepper::over(self.model, system, self.dt, [record]);
        let looked_at = match start {
            Start::At(state) => LookedAt {
                states: Trajectory::new(state.to_vec(), self.scale.len()),
                noise: Noise {
                    start_mean: state.to_vec(),
                    start: self.known_start(),
                    ..self.noise.inflated(&stepper, self.variance_inflation)
                },
                loosened: false,
            },
            Start::WarmUp(samples) => self.warm_up(&stepper, record, samples.min(record.len() - 1)),
        };
        let from = looked_at.states.len() - 1;
        let rest = record.slice(from..record.len());
        let states = score::free_run(&stepper, &rest, self.theta, looked_at.states.row(from));
        let bands = if states.is_finite() {
            self.widened(self.bands(&stepper, record, &looked_at, &states))
        } else {
            Bands::endless(rest.len(), system.states(), system.measurements())
        };
        Prediction {
            from,
            outputs: score::outputs(stepper.system(), &rest, self.theta, &states),
            outside: region::outside(system, &rest, &states, self.regions),
            states,
            deviations: bands.states,
            output_deviations: bands.outputs,
        }
    }

    /// The bands of a free run from the last of the samples that were looked at.
    ///
    /// One pass over both counts how the uncertain start is correlated with θ, and its states with each
    /// other; where the start needed looser equations than the free run has, its variances alone count.
    fn bands(
        &self,
        stepper: &Stepper,
        record: &Record,
        looked_at: &LookedAt,
        states: &Trajectory,
    ) -> Bands {
        let from = looked_at.states.len() - 1;
        if looked_at.loosened {
            let first = unmeasured(record.slice(0..from + 1), from);
            let smoother = self.smoother(stepper, &first, &looked_at.noise);
            let start = smoother.bands(&looked_at.states, self.draws, Mode::Filter);
            let noise = Noise {
                start_mean: states.row(0).to_vec(),
                start: start.states.row(from).iter().map(|d| d * d).collect(),
                ..self.noise.inflated(stepper, self.variance_inflation)
            };
            let rest = unmeasured(record.slice(from..record.len()), 0);
            let smoother = self.smoother(stepper, &rest, &noise);
            return smoother.bands(states, self.draws, Mode::Filter);
        }
        let all = unmeasured(record.clone(), from);
        let mut whole = looked_at.states.slice(0..from);
        states.rows().for_each(|row| whole.push(row));
        let smoother = self.smoother(stepper, &all, &looked_at.noise);
        let bands = smoother.bands(&whole, self.draws, Mode::Filter);
        Bands {
            states: bands.states.starting_at(from),
            outputs: bands.outputs.starting_at(from),
        }
    }

    /// Bands as wide as held-back blocks ask for, and no wider than sense allows: a sensor of 10 V
    /// is not at 5,000 V.
    fn widened(&self, bands: Bands) -> Bands {
        const MOST_RANGES: f64 = 2.0;
        let wide = |mut deviations: Trajectory, range: &dyn Fn(usize) -> f64| {
            let width = deviations.width();
            for (at, deviation) in deviations.as_mut_slice().iter_mut().enumerate() {
                *deviation = (self.widening * *deviation).min(MOST_RANGES * range(at % width));
            }
            deviations
        };
        // a scale is half a range
        Bands {
            states: wide(bands.states, &|i| 2.0 * self.start_deviation(i)),
            outputs: wide(bands.outputs, &|c| self.range[c]),
        }
    }

    /// The states at the first samples of a record, and the sample after them.
    fn warm_up(&self, stepper: &Stepper, record: &Record, samples: usize) -> LookedAt {
        let first = unmeasured(record.slice(0..samples + 1), samples);
        if self.exact_start {
            let noise = self.open_start(&first, self.noise);
            let smoother = self.smoother(stepper, &first, &noise);
            let (states, cost) = smoother.minimise(smoother.filtered(), START_STEPS);
            let from = Smoothed {
                deviations: states.clone(),
                states,
                cost,
            };
            let states = exact_trajectory(stepper, &first, self.theta, &noise, &from);
            let noise = NoiseFactor(1.0).inflated(stepper, self, samples);
            let noise = self.open_start(&first, &noise);
            let noise = noise.tightened(stepper, EXACT_START_FACTOR);
            return LookedAt {
                states,
                noise,
                loosened: true,
            };
        }
        let loosened = self.loosened(&first);
        let noise = self.open_start(&first, &loosened.noise(stepper, self.noise));
        LookedAt {
            states: self.sharpened(stepper, &first, noise),
            noise: self.open_start(&first, &loosened.inflated(stepper, self, samples)),
            loosened: loosened.0 > 1.0 || self.variance_inflation > 1.0,
        }
    }

    /// The states that fit a record best. Without noise R_y is a resolution: where the misfits are far
    /// smaller than that, it is they that the middle of the states is held against, or the start
    /// would be drawn there by more than the data leave open.
    fn sharpened(&self, stepper: &Stepper, record: &Record, mut noise: Noise) -> Trajectory {
        const SHARPENING_ROUNDS: usize = 3;
        const FAR_MISFIT_SQUARE: f64 = 0.1;
        const LEAST_NOISE_FACTOR: f64 = 1e-4;
        let mut states = self.smoother(stepper, record, &noise).filtered();
        let readings = record.outputs.iter().filter(|y| !y.is_nan()).count();
        for _ in 0..SHARPENING_ROUNDS {
            let (next, cost) = self
                .smoother(stepper, record, &noise)
                .minimise(states, START_STEPS);
            states = next;
            let square = 2.0 * cost.data / readings as f64;
            if square.is_nan() || square > FAR_MISFIT_SQUARE || readings < 2 * self.scale.len() {
                break;
            }
            noise = Noise {
                start: noise.start.clone(),
                ..noise.times(square.max(LEAST_NOISE_FACTOR))
            };
        }
        states
    }

    /// How much looser than the fit left it the process noise must be for a record, by the likelihood
    /// of its data: of a record that the learned equations do not follow, exact equations would
    /// show states that fit it nowhere. All noise may be larger by a common factor, or a record with
    /// a noisier sensor would ask for looser equations; not smaller, or one without noise would.
    pub fn loosened(&self, record: &Record) -> NoiseFactor {
        let stepper = Stepper::over(self.model, &self.model.system, self.dt, [record]);
        let likelihood = |loosened: NoiseFactor| {
            let noise = self.open_start(record, &loosened.noise(&stepper, self.noise));
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
        for decade in 1..=LOOSEST_DECADES {
            let next = NoiseFactor(10f64.powi(decade));
            let value = likelihood(next);
            if value > best.1 + CLEAR_LOG_LIKELIHOOD {
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
        let noise = self.open_start(record, &loosened.noise(&stepper, self.noise));
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
            Mode::Smoother => smoother.minimise(smoother.filtered(), START_STEPS).0,
        };
        let consistency = smoother.forward(&states).consistency();
        let noise = self.open_start(record, &loosened.inflated(&stepper, self, record.len()));
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

    /// The variances of a start that somebody states: of how constants vary, nobody does.
    fn known_start(&self) -> Vec<f64> {
        const KNOWN_SCALE_PART: f64 = 1e-9;
        let known = self.scale.iter().map(|s| (KNOWN_SCALE_PART * s).powi(2));
        let mut known: Vec<f64> = known.collect();
        for (_, state) in self.model.varying() {
            known[state] = self.scale[state].powi(2);
        }
        known
    }

    /// How far from its middle a state may begin: as far as training went, whatever its size is said to be.
    fn start_deviation(&self, state: usize) -> f64 {
        let spread = self.spread.get(state).copied().unwrap_or(0.0);
        self.scale[state].max(spread)
    }

    /// The noise under which a start is looked for: nothing is held against it but the data.
    pub fn open_start(&self, record: &Record, noise: &Noise) -> Noise {
        let states = 0..self.scale.len();
        let mut noise = Noise {
            start_mean: self.center.to_vec(),
            start: states.map(|i| self.start_deviation(i).powi(2)).collect(),
            ..noise.clone()
        };
        let known: Vec<KnownStart> = self.model.known_starts().collect();
        noise.begin(record, self.model.system.direct(), &known);
        noise
    }
}
