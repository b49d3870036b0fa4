//! Several starts: the next seed where one fails, or many at once, and the best or all of them kept.
//!
//! A start has failed where the solver diverged, where its innovations are far larger than it
//! says, or where its free run predicts what was measured worse than a constant. Which of several
//! is kept is decided by the free run over the validation records, or over the training ones
//! where there are none; never by a truth.

use std::sync::Mutex;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::batch::ways::LOST_FREE_RUN_ERROR;
use super::checkpoint::{Resumed, Start};
use super::elsewhere::Elsewhere;
use super::{Learned, Observer, PassReport, Problem, Progress, Solver, kept};
use crate::Error;
use crate::described;

/// Mean ν²/s above which innovations are not what the solver takes them for.
const INCONSISTENT_INNOVATION_RATIO: f64 = 25.0;

described! {
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
}

/// JSON has no infinity: `null` stands for it.
fn null_is_infinite<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// What was learned from a seed.
pub struct Seeded {
    pub seed: u64,
    pub learned: Learned,
}

/// What the starts came to.
pub struct Kept {
    /// The best first, then, in an ensemble, the others.
    pub learned: Vec<Seeded>,
    pub attempts: Vec<Attempt>,
    /// Other values of the constants that explain the data nearly as well.
    pub elsewhere: Vec<Elsewhere>,
    /// Whether the observer ended one before its time.
    pub stopped: bool,
}

impl Kept {
    /// What was learned from the best start.
    pub fn best(&self) -> &Learned {
        &self.learned[0].learned
    }
}

/// Runs the starts that the settings ask for, those of an earlier fit from where they were; the
/// best of them, or in an ensemble all that did not fail.
///
/// A fit that kept one of several starts goes on with that one alone.
pub fn run(
    solver: &dyn Solver,
    problem: &Problem,
    resumed: &[&Resumed],
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let settings = problem.settings;
    let mut outcomes = Vec::new();
    let from = |seed: u64| match resumed.iter().find(|r| r.seed == seed) {
        Some(resumed) => Start::From(resumed),
        None => Start::At(problem.initial_theta(seed)),
    };
    let several = if resumed.is_empty() {
        settings.starts.max(settings.ensemble)
    } else {
        settings.ensemble
    };
    if several > 1 {
        let together = Mutex::new((0, observer));
        let seeds = (0..several as u64).map(|k| settings.seed.wrapping_add(k));
        let seeds: Vec<u64> = seeds.collect();
        let from_seed = |&seed: &u64| {
            let mut shared = Shared {
                starts: several,
                inner: &together,
            };
            let asked = Progress {
                pass: 1,
                passes: several,
                step: 0,
                steps: 1,
            };
            let outcome = if shared.progress(&asked) {
                start(solver, problem, seed, from(seed), &mut shared)
            } else {
                Err(Error::Stopped)
            };
            together.lock().expect("observers do not panic").0 += 1;
            (seed, outcome)
        };
        outcomes = seeds.par_iter().map(from_seed).collect();
    } else {
        let first = resumed.first().map_or(settings.seed, |r| r.seed);
        let tried = first.wrapping_sub(settings.seed);
        let tries = tried..solver.tries().max(tried.saturating_add(1));
        for seed in tries.map(|k| settings.seed.wrapping_add(k)) {
            let outcome = start(solver, problem, seed, from(seed), observer);
            let done = matches!(&outcome, Ok((l, a)) if l.stopped || a.failure.is_none());
            let stop = matches!(&outcome, Err(e) if !matches!(e, Error::Diverged(_)));
            outcomes.push((seed, outcome));
            // without weights there is nothing random to try again
            let random = problem.model.system.parameters() > problem.model.system.unknowns();
            if done || stop || !random {
                break;
            }
        }
    }
    keep(outcomes, settings.ensemble > 1)
}

/// Learns from a θ that is all but right.
pub fn near(
    solver: &dyn Solver,
    problem: &Problem,
    seed: u64,
    theta: Vec<f64>,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let outcome = start(solver, problem, seed, Start::Near(theta), observer);
    keep(vec![(seed, outcome)], false)
}

type Outcome = Result<(Learned, Attempt), Error>;

fn start(
    solver: &dyn Solver,
    problem: &Problem,
    seed: u64,
    from: Start,
    observer: &mut dyn Observer,
) -> Outcome {
    let learned = kept::learn(solver, problem, from, observer)?;
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
    if learned.consistency > INCONSISTENT_INNOVATION_RATIO {
        return Some(format!(
            "innovations are {:.0} times as large as expected",
            learned.consistency.sqrt()
        ));
    }
    // not a number where no channel moves: then there is nothing to say
    let lost = learned.free_run > LOST_FREE_RUN_ERROR;
    lost.then(|| "its free run predicts the measurements no better than a constant".into())
}

/// The best start; with `all`, every one that did not fail. One that was stopped before it had
/// anything counts for nothing.
fn keep(outcomes: Vec<(u64, Outcome)>, all: bool) -> Result<Kept, Error> {
    let (mut attempts, mut learned): (Vec<Attempt>, Vec<(usize, Learned)>) = (vec![], vec![]);
    let (mut first_error, mut stopped) = (None, false);
    for (seed, outcome) in outcomes {
        match outcome {
            Ok((result, attempt)) => {
                stopped |= result.stopped;
                learned.push((attempts.len(), result));
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
            Err(Error::Stopped) => stopped = true,
            Err(error) => return Err(error),
        }
    }
    let rank = |k: usize| (attempts[k].failure.is_some(), attempts[k].error);
    learned.sort_by(|(a, _), (b, _)| {
        let ((a_failed, a_error), (b_failed, b_error)) = (rank(*a), rank(*b));
        a_failed.cmp(&b_failed).then(a_error.total_cmp(&b_error))
    });
    let sound = learned
        .iter()
        .filter(|(k, _)| attempts[*k].failure.is_none());
    learned.truncate(if all { sound.count().max(1) } else { 1 });
    if learned.is_empty() {
        return Err(match (stopped, first_error) {
            (false, Some(error)) => error,
            _ => Error::Stopped,
        });
    }
    let seeded = learned.into_iter().map(|(k, learned)| {
        attempts[k].kept = true;
        Seeded {
            seed: attempts[k].seed,
            learned,
        }
    });
    Ok(Kept {
        learned: seeded.collect(),
        attempts,
        elsewhere: vec![],
        stopped,
    })
}

/// One observer for several starts at once: it is asked whether to go on, and hears of the starts
/// as of passes.
struct Shared<'s, 'o> {
    starts: usize,
    inner: &'s Mutex<(usize, &'o mut dyn Observer)>,
}

impl Observer for Shared<'_, '_> {
    fn progress(&mut self, progress: &Progress) -> bool {
        let mut inner = self.inner.lock().expect("observers do not panic");
        let done = inner.0;
        inner.1.progress(&Progress {
            pass: done + 1,
            passes: self.starts,
            ..*progress
        })
    }

    fn pass(&mut self, _report: &PassReport) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Divergence;
    use crate::numerics::linalg::{PackedCovariance, Precision};
    use crate::numerics::objective::Noise;
    use crate::solve::checkpoint::Checkpoint;

    fn diverged(step: usize) -> Outcome {
        Err(Error::Diverged(Divergence {
            during: "batch".into(),
            pass: Some(1),
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
            intervals: vec![],
            noise: none,
            reports: vec![],
            free_run: error,
            free_runs: None,
            contradicted: false,
            in_pieces: false,
            disturbed: None,
            consistency: 1.0,
            variance_inflation: 1.0,
            draws: vec![],
            evidence: None,
            checkpoint: Checkpoint::Pass(1),
            stopped: false,
        };
        let attempt = Attempt {
            seed: 0,
            error,
            failure: failure.map(str::to_string),
            kept: false,
        };
        Ok((learned, attempt))
    }

    /// θ of what is kept, and which starts are, in their order.
    fn kept(outcomes: Vec<Outcome>, all: bool) -> Result<(Vec<f64>, Vec<bool>, bool), Error> {
        let kept = keep((7..).zip(outcomes).collect(), all)?;
        let thetas = kept.learned.iter().map(|s| s.learned.theta[0]).collect();
        let marks = kept.attempts.iter().map(|a| a.kept).collect();
        Ok((thetas, marks, kept.stopped))
    }

    /// A start that did not fail goes before any that did, then the lower error decides; a
    /// diverged one is only told of, and is the error where there is nothing else.
    #[test]
    fn the_best_start_is_kept() {
        let best = |outcomes| kept(outcomes, false);
        let outcomes = vec![diverged(1), came_to(0.2, None), came_to(0.1, None)];
        let expected = (vec![0.1], vec![false, false, true], false);
        assert_eq!(best(outcomes).unwrap(), expected);
        let outcomes = vec![came_to(0.1, Some("inconsistent")), came_to(0.3, None)];
        assert_eq!(
            best(outcomes).unwrap(),
            (vec![0.3], vec![false, true], false)
        );
        let outcomes = vec![came_to(0.5, Some("lost")), came_to(0.4, Some("lost"))];
        assert_eq!(
            best(outcomes).unwrap(),
            (vec![0.4], vec![false, true], false)
        );
        match best(vec![diverged(3), diverged(1)]) {
            Err(Error::Diverged(first)) => assert_eq!(first.step, 3),
            other => panic!("{other:?}"),
        }
    }

    /// An ensemble keeps what did not fail, the best first, or the least bad where all failed.
    #[test]
    fn an_ensemble_keeps_all_that_worked() {
        let outcomes = vec![
            came_to(0.2, None),
            came_to(0.01, Some("lost")),
            diverged(1),
            came_to(0.1, None),
        ];
        let expected = (vec![0.1, 0.2], vec![true, false, false, true], false);
        assert_eq!(kept(outcomes, true).unwrap(), expected);
        let outcomes = vec![came_to(0.5, Some("lost")), came_to(0.4, Some("lost"))];
        assert_eq!(
            kept(outcomes, true).unwrap(),
            (vec![0.4], vec![false, true], false)
        );
    }

    /// Whoever stops gets what there is, marked so, and only with nothing at all an error.
    #[test]
    fn a_stop_keeps_what_there_is() {
        let outcomes = vec![came_to(0.1, None), Err(Error::Stopped)];
        assert_eq!(
            kept(outcomes, false).unwrap(),
            (vec![0.1], vec![true], true)
        );
        for outcomes in [
            vec![Err(Error::Stopped)],
            vec![diverged(1), Err(Error::Stopped)],
        ] {
            assert!(matches!(kept(outcomes, false), Err(Error::Stopped)));
        }
    }
}
