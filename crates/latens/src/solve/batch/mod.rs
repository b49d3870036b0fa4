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

pub(crate) mod again;
pub(super) mod asked;
mod cut;
pub mod damping;
pub mod disturbance;
pub mod evidence;
mod newton;
pub(super) mod place;
pub mod population;
mod random;
pub(super) mod regress;
mod settle;
mod stages;
pub(super) mod sums;
mod terms;
pub(super) mod ways;

use super::checkpoint::{Checkpoint, Start};
use super::{Learned, Observer, Problem, Solver, precision};
use crate::Error;
use crate::filter::{Smoothed, bands};
use crate::look::prior::Walking;
use crate::model::settings::{Level, Settings};
use crate::numerics::Trajectory;
use asked::Question;
use cut::{Cut, cut};
use evidence::Laplace;
use newton::{End, Newton};
use place::Placed;
use settle::{Settled, settle};
use stages::{Begin, Best, Tightened, stage_noise, tighten};

pub use stages::EXACT_DEFECT_RATIO;

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
            simplify: true,
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

    fn takes_workers(&self) -> bool {
        true
    }

    fn tries(&self) -> u64 {
        3
    }

    fn walking(&self) -> Walking {
        Walking::Outputs
    }

    fn keeps_bounds(&self) -> bool {
        true
    }

    fn learns_sensors(&self) -> bool {
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

/// What is kept is the kept stage itself where settling made its free run this much worse.
const WORSE_FREE_RUN_RATIO: f64 = 1.05;

/// Learns by whole-record Newton, from what the known physics says alone, or from where an earlier
/// fit was.
fn run(problem: &Problem, start: Start, observer: &mut dyn Observer) -> Result<Learned, Error> {
    let problem = &Placed::new(problem)?;
    let settings = problem.settings;
    let Tightened {
        best: Best {
            mut at,
            mut iterate,
        },
        reports,
        mut stopped,
    } = match start {
        Start::At(theta) => ways::best(problem, theta, observer)?,
        Start::Near(theta) => tighten(problem, Begin::tight(problem, theta, vec![])?, observer)?,
        Start::From(resumed) => tighten(problem, Begin::resumed(problem, resumed)?, observer)?,
    };
    let stages = reports.len();
    // whoever states the process noise does not ask for a simulation
    let simulates = matches!(settings.hidden_noise, Level::Relative(_));
    let Settled {
        mut noise,
        prior,
        mut variance_inflation,
    } = if stopped {
        Settled {
            noise: stage_noise(problem, settings, at.tightness),
            prior: at.prior.clone(),
            variance_inflation: at.variance_inflation,
        }
    } else {
        let kept = iterate.clone();
        let (settled, end) = settle(problem, &mut at, &mut iterate, stages, observer)?;
        let error = problem.validation_error(&iterate.theta, &settled.noise);
        let error = match error {
            Some(error) => error,
            None => problem.free_run_error(&iterate.theta, &iterate.states)?,
        };
        if simulates && (error.is_nan() || error > -WORSE_FREE_RUN_RATIO * at.merit()) {
            iterate = kept;
        }
        stopped = matches!(end, End::Stopped(_));
        settled
    };
    let mut disturbed = None;
    let contradicted = variance_inflation > 1.0;
    let may_be_disturbed = simulates
        && (contradicted || at.tightness > disturbance::LEVEL_DECADES[0])
        && settings.estimate_noise
        && settings.process_variance.is_empty();
    if problem.noisy() && may_be_disturbed && !stopped {
        let found = disturbance::disturbed(
            problem,
            &mut at,
            &iterate,
            &prior,
            &noise,
            contradicted,
            observer,
        )?;
        if let Some(found) = found {
            (noise, iterate) = (found.noise, found.iterate);
            (disturbed, variance_inflation) = (Some(found.gain), 1.0);
        }
    }
    let mut in_pieces = false;
    if variance_inflation > 1.0 && !stopped {
        match ways::pieces_predict_better(problem, &iterate.theta, observer) {
            Ok(None) => {}
            Ok(Some(theta)) => {
                iterate.states = problem.exact_states(&theta)?;
                iterate.theta = theta;
                let newton = Newton::new(problem, &prior, &noise);
                variance_inflation = newton.variance_inflation(&iterate)?;
                in_pieces = true;
            }
            Err(Error::Stopped) => stopped = true,
            Err(error) => return Err(error),
        }
    }
    at.variance_inflation = variance_inflation;
    // all variances times a factor leave the gains and multiply the states' own covariance
    let inflated = noise.inflated(problem.stepper, variance_inflation);
    let newton = Newton::new(problem, &prior, &inflated);
    iterate.cost = newton.cost(&iterate.theta, &iterate.states)?;
    let Laplace {
        mut posterior,
        mut evidence,
        mut consistency,
    } = newton.evidence(&iterate, 1)?;
    // under all but exact physics a few directions are so well determined that the others drown in
    // their rounding, and would count as open: a stage before says less of all, but says it
    if let Some((looser, determined)) = at.informative
        && !problem.noisy()
        && determined > evidence.determined
    {
        let mut looser = stage_noise(problem, settings, looser);
        looser.vary_as(problem.stepper, &noise);
        let noise = looser.inflated(problem.stepper, variance_inflation);
        let informed = Newton::new(problem, &prior, &noise).evidence(&iterate, 1)?;
        posterior = informed.posterior;
        evidence.determined = informed.evidence.determined;
        evidence.parts = informed.evidence.parts;
    }
    let Cut {
        draws,
        covariance,
        intervals,
        determined,
        log,
    } = cut(
        &posterior,
        problem.model,
        &iterate.theta,
        posterior.draws(bands::DRAWS),
        precision(settings),
    );
    evidence.log += log;
    for (part, determined) in evidence.parts.iter_mut().zip(determined) {
        part.determined = determined.unwrap_or(part.determined);
    }
    let simulated = problem.free_run_error(&iterate.theta, &iterate.states)?;
    // θ is that of exact physics; where the data contradict it, states follow the data as far as
    // the evidence says
    let contradicted = variance_inflation > 1.0;
    if contradicted {
        let likely = at.likely.map_or(at.tightness, |(tightness, _)| tightness);
        let settled = std::mem::replace(&mut noise, stage_noise(problem, settings, likely));
        noise.vary_as(problem.stepper, &settled);
        let newton = Newton::new(problem, &prior, &noise);
        iterate.states = newton.smoothed(&iterate.theta, &iterate.states)?;
        consistency = newton.evidence(&iterate, newton.thinning())?.consistency;
        variance_inflation = newton.variance_inflation(&iterate)?;
    }
    let inflated = noise.inflated(problem.stepper, variance_inflation);
    let newton = Newton::new(problem, &prior, &inflated);
    let question = Question::Bands {
        draws: draws.clone(),
    };
    let bands = newton.ask(&iterate.theta, question, &[&iterate.states])?;
    let states = problem.states(&iterate.states)?.into_iter();
    let smoothed = states.zip(bands.numbers).zip(&problem.prior.states);
    let smoothed = smoothed.map(|((states, deviations), known)| Smoothed {
        deviations: Trajectory::new(deviations, states.width()),
        states,
        cost: known.cost,
    });
    let smoothed: Vec<Smoothed> = smoothed.collect();
    // a loose stage's start is not yet that of a simulation
    let free_run = if problem.noisy() && !contradicted {
        problem.measured_error(&iterate.theta, &noise, &iterate.states)?
    } else {
        simulated
    };
    Ok(Learned {
        covariance,
        intervals,
        free_run,
        free_runs: None,
        contradicted,
        in_pieces,
        disturbed,
        variance_inflation,
        smoothed,
        noise,
        reports,
        consistency,
        theta: iterate.theta,
        draws,
        evidence: Some(evidence),
        checkpoint: Checkpoint::Stage(at),
        stopped,
    })
}
