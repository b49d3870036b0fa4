//! Other values of the constants.
//!
//! What explains the data need not be the only thing that does, nor what explains them best: two tanks in a row
//! whose time constants are exchanged make nearly the same record. So each constant is held at values far from
//! where it was found while all else is refitted, and what follows the data best there is let go. (Starts that are
//! spread over all constants find the same place again: loose physics forgets where they were.) The evidence
//! decides between the places that were found; those that it hardly tells apart are told of.

use super::batch::ways::held;
use super::ladder::{FEW_WEIGHTS, Rank, rank};
use super::starts::{self, Kept};
use super::{Learned, Observer, Problem, Quiet, Solver, Trial};
use crate::Error;
use crate::model::Unknown;

/// Where a constant is held, in scales from its guess.
const VALUES: [f64; 3] = [-1.2, 0.0, 1.2];
/// A value is another one where it is this far away, in scales, and in deviations.
const APART: f64 = 0.6;
const DEVIATIONS: f64 = 4.0;
/// Of what was held, so many are let go, where the objective is not so many times larger than it was.
const LET_GO: usize = 2;
const HOPELESS: f64 = 10.0;
/// Fits whose ln p differ by less than this have ended at the same place.
const SAME_LOG: f64 = 0.2;
/// A structure has come as far as a simpler one where its ln p is lower by no more than this.
const AS_FAR: f64 = 3.0;
/// Places whose ln p is this close to the best are told of.
const TOLD: f64 = 5.0;

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
    let rested = rests.is_some_and(|log| rank(&first).log > log - AS_FAR);
    if rested || !few || !alone || !problem.noisy() || !is_explained(&first) || first.stopped {
        return Ok(first);
    }
    let mut quiet = Quiet::new(observer, Trial::Constants);
    let mut places = vec![];
    let mut stopped = false;
    for at in others(problem, &first.learned[0].1) {
        match held(problem, &first.learned[0].1, at, &mut quiet) {
            Ok(place) => places.extend(place.filter(|(ratio, _)| *ratio < HOPELESS)),
            Err(Error::Stopped) => {
                stopped = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = vec![first];
    for (_, theta) in places.into_iter().take(LET_GO) {
        if stopped {
            break;
        }
        match starts::near(solver, problem, settings.seed, theta, &mut quiet) {
            Ok(next) => {
                stopped = next.stopped;
                found.extend(Some(next).filter(is_explained));
            }
            Err(Error::Diverged(_)) => {}
            Err(Error::Stopped) => stopped = true,
            Err(error) => return Err(error),
        }
    }
    let before = rank(&found[0]).log;
    let best = decided(problem, found, stopped);
    let log = rank(&best).log;
    if log <= before + SAME_LOG && best.elsewhere.is_empty() {
        *rests = Some(rests.map_or(log, |r| r.max(log)));
    }
    Ok(best)
}

fn is_explained(kept: &Kept) -> bool {
    let Rank { sound, white, .. } = rank(kept);
    sound && white
}

/// The place with the highest ln p, the first of those that are the same; the others that are close to it go with
/// it.
fn decided(problem: &Problem, mut found: Vec<Kept>, stopped: bool) -> Kept {
    let logs: Vec<f64> = found.iter().map(|kept| rank(kept).log).collect();
    let place = (1..found.len()).fold(0, |best, next| {
        if logs[next] > logs[best] + SAME_LOG {
            next
        } else {
            best
        }
    });
    let mut best = found.swap_remove(place);
    let own = &best.learned[0].1;
    let unknowns = problem.model.unknowns.len();
    let mut others: Vec<Elsewhere> = vec![];
    for other in &found {
        let (log, other) = (rank(other).log - logs[place], &other.learned[0].1);
        let told = others.iter().any(|o| is_same(&o.constants, other, &[]));
        if log > -TOLD && !told && !is_same(&own.theta[..unknowns], other, &[own]) {
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
        let each = std::iter::once(learned).chain(others.iter().copied());
        let variance: f64 = each.map(|l| l.covariance.variance(i)).sum();
        (constant - learned.theta[i]).abs() < DEVIATIONS * variance.sqrt()
    })
}

/// The entries of constants and the values at which they are held.
fn others(problem: &Problem, learned: &Learned) -> Vec<(usize, f64)> {
    let unknowns = problem.model.unknowns.iter().enumerate();
    let each = unknowns.flat_map(|(i, unknown): (usize, &Unknown)| {
        let (least, most) = unknown.bounds();
        let far = APART.max(DEVIATIONS * learned.covariance.variance(i).sqrt());
        let values = VALUES.map(|value| (i, value.clamp(least, most)));
        values
            .into_iter()
            .filter(move |(i, value)| (value - learned.theta[*i]).abs() > far)
    });
    each.collect()
}
