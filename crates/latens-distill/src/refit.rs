//! Candidates in place of the networks, each fitted again to the same records by the ordinary job.

use latens::fit::{Constant, Facts};
use latens::model::Model;
use latens::numerics::score;
use latens::solve::{Observer, PassReport, Progress};
use latens::{Error, Fit, Job, Role, Track, Watch};

/// What a fit comes to on the records.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// ln p(y), the constants counted.
    pub evidence: Option<f64>,
    /// Mean nRMSE of the measured channels in free runs over the records learned from.
    pub free_run: Option<f64>,
    /// The same over the records that validated.
    pub validation: Option<f64>,
    /// Its square over parts of these records, one after another.
    pub validation_parts: Vec<f64>,
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
            validation_parts: parts(fit),
            constants: fit.facts.unknowns.clone(),
        }
    }
}

/// Mean nRMSE of the measured channels over the records of a role; none where one diverged.
fn error(model: &Model, facts: &Facts, role: Role) -> Option<f64> {
    let records = facts.records.iter().filter(|r| r.role == role);
    let scores = records.flat_map(|r| model.measurements.iter().map(|m| r.nrmse.get(&m.name)));
    let errors: Option<Vec<f64>> = scores.map(|error| *error.unwrap_or(&None)).collect();
    let errors = errors.filter(|errors| !errors.is_empty())?;
    Some(errors.iter().sum::<f64>() / errors.len() as f64)
}

/// Parts of a record that validated.
const PARTS: usize = 8;

/// Mean square of the measured channels' errors in free runs, over their ranges, of parts of the records that validated.
fn parts(fit: &Fit) -> Vec<f64> {
    let tracks = fit.tracks.iter();
    let tracks = tracks.filter(|t| fit.facts_of(t).role == Role::Validate);
    let of_track = |track: &Track| -> Vec<f64> {
        let record = &track.record;
        let model = &fit.model;
        let said = score::outputs(&model.system, record, &fit.theta, &track.free_run);
        let channels = model.measurements.len();
        let range = |j: usize| {
            let values = record.outputs.iter().skip(j).step_by(channels);
            let values = values.filter(|y| !y.is_nan());
            let most = values.clone().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            most - values.fold(f64::INFINITY, |a, b| a.min(*b))
        };
        let ranges: Vec<f64> = (0..channels).map(range).collect();
        let part = |k: usize| {
            let rows = k * record.len() / PARTS..(k + 1) * record.len() / PARTS;
            let entries = rows.start * channels..rows.end * channels;
            let pairs = said.as_slice()[entries.clone()]
                .iter()
                .zip(&record.outputs[entries]);
            let errors = pairs.zip(ranges.iter().cycle());
            let errors = errors.map(|((said, y), range)| ((said - y) / range).powi(2));
            let known: Vec<f64> = errors.filter(|e| !e.is_nan()).collect();
            known.iter().sum::<f64>() / known.len().max(1) as f64
        };
        (0..PARTS).map(part).collect()
    };
    tracks.flat_map(of_track).collect()
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
    fn goes_on(&mut self) -> bool {
        !(self.0)()
    }

    fn progress(&mut self, _: &Progress) -> bool {
        !(self.0)()
    }

    fn pass(&mut self, _: &PassReport) -> bool {
        !(self.0)()
    }
}

impl Watch for Stopping<'_> {}
