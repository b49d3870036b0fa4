//! Several starts: the next seed where one fails, or many at once and the best kept.
//!
//! A start has failed where the solver diverged, where its innovations are far larger than it
//! says, or where its free run predicts what was measured worse than a constant. Which of several
//! is kept is decided by the free run over the validation records, or over the training ones
//! where there are none; never by a truth.

use std::sync::Mutex;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::prepare::{Signals, initial_theta};
use super::recursion::{self, Learned};
use super::settings::{Settings, Solver};
use super::{EpochReport, Observer, Problem, Progress, batch};
use crate::Error;
use crate::estimate::Smoothed;

/// Seeds that are tried one after another until one works.
const TRIES: u64 = 3;
/// Mean ν²/s above which innovations are not what the solver takes them for.
const INCONSISTENT: f64 = 25.0;

/// One start and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub seed: u64,
    /// Mean nRMSE of the measured channels in free runs over the validation records, or over the
    /// training records without any; infinite where the solver diverged.
    #[serde(deserialize_with = "null_is_infinite")]
    pub error: f64,
    /// Why it counts as failed.
    pub failure: Option<String>,
    /// Whether its result is the fit's.
    pub kept: bool,
}

/// JSON has no infinity: `null` stands for it.
fn null_is_infinite<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// What the known physics says before any start.
pub(super) type Before = (Vec<Smoothed>, Option<Signals>);

/// Runs the starts that the settings ask for; what was learned by the best of them.
pub(super) fn run(
    problem: &Problem,
    settings: &Settings,
    before: Before,
    observer: &mut dyn Observer,
) -> Result<(Learned, Vec<Attempt>), Error> {
    let mut outcomes = Vec::new();
    if settings.starts > 1 {
        let together = Mutex::new((0, observer));
        let seeds: Vec<u64> = (0..settings.starts as u64)
            .map(|k| settings.seed.wrapping_add(k))
            .collect();
        let one = |&seed: &u64| {
            let mut shared = Shared {
                starts: settings.starts,
                inner: &together,
            };
            let asked = Progress {
                epoch: 1,
                epochs: settings.starts,
                step: 0,
                steps: 1,
            };
            let outcome = if shared.progress(&asked) {
                start(problem, settings, &before, seed, &mut shared)
            } else {
                Err(Error::Stopped)
            };
            together.lock().expect("observers do not panic").0 += 1;
            (seed, outcome)
        };
        outcomes = seeds.par_iter().map(one).collect();
    } else {
        for seed in (0..TRIES).map(|k| settings.seed.wrapping_add(k)) {
            let outcome = start(problem, settings, &before, seed, observer);
            let done = matches!(&outcome, Ok((_, attempt)) if attempt.failure.is_none());
            let stop = matches!(&outcome, Err(e) if !matches!(e, Error::Diverged(_)));
            outcomes.push((seed, outcome));
            // recursions are what they are: a seed of theirs is a measurement
            if done || stop || settings.solver != Solver::Batch {
                break;
            }
        }
    }
    keep_best(outcomes)
}

type Outcome = Result<(Learned, Attempt), Error>;

fn start(
    problem: &Problem,
    settings: &Settings,
    (smoothed, signals): &Before,
    seed: u64,
    observer: &mut dyn Observer,
) -> Outcome {
    let theta = initial_theta(problem.model, seed);
    let learned = match settings.solver {
        Solver::Batch => {
            let before = (smoothed.clone(), signals.as_ref());
            batch::run(problem, settings, before, theta, observer)?
        }
        _ => recursion::run(problem, settings, smoothed.clone(), theta, observer)?,
    };
    let error = problem.validation_error(&learned.theta, &learned.noise);
    let error = error.unwrap_or(learned.free_run);
    let failure = failure(&learned);
    let attempt = Attempt {
        seed,
        error: if error.is_nan() { f64::INFINITY } else { error },
        failure,
        kept: false,
    };
    Ok((learned, attempt))
}

/// Why a result cannot be right.
fn failure(learned: &Learned) -> Option<String> {
    if learned.consistency > INCONSISTENT {
        return Some(format!(
            "innovations are {:.0} times as large as expected",
            learned.consistency.sqrt()
        ));
    }
    // a channel's range is some three times its standard deviation
    // not a number where no channel moves: then there is nothing to say
    let lost = learned.free_run > 1.0 / 3.0;
    lost.then(|| "its free run predicts the measurements no better than a constant".into())
}

fn keep_best(outcomes: Vec<(u64, Outcome)>) -> Result<(Learned, Vec<Attempt>), Error> {
    let (mut attempts, mut best, mut first_error) = (vec![], None::<(Learned, usize)>, None);
    for (seed, outcome) in outcomes {
        match outcome {
            Ok((learned, attempt)) => {
                let better = best.as_ref().is_none_or(|(_, k)| {
                    let before: &Attempt = &attempts[*k];
                    (attempt.failure.is_some(), attempt.error)
                        < (before.failure.is_some(), before.error)
                });
                if better {
                    best = Some((learned, attempts.len()));
                }
                attempts.push(attempt);
            }
            Err(error @ Error::Diverged(_)) => {
                attempts.push(Attempt {
                    seed,
                    error: f64::INFINITY,
                    failure: Some(error.to_string()),
                    kept: false,
                });
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match (best, first_error) {
        (Some((learned, k)), _) => {
            attempts[k].kept = true;
            Ok((learned, attempts))
        }
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("there is at least one start"),
    }
}

/// One observer for several starts at once: it is asked whether to go on, and hears of the starts
/// as of epochs.
struct Shared<'s, 'o> {
    starts: usize,
    inner: &'s Mutex<(usize, &'o mut dyn Observer)>,
}

impl Observer for Shared<'_, '_> {
    fn progress(&mut self, progress: &Progress) -> bool {
        let mut inner = self.inner.lock().expect("observers do not panic");
        let done = inner.0;
        inner.1.progress(&Progress {
            epoch: done + 1,
            epochs: self.starts,
            ..*progress
        })
    }

    fn epoch(&mut self, _report: &EpochReport) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Divergence;
    use crate::linalg::{PackedCovariance, Precision};
    use crate::objective::Noise;

    fn diverged(step: usize) -> Outcome {
        Err(Error::Diverged(Divergence {
            during: "batch".into(),
            epoch: Some(1),
            step,
            time: 0.0,
            quantity: "x".into(),
            value: f64::NAN,
            advice: String::new(),
        }))
    }

    /// A start whose θ is its own error.
    fn came_to(error: f64, failure: Option<&str>) -> Outcome {
        let none = Noise {
            process: vec![],
            measurement: vec![],
            start_mean: vec![],
            start: vec![],
        };
        let learned = Learned {
            theta: vec![error],
            covariance: PackedCovariance::scaled_identity(1, 1.0, Precision::Double),
            smoothed: vec![],
            noise: none,
            reports: vec![],
            free_run: error,
            consistency: 1.0,
            repetition: 1.0,
            draws: vec![],
            evidence: None,
        };
        let attempt = Attempt {
            seed: 0,
            error,
            failure: failure.map(str::to_string),
            kept: false,
        };
        Ok((learned, attempt))
    }

    /// A start that did not fail goes before any that did, then the lower error decides; a
    /// diverged one is only told of, and is the error where there is nothing else. A stop by the
    /// user is not outvoted.
    #[test]
    fn the_best_start_is_kept() {
        let best = |outcomes: Vec<Outcome>| {
            let kept = keep_best((7..).zip(outcomes).collect());
            kept.map(|(learned, attempts)| {
                let kept: Vec<bool> = attempts.iter().map(|a| a.kept).collect();
                (learned.theta[0], kept)
            })
        };
        let outcomes = vec![diverged(1), came_to(0.2, None), came_to(0.1, None)];
        assert_eq!(best(outcomes).unwrap(), (0.1, vec![false, false, true]));
        let outcomes = vec![came_to(0.1, Some("inconsistent")), came_to(0.3, None)];
        assert_eq!(best(outcomes).unwrap(), (0.3, vec![false, true]));
        let outcomes = vec![came_to(0.5, Some("lost")), came_to(0.4, Some("lost"))];
        assert_eq!(best(outcomes).unwrap(), (0.4, vec![false, true]));
        match best(vec![diverged(3), diverged(1)]) {
            Err(Error::Diverged(first)) => assert_eq!(first.step, 3),
            other => panic!("{other:?}"),
        }
        let outcomes = vec![came_to(0.1, None), Err(Error::Stopped)];
        assert!(matches!(best(outcomes), Err(Error::Stopped)));
    }
}
