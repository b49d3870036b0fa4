//! The stages of batch: each with tighter physics, from where the one before ended.

use super::damping::Damping;
use super::evidence::{Laplace, Sharing, terms};
use super::newton::{Counter, End, Iterate, Limits, Newton};
use super::place::Placed;
use crate::Error;
use crate::look;
use crate::model::settings::{Level, Settings};
use crate::numerics::Trajectory;
use crate::numerics::objective::{Cost, Noise};
use crate::record::Record;
use crate::solve::bytes::kept;
use crate::solve::checkpoint::{Checkpoint, Next, Resumed, Stage};
use crate::solve::kept::{Course, fit_records};
use crate::solve::{Observer, PassReport, Problem};

/// Noise of known rows relative to the hidden rows'.
const KNOWN_ROW_FACTOR: f64 = 1e-3;
/// Decades by which stages that begin tight are tightened at first: a simulation, all but for
/// rounding.
const FIRST_TIGHT_DECADES: f64 = 4.0;
/// Decades below which physics is loose: trajectories are not yet simulations.
const LOOSE_DECADES: f64 = 1.0;
/// Misfits are held to contradict the model on the way where they repeat themselves so many times:
/// there it may yet become better.
const CONTRADICTED_INFLATION: f64 = 2.0;
/// Decades by which the process noise is tightened at the most: below, it is rounding.
const MOST_TIGHT_DECADES: f64 = 12.0;
/// Decades of a stage: of those where the objective's first step ends above [`BOLD_STAGE_FACTOR`] times where
/// the stage before ended, the second. Where the known equations have kinks or folds, a whole
/// decade leaves the states where no step helps.
const STAGE_DECADES: [f64; 2] = [1.0, 0.5];
const BOLD_STAGE_FACTOR: f64 = 5.0;
/// On the way, the next stage does better with the time.
pub(super) const STAGE_LIMITS: Limits = Limits {
    tolerance: 0.03,
    patience: 1,
    iterations: 40,
    hopeless: f64::INFINITY,
};
/// With noise the evidence chooses the noise of the states: a stage has to be near its minimum.
pub(super) const NOISY_STAGE_LIMITS: Limits = Limits {
    tolerance: 0.01,
    patience: 2,
    ..STAGE_LIMITS
};
/// Without noise the physics is exact enough when the defects are less than this fraction of the
/// misfit.
pub const EXACT_DEFECT_RATIO: f64 = 1e-3;
/// With noise it is when the defects are worth less than this: a parameter is worth half a unit.
const EXACT_DEFECT_COST: f64 = 0.1;
/// What is left over is noise, however small, where it is worth this much of a reading: noise of the
/// size that a channel counts as having is worth half a unit.
const NOISE_LEFT_COST: f64 = 0.05;
/// With noise free runs closer to each other than this part are equally good, and the tighter of
/// two stages is kept.
const EQUAL_FREE_RUN_PART: f64 = 0.02;
/// With noise the prior of each layer begins at this variance, over the number of terms that its
/// weights are summed with.
const FIRST_LAYER_VARIANCE: f64 = 10.0;
/// Where the evidence may find the prior of the weights, it begins so many times wider than that
/// of the constants: tighter, a network of one argument settles where it cannot bend.
const FIRST_PRIOR_FACTOR: f64 = 10.0;
/// A fit is lost when a stage makes its free run this much worse.
const LOST_FREE_RUN_FACTOR: f64 = 30.0;

/// The best stage so far.
#[derive(Clone)]
pub(super) struct Best {
    pub at: Stage,
    pub iterate: Iterate,
}

/// What the stages came to.
pub(super) struct Tightened {
    pub best: Best,
    /// Those of the ways before too.
    pub reports: Vec<PassReport>,
    /// By the observer.
    pub stopped: bool,
}

/// Where the stages stand between two of them.
struct Between {
    /// Stages that are done, those before included.
    stages: usize,
    /// Whether no other follows.
    over: bool,
    iterate: Unpacked,
    best: Option<(Stage, Unpacked)>,
    reports: Vec<PassReport>,
    prior: Vec<f64>,
    damping: Damping,
    tightness: f64,
    variance_inflation: f64,
    likely: Option<(f64, f64)>,
    informative: Option<(f64, f64)>,
}

/// An iterate with its states, as it is kept.
struct Unpacked {
    theta: Vec<f64>,
    states: Vec<Trajectory>,
    cost: Cost,
}

kept!(Unpacked {
    theta,
    states,
    cost
});
kept!(Between {
    stages,
    over,
    iterate,
    best,
    reports,
    prior,
    damping,
    tightness,
    variance_inflation,
    likely,
    informative,
});

impl Unpacked {
    fn of(problem: &Placed, iterate: &Iterate) -> Result<Self, Error> {
        Ok(Self {
            theta: iterate.theta.clone(),
            states: problem.states(&iterate.states)?,
            cost: iterate.cost,
        })
    }

    /// The same of the best stage.
    fn of_best(problem: &Placed, best: Option<&Best>) -> Result<Option<(Stage, Self)>, Error> {
        let unpacked = |best: &Best| Ok((best.at.clone(), Self::of(problem, &best.iterate)?));
        best.map(unpacked).transpose()
    }

    fn packed(self, problem: &Placed) -> Result<Iterate, Error> {
        Ok(Iterate {
            theta: self.theta,
            states: problem.put(self.states)?,
            cost: self.cost,
        })
    }
}

impl Between {
    /// Whether it has the sizes of a problem.
    fn fits(&self, problem: &Problem) -> bool {
        let parameters = problem.model.system.parameters();
        let fits = |iterate: &Unpacked| {
            iterate.theta.len() == parameters && fit_records(&iterate.states, problem)
        };
        let best = self.best.as_ref();
        fits(&self.iterate)
            && self.prior.len() == parameters
            && best.is_none_or(|(at, kept)| fits(kept) && at.prior.len() == parameters)
    }
}

/// Where the stages begin.
pub(super) struct Begin {
    pub iterate: Iterate,
    /// What an earlier fit has kept.
    pub best: Option<Best>,
    /// Of the stages before.
    pub reports: Vec<PassReport>,
    /// Decades by which the first stage's process noise is tightened.
    pub tightness: f64,
}

/// Stage after stage, each with tighter physics, until it is exact, or until the data contradict it.
pub(super) fn tighten(
    problem: &Placed,
    begin: Begin,
    observer: &mut dyn Observer,
) -> Result<Tightened, Error> {
    let settings = problem.settings;
    let Begin {
        mut iterate,
        mut best,
        mut reports,
        tightness: first_tightness,
    } = begin;
    let resumed = best.is_some();
    let course = if problem.checkpoints.are_kept() {
        let of_best = Unpacked::of_best(problem, best.as_ref())?;
        let of_iterate = Unpacked::of(problem, &iterate)?;
        let begin = (of_iterate, of_best, reports.len(), first_tightness);
        problem.checkpoints.course(problem, &begin)
    } else {
        None
    };
    let first = best.as_ref().map_or_else(
        || Stage {
            stages: reports.len(),
            next: Next::Stage,
            tightness: first_tightness,
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
    let mut stages = match first.next {
        Next::Refinement => 0..0,
        _ if resumed => first.stages..settings.passes,
        _ => first.stages..first.stages + settings.passes,
    };
    let last = stages.end;
    let before = course.as_ref().and_then(Course::get);
    if let Some(before) = before.filter(|b: &Between| b.fits(problem) && b.stages <= last) {
        stages.start = if before.over { last } else { before.stages };
        iterate = before.iterate.packed(problem)?;
        best = match before.best {
            Some((at, kept)) => Some(Best {
                at,
                iterate: kept.packed(problem)?,
            }),
            None => None,
        };
        reports = before.reports;
        (prior, damping) = (before.prior, before.damping);
        (tightness, variance_inflation) = (before.tightness, before.variance_inflation);
        (likely, informative) = (before.likely, before.informative);
    }
    let measured = |r: &Record| r.outputs.iter().filter(|y| !y.is_nan()).count();
    let readings = problem.records.iter().map(measured).sum::<usize>() as f64;
    for stage in stages {
        let mut counter = Counter {
            stage,
            stages: last,
            observer,
        };
        let rest = stage == first.stages && first.next == Next::RestOfStage;
        let mut end = End::Hopeless;
        let before = (iterate.clone(), damping.clone());
        for decades in STAGE_DECADES {
            (iterate, damping) = before.clone();
            damping.restart();
            let fresh = (stage > first.stages || resumed) && !rest;
            let limits = Limits {
                hopeless: if fresh && decades == STAGE_DECADES[0] {
                    BOLD_STAGE_FACTOR * iterate.cost.total()
                } else {
                    f64::INFINITY
                },
                ..if problem.noisy() {
                    NOISY_STAGE_LIMITS
                } else {
                    STAGE_LIMITS
                }
            };
            let tighter = if fresh {
                tightness + decades
            } else {
                tightness
            };
            let noise = stage_noise(problem, settings, tighter)
                .inflated(problem.stepper, variance_inflation);
            let mut newton = Newton::new(problem, &prior, &noise);
            if problem.noisy() && tighter < LOOSE_DECADES {
                newton = newton.without_simulations();
            }
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
        let Laplace {
            posterior,
            evidence,
            consistency,
        } = newton.evidence(&iterate, newton.thinning())?;
        if likely.is_none_or(|(_, highest)| evidence.log > highest) {
            likely = Some((tightness, evidence.log));
        }
        if informative.is_none_or(|(_, most)| evidence.determined > most) {
            informative = Some((tightness, evidence.determined));
        }
        if settings.estimate_noise {
            let inflation = newton.variance_inflation(&iterate)?;
            variance_inflation = if inflation > CONTRADICTED_INFLATION {
                inflation
            } else {
                1.0
            };
        }
        let posterior = posterior.inflated(variance_inflation);
        let free_run = problem.free_run_error(&iterate.theta, &iterate.states)?;
        let validation = problem.validation_error(&iterate.theta, &noise);
        let merit = -validation.unwrap_or(free_run);
        let merit = (!merit.is_nan()).then_some(merit);
        let known = best.as_ref().map_or(f64::NEG_INFINITY, |b| b.at.merit());
        if settings.estimate_prior && !stopped {
            prior = posterior.next_prior(problem.model, &iterate.theta, Sharing::Network);
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
            determined: evidence.determined,
            variance_inflation,
            likely,
            informative,
            prior: prior.clone(),
            damping: damping.clone(),
        };
        let merit = at.merit();
        let noise = problem.noisy() || iterate.cost.data > NOISE_LEFT_COST * readings;
        let equal = if noise { EQUAL_FREE_RUN_PART } else { 0.0 };
        if merit >= known - equal * known.abs() || known.is_infinite() {
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
            validation,
            cost: iterate.cost,
            consistency,
            evidence: Some(evidence.log),
            free_run,
            damping: Some(damping.value),
        };
        stopped = !observer.pass(&report);
        reports.push(report);
        let mut limit = EXACT_DEFECT_COST * variance_inflation;
        if !problem.noisy() {
            limit = limit.min(EXACT_DEFECT_RATIO * iterate.cost.data);
        }
        let late = stage > first.stages + 1 || resumed || first_tightness > 0.0;
        let exact = late && iterate.cost.physics < limit;
        let lost = merit < LOST_FREE_RUN_FACTOR * known;
        let fixed = matches!(settings.hidden_noise, Level::Variance(_));
        let over = best.is_some() && (exact || lost || fixed);
        if let Some(best) = best.as_mut().filter(|_| over) {
            best.at.next = Next::Refinement;
        }
        if let Some(course) = &course {
            course.put(&Between {
                stages: stage + 1,
                over,
                iterate: Unpacked::of(problem, &iterate)?,
                best: Unpacked::of_best(problem, best.as_ref())?,
                reports: reports.clone(),
                prior: prior.clone(),
                damping: damping.clone(),
                tightness,
                variance_inflation,
                likely,
                informative,
            });
        }
        if stopped || over {
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

impl Begin {
    /// Loose, at θ, on what the known physics says alone.
    ///
    /// # Errors
    /// Those of workers, here and below.
    pub fn loose(problem: &Placed, theta: Vec<f64>) -> Result<Self, Error> {
        let prior = first_prior(problem, problem.settings);
        let noise = stage_noise(problem, problem.settings, 0.0);
        Ok(Self {
            iterate: Newton::new(problem, &prior, &noise).start(theta)?,
            best: None,
            reports: vec![],
            tightness: 0.0,
        })
    }

    /// Tight, at θ: on the simulations that fit best.
    pub fn tight(
        problem: &Placed,
        theta: Vec<f64>,
        reports: Vec<PassReport>,
    ) -> Result<Self, Error> {
        let prior = first_prior(problem, problem.settings);
        let noise = stage_noise(problem, problem.settings, FIRST_TIGHT_DECADES);
        let states = problem.exact_states(&theta)?;
        let cost = Newton::new(problem, &prior, &noise).cost(&theta, &states)?;
        let iterate = Iterate {
            theta,
            states,
            cost,
        };
        Ok(Self {
            iterate,
            best: None,
            reports,
            tightness: FIRST_TIGHT_DECADES,
        })
    }

    /// At what an earlier fit has kept.
    pub fn resumed(problem: &Placed, resumed: &Resumed) -> Result<Self, Error> {
        let settings = problem.settings;
        let Checkpoint::Stage(at) = resumed.checkpoint else {
            unreachable!("a fit is resumed by its own solver");
        };
        let theta = resumed.theta.to_vec();
        let noise = stage_noise(problem, settings, 0.0);
        let mut newton = Newton::new(problem, &at.prior, &noise);
        let mut states = newton.starts(&theta)?;
        // the way the stages went: straight to tight physics, a trajectory may be lost
        let mut tightness: f64 = 0.0;
        while tightness < at.tightness {
            tightness = (tightness + STAGE_DECADES[0]).min(at.tightness);
            let noise = stage_noise(problem, settings, tightness);
            newton = Newton::new(problem, &at.prior, &noise);
            states = newton.smoothed(&theta, &states)?;
        }
        let iterate = Iterate {
            cost: newton.cost(&theta, &states)?,
            theta,
            states,
        };
        let best = Best {
            at: at.clone(),
            iterate: iterate.clone(),
        };
        Ok(Self {
            iterate,
            best: Some(best),
            reports: resumed.reports.clone(),
            tightness: at.tightness,
        })
    }
}

/// P_θ0 before the data have said anything.
pub(super) fn first_prior(problem: &Problem, settings: &Settings) -> Vec<f64> {
    let mut prior = problem.model.prior_variances(settings.parameter_variance);
    match sharing(problem) {
        _ if !settings.estimate_prior => {}
        Sharing::Network => widen(problem, &mut prior, FIRST_PRIOR_FACTOR),
        Sharing::Layer => {
            for (weight, terms) in terms(problem.model) {
                prior[weight] = settings.parameter_variance * FIRST_LAYER_VARIANCE / terms as f64;
            }
        }
    }
    prior
}

/// Which weights share a prior variance. Without noise the data determine them anyway.
pub(super) fn sharing(problem: &Problem) -> Sharing {
    if problem.noisy() {
        Sharing::Layer
    } else {
        Sharing::Network
    }
}

/// A wider prior of the weights; that of a constant is what the model file says.
pub(super) fn widen(problem: &Problem, prior: &mut [f64], factor: f64) {
    for range in problem.model.system.weight_ranges() {
        prior[range].iter_mut().for_each(|p| *p *= factor);
    }
}

/// The noise after some decades.
pub(super) fn stage_noise(problem: &Problem, settings: &Settings, tightness: f64) -> Noise {
    let staged = match settings.hidden_noise {
        Level::Relative(first) => {
            let level = first * 10f64.powf(-tightness.min(MOST_TIGHT_DECADES));
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
