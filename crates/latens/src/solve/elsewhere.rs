//! Other values of the constants.
//!
//! What explains the data need not be the only thing that does, nor what explains them best: two tanks in a row
//! whose time constants are exchanged make nearly the same record. A fit of few parameters costs little, so that
//! it is begun at some other values of its constants too, within their scales, and the evidence decides. What is
//! learned after it begins there.

use super::batch::ways::spread_evenly;
use super::ladder::{Rank, rank};
use super::starts::{self, Kept};
use super::{Observer, Problem, Quiet, Solver, Trial};
use crate::Error;

/// Other values that are begun at, and how far they are from the guesses, in scales.
const STARTS: usize = 4;
const FAR: f64 = 1.5;
/// Fits whose ln p differ by less than this have ended at the same place.
const SAME_LOG: f64 = 0.2;

/// The best of what was learned and of what is learned from other values of the constants.
pub(super) fn best(
    solver: &dyn Solver,
    problem: &Problem,
    first: Kept,
    observer: &mut dyn Observer,
) -> Result<Kept, Error> {
    let (settings, model) = (problem.settings, problem.model);
    let alone = settings.starts.max(settings.ensemble) == 1;
    let explained = |kept: &Kept| {
        let Rank { sound, white, .. } = rank(kept);
        sound && white
    };
    if model.unknowns.is_empty() || !alone || !problem.noisy() || !explained(&first) {
        return Ok(first);
    }
    let mut best = first;
    for start in 1..=STARTS {
        if best.stopped {
            break;
        }
        let mut constants = vec![0.0; model.system.unknowns()];
        // where the groups lie about their mean is no question of where the mean is
        for (dimension, constant) in constants[..model.unknowns.len()].iter_mut().enumerate() {
            *constant = FAR * (2.0 * spread_evenly(start, dimension) - 1.0);
        }
        model.keep_bounds(&mut constants);
        let other = Problem {
            constants: &constants,
            ..*problem
        };
        let mut quiet = Quiet::new(observer, Trial::Constants);
        match starts::run(solver, &other, &[], &mut quiet) {
            Ok(next) => {
                if explained(&next) && rank(&next).log > rank(&best).log + SAME_LOG {
                    best = next;
                }
            }
            Err(Error::Diverged(_)) => {}
            Err(Error::Stopped) => best.stopped = true,
            Err(error) => return Err(error),
        }
    }
    Ok(best)
}
