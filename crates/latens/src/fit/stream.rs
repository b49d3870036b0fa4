//! States, and θ where asked for, from samples as they come: one step a sample, nothing kept but
//! the filter, no allocation on the way.
//!
//! The step is the [extended filter](crate::filter::extended)'s, or with learning the
//! [joint one](crate::filter::joint)'s. Three things are added to it.
//!
//! **Forgetting.** With a memory of N samples and λ = e^(−Δ/N), a step of Δ sample times has
//!
//! ```text
//! P_θθ ← λ P_θθ + (1 − λ) σ² I,   P_xθ ← √λ P_xθ
//! ```
//!
//! A parameter that the data of the last N samples say nothing about becomes as uncertain as
//! before any fit, with variance σ², and never more: plain exponential forgetting divides by λ and
//! blows up wherever the data are silent, which for a network is nearly everywhere.
//!
//! **Samples far off.** A channel with |ν| > g √s counts as if its noise were as large as it takes
//! for its pull to be that of g standard deviations: s becomes |ν| √s/g (Huber's influence). A
//! glitch then moves states and θ no further than a sample at the gate would, and shrinks no
//! covariance; a jump that is real is followed all the same, in more than one sample.
//!
//! **Restarts.** A state that has left the numbers that make sense, or a gap of more than
//! [`LONGEST_GAP`] sample times, starts the states again, as wide as at first. θ is kept.
//!
//! **Wrong times.** One sample alone does not move the stream so far: it is refused, and only a next
//! one that follows it shows that there is such a gap. Where a sample was taken over a gap of more than
//! [`DOUBTED_GAP`] sample times, two in a row from within the gap show that its time was wrong, and the
//! states start again there.

use serde::{Deserialize, Serialize};

use crate::filter::extended::ExtendedFilter;
use crate::filter::joint::{Cross, Reading};
use crate::model::{Model, Point};
use crate::numerics::linalg::PackedCovariance;
use crate::numerics::objective::{Noise, show};
use crate::numerics::step::Stepper;
use crate::{Divergence, Error};

/// Sample times that the filter predicts over where samples are missing; beyond, the states start
/// again.
pub const LONGEST_GAP: f64 = 10_000.0;

/// Sample times over which the time of a single sample may prove wrong.
pub const DOUBTED_GAP: f64 = 100.0;

/// How a stream is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Whether θ goes on learning.
    pub learn: bool,
    /// N, in samples; without it nothing is forgotten.
    pub forget: Option<f64>,
    /// g, in standard deviations.
    pub gate: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            learn: false,
            forget: None,
            gate: 10.0,
        }
    }
}

/// One sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Without it, one step after the sample before.
    pub time: Option<f64>,
    /// One for each input.
    pub input: &'a [f64],
    /// One for each channel, NaN where nothing was measured.
    pub output: &'a [f64],
}

/// How far a stream has come, and how it went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Samples taken so far.
    pub samples: u64,
    /// Of the last sample.
    pub time: f64,
    /// Samples since then that were lost and had no time of their own.
    pub lost: u64,
    /// Channels within the gate.
    pub measured: u64,
    /// The sum of their ν²/s.
    pub squares: f64,
    /// Channels beyond it.
    pub limited: u64,
    /// Times that the states started again.
    pub restarts: u64,
}

impl Progress {
    /// Mean of ν²/s within the gate: near 1 where the noise is what it is said to be.
    pub fn consistency(&self) -> f64 {
        self.squares / self.measured as f64
    }
}

/// What a sample did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// Mean of ν²/s over the channels; NaN where none was measured.
    pub consistency: f64,
    /// Channels beyond the gate.
    pub limited: usize,
    /// Whether the states started again, at this sample.
    pub restarted: bool,
}

/// All that a stream goes on from, bit for bit.
#[derive(Debug, Clone)]
pub struct State {
    /// How it is run.
    pub options: Options,
    /// How far it has come.
    pub progress: Progress,
    /// θ̂.
    pub theta: Vec<f64>,
    /// P_θ.
    pub covariance: PackedCovariance,
    /// x̂.
    pub mean: Vec<f64>,
    /// P_x, row by row.
    pub spread: Vec<f64>,
    /// P_xθ, a row for each state; empty without learning.
    pub cross: Vec<f64>,
    /// Of the last sample.
    pub input: Vec<f64>,
}

/// What stays as it is while samples come.
pub struct Setting<'s> {
    pub model: &'s Model,
    pub stepper: Stepper<'s>,
    /// Q_x and R_y; where a state starts, and how widely.
    pub noise: Noise,
    /// Size of each state.
    pub scale: Vec<f64>,
    /// σ² of the parameters before any fit.
    pub prior: f64,
}

/// The online estimator.
pub struct Stream<'s> {
    setting: Setting<'s>,
    options: Options,
    progress: Progress,
    theta: Vec<f64>,
    covariance: PackedCovariance,
    filter: ExtendedFilter,
    cross: Option<Cross>,
    /// Of the last sample and, after it, of the one that is being taken: what a first-order hold
    /// goes to.
    input: Vec<f64>,
    /// y − h(f_i) of the last sample, NaN where nothing was measured.
    innovations: Vec<f64>,
    /// Time of the last sample, where it was refused and may prove right.
    refused: Option<f64>,
    /// Time before the last gap, where it is doubted.
    doubted: Option<f64>,
}

impl<'s> Stream<'s> {
    /// Waits for a first sample, which shows where the measured states start.
    pub fn new(
        setting: Setting<'s>,
        options: Options,
        theta: Vec<f64>,
        covariance: PackedCovariance,
    ) -> Self {
        let (stepper, noise) = (&setting.stepper, &setting.noise);
        let n = noise.start.len();
        let cross = || Cross::new(n, theta.len(), stepper.rows().len());
        Self {
            filter: ExtendedFilter::new(stepper, &noise.start_mean, &noise.start),
            cross: options.learn.then(cross),
            input: vec![0.0; 2 * stepper.system().inputs()],
            innovations: vec![f64::NAN; stepper.system().measurements()],
            refused: None,
            doubted: None,
            options,
            progress: Progress::default(),
            theta,
            covariance,
            setting,
        }
    }

    /// Goes on from where a stream was left; `options` may be others.
    pub fn resume(setting: Setting<'s>, options: Options, state: State) -> Self {
        let mut stream = Self::new(setting, options, state.theta, state.covariance);
        stream.progress = state.progress;
        stream.filter.states.mean = state.mean;
        stream.filter.states.covariance = state.spread;
        stream.input[..state.input.len()].copy_from_slice(&state.input);
        if let Some(cross) = &mut stream.cross
            && !state.cross.is_empty()
        {
            cross.values = state.cross;
        }
        stream
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        State {
            options: self.options,
            progress: self.progress,
            theta: self.theta.clone(),
            covariance: self.covariance.clone(),
            mean: self.filter.states.mean.clone(),
            spread: self.filter.states.covariance.clone(),
            cross: (self.cross.as_ref()).map_or(vec![], |c| c.values.clone()),
            input: self.input[..self.input.len() / 2].to_vec(),
        }
    }

    /// How far it has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// x̂.
    pub fn states(&self) -> &[f64] {
        &self.filter.states.mean
    }

    /// Standard deviation of a state.
    pub fn deviation(&self, state: usize) -> f64 {
        let n = self.filter.states.mean.len();
        let variance = self.filter.states.covariance[state * n + state];
        variance.max(0.0).sqrt()
    }

    /// y − h(f_i) of the last sample's channels, NaN where nothing was measured.
    pub fn innovations(&self) -> &[f64] {
        &self.innovations
    }

    /// θ̂.
    pub fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// P_θ.
    pub fn covariance(&self) -> &PackedCovariance {
        &self.covariance
    }

    /// A sample was lost, and nobody knows its time: the next is one step later.
    pub fn lose(&mut self) {
        if self.progress.samples > 0 {
            self.progress.lost += 1;
        }
    }

    /// Takes a sample.
    ///
    /// # Errors
    /// [`Error::Sample`] where it cannot follow the one before it, and nothing has changed;
    /// [`Error::Diverged`] where θ or P_θ is lost, and there is nothing to go on from.
    pub fn step(&mut self, sample: Sample) -> Result<Outcome, Error> {
        let first = self.progress.samples == 0;
        let gap = if first { 0.0 } else { self.gap_to(&sample)? };
        let dt = self.setting.stepper.dt();
        self.refused = None;
        self.doubted = if first {
            Some(f64::NEG_INFINITY)
        } else {
            (gap > DOUBTED_GAP * dt).then_some(self.progress.time)
        };
        self.input[sample.input.len()..].copy_from_slice(sample.input);
        let mut restarts = first || gap < 0.0 || gap > LONGEST_GAP * dt;
        if !restarts {
            self.advance(gap)?;
            restarts = self.is_lost();
        }
        self.progress.time = sample.time.unwrap_or(self.progress.time + gap);
        self.progress.samples += 1;
        self.progress.lost = 0;
        self.input.copy_within(sample.input.len().., 0);
        if restarts {
            self.start(sample.output);
        }
        let mut outcome = self.correct(sample.output);
        if self.is_lost() {
            restarts = true;
            self.start(sample.output);
            outcome = self.correct(sample.output);
        }
        self.setting.model.keep_bounds(&mut self.theta);
        if let Some(i) = self.theta.iter().position(|t| !t.is_finite()) {
            return Err(self.diverged(format!("θ[{i}]"), self.theta[i]));
        }
        outcome.restarted = restarts && !first;
        self.progress.restarts += u64::from(outcome.restarted);
        Ok(outcome)
    }

    /// Time from the last sample to this one; negative where the last one's time has proved wrong.
    fn gap_to(&mut self, sample: &Sample) -> Result<f64, Error> {
        let (dt, previous) = (self.setting.stepper.dt(), self.progress.time);
        let Some(time) = sample.time else {
            return Ok((1 + self.progress.lost) as f64 * dt);
        };
        let gap = time - previous;
        if gap > 0.0 && gap <= LONGEST_GAP * dt {
            return Ok(gap);
        }
        let before = self.refused.replace(time);
        let follows = |earliest: f64| before.is_some_and(|b| b > earliest && time > b);
        let proved = if gap > 0.0 {
            follows(previous)
        } else {
            gap < 0.0 && self.doubted.is_some_and(follows)
        };
        if proved {
            return Ok(gap);
        }
        Err(Error::Sample(if gap > 0.0 {
            format!(
                "time {time} is more than {LONGEST_GAP} sample times after {previous}; it is taken for wrong, unless the next sample follows it"
            )
        } else {
            format!("time {time} follows {previous}; times must increase from sample to sample")
        }))
    }

    /// States and θ over a gap.
    fn advance(&mut self, gap: f64) -> Result<(), Error> {
        let Setting { stepper, noise, .. } = &self.setting;
        let at = Point {
            time: self.progress.time,
            state: &[],
            input: &self.input,
            theta: &self.theta,
        };
        let learn = self.cross.is_some();
        (self.filter).advance(stepper, at, gap, &noise.process, learn);
        if let Some(cross) = &mut self.cross {
            let carried = cross.advance(&mut self.filter, stepper.rows(), &mut self.covariance);
            if let Err(spread) = carried {
                return Err(self.diverged("F_θ P_θ F_θᵀ".into(), spread));
            }
            if let Some(samples) = self.options.forget {
                let fresh = -(-self.filter.span.samples / samples).exp_m1();
                self.covariance.scale(1.0 - fresh);
                self.covariance.inflate(fresh * self.setting.prior);
                let root = (1.0 - fresh).sqrt();
                cross.values.iter_mut().for_each(|c| *c *= root);
            }
        }
        Ok(())
    }

    /// The wide prior, with the measured states where this sample shows them.
    fn start(&mut self, output: &[f64]) {
        let noise = &self.setting.noise;
        let (states, n) = (&mut self.filter.states, noise.start.len());
        states.mean.copy_from_slice(&noise.start_mean);
        let direct = self.setting.stepper.system().direct();
        show(&mut states.mean, output, direct);
        states.covariance.fill(0.0);
        for (i, variance) in noise.start.iter().enumerate() {
            states.covariance[i * n + i] = *variance;
        }
        // later on it is anywhere
        if self.progress.samples <= 1 {
            for known in self.setting.stepper.known_starts() {
                states.mean[known.state] = known.mean;
                states.covariance[known.state * (n + 1)] = known.variance;
            }
        }
        self.filter.step.next.copy_from_slice(&states.mean);
        if let Some(cross) = &mut self.cross {
            cross.values.fill(0.0);
        }
    }

    /// All channels of a sample.
    fn correct(&mut self, output: &[f64]) -> Outcome {
        let at = Point {
            time: self.progress.time,
            state: &[],
            input: &self.input,
            theta: &self.theta,
        };
        let filter = &mut self.filter;
        filter.measure(&self.setting.stepper, at);
        let (mut sum, mut count, mut limited) = (0.0, 0.0, 0);
        for (c, &y) in output.iter().enumerate() {
            self.innovations[c] = y - filter.predicted_output[c];
            if y.is_nan() {
                continue;
            }
            let mut r = self.setting.noise.measurement[c];
            let (innovation, spread) = (filter.innovation(c, y), filter.spread(c));
            let s = spread + r;
            let square = innovation * innovation / s;
            if square > self.options.gate * self.options.gate {
                r = innovation.abs() * s.sqrt() / self.options.gate - spread;
                limited += 1;
            } else {
                self.progress.squares += square;
                self.progress.measured += 1;
            }
            sum += square;
            count += 1.0;
            match &mut self.cross {
                Some(cross) => {
                    let (theta, covariance) = (&mut self.theta, &mut self.covariance);
                    let reading = Reading {
                        channel: c,
                        value: y,
                        variance: r,
                    };
                    cross.correct(filter, theta, covariance, reading);
                }
                None => {
                    filter.correct(c, y, r);
                }
            }
        }
        self.progress.limited += limited as u64;
        Outcome {
            consistency: sum / count,
            limited,
            restarted: false,
        }
    }

    fn is_lost(&self) -> bool {
        let (noise, scale) = (&self.setting.noise, &self.setting.scale);
        let states = &self.filter.states;
        let mut variances = states.covariance.iter().step_by(scale.len() + 1);
        (self.filter.lost(&noise.start_mean, scale)).is_some()
            || !variances.all(|v| *v >= 0.0 && v.is_finite())
    }

    fn diverged(&self, quantity: String, value: f64) -> Error {
        Error::Diverged(Divergence {
            during: "learning from the stream".into(),
            pass: None,
            step: self.progress.samples as usize,
            time: self.progress.time,
            quantity,
            value,
            advice: "go on from the last snapshot, without ⟦learn⟧ or with a smaller ⟦gate⟧".into(),
        })
    }
}
