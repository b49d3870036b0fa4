//! Rivals in the place of a solver: what came of one as a fit, where it learns the model's own θ.

use latens::fit::Fit;
use latens::solve::{Adopted, Data, Observer, Settings, Solver};
use latens::{Error, Model, solve};

use crate::Outcome;

/// Those without weights of the model.
pub const LEAVES_NO_RUN: [Solver; 2] = [Solver::NodeLstm, Solver::PrSsm];

/// What a rival came to.
pub enum Trained {
    /// θ of the model: a fit.
    Fit(Box<Fit>),
    /// Something else.
    Other(Box<Outcome>),
}

impl From<Fit> for Trained {
    fn from(fit: Fit) -> Self {
        Self::Fit(Box::new(fit))
    }
}

/// The settings of a rival: its own recipe, with passes and seed as given.
pub fn recipe(settings: &Settings) -> crate::Settings {
    crate::Settings {
        iterations: settings.epochs,
        seed: settings.seed,
        ..crate::Settings::new(settings.solver)
    }
}

/// Trains a rival as [`solve::fit_validated`] does with a solver.
///
/// # Errors
/// Those of [`crate::fit`].
pub fn train(
    model: &Model,
    data: Data,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Trained, Error> {
    observer.checked(&solve::check(model, data.train)?);
    let outcome = crate::fit(model, data.train, &recipe(settings), observer)?;
    Ok(match adopted(&outcome) {
        Some(adopted) => solve::adopt(adopted, data, settings)?.into(),
        None => Trained::Other(Box::new(outcome)),
    })
}

/// What a fit is made of, where a rival has learned θ of the model.
pub fn adopted(outcome: &Outcome) -> Option<Adopted> {
    let theta = outcome.theta()?.to_vec();
    Some(Adopted {
        theta,
        model: outcome.model.clone(),
        nominal: outcome.nominal.clone(),
        runs: outcome.runs.clone(),
        reports: outcome.reports.clone(),
        stopped: outcome.stopped,
    })
}

/// Refuses what no rival can do: to go on with a run, and to be tested where it leaves none.
///
/// # Errors
/// [`Error::Setting`].
pub fn refuse(solver: Solver, resumed: bool, tests: bool) -> Result<(), Error> {
    let name = solver.name();
    if resumed {
        return Err(Error::Setting(format!(
            "{name} cannot go on with a run: fit anew, with more --epochs"
        )));
    }
    if tests && LEAVES_NO_RUN.contains(&solver) {
        return Err(Error::Setting(format!(
            "{name} leaves no run that a test could be predicted with; give the record to --validate, which is scored"
        )));
    }
    Ok(())
}
