//! Whole-record Newton: all states of all records and θ at once.
//!
//! The paper holds this unfeasible; [`super::newton`] has the steps. Continuation in Q_x makes
//! them robust: with loose hidden rows the smoother finds the hidden trajectory without simulating
//! anything; every stage divides their standard deviation by ten, or by √10 where that would be
//! too bold, until the physics is all but exact and the same objective is the error of a free run. Between stages the prior of the
//! weights follows the evidence ([`super::evidence`]); with noise the evidence also says which
//! stage to keep.

use super::damping::Damping;
use super::newton::{Counter, Iterate, Limits, Newton};
use super::prepare::Signals;
use super::recursion::Learned;
use super::settings::{Level, Settings};
use super::{EpochReport, Observer, Problem, free_run_error, measured_error};
use crate::Error;
use crate::estimate::{Smoothed, bands};
use crate::objective::Noise;

/// Noise of known rows relative to the hidden rows'.
const KNOWN: f64 = 1e-3;
/// Decades by which the process noise is tightened at the most: below, it is rounding.
const TIGHTEST: f64 = 12.0;
/// Decades of a stage: of those where the objective's first step ends above [`JUMP`] times where
/// the stage before ended, the second. Where the known equations have kinks or folds, a whole
/// decade leaves the states where no step helps.
const DECADES: [f64; 2] = [1.0, 0.5];
const JUMP: f64 = 5.0;
/// On the way, the next stage does better with the time.
const ON_THE_WAY: Limits = Limits {
    tolerance: 0.03,
    patience: 1,
    iterations: 40,
    hopeless: f64::INFINITY,
};
/// With noise the evidence chooses the stage: it has to be near the minimum.
const NOISY_WAY: Limits = Limits {
    tolerance: 0.01,
    patience: 2,
    ..ON_THE_WAY
};
/// So many stages in a row that the data like less than the best end the search.
const WORSE: usize = 2;
/// With noise the evidence and the bands stand on the minimum itself; without, the last stages are
/// there already.
const AT_THE_END: Limits = Limits {
    tolerance: 1e-3,
    patience: 3,
    ..ON_THE_WAY
};
const NOISE_FREE_END: Limits = Limits {
    tolerance: 3e-3,
    iterations: 4,
    ..ON_THE_WAY
};
/// The physics is exact enough when the defects are less than this fraction of the misfit.
const EXACT: f64 = 1e-3;
/// A noise-free fit is lost when a stage makes its free run this much worse.
const LOST: f64 = 30.0;

/// The best stage so far.
struct Best {
    merit: f64,
    iterate: Iterate,
    noise: Noise,
    prior: Vec<f64>,
    determined: f64,
}

/// Learns by whole-record Newton, from what the known physics says alone.
pub(super) fn run(
    problem: &Problem,
    settings: &Settings,
    (smoothed, signals): (Vec<Smoothed>, Option<&Signals>),
    theta: Vec<f64>,
    observer: &mut dyn Observer,
) -> Result<Learned, Error> {
    let (best, reports, mut damping) =
        tighten(problem, settings, (&smoothed, signals), theta, observer)?;
    let (mut iterate, mut noise, prior) = (best.iterate, best.noise, best.prior);
    let unknown = |c: usize| {
        settings.estimate_noise && !settings.noise_given(&problem.model.measurements[c].name)
    };
    let unknown: Vec<usize> = (0..noise.measurement.len())
        .filter(|&c| unknown(c))
        .collect();
    // with noise, once more with R_y as it was found
    let again = !unknown.is_empty() && problem.noisy();
    let limits = match problem.noisy() {
        true => &AT_THE_END,
        false => &NOISE_FREE_END,
    };
    for round in 0..=usize::from(again) {
        let newton = Newton::new(problem, &prior, &noise);
        let mut counter = Counter {
            stage: reports.len(),
            stages: reports.len() + 1,
            observer,
        };
        newton.minimise(&mut iterate, &mut damping, limits, &mut counter)?;
        if again && round == 0 {
            let found = newton.noise_found(&iterate, best.determined);
            for &c in &unknown {
                noise.measurement[c] = found[c].max(problem.resolution(c));
            }
        }
    }
    let newton = Newton::new(problem, &prior, &noise);
    iterate.cost = newton.cost(&iterate.theta, &iterate.states);
    let (posterior, found, consistency) = newton.evidence(&iterate, 1);
    // misfits that hang together, as a network's that cannot be better, are no independent news;
    // but whoever states the noise is believed
    let repetition = match unknown.is_empty() {
        true => 1.0,
        false => newton.repetition(&iterate),
    };
    let posterior = posterior.tempered(repetition);
    let draws = posterior.draws(bands::DRAWS);
    // all variances times a factor leave the gains and multiply the states' own covariance
    let wider = noise.times(repetition);
    let newton = Newton::new(problem, &prior, &wider);
    let banded = |(i, s): (usize, Smoothed)| {
        let states = iterate.states[i].clone();
        let smoother = newton.smoother(&iterate.theta, i);
        Smoothed { states, ..s }.with_bands(&smoother, &draws)
    };
    let smoothed: Vec<Smoothed> = smoothed.into_iter().enumerate().map(banded).collect();
    Ok(Learned {
        covariance: posterior.covariance(settings.precision()),
        // a loose stage's start is not yet that of a simulation
        free_run: match problem.noisy() {
            true => measured_error(problem, &iterate.theta, &noise, &smoothed),
            false => free_run_error(problem, &iterate.theta, &iterate.states),
        },
        repetition,
        smoothed,
        noise,
        reports,
        consistency,
        theta: iterate.theta,
        draws,
        evidence: Some(found),
    })
}

/// Stage after stage, each with tighter physics, until it is exact, or until the data do not
/// like it any more.
fn tighten(
    problem: &Problem,
    settings: &Settings,
    (smoothed, signals): (&[Smoothed], Option<&Signals>),
    theta: Vec<f64>,
    observer: &mut dyn Observer,
) -> Result<(Best, Vec<EpochReport>, Damping), Error> {
    let mut prior = vec![settings.parameter_variance; theta.len()];
    let first = stage_noise(problem, settings, 0.0);
    let mut iterate = Newton::new(problem, &prior, &first).start(signals, smoothed, theta);
    let (mut reports, mut damping) = (Vec::new(), Damping::default());
    let mut best: Option<Best> = None;
    let (mut tightness, mut worse) = (0.0, 0);
    for stage in 0..settings.epochs {
        let mut counter = Counter {
            stage,
            stages: settings.epochs,
            observer,
        };
        let start = (iterate.clone(), damping.clone());
        for decades in DECADES {
            (iterate, damping) = start.clone();
            let limits = Limits {
                hopeless: match stage > 0 && decades == DECADES[0] {
                    true => JUMP * iterate.cost.total(),
                    false => f64::INFINITY,
                },
                ..if problem.noisy() {
                    NOISY_WAY
                } else {
                    ON_THE_WAY
                }
            };
            let tighter = if stage > 0 { tightness + decades } else { 0.0 };
            let noise = stage_noise(problem, settings, tighter);
            let newton = Newton::new(problem, &prior, &noise);
            if newton.minimise(&mut iterate, &mut damping, &limits, &mut counter)? {
                tightness = tighter;
                break;
            }
        }
        let noise = stage_noise(problem, settings, tightness);
        let newton = Newton::new(problem, &prior, &noise);
        let (posterior, found, consistency) = newton.evidence(&iterate, newton.thinning());
        let report = EpochReport {
            epoch: stage + 1,
            cost: iterate.cost,
            consistency,
            evidence: Some(found.log),
            free_run: free_run_error(problem, &iterate.theta, &iterate.states),
        };
        let go_on = observer.epoch(&report);
        // noise-free, the evidence says little: R_y is a resolution then, not a noise
        let merit = match problem.validation_error(&iterate.theta, &noise) {
            Some(error) => -error,
            None if problem.noisy() => found.log,
            None => -report.free_run,
        };
        reports.push(report);
        let merit = if merit.is_nan() {
            f64::NEG_INFINITY
        } else {
            merit
        };
        let before = best.as_ref().map_or(f64::NEG_INFINITY, |b| b.merit);
        if settings.estimate_prior {
            prior = posterior.next_prior(problem.model, &iterate.theta);
        }
        if merit >= before {
            best = Some(Best {
                merit,
                iterate: iterate.clone(),
                noise,
                prior: prior.clone(),
                determined: found.determined,
            });
        }
        let exact = stage > 1 && iterate.cost.physics < EXACT * iterate.cost.data;
        worse = if merit < before { worse + 1 } else { 0 };
        let over = match problem.noisy() {
            true => worse == WORSE,
            false => merit < LOST * before,
        };
        let fixed = matches!(settings.hidden, Level::Variance(_));
        if !go_on || exact || over || fixed {
            break;
        }
    }
    Ok((best.expect("there is a first stage"), reports, damping))
}

/// The noise after some decades.
fn stage_noise(problem: &Problem, settings: &Settings, tightness: f64) -> Noise {
    let staged = match settings.hidden {
        Level::Relative(first) => {
            let level = first * 10f64.powf(-tightness.min(TIGHTEST));
            Settings {
                hidden: Level::Relative(level),
                known: match settings.known {
                    Level::Relative(_) => Level::Relative(level * KNOWN),
                    given => given,
                },
                ..settings.clone()
            }
        }
        Level::Variance(_) => settings.clone(),
    };
    let mut noise = staged.noise(problem.model, problem.nominal, problem.stepper.dt());
    for (c, channel) in problem.model.measurements.iter().enumerate() {
        if !settings.noise_given(&channel.name) {
            let r = &mut noise.measurement[c];
            *r = r.max(problem.resolution(c));
        }
    }
    noise
}
