//! Whether something pushes the states about that no equation has.
//!
//! A fit ends at equations that hold all but exactly. Where a wind, traffic or a draught moves the states at random, it
//! then makes constants and networks answer for that, with deviations which do not count it, and residuals may still look
//! white. So the process noise of the equations that are learned is opened again, level by level. Where the evidence
//! rises clearly, the fit is finished under the noise that it asks for.

use super::newton::{End, Iterate, Newton};
use super::place::Placed;
use super::settle::minimised_with_noise;
use super::stages::stage_noise;
use crate::Error;
use crate::numerics::objective::Noise;
use crate::solve::Observer;
use crate::solve::checkpoint::Stage;

/// Levels of process noise, in decades below that of the first stage, the tightest first: each begins at the states of the
/// one before.
pub(super) const LEVEL_DECADES: [f64; 7] = [2.0, 1.5, 1.0, 0.5, 0.0, -0.5, -1.0];
/// What ln p has to gain by a level alone, before anything is learned again …
const PROMISING_EVIDENCE_GAIN: f64 = 1.0;
/// … and in the end: odds of twenty to one.
pub const CLEAR_EVIDENCE_GAIN: f64 = 3.0;

/// A fit under process noise that the data ask for.
pub(super) struct Disturbed {
    pub noise: Noise,
    pub iterate: Iterate,
    /// By so much ln p is higher than under equations that hold exactly.
    pub gain: f64,
}

/// The process noise under which the data are clearly likelier than under all but exact physics, with θ and R_y found
/// again; `None` where there is none.
pub(super) fn disturbed(
    problem: &Placed,
    at: &mut Stage,
    iterate: &Iterate,
    prior: &[f64],
    settled: &Noise,
    observer: &mut dyn Observer,
) -> Result<Option<Disturbed>, Error> {
    let exact = Newton::new(problem, prior, settled);
    let thinning = exact.thinning();
    let exact_log = exact.evidence(iterate, thinning)?.evidence.log;
    let mut best: Option<(f64, Noise, Iterate)> = None;
    let mut states = iterate.states.clone();
    for decades in LEVEL_DECADES {
        let mut noise = settled.clone();
        noise.process = stage_noise(problem, problem.settings, decades).process;
        noise.vary_as(problem.stepper, settled);
        let newton = Newton::new(problem, prior, &noise);
        states = newton.smoothed(&iterate.theta, &states)?;
        let level = Iterate {
            theta: iterate.theta.clone(),
            cost: newton.cost(&iterate.theta, &states)?,
            states: states.clone(),
        };
        let log = newton.evidence(&level, thinning)?.evidence.log;
        if log
            > best
                .as_ref()
                .map_or(exact_log + PROMISING_EVIDENCE_GAIN, |(best, ..)| *best)
        {
            best = Some((log, noise, level));
        }
    }
    let Some((_, mut noise, mut iterate)) = best else {
        return Ok(None);
    };
    let end = minimised_with_noise(problem, at, &mut iterate, prior, &mut noise, observer)?;
    if matches!(end, End::Stopped(_)) {
        return Ok(None);
    }
    let newton = Newton::new(problem, prior, &noise);
    let gain = newton.evidence(&iterate, thinning)?.evidence.log - exact_log;
    Ok((gain > CLEAR_EVIDENCE_GAIN).then_some(Disturbed {
        noise,
        iterate,
        gain,
    }))
}
