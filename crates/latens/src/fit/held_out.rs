//! Blocks of a fit's records, held back in turn: each is predicted by what is learned from the others.
//!
//! With at least as many records as folds whole records are held back, in groups; else every record is cut
//! into as many blocks. A refit begins at what all data have led to, and keeps the structure of the networks.

use serde::{Deserialize, Serialize};

use super::predict::{Predictor, Start};
use super::reopened::Reopened;
use crate::Error;
use crate::described;
use crate::record::Record;
use crate::solve::{self, Observer, Problem, Quiet, Trial};

/// The fewest samples of a block: a tenth of them finds its start.
const FEWEST_SAMPLES_OF_BLOCK: usize = 50;

described! {
/// What came of blocks that were held back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldOut {
    /// Root mean square error over range of free runs over all of them; none where one diverged.
    pub nrmse: Option<f64>,
    /// The same of each fold.
    pub folds: Vec<Option<f64>>,
    /// Whether whole records were held back, and not blocks of them.
    pub records: bool,
}
}

/// Predicts each fold by what is learned from the others.
///
/// # Errors
/// [`Error::Setting`] where there are not so many folds, [`Error::Stopped`].
pub(super) fn held_out(
    opened: &Reopened,
    folds: usize,
    observer: &mut dyn Observer,
) -> Result<HeldOut, Error> {
    let records = opened.records();
    let whole = records.len() >= folds;
    let shortest = records.iter().map(Record::len).min().unwrap_or(0);
    if folds < 2 || (!whole && shortest / folds < FEWEST_SAMPLES_OF_BLOCK) {
        let most = shortest / FEWEST_SAMPLES_OF_BLOCK;
        return Err(Error::Setting(if most < 2 {
            "the records are too short to hold blocks back; leave ⟦folds⟧ out".into()
        } else {
            format!(
                "⟦folds⟧ must be between 2 and {most}: a block has {FEWEST_SAMPLES_OF_BLOCK} samples at the least"
            )
        }));
    }
    let solver = solve::find(&opened.fit.facts.solver)?;
    let mut held_out = HeldOut {
        nrmse: None,
        folds: vec![],
        records: whole,
    };
    let (mut sum, mut all) = (0.0, 0.0);
    for fold in 0..folds {
        let FoldError { squares, readings } = opened.with(|problem| {
            let mut quiet = Quiet::new(observer, Trial::Fold(fold + 1, folds));
            fold_error(opened, solver, problem, fold, folds, &mut quiet)
        })?;
        let error = (squares / readings).sqrt();
        held_out.folds.push(error.is_finite().then_some(error));
        sum += squares;
        all += readings;
    }
    let error = f64::sqrt(sum / all);
    held_out.nrmse = error.is_finite().then_some(error);
    Ok(held_out)
}

/// The errors on one fold: the sum of their squares, in ranges, and their number.
struct FoldError {
    squares: f64,
    readings: f64,
}

/// Learns from the other folds, and predicts this one.
fn fold_error(
    opened: &Reopened,
    solver: &dyn solve::Solver,
    problem: &Problem,
    fold: usize,
    folds: usize,
    observer: &mut dyn Observer,
) -> Result<FoldError, Error> {
    let count = problem.records.len();
    let whole = count >= folds;
    let place = |record: &Record| {
        let mut records = problem.records.iter();
        records.position(|r| std::ptr::eq(r, record)).unwrap_or(0)
    };
    let block = |record: &Record| {
        let at = |k: usize| record.len() * k / folds;
        if !whole {
            at(fold)..at(fold + 1)
        } else if place(record) % folds == fold {
            0..record.len()
        } else {
            0..0
        }
    };
    let blind = problem.cut(|record| {
        let out = block(record);
        let left = [0..out.start, out.end..record.len()];
        left.into_iter().filter(|r| r.len() > 1).collect()
    });
    let rest = blind.of(problem);
    let fit = opened.fit;
    let start = rest.start_of_half(&fit.theta, fit.facts.seed);
    let learned = match solve::kept::learn(solver, &rest, start, observer) {
        Ok(learned) if !learned.stopped => learned,
        Ok(_) => return Err(Error::Stopped),
        Err(Error::Diverged(_)) => {
            return Ok(FoldError {
                squares: f64::INFINITY,
                readings: 1.0,
            });
        }
        Err(error) => return Err(error),
    };
    let predictor = Predictor {
        theta: &learned.theta,
        draws: &[],
        noise: &learned.noise,
        variance_inflation: learned.variance_inflation,
        ..fit.predictor()
    };
    let (mut squares, mut readings) = (0.0, 0.0);
    for record in problem.records {
        let out = block(record);
        if out.len() < 2 {
            continue;
        }
        let unseen = record.slice(out);
        let made = predictor.predict(&unseen, Start::WarmUp(Start::samples(&unseen)));
        for k in made.from..unseen.len() {
            let row = made.outputs.row(k - made.from);
            for (c, y) in unseen
                .output(k)
                .iter()
                .enumerate()
                .filter(|(_, y)| !y.is_nan())
            {
                squares += ((y - row[c]) / predictor.range[c]).powi(2);
                readings += 1.0;
            }
        }
    }
    Ok(FoldError { squares, readings })
}
