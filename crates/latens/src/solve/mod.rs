//! Solvers of the one objective: what to learn from which records, and how the passes go.
//!
//! A fit runs in four parts. (1) A smoothing pass with what is unknown as a random walk finds the
//! hidden trajectory from the known physics alone, and with it the scales of everything. (2) The
//! networks get scaled arguments and a random start. (3) Batch takes Newton steps on all states
//! and θ at once, stage after stage with tighter physics; a recursion passes over the records,
//! epoch after epoch. (4) The states are smoothed with what was learned, and the free run is
//! scored.

pub mod alternating;
mod batch;
pub mod checkpoint;
pub mod damping;
pub mod epoch;
pub mod evidence;
pub mod given;
pub mod joint;
mod newton;
mod prepare;
mod recursion;
mod regress;
pub mod settings;
pub mod starts;

use serde::{Deserialize, Serialize};

pub use given::Given;
pub use settings::{Level, Settings, Solver};

use crate::Error;
use crate::check::{Check, Walked};
use crate::estimate::{Smoothed, Smoother, region};
use crate::fit::nominal::Nominal;
use crate::fit::run::Run;
use crate::fit::{Estimate, Fit};
use crate::linalg::PackedCovariance;
use crate::model::Model;
use crate::objective::{Cost, Noise};
use crate::record::Record;
use crate::score;
use crate::step::Stepper;
pub use batch::EXACT;
use checkpoint::{Checkpoint, Next, Resumed};
pub use prepare::initial_theta;
use prepare::{Signals, Walk, prepare, starting_at};
use recursion::Learned;
pub use starts::Attempt;

/// How far a fit has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub epoch: usize,
    pub epochs: usize,
    pub step: usize,
    pub steps: usize,
}

/// One pass over the records, in numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EpochReport {
    pub epoch: usize,
    /// The terms of the objective along the pass.
    pub cost: Cost,
    /// Mean of ν²/s: near 1 where the innovations are as large as the filter says.
    pub consistency: f64,
    /// ln p(y), where the solver computes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f64>,
    /// Mean nRMSE of the measured channels in a free run; what `keep_best` goes by.
    pub free_run: f64,
    /// λ of the last Newton step, where the solver takes such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
}

/// Watches a fit. `false` stops it, after the Newton step or the epoch that it is in; it then gives
/// what it has so far, marked as stopped, or [`Error::Stopped`] where that is nothing.
pub trait Observer: Send {
    /// The records have been looked at; nothing is learned yet.
    fn checked(&mut self, _check: &Check) {}
    /// A few hundred steps have passed.
    fn progress(&mut self, _progress: &Progress) -> bool {
        true
    }
    /// An epoch is over.
    fn epoch(&mut self, _report: &EpochReport) -> bool {
        true
    }
}

/// An observer that only lets things happen.
pub struct Silent;

impl Observer for Silent {}

/// Gauss–Newton steps of a smoothing pass.
const SMOOTHING: usize = 10;

/// What all solvers are given.
#[derive(Clone, Copy)]
struct Problem<'a> {
    model: &'a Model,
    records: &'a [Record],
    validate: &'a [Record],
    stepper: &'a Stepper<'a>,
    nominal: &'a Nominal,
    noise: &'a Noise,
}

/// Below this fraction of a channel's range noise counts as none, and batch does not ask a channel
/// to be fitted closer: the valley of the objective would be too narrow to walk along.
pub const RESOLUTION: f64 = 1e-4;

impl Problem<'_> {
    /// Whether any channel is noisy, not only rounded.
    fn noisy(&self) -> bool {
        let each = self.nominal.noise.iter().zip(&self.nominal.range);
        each.into_iter()
            .any(|(noise, range)| *noise > RESOLUTION * range)
    }

    /// The variance that a channel's noise counts as at the least.
    fn resolution(&self, channel: usize) -> f64 {
        (RESOLUTION * self.nominal.range[channel]).powi(2)
    }

    /// A record that θ was not learned from, smoothed with it; the deviations are left out.
    fn smoothed_with(&self, theta: &[f64], noise: &Noise, record: &Record) -> Smoothed {
        let noise = starting_at(self.stepper, record, &self.open_start(noise));
        let smoother = Smoother {
            stepper: self.stepper,
            record,
            theta,
            noise: &noise,
        };
        let (states, cost) = smoother.minimise(smoother.filtered(), SMOOTHING);
        Smoothed {
            deviations: vec![],
            states,
            cost,
        }
    }

    /// Mean nRMSE of the measured channels in free runs over the validation records; `None`
    /// without any.
    fn validation_error(&self, theta: &[f64], noise: &Noise) -> Option<f64> {
        let validation = Problem {
            records: self.validate,
            ..*self
        };
        let smoothed = self
            .validate
            .iter()
            .map(|r| self.smoothed_with(theta, noise, r));
        let smoothed: Vec<Smoothed> = smoothed.collect();
        (!smoothed.is_empty()).then(|| measured_error(&validation, theta, noise, &smoothed))
    }

    /// The noise under which a start is looked for: nothing is held against it but the data.
    fn open_start(&self, noise: &Noise) -> Noise {
        Noise {
            start: self.nominal.scale.iter().map(|s| s * s).collect(),
            ..noise.clone()
        }
    }
}

/// Records by what they serve for.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Learned from.
    pub train: &'a [Record],
    /// Never learned from: they choose between the stages of batch, and between starts.
    pub validate: &'a [Record],
}

/// Looks at records before anything is learned from them: what they say about each state, and
/// where they take the networks. A fit does the same first ([`Observer::checked`]).
pub fn check(model: &Model, records: &[Record]) -> Result<Check, Error> {
    let dt = usable(model, records, &[])?;
    let mut model = model.clone();
    let settings = Settings::new(Solver::Batch);
    let (_, first, signals, walk) = prepare(&mut model, records, &settings, dt);
    let signals = signals.as_ref();
    Ok(checked(&model, records, &first, signals, &walk, dt))
}

/// What every fit does first: the model with its networks scaled to records, the sizes of everything
/// as the known physics shows them, and the sample time.
pub fn scaled(model: &Model, records: &[Record]) -> Result<(Model, Nominal, f64), Error> {
    let dt = usable(model, records, &[])?;
    let mut model = model.clone();
    let settings = Settings::new(Solver::Batch);
    let (nominal, ..) = prepare(&mut model, records, &settings, dt);
    Ok((model, nominal, dt))
}

/// The check on what [`prepare`] found.
fn checked(
    model: &Model,
    records: &[Record],
    first: &[Smoothed],
    signals: Option<&Signals>,
    walk: &Walk,
    dt: f64,
) -> Check {
    let walking = signals.map_or(model, |s| &s.model);
    let noises = records.iter().map(|record| {
        let mut noise = walk.noise.clone();
        noise.show(record, walking.system.direct());
        noise
    });
    let sizes = walk.nominal.noise.iter().zip(&walk.nominal.range);
    let variance = sizes.map(|(noise, range)| noise.max(RESOLUTION * range).powi(2));
    let walked = Walked {
        variance: variance.collect(),
        model: walking,
        nominal: &walk.nominal,
        noises: noises.collect(),
        smoothed: signals.map_or(first, |s| &s.smoothed),
        states: first,
        dt,
    };
    crate::check::check(model, records, &walked)
}

/// Learns θ from records.
pub fn fit(
    model: &Model,
    records: &[Record],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let data = Data {
        train: records,
        validate: &[],
    };
    fit_validated(model, data, settings, observer)
}

/// The same, with records that guard against learning what only the training records have.
pub fn fit_validated(
    model: &Model,
    data: Data,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    learn(model, data, settings, &[], observer)
}

/// Goes on with a fit that was stopped, or does more passes, from what a run has kept.
///
/// The records must be those of the run; see [`Run::belongs_to`].
pub fn resume(
    run: &Run,
    data: Data,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let fail = |message: String| Err(Error::Setting(message));
    let before = &run.facts.settings;
    if settings.solver != before.solver {
        let (own, asked) = (before.solver.name(), settings.solver.name());
        return fail(format!(
            "this run was learned by {own}, not by {asked}: resume it with that"
        ));
    }
    let resumed = Resumed::of(run)?;
    let passes = |r: &Resumed| match r.checkpoint {
        Checkpoint::Stage(s) if s.next == Next::Refinement => true,
        at => at.passes() >= settings.epochs,
    };
    let more = settings.ensemble > before.ensemble;
    if !run.facts.stopped && !more && resumed.iter().all(passes) {
        return fail("this run is finished: there is nothing to go on with, unless with more --epochs, where it used up all of them, or a larger --ensemble".into());
    }
    learn(&run.model, data, settings, &resumed, observer)
}

fn learn(
    model: &Model,
    data: Data,
    settings: &Settings,
    resumed: &[Resumed],
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    settings.check(model)?;
    if settings.solver.is_rival() {
        let name = settings.solver.name();
        return Err(Error::Setting(format!(
            "{name} is not a solver of this library: the crate latens-rivals has it"
        )));
    }
    let dt = usable(model, data.train, data.validate)?;
    let mut model = model.clone();
    let (nominal, first, signals, walk) = prepare(&mut model, data.train, settings, dt);
    let model = model;
    observer.checked(&checked(
        &model,
        data.train,
        &first,
        signals.as_ref(),
        &walk,
        dt,
    ));
    let all = data.train.iter().chain(data.validate);
    let stepper = Stepper::over(&model, &model.system, dt, all);
    let noise = settings.noise(&model, &nominal, dt);
    let problem = Problem {
        model: &model,
        records: data.train,
        validate: data.validate,
        stepper: &stepper,
        nominal: &nominal,
        noise: &noise,
    };
    let kept = starts::run(&problem, settings, (first, signals), resumed, observer)?;
    let each = kept.learned.into_iter();
    let mut fits: Vec<Fit> = each
        .map(|own| fitted(&problem, data, settings, own))
        .collect();
    for fit in &mut fits {
        let own = kept.attempts.iter().filter(|a| a.seed == fit.seed);
        fit.attempts = own.cloned().collect();
    }
    let mut fit = match fits.len() {
        1 => fits.remove(0),
        _ => {
            let all: Vec<&Record> = data.train.iter().chain(data.validate).collect();
            Fit::ensemble(fits, &all)
        }
    };
    fit.attempts = kept.attempts;
    fit.stopped = kept.stopped;
    Ok(fit)
}

/// θ that another method learned.
#[derive(Debug, Clone)]
pub struct Adopted {
    /// The model, its networks scaled as θ means them, and the sizes of everything; see [`scaled`].
    pub model: Model,
    pub nominal: Nominal,
    pub theta: Vec<f64>,
    /// Its free run over each training record, from the start that the method finds.
    pub runs: Vec<Vec<f64>>,
    pub reports: Vec<EpochReport>,
    pub stopped: bool,
}

/// A fit from θ that another method learned: the states are smoothed with it, and the free runs are
/// the method's own. Its covariance is the prior's, because such a method says nothing of it.
pub fn adopt(adopted: Adopted, data: Data, settings: &Settings) -> Result<Fit, Error> {
    settings.check(&adopted.model)?;
    let dt = usable(&adopted.model, data.train, data.validate)?;
    let all = data.train.iter().chain(data.validate);
    let stepper = Stepper::over(&adopted.model, &adopted.model.system, dt, all);
    let noise = settings.noise(&adopted.model, &adopted.nominal, dt);
    let problem = Problem {
        model: &adopted.model,
        records: data.train,
        validate: data.validate,
        stepper: &stepper,
        nominal: &adopted.nominal,
        noise: &noise,
    };
    let theta = adopted.theta;
    let smooth = |record: &Record| {
        let noise = starting_at(&stepper, record, &problem.open_start(&noise));
        let smoother = Smoother {
            stepper: &stepper,
            record,
            theta: &theta,
            noise: &noise,
        };
        smoother.smooth(smoother.filtered(), SMOOTHING)
    };
    let (variance, precision) = (settings.parameter_variance, settings.precision());
    let learned = Learned {
        covariance: PackedCovariance::scaled_identity(theta.len(), variance, precision),
        smoothed: data.train.iter().map(smooth).collect(),
        theta: theta.clone(),
        noise: noise.clone(),
        free_run: adopted.reports.last().map_or(f64::NAN, |r| r.free_run),
        consistency: f64::NAN,
        repetition: 1.0,
        draws: vec![],
        evidence: None,
        checkpoint: Checkpoint::Epoch(adopted.reports.last().map_or(0, |r| r.epoch)),
        reports: adopted.reports,
        stopped: adopted.stopped,
    };
    let mut fit = fitted(&problem, data, settings, (settings.seed, learned));
    let trained = data.train.iter().zip(adopted.runs);
    for (estimate, (record, run)) in fit.estimates.iter_mut().zip(trained) {
        let parts = (estimate.smoothed.clone(), estimate.one_step.clone(), run);
        *estimate = Estimate::scored(&stepper, record, &theta, parts);
    }
    Ok(fit)
}

/// What was learned, with what it says about each record.
fn fitted(
    problem: &Problem,
    data: Data,
    settings: &Settings,
    (seed, learned): (u64, Learned),
) -> Fit {
    let (model, stepper) = (problem.model, problem.stepper);
    let regions = region::visited(&model.system, data.train, &learned.smoothed);
    let open = problem.open_start(&learned.noise);
    let trained = data.train.iter().zip(learned.smoothed);
    let validated = data.validate.iter();
    let validated = validated.map(|record| {
        let smoothed = problem.smoothed_with(&learned.theta, &learned.noise, record);
        let noise = starting_at(stepper, record, &open.times(learned.repetition));
        let smoother = Smoother {
            stepper,
            record,
            theta: &learned.theta,
            noise: &noise,
        };
        (record, smoothed.with_bands(&smoother, &learned.draws))
    });
    let estimates = trained
        .chain(validated)
        .map(|(record, smoothed)| {
            let noise = starting_at(stepper, record, &open);
            Estimate::new(stepper, record, &learned.theta, &noise, smoothed)
        })
        .collect();
    Fit {
        theta: learned.theta,
        covariance: learned.covariance,
        settings: settings.clone(),
        seed,
        attempts: vec![],
        reports: learned.reports,
        estimates,
        trained: data.train.len(),
        dt: stepper.dt(),
        noise: learned.noise,
        evidence: learned.evidence,
        draws: learned.draws,
        repetition: learned.repetition,
        regions,
        nominal: problem.nominal.clone(),
        model: model.clone(),
        checkpoint: learned.checkpoint,
        stopped: learned.stopped,
        members: vec![],
    }
}

/// The sample time of records that a fit can use.
fn usable(model: &Model, train: &[Record], validate: &[Record]) -> Result<f64, Error> {
    let all: Vec<&Record> = train.iter().chain(validate).collect();
    check_records(model, &all)?;
    if train.is_empty() {
        return Err(Error::Setting("at least one record is needed".into()));
    }
    sample_time(&all)
}

/// Records that do not fit the model.
fn check_records(model: &Model, records: &[&Record]) -> Result<(), Error> {
    let (d_u, d_y) = (model.inputs.len(), model.measurements.len());
    for record in records {
        let sizes = record.inputs.len() == record.len() * d_u
            && record.outputs.len() == record.len() * d_y
            && (record.d_u, record.d_y) == (d_u, d_y);
        if !sizes || record.inputs.iter().any(|u| !u.is_finite()) {
            return Err(Error::Setting(format!(
                "{} does not hold {d_u} input(s) and {d_y} measurement(s) for each of its {} samples",
                record.name,
                record.len()
            )));
        }
    }
    Ok(())
}

/// The sample time of a fit: the shortest of the records' own. The gaps of the others take several
/// steps of it.
fn sample_time(records: &[&Record]) -> Result<f64, Error> {
    let mut dt = f64::INFINITY;
    for record in records {
        if record.len() < 3 {
            return Err(Error::Setting(format!(
                "{} has {} sample(s); a fit needs more",
                record.name,
                record.len()
            )));
        }
        // of those that are the same but for rounding, the first
        let step = record.step();
        if dt.is_infinite() || step < dt * (1.0 - Record::STEP_TOLERANCE) {
            dt = step;
        }
    }
    Ok(dt)
}

/// Smooths every record with θ, each from its trajectory so far.
fn smooth_all(
    problem: &Problem,
    theta: &[f64],
    noise: &Noise,
    before: Vec<Smoothed>,
) -> Vec<Smoothed> {
    let stepper = problem.stepper;
    let each = problem.records.iter().zip(before).map(|(record, before)| {
        let noise = starting_at(stepper, record, noise);
        let smoother = Smoother {
            stepper,
            record,
            theta,
            noise: &noise,
        };
        let next = smoother.smooth(before.states.clone(), SMOOTHING);
        if next.states.iter().all(|x| x.is_finite()) {
            next
        } else {
            before
        }
    });
    each.collect()
}

/// Mean nRMSE of the measured channels in free runs from the best starts under exact physics.
fn measured_error(problem: &Problem, theta: &[f64], noise: &Noise, smoothed: &[Smoothed]) -> f64 {
    let (stepper, open) = (problem.stepper, problem.open_start(noise));
    let exact = |(record, s): (&Record, &Smoothed)| {
        let noise = starting_at(stepper, record, &open);
        score::exact_trajectory(stepper, record, theta, &noise, s)
    };
    let states: Vec<_> = problem.records.iter().zip(smoothed).map(exact).collect();
    free_run_error(problem, theta, &states)
}

/// Mean nRMSE of the measured channels in free runs from the starts of trajectories; NaN where
/// no channel can be scored.
fn free_run_error(problem: &Problem, theta: &[f64], states: &[Vec<f64>]) -> f64 {
    let (stepper, n) = (problem.stepper, problem.nominal.scale.len());
    let (mut sum, mut count) = (0.0, 0.0);
    for (record, states) in problem.records.iter().zip(states) {
        let run = score::free_run(stepper, record, theta, &states[..n]);
        let errors = score::channel_nrmse(stepper, record, theta, &run);
        for error in errors.into_iter().flatten() {
            sum += error;
            count += 1.0;
        }
    }
    sum / count
}
