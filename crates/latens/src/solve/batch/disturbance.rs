//! Whether something pushes the states about that no equation has.
//!
//! A fit ends at equations that hold all but exactly. Where a wind, traffic or a draught moves the states at random, it
//! then makes constants and networks answer for that, with deviations which do not count it. So the process noise of the
//! equations that are learned is opened again, level by level. Where the evidence rises clearly, the fit is finished
//! under the noise that it asks for: if its residuals looked white before, or if they contradicted it, and all that is
//! left now is random ([`super::random`]). What is not random is a term that the equations lack.

use super::asked::Question;
use super::newton::{End, Iterate, Newton};
use super::place::{Held, Placed};
use super::random::{is_random, is_systematic};
use super::settle::{find_measurement_noise, free_channels, minimised_with_noise};
use super::stages::stage_noise;
use crate::Error;
use crate::numerics::objective::Noise;
use crate::solve::Observer;
use crate::solve::checkpoint::Stage;

/// Levels of process noise, in decades below that of the first stage, the tightest first: each begins at the states of the
/// one before, and there is none after the first at which the data are clearly less likely.
pub(super) const LEVEL_DECADES: [f64; 13] = [
    2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5, -3.0, -3.5, -4.0,
];
/// Rounds in which states and R_y are found at a level, where R_y is not known.
const NOISE_ROUNDS: usize = 3;
/// Steps, in decades, by which the noise of each state and channel is looked for by itself, beside that of the others: a
/// level that is off by half a decade leaves the innovations correlated.
const SINGLE_DECADES: [f64; 4] = [1.0, -1.0, 0.25, -0.25];
/// Rounds in which θ, R_y and the noise of each state settle.
const STATE_ROUNDS: usize = 3;
/// What ln p has to gain by a level alone, before anything is learned again …
const PROMISING_EVIDENCE_GAIN: f64 = 1.0;
/// … by a step of one level beside the others …
const SETTLED_EVIDENCE_GAIN: f64 = 0.1;
/// … and in the end: odds of twenty to one.
pub const CLEAR_EVIDENCE_GAIN: f64 = 3.0;

/// A fit that random pushes leave simulates the records hardly worse: by no more than this factor. One that simulates them
/// far worse has lost what the equations say of them, whatever the pushes are.
const WORSE_FREE_RUN_RATIO: f64 = 1.3;

/// A fit under process noise that the data ask for.
pub(super) struct Disturbed {
    pub noise: Noise,
    pub iterate: Iterate,
    /// By so much ln p is higher than under equations that hold exactly.
    pub gain: f64,
}

/// The process noise under which the data are clearly likelier than under all but exact physics, with θ and R_y found
/// again; `None` where there is none. `contradicted` says whether misfits under exact physics are correlated: R_y has
/// then taken up what the pushes did.
pub(super) fn disturbed(
    problem: &Placed,
    at: &mut Stage,
    exact_iterate: &Iterate,
    prior: &[f64],
    settled: &Noise,
    contradicted: bool,
    observer: &mut dyn Observer,
) -> Result<Option<Disturbed>, Error> {
    let exact = Newton::new(problem, prior, settled);
    let thinning = exact.thinning();
    let exact_log = exact.evidence(exact_iterate, thinning)?.evidence.log;
    let mut best: Option<(f64, Noise, Iterate)> = None;
    let mut states = exact_iterate.states.clone();
    for decades in LEVEL_DECADES {
        let mut noise = settled.clone();
        noise.process = stage_noise(problem, problem.settings, decades).process;
        noise.vary_as(problem.stepper, settled);
        let mut level = Iterate {
            states,
            ..exact_iterate.clone()
        };
        for round in 0..if contradicted { NOISE_ROUNDS } else { 1 } {
            let newton = Newton::new(problem, prior, &noise);
            level.states = newton.smoothed(&level.theta, &level.states)?;
            if round + 1 < NOISE_ROUNDS && contradicted {
                find_measurement_noise(&newton, at, &level, &mut noise)?;
            }
        }
        let newton = Newton::new(problem, prior, &noise);
        level.cost = newton.cost(&level.theta, &level.states)?;
        states = level.states.clone();
        let log = newton.evidence(&level, thinning)?.evidence.log;
        let highest = best.as_ref().map_or(exact_log, |(best, ..)| *best);
        let promising = best
            .as_ref()
            .map_or(exact_log + PROMISING_EVIDENCE_GAIN, |_| highest);
        if log > promising {
            best = Some((log, noise, level));
        } else if log < highest - CLEAR_EVIDENCE_GAIN {
            break;
        }
    }
    let Some((_, mut noise, mut iterate)) = best else {
        return Ok(None);
    };
    for _ in 0..STATE_ROUNDS {
        let end = minimised_with_noise(problem, at, &mut iterate, prior, &mut noise, observer)?;
        if matches!(end, End::Stopped(_)) {
            return Ok(None);
        }
        if !apportioned(problem, at, &mut iterate, prior, &mut noise)? {
            break;
        }
    }
    let newton = Newton::new(problem, prior, &noise);
    let gain = newton.evidence(&iterate, thinning)?.evidence.log - exact_log;
    let asked_for = gain > CLEAR_EVIDENCE_GAIN;
    let free_run = |at: &Iterate| problem.measured_error(&at.theta, settled, &at.states);
    let explained = asked_for
        && (!contradicted
            || free_run(&iterate)? < WORSE_FREE_RUN_RATIO * free_run(exact_iterate)?
                && is_random(problem, &iterate, &noise)?
                && !is_systematic(problem, &iterate, prior, &noise)?);
    Ok(explained.then_some(Disturbed {
        noise,
        iterate,
        gain,
    }))
}

/// Moves the noise of each learned equation and of each channel by itself to where the likelihood of the data is highest,
/// with θ as it is; says whether any moved. What pushes one state may leave another alone.
fn apportioned(
    problem: &Placed,
    at: &Stage,
    iterate: &mut Iterate,
    prior: &[f64],
    noise: &mut Noise,
) -> Result<bool, Error> {
    let likelihood = |noise: &Noise, states: &Held| -> Result<(f64, Held), Error> {
        let newton = Newton::new(problem, prior, noise);
        let states = newton.smoothed(&iterate.theta, states)?;
        let answers = newton.ask(&iterate.theta, Question::Likelihood, &[&states])?;
        Ok((answers.all().sum(), states))
    };
    let (mut best, mut states) = likelihood(noise, &iterate.states)?;
    let mut moved = false;
    type Entry = (fn(&mut Noise) -> &mut Vec<f64>, usize);
    let rows = problem.model.system.unknown_rows().iter();
    let rows = rows.map(|&row| -> Entry { (|noise| &mut noise.process, row) });
    let channels = free_channels(problem);
    let channels = channels.into_iter();
    let channels = channels.map(|c| -> Entry { (|noise| &mut noise.measurement, c) });
    for (of, place) in rows.chain(channels) {
        for decades in SINGLE_DECADES {
            loop {
                let mut other = noise.clone();
                of(&mut other)[place] *= 10f64.powf(decades);
                for (c, variance) in other.measurement.iter_mut().enumerate() {
                    *variance = variance.max(problem.resolution(c));
                }
                let (log, there) = likelihood(&other, &states)?;
                // a NaN is no gain
                if log < best + SETTLED_EVIDENCE_GAIN || log.is_nan() {
                    break;
                }
                (best, states, moved) = (log, there, true);
                *noise = other;
            }
        }
    }
    iterate.states = states;
    let newton = Newton::new(problem, prior, noise);
    find_measurement_noise(&newton, at, iterate, noise)?;
    Ok(moved)
}
