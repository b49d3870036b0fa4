//! The recursions: filters that pass over the records sample by sample, again and again.
//!
//! [`sweep`] has what they share, [`alternating`] and [`joint`] the step of each. Here is where each
//! pass starts, what it leaves, and which one is kept.

pub mod alternating;
pub mod joint;
pub mod sweep;

use super::batch::one_segment;
use super::bytes::kept;
use super::checkpoint::{Checkpoint, Start};
use super::kept::{Course, fit_records};
use super::{Learned, Observer, PassReport, Problem, Solver, precision};
use crate::Error;
use crate::filter::Smoothed;
use crate::look::prior::{initial_theta, starting_at};
use crate::model::settings::{Level, Settings};
use crate::numerics::Trajectory;
use crate::numerics::linalg::PackedCovariance;
use crate::numerics::objective::{Cost, Noise, trajectory_cost};
use crate::record::Record;
use alternating::Form;
use sweep::{Pass, Segment};

/// States and θ in turn: the paper's Theorem 1, corrected.
pub struct Alternating;

/// The same with the θ equations as they stand in print.
pub struct AsPrinted;

/// States and θ together, with their cross-covariance.
pub struct Joint;

/// One pass of a recursion over segments.
type SweepAll = fn(&mut Pass, &[Segment]) -> Result<(), Error>;

/// The settings of the paper, absolute as they stand in print.
fn printed(solver: &dyn Solver) -> Settings {
    Settings {
        solver: solver.name().into(),
        passes: 20,
        known_noise: Level::Variance(1e-5),
        hidden_noise: Level::Variance(1e-5),
        measurement_noise: Level::Variance(1e-10),
        start_noise: Level::Variance(1e-2),
        parameter_variance: 1e2,
        parameter_drift: 1e-2,
        anneal: 1.0,
        parameter_noise: 1.0,
        count_state_uncertainty: false,
        scale_outputs: false,
        keep_best: false,
        ..Settings::default()
    }
}

impl Solver for Alternating {
    fn name(&self) -> &'static str {
        "alternating"
    }

    fn about(&self) -> &'static str {
        "states and θ in turn, sample by sample: the method of Ghanem et al. (AAAI 2025), corrected"
    }

    fn settings(&self) -> Settings {
        Settings::default()
    }

    fn printed_settings(&self) -> Option<Settings> {
        Some(printed(self))
    }

    fn keeps_bounds(&self) -> bool {
        true
    }

    fn learn(
        &self,
        problem: &Problem,
        start: Start,
        observer: &mut dyn Observer,
    ) -> Result<Learned, Error> {
        let advice = "lower ⟦parameter_variance⟧ or raise ⟦parameter_noise⟧";
        let all: SweepAll = |pass, segments| alternating::sweep(pass, segments, Form::Corrected);
        run(problem, start, all, advice, observer)
    }
}

impl Solver for AsPrinted {
    fn name(&self) -> &'static str {
        "as-printed"
    }

    fn about(&self) -> &'static str {
        "alternating as it stands in the paper"
    }

    fn settings(&self) -> Settings {
        printed(self)
    }

    fn printed_settings(&self) -> Option<Settings> {
        Some(printed(self))
    }

    fn keeps_bounds(&self) -> bool {
        true
    }

    fn learn(
        &self,
        problem: &Problem,
        start: Start,
        observer: &mut dyn Observer,
    ) -> Result<Learned, Error> {
        let all: SweepAll = |pass, segments| alternating::sweep(pass, segments, Form::AsPrinted);
        run(problem, start, all, LOWER_VARIANCE_ADVICE, observer)
    }
}

impl Solver for Joint {
    fn name(&self) -> &'static str {
        "joint"
    }

    fn about(&self) -> &'static str {
        "one filter on states and θ together, sample by sample"
    }

    fn settings(&self) -> Settings {
        Settings {
            solver: self.name().into(),
            known_noise: Level::Relative(1e-5),
            hidden_noise: Level::Relative(1e-2),
            parameter_drift: 0.0,
            anneal: 1.0,
            ..Settings::default()
        }
    }

    fn printed_settings(&self) -> Option<Settings> {
        Some(printed(self))
    }

    fn keeps_bounds(&self) -> bool {
        true
    }

    fn check(&self, settings: &Settings) -> Result<(), Error> {
        one_segment(self, settings)
    }

    fn learn(
        &self,
        problem: &Problem,
        start: Start,
        observer: &mut dyn Observer,
    ) -> Result<Learned, Error> {
        run(
            problem,
            start,
            joint::sweep,
            LOWER_VARIANCE_ADVICE,
            observer,
        )
    }
}

const LOWER_VARIANCE_ADVICE: &str = "lower ⟦parameter_variance⟧";

/// A pass that may be kept.
#[derive(Clone)]
struct Kept {
    free_run: f64,
    theta: Vec<f64>,
    covariance: PackedCovariance,
    number: usize,
}

/// Where the passes stand between two of them.
struct Between {
    theta: Vec<f64>,
    covariance: PackedCovariance,
    smoothed: Vec<Smoothed>,
    drift: f64,
    best: Option<Kept>,
    reports: Vec<PassReport>,
}

kept!(Kept {
    free_run,
    theta,
    covariance,
    number,
});
kept!(Between {
    theta,
    covariance,
    smoothed,
    drift,
    best,
    reports,
});

impl Between {
    /// Whether it has the sizes of a problem.
    fn fits(&self, problem: &Problem) -> bool {
        let parameters = problem.model.system.parameters();
        let fits = |theta: &[f64], covariance: &PackedCovariance| {
            theta.len() == parameters && covariance.dim() == parameters
        };
        let every_fits = |values: fn(&Smoothed) -> &Trajectory| {
            let all: Vec<Trajectory> = self.smoothed.iter().map(values).cloned().collect();
            fit_records(&all, problem)
        };
        let best = self.best.as_ref();
        fits(&self.theta, &self.covariance)
            && every_fits(|s| &s.states)
            && every_fits(|s| &s.deviations)
            && best.is_none_or(|best| fits(&best.theta, &best.covariance))
    }
}

/// Passes a recursion over the records, again and again.
fn run(
    problem: &Problem,
    start: Start,
    sweep_all: SweepAll,
    advice: &'static str,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let (settings, records, noise) = (problem.settings, problem.records, problem.noise);
    let mut smoothed = problem.prior.states.clone();
    let variances = problem.model.prior_variances(settings.parameter_variance);
    let precision = precision(settings);
    let course = problem.checkpoints.course(problem, &start);
    let (prior, mut theta, mut covariance, mut reports) = match start {
        Start::At(theta) | Start::Near(theta) => {
            let covariance = PackedCovariance::from_diagonal(&variances, precision);
            (theta.clone(), theta, covariance, vec![])
        }
        Start::From(r) => {
            let prior = initial_theta(problem.model, r.seed);
            (
                prior,
                r.theta.to_vec(),
                r.covariance.clone(),
                r.reports.clone(),
            )
        }
    };
    let mut done = reports.len();
    let mut drift = settings.parameter_drift * settings.anneal.powi(done as i32);
    let mut best = reports.last().map(|report: &PassReport| Kept {
        free_run: report.free_run,
        theta: theta.clone(),
        covariance: covariance.clone(),
        number: done,
    });
    let before = course.as_ref().and_then(Course::get);
    let as_many = |b: &Between| b.fits(problem) && b.reports.len() <= settings.passes;
    if let Some(before) = before.filter(as_many) {
        (theta, covariance, smoothed) = (before.theta, before.covariance, before.smoothed);
        (drift, best, reports) = (before.drift, before.best, before.reports);
        done = reports.len();
    }
    let mut stopped = false;
    for number in done + 1..=settings.passes {
        if number > 1 {
            smoothed = problem.smooth_all(&theta, noise, smoothed);
        }
        let segments = cut(records, &smoothed, noise, settings);
        let theta_before = theta.clone();
        let mut pass = Pass {
            model: problem.model,
            stepper: problem.stepper,
            settings,
            noise,
            scale: &problem.scales.scale,
            theta,
            covariance,
            drift,
            number,
            cost: start_cost(problem, &theta_before, &smoothed),
            consistency: (0.0, 0),
            advice,
            observer,
            stop: false,
        };
        sweep_all(&mut pass, &segments)?;
        let rough = settings.parameter_variance;
        let moved = pass
            .theta
            .iter()
            .zip(&prior)
            .zip(&variances)
            .map(|((a, b), v)| (a - b) * (a - b) * (rough / v));
        pass.cost.prior = 0.5 * moved.sum::<f64>() / rough;
        let (cost, consistency, stop) = (pass.cost, pass.consistency, pass.stop);
        theta = pass.theta;
        covariance = pass.covariance;
        drift *= settings.anneal;

        let free_run = if settings.keep_best || number == settings.passes {
            problem.measured_error(&theta, problem.noise, &smoothed)
        } else {
            f64::NAN
        };
        let report = PassReport {
            validation: None,
            pass: number,
            cost,
            consistency: consistency.0 / consistency.1.max(1) as f64,
            evidence: None,
            free_run,
            damping: None,
        };
        let better = |b: &Kept| free_run <= b.free_run || b.free_run.is_nan();
        if !settings.keep_best || best.as_ref().is_none_or(better) {
            best = Some(Kept {
                free_run,
                theta: theta.clone(),
                covariance: covariance.clone(),
                number,
            });
        }
        let go_on = observer.pass(&report) && !stop;
        reports.push(report);
        if let Some(course) = &course {
            course.put(&Between {
                theta: theta.clone(),
                covariance: covariance.clone(),
                smoothed: smoothed.clone(),
                drift,
                best: best.clone(),
                reports: reports.clone(),
            });
        }
        if !go_on {
            stopped = number < settings.passes;
            break;
        }
    }
    let mut kept = done;
    if let Some(best) = best {
        (theta, covariance, kept) = (best.theta, best.covariance, best.number);
    }
    let smoothed = problem.smooth_all(&theta, noise, smoothed);
    Ok(Learned {
        intervals: vec![],
        covariance,
        noise: noise.clone(),
        free_runs: None,
        contradicted: false,
        in_pieces: false,
        disturbed: None,
        free_run: problem.measured_error(&theta, problem.noise, &smoothed),
        theta,
        smoothed,
        consistency: reports.last().map_or(f64::NAN, |r| r.consistency),
        variance_inflation: 1.0,
        reports,
        // every pass counts the data once more
        draws: vec![],
        evidence: None,
        checkpoint: Checkpoint::Pass(kept),
        stopped,
    })
}

/// The terms of the first samples, which no step leads to: the starts and their measurements.
fn start_cost(problem: &Problem, theta: &[f64], smoothed: &[Smoothed]) -> Cost {
    let (stepper, n) = (problem.stepper, problem.noise.process.len());
    let mut cost = Cost::default();
    for (record, s) in problem.records.iter().zip(smoothed) {
        let noise = starting_at(stepper, record, problem.noise);
        let start = Trajectory::new(s.states.row(0).to_vec(), n);
        cost += trajectory_cost(stepper, record, theta, &start, &noise);
    }
    cost
}

/// Cuts the records into as many segments as are asked for, each at a smoothed state.
fn cut<'r>(
    records: &'r [Record],
    smoothed: &[Smoothed],
    noise: &Noise,
    settings: &Settings,
) -> Vec<Segment<'r>> {
    let mut segments = Vec::new();
    for (record, s) in records.iter().zip(smoothed) {
        // samples at the joints belong to both neighbours: the step between them is in one
        let steps = record.len() - 1;
        let count = settings.segments.min(steps);
        for b in 0..count {
            let (from, to) = (b * steps / count, (b + 1) * steps / count);
            let start_variance = match settings.start_noise {
                Level::Variance(_) => noise.start.clone(),
                Level::Relative(_) => s.deviations.row(from).iter().map(|d| d.powi(2)).collect(),
            };
            segments.push(Segment {
                record,
                samples: from..to + 1,
                start: s.states.row(from).to_vec(),
                start_variance,
            });
        }
    }
    segments
}
