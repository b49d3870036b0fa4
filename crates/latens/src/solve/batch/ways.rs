//! More than one way in.
//!
//! Loose physics first finds hidden trajectories without simulating anything, and is the way for
//! networks, from random weights. Where those lead nowhere, as in a system that grows, the networks are
//! fitted to what they must have put out, noise and all. Where only constants are unknown and that way
//! ends at a model that does not explain the data, others are tried: tight physics from the guesses
//! (output error), pieces of the records each with a start of its own (multiple shooting), and other
//! values of the constants within their scales. The way that follows the records best in a free run, or
//! the records to validate with where there are any, is gone on with.

use super::damping::Damping;
use super::newton::{Counter, End, Iterate, Limits, Newton};
use super::place::Placed;
use super::regress::regress;
use super::settle::settle;
use super::stages::{
    Begin, Best, NOISY_STAGE_LIMITS, Tightened, first_prior, stage_noise, tighten,
};
use crate::Error;
use crate::look::RESOLUTION;
use crate::solve::checkpoint::Checkpoint;
use crate::solve::{Learned, Observer, Problem, Quiet, Trial, halves};

/// The data are explained where a free run errs by no more than this many times their noise.
const EXPLAINED_NOISE_FACTOR: f64 = 1.3;
/// Without noise, by no more than this many times the resolution.
const EXPLAINED_RESOLUTION_FACTOR: f64 = 10.0;
/// Where a constant is held, all else need not be at its best.
const HELD_LIMITS: Limits = Limits {
    iterations: 15,
    ..NOISY_STAGE_LIMITS
};
/// A channel's range is some three times its standard deviation: a free run that errs by more than this part
/// of the range is worth no more than a constant.
pub(in crate::solve) const LOST_FREE_RUN_ERROR: f64 = 1.0 / 3.0;
/// Pieces of a record, and the fewest samples of one.
const MOST_PIECES: usize = 8;
const FEWEST_SAMPLES_OF_PIECE: usize = 40;
/// Other values of the constants that are looked at, how many of them are gone on with, and how
/// far they are from the guesses, in scales.
const POINTS_LOOKED_AT: usize = 24;
const POINTS_GONE_ON_WITH: usize = 2;
const FARTHEST_SCALES: f64 = 1.5;
/// Samples at the most that they are looked at on.
const SAMPLES_LOOKED_ALONG: usize = 4000;
/// Pieces have to predict what was held back better by this factor: they follow the records worse.
const CLEARLY_BETTER_ERROR_RATIO: f64 = 0.9;
/// Ways whose errors differ by less than this part have ended at the same place.
const SAME_MERIT_PART: f64 = 0.02;
/// Another way has to be better by this factor: it is not what the others are compared with.
const BETTER_ERROR_RATIO: f64 = 0.99;

/// The best of the ways from θ.
pub(super) fn best(
    problem: &Placed,
    theta: Vec<f64>,
    observer: &mut dyn Observer,
) -> Result<Tightened, Error> {
    let guess = theta.clone();
    let mut kept = Begin::loose(problem, theta).and_then(|begin| tighten(problem, begin, observer));
    if !only_constants(problem) {
        return match &problem.prior.outputs {
            Some(signals) if problem.noisy() && is_lost(&kept) => {
                let prior = first_prior(problem, problem.settings);
                let theta = regress(problem.model, problem.records, signals, guess, &prior);
                let begin = Begin::loose(problem, theta).map(|begin| Begin {
                    reports: kept.as_ref().map_or(vec![], |f| f.reports.clone()),
                    ..begin
                });
                better(
                    kept,
                    begin.and_then(|begin| tighten(problem, begin, observer)),
                )
            }
            _ => kept,
        };
    }
    if matches!(kept, Err(Error::Stopped)) || done(problem, &kept) {
        return kept;
    }
    let go_on =
        |kept: &mut Result<Tightened, Error>, theta: Vec<f64>, observer: &mut dyn Observer| {
            let reports = kept.as_ref().map_or(vec![], |f| f.reports.clone());
            let begin = Begin::tight(problem, theta, reports);
            let next = begin.and_then(|begin| tighten(problem, begin, observer));
            // two ways that end at the same place: it is the model that is not better
            let same = match (&*kept, &next) {
                (Ok(kept), Ok(next)) => {
                    let [merit, next] = [kept, next].map(|way| way.best.at.merit());
                    (merit - next).abs() < SAME_MERIT_PART * merit.abs()
                }
                _ => false,
            };
            *kept = better(std::mem::replace(kept, Err(Error::Stopped)), next);
            same || done(problem, kept)
        };
    if go_on(&mut kept, guess.clone(), observer) {
        return kept;
    }
    match in_pieces(problem, &guess, observer) {
        Ok(None) => {}
        Ok(Some(theta)) => {
            if go_on(&mut kept, theta, observer) {
                return kept;
            }
        }
        Err(error) => return better(kept, Err(error)),
    }
    let elsewhere = match elsewhere(problem, guess.len()) {
        Ok(elsewhere) => elsewhere,
        Err(error) => return better(kept, Err(error)),
    };
    for theta in elsewhere {
        if go_on(&mut kept, theta, observer) {
            break;
        }
    }
    kept
}

/// Whether a way has led nowhere: it diverged, or its free run is no better than a constant.
fn is_lost(way: &Result<Tightened, Error>) -> bool {
    match way {
        Ok(way) => !way.stopped && -way.best.at.merit() > LOST_FREE_RUN_ERROR,
        Err(error) => matches!(error, Error::Diverged(_)),
    }
}

/// Whether there is nothing to look for any more.
fn done(problem: &Problem, way: &Result<Tightened, Error>) -> bool {
    match way {
        Ok(way) => way.stopped || explained(problem, way),
        Err(error) => !matches!(error, Error::Diverged(_)),
    }
}

/// Whether the free run errs by no more than the noise.
fn explained(problem: &Problem, way: &Tightened) -> bool {
    let scales = problem.scales;
    let noise = scales.noise.iter().zip(&scales.range);
    let limit = noise.map(|(noise, range)| {
        (EXPLAINED_NOISE_FACTOR * noise / range).max(EXPLAINED_RESOLUTION_FACTOR * RESOLUTION)
    });
    let limit = limit.sum::<f64>() / scales.noise.len() as f64;
    way.best.at.variance_inflation == 1.0 && -way.best.at.merit() < limit
}

/// The better of two ways; the reports are those of both.
fn better(
    kept: Result<Tightened, Error>,
    next: Result<Tightened, Error>,
) -> Result<Tightened, Error> {
    match (kept, next) {
        (Ok(kept), Ok(next)) => {
            let (reports, stopped) = (next.reports.clone(), next.stopped);
            // merits are errors with the sign changed
            let kept = if -next.best.at.merit() < -BETTER_ERROR_RATIO * kept.best.at.merit() {
                next
            } else {
                kept
            };
            Ok(Tightened {
                reports,
                stopped,
                ..kept
            })
        }
        (Ok(kept), Err(Error::Stopped)) => Ok(Tightened {
            stopped: true,
            ..kept
        }),
        (Ok(kept), Err(Error::Diverged(_))) => Ok(kept),
        (Ok(_), Err(error)) => Err(error),
        (Err(_), next) => next,
    }
}

/// θ that fits pieces of the records, each from a start of its own; `None` where they are too short
/// for pieces, or it is lost.
fn in_pieces(
    problem: &Problem,
    guess: &[f64],
    observer: &mut dyn Observer,
) -> Result<Option<Vec<f64>>, Error> {
    let cut = problem.cut(|record| {
        let pieces = MOST_PIECES
            .min(record.len() / FEWEST_SAMPLES_OF_PIECE)
            .max(1);
        let at = |piece| record.len() * piece / pieces;
        (0..pieces).map(|piece| at(piece)..at(piece + 1)).collect()
    });
    if cut.records.len() == problem.records.len() {
        return Ok(None);
    }
    let pieces = cut.of(problem);
    let pieces = Placed::new(&pieces)?;
    let begin = Begin::tight(&pieces, guess.to_vec(), vec![])?;
    let mut quiet = Quiet::new(observer, Trial::Pieces);
    let fit = unless_lost(tighten(&pieces, begin, &mut quiet))?;
    let Some(Tightened { best, stopped, .. }) = fit else {
        return Ok(None);
    };
    let Best {
        mut at,
        mut iterate,
    } = best;
    let stages = at.stages;
    let settled = settle(&pieces, &mut at, &mut iterate, stages, &mut quiet);
    let Some((_, end)) = unless_lost(settled)? else {
        return Ok(None);
    };
    if stopped || matches!(end, End::Stopped(_)) {
        return Err(Error::Stopped);
    }
    let finite = iterate.theta.iter().all(|t| t.is_finite());
    Ok(finite.then_some(iterate.theta))
}

/// What came of something, or nothing where it diverged.
fn unless_lost<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(Error::Diverged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// θ of pieces of the records, where it predicts halves that were held back clearly better than θ of
/// the whole records does: what a wrong model lacks adds up over a long simulation, and constants
/// that follow it there serve no other record.
pub(super) fn pieces_predict_better(
    problem: &Problem,
    theta: &[f64],
    observer: &mut dyn Observer,
) -> Result<Option<Vec<f64>>, Error> {
    // a constant with a value for each record has one for the whole of it, and the spread is that of whole records
    let varies = problem.model.unknowns.iter().any(|u| u.varies.is_some());
    match problem.in_pieces {
        _ if varies => return Ok(None),
        Some(false) => return Ok(None),
        Some(true) => return in_pieces(problem, theta, observer),
        None => {}
    }
    if !only_constants(problem)
        || problem
            .records
            .iter()
            .any(|r| r.len() < 4 * FEWEST_SAMPLES_OF_PIECE)
    {
        return Ok(None);
    }
    let halves = halves(problem);
    let (mut whole, mut pieces) = (0.0, 0.0);
    for half in 0..2 {
        let fold = Problem {
            validate: &halves[1 - half].records,
            in_pieces: Some(false),
            ..halves[half].of(problem)
        };
        let error = |theta: &[f64]| fold.validation_error(theta, fold.noise).unwrap_or(f64::NAN);
        let alone = Problem {
            validate: &[],
            ..fold
        };
        let alone = Placed::new(&alone)?;
        let begin = Begin::tight(&alone, theta.to_vec(), vec![])?;
        let mut quiet = Quiet::new(observer, Trial::Halves);
        let whole_fit = unless_lost(tighten(&alone, begin, &mut quiet))?;
        let (Some(whole_fit), Some(pieces_theta)) =
            (whole_fit, in_pieces(&alone, theta, &mut quiet)?)
        else {
            return Ok(None);
        };
        whole += error(&whole_fit.best.iterate.theta).powi(2);
        pieces += error(&pieces_theta).powi(2);
    }
    // a half that is lost says nothing of the whole
    if whole.is_finite() && pieces.sqrt() < CLEARLY_BETTER_ERROR_RATIO * whole.sqrt() {
        in_pieces(problem, theta, observer)
    } else {
        Ok(None)
    }
}

/// An entry of θ that is held, and the value that it is held at.
pub(in crate::solve) struct Hold {
    pub entry: usize,
    pub value: f64,
}

/// What all else comes to while an entry of θ is held.
pub(in crate::solve) struct Refitted {
    pub theta: Vec<f64>,
    /// How many times larger the objective is there.
    pub objective_ratio: f64,
}

/// θ with an entry held at a value and all else refitted from what was learned; `None` where it is lost.
pub(in crate::solve) fn held(
    problem: &Problem,
    learned: &Learned,
    hold: &Hold,
    observer: &mut dyn Observer,
) -> Result<Option<Refitted>, Error> {
    let Checkpoint::Stage(at) = &learned.checkpoint else {
        return Ok(None);
    };
    let problem = &Placed::new(problem)?;
    let newton = Newton::new(problem, &at.prior, &learned.noise).holding(hold.entry);
    let mut theta = learned.theta.clone();
    theta[hold.entry] = hold.value;
    let states = learned.smoothed.iter().map(|s| s.states.clone());
    let states = problem.put(states.collect())?;
    let base = newton.cost(&learned.theta, &states)?.total();
    let states = newton.smoothed(&theta, &states)?;
    let mut iterate = Iterate {
        cost: newton.cost(&theta, &states)?,
        theta,
        states,
    };
    let mut counter = Counter {
        stage: 0,
        stages: 1,
        observer,
    };
    let end = newton.minimise(
        &mut iterate,
        &mut Damping::default(),
        &HELD_LIMITS,
        &mut counter,
    );
    if let Some(End::Stopped(_)) = unless_lost(end)? {
        return Err(Error::Stopped);
    }
    let objective_ratio = iterate.cost.total() / base;
    Ok(objective_ratio.is_finite().then_some(Refitted {
        theta: iterate.theta,
        objective_ratio,
    }))
}

/// Whether θ has no weights.
fn only_constants(problem: &Problem) -> bool {
    problem.model.system.parameters() == problem.model.system.unknowns()
}

/// Other values of the constants, spread evenly within their scales: those whose simulations follow
/// the data best.
fn elsewhere(problem: &Problem, constants: usize) -> Result<Vec<Vec<f64>>, Error> {
    let beginning =
        problem.cut(|record| std::iter::once(0..record.len().min(SAMPLES_LOOKED_ALONG)).collect());
    let short = beginning.of(problem);
    let short = Placed::new(&short)?;
    let weights = first_prior(&short, short.settings);
    let noise = stage_noise(&short, short.settings, 2.0);
    let newton = Newton::new(&short, &weights, &noise);
    let mut looked_at: Vec<(f64, Vec<f64>)> = (1..=POINTS_LOOKED_AT)
        .map(|k| {
            let point = |dimension| FARTHEST_SCALES * (2.0 * spread_evenly(k, dimension) - 1.0);
            let mut theta: Vec<f64> = (0..constants).map(point).collect();
            // where the groups lie about their mean is no question of where the mean is
            theta[problem.model.unknowns.len()..].fill(0.0);
            problem.model.keep_bounds(&mut theta);
            let states = short.exact_states(&theta)?;
            let error = newton.cost(&theta, &states)?.total();
            let error = if error.is_nan() { f64::INFINITY } else { error };
            Ok((error, theta))
        })
        .collect::<Result<_, Error>>()?;
    looked_at.sort_by(|a, b| a.0.total_cmp(&b.0));
    looked_at.truncate(POINTS_GONE_ON_WITH);
    Ok(looked_at.into_iter().map(|(_, theta)| theta).collect())
}

/// The `k`-th point of Kronecker's sequence in a dimension: multiples of an irrational number, the
/// whole part left out.
fn spread_evenly(k: usize, dimension: usize) -> f64 {
    const PRIMES: [f64; 16] = [
        2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0, 41.0, 43.0, 47.0, 53.0,
    ];
    let root = PRIMES[dimension % PRIMES.len()].sqrt() * (1 + dimension / PRIMES.len()) as f64;
    (k as f64 * root).fract()
}
