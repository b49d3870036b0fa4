//! Candidates in place of the networks, each fitted again to the same records by the ordinary job.

use latens::fit::{Constant, Facts};
use latens::model::Model;
use latens::solve::{Observer, PassReport, Progress};
use latens::{Error, Fit, Job, Role, Watch};

/// What a fit comes to on the records.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// ln p(y), the constants counted.
    pub evidence: Option<f64>,
    /// Mean nRMSE of the measured channels in free runs over the records learned from.
    pub free_run: Option<f64>,
    /// The same over the records that validated.
    pub validation: Option<f64>,
    /// The unknown constants of the model.
    pub constants: Vec<Constant>,
}

impl Reached {
    /// Of a fit that is there.
    pub fn of(fit: &Fit) -> Self {
        Self {
            evidence: fit.facts.evidence.as_ref().map(|e| e.log),
            free_run: error(&fit.model, &fit.facts, Role::Train),
            validation: error(&fit.model, &fit.facts, Role::Validate),
            constants: fit.facts.unknowns.clone(),
        }
    }
}

/// Mean nRMSE of the measured channels over the records of a role; none where one diverged.
fn error(model: &Model, facts: &Facts, role: Role) -> Option<f64> {
    let records = facts.records.iter().filter(|r| r.role == role);
    let each = records.flat_map(|r| model.measurements.iter().map(|m| r.nrmse.get(&m.name)));
    let each: Option<Vec<f64>> = each.map(|error| *error.unwrap_or(&None)).collect();
    let each = each.filter(|each| !each.is_empty())?;
    Some(each.iter().sum::<f64>() / each.len() as f64)
}

/// Fits a model to the records of a fit, with its settings.
///
/// # Errors
/// Those of a job.
pub fn refit(fit: &Fit, model: Model, stop: &(dyn Fn() -> bool + Sync)) -> Result<Fit, Error> {
    let job = Job::again(fit, model);
    let outcome = job.run(&mut Stopping(stop))?;
    if outcome.fit.facts.stopped {
        return Err(Error::Stopped);
    }
    Ok(outcome.fit)
}

/// Ends a job where somebody asks to.
struct Stopping<'s>(&'s (dyn Fn() -> bool + Sync));

impl Observer for Stopping<'_> {
    fn progress(&mut self, _: &Progress) -> bool {
        !(self.0)()
    }

    fn pass(&mut self, _: &PassReport) -> bool {
        !(self.0)()
    }
}

impl Watch for Stopping<'_> {}
