//! The last steps of batch: noise, prior and θ settle at the stage that was kept.

use super::evidence::Laplace;
use super::newton::{Counter, End, Iterate, Limits, Newton};
use super::place::Placed;
use super::population;
use super::stages::{STAGE_LIMITS, sharing, stage_noise, widen};
use crate::Error;
use crate::look::scales::refine;
use crate::numerics::objective::Noise;
use crate::solve::checkpoint::Stage;
use crate::solve::{Observer, Problem};

/// With noise the evidence and the bands stand on the minimum itself; without, the last stages are
/// there already.
const END_LIMITS: Limits = Limits {
    tolerance: 1e-3,
    patience: 3,
    ..STAGE_LIMITS
};
/// While the prior settles, a gain that the evidence hardly feels is none.
const PRIOR_LIMITS: Limits = Limits {
    tolerance: 3e-3,
    patience: 2,
    ..STAGE_LIMITS
};
/// A unit of the objective is 1.4 standard deviations of a constant: where there are constants, what
/// is left to gain must be small beside that.
const CONSTANTS_LIMITS: Limits = Limits {
    tolerance: 2e-5,
    patience: 2,
    iterations: 12,
    ..STAGE_LIMITS
};
const NOISE_FREE_END_LIMITS: Limits = Limits {
    tolerance: 3e-3,
    iterations: 4,
    ..STAGE_LIMITS
};
/// Rounds at the end in which the prior of each layer settles, and the gain of ln p that ends them.
const PRIOR_ROUNDS: usize = 8;
const NOTABLE_EVIDENCE_GAIN: f64 = 0.5;
/// Without noise R_y is a resolution, and a prior that competes with it as with noise leaves the
/// weights short by what their bands do not show: at the end it is so many times wider.
const LAST_PRIOR_FACTOR: f64 = 100.0;
/// Rounds at the end in which noise, prior and θ settle.
const END_ROUNDS: usize = 4;
/// Rounds in which θ and how constants vary settle.
const VARYING_ROUNDS: usize = 8;
/// What the data are held against at the end.
pub(super) struct Settled {
    pub noise: Noise,
    /// P_θ0.
    pub prior: Vec<f64>,
    /// By how much variances are inflated.
    pub variance_inflation: f64,
}

/// The prior of a record's start as wide as the states have proved to range: what was guessed of a
/// hidden state before anything was learned, or said of its rough size, may be far off.
///
/// # Errors
/// Those of workers.
pub(super) fn open_start(
    problem: &Placed,
    iterate: &Iterate,
    noise: &mut Noise,
) -> Result<(), Error> {
    let mut scales = problem.scales.clone();
    refine(
        problem.model,
        &mut scales,
        &problem.states(&iterate.states)?,
    );
    for (i, state) in problem.model.states.iter().enumerate() {
        noise.start_mean[i] = scales.center[i];
        if !problem.settings.start_variance.contains_key(&state.name) {
            noise.start[i] = noise.start[i].max(scales.start_deviation(i).powi(2));
        }
    }
    Ok(())
}

/// Newton's steps under a noise and a prior, to some limits.
fn minimise(
    newton: &Newton,
    at: &mut Stage,
    iterate: &mut Iterate,
    limits: &Limits,
    stages: usize,
    observer: &mut dyn Observer,
) -> Result<End, Error> {
    let mut counter = Counter {
        stage: stages,
        stages: stages + 1,
        observer,
    };
    at.damping.restart();
    newton.minimise(iterate, &mut at.damping, limits, &mut counter)
}

/// The channels whose noise is to be found.
pub(super) fn free_channels(problem: &Problem) -> Vec<usize> {
    let settings = problem.settings;
    let channels = problem.model.measurements.iter().enumerate();
    let free = channels
        .filter(|(_, channel)| settings.estimate_noise && !settings.noise_given(&channel.name));
    free.map(|(c, _)| c).collect()
}

/// Newton's steps under some noise of the states, with R_y as it is found on the way.
pub(super) fn minimised_with_noise(
    problem: &Placed,
    at: &mut Stage,
    iterate: &mut Iterate,
    prior: &[f64],
    noise: &mut Noise,
    observer: &mut dyn Observer,
) -> Result<End, Error> {
    let (channels, stages) = (free_channels(problem), at.stages);
    let mut end = End::Hopeless;
    for _ in 0..END_ROUNDS {
        let newton = Newton::new(problem, prior, noise);
        iterate.cost = newton.cost(&iterate.theta, &iterate.states)?;
        end = minimise(&newton, at, iterate, &END_LIMITS, stages, observer)?;
        if channels.is_empty() || matches!(end, End::Stopped(_)) {
            break;
        }
        find_measurement_noise(&newton, at, iterate, noise)?;
    }
    Ok(end)
}

/// R_y as the misfits show it, of the channels whose noise nobody states.
pub(super) fn find_measurement_noise(
    newton: &Newton,
    at: &Stage,
    iterate: &Iterate,
    noise: &mut Noise,
) -> Result<(), Error> {
    let problem = newton.problem();
    let found = newton.noise_found(iterate, at.determined)?;
    for c in free_channels(problem) {
        noise.measurement[c] = found[c].max(problem.resolution(c));
    }
    Ok(())
}

/// The last steps, under the noise and the prior that the kept stage asks for: R_y as it is found,
/// and misfits that are correlated, as those of a model that cannot be better, counted for the news
/// that they are; but noise that somebody states is taken as stated.
pub(super) fn settle(
    problem: &Placed,
    at: &mut Stage,
    iterate: &mut Iterate,
    stages: usize,
    observer: &mut dyn Observer,
) -> Result<(Settled, End), Error> {
    let settings = problem.settings;
    let mut noise = stage_noise(problem, settings, at.tightness);
    if problem.noisy() && settings.estimate_noise {
        open_start(problem, iterate, &mut noise)?;
    }
    let mut prior = at.prior.clone();
    if settings.estimate_prior && !problem.noisy() {
        widen(problem, &mut prior, LAST_PRIOR_FACTOR);
    }
    let unknown = free_channels(problem);
    let mut variance_inflation = at.variance_inflation;
    let mut end = End::Hopeless;
    for _ in 0..VARYING_ROUNDS {
        if !population::settle(problem, &mut prior, iterate, variance_inflation, &mut noise)? {
            break;
        }
        let inflated = noise.inflated(problem.stepper, variance_inflation);
        let newton = Newton::new(problem, &prior, &inflated);
        iterate.cost = newton.cost(&iterate.theta, &iterate.states)?;
        end = minimise(&newton, at, iterate, &END_LIMITS, stages, observer)?;
        if matches!(end, End::Stopped(_)) {
            break;
        }
    }
    if problem.noisy() && settings.estimate_prior && variance_inflation == 1.0 {
        let mut before = f64::NEG_INFINITY;
        // where physics is all but exact θ moves slowly: the stage that the evidence favours is
        // as good for this, and the last steps are tight again
        let likely = at.likely.map_or(at.tightness, |(tightness, _)| tightness);
        let looser = stage_noise(problem, settings, likely.min(at.tightness));
        let tight = noise.clone();
        noise.process = looser.process;
        noise.vary_as(problem.stepper, &tight);
        for _ in 0..PRIOR_ROUNDS {
            let newton = Newton::new(problem, &prior, &noise);
            end = minimise(&newton, at, iterate, &PRIOR_LIMITS, stages, observer)?;
            if matches!(end, End::Stopped(_)) {
                break;
            }
            let Laplace {
                posterior,
                evidence,
                ..
            } = newton.evidence(iterate, newton.thinning())?;
            at.determined = evidence.determined;
            if evidence.log - before < NOTABLE_EVIDENCE_GAIN {
                break;
            }
            before = evidence.log;
            find_measurement_noise(&newton, at, iterate, &mut noise)?;
            prior = posterior.next_prior(problem.model, &iterate.theta, sharing(problem));
        }
        noise.process = tight.process;
    }
    for round in 0..END_ROUNDS {
        population::settle(problem, &mut prior, iterate, variance_inflation, &mut noise)?;
        let inflated = noise.inflated(problem.stepper, variance_inflation);
        let newton = Newton::new(problem, &prior, &inflated);
        let limits = if problem.noisy() || variance_inflation > 1.0 {
            &END_LIMITS
        } else {
            &NOISE_FREE_END_LIMITS
        };
        end = minimise(&newton, at, iterate, limits, stages, observer)?;
        if unknown.is_empty() || matches!(end, End::Stopped(_)) {
            break;
        }
        let newton = Newton::new(problem, &prior, &noise);
        let variances = newton.noise_found(iterate, at.determined)?;
        let mut white = noise.clone();
        for &c in &unknown {
            white.measurement[c] = variances[c].max(problem.resolution(c));
        }
        if Newton::new(problem, &prior, &white).variance_inflation(iterate)? == 1.0 {
            variance_inflation = 1.0;
            if !problem.noisy() || round > 0 {
                break;
            }
            noise = white;
            continue;
        }
        variance_inflation = newton.variance_inflation(iterate)?;
        if settings.estimate_prior {
            let inflated = noise.inflated(problem.stepper, variance_inflation);
            let newton = Newton::new(problem, &prior, &inflated);
            let posterior = newton.evidence(iterate, newton.thinning())?.posterior;
            prior = posterior.next_prior(problem.model, &iterate.theta, sharing(problem));
        }
    }
    if !problem.model.unknowns.is_empty() && !matches!(end, End::Stopped(_)) {
        let inflated = noise.inflated(problem.stepper, variance_inflation);
        let newton = Newton::new(problem, &prior, &inflated);
        end = minimise(&newton, at, iterate, &CONSTANTS_LIMITS, stages, observer)?;
    }
    let settled = Settled {
        noise,
        prior,
        variance_inflation,
    };
    Ok((settled, end))
}
