//! Other values of the constants.
//!
//! What explains the data need not be the only thing that does, nor what explains them best: two tanks in a row
//! whose time constants are exchanged make nearly the same record. So each constant is held at values far from
//! where it was found while all else is refitted, and what follows the data best there is let go. (Starts that are
//! spread over all constants find the same place again: loose physics forgets where they were.) The evidence
//! decides between the places that were found; those that it hardly tells apart are told of.

use super::batch::ways::{Hold, held};
use super::ladder::{FEW_WEIGHTS, explains_data, rank};
use super::starts::{self, Kept};
use super::{Learned, Observer, Problem, Quiet, Solver, Trial};
use crate::Error;
use crate::model::Unknown;

/// Where a constant is held, in scales from its guess.
const HELD_VALUES: [f64; 3] = [-1.2, 0.0, 1.2];
/// A value is another one where it is this far away, in scales, and in deviations.
const APART_SCALES: f64 = 0.6;
const APART_DEVIATIONS: f64 = 4.0;
/// Of the places with a constant held, so many are let go, unless the objective is so many times larger there.
const PLACES_LET_GO: usize = 2;
const HOPELESS_OBJECTIVE_RATIO: f64 = 10.0;
/// Fits whose ln p differ by less than this have ended at the same place.
const SAME_PLACE_LOG_EVIDENCE: f64 = 0.2;
/// A structure has come as far as a simpler one where its ln p is lower by no more than this.
const AS_FAR_LOG_EVIDENCE: f64 = 3.0;
/// Places whose ln p is this close to the best are told of.
const TOLD_LOG_EVIDENCE: f64 = 5.0;

/// A place that explains the data nearly as well as what is kept.
#[derive(Debug, Clone)]
pub struct Elsewhere {
    /// ln p, less that of what is kept.
    pub log: f64,
    /// The constants' entries of θ.
    pub constants: Vec<f64>,
}

/// The best of what was learned and of what is learned from other values of the constants. `rests` is ln p of a
/// simpler structure that has shown that there is nothing elsewhere, and of this one where it does: what comes as
/// far is not looked at again.
pub(super) fn best(
    solver: &dyn Solver,
    problem: &Problem,
    first: Kept,
    rests: &mut Option<f64>,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let (settings, system) = (problem.settings, &problem.model.system);
    let few = system.parameters() - system.unknowns() <= FEW_WEIGHTS;
    let alone = settings.starts.max(settings.ensemble) == 1;
    let rested = rests.is_some_and(|log| rank(&first).log > log - AS_FAR_LOG_EVIDENCE);
    if rested || !few || !alone || !problem.noisy() || !explains_data(&first) || first.stopped {
        return Ok(first);
    }
    let mut quiet = Quiet::new(observer, Trial::Constants);
    let mut places = vec![];
    let mut stopped = false;
    for hold in holds(problem, first.best()) {
        match held(problem, first.best(), &hold, &mut quiet) {
            Ok(place) => {
                places.extend(place.filter(|p| p.objective_ratio < HOPELESS_OBJECTIVE_RATIO));
            }
            Err(Error::Stopped) => {
                stopped = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    places.sort_by(|a, b| a.objective_ratio.total_cmp(&b.objective_ratio));
    let mut candidates = vec![first];
    for place in places.into_iter().take(PLACES_LET_GO) {
        if stopped {
            break;
        }
        match starts::near(solver, problem, settings.seed, place.theta, &mut quiet) {
            Ok(next) => {
                stopped = next.stopped;
                candidates.extend(Some(next).filter(explains_data));
            }
            Err(Error::Diverged(_)) => {}
            Err(Error::Stopped) => stopped = true,
            Err(error) => return Err(error),
        }
    }
    let before = rank(&candidates[0]).log;
    let best = decided(problem, candidates, stopped);
    let log = rank(&best).log;
    if log <= before + SAME_PLACE_LOG_EVIDENCE && best.elsewhere.is_empty() {
        *rests = Some(rests.map_or(log, |r| r.max(log)));
    }
    Ok(best)
}

/// The place with the highest ln p, the first of those that are the same, with the others that are close to it.
fn decided(problem: &Problem, mut candidates: Vec<Kept>, stopped: bool) -> Kept {
    let logs: Vec<f64> = candidates.iter().map(|kept| rank(kept).log).collect();
    let place = (1..candidates.len()).fold(0, |best, next| {
        if logs[next] > logs[best] + SAME_PLACE_LOG_EVIDENCE {
            next
        } else {
            best
        }
    });
    let mut best = candidates.swap_remove(place);
    let kept = best.best();
    let unknowns = problem.model.unknowns.len();
    let mut others: Vec<Elsewhere> = vec![];
    for other in &candidates {
        let (log, other) = (rank(other).log - logs[place], other.best());
        let told = others.iter().any(|o| is_same(&o.constants, other, &[]));
        if log > -TOLD_LOG_EVIDENCE && !told && !is_same(&kept.theta[..unknowns], other, &[kept]) {
            others.push(Elsewhere {
                log,
                constants: other.theta[..unknowns].to_vec(),
            });
        }
    }
    best.elsewhere = others;
    best.stopped |= stopped;
    best
}

/// Whether constants are those of what was learned, within its deviations and those of others.
fn is_same(constants: &[f64], learned: &Learned, others: &[&Learned]) -> bool {
    constants.iter().enumerate().all(|(i, constant)| {
        let fits = std::iter::once(learned).chain(others.iter().copied());
        let variance: f64 = fits.map(|l| l.covariance.variance(i)).sum();
        (constant - learned.theta[i]).abs() < APART_DEVIATIONS * variance.sqrt()
    })
}

/// The constants and the values at which they are held.
fn holds(problem: &Problem, learned: &Learned) -> Vec<Hold> {
    let unknowns = problem.model.unknowns.iter().enumerate();
    let holds = unknowns.flat_map(|(entry, unknown): (usize, &Unknown)| {
        let (least, most) = unknown.bounds();
        let far = APART_SCALES.max(APART_DEVIATIONS * learned.covariance.variance(entry).sqrt());
        let values = HELD_VALUES.map(|value| value.clamp(least, most));
        values
            .into_iter()
            .map(move |value| Hold { entry, value })
            .filter(move |hold| (hold.value - learned.theta[entry]).abs() > far)
    });
    holds.collect()
}
