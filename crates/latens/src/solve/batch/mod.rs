//! Whole-record Newton: all states of all records and θ at once.
//!
//! The paper holds this unfeasible; [`newton`] has the steps. Continuation in Q_x makes
//! them robust: with loose hidden rows the smoother finds the hidden trajectory without simulating
//! anything; every stage divides their standard deviation by ten, or by √10 where that would be
//! too bold, until the physics is all but exact and the same objective is the error of a free run.
//! Between stages the prior of the weights follows the evidence ([`evidence`]).
//!
//! θ is that of the stage whose free run is best. Measured systems never obey their model exactly:
//! then misfits are correlated over samples and say the same again and again, and all variances are
//! inflated until they count for what they are worth ([`Newton::variance_inflation`]), or no prior
//! would count. For the states of such a system the evidence says which stage's noise to take.

pub mod damping;
pub mod evidence;
mod newton;
mod regress;

use super::checkpoint::{Checkpoint, Next, Stage, Start};
use super::{Learned, Observer, PassReport, Problem, Solver, precision};
use crate::Error;
use crate::filter::{Smoothed, bands};
use crate::look;
use crate::look::prior::Walking;
use crate::model::settings::{Level, Settings};
use crate::numerics::objective::Noise;
use damping::Damping;
use newton::{Counter, End, Iterate, Limits, Newton};

/// Whole-record Newton.
pub struct Batch;

impl Solver for Batch {
    fn name(&self) -> &'static str {
        "batch"
    }

    fn about(&self) -> &'static str {
        "all states and θ at once by Newton's method, with ever tighter physics; the one for recorded data"
    }

    fn settings(&self) -> Settings {
        Settings {
            solver: self.name().into(),
            passes: 18,
            estimate_noise: true,
            estimate_prior: true,
            parameter_drift: 0.0,
            ..Settings::default()
        }
    }

    fn pass(&self) -> &'static str {
        "stage"
    }

    fn converges(&self) -> bool {
        true
    }

    fn is_parallel(&self) -> bool {
        true
    }

    fn tries(&self) -> u64 {
        3
    }

    fn walking(&self) -> Walking {
        Walking::Outputs
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
        run(problem, start, observer)
    }
}

/// Refuses segments, for a solver that takes each record whole.
pub(super) fn one_segment(solver: &dyn Solver, settings: &Settings) -> Result<(), Error> {
    match settings.segments {
        1 => Ok(()),
        _ => Err(Error::Setting(format!(
            "{} takes each record whole; use ⟦segments⟧ with alternating",
            solver.name()
        ))),
    }
}

/// Noise of known rows relative to the hidden rows'.
const KNOWN_ROW_FACTOR: f64 = 1e-3;
/// Decades by which the process noise is tightened at the most: below, it is rounding.
const MOST_DECADES: f64 = 12.0;
/// Decades of a stage: of those where the objective's first step ends above [`BOLD_STAGE_FACTOR`] times where
/// the stage before ended, the second. Where the known equations have kinks or folds, a whole
/// decade leaves the states where no step helps.
const DECADES: [f64; 2] = [1.0, 0.5];
const BOLD_STAGE_FACTOR: f64 = 5.0;
/// On the way, the next stage does better with the time.
const ON_THE_WAY: Limits = Limits {
    tolerance: 0.03,
    patience: 1,
    iterations: 40,
    hopeless: f64::INFINITY,
};
/// With noise the evidence chooses the noise of the states: a stage has to be near its minimum.
const NOISY_WAY: Limits = Limits {
    tolerance: 0.01,
    patience: 2,
    ..ON_THE_WAY
};
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
pub const EXACT_DEFECT_RATIO: f64 = 1e-3;
/// Where the evidence may find the prior of the weights, it begins so many times wider than that
/// of the constants: tighter, a network of one argument settles where it cannot bend.
const FIRST_PRIOR_FACTOR: f64 = 10.0;
/// Without noise R_y is a resolution, and a prior that competes with it as with noise leaves the
/// weights short by what their bands do not show: at the end it is so many times wider.
const LAST_PRIOR_FACTOR: f64 = 100.0;
/// Rounds at the end in which noise, prior and θ settle.
const ROUNDS: usize = 4;
/// A fit is lost when a stage makes its free run this much worse.
const LOST_FREE_RUN_FACTOR: f64 = 30.0;

/// The best stage so far.
struct Best {
    at: Stage,
    iterate: Iterate,
}

/// What the stages came to.
struct Tightened {
    best: Best,
    reports: Vec<PassReport>,
    /// By the observer.
    stopped: bool,
}

/// What the data are held against at the end.
struct Settled {
    noise: Noise,
    /// P_θ0.
    prior: Vec<f64>,
    /// By how much variances are inflated.
    variance_inflation: f64,
}

/// Learns by whole-record Newton, from what the known physics says alone, or from where an earlier
/// fit was.
fn run(problem: &Problem, start: Start, observer: &mut dyn Observer) -> Result<Learned, Error> {
    let settings = problem.settings;
    let Tightened {
        best: Best {
            mut at,
            mut iterate,
        },
        reports,
        mut stopped,
    } = tighten(problem, start, observer)?;
    let stages = reports.len();
    let Settled {
        mut noise,
        prior,
        mut variance_inflation,
    } = if stopped { Settled {
        noise: stage_noise(problem, settings, at.tightness),
        prior: at.prior.clone(),
        variance_inflation: at.variance_inflation,
    } } else {
        let (settled, end) = settle(problem, &mut at, &mut iterate, stages, observer)?;
        stopped = matches!(end, End::Stopped(_));
        settled
    };
    at.variance_inflation = variance_inflation;
    // all variances times a factor leave the gains and multiply the states' own covariance
    let inflated = noise.times(variance_inflation);
    let newton = Newton::new(problem, &prior, &inflated);
    iterate.cost = newton.cost(&iterate.theta, &iterate.states);
    let (mut posterior, mut found, mut consistency) = newton.evidence(&iterate, 1);
    // under all but exact physics a few directions are so well determined that the others drown in
    // their rounding, and would count as open: a stage before says less of all, but says it
    if let Some((looser, determined)) = at.informative
        && !problem.noisy()
        && determined > found.determined
    {
        let noise = stage_noise(problem, settings, looser).times(variance_inflation);
        let informed = Newton::new(problem, &prior, &noise).evidence(&iterate, 1);
        posterior = informed.0;
        (found.determined, found.parts) = (informed.1.determined, informed.1.parts);
    }
    let draws = posterior.draws(bands::DRAWS);
    let simulated = problem.free_run_error(&iterate.theta, &iterate.states);
    // θ is that of exact physics; where the data contradict it, states follow the data as far as
    // the evidence says
    let contradicted = variance_inflation > 1.0;
    if contradicted {
        let likely = at.likely.map_or(at.tightness, |(tightness, _)| tightness);
        noise = stage_noise(problem, settings, likely);
        let newton = Newton::new(problem, &prior, &noise);
        iterate.states = newton.smoothed(&iterate.theta, iterate.states);
        consistency = newton.evidence(&iterate, newton.thinning()).2;
        variance_inflation = newton.variance_inflation(&iterate);
    }
    let inflated = noise.times(variance_inflation);
    let newton = Newton::new(problem, &prior, &inflated);
    let banded = |(i, s): (usize, Smoothed)| {
        let states = iterate.states[i].clone();
        let smoother = newton.smoother(&iterate.theta, i);
        Smoothed { states, ..s }.with_bands(&smoother, &draws)
    };
    let smoothed = problem.prior.states.iter().cloned().enumerate();
    let smoothed: Vec<Smoothed> = smoothed.map(banded).collect();
    Ok(Learned {
        covariance: posterior.covariance(precision(settings)),
        // a loose stage's start is not yet that of a simulation
        free_run: if problem.noisy() && !contradicted {
problem.measured_error(&iterate.theta, &noise, &smoothed)
} else {
simulated
},
        free_runs: None,
        variance_inflation,
        smoothed,
        noise,
        reports,
        consistency,
        theta: iterate.theta,
        draws,
        evidence: Some(found),
        checkpoint: Checkpoint::Stage(at),
        stopped,
    })
}

/// The last steps, under the noise and the prior that the kept stage asks for: R_y as it is found,
/// and misfits that are correlated, as those of a model that cannot be better, counted for the news
/// that they are; but noise that somebody states is taken as stated.
fn settle(
    problem: &Problem,
    at: &mut Stage,
    iterate: &mut Iterate,
    stages: usize,
    observer: &mut dyn Observer,
) -> Result<(Settled, End), Error> {
    let settings = problem.settings;
    let mut noise = stage_noise(problem, settings, at.tightness);
    let mut prior = at.prior.clone();
    if settings.estimate_prior && !problem.noisy() {
        widen(problem, &mut prior, LAST_PRIOR_FACTOR);
    }
    let unknown = |c: usize| {
        settings.estimate_noise && !settings.noise_given(&problem.model.measurements[c].name)
    };
    let unknown: Vec<usize> = (0..noise.measurement.len())
        .filter(|&c| unknown(c))
        .collect();
    let mut variance_inflation = at.variance_inflation;
    let mut end = End::Hopeless;
    for round in 0..ROUNDS {
        let inflated = noise.times(variance_inflation);
        let newton = Newton::new(problem, &prior, &inflated);
        let mut counter = Counter {
            stage: stages,
            stages: stages + 1,
            observer,
        };
        at.damping.restart();
        let limits = if problem.noisy() || variance_inflation > 1.0 {
&AT_THE_END
} else {
&NOISE_FREE_END
};
        end = newton.minimise(iterate, &mut at.damping, limits, &mut counter)?;
        if unknown.is_empty() || matches!(end, End::Stopped(_)) {
            break;
        }
        let own = Newton::new(problem, &prior, &noise);
        let found = own.noise_found(iterate, at.determined);
        let mut white = noise.clone();
        for &c in &unknown {
            white.measurement[c] = found[c].max(problem.resolution(c));
        }
        if Newton::new(problem, &prior, &white).variance_inflation(iterate) == 1.0 {
            variance_inflation = 1.0;
            if !problem.noisy() || round > 0 {
                break;
            }
            noise = white;
            continue;
        }
        variance_inflation = own.variance_inflation(iterate);
        if settings.estimate_prior {
            let inflated = noise.times(variance_inflation);
            let newton = Newton::new(problem, &prior, &inflated);
            let (posterior, ..) = newton.evidence(iterate, newton.thinning());
            prior = posterior.next_prior(problem.model, &iterate.theta);
        }
    }
    let settled = Settled {
        noise,
        prior,
        variance_inflation,
    };
    Ok((settled, end))
}

/// Stage after stage, each with tighter physics, until it is exact, or until the data contradict it.
fn tighten(
    problem: &Problem,
    start: Start,
    observer: &mut dyn Observer,
) -> Result<Tightened, Error> {
    let settings = problem.settings;
    let (mut iterate, mut best, mut reports) = begin(problem, start);
    let first = best.as_ref().map_or_else(
        || Stage {
            stages: 0,
            next: Next::Stage,
            tightness: 0.0,
            merit: None,
            determined: 0.0,
            variance_inflation: 1.0,
            likely: None,
            informative: None,
            prior: first_prior(problem, settings),
            damping: Damping::default(),
        },
        |best: &Best| best.at.clone(),
    );
    let (mut prior, mut damping) = (first.prior, first.damping);
    let (mut tightness, mut variance_inflation) = (first.tightness, first.variance_inflation);
    let (mut likely, mut informative) = (first.likely, first.informative);
    let mut stopped = false;
    let stages = match first.next {
        Next::Refinement => 0..0,
        _ => first.stages..settings.passes,
    };
    for stage in stages {
        let mut counter = Counter {
            stage,
            stages: settings.passes,
            observer,
        };
        let rest = stage == first.stages && first.next == Next::RestOfStage;
        let mut end = End::Hopeless;
        let before = (iterate.clone(), damping.clone());
        for decades in DECADES {
            (iterate, damping) = before.clone();
            damping.restart();
            let fresh = stage > 0 && !rest;
            let limits = Limits {
                hopeless: if fresh && decades == DECADES[0] {
BOLD_STAGE_FACTOR * iterate.cost.total()
} else {
f64::INFINITY
},
                ..if problem.noisy() {
                    NOISY_WAY
                } else {
                    ON_THE_WAY
                }
            };
            let tighter = if fresh {
                tightness + decades
            } else {
                tightness
            };
            let noise = stage_noise(problem, settings, tighter).times(variance_inflation);
            let newton = Newton::new(problem, &prior, &noise);
            end = newton.minimise(&mut iterate, &mut damping, &limits, &mut counter)?;
            if end != End::Hopeless {
                tightness = tighter;
                break;
            }
        }
        stopped = matches!(end, End::Stopped(_));
        // a stage that has not begun is none, and the first is no result before it is done
        if end == End::Stopped(0) || (stopped && best.is_none()) {
            break;
        }
        let noise = stage_noise(problem, settings, tightness);
        let newton = Newton::new(problem, &prior, &noise);
        let (posterior, found, consistency) = newton.evidence(&iterate, newton.thinning());
        if likely.is_none_or(|(_, evidence)| found.log > evidence) {
            likely = Some((tightness, found.log));
        }
        if informative.is_none_or(|(_, determined)| found.determined > determined) {
            informative = Some((tightness, found.determined));
        }
        if settings.estimate_noise {
            variance_inflation = newton.variance_inflation(&iterate);
        }
        let posterior = posterior.inflated(variance_inflation);
        let free_run = problem.free_run_error(&iterate.theta, &iterate.states);
        let merit = match problem.validation_error(&iterate.theta, &noise) {
            Some(error) => -error,
            None => -free_run,
        };
        let merit = (!merit.is_nan()).then_some(merit);
        let known = best.as_ref().map_or(f64::NEG_INFINITY, |b| b.at.merit());
        if settings.estimate_prior && !stopped {
            prior = posterior.next_prior(problem.model, &iterate.theta);
        }
        let at = Stage {
            stages: stage + usize::from(!stopped),
            next: if stopped {
Next::RestOfStage
} else {
Next::Stage
},
            tightness,
            merit,
            determined: found.determined,
            variance_inflation,
            likely,
            informative,
            prior: prior.clone(),
            damping: damping.clone(),
        };
        let merit = at.merit();
        if merit >= known {
            best = Some(Best {
                at,
                iterate: iterate.clone(),
            });
        }
        if stopped {
            break;
        }
        let report = PassReport {
            pass: stage + 1,
            cost: iterate.cost,
            consistency,
            evidence: Some(found.log),
            free_run,
            damping: Some(damping.value),
        };
        stopped = !observer.pass(&report);
        reports.push(report);
        let exact = stage > 1 && iterate.cost.physics < EXACT_DEFECT_RATIO * iterate.cost.data;
        let lost = merit < LOST_FREE_RUN_FACTOR * known;
        let fixed = matches!(settings.hidden_noise, Level::Variance(_));
        if let Some(best) = &mut best
            && (exact || lost || fixed)
        {
            best.at.next = Next::Refinement;
            break;
        }
        if stopped {
            break;
        }
    }
    let mut best = best.ok_or(Error::Stopped)?;
    best.at.likely = likely;
    best.at.informative = informative;
    Ok(Tightened {
        best,
        reports,
        stopped,
    })
}

/// Where the stages begin: at random weights, or at what an earlier fit has kept.
fn begin(problem: &Problem, start: Start) -> (Iterate, Option<Best>, Vec<PassReport>) {
    let (settings, smoothed) = (problem.settings, problem.prior.states.as_slice());
    let noise = stage_noise(problem, settings, 0.0);
    match start {
        Start::At(theta) => {
            let prior = first_prior(problem, settings);
            let newton = Newton::new(problem, &prior, &noise);
            (newton.start(theta), None, vec![])
        }
        Start::From(resumed) => {
            let Checkpoint::Stage(at) = resumed.checkpoint else {
                unreachable!("a fit is resumed by its own solver");
            };
            let theta = resumed.theta.to_vec();
            let mut newton = Newton::new(problem, &at.prior, &noise);
            let mut states = newton.starts(&theta, smoothed);
            // the way the stages went: straight to tight physics, a trajectory may be lost
            let mut tightness: f64 = 0.0;
            while tightness < at.tightness {
                tightness = (tightness + DECADES[0]).min(at.tightness);
                let noise = stage_noise(problem, settings, tightness);
                newton = Newton::new(problem, &at.prior, &noise);
                states = newton.smoothed(&theta, states);
            }
            let iterate = Iterate {
                cost: newton.cost(&theta, &states),
                theta,
                states,
            };
            let best = Best {
                at: at.clone(),
                iterate: iterate.clone(),
            };
            (iterate, Some(best), resumed.reports.clone())
        }
    }
}

/// P_θ0 before the data have said anything.
fn first_prior(problem: &Problem, settings: &Settings) -> Vec<f64> {
    let mut prior = vec![settings.parameter_variance; problem.model.system.parameters()];
    if settings.estimate_prior {
        widen(problem, &mut prior, FIRST_PRIOR_FACTOR);
    }
    prior
}

/// A wider prior of the weights; that of a constant is what the model file says.
fn widen(problem: &Problem, prior: &mut [f64], factor: f64) {
    for range in problem.model.system.weight_ranges() {
        prior[range].iter_mut().for_each(|p| *p *= factor);
    }
}

/// The noise after some decades.
fn stage_noise(problem: &Problem, settings: &Settings, tightness: f64) -> Noise {
    let staged = match settings.hidden_noise {
        Level::Relative(first) => {
            let level = first * 10f64.powf(-tightness.min(MOST_DECADES));
            Settings {
                hidden_noise: Level::Relative(level),
                known_noise: match settings.known_noise {
                    Level::Relative(_) => Level::Relative(level * KNOWN_ROW_FACTOR),
                    given => given,
                },
                ..settings.clone()
            }
        }
        Level::Variance(_) => settings.clone(),
    };
    let mut noise = look::noise(&staged, problem.model, problem.scales, problem.stepper.dt());
    for (c, channel) in problem.model.measurements.iter().enumerate() {
        if !settings.noise_given(&channel.name) {
            let r = &mut noise.measurement[c];
            *r = r.max(problem.resolution(c));
        }
    }
    noise
}
